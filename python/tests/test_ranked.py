"""Rankings over networks: figures by hand, statistics against scipy, records, freezes, the verb."""

import gzip
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import aqumen
from aqumen import _core
from aqumen.cli import main
from aqumen.errors import OutputError, ScenarioError
from aqumen.scenario import Scenario
from aqumen.study import Rows, Study
from aqumen.study.compared import holm
from aqumen.study.drawn import draw
from aqumen.study.figures import FIGURES, Values, facts_of, values_of
from aqumen.study.frozen import freeze, read_freeze, unlike
from aqumen.study.ranked import rank_networks
from aqumen.study.record import read_record, record_of, shipped_record

ROOT = Path(__file__).parents[2]


def made(table, seeds=1):
    """Values of one figure, `power`, by network and AQM; the others are undefined."""
    power = np.repeat(np.array(table, dtype=float)[:, :, None], seeds, axis=2)
    networks, aqms = power.shape[:2]
    return Values(
        networks=tuple(f"net-{k}" for k in range(networks)),
        aqms=tuple("abcdefgh"[:aqms]),
        seeds=tuple(range(1, seeds + 1)),
        figures={key: power if key in ("power", "used", "lost") else np.full_like(power, np.nan) for key in FIGURES},
    )


def test_ratios_counts_worst_and_left_out_are_as_by_hand():
    values = made([[1, 2, 1.01], [1, 4, 1], [2, 1, 2.0], [1, math.nan, 3], [1, 2, 1]])
    found = rank_networks(values, "power")
    assert (found.reference, found.networks, found.left_out) == ("a", 4, 1)
    by = {place.aqm: place for place in found.places}
    assert by["b"].mean == pytest.approx((2 * 4 * 0.5 * 2) ** 0.25)
    assert (by["b"].better, by["b"].worse, by["b"].undefined) == (3, 1, 1)
    assert by["b"].worst == ("net-2", pytest.approx(0.5))
    # 1 % is alike for power.
    assert (by["c"].better, by["c"].worse) == (0, 0)
    assert [place.aqm for place in found.places] == ["b", "c", "a"]


def test_p_values_are_those_of_scipy_and_holm():
    rng = np.random.default_rng(1)
    table = np.exp(rng.normal([0, 0.3, 0.1], 0.4, size=(30, 3)))
    found = rank_networks(made(table), "power")
    x = np.log(table)
    ps = holm([stats.ttest_rel(x[:, a], x[:, b]).pvalue for a, b in ((0, 1), (0, 2), (1, 2))])
    by = {place.aqm: place.p_holm for place in found.places}
    assert [by["b"], by["c"]] == pytest.approx(ps[:2], rel=1e-6)


def test_intervals_cover_and_equal_aqms_are_rarely_told_apart():
    rng = np.random.default_rng(2)
    covered = wrong = 0
    for _ in range(100):
        found = rank_networks(made(np.exp(rng.normal(0, 0.5, size=(40, 4)))), "power")
        place = next(each for each in found.places if each.aqm == "b")
        covered += place.ci95[0] <= 1 <= place.ci95[1]
        wrong += len({each.group for each in found.places}) > 1
    assert covered >= 86
    # At 5 % over all pairs: 13 of 100 would be a chance of 1 in 1000.
    assert wrong <= 12


def test_a_large_significant_difference_within_what_is_alike_is_none():
    table = [[0.9998, 1.0], [0.9997, 1.0], [0.9998, 0.9999], [0.9998, 1.0]]
    found = rank_networks(made(table), "used")
    assert {place.group for place in found.places} == {"a"}
    assert not any(place.differs or place.better or place.worse for place in found.places)


def test_the_reference_changes_no_order_and_no_group():
    rng = np.random.default_rng(3)
    values = made(np.exp(rng.normal([0, 0.4, 0.8, 0.8], 0.3, size=(25, 4))))
    orders = {
        tuple((place.aqm, place.group) for place in rank_networks(values, "power", aqm).places) for aqm in values.aqms
    }
    assert len(orders) == 1


def test_losses_are_compared_by_differences():
    (first, second) = rank_networks(made([[0.0, 0.05], [0.02, 0.04], [0.0, 0.0]]), "lost").places
    assert (first.aqm, second.mean) == ("a", pytest.approx(0.07 / 3))
    assert (second.worse, second.better) == (2, 0)


@pytest.mark.parametrize(("figure", "reference", "told"), [("pwer", None, "did you mean power"), ("power", "z", "z: ")])
def test_what_cannot_be_ranked_is_told(figure, reference, told):
    with pytest.raises(ScenarioError, match=told):
        rank_networks(made([[1, 2], [1, 2]]), figure, reference)


NETWORK = """
name = "NAME"
duration = "4s"
[topology]
preset = "dumbbell"
[topology.bottleneck]
rate = "RATE"
delay = "5ms"
buffer = "100pkt"
[topology.access]
rate = "1Gbit"
[[flows]]
name = "long"
count = 2
rtt = "30ms"
[[flows]]
name = "other"
rtt = "60ms"
"""


@pytest.fixture
def networks(tmp_path):
    folder = tmp_path / "nets"
    folder.mkdir()
    for k, rate in enumerate(("2Mbit", "4Mbit", "8Mbit")):
        (folder / f"net-{k}.toml").write_text(NETWORK.replace("NAME", f"net-{k}").replace("RATE", rate))
    return folder


def test_figures_of_a_run_are_those_of_its_flows(networks, tmp_path):
    import aqumen

    file = networks / "net-1.toml"
    rows = Study(scenarios=[str(file)], aqms=["pie"], seeds=[3]).run(tmp_path / "s")
    values = {key: float(each[0, 0, 0]) for key, each in values_of(rows).figures.items()}
    run = aqumen.run(file, aqm="pie", seed=3)
    link = run.link()
    assert values["power"] == pytest.approx(link["utilization"] / (0.04 + link["sojourn_mean_s"]), rel=1e-4)
    assert values["p95"] == pytest.approx(link["sojourn_p95_s"] + 12000 / 4e6, rel=1e-4)
    assert values["lost"] == pytest.approx(link["early_drop_ratio"] + link["overflow_drop_ratio"], rel=1e-4)
    assert math.isnan(values["short"])
    # Jain over three flows from two groups: sum and sum of squares of each.
    long, other = run.flow_group("long"), run.flow_group("other")
    squares = long["goodput_bps"] ** 2 / (2 * long["jain_fairness"]) + other["goodput_bps"] ** 2
    total = long["goodput_bps"] + other["goodput_bps"]
    assert values["jain"] == pytest.approx(total**2 / (3 * squares), rel=1e-4)


OWN = """
import aqumen

class Mine(aqumen.SampledLaw):
    period = 0.01

    def step(self, seen):
        return 0.02
"""


def test_a_newcomer_to_a_record_costs_its_own_runs_only(networks, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(OWN)
    assert main(["study", "rank", str(networks), "--aqm", "droptail,pie", "--keep", "r.jsonl.gz"]) == 0
    told = capsys.readouterr().out
    assert "3 networks, 2 seeds" in told
    assert "droptail" in told
    command = ["study", "rank", "--record", "r.jsonl.gz", "--aqm-from", "my.py:Mine", "--out", "new", "--json"]
    assert main(command) == 0
    data = json.loads(capsys.readouterr().out)
    assert {place["aqm"] for place in data["figures"][0]["places"]} == {"droptail", "pie", "mine"}
    assert len(Rows("new")) == 6
    # As all of them run together.
    assert main(["study", "rank", str(networks), "--aqm", "droptail,pie", "--aqm-from", "my.py:Mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["figures"] == data["figures"]
    page = Path("new/ranking.html").read_text()
    assert all(each.title in page for each in FIGURES.values())
    # One figure, in order, on a terminal of 80 columns.
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["study", "rank", "--record", "r.jsonl.gz", "--by", "power", "--out", "new"]) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    assert "worst" in told


def test_a_record_reads_as_it_was_written_and_equal_ones_are_equal_files(networks, tmp_path):
    rows = Study(scenarios=[str(path) for path in sorted(networks.glob("*"))], aqms=["pie", "red"], seeds=2).run(
        tmp_path / "s"
    )
    record = record_of(rows)
    record.write(tmp_path / "a.gz")
    again = read_record(tmp_path / "a.gz")
    again.write(tmp_path / "b.gz")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert again.sources == dict(_core.ENGINES)["packet"]
    for key, each in record.values.figures.items():
        np.testing.assert_array_equal(again.values.figures[key], each)


def test_a_record_of_another_engine_is_checked_and_refused_if_it_differs(networks, tmp_path, capsys):
    rows = Study(scenarios=[str(path) for path in sorted(networks.glob("*"))], aqms=["pie", "red"], seeds=2).run(
        tmp_path / "s"
    )
    path = tmp_path / "r.gz"
    record_of(rows).write(path)
    head, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    other = json.dumps({**json.loads(head), "sources": "0" * 64})

    def rank(*lines):
        path.write_bytes(gzip.compress("\n".join([other, *lines]).encode()))
        return main(["study", "rank", "--record", str(path), "--out", str(tmp_path / "o")]), capsys.readouterr()

    code, told = rank(*lines)
    assert (code, "12 of its runs were repeated and are equal" in " ".join(told.out.split())) == (0, True)
    last = json.loads(lines[-1])
    last["values"]["used"] = [[0.5, 0.5]] * 3
    code, told = rank(*lines[:-1], json.dumps(last))
    assert (code, "another engine" in told.err, "differ: red in net-" in told.err) == (2, True, True)
    path.write_text("no record")
    with pytest.raises(OutputError, match="not a record"):
        read_record(path)


def test_a_freeze_shows_whether_networks_were_blind(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(OWN)
    assert main(["study", "freeze", "--aqm-from", "my.py:Mine", "--out", "f.json"]) == 0
    frozen = read_freeze(Path("f.json"))
    assert str(frozen.seed) in capsys.readouterr().out
    assert main(["study", "freeze", "--aqm", "pie", "--out", "f.json"]) == 2
    assert main(["study", "draw", "--freeze", "f.json", "--count", "2", "--family", "access", "--out", "nets"]) == 0
    texts = {path.stem: path.read_text() for path in Path("nets").glob("*.toml")}
    assert unlike(frozen, ["my.py:Mine"], texts) == []
    other = {each.name: each.text for each in draw("access", 5, 2)}
    assert "not drawn from the seed" in unlike(frozen, ["my.py:Mine"], other)[0]
    name = min(texts)
    assert "is not as drawn" in unlike(frozen, ["my.py:Mine"], {**texts, name: texts[name] + "\n"})[0]
    (tmp_path / "my.py").write_text(OWN.replace("0.02", "0.03"))
    assert unlike(frozen, ["my.py:Mine"], texts) == ["mine was changed since the freeze"]
    Path("f.json").write_text(Path("f.json").read_text().replace(str(frozen.seed), "7"))
    with pytest.raises(OutputError, match="does not follow"):
        read_freeze(Path("f.json"))
    assert freeze(["pie"], []).aqms != freeze(["pie:target=5ms"], []).aqms


def test_misinformed_aqms_meet_the_same_networks():
    right, wrong = draw("any", 11, 20), draw("any", 11, 20, misinformed=4)
    off = {"capacity_bps": set(), "flows": set(), "base_rtt_s": set()}
    for one, other in zip(right, wrong, strict=True):
        assert other.name == f"{one.name}-x4"
        true, told = (Scenario.parse(each.text, "x.toml").plan() for each in (one, other))
        assert true["actual"] == told["actual"] == true["nominal"]
        assert (true["flows"], facts_of(Scenario.parse(other.text, "x.toml"))) == (
            told["flows"],
            facts_of(Scenario.parse(one.text, "x.toml")),
        )
        for key, ratios in off.items():
            ratios.add(round(told["nominal"][key] / true["nominal"][key], 2))
        assert told["nominal"]["target_pkts"] == true["nominal"]["target_pkts"]
    assert all(ratios == {0.25, 4.0} for ratios in off.values())


def test_only_aqms_that_are_told_differ_where_they_are_misinformed():
    def of(network, aqm):
        links = aqumen.run(Scenario.parse(network.text, "x.toml").until("3s"), aqm).data["links"]
        return {key: links["bottleneck"]["all"][key] for key in ("sojourn_mean_s", "overflow_drop_ratio")}

    for one, other in zip(draw("provider", 3, 2), draw("provider", 3, 2, misinformed=4), strict=True):
        assert of(one, "codel") == of(other, "codel")
        assert of(one, "pi") != of(other, "pi")


def test_a_freeze_knows_misinformed_networks(tmp_path):
    frozen = freeze(["pie"], [])
    texts = {each.name: each.text for each in draw("any", frozen.seed, 3, misinformed=4)}
    assert unlike(frozen, [], texts) == []
    name = min(texts)
    assert "is not as drawn" in unlike(frozen, [], {**texts, name: texts[name].replace("flows = ", "flows = 1")})[0]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "give one of DIR and --record"),
        (["--record", "atlas", "--by", "speed"], "--by speed; did you mean used? choose from: power, p95"),
        (["--record", "atlas", "--against", "nobody", "--out", "o"], "nobody: is not ranked"),
        (["--record", "absent.gz"], "absent.gz: no such file"),
        (["nowhere"], "holds no study"),
    ],
)
def test_bad_commands_are_one_line(args, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aqumen.cli.ranking._check_engine", lambda *_: None)
    assert main(["study", "rank", *args]) == 2
    assert told in capsys.readouterr().err


def test_the_atlas_has_every_aqm_and_its_record_is_small():
    study = tomllib.loads((ROOT / "studies" / "atlas.toml").read_text())
    every = {row["name"] for row in _core.list_aqms()} - {"fixed"} | {"pie-bytes"}
    assert set(study["aqms"]) == every
    record = read_record(shipped_record())
    assert set(record.values.aqms) == every
    assert (len(record.networks), len(record.values.seeds)) == (60, 2)
    assert shipped_record().stat().st_size < 1_000_000


def test_the_table_of_the_documentation_is_what_the_record_gives(tmp_path, capsys):
    arguments = ["--record", "atlas", "--against", "droptail", "--format", "markdown", "--out", str(tmp_path)]
    assert main(["study", "rank", *arguments]) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    page = (ROOT / "docs" / "validation" / "ranking.md").read_text(encoding="utf-8")
    assert len(table) == 49
    assert "\n".join(table) in page
