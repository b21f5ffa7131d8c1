"""Settling time and overshoot after start-up and after each event.

Settling uses the queue averaged over 1 s, since TCP varies it within every round trip; overshoot uses the queue as
sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

from aqumen import _core
from aqumen._run import RunData, Series

__all__ = ["BAND", "HOLD_S", "SMOOTH_S", "START_UP", "Transient", "transients"]

BAND = 0.3
"""Half-width of the settling band, relative to the target."""
HOLD_S = 5.0
"""Time for which the queue must stay in the band, seconds."""
SMOOTH_S = 1.0
"""Averaging time of the queue before it is compared with the band, seconds."""
START_UP = "start-up"
"""Name of the first transient; the others have the names of their windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transient:
    """Transient of a link's queue after an event."""

    settling_s: float | None
    """Time from the event until the queue stays in the band, seconds; `None` if it does not before the next event."""
    overshoot_pkts: float
    """Largest queue above the target until then, packets; 0 if it stayed below."""


def transients(result: RunData, link: str, target_pkts: float) -> dict[str, Transient]:
    """Return settling time and overshoot of one run, by event.

    Args:
        result: Result of a run.
        link: Name of a recorded link, such as `bottleneck`.
        target_pkts: Target queue, packets.
    """
    moments = events(result.windows)
    end = max(stop for _, stop in result.windows.values())
    ends = [start for _, start in moments[1:]] + [end]
    series = result.series(link)
    return {
        name: transient(series, target_pkts, start, stop) for (name, start), stop in zip(moments, ends, strict=True)
    }


def events(windows: dict[str, tuple[float, float]]) -> list[tuple[str, float]]:
    """Return start-up and the events with their times (s), in order.

    Args:
        windows: All windows; each except `all` and `steady` begins at an event or is named in the scenario.
    """
    start = windows["all"][0] if "all" in windows else 0.0
    later = {name: s for name, (s, _) in windows.items() if name not in ("all", "steady") and s > start}
    # If several windows begin at one event, the first one names it.
    first = {s: name for name, s in reversed(later.items())}
    return [(START_UP, start), *((first[s], s) for s in sorted(first))]


def transient(series: Series, target_pkts: float, start_s: float, stop_s: float) -> Transient:
    """Return settling time and overshoot between two times.

    Args:
        series: Time series of the link.
        target_pkts: Target queue, packets.
        start_s: Time of the event, seconds.
        stop_s: Time of the next event or end of the run, seconds.
    """
    seen = _core.transient(series.t_s, series.queue_pkts, target_pkts, start_s, stop_s)
    settling_s, overshoot_pkts = seen or (None, 0.0)
    return Transient(settling_s=settling_s, overshoot_pkts=overshoot_pkts)
