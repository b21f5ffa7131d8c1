"""Finite transfers, web sessions and lossy wires in the ns-2 engine, against figures worked out by hand."""

import json
from typing import Any

import pytest

from aqumen import engines
from aqumen.engines.external.crosscheck import Cell, measures
from aqumen.engines.external.ns2 import Ns2Unsupported, run
from aqumen.engines.external.ns2.plan import Plan
from aqumen.engines.external.ns2.tcl import script
from aqumen.scenario import Scenario

NETWORK = """
name = "t"
duration = "DURATION"
[topology]
preset = "dumbbell"
bottleneck = { rate = "8Mbit", delay = "20ms", buffer = "50pkt"LOSS }
access = { rate = "80Mbit", delay = "5ms" }
[[flows]]
name = "g"
count = COUNT
transport = { preset = "ns2", packet = "1000B" }
traffic = TRAFFIC
"""
PAGE = (
    '{ kind = "web", connection = "object", main = "960B", embedded = "960B", parsing = "10ms", objects = 6,'
    ' reading = "1s", connections = 1 }'
)
UDP: dict[str, Any] = {"preset": "udp", "packet_bytes": 1500, "header_bytes": 28}
CBR: dict[str, Any] = {"kind": "cbr", "rate": "3888kbit", "packet": "972B"}


def both(traffic: str, duration: str = "10s", count: int = 1) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics of the group from the packet engine and ns-2."""
    text = NETWORK.replace("DURATION", duration).replace("LOSS", "").replace("COUNT", str(count))
    scenario = Scenario.parse(text.replace("TRAFFIC", traffic))
    answers = [json.loads(engines.run_one(scenario, (None, 1), engine).json) for engine in ("packet", "ns2")]
    return answers[0]["flows"]["g"]["all"], answers[1]["flows"]["g"]["all"]


@pytest.mark.needs("ns")
def test_a_page_takes_as_long_as_its_round_trips() -> None:
    # A packet of 40 B takes 48 us on three links and 30 ms, one of 1000 B 1.2 ms and 30 ms. A transfer: SYN, its
    # acknowledgement, the data (there after 91.296 ms), the acknowledgement (121.344 ms): seven of them in a row.
    ours, ns2 = both(PAGE)
    expected = 0.121344 * 6 + 0.010 + 0.091296
    for metrics in (ours, ns2):
        assert metrics["page_load_mean_s"] == pytest.approx(expected, abs=1e-6)
        assert metrics["fct_under_10kB_mean_s"] == pytest.approx(0.091296, abs=1e-6)
    # A page each 1.85 s.
    assert ours["pages"] == ns2["pages"] == 5
    assert ours["goodput_bps"] == ns2["goodput_bps"]


@pytest.mark.needs("ns")
def test_a_group_refuses_what_finds_no_idle_flow() -> None:
    # Each takes half a second of the link: two flows serve few of twenty a second. Both engines draw the same.
    traffic = '{ kind = "transfers", rate = "20/s", size = { law = "exponential", mean = "100kB" } }'
    ours, ns2 = both(traffic, count=2)
    asked = [
        metrics["refused"]
        + sum(metrics[f"fct_{size}_count"] for size in ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB"))
        for metrics in (ours, ns2)
    ]
    # Two or fewer of the last are still under way.
    assert abs(asked[0] - asked[1]) <= 2
    assert 150 < asked[0] < 250
    assert ns2["refused"] > 50
    assert ours["refused"] == pytest.approx(ns2["refused"], rel=0.1)


@pytest.mark.needs("ns")
def test_each_connection_starts_slowly_anew() -> None:
    # Without losses slow start decides how long 50 kB take, the second time as the first.
    traffic = '{ kind = "transfers", think = "100ms", size = "50kB" }'
    ours, ns2 = both(traffic)
    assert ns2["fct_10kB_100kB_count"] == ours["fct_10kB_100kB_count"] > 10
    assert ns2["fct_10kB_100kB_p99_s"] == pytest.approx(ns2["fct_10kB_100kB_p50_s"], rel=1e-6)
    assert ns2["fct_10kB_100kB_mean_s"] == pytest.approx(ours["fct_10kB_100kB_mean_s"], rel=1e-6)


def plan(losses: Any, duration_s: float = 20.0) -> dict[str, Any]:
    """500 datagrams of 1000 B a second over a wire."""
    link = {"delay_s": 0.05, "rates": [[0.0, 8e6]], "aqm": {"name": "droptail", "params": {}}, "buffer_pkts": 50}
    line = {"channel": None, "delays": [], "outages": [], "aqms": [], "losses": [[0.0, losses]]}
    return {
        "scenario": "t",
        "seed": 1,
        "duration_s": duration_s,
        "nodes": ["a", "b"],
        "links": [
            link | {"name": "bottleneck", "from": 0, "to": 1, "record": True, "line": line},
            link | {"name": "back", "from": 1, "to": 0},
        ],
        "groups": [{"name": "g", "transport": UDP, "traffic": CBR, "flows": [0, 1]}],
        "flows": [{"group": 0, "path": [0], "return_path": [1], "on": [[0.0, None]], "transfer_bytes": None}],
        "windows": {"all": [0.0, duration_s]},
    }


def test_losses_are_written_as_models_behind_the_wire() -> None:
    losses = {"burst": {"to_bad": 0.01, "to_good": 0.25}, "bit_errors": 0.5}
    lines = script(Plan.from_dict(plan(losses))).splitlines()
    # Wrong bytes: 1 - 0.5^8. Bursts come last here and first on the wire.
    assert [line for line in lines if line.startswith("lose ")] == [
        "lose 0 [random_losses byte 0.99609375]",
        "lose 0 [chained_losses 0.01 0.25 0.0 1.0]",
    ]
    lines = script(Plan.from_dict(plan({"burst": {"mean_good": "900ms", "mean_bad": "0.1s"}}))).splitlines()
    assert "lose 0 [timed_losses 0.9 0.1]" in lines


@pytest.mark.needs("ns")
def test_the_gilbert_elliott_model_of_ns2_loses_as_ours_says() -> None:
    # 50 000 packets. A share 0.02 / 0.27 meets the bad state, which loses 0.9 of them; 1 % of the others are lost.
    burst = {"to_bad": 0.02, "to_good": 0.25, "bad": 0.9, "good": 0.01}
    result = run(plan({"burst": burst}, duration_s=100.0))
    share = 0.02 / 0.27 * 0.9 + 0.25 / 0.27 * 0.01
    # The state has a correlation of 0.73: 99.9 % of the share lies within 3.29 sqrt(p (1 - p) / n 1.73 / 0.27).
    assert result["flows"]["g"]["all"]["loss_ratio"] == pytest.approx(share, abs=0.0096)
    lost = result["links"]["bottleneck"]["all"]["wire_lost_pkts"]
    assert lost == pytest.approx(50_000 * share, abs=480)
    # A lost packet is followed by another with probability P(lost, lost) / P(lost), by the states' chain:
    # 0.0741 0.9 (0.75 0.9 + 0.25 0.01) + 0.9259 0.01 (0.02 0.9 + 0.98 0.01) = 0.04543, over 0.07593: 0.5983.
    run_length = result["flows"]["g"]["all"]["loss_burst_mean_pkts"]
    assert run_length == pytest.approx(1.0 / (1.0 - 0.5983), rel=0.06)


@pytest.mark.needs("ns")
def test_a_lost_packet_has_taken_its_time_of_the_link() -> None:
    # 16 Mbit/s into 8: half the packets depart, of which half are lost.
    raw = plan(0.5)
    raw["groups"][0]["traffic"] = CBR | {"rate": "15552kbit"}
    result = run(raw)
    metrics = result["links"]["bottleneck"]["all"]
    assert metrics["utilization"] == pytest.approx(1.0, abs=0.002)
    # 20 000 packets of 1 ms: 3.29 sqrt(n / 4) = 233.
    assert metrics["wire_lost_pkts"] == pytest.approx(10_000, abs=260)
    assert result["flows"]["g"]["all"]["goodput_bps"] == pytest.approx(0.5 * 7.776e6, rel=0.03)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"burst": {"mean_good": "1s", "mean_bad": "1s", "bad": 0.5}}, "loses every packet in the bad state"),
        (None, "ns-2 runs only rates over time and constant losses"),
    ],
)
def test_losses_that_ns2_does_not_have_are_refused(change: Any, message: str) -> None:
    raw = plan(change)
    if change is None:
        raw["links"][0]["line"]["losses"] = [[0.0, 0.1], [5.0, 0.2]]
    with pytest.raises(Ns2Unsupported, match=message):
        Plan.from_dict(raw)


def test_several_connections_at_a_time_are_refused() -> None:
    raw = plan(0.1)
    raw["groups"][0] |= {"transport": {"preset": "ns2"}, "traffic": {"kind": "web", "connections": 6}, "requests": None}
    with pytest.raises(Ns2Unsupported, match="group 'g': ns-2 runs web sessions only over one connection at a time"):
        Plan.from_dict(raw)


def test_figures_of_groups_are_compared_where_a_cell_says_so() -> None:
    cell = Cell("e", "s.toml", (), "DropTail", "droptail", (("g", "fct_mean_s"), ("g", "loss_ratio")))
    link = {"early_drop_ratio": 0.0, "overflow_drop_ratio": 0.1}
    group = {
        "loss_ratio": 0.2,
        "fct_under_10kB_count": 3,
        "fct_under_10kB_mean_s": 1.0,
        "fct_10kB_100kB_count": 1,
        "fct_10kB_100kB_mean_s": 5.0,
        "fct_over_1MB_count": 0,
        "fct_over_1MB_mean_s": None,
    }
    result = {"links": {"bottleneck": {"all": link}}, "flows": {"g": {"all": group}}}
    # (3 x 1 s + 5 s) / 4.
    assert measures(result, "all", bounds={"drop_ratio": None}, flows=cell.flows) == {  # type: ignore[dict-item]
        "drop_ratio": 0.1,
        "g.fct_mean_s": 2.0,
        "g.loss_ratio": 0.2,
    }
