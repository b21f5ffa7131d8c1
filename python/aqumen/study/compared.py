"""AQMs of a study against one another, at each point: tests, effect sizes, groups.

Two AQMs meet the same traffic in each seed. Where that correlates their results, the difference within a seed is
tested (paired t test); else the means are (B. L. Welch, "The generalization of Student's problem", Biometrika 34,
1947). Seeds correlate where the correlation differs from 0 at 5 % and is positive. Over all comparisons of a study at
once, P-values are corrected by Holm ("A simple sequentially rejective multiple test procedure", Scandinavian Journal
of Statistics 6, 1979).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen.study.factors import Value
from aqumen.study.rows import Rows

__all__ = ["Comparison", "Point", "compare_aqms", "compared", "holm"]

LEVEL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One AQM against another at one point."""

    first: str
    """AQM with its parameters."""
    second: str
    """The other one."""
    difference: float
    """Mean of the first minus that of the second."""
    test: str
    """`paired` or `welch`."""
    correlation: float | None
    """Correlation of the two over equal seeds; `None` if undefined."""
    p: float
    """P-value of one comparison."""
    p_holm: float
    """P-value corrected for all comparisons."""
    effect: float | None
    """Hedges's g: the difference over the pooled standard deviation; `None` without a deviation."""

    @property
    def differs(self) -> bool:
        """Whether the two differ significantly, at 5 % over all comparisons."""
        return self.p_holm < LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All AQMs at one point of a study."""

    labels: Mapping[str, Value]
    """Scenario and factors of the point."""
    aqms: tuple[str, ...]
    """AQMs with their parameters, by mean."""
    means: tuple[float, ...]
    """Their means."""
    groups: tuple[str, ...]
    """Letters: AQMs that share one do not differ significantly."""
    comparisons: tuple[Comparison, ...]
    """All pairs."""


def compare_aqms(rows: Rows, metric: str) -> list[Point]:
    """Compare the AQMs of a study at each point.

    Args:
        rows: Rows of the study.
        metric: A column of numbers, such as `queue_mean_pkts`; runs in which it is undefined are left out.
    """
    values = rows.metric(metric)
    columns = {name: rows.columns()[name].tolist() for name in (*rows.labels, "seed")}
    own = [name for name in rows.labels if ":" in name]
    shared = [name for name in rows.labels if name not in ("aqm", *own)]
    table: dict[tuple[Value, ...], dict[str, dict[int, float]]] = {}
    for k, value in enumerate(values):
        given = ((name.partition(":")[2], columns[name][k]) for name in own)
        params = ",".join(f"{name}={_plain(x)}" for name, x in given if x is not None and x == x)
        aqm = str(columns["aqm"][k])
        spec = f"{aqm}{',' if ':' in aqm else ':'}{params}" if params else aqm
        point = tuple(columns[name][k] for name in shared)
        if value == value:
            table.setdefault(point, {}).setdefault(spec, {})[int(columns["seed"][k])] = float(value)
    tests = {
        (point, a, b): compared(aqms[a], aqms[b])
        for point, aqms in table.items()
        for i, a in enumerate(aqms)
        for b in list(aqms)[i + 1 :]
        if min(len(aqms[a]), len(aqms[b])) > 1
    }
    corrected = dict(zip(tests, holm([p for _, _, p, _ in tests.values()]), strict=True))
    return [
        _point(
            dict(zip(shared, point, strict=True)),
            aqms,
            {(a, b): (*tests[at, a, b], corrected[at, a, b]) for at, a, b in tests if at == point},
        )
        for point, aqms in table.items()
    ]


Test = tuple[str, float | None, float, float | None]
"""Test, correlation, P-value and effect size."""


def _point(
    labels: Mapping[str, Value], aqms: Mapping[str, dict[int, float]], tests: Mapping[tuple[str, str], tuple[Any, ...]]
) -> Point:
    means = {aqm: math.fsum(each.values()) / len(each) for aqm, each in aqms.items()}
    order = sorted(aqms, key=lambda aqm: means[aqm])
    found = []
    for (a, b), (test, correlation, p, effect, p_holm) in tests.items():
        difference = means[a] - means[b]
        found.append(
            Comparison(
                first=a,
                second=b,
                difference=difference,
                test=test,
                correlation=correlation,
                p=p,
                p_holm=p_holm,
                effect=effect,
            )
        )
    pairs = {(order.index(each.first), order.index(each.second)) for each in found if each.differs}
    return Point(
        labels=labels,
        aqms=tuple(order),
        means=tuple(means[aqm] for aqm in order),
        groups=tuple(_core.letter_groups(len(order), pairs)),
        comparisons=tuple(found),
    )


def compared(first: Mapping[int, float], second: Mapping[int, float]) -> Test:
    """Test whether two means differ. Returns test, correlation, P-value and effect size.

    Args:
        first: Values of one AQM by seed, two or more.
        second: Values of the other.
    """
    seeds = sorted(first.keys() & second.keys())
    r = _correlation([first[seed] for seed in seeds], [second[seed] for seed in seeds])
    if r is not None and r > 0 and _p_of_correlation(r, len(seeds)) < LEVEL:
        differences = [first[seed] - second[seed] for seed in seeds]
        mean, variance = _moments(differences)
        p = _p(mean, variance / len(seeds), len(seeds) - 1)
        return "paired", r, p, _effect(first, second)
    (m1, v1), (m2, v2) = _moments(list(first.values())), _moments(list(second.values()))
    a, b = v1 / len(first), v2 / len(second)
    freedom = (a + b) ** 2 / (a**2 / (len(first) - 1) + b**2 / (len(second) - 1)) if a + b > 0 else 1.0
    return "welch", r, _p(m1 - m2, a + b, freedom), _effect(first, second)


def holm(ps: Sequence[float]) -> list[float]:
    """Return P-values corrected for their number, in the given order.

    Args:
        ps: P-value of each comparison.
    """
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, k in enumerate(sorted(range(len(ps)), key=lambda k: ps[k])):
        highest = max(highest, min(ps[k] * (len(ps) - rank), 1.0))
        corrected[k] = highest
    return corrected


def _p(difference: float, variance: float, freedom: float) -> float:
    if variance <= 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return _core.student_tail(difference / math.sqrt(variance), freedom)


def _p_of_correlation(r: float, n: int) -> float:
    if n < 3:
        return 1.0
    return 0.0 if r >= 1.0 else _core.student_tail(r * math.sqrt((n - 2) / (1 - r * r)), n - 2)


def _moments(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and variance."""
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    if len(xs) < 2:
        return None
    (x, vx), (y, vy) = _moments(xs), _moments(ys)
    if vx <= 0.0 or vy <= 0.0:
        return None
    covariance = math.fsum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / (len(xs) - 1)
    return max(-1.0, min(1.0, covariance / math.sqrt(vx) / math.sqrt(vy)))


def _effect(first: Mapping[int, float], second: Mapping[int, float]) -> float | None:
    (m1, v1), (m2, v2) = _moments(list(first.values())), _moments(list(second.values()))
    freedom = len(first) + len(second) - 2
    pooled = ((len(first) - 1) * v1 + (len(second) - 1) * v2) / freedom
    # L. V. Hedges, "Distribution theory for Glass's estimator of effect size", 1981: correction for few values.
    return None if pooled <= 0.0 else (m1 - m2) / math.sqrt(pooled) * (1 - 3 / (4 * freedom - 1))


def _plain(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
