"""Stability maps and robust designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aqumen import _core, engines
from aqumen.errors import ScenarioError
from aqumen.view.tables import optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.engines.answer import Floats
    from aqumen.theory.loop import Loop

_Span = tuple[float, float]

__all__ = [
    "AXES",
    "SHOWN",
    "Boundary",
    "RobustAqm",
    "RobustPi",
    "StabilityMap",
    "boundary",
    "robust",
    "robust_pi",
    "stability_map",
]

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
SHOWN = {
    "gain_margin": "Gain margin",
    "queue_std_pkts": "Deviation of the queue, packets",
    "qacd_pkts": "QACD, packets",
    "queue_p95_pkts": "95th percentile of the queue, packets",
    "utilization_lost": "Utilization lost",
}
"""What a map can show, with its title."""
MODULUS_MARGIN = 0.5
"""Modulus margin that a robust design keeps unless another is asked for."""
NOISE_SPEED = 0.5
"""Share of the speed that a design of least noise keeps: without any, no integral brings the queue to its target."""


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
    noise_valid: NDArray[np.bool_]
    """Whether the figures of noise hold; those that are there although they do not are estimates."""
    queue_std_pkts: Floats
    """Deviation of the queue as packets make it; NaN where nothing is known, in unstable loops above all."""
    qacd_pkts: Floats
    """Root of the mean square of its distance from the target; NaN also where there is no target."""
    queue_p95_pkts: Floats
    """The length that it stays below for 95 % of the time."""
    utilization_lost: Floats
    """Share of the capacity that is lost while it is empty."""
    coexisting_std_pkts: Floats
    """Of a stable loop with little margin: deviation of the cycle on which the nonlinear equations stay from four times
    their rest; NaN where there is none, everywhere where it was not looked for."""
    coexisting_period_s: Floats
    """Its period."""
    supercritical: Floats
    """1 where cycles stand beyond the boundary of stability, 0 where on its stable side, so that a large start
    swings; NaN far from the boundary, where it is not known, and where it was not looked for."""

    def plot(self, show: str = "gain_margin") -> Figure:
        """A quantity in colour, the boundary of stability as a line, what is out of reach hatched.

        Where cycles were looked for: crosses where one coexists with the stable rest, and the line in violet where
        cycles stand on the stable side of it.

        Args:
            show: `gain_margin`, `queue_std_pkts`, `qacd_pkts`, `queue_p95_pkts` or `utilization_lost`.
        """
        if show not in SHOWN:
            raise ScenarioError(f"a map does not show `{show}`; choose from: {', '.join(SHOWN)}")
        pyplot = optional("matplotlib.pyplot", "plot")
        figure, axes = pyplot.subplots(layout="constrained")
        if show == "gain_margin":
            with np.errstate(invalid="ignore"):
                # A loop without a largest stable gain is stable at any, or at none.
                none = np.where(self.stable, 10.0, 0.1)
                shown = np.clip(np.where(np.isnan(self.gain_margin), none, self.gain_margin), 0.1, 10.0)
            levels = np.geomspace(0.1, 10, 41)
            filled = axes.contourf(self.x[1], self.y[1], np.log10(shown), levels=np.log10(levels), cmap="RdYlGn")
            bar = figure.colorbar(filled, ax=axes, ticks=np.log10([0.1, 0.3, 1, 3, 10]))
            bar.ax.set_yticklabels(["0.1", "0.3", "1", "3", "10"])
        else:
            held = np.ma.masked_invalid(getattr(self, show))
            if not held.count():
                raise ScenarioError(f"nothing is known of {show} anywhere on this map: no stable loop, or no target")
            bar = figure.colorbar(
                axes.pcolormesh(self.x[1], self.y[1], held, cmap="viridis", shading="nearest"), ax=axes
            )
        bar.set_label(SHOWN[show])
        if self.stable.any() and not self.stable.all():
            stable = self.stable.astype(float)
            for stands, colour in ((self.supercritical != 0, "black"), (self.supercritical == 0, "darkviolet")):
                if stands.any():
                    line = np.ma.masked_where(~stands, stable)
                    axes.contour(self.x[1], self.y[1], line, levels=[0.5], colors=colour, linewidths=1.4)
        swings = ~np.isnan(self.coexisting_std_pkts)
        if swings.any():
            axes.contourf(self.x[1], self.y[1], swings.astype(float), levels=[0.5, 1.5], colors="none", hatches=["xx"])
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
    design: Loop,
    x: str,
    x_values: Sequence[float] | Floats,
    y: str,
    y_values: Sequence[float] | Floats,
    threads: int | None = None,
    *,
    cycles: bool = False,
) -> StabilityMap:
    """The loop of a design over two quantities, everything else as it was designed for.

    Args:
        design: Plant, controller and operating point, as `theory.design` answers.
        x: The first quantity: `flows`, `rtt` (s), `capacity` (packets/s), `target` (packets) or `gain` (a factor).
        x_values: Where to look, rising: its points along the map's width.
        y: The second quantity.
        y_values: The same along its height.
        threads: How many at a time; without it one per core.
        cycles: Also look for cycles near the boundary, which runs the nonlinear equations: some 10 ms a point there,
            about a minute for 10 000 points.
    """
    across, up = np.asarray(x_values, dtype=float), np.asarray(y_values, dtype=float)
    if not len(across) or not len(up):
        raise ScenarioError("a map needs at least one value on each axis")
    if len(across) * len(up) > MAP_POINTS_MAX:
        raise ScenarioError(
            f"a map of {len(across)} by {len(up)} points; at most {MAP_POINTS_MAX} together are accepted"
        )
    try:
        columns = design.core.map((x, across.tolist()), (y, up.tolist()), threads or engines.cores(), cycles)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    shape = (len(up), len(across))
    feasible, stable, valid = (np.array(column).reshape(shape) for column in columns[:3])
    gain, phase, modulus, deviation, qacd, p95, lost = (np.array(column).reshape(shape) for column in columns[3])
    none = [np.nan] * (len(across) * len(up))
    coexisting, period, supercritical = (np.array(column or none).reshape(shape) for column in columns[4])
    return StabilityMap(
        aqm=design.aqm,
        x=(x, across),
        y=(y, up),
        stable=stable,
        feasible=feasible,
        gain_margin=gain,
        phase_margin_deg=phase,
        modulus_margin=modulus,
        noise_valid=valid,
        queue_std_pkts=deviation,
        qacd_pkts=qacd,
        queue_p95_pkts=p95,
        utilization_lost=lost,
        coexisting_std_pkts=coexisting,
        coexisting_period_s=period,
        supercritical=supercritical,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A piece of the boundary of stability over two quantities: points along a curve."""

    x: Floats
    """The first quantity."""
    y: Floats
    """The second."""
    period_s: Floats
    """Period of the swing that neither grows nor dies out there, seconds."""
    supercritical: Floats
    """1 where cycles stand beyond the boundary, 0 where on its stable side; NaN where it is not known."""


def boundary(
    design: Loop, x: str, x_range: _Span, y: str, y_range: _Span, threads: int | None = None
) -> list[Boundary]:
    """The boundary of stability over two quantities, followed as a curve; a piece for each that lies in the ranges.

    Refused for RED and ARED, whose gain jumps: a map shows what is stable.

    Args:
        design: The design, whose controller is kept.
        x: The first quantity: `flows`, `rtt` (s), `capacity` (packets/s), `target` (packets) or `gain` (a factor).
        x_range: From and to, above 0.
        y: The second quantity.
        y_range: From and to.
        threads: How many at a time; without it one per core.
    """
    try:
        pieces = design.core.boundary((x, x_range), (y, y_range), threads or engines.cores())
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    names = ("x", "y", "period_s", "supercritical")
    return [Boundary(**dict(zip(names, map(np.array, columns), strict=True))) for columns in pieces]


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
    worst_qacd_pkts: float | None
    """Its largest QACD over the ranges, as packets make it; `None` where nothing is known of it somewhere."""
    usual_worst_modulus_margin: float
    """Smallest modulus margin of the usual design for the centre; negative where that is unstable."""
    usual_worst_qacd_pkts: float | None
    """Largest QACD of the usual design."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC, ready to run."""
        return f"pi:a={self.a:.12g},b={self.b:.12g},frequency={self.frequency_hz:g}Hz"

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = self.__dataclass_fields__
        return {**{name: getattr(self, name) for name in names}, "spec": self.spec}


def robust_pi(
    design: Loop,
    *,
    flows: tuple[float, float] | None = None,
    rtt_s: tuple[float, float] | None = None,
    capacity_pps: tuple[float, float] | None = None,
    frequency_hz: float = 160.0,
    slowest_rad_s: float | None = None,
    modulus_margin: float = MODULUS_MARGIN,
    aim: str = "speed",
    speed: float = NOISE_SPEED,
) -> RobustPi:
    """The PI that is best over ranges of networks: fastest where it is slowest, or of least noise, at a worst margin.

    With `slowest_rad_s`: the one whose worst modulus margin is largest, nowhere slower than that.

    Args:
        design: A design, from which everything that has no range is taken.
        flows: Numbers of flows, from and to.
        rtt_s: Base RTTs, seconds.
        capacity_pps: Capacities, packets/s.
        frequency_hz: Samples per second.
        slowest_rad_s: The slowest crossover that will do, rad/s.
        modulus_margin: The worst modulus margin that is kept otherwise.
        aim: `speed`, or `noise` for the least QACD where packets move the queue furthest.
        speed: With `noise`, the share of the fastest such design's speed that is kept; with 1 it is that design.
    """
    ranges = _ranges(design, flows, rtt_s, capacity_pps)
    try:
        (a, b, gain, zero), (worst, slowest, qacd), (usual, _, usual_qacd) = design.core.robust_pi(
            *ranges, frequency_hz, _aim(aim, slowest_rad_s, modulus_margin, speed)
        )
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
        worst_qacd_pkts=_known(qacd),
        usual_worst_modulus_margin=usual,
        usual_worst_qacd_pkts=_known(usual_qacd),
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
    worst_qacd_pkts: float | None
    """Its largest QACD over the ranges, of an algorithm without a target the deviation, as packets make it; `None`
    where nothing is known of it somewhere."""
    given_worst_modulus_margin: float
    """Smallest modulus margin as it was given; negative where that is unstable."""
    given_worst_qacd_pkts: float | None
    """Largest QACD as it was given."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC, of the parameters that were found."""
        return f"{self.aqm}:" + ",".join(f"{name}={value:.6g}" for name, value in self.values.items())

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        names = self.__dataclass_fields__
        return {**{name: getattr(self, name) for name in names}, "spec": self.spec}


def robust(
    design: Loop,
    *,
    flows: tuple[float, float] | None = None,
    rtt_s: tuple[float, float] | None = None,
    capacity_pps: tuple[float, float] | None = None,
    slowest_rad_s: float | None = None,
    modulus_margin: float = MODULUS_MARGIN,
    aim: str = "speed",
    speed: float = NOISE_SPEED,
) -> RobustAqm:
    """The design's AQM with the gain and speed that are best over ranges of networks, as `robust_pi` does for PI.

    RED's max_p and weight, REM's gamma and alpha, PAQM's alpha or ARM-PFC's Psi are searched.

    Args:
        design: A design, from which everything that has no range is taken.
        flows: Numbers of flows, from and to.
        rtt_s: Base RTTs, seconds.
        capacity_pps: Capacities, packets/s.
        slowest_rad_s: The slowest crossover that will do, rad/s.
        modulus_margin: The worst modulus margin that is kept otherwise.
        aim: `speed`, or `noise` for the least QACD where packets move the queue furthest.
        speed: With `noise`, the share of the fastest such design's speed that is kept; with 1 it is that design.
    """
    try:
        found, (worst, slowest, qacd), (given, _, given_qacd) = design.core.robust(
            *_ranges(design, flows, rtt_s, capacity_pps), _aim(aim, slowest_rad_s, modulus_margin, speed)
        )
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    return RobustAqm(
        aqm=design.aqm,
        values=dict(found),
        worst_modulus_margin=worst,
        slowest_crossover_rad_s=slowest,
        worst_qacd_pkts=_known(qacd),
        given_worst_modulus_margin=given,
        given_worst_qacd_pkts=_known(given_qacd),
    )


def _aim(aim: str, slowest_rad_s: float | None, modulus_margin: float, speed: float) -> tuple[str, float, float]:
    if aim not in ("speed", "noise"):
        raise ScenarioError(f"unknown aim `{aim}`; choose from: speed, noise")
    return (aim, modulus_margin, speed) if slowest_rad_s is None else ("margin", slowest_rad_s, speed)


def _known(qacd: float) -> float | None:
    return qacd if np.isfinite(qacd) else None


def _ranges(design: Loop, flows: _Span | None, rtt_s: _Span | None, pps: _Span | None) -> tuple[_Span, _Span, _Span]:
    """Ranges of flows, base RTT and capacity; the design's own value where none is given."""
    point = design.operating_point

    def span(given: _Span | None, key: str) -> _Span:
        return given if given is not None else (point[key], point[key])

    return span(flows, "flows"), span(rtt_s, "base_rtt_s"), span(pps, "capacity_pps")
