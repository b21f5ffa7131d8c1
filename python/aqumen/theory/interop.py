"""To python-control and back, and to MATLAB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.errors import ScenarioError
from aqumen.tables import optional

if TYPE_CHECKING:
    from aqumen.theory.design import Design

__all__ = ["from_control", "matlab", "to_control"]


def to_control(design: Design, pade: int | None) -> tuple[Any, Any, Any]:
    """Plant, controller and open loop of a design, as systems of python-control.

    Args:
        design: The design.
        pade: Order of the approximation of the plant's delay; without one the loop is the exact response, which
            interpolates between points.
    """
    control = optional("control", "control")
    gain, poles, delay = _textbook(design)
    order = 6 if pade is None else pade
    if order < 1:
        raise ScenarioError(f"pade = {order}: the order of an approximation is a whole number from 1 on")
    names = {"inputs": ["probability"], "outputs": ["queue"]}
    rational = control.tf([gain], np.poly(poles))
    plant = control.tf(rational * control.tf(*control.pade(delay, order)), name="textbook_plant", **names)
    num, den, period = _controller(design)
    back = {"inputs": ["error"], "outputs": ["probability"], "name": "controller"}
    if period is None:
        controller = control.tf(num[::-1], den[::-1], **back)
    else:
        # Powers of 1/z, constant first, are powers of z, highest first, once both have the same length.
        length = max(len(num), len(den))
        controller = control.tf(_padded(num, length), _padded(den, length), period, **back)
    if pade is None:
        w = design.frequencies()
        return plant, controller, control.frd(design.loop_response(w), w, smooth=True, name="exact_loop")
    # One kind of time for both: a sampled controller meets the plant as its hold shows it.
    held = plant if period is None else control.sample_system(plant, period, method="zoh")
    # More probability, less queue: the plant is negative, and the loop closes with 1 + loop.
    loop = control.tf(-control.series(controller, control.tf(held)), name="textbook_loop")
    return plant, controller, loop


def _textbook(design: Design) -> tuple[float, list[float], float]:
    """Gain, poles and dead time of the textbook's plant: the window's pole, then the queue's."""
    now, _, _, late, delay = design.core.plant(False)
    return late[0] * now[1][0], [now[0][0], now[1][1]], delay


def _controller(design: Design) -> tuple[Sequence[float], Sequence[float], float | None]:
    parts = design.core.controller()
    if parts is None:
        raise ScenarioError(f"{design.aqm} is no linear controller")
    return parts


def matlab(design: Design) -> str:
    """The plant with its dead time, the controller and the exact response, as a script for MATLAB or Octave.

    Args:
        design: The design.
    """
    gain, poles, delay = _textbook(design)
    num, den, period = _controller(design)
    w = design.frequencies(200)
    exact = design.plant_response(w)

    def row(values: Any) -> str:
        return "[" + " ".join(f"{value:.17g}" for value in values) + "]"

    margins = design.margins or {}
    textbook, truth = margins.get("phase_margin_deg"), (margins.get("exact") or {}).get("phase_margin_deg")
    lines = [
        f"% {design.aqm}: plant from probability to queue in packets, controller from error in packets to probability.",
        "% Needs the Control System Toolbox (Octave: the package control, which has no dead time).",
        f"P = tf({gain:.17g}, {row(np.poly(poles))}, 'InputDelay', {delay:.17g}, 'Name', 'textbook plant');",
    ]
    if period is None:
        lines.append(f"C = tf({row(num[::-1])}, {row(den[::-1])}, 'Name', 'controller');")
        lines.append("L = -C * P; % the plant is negative: more probability, less queue")
    else:
        length = max(len(num), len(den))
        taps = f"{row(_padded(num, length))}, {row(_padded(den, length))}"
        lines.append(f"C = tf({taps}, {period:.17g}, 'Name', 'controller');")
        lines.append(f"L = -C * c2d(P, {period:.17g}, 'zoh');")
    lines += [
        f"w = {row(w)};",
        "% The exact linearisation of the fluid model, at these frequencies in rad/s.",
        f"Pexact = frd({row(exact.real)} + 1i * {row(exact.imag)}, w, 'Name', 'exact plant');",
    ]
    if textbook is not None and truth is not None:
        lines.append(f"% Phase margin as Aqumen finds it: {textbook:.4g} degrees with P, {truth:.4g} with Pexact.")
    lines.append("margin(L);")
    return "\n".join(lines) + "\n"


def from_control(controller: Any) -> tuple[Sequence[float], Sequence[float], float | None]:
    """Numerator, denominator and period of a transfer function or state-space system of python-control.

    Args:
        controller: From packets to probability; one input, one output.
    """
    control = optional("control", "control")
    system = control.tf(controller)
    if system.ninputs != 1 or system.noutputs != 1:
        raise ScenarioError("a controller has one input (packets) and one output (probability)")
    num, den = (np.asarray(system.num[0][0], dtype=float), np.asarray(system.den[0][0], dtype=float))
    if not system.dt:
        return num[::-1].tolist(), den[::-1].tolist(), None
    if system.dt is True:
        raise ScenarioError("the sampling period of the controller is not given; make it tf(num, den, dt)")
    # In 1/z: both divided by the highest power of z in the denominator.
    if len(num) > len(den):
        raise ScenarioError("the controller would have to know the future: its numerator is of higher degree")
    return [0.0] * (len(den) - len(num)) + num.tolist(), den.tolist(), float(system.dt)


def _padded(coefficients: Sequence[float], length: int) -> list[float]:
    return [*coefficients, *[0.0] * (length - len(coefficients))]
