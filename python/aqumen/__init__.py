"""Aqumen: a workbench for active queue management (AQM).

import aqumen

scenario = aqumen.Scenario.load("experiments/arm-pfc/exp1.toml")
result = aqumen.run(scenario, aqm="pi")
comparison = aqumen.compare(scenario, aqms=["arm-pfc", "pi"], seeds=20)
comparison.write_report("report.html")
"""

from importlib import import_module
from typing import TYPE_CHECKING

from aqumen import _extension

_extension.load()

from aqumen._core import __version__  # noqa: E402

if TYPE_CHECKING:
    from aqumen import aqms
    from aqumen._run import Series, SojournCdf
    from aqumen.comparison import Comparison, compare, run
    from aqumen.custom import Network, PacketAqm, Param, SampledLaw, TrafficSource, from_control
    from aqumen.errors import Cancelled, CustomError, EngineError, Error, MissingExtra, OutputError, ScenarioError
    from aqumen.explain.transient import Transient
    from aqumen.identification import Plant, identify, identify_points, robust_pi
    from aqumen.ranking import Rank, Ranking
    from aqumen.result import Result
    from aqumen.scenario import Scenario
    from aqumen.session import Session, what_if
    from aqumen.study import Rows, Study, open
    from aqumen.topology import Dumbbell, Event, Flows, Transport
    from aqumen.verification import Verification, verify

__all__ = [
    "Cancelled",
    "Comparison",
    "CustomError",
    "Dumbbell",
    "EngineError",
    "Error",
    "Event",
    "Flows",
    "MissingExtra",
    "Network",
    "OutputError",
    "PacketAqm",
    "Param",
    "Plant",
    "Rank",
    "Ranking",
    "Result",
    "Rows",
    "SampledLaw",
    "Scenario",
    "ScenarioError",
    "Series",
    "Session",
    "SojournCdf",
    "Study",
    "TrafficSource",
    "Transient",
    "Transport",
    "Verification",
    "__version__",
    "aqms",
    "compare",
    "from_control",
    "identify",
    "identify_points",
    "open",
    "robust_pi",
    "run",
    "verify",
    "what_if",
]

# Loaded when first named, so that the command line does not wait for what it does not use.
_HOMES = {
    "_run": ("Series", "SojournCdf"),
    "comparison": ("Comparison", "compare", "run"),
    "errors": ("Cancelled", "EngineError", "Error", "MissingExtra", "OutputError", "CustomError", "ScenarioError"),
    "custom": ("Network", "PacketAqm", "Param", "SampledLaw", "TrafficSource", "from_control"),
    "identification": ("Plant", "identify", "identify_points", "robust_pi"),
    "ranking": ("Rank", "Ranking"),
    "result": ("Result",),
    "scenario": ("Scenario",),
    "session": ("Session", "what_if"),
    "study": ("Rows", "Study", "open"),
    "topology": ("Dumbbell", "Event", "Flows", "Transport"),
    "explain.transient": ("Transient",),
    "verification": ("Verification", "verify"),
}


def __getattr__(name: str) -> object:
    if name == "aqms":
        return import_module("aqumen.aqms")
    for home, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"aqumen.{home}"), name)
            return found
    raise AttributeError(f"module 'aqumen' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
