"""Packets held against what a design promised: queue, gain at which it begins to swing, step response."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen._files import write_text
from aqumen._statistics import summarize
from aqumen.comparison import run
from aqumen.errors import ScenarioError
from aqumen.explain.oscillation import oscillation
from aqumen.identification import IdentifiedLoop, Record
from aqumen.identification.excited import Floats, excited
from aqumen.identification.network import network_of
from aqumen.metrics import Summary
from aqumen.scenario import Scenario, as_scenario
from aqumen.theory import Design
from aqumen.view.tuned import Section, drawn, page, plot_steps

if TYPE_CHECKING:
    from aqumen.identification.network import Network

__all__ = ["Check", "Verification", "swing_gain", "swing_gain_of", "verify"]

ENVELOPE = 0.4246
"""Relative deviation of the envelope of a noisy loop exactly at its Hopf bifurcation: there the amplitude A has the
density A exp(-c A^4), whatever the noise and c, so E A = Gamma(3/4) / (c^(1/4) sqrt(pi)) and E A^2 = 1 / sqrt(pi c).
Noise of a stable loop has 0.52, a cycle 0."""
PEAK = 0.5
"""Least fraction of the queue's power in the peak of a swing."""
LENGTH, SWING, STEP = 3000.0, 2000.0, 3000.0
"""Lengths of the runs, round-trip times: for the queue, for each gain of the search, for the steps."""
FACTOR, GAIN_MAX, HALVINGS = 1.5, 16.0, 4
"""Search of the gain: first steps, largest gain, bisections, after which it is known within 3 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A promise and its measurement."""

    metric: str
    """Name of the quantity, with its unit last."""
    words: str
    """Name for tables."""
    promised: float | None
    """Promise of the design; `None` if it makes none."""
    promised_ci95: list[float] | None
    """Its 95 % interval, where the design has one."""
    measured: Summary
    """Measurement over the seeds, with its 95 % interval."""

    @property
    def ratio(self) -> float | None:
        """Measured over promised."""
        mean = self.measured["mean"]
        return None if mean is None or not self.promised else mean / self.promised


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Verification:
    """Result of `verify`."""

    aqm: str
    """The AQM as a SPEC."""
    scenario: str
    """Name of the scenario."""
    checks: list[Check]
    """Promises and measurements."""
    design: IdentifiedLoop | Design
    """The design."""
    step: tuple[Floats, Floats, Floats] | None
    """Measured step response: times (s), mean of queue deviation / step, half-width of its 95 % interval."""

    def __getitem__(self, metric: str) -> Check:
        return next(check for check in self.checks if check.metric == metric)

    def to_dict(self) -> dict[str, Any]:
        """Return promises and measurements as a dictionary for JSON."""
        checks = [{**asdict(check), "ratio": check.ratio} for check in self.checks]
        return {"aqm": self.aqm, "scenario": self.scenario, "checks": checks}

    def rows(self) -> list[list[str]]:
        """Return the rows of a table: quantity, promised, measured, measured / promised."""
        found = []
        for check in self.checks:
            mean, ci95 = check.measured["mean"], check.measured["ci95"]
            promised = "–" if check.promised is None else f"{check.promised:.3g}{_interval(check.promised_ci95)}"
            measured = "none found" if mean is None else f"{mean:.3g}{_interval(ci95)}"
            found.append([check.words, promised, measured, "–" if check.ratio is None else f"{check.ratio:.2f}"])
        return found

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write the table with the pictures of the loop and its steps as one HTML page. Needs the extra `plot`.

        Args:
            path: The file to write.
        """
        title = f"{self.aqm.partition(':')[0]} on {self.scenario}: promised and measured"
        text = "Measured over the seeds, with 95 % intervals; promised by the design."
        section = Section(title="Promised and measured", text=text, tables=[self.table()], pictures=self.pictures())
        spec = self.aqm if ":" in self.aqm else ""
        write_text(Path(path), page(title, self.headline(), spec, [section], "aqumen.verify"))

    def table(self) -> tuple[str, list[str], list[list[str]]]:
        """Return label, heads and rows of the table."""
        return "Promised and measured", ["quantity", "promised", "measured", "measured / promised"], self.rows()

    def headline(self) -> str:
        """Return the gain margin and the gain at which packets begin to swing in a sentence."""
        try:
            check = self["swing_gain"]
        except StopIteration:
            return "The gain at which packets begin to swing was not searched."
        promised = "none" if check.promised is None else f"{check.promised:.3g}"
        mean = check.measured["mean"]
        seen = (
            f"do not swing up to {GAIN_MAX:g} times the gain"
            if mean is None
            else f"swing from {mean:.3g} times the gain on"
        )
        return f"Promised gain margin: {promised}; packets {seen}."

    def pictures(self) -> list[tuple[str, str]]:
        """Return labels and SVG texts of Bode, Nyquist and step."""
        found = []
        if isinstance(self.design, IdentifiedLoop):
            theory = self.design.theory()
            found = [
                ("Bode plot: gain and phase margin", drawn(self.design.plot("bode", theory))),
                (
                    "Nyquist plot: the circle around -1 is the modulus margin",
                    drawn(self.design.plot("nyquist", theory)),
                ),
            ]
        if self.step is not None:
            stable = ((self.design.margins or {}).get("exact") or self.design.margins or {}).get("stable")
            promised = _promised_step(self.design) if stable else None
            found.append(("Step of the target", drawn(plot_steps(promised, self.step, "Step of the target"))))
        return found

    def __str__(self) -> str:
        lines = [["", "promised", "measured", "ratio"], *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(4)]
        return "\n".join("  ".join(x.ljust(width) for x, width in zip(line, widths, strict=True)) for line in lines)


def _interval(ends: Sequence[float] | None) -> str:
    return "" if ends is None else f" ({ends[0]:.3g} to {ends[1]:.3g})"


def verify(
    design: IdentifiedLoop | Design,
    scenario: Scenario | str | os.PathLike[str],
    *,
    aqm: str | None = None,
    seeds: int | Sequence[int] = 3,
    swing: bool = True,
    step: bool = True,
    on_progress: Callable[[float], bool] | None = None,
) -> Verification:
    """Hold packets against what a design promised.

    The swing is found with the law's input scaled about the queue's mean, which scales the gain of a linear law.

    Args:
        design: A loop of an identified plant, or a result of `theory.design`.
        scenario: A scenario, its name or the path of its file.
        aqm: The AQM as a SPEC; default: that of the design.
        seeds: Number of seeds (1, 2, ... are used), at least 2, or the seeds themselves.
        swing: Also search the gain at which packets begin to swing, which takes most of the time.
        step: Also measure the response to steps of the target.
        on_progress: Called with the completed fraction, 0 to 1; returning `False` stops.

    Raises:
        ScenarioError: The AQM is not a sampled law, or an argument is invalid.
    """
    numbers = list(range(1, seeds + 1)) if isinstance(seeds, int) else list(seeds)
    if len(numbers) < 2:
        raise ScenarioError(f"seeds = {seeds}: at least 2, for an interval")
    made, spec = as_scenario(scenario), aqm or _spec(design)
    tests = _Tests(made, spec, network_of(made, spec), on_progress or (lambda _: True))
    found: dict[str, list[float | None]] = {}
    curves: list[tuple[Floats, Floats]] = []
    for k, seed in enumerate(numbers):
        tests.part = k / len(numbers), (k + 1) / len(numbers)
        for name, value in tests.of_seed(seed, design, swing, step, curves).items():
            found.setdefault(name, []).append(value)
    promises, target = _promises(design), tests.target(design)
    promises["queue_mean_pkts"] = target
    promises["queue_p95_pkts"] = promises["queue_p95_pkts"] or (
        None if target is None or promises["queue_std_pkts"] is None else target + 1.645 * promises["queue_std_pkts"]
    )
    margins = design.margins or {}
    checks = [
        Check(
            metric=name,
            words=words,
            promised=promises.get(name),
            promised_ci95=margins.get("gain_margin_ci95") if name == "swing_gain" else None,
            measured=summarize(found[name]),
        )
        for name, words in WORDS.items()
        if name in found
    ]
    return Verification(aqm=spec, scenario=made.name, checks=checks, design=design, step=_mean_curve(curves))


WORDS = {
    "queue_mean_pkts": "mean queue, packets",
    "queue_std_pkts": "standard deviation, packets",
    "queue_p95_pkts": "95th percentile, packets",
    "swing_gain": "gain at which it begins to swing",
    "rise_s": "rise time of a step, s",
    "overshoot": "overshoot of a step",
}
"""Quantities and their names."""


def _spec(design: IdentifiedLoop | Design) -> str:
    if isinstance(design, IdentifiedLoop):
        if design.aqm == "controller":
            raise ScenarioError("the loop has a controller without a SPEC: pass aqm, or use plant.loop(best.spec)")
        return design.aqm
    if design.aqm != "pi":
        return design.aqm
    gains = design.gains
    return f"pi:a={gains['a']:.9g},b={gains['b']:.9g},frequency={gains['frequency']:.9g}Hz"


def _promises(design: IdentifiedLoop | Design) -> dict[str, float | None]:
    """Promises of a design, by metric; `None` where it makes none."""
    margins = design.margins or {}
    if isinstance(design, IdentifiedLoop):
        std, p95 = design.queue_std_pkts(), None
    else:
        margins = margins.get("exact", margins)
        std, p95 = design.noise["queue_std_pkts"], design.noise["queue_p95_pkts"]
    rise = overshoot = None
    if margins.get("stable"):
        t, y = _promised_step(design)
        rise, overshoot = _shape(t, y)
    return {
        "queue_std_pkts": std,
        "queue_p95_pkts": p95,
        "swing_gain": margins.get("gain_margin"),
        "rise_s": rise,
        "overshoot": overshoot,
    }


def _promised_step(design: IdentifiedLoop | Design) -> tuple[Floats, Floats]:
    if isinstance(design, IdentifiedLoop):
        return design.step_response()
    from aqumen.theory.plots import step_response

    return step_response(design)


def _shape(t: Floats, y: Floats) -> tuple[float | None, float]:
    """Return rise time (10 to 90 %) and overshoot of a step response."""
    reached = [np.flatnonzero(y >= level) for level in (0.1, 0.9)]
    rise = None if not all(len(each) for each in reached) else float(t[reached[1][0]] - t[reached[0][0]])
    return rise, max(0.0, float(y.max()) - 1.0)


def _mean_curve(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats, Floats] | None:
    if not curves:
        return None
    values = np.array([y for _, y in curves])
    intervals = [summarize(column.tolist())["ci95"] or [0.0, 0.0] for column in values.T]
    return curves[0][0], values.mean(axis=0), np.array([0.5 * (high - low) for low, high in intervals])


class _Tests:
    """Runs of one verification."""

    def __init__(self, scenario: Scenario, spec: str, network: Network, told: Callable[[float], bool]) -> None:
        self.scenario, self.spec, self.network, self.told = scenario, spec, network, told
        self.part = 0.0, 1.0
        self.given = scenario.plan(1, spec)
        nominal = self.given["nominal"]
        self.rtt_s = network.base_rtt_s + nominal["target_pkts"] / network.capacity_pps
        self.begin_s = network.change_s + 50.0 + 150.0 * self.rtt_s

    def target(self, design: IdentifiedLoop | Design) -> float | None:
        """Queue that the design promises: the target of a law with integral action."""
        if isinstance(design, Design):
            return float(design.operating_point["queue_pkts"])
        _, den, period = design.controller
        at_rest = sum(den) if period is not None else den[0]
        if abs(at_rest) > 1e-9 * max(map(abs, den)):
            return design.plant.queue_pkts
        link = next(each for each in self.given["links"] if each["record"])
        own = link["aqm"]["params"].get("target", link["target_pkts"])
        return None if own is None else float(own)

    def of_seed(
        self, seed: int, design: IdentifiedLoop | Design, swing: bool, step: bool, curves: list[tuple[Floats, Floats]]
    ) -> dict[str, float | None]:
        """All measurements with one seed."""
        begin, end = self.part
        self.part = begin, begin + 0.2 * (end - begin)
        q = self.run(seed, LENGTH).queue_pkts
        found: dict[str, float | None] = {
            "queue_mean_pkts": float(q.mean()),
            "queue_std_pkts": float(q.std()),
            "queue_p95_pkts": float(np.percentile(q, 95)),
        }
        centre = found["queue_mean_pkts"]
        if swing:
            self.part = begin + 0.2 * (end - begin), begin + 0.8 * (end - begin)
            found["swing_gain"] = self.swing(seed, centre or 0.0)
        if step:
            self.part = begin + 0.8 * (end - begin), end
            t, y = self.steps(seed, design, float(q.std()), centre or 0.0)
            curves.append((t, y))
            found["rise_s"], found["overshoot"] = _shape(t, y)
        return found

    def run(self, seed: int, length: float, **settings: Any) -> Record:
        """Record of a run, `length` round-trip times after it has settled."""
        end = max(self.begin_s + length * self.rtt_s, self.network.duration_s)
        scenario = self.scenario.set("duration", f"{end:.9g}s")
        law, made = excited(scenario, self.spec, begin_s=self.begin_s, **settings)
        begin, rest = self.part[0], self.part[1] - self.part[0]
        run(scenario, law, seed, on_progress=lambda done: self.told(begin + done * rest))
        return max(made, key=lambda each: len(each.samples)).record()

    def swing(self, seed: int, centre: float) -> float | None:
        """Gain at which packets begin to swing; `None` if they do not up to `GAIN_MAX`."""
        return swing_gain(lambda gain: self.run(seed, SWING, gain=gain, centre=centre), self.rtt_s)

    def steps(self, seed: int, design: IdentifiedLoop | Design, std: float, centre: float) -> tuple[Floats, Floats]:
        """Mean response to steps of the target up and down: times (s), and queue deviation / step."""
        margins = design.margins or {}
        crossover = margins.get("crossover_rad_s") or 1.0 / self.rtt_s
        half = 20.0 / crossover
        size = min(max(std, 0.1 * centre), 0.4 * centre)
        record = self.run(seed, max(STEP, 60.0 * half / self.rtt_s), shift=[0.5 * size, -0.5 * size], chip_s=half)
        length = int(half / record.period_s)
        phase = (record.t_s - self.begin_s) / half
        starts = np.flatnonzero(np.diff(np.floor(phase + 1e-9)) > 0) + 1
        starts = starts[(starts + length <= len(phase)) & (starts > length)]
        up = np.floor(phase[starts] + 1e-9).astype(int) % 2 == 0
        pieces = np.array([record.queue_pkts[at : at + length] for at in starts])
        rising, falling = pieces[up].mean(axis=0), pieces[~up].mean(axis=0)
        # Half of the difference of both: slow drifts of the queue cancel. Before a step up it is at -size / 2.
        y = 0.5 * (rising - falling) / size + 0.5
        t = np.arange(length) * record.period_s
        even = np.linspace(0.0, t[-1], 400)
        return even, np.interp(even, t, y)


def swing_gain_of(scenario: Scenario, aqm: str, seed: int) -> float | None:
    """Return the gain at which packets of a scenario begin to swing, as `verify` finds it; `None`: they stay calm.

    Args:
        scenario: Scenario to run.
        aqm: The AQM as a SPEC.
        seed: Seed of the runs.
    """
    tests = _Tests(scenario, aqm, network_of(scenario, aqm), lambda _: True)
    return tests.swing(seed, float(tests.run(seed, LENGTH).queue_pkts.mean()))


def swing_gain(record: Callable[[float], Record], rtt_s: float) -> float | None:
    """Return the gain at which a queue begins to swing, within 3 %; `None` if it does not up to 16.

    A queue swings where half of its power lies around one frequency and the envelope there varies less than at a Hopf
    bifurcation with noise (`ENVELOPE`).

    Args:
        record: Makes a run with a factor on the gain.
        rtt_s: Round-trip time, seconds.
    """

    def swings(gain: float) -> bool:
        seen = record(gain)
        step = max(round(rtt_s / 10.0 / seen.period_s), 1)
        found = oscillation(seen.t_s[::step], seen.queue_pkts[::step], seen.probability[::step], math.inf)
        return found is not None and found.peak_share > PEAK and found.irregularity < ENVELOPE

    bounds = next(_brackets(swings), None)
    if bounds is None:
        return None
    low, high = bounds
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if swings(middle) else (middle, high)
    return math.sqrt(low * high)


def _brackets(swings: Callable[[float], bool]) -> Iterator[tuple[float, float]]:
    """Yield a calm gain and one that swings, a step above it."""
    gain = 1.0
    if swings(gain):
        while gain > 1.0 / GAIN_MAX:
            gain /= FACTOR
            if not swings(gain):
                yield gain, gain * FACTOR
                return
        return
    while gain < GAIN_MAX:
        gain *= FACTOR
        if swings(gain):
            yield gain / FACTOR, gain
            return
