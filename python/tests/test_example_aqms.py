"""AQMs of related work in examples/aqms: the known answers of their heads, limits of their parameters, and runs."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import aqumen
from aqumen import Scenario, ScenarioError, custom
from aqumen.cli import main
from aqumen.custom import Network
from aqumen.theory import design

EXAMPLES = Path(__file__).parents[2] / "examples/aqms"
SRED = custom.from_file(f"{EXAMPLES / 'sred.py'}:Sred")
DRED = custom.from_file(f"{EXAMPLES / 'dred.py'}:Dred")
SMITH_PI = custom.from_file(f"{EXAMPLES / 'smith_pi.py'}:SmithPi")


def made(cls, **params):
    """An instance on a network of 50 flows at 1000 packets/s, with a round-trip time of 0.2 s at the target."""
    one = cls()
    one.network = Network(
        capacity_bps=8e6,
        flows=50,
        base_rtt_s=0.19,
        target_pkts=10,
        packet_bytes=1000,
        link_bps=8e6,
        buffer_pkts=20,
    )
    for name, value in params.items():
        setattr(one, name, value)
    one.start()
    return one


def queue(packets, uniform=0.0, limit=60):
    return SimpleNamespace(packets=packets, limit_packets=limit, uniform=uniform)


def packet(flow):
    return SimpleNamespace(flow=flow)


def test_sred_has_three_levels_of_the_queue_and_scales_them_by_the_number_of_flows():
    simple = made(SRED, full=0)
    # Before any hit, and from sixteen flows on, the levels are 0, 0.15/4 and 0.15, at 60/6 = 10 and 60/3 = 20 packets.
    for frequency in (0.0, 1 / 1000, 1 / 16):
        simple.hit_frequency = frequency
        levels = [simple.probability(q, 60, 0) for q in (0, 9, 10, 19, 20, 60)]
        assert levels == pytest.approx([0, 0, 0.0375, 0.0375, 0.15, 0.15])
    # Four flows: 1/(256/16) = 1/16 of it. Full SRED: a hit has 1 + 4 times that.
    simple.hit_frequency = 0.25
    assert simple.probability(20, 60, 1) == pytest.approx(0.009375)
    full = made(SRED)
    full.hit_frequency = 0.25
    assert [full.probability(20, 60, hit) for hit in (0, 1)] == pytest.approx([0.009375, 0.046875])


@pytest.mark.parametrize("flows", [1, 4, 20])
def test_sred_estimates_the_number_of_flows_with_equal_rates(flows):
    sred = made(SRED, zombies=100)
    random = np.random.default_rng(1)
    heard = []
    for _ in range(40_000):
        sred.on_arrival(packet(int(random.integers(flows))), queue(0, random.random()))
        heard.append(sred.hit_frequency)
    # The filter forgets within 400 packets: its mean over 30 000 has an error of about sqrt(P (1-P) / 30 000) < 0.003.
    assert np.mean(heard[10_000:]) == pytest.approx(1 / flows, abs=0.009)


def test_sred_fills_its_list_first_and_reads_one_random_number_three_times():
    sred = made(SRED, zombies=2, full=0)
    # The list fills without early drops, whatever the queue.
    assert [sred.on_arrival(packet(flow), queue(60)) for flow in (7, 8)] == ["pass", "pass"]
    # 0.55 of a list of 2: entry 1 (0.55 * 2 = 1.1); the rest 0.1 overwrites (below 0.25); its rest 0.1/0.25 = 0.4 does
    # not drop (above 0.15).
    assert sred.on_arrival(packet(9), queue(60, 0.55)) == "pass"
    assert sred.list == [7, 9]
    # 0.7: entry 1, the rest 0.4 keeps the entry, its rest (0.4 - 0.25)/0.75 = 0.2 passes. 0.64: the rest 0.28 keeps it,
    # its rest 0.03/0.75 = 0.04 marks.
    assert [sred.on_arrival(packet(6), queue(60, draw)) for draw in (0.7, 0.64)] == ["pass", "mark"]
    assert sred.list == [7, 9]
    assert made(SRED, zombies=1, ecn=0).on_arrival(packet(1), queue(60)) == "pass"
    assert sred.hit_frequency == 0
    sred.ecn = 0
    assert sred.on_arrival(packet(6), queue(60, 0.64)) == "drop"


def test_dred_integrates_the_filtered_error():
    dred = made(DRED, alpha=0.1, beta=0.5)
    assert dred.period == pytest.approx(10 / 1000)
    # e = 10, 10: f = 5, 7.5; p = 0.1 5/20, then 0.1 7.5/20 more. Then q = 0: f = (7.5 - 10)/2 = -1.25, p = 0.0625 -
    # 0.00625, not applied below 0.9 of the target; at the threshold it is: f = (-1.25 - 1)/2 = -1.125, p = 0.05625 -
    # 0.005625.
    steps = [dred.step(SimpleNamespace(queue_pkts=q)) for q in (20, 20, 0, 9)]
    assert steps == pytest.approx([0.025, 0.0625, 0.0, 0.050625])


def test_dred_stays_within_its_limits_for_any_queue():
    dred = made(DRED, alpha=50.0, beta=1.0, theta=0.3)
    random = np.random.default_rng(2)
    found = [dred.step(SimpleNamespace(queue_pkts=q)) for q in random.integers(0, 21, 500)]
    assert min(found) == 0.0
    assert max(found) == 0.3


def test_the_transfer_function_of_dred_is_its_answer_to_an_impulse():
    dred = made(DRED, alpha=0.1, beta=0.25, threshold=0.0)
    dred.p = 0.5
    seen = [dred.step(SimpleNamespace(queue_pkts=q)) - 0.5 for q in (11, 10, 10, 10)]
    # f = 1/4, 3/16, 9/64, 27/256; their sums times 0.1/20.
    assert seen == pytest.approx([0.005 * s for s in (1 / 4, 7 / 16, 37 / 64, 175 / 256)])
    numerator, denominator = dred.transfer
    answers = [0.0, 0.0]
    for k in range(4):
        answers.append(numerator[0] * (k == 0) - denominator[1] * answers[-1] - denominator[2] * answers[-2])
    assert answers[2:] == pytest.approx(seen)


def test_smith_pi_has_the_gain_and_the_closed_loop_of_its_design():
    one = made(SMITH_PI, speed=1.0)
    assert one.integral == pytest.approx(2.5 * 5 * 5 * 2**0.5 / 1e4)
    network = {"capacity": "8Mbit", "flows": 50, "r0": "200ms", "target": "10pkt", "custom": [SMITH_PI]}
    closed = []
    for hertz in (200, 400):
        designed = design(f"smith-pi:speed=1,frequency={hertz}Hz", **network)
        assert designed.margins["stable"]
        loop = designed.loop_response([5.0], exact=False)[0]
        closed.append(loop / (1 + loop))
    # The error of sampling is proportional to the period: twice the second less the first is without it. Its gain is
    # 1/|1 + exp(-j 3 pi/4)|, its phase that of the loop without delay, -67.5 degrees, less 1 rad of delay.
    limit = 2 * closed[1] - closed[0]
    assert abs(limit) == pytest.approx(1.3066, rel=1e-3)
    assert np.degrees(np.angle(limit)) == pytest.approx(-67.5 - np.degrees(1), abs=0.1)


def test_smith_pi_at_rest_answers_the_error_alone():
    one = made(SMITH_PI)
    # A constant probability for many round trips: the model with delay has caught up with that without, the error is 0.
    one.p = 0.2
    for _ in range(2000):
        assert one.step(SimpleNamespace(queue_pkts=10.0)) == pytest.approx(one.p)
        one.p = 0.2
    changed = made(SMITH_PI)
    changed.p, changed.old_error = 0.0, 0.0
    changed.take_over(one)
    assert changed.step(SimpleNamespace(queue_pkts=10.0)) == pytest.approx(0.2, abs=1e-6)


@pytest.mark.parametrize("aqm", [SRED, DRED, SMITH_PI])
def test_each_holds_a_queue_and_repeats_itself(aqm):
    scenario = Scenario.load("arm-pfc/exp1").until("40s")
    first, again = (aqumen.run(scenario, aqm, 3).data["links"]["bottleneck"]["all"] for _ in range(2))
    assert first == again
    assert first["marked_pkts"] > 0
    assert first["utilization"] > 0.9


def test_smith_pi_holds_the_target_in_both_engines():
    scenario = Scenario.load("arm-pfc/exp1").until("60s")
    for engine in ("packet", "fluid"):
        seen = aqumen.run(scenario, SMITH_PI, 1, engine=engine).series("bottleneck")
        late = seen.queue_pkts[np.asarray(seen.t_s) > 30]
        assert np.mean(late) == pytest.approx(100, abs=10)


def test_one_command_compares_all_three(capsys, tmp_path):
    args = [f"--aqm-from={EXAMPLES / each}" for each in ("sred.py:Sred", "dred.py:Dred", "smith_pi.py:SmithPi")]
    assert main(["compare", "arm-pfc/exp1", "--aqm", "pi", *args, "--seeds", "1", "--until", "5s"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in ("sred", "dred", "smith-pi"))


@pytest.mark.parametrize(
    ("aqm", "spec", "told"),
    [
        (SRED, "sred:p_max=2", "p_max"),
        (SRED, "sred:zombies=0pkt", "zombies"),
        (DRED, "dred:beta=0", "beta"),
        (SMITH_PI, "smith-pi:speed=0", "speed"),
    ],
)
def test_a_parameter_out_of_range_is_refused(aqm, spec, told):
    with pytest.raises(ScenarioError, match=told):
        Scenario.load("arm-pfc/exp1").knowing([aqm]).plan(aqm=spec)
