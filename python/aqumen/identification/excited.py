"""A sampled law with an excitation added to its probability, and the record of a run under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aqumen import _core
from aqumen.custom import SampledLaw
from aqumen.errors import ScenarioError

if TYPE_CHECKING:
    from aqumen._core import LawView
    from aqumen.scenario import Scenario

Floats = NDArray[np.float64]

__all__ = ["ExcitedLaw", "Floats", "Record", "excited", "law_of"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Record:
    """Samples of a queue under a sampled law, at equal steps."""

    period_s: float
    """Sampling period, seconds."""
    t_s: Floats
    """Times of the samples, seconds."""
    queue_pkts: Floats
    """Packets waiting at each sample."""
    probability: Floats
    """Probability in force from each sample to the next."""
    excitation: Floats
    """Excitation from each sample to the next, before the sum is limited to [0, 1]."""


def law_of(scenario: Scenario, spec: str | None) -> _core.Law:
    """Return the sampled law of an AQM on the first link under test.

    Args:
        scenario: Scenario that has the AQM and its nominal network.
        spec: The AQM; `None`: that of the scenario.

    Raises:
        ScenarioError: The AQM is not a sampled law.
    """
    try:
        return _core.Law(scenario.core, spec)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


class ExcitedLaw(SampledLaw):
    """A sampled law whose input is scaled and shifted, and to whose output an excitation is added.

    The law sees `centre + gain (queue - centre - shift)`: a linear law has `gain` times its gain, and a target that is
    `shift` above its own. Its probability plus the excitation, limited to [0, 1], applies.
    """

    name = "excited"

    def __init__(self, scenario: Scenario, spec: str | None, **settings: Any) -> None:
        """Wrap the law of an AQM.

        Args:
            scenario: The scenario that has the AQM.
            spec: The AQM; `None`: that of the scenario.
            settings: `gain`, `centre` (packets), `signal` and `shift` (arrays), `chip_s`: seconds for which each value
                of an array is held, and `begin_s`: begin of arrays and record, seconds.
        """
        self.law = law_of(scenario, spec)
        self.period = (
            (self.law.periods_s[0], self.law.periods_s[1]) if len(self.law.periods_s) > 1 else (self.law.periods_s[0])
        )
        self.initial, self.ecn = self.law.initial, self.law.ecn
        self.fastest = int(np.argmin(self.law.periods_s))
        self.gain: float = settings.get("gain", 1.0)
        self.centre: float = settings.get("centre", 0.0)
        self.signal: list[float] = list(settings.get("signal", ()))
        self.shift: list[float] = list(settings.get("shift", ()))
        self.chip_s: float = settings.get("chip_s", 1.0)
        self.begin_s: float = settings.get("begin_s", 0.0)
        self.samples: list[tuple[float, float, float, float]] = []
        self.last = self.initial

    def step(self, seen: LawView | Any) -> float:
        """Return the probability of the law plus the excitation.

        Args:
            seen: Observation of the queue.
        """
        now, queue = seen.now_s, seen.queue_pkts
        at = int((now - self.begin_s) / self.chip_s + 1e-9) if now >= self.begin_s else -1
        shift = self.shift[at % len(self.shift)] if at >= 0 and self.shift else 0.0
        added = self.signal[at % len(self.signal)] if at >= 0 and self.signal else 0.0
        shown = self.centre + self.gain * (queue - self.centre - shift)
        numbers = [
            now,
            seen.interval_s,
            shown,
            seen.queue_bytes,
            seen.arrivals_pkts,
            seen.accepted_pkts,
            seen.departures_pkts,
            seen.departures_bytes,
            seen.busy_s,
            seen.idle_s,
            seen.sojourn_s,
            seen.applied,
        ]
        p = self.law.step(seen.loop, numbers) + added
        p = 0.0 if p < 0.0 else 1.0 if p > 1.0 else p
        if at >= 0 and seen.loop == self.fastest:
            self.samples.append((now, queue, p, added))
        return p

    def record(self) -> Record:
        """Return the samples so far."""
        if len(self.samples) < 2:
            raise ScenarioError("the run is too short: nothing was recorded after the start")
        t, queue, p, added = np.array(self.samples).T
        return Record(
            period_s=self.law.periods_s[self.fastest], t_s=t, queue_pkts=queue, probability=p, excitation=added
        )


def excited(scenario: Scenario, spec: str | None, **settings: Any) -> tuple[type[SampledLaw], list[ExcitedLaw]]:
    """Return a class of AQM that wraps a law, and the list to which each of its instances is added.

    Args:
        scenario: The scenario that has the AQM.
        spec: The AQM; `None`: that of the scenario.
        settings: Those of `ExcitedLaw`.
    """
    made: list[ExcitedLaw] = []

    def begin(self: ExcitedLaw) -> None:
        ExcitedLaw.__init__(self, scenario, spec, **settings)
        made.append(self)

    body = {"__init__": lambda self: None, "start": begin, "__doc__": "A law with an excitation."}
    return type("Excited", (ExcitedLaw,), body), made
