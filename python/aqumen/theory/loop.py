"""Loop of an AQM in a network: gains, operating point, margins, frequency responses, poles, noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aqumen import _core
from aqumen.errors import ScenarioError, optional

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["Complexes", "Loop", "from_control"]

SCHEMA = 1
"""Version of the JSON of a design; it grows when a key is removed or changes its meaning."""
Complexes = NDArray[np.complex128]


class Loop:
    """An AQM with its gains in a network, and its open loop."""

    def __init__(self, core: _core.Analysis) -> None:
        """Wrap a compiled analysis.

        Args:
            core: The compiled analysis.
        """
        self.core: _core.Analysis = core
        """The compiled analysis."""
        found: dict[str, Any] = json.loads(core.json)
        self.data: dict[str, Any] = {"schema": SCHEMA, "aqumen": _core.__version__, **found}
        """All results, as `aqumen design --json` prints them."""
        self.each: dict[str, Any] = {}
        """Designs by sender, this one included; empty with a model."""

    @property
    def others(self) -> list[_core.Analysis]:
        """Compiled analyses of the other senders."""
        return [design.core for design in self.each.values() if design is not self]

    @property
    def aqm(self) -> str:
        """Name of the algorithm."""
        return str(self.data["aqm"])

    @property
    def gains(self) -> dict[str, Any]:
        """Parameters in force and derived quantities, by the symbols of their source."""
        return dict(self.data["gains"])

    @property
    def margins(self) -> dict[str, Any] | None:
        """Margins with the textbook plant, and under `exact` with the exact one; `None` without a linear controller."""
        found: dict[str, Any] | None = self.data["margins"]
        return found

    @property
    def operating_point(self) -> dict[str, Any]:
        """Operating point and the plant's constants there."""
        return dict(self.data["operating_point"])

    @property
    def hopf(self) -> dict[str, Any] | None:
        """Hopf bifurcation as the gain varies, and its limit cycle; `None` for nonlinear laws."""
        found: dict[str, Any] | None = self.data["hopf"]
        return found

    @property
    def noise(self) -> dict[str, Any]:
        """Queue noise around the operating point; if not `valid`, `why` gives the reason."""
        return dict(self.data["noise"])

    def noise_power(self, w: ArrayLike) -> Floats:
        """Return the spectrum of the queue noise, packets^2 s. Its integral over w, divided by pi, is the variance.

        Args:
            w: Frequencies, rad/s.

        Raises:
            ScenarioError: The noise of this loop is unknown.
        """
        try:
            return np.array(self.core.noise_power(_list(w)))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def warnings(self) -> list[str]:
        """Reasons against the design."""
        return list(self.data["warnings"])

    @property
    def notes(self) -> list[str]:
        """Explanations of values that are `None`."""
        return list(self.data["notes"])

    @property
    def json(self) -> str:
        """All results as JSON text."""
        return json.dumps(self.data)

    def frequencies(self, points: int = 2000) -> Floats:
        """Return frequencies around the crossover, rad/s, up to half the sampling frequency.

        Args:
            points: Number of frequencies.
        """
        delay = self.operating_point["rtt_s"]
        margins = self.margins or {}
        centre = margins.get("crossover_rad_s") or 1 / delay
        parts = self.core.controller()
        top = 100 * max(centre, 1 / delay)
        if parts is not None and parts[2] is not None:
            top = min(top, np.pi / parts[2])
        return np.geomspace(min(0.01 * centre, 0.1 * top), top, points)

    def plant_response(self, w: ArrayLike, *, exact: bool = True) -> Complexes:
        """Return the response of the queue (packets) to the probability, including the delay.

        Args:
            w: Frequencies, rad/s.
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
        """
        real, imaginary = self.core.plant_response(_list(w), exact)
        return np.array(real) + 1j * np.array(imaginary)

    def loop_response(self, w: ArrayLike, *, exact: bool = True, controller: Any = None) -> Complexes:
        """Return the response of the open loop; -1 is the critical point.

        Args:
            w: Frequencies, rad/s.
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
            controller: Replacement controller: a transfer function of python-control from packets to probability.
        """
        parts = None if controller is None else from_control(controller)
        real, imaginary = self.core.loop_response(_list(w), exact, parts)
        return np.array(real) + 1j * np.array(imaginary)

    def margins_with(self, controller: Any, *, exact: bool = True) -> dict[str, Any]:
        """Return the margins of the loop with another controller.

        Args:
            controller: A transfer function of python-control from packets to probability, continuous or sampled.
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
        """
        return self.core.margins(exact, from_control(controller))

    def poles(self, gain: float = 1.0) -> Complexes | None:
        """Return the poles of the sampled loop with the textbook plant; `None` for a continuous controller.

        Args:
            gain: Factor on the controller, for root loci.
        """
        found = self.core.sampled_poles(gain)
        return None if found is None else np.array(found[0]) + 1j * np.array(found[1])

    def sensitivities(self, w: ArrayLike, *, exact: bool = True) -> tuple[Complexes, Complexes]:
        """Return the sensitivity S = 1 / (1 + L) and the complementary sensitivity T = L / (1 + L).

        Args:
            w: Frequencies, rad/s.
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
        """
        loop = self.loop_response(w, exact=exact)
        return 1 / (1 + loop), loop / (1 + loop)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aqm!r}, warnings={len(self.warnings)})"


def _list(w: ArrayLike) -> list[float]:
    return [float(x) for x in np.atleast_1d(np.asarray(w, dtype=np.float64))]


def from_control(controller: Any) -> tuple[Sequence[float], Sequence[float], float | None]:
    """Return numerator, denominator and period of a transfer function or state-space system of python-control.

    Args:
        controller: Controller from packets to probability; one input, one output.
    """
    control = optional("control", "control")
    system = control.tf(controller)
    if system.ninputs != 1 or system.noutputs != 1:
        raise ScenarioError("a controller must have one input (packets) and one output (probability)")
    num, den = (np.asarray(system.num[0][0], dtype=float), np.asarray(system.den[0][0], dtype=float))
    if not system.dt:
        return num[::-1].tolist(), den[::-1].tolist(), None
    if system.dt is True:
        raise ScenarioError("the sampling period of the controller is not given; make it tf(num, den, dt)")
    # Divide both by the highest power of z in the denominator, for polynomials in 1/z.
    if len(num) > len(den):
        raise ScenarioError("the controller is not causal: its numerator has a higher degree than its denominator")
    return [0.0] * (len(den) - len(num)) + num.tolist(), den.tolist(), float(system.dt)
