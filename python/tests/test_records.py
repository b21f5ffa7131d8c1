"""The runs behind verdicts: what a record keeps of a run, where it lies, and what is run again."""

import json

import numpy as np
import pytest

from aqumen import _records
from aqumen._records import Records, record_of
from aqumen.errors import OutputError

NAN = float("nan")


class Answered:
    """A run of ten seconds sampled each second: the queue climbs to 8 and stays there."""

    def __init__(self, links=("core",), target=5.0):
        self.t_s = np.arange(11.0)
        self.queue = np.array([0.0, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8])
        self.p = np.array([0.0, 0, 0, 0.1, 0.1, 0.1, 0.1, 0.3, 0.3, 0.3, 0.3])
        metrics = {"queue_mean_pkts": 7.0, "sojourn_mean_s": 0.25}
        windows = {"all": [0.0, 10.0], "steady": [6.0, 10.0], "sample-0": [0.0, 5.0], "sample-1": [5.0, 10.0]}
        data = {
            "schema": 1,
            "scenario": "mock",
            "aqumen": "x",
            "aqm": {"name": "pi", "params": {}, "nominal": {"target_pkts": target}},
            "seed": 1,
            "windows": windows,
            "links": {link: {window: dict(metrics) for window in windows} for link in links},
            "flows": {
                "a": {window: {"goodput_bps": 3.0} for window in windows},
                "b": {window: {"goodput_bps": 4.0 + (window == "sample-1")} for window in windows},
            },
            "cost": {"cpu_s": 1},
            "notes": ["dropped"],
        }
        self.json = json.dumps(data)

    def series(self, link):
        return self.t_s, self.queue, self.p

    def state(self, link):
        # Known from 2 s on; never; and an odd number with a high mean.
        known = np.where(self.t_s < 2, NAN, self.t_s)
        return [("load", known), ("none", np.full(11, NAN))]

    def queue_cdf(self, link, window):
        return np.array([0.0, 3.0, 4.0, 8.0]), np.array([0.125, 0.25, 0.5, 1.0])


def test_a_record_keeps_what_rules_ask_for():
    kept = record_of(Answered(), with_series=False)
    assert set(kept) == {"scenario", "aqm", "seed", "windows", "links", "flows", "cost", "aqumen", "samples"}
    # What are samples stands apart.
    assert list(kept["windows"]) == ["all", "steady"]
    assert all(list(windows) == ["all", "steady"] for windows in (kept["links"]["core"], *kept["flows"].values()))
    assert kept["samples"] == [
        {"at_s": [0.0, 5.0], "goodput_bps": 7.0, "sojourn_mean_s": 0.25},
        {"at_s": [5.0, 10.0], "goodput_bps": 8.0, "sojourn_mean_s": 0.25},
    ]
    steady = kept["links"]["core"]["steady"]
    assert steady["queue_mean_pkts"] == 7.0
    # At 0 an eighth of the time; below the target of 5 is at most 4.
    assert (steady["empty_share"], steady["below_target_share"]) == (0.125, 0.5)
    # Samples at 6, 7, 8, 9, 10 s: 0.1 once and 0.3 four times: 0.26, sqrt(0.16 * 0.04 * ...) = 0.08.
    assert steady["p_mean"] == pytest.approx(0.26)
    assert steady["p_std"] == pytest.approx(0.08)
    assert (steady["length_s"], steady["target_pkts"]) == (4.0, 5.0)
    # 6 to 10: mean and median 8. Over all 2 to 10: 6.
    assert (steady["load_mean"], steady["load_p50"]) == (8.0, 8.0)
    assert (kept["links"]["core"]["all"]["load_mean"], kept["links"]["core"]["all"]["load_p50"]) == (6.0, 6.0)
    assert (steady["none_mean"], steady["none_p50"]) == (None, None)
    assert kept["links"]["core"]["all"]["p_mean"] == pytest.approx(1.6 / 11)


def test_settling_is_about_the_level_of_the_second_half(monkeypatch):
    asked = []

    def seen(t_s, queue, level, start, end):
        asked.append((level, start, end))
        return 2.5, 0.0

    monkeypatch.setattr(_records._core, "transient", seen)
    kept = record_of(Answered(), with_series=False)
    # From 5 s on 8 packets; of `steady` from 8 s on.
    assert asked == [(8.0, 0.0, 10.0), (8.0, 6.0, 10.0)]
    assert kept["links"]["core"]["all"]["settling_own_s"] == 2.5
    # What holds an empty queue settles at nothing.
    idle = Answered()
    idle.queue = np.concatenate([np.full(5, 9.0), np.zeros(6)])
    asked.clear()
    kept = record_of(idle, with_series=False)
    assert asked == []
    assert kept["links"]["core"]["all"]["settling_own_s"] is None
    monkeypatch.setattr(_records._core, "transient", lambda *_: None)
    assert record_of(Answered(), with_series=False)["links"]["core"]["all"]["settling_own_s"] is None


def test_a_window_without_samples_has_no_figures():
    between = Answered()
    between.t_s = between.t_s + 100
    all_ = record_of(between, with_series=False)["links"]["core"]["all"]
    assert (all_["p_mean"], all_["p_std"], all_["settling_own_s"], all_["load_mean"]) == (None, None, None, None)


def test_series_are_thinned_to_what_a_figure_shows():
    plain = record_of(Answered(("core", "edge")), with_series=True)["series"]
    assert list(plain) == ["core", "edge"]
    assert plain["core"]["t_s"] == list(range(11))
    assert plain["core"]["queue_pkts"] == [0, 2, 4, 6, 8, 8, 8, 8, 8, 8, 8]
    for count, step in ((500, 1), (501, 2), (1000, 2), (1001, 3), (10_000, 20)):
        long = Answered()
        long.t_s = np.arange(count) / 3
        long.queue = np.full(count, 1.26)
        long.state = lambda link: []
        long.p = np.where(np.arange(count) % 2, NAN, 0.123456)
        kept = record_of(long, with_series=True)["series"]["core"]
        assert len(kept["t_s"]) == len(kept["queue_pkts"]) == len(kept["probability"]) == -(-count // step) <= 500
        # Milliseconds, tenths of a packet, five digits.
        assert kept["t_s"][1] == pytest.approx(round(step / 3, 3), abs=1e-12)
        assert kept["queue_pkts"][0] == 1.3
        assert kept["probability"][0] == 0.12346
        assert kept["probability"][1] == (None if step % 2 else 0.12346)


@pytest.mark.parametrize(
    ("at", "share"), [(-1.0, 0.0), (0.0, 0.1), (1.5, 0.1), (2.0, 0.4), (2.0 - 1e-10, 0.4), (9.0, 1.0)]
)
def test_the_share_of_time_at_or_below_a_level(at, share):
    assert _records._share_at(np.array([0.0, 2.0, 5.0]), np.array([0.1, 0.4, 1.0]), at) == share
    assert _records._share_at(np.array([]), np.array([]), at) is None


# On disk.


@pytest.fixture
def cell(fake_core, tmp_path, monkeypatch):
    """A cell by a name that is not that of a folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mock.toml").write_text(fake_core.TOML)
    return "mock.toml"


def kept_in(folder, cell, seeds=(1, 2)):
    return Records({cell: ["pi", "red"]}, seeds, folder)


def test_runs_on_disk_are_not_repeated(cell, tmp_path):
    first = kept_in(tmp_path / "o", cell)
    assert (first.resumed, first.left) == (0, 4)
    seen = []

    def one_more(*told):
        seen.append(told)
        return len(seen) < 3

    first.work(one_more)
    # In whatever order they are finished; three were enough.
    assert len({told[:3] for told in seen}) == 3
    assert {told[:3] for told in seen} < {(cell, spec, seed) for spec in ("pi", "red") for seed in (1, 2)}
    assert all(told[3] == first.weights[cell] for told in seen)
    assert first.left == 1
    assert first.work_left == pytest.approx(first.weights[cell])
    second = kept_in(tmp_path / "o", cell)
    assert (second.resumed, second.left) == (3, 1)
    assert second.runs == first.runs
    assert {(cell, spec, seed) for spec in ("pi", "red") for seed, _ in second.of(cell, spec)} == {s[:3] for s in seen}
    second.work(lambda *_: True)
    assert second.left == second.work_left == 0
    # Only the first seed's record has a series.
    assert [(seed, "series" in run) for seed, run in second.of(cell, "pi")] == [(1, True), (2, False)]
    # More seeds go on from what is there.
    more = kept_in(tmp_path / "o", cell, seeds=(1, 2, 3))
    assert (more.resumed, more.left) == (4, 2)
    # What begins with another seed needs a series there.
    third = kept_in(tmp_path / "o", cell, seeds=(2, 3))
    assert (third.resumed, third.left) == (0, 4)
    # A damaged record is made again.
    (path,) = (tmp_path / "o" / "runs").iterdir()
    path.write_bytes(path.read_bytes().replace(b'"seed": 2', b'"seed": 9', 1))
    assert kept_in(tmp_path / "o", cell).left == 1
    nowhere = kept_in(None, cell)
    assert (nowhere.resumed, nowhere.left) == (0, 4)


def test_a_stop_leaves_out_the_other_cells_too(fake_core, tmp_path):
    cells = []
    for name in ("one", "two"):
        cells.append(tmp_path / f"{name}.toml")
        cells[-1].write_text(fake_core.TOML)
    made = Records({str(cell): ["pi"] for cell in cells}, [1], None)
    made.work(lambda *_: False)
    assert made.left == 1
    assert [len(list(made.of(str(cell), "pi"))) for cell in cells] == [1, 0]


def test_a_cell_may_have_fewer_seeds(fake_core, scenario_file):
    cell = str(scenario_file)
    made = Records({cell: ["pi"]}, [1, 2, 3], None, {cell: [1, 2]})
    assert made.left == 2
    made.work(lambda *_: True)
    assert [seed for seed, _ in made.of(cell, "pi")] == [1, 2]


def test_scenarios_are_prepared_before_they_run(fake_core, scenario_file):
    asked = []

    def keep(cell, scenario):
        asked.append((cell, scenario.name))
        return scenario

    Records({str(scenario_file): ["pi"]}, [1], None, prepare=keep)
    assert asked == [(str(scenario_file), "mock")]


def test_what_a_run_costs_goes_with_the_packets_that_the_links_under_test_carry():
    made = Records({"arm-pfc/exp1": ["pi"], "arm-pfc/exp3@n50": ["pi"]}, [1], None)
    for cell, weight in made.weights.items():
        plan = made.scenarios[cell].plan(1, "pi")
        bits = sum(max(rate for _, rate in link["rates"]) for link in plan["links"] if link["record"])
        packets = bits * plan["duration_s"] / (8 * plan["nominal"]["packet_bytes"])
        # In millions, and a twentieth for the start.
        assert weight == pytest.approx(0.05 + packets / 1e6)
        assert weight > 0.1


def test_a_folder_that_cannot_be_made_is_told_in_one_line(cell, tmp_path):
    (tmp_path / "o").write_text("a file")
    with pytest.raises(OutputError, match=r"^cannot write to .*: (File exists|Not a directory)$"):
        kept_in(tmp_path / "o", cell)


def test_records_with_more_series_than_wanted_count(cell, tmp_path):
    def made(series):
        return Records({cell: ["pi"]}, [1, 2], tmp_path / "o", series=series)

    bare = made("none")
    bare.work(lambda *_: True)
    assert not any("series" in run for run in bare.runs.values())
    # Only the first seed lacks its series.
    sampled = made("sampled")
    assert (sampled.resumed, sampled.left) == (1, 1)
    sampled.work(lambda *_: True)
    assert "series" in sampled.runs[cell, "pi", 1]
    assert (made("none").left, made("sampled").left, made("all").left) == (0, 0, 1)
