"""Objectives of a search: a column of the rows, and whether smaller or larger values are better."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aqumen import _core
from aqumen.errors import ScenarioError, listed, meant

__all__ = ["Objective"]

LESS = re.compile(
    r"(sojourn|delay|delay_variation|jitter|startup|page_load|video_startup)_\w+_s|rtt_mean_s|qacd_\w+"
    r"|queue_(mean|std|p\d+)_pkts|queue_iae_pkts_s|queue_ise_pkts2_s|settling_s|overshoot_pkts|convergence_s"
    r"|(early_drop|overflow_drop|drop|loss|frame_loss|retransmitted|video_stalled)_ratio|loss_sync_ratio|timeouts"
    r"|overflow_dropped_pkts|video_stalls|fct_\w+_(mean_s|p\d+_s|slowdown)"
)
"""Metrics of which smaller values are better."""
MORE = re.compile(
    r"utilization|goodput_bps|throughput_bps|jain_fairness|fairness_mean|mos|r_factor|video_bitrate_mean_bps"
)
"""Metrics of which larger values are better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A column of the rows, to be small or large."""

    column: str
    """Name of the column, such as `sojourn_p99_s` or `ftp.goodput_bps@all`."""
    more: bool
    """Whether larger values are better."""

    @classmethod
    def read(cls, text: str) -> Objective:
        """Read `METRIC`, `min:METRIC` or `max:METRIC`.

        Args:
            text: The objective as the user gives it.

        Raises:
            ScenarioError: There is no such metric, or no direction is known for it.
        """
        way, colon, rest = text.strip().partition(":")
        if not colon or way not in ("min", "max"):
            way, rest = "", text.strip()
        key = rest.partition("@")[0].rpartition(":")[2].rpartition(".")[2]
        link, flow = _core.metric_keys()
        known = list(dict.fromkeys((*link, *flow)))
        if key not in known:
            raise ScenarioError(f"{text}: no metric `{key}`{meant(key, known) or ';'} choose from: {listed(known)}")
        if not way and not (LESS.fullmatch(key) or MORE.fullmatch(key)):
            raise ScenarioError(f"{text}: say which way `{key}` is better: min:{rest} or max:{rest}")
        return cls(column=rest, more=way == "max" if way else MORE.fullmatch(key) is not None)

    @property
    def sign(self) -> float:
        """Factor that makes smaller values better: 1 or -1."""
        return -1.0 if self.more else 1.0
