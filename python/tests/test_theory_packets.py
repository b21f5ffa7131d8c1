"""Predictions of the theory compared with the packet engine on networks drawn at random."""

import functools
import random

import numpy as np
import pytest

import aqumen
from aqumen import theory

# STRED and REM are left out: with windows above 20 packets their start alone takes longer than these runs.
AQMS = ("pi", "arm-pfc", "stpi", "aqm-mo")

hollot = functools.partial(theory.design, model="hollot")


def networks(seed: int, count: int):
    """Networks of 8 to 400 flows with windows of 3 to 40 packets, 2 to 50 Mbit/s and round trips of 40 to 400 ms."""
    draw = random.Random(seed)

    def log(low: float, high: float) -> float:
        return float(np.exp(draw.uniform(np.log(low), np.log(high))))

    found = 0
    while found < count:
        pps, base, window, share = log(250, 6000), log(0.04, 0.4), log(3, 40), draw.uniform(0.15, 0.5)
        rtt = base / (1 - share)
        flows, target = round(rtt * pps / window), round(pps * rtt * share)
        if 8 <= flows <= 400 and target >= 15:
            found += 1
            yield pps, base, flows, target


def scenario(pps: float, base: float, flows: int, target: int) -> aqumen.Scenario:
    bits, access, length = round(8000 * pps), 1000 * (base / 2 - 0.1 * base) / 2, 80 + 250 * base
    return aqumen.Scenario.parse(f"""
name = "random"
duration = "{length:g}s"
aqm = "pi"
record = {{ interval = "20ms" }}
windows = {{ steady = ["{0.35 * length:g}s", "{length:g}s"] }}
[[flows]]
name = "ftp"
count = {flows}
start = ["0s", "1s"]
[flows.transport]
preset = "ns2"
ecn = true
packet = "1000B"
ack = "40B"
receive_window = "1000pkt"
send_overhead = "{max(1, round(5e5 / pps))}us"
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "{bits}bit", delay = "{100 * base:g}ms", buffer = "{max(60, 3 * target)}pkt" }}
access = {{ rate = "{bits}bit", delay = ["{0.9 * access:g}ms", "{1.1 * access:g}ms"] }}
[nominal]
capacity = "{bits}bit"
flows = {flows}
base_rtt = "{base:g}s"
target = "{target}pkt"
packet = "1000B"
""")


def held_against_packets(seed: int, count: int):
    """Predicted over measured, network by network: share, deviation, 95th percentile; and how many were not valid."""
    rows, refused = [], 0
    for k, network in enumerate(networks(seed, count)):
        made, aqm = scenario(*network), AQMS[k % len(AQMS)]
        noise = theory.predict(made, aqm)["bottleneck"]["steady"]["analysis"]["noise"]
        if not noise["valid"]:
            refused += 1
            continue
        seen = aqumen.run(made, aqm).link("bottleneck", "steady")
        rows.append(
            (
                aqm,
                network,
                noise["probability"] / seen["mark_ratio"],
                noise["queue_std_pkts"] / seen["queue_std_pkts"],
                noise["queue_p95_pkts"] / seen["queue_p95_pkts"],
                noise["utilization_lost"] - (1 - seen["utilization"]),
            )
        )
    return rows, refused


def within(ratios, share: float) -> float:
    return float(np.mean(np.abs(np.array(ratios) - 1) <= share))


def report(rows):
    for aqm in AQMS:
        own = [row for row in rows if row[0] == aqm]
        if own:
            share, deviation, percentile, lost = (np.median([row[k] for row in own]) for k in (2, 3, 4, 5))
            print(f"{aqm} {len(own)}: p {share:.3f}, deviation {deviation:.3f}, p95 {percentile:.3f}, lost {lost:+.4f}")


def test_share_and_deviation_are_those_of_packets_on_random_networks():
    rows, refused = held_against_packets(2718, 32)
    report(rows)
    assert refused <= 4
    assert within([row[2] for row in rows], 0.10) >= 0.9
    assert within([row[3] for row in rows], 0.15) >= 0.75
    assert within([row[4] for row in rows], 0.10) >= 0.9


@pytest.mark.slow
def test_share_and_deviation_are_those_of_packets_on_two_hundred_networks():
    rows, refused = held_against_packets(31415, 200)
    report(rows)
    assert refused <= 20
    assert within([row[2] for row in rows], 0.10) >= 0.95
    assert within([row[3] for row in rows], 0.15) >= 0.80
    assert within([row[4] for row in rows], 0.10) >= 0.95


def test_the_spectrum_is_that_of_the_queue():
    pps, base, flows, target = 1250.0, 0.2, 60, 100
    made = scenario(pps, base, flows, target)
    design = hollot("pi", capacity="10Mbit", flows=flows, rtt=base, target=f"{target}pkt")
    w = np.geomspace(1e-3, 300, 4000)
    variance = np.trapezoid(design.noise_power(w), w) / np.pi
    assert np.sqrt(variance) == pytest.approx(design.noise["queue_std_pkts"], rel=0.01)
    # Half of the measured power lies below the frequency below which the predicted half lies, within a third.
    series = aqumen.run(made, "pi").series("bottleneck")
    queue = series.queue_pkts[series.t_s > 40]
    step = series.t_s[1] - series.t_s[0]
    power = np.abs(np.fft.rfft((queue - queue.mean()) * np.hanning(len(queue)))) ** 2
    measured = 2 * np.pi * np.fft.rfftfreq(len(queue), step)[np.searchsorted(np.cumsum(power), 0.5 * power.sum())]
    below = np.cumsum(design.noise_power(w) * np.gradient(w))
    predicted = w[np.searchsorted(below, 0.5 * below[-1])]
    assert measured == pytest.approx(predicted, rel=0.33)


def told_over_seen(aqm: str, network: tuple[float, float, int, int]) -> float | None:
    """The predicted deviation in that of packets; nothing where none is told."""
    made = scenario(*network)
    noise = theory.predict(made, aqm)["bottleneck"]["steady"]["analysis"]["noise"]
    seen = aqumen.run(made, aqm).link("bottleneck", "steady")["queue_std_pkts"]
    return noise["queue_std_pkts"] / seen if noise["valid"] else None


def test_even_gaps_between_signals_make_less_noise_than_tosses():
    # Under RED as much as packets do; with tosses it was about twice that. Next to the boundary none is told.
    red = [ratio for network in networks(1912, 14) if (ratio := told_over_seen("red", network)) is not None]
    assert len(red) >= 6
    assert 0.85 < np.median(red) < 1.15, red
    assert all(0.8 < ratio < 1.25 for ratio in red), red
    pie = told_over_seen("pie", (2800.0, 0.069, 38, 60))
    assert pie is not None
    assert 0.8 < pie < 1.25, pie


def test_red_next_to_the_boundary_of_stability_tells_no_deviation():
    network = {"capacity": "10Mbit", "flows": 60, "rtt": "200ms", "target": "100pkt", "model": "reno"}
    calm, close = (
        hollot(f"red:min_th=30pkt,max_th=130pkt,max_p={max_p},weight=0.002", **network) for max_p in (0.12, 0.15)
    )
    assert calm.noise["valid"]
    assert close.margins["exact"]["stable"]
    assert not close.noise["valid"]
    assert "next to the boundary of stability" in close.noise["why"]
    # What is in doubt is told all the same.
    assert close.noise["queue_std_pkts"] > 1.5 * calm.noise["queue_std_pkts"]


def test_what_the_noise_does_not_know_it_says():
    network = {"capacity": "10Mbit", "flows": 100, "rtt": "200ms", "target": "100pkt"}
    unstable = hollot("aqm-mo:flows=100,capacity=10Mbit,rtt=200ms", **network | {"flows": 12}).noise
    assert not unstable["valid"]
    assert "unstable" in unstable["why"]
    assert unstable["queue_std_pkts"] is None
    lossy = hollot("pi", **network, model="drop").noise
    assert not lossy["valid"]
    assert "losses" in lossy["why"]
    small = hollot("pi", **network | {"flows": 300}).noise
    assert not small["valid"]
    assert "time-outs" in small["why"]
    assert hollot("pi", **network).noise["valid"]
