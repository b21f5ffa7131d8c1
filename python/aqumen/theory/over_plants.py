"""Robust designs over identified plants: the gains of one AQM with the best worst case over all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aqumen.errors import ScenarioError, listed

__all__ = [
    "LAWS",
    "Family",
    "IdentifiedPlant",
    "PlantLoop",
    "RobustOverPlants",
    "check_signs",
    "over_plants",
    "pi_families",
    "search",
    "with_values",
]

Controller = tuple[Sequence[float], Sequence[float], float | None]
"""Numerator and denominator in rising powers (1/z, or s without a period), and sampling period, seconds."""
LAWS = ("pi", "rem", "paqm", "arm-pfc")
"""AQMs with a robust design over plants: their integral keeps the queue where the plants were identified."""
ZEROS = np.geomspace(0.05, 2.0, 24)
"""Zeros of a PI to try, radians per shortest round-trip time."""
HALVINGS = 40
"""Bisections of the gain, in the logarithm."""
GAINS = (-9.0, 6.0)
"""Logarithms of the smallest and largest factor on a gain."""
DECAYS = (-4.0, 1.0)
"""Logarithms of the smallest and largest -ln Psi."""
MEASURED_FROM = 0.1
"""Lowest frequency that an excitation measures, radians per round-trip time."""
SPEEDS = 7
"""Gains to try for the least noise, from the slowest that is kept to the fastest."""


class PlantLoop(Protocol):
    """Loop of an AQM around an identified plant."""

    controller: Controller
    """Controller from packets to probability."""

    def varied(self, *, gain: float = 1.0, delay_s: float = 0.0) -> dict[str, Any]:
        """Return the margins with a factor on the controller and an added delay, seconds."""
        ...

    def queue_std_pkts(self) -> float | None:
        """Return the standard deviation of the queue; `None` for an unstable loop."""
        ...


class IdentifiedPlant(Protocol):
    """Plant of a queue as packets have it."""

    @property
    def rtt_s(self) -> float:
        """Mean round-trip time with queueing, seconds."""
        ...

    @property
    def shortens(self) -> bool:
        """Whether a higher probability that lasts shortens the queue."""
        ...

    @property
    def at_bound(self) -> float:
        """Fraction of the time in which the probability was 0 or 1."""
        ...

    def loop(self, aqm: Any = None) -> PlantLoop:
        """Return the loop of a SPEC or of a controller."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustOverPlants:
    """AQM with the gains of the best worst case over identified plants."""

    aqm: str
    """Name of the algorithm."""
    spec: str
    """The AQM as a SPEC with the optimised parameters; the others are as given."""
    values: dict[str, float]
    """Optimised parameters."""
    worst_modulus_margin: float
    """Smallest modulus margin over the plants."""
    worst_gain_margin: float | None
    """Smallest gain margin over the plants; `None` if no gain is too large."""
    slowest_crossover_rad_s: float
    """Lowest crossover frequency over the plants, rad/s."""
    worst_queue_std_pkts: float | None
    """Largest standard deviation of the queue over the plants, packets."""
    given_worst_modulus_margin: float
    """Smallest modulus margin of the AQM as given; negative if unstable."""
    given_worst_queue_std_pkts: float | None
    """Largest standard deviation of the queue with the AQM as given; `None` if unstable."""
    each: list[dict[str, Any]]
    """Margins of each plant, in the order given, with the names of `theory.Design.margins`."""
    warnings: list[str]
    """Reasons against the design."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def over_plants(
    aqm: str,
    plants: Sequence[IdentifiedPlant],
    *,
    aim: str = "speed",
    modulus_margin: float = 0.5,
    speed: float = 0.5,
) -> RobustOverPlants:
    """Return the gains of an AQM that are best in the worst of several identified plants.

    The aim `speed` is the highest integral gain that keeps the margin in all plants: the least integral of the error
    after a disturbance (Åström and Hägglund, Advanced PID Control). The aim `noise` is the least standard deviation of
    the queue where it is largest, with at least `speed` of that gain. Varies PI's a and b, REM's gamma and alpha,
    PAQM's alpha or ARM-PFC's Psi. All else of the AQM is as in each plant's own scenario.

    Args:
        aqm: The AQM as a SPEC.
        plants: The plants: operating points, seeds, networks.
        aim: `speed` or `noise`.
        modulus_margin: Least distance of each loop from -1, above 0 and below 1.
        speed: With `noise`, fraction of the highest integral gain to keep, above 0 to 1.

    Raises:
        ScenarioError: An argument is invalid, the AQM has no such design, or none keeps the margin.
    """
    name = aqm.partition(":")[0]
    if name not in LAWS:
        raise ScenarioError(
            f"no robust design of {name} over identified plants, whose queue must stay where it was; there is one of "
            f"{listed(LAWS)}"
        )
    if not plants:
        raise ScenarioError("plants is empty: give at least one")
    check_signs(plants)
    given = [plant.loop(aqm) for plant in plants]
    families = _families(name, aqm, plants, given[0].controller[2] or 0.0)
    family, factor = search(families, name, aim=aim, modulus_margin=modulus_margin, speed=speed)
    values, loops = family.values(factor), family.loops(factor)
    each = [loop.varied() for loop in loops]
    known = [found["gain_margin"] for found in each if found["gain_margin"] is not None]
    return RobustOverPlants(
        aqm=name,
        spec=with_values(aqm, values),
        values=values,
        worst_modulus_margin=min(found["modulus_margin"] for found in each),
        worst_gain_margin=min(known, default=None),
        slowest_crossover_rad_s=min(found["crossover_rad_s"] or 0.0 for found in each),
        worst_queue_std_pkts=_known(_noise(loops)),
        given_worst_modulus_margin=min(loop.varied()["modulus_margin"] for loop in given),
        given_worst_queue_std_pkts=_known(_noise(given)),
        each=each,
        warnings=[text for plant, found in zip(plants, each, strict=True) if (text := _unmeasured(plant, found))],
    )


def _unmeasured(plant: IdentifiedPlant, margins: dict[str, Any]) -> str | None:
    """Warn about a loop whose crossover lies below the measured frequencies."""
    crossover, lowest = margins["crossover_rad_s"], MEASURED_FROM / plant.rtt_s
    if crossover is None or crossover >= lowest:
        return None
    return (
        f"{plant!r}: crossover at {crossover:.2g} rad/s, below {lowest:.2g}, the lowest frequency that was measured: "
        "margins and noise are those of the fitted model alone; packets may swing earlier"
    )


def check_signs(plants: Sequence[IdentifiedPlant]) -> None:
    """Refuse plants whose queue grows with the probability.

    Args:
        plants: Operating points to check.
    """
    for plant in plants:
        if not plant.shortens:
            raise ScenarioError(
                f"{plant!r}: its queue grows with the probability, which was at 0 or 1 for {plant.at_bound:.0%} of the "
                "time: no linear plant; identify it at another operating point, or for longer"
            )


def search(
    families: Sequence[Family], name: str, *, aim: str = "speed", modulus_margin: float = 0.5, speed: float = 0.5
) -> tuple[Family, float]:
    """Return the best controller: its family and its factor.

    Args:
        families: Shapes of controllers to try.
        name: Name of the algorithm, for messages.
        aim: `speed` or `noise`.
        modulus_margin: Least distance of each loop from -1, above 0 and below 1.
        speed: With `noise`, fraction of the highest integral gain to keep, above 0 to 1.
    """
    if not 0.0 < modulus_margin < 1.0:
        raise ScenarioError(f"modulus_margin = {modulus_margin}: above 0, below 1")
    if aim not in ("speed", "noise"):
        raise ScenarioError(f"unknown aim `{aim}`; choose from: speed, noise")
    if not 0.0 < speed <= 1.0:
        raise ScenarioError(f"speed = {speed}: above 0, at most 1")
    fastest = [(family, top) for family in families if (top := _largest(family, modulus_margin)) is not None]
    if not fastest:
        raise ScenarioError(f"no {name} keeps a modulus margin of {modulus_margin} in all plants")
    best = max(fastest, key=lambda found: found[0].integral_gain(found[1]))
    if aim == "speed":
        return best
    least = speed * best[0].integral_gain(best[1])
    return min(_kept(fastest, least), key=lambda found: _noise(found[0].loops(found[1])))


def with_values(spec: str, values: dict[str, float]) -> str:
    """Return a SPEC with some of its parameters replaced.

    Args:
        spec: AQM with its parameters, as on the command line.
        values: Parameters by name; a frequency in Hz.
    """
    name, _, rest = spec.partition(":")
    kept = [pair for pair in rest.split(",") if pair and pair.partition("=")[0].strip() not in values]
    pairs = [f"{key}={value:.12g}{'Hz' if key == 'frequency' else ''}" for key, value in values.items()]
    return f"{name}:{','.join([*pairs, *kept])}"


class Family:
    """Controllers of one shape over all plants, by a factor."""

    def __init__(
        self,
        make: Callable[[float], list[PlantLoop]],
        values: Callable[[float], dict[str, float]],
        bounds: tuple[float, float] = DECAYS,
    ) -> None:
        """Keep how the loops are made.

        Args:
            make: Makes the loop of each plant for a factor.
            values: Parameters of the AQM for a factor.
            bounds: Logarithms of the smallest and the largest factor.
        """
        self.loops, self.values, self.bounds = make, values, bounds

    def worst(self, factor: float) -> float:
        """Return the smallest modulus margin; negative for an unstable loop.

        Args:
            factor: The factor.
        """
        return min(float(loop.varied()["modulus_margin"]) for loop in self.loops(factor))

    def integral_gain(self, factor: float) -> float:
        """Return the smallest integral gain, 1/(packet s).

        Args:
            factor: The factor.
        """
        return min(_integral_gain(loop.controller) for loop in self.loops(factor))


class _Scaled(Family):
    """Controllers that are proportional to the factor: their loops are closed once."""

    def __init__(self, make: Callable[[float], list[PlantLoop]], values: Callable[[float], dict[str, float]]) -> None:
        super().__init__(make, values, GAINS)
        self.unit = make(1.0)

    def worst(self, factor: float) -> float:
        return min(float(loop.varied(gain=factor)["modulus_margin"]) for loop in self.unit)

    def integral_gain(self, factor: float) -> float:
        return factor * min(_integral_gain(loop.controller) for loop in self.unit)


def _families(name: str, aqm: str, plants: Sequence[IdentifiedPlant], period_s: float) -> list[Family]:
    """Return the shapes of controllers to try."""

    def made(values: Callable[[float], dict[str, float]]) -> Callable[[float], list[PlantLoop]]:
        return lambda factor: [plant.loop(with_values(aqm, values(factor))) for plant in plants]

    def rem(alpha: float) -> Family:
        def values(factor: float) -> dict[str, float]:
            return {"gamma": 1e-3 * factor, "alpha": alpha}

        return _Scaled(made(values), values)

    def paqm(factor: float) -> dict[str, float]:
        return {"alpha": 1e-4 * factor}

    def arm_pfc(factor: float) -> dict[str, float]:
        return {"psi": float(np.exp(-factor))}

    match name:
        case "pi":
            return pi_families(plants, period_s)
        case "rem":
            # The price integrates rate and queue: the zero is alpha / T.
            return [rem(float(zero) * period_s) for zero in _zeros(plants)]
        case "paqm":
            return [_Scaled(made(paqm), paqm)]
    return [Family(made(arm_pfc), arm_pfc)]


def _zeros(plants: Sequence[IdentifiedPlant]) -> Any:
    return ZEROS / min(plant.rtt_s for plant in plants)


def pi_families(plants: Sequence[IdentifiedPlant], period_s: float) -> list[Family]:
    """Return PI controllers by their zero; the factor is the integral gain in units of 1e-3 / (packet s).

    Args:
        plants: Operating points for which all controllers are made.
        period_s: Sampling period, seconds.
    """

    def of_zero(zero: float) -> Family:
        unit = 1.0 / zero + 0.5 * period_s, 1.0 / zero - 0.5 * period_s

        def values(factor: float) -> dict[str, float]:
            a, b = (1e-3 * factor * each for each in unit)
            return {"a": a, "b": b, "frequency": 1.0 / period_s}

        def make(factor: float) -> list[PlantLoop]:
            at = values(factor)
            return [plant.loop(([at["a"], -at["b"]], [1.0, -1.0], period_s)) for plant in plants]

        return _Scaled(make, values)

    return [of_zero(float(zero)) for zero in _zeros(plants)]


def _integral_gain(controller: Controller) -> float:
    """Return lim s C(s) for s to 0, 1/(packet s)."""
    num, den, period = controller
    if period is None:
        return float(num[0] / den[1])
    slope = sum(k * value for k, value in enumerate(den))
    return float(-sum(num) / (slope * period))


def _largest(family: Family, margin: float) -> float | None:
    """Return the largest factor that keeps the margin; `None` if the smallest does not."""
    low, high = family.bounds
    if family.worst(10.0**low) < margin:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if family.worst(10.0**middle) >= margin else (low, middle)
    return float(10.0**low)


def _kept(fastest: Sequence[tuple[Family, float]], least: float) -> list[tuple[Family, float]]:
    """Return the controllers that keep an integral gain: of each shape some, from the slowest to the fastest."""
    found = []
    for family, top in fastest:
        share = least / family.integral_gain(top)
        if share <= 1.0:
            factors = [top * float(part) for part in np.geomspace(share, 1.0, SPEEDS)]
            # Psi is not proportional to the gain.
            found += [(family, each) for each in factors if family.integral_gain(each) >= least * (1.0 - 1e-9)]
    return found


def _noise(loops: Sequence[PlantLoop]) -> float:
    """Return the largest standard deviation of the queue, packets; infinite if a loop is unstable."""
    each = [loop.queue_std_pkts() for loop in loops]
    return max(np.inf if std is None else float(std) for std in each)


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
