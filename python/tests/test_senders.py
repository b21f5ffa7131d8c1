"""Behaviour of today's senders in a network, and their past faults."""

import pytest

import aqumen

LOCK = """
name = "lock"
title = "Five Reno and five CUBIC flows under FQ-CoDel, without ECN"
duration = "40s"
aqm = "fq-codel:ecn=false,schedule=now"

[topology]
preset = "dumbbell"

[topology.bottleneck]
rate = "10Mbit"
delay = "20ms"
buffer = "500pkt"

[topology.access]
rate = "100Mbit"
delay = ["10ms", "20ms"]

[[flows]]
name = "reno"
count = 5
start = ["0s", "1s"]
[flows.transport]
preset = "modern"
packet = "1000B"
delayed_ack = "none"
min_rto = "1s"
rto_floor = "timeout"
ecn = false

[[flows]]
name = "cubic"
count = 5
start = ["0s", "1s"]
[flows.transport]
preset = "cubic"
hystart = false
packet = "1000B"
delayed_ack = "none"
min_rto = "1s"
rto_floor = "timeout"
ecn = false
"""


@pytest.mark.parametrize("seed", [2, 7, 20])
def test_no_sender_is_locked_into_timeouts(seed: int) -> None:
    # By RFC 6675 a retransmission that is lost waits for the timer, and a slow start in a full queue may lose the next
    # one; that ends, when what was outstanding at the timeout has been repaired: a few for each of the ten flows.
    old = LOCK.replace("ecn = false\n", 'ecn = false\nloss_detection = "rfc6675"\nreduction = "at-once"\n')
    timeouts = {}
    for name, text in {"rack": LOCK, "rfc6675": old}.items():
        result = aqumen.run(aqumen.Scenario.parse(text), seed=seed)
        timeouts[name] = sum(result.flow_group(group)["timeouts"] or 0 for group in ("reno", "cubic"))
    assert 10 < timeouts["rfc6675"] <= 30
    assert timeouts["rack"] <= 2


WINDOW = """
name = "window"
title = "40 flows at a fixed probability, without a queue"
duration = "20s"
aqm = "fixed"
[topology]
preset = "dumbbell"
bottleneck = { rate = "300Mbit", delay = "25ms", buffer = "100000pkt" }
access = { rate = "1Gbit", delay = "12.5ms" }
[[flows]]
name = "ftp"
count = 40
start = ["0s", "1s"]
transport = "linux-reno"
"""


@pytest.mark.parametrize(
    ("p", "ecn", "kernel_mbps"),
    [
        (0.005, True, 97.1),
        (0.02, True, 40.2),
        (0.08, True, 18.0),
        (0.2, True, 12.1),
        (0.02, False, 39.8),
        (0.08, False, 16.8),
    ],
)
def test_the_window_over_p_is_that_of_the_kernels_reno(p: float, ecn: bool, kernel_mbps: float) -> None:
    # Goodput of Linux 6.18's Reno between two TUN devices: 40 flows, 100 ms, no queue.
    spec = f"fixed:p={p},ecn={str(ecn).lower()}"
    scenario = aqumen.Scenario.parse(WINDOW)
    runs = [aqumen.run(scenario, aqm=spec, seed=seed) for seed in (1, 2)]
    goodput = [run.flow_group("ftp", "all")["goodput_bps"] or 0 for run in runs]
    assert sum(goodput) / 2e6 == pytest.approx(kernel_mbps, rel=0.05)


def test_a_group_that_names_no_transport_runs_linux() -> None:
    unnamed = aqumen.Scenario.parse(WINDOW.replace('transport = "linux-reno"\n', ""))
    transport = unnamed.plan()["groups"][0]["transport"]
    assert (transport["preset"], transport["congestion"], transport["whole_windows"]) == ("linux", "cubic", True)


def test_a_fixed_probability_marks_or_drops_that_share() -> None:
    scenario = aqumen.Scenario.parse(WINDOW)
    marked = aqumen.run(scenario, aqm="fixed:p=0.1").link()
    dropped = aqumen.run(scenario, aqm="fixed:p=0.1,ecn=false").link()
    assert marked["mark_ratio"] == pytest.approx(0.1, rel=0.05)
    assert dropped["early_drop_ratio"] == pytest.approx(0.1, rel=0.05)
    assert dropped["mark_ratio"] == 0
    with pytest.raises(aqumen.ScenarioError, match="p"):
        aqumen.run(scenario, aqm="fixed:p=1.5")
