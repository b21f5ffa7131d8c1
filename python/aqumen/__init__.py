"""Aqumen: a workbench for active queue management (AQM).

import aqumen

scenario = aqumen.Scenario.load("experiments/arm-pfc/exp1.toml")
result = aqumen.run(scenario, aqm="pi")
comparison = aqumen.compare(scenario, aqms=["arm-pfc", "pi"], seeds=20)
comparison.write_report("report.html")
"""

from aqumen import aqms
from aqumen._core import __version__
from aqumen.comparison import Comparison, compare, run
from aqumen.errors import Cancelled, EngineError, Error, MissingExtra, OutputError, ScenarioError
from aqumen.ranking import Place, Ranking
from aqumen.result import Result, Series, SojournCdf
from aqumen.scenario import Scenario
from aqumen.topology import Dumbbell, Event, Flows, Transport
from aqumen.transient import Transient

__all__ = [
    "Cancelled",
    "Comparison",
    "Dumbbell",
    "EngineError",
    "Error",
    "Event",
    "Flows",
    "MissingExtra",
    "OutputError",
    "Place",
    "Ranking",
    "Result",
    "Scenario",
    "ScenarioError",
    "Series",
    "SojournCdf",
    "Transient",
    "Transport",
    "__version__",
    "aqms",
    "compare",
    "run",
]
