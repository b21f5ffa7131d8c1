"""Pictures of an identified loop: Bode with confidence and margins, Nyquist, step response, coherence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.errors import ScenarioError, listed, optional
from aqumen.view.loops import degrees, limit_bode, limit_nyquist, mark_margins, mark_point, mark_step
from aqumen.view.plot import COLOURS, CURVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["KINDS", "plot_loop"]

BAND = float(np.sqrt(-np.log(0.05)))
"""Radius of the 95 % circle of a complex estimate, in standard deviations."""


def plot_loop(loop: Any, kind: str, theory: Any = None) -> Figure:
    """Draw an identified loop.

    Args:
        loop: A loop of a plant.
        kind: `bode`, `nyquist`, `step` or `coherence`.
        theory: A result of `theory.design` to draw beside it; default: that of the loop's AQM, where there is one.
    """
    if kind not in KINDS:
        raise ScenarioError(f'unknown plot "{kind}"; choose from: {listed(KINDS)}')
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 6.0 if kind in ("bode", "nyquist") else 3.6), layout="constrained")
    KINDS[kind](loop, figure, theory)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _title(loop: Any) -> str:
    margins, (low, high) = loop.margins, loop.margins["gain_margin_ci95"] or (None, None)
    gain, phase = margins["gain_margin"], margins["phase_margin_deg"]
    told = "" if gain is None else f", gain margin {gain:.3g}" + ("" if low is None else f" ({low:.3g} to {high:.3g})")
    told += "" if phase is None else f", phase margin {phase:.3g}°"
    return f"{loop.aqm.partition(':')[0]} on {loop.plant.scenario.name}{told}"


def _bode(loop: Any, figure: Any, theory: Any) -> None:
    gain, phase = figure.subplots(2, 1, sharex=True)
    w = np.geomspace(0.05 / loop.plant.rtt_s, min(16.0 / loop.plant.rtt_s, np.pi / loop.plant.period_s), 600)
    values = loop.loop_response(w)
    radius = BAND * loop.plant.response_std(w) * np.abs(loop.controller_response(w))
    size, turned = np.abs(values), degrees(values)
    turn = np.degrees(np.arcsin(np.minimum(radius / size, 1.0)))
    low = np.maximum(size - radius, 1e-3 * size)
    gain.fill_between(w, 20 * np.log10(low), 20 * np.log10(size + radius), color=COLOURS[0], alpha=0.2, linewidth=0)
    phase.fill_between(w, turned - turn, turned + turn, color=COLOURS[0], alpha=0.2, linewidth=0)
    gain.semilogx(w, 20 * np.log10(size), color=COLOURS[0], label="identified, 95 %", **CURVE)
    phase.semilogx(w, turned, color=COLOURS[0], **CURVE)
    _measured(loop, gain, phase, turned, w)
    if theory is not None:
        told = theory.loop_response(w)
        gain.semilogx(w, 20 * np.log10(np.abs(told)), "--", color=COLOURS[1], label="theory", **CURVE)
        phase.semilogx(w, degrees(told), "--", color=COLOURS[1], **CURVE)
    mark_margins(gain, phase, loop.margins)
    limit_bode(gain, phase, w, values)
    gain.set(ylabel="Gain, dB", title=_title(loop))
    gain.legend(frameon=False)
    phase.set(xlabel="Frequency, rad/s", ylabel="Phase, degrees")


def _measured(loop: Any, gain: Any, phase: Any, smooth: Any, w: Any) -> None:
    """Draw the response without a model where the excitation shows in the queue."""
    seen = loop.plant.spectrum
    clear = seen.radius < 0.7 * np.abs(seen.response)
    at = seen.w[clear]
    shift = np.exp(0.5j * at * (loop.plant.law_period_s - (loop.controller[2] or 0.0)))
    points = -loop.controller_response(at) * seen.response[clear] * shift
    spread = (seen.radius / np.abs(seen.response))[clear]
    up, down = 20 * np.log10(1 + spread), -20 * np.log10(1 - spread)
    style = {"color": COLOURS[7], "markersize": 3, "linewidth": 0.7}
    gain.errorbar(at, 20 * np.log10(np.abs(points)), [down, up], fmt="o", label="without a model", **style)
    near = np.interp(at, w, smooth)
    turned = np.degrees(np.angle(points))
    turned += 360.0 * np.round((near - turned) / 360.0)
    phase.errorbar(at, turned, np.degrees(np.arcsin(spread)), fmt="o", **style)


def _nyquist(loop: Any, figure: Any, theory: Any) -> None:
    axes = figure.subplots()
    w = loop.frequencies(3000)
    values = loop.loop_response(w)
    radius = BAND * loop.plant.response_std(w) * np.abs(loop.controller_response(w))
    near = (np.abs(values) < 3) & (w < 8.0 / loop.plant.rtt_s)
    for at in np.flatnonzero(near)[:: max(int(near.sum()) // 25, 1)]:
        circle = values[at] + radius[at] * np.exp(2j * np.pi * np.linspace(0, 1, 60))
        axes.fill(circle.real, circle.imag, color=COLOURS[0], alpha=0.08, linewidth=0)
    axes.plot(values.real, values.imag, color=COLOURS[0], label="identified, 95 %", **CURVE)
    if theory is not None:
        told = theory.loop_response(w)
        axes.plot(told.real, told.imag, "--", color=COLOURS[1], label="theory", **CURVE)
    at = int(np.argmin(np.abs(np.abs(values) - 1.2)))
    if at + 2 < len(values):
        ends = values[at], values[at + 2]
        axes.annotate(
            "", xy=(ends[1].real, ends[1].imag), xytext=(ends[0].real, ends[0].imag),
            arrowprops={"arrowstyle": "->", "color": COLOURS[0]},
        )  # fmt: skip
    mark_point(axes, loop.margins)
    limit_nyquist(axes, loop.margins)
    axes.set(title=_title(loop))
    axes.legend(frameon=False, loc="upper right")


def _step(loop: Any, figure: Any, theory: Any) -> None:
    axes = figure.subplots()
    t, y = loop.step_response()
    axes.plot(t, y, color=COLOURS[0], label="identified", **CURVE)
    mark_step(axes, t, y)
    axes.set(xlabel="Time, s", ylabel="Queue deviation / target step", title=_title(loop))


def _coherence(loop: Any, figure: Any, theory: Any) -> None:
    axes = figure.subplots()
    seen = loop.plant.spectrum
    axes.semilogx(seen.w, seen.coherence, "o-", color=COLOURS[0], markersize=3, **CURVE)
    axes.set(xlabel="Frequency, rad/s", ylabel="Coherence", ylim=(0, 1), title="Queue explained by the excitation")


KINDS = {"bode": _bode, "nyquist": _nyquist, "step": _step, "coherence": _coherence}
"""Plots by name."""
