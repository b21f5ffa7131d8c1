"""Searches: the best parameters over a study, and networks in which an AQM does worse than a reference."""

import json
import re
import shlex
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_interrupt import stopped

import aqumen
import aqumen.errors
from aqumen.cli import main
from aqumen.errors import Cancelled, MissingExtra, ScenarioError
from aqumen.search.breaking import Search, _Network
from aqumen.search.causes import paragraph
from aqumen.search.criteria import CAUSES, of_metric
from aqumen.search.networks import Space, dumbbells, of_study, rounded
from aqumen.search.objectives import Objective
from aqumen.search.tuning import tune
from aqumen.study import Rows
from aqumen.study.cases import Case
from aqumen.study.definition import Definition
from aqumen.study.executors import Threads
from aqumen.study.factors import Factor

NETWORKS = {"flows.ftp.count": [10, 20, 40, 80], "bottleneck.delay": ["5ms", "20ms"]}
TARGET = {"pi:target": {"from": "10pkt", "to": "200pkt", "log": True}}
QUEUE, FULL = Objective.read("sojourn_p99_s"), Objective.read("utilization")


def study(**more):
    given = {"scenarios": ["arm-pfc/exp1"], "aqms": ["pi"], "until": "3s", "seeds": 4, "factors": NETWORKS | TARGET}
    return Definition.read({**given, **more})


def seeds_of_networks(folder):
    """Seeds that ran on each network."""
    found = {}
    for case, seed, _ in Rows(folder).records():
        network = case.labels["flows.ftp.count"], case.labels["bottleneck.delay"]
        found.setdefault(network, set()).add(seed)
    return found


# Objectives.


@pytest.mark.parametrize(
    ("text", "column", "more"),
    [
        ("sojourn_p99_s", "sojourn_p99_s", False),
        ("utilization", "utilization", True),
        ("max:sojourn_p99_s", "sojourn_p99_s", True),
        ("min:probability_mean", "probability_mean", False),
        ("ftp.goodput_bps@all", "ftp.goodput_bps@all", True),
        ("max:back:queue_empty_ratio", "back:queue_empty_ratio", True),
    ],
)
def test_an_objective_has_a_column_and_a_direction(text, column, more):
    assert Objective.read(text) == Objective(column=column, more=more)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sojourn_p9_s", "did you mean sojourn_p99_s?"),
        ("probability_mean", "min:probability_mean or max:"),
        ("", "no metric"),
    ],
)
def test_an_objective_without_metric_or_direction_is_refused(text, told):
    with pytest.raises(ScenarioError, match=told):
        Objective.read(text)


# The search.


def test_the_answer_is_that_of_any_number_of_threads_and_a_repeated_search_runs_nothing(tmp_path):
    asked = {"candidates": 12, "seed": 3}
    first = tune(study(), "pi", [QUEUE], tmp_path / "a", on=Threads(1), **asked)
    files = {path: path.read_bytes() for path in (tmp_path / "a" / "runs").iterdir()}
    ran = []
    again = tune(study(), "pi", [QUEUE], tmp_path / "a", on_progress=lambda now: ran.append(now) or True, **asked)
    other = tune(study(), "pi", [QUEUE], tmp_path / "b", on=Threads(2), **asked)
    assert first.to_dict() == again.to_dict() == other.to_dict()
    assert {path: path.read_bytes() for path in (tmp_path / "a" / "runs").iterdir()} == files
    assert ran[-1].candidates == 12


def test_the_search_never_sees_the_networks_that_are_held_out_and_reports_fresh_seeds(tmp_path):
    found = tune(study(), "pi", [QUEUE], tmp_path, candidates=8)
    assert found.networks == (6, 2)
    seeds = list(seeds_of_networks(tmp_path).values())
    # Seeds 1 to 4 search, 5 to 8 measure.
    assert sorted(map(len, seeds)) == [4, 4, 8, 8, 8, 8, 8, 8]
    assert [each for each in seeds if len(each) == 4] == [{5, 6, 7, 8}] * 2
    assert found.best[0].tuning[0].value["n"] == 4


def test_the_worse_half_of_a_batch_gets_no_more_seeds(tmp_path):
    tune(study(), "pi", [QUEUE], tmp_path, candidates=8)
    searched = {}
    for case, seed, _ in Rows(tmp_path).records():
        if "pi:target" in case.labels and seed <= 4:
            searched.setdefault(case.labels["pi:target"], set()).add(seed)
    # Rungs 1, 2 and 4 of 4 seeds: 8 candidates begin, 4 and 2 go on.
    assert sorted(map(len, searched.values())) == [1, 1, 1, 1, 2, 2, 4, 4]


def test_a_stopped_search_keeps_its_runs_and_goes_on_to_the_same_answer(tmp_path):
    whole = tune(study(), "pi", [QUEUE], tmp_path / "whole", candidates=8)
    left = iter(range(60))
    with pytest.raises(Cancelled):
        tune(study(), "pi", [QUEUE], tmp_path / "cut", candidates=8, on_progress=lambda _: next(left, None) is not None)
    kept = len(Rows(tmp_path / "cut"))
    assert 40 < kept < len(Rows(tmp_path / "whole"))
    assert tune(study(), "pi", [QUEUE], tmp_path / "cut", candidates=8).to_dict() == whole.to_dict()


def test_more_candidates_extend_a_search(tmp_path):
    tune(study(), "pi", [QUEUE], tmp_path, candidates=8)
    first = {case.spec for case, _, _ in Rows(tmp_path).records()}
    tune(study(), "pi", [QUEUE], tmp_path, candidates=16)
    assert first < {case.spec for case, _, _ in Rows(tmp_path).records()}


def test_damaged_rows_are_run_again(tmp_path):
    whole = tune(study(), "pi", [QUEUE], tmp_path, candidates=4).to_dict()
    (file,) = (tmp_path / "runs").iterdir()
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines[0].startswith(b'{"key":"columns-')
    file.write_bytes(b"x".join((lines[0][:60], lines[0][61:])) + b"".join(lines[1:9]) + lines[9][:80])
    assert tune(study(), "pi", [QUEUE], tmp_path, candidates=4).to_dict() == whole


def test_ctrl_c_keeps_the_runs_of_a_search(tmp_path):
    file, out = tmp_path / "study.toml", tmp_path / "t"
    file.write_text(
        'scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\nuntil = "20s"\nseeds = 4\n[factors]\n'
        '"flows.ftp.count" = [10, 20, 40]\n"pi:target" = { from = "10pkt", to = "200pkt", log = true }\n'
    )
    words = ["--objective", "sojourn_p99_s", "--out", str(out), "--candidates", "100000", "--force"]
    code, said = stopped("tune", "pi", "--over", str(file), *words, begun=lambda: any(out.glob("runs/*.jsonl")))
    assert code == 130
    assert f"stopped; {out} keeps what is finished, repeat the command to continue" in said
    assert "Traceback" not in said
    rows = Rows(out)
    assert len(rows) > 0
    assert not rows.store.damaged


def test_a_custom_aqm_of_a_study_is_tuned(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import aqumen\n\n\nclass Cut(aqumen.PacketAqm):\n    limit = aqumen.Param(50, unit='pkt', low=1)\n\n"
        "    def on_arrival(self, packet, queue):\n        return 'drop' if queue.packets >= self.limit else None\n\n\n"
        "class Other(Cut):\n    pass\n"
    )
    given = study(
        **{"aqm-from": [f"{tmp_path / 'mine.py'}:Cut", f"{tmp_path / 'mine.py'}:Other"]}, until="1s", seeds=2,
        factors={"flows.ftp.count": [10, 20], "cut:limit": {"from": "5pkt", "to": "50pkt"}},
    )  # fmt: skip
    found = tune(given, "cut", [QUEUE], tmp_path / "t", candidates=4)
    assert found.networks == (1, 1)
    assert found.best[0].spec.startswith("cut:limit=")
    assert {case.labels["aqm"] for case, _, _ in Rows(tmp_path / "t").records()} == {"cut"}


def test_a_known_optimum_is_found(tmp_path):
    # The deviation is from the network's target of 100 packets.
    found = tune(study(until="20s"), "pi", [Objective.read("qacd_pkts")], tmp_path, candidates=24, hold_out=0)
    target = float(str(found.best[0].values["pi:target"]).removesuffix("pkt"))
    assert 75 < target < 130
    assert found.best[0].hold_out is None
    assert "no network is held out" in found.headline()[0]


def test_of_a_pareto_front_none_is_better_in_both(tmp_path):
    found = tune(study(), "pi", [QUEUE, FULL], tmp_path, candidates=16)
    assert len(found.best) > 2
    searched = [tuple(map(str, each.values.values())) for each in found.best]
    assert len(set(searched)) == len(searched)
    # PI trades delay for utilisation: in order of delay, the ends differ in both.
    first, last = found.best[0].tuning, found.best[-1].tuning
    assert first[0].value["mean"] < last[0].value["mean"]
    assert first[1].value["mean"] < last[1].value["mean"]
    assert "points of utilization" in found.headline()[0]


@pytest.mark.parametrize("sampler", ["cmaes", "random"])
def test_other_samplers_search_too(tmp_path, sampler):
    more = TARGET | {"pi:frequency": {"from": "80Hz", "to": "320Hz"}}
    given = study(factors={"flows.ftp.count": [20, 40]} | more)
    found = [tune(given, "pi", [QUEUE], tmp_path / str(k), candidates=16, sampler=sampler).to_dict() for k in range(2)]
    assert found[0] == found[1]
    assert set(found[0]["best"][0]["values"]) == {"pi:target", "pi:frequency"}


def test_another_study_is_held_out(tmp_path):
    other = study(factors={"flows.ftp.count": [30]}, until="2s")
    found = tune(study(), "pi", [QUEUE], tmp_path, candidates=8, hold_out=other)
    assert found.networks == (8, 1)
    assert found.best[0].hold_out[0].value["n"] == 4
    # What the folder says of its runs is right: a sample repeats bit for bit.
    assert main(["study", "check", str(tmp_path), "--sample", "30"]) == 0


def test_parameters_like_the_default_are_no_better(tmp_path, capsys):
    file = tmp_path / "study.toml"
    file.write_text(
        'scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\nuntil = "3s"\nseeds = 3\n'
        '[factors]\n"flows.ftp.count" = [10, 20]\n"pi:frequency" = ["160Hz"]\n'
    )
    options = ["--over", str(file), "--objective", "sojourn_p99_s", "--out", str(tmp_path / "t"), "--candidates", "2"]
    assert main(["tune", "pi", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Loss from tuning to hold-out: 0.0 points of sojourn_p99_s (gain over the default 0.0 %")
    assert lines[1].startswith("No better than the default on the 1 tuning networks")
    assert lines[2] == "Best: pi:frequency=160Hz"
    assert main(["tune", "pi", *options, "--relative", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["better_than_default"] is False
    assert found["best"][0]["tuning"][0]["value"]["mean"] == 1.0


def test_drawn_networks_are_tuned_over(tmp_path):
    drawn = {"draw": {"family": "access", "seed": 1, "count": 4}, "until": "20s", "seeds": 2, "factors": TARGET}
    given = Definition.read({"aqms": ["pi"], **drawn})
    found = tune(given, "pi", [QUEUE], tmp_path, candidates=2, relative=True)
    assert found.networks == (3, 1)


def test_switches_are_searched(tmp_path):
    found = tune(study(factors=NETWORKS | {"pi:ecn": [True, False]}), "pi", [QUEUE], tmp_path, candidates=4)
    assert found.best[0].spec in ("pi:ecn=true", "pi:ecn=false")


def test_parameters_that_the_aqm_refuses_are_counted(tmp_path):
    found = tune(
        study(factors=NETWORKS | {"pi:target": ["-5pkt", "20pkt", "40pkt", "80pkt"]}),
        "pi",
        [QUEUE],
        tmp_path,
        candidates=8,
    )
    assert 0 < found.invalid < 8
    assert f"{found.invalid} of 8 candidates were refused" in "\n".join(found.headline())


# Bad input.


@pytest.mark.parametrize(
    ("given", "options", "told"),
    [
        ({}, {"aqm": "codel"}, "no factor of codel; add one below"),
        ({"factors": NETWORKS | {"pi:target": ["-5pkt"]}}, {}, "target = -5pkt"),
        ({"factors": NETWORKS | {"pi:targt": [5]}}, {}, "did you mean target"),
        ({"factors": TARGET}, {}, "takes 1 of 1 networks and leaves none"),
        ({}, {"hold_out": 0.97}, "takes 8 of 8 networks and leaves none"),
        ({"seeds": [7]}, {}, "at least 2"),
        (
            {},
            {"objectives": [Objective.read("page_load_mean_s")]},
            "page_load_mean_s: undefined under pi with scenario = arm-pfc/exp1, flows.ftp.count = 10,",
        ),
        ({}, {"objectives": [Objective.read("nobody.goodput_bps")]}, "no link or flow group `nobody.`"),
        (
            {},
            {"objectives": [Objective.read("overflow_drop_ratio")], "relative": True},
            "undefined or 0, which has no ratio",
        ),
        ({}, {"sampler": "tpee"}, "choose from: tpe, cmaes, random"),
        ({}, {"sampler": "cmaes"}, "one parameter, where it needs two; choose tpe"),
        ({}, {"candidates": 10_000_000}, "CPU hours; the limit is 10; --force runs it"),
    ],
)
def test_what_cannot_be_searched_is_refused(tmp_path, given, options, told):
    asked = {"aqm": "pi", "objectives": [QUEUE], "candidates": 4, **options}
    with pytest.raises(ScenarioError) as error:
        tune(study(**given), asked.pop("aqm"), asked.pop("objectives"), tmp_path, **asked)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--objective", "sojourn_p9_s"], "--objective sojourn_p9_s: no metric"),
        (["--objective", "qacd_pkts", "--hold-out", "1.5"], "must be a share from 0 to below 1"),
        (["--objective", "qacd_pkts", "--hold-out", "nothing.toml"], "nothing.toml"),
        (["--objective", "qacd_pkts", "--aqm", "pi"], "--aqm does not go with --over"),
        ([], "--objective is missing"),
    ],
)
def test_a_slip_is_one_line(tmp_path, capsys, options, told):
    file = tmp_path / "study.toml"
    file.write_text('scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\n[factors]\n"pi:target" = ["20pkt"]\n')
    assert main(["tune", "pi", "--over", str(file), "--out", str(tmp_path / "t"), *options]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "t").exists()


def test_an_empty_range_is_named_with_its_line(tmp_path, capsys):
    file = tmp_path / "study.toml"
    file.write_text(
        'scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\n[factors]\n"pi:target" = { from = "9pkt", to = "9pkt" }\n'
    )
    assert main(["tune", "pi", "--over", str(file), "--out", str(tmp_path / "t"), "--objective", "qacd_pkts"]) == 2
    assert "study.toml:4: factors.pi:target: from = 9pkt: must be below `to`" in capsys.readouterr().err


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(aqumen.errors, "import_module", missing)
    with pytest.raises(MissingExtra, match=r"this needs optuna.*pip install 'aqumen\[tune\]'"):
        tune(study(), "pi", [QUEUE], tmp_path / "t")
    assert not (tmp_path / "t").exists()


# Networks in which an AQM does worse.

FULLNESS = of_metric(FULL, None)
SHORT = aqumen.Scenario.load("arm-pfc/exp1").until("1s")


class Imagined(Search):
    """A search in which `excess_of(values, seed)` takes the place of runs."""

    def __init__(self, factors, excess_of, **given):
        made = tuple(Factor.read(name, levels) for name, levels in factors.items())
        space = Space(factors=made, scenario=lambda values: SHORT, engine="packet", custom="")
        super().__init__(space, "pi", "droptail", [FULLNESS], **given)
        self.excess_of = excess_of

    def _network(self, name, point, values):
        pair = tuple(Case(f"{name}-{spec}", name, (), spec, {}) for spec in self.specs)
        return _Network(point=dict(point), values=values, scenario=SHORT, pair=pair, seconds=0.001)

    def evaluate(self, networks, seeds):
        for each in networks:
            for seed in seeds:
                self.spent_runs += 2
                self.excesses[each.pair[0].base, seed] = {FULLNESS.name: self.excess_of(each.values, seed)}

    def failure(self, criterion, until=1.0):
        made = super().failure(criterion, until)
        return made and made.values

    def _failure(self, found, small, criterion):
        return type("Made", (), {"values": small.values})


IMAGINED = {
    "event": ["none", "a", "b"],
    "flows": {"from": 1, "to": 100, "log": True},
    "rtt": {"from": "10ms", "to": "500ms", "log": True},
}


def test_a_failure_shrinks_to_the_simplest_values_that_still_fail():
    def excess(values, _seed):
        return 0.5 if values["event"] != "none" and values["flows"] >= 13 else 0.0

    search = Imagined(IMAGINED, excess, runs_max=2000)
    search.explore()
    found = search.failure(FULLNESS)
    assert found["event"] == "a"
    assert found["flows"] in (13, 14)
    assert found["rtt"] == "10ms"


@settings(max_examples=25, deadline=None)
@given(
    event=st.sampled_from(["none", "a", "b"]),
    flows=st.integers(1, 40),
    rtt=st.integers(10, 200),
    seed=st.integers(0, 99),
)
def test_what_is_shrunk_fails_and_is_no_larger_than_any_network_of_the_search(event, flows, rtt, seed):
    levels = IMAGINED["event"]

    def fails(values):
        ms = float(values["rtt"].removesuffix("ms"))
        return levels.index(values["event"]) >= levels.index(event) and values["flows"] >= flows and ms >= rtt

    search = Imagined(IMAGINED, lambda values, _: 0.2 if fails(values) else -0.1, runs_max=1500, seed=seed)
    search.explore()
    failing = [each.values for each in search.networks.values() if each and fails(each.values)]
    found = search.failure(FULLNESS)
    assert (found is None) == (failing == [])
    if found is not None:
        assert fails(found)
        assert found["event"] == event
        assert flows <= found["flows"] <= 1.3 * flows + 1
        assert rtt <= float(found["rtt"].removesuffix("ms")) <= 1.3 * rtt


def test_a_lucky_seed_is_no_failure():
    search = Imagined(IMAGINED, lambda _, seed: 0.9 if seed == 1 else 0.0, runs_max=400)
    search.explore()
    assert search.worst(FULLNESS)
    assert search.failure(FULLNESS) is None


def test_a_failure_that_only_the_seeds_of_shrinking_show_is_taken_back():
    # One flow fails in the seeds of confirmation and of shrinking, not in the final ones.
    def excess(values, seed):
        return 0.5 if values["flows"] >= 20 or seed < 11 else 0.0

    search = Imagined({"flows": {"from": 1, "to": 100}}, excess, runs_max=400)
    search.explore()
    # Among the networks on the way, the smallest that fails in the final seeds is taken; none is no failure.
    found = search.failure(FULLNESS)
    assert found is None or found["flows"] >= 20


def test_the_budget_bounds_the_runs():
    search = Imagined(IMAGINED, lambda *_: 0.9, runs_max=100)
    search.all()
    # A batch, a confirmation and the final seeds may begin within the budget.
    assert search.spent_runs <= 100 + 32 + 6 + 10


def test_numbers_are_short_where_their_range_allows():
    rate = Factor.read("rate", {"from": "1Mbit", "to": "100Mbit", "log": True})
    assert [rounded(rate, u) for u in (0.0, 0.33, 0.5, 0.999999)] == ["1Mbit", "4.6Mbit", "10Mbit", "100Mbit"]
    narrow = Factor.read("flows", {"from": 101, "to": 103})
    assert rounded(narrow, 0.5) == 102


@pytest.mark.parametrize("traffic", ["none", "udp 50 %", "bursts 80 %", "transfers 20 %"])
@pytest.mark.parametrize(
    "event", ["none", "capacity / 4", "capacity x 4", "delay x 4", "flows x 4", "half of the flows stop"]
)
def test_every_network_without_a_study_is_a_scenario(traffic, event):
    space = dumbbells()
    values = space.values({each.name: 0.6 for each in space.factors}) | {"traffic": traffic, "event": event}
    given = tomllib.loads(space.scenario(values).to_toml())
    assert {each["name"] for each in given["flows"]} >= {"long", "far"}
    assert ("events" in given) == (event not in ("none", "flows x 4"))
    middle = [each.get("at") for each in given.get("events", ())]
    assert middle in ([], ["15s"])


def test_jains_index_of_all_long_flows_is_that_of_their_goodputs():
    # Goodputs 1, 3 and 2, 2, 2: J = 10^2 / (5 x 22). Of the first group J = 16 / 20.
    scenario = dumbbells().scenario(
        {"event": "none", "traffic": "udp 20 %", "far RTT factor": 2, "ecn": False, "tcp": "linux", "buffer BDP": 1,
         "flows": 2, "rate": "5Mbit", "rtt": "20ms"}
    ).set("flows.far.count", "3")  # fmt: skip
    known = {"long.goodput_bps": 4.0, "long.jain_fairness": 0.8, "far.goodput_bps": 6.0, "far.jain_fairness": 1.0}
    assert CAUSES[2].value(known.__getitem__, scenario) == pytest.approx(100 / 110)


LONG = """
name = "long"
duration = "20s"
aqm = "codel"
[topology]
preset = "dumbbell"
bottleneck = { rate = "5Mbit", delay = "1ms", buffer = "200pkt" }
access = { rate = "100Mbit" }
[[flows]]
name = "ftp"
rtt = "100ms"
"""


@pytest.fixture
def over(tmp_path):
    (tmp_path / "long.toml").write_text(LONG)
    path = tmp_path / "study.toml"
    path.write_text(
        'scenarios = ["long.toml"]\naqms = ["codel"]\n[factors]\n"flows.ftp.count" = [1, 2, 5]\n'
        '"flows.ftp.rtt" = { from = "20ms", to = "400ms", log = true }\n'
    )
    return path


def broken(capsys, tmp_path, over, *options, code=0):
    out = tmp_path / "broken"
    words = ["break", "codel", "--over", str(over), "--runs", "160", "--out", str(out), *options]
    assert main(words) == code
    return out, capsys.readouterr().out


def test_what_breaks_an_aqm_is_a_file_that_repeats_it(over, tmp_path, capsys):
    out, said = broken(capsys, tmp_path, over, "--metric", "utilization", "--json")
    (failure,) = json.loads(said)["failures"]
    assert failure["values"]["flows.ftp.count"] == 1
    assert failure["excess"]["ci95"][0] > 0.05
    assert failure["cause"].startswith("Empty queue: no packet waits in ")
    file = out / "utilization.toml"
    assert failure["file"] == str(file)
    assert "# Empty queue: no packet waits in " in file.read_text()
    # The file repeats the figures, bit for bit.
    for spec, key in ((None, "aqm"), ("droptail", "reference")):
        runs = [aqumen.run(file, spec, seed) for seed in failure["seeds"]]
        values = [each.data["links"]["bottleneck"]["steady"]["utilization"] for each in runs]
        assert sum(values) / len(values) == pytest.approx(failure[key]["mean"], rel=1e-9)
    words = shlex.split(
        re.search(r"Repeat: aqumen (.*)", broken(capsys, tmp_path, over, "--metric", "utilization")[1])[1]
    )
    assert main(words) == 0
    assert main(["run", str(file)]) == 0


def test_the_search_is_that_of_any_number_of_threads(over, tmp_path, capsys):
    said = [broken(capsys, tmp_path, over, "--threads", str(k), "--json")[1] for k in (1, 2)]
    assert said[0] == said[1]
    assert broken(capsys, tmp_path, over, "--seed", "2", "--json")[1] != said[0]


def test_the_answer_names_network_figures_cause_and_command(over, tmp_path, capsys):
    out, said = broken(capsys, tmp_path, over, "--metric", "utilization", "--by", "0.08")
    assert said.startswith("codel against droptail: 1 failure in ")
    assert f"Utilization: {out / 'utilization.toml'}\nNetwork: flows.ftp.count = 1, flows.ftp.rtt = " in said
    assert "a failure is worse by 0.08 in every seed" in " ".join(said.split())
    assert re.search(r"Repeat: aqumen compare \S+utilization.toml --aqm codel --aqm droptail --seeds 11-15", said)


def test_nothing_found_is_said_and_nothing_written(over, tmp_path, capsys):
    out, said = broken(capsys, tmp_path, over, "--against", "codel:target=5ms")
    assert said.startswith("codel against codel:target=5ms: 0 failures in ")
    assert [line.partition(":")[0] for line in said.splitlines()[1:]] == [
        f"Nothing found for {name}" for name in ("oscillation", "empty queue", "unfairness", "overflow")
    ]
    assert not out.exists()


def test_ctrl_c_stops_a_search(over):
    left = iter(range(30))
    space = of_study(Definition.load(over))
    search = Search(space, "codel", "droptail", CAUSES, on_progress=lambda _: next(left, None) is not None)
    with pytest.raises(Cancelled):
        search.all()
    assert search.spent_runs > 0


def test_ctrl_c_on_the_command_line_is_one_line(over, tmp_path):
    words = ["--over", str(over), "--budget", "10000", "--out", str(tmp_path / "broken")]
    code, said = stopped("break", "codel", *words)
    assert code == 130
    assert "stopped" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("criterion", CAUSES, ids=lambda each: each.name)
def test_each_cause_is_told_with_its_figures(criterion):
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("10s")
    said = paragraph(scenario, "pi", "droptail", criterion, "packet", 1)
    name = criterion.name
    assert said.startswith(f"{name[0].upper()}{name[1:]}: ")
    assert "nan" not in said
    assert said.count("droptail") >= 1


def test_a_metric_that_no_cause_explains_is_said_so():
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("10s")
    said = paragraph(scenario, "codel", "codel:target=5ms", FULLNESS, "packet", 1)
    assert said.startswith("Neither oscillation nor an empty queue, unfairness or overflow explains it")


def test_a_custom_aqm_is_broken_too(over, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "import aqumen\n\n\nclass Tiny(aqumen.PacketAqm):\n    def on_arrival(self, packet, queue):\n"
        "        return 'drop' if queue.packets >= 2 else None\n"
    )
    out = tmp_path / "broken"
    words = ["--metric", "utilization", "--runs", "60", "--aqm-from", f"{file}:Tiny", "--out", str(out)]
    assert main(["break", "tiny", "--over", str(over), *words]) == 0
    said = capsys.readouterr().out
    assert f"--aqm tiny --aqm droptail --aqm-from {file}:Tiny --seeds 11-15" in said


@pytest.mark.slow
def test_codel_breaks_without_a_study(tmp_path, capsys):
    assert main(["break", "codel", "--out", str(tmp_path), "--json"]) == 0
    failures = {each["criterion"]: each for each in json.loads(capsys.readouterr().out)["failures"]}
    # One flow with a long round trip, which an interval of 100 ms cuts too early.
    assert failures["empty queue"]["values"]["flows"] == 1
    assert failures["empty queue"]["excess"]["mean"] > 0.1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["codl"], "did you mean codel?"),
        (["droptail"], "droptail: is its own reference"),
        (["codel", "--against", "pei"], "pei"),
        (["codel", "--by", "5%"], "--by needs --metric"),
        (["codel", "--metric", "utilization", "--by", "0"], "--by 0: must be above 0"),
        (["codel", "--metric", "utilisation"], "did you mean utilization?"),
        (["codel", "--metric", "nobody.goodput_bps"], "no link or flow group `nobody.`"),
        (["codel", "--over", "nothing.toml"], "nothing.toml"),
        (["codel", "--over", "bare.toml"], "bare.toml: the study has no factor of its networks"),
        (["codel", "--over", "wrong.toml"], "did you mean count?"),
        (["codel", "--out", "bare.toml"], "--out bare.toml: "),
        (["codel", "--runs", "1"], "--runs"),
    ],
)
def test_what_cannot_be_broken_is_one_line(words, told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    head = 'scenarios = ["arm-pfc/exp1"]\naqms = ["codel"]\nuntil = "2s"\n'
    (tmp_path / "bare.toml").write_text(head)
    (tmp_path / "wrong.toml").write_text(f'{head}[factors]\n"flows.ftp.cuont" = [1, 2]\n')
    assert main(["break", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "broken").exists()
