"""Base class of engines: their features, and how they run a scenario."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from aqumen import _core
from aqumen.engines.answer import Answer
from aqumen.errors import Cancelled, EngineError, ScenarioError
from aqumen.scenario import Scenario

__all__ = ["Engine", "Job", "Progress", "core_errors"]

Job = tuple[str | None, int]
"""AQM (`None` for the scenario's) and seed."""

Progress = Callable[[float], bool] | None
"""Called with the completed fraction, 0 to 1; returning `False` stops the run."""


class Engine(ABC):
    """An engine, with its features as class attributes."""

    kind: ClassVar[str]
    """Name without a model."""
    models: ClassVar[tuple[str, ...]] = ()
    """Models, selected as `kind:model`."""
    measures: ClassVar[bool] = True
    """Whether results are measurements; else they are predictions themselves."""
    has_packets: ClassVar[bool] = False
    """Whether it can write a packet trace."""
    runs_custom_traffic: ClassVar[bool] = False
    """Whether it runs custom traffic sources."""
    multithreaded: ClassVar[bool] = False
    """Whether one run can use several threads."""
    is_external: ClassVar[bool] = False
    """Whether it is an external simulator, which may not be installed."""
    title: ClassVar[str] = ""
    """Name of an external simulator in tables."""
    has_estimate: ClassVar[bool] = True
    """Whether the time of a run can be estimated."""

    def __init__(self, model: str | None = None) -> None:
        """Select a model.

        Args:
            model: Name of a model; `None` for the default.
        """
        self.model = model
        self.threads = 1

    @property
    def name(self) -> str:
        """Name with the model, as given by the user."""
        return f"{self.kind}:{self.model}" if self.model else self.kind

    def program(self) -> Path | None:
        """Return the program of an external simulator; raise `EngineError` if it is not installed."""
        return None

    def files(self) -> list[Path]:
        """Return the files that determine its results: with other versions of them, runs are repeated."""
        return [Path(_core.__file__)]

    def check(self, scenario: Scenario, *, trace: bool = False, threads: int = 1) -> None:
        """Raise `EngineError` for a run that the engine cannot execute.

        Args:
            scenario: The network, its flows, and what happens during a run.
            trace: Whether a packet trace is requested.
            threads: Requested number of threads.
        """
        if threads > 1 and not self.multithreaded:
            raise EngineError(f"engine `{self.kind}` runs on one thread; leave out --threads or use engine `packet`")
        if not self.runs_custom_traffic:
            for group, source in scenario.custom_traffic.items():
                raise EngineError(
                    f"engine `{self.name}` cannot run custom traffic: group {group} has {source}; use engine `packet`"
                )
        if trace and not self.has_packets:
            has = "writes no packet trace" if self.is_external else "knows no packets"
            raise EngineError(f"engine `{self.kind}` {has}; leave out --pcap or use engine `packet`")
        self.program()

    @abstractmethod
    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job.

        Args:
            scenario: The network, its flows, and what happens during a run.
            job: AQM and seed.
            pcap: File for the packet trace.
            progress: Called with the completed fraction, 0 to 1; returning `False` stops the run.
        """

    def run_each(
        self, jobs: Sequence[tuple[Scenario, Job]], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs of several scenarios concurrently; otherwise as `run_many`.

        Args:
            jobs: Scenario and job of each run, in order.
            threads: Number of concurrent jobs.
            on_done: Called with the index of a job and its result; returning `False` stops.
        """
        go_on = True
        for scenario, run in itertools.groupby(enumerate(jobs), lambda each: each[1][0]):
            numbered = list(run)

            def done(k: int, answer: Answer, numbered: list[Any] = numbered) -> bool:
                nonlocal go_on
                go_on = on_done(numbered[k][0], answer)
                return go_on

            self.run_many(scenario, [job for _, (_, job) in numbered], threads, done)
            if not go_on:
                return

    @abstractmethod
    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs concurrently; results are passed to `on_done` in this thread as they finish.

        Args:
            scenario: The network, its flows, and what happens during a run.
            jobs: Jobs in order.
            threads: Number of concurrent jobs.
            on_done: Called with the index of a job and its result; returning `False` stops.
        """


class core_errors:
    """Context manager that converts exceptions of the compiled core to those of this package."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise the corresponding exception."""
        if isinstance(error, _core.ScenarioError):
            raise ScenarioError(str(error)) from None
        if isinstance(error, _core.Cancelled):
            raise Cancelled(str(error)) from None
