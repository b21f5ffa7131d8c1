"""Conversion to and from python-control, and export to MATLAB."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen import _core
from aqumen.errors import OutputError, ScenarioError, optional

if TYPE_CHECKING:
    from aqumen.theory.loop import Loop

__all__ = ["matlab", "nu_gap", "save", "state_space", "to_control"]


def to_control(design: Loop, pade: int | None) -> tuple[Any, Any, Any]:
    """Convert plant, controller and loop for python-control; the loop is minus plant times controller.

    Args:
        design: A result of `theory.design`.
        pade: Order of the Pade approximation of the dead time; `None` for exact, interpolated frequency responses.
    """
    control = optional("control", "control")
    names = {"inputs": ["probability"], "outputs": ["queue"]}
    back = {"inputs": ["error"], "outputs": ["probability"], "name": "controller"}
    num, den, period = _controller(design)
    if pade is None:
        w = design.frequencies()
        loop = design.loop_response(w)
        at = 1j * w if period is None else np.exp(-1j * w * period)
        own = np.polynomial.polynomial.polyval(at, num) / np.polynomial.polynomial.polyval(at, den)
        # A sampled controller sees the plant through its zero-order hold, with aliased frequencies.
        plant = control.frd(-loop / own, w, smooth=True, name="exact_plant", **names)
        return plant, control.frd(own, w, smooth=True, **back), control.frd(loop, w, smooth=True, name="exact_loop")
    if pade < 1:
        raise ScenarioError(f"pade = {pade}: must be an integer of at least 1")
    gain, poles, delay = _textbook(design)
    rational = control.tf([gain], np.poly(poles))
    plant = control.tf(rational * control.tf(*control.pade(delay, pade)), name="textbook_plant", **names)
    if period is None:
        controller = control.tf(num[::-1], den[::-1], **back)
        return plant, controller, control.tf(-control.series(controller, plant), name="textbook_loop")
    # Padded to equal length, coefficients in rising powers of 1/z are those in falling powers of z.
    length = max(len(num), len(den))
    controller = control.tf(_padded(num, length), _padded(den, length), period, **back)
    # Discretise the plant with the zero-order hold of the sampled controller.
    held = control.tf(control.sample_system(plant, period, method="zoh"))
    # A higher probability shortens the queue: the plant is negative, and the loop closes with 1 + loop.
    loop = control.tf(-control.series(controller, held), name="textbook_loop")
    return plant, controller, loop


def state_space(design: Loop, exact: bool) -> dict[str, Any]:
    """Return dx/dt = A x + A_d x(t - R0) + B p + B_d p(t - R0), queue = C x, x = (window, queue), and the controller.

    Args:
        design: A result of `theory.design`.
        exact: Use the exact linearisation of the fluid model instead of the textbook plant.
    """
    try:
        now, delayed, at_once, late, delay = design.core.plant(exact)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    parts = design.core.controller()
    controller = None
    if parts is not None:
        num, den, period = parts
        controller = {"num": list(num), "den": list(den), "period_s": period}
    return {
        "A": [list(row) for row in now],
        "A_d": [list(row) for row in delayed],
        "B": [[x] for x in at_once],
        "B_d": [[x] for x in late],
        "C": [[0.0, 1.0]],
        "delay_s": delay,
        "states": ["window_pkts", "queue_pkts"],
        "controller": controller,
    }


def save(design: Loop, path: Path, exact: bool) -> None:
    """Write state space and controller as MATLAB's .mat or as .json.

    Args:
        design: A result of `theory.design`.
        path: The file; its suffix selects the format.
        exact: Use the exact linearisation of the fluid model instead of the textbook plant.
    """
    found = state_space(design, exact)
    try:
        match path.suffix:
            case ".json":
                path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            case ".mat":
                own = found["controller"]
                arrays = {name: np.array(found[name]) for name in ("A", "A_d", "B", "B_d", "C")}
                told = {} if own is None else {key: np.array(own[key]) for key in ("num", "den")}
                # MATLAB has no null: period 0 stands for a continuous controller.
                period = {} if own is None else {"period_s": own["period_s"] or 0.0}
                optional("scipy.io", "control").savemat(
                    path, {**arrays, "delay_s": found["delay_s"], "controller": {**told, **period}}
                )
            case _:
                raise ScenarioError(f"{path}: the suffix must be .mat or .json")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error}") from None


def nu_gap(one: Loop, other: Loop, *, weighted: bool = True, exact: bool = True, points: int = 4000) -> float:
    """Return Vinnicombe's nu-gap between the plants of two designs: 0 if equal, at most 1.

    A controller that stabilises the first plant with a generalised stability margin above the gap also stabilises the
    second. The gap depends on the plants' units; weighted by the first controller it compares loops.

    Args:
        one: The first design.
        other: The second design.
        weighted: Multiply both plants by the controller of the first design.
        exact: Use the exact linearisations of the fluid models instead of the textbook plants.
        points: Number of frequencies.
    """
    w = np.geomspace(1e-4, 1e3, points) / one.operating_point["rtt_s"]
    first, second = (design.plant_response(w, exact=exact) for design in (one, other))
    if weighted:
        num, den, period = _controller(one)
        at = 1j * w if period is None else np.exp(-1j * w * period)
        weight = np.polynomial.polynomial.polyval(at, num) / np.polynomial.polynomial.polyval(at, den)
        # A sampled controller acts up to half the sampling frequency.
        inside = np.ones_like(w, dtype=bool) if period is None else w < np.pi / period
        first, second, w = (first * weight)[inside], (second * weight)[inside], w[inside]
    # Both plants are stable, so 1 + conj(P2) P1 must not encircle the origin.
    turns = 1 + np.conj(second) * first
    if np.any(turns == 0) or round(float(np.diff(np.unwrap(np.angle(turns))).sum()) / np.pi) != 0:
        return 1.0
    return float(np.max(np.abs(first - second) / np.sqrt((1 + np.abs(first) ** 2) * (1 + np.abs(second) ** 2))))


def _textbook(design: Loop) -> tuple[float, list[float], float]:
    """Return gain, poles (window, queue) and dead time of the textbook plant."""
    now, _, _, late, delay = design.core.plant(False)
    return late[0] * now[1][0], [now[0][0], now[1][1]], delay


def _controller(design: Loop) -> tuple[Sequence[float], Sequence[float], float | None]:
    parts = design.core.controller()
    if parts is None:
        raise ScenarioError(f"{design.aqm} is not a linear controller")
    return parts


def matlab(design: Loop) -> str:
    """Return plant with dead time, controller and exact response as a script for MATLAB or Octave.

    Args:
        design: A result of `theory.design`.
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


def _padded(coefficients: Sequence[float], length: int) -> list[float]:
    return [*coefficients, *[0.0] * (length - len(coefficients))]
