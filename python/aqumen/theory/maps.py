"""Stability maps, stability boundaries and robust designs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from aqumen import _core, engines
from aqumen.errors import ScenarioError, optional
from aqumen.theory.over_plants import IdentifiedPlant, RobustOverPlants, over_plants

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
    "rtt": "Base RTT, ms",
    "capacity": "Capacity, packets/s",
    "target": "Equilibrium queue, packets",
    "gain": "Factor on the controller",
    "delay": "Added delay, s",
    "rtt_estimate": "Estimate of the base RTT over its value",
    "capacity_estimate": "Estimate of the capacity over its value",
    "flows_estimate": "Estimate of the number of flows over its value",
}
"""Quantities that a map can vary, with the titles of its axes."""
DESIGN_AXES = (
    "flows",
    "rtt",
    "capacity",
    "target",
    "gain",
    "rtt_estimate",
    "capacity_estimate",
    "flows_estimate",
)
"""Quantities of a map of designs."""
PLANT_AXES = ("gain", "delay")
"""Quantities of a map of identified loops: their networks do not vary."""
SCALED = {"rtt": 1000.0}
"""Factors from the base unit of an axis to that of its labels."""
WIDE = 8.0
"""Ratio of the ends from which an axis is logarithmic."""
MAP_POINTS_MAX = 1_000_000
"""Maximum number of points of a map: some minutes, and 40 bytes each."""
SHOWN = {
    "gain_margin": "Gain margin",
    "queue_std_pkts": "Standard deviation of the queue, packets",
    "qacd_pkts": "QACD, packets",
    "queue_p95_pkts": "95th percentile of the queue, packets",
    "utilization_lost": "Utilisation lost",
}
"""Quantities that a map can show, with their titles."""
MODULUS_MARGIN = 0.5
"""Default modulus margin of a robust design."""
NOISE_SPEED = 0.5
"""Fraction of the highest speed that a least-noise design keeps: without integral action the queue misses its target.
"""


class VariableLoop(Protocol):
    """Loop of an identified plant, as a map varies it."""

    aqm: str
    """Name of the controller."""

    def varied(self, *, gain: float = 1.0, delay_s: float = 0.0) -> dict[str, Any]:
        """Return the margins with a factor on the controller and an added delay, seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityMap:
    """Stability and noise of a loop over two quantities, the worst of its senders or plants; every array has the shape
    (y, x)."""

    aqm: str
    """Name of the algorithm."""
    x: tuple[str, Floats]
    """Name and values of the horizontal axis."""
    y: tuple[str, Floats]
    """Name and values of the vertical axis."""
    stable: NDArray[np.bool_]
    """Whether the loop is stable."""
    feasible: NDArray[np.bool_]
    """Whether an equilibrium with a probability in [0, 1] exists."""
    gain_margin: Floats
    """Largest stable factor on the gain; NaN if there is no largest, or no stable one."""
    phase_margin_deg: Floats
    """Phase margin, degrees; negative for an unstable loop."""
    modulus_margin: Floats
    """Smallest distance of the loop from -1; negative for an unstable loop."""
    noise_valid: NDArray[np.bool_]
    """Whether the noise model holds; other values are estimates."""
    queue_std_pkts: Floats
    """Standard deviation of the queue from packet noise, packets; NaN where unknown, as in unstable loops."""
    qacd_pkts: Floats
    """Root mean square distance of the queue from the target, packets; NaN also without a target."""
    queue_p95_pkts: Floats
    """The 95th percentile of the queue over time, packets."""
    utilization_lost: Floats
    """Fraction of the capacity that is lost while the queue is empty."""
    coexisting_std_pkts: Floats
    """Standard deviation of a limit cycle that coexists with a stable equilibrium, packets. Started from four times the
    equilibrium queue; NaN if there is none or if `cycles` was not set."""
    coexisting_period_s: Floats
    """Period of that cycle, seconds."""
    supercritical: Floats
    """1 for a supercritical Hopf bifurcation (cycles on the unstable side of the boundary), 0 for a subcritical one (a
    large perturbation oscillates on the stable side); NaN far from the boundary, if unknown or if `cycles` was not
    set."""

    def plot(self, show: str = "gain_margin") -> Figure:
        """Plot a quantity in colour, the stability boundary as a line, and infeasible points hatched.

        With `cycles`, crosses mark cycles that coexist with a stable equilibrium, and the boundary is violet where the
        Hopf bifurcation is subcritical.

        Args:
            show: `gain_margin`, `queue_std_pkts`, `qacd_pkts`, `queue_p95_pkts` or `utilization_lost`.
        """
        if show not in SHOWN:
            raise ScenarioError(f"unknown quantity `{show}` of a map; choose from: {', '.join(SHOWN)}")
        pyplot = optional("matplotlib.pyplot", "plot")
        figure, axes = pyplot.subplots(layout="constrained")
        if show == "gain_margin":
            with np.errstate(invalid="ignore"):
                # Without a largest stable gain, a loop is stable at every gain or at none.
                none = np.where(self.stable, 10.0, 0.1)
                shown = np.clip(np.where(np.isnan(self.gain_margin), none, self.gain_margin), 0.1, 10.0)
            levels = np.geomspace(0.1, 10, 41)
            filled = axes.contourf(self.x[1], self.y[1], np.log10(shown), levels=np.log10(levels), cmap="RdYlGn")
            bar = figure.colorbar(filled, ax=axes, ticks=np.log10([0.1, 0.3, 1, 3, 10]))
            bar.ax.set_yticklabels(["0.1", "0.3", "1", "3", "10"])
        else:
            held = np.ma.masked_invalid(getattr(self, show))
            if not held.count():
                raise ScenarioError(f"{show} is undefined on the whole map: no stable loop, or no target")
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
        for (name, values), axis, scale in (
            (self.x, axes.xaxis, axes.set_xscale),
            (self.y, axes.yaxis, axes.set_yscale),
        ):
            wide = len(values) > 2 and values.min() > 0 and values.max() / values.min() > WIDE
            if wide:
                scale("log")
            _ticks(axis, name, values, wide)
        axes.set(title=f"{self.aqm}: stable above a gain margin of 1")
        return figure  # type: ignore[no-any-return]


def _ticks(axis: Any, name: str, values: Floats, wide: bool) -> None:
    """Label an axis in its unit: 1, 2, 5, 10, 20, ... and the ends of a logarithmic one."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    factor = SCALED.get(name, 1.0)
    axis.set_label_text(AXES[name])
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:.4g}"))
    if wide:
        low, high = float(values.min()) * factor, float(values.max()) * factor
        decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        steps = (1, 2, 5) if high / low < 500 else (1,)
        inner = [step * 10.0**k for k in decades for step in steps]
        # The ends are labelled, so that ticks too near to them are left out.
        inner = [tick for tick in inner if 1.25 * low < tick < high / 1.25]
        axis.set_major_locator(FixedLocator([tick / factor for tick in (low, *inner, high)]))
        axis.set_minor_locator(NullLocator())


def stability_map(
    design: Loop | VariableLoop | Sequence[VariableLoop],
    x: str,
    x_values: Sequence[float] | Floats,
    y: str,
    y_values: Sequence[float] | Floats,
    threads: int | None = None,
    *,
    cycles: bool = False,
) -> StabilityMap:
    """Analyse the loop of a design over two quantities; all others keep their design values.

    Args:
        design: A result of `theory.design`, or loops of identified plants. Their map has the axes `gain` and `delay`
            (s), the worst plant at each point, and no noise.
        x: Horizontal axis: `flows`, `rtt` (s), `capacity` (packets/s), `target` (packets) or `gain` (a factor); of
            an AQM that measures the network also `rtt_estimate`, `capacity_estimate`, `flows_estimate` (ratios).
        x_values: Its values, ascending.
        y: Vertical axis, likewise.
        y_values: Its values, ascending.
        threads: Number of threads; default: the number of cores.
        cycles: Also search limit cycles near the boundary with the nonlinear equations: about 10 ms a point there, a
            minute for 10 000 points.
    """
    across, up = np.asarray(x_values, dtype=float), np.asarray(y_values, dtype=float)
    if not len(across) or not len(up):
        raise ScenarioError("a map needs at least one value on each axis")
    if len(across) * len(up) > MAP_POINTS_MAX:
        raise ScenarioError(f"a map of {len(across)} by {len(up)} points: must have at most {MAP_POINTS_MAX} points")
    shape = (len(up), len(across))
    if not hasattr(design, "core"):
        if cycles:
            raise ScenarioError("cycles need the nonlinear equations: identified plants have none")
        loops = list(design) if isinstance(design, Sequence) else [design]
        return _map_of_plants(loops, (x, across), (y, up))
    axes = (x, across.tolist()), (y, up.tolist())
    try:
        cores = _cores(design)  # type: ignore[arg-type]
        each = [_columns(core.map(*axes, threads or engines.cores(), cycles), shape) for core in cores]
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    # The worst over senders.
    feasible, stable, valid = (np.all([columns[k] for columns in each], axis=0) for k in range(3))
    gain, phase, modulus = (_worst([columns[k] for columns in each], np.fmin) for k in range(3, 6))
    deviation, qacd, p95, lost = (_worst([columns[k] for columns in each], np.maximum) for k in range(6, 10))
    coexisting, period, supercritical = each[0][10:]
    return StabilityMap(
        aqm=design.aqm,  # type: ignore[union-attr]
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


def _map_of_plants(loops: list[VariableLoop], x: tuple[str, Floats], y: tuple[str, Floats]) -> StabilityMap:
    """Return the map of loops of identified plants, the worst plant at each point."""
    if not loops:
        raise ScenarioError("no loop: give at least one, for instance plant.loop(aqm)")
    for name, values in (x, y):
        if name not in PLANT_AXES:
            raise ScenarioError(f"unknown axis `{name}` of identified plants; choose from: {', '.join(PLANT_AXES)}")
        if values.min() < 0.0 or (name == "gain" and values.min() == 0.0):
            raise ScenarioError(f"{name} = {values.min():g}: must be {'above' if name == 'gain' else 'at least'} 0")
    keys = {"gain": "gain", "delay": "delay_s"}
    points = [
        [[loop.varied(**{keys[x[0]]: float(a), keys[y[0]]: float(b)}) for loop in loops] for a in x[1]] for b in y[1]
    ]

    def least(name: str) -> Floats:
        rows = [[[np.nan if at[name] is None else at[name] for at in each] for each in row] for row in points]
        found: Floats = np.fmin.reduce(np.array(rows, dtype=float), axis=2)
        return found

    shape = (len(y[1]), len(x[1]))
    unknown = np.full(shape, np.nan)
    return StabilityMap(
        aqm=loops[0].aqm,
        x=x,
        y=y,
        stable=np.array([[all(at["stable"] for at in each) for each in row] for row in points]),
        feasible=np.ones(shape, dtype=bool),
        gain_margin=least("gain_margin"),
        phase_margin_deg=least("phase_margin_deg"),
        modulus_margin=least("modulus_margin"),
        noise_valid=np.zeros(shape, dtype=bool),
        **dict.fromkeys((*list(SHOWN)[1:], *CYCLES), unknown),
    )


CYCLES = ("coexisting_std_pkts", "coexisting_period_s", "supercritical")
"""Arrays of a map that only `cycles` fills."""


def _cores(design: Loop) -> list[_core.Analysis]:
    return [design.core, *design.others]


def _columns(columns: Any, shape: tuple[int, int]) -> list[NDArray[Any]]:
    """Return the columns of a map as arrays of `shape`; NaN where cycles were not searched."""
    none = [np.nan] * (shape[0] * shape[1])
    return [np.array(column or none).reshape(shape) for column in (*columns[:3], *columns[3], *columns[4])]


def _worst(each: list[Floats], of: np.ufunc) -> Floats:
    """Combine arrays of senders: `fmin` takes a value known for one, `maximum` one known for all."""
    found: Floats = of.reduce(each)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A piece of the stability boundary over two quantities: points along a curve."""

    x: Floats
    """Values of the first quantity."""
    y: Floats
    """Values of the second quantity."""
    period_s: Floats
    """Period of the undamped oscillation, seconds."""
    supercritical: Floats
    """1 for a supercritical Hopf bifurcation, 0 for a subcritical one; NaN if unknown."""


def boundary(
    design: Loop, x: str, x_range: _Span, y: str, y_range: _Span, threads: int | None = None
) -> list[Boundary]:
    """Trace the stability boundary over two quantities as curves within the given ranges.

    Args:
        design: The design; its controller does not vary.
        x: Horizontal axis: `flows`, `rtt` (s), `capacity` (packets/s), `target` (packets) or `gain` (a factor).
        x_range: Its lowest and highest value, above 0.
        y: Vertical axis, likewise.
        y_range: Its lowest and highest value.
        threads: Number of threads; default: the number of cores.

    Raises:
        ScenarioError: An argument is invalid, the design has several senders, or the AQM is RED or ARED, whose gain is
            discontinuous: use a map.
    """
    if design.others:
        raise ScenarioError("a boundary is the curve of one sender: trace each of design.each")
    try:
        pieces = design.core.boundary((x, x_range), (y, y_range), threads or engines.cores())
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    names = ("x", "y", "period_s", "supercritical")
    return [Boundary(**dict(zip(names, map(np.array, columns), strict=True))) for columns in pieces]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustPi:
    """PI controller with the best worst case over ranges of networks."""

    a: float
    """Weight of the current error, 1/packet."""
    b: float
    """Weight of the previous error, 1/packet."""
    frequency_hz: float
    """Sampling frequency, Hz."""
    gain: float
    """Integral gain K, 1/(packet s)."""
    zero_rad_s: float
    """Zero z, rad/s."""
    worst_modulus_margin: float
    """Smallest modulus margin over the ranges."""
    slowest_crossover_rad_s: float
    """Lowest crossover frequency over the ranges, rad/s."""
    worst_qacd_pkts: float | None
    """Largest QACD over the ranges from packet noise, packets; `None` if unknown somewhere."""
    usual_worst_modulus_margin: float
    """Smallest modulus margin of the usual design for the centre; negative if unstable."""
    usual_worst_qacd_pkts: float | None
    """Largest QACD of the usual design, packets."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC, ready to run."""
        return f"pi:a={self.a:.12g},b={self.b:.12g},frequency={self.frequency_hz:g}Hz"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `spec` as a dictionary."""
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
    """Optimise the worst case of a PI controller over ranges of networks.

    With the aim `speed` it maximises the lowest crossover frequency, with `noise` it minimises the largest QACD; both
    keep a modulus margin. With `slowest_rad_s` it maximises the worst modulus margin at that crossover or above.

    Args:
        design: A design; it provides the values without a range.
        flows: Lowest and highest number of flows.
        rtt_s: Lowest and highest base RTT, seconds.
        capacity_pps: Lowest and highest capacity, packets/s.
        frequency_hz: Sampling frequency, Hz.
        slowest_rad_s: Lowest acceptable crossover frequency, rad/s.
        modulus_margin: Modulus margin to keep, unless `slowest_rad_s` is given.
        aim: `speed` or `noise`.
        speed: With `noise`, fraction of the fastest design's crossover to keep; 1 gives that design.
    """
    ranges = _ranges(design, flows, rtt_s, capacity_pps)
    try:
        (a, b, gain, zero), (worst, slowest, qacd), (usual, _, usual_qacd) = design.core.robust_pi(
            *ranges, frequency_hz, _aim(aim, slowest_rad_s, modulus_margin, speed), design.others
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
    """AQM with the gain and speed of the best worst case over ranges of networks."""

    aqm: str
    """Name of the algorithm."""
    values: dict[str, float]
    """Optimised parameters; the others are unchanged."""
    worst_modulus_margin: float
    """Smallest modulus margin over the ranges."""
    slowest_crossover_rad_s: float
    """Lowest crossover frequency over the ranges, rad/s."""
    worst_qacd_pkts: float | None
    """Largest QACD over the ranges from packet noise, packets (standard deviation for an algorithm without a target);
    `None` if unknown somewhere."""
    given_worst_modulus_margin: float
    """Smallest modulus margin with the given parameters; negative if unstable."""
    given_worst_qacd_pkts: float | None
    """Largest QACD with the given parameters, packets."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC with the optimised parameters."""
        return f"{self.aqm}:" + ",".join(f"{name}={value:.6g}" for name, value in self.values.items())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `spec` as a dictionary."""
        names = self.__dataclass_fields__
        return {**{name: getattr(self, name) for name in names}, "spec": self.spec}


@overload
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
) -> RobustAqm: ...


@overload
def robust(
    design: str,
    *,
    plants: Sequence[IdentifiedPlant],
    modulus_margin: float = MODULUS_MARGIN,
    aim: str = "speed",
    speed: float = NOISE_SPEED,
) -> RobustOverPlants: ...


def robust(
    design: Loop | str,
    *,
    plants: Sequence[IdentifiedPlant] | None = None,
    flows: tuple[float, float] | None = None,
    rtt_s: tuple[float, float] | None = None,
    capacity_pps: tuple[float, float] | None = None,
    slowest_rad_s: float | None = None,
    modulus_margin: float = MODULUS_MARGIN,
    aim: str = "speed",
    speed: float = NOISE_SPEED,
) -> RobustAqm | RobustOverPlants:
    """Optimise the worst case of an AQM over ranges of networks, as `robust_pi` does for PI, or over identified plants.

    Over ranges, networks whose queue no signal probability holds do not count. It varies RED's max_p and weight, REM's
    gamma and alpha, PAQM's alpha or ARM-PFC's Psi. Over plants of `aqumen.identify` it varies those but RED's, or PI's
    a and b. There the aim `speed` is the highest integral gain, which makes the integral of the error after a
    disturbance least.

    Args:
        design: A design, which provides the values without a range; over plants the AQM as a SPEC.
        plants: Identified plants: operating points, seeds, networks. Then there are no ranges.
        flows: Lowest and highest number of flows.
        rtt_s: Lowest and highest base RTT, seconds.
        capacity_pps: Lowest and highest capacity, packets/s.
        slowest_rad_s: Lowest acceptable crossover frequency, rad/s.
        modulus_margin: Modulus margin to keep, unless `slowest_rad_s` is given.
        aim: `speed` or `noise`.
        speed: With `noise`, fraction of the fastest design's crossover to keep, over plants of its integral gain; 1
            gives that design.

    Raises:
        ScenarioError: An argument is invalid, or the AQM has no such design.
    """
    if plants is not None:
        if not isinstance(design, str):
            raise ScenarioError("over plants the first argument is the AQM as a SPEC, such as pi")
        if any(each is not None for each in (flows, rtt_s, capacity_pps, slowest_rad_s)):
            raise ScenarioError("plants exclude flows, rtt_s, capacity_pps and slowest_rad_s: they are the networks")
        return over_plants(design, list(plants), aim=aim, modulus_margin=modulus_margin, speed=speed)
    if isinstance(design, str):
        raise ScenarioError("give a design of theory.design, or plants of aqumen.identify")
    try:
        found, (worst, slowest, qacd), (given, _, given_qacd) = design.core.robust(
            *_ranges(design, flows, rtt_s, capacity_pps), _aim(aim, slowest_rad_s, modulus_margin, speed), design.others
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
    """Return ranges of flows, base RTT and capacity; the design's value where none is given."""
    point = design.operating_point

    def span(given: _Span | None, key: str) -> _Span:
        return given if given is not None else (point[key], point[key])

    return span(flows, "flows"), span(rtt_s, "base_rtt_s"), span(pps, "capacity_pps")
