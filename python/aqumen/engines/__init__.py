"""The engines by name: each runs one scenario with one AQM and one seed, or many at once.

`kinds` says what an engine is; `compiled` are those of the core, `external` those that are other programs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from aqumen import _core
from aqumen.engines.answer import Answer
from aqumen.engines.compiled import Fluid, Packet, Theory
from aqumen.engines.external.engine import Live, Ns2, Ns3
from aqumen.engines.kinds import Engine, Job, Progress
from aqumen.errors import EngineError, ScenarioError, listed, meant
from aqumen.scenario import Scenario

__all__ = ["ENGINES", "Engine", "Job", "find", "names", "run_many", "run_one"]

ENGINES: dict[str, type[Engine]] = {each.kind: each for each in (Packet, Fluid, Theory, Live, Ns2, Ns3)}
"""Engines by name."""


def names() -> list[str]:
    """Every name that an engine may be asked for by, models among them."""
    with_models = [f"{kind}:{model}" for kind, engine in ENGINES.items() for model in engine.models]
    return [*ENGINES, *with_models]


def find(engine: str) -> Engine:
    """The engine of a name; raises `EngineError` where there is none.

    Args:
        engine: Its name, perhaps with a model: `fluid:hollot`.
    """
    kind, colon, model = engine.partition(":")
    found = ENGINES.get(kind)
    if found is None or (colon and not found.models):
        known = list(ENGINES)
        raise EngineError(f"unknown engine `{engine}`{meant(kind, known) or ';'} choose from: {listed(known)}")
    if colon and model not in found.models:
        raise EngineError(f"unknown {kind} model `{model}`; choose from: {listed(found.models)}")
    return found(model or None)


def check_engine(engine: str, scenario: Scenario | None = None) -> None:
    """Raise `EngineError` for an engine that does not exist, or not on this machine, or that cannot run a scenario.

    Args:
        engine: Its name.
        scenario: The network, its flows, and what happens during a run.
    """
    found = find(engine)
    if found.is_external:
        external_program(engine)
    if scenario is not None:
        found.check(scenario)


def external_names() -> list[str]:
    """The engines that are programs of their own."""
    return [kind for kind, engine in ENGINES.items() if engine.is_external]


def external_program(engine: str) -> Path:
    """Program of an external engine; raises `EngineError` where it is not on this machine.

    Args:
        engine: The engine's name.
    """
    program = find(engine).program()
    assert program is not None
    return program


def foresee(
    scenario: Scenario, aqms: Sequence[str | None], engine: str, runs: int = 1, *, force: bool = False
) -> str | None:
    """Say in a line how long runs will take, where that is long; raise `ScenarioError` where one takes far too long.

    Nothing is said of the kernel, which runs in real time.

    Args:
        scenario: The network, its flows, and what happens during a run.
        aqms: The AQMs, each a SPEC, or `None` for the scenario's own.
        engine: What runs it, by name, such as `packet`.
        runs: How many runs of each.
        force: Do not refuse: say it.
    """
    found = find(engine)
    said = None
    for aqm in aqms if found.foreseen else ():
        try:
            said = scenario.core.check_cost(found.kind, aqm, runs * len(aqms)) or said
        except _core.ScenarioError as error:
            if not force:
                raise ScenarioError(f"{error}; --force runs it") from None
            said = str(error)
    return said


def run_one(
    scenario: Scenario,
    job: Job,
    engine: str,
    pcap: str | None = None,
    progress: Progress = None,
    *,
    force: bool = False,
    threads: int = 1,
) -> Answer:
    """Run one job.

    Args:
        scenario: The network, its flows, and what happens during a run.
        job: AQM and seed.
        engine: What runs it, by name, such as `packet`.
        pcap: A file for the packet trace.
        progress: Called now and then with the share done, 0 to 1; `False` stops the run.
        force: Run also what takes far too long.
        threads: How many may share the run.
    """
    found = find(engine)
    found.check(scenario, trace=pcap is not None, threads=threads)
    if not force:
        foresee(scenario, [job[0]], engine)
    # Threads share the flows of one run.
    threads_within_memory(scenario, 1)
    found.threads = min(threads, cores())
    return found.run(scenario, job, pcap, progress)


def run_many(
    scenario: Scenario,
    jobs: Sequence[Job],
    engine: str,
    threads: int,
    on_done: Callable[[int, Answer], bool],
) -> None:
    """Run jobs side by side; each that is done is handed over at once, in this thread.

    Args:
        scenario: The network, its flows, and what happens during a run.
        jobs: What to run, in order.
        engine: What runs it, by name, such as `packet`.
        threads: How many at a time.
        on_done: Called with the index of a job and its answer; `False` leaves out the rest.
    """
    found = find(engine)
    found.check(scenario)
    found.run_many(scenario, jobs, threads, on_done)


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_within_memory(scenario: Scenario, threads: int) -> int:
    """How many of so many runs can begin with the memory that is free; raises `ScenarioError` if not even one can.

    Args:
        scenario: The network, its flows, and what happens during a run.
        threads: How many are wanted at a time.
    """
    for fewer in range(threads, 0, -1):
        try:
            scenario.core.check_memory(fewer)
            return fewer
        except _core.ScenarioError as error:
            refusal = str(error)
    raise ScenarioError(refusal)
