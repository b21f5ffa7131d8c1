"""Objects that the package returns are immutable values."""

import dataclasses
import importlib
import pkgutil

import pytest

import aqumen

GROW = {"Endpoints", "Output", "ServedRequests", "_Output"}
"""Classes that are filled while a file is read."""
BY_POSITION = {
    "rfc7928.evaluation": ["Section", "ParameterChange"],
    "rfc7928.requirements": ["Requirement"],
    "_experiments": ["Experiment"],
    "engines.external.live.crosscheck": ["Runs"],
    "mmpp": ["QueueAnalysis"],
    "engines.external.ns2.bench": ["Ns2Cost"],
    "engines.external.ns2.others": ["Generator", "Sctp", "Udp"],
    "engines.external.ns2.plan": ["Flow", "Group", "Plan", "Transport"],
    "engines.external.ns2.requests": ["RequestStep", "Requests"],
    "engines.external.ns2.runner": ["Output"],
    "engines.external.ns2.transfers": ["ServedRequests"],
    "engines.external.ns3.describe": ["Group", "Run"],
    "engines.external.ns3.runner": ["_Output"],
    "custom.registry": ["_Row"],
    "engines.external.crosscheck": ["Bound", "Cell", "Row"],
    "engines.external.plan": ["Aqm", "Link"],
    "engines.external.trace": ["QueueTrace"],
    "engines.external.wire": ["WireLoss"],
    "replay": ["Replay"],
    "view.report.picture": ["Endpoints"],
    "scenario": ["Scenario"],
    "study.cases": ["Case"],
    "study.checked": ["Repetition"],
    "study.definition": ["Lines"],
    "study.executors": ["Row"],
    "study.factors": ["Factor"],
    "study.study": ["Status"],
    "session": ["FlowState", "Observation", "WaitingPacket"],
    "_vectors": ["Replay"],
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
