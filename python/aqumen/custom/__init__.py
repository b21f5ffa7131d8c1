"""Custom AQMs (sampled laws or per-packet algorithms) and custom traffic sources, as Python classes.

import aqumen

class MyPi(aqumen.SampledLaw):
    period = 0.01
    p = 0.0

    def step(self, seen):
        self.p = min(max(self.p + 1e-5 * (seen.queue_pkts - 100), 0.0), 1.0)
        return self.p

aqumen.compare("arm-pfc/exp1", ["pi", MyPi], seeds=20)
"""

from aqumen.custom.classes import (
    CustomAqm,
    CustomClass,
    Network,
    PacketAqm,
    Param,
    SampledLaw,
    TrafficSource,
    as_custom,
    is_aqm,
    name_of,
    params_of,
)
from aqumen.custom.controllers import from_control
from aqumen.custom.files import digest, from_file, from_source, source_of
from aqumen.custom.registry import catalogue, specs

__all__ = [
    "CustomAqm",
    "CustomClass",
    "Network",
    "PacketAqm",
    "Param",
    "SampledLaw",
    "TrafficSource",
    "as_custom",
    "catalogue",
    "digest",
    "from_control",
    "from_file",
    "from_source",
    "is_aqm",
    "name_of",
    "params_of",
    "source_of",
    "specs",
]
