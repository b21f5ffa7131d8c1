"""What today's senders do in a network, and the faults that they had."""

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
transport = { preset = "modern", packet = "1000B", delayed_ack = "none", min_rto = "1s", rto_floor = "timeout", ecn =
false }

[[flows]]
name = "cubic"
count = 5
start = ["0s", "1s"]
transport = { preset = "cubic", hystart = false, packet = "1000B", delayed_ack = "none", min_rto = "1s", rto_floor =
"timeout", ecn = false }
"""


@pytest.mark.parametrize("seed", [2, 7, 20])
def test_no_sender_is_locked_into_timeouts(seed: int) -> None:
    # By RFC 6675 a retransmission that is lost waits for the timer, and a slow start in a full queue loses the next
    # one: in these three seeds that goes on for ever.
    old = LOCK.replace("ecn = false }", 'ecn = false, loss_detection = "rfc6675", reduction = "at-once" }')
    timeouts = {}
    for name, text in {"rack": LOCK, "rfc6675": old}.items():
        result = aqumen.run(aqumen.Scenario.parse(text), seed=seed)
        timeouts[name] = sum(result.flow_group(group)["timeouts"] or 0 for group in ("reno", "cubic"))
    assert timeouts["rfc6675"] > 20
    assert timeouts["rack"] <= 2
