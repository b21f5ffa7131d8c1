"""Metrics of results by key, with their units. `None` stands for a metric that an engine or a window does not have."""

from __future__ import annotations

from typing import NotRequired, TypedDict

__all__ = ["FlowMetrics", "LinkMetrics", "Summary"]


class Summary(TypedDict):
    """Summary of a metric over runs, in the unit of the metric."""

    mean: float | None
    """Mean."""
    std: float | None
    """Standard deviation."""
    ci95: list[float] | None
    """Ends of the 95 % confidence interval of the mean; `None` for one run."""
    n: int
    """Number of runs with the metric."""
    events: NotRequired[int]
    """Number of events behind the metric over all runs, such as lost packets or loaded pages."""


class LinkMetrics(TypedDict):
    """Metrics of a link in one window."""

    utilization: float | None
    """Departed bits over capacity bits, 0 to 1."""
    queue_mean_pkts: float | None
    """Time average of the queue length, packets."""
    queue_std_pkts: float | None
    """Standard deviation of the queue length over time, packets."""
    qacd_pkts: float | None
    """Root mean square over time of queue length minus target, packets."""
    qacd_sampled_pkts: float | None
    """Root mean square of queue length minus target at the AQM's sampling instants, packets."""
    sojourn_mean_s: float | None
    """Mean of the sojourn time, seconds."""
    sojourn_p50_s: float | None
    """Median of the sojourn time, seconds."""
    sojourn_p95_s: float | None
    """95th percentile of the sojourn time, seconds."""
    sojourn_p99_s: float | None
    """99th percentile of the sojourn time, seconds."""
    arrivals_pkts: int | None
    """Arrived packets."""
    departures_pkts: int | None
    """Transmitted packets."""
    marked_pkts: int | None
    """Packets with a CE mark from this link."""
    early_dropped_pkts: int | None
    """Packets that the AQM dropped."""
    overflow_dropped_pkts: int | None
    """Packets dropped because the buffer was full."""
    wire_lost_pkts: int | None
    """Packets lost on the wire after their transmission."""
    mark_ratio: float | None
    """Marked over arrived packets, 0 to 1."""
    early_drop_ratio: float | None
    """Early drops over arrived packets, 0 to 1."""
    overflow_drop_ratio: float | None
    """Overflow drops over arrived packets, 0 to 1."""
    queue_p5_pkts: float | None
    """5th percentile of the queue length over time, packets."""
    queue_p25_pkts: float | None
    """25th percentile of the queue length over time, packets."""
    queue_p50_pkts: float | None
    """50th percentile of the queue length over time, packets."""
    queue_p75_pkts: float | None
    """75th percentile of the queue length over time, packets."""
    queue_p95_pkts: float | None
    """95th percentile of the queue length over time, packets."""
    queue_empty_ratio: float | None
    """Fraction of the time without waiting packets, 0 to 1."""
    queue_below_target_ratio: float | None
    """Fraction of the time below the target, 0 to 1."""
    probability_mean: float | None
    """Mean marking or dropping probability, 0 to 1."""
    queue_iae_pkts_s: float | None
    """Integral of the absolute error of the queue length, packets x seconds."""
    queue_ise_pkts2_s: float | None
    """Integral of the squared error of the queue length, packets^2 x seconds."""
    settling_s: float | None
    """Settling time from the start of the window, seconds."""
    overshoot_pkts: float | None
    """Largest queue length above the target until then, packets."""
    loss_run_mean_pkts: float | None
    """Mean number of consecutive losses, packets."""
    loss_run_max_pkts: int | None
    """Largest number of consecutive losses, packets."""
    loss_dispersion: float | None
    """Index of dispersion of the losses per sampling interval: variance over mean."""
    loss_interval_mean_s: float | None
    """Mean of the time between losses, seconds."""
    loss_interval_p50_s: float | None
    """Median of the time between losses, seconds."""
    loss_interval_p95_s: float | None
    """95th percentile of the time between losses, seconds."""
    loss_event_flows_mean: float | None
    """Mean number of flows with losses in one loss event."""
    loss_sync_ratio: float | None
    """Mean fraction of the link's flows with losses in one loss event, 0 to 1."""
    arrivals_hurst: float | None
    """Estimated Hurst parameter of the arrivals; 0.5 without long memory."""
    sync_index: float | None
    """Correlation of the flows' windows."""
    rtt_fairness_slope: float | None
    """Slope of ln(goodput) over ln(round-trip time) of the flows."""
    fairness_mean: float | None
    """Mean of Jain's index over sliding intervals, 0 to 1."""
    convergence_s: float | None
    """Time from the last start of a flow until Jain's index reaches 0.9, seconds."""


class FlowMetrics(TypedDict):
    """Metrics of a flow group in one window."""

    goodput_bps: float | None
    """Bits delivered in order to the applications, bit/s."""
    jain_fairness: float | None
    """Jain's index of the goodputs, 0 to 1."""
    rtt_mean_s: float | None
    """Mean round-trip time, seconds."""
    sojourn_mean_s: float | None
    """Mean of the data packets' sojourn time at a recorded link, seconds."""
    sojourn_p95_s: float | None
    """95th percentile of the data packets' sojourn time at a recorded link, seconds."""
    sojourn_p99_s: float | None
    """99th percentile of the data packets' sojourn time at a recorded link, seconds."""
    retransmitted_ratio: float | None
    """Retransmitted over sent segments, 0 to 1."""
    timeouts: int | None
    """Retransmission time-outs."""
    delay_mean_s: float | None
    """Mean of the one-way delay, seconds."""
    delay_p50_s: float | None
    """Median of the one-way delay, seconds."""
    delay_p95_s: float | None
    """95th percentile of the one-way delay, seconds."""
    delay_p99_s: float | None
    """99th percentile of the one-way delay, seconds."""
    delay_variation_p95_s: float | None
    """95th percentile of the delay variation (RFC 5481), seconds."""
    delay_variation_p99_s: float | None
    """99th percentile of the delay variation (RFC 5481), seconds."""
    jitter_mean_s: float | None
    """Mean interarrival jitter (RFC 3550), seconds."""
    loss_ratio: float | None
    """Lost over sent packets, 0 to 1."""
    loss_burst_mean_pkts: float | None
    """Mean number of consecutive losses, packets."""
    throughput_bps: float | None
    """Bits of packets with headers at the receivers, bit/s."""
    frames: int | None
    """Video frames due."""
    frame_loss_ratio: float | None
    """Video frames with a lost or late packet over frames due, 0 to 1."""
    r_factor: float | None
    """Rating R of the E-model for voice (ITU-T G.107), 0 to 100."""
    mos: float | None
    """Mean opinion score for voice, 1 to 4.5."""
    refused: int | None
    """Requests of the application that found no idle flow."""
    startup_mean_s: float | None
    """Mean of the time from a request to its first data, seconds."""
    startup_p50_s: float | None
    """Median of the time from a request to its first data, seconds."""
    startup_p95_s: float | None
    """95th percentile of the time from a request to its first data, seconds."""
    pages: int | None
    """Loaded web pages."""
    page_load_mean_s: float | None
    """Mean of the time to load a page, seconds."""
    page_load_p50_s: float | None
    """Median of the time to load a page, seconds."""
    page_load_p95_s: float | None
    """95th percentile of the time to load a page, seconds."""
    page_load_p99_s: float | None
    """99th percentile of the time to load a page, seconds."""
    video_began: int | None
    """Viewers whose video has started by the end of the window."""
    video_startup_mean_s: float | None
    """Mean time from the first request to the first picture, seconds."""
    video_stalls: int | None
    """Stalls that began in the window."""
    video_stalled_ratio: float | None
    """Stalled time over time from the first picture to the last, 0 to 1."""
    video_bitrate_mean_bps: float | None
    """Mean bit rate of the segments, bit/s."""
    video_switches: int | None
    """Segments with another bit rate than the one before."""
    fct_under_10kB_count: int | None
    """Completed transfers below 10 kB."""
    fct_under_10kB_mean_s: float | None
    """Mean of the completion time of transfers below 10 kB, seconds."""
    fct_under_10kB_p50_s: float | None
    """Median of the completion time of transfers below 10 kB, seconds."""
    fct_under_10kB_p95_s: float | None
    """95th percentile of the completion time of transfers below 10 kB, seconds."""
    fct_under_10kB_p99_s: float | None
    """99th percentile of the completion time of transfers below 10 kB, seconds."""
    fct_under_10kB_slowdown: float | None
    """Mean completion time of transfers below 10 kB over that of an empty network."""
    fct_10kB_100kB_count: int | None
    """Completed transfers of 10 to 100 kB."""
    fct_10kB_100kB_mean_s: float | None
    """Mean of the completion time of transfers of 10 to 100 kB, seconds."""
    fct_10kB_100kB_p50_s: float | None
    """Median of the completion time of transfers of 10 to 100 kB, seconds."""
    fct_10kB_100kB_p95_s: float | None
    """95th percentile of the completion time of transfers of 10 to 100 kB, seconds."""
    fct_10kB_100kB_p99_s: float | None
    """99th percentile of the completion time of transfers of 10 to 100 kB, seconds."""
    fct_10kB_100kB_slowdown: float | None
    """Mean completion time of transfers of 10 to 100 kB over that of an empty network."""
    fct_100kB_1MB_count: int | None
    """Completed transfers of 100 kB to 1 MB."""
    fct_100kB_1MB_mean_s: float | None
    """Mean of the completion time of transfers of 100 kB to 1 MB, seconds."""
    fct_100kB_1MB_p50_s: float | None
    """Median of the completion time of transfers of 100 kB to 1 MB, seconds."""
    fct_100kB_1MB_p95_s: float | None
    """95th percentile of the completion time of transfers of 100 kB to 1 MB, seconds."""
    fct_100kB_1MB_p99_s: float | None
    """99th percentile of the completion time of transfers of 100 kB to 1 MB, seconds."""
    fct_100kB_1MB_slowdown: float | None
    """Mean completion time of transfers of 100 kB to 1 MB over that of an empty network."""
    fct_over_1MB_count: int | None
    """Completed transfers of 1 MB and more."""
    fct_over_1MB_mean_s: float | None
    """Mean of the completion time of transfers of 1 MB and more, seconds."""
    fct_over_1MB_p50_s: float | None
    """Median of the completion time of transfers of 1 MB and more, seconds."""
    fct_over_1MB_p95_s: float | None
    """95th percentile of the completion time of transfers of 1 MB and more, seconds."""
    fct_over_1MB_p99_s: float | None
    """99th percentile of the completion time of transfers of 1 MB and more, seconds."""
    fct_over_1MB_slowdown: float | None
    """Mean completion time of transfers of 1 MB and more over that of an empty network."""
