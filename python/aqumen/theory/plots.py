"""Plots of a loop: Nyquist, Bode, Nichols, step response, root locus, noise spectrum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.errors import ScenarioError, listed, optional
from aqumen.theory.interop import to_control
from aqumen.view import loops
from aqumen.view.plot import COLOURS, CURVE, GUIDE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.engines.answer import Floats
    from aqumen.theory.loop import Complexes, Loop

__all__ = ["KINDS", "plot", "step_response"]

LOOPS = ((True, "exact", COLOURS[0]), (False, "textbook", COLOURS[1]))
"""Whether the loop is exact, its label and its colour."""


def plot(design: Loop, kind: str) -> Figure:
    """Plot the loop of a design.

    Args:
        design: A result of `theory.design`.
        kind: A name of `KINDS`.
    """
    if kind not in KINDS:
        raise ScenarioError(f"unknown plot `{kind}`; choose from: {listed(KINDS)}")
    if design.margins is None:
        raise ScenarioError(f"{design.aqm} is not a linear controller: there is no loop to plot")
    pyplot = optional("matplotlib.pyplot", "plot")
    figure = pyplot.figure(layout="constrained")
    KINDS[kind](design, figure)
    return figure  # type: ignore[no-any-return]


def step_response(design: Loop, duration_s: float | None = None) -> tuple[Floats, Floats]:
    """Return the step response of the linear loop: times (s), and queue deviation / target step.

    It is the inverse transform of the closed loop's frequency response, with exact delay, for continuous and sampled
    controllers.

    Args:
        design: A result of `theory.design`.
        duration_s: Duration, seconds; default: 40 / crossover frequency.

    Raises:
        ScenarioError: The loop is unstable.
    """
    margins = design.margins or {}
    centre = margins.get("crossover_rad_s") or 1 / design.operating_point["rtt_s"]
    if not margins.get("exact", margins).get("stable"):
        raise ScenarioError("the loop is unstable: its step response grows without bound")
    duration = 40 / centre if duration_s is None else duration_s
    t = np.linspace(0, duration, 600)
    # y(t) = (2/pi) integral of Re T(jw) sin(wt)/w dw, for a stable loop.
    parts = design.core.controller()
    top = 200 * max(centre, 1 / design.operating_point["rtt_s"])
    if parts is not None and parts[2] is not None:
        top = min(top, np.pi / parts[2])
    w = np.linspace(0, top, max(40_000, int(4 * top * duration)))
    loop = design.loop_response(w[1:])
    closed = loop / (1 + loop)
    # The value at w = 0 is approximated by that at the lowest positive frequency.
    real = np.real(np.concatenate([closed[:1], closed]))
    y = np.array([2 / np.pi * np.trapezoid(real * x * np.sinc(w * x / np.pi), w) for x in t])
    return t, y


def step_metrics(design: Loop, band: float) -> dict[str, float | None]:
    """Return rise time, overshoot and settling time of the step response; `None` if not reached in time.

    Args:
        design: A result of `theory.design`.
        band: Half-width of the settling band around the new target, relative to the step.
    """
    t, y = step_response(design)

    def crossing(after: int, level: float) -> float:
        """Time at which the line from the sample before `after` reaches `level`."""
        if after == 0:
            return float(t[0])
        before = after - 1
        return float(t[before] + (t[after] - t[before]) * (level - y[before]) / (y[after] - y[before]))

    def first(level: float) -> float | None:
        above = np.flatnonzero(y >= level)
        return crossing(int(above[0]), level) if len(above) else None

    low, high = first(0.1), first(0.9)
    outside = np.flatnonzero(np.abs(y - 1) > band)
    last = int(outside[-1]) + 1 if len(outside) else 0
    edge = 1 + band if last and y[last - 1] > 1 else 1 - band
    return {
        "rise_s": None if low is None or high is None else high - low,
        "overshoot": max(0.0, _peak(y) - 1),
        "settling_s": crossing(last, edge) if last < len(t) else None,
    }


def _peak(y: Floats) -> float:
    """Return the height of the parabola through the largest sample and its neighbours."""
    at = int(np.argmax(y))
    if not 0 < at < len(y) - 1:
        return float(y[at])
    left, here, right = y[at - 1 : at + 2]
    bend = 2 * here - left - right
    return float(here + (right - left) ** 2 / (8 * bend)) if bend > 0 else float(here)


def _nyquist(design: Loop, figure: Any) -> None:
    axes = figure.subplots()
    w = design.frequencies(6000)
    assert design.margins is not None
    halves = []
    for exact, label, colour in LOOPS:
        loop = design.loop_response(w, exact=exact)
        turns = (design.margins["exact"] if exact else design.margins)["unstable_poles"]
        named = f"{label}: {turns} unstable closed-loop poles" if turns else f"{label}: -1 is not encircled"
        axes.plot(loop.real, loop.imag, color=colour, label=named, **CURVE)
        halves.append((loop, colour))
        here = int(np.argmin(np.abs(np.abs(loop) - 1)))
        if 0 < here < len(loop) - 1:
            axes.annotate(
                "",
                xy=(loop[here + 1].real, loop[here + 1].imag),
                xytext=(loop[here - 1].real, loop[here - 1].imag),
                arrowprops={"arrowstyle": "->", "color": colour},
            )
    for loop, colour in halves:
        # Negative frequencies complete the closed curve.
        axes.plot(loop.real, -loop.imag, color=colour, linestyle="--", linewidth=GUIDE["linewidth"])
    exact = design.margins["exact"]
    loops.mark_point(axes, exact)
    loops.limit_nyquist(axes, exact)
    axes.set(title=_title(design))
    axes.legend(frameon=False, loc="upper right", fontsize="small")


def _bode(design: Loop, figure: Any) -> None:
    gain, phase = figure.subplots(2, 1, sharex=True)
    w = design.frequencies(4000)
    for exact, label, colour in LOOPS:
        loop = design.loop_response(w, exact=exact)
        gain.semilogx(w, _decibels(loop), color=colour, label=label, **CURVE)
        phase.semilogx(w, loops.degrees(loop), color=colour, **CURVE)
    assert design.margins is not None
    loops.mark_margins(gain, phase, design.margins["exact"])
    loops.limit_bode(gain, phase, w, design.loop_response(w))
    gain.set(ylabel="Gain, dB", title=_title(design))
    gain.legend(frameon=False)
    phase.set(xlabel="Frequency, rad/s", ylabel="Phase, degrees")


def _nichols(design: Loop, figure: Any) -> None:
    axes = figure.subplots()
    w = design.frequencies(4000)
    for exact, label, colour in LOOPS:
        loop = design.loop_response(w, exact=exact)
        axes.plot(loops.degrees(loop), _decibels(loop), color=colour, label=label, **CURVE)
    axes.plot([-180], [0], "+", color="black")
    axes.set(xlim=(-540, 0), ylim=(-40, 40), xlabel="Phase, degrees", ylabel="Gain, dB", title=_title(design))
    axes.legend(frameon=False)


def _step(design: Loop, figure: Any) -> None:
    axes = figure.subplots()
    t, y = step_response(design)
    axes.plot(t, y, color=COLOURS[0], **CURVE)
    loops.mark_step(axes, t, y)
    axes.set(xlabel="Time, s", ylabel="Queue deviation / target step", title=_title(design))


def _locus(design: Loop, figure: Any) -> None:
    axes = figure.subplots()
    if design.poles() is None:
        _locus_s(design, axes)
        return
    for gain in np.geomspace(0.05, 5, 120):
        poles = design.poles(float(gain))
        assert poles is not None
        axes.plot(poles.real, poles.imag, ",", color=COLOURS[0])
    own = design.poles()
    assert own is not None
    axes.plot(own.real, own.imag, "x", color=COLOURS[1], label="gain 1")
    _unit_circle(axes)
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xlabel="Re z", ylabel="Im z", title=_title(design))
    axes.legend(frameon=False)


def _locus_s(design: Loop, axes: Any) -> None:
    """Plot the root locus of a continuous controller, with a Pade approximation of order 8 of the dead time."""
    control = optional("control", "control")
    _, _, loop = to_control(design, 8)
    gains = np.geomspace(0.05, 5, 120)
    loci = control.root_locus_map(loop, gains=gains).loci
    axes.plot(loci.real, loci.imag, ",", color=COLOURS[0])
    own = control.root_locus_map(loop, gains=[1.0]).loci[0]
    axes.plot(own.real, own.imag, "x", color=COLOURS[1], label="gain 1")
    axes.axvline(0, **GUIDE)
    edge = 6 / design.operating_point["rtt_s"]
    axes.set(xlim=(-edge, 0.5 * edge), ylim=(-edge, edge), xlabel="Re s, 1/s", ylabel="Im s, 1/s", title=_title(design))
    axes.legend(frameon=False)


def _noise(design: Loop, figure: Any) -> None:
    noise = design.noise
    if noise["spectrum"] is None:
        raise ScenarioError(f"the noise is unknown: {noise['why']}")
    axes = figure.subplots()
    # Power times frequency, so that equal areas are equal parts of the variance.
    w = np.array(noise["spectrum"]["w_rad_s"])
    axes.semilogx(w, w * np.array(noise["spectrum"]["power_pkts2_s"]) / np.pi, color=COLOURS[0], **CURVE)
    axes.axvline(noise["spectrum"]["peak_rad_s"], linestyle=":", **GUIDE)
    axes.set(xlabel="Frequency, rad/s", ylabel="Variance per unit of ln frequency, packets²")
    axes.set(title=f"{_title(design)}\nstandard deviation {noise['queue_std_pkts']:.3g} packets", ylim=(0, None))


def _unit_circle(axes: Any) -> None:
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 300))
    axes.plot(circle.real, circle.imag, **GUIDE)


def _decibels(loop: Complexes) -> Floats:
    return 20 * np.log10(np.abs(loop))


def _title(design: Loop) -> str:
    point = design.operating_point
    return f"{design.aqm}: N = {point['flows']:g}, C = {point['capacity_pps']:g} pkt/s, R0 = {point['rtt_s']:.3g} s"


KINDS: dict[str, Callable[[Loop, Any], None]] = {
    "nyquist": _nyquist,
    "bode": _bode,
    "nichols": _nichols,
    "step": _step,
    "locus": _locus,
    "noise": _noise,
}
"""Plots by name."""
