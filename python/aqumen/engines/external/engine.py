"""External simulators as engines: each run is a process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from aqumen.engines.answer import Answer
from aqumen.engines.kinds import Engine, Job, Progress
from aqumen.errors import EngineError
from aqumen.scenario import Scenario

__all__ = ["External", "Live", "Ns2", "Ns3"]


class External(Engine):
    """An external simulator."""

    is_external = True
    in_real_time: ClassVar[bool] = False
    """Whether it runs in real time, so that concurrent runs would delay each other."""

    @abstractmethod
    def program(self) -> Path:
        """Return the program; raise `EngineError` if it is not installed."""

    def files(self) -> list[Path]:
        """Return the program, and the code that translates plans and reads results."""
        here = Path(__file__).parent
        described = [file for folder in (here, here / self.kind) for file in sorted(folder.glob("*.py"))]
        return [*super().files(), *described, self.program()]

    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs concurrently, each as a process; all processes end with this call."""
        import threading
        import time
        from concurrent.futures import ThreadPoolExecutor, as_completed

        from aqumen import _programs

        workers: list[int] = []
        threads = 1 if self.in_real_time else threads
        with ThreadPoolExecutor(threads, initializer=lambda: workers.append(threading.get_ident())) as pool:
            running = {pool.submit(self.run, scenario, job): index for index, job in enumerate(jobs)}
            try:
                for done in as_completed(running):
                    if not on_done(running[done], done.result()):
                        break
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                # Repeat until all threads have returned, since one may be about to start its process.
                while any(one.running() for one in running):
                    _programs.stop(workers)
                    time.sleep(0.02)


class Live(External):
    """The kernel's TCP in real time, run by `aqumend`."""

    kind = "live"
    title = "kernel"
    in_real_time = True
    has_estimate = False

    def program(self) -> Path:
        """Return the path of `aqumend`."""
        from aqumen.engines.external import live

        return live.find_program()

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job in real time."""
        from aqumen.engines.external import live

        return live.run(scenario, job, progress)


class Ns2(External):
    """ns-2.35, with a plan as a Tcl script."""

    kind = "ns2"
    title = "ns-2"

    def program(self) -> Path:
        """Return the path of `ns`."""
        from aqumen.engines.external import ns2

        try:
            return Path(ns2.find_ns())
        except ns2.Ns2Error as error:
            raise EngineError(str(error)) from None

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        from aqumen.engines.external import ns2
        from aqumen.engines.external.answer import ExternalAnswer

        aqm, seed = job
        try:
            plan = scenario.plan(seed, aqm)
            for group, asked in zip(plan["groups"], scenario.core.requests(seed), strict=True):
                group["requests"] = asked
            return ExternalAnswer(ns2.run(plan))
        except ns2.Ns2Error as error:
            raise EngineError(str(error)) from None


class Ns3(External):
    """ns-3, with a program that is compiled once and reads a plan."""

    kind = "ns3"
    title = "ns-3"

    def program(self) -> Path:
        """Return the path of Aqumen's ns-3 program, which is compiled if needed."""
        from aqumen.engines.external import ns3

        try:
            return ns3.find_program()
        except ns3.Ns3Error as error:
            raise EngineError(str(error)) from None

    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job."""
        from aqumen.engines.external import ns3
        from aqumen.engines.external.answer import ExternalAnswer

        aqm, seed = job
        try:
            return ExternalAnswer(ns3.run(scenario.plan(seed, aqm)))
        except ns3.Ns3Error as error:
            raise EngineError(str(error)) from None
