"""Are the packet engine and another simulator equivalent? Two one-sided tests per metric, with bounds set beforehand.

For each metric the means over the seeds of both sides are subtracted, and the 95 % interval of that difference (Welch:
unequal variances) has to lie inside the equivalence bound. A difference that is merely "not significant" does not pass:
with few seeds the interval is wide and the verdict is `unclear`; when the interval lies outside the bound altogether it
is `different`.
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
    """The largest difference that counts as none: `relative` to the other's mean or `absolute`, whichever is larger."""

    relative: float
    """Of the other's mean."""
    absolute: float
    """In the figure's own unit."""

    def at(self, mean: float) -> float:
        """The bound where the other's mean is `mean`."""
        return max(self.relative * abs(mean), self.absolute)


METRICS: dict[str, Bound] = {
    "utilization": Bound(0.0, 0.003),
    "queue_mean_pkts": Bound(0.02, 1.0),
    "queue_std_pkts": Bound(0.15, 2.0),
    "mark_ratio": Bound(0.05, 0.0005),
    "drop_ratio": Bound(0.06, 0.0005),
}
"""What is compared of links, where a peer has no bounds of its own. The drop ratio is that of all drops, early and
overflow, so that no mark can hide as a drop."""

FLOW_METRICS: dict[str, Bound] = {
    "fct_mean_s": Bound(0.05, 0.01),
    "page_load_mean_s": Bound(0.05, 0.01),
    "loss_ratio": Bound(0.06, 0.0005),
    "loss_burst_mean_pkts": Bound(0.05, 0.02),
}
"""What is compared of the flow groups of some cells. The flow completion time is that of all transfers."""

EACH_GROUP = ("goodput_share", "jain_fairness", "timeout_ratio", "loss_ratio")
"""Figures that, where they have a bound, are compared for each flow group for which both sides measure them: its share
of all goodput, fairness within it, timeouts for each packet that leaves the link, and datagrams that went missing."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One experiment under one AQM: a scenario file, what to set in it, and the AQM's SPEC as on the command line."""

    experiment: str
    """What it is called."""
    scenario: str
    """Its file."""
    settings: tuple[tuple[str, str], ...]
    """Keys and values set in it."""
    label: str
    """What the AQM is called."""
    aqm: str
    """The AQM's SPEC."""
    flows: tuple[tuple[str, str], ...] = ()
    """Figures of `FLOW_METRICS` that are compared too: group and metric."""
    paired: bool = False
    """Whether both sides meet the same requests with the same seed, so that their difference is taken seed by seed."""
    seeds: int = 1
    """How many seeds it takes for each of the others', because its figures scatter more."""

    @property
    def name(self) -> str:
        """How the command line calls it: EXPERIMENT/LABEL."""
        return f"{self.experiment}/{self.label}"


def select(cells: Iterable[Cell], wanted: Sequence[str], command: str = "") -> list[Cell]:
    """The cells that any of `wanted` names: by its name, or by its experiment alone; all where nothing is wanted.

    Args:
        cells: All there are.
        wanted: The names.
        command: The command that lists the cells.

    Raises:
        ScenarioError: A name fits no cell.
    """
    cells = list(cells)
    for name in wanted:
        if not any(name in (cell.name, cell.experiment) for cell in cells):
            raise ScenarioError(f"no cell `{name}`; choose from: {listed((cell.name for cell in cells), command)}")
    return [cell for cell in cells if not wanted or cell.name in wanted or cell.experiment in wanted]


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one cell: both sides over their seeds, the difference ours - theirs, the bound and the verdict."""

    experiment: str
    """The cell's experiment ..."""
    aqm: str
    """... and the label of its AQM."""
    window: str
    """The window."""
    metric: str
    """The figure; of a flow group `group.figure`."""
    ours_mean: float
    """Mean over our seeds."""
    ours_std: float
    """Standard deviation over them."""
    ours_n: int
    """How many there are."""
    theirs_mean: float
    """Mean over the other's seeds."""
    theirs_std: float
    """Standard deviation over them."""
    theirs_n: int
    """How many there are."""
    difference: float
    """Our mean less theirs."""
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    bound: float
    """Up to where it counts as none."""
    verdict: str
    """`equivalent`, `unclear` or `different`."""


def measures(
    result: Mapping[str, Any],
    window: str,
    link: str = "bottleneck",
    bounds: Mapping[str, Bound] = METRICS,
    flows: Iterable[tuple[str, str]] = (),
) -> dict[str, float]:
    """The compared metrics of one run, from the result of either engine; those of flow groups as `group.metric`."""
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
        # A group that is alone has all there is.
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
    """Compare the `measures` of both sides, one mapping per seed (at least two a side).

    `standard_errors` (4 for scenarios that the bounds were not set for) widens each bound to that many standard errors
    of the difference. `paired`: the k-th runs of both sides belong together.
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
    """Half width of the interval of the mean of the differences, and its standard error (Student)."""
    n = len(differences)
    if n < 2:
        raise ValueError("a comparison needs at least two seeds a side")
    error = math.sqrt(float(differences.var(ddof=1)) / n)
    return student_quantile(0.5 + confidence / 2.0, n - 1.0) * error, error


def _welch(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], confidence: float) -> tuple[float, float]:
    """Half width of the interval of the difference of two means, and its standard error (Welch-Satterthwaite)."""
    if len(a) < 2 or len(b) < 2:
        raise ValueError("a comparison needs at least two seeds a side")
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
    """Run both engines on every cell and give the rows of one cell after the other.

    The engines are handed in as functions of a cell and its seeds, 1 to `seeds` (or `Cell.seeds` times as many).

    A cell with a row that these leave unclear gets so many times as many as `more` says first, then the next, until
    none is unclear: all its rows then come from those. The runs of the other engine, the slow one, are kept. `planned`:
    the last of `more` is the most; each time as many as the unclear rows are expected to need by how they scatter.

    Utilisation is compared over the first window alone: over `steady`, the second, every saturated link has 1.
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
                # Half as many again at least, lest chance has many looks; thrice as many at most: few plan poorly.
                wanted = min(max(*map(needed, unclear), math.ceil(1.5 * have)), 3 * have, max(steps))
            else:
                wanted = next(step for step in steps if step > have)
            many = range(1, wanted + 1)
            other += theirs(cell, many[have:])
            rows = rows_of(cell, packet(cell, many), other)
        yield rows


def needed(row: Row) -> int:
    """How many seeds of theirs would make an unclear row clear, if means and deviations stay as they are.

    The interval then reaches from the difference no further than to the nearer end of the bound. Ours keep their ratio
    to theirs. A quarter more than that, since a deviation of few seeds may be too small.

    Args:
        row: One whose interval is neither inside the bound nor outside.
    """
    ratio = row.ours_n / row.theirs_n
    # Of the difference, if there were one seed of theirs.
    variance = row.ours_std**2 / ratio + row.theirs_std**2
    room = abs(row.bound - abs(row.difference))
    if room == 0.0:
        return _NEVER
    return min(math.ceil(1.25 * _TWO_SIDED**2 * variance / room**2), _NEVER)


_TWO_SIDED = 2.0
"""Student's quantile for 95 % where there are many seeds."""
_NEVER = 1_000_000


def report(rows: Sequence[Row], engine: str, bounds: Mapping[str, Bound] = METRICS) -> dict[str, Any]:
    """The comparison as JSON: bounds, rows, and how many rows have each verdict."""
    return {
        "schema": SCHEMA,
        "engine": engine,
        "bounds": {name: asdict(bound) for name, bound in bounds.items()},
        "rows": [asdict(row) for row in rows],
        "verdicts": _counts(rows),
    }


def _counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many rows have each verdict."""
    verdicts = [row.verdict for row in rows]
    return {name: verdicts.count(name) for name in ("equivalent", "unclear", "different")}


def table(rows: Sequence[Row], theirs: str) -> str:
    """The comparison as text, a line per metric, and a last line with the count of verdicts."""
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
