"""Comparison of the packet engine with the kernel's TCP: cells and bounds.

Cells of the experiment `queue` have an AQM at a bottleneck (queue and utilisation). Cells of `window` have a fixed
signal probability and no queue: they compare the response functions of the senders.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqumen import engines
from aqumen.engines.answer import Answer
from aqumen.engines.external.crosscheck import Bound, Cell, Row, compare
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

__all__ = ["BOUNDS", "CELLS", "MORE", "TOGETHER", "Runs", "validate"]

MORE = 3
"""Seeds of the packet engine for each run of the kernel."""

TOGETHER = 2
"""Concurrent runs of the kernel on machines with as many cores; each has its own namespaces and links."""

REGULATED = {"queue_mean_pkts": Bound(0.10, 1.0), "utilization": Bound(0.0, 0.02)}
"""Bounds for AQMs that regulate the queue to a target."""
UNREGULATED = {"queue_mean_pkts": Bound(0.20, 1.0), "utilization": Bound(0.0, 0.03)}
"""Bounds for AQMs whose queue depends on the senders."""
SENDERS = {"window_pkts": Bound(0.05, 0.0), "rtt_s": Bound(0.05, 0.0), "goodput_mbps": Bound(0.05, 0.0)}
"""Bounds for senders at a fixed signal probability. Goodput is window / RTT."""

BOUNDS = UNREGULATED | REGULATED | SENDERS
"""All bounds, for the report."""

PROBABILITIES = (0.005, 0.02, 0.08, 0.2)
CONGESTION = {"reno": "linux-reno", "cubic": "linux", "bbr": "linux-bbr"}


def _cells() -> list[Cell]:
    regulated = {"PI": "pi", "STPI": "stpi", "ARM-PFC": "arm-pfc", "DropTail": "droptail"}
    unregulated = {"CoDel": "codel", "FQ-CoDel": "fq-codel", "PIE": "pie"}
    cells = [Cell("queue", "live/queue.toml", (), label, spec) for label, spec in (regulated | unregulated).items()]
    for name, preset in CONGESTION.items():
        # BBR ignores marks: its packets are not ECN-capable.
        for signal in ("drops",) if name == "bbr" else ("marks", "drops"):
            transport = f'{{ preset = "{preset}", ecn = {str(signal == "marks").lower()} }}'
            # BBR fills any link, so each flow has an access link of its own rate.
            rate = "2.5Mbit" if name == "bbr" else "1Gbit"
            settings = (("flows.ftp.transport", transport), ("access.rate", rate))
            cells += [
                Cell("window", "live/window.toml", settings, f"{name}-{signal}-{p}", f"fixed:p={p}")
                for p in PROBABILITIES
            ]
    return cells


CELLS: list[Cell] = _cells()
"""Cells of the comparison; their scenario files are in the folder `validation`."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one cell in the kernel."""

    figures: list[dict[str, float]]
    """Metrics of each valid run."""
    invalid: list[str]
    """Reasons of runs that stayed invalid after one repetition."""
    late_s: list[float]
    """The 99th percentile of a packet's lateness, for each valid run, seconds."""


def validate(
    cells: Sequence[Cell], base: Path, repeats: int, say: Callable[[str], None]
) -> Iterator[tuple[Cell, list[Row]]]:
    """Run both engines on every cell and yield its rows; no rows if the kernel has fewer than two valid runs.

    Args:
        cells: Cells to compare.
        base: The folder `validation`.
        repeats: Runs of the kernel for each cell; the packet engine has `MORE` times as many seeds.
        say: Reports invalid runs and lateness.
    """
    if repeats < 2:
        raise ScenarioError(f"seeds = {repeats}: must be at least 2")
    for cell in cells:
        scenario = Scenario.load(base / cell.scenario)
        for key, value in cell.settings:
            scenario = scenario.set(key, value)
        ours = _ours(scenario, cell, range(1, MORE * repeats + 1))
        theirs = _theirs(scenario, cell, range(1, repeats + 1))
        for why in theirs.invalid:
            say(f"{cell.name}: {why}")
        if theirs.late_s:
            late = f"1 % of the packets were written at least {max(theirs.late_s) * 1e6:.0f} us late"
            say(f"{cell.name}: {len(theirs.figures)} of {repeats} runs are valid; at worst {late}")
        rows = []
        if len(theirs.figures) > 1:
            rows = compare(cell.experiment, cell.label, "steady", ours, theirs.figures, bounds=_bounds(cell))
        # At a fixed probability the three metrics are equivalent: only the window is judged.
        yield cell, [row if _judged(row) else replace(row, verdict="-") for row in rows]


def _bounds(cell: Cell) -> Mapping[str, Bound]:
    if cell.experiment == "window":
        return SENDERS
    return UNREGULATED if cell.label in ("CoDel", "FQ-CoDel", "PIE") else REGULATED


def _judged(row: Row) -> bool:
    return row.experiment != "window" or row.metric == "window_pkts"


def _ours(scenario: Scenario, cell: Cell, seeds: Sequence[int]) -> list[dict[str, float]]:
    results: dict[int, dict[str, float]] = {}

    def done(index: int, answer: Answer) -> bool:
        results[index] = figures(cell, json.loads(answer.json))
        return True

    threads = engines.threads_within_memory(scenario, engines.cores())
    engines.run_many(scenario, [(cell.aqm, seed) for seed in seeds], "packet", threads, done)
    return [results[index] for index in range(len(seeds))]


def _theirs(scenario: Scenario, cell: Cell, seeds: Sequence[int]) -> Runs:
    stopped = threading.Event()

    def one(seed: int) -> Mapping[str, Any]:
        answer = engines.run_one(scenario, (cell.aqm, seed), "live", progress=lambda _: not stopped.is_set())
        result: Mapping[str, Any] = json.loads(answer.json)
        return result

    runs = Runs([], [], [])
    with ThreadPoolExecutor(min(TOGETHER, engines.cores())) as pool:
        running = {seed: pool.submit(one, seed) for seed in seeds}
        try:
            # In order of completion, so that a failure is reported at once.
            for done in as_completed(running.values()):
                done.result()
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for seed, ended in running.items():
        result = ended.result()
        host = result["host"]
        if host["valid"]:
            runs.figures.append(figures(cell, result))
            runs.late_s.append(host["write_late_p99_s"] or 0.0)
        else:
            runs.invalid.append(f"run {seed} is invalid: {'; '.join(host['invalid_because'])}")
    return runs


def figures(cell: Cell, result: Mapping[str, Any]) -> dict[str, float]:
    """Return the compared metrics of one run of either engine.

    Args:
        cell: Cell that was run.
        result: Dictionary of the result.
    """
    if cell.experiment != "window":
        metrics = result["links"]["bottleneck"]["steady"]
        return {name: float(metrics[name]) for name in _bounds(cell)}
    metrics = result["flows"]["ftp"]["steady"]
    flows, packet_bits = 40, 1500 * 8
    rtt_s = float(metrics["rtt_mean_s"])
    window = float(metrics["throughput_bps"]) * rtt_s / packet_bits / flows
    return {"window_pkts": window, "rtt_s": rtt_s, "goodput_mbps": float(metrics["goodput_bps"]) / 1e6}
