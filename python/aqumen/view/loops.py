"""Marks on pictures of a loop: crossovers and margins, the critical point with its circle, rise and overshoot."""

from __future__ import annotations

from typing import Any

import numpy as np

from aqumen.view.plot import COLOURS, GUIDE

__all__ = ["degrees", "limit_bode", "limit_nyquist", "mark_margins", "mark_point", "mark_step"]

MARK = COLOURS[2]
"""Colour of margins."""
LOWEST_DB, LOWEST_DEGREES = -40.0, -450.0
"""Gain and phase down to which a Bode plot shows a loop, decibels and degrees."""


def degrees(loop: Any) -> Any:
    """Return the phase without jumps, in degrees; it begins between -270 and 90.

    Args:
        loop: Response at rising frequencies.
    """
    found = np.degrees(np.unwrap(np.angle(loop)))
    return found - 360.0 * np.round((found[0] + 90.0) / 360.0)


def mark_margins(gain: Any, phase: Any, margins: dict[str, Any]) -> None:
    """Mark both crossovers and, as bars with their values, gain and phase margin.

    Args:
        gain: Axes of the gain in decibels.
        phase: Axes of the phase in degrees.
        margins: Margins of the loop.
    """
    gain.axhline(0, **GUIDE)
    phase.axhline(-180, **GUIDE)
    at, margin = margins["crossover_rad_s"], margins["phase_margin_deg"]
    if at is not None and margin is not None:
        for axes in (gain, phase):
            axes.axvline(at, linestyle=":", **GUIDE)
        phase.plot([at, at], [-180, margin - 180], color=MARK, linewidth=2)
        _note(phase, f"{margin:.3g}° at {at:.3g} rad/s", (at, -180), (-6, -8), "right")
    at, margin = margins["phase_crossover_rad_s"], margins["gain_margin"]
    if at is not None and margin is not None:
        for axes in (gain, phase):
            axes.axvline(at, linestyle=":", **GUIDE)
        below = 20 * np.log10(margin)
        gain.plot([at, at], [-below, 0], color=MARK, linewidth=2)
        _note(gain, f"× {margin:.3g} ({below:.1f} dB) at {at:.3g} rad/s", (at, min(-below, 0.0)), (-6, -8), "right")


def _note(axes: Any, text: str, at: tuple[float, float], shift: tuple[float, float], side: str) -> None:
    axes.annotate(text, at, xytext=shift, textcoords="offset points", size=8, ha=side, va="center", color=MARK)


def limit_bode(gain: Any, phase: Any, w: Any, loop: Any) -> None:
    """Show the frequencies up to which gain or phase matter, with ticks of the phase every 90 degrees.

    Args:
        gain: Axes of the gain.
        phase: Axes of the phase.
        w: Frequencies, rad/s.
        loop: Response there.
    """
    size = 20 * np.log10(np.abs(loop))
    beyond = (size < min(LOWEST_DB, float(size.max()) - 20)) | (degrees(loop) < LOWEST_DEGREES)
    last = int(np.argmax(beyond)) if beyond.any() else len(w) - 1
    turned = degrees(loop)[: last + 1]
    low = float(np.clip(90 * np.floor(turned.min() / 90), LOWEST_DEGREES, -270.0))
    high = float(max(90 * np.ceil(turned.max() / 90), 0.0))
    phase.set(ylim=(low, high), xlim=(w[0], w[last]), yticks=np.arange(low, high + 1, 90))
    gain.set_ylim(max(float(size[: last + 1].min()), LOWEST_DB) - 5, float(size.max()) + 5)


def mark_point(axes: Any, margins: dict[str, Any]) -> None:
    """Mark the critical point, the unit circle, and the circle around the point that the loop touches.

    Args:
        axes: Axes of a Nyquist plot.
        margins: Margins of the loop.
    """
    turn = np.exp(2j * np.pi * np.linspace(0, 1, 300))
    axes.plot(turn.real, turn.imag, linestyle=":", **GUIDE)
    axes.plot([-1], [0], "+", color="black", markersize=10)
    axes.annotate("-1", (-1, 0), xytext=(-14, 6), textcoords="offset points", size=8)
    distance = margins["modulus_margin"]
    circle = -1 + abs(distance) * turn
    axes.plot(circle.real, circle.imag, color=MARK, linewidth=0.8, label=f"modulus margin {distance:.2f}")


def limit_nyquist(axes: Any, margins: dict[str, Any]) -> None:
    """Show the surroundings of the critical point: the unit circle, and where an unstable loop crosses the axis.

    Args:
        axes: Axes of a Nyquist plot.
        margins: Margins of the loop.
    """
    gain = margins["gain_margin"]
    left = 2.0 if gain is None else float(np.clip(1.25 / gain, 2.0, 8.0))
    left = max(left, min(1.15 + abs(margins["modulus_margin"]), 8.0))
    half = 0.5 * (left + 1.3)
    axes.set(xlim=(-left, 1.3), ylim=(-half, half), aspect="equal", xlabel="Re L", ylabel="Im L")


def mark_step(axes: Any, t: Any, y: Any) -> None:
    """Mark the new target, the rise from 10 to 90 %, and the overshoot.

    Args:
        axes: Axes of a step response.
        t: Times, seconds.
        y: Response relative to the step.
    """
    axes.axhline(1, linestyle=":", **GUIDE)
    if y.max() >= 0.9:
        low, high = (float(t[np.argmax(y >= level)]) for level in (0.1, 0.9))
        axes.axvspan(low, high, color=COLOURS[7], alpha=0.12, linewidth=0)
        _note(axes, f"rise {high - low:.3g} s", (high, 0.1), (4, 0), "left")
    peak = int(np.argmax(y))
    if y[peak] > 1.005:
        axes.plot([t[peak]], [y[peak]], "o", color=MARK, markersize=4)
        _note(axes, f"overshoot {100 * (y[peak] - 1):.0f} %", (float(t[peak]), float(y[peak])), (6, 4), "left")
