"""Settling time and overshoot after start-up and after each event.

The queue is averaged over the last second before it is judged, since single round trips of TCP swing it more than any
AQM can hold; overshoot is taken from the queue as sampled.
"""

from __future__ import annotations

from dataclasses import dataclass

from aqumen import _core
from aqumen._run import RunData, Series

__all__ = ["BAND", "HOLD_S", "SMOOTH_S", "START_UP", "Transient", "transients"]

BAND = 0.3
"""Half width of the band around the target, as a share of the target."""
HOLD_S = 5.0
"""How long the queue has to stay in the band, seconds."""
SMOOTH_S = 1.0
"""Seconds over which the queue is averaged before it is compared with the band."""
START_UP = "start-up"
"""Name of the first transient; the others bear the names of their windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transient:
    """What a link's queue did after an event."""

    settling_s: float | None
    """Seconds from the event until the queue stays within the band; `None` if it never does before the next event."""
    overshoot_pkts: float
    """Largest queue above the target until then, packets; 0 if it stayed below."""


def transients(result: RunData, link: str, target_pkts: float) -> dict[str, Transient]:
    """Settling time and overshoot of one run, by event.

    Args:
        result: The run.
        link: Name of a link that is recorded, such as `bottleneck`.
        target_pkts: The target queue length, packets.
    """
    moments = events(result.windows)
    end = max(stop for _, stop in result.windows.values())
    ends = [start for _, start in moments[1:]] + [end]
    series = result.series(link)
    return {
        name: transient(series, target_pkts, start, stop) for (name, start), stop in zip(moments, ends, strict=True)
    }


def events(windows: dict[str, tuple[float, float]]) -> list[tuple[str, float]]:
    """Start-up and the events in order of time, with the second at which each begins.

    Args:
        windows: The windows; each but `all` and `steady` was opened by an event or named in the scenario.
    """
    start = windows["all"][0] if "all" in windows else 0.0
    later = {name: s for name, (s, _) in windows.items() if name not in ("all", "steady") and s > start}
    # Two windows may begin at one event; the first named stands for both.
    first = {s: name for name, s in reversed(later.items())}
    return [(START_UP, start), *((first[s], s) for s in sorted(first))]


def transient(series: Series, target_pkts: float, start_s: float, stop_s: float) -> Transient:
    """Settling time and overshoot between two moments.

    Args:
        series: The link's queue over time.
        target_pkts: The target queue length, packets.
        start_s: The event, seconds.
        stop_s: The next event, or the end of the run, seconds.
    """
    seen = _core.transient(series.t_s, series.queue_pkts, target_pkts, start_s, stop_s)
    settling_s, overshoot_pkts = seen or (None, 0.0)
    return Transient(settling_s=settling_s, overshoot_pkts=overshoot_pkts)
