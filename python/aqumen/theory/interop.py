"""To python-control and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.errors import ScenarioError
from aqumen.tables import optional

if TYPE_CHECKING:
    from aqumen.theory.design import Design

__all__ = ["from_control", "to_control"]


def to_control(design: Design, pade_order: int) -> tuple[Any, Any, Any]:
    """Plant (textbook, Pade), controller and open loop (exact response as a table) of a design.

    Args:
        design: The design.
        pade_order: Order of the approximation of the plant's delay.
    """
    control = optional("control", "control")
    now, _, _, late, delay = design.core.plant(False)
    # The textbook's plant is a chain: the window's pole, then the queue's.
    gain = late[0] * now[1][0]
    rational = control.tf([gain], np.polymul([1, -now[0][0]], [1, -now[1][1]]))
    plant = rational * control.tf(*control.pade(delay, pade_order))
    parts = design.core.controller()
    if parts is None:
        raise ScenarioError(f"{design.aqm} is no linear controller")
    num, den, period = parts
    if period is None:
        controller = control.tf(num[::-1], den[::-1])
    else:
        # Powers of 1/z, constant first, are powers of z, highest first, once both have the same length.
        length = max(len(num), len(den))
        controller = control.tf(_padded(num, length), _padded(den, length), period)
    w = design.frequencies()
    return plant, controller, control.frd(design.loop_response(w), w)


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
