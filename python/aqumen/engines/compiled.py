"""Engines of the compiled core: packet, fluid and theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aqumen import _core
from aqumen.engines.answer import Answer
from aqumen.engines.kinds import Engine, Job, Progress, core_errors
from aqumen.scenario import Scenario

__all__ = ["Fluid", "Packet", "Theory"]


class Packet(Engine):
    """Packet-level simulation."""

    kind = "packet"
    has_packets = True
    runs_custom_traffic = True
    multithreaded = True

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with core_errors():
            return _core.run(scenario.core, aqm, seed, pcap, progress, self.threads)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs concurrently."""
        with core_errors():
            _core.run_many(scenario.core, list(jobs), threads, on_done)

    def run_each(
        self, jobs: Sequence[tuple[Scenario, Job]], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs of several scenarios concurrently."""
        with core_errors():
            _core.run_each([(scenario.core, *job) for scenario, job in jobs], threads, on_done)


class Fluid(Engine):
    """Fluid equations driven by the AQM's own law. The default model follows each flow's ECN setting."""

    kind = "fluid"
    models = ("hollot", "ecn", "reno", "drop")

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with core_errors():
            return _core.run_fluid(scenario.core, aqm, seed, self.model, progress)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs concurrently."""
        with core_errors():
            _core.run_fluid_many(scenario.core, list(jobs), self.model, threads, on_done)


class Theory(Engine):
    """Equilibrium of the fluid equations, with packet noise."""

    kind = "theory"
    measures = False

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        aqm, seed = job
        with core_errors():
            return _core.run_theory(scenario.core, aqm, seed)
        raise AssertionError

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs one after another: each takes milliseconds."""
        for index, job in enumerate(jobs):
            if not on_done(index, self.run(scenario, job)):
                break
