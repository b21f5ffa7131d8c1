"""Checks of claims without packets: arithmetic, formulas and models.

A check returns `holds`, `fails`, or `inconsistent` (the paper contradicts itself, arithmetic or its own link), and the
result in words. Constants are those printed in the papers.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from aqumen import _core, engines
from aqumen.scenario import Scenario
from aqumen.theory.design import design

__all__ = ["CHECKS"]

Finding = tuple[str, str]
Array = np.ndarray[Any, Any]

CHECKS: dict[str, Callable[[], Finding]] = {}
"""Checks by name."""

EXACT = 1e-9
"""Largest error that counts as rounding of floating-point arithmetic."""
ABOUT = 0.05
"""Largest relative error that counts as rounding in a paper."""
MBIT = 1e6

# ARM-PFC's design point, section 4 a.
N, C, R0, Q0, D = 100.0, 1250.0, 0.28, 100.0, 5
TS = R0 / D
K = 40
"""Sample at which (18) and (20) are evaluated, and last sample of (13)."""
KT, TAU1, TAU2 = R0**3 * C**3 / (4 * N**2), R0, R0**2 * C / (2 * N)


def check(function: Callable[[], Finding]) -> Callable[[], Finding]:
    """Register a check under its name."""
    CHECKS[function.__name__] = function
    return function


def judged(holds: bool, says: str, otherwise: str = "fails") -> Finding:
    """Return a finding for a truth value."""
    return ("holds" if holds else otherwise), says


def exact(*errors: float) -> bool:
    """Return whether all errors are rounding of floating-point arithmetic."""
    return max(map(abs, errors)) < EXACT


def about(one: float, other: float) -> bool:
    """Return whether two values are equal up to rounding in a paper."""
    return math.isclose(one, other, rel_tol=ABOUT)


def contradiction(says: str) -> Finding:
    """Return a finding for two contradictory statements of a paper, without computation."""
    return "inconsistent", says


# ARM-PFC


@check
def pfc_equilibrium() -> Finding:
    """Equations (1) to (3): the derivatives vanish at the operating point."""
    w, p = R0 * C / N, 2 / (R0 * C / N) ** 2
    dw, dq = 1 / R0 - w / 2 * w / R0 * p, N * w / R0 - C
    return judged(exact(dw, dq), f"at W0 = {w:g}, p0 = {p:.4f} the derivatives are {dw:.1e} and {dq:.1e}")


@check
def pfc_sign() -> Finding:
    """Equations (5), (6), (11): the queue falls as p rises, so the static gain is negative."""

    def in_flight(p: float) -> float:
        # W = sqrt(2 / p) by (1), R = N W / C by (3): packets in flight, C R, are the queue plus a constant.
        return N * math.sqrt(2 / p)

    p = 2 / (R0 * C / N) ** 2
    slope = (in_flight(p * (1 + 1e-6)) - in_flight(p * (1 - 1e-6))) / (2e-6 * p)
    return judged(
        slope > 0,
        f"the static gain from (1) to (3) is {slope:.0f} packets; (6) and (11) print +{KT:.0f}, (4) has the minus",
        "inconsistent",
    )


@check
def pfc_plant() -> Finding:
    """Equation (11): gain and time constants."""
    w = R0 * C / N
    gain = C * N * w**3 / (4 * C)
    poles = (1 / R0, 2 * N / (R0**2 * C))
    error = max(abs(KT / gain - 1), abs(TAU1 * poles[0] - 1), abs(TAU2 * poles[1] - 1))
    return judged(exact(error), f"k_t = {KT:.1f}, tau1 = {TAU1:g}, tau2 = {TAU2:g}: off by {error:.0e}")


def _step(t: float) -> float:
    """Return the step response of k_t / ((tau1 s + 1) (tau2 s + 1))."""
    return KT * (1 - (TAU1 * math.exp(-t / TAU1) - TAU2 * math.exp(-t / TAU2)) / (TAU1 - TAU2))


ALPHA = (math.exp(-TS / TAU1), math.exp(-TS / TAU2))
KAPPA = (TAU1 * KT / (TAU1 - TAU2), TAU2 * KT / (TAU2 - TAU1))


@check
def pfc_discrete() -> Finding:
    """Equation (13): the pulse response against the exact step response at samples up to the K-th."""
    (a1, a2), (k1, k2) = ALPHA, KAPPA
    n1, n2 = -(a1 + a2), a1 * a2
    m1 = k1 * (1 - a1) + k2 * (1 - a2)
    m2 = -(k1 * (1 - a1) * a2 + k2 * (1 - a2) * a1)
    y = [0.0, 0.0]
    for n in range(1, K + 1):
        u1, u2 = 1.0, 1.0 if n >= 2 else 0.0
        y.append(-n1 * y[-1] - n2 * y[-2] + m1 * u1 + m2 * u2)
    error = max(abs(value - _step(n * TS)) / KT for n, value in enumerate(y[1:]))
    return judged(exact(error), f"largest difference from the exact step response: {error:.0e} of the gain")


@check
def pfc_sampling() -> Finding:
    """Equation (16) at the design point with d = 5."""
    gamma = TS / math.hypot(TAU1, TAU2)
    low, high = 0.1, 0.25
    return judged(
        low <= gamma <= high,
        f"gamma = {gamma:.4f} with the paper's own d = {D}, below the range {low:g} to {high:g}",
        "inconsistent",
    )


@check
def pfc_cutoff() -> Finding:
    """Below equation (16): sampling frequency over the cut-off frequency (-3 dB) of the plant (11)."""

    def size(w: float) -> float:
        return 1 / math.sqrt((1 + (w * TAU1) ** 2) * (1 + (w * TAU2) ** 2))

    low, high = 1e-3, 1e3
    while high / low > 1 + EXACT:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if size(middle) > math.sqrt(0.5) else (low, middle)
    together = math.hypot(TAU1, TAU2)
    ratios = [2 * math.pi / (gamma * together) / low for gamma in (0.25, 0.1)]
    return judged(
        all(4 <= ratio <= 10 for ratio in ratios),
        f"the cut-off is {low:.3f} rad/s, so that gamma from 0.25 to 0.1 samples {ratios[0]:.1f} to {ratios[1]:.1f}"
        " times as fast; 4 to 10 is 1 / gamma: hertz over radians per second",
        "inconsistent",
    )


@check
def pfc_accumulated() -> Finding:
    """Abstract: the error of the predictor (21) against that of the one-step model (12), iterated h times.

    The plant has half the flows of the model. Both predictors start from the same two measurements and past inputs.
    """
    h = D + 2
    (a1, a2), (k1, k2) = ALPHA, KAPPA
    n1, n2, m1 = -(a1 + a2), a1 * a2, k1 * (1 - a1) + k2 * (1 - a2)
    m2 = -(k1 * (1 - a1) * a2 + k2 * (1 - a2) * a1)
    slow = math.exp(-TS / (2 * TAU2))
    u = np.random.default_rng(2).normal(size=K + D + h + 2)
    u[K:] = u[K]
    plant = np.zeros((2, len(u)))
    for k in range(1, len(u)):
        past = u[k - D - 1] if k > D else 0.0
        plant[0, k] = a1 * plant[0, k - 1] + k1 * (1 - a1) * past
        plant[1, k] = slow * plant[1, k - 1] + 2 * k2 * (1 - slow) * past
    y = plant.sum(axis=0)
    # One step at a time, from measured values.
    now, before = y[K], y[K - 1]
    for k in range(K + 1, K + h + 1):
        now, before = -n1 * now - n2 * before + m1 * u[k - 1 - D] + m2 * u[k - 2 - D], now
    # In closed form: the modes that explain both measurements, by (20) corrected, then (18) corrected.
    drive = (k1 * (1 - a1) + k2 * (1 - a2)) * u[K - D - 1]
    first = (y[K] - a2 * y[K - 1] - drive) / (a1 - a2)
    modes = (a1 * first + k1 * (1 - a1) * u[K - D - 1], a2 * (y[K - 1] - first) + k2 * (1 - a2) * u[K - D - 1])
    closed = sum(
        a**h * mode + gain * (1 - a) * sum(a ** (h - 1 - j) * u[K - D + j] for j in range(h))
        for a, gain, mode in zip(ALPHA, KAPPA, modes, strict=True)
    )
    apart = abs(closed - now) / abs(y).max()
    errors = [100 * abs(each - y[K + h]) / abs(y).max() for each in (closed, now)]
    return judged(
        errors[0] < errors[1] and not exact(apart),
        f"with half the flows (21) is off by {errors[0]:.1f} % of the range after {h} samples, and so is the one-step"
        f" model stepped {h} times ({errors[1]:.1f} %): two forms of one model, equal within rounding",
    )


def _modes() -> tuple[Array, Array]:
    """Return the two modes by (15) for random inputs (rows y1, y2), and the inputs."""
    u = np.random.default_rng(1).normal(size=K + D + 1)
    y = np.zeros((2, len(u)))
    for k in range(1, len(u)):
        past = u[k - D - 1] if k > D else 0.0
        for i in range(2):
            y[i, k] = ALPHA[i] * y[i, k - 1] + KAPPA[i] * (1 - ALPHA[i]) * past
    return y, u


@check
def pfc_prediction() -> Finding:
    """Equation (18) as printed, against (15) run forward."""
    y, u = _modes()
    errors = []
    for i in range(2):
        a, g = ALPHA[i], KAPPA[i] * (1 - ALPHA[i])
        printed = a**D * y[i, K] + g * u[K] + sum(a ** (D - 1 - j) * u[K - D + j] for j in range(D))
        errors.append(abs(printed - y[i, K + D]) / abs(y[i]).max())
    return judged(
        exact(*errors),
        f"(18) as printed misses (15) by {_percent(errors)}: the bracket lacks k_i (1 - alpha_i), and u(k) is too much",
        "inconsistent",
    )


def _percent(errors: list[float]) -> str:
    """Format the errors of both modes."""
    return " and ".join(f"{100 * error:.2f} %" for error in errors)


@check
def pfc_modes() -> Finding:
    """Equation (20) as printed: the modes from two measurements."""
    y, u = _modes()
    total = y.sum(axis=0)
    (a1, a2), (k1, k2) = ALPHA, KAPPA
    drive = (k1 * (1 - a1) + k2 * (1 - a2)) * u[K - D - 1]
    printed = (
        a1 / (a1 - a2) * (total[K] - a2 * total[K - 1] - drive),
        a2 / (a2 - a1) * (total[K] - a1 * total[K - 1] - drive),
    )
    errors = [abs(printed[i] - y[i, K]) / abs(y[i]).max() for i in range(2)]
    return judged(
        exact(*errors),
        f"(20) as printed misses the modes of (14) and (15) by {_percent(errors)}: it gives alpha_i"
        f" y_i(k-1), without the input",
        "inconsistent",
    )


@check
def pfc_round_trip() -> Finding:
    """Section 4 a: R0."""
    r0 = 0.2 + Q0 / C
    return judged(math.isclose(r0, R0), f"200 ms + 100 / 1250 s = {1000 * r0:g} ms")


@check
def pfc_psi() -> Finding:
    """Section 4 a: Psi = 0.83 as a time constant of 4 R0, by (23)."""
    t_r, wanted = -TS / math.log(0.83), 4 * R0
    return judged(
        about(t_r, wanted),
        f"by (23) Psi = 0.83 is a time constant of {t_r / R0:.3f} R0; 4 R0 asks for {math.exp(-TS / wanted):.4f}",
        "inconsistent",
    )


@check
def pfc_pi_gains() -> Finding:
    """Section 4 a: PI by the procedure of its reference [8] for the network that is given."""
    gains = design("pi:crossover=hollot", capacity="10Mbit", flows=N, r0=R0, target="100pkt", model="hollot").gains
    a, printed = float(gains["a"]), 6.48e-7
    return judged(
        about(a, printed),
        f"the procedure gives a = {a:.3g}, {a / printed:.0f} times the printed",
        "inconsistent",
    )


@check
def pfc_operations() -> Finding:
    """Equations (21), (27): multiplications per sample for horizons of 7 to 15."""
    # beta1, beta2; the last d inputs; the previous input; Psi^h - 1; the division by the gain: independent of h.
    count = 2 + D + 1 + 1 + 1
    # With one move, by generalised predictive control (GPC) 7 operations for each step of the model and 2 for the move;
    # by dynamic matrix control (DMC) 2 for each sample until the step response is within 1 % of its end, and 4.
    h = D + 2
    settled = next(n for n in itertools.count(1) if abs(_step(n * TS) / KT - 1) < 0.01)
    # The own operations are counted in the source of the law, in `benches/update.rs`.
    own, gpc, dmc = 29, 7 * h + 2, 2 * (settled + D) + 4
    return judged(
        own < min(gpc, dmc),
        f"{count} multiplications a sample, whatever the horizon; {own} operations in all, GPC takes {gpc}, DMC {dmc}",
    )


@check
def pfc_agreement() -> Finding:
    """Experiment 4: "agreement with the results of section 3"."""
    return contradiction(
        "section 3 derives a control law and gives no figure of performance, so there is nothing to agree with"
    )


@check
def pfc_exp4() -> Finding:
    """Experiment 4: the operating point of 300 flows in the paper's model."""
    p = 2 / (R0 * C / 300) ** 2
    return judged(
        p <= 1, f"(1) asks for p0 = {p:.3f} to hold 100 packets with 300 flows: no probability", "inconsistent"
    )


@check
def pfc_exp5_capacity() -> Finding:
    """Experiment 5: "the same network setting as Exp. 1" has 8 Mbit/s, and falls from 10."""
    return contradiction("experiment 1 has 8 Mbit/s; here the capacity falls from 10 to 6 Mbit/s")


@check
def pfc_exp5_goodput() -> Finding:
    """Experiment 5: what the link can carry in 100 s."""
    room, printed = (70 * 10 + 30 * 6) * MBIT / 8, 124464043
    return judged(
        room >= printed,
        f"read as bytes (packets would be {printed * 8000 / 100 / MBIT:.0f} Mbit/s), the link carries"
        f" {room:.0f}: {100 * (1 - room / printed):.1f} % less",
        "inconsistent",
    )


@check
def pfc_udp_load() -> Finding:
    """Experiment 8: the load of 150 sources of 20 kbyte/s, half of the time ON."""
    load, link = 150 * 20e3 * 8 / 2 / MBIT, 10
    return judged(load < link, f"they offer {load:g} Mbit/s to a link of {link} Mbit/s", "inconsistent")


# PAQM


@check
def paqm_plant_error() -> Finding:
    """Section 2.1: the steady error of the plant under unit feedback."""
    n, c, r0, reference = 60.0, 3750.0, 0.246, 1.0
    gain = (r0 * c**2 / (2 * n**2)) * (r0**2 * c / (2 * n)) * (n / r0) * r0
    error = reference / (1 + gain)
    printed = reference / (1 + (r0 * c) ** 3 / (4 * n**2))
    return judged(math.isclose(error, printed), f"P(0) = {gain:.4g}; the error is {error:.4g} as printed")


@check
def paqm_error_sum() -> Finding:
    """Before equation (4): e(k-1) + e(k-3) with e = Q - Q_ref."""
    of_target, printed = -1 - 1, 2
    return judged(
        about(of_target, printed),
        f"the sum is Q + Q - {-of_target} Q_ref; + {printed} Q_ref is printed",
        "inconsistent",
    )


@check
def paqm_pi_step() -> Finding:
    """Equation (5) as printed, with both queues at the target."""
    step = 8e-4 * (200 + 200) / 2 - 200 / 200
    return judged(
        not step,
        f"at Q = Q_ref (5) as printed changes p by {step:.4f}; normalised as the text says it is 0",
        "inconsistent",
    )


@check
def paqm_velocity() -> Finding:
    """Equation (4) against the difference of two sums of (3) with K_D = 0, T_I = 2 T_s."""
    e = {0: 30.0, 1: -20.0, 3: 5.0}
    kp, ts, ti = 8e-4, 1.0, 2.0
    true = kp * (e[0] - e[1]) + ts / ti * (e[1] - e[3])
    printed = kp * (e[0] - (e[1] + e[3]) / 2)
    return judged(
        math.isclose(true, printed),
        f"with errors 30, -20, 0, 5 and the paper's gain the velocity form of (3) is {true:.4g}, (4) gives"
        f" {printed:.3g}; they are equal"
        " for K_P = 1 alone",
        "inconsistent",
    )


@check
def paqm_ratio() -> Finding:
    """Equation (8) where the queue stood still a sample before."""
    earlier, before, now = 200, 200, 230
    return judged(
        before != earlier,
        f"after {earlier}, {before}, {now} packets gamma_k / gamma_(k-1) divides by zero,"
        " while (7) counts the signs as equal",
        "inconsistent",
    )


@check
def paqm_second_difference() -> Finding:
    """Section 3.2.2: gamma_k (gamma_k / gamma_(k-1)) as the second difference."""
    a, b = 10.0, 9.0
    product, difference = b * (b / a), b - a
    return judged(
        about(product, difference),
        f"for increments of {a:g} and {b:g} it is {product:g}, and the second difference {difference:g}",
        "inconsistent",
    )


@check
def paqm_integral_time() -> Finding:
    """Equations (2), (3): the factor of the sum, T_s K_I by (2), against T_s / T'_I with T'_I = K_P K_I."""
    ts, kp, ki = 0.05, 8e-4, 2e-3
    true, printed = ts * ki, ts / (kp * ki)
    return judged(
        about(true, printed),
        f"with K_P = {kp:g} and K_I = {ki:g} per s (2) sums with {true:.1e}, T'_I = K_P K_I with {printed:.1e}:"
        " an integral time is K_P / K_I, and K_P K_I has no unit of time",
        "inconsistent",
    )


@check
def paqm_bdp() -> Finding:
    """Section 4.1: 800 packets as twice the bandwidth-delay product."""
    product, printed = 0.12 * 30 * MBIT / 8000, 800 / 2
    return judged(
        about(product, printed),
        f"120 ms at 30 Mbit/s are {product:g} packets, as the footnote has it: not {printed:g}",
        "inconsistent",
    )


@check
def paqm_period() -> Finding:
    """Section 4.1: the bound of T_s."""
    bound_ms = f"{1000 * 200 / 3750:.1f}"
    return judged(bound_ms == "53.3", f"200 / 3750 s = {bound_ms} ms")


@check
def paqm_gain() -> Finding:
    """Section 4.1: the control gain."""
    return judged(math.isclose(800 * 1e-6, 8e-4), "800 x 1e-6 = 8e-4")


@check
def paqm_flows() -> Finding:
    """Section 4.1: flows for n = 7 and 14, in the scenario that runs."""
    counts = []
    for n in (7, 14):
        plan = Scenario.load(f"paqm/load@n{n}").plan()
        groups = [plan["groups"][flow["group"]]["name"] for flow in plan["flows"]]
        counts.append((len(groups), sum(name.startswith("mice") for name in groups)))
    return judged(counts == [(189, 126), (378, 252)], f"flows, and short ones, of the scenario: {counts}")


@check
def paqm_red_weight() -> Finding:
    """Section 2.2: 1/512 as 0.002."""
    weight = 1 / 512
    return judged(f"{weight:.3f}" == "0.002", f"1/512 = {weight:.5f}")


@check
def paqm_updates() -> Finding:
    """Section 5: updates of the three AQMs a second."""
    counts = (1 / 0.05, 1 / 0.00625, 30 * MBIT / 8000)
    return judged(counts == (20.0, 160.0, 3750.0), "1 / 50 ms, 1 / 6.25 ms and one at each of 3750 packets a second")


@check
def paqm_computation() -> Finding:
    """Section 5: operations a second, counted from the laws; each packet's coin costs all three alike."""
    # PAQM: 8 a sample; PI: 4 a sample; RED: 3 for the average and 3 for the probability at each packet.
    counts = {"PAQM": 20 * 8, "PI": 160 * 4, "RED": 3750 * 6}
    return judged(
        min(counts, key=lambda name: counts[name]) == "PAQM",
        "additions and multiplications a second: " + ", ".join(f"{name} {count}" for name, count in counts.items()),
    )


@check
def paqm_structure() -> Finding:
    """Section 3.2: proportional action of the law, compared with a PI of equal integral gain at the plant's corner."""
    alpha, q_ref, buffer, ts = 8e-4, 200.0, 800.0, 0.05
    integral, proportional = alpha / (q_ref * ts), alpha / (buffer - q_ref)
    zero, corner = integral / proportional, 2 * 60 / (0.246**2 * 3750)
    return judged(
        zero < corner,
        f"(5) is a pure integrator of {integral:.2e} per packet and second; what (10) adds has its zero at"
        f" {zero:.1f} rad/s, far above the corner of {corner:.4f}: an I controller in effect",
    )


# AQM-MO


@cache
def _fluid_and_packets() -> tuple[dict[str, float], dict[str, float]]:
    """Return metrics of 100 long flows under AQM-MO, by the equations of section 3.1 and by packets."""
    scenario = Scenario.load("arm-pfc/exp1")
    names = ("queue_mean_pkts", "utilization", "mark_ratio")
    found = []
    for engine in ("fluid:hollot", "packet"):
        links = json.loads(engines.run_one(scenario, ("aqm-mo", 1), engine).json)["links"]
        found.append({name: float(links["bottleneck"]["steady"][name]) for name in names})
    return found[0], found[1]


@check
def mo_fluid_queue() -> Finding:
    """Section 3.1: mean queue and utilisation by the fluid equations and by packets."""
    fluid, packets = _fluid_and_packets()
    texts = [f"{each['queue_mean_pkts']:.1f} packets, {each['utilization']:.3f}" for each in (fluid, packets)]
    return judged(
        about(fluid["queue_mean_pkts"], packets["queue_mean_pkts"])
        and about(fluid["utilization"], packets["utilization"]),
        f"queue and utilisation of 100 long flows: {texts[0]} by the equations, {texts[1]} by packets",
    )


@check
def mo_fluid_signals() -> Finding:
    """Section 3.1: signal probability by the fluid equations and by packets."""
    fluid, packets = (each["mark_ratio"] for each in _fluid_and_packets())
    return judged(
        about(fluid, packets),
        f"the equations mark {fluid:.3f} of the packets, packets need {packets:.3f}:"
        " windows of 3.5 are too small for (1)",
    )


@check
def mo_outer_loop() -> Finding:
    """Section 4.2: |O(jw)| of the delay-free design with the delay that is there."""
    # In units of 1 / R0. The PID cancels the inner loop's denominator and gain; the delay remains.
    s = 1j * np.geomspace(1e-3, 1e2, 20000)
    open_loop = np.exp(-s) / (2 * s * (1 + s))
    peak = float(np.abs(open_loop / (1 + open_loop)).max())
    return judged(peak < 1.1, f"with the round trip's delay |O| rises to {peak:.4f}; without delay it is flat")


@check
def mo_utilization() -> Finding:
    """Abstract and section 5.2: the sign of AQM-MO's utilisation less that of DropTail."""
    return contradiction("the abstract has a higher utilisation than DropTail, section 5.2 one much lower")


@check
def mo_traffic() -> Finding:
    """Sections 3.2 and 5.1: the same clients send at a constant rate, and ON and OFF."""
    # Coefficient of variation of a client's rate: constant, and ON half of the time.
    constant, on_off = 0.0, math.sqrt(0.5 * 0.5) / 0.5
    return judged(
        constant == on_off,
        f"section 5.1 has clients of constant rate (variation {constant:g}), section 3.2 Pareto ON/OFF"
        f" ones ({on_off:g}) for the same runs",
        "inconsistent",
    )


# AAQM


def _kron_sum(a: Array, b: Array) -> Array:
    return np.kron(a, np.eye(len(b))) + np.kron(np.eye(len(a)), b)


SOURCES = [
    (np.array([[-2.0, 2.0], [1.0, -1.0]]), np.array([300.0, 80.0])),
    (np.array([[-1.25, 1.25], [5.0, -5.0]]), np.array([200.0, 0.0])),
    (np.array([[-4.0, 4.0], [0.8, -0.8]]), np.array([500.0, 100.0])),
    (np.array([[-0.5, 0.5], [0.5, -0.5]]), np.array([250.0, 150.0])),
]
"""Four sources of two states each: generator, rates. The paper gives no numbers; these load the link by about 0.7."""
STAGES, BUFFER, MU = 4, 20, 975.0


@cache
def _queue() -> tuple[Array, Array, list[Array]]:
    """Return the stationary probabilities p[b, j, l] with packets and of the empty system, and each source's rates."""
    q = SOURCES[0][0]
    for generator, _ in SOURCES[1:]:
        q = _kron_sum(q, generator)
    m = len(q)
    rates = []
    for i in range(4):
        vector = np.ones(1)
        for j, (_, own) in enumerate(SOURCES):
            vector = np.kron(vector, own if i == j else np.ones(2))
        rates.append(vector)
    total = sum(rates)
    levels = BUFFER * STAGES + 1
    a = np.zeros((levels * m, levels * m))
    for k in range(levels):
        here = slice(k * m, (k + 1) * m)
        a[here, here] += q
        if k >= 1:
            a[here, (k - 1) * m : k * m] += STAGES * MU * np.eye(m)
            a[here, here] -= STAGES * MU * np.eye(m)
        if k + STAGES < levels:
            a[here, (k + STAGES) * m : (k + STAGES + 1) * m] += np.diag(total)
            a[here, here] -= np.diag(total)
    a[:, 0] = 1.0
    right = np.zeros(levels * m)
    right[0] = 1.0
    pi = np.linalg.solve(a.T, right).reshape(levels, m)
    p = np.zeros((BUFFER + 1, m, STAGES + 1))
    for k in range(1, levels):
        b = (k - 1) // STAGES + 1
        p[b, :, (b - 1) * STAGES + STAGES + 1 - k] = pi[k]
    return p, pi[0], rates


@check
def mmpp_states() -> Finding:
    """Section 5.1: states of four sources of two states."""
    states, printed = 2**4, 8
    return judged(
        about(states, printed),
        f"four sources of two states have 2^4 = {states} states together, not {printed}",
        "inconsistent",
    )


@check
def mmpp_matrix() -> Finding:
    """Equation (2): its own Kronecker sums."""
    # The Kronecker sum has as many rows as the product of the matrices' rows.
    rows, printed = math.prod(len(generator) for generator, _ in SOURCES), 8
    return judged(
        about(rows, printed), f"(2) gives {rows} x {rows}; the text says {printed} x {printed}", "inconsistent"
    )


@check
def mmpp_rates() -> Finding:
    """Equation (4): which combinations of the four sources its eight rows hold."""
    rows = ["3456", "3456", "3456", "3456", "5634", "5634", "5656", "5656"]
    full, combinations = sum(set(row) == set("3456") for row in rows), 2**4
    return judged(
        about(full, combinations),
        f"of {combinations} combinations (4) has {full}, and two rows count sources 5 and 6 twice, 3 and 4 never",
        "inconsistent",
    )


@check
def mmpp_parameters() -> Finding:
    """Section 5.1: parameters of the superposition."""
    count, of_two = (sources * (2 + 2) for sources in (4, 2))
    return judged(
        about(count, of_two),
        f"four sources of two rates and two transitions have {count}; eight are those of two sources",
        "inconsistent",
    )


@check
def mmpp_generator() -> Finding:
    """Section 5.1: size of the generator for M states, buffer L, m stages."""
    states = 8 * (BUFFER * STAGES + 1)
    counted = 8 + sum(8 * STAGES for _ in range(BUFFER))
    return judged(
        states == counted, f"8 empty states and 8 m for each of L levels are {counted} for m = {STAGES}, L = {BUFFER}"
    )


@check
def mmpp_delay() -> Finding:
    """Equation (12) as printed against Little's law."""
    p, empty, _ = _queue()
    mean = sum(b * p[b].sum() for b in range(1, BUFFER + 1))
    served = STAGES * MU * sum(p[b, :, STAGES].sum() for b in range(1, BUFFER + 1))
    little = mean / served
    printed = (empty[0] + empty[1]) / MU + sum(
        (b / MU + (STAGES - level + 1) / (STAGES * MU)) * b * p[b, :, level].sum()
        for b in range(1, BUFFER + 1)
        for level in range(1, STAGES + 1)
    )
    return judged(
        about(printed, little),
        f"(12) as printed gives {1000 * printed:.4f} ms, Little's law {1000 * little:.4f} ms, for the same queue",
        "inconsistent",
    )


@check
def mmpp_loss() -> Finding:
    """Equations (13) to (16), with p^s the marginal of the source, against the direct count."""
    p, empty, rates = _queue()
    shape = (2, 2, 2, 2)
    errors = []
    for s in range(4):
        axes = tuple(i for i in range(4) if i != s)
        full = p[BUFFER].sum(axis=1)
        everything = empty + p[1:].sum(axis=(0, 2))
        direct = (full * rates[s]).sum() / (everything * rates[s]).sum()
        own = SOURCES[s][1]
        printed = (full.reshape(shape).sum(axis=axes) * own).sum() / (
            everything.reshape(shape).sum(axis=axes) * own
        ).sum()
        errors.append(abs(printed / direct - 1))
    # The rounding error depends on the processor.
    said = "equal but for rounding" if exact(*errors) else f"off by {max(errors):.0e}"
    return judged(exact(*errors), f"{said} where p^s is the marginal of two states, which (7) garbles")


@check
def mmpp_normalised() -> Finding:
    """Equation (17): the sum from b = 1."""
    p, empty, _ = _queue()
    total = p[1:].sum()
    return judged(
        not empty.any(),
        f"the sum from b = 1 is {total:.3f}; the empty system has the other {empty.sum():.3f}",
        "inconsistent",
    )


@check
def threshold_range() -> Finding:
    """Equation (18) on its own range, x below Pi + 1, where Pi is a probability as the text says."""
    pi = 0.5
    th = 0.95 * pi
    reached = (pi + 0.999 - th) / (pi - th)
    return judged(
        reached <= 1,
        f"with Pi a probability of {pi:g} F reaches {reached:.2f} before x = Pi + 1; it is one only with Pi and"
        f" x in packets",
        "inconsistent",
    )


@check
def threshold_loss() -> Finding:
    """Figure 10: the loss over the threshold."""
    model = (
        'name = "figure-10"\n[queue]\nbuffer = "40pkt"\nservice = "975pkt/s"\nstages = 2\n'
        '[early]\nthreshold = 0.5\n[[sources]]\nname = "a"\nrates = ["900pkt/s", "300pkt/s"]\n'
        "generator = [[-2.0, 2.0], [1.0, -1.0]]\n"
    )
    losses = []
    for threshold in ("0.25", "0.5", "0.75", "0.95"):
        answer, _ = _core.mmpp_solve_text(model, "figure-10", [("early.threshold", threshold)], False)
        losses.append(_loss(answer))
    falling = all(a > b for a, b in itertools.pairwise(losses))
    return judged(falling, "loss at thresholds of 25, 50, 75, 95 %: " + ", ".join(f"{loss:.4f}" for loss in losses))


def _loss(answer: str) -> float:
    return float(json.loads(answer)["total"]["loss_ratio"])


@check
def avq_law() -> Finding:
    """Section 3: C~ = alpha (gamma C - lambda) as a value rather than a rate of change."""
    return contradiction(
        "at the wanted load (lambda = gamma C) the virtual capacity as printed is 0; AVQ has it as a rate of change"
    )


@check
def aaqm_table1() -> Finding:
    """Table 1: its title says five."""
    return contradiction("the title says five, the table has seven, Pa1 to Pa7")


@check
def aaqm_buffer() -> Finding:
    """Section 6.1: 130 kB in packets."""
    packets = 130e3 / 1282
    return judged(about(packets, 100), f"130 kB are {packets:.1f} packets of 1282 B")


@check
def aaqm_flow_count() -> Finding:
    """Section 7.5: flows for n = 10, in the scenario that runs."""
    count = len(Scenario.load("aaqm/load@n10").plan()["flows"])
    return judged(count == 120, f"three cells, four transports, ten flows each: {count}")


@check
def aaqm_delay_and_queue() -> Finding:
    """Figures 12, 14 and 15: the delay behind the queues of AAQM and PI."""
    held, others = 0.95 * 130e3 * 8 / (10 * MBIT), [n * 1282 * 8 / (10 * MBIT) for n in (85, 100)]
    return judged(
        held < others[0],
        f"figures 14 and 15 have AAQM at 95 % of the buffer, which is {1000 * held:.0f} ms at 10 Mbit/s, and PI between"
        f" 85 and 100 packets, {1000 * others[0]:.0f} to {1000 * others[1]:.0f} ms; figure 12 has AAQM's delay lowest"
        " and PI's highest",
        "inconsistent",
    )


@check
def aaqm_round_trip() -> Finding:
    """Section 1: an increase of the round trip leads to instability, for PI with the gains of table 2.

    The network is the one for which these gains were designed (Hollot et al. 2001): 60 flows, 3750 packets/s.
    """
    margins = []
    for rtt in (0.1, 0.2, 0.4, 0.8):
        found = design(
            "pi:a=1.822e-5,b=1.816e-5,frequency=160Hz",
            capacity="15Mbit",
            flows=60,
            rtt=rtt,
            target="200pkt",
            packet="500B",
            model="hollot",
        ).margins
        margins.append(float((found or {})["gain_margin"]))
    falling = all(a > b for a, b in itertools.pairwise(margins))
    return judged(
        falling and margins[-1] < 1 < margins[0],
        f"the gain margin of PI with the gains of table 2 is {', '.join(f'{each:.2f}' for each in margins)} at round"
        " trips of 100, 200, 400 and 800 ms; below 1 the loop is unstable",
    )


@check
def aaqm_stopping() -> Finding:
    """Section 7.5: the fraction of flows that stop, in the scenario that runs."""
    plan = Scenario.load("aaqm/load@n10").plan()
    names = [plan["groups"][flow["group"]]["name"] for flow in plan["flows"]]
    udp = sum(name.startswith("udp") for name in names)
    unresponsive = udp + sum(name.startswith("rtp") for name in names)
    return judged(
        udp * 4 == len(names) and udp * 2 == unresponsive,
        f"{udp} of {len(names)} flows, and of {unresponsive} by UDP and RTP",
    )


# Self-tuning


@check
def st_packet() -> Finding:
    """Section 2: the packet for which 800 of them are 5 ms."""
    size = 0.005 * 622 * MBIT / 8 / 800
    return judged(
        about(size, 500),
        f"5 ms at 622 Mbit/s are 800 packets of {size:.1f} B, 500 B within {100 * ABOUT:g} %",
    )


@check
def st_min_th() -> Finding:
    """Section 2: min_th of ARED for 5 ms."""
    min_th = 0.005 * 622 * MBIT / 8 / 500 / 2
    return judged(about(min_th, 400), f"half of 5 ms are {min_th:.2f} packets of 500 B")


@check
def st_aggregate() -> Finding:
    """Section 1: "the quantity N/R is the aggregate incoming throughput"."""
    n, r, c = 1000, 0.145, 622 * MBIT / 8 / 500
    return judged(
        about(n / r, c),
        f"{n} flows fill 622 Mbit/s, {c:.0f} packets/s, with windows of {r * c / n:.1f} packets; N/R is {n / r:.0f}"
        " windows/s: the throughput is N W / R",
        "inconsistent",
    )


@check
def st_reverse_load() -> Finding:
    """Section 2: flows of both directions in the scenario that runs."""
    plan = Scenario.load("self-tuning/full").plan()
    counted = Counter(plan["groups"][flow["group"]]["name"] for flow in plan["flows"])
    return judged(
        counted["ftp"] == counted["ftp-back"] and counted["http"] == counted["http-back"],
        f"{counted['ftp']} and {counted['http']} flows forward, {counted['ftp-back']} and {counted['http-back']} back",
    )


@check
def st_throughput_law() -> Finding:
    """Section 1: N/(RC) = sqrt(p/2) from W = sqrt(2/p) and N W / R = C."""
    p = 0.01
    return judged(math.isclose(1 / math.sqrt(2 / p), math.sqrt(p / 2)), "N/(RC) = 1/W = sqrt(p/2)")


@check
def st_eighth() -> Finding:
    """Section 2: an eighth of the capacity, in the scenario that runs."""
    plan = Scenario.load("self-tuning/full").plan()
    rates = [rate for _, rate in plan["links"][0]["rates"]]
    return judged(
        rates[1] * 8 == rates[0], f"rates of the scenario: {', '.join(f'{rate / MBIT:g} Mbit/s' for rate in rates)}"
    )
