"""AQMs as typed objects, each a SPEC: `aqumen.run(scenario, aqm=aqumen.aqms.Pi(target=100))`.

A parameter that is left out takes its default, or is designed from the scenario's nominal network. A number is in the
unit that the field names; a text may have any unit of its kind ("5ms", "100pkt"). Values are checked when a scenario
meets the AQM.

Generated from the registry by scripts/aqm-classes: do not edit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

__all__ = [
    "Aaqm",
    "Aqm",
    "AqmMo",
    "Ared",
    "AredFeng",
    "ArmPfc",
    "ArmPfcAdaptive",
    "Avq",
    "Blue",
    "Cake",
    "Cobalt",
    "Codel",
    "Droptail",
    "Drr",
    "Dualpi2",
    "Fixed",
    "FqCodel",
    "FqPie",
    "Paqm",
    "Pi",
    "Pi2",
    "Pie",
    "Red",
    "Rem",
    "Sfq",
    "SingleQueueAqm",
    "StAqmMo",
    "StArmPfc",
    "StPi2",
    "Stpi",
    "Stred",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aqm:
    """An AQM with its parameters."""

    name: ClassVar[str]
    """The name in a SPEC."""

    def spec(self) -> str:
        """The SPEC: the name, and the parameters that are given."""
        given = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None:
                continue
            if isinstance(value, bool):
                text = str(value).lower()
            elif isinstance(value, str):
                text = value
            else:
                text = f"{value!r}{each.metadata.get('unit', '')}"
            given.append(f"{each.name.rstrip('_')}={text}")
        return self.name + (":" + ",".join(given) if given else "")

    def __str__(self) -> str:
        return self.spec()


def _in(unit: str) -> Any:
    # A number that a SPEC wants with its unit.
    return field(default=None, metadata={"unit": unit})


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleQueueAqm(Aqm):
    """An AQM of one queue, with the parameters of the threshold function that each of them takes."""

    threshold: float | str | None = None
    """Fraction of the buffer from which the signal probability rises to 1, th / Pi (by default none: the function is
    off; at least 0; at most 1)."""
    threshold_other: float | str | None = None
    """The threshold between threshold_from and threshold_until (by default none; at least 0; at most 1)."""
    threshold_from: float | str | None = _in("s")
    """When threshold_other begins (s; by default 0; at least 0; at most 1000000000)."""
    threshold_until: float | str | None = _in("s")
    """When threshold_other ends (s; by default never; at least 0; at most 1000000000)."""
    threshold_adapt: bool | None = None
    """Adapt the threshold to the loss of each traffic class, from `threshold` on (by default false)."""
    threshold_loss: float | str | None = None
    """Target loss of the adaptation, P_target (by default 0.01; above 0; at most 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Droptail(SingleQueueAqm):
    """DropTail: no AQM: packets are dropped when the buffer is full.

    Kind: single-queue. Source: -.
    """

    name = "droptail"
    ns2_limit: bool | None = None
    """Hold one packet less than the limit, as ns-2 does (by default false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(SingleQueueAqm):
    """Fixed probability: marks or drops each packet with a constant probability, to measure how senders respond.

    Kind: single-queue. Source: -.
    """

    name = "fixed"
    p: float | str | None = None
    """Signal probability of each packet (by default 0.01; at least 0; at most 1)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Red(SingleQueueAqm):
    """RED: random early detection: signals packets with a probability that rises with the average queue.

    Kind: single-queue. Source: Floyd, Jacobson: Random early detection gateways for congestion avoidance, 1993;
    ns-2.35.
    """

    name = "red"
    min_th: float | str | None = _in("pkt")
    """Average queue where signals begin (pkt; by default by the rule `thresholds`; max_th / 3 when only that is given;
    at least 0)."""
    max_th: float | str | None = _in("pkt")
    """Average queue where the probability reaches max_p (pkt; by default 3 min_th; above 0)."""
    thresholds: Literal["target", "ns2-auto", "tc"] | None = None
    """Rule for min_th: half the network's target, ns-2's max(5, target_delay ptc / 2), or tc's, a twelfth of the buffer
    (by default target)."""
    target_delay: float | str | None = _in("s")
    """Target queueing delay of thresholds = ns2-auto, ns-2's targetdelay_ (s; by default 0.005; above 0)."""
    max_p: float | str | None = None
    """Probability at max_th, ns-2's 1 / linterm_ (by default 0.1; at least 0; at most 1)."""
    weight: float | str | None = None
    """Weight of one arrival in the average, w (by default by the rule `weight_rule`; above 0; at most 1)."""
    weight_rule: Literal["fixed", "ns2-auto", "ns2-1s", "ns2-100ms", "tc"] | None = None
    """Rule for weight: 0.002, or 1 - exp(-1 / (T ptc)) with T = 10 max(0.1, 3 (link_delay + 1/ptc)), 1 s or 0.1 s; or
    tc's, for a burst of (2 min_th + max_th) / 3 (by default fixed)."""
    link_delay: float | str | None = _in("s")
    """Propagation delay of the link, for weight_rule = ns2-auto (s; by default 0; at least 0)."""
    gentle: bool | None = None
    """Above max_th the probability rises to 1 at 2 max_th instead of jumping, ns-2's gentle_ (by default true)."""
    wait: bool | None = None
    """At least 1/p packets pass between two signals, ns-2's wait_ (by default true)."""
    bytes: bool | None = None
    """A packet's probability grows with its size, ns-2's bytes_ (by default false)."""
    queue_in_bytes: bool | None = None
    """Average the queue in bytes, ns-2's queue_in_bytes_ (by default false)."""
    mean_packet: float | str | None = _in("B")
    """Mean packet size for both byte modes and the idle time, a whole number, ns-2's mean_pktsize_ (B; by default the
    network's packet size; at least 1; at most 1000000000)."""
    use_mark_p: bool | None = None
    """Drop ECN-capable packets while the probability is above mark_p, ns-2's use_mark_p_ (by default false)."""
    mark_p: float | str | None = None
    """Highest probability at which use_mark_p marks, ns-2's mark_p_ (by default 0.1; at least 0; at most 1)."""
    spacing: Literal["ns2", "linux"] | None = None
    """Spacing of signals: a random number per packet, with or without `wait` (ns2), or one per signal (linux) (by
    default ns2)."""
    above: Literal["drop", "mark"] | None = None
    """Action on an ECN-capable packet beyond the curve: drop, or mark, as in Linux without harddrop (by default
    drop)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ared(SingleQueueAqm):
    """ARED: RED that adapts its maximum probability to hold the average queue in the middle of its thresholds.

    Kind: single-queue. Source: Floyd, Gummadi, Shenker: Adaptive RED: an algorithm for increasing the robustness of
    RED's AQM, 2001; ns-2.35.
    """

    name = "ared"
    min_th: float | str | None = _in("pkt")
    """Average queue where signals begin (pkt; by default by the rule `thresholds`; max_th / 3 when only that is given;
    at least 0)."""
    max_th: float | str | None = _in("pkt")
    """Average queue where the probability reaches max_p (pkt; by default 3 min_th; above 0)."""
    thresholds: Literal["target", "ns2-auto", "tc"] | None = None
    """Rule for min_th: half the network's target, ns-2's max(5, target_delay ptc / 2), or tc's, a twelfth of the buffer
    (by default target)."""
    target_delay: float | str | None = _in("s")
    """Target queueing delay of thresholds = ns2-auto, ns-2's targetdelay_ (s; by default 0.005; above 0)."""
    max_p: float | str | None = None
    """Probability at max_th, ns-2's 1 / linterm_ (by default 0.1; at least 0; at most 1)."""
    weight: float | str | None = None
    """Weight of one arrival in the average, w (by default by the rule `weight_rule`; above 0; at most 1)."""
    weight_rule: Literal["fixed", "ns2-auto", "ns2-1s", "ns2-100ms", "tc"] | None = None
    """Rule for weight: 0.002, or 1 - exp(-1 / (T ptc)) with T = 10 max(0.1, 3 (link_delay + 1/ptc)), 1 s or 0.1 s; or
    tc's, for a burst of (2 min_th + max_th) / 3 (by default ns2-1s)."""
    link_delay: float | str | None = _in("s")
    """Propagation delay of the link, for weight_rule = ns2-auto (s; by default 0; at least 0)."""
    gentle: bool | None = None
    """Above max_th the probability rises to 1 at 2 max_th instead of jumping, ns-2's gentle_ (by default true)."""
    wait: bool | None = None
    """At least 1/p packets pass between two signals, ns-2's wait_ (by default true)."""
    bytes: bool | None = None
    """A packet's probability grows with its size, ns-2's bytes_ (by default false)."""
    queue_in_bytes: bool | None = None
    """Average the queue in bytes, ns-2's queue_in_bytes_ (by default false)."""
    mean_packet: float | str | None = _in("B")
    """Mean packet size for both byte modes and the idle time, a whole number, ns-2's mean_pktsize_ (B; by default the
    network's packet size; at least 1; at most 1000000000)."""
    use_mark_p: bool | None = None
    """Drop ECN-capable packets while the probability is above mark_p, ns-2's use_mark_p_ (by default false)."""
    mark_p: float | str | None = None
    """Highest probability at which use_mark_p marks, ns-2's mark_p_ (by default 0.1; at least 0; at most 1)."""
    spacing: Literal["ns2", "linux"] | None = None
    """Spacing of signals: a random number per packet, with or without `wait` (ns2), or one per signal (linux) (by
    default ns2)."""
    above: Literal["drop", "mark"] | None = None
    """Action on an ECN-capable packet beyond the curve: drop, or mark, as in Linux without harddrop (by default
    drop)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""
    alpha: float | str | None = None
    """Largest step of max_p upwards (by default 0.01; above 0)."""
    beta: float | str | None = None
    """Factor of max_p downwards (by default 0.9; at least 0; at most 1)."""
    top: float | str | None = None
    """Max_p grows only below this (by default 0.5; at least 0; at most 1)."""
    bottom: float | str | None = None
    """Max_p shrinks only above this (by default by the rule `bottom_rule`; at least 0; at most 1)."""
    bottom_rule: Literal["fixed", "ns2-auto"] | None = None
    """Rule for bottom: 0.01, or ns-2's min(0.01, 80000 / C), C the link's rate in bit/s: one signal in the window of a
    single flow with packets of 1000 bytes and a round trip of 0.1 s (by default fixed)."""
    interval: float | str | None = _in("s")
    """Least time between two changes (s; by default 0.5; above 0)."""
    ns2_stale_gentle: bool | None = None
    """Keep the initial curve above max_th, as ns-2 does (by default false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AredFeng(SingleQueueAqm):
    """ARED (Feng): RED that scales its maximum probability when the average queue leaves its thresholds.

    Kind: single-queue. Source: Feng, Kandlur, Saha, Shin: A self-configuring RED gateway, 1999; ns-2.35.
    """

    name = "ared-feng"
    min_th: float | str | None = _in("pkt")
    """Average queue where signals begin (pkt; by default by the rule `thresholds`; max_th / 3 when only that is given;
    at least 0)."""
    max_th: float | str | None = _in("pkt")
    """Average queue where the probability reaches max_p (pkt; by default 3 min_th; above 0)."""
    thresholds: Literal["target", "ns2-auto", "tc"] | None = None
    """Rule for min_th: half the network's target, ns-2's max(5, target_delay ptc / 2), or tc's, a twelfth of the buffer
    (by default target)."""
    target_delay: float | str | None = _in("s")
    """Target queueing delay of thresholds = ns2-auto, ns-2's targetdelay_ (s; by default 0.005; above 0)."""
    max_p: float | str | None = None
    """Probability at max_th, ns-2's 1 / linterm_ (by default 0.1; at least 0; at most 1)."""
    weight: float | str | None = None
    """Weight of one arrival in the average, w (by default by the rule `weight_rule`; above 0; at most 1)."""
    weight_rule: Literal["fixed", "ns2-auto", "ns2-1s", "ns2-100ms", "tc"] | None = None
    """Rule for weight: 0.002, or 1 - exp(-1 / (T ptc)) with T = 10 max(0.1, 3 (link_delay + 1/ptc)), 1 s or 0.1 s; or
    tc's, for a burst of (2 min_th + max_th) / 3 (by default fixed)."""
    link_delay: float | str | None = _in("s")
    """Propagation delay of the link, for weight_rule = ns2-auto (s; by default 0; at least 0)."""
    gentle: bool | None = None
    """Above max_th the probability rises to 1 at 2 max_th instead of jumping, ns-2's gentle_ (by default true)."""
    wait: bool | None = None
    """At least 1/p packets pass between two signals, ns-2's wait_ (by default true)."""
    bytes: bool | None = None
    """A packet's probability grows with its size, ns-2's bytes_ (by default false)."""
    queue_in_bytes: bool | None = None
    """Average the queue in bytes, ns-2's queue_in_bytes_ (by default false)."""
    mean_packet: float | str | None = _in("B")
    """Mean packet size for both byte modes and the idle time, a whole number, ns-2's mean_pktsize_ (B; by default the
    network's packet size; at least 1; at most 1000000000)."""
    use_mark_p: bool | None = None
    """Drop ECN-capable packets while the probability is above mark_p, ns-2's use_mark_p_ (by default false)."""
    mark_p: float | str | None = None
    """Highest probability at which use_mark_p marks, ns-2's mark_p_ (by default 0.1; at least 0; at most 1)."""
    spacing: Literal["ns2", "linux"] | None = None
    """Spacing of signals: a random number per packet, with or without `wait` (ns2), or one per signal (linux) (by
    default ns2)."""
    above: Literal["drop", "mark"] | None = None
    """Action on an ECN-capable packet beyond the curve: drop, or mark, as in Linux without harddrop (by default
    drop)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""
    alpha: float | str | None = None
    """Divisor of max_p when the average falls below min_th (by default 3; at least 1; at most 1000000)."""
    beta: float | str | None = None
    """Factor of max_p when the average rises above max_th (by default 2; at least 1; at most 1000000)."""
    ns2_stale_gentle: bool | None = None
    """Keep the initial curve above max_th, as ns-2 does (by default false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi(SingleQueueAqm):
    """PI: proportional-integral control of the queue length.

    Kind: single-queue. Source: Hollot, Misra, Towsley, Gong: On designing improved controllers for AQM routers
    supporting TCP flows, 2001.
    """

    name = "pi"
    a: float | str | None = None
    """Weight of the present error (1/pkt; by default by the rule `crossover`; above 0)."""
    b: float | str | None = None
    """Weight of the previous error, below a (1/pkt; by default by the rule `crossover`; above 0)."""
    frequency: float | str | None = _in("Hz")
    """Samples per second, f_s (Hz; by default 160; at least 0.001; at most 1000000)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    capacity: float | str | None = _in("bit/s")
    """Assumed capacity, C (bit/s; by default the network's capacity; above 0)."""
    flows: float | str | None = None
    """Assumed number of flows, N; a low estimate is the safe one (by default the network's flows; above 0)."""
    rtt: float | str | None = _in("s")
    """Assumed round-trip time without queueing; a high estimate is the safe one (s; by default the network's base RTT;
    above 0)."""
    crossover: Literal["min", "hollot", "delay"] | None = None
    """Design rule for the gains: crossover at the window pole z (hollot), at 0.5 / R0 (delay) or the lower (min) (by
    default min)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rem(SingleQueueAqm):
    """REM: random exponential marking: a price integrates rate and queue mismatch; the probability is exponential in
    it.

    Kind: single-queue. Source: Athuraliya, Low, Li, Yin: REM: active queue management, 2001; ns-2.35.
    """

    name = "rem"
    gamma: float | str | None = None
    """Step of the price per packet of mismatch (by default 0.001; above 0)."""
    phi: float | str | None = None
    """Base of the exponential: p = 1 - phi^(-price) (by default 1.001; above 1)."""
    alpha: float | str | None = None
    """Weight of the queue's mismatch relative to the rate's (by default 0.1; at least 0)."""
    inw: float | str | None = None
    """Weight of one interval in the average of the arrivals, ns-2's inw_ (by default 1; above 0; at most 1)."""
    interval: float | str | None = _in("s")
    """Time between updates, T (s; by default 0.002; above 0)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    signal_at: Literal["arrival", "dequeue"] | None = None
    """Signal packets at arrival, or mark ECN-capable packets only, at the head (dequeue), ns-2's markpkts_ (by default
    arrival)."""
    ns2_limit: bool | None = None
    """Hold one packet less than the limit, as ns-2 does (by default false)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Avq(SingleQueueAqm):
    """AVQ: adaptive virtual queue: signals packets that overflow a slower virtual queue, whose rate follows the
    arrivals.

    Kind: single-queue. Source: Kunniyur, Srikant: Analysis and design of an adaptive virtual queue (AVQ) algorithm,
    2001; ns-2.35.
    """

    name = "avq"
    gamma: float | str | None = None
    """Target utilisation (by default 0.98; above 0; at most 1)."""
    alpha: float | str | None = None
    """Speed of the virtual capacity's adaptation, 1/s (by default 0.15; above 0; at most 1000000)."""
    initial_fraction: float | str | None = None
    """Virtual capacity at the start over the link's, ns-2's ecnlim_ (by default 0.8; at least 0; at most 1)."""
    buffer_fraction: float | str | None = None
    """Virtual buffer over the real one, ns-2's buflim_ (by default 1; above 0)."""
    form: Literal["paper", "ns2"] | None = None
    """How the virtual capacity is updated: as the paper prints it, or as ns-2 does (by default paper)."""
    bytes: bool | None = None
    """Count bytes instead of packets, ns-2's queue_in_bytes_ (by default false)."""
    mean_packet: float | str | None = _in("B")
    """Mean packet size that turns the buffer's packets into bytes (B; by default the network's packet size; above
    0)."""
    spare_not_ect: bool | None = None
    """With ecn, pass signalled packets that are not ECN-capable, as ns-2 does (by default false)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blue(SingleQueueAqm):
    """BLUE: the probability rises when the buffer overflows and falls when the link is idle.

    Kind: single-queue. Source: Feng, Kandlur, Saha, Shin: BLUE: a new class of active queue management algorithms,
    1999.
    """

    name = "blue"
    freeze_time: float | str | None = _in("s")
    """Least time between two steps (s; by default 0.01; above 0)."""
    increment: float | str | None = None
    """Step at an overflow, d1 (by default 0.001; at least 0; at most 1)."""
    decrement: float | str | None = None
    """Step at an idle link, d2 (by default 0.0002; at least 0; at most 1)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPfc(SingleQueueAqm):
    """ARM-PFC: predictive functional control of the queue length with an ARMarkov model.

    Kind: single-queue. Source: Bigdeli, Haeri: ARM-PFC, an optimized AQM congestion controller in TCP/IP networks,
    2007.
    """

    name = "arm-pfc"
    capacity: float | str | None = _in("bit/s")
    """Assumed capacity, C (bit/s; by default the network's capacity; above 0)."""
    flows: float | str | None = None
    """Assumed number of flows, N (by default the network's flows; above 0)."""
    r0: float | str | None = _in("s")
    """Round-trip time at the target, R0 (s; by default base RTT + target / capacity; above 0)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    d: float | str | None = None
    """Samples per round trip: the period is Ts = R0 / d (by default 5; at least 1; at most 64)."""
    h: float | str | None = None
    """Coincidence point, samples ahead; above d (by default d + 3; at least 2; at most 128)."""
    points: float | str | None = None
    """Coincidence points: h, h + 1, ...; the reference is met in the least-squares sense; at least 2 for a ramp (by
    default 1; at least 1; at most 8)."""
    input: Literal["step", "ramp"] | None = None
    """Form of the future input: a step or a ramp; a ramp has 2 points by default (by default step)."""
    psi: float | str | None = None
    """Decay of the reference trajectory per sample, Psi (by default exp(-1 / (4 d)): the reference decays in 4 R0; at
    least 0; below 1)."""
    p0: float | str | None = None
    """Probability at the operating point (by default 2 (N / (R0 C))^2, at most 1; at least 0; at most 1)."""
    variant: Literal["A", "B", "C"] | None = None
    """Start of the prediction: measured queues (A), an internal model (B), measured queues h samples ago (C) (by
    default B)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPfcAdaptive(SingleQueueAqm):
    """Adaptive ARM-PFC: ARM-PFC whose model follows estimates of capacity and load, or is identified online.

    Kind: single-queue. Source: Bigdeli, Haeri: ARM-PFC, an optimized AQM congestion controller in TCP/IP networks,
    2007.
    """

    name = "arm-pfc-adaptive"
    method: Literal["AD3", "AD2"] | None = None
    """The model follows estimates of capacity and load (AD3), or is identified by recursive least squares (AD2) (by
    default AD3)."""
    capacity: float | str | None = _in("bit/s")
    """Assumed capacity and initial estimate, C (bit/s; by default the network's capacity; above 0)."""
    flows: float | str | None = None
    """Assumed number of flows, N (by default the network's flows; above 0)."""
    r0: float | str | None = _in("s")
    """Round-trip time at the target, R0 (s; by default base RTT + target / capacity; above 0)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    d: float | str | None = None
    """Samples per round trip: the period is Ts = R0 / d (by default 5; at least 1; at most 64)."""
    h: float | str | None = None
    """Coincidence point, samples ahead; above d (by default d + 4 with AD3, d + 2 with AD2; at least 2; at most
    128)."""
    psi: float | str | None = None
    """Decay of the reference trajectory per sample, Psi (by default exp(-1 / (4 d)): the reference decays in 4 R0; at
    least 0; below 1)."""
    p0: float | str | None = None
    """Probability at the operating point (by default 2 (N / (R0 C))^2, at most 1; at least 0; at most 1)."""
    tau_c: float | str | None = _in("s")
    """Time constant of the capacity's estimate (s; by default 5; above 0)."""
    tau_l: float | str | None = _in("s")
    """Time constant of the load's estimate (s; by default 10; above 0)."""
    c_min: float | str | None = None
    """Least capacity estimated, packets/s (by default 1; above 0)."""
    l_min: float | str | None = None
    """Least load used, 1/packets; above 0, or the law could not recover from p = 0 (by default 0.007071067811865476;
    above 0; at most 1)."""
    l_max: float | str | None = None
    """Greatest load used, 1/packets (by default 0.7071067811865476; above 0; at most 1)."""
    forgetting: float | str | None = None
    """AD2: weight of the past per sample, lambda (by default 0.998; at least 0.5; at most 1)."""
    covariance: float | str | None = None
    """AD2: initial covariance, P0 (by default 0.001; above 0; at most 1000000000)."""
    dead_zone: float | str | None = _in("pkt")
    """AD2: smaller prediction errors cause no update (pkt; by default 2; at least 0)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paqm(SingleQueueAqm):
    """PAQM: proportional-integral-differential control with a predicted queue.

    Kind: single-queue. Source: Ryu: PAQM, an adaptive and proactive queue management for end-to-end TCP congestion
    control.
    """

    name = "paqm"
    alpha: float | str | None = None
    """Step of the probability for an error as large as the target (by default 1e-6 per packet of buffer; above 0)."""
    period: float | str | None = _in("s")
    """Sampling period, Ts; below target / capacity (s; by default 50 ms, at most 15/16 of target / capacity; above
    0)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    buffer: float | str | None = _in("pkt")
    """B; above the target (pkt; by default the queue's limit; above 0)."""
    reading: Literal["X", "SUM", "DPI", "I"] | None = None
    """PI on one side of the target, else D (X); both always (SUM); D, and PI on one side (DPI); PI alone (I) (by
    default X)."""
    bound_ratio: bool | None = None
    """Bound the ratio of increments in the prediction (by default true)."""
    ratio_max: float | str | None = None
    """Greatest ratio of successive increments (by default 2; at least 0)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AqmMo(SingleQueueAqm):
    """AQM-MO: two loops, window and queue, with gains by the optimal margin method.

    Kind: single-queue. Source: Radwa: Queue management using optimal margin method to improve bottleneck link
    performance, 2015.
    """

    name = "aqm-mo"
    capacity: float | str | None = _in("bit/s")
    """Assumed capacity, C (bit/s; by default the network's capacity; above 0)."""
    flows: float | str | None = None
    """Assumed number of flows, N; a low estimate is the safe one (by default the network's flows; above 0)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing, Tp; a high estimate is the safe one (s; by default the network's base RTT;
    above 0)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    adapt_n: bool | None = None
    """Adapt the gains to the number of flows estimated from the average p (by default false)."""
    design: Literal["D1c", "D1", "D0"] | None = None
    """Delay-aware closed form (D1c), delay-aware magnitude optimum (D1), or delay-free as in the paper (D0) (by default
    D1c)."""
    h1: float | str | None = _in("s")
    """Period of the inner loop (s; by default R0 / 10, 1 to 100 ms; at least 1e-06; at most 1000000)."""
    h2: float | str | None = _in("s")
    """Period of the outer loop (s; by default 2 h1; at least 1e-06; at most 1000000)."""
    tau_rate: float | str | None = _in("s")
    """Time constant of the arrival rate's filter (s; by default R0 / 2; above 0)."""
    tau_queue: float | str | None = _in("s")
    """Time constant of the queue's filter; 0: none (s; by default 0; at least 0)."""
    p_max: float | str | None = None
    """Greatest probability (by default 1; above 0; at most 1)."""
    x_bound: float | str | None = None
    """Bound of the outer integrator, in windows W0, x_b (by default 0.5; above 0)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aaqm(SingleQueueAqm):
    """AAQM: adapts the probability until the arrival rate matches the capacity; no target queue.

    Kind: single-queue. Source: Rahmani, Ahlund, Kanter: Design of active queue management for robust control on access
    router for heterogeneous networks, 2011.
    """

    name = "aaqm"
    p1: float | str | None = None
    """Fall of the probability while U < 1, in the unit of `reading`; at most p2 (by default 0.7; at least 0)."""
    p2: float | str | None = None
    """Rise of the probability while U >= 1, in the unit of `reading` (by default 1; above 0)."""
    period: float | str | None = _in("s")
    """T; at least 3 packets' transmission time (s; by default 10 ms, at least 3 packets' transmission; above 0)."""
    capacity: float | str | None = _in("bit/s")
    """Capacity that converts idle time to packets, C (bit/s; by default the link's rate; above 0)."""
    reading: Literal["rate", "plain", "percent"] | None = None
    """P1 and p2 are probability per second (rate), per T (plain), percentage points per T (percent) (by default
    rate)."""
    u: Literal["capacity", "literal"] | None = None
    """Arrivals over what the link could send (capacity), or over departures as printed (literal) (by default
    capacity)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stpi(SingleQueueAqm):
    """STPI: self-tuning PI control of the queue length, by estimates of capacity and load.

    Kind: single-queue. Source: Zhang, Hollot, Towsley, Misra: A self-tuning structure for adaptation in TCP/AQM
    networks, 2003.
    """

    name = "stpi"
    beta: float | str | None = None
    """Crossover at beta / R; the phase margin is 35 degrees for 0.5, 56 for 0.3 (by default 0.5; above 0; at most
    0.6)."""
    frequency: float | str | None = _in("Hz")
    """Samples per second, f_s (Hz; by default 160; at least 0.001; at most 1000000)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    capacity: float | str | None = _in("bit/s")
    """Initial estimate of the capacity, C (bit/s; by default the network's capacity; above 0)."""
    load: float | str | None = None
    """Initial estimate of the load, L = N / (R C), 1/packets (by default the network's flows / (R0 C), between l_min
    and l_max; above 0)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing (s; by default the network's base RTT; above 0)."""
    rtt_with_queue: bool | None = None
    """Tune to rtt + target / C^, and not to rtt alone as the paper does (by default true)."""
    passive_rtt: bool | None = None
    """Measure rtt from the handshakes that pass; the value given holds until the first (by default false)."""
    tau_c: float | str | None = _in("s")
    """Time constant of the capacity's estimate (s; by default 5; above 0)."""
    tau_l: float | str | None = _in("s")
    """Time constant of the load's estimate (s; by default 10; above 0)."""
    c_min: float | str | None = None
    """Least capacity estimated, packets/s (by default 1; above 0)."""
    l_min: float | str | None = None
    """Least load used, 1/packets; above 0, or the law could not recover from p = 0 (by default 0.007071067811865476;
    above 0; at most 1)."""
    l_max: float | str | None = None
    """Greatest load used, 1/packets (by default 0.7071067811865476; above 0; at most 1)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stred(SingleQueueAqm):
    """STRED: self-tuning RED: thresholds, slope and averaging follow estimates of capacity and load.

    Kind: single-queue. Source: Zhang, Hollot, Towsley, Misra: A self-tuning structure for adaptation in TCP/AQM
    networks, 2003.
    """

    name = "stred"
    b_r: float | str | None = None
    """Crossover w_g = b_r min(2 L / R, 1 / R) (by default 0.5; above 0; at most 2)."""
    frequency: float | str | None = _in("Hz")
    """Samples per second (Hz; by default 20; at least 0.001; at most 1000000)."""
    target: float | str | None = _in("pkt")
    """Queue at the middle of RED's range for the initial capacity; its queueing delay stays when C^ changes (pkt; by
    default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """T_d: queueing delay at the middle of RED's range; instead of target (s; by default target / capacity; above
    0)."""
    patient: bool | None = None
    """The load's estimate is constant below min_th and no faster than K above; false: tau_l always, as in the paper (by
    default true)."""
    capacity: float | str | None = _in("bit/s")
    """Initial estimate of the capacity, C (bit/s; by default the network's capacity; above 0)."""
    load: float | str | None = None
    """Initial estimate of the load, L = N / (R C), 1/packets (by default the network's flows / (R0 C), between l_min
    and l_max; above 0)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing (s; by default the network's base RTT; above 0)."""
    rtt_with_queue: bool | None = None
    """Tune to rtt + target / C^, and not to rtt alone as the paper does (by default true)."""
    passive_rtt: bool | None = None
    """Measure rtt from the handshakes that pass; the value given holds until the first (by default false)."""
    tau_c: float | str | None = _in("s")
    """Time constant of the capacity's estimate (s; by default 5; above 0)."""
    tau_l: float | str | None = _in("s")
    """Time constant of the load's estimate (s; by default 10; above 0)."""
    c_min: float | str | None = None
    """Least capacity estimated, packets/s (by default 1; above 0)."""
    l_min: float | str | None = None
    """Least load used, 1/packets; above 0, or the law could not recover from p = 0 (by default 0.007071067811865476;
    above 0; at most 1)."""
    l_max: float | str | None = None
    """Greatest load used, 1/packets (by default 0.7071067811865476; above 0; at most 1)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StArmPfc(SingleQueueAqm):
    """ST-ARM-PFC: ARM-PFC that tunes itself to estimates of capacity, load and round-trip time.

    Kind: single-queue. Source: Bigdeli, Haeri 2007 within the structure of Zhang, Hollot, Towsley, Misra 2003.
    """

    name = "st-arm-pfc"
    d: float | str | None = None
    """Samples per initial round trip: the period is Ts = R / d (by default 5; at least 1; at most 16)."""
    lead: float | str | None = None
    """Coincidence point, samples beyond the delay (by default 4; at least 1; at most 32)."""
    pace: float | str | None = None
    """Time constant of the reference trajectory, round trips (by default 4; above 0)."""
    p0: float | str | None = None
    """Probability at the operating point (by default 2 L^2 of the initial load, at most 1; at least 0; at most 1)."""
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    capacity: float | str | None = _in("bit/s")
    """Initial estimate of the capacity, C (bit/s; by default the network's capacity; above 0)."""
    load: float | str | None = None
    """Initial estimate of the load, L = N / (R C), 1/packets (by default the network's flows / (R0 C), between l_min
    and l_max; above 0)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing (s; by default the network's base RTT; above 0)."""
    rtt_with_queue: bool | None = None
    """Tune to rtt + target / C^, and not to rtt alone as the paper does (by default true)."""
    passive_rtt: bool | None = None
    """Measure rtt from the handshakes that pass; the value given holds until the first (by default false)."""
    tau_c: float | str | None = _in("s")
    """Time constant of the capacity's estimate (s; by default 5; above 0)."""
    tau_l: float | str | None = _in("s")
    """Time constant of the load's estimate (s; by default 10; above 0)."""
    c_min: float | str | None = None
    """Least capacity estimated, packets/s (by default 1; above 0)."""
    l_min: float | str | None = None
    """Least load used, 1/packets; above 0, or the law could not recover from p = 0 (by default 0.007071067811865476;
    above 0; at most 1)."""
    l_max: float | str | None = None
    """Greatest load used, 1/packets (by default 0.7071067811865476; above 0; at most 1)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StAqmMo(SingleQueueAqm):
    """ST-AQM-MO: AQM-MO that tunes itself to estimates of capacity, load and round-trip time.

    Kind: single-queue. Source: Radwa 2015 within the structure of Zhang, Hollot, Towsley, Misra 2003.
    """

    name = "st-aqm-mo"
    target: float | str | None = _in("pkt")
    """Target queue length, q0 (pkt; by default the network's target; above 0)."""
    target_delay: float | str | None = _in("s")
    """Target as a queueing delay, instead of target (s; by default target / capacity; above 0)."""
    design: Literal["D1c", "D1", "D0"] | None = None
    """Delay-aware closed form (D1c), delay-aware magnitude optimum (D1), or delay-free as in the paper (D0) (by default
    D1c)."""
    h1: float | str | None = _in("s")
    """Period of the inner loop (s; by default R0 / 10, 1 to 100 ms; at least 1e-06; at most 1000000)."""
    h2: float | str | None = _in("s")
    """Period of the outer loop (s; by default 2 h1; at least 1e-06; at most 1000000)."""
    tau_rate: float | str | None = _in("s")
    """Time constant of the arrival rate's filter (s; by default R0 / 2; above 0)."""
    tau_queue: float | str | None = _in("s")
    """Time constant of the queue's filter; 0: none (s; by default 0; at least 0)."""
    p_max: float | str | None = None
    """Greatest probability (by default 1; above 0; at most 1)."""
    x_bound: float | str | None = None
    """Bound of the outer integrator, in windows W0, x_b (by default 0.5; above 0)."""
    capacity: float | str | None = _in("bit/s")
    """Initial estimate of the capacity, C (bit/s; by default the network's capacity; above 0)."""
    load: float | str | None = None
    """Initial estimate of the load, L = N / (R C), 1/packets (by default the network's flows / (R0 C), between l_min
    and l_max; above 0)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing (s; by default the network's base RTT; above 0)."""
    rtt_with_queue: bool | None = None
    """Tune to rtt + target / C^, and not to rtt alone as the paper does (by default true)."""
    passive_rtt: bool | None = None
    """Measure rtt from the handshakes that pass; the value given holds until the first (by default false)."""
    tau_c: float | str | None = _in("s")
    """Time constant of the capacity's estimate (s; by default 5; above 0)."""
    tau_l: float | str | None = _in("s")
    """Time constant of the load's estimate (s; by default 10; above 0)."""
    c_min: float | str | None = None
    """Least capacity estimated, packets/s (by default 1; above 0)."""
    l_min: float | str | None = None
    """Least load used, 1/packets; above 0, or the law could not recover from p = 0 (by default 0.007071067811865476;
    above 0; at most 1)."""
    l_max: float | str | None = None
    """Greatest load used, 1/packets (by default 0.7071067811865476; above 0; at most 1)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StPi2(SingleQueueAqm):
    """ST-PI2: self-tuning PI control of the queueing delay: measures capacity, load and round trip, and needs no
    settings.

    Kind: single-queue. Source: Aqumen; after Zhang, Hollot, Towsley, Misra 2003 and De Schepper, Bondarenko, Tsang,
    Briscoe 2016.
    """

    name = "st-pi2"
    sigma: float | str | None = None
    """Target delay over R / sqrt N (by default 0.3; above 0)."""
    b: float | str | None = None
    """Crossover at b / R (by default 0.25; above 0; at most 0.6)."""
    gamma: float | str | None = None
    """Signals of a flow grow with this power of its rate (by default 0.5; at least 0; at most 1)."""
    rtt: float | str | None = _in("s")
    """Round-trip time without queueing until the first handshake (s; by default 0.1; above 0)."""
    idle: float | str | None = None
    """Idle time counts as a missing delay of this many times its share of a round trip (by default 2; at least 0)."""
    exempt: float | str | None = _in("pkt")
    """Longest queue that is not signalled, and the least target (pkt; by default 1; at least 0)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Codel(SingleQueueAqm):
    """CoDel: controlled delay: signals packets at the head while the minimum sojourn time of an interval is above a
    target.

    Kind: single-queue. Source: Nichols, Jacobson, McGregor, Iyengar: Controlled Delay Active Queue Management, RFC
    8289, 2018.
    """

    name = "codel"
    target: float | str | None = _in("s")
    """Target sojourn time of a standing queue, TARGET (s; by default 0.005; above 0)."""
    interval: float | str | None = _in("s")
    """Window of the minimum sojourn time, about a large round-trip time, INTERVAL (s; by default 0.1; above 0)."""
    mtu: float | str | None = _in("B")
    """No packet is signalled with at most this much left in the queue (B; by default 1500; at least 0; at most
    1000000000)."""
    ce_threshold: float | str | None = _in("s")
    """Sojourn time above which ECN-capable packets are marked, Linux's ce_threshold (s; by default none: off; above
    0)."""
    ce_threshold_selector: Literal["any", "ect0", "ect1"] | None = None
    """Packets that `ce_threshold` marks: all ECN-capable ones, or those of one codepoint (ect1: L4S) (by default
    any)."""
    schedule: Literal["due", "now"] | None = None
    """Start of the gap after a mark: the due time of the mark, or its actual time, as in ns-3 (now) (by default
    due)."""
    arithmetic: Literal["exact", "linux"] | None = None
    """Time, 1/sqrt(count) and fractions of a quantum: exact, or rounded and by Newton steps as in Linux (by default
    exact)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait, if the link's buffer holds more (pkt; by default the link's buffer; above 0)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pie(SingleQueueAqm):
    """PIE: proportional-integral control of the queueing delay, with steps scaled to the probability and safeguards.

    Kind: single-queue. Source: Pan, Natarajan, Baker, White: PIE: a lightweight control scheme to address the
    bufferbloat problem, RFC 8033, 2017.
    """

    name = "pie"
    target: float | str | None = _in("s")
    """Queueing delay, QDELAY_REF (s; by default 0.015; above 0)."""
    interval: float | str | None = _in("s")
    """Time between updates, T_UPDATE; halve alpha with it (s; by default 0.015; above 0)."""
    alpha: float | str | None = _in("Hz")
    """Weight of the delay's error (Hz; by default 0.125; above 0)."""
    beta: float | str | None = _in("Hz")
    """Weight of the delay's change (Hz; by default 1.25; at least 0)."""
    burst: float | str | None = _in("s")
    """Burst allowance after an empty queue, MAX_BURST (s; by default 0.15; at least 0)."""
    auto_tune: bool | None = None
    """Scale the steps down while the probability is small (by default true)."""
    cap: bool | None = None
    """Limit increments to 0.02 per update from a probability of 0.1 on (by default true)."""
    delay_boost: bool | None = None
    """Add 0.02 per update above a delay of 250 ms, as Linux does (by default false)."""
    derandomize: bool | None = None
    """De-randomization: space signals by the sum of probabilities since the last one (by default true)."""
    on_off: bool | None = None
    """Activate at a third of the buffer, deactivate once the queue is empty and p = 0 (by default false)."""
    delay: Literal["sojourn", "rate"] | None = None
    """Source of the delay: sojourn time of the last packet, or backlog over measured departure rate (by default
    sojourn)."""
    mean_packet: float | str | None = _in("B")
    """No packet is signalled with at most two of these waiting; reference size of `bytemode` (B; by default the
    network's packet size; above 0)."""
    mark_p: float | str | None = None
    """Highest probability at which packets are marked, MAX_ECNTH (by default 0.1; at least 0; at most 1)."""
    start: float | str | None = _in("s")
    """Time of the first update; Linux: 500 ms (s; by default an interval; above 0)."""
    safeguards: Literal["rfc8033", "linux"] | None = None
    """Variant of burst allowance, safeguard, de-randomization and decay (by default rfc8033)."""
    bytemode: bool | None = None
    """Scale the probability of packets below mean_packet with their size (by default false)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait, if the link's buffer holds more (pkt; by default the link's buffer; above 0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pi2(SingleQueueAqm):
    """PI2: proportional-integral control of the queueing delay; the output is squared for Classic traffic.

    Kind: single-queue. Source: De Schepper, Bondarenko, Tsang, Briscoe: PI2: a linearized AQM for both Classic and
    Scalable TCP, CoNEXT 2016.
    """

    name = "pi2"
    target: float | str | None = _in("s")
    """Queueing delay (s; by default 0.02; above 0)."""
    interval: float | str | None = _in("s")
    """Time between updates, T (s; by default 0.032; above 0)."""
    alpha: float | str | None = _in("Hz")
    """Weight of the delay's error, on p' (Hz; by default 0.3125; above 0)."""
    beta: float | str | None = _in("Hz")
    """Weight of the delay's change, on p' (Hz; by default 3.125; at least 0)."""
    coupling: float | str | None = None
    """Probability of an ECT(1) packet over p', k (by default 2; at least 1; at most 1000)."""
    max_p: float | str | None = None
    """Highest probability for Classic packets (by default 0.25; at least 0; at most 1)."""
    anti_windup: Literal["none", "conditional", "back-calculation"] | None = None
    """While the queue is empty and the link idles, the integral is at most what holds the estimated load (conditional),
    or its excess decays (back-calculation); none: the published law (by default none)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cobalt(SingleQueueAqm):
    """COBALT: CoDel for responsive traffic, BLUE for unresponsive traffic.

    Kind: single-queue. Source: Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Taht: Design and evaluation of
    COBALT queue discipline, 2019.
    """

    name = "cobalt"
    target: float | str | None = _in("s")
    """Target sojourn time of a standing queue, TARGET (s; by default 0.005; above 0)."""
    interval: float | str | None = _in("s")
    """Window of the minimum sojourn time, about a large round-trip time, INTERVAL (s; by default 0.1; above 0)."""
    mtu: float | str | None = _in("B")
    """CoDel is inactive with at most this much left in the queue; 0: no such rule (B; by default 0; at least 0; at most
    1000000000)."""
    increment: float | str | None = None
    """BLUE's step at an overflow (by default 0.00390625; at least 0; at most 1)."""
    decrement: float | str | None = None
    """BLUE's step at an empty queue (by default 0.000244140625; at least 0; at most 1)."""
    blue_threshold: float | str | None = _in("s")
    """Sojourn time that counts as an overflow for BLUE (s; by default 0.4; above 0)."""
    arithmetic: Literal["exact", "linux"] | None = None
    """Time, 1/sqrt(count) and fractions of a quantum: exact, or rounded and by Newton steps as in Linux (by default
    exact)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FqCodel(Aqm):
    """FQ-CoDel: flow queueing with CoDel in each queue: flows share the link fairly, and sparse flows hardly wait.

    Kind: multi-queue. Source: Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet: The Flow Queue CoDel packet
    scheduler and AQM algorithm, RFC 8290, 2018.
    """

    name = "fq-codel"
    queues: float | str | None = None
    """Queues that flows are hashed to (by default 1024; at least 1; at most 65536)."""
    ways: float | str | None = None
    """Queues of a set of the hash: a flow whose queue is taken uses an idle one of its set (Linux: 1; CAKE: 8) (by
    default 1; at least 1; at most 64)."""
    quantum: float | str | None = _in("B")
    """Bytes that a queue may send per round (B; by default 1514; at least 1; at most 1000000000)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait in all queues, if the link's buffer holds more (pkt; by default the link's buffer; above
    0)."""
    memory: float | str | None = _in("B")
    """Bytes that may wait in all queues, if the link's buffer holds more (B; by default 33554432; at least 1; at most
    1000000000000000)."""
    truesize: bool | None = None
    """`memory` counts what the buffers of packets take in a kernel (2304 B for 1500), not their bytes on the wire (by
    default true)."""
    drop_batch: float | str | None = _in("pkt")
    """Maximum number of packets that the fattest queue loses at once at overflow (pkt; by default 64; at least 1; at
    most 1000000)."""
    emptied: Literal["old", "gone"] | None = None
    """An emptied new queue becomes old (RFC 8290), or is removed if there are no old queues (gone, as in Linux) (by
    default old)."""
    backlog: Literal["queue", "all"] | None = None
    """Backlog that CoDel compares with `mtu`: of its own queue (RFC 8289, ns-3), or of all queues (Linux) (by default
    all)."""
    half: Literal["bytes", "packets"] | None = None
    """Unit of the half that the fattest queue loses at overflow: bytes (Linux) or packets (RFC 8290) (by default
    bytes)."""
    count_drops: bool | None = None
    """Add the packets that the fattest queue loses to CoDel's count, as in Linux (by default true)."""
    target: float | str | None = _in("s")
    """Target sojourn time of a standing queue, TARGET (s; by default 0.005; above 0)."""
    interval: float | str | None = _in("s")
    """Window of the minimum sojourn time, about a large round-trip time, INTERVAL (s; by default 0.1; above 0)."""
    mtu: float | str | None = _in("B")
    """No packet is signalled with at most this much left in the queue (B; by default 1500; at least 0; at most
    1000000000)."""
    ce_threshold: float | str | None = _in("s")
    """Sojourn time above which ECN-capable packets are marked, Linux's ce_threshold (s; by default none: off; above
    0)."""
    ce_threshold_selector: Literal["any", "ect0", "ect1"] | None = None
    """Packets that `ce_threshold` marks: all ECN-capable ones, or those of one codepoint (ect1: L4S) (by default
    any)."""
    schedule: Literal["due", "now"] | None = None
    """Start of the gap after a mark: the due time of the mark, or its actual time, as in ns-3 (now) (by default
    due)."""
    arithmetic: Literal["exact", "linux"] | None = None
    """Time, 1/sqrt(count) and fractions of a quantum: exact, or rounded and by Newton steps as in Linux (by default
    exact)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FqPie(Aqm):
    """FQ-PIE: flow queueing with PIE in each queue.

    Kind: multi-queue. Source: Al-Saadi, Armitage: Dummynet AQM v0.2: CoDel, FQ-CoDel, PIE and FQ-PIE for FreeBSD's
    ipfw/dummynet framework, 2016.
    """

    name = "fq-pie"
    queues: float | str | None = None
    """Queues that flows are hashed to (by default 1024; at least 1; at most 65536)."""
    ways: float | str | None = None
    """Queues of a set of the hash: a flow whose queue is taken uses an idle one of its set (Linux: 1; CAKE: 8) (by
    default 1; at least 1; at most 64)."""
    quantum: float | str | None = _in("B")
    """Bytes that a queue may send per round (B; by default 1514; at least 1; at most 1000000000)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait in all queues, if the link's buffer holds more (pkt; by default the link's buffer; above
    0)."""
    memory: float | str | None = _in("B")
    """Bytes that may wait in all queues, if the link's buffer holds more (B; by default 33554432; at least 1; at most
    1000000000000000)."""
    truesize: bool | None = None
    """`memory` counts what the buffers of packets take in a kernel (2304 B for 1500), not their bytes on the wire (by
    default true)."""
    drop_batch: float | str | None = _in("pkt")
    """Maximum number of packets that the fattest queue loses at once at overflow (pkt; by default 64; at least 1; at
    most 1000000)."""
    emptied: Literal["old", "gone"] | None = None
    """An emptied new queue becomes old (RFC 8290), or is removed if there are no old queues (gone, as in Linux) (by
    default old)."""
    overflow: Literal["fattest", "arriving"] | None = None
    """Packets dropped at overflow: from the fattest queue (RFC 8290), or the arriving one, as in Linux (by default
    fattest)."""
    target: float | str | None = _in("s")
    """Queueing delay, QDELAY_REF (s; by default 0.015; above 0)."""
    interval: float | str | None = _in("s")
    """Time between updates, T_UPDATE; halve alpha with it (s; by default 0.015; above 0)."""
    alpha: float | str | None = _in("Hz")
    """Weight of the delay's error (Hz; by default 0.125; above 0)."""
    beta: float | str | None = _in("Hz")
    """Weight of the delay's change (Hz; by default 1.25; at least 0)."""
    burst: float | str | None = _in("s")
    """Burst allowance after an empty queue, MAX_BURST (s; by default 0.15; at least 0)."""
    auto_tune: bool | None = None
    """Scale the steps down while the probability is small (by default true)."""
    cap: bool | None = None
    """Limit increments to 0.02 per update from a probability of 0.1 on (by default true)."""
    delay_boost: bool | None = None
    """Add 0.02 per update above a delay of 250 ms, as Linux does (by default false)."""
    derandomize: bool | None = None
    """De-randomization: space signals by the sum of probabilities since the last one (by default true)."""
    on_off: bool | None = None
    """Activate at a third of the buffer, deactivate once the queue is empty and p = 0 (by default false)."""
    delay: Literal["sojourn", "rate"] | None = None
    """Source of the delay: sojourn time of the last packet, or backlog over measured departure rate (by default
    sojourn)."""
    mean_packet: float | str | None = _in("B")
    """No packet is signalled with at most two of these waiting; reference size of `bytemode` (B; by default the
    network's packet size; above 0)."""
    mark_p: float | str | None = None
    """Highest probability at which packets are marked, MAX_ECNTH (by default 0.1; at least 0; at most 1)."""
    start: float | str | None = _in("s")
    """Time of the first update; Linux: 500 ms (s; by default an interval; above 0)."""
    safeguards: Literal["rfc8033", "linux"] | None = None
    """Variant of burst allowance, safeguard, de-randomization and decay (by default rfc8033)."""
    bytemode: bool | None = None
    """Scale the probability of packets below mean_packet with their size (by default false)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dualpi2(Aqm):
    """DualPI2: two coupled queues: scalable (L4S) traffic is marked early and served first, classic traffic has a
    target delay.

    Kind: multi-queue. Source: RFC 9332.
    """

    name = "dualpi2"
    target: float | str | None = _in("s")
    """Target queuing delay of classic traffic (s; by default 0.015; above 0)."""
    tupdate: float | str | None = _in("s")
    """Time between updates of p', Tupdate (s; by default 0.016; at least 1e-06; at most 1000)."""
    alpha: float | str | None = _in("Hz")
    """Integral gain, per second of delay beyond the target and update (Hz; by default 0.16; at least 0; at most
    1000000)."""
    beta: float | str | None = _in("Hz")
    """Proportional gain, per second of change of the delay and update (Hz; by default 3.2; at least 0; at most
    1000000)."""
    k: float | str | None = None
    """Coupling factor: L4S packets are marked with k p' (by default 2; at least 1; at most 100)."""
    l4s: Literal["ramp", "step", "packets"] | None = None
    """Marking in the L queue: probability rises from min_th on (ramp), all packets above delay `step`, or with more
    than `step_packets` behind them (packets) (by default ramp)."""
    min_th: float | str | None = _in("s")
    """Delay of the L queue where the ramp begins, minTh (s; by default 0.0008; at least 0; at most 1000)."""
    range: float | str | None = _in("s")
    """Length of the ramp (s; by default 0.0004; at least 0; at most 1000)."""
    step: float | str | None = _in("s")
    """Delay of the L queue where the step lies (s; by default 0.001; at least 0; at most 1000)."""
    step_packets: float | str | None = _in("pkt")
    """Packets of the L queue above which all are marked with l4s = packets (pkt; by default 1; at least 0; at most
    1000000)."""
    min_packets: float | str | None = _in("pkt")
    """A packet with fewer packets than this behind it is not marked for the L queue's delay, Th_len (pkt; by default 1;
    at least 0; at most 1000000)."""
    scheduler: Literal["wrr", "ts-fifo"] | None = None
    """Weighted round robin, or first come first served with a head start for the L queue (by default wrr)."""
    classic_share: float | str | None = None
    """Share of the link that wrr leaves to the C queue (by default 0.1; at least 0; at most 1)."""
    shift: float | str | None = _in("s")
    """Head start of the L queue with ts-fifo (s; by default 0.05; at least 0; at most 1000)."""
    overload: bool | None = None
    """Drop L4S packets, and drop instead of marking, if p' is too high for marks to regulate (by default true)."""
    selection: Literal["recur", "random"] | None = None
    """Selection of packets: evenly spaced (recur) or random (by default recur)."""
    min_backlog: float | str | None = _in("B")
    """With less than this left in both queues p' causes no signals; Linux: two full packets, 3000 B (B; by default 0;
    at least 0; at most 1000000000)."""
    drop_early: bool | None = None
    """Decide for p' at arrival instead of at dequeue, a Linux option (by default false)."""
    any_ect: bool | None = None
    """Send ECT(0) to the L queue too, a Linux option (by default false)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait in both queues, if the link's buffer holds more (pkt; by default the link's buffer; above
    0)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cake(Aqm):
    """CAKE: flow and host isolation with COBALT in each queue, tuned to the link's rate, and traffic classes.

    Kind: multi-queue. Source: Hoeiland-Joergensen, Taht, Morton: Piece of CAKE, a comprehensive queue management
    solution for home gateways, 2018.
    """

    name = "cake"
    queues: float | str | None = None
    """Queues of each tin that flows are hashed to, rounded up to a multiple of 8 (by default 1024; at least 8; at most
    65536)."""
    quantum: float | str | None = _in("B")
    """Bytes that a queue may send per round (B; by default the tin's rate in bytes a second / 4096, at least 300, at
    most 1514 or mtu; at least 1; at most 1000000000)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait in all queues, if the link's buffer holds more (pkt; by default the link's buffer; above
    0)."""
    memory: float | str | None = _in("B")
    """Limit of the memory of packet buffers in a kernel (2304 B for 1500) (B; by default what the rate brings in 4
    intervals, at least 4 MiB, at most 10240 mtu; at least 1; at most 1000000000000000)."""
    isolation: (
        Literal["triple", "dual-src", "dual-dst", "flows", "hosts", "src-host", "dst-host", "flow-blind"] | None
    ) = None
    """Queues and fairness: per flow, fair between both hosts (triple) or between sources or destinations (dual); per
    flow only; per host only; one queue for all (by default triple)."""
    rate: float | str | None = _in("bit/s")
    """Rate that determines target, interval, quantum and the rates of tins; 0: unlimited, values as given (bit/s; by
    default the link's, as it changes; at least 0; at most 1000000000000000)."""
    mtu: float | str | None = _in("B")
    """Size of a full packet: the target is at least 1.5 of its transmission times; sojourn times up to 4 of them are
    exempt (B; by default 1514; at least 1; at most 1000000000)."""
    target: float | str | None = _in("s")
    """Target sojourn time of a standing queue, TARGET (s; by default 0.005; above 0)."""
    interval: float | str | None = _in("s")
    """Window of the minimum sojourn time, about a large round-trip time, INTERVAL (s; by default 0.1; above 0)."""
    arithmetic: Literal["exact", "linux"] | None = None
    """Time, 1/sqrt(count) and fractions of a quantum: exact, or rounded and by Newton steps as in Linux (by default
    exact)."""
    increment: float | str | None = None
    """BLUE's step at an overflow (by default 0.00390625; at least 0; at most 1)."""
    decrement: float | str | None = None
    """BLUE's step at an empty queue (by default 0.000244140625; at least 0; at most 1)."""
    tins: Literal["diffserv3", "diffserv4", "besteffort"] | None = None
    """Traffic classes by DSCP: best effort, background and latency-sensitive (diffserv3), also streaming (diffserv4),
    or one (by default diffserv3)."""
    ack_filter: Literal["off", "on", "aggressive"] | None = None
    """Drop acknowledgements that later ones in their queue make redundant: all but two (on), or all but one
    (aggressive) (by default off)."""
    ingress: bool | None = None
    """The link is downstream of the bottleneck: drops count as sent, and longer sojourn times are exempt with more
    flows (by default false)."""
    overhead: float | str | None = _in("B")
    """Bytes added to each packet on the line, for turns and the rates of tins; tc's overhead (B; by default 0; at least
    -64; at most 256)."""
    mpu: float | str | None = _in("B")
    """Least size of a packet on the line, with its overhead; tc's mpu (B; by default 0; at least 0; at most 256)."""
    atm: Literal["noatm", "atm", "ptm"] | None = None
    """Cells of the line, by tc's names: none, ATM (53 bytes carry 48), or PTM (65 bytes carry 64) (by default
    noatm)."""
    ecn: bool | None = None
    """Mark ECN-capable packets instead of dropping them (by default true)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sfq(Aqm):
    """SFQ: stochastic fairness queueing: hashed flows take turns packet by packet.

    Kind: multi-queue. Source: McKenney: Stochastic fairness queueing, INFOCOM 1990.
    """

    name = "sfq"
    queues: float | str | None = None
    """Queues that flows are hashed to (by default 1024; at least 1; at most 65536)."""
    ways: float | str | None = None
    """Queues of a set of the hash: a flow whose queue is taken uses an idle one of its set (Linux: 1; CAKE: 8) (by
    default 1; at least 1; at most 64)."""
    perturb: float | str | None = _in("s")
    """Time after which the hash is changed; 0: never (s; by default 0; at least 0; at most 1000000)."""
    head_drop: bool | None = None
    """Drop the first packet of the longest queue instead of its last (by default false)."""
    quantum: float | str | None = _in("B")
    """Bytes that a queue may send per round; Linux: a full packet (B; by default none: a packet a turn; at least 1; at
    most 1000000000)."""
    limit: float | str | None = _in("pkt")
    """Packets that may wait in all queues, if the link's buffer holds more; Linux: 127 (pkt; by default the link's
    buffer; above 0)."""
    depth: float | str | None = _in("pkt")
    """Packets that may wait in one queue; Linux: 127 (pkt; by default none; above 0)."""
    flows: float | str | None = None
    """Queues that may hold packets at a time; Linux: 128 (by default as many as queues; above 0)."""
    rehash: bool | None = None
    """Packets that wait when the hash changes move to their new queues (by default false)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drr(Aqm):
    """DRR: deficit round robin: hashed flows share the link by bytes.

    Kind: multi-queue. Source: Shreedhar, Varghese: Efficient fair queuing using deficit round robin, SIGCOMM 1995.
    """

    name = "drr"
    queues: float | str | None = None
    """Queues that flows are hashed to (by default 1024; at least 1; at most 65536)."""
    ways: float | str | None = None
    """Queues of a set of the hash: a flow whose queue is taken uses an idle one of its set (Linux: 1; CAKE: 8) (by
    default 1; at least 1; at most 64)."""
    quantum: float | str | None = _in("B")
    """Bytes that a queue may send per round (B; by default 1514; at least 1; at most 1000000000)."""
    head_drop: bool | None = None
    """Drop the first packet of the longest queue instead of its last (by default false)."""
