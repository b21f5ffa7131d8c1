"""Figures in tables stand in the units that their heads name, with the digits worth reading."""

from types import SimpleNamespace

import pytest

from aqumen.cli.compare import means_table
from aqumen.cli.run import tables_of, theory_of
from aqumen.view.columns import FLOW_COLUMNS, LINK_COLUMNS, TRANSFER_COLUMNS, defined, transfers_by_size

UNITS = {
    # The end of a key, and what 1 of it is in the unit of its column.
    "_bps": {"Mbit/s": 1e-6},
    "_ratio": {"%": 100, "% of the time": 100},
    "_s": {"ms": 1000, "s": 1, "packets s": 1, "packets² s": 1},
}


@pytest.mark.parametrize("column", [*LINK_COLUMNS, *FLOW_COLUMNS, *TRANSFER_COLUMNS], ids=lambda column: column[0])
def test_what_a_column_shows_is_in_its_unit(column):
    key, title, unit, factor, _ = column
    of_key = next((units for end, units in UNITS.items() if key.endswith(end)), None)
    if key == "probability_mean":
        of_key = UNITS["_ratio"]
    assert factor == (1 if of_key is None else of_key[unit]), title


def cells(table):
    heads = [column.header for column in table.columns]
    rows = zip(*(column._cells for column in table.columns), strict=True)
    return [dict(zip(heads, row, strict=True)) for row in rows]


def of(mean, half=None):
    return {"mean": mean, "n": 2, "ci95": None if half is None else [mean - half, mean + half]}


def test_means_are_told_with_their_intervals_and_the_digits_worth_reading():
    group = {key: {"mean": None, "n": 0} for key, *_ in FLOW_COLUMNS}
    # 1.2345 Mbit/s; 12.34 ms; 1.234 s; .01234; 2.5 Mbit/s; a count.
    group |= {
        "goodput_bps": of(1_234_500, 1000),
        "sojourn_p99_s": of(0.01234, 0.0021),
        "jitter_mean_s": of(0.01234),
        "page_load_mean_s": of(1.234, 0.01),
        "loss_ratio": of(0.01234, 0.0056),
        "video_bitrate_mean_bps": of(2.5e6),
        "video_stalled_ratio": of(0.25),
        "video_startup_mean_s": of(2.0),
        "video_stalls": of(3.0),
        "jain_fairness": of(0.98765),
        "mos": of(4.321),
        "refused": of(7.0),
    }
    (row,) = cells(means_table("Groups", ["AQM", "group"], FLOW_COLUMNS, [(["pi", "calls"], group)]))
    assert row == {
        "AQM": "pi",
        "group": "calls",
        "Goodput\nMbit/s": "1.234 ± 0.001",
        "Sojourn, p99\nms": "12.3 ± 2.1",
        "Jitter\nms": "12.34",
        "Page load, mean\ns": "1.23 ± 0.01",
        "Lost\n%": "1.23 ± 0.56",
        "Video rate\nMbit/s": "2.50",
        "Video stalled\n%": "25.0",
        "Start-up\ns": "2.0",
        "Stalls\n": "3",
        "Jain\n": "0.988",
        "MOS\n": "4.32",
        "Refused\n": "7",
    }


def test_a_link_is_told_in_packets_percent_and_milliseconds():
    link = {key: of(0.01234) for key, *_ in LINK_COLUMNS} | {
        "queue_p5_pkts": of(12.4),
        "queue_p95_pkts": of(87.6),
        "loss_run_mean_pkts": of(1.234),
        "loss_dispersion": of(2.349),
        "arrivals_hurst": of(0.876),
        "fairness_mean": of(0.9876),
        "convergence_s": of(12.34),
        "rtt_fairness_slope": of(-1.05),
    }
    (row,) = cells(means_table("Link", ["AQM"], LINK_COLUMNS, [(["pi"], link)]))
    of_title = {head.split("\n")[0]: cell for head, cell in row.items()}
    assert [of_title[title] for title in ("Queue, p5", "p95", "Consecutive losses", "Dispersion of losses")] == [
        "12",
        "88",
        "1.23",
        "2.35",
    ]
    assert [of_title[title] for title in ("Time between losses", "Flows hit", "Empty", "Probability")] == [
        "12.3",
        "1.2",
        "1.2",
        "1.23",
    ]
    assert [of_title[title] for title in ("Hurst, estimate", "Fairness in 1 s", "Fair after", "RTT fairness")] == [
        "0.88",
        "0.988",
        "12.3",
        "-1.05",
    ]


def test_columns_and_sizes_of_which_nothing_is_known_are_left_out():
    rows = [{key: {"mean": None, "n": 0} for key, *_ in LINK_COLUMNS} for _ in range(2)]
    rows[1]["sync_index"] = of(0.5)
    assert [key for key, *_ in defined(LINK_COLUMNS, rows)] == ["sync_index"]
    sizes = ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
    metrics = {f"fct_{size}_{key}": {"mean": None} for size in sizes for key, *_ in TRANSFER_COLUMNS}
    metrics["fct_under_10kB_count"] = {"mean": 0.0}
    # In half of the seeds one: that is some.
    metrics |= {"fct_10kB_100kB_count": {"mean": 0.5}, "fct_over_1MB_count": {"mean": 3.0}}
    metrics["fct_over_1MB_p95_s"] = {"mean": 2.5}
    told = transfers_by_size(metrics)
    assert [title for title, _ in told] == ["10 to 100 kB", "1 MB and more"]
    assert told[1][1]["p95_s"] == {"mean": 2.5}


FLOWS = {
    "goodput_bps": 8_198_000,
    "sojourn_mean_s": 0.02991,
    "sojourn_p99_s": None,
    "rtt_mean_s": 0.13884,
    "jain_fairness": 0.81277,
    "retransmitted_ratio": 0.02964,
    "timeouts": 21,
}


def test_a_run_is_told_in_the_units_of_its_heads():
    link = {
        "utilization": 0.95012,
        "sojourn_mean_s": 0.02984,
        "sojourn_p99_s": 0.0792,
        "early_drop_ratio": None,
        "overflow_drop_ratio": 0.0167,
        "mark_ratio": None,
        "queue_mean_pkts": 35.44,
        "qacd_pkts": None,
    }
    flows = {key: None for key, *_ in FLOW_COLUMNS} | FLOWS
    result = SimpleNamespace(
        spec="pi:a=1e-4",
        scenario="one",
        engine="packet",
        seed=7,
        params={"a": 1e-4, "frequency": 160.0, "ecn": True},
        given={},
        notes=["it rains"],
        flows=["ftp"],
        data={"links": {"bottleneck": {"all": link}}, "flows": {"ftp": {"all": flows}}},
    )
    heading, parameters, links, groups, *rest = tables_of(result)
    assert (heading, parameters) == (
        "pi:a=1e-4 on one, engine packet, seed 7",
        "a = 0.0001, frequency = 160, ecn = true",
    )
    assert cells(links) == [
        {
            "link, window": "bottleneck, all",
            "utilisation %": "95.01",
            "sojourn ms": "29.8",
            "p99 ms": "79.2",
            "dropped %": "1.67",
            "queue pkt": "35.4",
        }
    ]
    assert cells(groups) == [
        {
            "group, window": "ftp, all",
            "goodput Mbit/s": "8.198",
            "sojourn ms": "29.9",
            "RTT ms": "138.8",
            "Jain fairness": "0.8128",
            "resent %": "2.96",
            "time-outs": "21",
        }
    ]
    # Nothing of applications is known; what is to be noted stands last.
    assert rest == ["\nNote: it rains"]


def test_theory_stands_beside_what_was_measured_in_one_unit():
    predicted = {"queue_mean_pkts": 25.04, "signal_ratio": 0.01234, "utilization": 1.0, "sojourn_mean_s": 0.02}
    measured = {"queue_mean_pkts": 27.31, "signal_ratio": None, "utilization": 0.9987, "sojourn_mean_s": 0.0215}
    each = SimpleNamespace(
        link="bottleneck",
        window="steady",
        point={"window_pkts": 12.349},
        notes=["close"],
        to_dict=lambda: {"predicted": predicted, "measured": measured},
    )
    table, note = theory_of([each])
    assert list(cells(table)[0].values()) == [
        "bottleneck, steady",
        "25.0 / 27.3",
        "1.23 / –",
        "100.00 / 99.87",
        "20.0 / 21.5",
        "12.35",
    ]
    assert note == "bottleneck, steady: close"
    assert theory_of([]) == []
