"""The ns-3 engine: what it hands to the program, what it reads back, and a run that can be worked out by hand."""

import itertools
import os
import re
import struct
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import aqumen
from aqumen.engines.external.crosscheck import Cell, measures
from aqumen.engines.external.ns3 import Ns3Failed, Ns3Missing, Ns3Unsupported, find_program, run
from aqumen.engines.external.ns3.build import _compile
from aqumen.engines.external.ns3.crosscheck import CELLS, METRICS, drawn
from aqumen.engines.external.ns3.describe import Group, describe
from aqumen.engines.external.ns3.runner import _execute, _group_metrics, _Output, _wire_metrics, read_trace
from aqumen.engines.external.trace import length_at
from aqumen.scenario import Scenario


@pytest.fixture
def ns3() -> None:
    """Skips the test where ns-3 is missing; with CI=true nothing may be skipped."""
    try:
        find_program()
    except Ns3Missing as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


TRANSPORT: dict[str, Any] = {
    "preset": "modern",
    "variant": "sack",
    "congestion": "reno",
    "hystart": False,
    "pacing": False,
    "ecn": True,
    "packet_bytes": 1000,
    "header_bytes": 52,
    "ack_bytes": 52,
    "initial_window": 10,
    "receive_window": 10,
    "delayed_ack_s": None,
    "min_rto_s": 1.0,
    "max_rto_s": 60.0,
    "initial_rto_s": 1.0,
    "limited_transmit": True,
    "growth_limit": 2,
    "timestamps": True,
    "min_window": 2.0,
    "halve_flight": False,
    "send_overhead_s": 0.0,
    "syn": True,
}

FQ_CODEL = {
    "target": 0.005,
    "interval": 0.1,
    "mtu": 1500,
    "quantum": 1514,
    "queues": 1024,
    "drop_batch": 64,
    "ecn": True,
}

CODEL = {"name": "codel", "params": {"target": 0.005, "interval": 0.1, "mtu": 1500.0, "ecn": True}}


def plan(
    aqm: dict[str, Any] | None = None, *, flows: int = 1, window: int = 10, duration_s: float = 20.0, seed: int = 1
) -> dict[str, Any]:
    """Senders with links of their own (100 Mbit/s, 40 ms) over a bottleneck of 8 Mbit/s, 20 ms, 300 packets."""
    plain = {"name": "droptail", "params": {"ns2_limit": False}}
    nodes = ["left", "right"]
    links: list[dict[str, Any]] = []

    def link(name: str, tail: int, head: int, rate: float, delay_s: float, record: bool = False) -> int:
        links.append(
            {
                "name": name,
                "from": tail,
                "to": head,
                "rates": [[0.0, rate]],
                "delay_s": delay_s,
                "buffer_pkts": 300 if record else 100_000,
                "aqm": (aqm or plain) if record else plain,
                "record": record,
                "target_pkts": None,
            }
        )
        return len(links) - 1

    there, back = link("bottleneck", 0, 1, 8e6, 0.02, True), link("back", 1, 0, 8e6, 0.02)
    paths = []
    for k in range(flows):
        source, sink = len(nodes), len(nodes) + 1
        nodes += [f"source{k}", f"sink{k}"]
        up, down = link(f"up{k}", source, 0, 100e6, 0.04), link(f"down{k}", 0, source, 100e6, 0.04)
        out, into = link(f"out{k}", 1, sink, 100e6, 0.04), link(f"in{k}", sink, 1, 100e6, 0.04)
        paths.append(
            {
                "group": 0,
                "path": [up, there, out],
                "return_path": [into, back, down],
                "on": [[0.1 * k, None]],
                "transfer_bytes": None,
            }
        )
    return {
        "scenario": "test",
        "seed": seed,
        "duration_s": duration_s,
        "nodes": nodes,
        "links": links,
        "groups": [{"name": "ftp", "transport": TRANSPORT | {"receive_window": window}, "flows": [0, flows]}],
        "flows": paths,
        "windows": {"all": [0.0, duration_s], "steady": [duration_s / 2, duration_s]},
        "sample_interval_s": 0.1,
    }


def test_every_parameter_is_handed_over() -> None:
    lines = describe(plan(CODEL)).text.splitlines()
    assert "disc 0 ns3::CoDelQueueDisc" in lines
    # Ours is quiet with 1500 bytes left, ns-3's with less than its bound.
    for line in ("set 0 Target 0.005s", "set 0 Interval 0.1s", "set 0 MinBytes 1501", "set 0 MaxSize 300p"):
        assert line in lines
    # 948 bytes of data make 1000 on the wire.
    assert "option 0 socket SegmentSize 948" in lines
    assert "link 0 0 1 8000000.0 0.02 300p" in lines
    assert "transport 0 ns3::Rfc5681Reno 948" in lines
    assert "option 0 control GrowthLimit 2" in lines


def test_cubic_has_the_bound_of_rfc_3465_and_the_values_of_rfc_9438() -> None:
    cubic = plan(CODEL)
    cubic["groups"][0]["transport"] |= {
        "congestion": "cubic",
        "hystart": False,
        "reno_friendly": False,
        "whole_windows": True,
    }
    lines = describe(cubic).text.splitlines()
    assert "transport 0 ns3::Rfc3465Cubic 948" in lines
    for value in ("GrowthLimit 2", "Beta 0.7", "C 0.4", "FastConvergence true", "HyStart false"):
        assert f"option 0 control {value}" in lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variant": "newreno"}, "group 'ftp': ns-3 runs only the variant sack, not 'newreno'"),
        ({"min_window": 0.0}, "group 'ftp': ns-3 has min_window = 2.0 built in, not 0.0"),
        ({"send_overhead_s": 0.001}, "group 'ftp': ns-3 has send_overhead_s = 0.0 built in, not 0.001"),
        ({"header_bytes": 40}, "group 'ftp': ns-3's headers are 52 bytes with timestamps"),
        (
            {"congestion": "cubic", "whole_windows": True, "reno_friendly": True},
            "group 'ftp': the CUBIC of ns-3 has reno_friendly = False built in, not True",
        ),
        (
            {"congestion": "cubic", "whole_windows": False},
            "group 'ftp': ns-3 has whole_windows = True built in, not False",
        ),
        ({"ect_retransmissions": False}, "group 'ftp': ns-3 has ect_retransmissions = True built in, not False"),
        ({"vegas": 1}, "group 'ftp': ns-3 has no transport option 'vegas'"),
    ],
)
def test_a_transport_that_ns3_does_not_have_is_refused(change: dict[str, Any], message: str) -> None:
    raw = plan()
    raw["groups"][0]["transport"] |= change
    with pytest.raises(Ns3Unsupported, match="^" + message.replace("(", r"\(") + "$"):
        describe(raw)


def test_traffic_that_ns3_does_not_have_is_refused() -> None:
    raw = plan()
    raw["groups"][0]["traffic"] = "voip"
    with pytest.raises(Ns3Unsupported, match=r"^group 'ftp': ns-3 runs only bulk traffic over TCP, not voip$"):
        describe(raw)


def test_a_network_that_ns3_does_not_have_is_refused() -> None:
    uneven = plan()
    uneven["links"][1]["delay_s"] = 0.03
    with pytest.raises(Ns3Unsupported, match="need equal delays in both directions"):
        describe(uneven)
    twice = plan()
    twice["flows"][0]["on"] = [[0.0, 1.0], [2.0, None]]
    with pytest.raises(Ns3Unsupported, match="start once"):
        describe(twice)
    bbr = plan({"name": "fq-codel", "params": FQ_CODEL})
    bbr["groups"][0]["transport"] |= {"congestion": "bbr", "pacing": True}
    with pytest.raises(Ns3Unsupported, match="group 'ftp': the BBR of ns-3 stalls under FQ-CoDel"):
        describe(bbr)


def test_each_group_may_have_a_transport_of_its_own() -> None:
    two = plan(flows=2)
    cubic = {"congestion": "cubic", "hystart": False, "reno_friendly": False, "whole_windows": True}
    two["groups"] = [
        {"name": "a", "transport": TRANSPORT, "flows": [0, 1]},
        {"name": "b", "transport": TRANSPORT | cubic, "flows": [1, 2]},
    ]
    two["flows"][1]["group"] = 1
    lines = describe(two).text.splitlines()
    assert [line for line in lines if line.startswith(("transport", "flow"))] == [
        "transport 0 ns3::Rfc5681Reno 948",
        "transport 1 ns3::Rfc3465Cubic 948",
        "flow 2 4 0.0 -1 0 0",
        "flow 6 8 0.1 -1 1 0",
    ]
    two["groups"][1]["transport"] = TRANSPORT | {"ecn": False, "packet_bytes": 1500}
    lines = describe(two).text.splitlines()
    for line in ("transport 1 ns3::Rfc5681Reno 1448", "option 0 socket UseEcn On", "option 1 socket UseEcn Off"):
        assert line in lines
    # Groups with the same transport share it.
    two["groups"][1]["transport"] = TRANSPORT
    assert [line for line in describe(two).text.splitlines() if line.startswith("flow")][1] == "flow 6 8 0.1 -1 0 0"


UDP = {"preset": "udp", "packet_bytes": 1500, "header_bytes": 28}
CBR = {"kind": "cbr", "rate": "972kbit", "packet": "972B"}


def datagrams(traffic: Any, **transport: Any) -> dict[str, Any]:
    raw = plan()
    raw["groups"][0] |= {"transport": UDP | transport, "traffic": traffic}
    return raw


def test_datagrams_are_handed_over_with_their_periods() -> None:
    always, never = "ns3::ConstantRandomVariable[Constant=1e9]", "ns3::ConstantRandomVariable[Constant=0]"
    described = describe(datagrams(CBR))
    assert f"datagrams 2 4 0.0 -1 972 972000bps {always} {never}" in described.text.splitlines()
    assert not described.groups[0].is_tcp
    on, off = ({"law": "exponential", "mean": mean} for mean in ("800ms", "0.2s"))
    lines = describe(datagrams(CBR | {"kind": "on-off", "on": on, "off": off})).text.splitlines()
    exponential = "ns3::ExponentialRandomVariable[Mean={}]"
    assert f"datagrams 2 4 0.0 -1 972 972000bps {exponential.format(0.8)} {exponential.format(0.2)}" in lines


@pytest.mark.parametrize(
    ("traffic", "transport", "message"),
    [
        ("bulk", {}, "ns-3 runs only cbr and on-off traffic over UDP, not bulk"),
        ({"kind": "voip"}, {}, "ns-3 runs only cbr and on-off traffic over UDP, not voip"),
        (CBR, {"header_bytes": 40}, "ns-3's UDP headers are 28 bytes, not 40"),
        (CBR | {"packet": "2000B"}, {}, "a message of ns-3's generator must have 20 to 1472 bytes, not 2000"),
        (CBR | {"packet": "19B"}, {}, "a message of ns-3's generator must have 20 to 1472 bytes, not 19"),
        (
            CBR | {"kind": "on-off", "on": "1s", "off": {"law": "exponential", "mean": "1s"}},
            {},
            "ns-3 runs only exponential periods of an ON/OFF source",
        ),
    ],
)
def test_datagrams_that_ns3_does_not_have_are_refused(traffic: Any, transport: Any, message: str) -> None:
    with pytest.raises(Ns3Unsupported) as refused:
        describe(datagrams(traffic, **transport))
    assert str(refused.value) == f"group 'ftp': {message}"


def line_of(losses: list[Any], **more: Any) -> dict[str, Any]:
    return {"channel": None, "delays": [], "outages": [], "aqms": [], "losses": losses, **more}


def test_losses_on_the_wire_are_handed_over() -> None:
    raw = plan()
    burst = {"to_bad": 0.01, "to_good": 0.5, "good": 0.001}
    raw["links"][0]["line"] = line_of([[0.0, {"random": 0.02, "bit_errors": 1e-6, "burst": burst}]])
    lines = describe(raw).text.splitlines()
    for line in ("random 0 0.02", "bits 0 1e-06", "chain 0 0.01 0.5 0.001 1.0"):
        assert line in lines
    timed = {"mean_good": "900ms", "mean_bad": "0.1s", "bad": 0.5}
    raw["links"][0]["line"] = line_of([[0.0, {"burst": timed}]])
    assert "times 0 0.9 0.1 0.0 0.5" in describe(raw).text.splitlines()
    for other in (line_of([[0.0, 0.1], [5.0, 0.2]]), line_of([[0.0, 0.1]], outages=[[1.0, 2.0]])):
        raw["links"][0]["line"] = other
        with pytest.raises(Ns3Unsupported, match="ns-3 runs only rates over time and constant losses"):
            describe(raw)


def test_buffers_in_bytes_are_handed_over_where_the_discipline_has_them() -> None:
    def in_bytes(aqm: dict[str, Any]) -> list[str]:
        raw = plan(aqm)
        raw["links"][0] |= {"buffer_pkts": None, "buffer_bytes": 30_000}
        # One that is not recorded needs a discipline for it too.
        raw["links"][1] |= {"buffer_pkts": None, "buffer_bytes": 5_000}
        return describe(raw).text.splitlines()

    lines = in_bytes(CODEL)
    for line in ("set 0 MaxSize 30000B", "record 0", "disc 1 ns3::FifoQueueDisc", "set 1 MaxSize 5000B"):
        assert line in lines
    assert "record 1" not in lines
    red = {
        "min_th": 10.0, "max_th": 30.0, "max_p": 0.05, "weight": 0.002, "gentle": False, "wait": True,
        "mean_packet": 1000, "above": "drop", "ecn": True, "bytes": True, "queue_in_bytes": True,
    }  # fmt: skip
    # Thresholds are in the unit of the queue.
    lines = in_bytes({"name": "red", "params": red})
    assert {"set 0 MinTh 10000.0", "set 0 MaxTh 30000.0", "set 0 MeanPktSize 1000"} <= set(lines)
    with pytest.raises(Ns3Unsupported) as refused:
        in_bytes({"name": "red", "params": red | {"bytes": False}})
    assert (
        str(refused.value) == "link 'bottleneck': AQM 'red' in ns-3 has bytes = True with a buffer in bytes, not False"
    )
    with pytest.raises(Ns3Unsupported) as refused:
        in_bytes({"name": "fq-codel", "params": FQ_CODEL})
    assert str(refused.value) == "link 'bottleneck': the buffer of ns-3's fq-codel is in packets, not bytes"


def test_the_queues_of_fq_codel_are_quiet_with_a_packet_left() -> None:
    assert "set 0 MinBytes 1501" in describe(plan({"name": "fq-codel", "params": FQ_CODEL})).text.splitlines()


def test_red_is_handed_over_by_its_curve() -> None:
    red = {
        "min_th": 10.0,
        "max_th": 30.0,
        "max_p": 0.05,
        "weight": 0.002,
        "gentle": True,
        "wait": True,
        "mean_packet": 1000,
        "above": "drop",
        "ecn": True,
    }
    lines = describe(plan({"name": "red", "params": red})).text.splitlines()
    told = ("MinTh 10.0", "MaxTh 30.0", "LInterm 20.0", "QW 0.002", "Gentle true", "UseHardDrop true", "Ns1Compat true")
    for line in told:
        assert f"set 0 {line}" in lines


def test_an_aqm_that_ns3_does_not_have_is_refused() -> None:
    with pytest.raises(
        Ns3Unsupported, match="ns-3 has no AQM 'pi'; it has cobalt, codel, droptail, fq-codel, pie, red"
    ):
        describe(plan({"name": "pi", "params": {}}))
    with pytest.raises(Ns3Unsupported, match="AQM 'codel' in ns-3 has no parameter 'magic'"):
        describe(plan({"name": "codel", "params": CODEL["params"] | {"magic": 1.0}}))  # type: ignore[operator]
    with pytest.raises(Ns3Unsupported, match="AQM 'cobalt' in ns-3 has mtu = 0 built in, not 1500"):
        describe(plan({"name": "cobalt", "params": {"mtu": 1500}}))


def test_a_trace_is_read_by_kind(tmp_path: Path) -> None:
    records = [
        (0.5, 0, 0, 0),
        (0.5, 5, 1, 0),
        (1.0, 5, 0, 0),
        (1.0, 2, 1000, 0.5),
        (1.5, 0, 0, 0),
        (1.5, 3, 0, 0),
        (2.0, 0, 0, 0),
        (2.0, 4, 0, 0),
        (2.2, 1, 500, 0.25),
        # What was let in and dropped later has the number of its arrival; the others are those that just came.
        (2.5, 3, 1, 0),
    ]
    path = tmp_path / "link0.bin"
    path.write_bytes(b"".join(struct.pack("<4d", *record) for record in records))
    trace = read_trace(path)
    assert trace.arrived_s.tolist() == [0.5, 1.5, 2.0]
    assert (trace.left_s.tolist(), trace.left_bytes.tolist()) == ([1.0, 2.2], [1000, 500])
    assert (trace.wait_s.tolist(), trace.marked.tolist()) == ([0.5, 0.25], [True, False])
    assert (trace.early_drop_s.tolist(), trace.overflow_drop_s.tolist()) == ([1.5, 2.5], [2.0])
    assert trace.lost.tolist() == [[1.5, 2, True], [2.0, 3, False], [2.5, 1, True]]
    assert (trace.change_s.tolist(), trace.length_pkts.tolist()) == ([0.5, 1.0], [1.0, 0.0])


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AQUMEN_NS3", "/no/such/program")
    with pytest.raises(Ns3Missing, match="AQUMEN_NS3 is not a program: /no/such/program"):
        find_program()
    monkeypatch.delenv("AQUMEN_NS3")
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(Ns3Missing, match=r"apt-get install g\+\+"):
        find_program()
    failing = tmp_path / "compiler"
    failing.write_text("#!/bin/sh\necho 'x.cc:1: error: no' >&2\nexit 1\n", encoding="ascii")
    failing.chmod(0o755)
    # In a folder that is made for it, and in one that is there.
    for _ in range(2):
        with pytest.raises(Ns3Failed, match=r"^the ns-3 program does not compile: x\.cc:1: error: no$"):
            _compile(str(failing), tmp_path / "x.cc", tmp_path / "build" / "x")


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_cell_can_be_handed_over(cell: Cell) -> None:
    scenario = Scenario.load(Path(__file__).parents[2] / "validation" / cell.scenario)
    for key, value in cell.settings:
        scenario = scenario.set(key, value)
    raw = scenario.plan(1, cell.aqm)
    assert describe(raw).windows["steady"][1] == raw["duration_s"]


def test_the_cells_are_scenario_files() -> None:
    folder = Path(__file__).parents[2] / "validation"
    assert all((folder / cell.scenario).is_file() for cell in CELLS)
    assert {cell.label for cell in CELLS} >= {"CoDel", "PIE", "FQ-CoDel", "COBALT"}
    assert METRICS["queue_mean_pkts"].at(100.0) == 15.0
    # Near zero the floors hold: a fifth of a packet, one packet in ten thousand.
    assert (METRICS["queue_mean_pkts"].at(0.5), METRICS["mark_ratio"].at(0.0001)) == (0.2, 0.0001)


def test_cells_drawn_by_a_seed_repeat_and_can_be_handed_over() -> None:
    cells = drawn(3, 12)
    assert [cell.settings for cell in cells] == [cell.settings for cell in drawn(3, 12)]
    assert cells[0].settings != drawn(4, 1)[0].settings
    # A cell's cost is its packets: the dear ones come last.
    plans = [dict(cell.settings) for cell in cells]
    sizes = [int(re.findall(r'packet = "(\d+)B"', plan["flows"])[0]) for plan in plans]
    # Of rates over time the first.
    kbits = [float(re.findall(r"(\d+)kbit", plan["topology.bottleneck.rate"])[0]) for plan in plans]
    packets = [
        125.0 * kbit * float(plan["duration"].removesuffix("s")) / size
        for plan, size, kbit in zip(plans, sizes, kbits, strict=True)
    ]
    # Times are written in whole seconds, 20 at the least.
    assert all(after > 0.95 * before for before, after in itertools.pairwise(packets))
    for cell in cells:
        scenario = Scenario.load(Path(__file__).parents[2] / "validation" / cell.scenario).set_all(list(cell.settings))
        raw = scenario.plan(1, cell.aqm)
        assert describe(raw).windows["steady"][1] == raw["duration_s"]


@pytest.mark.usefixtures("ns3")
def test_datagrams_fill_a_buffer_of_bytes() -> None:
    # 12.5 kbyte too many in 1 s: 972 bytes and 28 of headers, a packet each 0.8 ms where the link takes 1 ms.
    raw = datagrams(CBR | {"rate": "9720kbit"})
    raw |= {"duration_s": 4.0, "windows": {"steady": [2.0, 4.0]}}
    raw["links"][0] |= {"buffer_pkts": None, "buffer_bytes": 10_999}
    result = run(raw)
    link, group = result["links"]["bottleneck"]["steady"], result["flows"]["ftp"]["steady"]
    # Ten packets wait, an eleventh has no room; one of five is lost.
    assert (link["queue_p5_pkts"], link["queue_p95_pkts"], link["early_dropped_pkts"]) == (9, 10, 0)
    assert link["overflow_drop_ratio"] == pytest.approx(0.2, abs=0.001)
    assert group["goodput_bps"] == pytest.approx(972 * 8 * 1000, rel=0.001)
    assert group["loss_ratio"] == pytest.approx(0.2, abs=0.001)
    assert (group["loss_burst_mean_pkts"], group["timeouts"]) == (1, None)


@pytest.mark.usefixtures("ns3")
@pytest.mark.parametrize(
    ("loss", "ratio", "run_pkts"),
    [
        (0.1, 0.1, 1 / 0.9),
        # 8000 bits, each wrong with 1e-5: 1 - (1 - 1e-5)^8000 = 0.0769.
        ({"bit_errors": 1e-5}, 0.0769, 1 / 0.9231),
        # The bad state comes once in 1 / 0.02 + 1 / 0.25 packets, lasts for four and loses all of them.
        ({"burst": {"to_bad": 0.02, "to_good": 0.25}}, 4 / 54, 4.0),
    ],
)
def test_a_wire_loses_what_it_is_told_to(loss: Any, ratio: float, run_pkts: float) -> None:
    raw = datagrams(CBR | {"rate": "5832kbit"})
    raw |= {"duration_s": 41.0, "windows": {"steady": [1.0, 41.0]}}
    raw["links"][0]["line"] = line_of([[0.0, loss]])
    result = run(raw)
    link, group = result["links"]["bottleneck"]["steady"], result["flows"]["ftp"]["steady"]
    # 750 packets a second for 40 s: 2222 to 3000 losses, in runs of which there are 550 at least.
    assert link["overflow_dropped_pkts"] == 0
    assert group["loss_ratio"] == pytest.approx(ratio, rel=0.15)
    assert group["loss_burst_mean_pkts"] == pytest.approx(run_pkts, rel=0.15)
    assert link["wire_lost_pkts"] == pytest.approx(30_000 * group["loss_ratio"], abs=100)


def test_shares_fairness_and_timeouts_are_compared_for_each_group() -> None:
    link = {"utilization": 1.0, "early_drop_ratio": 0.0, "overflow_drop_ratio": 0.0, "departures_pkts": 2000}
    groups = {
        "a": {"steady": {"goodput_bps": 3e6, "jain_fairness": 0.9, "timeouts": 4}},
        "b": {"steady": {"goodput_bps": 1e6, "jain_fairness": 0.5, "timeouts": 0}},
    }
    result = {"links": {"bottleneck": {"steady": link}}, "flows": groups}
    bounds = {name: METRICS[name] for name in ("utilization", "timeout_ratio", "jain_fairness", "goodput_share")}
    assert measures(result, "steady", bounds=bounds) == {
        "utilization": 1.0,
        "a.goodput_share": 0.75,
        "a.jain_fairness": 0.9,
        "a.timeout_ratio": 0.002,
        "b.goodput_share": 0.25,
        "b.jain_fairness": 0.5,
        "b.timeout_ratio": 0.0,
    }


@pytest.mark.usefixtures("ns3")
def test_a_window_limited_flow_sends_its_window_each_round_trip() -> None:
    result = run(plan())
    # There: 1000 B at 100, 8, 100 Mbit/s, 0.08 + 1 + 0.08 ms, and 100 ms of delay; back 52 B and 100 ms likewise.
    rtt = 0.2 + 1.16e-3 + 52 * 8 * (1 / 8e6 + 2 / 100e6)
    expected = 10 * 948 * 8 / rtt
    steady = result["flows"]["ftp"]["steady"]
    # A window more or less at either end of 10 s; the device's 2 bytes and 8 of the ACK's headers cost 0.1 %.
    assert steady["goodput_bps"] == pytest.approx(expected, rel=rtt / 10 + 0.001)
    assert steady["retransmitted_ratio"] == 0.0
    link = result["links"]["bottleneck"]["steady"]
    # The window leaves at 100 Mbit/s and arrives at 8: packet k of a burst waits k 0.92 ms, once; then acknowledgements
    # keep it spread, and nothing waits, not even behind the device.
    assert link["queue_mean_pkts"] == 0.0
    assert link["departures_pkts"] == pytest.approx(10 / rtt * 10, abs=11)


@pytest.mark.usefixtures("ns3")
def test_the_queue_holds_its_limit_and_all_packets_are_accounted_for() -> None:
    result = run(plan(flows=10, window=1000))
    link = result["links"]["bottleneck"]["all"]
    assert link["overflow_dropped_pkts"] > 0
    gone = link["departures_pkts"] + link["overflow_dropped_pkts"] + link["early_dropped_pkts"]
    assert 0 <= link["arrivals_pkts"] - gone <= 301
    series = result["series"]["bottleneck"]
    assert max(series["queue_pkts"]) <= 300
    # From the start to the end, both included.
    assert (series["t"][0], series["queue_pkts"][0], series["t"][-1]) == (0, 0, result["windows"]["all"][1])
    assert len(series["t"]) == len(series["queue_pkts"]) == len(series["p"])
    assert link["utilization"] == pytest.approx(1.0, abs=0.1)
    # 1000 B at 8 Mbit/s take 1 ms: a full link's mean queue and mean sojourn time go together (Little).
    steady = result["links"]["bottleneck"]["steady"]
    assert steady["sojourn_mean_s"] == pytest.approx(steady["queue_mean_pkts"] * 1e-3, rel=0.05)


@pytest.mark.usefixtures("ns3")
def test_a_window_grows_by_a_segment_a_round_from_its_half() -> None:
    slow = plan(window=1000, duration_s=200.0)
    for link in slow["links"][:2]:
        link["rates"] = [[0.0, 4e5]]
    slow["links"][0]["buffer_pkts"] = 10
    link = run(slow)["links"]["bottleneck"]["steady"]
    # 50 packets a second and 0.22 s: 11 in the pipe, 10 in the queue, so the window of 22 loses one. From 11 on a cycle
    # sends 11 + 12 + ... + 22 = 198 packets, and a window of 22 while it repairs the loss. With TcpLinuxReno's two
    # segments more at the end of each recovery it would be 185.
    assert link["departures_pkts"] / link["overflow_dropped_pkts"] == pytest.approx(198 + 22, rel=0.1)


@pytest.mark.usefixtures("ns3")
def test_a_round_trip_that_outgrows_the_timer_sets_it_off_once() -> None:
    # From 10 s on a packet takes 1000 x 8 / 30 kbit/s = 0.267 s, more than the least timeout of 0.2 s. The first
    # timeout is spurious, and the acknowledgements that follow tell a sender with timestamps so (RFC 7323
    # section 4.1). That of ns-3.37 samples none of them: 38.
    raw = plan(window=4, duration_s=30.0)
    raw["groups"][0]["transport"] |= {"min_rto_s": 0.2, "ecn": False}
    raw["links"][0]["rates"] = [[0.0, 8e6], [10.0, 30e3]]
    raw["windows"] = {"all": [0.0, 30.0]}
    assert raw["links"][0]["name"] == "bottleneck"
    assert 1 <= run(raw)["flows"]["ftp"]["all"]["timeouts"] <= 3


@pytest.mark.usefixtures("ns3")
def test_seeds_differ_and_repeat() -> None:
    pie = {
        "name": "pie",
        "params": {
            "target": 0.015,
            "interval": 0.015,
            "alpha": 0.125,
            "beta": 1.25,
            "burst": 0.15,
            "mean_packet": 1000,
            "cap": True,
            "derandomize": False,
            "delay": "sojourn",
            "mark_p": 0.1,
            "ecn": True,
        },
    }
    one, again, other = (run(plan(pie, flows=10, window=1000, seed=seed)) for seed in (1, 1, 2))
    assert one["links"] == again["links"]
    assert one["links"] != other["links"]
    assert one["links"]["bottleneck"]["all"]["marked_pkts"] > 0
    assert np.isfinite(one["cost"]["cpu_s"])


@pytest.mark.usefixtures("ns3")
def test_a_program_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    failing = tmp_path / "dumbbell"
    failing.write_text("#!/bin/sh\necho 'all is lost' >&2\nexit 3\n", encoding="ascii")
    failing.chmod(0o755)
    monkeypatch.setenv("AQUMEN_NS3", str(failing))
    with pytest.raises(Ns3Failed, match=r"^ns-3 stopped with status 3 and said: all is lost$"):
        run(plan())


@pytest.mark.usefixtures("ns3")
@pytest.mark.needs("tshark")
def test_codel_marks_the_packets_that_ns3_marks_and_the_window_follows(tmp_path: Path) -> None:
    """One flow leaves nothing to chance: slow start meets CoDel, whose marks end it; congestion avoidance follows."""
    text = """name = "t"
duration = "8s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "40Mbit", delay = "20ms", buffer = "1500pkt" }
access = { rate = "100Mbit", delay = "40ms" }
[[flows]]
name = "ftp"
[flows.transport]
preset = "modern"
packet = "1000B"
receive_window = "8000pkt"
delayed_ack = "none"
halve_flight = false
min_rto = "1s"
rto_floor = "timeout"
loss_detection = "rfc6675"
reduction = "at-once"
ect_retransmissions = true
"""
    (tmp_path / "t.toml").write_text(text)
    scenario = Scenario.load(tmp_path / "t.toml")
    aqumen.run(scenario, aqm="codel", pcap=tmp_path / "ours.pcapng")
    fields = [part for name in ("frame.time_epoch", "frame.len", "ip.dsfield.ecn") for part in ("-e", name)]
    command = ["tshark", "-r", str(tmp_path / "ours.pcapng"), "-T", "fields", *fields]
    rows = [
        line.split() for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    ]
    data = [(float(row[0]), row[2] == "3") for row in rows if row and int(row[1]) == 1000]
    described = describe(scenario.plan(1, "codel"))
    _execute(find_program(), described.text, tmp_path)
    trace = read_trace(tmp_path / f"link{[link.record for link in described.links].index(True)}.bin")
    full = trace.left_bytes > 500
    marks = trace.left_s[full][trace.marked[full]]
    assert len(marks) == 3
    # A packet takes 0.2 ms, and ns-3 looks at the next one.
    np.testing.assert_allclose([time for time, marked in data if marked], marks, rtol=0.0, atol=3e-4)
    # A round trip of 0.2 s after the other: slow start, the cut, a packet more each time.
    ours, theirs = (
        np.histogram(times, np.arange(0.1, 8.0, 0.2))[0] for times in ([t for t, _ in data], trace.left_s[full])
    )
    assert max(ours) > 800
    assert ours[-1] == ours[-11] + 10 == pytest.approx(620, abs=10)
    assert np.abs(ours - theirs).max() <= 2


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'all is lost' >&2; echo 'more' >&2; exit 3", "status 3 and said: all is lost"),
        ("echo 'half a line'; exit 0", "status 0 and said: half a line"),
        ("echo END; exit 1", "status 1 and said: END"),
        ("exit 0", "status 0 and said: nothing"),
    ],
)
def test_an_answer_without_its_end_is_none(tmp_path: Path, script: str, said: str) -> None:
    program = tmp_path / "dumbbell"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n", encoding="ascii")
    program.chmod(0o755)
    with pytest.raises(Ns3Failed, match=f"^ns-3 stopped with {said}$"):
        _execute(program, "text", tmp_path)


def test_what_the_program_counts_is_read_by_snapshots(tmp_path: Path) -> None:
    program = tmp_path / "dumbbell"
    lines = "S\nF 1 2 3 4 0 0 0\nF 5 6 7 8 9 1 1\nW 3 5\nS\nF 9 10 11 12 0 0 0\nF 13 14 15 16 18 5 3\nW 3 9\nEND\n"
    program.write_text(f"#!/bin/sh\ncat > seen\nprintf '%s' '{lines}'\n", encoding="ascii")
    program.chmod(0o755)
    output = _execute(program, "what to run", tmp_path)
    assert (tmp_path / "seen").read_text() == "what to run"
    assert output.snapshots == [
        [(1, 2, 3, 4, 0, 0, 0), (5, 6, 7, 8, 9, 1, 1)],
        [(9, 10, 11, 12, 0, 0, 0), (13, 14, 15, 16, 18, 5, 3)],
    ]
    assert output.wire_lost == [{3: 5}, {3: 9}]
    assert 0 <= output.cpu_s < 10
    assert 0 < output.wall_s < 100
    # Over a window figures are differences: 8 bytes delivered in 4 s, once by each of two flows.
    described = SimpleNamespace(snapshots_s=[2.0, 6.0])
    assert _wire_metrics(described, output, 3, 2.0, 6.0) == {"wire_lost_pkts": 4}
    assert _wire_metrics(described, output, 2, 2.0, 6.0) == {}
    told = _group_metrics(described, output, Group("g", 0, 2), 2.0, 6.0)
    assert told["goodput_bps"] == 2 * 8 * 8 / 4
    assert told["jain_fairness"] == 1
    # Of sixteen packets sixteen were sent again, by sixteen timeouts.
    assert (told["retransmitted_ratio"], told["timeouts"], told["rtt_mean_s"]) == (1, 16, None)
    # From the start on all counters are 0: 9 and 13 bytes in 6 s.
    told = _group_metrics(described, output, Group("g", 0, 2), 0.0, 6.0)
    assert told["goodput_bps"] == pytest.approx(22 * 8 / 6)
    assert told["jain_fairness"] == pytest.approx(22**2 / (2 * (81 + 169)))
    assert told["retransmitted_ratio"] == pytest.approx(26 / 24)
    second = _group_metrics(described, output, Group("g", 1, 2), 0.0, 2.0)
    assert (second["goodput_bps"], second["timeouts"]) == (20, 8)
    # From 2 to 6 s nine datagrams arrived and four, in two runs, did not.
    of_udp = _group_metrics(described, output, Group("g", 1, 2, False), 2.0, 6.0)
    assert (of_udp["timeouts"], of_udp["loss_ratio"], of_udp["loss_burst_mean_pkts"]) == (None, 4 / 13, 2)
    idle = _Output([[(0, 0, 0, 0, 0, 0, 0)]], [{}], 0.0, 0.0)
    told = _group_metrics(SimpleNamespace(snapshots_s=[1.0]), idle, Group("g", 0, 1), 0.0, 1.0)
    assert (told["goodput_bps"], told["jain_fairness"], told["retransmitted_ratio"]) == (0, None, None)


def test_the_queue_at_a_moment_is_that_before_it() -> None:
    trace = SimpleNamespace(change_s=np.array([1.0, 2.0, 2.5]), length_pkts=np.array([3.0, 5.0, 0.0]))
    assert length_at(trace, np.array([0.5, 1.0, 1.5, 2.0, 2.25, 3.0])).tolist() == [0, 0, 3, 3, 5, 0]
    quiet = SimpleNamespace(change_s=np.array([]), length_pkts=np.array([]))
    assert length_at(quiet, np.array([0.0, 1.0])).tolist() == [0, 0]
