"""The papers' experiments, from the command line to the end of a run."""

import json

import pytest

from aqumen import Scenario
from aqumen._experiments import FORMER, PAPERS, data, experiments, find
from aqumen.cli import main

# Long enough for the sources of the AAQM paper, which begin at 25 s; the network of 622 Mbit/s needs less.
SHORTENED = {"self-tuning/full": "3s", "everyday/backbone": "3s", "everyday/datacenter": "100ms"}
NAMES = [one.name for one in experiments()]


def test_every_paper_has_experiments():
    assert {name.partition("/")[0] for name in NAMES} == {*PAPERS, "everyday"}


def test_an_installed_package_has_what_the_checkout_has(monkeypatch):
    here, claims = {one.name: one.text for one in experiments()}, data("arm-pfc/claims")
    assert find("arm-pfc/exp1").row()["file"].endswith("experiments/arm-pfc/exp1.toml")
    monkeypatch.setattr("aqumen._experiments.folder", lambda: None)
    assert {one.name: one.text for one in experiments()} == here
    assert data("arm-pfc/claims") == claims
    assert data("arm-pfc/nothing") is None
    assert find("arm-pfc/exp1").row()["file"] is None


def test_a_folder_of_experiments_here_goes_before_those_that_are_built_in(tmp_path, monkeypatch):
    folder = tmp_path / "experiments" / "arm-pfc"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('title = "Mine"\n')
    (folder / "claims.toml").write_text("claims = []\n")
    monkeypatch.chdir(tmp_path)
    assert [(one.name, one.row()["title"], one.row()["aqm"]) for one in experiments()] == [
        ("arm-pfc/mine", "Mine", "droptail")
    ]
    assert data("arm-pfc/claims") == "claims = []\n"
    assert data("paqm/claims") is None
    assert find("arm-pfc/exp1") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_runs_to_its_end(name, capsys):
    assert main(["run", name, "--until", SHORTENED.get(name, "30s"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert all(link["all"]["departures_pkts"] > 0 for link in result["links"].values())
    assert all(group["all"]["goodput_bps"] > 0 for group in result["flows"].values())


def test_the_beginning_alone(capsys):
    assert main(["run", "arm-pfc/exp2", "--until", "2s", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    # Its flows stop and resume at 40 and 70 s, which would make windows of their own.
    assert set(result["links"]["bottleneck"]) == {"all", "steady"}
    assert main(["run", "arm-pfc/exp2", "--until", "2"]) == 2
    assert "needs a unit" in capsys.readouterr().err


def test_a_cell_is_named_behind_an_at(tmp_path, capsys):
    file = tmp_path / "many.toml"
    text = next(one.text for one in experiments() if one.name == "arm-pfc/exp4")
    file.write_text(
        f'{text}\n[variants]\ndrops = {{ "flows.*.transport.ecn" = false }}\n'
        '[sweep.n]\nlabel = "n{}"\nset = { "flows.ftp.count" = { from = 2, to = 6, step = 2 } }\n'
    )
    assert main(["run", f"{file}@n4,drops", "--until", "2s", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["scenario"] == "arm-pfc-exp4-n4-drops"
    assert result["links"]["bottleneck"]["all"]["marked_pkts"] == 0
    assert main(["run", f"{file}@n5"]) == 2
    assert "did you mean n2? known: n2, n4, n6, drops" in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), FORMER.items())
def test_names_of_before_lead_to_their_cells(old, new):
    assert Scenario.load(old).to_toml() == Scenario.load(new).to_toml()


def test_names_of_before_are_listed_with_the_experiment_that_has_them_now(capsys):
    assert main(["list", "scenarios", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scenarios"]
    assert {old: new for row in rows for old, new in row["formerly"].items()} == FORMER
    assert all(new.startswith(f"{row['name']}@") for row in rows for new in row["formerly"].values())


def test_a_name_of_before_takes_variants_too():
    assert Scenario.load("aqm-mo/rtt464@ecn").name == "aqm-mo-rtt-464ms-ecn"
    assert Scenario.load("experiments/paqm/n7.toml").name == "paqm-load-n7"
