"""Engines by name. An engine runs a scenario with one AQM and one seed, or many such jobs concurrently.

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
    """Return all names of engines, with those of their models."""
    with_models = [f"{kind}:{model}" for kind, engine in ENGINES.items() for model in engine.models]
    return [*ENGINES, *with_models]


def find(engine: str) -> Engine:
    """Return the engine of a name; raise `EngineError` for an unknown one.

    Args:
        engine: Name, optionally with a model: `fluid:hollot`.
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
    """Raise `EngineError` for an engine that is unknown, not installed, or cannot run a scenario.

    Args:
        engine: Name of the engine.
        scenario: Scenario to check; `None` checks the engine only.
    """
    found = find(engine)
    if found.is_external:
        external_program(engine)
    if scenario is not None:
        found.check(scenario)


def external_names() -> list[str]:
    """Return the names of the engines that are external simulators."""
    return [kind for kind, engine in ENGINES.items() if engine.is_external]


def external_program(engine: str) -> Path:
    """Return the program of an external simulator; raise `EngineError` if it is not installed.

    Args:
        engine: Name of the engine, such as `ns2`.
    """
    program = find(engine).program()
    assert program is not None
    return program


def estimate_time(
    scenario: Scenario, aqms: Sequence[str | None], engine: str, runs: int = 1, *, force: bool = False
) -> str | None:
    """Return a message if runs will take long; raise `ScenarioError` if one exceeds the limit.

    Engines in real time have no estimate.

    Args:
        scenario: The network, its flows, and what happens during a run.
        aqms: AQMs, each a SPEC, or `None` for the scenario's.
        engine: What runs it, by name, such as `packet`.
        runs: Number of runs of each AQM.
        force: Return a message instead of raising.
    """
    found = find(engine)
    said = None
    for aqm in aqms if found.has_estimate else ():
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
        pcap: File for the packet trace.
        progress: Called with the completed fraction, 0 to 1; returning `False` stops the run.
        force: Run even if the estimated time exceeds the limit.
        threads: Maximum number of threads.
    """
    found = find(engine)
    found.check(scenario, trace=pcap is not None, threads=threads)
    if not force:
        estimate_time(scenario, [job[0]], engine)

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
    """Run jobs concurrently; results are passed to `on_done` in this thread as they finish.

    Args:
        scenario: The network, its flows, and what happens during a run.
        jobs: Jobs in order.
        engine: What runs it, by name, such as `packet`.
        threads: Number of concurrent jobs.
        on_done: Called with the index of a job and its result; returning `False` stops.
    """
    found = find(engine)
    found.check(scenario)
    found.run_many(scenario, jobs, threads, on_done)


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_within_memory(scenario: Scenario, threads: int) -> int:
    """Return how many concurrent runs fit into free memory; raise `ScenarioError` if not even one does.

    Args:
        scenario: The network, its flows, and what happens during a run.
        threads: Wanted number of concurrent runs.
    """
    for fewer in range(threads, 0, -1):
        try:
            scenario.core.check_memory(fewer)
            return fewer
        except _core.ScenarioError as error:
            refusal = str(error)
    raise ScenarioError(refusal)
