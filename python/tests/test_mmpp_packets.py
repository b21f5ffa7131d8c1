"""The queueing analysis against the packet engine: what it predicts lies inside the intervals that the packets give."""

import math

import pytest

import aqumen
from aqumen import mmpp
from aqumen._core import student_quantile, summary

BATCHES = 30
BATCH_S = 400
PACKET_BYTES = 1282
BUFFER_PKTS = 20
"""The packet in service counts."""


def model(service_pps, path):
    path.write_text(
        'name = "load"\npreset = "paper16"\n[queue]\nstages = 4\n'
        f'buffer = "{BUFFER_PKTS}pkt"\nservice = "{service_pps}pkt/s"\n'
    )
    return path


def scenario(service_pps):
    """Sources over a link: packets of Erlang-4 sizes give Erlang-4 service times."""
    windows = "".join(f'b{i} = ["{BATCH_S * (i + 1)}s", "{BATCH_S * (i + 2)}s"]\n' for i in range(BATCHES))
    return aqumen.Scenario.parse(
        f"""
name = "mmpp"
duration = "{BATCH_S * (BATCHES + 1)}s"
[topology]
nodes = ["a", "b"]
[[topology.links]]
name = "link"
from = "a"
to = "b"
rate = "{service_pps * PACKET_BYTES * 8}bit"
delay = "1ms"
buffer = "{BUFFER_PKTS - 1}pkt"
aqm = "test"
[[flows]]
name = "sources"
from = "a"
to = "b"
transport = {{ preset = "udp", packet = "65535B", header = "1B" }}
[flows.traffic]
kind = "mmpp"
preset = "paper16"
packet = {{ law = "erlang", mean = "{PACKET_BYTES - 1}B", stages = 4 }}
[record]
interval = "{BATCH_S}s"
[windows]
{windows}"""
    )


@pytest.mark.parametrize("service_pps", [850, 975, 1200])
def test_predictions_lie_inside_the_packets_intervals(service_pps, tmp_path):
    predicted = mmpp.solve(model(service_pps, tmp_path / "model.toml")).data["total"]
    result = aqumen.run(scenario(service_pps), "droptail")
    batches = [result.link("link", f"b{i}") for i in range(BATCHES)]
    for name, expected, seen in [
        ("loss", predicted["loss_ratio"], [batch["overflow_drop_ratio"] for batch in batches]),
        ("utilisation", predicted["accepted_pps"] / service_pps, [batch["utilization"] for batch in batches]),
        ("wait", predicted["delay_mean_s"] - 1 / service_pps, [batch["sojourn_mean_s"] for batch in batches]),
    ]:
        mean, std, _, _ = summary(seen)
        half = student_quantile(0.9995, BATCHES - 1) * std / math.sqrt(BATCHES)
        print(f"{service_pps} {name}: predicted {expected:.6g}, seen {mean:.6g} +- {half:.2g}")
        assert abs(mean - expected) < half, f"{name}: {mean} +- {half}, predicted {expected}"
        # An interval that holds anything would prove nothing.
        assert half < 0.15 * expected, name
