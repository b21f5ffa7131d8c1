"""Stable or oscillating: the theory's verdict held against packets, around networks that controllers were made for."""

import itertools
import random

import numpy as np
import pytest
from test_theory_packets import networks, scenario

import aqumen
from aqumen import theory

AQMS = ("pi", "arm-pfc", "stpi", "aqm-mo", "rem", "paqm", "stred", "red", "ared", "pie")
# Packets/s, base RTT, flows, target: windows of 3.5 and of 15.
NOMINAL = ((1250.0, 0.2, 100, 100), (3750.0, 0.2, 60, 150))


def cases(aqms, flows, rtts):
    """Scenarios at so many times the flows and the round trip that their AQM is designed for."""
    for aqm, (pps, base, count, target), more, longer in itertools.product(aqms, NOMINAL, flows, rtts):
        made = scenario(pps, longer * base, round(more * count), target)
        designed_for = [("nominal.flows", str(count)), ("nominal.base_rtt", f"{base}s")]
        yield aqm, made.set_all(designed_for), (pps, more, longer)


def random_cases(seed, count):
    """Networks drawn at random, at .25 to 2 times the flows and .5 to 2 times the round trip of their AQM's design."""
    draw = random.Random(seed)
    for k, (pps, base, flows, target) in enumerate(networks(seed, count)):
        more, longer = (float(np.exp(draw.uniform(np.log(low), np.log(2)))) for low in (0.25, 0.5))
        made = scenario(pps, longer * base, max(4, round(more * flows)), target)
        designed_for = [("nominal.flows", str(flows)), ("nominal.base_rtt", f"{base}s")]
        yield AQMS[k % len(AQMS)], made.set_all(designed_for), (round(pps), round(base, 3), flows, more, longer)


def judged(cases):
    """Of each case whether theory and packets agree, the margin, what packets do and what was to be expected.

    Only where windows are two packets and more.
    """
    for aqm, made, case in cases:
        analysis = theory.predict(made, aqm)["bottleneck"]["steady"]["analysis"]
        margins, noise = analysis["margins"], analysis["noise"]
        if margins is None or analysis["operating_point"]["window_pkts"] < 2:
            continue
        oscillates = analysis["expected"]["oscillates"]
        run = aqumen.run(made, aqm)
        series, (start, _) = run.series("bottleneck"), run.data["windows"]["steady"]
        seen = series.t_s > start
        deviation = noise["queue_std_pkts"]
        told = theory.swing(series.t_s[seen], series.queue_pkts[seen], series.probability[seen], deviation)
        if told is not None:
            yield aqm, case, oscillates == told.oscillates, margins["exact"]["gain_margin"], told, analysis["expected"]


def verdicts(aqms, flows, rtts):
    """Of the cases around the networks that AQMs were made for."""
    for *told, _ in judged(cases(aqms, flows, rtts)):
        yield told


def test_both_sides_of_the_boundary_are_told():
    rows = list(verdicts(("pi", "aqm-mo"), (0.25, 1.0), (1.0,)))
    assert len(rows) >= 6
    assert sum(row[2] for row in rows) >= len(rows) - 1


@pytest.mark.slow
def test_the_verdict_is_that_of_packets_on_two_hundred_networks():
    rows = list(verdicts(AQMS, (0.25, 0.5, 1.0, 2.0), (0.5, 1.0, 2.0)))
    for aqm, case, _, margin, told in (row for row in rows if not row[2]):
        print(aqm, case, "gain margin", margin, "packets:", told.oscillates, told.why)
    agree = float(np.mean([row[2] for row in rows]))
    print(f"{len(rows)} networks: {agree:.1%} agree")
    assert len(rows) >= 180
    assert agree >= 0.95
