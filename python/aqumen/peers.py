"""Engines that are programs of their own, and their answers with the keys of every run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen import _core
from aqumen.errors import EngineError
from aqumen.files import json_text
from aqumen.result import Answer
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.engines import Job
    from aqumen.result import Floats

__all__ = ["RUN", "PeerAnswer"]

FLOW_METRICS = (
    "goodput_bps",
    "jain_fairness",
    "rtt_mean_s",
    "sojourn_mean_s",
    "sojourn_p95_s",
    "sojourn_p99_s",
    "retransmitted_ratio",
    "timeouts",
    "delay_mean_s",
    "jitter_mean_s",
    "loss_ratio",
    "throughput_bps",
    "delay_p50_s",
    "delay_p95_s",
    "delay_p99_s",
    "delay_variation_p95_s",
    "delay_variation_p99_s",
    "loss_burst_mean_pkts",
    "frames",
    "frame_loss_ratio",
    "r_factor",
    "mos",
    "refused",
    "startup_mean_s",
    "startup_p50_s",
    "startup_p95_s",
    "pages",
    "page_load_mean_s",
    "page_load_p50_s",
    "page_load_p95_s",
    "page_load_p99_s",
    "video_began",
    "video_startup_mean_s",
    "video_stalls",
    "video_stalled_ratio",
    "video_bitrate_mean_bps",
    "video_switches",
    *(
        f"fct_{size}_{what}"
        for size in ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
        for what in ("count", "mean_s", "p50_s", "p95_s", "p99_s", "slowdown")
    ),
)
"""What every flow group carries; null where an engine does not measure it."""

LINK_METRICS = (
    "wire_lost_pkts",
    "queue_p5_pkts",
    "queue_p25_pkts",
    "queue_p50_pkts",
    "queue_p75_pkts",
    "queue_p95_pkts",
    "queue_empty_ratio",
    "queue_below_target_ratio",
    "probability_mean",
    "queue_iae_pkts_s",
    "queue_ise_pkts2_s",
    "settling_s",
    "overshoot_pkts",
    "loss_run_mean_pkts",
    "loss_run_max_pkts",
    "loss_dispersion",
    "loss_interval_mean_s",
    "loss_interval_p50_s",
    "loss_interval_p95_s",
    "loss_event_flows_mean",
    "loss_sync_ratio",
    "arrivals_hurst",
    "sync_index",
    "rtt_fairness_slope",
    "fairness_mean",
    "convergence_s",
)
"""What every recorded link carries beside what all engines measure; null likewise."""


class PeerAnswer:
    """What a peer answered, with the keys of every run."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Take the engine's dictionary.

        Args:
            answer: The metrics, and under `series` queue and probability over time.
        """
        self._series = answer["series"]
        self._sojourn = answer.get("sojourn", {})
        plain = {key: value for key, value in answer.items() if key not in ("series", "sojourn")}
        whole = {
            key: {
                name: {window: {**dict.fromkeys(wanted), **metrics} for window, metrics in windows.items()}
                for name, windows in plain[key].items()
            }
            for key, wanted in (("links", LINK_METRICS), ("flows", FLOW_METRICS))
        }
        self.json = json_text({**plain, "aqumen": _core.__version__, **whole})

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Times in seconds, packets waiting, probability in force (NaN where the AQM has none)."""
        own = self._series[link]
        t, queue, p = (np.array(own[key], dtype=np.float64) for key in ("t", "queue_pkts", "p"))
        return t, queue, p

    def state(self, _link: str) -> list[tuple[str, Floats]]:
        """Nothing: peers tell the queue and the probability alone."""
        return []

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each; empty where none were taken."""
        times, share = self._sojourn.get(link, {}).get(window, ((), ()))
        return np.array(times, dtype=np.float64), np.array(share, dtype=np.float64)

    def queue_cdf(self, _link: str, _window: str) -> tuple[Floats, Floats]:
        """Empty: peers tell the queue as sampled alone."""
        return np.array([]), np.array([])


def _ns2(scenario: Scenario, job: Job) -> Answer:
    from aqumen import ns2

    aqm, seed = job
    try:
        plan = scenario.plan(seed, aqm)
        for group, asked in zip(plan["groups"], scenario.core.requests(seed), strict=True):
            group["requests"] = asked
        return PeerAnswer(ns2.run(plan))
    except ns2.Ns2Error as error:
        raise EngineError(str(error)) from None


def _ns3(scenario: Scenario, job: Job) -> Answer:
    from aqumen import ns3

    aqm, seed = job
    try:
        return PeerAnswer(ns3.run(scenario.plan(seed, aqm)))
    except ns3.Ns3Error as error:
        raise EngineError(str(error)) from None


def _live(scenario: Scenario, job: Job) -> Answer:
    from aqumen import live

    return live.run(scenario, job)


RUN: dict[str, Callable[[Scenario, Job], Answer]] = {"live": _live, "ns2": _ns2, "ns3": _ns3}
"""How each peer runs a job."""
