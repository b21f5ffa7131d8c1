"""Stability maps and robust designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aqumen import _core, engines
from aqumen.errors import ScenarioError
from aqumen.tables import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.result import Floats
    from aqumen.theory.design import Design

_Span = tuple[float, float]

__all__ = ["AXES", "RobustAqm", "RobustPi", "StabilityMap", "robust", "robust_pi", "stability_map"]

AXES = {
    "flows": "Flows",
    "rtt": "Base RTT, s",
    "capacity": "Capacity, packets/s",
    "target": "Queue at rest, packets",
    "gain": "Factor on the controller",
}
"""What a map can vary, with the title of its axis."""
MAP_POINTS_MAX = 1_000_000
"""Points of a map at most: some minutes, and 40 bytes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityMap:
    """The loop of one controller over two quantities; every array has the shape (y, x)."""

    aqm: str
    """Name of the algorithm."""
    x: tuple[str, Floats]
    """The first axis: its name and its values."""
    y: tuple[str, Floats]
    """The second axis."""
    stable: NDArray[np.bool_]
    """Whether the loop is stable."""
    feasible: NDArray[np.bool_]
    """Whether a probability in [0, 1] holds the queue there."""
    gain_margin: Floats
    """Largest gain that is stable, as a factor; NaN where there is no largest, or none is stable."""
    phase_margin_deg: Floats
    """Phase margin, degrees; negative where the loop is unstable."""
    modulus_margin: Floats
    """Smallest distance of the loop from -1; negative where the loop is unstable."""

    def plot(self) -> Figure:
        """Gain margin in colour, the boundary of stability as a line, what is out of reach hatched."""
        pyplot = optional("matplotlib.pyplot", "plot")
        figure, axes = pyplot.subplots(figsize=(6.4, 4.8), layout="constrained")
        with np.errstate(invalid="ignore"):
            # A loop without a largest stable gain is stable at any, or at none.
            none = np.where(self.stable, 10.0, 0.1)
            shown = np.clip(np.where(np.isnan(self.gain_margin), none, self.gain_margin), 0.1, 10.0)
        levels = np.geomspace(0.1, 10, 41)
        filled = axes.contourf(self.x[1], self.y[1], np.log10(shown), levels=np.log10(levels), cmap="RdYlGn")
        bar = figure.colorbar(filled, ax=axes, ticks=np.log10([0.1, 0.3, 1, 3, 10]))
        bar.ax.set_yticklabels(["0.1", "0.3", "1", "3", "10"])
        bar.set_label("Gain margin")
        if self.stable.any() and not self.stable.all():
            axes.contour(self.x[1], self.y[1], self.stable.astype(float), levels=[0.5], colors="black", linewidths=1.4)
        if not self.feasible.all():
            axes.contourf(
                self.x[1], self.y[1], self.feasible.astype(float), levels=[-0.5, 0.5], colors="none", hatches=["//"]
            )
        axes.set(xlabel=AXES[self.x[0]], ylabel=AXES[self.y[0]], title=f"{self.aqm}: stable above a gain margin of 1")
        for name, values, scale in (("x", self.x[1], axes.set_xscale), ("y", self.y[1], axes.set_yscale)):
            if len(values) > 2 and values.min() > 0 and values.max() / values.min() > 8:
                scale("log")
            del name
        return figure  # type: ignore[no-any-return]


def stability_map(
    design: Design,
    x: str,
    x_values: Sequence[float] | Floats,
    y: str,
    y_values: Sequence[float] | Floats,
    threads: int | None = None,
) -> StabilityMap:
    """The loop of a design over two quantities, everything else as it was designed for.

    Args:
        design: The design.
        x: The first quantity: `flows`, `rtt` (s), `capacity` (packets/s), `target` (packets) or `gain` (a factor).
        x_values: Its values.
        y: The second quantity.
        y_values: Its values.
        threads: How many at a time; without it one per core.
    """
    across, up = np.asarray(x_values, dtype=float), np.asarray(y_values, dtype=float)
    if not len(across) or not len(up):
        raise ScenarioError("a map needs at least one value on each axis")
    if len(across) * len(up) > MAP_POINTS_MAX:
        raise ScenarioError(
            f"a map of {len(across)} by {len(up)} points; at most {MAP_POINTS_MAX} together are accepted"
        )
    try:
        columns = design.core.map((x, across.tolist()), (y, up.tolist()), threads or engines.cores())
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    shape = (len(up), len(across))
    feasible, stable, gain, phase, modulus = (np.array(column).reshape(shape) for column in columns)
    return StabilityMap(
        aqm=design.aqm,
        x=(x, across),
        y=(y, up),
        stable=stable,
        feasible=feasible,
        gain_margin=gain,
        phase_margin_deg=phase,
        modulus_margin=modulus,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustPi:
    """The PI that is best over ranges of networks."""

    a: float
    """Weight of the present error, per packet."""
    b: float
    """Weight of the previous error, per packet."""
    frequency_hz: float
    """Samples per second."""
    gain: float
    """Integral gain K, per packet and second."""
    zero_rad_s: float
    """Zero z, rad/s."""
    worst_modulus_margin: float
    """Its smallest modulus margin over the ranges."""
    slowest_crossover_rad_s: float
    """Its slowest crossover over the ranges."""
    usual_worst_modulus_margin: float
    """Smallest modulus margin of the usual design for the centre; negative where that is unstable."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC, ready to run."""
        return f"pi:a={self.a:.6e},b={self.b:.6e},frequency={self.frequency_hz:g}Hz"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = self.__dataclass_fields__
        return {**{name: getattr(self, name) for name in names}, "spec": self.spec}


def robust_pi(
    design: Design,
    *,
    flows: tuple[float, float] | None = None,
    rtt_s: tuple[float, float] | None = None,
    capacity_pps: tuple[float, float] | None = None,
    frequency_hz: float = 160.0,
    slowest_rad_s: float | None = None,
) -> RobustPi:
    """The PI whose worst modulus margin over ranges of networks is largest, nowhere slower than asked.

    Without a demand on speed: the one that is fastest where it is slowest, with a worst margin of 0.5.

    Args:
        design: A design, from which everything that has no range is taken.
        flows: Numbers of flows, from and to.
        rtt_s: Base RTTs, seconds.
        capacity_pps: Capacities, packets/s.
        frequency_hz: Samples per second.
        slowest_rad_s: The slowest crossover that will do, rad/s.
    """
    ranges = _ranges(design, flows, rtt_s, capacity_pps)
    try:
        a, b, gain, zero, worst, slowest, usual = design.core.robust_pi(*ranges, frequency_hz, slowest_rad_s)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    return RobustPi(
        a=a,
        b=b,
        frequency_hz=frequency_hz,
        gain=gain,
        zero_rad_s=zero,
        worst_modulus_margin=worst,
        slowest_crossover_rad_s=slowest,
        usual_worst_modulus_margin=usual,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustAqm:
    """An AQM whose gain and speed are best over ranges of networks."""

    aqm: str
    """Name of the algorithm."""
    values: dict[str, float]
    """The parameters that were found; the others stay as they were."""
    worst_modulus_margin: float
    """Its smallest modulus margin over the ranges."""
    slowest_crossover_rad_s: float
    """Its slowest crossover over the ranges."""
    given_worst_modulus_margin: float
    """Smallest modulus margin as it was given; negative where that is unstable."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC, of the parameters that were found."""
        return f"{self.aqm}:" + ",".join(f"{name}={value:.6g}" for name, value in self.values.items())

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = self.__dataclass_fields__
        return {**{name: getattr(self, name) for name in names}, "spec": self.spec}


def robust(
    design: Design,
    *,
    flows: tuple[float, float] | None = None,
    rtt_s: tuple[float, float] | None = None,
    capacity_pps: tuple[float, float] | None = None,
    slowest_rad_s: float | None = None,
) -> RobustAqm:
    """The design's AQM with the gain and speed that are best over ranges of networks, as `robust_pi` does for PI.

    RED's max_p and weight, REM's gamma and alpha, PAQM's alpha or ARM-PFC's Psi are searched.

    Args:
        design: A design, from which everything that has no range is taken.
        flows: Numbers of flows, from and to.
        rtt_s: Base RTTs, seconds.
        capacity_pps: Capacities, packets/s.
        slowest_rad_s: The slowest crossover that will do, rad/s.
    """
    try:
        found, worst, slowest, given = design.core.robust(*_ranges(design, flows, rtt_s, capacity_pps), slowest_rad_s)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    return RobustAqm(
        aqm=design.aqm,
        values=dict(found),
        worst_modulus_margin=worst,
        slowest_crossover_rad_s=slowest,
        given_worst_modulus_margin=given,
    )


def _ranges(design: Design, flows: _Span | None, rtt_s: _Span | None, pps: _Span | None) -> tuple[_Span, _Span, _Span]:
    """Ranges of flows, base RTT and capacity; the design's own value where none is given."""
    point = design.operating_point

    def span(given: _Span | None, key: str) -> _Span:
        return given if given is not None else (point[key], point[key])

    return span(flows, "flows"), span(rtt_s, "base_rtt_s"), span(pps, "capacity_pps")
