"""Identification of the plant before a queue: excitation, runs, and fits."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.comparison import run
from aqumen.custom import specs
from aqumen.errors import ScenarioError, listed
from aqumen.identification.excited import ExcitedLaw, Floats, Record, excited, law_of
from aqumen.identification.fits import Model, arx, best_arx
from aqumen.identification.network import Network, network_of
from aqumen.identification.plant import Plant
from aqumen.identification.spectra import spectrum
from aqumen.scenario import Scenario, as_scenario
from aqumen.session import Session

if TYPE_CHECKING:
    from aqumen.aqms import Aqm
    from aqumen.custom import CustomClass

__all__ = ["KINDS", "fitted", "identify", "identify_points", "thinned"]

KINDS = ("prbs", "multisine")
"""Excitations: a pseudo-random binary sequence, or a sum of sines."""
SHARE = 0.5
"""Standard deviation of the queue that the excitation causes, relative to that of the noise: the queue's variance
grows by a quarter, and the plant is measured at the size of swing that it has anyway."""
AMPLITUDE_MAX = 0.5
"""Largest amplitude, relative to the distance of the probability from 0 or 1."""
PILOT, LENGTH = 1500.0, 8000.0
"""Round-trip times of the pilot run, which sizes the excitation, and of the run that is fitted."""
STEPS = 10.0
"""Steps of a model per round-trip time."""
ORDERS = (2.0, 2.5, 3.0, 4.0)
"""Orders to select from, in round-trip times. A lower order cuts the response off, and tells too large a margin."""


def identify(
    subject: Scenario | Session | str | os.PathLike[str],
    aqm: str | Aqm | CustomClass | None = None,
    *,
    excite: str = "prbs",
    amplitude: float | None = None,
    order: int | None = None,
    duration_s: float | None = None,
    seed: int = 1,
    on_progress: Callable[[float], bool] | None = None,
) -> Plant:
    """Identify the plant of a queue, from the probability to the queue length, in packets and in closed loop.

    The AQM, any sampled law, holds the queue at its operating point; an excitation is added to its probability. A pilot
    run finds the noise, from which the size of the excitation follows. The scenario is prolonged as needed; a session
    is copied, and its remaining time is used.

    Args:
        subject: A scenario, its name or the path of its file, or a session at the state to identify.
        aqm: AQM that holds the queue; `None`: that of the scenario. A session needs it.
        excite: `prbs` (pseudo-random binary) or `multisine`.
        amplitude: Amplitude of the excitation (its root mean square); `None`: half of the noise's effect.
        order: Order of the ARX model, steps; `None`: selected by Akaike's criterion.
        duration_s: Simulated time to fit, seconds; `None`: 8000 round-trip times.
        seed: Seed of the run and of the excitation.
        on_progress: Called with the completed fraction, 0 to 1; returning `False` stops.

    Raises:
        ScenarioError: An argument is invalid, the AQM is not a sampled law, or the run is too short.
    """
    if excite not in KINDS:
        raise ScenarioError(f'excite = "{excite}": choose from: {listed(KINDS)}')
    if amplitude is not None and not 0.0 < amplitude <= 0.5:
        raise ScenarioError(f"amplitude = {amplitude}: above 0, at most 0.5")
    if duration_s is not None and not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ScenarioError(f"duration_s = {duration_s}: above 0")
    session = subject if isinstance(subject, Session) else None
    scenario = session.scenario() if session is not None else as_scenario(subject)  # type: ignore[arg-type]
    spec = None
    if aqm is not None:
        (spec,), classes = specs([aqm])
        scenario = scenario.knowing(classes)
    law, network = law_of(scenario, spec), network_of(scenario, spec, seed)
    told = on_progress or (lambda _: True)
    task = _Task(scenario, spec, network, min(law.periods_s), excite, seed, session, told)
    if amplitude is None:
        amplitude = task.amplitude()
    record = task.record(amplitude, task.rtt_s * LENGTH if duration_s is None else duration_s, 0.2)
    return fitted([record], network, scenario, spec, amplitude=amplitude, excite=excite, order=order)


def identify_points(
    subject: Scenario | str | os.PathLike[str],
    points: Sequence[Mapping[str, str]],
    aqm: str | Aqm | CustomClass | None = None,
    **options: Any,
) -> list[Plant]:
    """Identify the plant at several operating points, for `robust_pi`.

    Args:
        subject: A scenario, its name or the path of its file.
        points: Changes of the scenario for each point, as `Scenario.set_all` takes them: `{"flows.0.count": "60"}`.
        aqm: AQM that holds the queue; `None`: that of the scenario.
        options: Those of `identify`.
    """
    if not points:
        raise ScenarioError("points is empty: name at least one")
    scenario = as_scenario(subject)
    return [identify(scenario.set_all(list(point.items())), aqm, **options) for point in points]


class _Task:
    """Runs of one identification."""

    def __init__(
        self, scenario: Scenario, spec: str | None, network: Network, period_s: float, excite: str, seed: int,
        session: Session | None, told: Callable[[float], bool],
    ) -> None:  # fmt: skip
        self.scenario, self.spec, self.network, self.period_s = scenario, spec, network, period_s
        self.excite, self.seed, self.session, self.told = excite, seed, session, told
        # Until the queue is known: a target of half the buffer at most changes it by less than the margin of STEPS.
        nominal = scenario.plan(seed, spec)["nominal"]
        self.rtt_s = network.base_rtt_s + nominal["target_pkts"] / network.capacity_pps

    def amplitude(self) -> float:
        """Size of the excitation, from a pilot run."""
        trial = self.record(None, PILOT * self.rtt_s, 0.0)
        queue = float(trial.queue_pkts.mean())
        self.rtt_s = self.network.base_rtt_s + queue / self.network.capacity_pps
        step = max(round(self.rtt_s / STEPS / trial.period_s), 1)
        (y, _), r = thinned(trial, step), _means(trial.excitation, step)
        count = math.ceil(6.0 * self.rtt_s / (step * trial.period_s))
        lags = np.column_stack([r[count - k : len(r) - k] for k in range(count)])
        caused = lags @ np.linalg.lstsq(lags, y[count:], rcond=None)[0]
        rest = float(np.var(y[count:] - caused))
        # A fit of `count` weights to noise alone explains count / n of it.
        explained = max(float(np.var(caused)) - rest * count / len(caused), 1e-3 * rest)
        used = float(np.std(trial.excitation))
        mean = float(trial.probability.mean())
        room = min(mean, 1.0 - mean)
        if room <= 0.0:
            raise ScenarioError(f"{self.network.link}: the probability stays at {mean:g}; there is nothing to identify")
        return float(np.clip(used * SHARE * math.sqrt(rest / explained), 0.02 * room, AMPLITUDE_MAX * room))

    def record(self, amplitude: float | None, length_s: float, done: float) -> Record:
        """Run with an excitation; without an amplitude it is a quarter of the probability's mean."""
        if self.session is not None:
            return self._of_session(amplitude, length_s)
        begin = self.network.change_s + 50.0 + 150.0 * self.rtt_s
        if amplitude is None:
            amplitude = 0.25 * self._mean(begin)
        settings = self._settings(amplitude, begin)
        scenario = self._until(begin + length_s)
        law, made = excited(scenario, self.spec, **settings)
        finished = run(scenario, law, self.seed, on_progress=lambda part: self.told(done + (1.0 - done) * part))
        del finished
        return max(made, key=lambda each: len(each.samples)).record()

    def _until(self, end_s: float) -> Scenario:
        """Scenario prolonged to `end_s`; its own windows and events stay inside."""
        return self.scenario.set("duration", f"{max(end_s, self.network.duration_s):.9g}s")

    def _mean(self, begin: float) -> float:
        """Distance of the mean probability from 0 or 1 in a run without excitation."""
        scenario = self._until(begin + 200.0 * self.rtt_s)
        law, made = excited(scenario, self.spec, begin_s=begin)
        run(scenario, law, self.seed)
        mean = float(max(made, key=lambda each: len(each.samples)).record().probability.mean())
        if not 0.0 < mean < 1.0:
            raise ScenarioError(f"{self.network.link}: the probability stays at {mean:g}; there is nothing to identify")
        return min(mean, 1.0 - mean)

    def _settings(self, amplitude: float, begin: float) -> dict[str, Any]:
        steps = max(round(0.5 * self.rtt_s / self.period_s), 1)
        draw = np.random.Generator(np.random.PCG64(self.seed))
        if self.excite == "prbs":
            signal = amplitude * (2.0 * draw.integers(0, 2, 16_383) - 1.0)
        else:
            steps = max(round(self.rtt_s / STEPS / self.period_s), 1)
            signal = amplitude * _multisine(draw, steps * self.period_s / self.rtt_s)
        return {"signal": signal.tolist(), "chip_s": steps * self.period_s, "begin_s": begin}

    def _of_session(self, amplitude: float | None, length_s: float) -> Record:
        assert self.session is not None
        copy = self.session.copy()
        left = copy.end_s - copy.now_s
        if left < 400.0 * self.rtt_s:
            raise ScenarioError(
                f"the session has {left:.4g} s left: at least 400 round-trip times of {self.rtt_s:.4g} s; a longer "
                "`duration` of its scenario gives them"
            )
        state = copy.link(self.network.link)
        mean = state.probability
        if amplitude is None:
            amplitude = 0.25 * min(mean, 1.0 - mean)
        settle = min(150.0 * self.rtt_s, 0.2 * left)
        law = ExcitedLaw(self.scenario, self.spec, **self._settings(amplitude, copy.now_s + settle))
        if len(law.law.periods_s) > 1:
            raise ScenarioError("a law with two loops is identified from a scenario, not from a session")
        law.law.set_integral(mean)
        end = min(copy.end_s, copy.now_s + settle + length_s)
        while copy.now_s + self.period_s < end:
            copy.advance(self.period_s)
            state = copy.link(self.network.link)
            state.set_probability(law.step(_Seen(state.observation)))
        return law.record()


class _Seen:
    """Observation of a session with the names that a law reads."""

    loop = 0

    def __init__(self, observation: Any) -> None:
        self.observation = observation
        self.applied = observation.probability

    def __getattr__(self, name: str) -> Any:
        return getattr(self.observation, name)


def _multisine(draw: np.random.Generator, step: float) -> Floats:
    """Return sines with a root mean square of 1 from .1 to 6 radians per round-trip time, in steps of `step` of one."""
    length = round(400.0 / step)
    lines = np.unique(np.round(np.geomspace(0.1, min(6.0, 0.8 * np.pi / step), 40) * length * step / (2.0 * np.pi)))
    angles = 2.0 * np.pi * np.outer(np.arange(length) / length, lines) + draw.uniform(0.0, 2.0 * np.pi, len(lines))
    signal = np.cos(angles).sum(axis=1)
    return np.asarray(signal / signal.std())


def _means(values: Floats, step: int) -> Floats:
    count = len(values) // step
    return np.asarray(values[: count * step].reshape(count, step).mean(axis=1))


def thinned(record: Record, step: int) -> tuple[Floats, Floats]:
    """Return queue and probability at every `step`-th sample, as deviations: the queue then, the mean until the next.

    Args:
        record: The run.
        step: Samples to a step of the model.
    """
    u = _means(record.probability, step)
    y = record.queue_pkts[: len(u) * step : step]
    return y - y.mean(), u - u.mean()


def fitted(
    records: Sequence[Record], network: Network, scenario: Scenario, spec: str | None, *, amplitude: float, excite: str,
    order: int | None = None,
) -> Plant:  # fmt: skip
    """Fit a plant to runs at one operating point.

    Args:
        records: The runs.
        network: Its network, for the round-trip time.
        scenario: Scenario of the runs.
        spec: The AQM that held the queue.
        amplitude: Amplitude of the excitation.
        excite: Its kind.
        order: Order of the model, steps; `None`: selected.
    """
    queue = float(np.mean([record.queue_pkts.mean() for record in records]))
    p = float(np.mean([record.probability.mean() for record in records]))
    period, rtt_s = records[0].period_s, network.base_rtt_s + queue / network.capacity_pps
    longest = network.base_rtt_max_s + queue / network.capacity_pps
    step = max(round(rtt_s / STEPS / period), 1)
    segments = [thinned(record, step) for record in records]
    delay = 2 if step > 1 else 1
    model = _model(segments, order, delay, [longest / (step * period) * m for m in ORDERS])
    top = min(8.0 / rtt_s, np.pi / period)
    w = np.geomspace(0.35 / rtt_s, top, 28)
    return Plant(
        scenario=scenario,
        aqm=spec,
        network=network,
        queue_pkts=queue,
        probability=p,
        queue_std_pkts=float(np.mean([record.queue_pkts.std() for record in records])),
        rtt_s=rtt_s,
        law_period_s=period,
        period_s=step * period,
        model=model,
        spectrum=spectrum(records, 40.0 * longest, w),
        amplitude=amplitude,
        excite=excite,
        at_bound=float(np.mean([((r.probability <= 0) | (r.probability >= 1)).mean() for r in records])),
        records=tuple(records),
    )


def _model(segments: Sequence[tuple[Floats, Floats]], order: int | None, delay: int, sizes: Sequence[float]) -> Model:
    if order is not None:
        if order < 2:
            raise ScenarioError(f"order = {order}: an integer of at least 2")
        return arx(segments, order, delay)
    longest = max(len(y) for y, _ in segments) // 20
    return best_arx(segments, sorted({min(max(math.ceil(n), 4), max(longest, 4)) for n in sizes}), delay)
