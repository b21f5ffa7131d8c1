"""Comparison of predictions and measurements, with likely causes of the differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

from aqumen import _core
from aqumen._run import RunData
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.explain.oscillation import Oscillation

__all__ = [
    "Expectation",
    "OperatingPoint",
    "Prediction",
    "WindowPrediction",
    "compare_prediction",
    "explain",
    "predict",
]


class Expectation(TypedDict):
    """Figures of one link in one window that are predicted and measured; `None` where there are none."""

    queue_mean_pkts: float | None
    """Mean queue length, packets."""
    queue_std_pkts: float | None
    """Standard deviation of the queue length, packets."""
    queue_p95_pkts: float | None
    """95th percentile of the queue length, packets."""
    qacd_pkts: float | None
    """Root mean square of queue length minus target, packets."""
    utilization: float | None
    """Departed bits over capacity bits, 0 to 1."""
    sojourn_mean_s: float | None
    """Mean sojourn time, seconds."""
    signal_ratio: float | None
    """Fraction of the packets that is marked or lost, 0 to 1."""


class OperatingPoint(TypedDict, total=False):
    """Operating point of a link in one window, and its stability where loops were analysed."""

    window_pkts: float
    """Mean window W0, packets."""
    probability: float
    """Marking or dropping probability p0, 0 to 1."""
    gain_margin: float
    """Gain margin, a factor."""
    phase_margin_deg: float
    """Phase margin, degrees."""
    oscillation_period_s: float
    """Period of the limit cycle of an unstable loop, seconds."""
    oscillation_std_pkts: float
    """Standard deviation of the queue length in that cycle, packets."""
    coexisting_period_s: float
    """Period of the cycle that a stable loop keeps after a large disturbance, seconds."""
    coexisting_std_pkts: float
    """Standard deviation of the queue length in that cycle, packets."""
    queue_std_pkts: float
    """Standard deviation of the queue length from the noise of packets, packets."""


class WindowPrediction(TypedDict):
    """Prediction for one link in one window, before any run."""

    flows: float
    """Number of flows."""
    capacity_pps: float
    """Capacity, packets/s."""
    unresponsive_pps: float
    """Traffic that ignores signals, packets/s."""
    admitted_pps: float
    """Part of that traffic that passes the queue, packets/s."""
    base_rtt_s: float
    """Round-trip time without queueing, seconds."""
    ecn: bool
    """Whether signals are marks."""
    utilization: float
    """Departed bits over capacity bits, 0 to 1."""
    queue_pkts: float
    """Queue length at the operating point, packets."""
    probability: float | None
    """Marking or dropping probability at the operating point, 0 to 1."""
    analysis: dict[str, Any] | None
    """Gains, margins, bifurcation and noise, as `aqumen design --json` has them; `None` without flows to hold back."""
    start: dict[str, float] | None
    """Start before the window: when it is over (`over_s`), when the window begins (`window_begins_s`), and the fraction
    of the window before it is over (`in_window`); `None` where it is unknown how long a start lasts."""
    coupled: NotRequired[dict[str, Any]]
    """Equilibrium of two coupled queues (DualPI2)."""
    several: NotRequired[dict[str, Any]]
    """Loops of links in series that share flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction and measurement of one link in one window."""

    link: str
    """Name of the link."""
    window: str
    """Name of the window."""
    predicted: Expectation
    """Prediction of the equations."""
    measured: Expectation
    """Measured values of the same metrics."""
    point: OperatingPoint
    """Operating point."""
    notes: list[str]
    """Likely causes of the differences, most important first."""
    oscillation: Oscillation | None = None
    """Whether the measured queue oscillates, given the predicted noise; `None` without loop analysis."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        told = {"predicted": self.predicted, "measured": self.measured, "point": self.point, "notes": self.notes}
        return told if self.oscillation is None else {**told, "swing": asdict(self.oscillation)}


def predict(
    scenario: Scenario, aqm: str | None = None, seed: int = 1, *, loops: bool = True
) -> dict[str, dict[str, WindowPrediction]]:
    """Predict operating point, margins and metrics of a scenario, by link and window.

    Args:
        scenario: Network, traffic and duration of the run.
        aqm: AQM, a SPEC; default: the scenario's.
        seed: Seed of delays and start times.
        loops: Also analyse margins and oscillations, which may take seconds; else only the equilibrium.
    """
    try:
        found = _core.predict(scenario.core, aqm, seed, loops)
        return cast(dict[str, dict[str, WindowPrediction]], found)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def explain(scenario: Scenario, result: RunData, aqm: str | None = None, *, loops: bool = True) -> list[Prediction]:
    """Compare predictions and measurements of each link in each window; empty for an AQM without a known law.

    Args:
        scenario: The scenario that was run.
        result: Result of the run.
        aqm: AQM as given by the user; default: the scenario's.
        loops: Also analyse margins and oscillations, which may take seconds; else only the equilibrium.
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
            counted = [of[window]["timeouts"] for of in result.data["flows"].values()]
            timeouts = [each for each in counted if each is not None]
            found.append(
                compare_prediction(
                    link=link,
                    window=window,
                    expected=expected,
                    measured=result.data["links"][link][window],
                    measured_oscillation=_oscillation(result, link, window, expected) if loops else None,
                    timeouts=sum(timeouts) if timeouts else None,
                    loops=loops,
                )
            )
    return found


def compare_prediction(
    link: str,
    window: str,
    expected: Mapping[str, Any],
    measured: Mapping[str, Any],
    measured_oscillation: Oscillation | None,
    timeouts: int | None,
    *,
    loops: bool = True,
) -> Prediction:
    """Compare one prediction with one measurement.

    Args:
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
        expected: Result of `predict` for the window.
        measured: Metrics of the link in that window.
        measured_oscillation: What the queue was seen to do.
        timeouts: Time-outs of all flows; `None` if the engine does not count them.
        loops: Whether the prediction includes margins.
    """
    swing = None if measured_oscillation is None else asdict(measured_oscillation)
    compared = _core.compare_prediction(expected, measured, swing, timeouts, loops)
    return Prediction(link=link, window=window, **compared, oscillation=measured_oscillation)


def _oscillation(result: RunData, link: str, window: str, expected: Mapping[str, Any]) -> Oscillation | None:
    from aqumen.explain.oscillation import oscillation  # with numpy, which a run without --theory does not need

    series, (begin, end) = result.series(link), result.windows[window]
    inside = (series.t_s > begin) & (series.t_s <= end)
    analysis = expected["analysis"]
    noise = None if analysis is None else analysis["noise"]["queue_std_pkts"]
    return oscillation(series.t_s[inside], series.queue_pkts[inside], series.probability[inside], noise)
