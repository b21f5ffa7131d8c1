"""Factors of a study: levels, ranges and distributions, and the designs that combine them to points."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen.errors import ScenarioError, listed, meant, optional

__all__ = ["DESIGNS", "POINTS_MAX", "Design", "Factor", "Value", "points", "text_of"]

Value = str | int | float | bool
"""A level of a factor, as a scenario file has it."""

POINTS_MAX = 1_000_000
"""Largest number of points; more is taken for a typing error."""

RANGE_KEYS = ("from", "to", "points", "step", "log")
NORMAL_KEYS = ("law", "mean", "std")


def text_of(value: Value) -> str:
    """Return a level as `--set KEY=VALUE` and SPECs take it.

    Args:
        value: Level of a factor.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Factor:
    """A scenario key, or a parameter of an AQM (`pi:target`), with what it takes."""

    name: str
    """Key with dots, or AQM and parameter with a colon."""
    levels: tuple[Value, ...]
    """Levels of a grid; empty for a range or distribution without `points` or `step`."""
    quantile: Callable[[float], Value]
    """Value at a probability in [0, 1], for designs that sample."""

    @classmethod
    def read(cls, name: str, given: object) -> Factor:
        """Read a factor of a study.

        Args:
            name: Key with dots, or AQM and parameter with a colon.
            given: List of levels; `{from, to, points|step, log}`; or `{law = "normal", mean, std}`.

        Raises:
            ScenarioError: The factor has no such form; the message begins with the faulty value.
        """
        if isinstance(given, Mapping):
            return _normal(name, given) if "law" in given else _range(name, given)
        levels: list[Any] = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
        if not levels:
            raise ScenarioError("has no value; name at least one")
        for level in levels:
            if not isinstance(level, (str, int, float)):
                raise ScenarioError(f'{level!r}: must be a number or a text, such as 10 or "10Mbit"')
        if len(set(levels)) != len(levels):
            raise ScenarioError("has a value twice")
        last = len(levels) - 1
        return cls(name, tuple(levels), lambda u: levels[min(int(u * len(levels)), last)])


def _range(name: str, given: Mapping[str, Any]) -> Factor:
    _only(given, RANGE_KEYS)
    if "from" not in given or "to" not in given:
        raise ScenarioError("a range needs `from` and `to`, such as { from = 10, to = 100, points = 4 }")
    (low, unit), (high, other) = _number("from", given["from"]), _number("to", given["to"])
    step = None if "step" not in given else _number("step", given["step"])
    if unit != other or (step is not None and step[1] != unit):
        raise ScenarioError("`from`, `to` and `step` must be in one unit")
    log, count = given.get("log", False), given.get("points")
    if not isinstance(log, bool):
        raise ScenarioError(f"log = {log!r}: must be true or false")
    if not low < high:
        raise ScenarioError(f"from = {given['from']}: must be below `to`, {given['to']}")
    if log and low <= 0:
        raise ScenarioError(f"from = {given['from']}: must be above 0 where log = true")
    whole = all(isinstance(given[key], int) for key in ("from", "to"))

    def quantile(u: float) -> Value:
        x = low * (high / low) ** u if log else low + (high - low) * u
        return _written(round(x) if whole else x, unit)

    levels: tuple[Value, ...] = ()
    if count is not None and step is not None:
        raise ScenarioError("a range has either `points` or `step`, not both")
    if count is not None:
        if not isinstance(count, int) or not 2 <= count <= POINTS_MAX:
            raise ScenarioError(f"points = {count}: must be 2 to {POINTS_MAX}")
        levels = tuple(dict.fromkeys(quantile(i / (count - 1)) for i in range(count)))
    if step is not None:
        if log or step[0] <= 0 or (high - low) / step[0] > POINTS_MAX:
            raise ScenarioError(
                f"step = {given['step']}: must be above 0, without log, and give at most {POINTS_MAX} values"
            )
        steps = int((high - low) / step[0] + 1e-9)
        levels = tuple(_written(round(x) if whole else x, unit) for x in (low + step[0] * i for i in range(steps + 1)))
    return Factor(name, levels, quantile)


def _normal(name: str, given: Mapping[str, Any]) -> Factor:
    _only(given, NORMAL_KEYS)
    if given["law"] != "normal":
        raise ScenarioError(
            f'law = "{given["law"]}": must be "normal"; a range {"{ from, to }"} is uniform, or log-uniform with log'
        )
    if "mean" not in given or "std" not in given:
        raise ScenarioError("a normal law needs `mean` and `std`")
    (mean, unit), (std, other) = _number("mean", given["mean"]), _number("std", given["std"])
    if unit != other or std <= 0:
        raise ScenarioError(f"std = {given['std']}: must be above 0 and in the unit of `mean`")
    from statistics import NormalDist

    law = NormalDist(mean, std)
    # Beyond three deviations lies one value in 370: there a law without bounds asks for what no network has.
    return Factor(name, (), lambda u: _written(law.inv_cdf(min(max(u, 0.00135), 0.99865)), unit))


def _only(given: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in given:
        if key not in keys:
            raise ScenarioError(f"unknown key `{key}`{meant(key, keys) or ';'} choose from: {listed(keys)}")


def _number(key: str, value: object) -> tuple[float, str]:
    """Return number and unit of a value such as `10Mbit`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return float(value), ""
    found = re.fullmatch(r"\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*([A-Za-z%/]*)\s*", str(value))
    try:
        if found is not None and isinstance(value, str):
            return float(found[1]), found[2]
    except ValueError:
        pass
    raise ScenarioError(f"{key} = {value!r}: must be a number, with a unit where the key has one")


def _written(number: float, unit: str) -> Value:
    """Return a value with at most six digits."""
    if isinstance(number, int):
        return f"{number}{unit}" if unit else number
    short = float(f"{number:.5e}")
    text = f"{short:.10f}".rstrip("0").rstrip(".") if 1e-4 <= abs(short) < 1e15 else f"{short}"
    return f"{text}{unit}" if unit else short


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How factors are combined to points."""

    kind: str = "grid"
    """A name of `DESIGNS`."""
    points: int = 0
    """Number of points of a design that samples."""
    seed: int = 1
    """Seed of its random numbers."""


def points(factors: Sequence[Factor], design: Design) -> list[dict[str, Value]]:
    """Return the points of a design, each a value by factor.

    Args:
        factors: The factors, in order; the last runs fastest in a grid.
        design: How they are combined.

    Raises:
        ScenarioError: A factor has no levels for a grid, or there are too many points.
    """
    if design.kind != "grid":
        rows = DESIGNS[design.kind](len(factors), design)
        return [{f.name: f.quantile(float(u)) for f, u in zip(factors, row, strict=True)} for row in rows]
    for factor in factors:
        if not factor.levels:
            raise ScenarioError(f"{factor.name}: a grid needs levels: give the range `points` or `step`, or a list")
    if math.prod(len(factor.levels) for factor in factors) > POINTS_MAX:
        raise ScenarioError(f"more than {POINTS_MAX} points")
    every = itertools.product(*(factor.levels for factor in factors))
    return [dict(zip((factor.name for factor in factors), values, strict=True)) for values in every]


def _random(dimensions: int, design: Design) -> Any:
    import numpy as np

    return np.random.Generator(np.random.PCG64(design.seed)).random((design.points, dimensions))


def _latin(dimensions: int, design: Design) -> Any:
    qmc = optional("scipy.stats.qmc", "studies")
    return qmc.LatinHypercube(dimensions, rng=design.seed).random(design.points)


def _sobol(dimensions: int, design: Design) -> Any:
    qmc = optional("scipy.stats.qmc", "studies")
    if design.points & (design.points - 1):
        raise ScenarioError(f"points = {design.points}: must be a power of 2 for a Sobol design")
    return qmc.Sobol(dimensions, rng=design.seed).random(design.points)


DESIGNS: dict[str, Callable[[int, Design], Any]] = {
    "grid": lambda _dimensions, _design: [],
    "random": _random,
    "latin-hypercube": _latin,
    "sobol": _sobol,
}
"""Designs by name; all but the grid return numbers in [0, 1), a row for each point."""
