"""Identified plants: response with confidence, loops with any controller, robust synthesis, export."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from aqumen import _core
from aqumen._files import json_text, write_text
from aqumen.custom import specs
from aqumen.errors import ScenarioError, optional
from aqumen.identification.excited import Floats, Record
from aqumen.identification.files import packed, unpacked
from aqumen.identification.fits import Complexes, Model
from aqumen.identification.spectra import Spectrum
from aqumen.theory.design import SENDERS
from aqumen.theory.loop import Loop, from_control
from aqumen.theory.over_plants import check_signs, pi_families, search
from aqumen.view.identified import plot_loop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.aqms import Aqm
    from aqumen.custom import CustomClass
    from aqumen.identification.network import Network
    from aqumen.scenario import Scenario

__all__ = ["Controller", "IdentifiedLoop", "Plant", "RobustPi", "robust_pi"]

Controller = tuple[Sequence[float], Sequence[float], float | None]
"""Numerator and denominator in rising powers (1/z, or s without a period), and sampling period, seconds."""
POINTS = 1500
"""Frequencies at which a loop is computed."""
SLOW = 5e-4
"""Lowest frequency of margins, radians per round-trip time: slow laws cross over above it."""
DRAWS = 200
"""Models drawn from the covariance for the interval of a margin."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Plant:
    """Plant of a queue as packets have it: from the probability to the queue length."""

    scenario: Scenario
    """The scenario."""
    aqm: str | None
    """AQM that held the queue; `None`: that of the scenario."""
    network: Network
    """The network at the link under test."""
    queue_pkts: float
    """Mean queue length, packets."""
    probability: float
    """Mean probability."""
    queue_std_pkts: float
    """Standard deviation of the queue under excitation, packets."""
    rtt_s: float
    """Mean round-trip time with queueing, seconds."""
    law_period_s: float
    """Sampling period of the AQM that held the queue, seconds."""
    period_s: float
    """Step of the model, seconds."""
    model: Model
    """ARX model of the selected order."""
    spectrum: Spectrum
    """Frequency response without a model, with coherence."""
    amplitude: float
    """Root mean square of the excitation."""
    excite: str
    """Kind of the excitation."""
    at_bound: float
    """Fraction of the time in which the probability was 0 or 1."""
    records: tuple[Record, ...]
    """The runs."""

    def response(self, w: ArrayLike, period_s: float | None = None) -> Complexes:
        """Return the response of the queue (packets) to a probability that is held for `period_s`.

        Args:
            w: Frequencies, rad/s, up to pi / the model's step.
            period_s: Sampling period of the controller; default: that of the AQM that held the queue.
        """
        w = np.asarray(w, dtype=float)
        return self._held(self.model.response(w * self.period_s), w, period_s)

    def response_std(self, w: ArrayLike) -> Floats:
        """Return the standard deviation of the response: the root of E|error|^2; 1.73 times it is the 95 % circle.

        Args:
            w: Frequencies, rad/s.
        """
        return self.model.response_std(np.asarray(w, dtype=float) * self.period_s)

    def _held(self, response: Complexes, w: Floats, period_s: float | None) -> Complexes:
        """Exchange the delay of the model's hold, half a step, for that of the controller's."""
        period = self.law_period_s if period_s is None else period_s
        return np.asarray(response * np.exp(0.5j * w * (self.period_s - period)))

    @property
    def consistency(self) -> float:
        """Fraction of the frequencies at which the model lies in the 95 % circle of the response without a model."""
        seen = self.spectrum
        inside = seen.w < 0.8 * np.pi / self.period_s
        both = np.sqrt(seen.std**2 + self.response_std(seen.w) ** 2) * np.sqrt(-np.log(0.05))
        near = np.abs(self.response(seen.w) - seen.response) <= both
        return float(near[inside].mean())

    @property
    def shortens(self) -> bool:
        """Whether a higher probability that lasts shortens the queue, as of every queue that signals hold.

        A model that says otherwise is no plant: the probability was at 0 or 1 for too long, or the run too short.
        """
        return bool(self.model.b.sum() / self.model.a.sum() < 0.0)

    def loop(self, aqm: str | Aqm | CustomClass | Controller | Any | None = None) -> IdentifiedLoop:
        """Return the loop of an AQM, or of another linear controller, around this plant.

        Args:
            aqm: A SPEC, an object of `aqumen.aqms`, a custom class, or a controller of python-control from packets to
                probability; `None`: the AQM that held the queue.
        """
        if isinstance(aqm, tuple):
            return IdentifiedLoop(self, "controller", (aqm[0], aqm[1], aqm[2]))
        if aqm is not None and hasattr(aqm, "ninputs"):
            return IdentifiedLoop(self, "controller", from_control(aqm))
        scenario, spec = self.scenario, self.aqm
        if aqm is not None:
            (spec,), classes = specs([aqm])
            scenario = scenario.knowing(classes)
        spec = spec if spec is not None else str(_first_aqm(scenario))
        try:
            found = _core.analyse(scenario.core, spec, False, None)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None
        parts = found.controller()
        if parts is None:
            raise ScenarioError(f"{spec}: not a linear controller, so there is no loop; use pi, arm-pfc, rem or stpi")
        return IdentifiedLoop(self, spec, (list(parts[0]), list(parts[1]), parts[2]))

    def to_control(self) -> Any:
        """Return the plant as a discrete-time transfer function of python-control: probability to packets."""
        control = optional("control", "control")
        length = max(len(self.model.a), len(self.model.b))
        num, den = (np.pad(each, (0, length - len(each))) for each in (self.model.b, self.model.a))
        return control.tf(num, den, self.period_s, inputs=["probability"], outputs=["queue"], name="identified_plant")

    def to_matlab(self) -> str:
        """Return a MATLAB script with the plant as `tf` and the measured response as `frd` with its coherence."""
        seen = self.spectrum

        def row(values: Any) -> str:
            return "[" + " ".join(f"{x:.17g}" for x in values) + "]"

        return "\n".join([
            f"% Plant identified on {self.scenario.name}: probability to queue, packets",
            f"plant = tf({row(self.model.b)}, {row(self.model.a)}, {self.period_s!r}, 'Variable', 'z^-1');",
            f"w = {row(seen.w)};",
            f"measured = frd(complex({row(seen.response.real)}, {row(seen.response.imag)}), w);",
            f"measured_std = {row(seen.std)};",
            f"coherence = {row(seen.coherence)};",
            "",
        ])  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return operating point, model and response as a dictionary for JSON."""
        seen = self.spectrum
        return {
            "scenario": self.scenario.name,
            "aqm": self.aqm,
            "operating_point": {
                "queue_pkts": self.queue_pkts,
                "probability": self.probability,
                "rtt_s": self.rtt_s,
                "capacity_pps": self.network.capacity_pps,
                "base_rtt_s": self.network.base_rtt_s,
            },
            "excitation": {"kind": self.excite, "amplitude": self.amplitude, "at_bound": self.at_bound},
            "model": {
                "order": self.model.order,
                "period_s": self.period_s,
                "a": self.model.a.tolist(),
                "b": self.model.b.tolist(),
                "noise_std_pkts": self.model.noise_std,
                "samples": self.model.samples,
                "consistency": self.consistency,
            },
            "response": {
                "w_rad_s": seen.w.tolist(),
                "real": seen.response.real.tolist(),
                "imaginary": seen.response.imag.tolist(),
                "std": seen.std.tolist(),
                "coherence": seen.coherence.tolist(),
            },
        }

    def save(self, path: str | Path) -> None:
        """Write the plant as .json, which `Plant.load` reads, or as a MATLAB script, .m.

        Args:
            path: The file; its suffix selects the format. JSON has the scenario as TOML, but not the runs.
        """
        match Path(path).suffix:
            case ".json":
                write_text(Path(path), json_text(packed(self)) + "\n")
            case ".m":
                write_text(Path(path), self.to_matlab())
            case _:
                raise ScenarioError(f"{path}: the suffix must be .json or .m")

    @classmethod
    def load(cls, path: str | Path, custom: Sequence[CustomClass] = ()) -> Plant:
        """Read a plant that `save` wrote as .json. It has no records: the runs are not in the file.

        Args:
            path: The file.
            custom: Custom AQMs and traffic sources of its scenario.

        Raises:
            ScenarioError: The file is missing or not a plant; the message names the key.
        """
        return cls(**unpacked(Path(path), custom))

    def __repr__(self) -> str:
        return (
            f"Plant({self.scenario.name!r}, queue {self.queue_pkts:.4g} pkt, p {self.probability:.4g}, "
            f"order {self.model.order} at {1e3 * self.period_s:.4g} ms)"
        )


def _sender_of(scenario: Scenario) -> str | None:
    """Return the TCP preset of the most bulk flows whose windows theory knows; `None` where there is none."""
    plan = scenario.plan(1)
    flows: dict[str, int] = {}
    for flow in plan["flows"]:
        group = plan["groups"][flow["group"]]
        preset = group["transport"].get("preset")
        if preset in SENDERS and group["traffic"] == "bulk":
            flows[preset] = flows.get(preset, 0) + 1
    return max(flows, key=lambda name: flows[name], default=None)


def _first_aqm(scenario: Scenario) -> str:
    return str(next(link for link in scenario.plan(1)["links"] if link["record"])["aqm"]["name"])


class IdentifiedLoop:
    """Loop of a linear controller around an identified plant, with margins, step response and noise."""

    def __init__(self, plant: Plant, aqm: str, controller: Controller) -> None:
        """Close the loop.

        Args:
            plant: Identified plant inside the loop.
            aqm: Name of the controller.
            controller: The controller, from packets to probability.
        """
        self.plant, self.aqm, self.controller = plant, aqm, controller
        if controller[2] is not None and controller[2] <= 0.0:
            raise ScenarioError(f"period = {controller[2]}: above 0")
        self._margins: dict[str, Any] | None = None

    @property
    def operating_point(self) -> dict[str, float]:
        """Queue, probability and round-trip time at which the plant was identified."""
        return dict(self.plant.to_dict()["operating_point"])

    def frequencies(self, points: int = POINTS, lowest: float = 0.01) -> Floats:
        """Return frequencies from far below the crossover to half the sampling frequency of model or controller, rad/s.

        Args:
            points: Number of frequencies.
            lowest: Lowest frequency, radians per round-trip time.
        """
        period = max(self.plant.period_s, self.controller[2] or 0.0)
        return np.geomspace(lowest / self.plant.rtt_s, np.pi / period, points)

    def controller_response(self, w: ArrayLike) -> Complexes:
        """Return the response of the controller, from packets to probability.

        Args:
            w: Frequencies, rad/s.
        """
        num, den, period = self.controller
        w = np.asarray(w, dtype=float)
        at = 1j * w if period is None else np.exp(-1j * w * period)
        polyval = np.polynomial.polynomial.polyval
        return np.asarray(polyval(at, np.asarray(num)) / polyval(at, np.asarray(den)))

    def plant_response(self, w: ArrayLike) -> Complexes:
        """Return the response of the plant under this controller's hold.

        Args:
            w: Frequencies, rad/s.
        """
        return self.plant.response(w, self.controller[2] or 0.0)

    def loop_response(self, w: ArrayLike) -> Complexes:
        """Return the response of the open loop; -1 is the critical point.

        Args:
            w: Frequencies, rad/s.
        """
        return np.asarray(-self.controller_response(w) * self.plant_response(w))

    def sensitivities(self, w: ArrayLike) -> tuple[Complexes, Complexes]:
        """Return the sensitivity S = 1 / (1 + L) and the complementary sensitivity T = L / (1 + L).

        Args:
            w: Frequencies, rad/s.
        """
        loop = self.loop_response(w)
        return 1 / (1 + loop), loop / (1 + loop)

    @property
    def margins(self) -> dict[str, Any]:
        """Margins with the names of `theory.Design.margins`, and 95 % intervals of gain and phase margin."""
        if self._margins is None:
            w = self.frequencies(lowest=SLOW)
            loop = self.loop_response(w)
            found = _margins(self, w, loop)
            found["gain_margin_ci95"], found["phase_margin_ci95_deg"] = self._intervals(w, loop)
            self._margins = found
        return self._margins

    def varied(self, *, gain: float = 1.0, delay_s: float = 0.0) -> dict[str, Any]:
        """Return the margins, without intervals, with a factor on the controller and an added delay.

        Args:
            gain: Factor on the controller.
            delay_s: Delay added to the round trip, seconds.
        """
        w = self.frequencies(700, SLOW)
        return _margins(self, w, gain * self.loop_response(w) * np.exp(-1j * w * delay_s))

    def _intervals(self, w: Floats, loop: Complexes) -> tuple[list[float] | None, list[float] | None]:
        """Intervals of gain and phase margin, from models drawn from the covariance of the coefficients."""
        model = self.plant.model
        width, vectors = np.linalg.eigh(model.covariance)
        root = vectors * np.sqrt(np.maximum(width, 0.0))
        angle = w * self.plant.period_s
        draws = np.random.Generator(np.random.PCG64(1)).standard_normal((DRAWS, len(width))) @ root.T
        powers = [np.exp(-1j * np.outer(angle, place)) for place in model.places]
        split = len(model.places[0])
        a = model._at(angle)[1][:, None] + powers[0] @ draws[:, :split].T
        b = model._at(angle)[0][:, None] + powers[1] @ draws[:, split:].T
        ratio = (b / a) / model.response(angle)[:, None]
        gains, phases = [], []
        for k in range(DRAWS):
            here = loop * ratio[:, k]
            gains.append(_gain_margin(self, w, here)[0])
            phases.append(_phase_margin(w, here)[0])
        return _percentiles(gains), _percentiles(phases)

    def unstable_poles(self, w: Floats, loop: Complexes, gain: float = 1.0) -> int:
        """Return the number of unstable closed-loop poles, by the winding number of den - num G around 0.

        Args:
            w: Frequencies from near 0 to the model's highest, rad/s.
            loop: Open loop there.
            gain: Factor on the loop.
        """
        _, den, period = self.controller
        polyval = np.polynomial.polynomial.polyval
        if period is None:
            # Integrators of the controller lie on the axis: each starts the curve of 1 + L a quarter turn earlier.
            pure = int(np.argmax(np.abs(np.asarray(den)) > 0))
            turned = np.unwrap(np.angle(1 + gain * loop))
            return max(round(float(0.5 * pure - (turned[-1] - turned[0]) / np.pi)), 0)
        # Beyond the model's highest frequency the plant is taken as 0.
        above = np.linspace(w[-1], np.pi / period, 200)[1:] if np.pi / period > w[-1] * 1.001 else np.zeros(0)
        at = polyval(np.exp(-1j * w * period), np.asarray(den))
        curve = np.concatenate([at * (1 + gain * loop), polyval(np.exp(-1j * above * period), np.asarray(den))])
        # At w = 0 and at pi / period the curve is real; its symmetric half is left out.
        start = np.angle(curve[0].real + 0j)
        turned = np.unwrap(np.concatenate([[start], np.angle(curve), [np.angle(curve[-1].real + 0j)]]))
        return max(round(float((turned[0] - turned[-1]) / np.pi)), 0)

    def queue_std_pkts(self) -> float | None:
        """Standard deviation of the queue by the identified noise, packets; `None` for an unstable loop."""
        if not self.varied()["stable"]:
            return None
        w, power = self.noise_power()
        return float(np.sqrt(np.trapezoid(power, w) / np.pi))

    def noise_power(self) -> tuple[Floats, Floats]:
        """Return frequencies (rad/s) and the spectrum of the queue (packets^2 s); its integral over w / pi is the
        variance.
        """
        plant = self.plant
        w = np.linspace(1e-3 / plant.rtt_s, np.pi / plant.period_s, 20_000)
        open_loop = plant.model.noise_response(w * plant.period_s)
        power = plant.model.noise_std**2 * plant.period_s * np.abs(open_loop / (1 + self.loop_response(w))) ** 2
        return w, power

    def step_response(self, duration_s: float | None = None) -> tuple[Floats, Floats]:
        """Return the response to a step of the target: times (s), and queue deviation / step.

        Args:
            duration_s: Duration, seconds; default: 40 / crossover frequency.
        """
        if not self.margins["stable"]:
            raise ScenarioError("the loop is unstable: its step response grows without bound")
        centre = self.margins["crossover_rad_s"] or 1.0 / self.plant.rtt_s
        duration = 40.0 / centre if duration_s is None else duration_s
        t = np.linspace(0.0, duration, 600)
        w = np.linspace(0.0, np.pi / self.plant.period_s, max(20_000, int(4 * duration * np.pi / self.plant.period_s)))
        loop = self.loop_response(w[1:])
        closed = loop / (1 + loop)
        real = np.real(np.concatenate([closed[:1], closed]))
        # y(t) = (2/pi) integral of Re T(jw) sin(wt)/w dw, for a stable loop.
        y = np.array([2 / np.pi * np.trapezoid(real * x * np.sinc(w * x / np.pi), w) for x in t])
        return t, y

    def theory(self, sender: str | None = None) -> Loop | None:
        """Return theory's loop of the AQM for the scenario's nominal network; `None` where theory has none.

        Args:
            sender: TCP preset of the flows, as in `theory.design`; default: that of the most bulk flows.
        """
        try:
            own = sender or _sender_of(self.plant.scenario)
            return None if own is None else Loop(_core.analyse(self.plant.scenario.core, self.aqm, False, None, own))
        except _core.ScenarioError:
            return None

    def to_control(self) -> tuple[Any, Any, Any]:
        """Return plant, controller and loop for python-control as interpolated frequency responses."""
        control = optional("control", "control")
        w = self.frequencies()
        names = {"inputs": ["probability"], "outputs": ["queue"]}
        back = {"inputs": ["error"], "outputs": ["probability"]}
        return (
            control.frd(self.plant_response(w), w, smooth=True, name="identified_plant", **names),
            control.frd(self.controller_response(w), w, smooth=True, name="controller", **back),
            control.frd(self.loop_response(w), w, smooth=True, name="identified_loop"),
        )

    def plot(self, kind: str = "bode", theory: Loop | None = None) -> Figure:
        """Draw the loop.

        Args:
            kind: `bode` (with the confidence band), `nyquist`, `step` or `coherence`.
            theory: A result of `theory.design`, drawn beside the identified curve.
        """
        return plot_loop(self, kind, theory)

    def to_dict(self) -> dict[str, Any]:
        """Return controller, margins and noise as a dictionary for JSON."""
        num, den, period = self.controller
        return {
            "aqm": self.aqm,
            "controller": {"num": list(num), "den": list(den), "period_s": period},
            "margins": self.margins,
            "queue_std_pkts": self.queue_std_pkts(),
            "operating_point": self.operating_point,
        }

    @property
    def json(self) -> str:
        """Controller, margins and noise as JSON text."""
        return json.dumps(json.loads(json_text(self.to_dict())))

    def __repr__(self) -> str:
        return f"IdentifiedLoop({self.aqm!r}, gain margin {self.margins['gain_margin']})"


def _crossings(values: Floats) -> Floats:
    """Return fractional positions at which a sequence changes its sign."""
    at = np.flatnonzero(np.signbit(values[1:]) != np.signbit(values[:-1]))
    return np.asarray(at + values[at] / (values[at] - values[at + 1]))


def _at(values: Any, places: Floats) -> Any:
    steps = np.arange(len(values))
    if np.iscomplexobj(values):
        return np.interp(places, steps, values.real) + 1j * np.interp(places, steps, values.imag)
    return np.interp(places, steps, values)


def _gain_margin(loop: IdentifiedLoop, w: Floats, values: Complexes) -> tuple[float | None, float | None]:
    """Return the largest factor up to which the loop is stable, and the frequency there."""
    places = _crossings(values.imag)
    real = _at(values, places).real
    behind = real < 0
    factors, frequencies = -1.0 / real[behind], _at(w, places[behind])
    last: tuple[float | None, float | None] = (None, None)
    for factor, frequency in sorted(zip(factors.tolist(), frequencies.tolist(), strict=True)):
        if factor > 1e-3 and loop.unstable_poles(w, values, 1.01 * factor):
            return factor, frequency
    return last


def _phase_margin(w: Floats, values: Complexes) -> tuple[float | None, float | None]:
    """Return the least phase margin over all crossovers, degrees, and the frequency there."""
    places = _crossings(np.log(np.abs(values)))
    if not len(places):
        return None, None
    margins = (np.degrees(np.angle(_at(values, places))) + 360.0) % 360.0 - 180.0
    least = int(np.argmin(margins))
    return float(margins[least]), float(_at(w, places)[least])


def _margins(loop: IdentifiedLoop, w: Floats, values: Complexes) -> dict[str, Any]:
    unstable = loop.unstable_poles(w, values)
    gain, phase_crossover = _gain_margin(loop, w, values)
    phase, crossover = _phase_margin(w, values)
    distance = float(np.min(np.abs(1 + values)))
    delay = None if phase is None or crossover is None or unstable else float(np.radians(phase % 360.0)) / crossover
    return {
        "stable": unstable == 0,
        "unstable_poles": unstable,
        "gain_margin": gain,
        "phase_margin_deg": phase,
        "delay_margin_s": delay,
        "modulus_margin": -distance if unstable else distance,
        "crossover_rad_s": crossover,
        "phase_crossover_rad_s": phase_crossover,
    }


def _percentiles(values: Sequence[float | None]) -> list[float] | None:
    known = [value for value in values if value is not None]
    if len(known) < 0.975 * len(values):
        return None
    return [float(x) for x in np.percentile(known, [2.5, 97.5])]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustPi:
    """PI controller for all of several plants."""

    a: float
    """Weight of the error, 1/packet."""
    b: float
    """Weight of the previous error, 1/packet."""
    period_s: float
    """Sampling period, seconds."""
    worst_modulus_margin: float
    """Smallest modulus margin over the plants."""
    worst_gain_margin: float | None
    """Smallest gain margin over the plants."""
    slowest_crossover_rad_s: float
    """Lowest crossover frequency over the plants, rad/s."""

    @property
    def spec(self) -> str:
        """The AQM as a SPEC."""
        return f"pi:a={self.a:.9g},b={self.b:.9g},frequency={1.0 / self.period_s:.9g}Hz"

    @property
    def controller(self) -> Controller:
        """Numerator and denominator in powers of 1/z, and the period."""
        return [self.a, -self.b], [1.0, -1.0], self.period_s

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and `spec` as a dictionary."""
        return {**{name: getattr(self, name) for name in self.__dataclass_fields__}, "spec": self.spec}


def robust_pi(
    plants: Plant | Sequence[Plant], *, modulus_margin: float = 0.5, period_s: float | None = None
) -> RobustPi:
    """Return the PI with the highest integral gain that keeps a modulus margin in all plants.

    The integral of the error after a disturbance is then least (Åström and Hägglund, Advanced PID Control).

    Args:
        plants: One plant, or several: operating points, seeds, networks.
        modulus_margin: Least distance of each loop from -1, above 0 and below 1.
        period_s: Sampling period of the PI, seconds; default: that of the AQM that held the queue.
    """
    plants = [plants] if isinstance(plants, Plant) else list(plants)
    if not plants:
        raise ScenarioError("plants is empty: give at least one")
    period = period_s if period_s is not None else min(plant.law_period_s for plant in plants)
    if not period > 0.0:
        raise ScenarioError(f"period_s = {period_s}: above 0")
    check_signs(plants)
    family, factor = search(pi_families(plants, period), "pi", modulus_margin=modulus_margin)
    values = family.values(factor)
    margins = [loop.varied() for loop in family.loops(factor)]
    known = [each["gain_margin"] for each in margins if each["gain_margin"] is not None]
    return RobustPi(
        a=values["a"],
        b=values["b"],
        period_s=period,
        worst_modulus_margin=min(each["modulus_margin"] for each in margins),
        worst_gain_margin=min(known, default=None),
        slowest_crossover_rad_s=min(each["crossover_rad_s"] or 0.0 for each in margins),
    )
