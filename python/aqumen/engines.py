"""The engines by name: each runs one scenario with one AQM and one seed, or many at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from aqumen import _core
from aqumen.errors import Cancelled, EngineError, ScenarioError, listed, meant
from aqumen.result import Answer
from aqumen.scenario import Scenario

__all__ = ["ENGINES", "Job", "run_many", "run_one"]

ENGINES = ("packet", "fluid", "theory", "live", "ns2", "ns3")
"""Engines that exist today."""
PEERS = ("live", "ns2", "ns3")
"""What runs as a program of its own: the kernel's TCP under `aqumend`, simulators of others."""
FLUID_MODELS = ("hollot", "ecn", "reno", "drop")
"""Window models of the fluid engine, chosen as `fluid:hollot`; without one each flow's ECN decides."""

Job = tuple[str | None, int]
"""An AQM (`None`: the scenario's own) and a seed."""


def check_engine(engine: str) -> None:
    """Raise `EngineError` for an engine that does not exist, or not on this machine.

    Args:
        engine: Its name.
    """
    name, colon, model = engine.partition(":")
    if name not in ENGINES or (colon and name != "fluid"):
        raise EngineError(f"unknown engine `{engine}`{meant(name, ENGINES) or ';'} there are: {listed(ENGINES)}")
    if colon and model not in FLUID_MODELS:
        raise EngineError(f"unknown fluid model `{model}`; there are: {listed(FLUID_MODELS)}")
    if engine in PEERS:
        peer_program(engine)


def check_traffic(scenario: Scenario, engine: str) -> None:
    """Raise `EngineError` for a source of traffic of one's own on an engine that cannot ask it.

    Args:
        scenario: The scenario.
        engine: The engine.
    """
    if engine != "packet":
        for group, name in scenario.own_traffic.items():
            raise EngineError(
                f"engine `{engine}` cannot run traffic of your own: group {group} has {name}; use engine `packet`"
            )


def peer_program(engine: str) -> Path:
    """The program that a peer is; raises `EngineError` where it is not on this machine.

    Args:
        engine: The peer.
    """
    from aqumen import live, ns2, ns3

    if engine == "live":
        return live.find_program()
    try:
        return Path(ns2.find_ns()) if engine == "ns2" else ns3.find_program()
    except (ns2.Ns2Error, ns3.Ns3Error) as error:
        raise EngineError(str(error)) from None


def foresee(
    scenario: Scenario, aqms: Sequence[str | None], engine: str, runs: int = 1, *, anyway: bool = False
) -> str | None:
    """Say in a line how long runs will take, where that is long; raise `ScenarioError` where one takes far too long.

    Nothing is said of the kernel, which runs in real time.

    Args:
        scenario: The scenario.
        aqms: The AQMs, each a SPEC, or `None` for the scenario's own.
        engine: The engine.
        runs: How many runs of each.
        anyway: Do not refuse: say it.
    """
    if engine == "live":
        return None
    said = None
    for aqm in aqms:
        try:
            said = scenario.core.check_cost(engine.partition(":")[0], aqm, runs * len(aqms)) or said
        except _core.ScenarioError as error:
            if not anyway:
                raise ScenarioError(f"{error}; --anyway runs it") from None
            said = str(error)
    return said


def run_one(
    scenario: Scenario,
    job: Job,
    engine: str,
    pcap: str | None = None,
    progress: Callable[[float], bool] | None = None,
    *,
    anyway: bool = False,
) -> Answer:
    """Run one job.

    Args:
        scenario: The scenario.
        job: AQM and seed.
        engine: The engine.
        pcap: A file for the packet trace.
        progress: Called now and then with the share done, 0 to 1; `False` stops the run.
        anyway: Run also what takes far too long.
    """
    check_engine(engine)
    check_traffic(scenario, engine)
    aqm, seed = job
    if not anyway:
        foresee(scenario, [aqm], engine)
    threads_within_memory(scenario, 1, engine)
    if engine in PEERS:
        if pcap is not None:
            raise EngineError(f"engine `{engine}` writes no packet trace; leave out --pcap or use engine `packet`")
        from aqumen import live, peers

        return live.run(scenario, job, progress) if engine == "live" else peers.RUN[engine](scenario, job)
    if engine != "packet" and pcap is not None:
        name = engine.partition(":")[0]
        raise EngineError(f"engine `{name}` knows no packets; leave out --pcap or use engine `packet`")
    try:
        if engine == "theory":
            return _core.run_theory(scenario.core, aqm, seed)
        if is_fluid(engine):
            return _core.run_fluid(scenario.core, aqm, seed, fluid_model(engine), progress)
        return _core.run(scenario.core, aqm, seed, pcap, progress)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    except _core.Cancelled as error:
        raise Cancelled(str(error)) from None


def run_many(
    scenario: Scenario,
    jobs: Sequence[Job],
    engine: str,
    threads: int,
    on_done: Callable[[int, Answer], bool],
) -> None:
    """Run jobs side by side; each that is done is handed over at once, in this thread.

    Args:
        scenario: The scenario.
        jobs: What to run, in order.
        engine: The engine.
        threads: How many at a time.
        on_done: Called with the index of a job and its answer; `False` leaves out the rest.
    """
    check_engine(engine)
    check_traffic(scenario, engine)
    if engine in PEERS:
        # Two runs in real time would make each other late.
        _run_peers(scenario, jobs, engine, 1 if engine == "live" else threads, on_done)
        return
    try:
        if engine == "theory":
            # Milliseconds each: not worth threads.
            for index, (aqm, seed) in enumerate(jobs):
                if not on_done(index, _core.run_theory(scenario.core, aqm, seed)):
                    break
        elif is_fluid(engine):
            _core.run_fluid_many(scenario.core, list(jobs), fluid_model(engine), threads, on_done)
        else:
            _core.run_many(scenario.core, list(jobs), threads, on_done)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def _run_peers(
    scenario: Scenario, jobs: Sequence[Job], engine: str, threads: int, on_done: Callable[[int, Answer], bool]
) -> None:
    import threading
    import time
    from concurrent.futures import ThreadPoolExecutor, as_completed

    from aqumen import peers, programs

    workers: list[int] = []
    with ThreadPoolExecutor(threads, initializer=lambda: workers.append(threading.get_ident())) as pool:
        running = {pool.submit(peers.RUN[engine], scenario, job): index for index, job in enumerate(jobs)}
        try:
            for done in as_completed(running):
                if not on_done(running[done], done.result()):
                    break
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            # A thread may be about to start its program: until all have come back.
            while any(one.running() for one in running):
                programs.stop(workers)
                time.sleep(0.02)


def is_fluid(engine: str) -> bool:
    """Whether it is the fluid engine, with or without a model.

    Args:
        engine: Its name.
    """
    return engine.partition(":")[0] == "fluid"


def fluid_model(engine: str) -> str | None:
    """The model of `fluid:MODEL`.

    Args:
        engine: The engine's name.
    """
    return engine.partition(":")[2] or None


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_within_memory(scenario: Scenario, threads: int, engine: str = "packet") -> int:
    """How many of so many runs fit into the memory that is free; raises `ScenarioError` if not even one does.

    Args:
        scenario: The scenario.
        threads: How many are wanted at a time.
        engine: The engine.
    """
    for fewer in range(threads, 0, -1):
        try:
            scenario.core.check_memory(fewer, engine.partition(":")[0])
            return fewer
        except _core.ScenarioError as error:
            refusal = str(error)
    raise ScenarioError(refusal)
