"""The engines by name: each runs one scenario with one AQM and one seed, or many at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aqumen import _core
from aqumen.errors import Cancelled, EngineError, ScenarioError
from aqumen.result import Answer, Floats
from aqumen.scenario import Scenario

__all__ = ["ENGINES", "Job", "run_many", "run_one"]

ENGINES = ("packet", "fluid", "theory", "ns2", "ns3")
"""Engines that exist today."""
PLANNED = ("live",)
FLUID_MODELS = ("hollot", "ecn", "drop")
"""Window models of the fluid engine, chosen as `fluid:hollot`; without one each flow's ECN decides."""

FLOW_METRICS = (
    "goodput_bps",
    "jain_fairness",
    "rtt_mean_s",
    "retransmitted_ratio",
    "timeouts",
    "delay_mean_s",
    "jitter_mean_s",
    "loss_ratio",
    "throughput_bps",
    "delay_p50_s",
    "delay_p95_s",
    "delay_p99_s",
    "loss_burst_mean_pkts",
    "frames",
    "frame_loss_ratio",
    "r_factor",
    "mos",
    "refused",
    "pages",
    "page_load_mean_s",
    "page_load_p50_s",
    "page_load_p95_s",
    "page_load_p99_s",
    *(
        f"fct_{size}_{what}"
        for size in ("under_10kB", "10kB_100kB", "100kB_1MB", "over_1MB")
        for what in ("count", "mean_s", "p50_s", "p95_s", "p99_s", "slowdown")
    ),
)
"""What every flow group carries; null where an engine does not measure it."""

LINK_METRICS = (
    "wire_lost_pkts",
    "queue_p5_pkts",
    "queue_p25_pkts",
    "queue_p50_pkts",
    "queue_p75_pkts",
    "queue_p95_pkts",
    "queue_iae_pkts_s",
    "queue_ise_pkts2_s",
    "settling_s",
    "overshoot_pkts",
    "loss_run_mean_pkts",
    "loss_run_max_pkts",
    "loss_dispersion",
    "sync_index",
    "rtt_fairness_slope",
    "fairness_mean",
    "convergence_s",
)
"""What every recorded link carries beside what all engines measure; null likewise."""

Job = tuple[str | None, int]
"""An AQM (`None`: the scenario's own) and a seed."""


def check_engine(engine: str) -> None:
    """Raise `EngineError` for an engine that does not exist, or not on this machine.

    Args:
        engine: Its name.
    """
    name, colon, model = engine.partition(":")
    if name in PLANNED:
        raise EngineError(f"engine `{name}` is not built yet; these are: {', '.join(ENGINES)}")
    if name not in ENGINES or (colon and name != "fluid"):
        raise EngineError(f"unknown engine `{engine}`; there are: {', '.join(ENGINES)}")
    if colon and model not in FLUID_MODELS:
        raise EngineError(f"unknown fluid model `{model}`; there are: {', '.join(FLUID_MODELS)}")
    if engine == "ns2":
        from aqumen import ns2

        try:
            ns2.find_ns()
        except ns2.Ns2Error as error:
            raise EngineError(str(error)) from None
    if engine == "ns3":
        from aqumen import ns3

        try:
            ns3.find_program()
        except ns3.Ns3Error as error:
            raise EngineError(str(error)) from None


def run_one(
    scenario: Scenario,
    job: Job,
    engine: str,
    pcap: str | None = None,
    progress: Callable[[float], bool] | None = None,
) -> Answer:
    """Run one job.

    Args:
        scenario: The scenario.
        job: AQM and seed.
        engine: The engine.
        pcap: A file for the packet trace.
        progress: Called now and then with the share done, 0 to 1; `False` stops the run.
    """
    check_engine(engine)
    aqm, seed = job
    threads_within_memory(scenario, 1)
    if engine in PEERS:
        if pcap is not None:
            raise EngineError(f"engine `{engine}` writes no packet trace; leave out --pcap or use engine `packet`")
        return PEERS[engine](scenario, job)
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
    if engine in PEERS:
        from concurrent.futures import ThreadPoolExecutor, as_completed

        with ThreadPoolExecutor(threads) as pool:
            running = {pool.submit(PEERS[engine], scenario, job): index for index, job in enumerate(jobs)}
            try:
                for done in as_completed(running):
                    if not on_done(running[done], done.result()):
                        break
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
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


def _ns2(scenario: Scenario, job: Job) -> Answer:
    from aqumen import ns2

    aqm, seed = job
    try:
        plan = scenario.plan(seed, aqm)
        for group, asked in zip(plan["groups"], scenario.core.requests(seed), strict=True):
            group["requests"] = asked
        return PeerAnswer(ns2.run(plan))
    except ns2.Ns2Error as error:
        raise EngineError(str(error)) from None


def _ns3(scenario: Scenario, job: Job) -> Answer:
    from aqumen import ns3

    aqm, seed = job
    try:
        return PeerAnswer(ns3.run(scenario.plan(seed, aqm)))
    except ns3.Ns3Error as error:
        raise EngineError(str(error)) from None


PEERS: dict[str, Callable[[Scenario, Job], Answer]] = {"ns2": _ns2, "ns3": _ns3}
"""Simulators of others that run as programs of their own."""


class PeerAnswer:
    """What a peer answered, with the keys of every run."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Take the engine's dictionary.

        Args:
            answer: The metrics, and under `series` queue and probability over time.
        """
        self._series = answer["series"]
        self._sojourn = answer.get("sojourn", {})
        plain = {key: value for key, value in answer.items() if key not in ("series", "sojourn")}
        whole = {
            key: {
                name: {window: {**dict.fromkeys(wanted), **metrics} for window, metrics in windows.items()}
                for name, windows in plain[key].items()
            }
            for key, wanted in (("links", LINK_METRICS), ("flows", FLOW_METRICS))
        }
        self.json = json.dumps({**plain, "aqumen": _core.__version__, **whole})

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Times in seconds, packets waiting, probability in force (NaN where the AQM has none)."""
        own = self._series[link]
        t, queue, p = (np.array(own[key], dtype=np.float64) for key in ("t", "queue_pkts", "p"))
        return t, queue, p

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each; empty where none were taken."""
        times, share = self._sojourn.get(link, {}).get(window, ((), ()))
        return np.array(times, dtype=np.float64), np.array(share, dtype=np.float64)

    def queue_cdf(self, _link: str, _window: str) -> tuple[Floats, Floats]:
        """Empty: peers tell the queue as sampled alone."""
        return np.array([]), np.array([])


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads_within_memory(scenario: Scenario, threads: int) -> int:
    """How many of so many runs fit into the memory that is free; raises `ScenarioError` if not even one does.

    Args:
        scenario: The scenario.
        threads: How many are wanted at a time.
    """
    for fewer in range(threads, 0, -1):
        try:
            scenario.core.check_memory(fewer)
            return fewer
        except _core.ScenarioError as error:
            refusal = str(error)
    raise ScenarioError(refusal)
