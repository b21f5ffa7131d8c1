"""Registry entries of custom classes, from which the compiled core creates instances."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from random import Random
from typing import Any

from aqumen import _core
from aqumen.custom.classes import (
    UNITS,
    CustomAqmClass,
    CustomClass,
    Network,
    PacketAqm,
    SampledLaw,
    TrafficSource,
    as_custom,
    is_aqm,
    name_of,
    params_of,
)
from aqumen.errors import ScenarioError


@dataclass(frozen=True, slots=True)
class _Row:
    """Registry entry of a custom class, read by the compiled core."""

    name: str
    title: str
    summary: str
    params: list[tuple[str, str, float | None, float | None, float | None, str]]
    kind: str
    make: Callable[[Any, dict[str, Any]], Any]


def _row(custom: CustomClass) -> _Row:
    params = params_of(custom)
    for param in params:
        if param.unit not in UNITS:
            known = ", ".join(f'"{unit}"' for unit in UNITS)
            raise ScenarioError(f'{custom.__name__}.{param.name}: unknown unit "{param.unit}"; choose from: {known}')
    told = [(p.name, p.unit, _number(p.default), _number(p.low), _number(p.high), p.doc) for p in params]
    base, kind, asked = next(each for each in _KINDS if issubclass(custom, each[0]))
    if all(getattr(custom, name) is getattr(base, name) for name in asked):
        raise ScenarioError(f"{custom.__name__} {_IDLE[kind]}; define {' or '.join(f'{name}()' for name in asked)}")
    summary = (inspect.getdoc(custom) or "").partition("\n")[0]
    make: Any = _source if kind == "traffic" else _make
    return _Row(name_of(custom), custom.__name__, summary, told, kind, functools.partial(make, custom))


_KINDS: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (SampledLaw, "law", ("step",)),
    (PacketAqm, "packets", ("on_arrival", "on_dequeue", "on_timer")),
    (TrafficSource, "traffic", ("next",)),
)
"""Base class, its kind in the core, and methods of which at least one must be defined."""
_IDLE = {"law": "decides nothing", "packets": "decides nothing", "traffic": "sends nothing"}


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _started(custom: CustomClass, given: dict[str, Any], values: dict[str, Any]) -> tuple[Any, list[tuple[str, float]]]:
    """Create and start an instance. Returns it with the values of its parameters."""
    made = custom()
    params = params_of(custom)
    for name, value in {**{param.name: param.default for param in params}, **values, **given}.items():
        setattr(made, name, value)
    made.start()
    force = []
    for param in params:
        value = getattr(made, param.name)
        if value is None:
            raise TypeError(f"parameter {param.name} has no default, and start() gave it no value")
        force.append((param.name, float(value)))
    return made, force


def _source(custom: type[TrafficSource], seed: int, values: dict[str, Any]) -> Callable[[], tuple[float, int] | None]:
    """Return the `next` method of a new traffic source."""
    made, _ = _started(custom, {"random": Random(seed)}, values)
    asked: Callable[[], tuple[float, int] | None] = made.next
    return asked


def _make(custom: CustomAqmClass, network: dict[str, float], values: dict[str, Any]) -> tuple[Any, ...]:
    """Return a new AQM as the tuple that the core expects."""
    made, force = _started(custom, {"network": Network(**network)}, values)
    if isinstance(made, SampledLaw):
        periods = list(made.period) if isinstance(made.period, (tuple, list)) else [made.period]
        if not 1 <= len(periods) <= 2:
            raise ValueError(f"period = {made.period}: must be one period, or two")
        if not 0.0 <= made.initial <= 1.0:
            raise ValueError(f"initial = {made.initial}: must be 0 to 1")
        periods_s = [_seconds(each) for each in periods]
        return made, made.step, periods_s, float(made.initial), force, bool(made.ecn), _transfer(made.transfer)
    asked = [
        getattr(made, name) if getattr(custom, name) is not getattr(PacketAqm, name) else None
        for name in ("on_arrival", "on_dequeue", "on_timer")
    ]
    return made, *asked, _seconds(made.period), force


def _transfer(transfer: Any) -> tuple[list[float], list[float]] | None:
    if transfer is None:
        return None
    numerator, denominator = ([float(x) for x in each] for each in transfer)
    if not all(map(math.isfinite, (*numerator, *denominator))) or not denominator or denominator[0] == 0.0:
        raise ValueError(f"transfer = {transfer}: finite coefficients in powers of 1/z, the denominator's first not 0")
    return numerator, denominator


def _seconds(period: Any) -> float:
    if isinstance(period, Real):
        return float(period)
    raise TypeError(f"period = {period!r}: must be a number of seconds, such as 0.01")


@functools.lru_cache
def catalogue(custom: tuple[CustomClass, ...]) -> _core.Catalogue:
    """Return the registry with custom classes added to the built-in entries.

    Args:
        custom: Custom classes.
    """
    names = [name_of(each) for each in custom]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(f"two custom classes are named `{name}`; set `name` in one of them")
    try:
        return _core.Catalogue([_row(each) for each in custom])
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def specs(aqms: Iterable[object]) -> tuple[list[str], list[CustomClass]]:
    """Convert SPECs, objects of `aqumen.aqms` and custom classes to SPECs. Returns them with the custom classes.

    Args:
        aqms: SPECs, objects of `aqumen.aqms`, classes.
    """
    found = [(as_custom(aqm), aqm) for aqm in aqms]
    for custom, _ in found:
        if custom and not is_aqm(custom):
            raise ScenarioError(
                f"{custom.__name__}: is a traffic source, not an AQM; pass it to Scenario.load and name it there"
            )
    return [name_of(custom) if custom else str(aqm) for custom, aqm in found], [custom for custom, _ in found if custom]
