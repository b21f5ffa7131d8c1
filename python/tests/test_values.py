"""Objects that the package returns are immutable values."""

import dataclasses
import importlib
import pkgutil

import pytest

import aqumen

GROW = {"Ends", "Output", "Served", "_Output"}
"""Classes that are filled while a file is read."""
BY_POSITION = {
    "claims.evaluation": ["Section", "Varied"],
    "experiments": ["Experiment"],
    "live.crosscheck": ["Runs"],
    "mmpp": ["QueueAnalysis"],
    "ns2.bench": ["Ns2Cost"],
    "ns2.others": ["Generator", "Sctp", "Udp"],
    "ns2.plan": ["Flow", "Group", "Plan", "Transport"],
    "ns2.requests": ["Ask", "Requests", "Served"],
    "ns2.runner": ["Output"],
    "ns3.describe": ["Group", "Run"],
    "ns3.runner": ["_Output"],
    "own.rows": ["_Row"],
    "peers.crosscheck": ["Bound", "Cell", "Row"],
    "peers.plan": ["Aqm", "Link"],
    "peers.trace": ["QueueTrace"],
    "peers.wire": ["WireLoss"],
    "replay": ["Replay"],
    "report.picture": ["Ends"],
    "scenario": ["Scenario"],
    "vectors": ["Replay"],
}
"""Classes that our own code makes by position; all others are made by keyword."""


def classes():
    """Every dataclass of the package, by module and name."""
    names = [each.name for each in pkgutil.walk_packages(aqumen.__path__, "aqumen.") if "__main__" not in each.name]
    for module in map(importlib.import_module, names):
        for made in vars(module).values():
            if isinstance(made, type) and dataclasses.is_dataclass(made) and made.__module__ == module.__name__:
                yield made


CLASSES = list(classes())


@pytest.mark.parametrize("made", CLASSES, ids=lambda made: f"{made.__module__}.{made.__name__}")
def test_a_value_stays_as_it_was_made(made):
    assert made.__dataclass_params__.frozen == (made.__name__ not in GROW)
    # Without a dictionary of its own there is no room for a misspelt name.
    assert "__dict__" not in dir(made)
    keywords = all(each.kw_only for each in dataclasses.fields(made))
    assert keywords or made.__name__ in BY_POSITION[made.__module__.removeprefix("aqumen.")]


def test_there_are_as_many_as_it_takes():
    assert len(CLASSES) > 80
