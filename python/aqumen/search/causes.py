"""Cause of a failure in one paragraph, from the figures by which runs are explained."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from aqumen.comparison import run
from aqumen.errors import ScenarioError
from aqumen.explain.oscillation import Oscillation, oscillation
from aqumen.explain.prediction import Prediction, explain
from aqumen.result import Result
from aqumen.scenario import Scenario
from aqumen.search.criteria import CAUSES, Criterion, bulk_groups, unequal

__all__ = ["paragraph"]

NOTES_MAX = 2
"""Most notes of the comparison with theory in a paragraph."""


def paragraph(scenario: Scenario, aqm: str, reference: str, criterion: Criterion, engine: str, seed: int) -> str:
    """Return the cause of a failure as one paragraph.

    Args:
        scenario: Network in which the AQM is worse.
        aqm: The AQM, a SPEC.
        reference: AQM that it was compared with, a SPEC.
        criterion: Figure in which it is worse; that of a metric is explained by the cause that exceeds its least
            excess most.
        engine: Name of the engine.
        seed: Seed of the runs that are looked at.
    """
    results = [run(scenario, spec, seed, engine, force=True) for spec in (aqm, reference)]
    columns = [_column(each) for each in results]
    excesses = {
        each.name: each.excess(*(each.value(column, scenario) for column in columns)) / each.least for each in CAUSES
    }
    name = criterion.name
    if name not in excesses:
        name = max(excesses, key=lambda key: -math.inf if excesses[key] != excesses[key] else excesses[key])
        if not excesses[name] >= 1:
            return (
                f"Neither oscillation nor an empty queue, unfairness or overflow explains it: {aqm} is not worse than "
                f"{reference} in any of them."
            )
    try:
        predictions = [each for each in explain(scenario, results[0], aqm) if each.window == "steady"][:1]
    except ScenarioError:
        predictions = []
    told = _PARAGRAPHS[name](scenario, (aqm, reference), results, predictions)
    notes = [note for each in predictions for note in each.notes][:NOTES_MAX]
    return " ".join([told, *(f"Against theory: {note.rstrip('.')}." for note in notes)])


def _column(result: Result) -> Callable[[str], float]:
    """Return the values of a run by column, as the rows of studies have them."""
    links, flows = result.data["links"], result.data["flows"]
    first = next(iter(links))

    def column(name: str) -> float:
        key, _, window = name.partition("@")
        link, colon, of_link = key.rpartition(":")
        group, point, of_group = key.rpartition(".")
        windows: dict[str, dict[str, float | None]] = (
            links.get(link, {}) if colon else flows.get(group, {}) if point else links[first]
        )
        metrics = windows.get(window or ("steady" if "steady" in windows else "all"), {})
        value = metrics.get(of_link if colon else of_group)
        return math.nan if value is None else float(value)

    return column


Told = Callable[[Scenario, tuple[str, str], Sequence[Result], Sequence[Prediction]], str]


def _oscillation(
    _scenario: Scenario, specs: tuple[str, str], results: Sequence[Result], predictions: Sequence[Prediction]
) -> str:
    own, other = map(_column, results)
    swing = predictions[0].oscillation if predictions else _swing(results[0])
    parts = [
        f"Oscillation: the queue under {specs[0]} deviates by {own('queue_std_pkts'):.3g} packets from its mean of "
        f"{own('queue_mean_pkts'):.3g}, under {specs[1]} by {other('queue_std_pkts'):.3g} from "
        f"{other('queue_mean_pkts'):.3g}; the link carries {100 * own('utilization'):.3g} % of its capacity, under "
        f"{specs[1]} {100 * other('utilization'):.3g} %."
    ]
    if swing is not None:
        period = "no clear period" if swing.period_s is None else f"a period of {swing.period_s:.3g} s"
        parts.append(f"It has {period} and an autocorrelation of {swing.autocorrelation:.2g} (1: periodic).")
        if predictions or swing.bound_share < 1:
            # Without a probability between 0 and 1, as under CoDel, it says nothing of the loop.
            kind = "It is self-sustained" if swing.oscillates else "It is no self-sustained oscillation"
            parts.append(f"{kind}: {swing.why.rstrip('.')}.")
    if predictions and "gain_margin" in predictions[0].point:
        margin = predictions[0].point["gain_margin"]
        parts.append(f"The linear model gives a gain margin of {margin:.3g}; below 1 the loop is unstable.")
    return " ".join(parts)


def _swing(result: Result) -> Oscillation | None:
    link = next(iter(result.data["links"]))
    series, (begin, end) = result.series(link), result.windows.get("steady", result.windows["all"])
    inside = (series.t_s > begin) & (series.t_s <= end)
    return oscillation(series.t_s[inside], series.queue_pkts[inside], series.probability[inside])


def _empty(
    scenario: Scenario, specs: tuple[str, str], results: Sequence[Result], predictions: Sequence[Prediction]
) -> str:
    own, other = map(_column, results)
    parts = [
        f"Empty queue: no packet waits in {100 * own('queue_empty_ratio'):.3g} % of the time under {specs[0]}, in "
        f"{100 * other('queue_empty_ratio'):.3g} % under {specs[1]}, so the link carries "
        f"{100 * own('utilization'):.3g} % of its capacity in place of {100 * other('utilization'):.3g} %.",
        f"{specs[0]} signals {100 * _signals(own):.3g} % of the packets before the buffer is full, {specs[1]} "
        f"{100 * _signals(other):.3g} %; the buffer loses {100 * own('overflow_drop_ratio'):.3g} % and "
        f"{100 * other('overflow_drop_ratio'):.3g} %.",
    ]
    if predictions:
        expected = predictions[0].predicted["utilization"]
        if expected is not None:
            parts.append(f"The operating point of theory has a utilisation of {100 * expected:.3g} %.")
    timeouts = [sum(_known(column(f"{name}.timeouts") for name in bulk_groups(scenario))) for column in (own, other)]
    if any(timeouts):
        parts.append(f"Long flows time out {timeouts[0]:g} times, under {specs[1]} {timeouts[1]:g} times.")
    return " ".join(parts)


def _unfair(
    scenario: Scenario, specs: tuple[str, str], results: Sequence[Result], _predictions: Sequence[Prediction]
) -> str:
    columns = [_column(each) for each in results]
    groups = bulk_groups(scenario)
    indices = [unequal(column, scenario) for column in columns]
    parts = [
        f"Unfairness: Jain's index of the long flows' goodputs is {indices[0]:.3g} under {specs[0]} and "
        f"{indices[1]:.3g} under {specs[1]}."
    ]
    for spec, column in zip(specs, columns, strict=True):
        shares = (
            f"{name} {column(f'{name}.goodput_bps') / count / 1e6:.3g} Mbit/s a flow (round-trip time "
            f"{1e3 * column(f'{name}.rtt_mean_s'):.3g} ms, Jain's index within the group "
            f"{column(f'{name}.jain_fairness'):.3g}, {column(f'{name}.timeouts'):g} time-outs)"
            for name, count in groups.items()
        )
        parts.append(f"{spec}: {'; '.join(shares)}.")
    parts.append(f"{specs[0]} signals {100 * _signals(columns[0]):.3g} % of the packets, {specs[1]} "
                 f"{100 * _signals(columns[1]):.3g} %.")  # fmt: skip
    return " ".join(parts)


def _overflow(
    _scenario: Scenario, specs: tuple[str, str], results: Sequence[Result], _predictions: Sequence[Prediction]
) -> str:
    own, other = map(_column, results)
    return (
        f"Overflow: the full buffer loses {100 * own('overflow_drop_ratio'):.3g} % of the packets under {specs[0]}, "
        f"{100 * other('overflow_drop_ratio'):.3g} % under {specs[1]}. The queue has {own('queue_mean_pkts'):.3g} "
        f"packets in the mean and {own('queue_p95_pkts'):.3g} in the 95th percentile ({specs[1]}: "
        f"{other('queue_mean_pkts'):.3g} and {other('queue_p95_pkts'):.3g}); {specs[0]} signals "
        f"{100 * _signals(own):.3g} % of the packets before the buffer is full, {specs[1]} "
        f"{100 * _signals(other):.3g} %."
    )


def _signals(column: Callable[[str], float]) -> float:
    return sum(_known((column("mark_ratio"), column("early_drop_ratio"))))


def _known(values: object) -> list[float]:
    return [each for each in values if each == each]  # type: ignore[attr-defined]


_PARAGRAPHS: dict[str, Told] = {
    "oscillation": _oscillation,
    "empty queue": _empty,
    "unfairness": _unfair,
    "overflow": _overflow,
}
"""Text by cause."""
