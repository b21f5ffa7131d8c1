"""Equivalence test of the packet engine and another simulator: two one-sided tests (TOST) for each metric.

The verdict is `equivalent` if the 95 % interval of the difference of means over the seeds (Welch: unequal variances)
lies within a bound that was set beforehand. It is `different` if the interval lies outside the bound, and `unclear`
otherwise. A difference that is merely not significant does not pass: with few seeds the interval is wide.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aqumen._core import student_quantile
from aqumen.errors import ScenarioError, listed

__all__ = [
    "EACH_GROUP",
    "FLOW_METRICS",
    "METRICS",
    "Bound",
    "Cell",
    "Row",
    "compare",
    "measures",
    "needed",
    "report",
    "select",
    "table",
    "validate",
]

SCHEMA = 2
"""Version of the JSON layout of `report`."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Equivalence bound: `relative` to the reference's mean or `absolute`, whichever is larger."""

    relative: float
    """Fraction of the reference's mean."""
    absolute: float
    """Difference in the metric's unit."""

    def at(self, mean: float) -> float:
        """Return the bound for a mean of the reference."""
        return max(self.relative * abs(mean), self.absolute)


METRICS: dict[str, Bound] = {
    "utilization": Bound(0.0, 0.003),
    "queue_mean_pkts": Bound(0.02, 1.0),
    "queue_std_pkts": Bound(0.15, 2.0),
    "mark_ratio": Bound(0.05, 0.0005),
    "drop_ratio": Bound(0.06, 0.0005),
}
"""Default metrics of links. The drop ratio includes early drops and overflows, apart from marks."""

FLOW_METRICS: dict[str, Bound] = {
    "fct_mean_s": Bound(0.05, 0.01),
    "page_load_mean_s": Bound(0.05, 0.01),
    "loss_ratio": Bound(0.06, 0.0005),
    "loss_burst_mean_pkts": Bound(0.05, 0.02),
}
"""Metrics of the flow groups of some cells. The flow completion time covers all transfers."""

EACH_GROUP = ("goodput_share", "jain_fairness", "timeout_ratio", "loss_ratio")
"""Metrics of each flow group, compared if they have a bound and both sides measure them: fraction of the total goodput,
fairness within the group, time-outs per packet that leaves the link, and loss ratio of datagrams."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An experiment with an AQM: a scenario file, settings, and the AQM's SPEC."""

    experiment: str
    """Name of the experiment."""
    scenario: str
    """Scenario file."""
    settings: tuple[tuple[str, str], ...]
    """Keys and values to set in the scenario."""
    label: str
    """Label of the AQM."""
    aqm: str
    """SPEC of the AQM."""
    flows: tuple[tuple[str, str], ...] = ()
    """Metrics of `FLOW_METRICS` to compare: group and metric."""
    paired: bool = False
    """Whether both sides serve equal requests for equal seeds, so that differences are paired by seed."""
    seeds: int = 1
    """Factor on the number of seeds, for metrics of high variance."""

    @property
    def name(self) -> str:
        """Name on the command line: EXPERIMENT/LABEL."""
        return f"{self.experiment}/{self.label}"


def select(cells: Iterable[Cell], wanted: Sequence[str], command: str = "") -> list[Cell]:
    """Select cells by name or by experiment; all if no name is given.

    Args:
        cells: Cells to select from.
        wanted: Names of cells or experiments.
        command: The command that lists the cells.

    Raises:
        ScenarioError: A name matches no cell.
    """
    cells = list(cells)
    for name in wanted:
        if not any(name in (cell.name, cell.experiment) for cell in cells):
            raise ScenarioError(f"no cell `{name}`; choose from: {listed((cell.name for cell in cells), command)}")
    return [cell for cell in cells if not wanted or cell.name in wanted or cell.experiment in wanted]


@dataclass(frozen=True, slots=True)
class Row:
    """Comparison of one metric of one cell: both sides, difference (packet engine - reference), bound, verdict."""

    experiment: str
    """Experiment of the cell."""
    aqm: str
    """Label of the AQM."""
    window: str
    """The window."""
    metric: str
    """Key of the metric; `group.metric` for a flow group."""
    ours_mean: float
    """Mean over the seeds of the packet engine."""
    ours_std: float
    """Standard deviation over these."""
    ours_n: int
    """Number of these."""
    theirs_mean: float
    """Mean over the seeds of the reference."""
    theirs_std: float
    """Standard deviation over these."""
    theirs_n: int
    """Number of these."""
    difference: float
    """Mean of the packet engine minus mean of the reference."""
    low: float
    """Lower end of the difference's interval."""
    high: float
    """Upper end of the difference's interval."""
    bound: float
    """Equivalence bound."""
    verdict: str
    """`equivalent`, `unclear` or `different`."""


def measures(
    result: Mapping[str, Any],
    window: str,
    link: str = "bottleneck",
    bounds: Mapping[str, Bound] = METRICS,
    flows: Iterable[tuple[str, str]] = (),
) -> dict[str, float]:
    """Return the compared metrics of one run of either engine; `group.metric` for flow groups."""
    metrics = result["links"][link][window]
    drops = float(metrics["early_drop_ratio"]) + float(metrics["overflow_drop_ratio"])
    wanted = [name for name in bounds if name not in EACH_GROUP]
    of_link = {name: drops if name == "drop_ratio" else float(metrics[name]) for name in wanted}
    each = [name for name in EACH_GROUP if name in bounds]
    groups = {group: windows[window] for group, windows in result["flows"].items()} if each else {}
    goodput = sum(float(group["goodput_bps"]) for group in groups.values())
    of_each = {
        f"{name}.{what}": {
            "goodput_share": lambda one: float(one["goodput_bps"]) / max(goodput, 1.0),
            "jain_fairness": lambda one: float(one["jain_fairness"] or 0.0),
            "timeout_ratio": lambda one: float(one["timeouts"]) / max(float(metrics["departures_pkts"]), 1.0),
            "loss_ratio": lambda one: float(one["loss_ratio"]),
        }[what](group)
        for name, group in groups.items()
        for what in each
        # A single group always has all goodput.
        if (what != "goodput_share" or len(groups) > 1) and group.get(_MEASURED_AS.get(what, "goodput_bps")) is not None
    }
    of_some = {f"{group}.{name}": _of_group(result["flows"][group][window], name) for group, name in flows}
    return of_link | of_each | of_some


_MEASURED_AS = {"timeout_ratio": "timeouts", "loss_ratio": "loss_ratio"}


def _of_group(metrics: Mapping[str, Any], name: str) -> float:
    if name != "fct_mean_s":
        return float(metrics[name])
    sizes = [key.removesuffix("_count") for key in metrics if key.startswith("fct_") and key.endswith("_count")]
    known = [(metrics[f"{size}_count"], metrics[f"{size}_mean_s"]) for size in sizes if metrics[f"{size}_count"]]
    return float(sum(count * mean for count, mean in known) / sum(count for count, _ in known))


def compare(
    experiment: str,
    aqm: str,
    window: str,
    ours: Sequence[Mapping[str, float]],
    theirs: Sequence[Mapping[str, float]],
    *,
    bounds: Mapping[str, Bound] = METRICS,
    standard_errors: float = 0.0,
    confidence: float = 0.95,
    paired: bool = False,
) -> list[Row]:
    """Compare the `measures` of both sides, one mapping for each seed (at least two on each side).

    `standard_errors` widens each bound to at least that many standard errors of the difference (4 for scenarios that
    the bounds were not set for). `paired`: the k-th runs of both sides form a pair.
    """
    rows = []
    for metric, bound in bounds.items():
        a = np.array([run[metric] for run in ours])
        b = np.array([run[metric] for run in theirs])
        difference = float(a.mean() - b.mean())
        half, error = _paired(a - b, confidence) if paired else _welch(a, b, confidence)
        limit = max(bound.at(float(b.mean())), standard_errors * error)
        low, high = difference - half, difference + half
        if -limit <= low and high <= limit:
            verdict = "equivalent"
        elif low > limit or high < -limit:
            verdict = "different"
        else:
            verdict = "unclear"
        rows.append(
            Row(
                experiment, aqm, window, metric,
                float(a.mean()), float(a.std(ddof=1)), len(a),
                float(b.mean()), float(b.std(ddof=1)), len(b),
                difference, low, high, limit, verdict,
            )
        )  # fmt: skip
    return rows


def _paired(differences: npt.NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Return half-width of the interval of the mean difference, and its standard error (Student)."""
    n = len(differences)
    if n < 2:
        raise ValueError("a comparison needs at least two seeds on each side")
    error = math.sqrt(float(differences.var(ddof=1)) / n)
    return student_quantile(0.5 + confidence / 2.0, n - 1.0) * error, error


def _welch(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], confidence: float) -> tuple[float, float]:
    """Return half-width of the interval of a difference of means, and its standard error (Welch-Satterthwaite)."""
    if len(a) < 2 or len(b) < 2:
        raise ValueError("a comparison needs at least two seeds on each side")
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(va + vb)
    if not error:
        return error, error
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return student_quantile(0.5 + confidence / 2.0, freedom) * error, error


def validate(
    cells: Iterable[Cell],
    seeds: int,
    packet: Callable[[Cell, Sequence[int]], Sequence[Mapping[str, Any]]],
    theirs: Callable[[Cell, Sequence[int]], Sequence[Mapping[str, Any]]],
    *,
    windows: Sequence[str] = ("all", "steady"),
    link: str = "bottleneck",
    bounds: Mapping[str, Bound] = METRICS,
    standard_errors: float = 0.0,
    more: Sequence[int] = (),
    planned: bool = False,
) -> Iterator[list[Row]]:
    """Run both engines on every cell and yield the rows of each cell.

    `packet` and `theirs` run an engine on a cell with given seeds: 1 to `seeds`, times `Cell.seeds`.

    A cell with an unclear row is repeated with the factors `more` on its seeds, one after the other, until no row is
    unclear; all its rows come from the last repetition. Runs of the slow reference are reused. With `planned`, the last
    factor is the maximum, and the number of seeds is estimated from the variance of the unclear rows.

    Utilisation is compared in the first window only: in `steady`, the second, every saturated link has 1.
    """

    def rows_of(cell: Cell, own: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> list[Row]:
        known = FLOW_METRICS | dict(bounds)
        first, second = (measures(side[0], windows[0], link, bounds, cell.flows) for side in (own, other))
        all_bounds = {name: known[name.rpartition(".")[2]] for name in first if name in second}
        return [
            row
            for window in windows
            for row in compare(
                cell.experiment,
                cell.label,
                window,
                [measures(result, window, link, bounds, cell.flows) for result in own],
                [measures(result, window, link, bounds, cell.flows) for result in other],
                bounds=all_bounds,
                standard_errors=standard_errors,
                paired=cell.paired,
            )
            if window == windows[0] or row.metric != "utilization"
        ]

    for cell in cells:
        few = range(1, seeds * cell.seeds + 1)
        own, other = packet(cell, few), list(theirs(cell, few))
        rows = rows_of(cell, own, other)
        steps = [times * len(few) for times in more]
        while steps and len(other) < max(steps) and (unclear := [row for row in rows if row.verdict == "unclear"]):
            have = len(other)
            if planned:
                # At least 1.5 times as many, to limit the number of looks; at most 3 times, as estimates are rough.
                wanted = min(max(*map(needed, unclear), math.ceil(1.5 * have)), 3 * have, max(steps))
            else:
                wanted = next(step for step in steps if step > have)
            many = range(1, wanted + 1)
            other += theirs(cell, many[have:])
            rows = rows_of(cell, packet(cell, many), other)
        yield rows


def needed(row: Row) -> int:
    """Estimate the number of reference seeds that decide an unclear row, if means and deviations do not change.

    The interval must then end at the nearer end of the bound. The ratio of both sides' seeds is kept. A quarter is
    added, since a standard deviation of few seeds may be too small.

    Args:
        row: A row with the verdict `unclear`.
    """
    ratio = row.ours_n / row.theirs_n
    # Variance of the difference for one reference seed.
    variance = row.ours_std**2 / ratio + row.theirs_std**2
    room = abs(row.bound - abs(row.difference))
    if room == 0.0:
        return _NEVER
    return min(math.ceil(1.25 * _TWO_SIDED**2 * variance / room**2), _NEVER)


_TWO_SIDED = 2.0
"""Student's 95 % quantile for many seeds."""
_NEVER = 1_000_000


def report(rows: Sequence[Row], engine: str, bounds: Mapping[str, Bound] = METRICS) -> dict[str, Any]:
    """Return the comparison as a JSON object: bounds, rows and counts of verdicts."""
    return {
        "schema": SCHEMA,
        "engine": engine,
        "bounds": {name: asdict(bound) for name, bound in bounds.items()},
        "rows": [asdict(row) for row in rows],
        "verdicts": _counts(rows),
    }


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows by verdict."""
    verdicts = [row.verdict for row in rows]
    return {name: verdicts.count(name) for name in ("equivalent", "unclear", "different")}


def table(rows: Sequence[Row], theirs: str) -> str:
    """Format the comparison as text: a line for each metric, then the counts of verdicts."""
    header = ("experiment", "aqm", "window", "metric", "ours", theirs, "difference, 95 %", "bound", "verdict")
    lines = [header]
    for row in rows:
        digits = 2 if row.metric.endswith("_pkts") else 5
        lines.append(
            (
                row.experiment,
                row.aqm,
                row.window,
                row.metric,
                f"{row.ours_mean:.{digits}f} ±{row.ours_std:.{digits}f}",
                f"{row.theirs_mean:.{digits}f} ±{row.theirs_std:.{digits}f}",
                f"{row.difference:+.{digits}f} [{row.low:+.{digits}f}, {row.high:+.{digits}f}]",
                f"±{row.bound:.{digits}f}",
                row.verdict,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    text.append(", ".join(f"{count} {name}" for name, count in _counts(rows).items()))
    return "\n".join(text) + "\n"
