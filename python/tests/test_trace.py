"""The packet trace opens in Wireshark's tshark and tells what the metrics tell."""

import json
import subprocess
from pathlib import Path

import pytest

from aqumen import _core

SCENARIO = """
name = "traced"
duration = "5s"
[topology]
preset = "dumbbell"
[topology.bottleneck]
rate = "2Mbit"
delay = "10ms"
buffer = "60pkt"
[topology.access]
rate = "10Mbit"
delay = ["5ms", "10ms"]
[[flows]]
name = "ftp"
count = 4
transport = { preset = "modern", ecn = true }
"""
FIELDS = (
    "frame.time_epoch",
    "frame.interface_name",
    "ip.src",
    "ip.dsfield.ecn",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "ip.len",
)


def capture(folder: Path, aqm: str) -> tuple[dict[str, float], list[dict[str, str]]]:
    """The bottleneck's metrics over the whole run, and the packets that tshark reads."""
    file = folder / "run.pcapng"
    result = _core.run(_core.Scenario.parse(SCENARIO), aqm, 1, pcap=str(file))
    command = ["tshark", "-r", str(file), "-T", "fields", *(word for field in FIELDS for word in ("-e", field))]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    packets = [dict(zip(FIELDS, line.split("\t"), strict=True)) for line in printed.splitlines()]
    return json.loads(result.json)["links"]["bottleneck"]["all"], packets


@pytest.mark.needs("tshark")
def test_tshark_counts_the_packets_and_marks_of_the_metrics(tmp_path: Path) -> None:
    metrics, packets = capture(tmp_path, "red")
    crossed = [packet for packet in packets if packet["frame.interface_name"] == "bottleneck"]
    waiting = metrics["arrivals_pkts"] - metrics["departures_pkts"] - metrics["early_dropped_pkts"]
    waiting -= metrics["overflow_dropped_pkts"]
    # A packet is written when it is accepted: for those still in the queue at the end, the transmission lies ahead.
    assert len(crossed) == metrics["departures_pkts"] + waiting
    marked = sum(packet["ip.dsfield.ecn"] == "3" for packet in crossed)
    assert marked == metrics["marked_pkts"] > 0


@pytest.mark.needs("tshark")
def test_times_run_forward_and_acknowledgements_answer_what_was_sent(tmp_path: Path) -> None:
    _, packets = capture(tmp_path, "droptail")
    times = [float(packet["frame.time_epoch"]) for packet in packets]
    assert times == sorted(times)
    sent: dict[str, int] = {}
    for packet in packets:
        if packet["frame.interface_name"] == "bottleneck":
            end = int(packet["tcp.seq_raw"]) + int(packet["ip.len"]) - 40
            sent[packet["ip.src"]] = max(sent.get(packet["ip.src"], 0), end)
    answered = [packet for packet in packets if packet["frame.interface_name"] == "bottleneck-reverse"]
    assert answered
    # Flow f runs from 10.0.0.f to 10.128.0.f.
    for packet in answered:
        assert int(packet["tcp.ack_raw"]) <= sent[packet["ip.src"].replace("10.128.", "10.0.")] + 1
