"""What an engine is to all others: an object that says what it can answer, and runs a scenario."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from aqumen import _core
from aqumen.engines.answer import Answer
from aqumen.errors import Cancelled, EngineError, ScenarioError
from aqumen.scenario import Scenario

__all__ = ["Engine", "Job", "Progress", "refused_by_core"]

Job = tuple[str | None, int]
"""An AQM (`None`: the scenario's own) and a seed."""

Progress = Callable[[float], bool] | None
"""Called now and then with the share done, 0 to 1; `False` stops the run."""


class Engine(ABC):
    """An engine. Whatever another part of Aqumen wants to know of one, it asks here."""

    kind: ClassVar[str]
    """Its name, without a model."""
    models: ClassVar[tuple[str, ...]] = ()
    """Models of which one can be chosen as `kind:model`."""
    measures: ClassVar[bool] = True
    """Whether it answers what happened; else what was to be expected, beside which no prediction is set."""
    knows_packets: ClassVar[bool] = False
    """Whether it has packets of which a trace can be written."""
    asks_sources: ClassVar[bool] = False
    """Whether traffic may be a source of one's own."""
    shares: ClassVar[bool] = False
    """Whether several threads may share one run."""
    is_external: ClassVar[bool] = False
    """Whether it is a program of its own, which may be missing."""
    title: ClassVar[str] = ""
    """Name of an external engine in tables."""
    foreseen: ClassVar[bool] = True
    """Whether it can be said beforehand how long a run takes."""

    def __init__(self, model: str | None = None) -> None:
        """Take one of its models.

        Args:
            model: The model; without one what the engine has by itself.
        """
        self.model = model
        self.threads = 1

    @property
    def name(self) -> str:
        """As it was asked for, with its model."""
        return f"{self.kind}:{self.model}" if self.model else self.kind

    def program(self) -> Path | None:
        """Program of an external engine; raises `EngineError` where it is not on this machine."""
        return None

    def files(self) -> list[Path]:
        """Files that decide what it answers beside the scenario: other versions of them are other engines."""
        return [Path(_core.__file__)]

    def check(self, scenario: Scenario, *, trace: bool = False, threads: int = 1) -> None:
        """Raise `EngineError` for what it cannot be asked.

        Args:
            scenario: The network, its flows, and what happens during a run.
            trace: Whether a trace of its packets is wanted.
            threads: How many may share a run.
        """
        if threads > 1 and not self.shares:
            raise EngineError(f"engine `{self.kind}` runs on one thread; leave out --threads or use engine `packet`")
        if not self.asks_sources:
            for group, source in scenario.custom_traffic.items():
                raise EngineError(
                    f"engine `{self.name}` cannot run traffic of your own: group {group} has {source}; "
                    "use engine `packet`"
                )
        if trace and not self.knows_packets:
            has = "writes no packet trace" if self.is_external else "knows no packets"
            raise EngineError(f"engine `{self.kind}` {has}; leave out --pcap or use engine `packet`")
        self.program()

    @abstractmethod
    def run(self, scenario: Scenario, job: Job, pcap: str | None = None, progress: Progress = None) -> Answer:
        """Run one job.

        Args:
            scenario: The network, its flows, and what happens during a run.
            job: AQM and seed.
            pcap: A file for the packet trace.
            progress: What hears how far it is.
        """

    @abstractmethod
    def run_many(
        self, scenario: Scenario, jobs: Sequence[Job], threads: int, on_done: Callable[[int, Answer], bool]
    ) -> None:
        """Run jobs side by side; each that is done is handed over at once, in this thread.

        Args:
            scenario: The network, its flows, and what happens during a run.
            jobs: What to run, in order.
            threads: How many at a time.
            on_done: Called with the index of a job and its answer; `False` leaves out the rest.
        """


class refused_by_core:
    """Refusals of the compiled core as those of this package."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Raise what was meant."""
        if isinstance(error, _core.ScenarioError):
            raise ScenarioError(str(error)) from None
        if isinstance(error, _core.Cancelled):
            raise Cancelled(str(error)) from None
