"""Figures in tables: each in the unit that stands over it, with the digits that are worth reading."""

import pytest

from aqumen import errors
from aqumen.rfc7928 import evaluation
from aqumen.view import columns
from aqumen.view.report import theory

FACTORS = {"ms": 1000, "%": 100, "% of the time": 100, "Mbit/s": 1e-6}
"""By what a figure in seconds, shares or bit/s is multiplied; others stay as they are."""
DIGITS = {
    "link": {
        0: "queue_p5_pkts queue_p50_pkts queue_p95_pkts queue_iae_pkts_s queue_ise_pkts2_s loss_run_max_pkts",
        1: "loss_interval_mean_s loss_sync_ratio convergence_s queue_empty_ratio queue_below_target_ratio",
        2: "loss_run_mean_pkts loss_dispersion arrivals_hurst rtt_fairness_slope probability_mean",
        3: "sync_index fairness_mean",
    },
    "flow": {
        0: "video_stalls video_switches refused",
        1: "sojourn_mean_s sojourn_p99_s rtt_mean_s delay_mean_s delay_p95_s delay_p99_s delay_variation_p95_s"
        " video_stalled_ratio video_startup_mean_s startup_mean_s",
        2: "mos page_load_mean_s jitter_mean_s loss_ratio frame_loss_ratio page_load_p95_s video_bitrate_mean_bps"
        " retransmitted_ratio",
        3: "goodput_bps jain_fairness throughput_bps",
    },
    "transfer": {0: "count", 2: "slowdown", 3: "mean_s p50_s p95_s p99_s"},
    "rfc7928": {
        0: "loss_interval_mean_s startup_mean_s fct_under_10kB_mean_s fct_10kB_100kB_mean_s fct_100kB_1MB_mean_s"
        " fct_over_1MB_mean_s",
        1: "utilization sojourn_mean_s sojourn_p95_s delay_variation_p95_s loss_sync_ratio video_stalled_ratio"
        " second_sojourn_mean_s second_utilization",
        2: "goodput_bps loss_ratio mark_ratio goodput_ratio first_loss_ratio second_loss_ratio page_load_mean_s mos"
        " frame_loss_ratio video_bitrate_mean_bps",
        3: "sync_index",
    },
    "theory": {
        1: "queue_mean_pkts sojourn_mean_s queue_std_pkts qacd_pkts queue_p95_pkts",
        2: "signal_ratio utilization",
    },
}
TABLES = {
    "link": columns.LINK_COLUMNS,
    "flow": columns.FLOW_COLUMNS,
    "transfer": columns.TRANSFER_COLUMNS,
    "rfc7928": evaluation.MEASURES,
    # Its titles hold the unit.
    "theory": [(key, title, title.rpartition(", ")[2], *rest) for key, title, *rest in theory.COLUMNS + theory.NOISE],
}


@pytest.mark.parametrize("name", TABLES)
def test_a_figure_stands_in_the_unit_over_it(name):
    for key, _, unit, factor, _ in TABLES[name]:
        assert factor == FACTORS.get(unit, 1), key


@pytest.mark.parametrize("name", TABLES)
def test_a_figure_has_the_digits_worth_reading(name):
    wanted = {key: digits for digits, keys in DIGITS[name].items() for key in keys.split()}
    assert {key: digits for key, _, _, _, digits in TABLES[name]} == wanted


def test_transfers_are_told_by_the_sizes_that_there_were():
    def metrics(**counts):
        return {
            f"fct_{size}_{key}": {"mean": counts.get(size) if key == "count" else size, "n": 1}
            for size, _ in columns.SIZES
            for key, *_ in columns.TRANSFER_COLUMNS
        }

    told = columns.transfers_by_size(metrics(under_10kB=3, over_1MB=0.5))
    assert [title for title, _ in told] == ["below 10 kB", "1 MB and more"]
    assert told[0][1]["count"]["mean"] == 3
    assert told[1][1]["p99_s"]["mean"] == "over_1MB"
    assert columns.transfers_by_size(metrics(**{"10kB_100kB": 0})) == []


@pytest.mark.parametrize(
    ("count", "length", "told"),
    [
        (3, 3, "aaa, aaa, aaa"),
        # 200 letters: 40 names of three with commas are 198; of 41 the first 40 stand there.
        (40, 3, ", ".join(["aaa"] * 40)),
        (41, 3, ", ".join(["aaa"] * 40) + ", ... and 1 more; `list` lists all"),
        (2, 198, "a" * 198 + ", ... and 1 more; `list` lists all"),
        # Where not one name has room, their number is all there is to say.
        (2, 300, "2 of them; `list` lists all"),
        (1, 201, "1 of them; `list` lists all"),
    ],
)
def test_of_many_names_the_first_are_told(count, length, told):
    names = ["a" * length] * count
    assert errors.listed(names, "list") == told
    assert errors.listed(iter(names)) == told.removesuffix("; `list` lists all")
