"""What the equations predict beside what a run measured, and the likely cause where the two differ."""

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
    coupled: NotRequired[dict[str, Any]]
    """Equilibrium of two coupled queues (DualPI2)."""
    several: NotRequired[dict[str, Any]]
    """Loops of links in series that share flows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction and measurement of one link in one window."""

    link: str
    """The link."""
    window: str
    """The window."""
    predicted: Expectation
    """Prediction of the equations."""
    measured: Expectation
    """Measurement of the run."""
    point: OperatingPoint
    """Operating point."""
    notes: list[str]
    """The likely cause of what differs, most important first."""
    oscillation: Oscillation | None = None
    """Whether the measured queue swings of itself, judged against the predicted noise; where loops were looked at."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        told = {"predicted": self.predicted, "measured": self.measured, "point": self.point, "notes": self.notes}
        return told if self.oscillation is None else {**told, "swing": asdict(self.oscillation)}


def predict(
    scenario: Scenario, aqm: str | None = None, seed: int = 1, *, loops: bool = True
) -> dict[str, dict[str, WindowPrediction]]:
    """What the equations say of a scenario: by link and window, operating point, margins and expectations.

    Args:
        scenario: The network, its flows, and what happens during a run.
        aqm: The AQM, a SPEC; without one the scenario's own.
        seed: The seed that places delays and starts.
        loops: Also margins and oscillations, which may take seconds; without, where the queue comes to rest.
    """
    try:
        found = _core.predict(scenario.core, aqm, seed, loops)
        return cast(dict[str, dict[str, WindowPrediction]], found)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def explain(scenario: Scenario, result: RunData, aqm: str | None = None, *, loops: bool = True) -> list[Prediction]:
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
    """Set one prediction beside one measurement.

    Args:
        link: Name of a link that is recorded, such as `bottleneck`.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
        expected: A window of `predict`.
        measured: The metrics of the link in that window.
        measured_oscillation: What the queue was seen to do.
        timeouts: Time-outs of all flows, where the engine counts them.
        loops: Whether the prediction says of margins.
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
