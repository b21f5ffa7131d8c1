"""How many flows make a level of congestion."""

import json

import pytest

from aqumen.calibrate import MOST, Trial, fewest
from aqumen.cli import main
from aqumen.cli.calibrate import share
from aqumen.errors import ScenarioError


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
    with pytest.raises(ScenarioError, match=f"{MOST} flows lose 0.500% of their packets, and not 1.000%"):
        fewest(lambda _: 0.005, 0.01)


def test_a_share_is_read_as_people_write_it():
    assert share("1%") == share("0.01") == share(" 1 %") == 0.01
    with pytest.raises(ScenarioError, match="--loss much: write a share"):
        share("much")


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
    assert "no flow group udp; there are: " in capsys.readouterr().err
    assert main(["calibrate", "rfc7928/congestion", "--group", "tcp", "--loss", "100%"]) == 2
    assert "not above 0 and below 1" in capsys.readouterr().err
