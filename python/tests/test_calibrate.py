"""How many flows make a level of congestion."""

import json
import tomllib
from types import SimpleNamespace

import pytest

from aqumen.cli import main
from aqumen.cli.calibrate import fraction
from aqumen.errors import ScenarioError
from aqumen.explain.calibration import MOST, Trial, fewest


@pytest.mark.parametrize("wanted", [1, 2, 3, 7, 8, 9, 100])
def test_the_fewest_flows_that_lose_enough_are_found(wanted):
    # Each flow loses a thousandth more.
    flows, trials = fewest(lambda count: count / 1000, wanted / 1000)
    assert flows == wanted
    assert trials == tuple(Trial(flows=trial.flows, loss_ratio=trial.flows / 1000) for trial in trials)
    assert [trial.flows for trial in trials] == sorted({trial.flows for trial in trials})
    # The one before was tried, and loses less.
    assert wanted == 1 or wanted - 1 in {trial.flows for trial in trials}


def test_what_no_number_of_flows_loses_is_said():
    with pytest.raises(ScenarioError, match=f"{MOST} flows lose only 0.500% of their packets, less than 1.000%"):
        fewest(lambda _: 0.005, 0.01)


def test_a_fraction_is_read_as_people_write_it():
    assert fraction("1%") == fraction("0.01") == fraction(" 1 %") == 0.01
    with pytest.raises(ScenarioError, match="--loss much: must be a fraction"):
        fraction("much")


SHORT = ["--set", "duration=12s", "--seeds", "1"]


def test_more_flows_are_needed_where_more_is_to_be_lost(capsys):
    found = {}
    for loss in ("0.5%", "4%"):
        arguments = ["calibrate", "rfc7928/congestion", "--group", "tcp", "--loss", loss, "--json", *SHORT]
        assert main(arguments) == 0
        found[loss] = json.loads(capsys.readouterr().out)
    assert found["0.5%"]["flows"] < found["4%"]["flows"]
    for loss, told in found.items():
        by_flows = {trial["flows"]: trial["loss_ratio"] for trial in told["trials"]}
        assert by_flows[told["flows"]] >= told["loss_ratio"], loss


def test_an_unknown_group_and_a_share_out_of_range_are_refused(capsys):
    assert main(["calibrate", "rfc7928/congestion", "--group", "udp", "--loss", "1%"]) == 2
    assert "no flow group udp; choose from: " in capsys.readouterr().err
    assert main(["calibrate", "rfc7928/congestion", "--group", "tcp", "--loss", "100%"]) == 2
    assert "must be above 0 and below 1" in capsys.readouterr().err


def answered(monkeypatch, early, overflow):
    """Runs that lose so much for each flow and seed; what was run."""
    seen = []

    def run_many(scenario, jobs, engine, threads, keep):
        # Of the scenario's text: a plan of thousands of flows takes seconds.
        flows = sum(group.get("count", 1) for group in tomllib.loads(scenario.to_toml())["flows"])
        seen.append((flows, jobs, engine))
        for index, (_, seed) in enumerate(jobs):
            link = {
                window: {
                    "early_drop_ratio": None if early is None else early * flows * seed * factor,
                    "overflow_drop_ratio": None if overflow is None else overflow * flows * seed * factor,
                }
                for window, factor in (("steady", 1), ("all", 2))
            }
            assert keep(index, SimpleNamespace(json=json.dumps({"aqm": {"name": "x"}, "links": {"l": link}})))

    monkeypatch.setattr("aqumen.engines.run_many", run_many)
    return seen


COMMAND = ["calibrate", "rfc7928/congestion", "--group", "tcp", "--loss", "12%"]


def test_losses_are_early_drops_and_overflows_over_all_seeds(capsys, monkeypatch):
    # 1 % early and 2 % overflows for each flow and seed: over seeds of 1 and 2 it is 4.5 % for each flow.
    seen = answered(monkeypatch, 0.01, 0.02)
    assert main([*COMMAND, "--seeds", "2", "--aqm", "pie"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 flows of tcp: the fewest at which pie loses 0.12 or more")
    rows = [line.split() for line in out.splitlines()]
    assert [row for row in rows if len(row) == 2 and row[0].isdigit()] == [
        ["1", "4.500"],
        ["2", "9.000"],
        ["3", "13.500"],
        ["4", "18.000"],
    ]
    assert seen[0] == (1, [("pie", 1), ("pie", 2)], "packet")
    # Three seeds, and DropTail, where nothing is said.
    answered(monkeypatch, 0.01, None)
    assert main([*COMMAND, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # 2 % for each flow.
    assert (told["flows"], told["aqm"], told["group"], told["loss_ratio"], told["schema"]) == (
        6,
        "droptail",
        "tcp",
        0.12,
        1,
    )
    seen = answered(monkeypatch, None, 0.01)
    assert main([*COMMAND, "--window", "all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["flows"] == 3
    assert seen[0][1] == [("droptail", seed) for seed in (1, 2, 3)]
    answered(monkeypatch, None, None)
    assert main([*COMMAND, "--seeds", "1"]) == 2
    assert f"{MOST} flows lose only 0.000% of their packets, less than 12.000%" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.parametrize(("loss", "told"), [("0", "ratio 0: "), ("-1%", "ratio -0.01: "), ("1", "ratio 1: ")])
def test_shares_are_between_nothing_and_all(capsys, loss, told):
    assert main([*COMMAND[:-1], loss]) == 2
    assert told in " ".join(capsys.readouterr().err.split())
    assert main([*COMMAND, "--seeds", "0"]) == 2
    assert "seeds = 0: must be at least 1" in capsys.readouterr().err
