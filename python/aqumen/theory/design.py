"""Design of an AQM for a network: gains, operating point, margins, and the loop to look at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aqumen import _core
from aqumen.custom import catalogue, specs
from aqumen.errors import ScenarioError, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.aqms import Aqm
    from aqumen.custom import Own
    from aqumen.result import Floats

__all__ = ["Design", "design"]

SCHEMA = 1
"""Version of the JSON of a design. It grows when a key changes its meaning or goes away."""
MODELS = ("hollot", "ecn", "reno", "drop")
"""Fluid models of the operating point."""

Complexes = NDArray[np.complex128]


def design(
    aqm: str | Aqm | Own,
    *,
    capacity: str | float,
    flows: float,
    rtt: str | float | None = None,
    r0: str | float | None = None,
    target: str | float | None = None,
    packet: str | float = "1000B",
    buffer: str | float | None = None,
    model: str = "hollot",
    own: Sequence[Own] = (),
) -> Design:
    """Design an AQM for a network and analyse its loop.

    Args:
        aqm: A SPEC: `pi`, `arm-pfc:h=7`; an object of `aqumen.aqms`; or a class of your own.
        capacity: Capacity of the link: `30Mbit`, or bits per second.
        flows: Number of long-lived flows.
        rtt: Round-trip time without queueing: `200ms`, or seconds. Either this or `r0`.
        r0: Round-trip time at the target, queueing included.
        target: Target queue: `100pkt`, or packets; without it a fifth of the round trip at the target.
        packet: Packet size on the wire: `1000B`, or bytes.
        buffer: Room of the queue: `300pkt`, or packets; without it three targets.
        model: Fluid model of the operating point: `hollot`, `ecn`, `reno` or `drop`.
        own: Classes of your own AQMs, which the SPEC may name.
    """
    (spec,), classes = specs([aqm])
    if (rtt is None) == (r0 is None):
        raise ScenarioError("give either rtt (without queueing) or r0 (at the target)")
    if model not in MODELS:
        raise ScenarioError(f"unknown fluid model `{model}`; choose from: {listed(MODELS)}")
    scenario = _network(
        _written(capacity, "bit"),
        float(flows),
        _written(r0 if rtt is None else rtt, "s"),
        rtt is None,
        _written(packet, "B"),
        None if target is None else _written(target, "pkt"),
        None if buffer is None else _written(buffer, "pkt"),
        catalogue((*own, *classes)) if own or classes else None,
    )
    try:
        return Design(_core.analyse(scenario, spec, rtt is None, model))
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


class Design:
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
        parts = None if controller is None else _parts(controller)
        real, imaginary = self.core.loop_response(_list(w), exact, parts)
        return np.array(real) + 1j * np.array(imaginary)

    def margins_with(self, controller: Any, *, exact: bool = True) -> dict[str, Any]:
        """Margins of the loop with another controller.

        Args:
            controller: A transfer function of python-control from packets to probability, continuous or sampled.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        return self.core.margins(exact, _parts(controller))

    def poles(self, gain: float = 1.0) -> Complexes | None:
        """Poles of the sampled loop with the textbook's plant; `None` where the controller is not sampled.

        Args:
            gain: A factor on the controller, for root loci.
        """
        found = self.core.sampled_poles(gain)
        return None if found is None else np.array(found[0]) + 1j * np.array(found[1])

    def to_control(self, pade: int | None = None) -> tuple[Any, Any, Any]:
        """Plant, controller and loop as systems of python-control; the loop is minus plant times controller.

        Without `pade` all three are exact frequency responses that interpolate, for `bode_plot`, `margin`,
        `nyquist_plot`, products and feedback; a sampled controller's plant is what it sees through its hold. With it
        they are transfer functions of the textbook's plant (Hollot's two poles and a dead time, which design rules are
        made for), for `step_response`, `poles`, `root_locus`, `feedback` too. A system's name says which it is.

        Args:
            pade: Order of the approximation of the plant's dead time.
        """
        from aqumen.theory.interop import to_control

        return to_control(self, pade)

    def state_space(self, *, exact: bool = True) -> dict[str, Any]:
        """The plant's matrices with its delay, A, A_d, B, B_d, C, delay_s, and the controller's coefficients.

        Args:
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        from aqumen.theory.interop import state_space

        return state_space(self, exact)

    def save(self, path: str | Path, *, exact: bool = True) -> None:
        """Write the state space and the controller as .mat or .json.

        Args:
            path: The file; its ending says which.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        from aqumen.theory.interop import save

        save(self, Path(path), exact)

    def sensitivities(self, w: ArrayLike, *, exact: bool = True) -> tuple[Complexes, Complexes]:
        """S = 1 / (1 + L), the answer of the error, and T = L / (1 + L), that of the queue, to a change of the target.

        Args:
            w: Frequencies, rad/s.
            exact: The exact linearisation of the fluid model; else the textbook's.
        """
        loop = self.loop_response(w, exact=exact)
        return 1 / (1 + loop), loop / (1 + loop)

    def step_metrics(self, band: float = 0.05) -> dict[str, float | None]:
        """Of the answer to a step of the target: rise from 10 to 90 %, overshoot, time until it stays in a band.

        Args:
            band: Half the width of the band around the new target, in steps.
        """
        from aqumen.theory.plots import step_metrics

        return step_metrics(self, band)

    def to_matlab(self) -> str:
        """A script for MATLAB: the textbook's plant with its dead time, the controller, the exact plant as a table."""
        from aqumen.theory.interop import matlab

        return matlab(self)

    def plot(self, kind: str = "nyquist") -> Figure:
        """Draw the loop.

        Args:
            kind: `nyquist`, `bode`, `nichols`, `step`, `locus` or `noise`.
        """
        from aqumen.theory.plots import plot

        return plot(self, kind)

    def __repr__(self) -> str:
        return f"Design({self.aqm!r}, warnings={len(self.warnings)})"


def _list(w: ArrayLike) -> list[float]:
    return [float(x) for x in np.atleast_1d(np.asarray(w, dtype=np.float64))]


def _parts(controller: Any) -> tuple[Sequence[float], Sequence[float], float | None]:
    from aqumen.theory.interop import from_control

    return from_control(controller)


def nominal_network(*, capacity: str | float, flows: float, rtt: str | float, packet: str | float) -> dict[str, Any]:
    """The numbers behind the units of a network: `capacity_bps`, `base_rtt_s`, `packet_bytes`, ...

    Args:
        capacity: Capacity of the link.
        flows: Number of flows.
        rtt: Round-trip time without queueing.
        packet: Packet size on the wire.
    """
    found = _network(
        _written(capacity, "bit"), float(flows), _written(rtt, "s"), False, _written(packet, "B"), "100pkt"
    )
    return dict(found.plan(1, "droptail")["nominal"])


def _written(value: str | float | None, unit: str) -> str:
    return value if isinstance(value, str) else f"{value!r}{unit}"


def _network(*numbers: Any) -> _core.Scenario:
    try:
        return _core.Scenario.from_network(*numbers)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
