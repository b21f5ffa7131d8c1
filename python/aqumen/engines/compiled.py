"""The engines of the compiled core: packets, the equations over time, and where they come to rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aqumen import _core
from aqumen.engines.answer import Answer
from aqumen.engines.kinds import Engine, Job, Progress, refused_by_core
from aqumen.scenario import Scenario

__all__ = ["Fluid", "Packet", "Theory"]


class Packet(Engine):
    """Packet by packet."""

    kind = "packet"
    knows_packets = True
    asks_sources = True
    shares = True

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with refused_by_core():
            return _core.run(scenario.core, aqm, seed, pcap, progress, self.threads)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs side by side."""
        with refused_by_core():
            _core.run_many(scenario.core, list(jobs), threads, on_done)


class Fluid(Engine):
    """The equations, driven by the AQM's own law. Without a model each flow's ECN decides how windows react."""

    kind = "fluid"
    models = ("hollot", "ecn", "reno", "drop")

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with refused_by_core():
            return _core.run_fluid(scenario.core, aqm, seed, self.model, progress)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs side by side."""
        with refused_by_core():
            _core.run_fluid_many(scenario.core, list(jobs), self.model, threads, on_done)


class Theory(Engine):
    """Where the equations come to rest, and what packets add to that."""

    kind = "theory"
    measures = False

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with refused_by_core():
            return _core.run_theory(scenario.core, aqm, seed)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs one after another: milliseconds each are not worth threads."""
        for index, job in enumerate(jobs):
            if not on_done(index, self.run(scenario, job)):
                break
