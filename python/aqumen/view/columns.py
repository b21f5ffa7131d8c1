"""Columns of the tables of results, for the report and the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["FLOW_COLUMNS", "LINK_COLUMNS", "SIZES", "TRANSFER_COLUMNS", "Column", "defined", "transfers_by_size"]

Column = tuple[str, str, str, float, int]
"""Key, title, unit, factor and decimal places."""

LINK_COLUMNS: Sequence[Column] = (
    ("queue_p5_pkts", "Queue, p5", "packets", 1, 0),
    ("queue_p50_pkts", "p50", "packets", 1, 0),
    ("queue_p95_pkts", "p95", "packets", 1, 0),
    ("queue_iae_pkts_s", "Error, absolute", "packets s", 1, 0),
    ("queue_ise_pkts2_s", "Error, squared", "packets² s", 1, 0),
    ("loss_run_mean_pkts", "Consecutive losses", "mean", 1, 2),
    ("loss_run_max_pkts", "longest", "packets", 1, 0),
    ("loss_dispersion", "Dispersion of losses", "variance / mean", 1, 2),
    ("loss_interval_mean_s", "Time between losses", "ms", 1000, 1),
    ("loss_sync_ratio", "Flows hit", "%", 100, 1),
    ("arrivals_hurst", "Hurst, estimate", "0.5: no memory, –: not self-similar", 1, 2),
    ("sync_index", "Synchronisation", "correlation", 1, 3),
    ("rtt_fairness_slope", "RTT fairness", "slope", 1, 2),
    ("fairness_mean", "Fairness in 1 s", "Jain", 1, 3),
    ("convergence_s", "Fair after", "s", 1, 1),
    ("queue_empty_ratio", "Empty", "% of the time", 100, 1),
    ("queue_below_target_ratio", "Below target", "% of the time", 100, 1),
    ("probability_mean", "Probability", "%", 100, 2),
)
FLOW_COLUMNS: Sequence[Column] = (
    ("goodput_bps", "Goodput", "Mbit/s", 1e-6, 3),
    ("sojourn_mean_s", "Sojourn, mean", "ms", 1000, 1),
    ("sojourn_p99_s", "Sojourn, p99", "ms", 1000, 1),
    ("rtt_mean_s", "RTT", "ms", 1000, 1),
    ("delay_mean_s", "Delay, mean", "ms", 1000, 1),
    ("mos", "MOS", "", 1, 2),
    ("page_load_mean_s", "Page load, mean", "s", 1, 2),
    ("delay_p95_s", "Delay, p95", "ms", 1000, 1),
    ("delay_p99_s", "Delay, p99", "ms", 1000, 1),
    ("delay_variation_p95_s", "Variation, p95", "ms", 1000, 1),
    ("jitter_mean_s", "Jitter", "ms", 1000, 2),
    ("loss_ratio", "Lost", "%", 100, 2),
    ("frame_loss_ratio", "Frames lost", "%", 100, 2),
    ("page_load_p95_s", "Page load, p95", "s", 1, 2),
    ("video_stalled_ratio", "Video stalled", "%", 100, 1),
    ("video_bitrate_mean_bps", "Video rate", "Mbit/s", 1e-6, 2),
    ("video_stalls", "Stalls", "", 1, 0),
    ("video_startup_mean_s", "Start-up", "s", 1, 1),
    ("video_switches", "Switches", "", 1, 0),
    ("startup_mean_s", "First byte, mean", "ms", 1000, 1),
    ("retransmitted_ratio", "Retransmitted", "%", 100, 2),
    ("jain_fairness", "Jain", "", 1, 3),
    ("throughput_bps", "Throughput", "Mbit/s", 1e-6, 3),
    ("refused", "Refused", "", 1, 0),
)
"""Columns of a flow group, user experience first: narrow terminals cut the last."""
SIZES = (
    ("under_10kB", "below 10 kB"),
    ("10kB_100kB", "10 to 100 kB"),
    ("100kB_1MB", "100 kB to 1 MB"),
    ("over_1MB", "1 MB and more"),
)
TRANSFER_COLUMNS: Sequence[Column] = (
    ("count", "Transfers", "finished", 1, 0),
    ("mean_s", "Time, mean", "s", 1, 3),
    ("p50_s", "p50", "s", 1, 3),
    ("p95_s", "p95", "s", 1, 3),
    ("p99_s", "p99", "s", 1, 3),
    ("slowdown", "Slowdown", "times", 1, 2),
)


def defined(columns: Sequence[Column], rows: Iterable[dict[str, Any]]) -> list[Column]:
    """Return the columns that are defined in at least one row.

    Args:
        columns: Columns to choose from.
        rows: Metric summaries of each row.
    """
    known = list(rows)
    return [column for column in columns if any(metrics[column[0]]["n"] for metrics in known)]


def transfers_by_size(metrics: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the size classes with finished transfers, and the summaries of each by the keys of `TRANSFER_COLUMNS`.

    Args:
        metrics: Summaries of a flow group.
    """
    return [
        (title, {key: metrics[f"fct_{size}_{key}"] for key, *_ in TRANSFER_COLUMNS})
        for size, title in SIZES
        if (metrics[f"fct_{size}_count"]["mean"] or 0) > 0
    ]
