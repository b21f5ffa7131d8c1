"""What the equations predict beside what a run measured, and the likely cause where the two differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen.errors import ScenarioError
from aqumen.result import Result
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.swings import Swing

__all__ = ["Beside", "beside", "explain", "predict"]

QUANTITIES = (
    ("queue_mean_pkts", "queue, packets"),
    ("signal_ratio", "marked or lost, share"),
    ("utilization", "utilisation"),
    ("sojourn_mean_s", "sojourn, s"),
    ("queue_std_pkts", "deviation of the queue, packets"),
    ("qacd_pkts", "QACD, packets"),
    ("queue_p95_pkts", "95th percentile of the queue, packets"),
)
"""What is set side by side, with its title."""
SMALL_WINDOW_PKTS = 4.0
"""Windows below this hardly ever repair a loss without a time-out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Prediction and measurement of one link in one window."""

    link: str
    """The link."""
    window: str
    """The window."""
    predicted: dict[str, float | None]
    """What the equations say, by the names of `QUANTITIES`."""
    measured: dict[str, float | None]
    """What the run measured."""
    point: dict[str, float]
    """Operating point: `window_pkts` (W0), `probability` (p0); `gain_margin`, `oscillation_period_s`,
    `oscillation_std_pkts`, `queue_std_pkts` (the noise of packets) if any."""
    notes: list[str]
    """The likely cause of what differs, most important first."""
    swing: Swing | None = None
    """Whether the measured queue swings of itself, judged against the predicted noise; where loops were looked at."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        told = {"predicted": self.predicted, "measured": self.measured, "point": self.point, "notes": self.notes}
        return told if self.swing is None else {**told, "swing": asdict(self.swing)}


def predict(scenario: Scenario, aqm: str | None = None, seed: int = 1, *, loops: bool = True) -> dict[str, Any]:
    """What the equations say of a scenario: by link and window, operating point, margins and expectations.

    Args:
        scenario: The scenario.
        aqm: The AQM, a SPEC; without one the scenario's own.
        seed: The seed that places delays and starts.
        loops: Also margins and oscillations, which may take seconds; without, where the queue comes to rest.
    """
    try:
        return dict(json.loads(_core.predict_json(scenario.core, aqm, seed, loops)))
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def explain(scenario: Scenario, result: Result, aqm: str | None = None, *, loops: bool = True) -> list[Beside]:
    """Prediction beside measurement of each link in each window; empty for an AQM of which no law is known.

    Args:
        scenario: The scenario that was run.
        result: The run.
        aqm: The AQM as it was asked for; without one the scenario's own.
        loops: Also margins and oscillations, which may take seconds; without, where the queue comes to rest.
    """
    try:
        prediction = predict(scenario, aqm, result.seed, loops=loops)
    except ScenarioError:
        return []
    found = []
    for link, windows in prediction.items():
        if link not in result.data["links"]:
            continue
        for window, expected in windows.items():
            timeouts = [of[window]["timeouts"] for of in result.data["flows"].values()]
            found.append(
                beside(
                    link,
                    window,
                    expected,
                    result.data["links"][link][window],
                    _swing(result, link, window, expected) if loops else None,
                    sum(t for t in timeouts if t is not None) if any(t is not None for t in timeouts) else None,
                    loops=loops,
                )
            )
    return found


def beside(
    link: str,
    window: str,
    expected: Mapping[str, Any],
    measured: Mapping[str, Any],
    seen_swing: Swing | None,
    timeouts: int | None,
    *,
    loops: bool = True,
) -> Beside:
    """Set one prediction beside one measurement.

    Args:
        link: The link.
        window: The window.
        expected: A window of `predict`.
        measured: The metrics of the link in that window.
        seen_swing: What the queue was seen to do.
        timeouts: Time-outs of all flows, where the engine counts them.
        loops: Whether the prediction says of margins.
    """
    analysis = expected["analysis"]
    ratios = [measured[f"{kind}_ratio"] for kind in ("mark", "early_drop", "overflow_drop")]
    signalled = None if None in ratios else sum(ratios)
    wait = expected["queue_pkts"] / expected["capacity_pps"]
    # What packets add to the equations' rest, where that is known.
    noise: Mapping[str, Any] = analysis["noise"] if analysis is not None and analysis["noise"]["valid"] else {}
    predicted = {
        "queue_mean_pkts": expected["queue_pkts"],
        "signal_ratio": expected["probability"],
        "utilization": expected["utilization"] - noise.get("utilization_lost", 0.0),
        "sojourn_mean_s": wait,
        **{key: noise.get(key) for key in ("queue_std_pkts", "qacd_pkts", "queue_p95_pkts")},
    }
    seen = {**{key: measured.get(key) for key, _ in QUANTITIES if key != "signal_ratio"}, "signal_ratio": signalled}
    point: dict[str, float] = {}
    if analysis is not None:
        rest = analysis["operating_point"]
        point = {"window_pkts": rest["window_pkts"], "probability": rest["probability"]}
        exact = (analysis["margins"] or {}).get("exact", {})
        for name, value in (
            ("gain_margin", exact.get("gain_margin")),
            ("phase_margin_deg", exact.get("phase_margin_deg")),
            ("oscillation_period_s", analysis["expected"]["oscillation_period_s"]),
            ("oscillation_std_pkts", analysis["expected"]["oscillation_std_pkts"]),
            ("queue_std_pkts", analysis["noise"]["queue_std_pkts"] if analysis["noise"]["valid"] else None),
        ):
            if value is not None:
                point[name] = value
    notes = _notes(expected, measured, signalled, seen_swing, timeouts, loops)
    return Beside(
        link=link, window=window, predicted=predicted, measured=seen, point=point, notes=notes, swing=seen_swing
    )


def _notes(
    expected: Mapping[str, Any],
    measured: Mapping[str, Any],
    signalled: float | None,
    seen_swing: Swing | None,
    timeouts: int | None,
    loops: bool,
) -> list[str]:
    analysis = expected["analysis"]
    if analysis is None:
        held = (
            "no flow is held back by this link" if expected["flows"] == 0 else "the flows' own windows hold them back"
        )
        return [f"{held}: the queue is expected to be empty"]
    notes: list[str] = []
    rest, margins = analysis["operating_point"], analysis["margins"]
    queue, deviation = measured["queue_mean_pkts"], measured["queue_std_pkts"] or 0.0
    swings = seen_swing is not None and seen_swing.oscillates
    period_s = seen_swing.period_s if seen_swing is not None else None
    often = f"{period_s:.2g} s" if period_s is not None else "without a clear period"
    seen = f"seen {often}, ±{deviation:.0f}" if swings else "none seen"
    if not rest["feasible"]:
        notes.append(
            f"p0 = {rest['probability']:.2f} would have to be above 1: every packet is signalled, "
            "and the queue settles where that holds it"
        )
    if margins is not None and not margins["exact"]["stable"]:
        gain, period = margins["exact"]["gain_margin"], analysis["expected"]["oscillation_period_s"]
        if gain is not None and period is not None:
            height = analysis["expected"]["oscillation_std_pkts"]
            swing = "" if height is None else f", ±{height:.0f} packets"
            notes.append(f"gain margin {gain:.2f}: limit cycle expected, period {period:.2g} s{swing}, {seen}")
        else:
            notes.append(f"unstable: oscillation expected, {seen}")
    elif swings and margins is not None:
        gain = margins["exact"]["gain_margin"]
        least = "no limit to its gain" if gain is None else f"a gain margin of {gain:.2f}"
        notes.append(
            f"the loop has {least}, yet the queue swings by ±{deviation:.0f} packets"
            + (f" with period {period_s:.2g} s" if period_s is not None else "")
            + (f" ({seen_swing.why})" if seen_swing is not None else "")
            + ": changes of the network in this window, or packets where the equations have averages"
        )
    if rest["window_pkts"] < SMALL_WINDOW_PKTS:
        counted = "" if timeouts is None else f" ({timeouts} seen)"
        notes.append(
            f"windows of {rest['window_pkts']:.1f} packets, under {SMALL_WINDOW_PKTS:g}: time-outs rule{counted}"
        )
    predicted = expected["probability"]
    if signalled is not None and predicted > 0 and not 0.75 <= signalled / predicted <= 1.33:
        cause = (
            "signals that come together count once a round trip, and a time-out costs more than half a window"
            if signalled < predicted
            else "more traffic, or quicker recovery, than the equations have"
        )
        notes.append(f"a share of {signalled:.3g} is signalled where {predicted:.3g} was expected: {cause}")
    if queue is not None and abs(queue - expected["queue_pkts"]) > max(5.0, 0.15 * expected["queue_pkts"]):
        notes.append(_offset(analysis, measured, queue, expected["queue_pkts"], loops))
    return notes


def _offset(
    analysis: Mapping[str, Any], measured: Mapping[str, Any], queue: float, expected: float, loops: bool
) -> str:
    said = f"the queue averages {queue:.0f} packets where {expected:.0f} were expected"
    overflow, use = measured["overflow_drop_ratio"] or 0.0, measured["utilization"] or 0.0
    if overflow > 1e-3 and analysis["aqm"] != "droptail":
        return f"{said}: the buffer overflows ({overflow:.1%} lost), where the AQM's answer is cut off"
    if use < 0.98:
        return f"{said}: the queue runs empty (utilisation {use:.1%}), where it cannot swing as far down as up"
    if loops and analysis["margins"] is None:
        return f"{said}: this AQM has no operating point of its own"
    return f"{said}: start-up and changes are part of this window, or the operating point is not reached in it"


def _swing(result: Result, link: str, window: str, expected: Mapping[str, Any]) -> Swing | None:
    from aqumen.swings import swing  # with numpy, which a run without --theory does not need

    series, (begin, end) = result.series(link), result.windows[window]
    inside = (series.t_s > begin) & (series.t_s <= end)
    analysis = expected["analysis"]
    noise = None if analysis is None else analysis["noise"]["queue_std_pkts"]
    return swing(series.t_s[inside], series.queue_pkts[inside], series.probability[inside], noise)
