"""The typed classes of the AQMs: what they say is the registry, and a scenario understands it."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aqumen
from aqumen import _core, aqms

ROOT = Path(__file__).parents[2]
ROWS = [row for row in _core.list_aqms() if row["kind"] != "profile"]
CLASSES = {each.name: each for each in map(vars(aqms).get, aqms.__all__) if hasattr(each, "name")}


@pytest.fixture(scope="module")
def scenario():
    return aqumen.Scenario.load(ROOT / "experiments" / "arm-pfc" / "exp1.toml")


def test_the_file_is_what_the_registry_makes_of_it():
    script = [sys.executable, str(ROOT / "scripts" / "aqm-classes"), "--check"]
    done = subprocess.run(script, capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_algorithm_has_a_class_that_a_scenario_understands(row, scenario):
    made = CLASSES[row["name"]]()
    assert str(made) == row["name"]
    scenario.check_aqm(made.spec())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_default_is_understood_in_its_unit(row, scenario):
    for param in row["params"] + row["common_params"]:
        if param["default"] is None:
            continue
        spec = CLASSES[row["name"]](**{param["name"]: param["default"]}).spec()
        try:
            scenario.check_aqm(spec)
        except aqumen.ScenarioError as error:
            # Some need others beside them; they are understood all the same.
            message = str(error)
        else:
            continue
        assert "needs" in message, spec
        assert "unit" not in message, spec


def test_a_spec_has_the_given_parameters_with_their_units():
    assert aqms.Pi(target=100, a=1.822e-5, b=1.816e-5).spec() == "pi:a=1.822e-05,b=1.816e-05,target=100pkt"
    assert aqms.Codel(target="5ms", ecn=False).spec() == "codel:target=5ms,ecn=false"
    assert aqms.Cake(isolation="dual-src", quantum=300).spec() == "cake:quantum=300B,isolation=dual-src"
    assert aqms.Aaqm(threshold=0.95, threshold_from=5).spec() == "aaqm:threshold=0.95,threshold_from=5s"
    assert aqms.Dualpi2(k=2.0, tupdate=0.016).spec() == "dualpi2:tupdate=0.016s,k=2.0"


def test_they_are_frozen_take_keywords_only_and_know_their_parameters():
    with pytest.raises(dataclasses.FrozenInstanceError):
        aqms.Pi().target = 3
    with pytest.raises(TypeError):
        aqms.Pi(3)
    with pytest.raises(TypeError, match="aim"):
        aqms.Pi(aim=3)


def test_run_and_compare_take_them(scenario):
    short = scenario.set("duration", "5s")
    by_object = aqumen.run(short, aqm=aqms.FqCodel(queues=64))
    by_text = aqumen.run(short, aqm="fq-codel:queues=64")
    assert by_object.link("bottleneck", "all") == by_text.link("bottleneck", "all")
    assert by_object.data["aqm"]["params"]["queues"] == 64
    comparison = aqumen.compare(short, aqms=[aqms.Drr(), "sfq"], seeds=1)
    assert comparison.aqms == ["drr", "sfq"]


def test_a_value_out_of_range_is_refused_when_a_scenario_meets_it(scenario):
    with pytest.raises(aqumen.ScenarioError, match="quantum"):
        aqumen.run(scenario, aqm=aqms.Drr(quantum=0))
