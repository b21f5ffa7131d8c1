"""The papers' experiments, from the command line to the end of a run."""

import json

import pytest

from aqumen.cli import main
from aqumen.experiments import PAPERS, experiments

# Long enough for the sources of the AAQM paper, which begin at 25 s; the network of 622 Mbit/s needs less.
SHORTENED = {"self-tuning/full": "3s"}
NAMES = [one.name for one in experiments()]


def test_every_paper_has_experiments():
    assert {name.partition("/")[0] for name in NAMES} == set(PAPERS)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_to_its_end(name, capsys):
    settings = ["events=[]", "windows={}"]
    if name == "aaqm/web":
        settings += [
            f"flows.{group}-{cell}.start=1s" for group in ("second", "third") for cell in ("wifi", "wimax", "umts")
        ]
    settings.append(f"duration={SHORTENED.get(name, '30s')}")
    changes = [word for setting in settings for word in ("--set", setting)]
    assert main(["run", name, *changes, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert all(link["all"]["departures_pkts"] > 0 for link in result["links"].values())
    assert all(group["all"]["goodput_bps"] > 0 for group in result["flows"].values())
