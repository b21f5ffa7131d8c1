"""Loop of an AQM at a network: gains, operating point, margins, responses, poles, noise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aqumen import _core
from aqumen.errors import ScenarioError
from aqumen.view.tables import optional

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["Complexes", "Loop", "from_control"]

SCHEMA = 1
"""Version of the JSON of a design. It grows when a key changes its meaning or goes away."""
Complexes = NDArray[np.complex128]


class Loop:
    """An AQM with its gains at a network, and its loop."""

    def __init__(self, core: _core.Analysis) -> None:
        """Wrap what the analysis found.

        Args:
            core: The compiled analysis.
        """
        self.core: _core.Analysis = core
        """The compiled analysis."""
        found: dict[str, Any] = json.loads(core.json)
        self.data: dict[str, Any] = {"schema": SCHEMA, "aqumen": _core.__version__, **found}
        """Everything, as `aqumen design --json` prints it."""

    @property
    def aqm(self) -> str:
        """Name of the algorithm."""
        return str(self.data["aqm"])

    @property
    def gains(self) -> dict[str, Any]:
        """Parameters in force and what follows from them, by the symbols of their source."""
        return dict(self.data["gains"])

    @property
    def margins(self) -> dict[str, Any] | None:
        """Margins with the textbook's plant, under `exact` those with the exact one; `None` without a controller."""
        found: dict[str, Any] | None = self.data["margins"]
        return found

    @property
    def operating_point(self) -> dict[str, Any]:
        """Where the queue is to rest, and the plant's constants there."""
        return dict(self.data["operating_point"])

    @property
    def hopf(self) -> dict[str, Any] | None:
        """Where the loop becomes unstable as its gain moves, and the cycles there; `None` of other than linear laws."""
        found: dict[str, Any] | None = self.data["hopf"]
        return found

    @property
    def noise(self) -> dict[str, Any]:
        """What packets make the queue do around its rest, as far as it is `valid`; else `why` not."""
        return dict(self.data["noise"])

    def noise_power(self, w: ArrayLike) -> Floats:
        """Power of the queue as packets make it, packets^2 per rad/s: its integral over w, over pi, is the variance.

        Args:
            w: Frequencies, rad/s.
        """
        try:
            return np.array(self.core.noise_power(_list(w)))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def warnings(self) -> list[str]:
        """What speaks against the design."""
        return list(self.data["warnings"])

    @property
    def json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.data)

    def frequencies(self, points: int = 2000) -> Floats:
        """Frequencies around the crossover, rad/s, up to half the sampling frequency.

        Args:
            points: How many.
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
        """Response of the queue (packets) to the probability, delay and all.

        Args:
            w: Frequencies, rad/s.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        real, imaginary = self.core.plant_response(_list(w), exact)
        return np.array(real) + 1j * np.array(imaginary)

    def loop_response(self, w: ArrayLike, *, exact: bool = True, controller: Any = None) -> Complexes:
        """Response of the open loop; -1 is the critical point.

        Args:
            w: Frequencies, rad/s.
            exact: The exact linearisation of the fluid model; else the textbook's.
            controller: Another controller, a transfer function of python-control from packets to probability.
        """
        parts = None if controller is None else from_control(controller)
        real, imaginary = self.core.loop_response(_list(w), exact, parts)
        return np.array(real) + 1j * np.array(imaginary)

    def margins_with(self, controller: Any, *, exact: bool = True) -> dict[str, Any]:
        """Margins of the loop with another controller.

        Args:
            controller: A transfer function of python-control from packets to probability, continuous or sampled.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        return self.core.margins(exact, from_control(controller))

    def poles(self, gain: float = 1.0) -> Complexes | None:
        """Poles of the sampled loop with the textbook's plant; `None` where the controller is not sampled.

        Args:
            gain: A factor on the controller, for root loci.
        """
        found = self.core.sampled_poles(gain)
        return None if found is None else np.array(found[0]) + 1j * np.array(found[1])

    def sensitivities(self, w: ArrayLike, *, exact: bool = True) -> tuple[Complexes, Complexes]:
        """S = 1 / (1 + L), the answer of the error, and T = L / (1 + L), that of the queue, to a change of the target.

        Args:
            w: Frequencies, rad/s.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        loop = self.loop_response(w, exact=exact)
        return 1 / (1 + loop), loop / (1 + loop)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.aqm!r}, warnings={len(self.warnings)})"


def _list(w: ArrayLike) -> list[float]:
    return [float(x) for x in np.atleast_1d(np.asarray(w, dtype=np.float64))]


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
