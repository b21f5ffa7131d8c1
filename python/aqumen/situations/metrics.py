"""Metrics of user experience in everyday networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aqumen.experience import ExperienceMetric
from aqumen.result import Result
from aqumen.view.columns import SIZES

__all__ = ["FIGURES", "WINDOW", "WORDS", "backbone", "household", "office", "rate_of", "transfer"]

WINDOW = "steady"


def _group(key: str, name: str, factor: float = 1.0) -> Callable[[Result], float | None]:
    def of(run: Result) -> float | None:
        value = run.data["flows"][name][WINDOW].get(key)
        return None if value is None else value * factor

    return of


def _worse_call(run: Result) -> float | None:
    heard = [run.flow_group(group, WINDOW).get("mos") for group in ("call-up", "call-down")]
    return min((each for each in heard if each is not None), default=None)


def _round_trip(name: str) -> Callable[[Result], float | None]:
    """Return a function for the 95th percentiles of both directions together, ms."""

    def of(run: Result) -> float | None:
        ways = [run.flow_group(f"{name}-{way}", WINDOW).get("delay_p95_s") for way in ("up", "down")]
        known = [each for each in ways if each is not None]
        return 1000 * sum(known) if len(known) == 2 else None

    return of


def _slower_way(name: str, count: int) -> Callable[[Result], float | None]:
    """Return a function for the mean rate of a flow in the slower direction, Mbit/s."""

    def of(run: Result) -> float | None:
        ways = [run.flow_group(f"{name}-{way}", WINDOW).get("goodput_bps") for way in ("up", "down")]
        known = [each for each in ways if each is not None]
        return min(known) / count / 1e6 if len(known) == 2 else None

    return of


def transfer(name: str, key: str, factor: float) -> Callable[[Result], float | None]:
    """Return a function for a metric of transfers that have one size.

    Args:
        name: Flow group.
        key: Key of the metric without its prefix.
        factor: Factor of the value.
    """

    def of(run: Result) -> float | None:
        group = run.data["flows"][name][WINDOW]
        for size, _ in SIZES:
            value = group.get(f"fct_{size}_{key}")
            if value is not None and group.get(f"fct_{size}_count"):
                return float(value) * factor
        return None

    return of


def rate_of(key: str, title: str, group: str, unit: str, scale: float, **more: Any) -> ExperienceMetric:
    """Return a metric for the rate of a flow group.

    Args:
        key: Key of the metric.
        title: Heading of its column.
        group: Flow group.
        unit: Unit of the column.
        scale: That unit per bit/s.
        more: Further fields of the metric.
    """
    of = _group("goodput_bps", group, scale)
    return ExperienceMetric(key=key, title=title, unit=unit, digits=2, of=of, more=True, worst=0, **more)


def backbone(length_s: float, base_rtt_s: float) -> tuple[ExperienceMetric, ...]:
    """Return the metrics of a provider's link.

    Args:
        length_s: Duration of a run.
        base_rtt_s: Mean round-trip time without queueing.
    """

    def of(key: str, run: Result) -> float | None:
        value = run.data["links"]["bottleneck"][WINDOW][key]
        return None if value is None else float(value)

    def response(run: Result) -> float | None:
        wait, used = of("sojourn_mean_s", run), of("utilization", run)
        return None if wait is None or not used else 1000 * (base_rtt_s + wait) / used

    def lost(run: Result) -> float | None:
        early, overflow = of("early_drop_ratio", run), of("overflow_drop_ratio", run)
        return None if early is None or overflow is None else 100 * (early + overflow)

    def used(run: Result) -> float | None:
        share = of("utilization", run)
        return None if share is None else 100 * share

    short, fair = _group("fct_10kB_100kB_mean_s", "short", 1000), _group("jain_fairness", "long")
    worst_ms = 1000 * length_s
    return (
        ExperienceMetric(key="short", title="Short", unit="ms", digits=0, of=short, worst=worst_ms),
        ExperienceMetric(key="fairness", title="Fairness", unit="Jain", digits=3, of=fair, more=True, worst=0),
        ExperienceMetric(key="response", title="Response", unit="ms", digits=0, of=response, worst=worst_ms),
        # A loss rate below 1 % is hardly heard in calls and hardly slows transfers: smaller ones are alike.
        ExperienceMetric(key="lost", title="Lost", unit="%", digits=2, of=lost, least=1, worst=100),
        ExperienceMetric(key="used", title="Used", unit="%", digits=1, of=used, more=True, weight=0, worst=0),
    )


def _calls() -> ExperienceMetric:
    return ExperienceMetric(
        key="calls",
        title="Calls",
        unit="MOS",
        digits=2,
        of=_worse_call,
        more=True,
        from_=1,
        to=4.5,
        least=0.05,
        worst=1,
    )


def _pages(length_s: float) -> ExperienceMetric:
    of = _group("page_load_mean_s", "web")
    return ExperienceMetric(key="pages", title="Page", unit="s", digits=2, of=of, worst=length_s)


def household(length_s: float) -> tuple[ExperienceMetric, ...]:
    """Return the metrics of a household. An undefined one takes its worst value: an unfinished page the whole run.

    Args:
        length_s: Duration of a run.
    """
    chunk, game = transfer("film", "mean_s", 1), _round_trip("game")
    return (
        _calls(),
        _pages(length_s),
        ExperienceMetric(key="game", title="Game", unit="ms", digits=0, of=game, worst=length_s * 1000),
        rate_of("upload", "Upload", "upload", "Mbit/s", 1e-6),
        ExperienceMetric(key="film", title="4 s of film", unit="s", digits=2, of=chunk, worst=length_s),
        rate_of("update", "Update", "update", "Mbit/s", 1e-6),
    )


def office(length_s: float, meetings: int) -> tuple[ExperienceMetric, ...]:
    """Return the metrics of an office. An undefined one takes its worst value.

    Args:
        length_s: Duration of a run.
        meetings: Number of video meetings.
    """
    wait, rate = _round_trip("meeting"), _slower_way("meeting", meetings)
    return (
        _calls(),
        ExperienceMetric(key="meetings", title="Meeting", unit="ms", digits=0, of=wait, worst=length_s * 1000),
        ExperienceMetric(key="video", title="Video", unit="Mbit/s", digits=2, of=rate, more=True, worst=0),
        _pages(length_s),
        rate_of("backup", "Backup", "backup", "Mbit/s", 1e-6),
        rate_of("files", "Files", "files", "Mbit/s", 1e-6),
    )


WORDS = {
    "calls": "quality of the call (MOS from 1, the worse of its two directions)",
    "pages": "mean load time of a page",
    "game": "round-trip time of a game's packets (95th percentile of each direction)",
    "upload": "rate of the upload",
    "film": "time to fetch 4 s of film",
    "update": "rate of the update",
    "meetings": "round-trip time of a video meeting's packets (95th percentile of each direction)",
    "video": "rate of a meeting's video in its slower direction",
    "backup": "total rate of the backups",
    "files": "total rate of the downloads",
    "requests": "99th percentile of the request time",
    "mean": "mean request time",
    "bulk": "total rate of the long transfers",
    "short": "mean time of transfers of 10 to 100 kB",
    "fairness": "Jain's index of the goodputs of the long transfers",
    "response": "mean round-trip time with queueing over utilisation",
    "lost": "packets lost",
    "used": "utilisation",
}
"""Description of each metric."""
FIGURES = {
    "backbone": ("short", "fairness", "response", "lost", "used"),
    "datacenter": ("requests", "mean", "bulk"),
    "office": ("calls", "meetings", "video", "pages", "backup", "files"),
}
"""Metrics of the networks that are not a household's."""
