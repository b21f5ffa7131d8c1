"""Networks that a search for failures draws from: factors, and the scenario at a point of them.

A point is a number in [0, 1) for each factor. The first level of a list and the lower end of a range are the simplest
values of a factor: a search makes networks small by moving towards them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aqumen.custom import CustomClass, digest
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario
from aqumen.study.cases import expand
from aqumen.study.definition import Definition
from aqumen.study.factors import Factor, Value, text_of

__all__ = ["Space", "dumbbells", "of_study"]

DURATION_S = 30
"""Duration of the runs, seconds; events happen in the middle."""

DUMBBELL: dict[str, object] = {
    "event": ["none", "capacity / 4", "capacity x 4", "delay x 4", "flows x 4", "half of the flows stop"],
    "traffic": ["none", *(f"{kind} {share} %" for kind in ("udp", "bursts", "transfers") for share in (20, 50, 80))],
    "far RTT factor": [1, 2, 4, 8],
    "ecn": [False, True],
    "tcp": ["linux", "linux-reno"],
    "buffer BDP": [1, 0.5, 0.25, 2, 4],
    "flows": {"from": 1, "to": 100, "log": True},
    "rate": {"from": "1Mbit", "to": "100Mbit", "log": True},
    "rtt": {"from": "10ms", "to": "500ms", "log": True},
}
"""Factors of the networks without a study: one bottleneck, and what happens at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Set of networks by factors."""

    factors: tuple[Factor, ...]
    """Factors in the order in which they are made simple."""
    scenario: Callable[[Mapping[str, Value]], Scenario]
    """Scenario at the given values of the factors."""
    engine: str
    """Name of the engine."""
    custom: str
    """Digest of custom classes; empty without one."""

    def values(self, point: Mapping[str, float]) -> dict[str, Value]:
        """Return the values of a point; numbers have two significant digits where their range allows.

        Args:
            point: A number in [0, 1) by factor.
        """
        return {each.name: rounded(each, point[each.name]) for each in self.factors}


def is_list(factor: Factor) -> bool:
    """Return whether a factor is a list of levels, not a range.

    Args:
        factor: The factor of a study.
    """
    count = len(factor.levels)
    return count > 0 and all(factor.quantile((k + 0.5) / count) == level for k, level in enumerate(factor.levels))


def rounded(factor: Factor, u: float) -> Value:
    """Return the value of a factor, of a range with two significant digits if these lie within it.

    Args:
        factor: The factor of a study.
        u: Number in [0, 1).
    """
    value = factor.quantile(u)
    if is_list(factor):
        return value
    (number, unit), (low, _), (high, _) = (_parts(each) for each in (value, factor.quantile(0.0), factor.quantile(1.0)))
    short = float(f"{number:.1e}")
    if not low <= short <= high:
        return value
    if unit:
        return f"{short:.10f}".rstrip("0").rstrip(".") + unit
    return int(short) if isinstance(value, int) else short


def _parts(value: Value) -> tuple[float, str]:
    found = re.fullmatch(r"([-+\d.e]*\d)\s*([A-Za-z%/]*)", str(value))
    if found is None:
        raise ScenarioError(f"{value}: must be a number with a unit")
    return float(found[1]), found[2]


def of_study(study: Definition) -> Space:
    """Return the networks of a study: its scenarios, and its factors but those of AQMs.

    Args:
        study: The study; ranges are taken whole, its design does not matter.

    Raises:
        ScenarioError: A scenario is not valid, or nothing varies.
    """
    factors = tuple(each for each in study.factors if ":" not in each.name)
    bare = replace(study, factors=(), design=replace(study.design, kind="grid"), warm_up=None)
    bases, cases = expand(bare)
    whole = {str(case.labels["scenario"]): bases.scenario(case) for case in cases}
    names = list(whole)
    if not names:
        raise ScenarioError("the study's AQMs refuse all of its scenarios")
    if len(names) > 1:
        factors = (Factor.read("scenario", names), *factors)
    if not factors:
        raise ScenarioError(
            "the study has no factor of its networks, so there is nothing to search; add one, or scenarios"
        )

    def scenario(values: Mapping[str, Value]) -> Scenario:
        base = whole[str(values.get("scenario", names[0]))]
        changes = [(key, text_of(value)) for key, value in values.items() if key != "scenario"]
        return base.set_all(changes) if changes else base

    return Space(factors=factors, scenario=scenario, engine=study.engine, custom=bases.custom)


def dumbbells(custom: Sequence[CustomClass] = ()) -> Space:
    """Return the networks without a study: one bottleneck with long flows, and what happens at it.

    Args:
        custom: Custom AQMs that the scenarios may use.
    """
    factors = tuple(Factor.read(name, given) for name, given in DUMBBELL.items())

    def scenario(values: Mapping[str, Value]) -> Scenario:
        return Scenario.parse(_toml(values), custom=custom)

    return Space(factors=factors, scenario=scenario, engine="packet", custom=digest(custom) if custom else "")


def _toml(values: Mapping[str, Value]) -> str:
    """Return the scenario of a dumbbell."""
    rate, rtt = _parts(values["rate"])[0] * 1e6, _parts(values["rtt"])[0] / 1e3
    flows, far, event = int(values["flows"]), int(values["far RTT factor"]), str(values["event"])
    buffer = max(10, round(float(values["buffer BDP"]) * rate * rtt / 12_000))
    transport = f'transport = {{ preset = "{values["tcp"]}", ecn = {text_of(values["ecn"])} }}'
    middle = DURATION_S // 2

    def group(name: str, count: int, factor: int, start: str = '["0s", "1s"]') -> str:
        ms = f"{rtt * factor * 1e3:g}ms"
        return f'[[flows]]\nname = "{name}"\ncount = {count}\nrtt = "{ms}"\nstart = {start}\n{transport}\n'

    parts = [
        f'name = "broken"\nduration = "{DURATION_S}s"\naqm = "droptail"\n[topology]\npreset = "dumbbell"\n'
        f'[topology.bottleneck]\nrate = "{rate / 1e3:.10g}kbit"\ndelay = "1ms"\nbuffer = "{buffer}pkt"\n'
        '[topology.access]\nrate = "1Gbit"\n',
        group("long", flows, 1),
    ]
    if far > 1:
        parts.append(group("far", flows, far))
    name, _, percent = str(values["traffic"]).partition(" ")
    share = float(percent.removesuffix(" %") or 0) / 100 * rate
    offered = f"{share / 1e3:.10g}kbit"
    kinds = {
        "udp": f'count = 1\ntransport = "udp"\ntraffic = {{ kind = "poisson", rate = "{share / 8000:.6g}pkt/s" }}',
        "bursts": 'count = 1\ntransport = "udp"\n'
        f'traffic = {{ kind = "on-off", rate = "{offered}", on = "1s", off = "1s" }}',
        "transfers": f'count = 200\n{transport}\ntraffic = {{ kind = "transfers", load = "{offered}", '
        'size = { law = "pareto", mean = "50kB", shape = 1.3, max = "10MB" } }',
    }  # fmt: skip
    if name != "none":
        parts.append(f'[[flows]]\nname = "{name}"\nrtt = "{rtt * 1e3:g}ms"\n{kinds[name]}\n')
    if event == "flows x 4":
        parts.append(group("late", 3 * flows, 1, f'["{middle}s", "{middle + 1}s"]'))
    changes = {
        "capacity / 4": f'capacity = "{rate / 4e3:.10g}kbit"',
        "capacity x 4": f'capacity = "{rate / 250:.10g}kbit"',
        # An event changes one direction only.
        "delay x 4": f'delay = "{1 + 3 * rtt * 1e3:g}ms"',
        "half of the flows stop": f'stop = "long"\ncount = {math.ceil(flows / 2)}',
    }
    if event in changes:
        parts.append(f'[[events]]\nat = "{middle}s"\n{changes[event]}\n')
    return "\n".join(parts)
