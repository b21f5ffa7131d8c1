"""The passive estimate of the round-trip time against networks whose round trips are known."""

from __future__ import annotations

import random

import pytest

import aqumen

ERROR = 0.2
"""Relative error of the mean that docs/aqms/stpi.md promises."""


def network(number: int, *groups: str) -> aqumen.Scenario:
    """Return a network drawn by number: rate, buffer, flows and the spread of their round trips."""
    draw = random.Random(number)
    rate = 10 ** draw.uniform(0.7, 2.0)
    longest = 10 ** draw.uniform(1.0, 2.5)
    nearest = longest / draw.choice([1, 2, 5])
    flows = draw.randint(8, 40)
    preset = draw.choice(["linux", "linux-reno"])
    buffer = max(30, round(draw.uniform(0.5, 2.0) * rate * longest / 12))
    own = groups or (
        f'[[flows]]\nname = "long"\ncount = {flows}\nstart = ["0s", "2s"]\nrtt = '
        f'["{nearest:.3f}ms", "{longest:.3f}ms"]\n'
        f'transport = {{ preset = "{preset}" }}\n',
    )
    return aqumen.Scenario.parse(
        f'name = "drawn-{number}"\nduration = "8s"\n[topology]\npreset = "dumbbell"\n[topology.bottleneck]\n'
        f'rate = "{rate:.3f}Mbit"\ndelay = "1ms"\nbuffer = "{buffer}pkt"\n[topology.access]\nrate = "10Gbit"\n'
        + "".join(own)
        + '[windows]\nsteady = "4s"\n',
        "drawn.toml",
    )


def measured(scenario: aqumen.Scenario, aqm: str) -> float | None:
    """Return the last estimate of the round trip, seconds; None if there is none."""
    state = aqumen.run(scenario, aqm=aqm, seed=1).series().state
    return float(state["rtt_passive"][-1]) if "rtt_passive" in state else None


@pytest.mark.parametrize("number", range(24))
def test_the_estimate_is_near_the_mean_round_trip(number: int) -> None:
    scenario = network(number)
    plan = scenario.plan()
    estimate = measured(scenario, "stpi:passive_rtt=true,rtt=500ms")
    assert estimate == pytest.approx(plan["nominal"]["base_rtt_s"], rel=ERROR)


def test_it_follows_the_first_handshakes_alone_through_pauses() -> None:
    pauses = (
        '[[flows]]\nname = "web"\ncount = 6\nrtt = "40ms"\ntransport = { preset = "linux" }\n'
        'traffic = { kind = "on-off", on = "200ms", off = "1s", rate = "1Mbit" }\n'
    )
    assert measured(network(3, pauses), "stred:passive_rtt=true,rtt=500ms") == pytest.approx(0.04, rel=ERROR)


@pytest.mark.parametrize("aqm", ["stpi", "stred", "st-arm-pfc", "st-aqm-mo"])
def test_without_handshakes_the_given_value_stays(aqm: str) -> None:
    calls = (
        '[[flows]]\nname = "call"\ncount = 6\nrtt = "40ms"\ntransport = "udp"\n'
        'traffic = { kind = "voip", suppress = false }\n'
    )
    assert measured(network(3, calls), f"{aqm}:passive_rtt=true") is None
