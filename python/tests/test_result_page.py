"""The page that defines the result names every key that a run and a comparison carry."""

import json
from pathlib import Path

import pytest

import aqumen
from aqumen._records import Records
from aqumen.rfc7928 import evaluation

PAGE = (Path(__file__).parents[2] / "docs" / "formats" / "result.md").read_text()

EVALUATION = "## The evaluation of RFC 7928"


def leaves(table, depth):
    """Keys `depth` levels below a table of names."""
    for each in table.values():
        yield from each if depth == 1 else leaves(each, depth - 1)


def run_keys(run):
    yield from run
    yield from run["aqm"]
    yield from run["cost"]
    yield from leaves(run["links"], 2)
    yield from leaves(run["flows"], 2)


def comparison_keys(comparison):
    yield from comparison
    yield from comparison["runs"]
    yield from comparison["ranking"]
    yield from comparison["ranking"]["order"][0]
    for aqm in comparison["aqms"].values():
        yield from aqm
        yield from leaves(aqm["links"], 3)
        yield from leaves(aqm["transients"], 2)
    for engine in comparison["mismatch"].values():
        yield from engine
        yield from leaves(engine["links"], 2)


@pytest.fixture
def scenario(fake_core):
    return aqumen.Scenario.parse(fake_core.TOML)


def test_every_key_of_a_run_is_defined(scenario):
    found = set(run_keys(aqumen.run(scenario, aqm="pi").data))
    assert {key for key in found if f"`{key}`" not in PAGE} == set()
    # Ten at the top, four of the AQM, four of the cost, 43 of a link, 34 of a flow group and 4 x 6 of its transfers;
    # none twice but for the sojourn times, which are called alike.
    assert len(found) == 10 + 4 + 4 + 43 + 34 + 4 * 6


def test_every_key_of_a_comparison_is_defined(scenario):
    found = set(comparison_keys(aqumen.compare(scenario, ["pi"], seeds=2, engine=["packet", "fluid"]).to_dict()))
    assert {key for key in found if f"`{key}`" not in PAGE} == set()


def test_every_key_of_the_page_exists(scenario):
    run, comparison = (
        aqumen.run(scenario, aqm="pi").data,
        aqumen.compare(scenario, ["pi"], seeds=2, engine=["packet", "fluid"]).to_dict(),
    )
    known = {*run_keys(run), *comparison_keys(comparison)}
    of_runs, _, _ = PAGE.partition(EVALUATION)
    rows = [line.split("|")[1].strip() for line in of_runs.splitlines() if line.startswith("| `")]
    defined = {row.strip("`") for row in rows if row.count("`") == 2 and "." not in row and "/" not in row}
    assert len(defined) > 30
    assert defined - known == set()


def test_every_key_of_a_cost_is_defined_and_exists():
    (costs,) = evaluation.costs(Records({}, [1], None), []).values()
    _, _, after = PAGE.partition(EVALUATION)
    table = after.partition("\n## ")[0].splitlines()
    assert {line.split("|")[1].strip(" `") for line in table if line.startswith("| `")} == set(costs)


def test_every_json_block_of_the_page_is_json():
    blocks = PAGE.split("```json")[1:]
    assert len(blocks) == 2
    for block in blocks:
        json.loads(block.split("```")[0])
