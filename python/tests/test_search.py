"""Searches: the best parameters over a study."""

import json

import pytest

import aqumen.errors
from aqumen.cli import main
from aqumen.errors import Cancelled, MissingExtra, ScenarioError
from aqumen.search.objectives import Objective
from aqumen.search.tuning import tune
from aqumen.study import Rows
from aqumen.study.definition import Definition
from aqumen.study.executors import Threads

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
    assert lines[0].startswith(
        "Loss from tuning to hold-out: 0.0 points of sojourn_p99_s, better than the default's by 0.0 %"
    )
    assert lines[1].startswith("No better than the default on the 1 tuning networks")
    assert lines[2] == "Best: pi:frequency=160Hz"
    assert main(["tune", "pi", *options, "--relative", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["better_than_default"] is False
    assert found["best"][0]["tuning"][0]["value"]["mean"] == 1.0


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
        ({}, {"objectives": [Objective.read("page_load_mean_s")]}, "page_load_mean_s: undefined in all runs of pi"),
        ({}, {"objectives": [Objective.read("nobody.goodput_bps")]}, "no link or flow group `nobody.`"),
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
