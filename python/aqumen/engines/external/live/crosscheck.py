"""The packet engine beside the kernel: what is compared, and how large a difference counts as none.

Two kinds of cells: under an AQM at a bottleneck (queue and utilisation), and at a given probability of marks or drops
where nothing waits (the window over p of the senders alone). The comparison itself is that with ns-2: see
`aqumen.engines.external.crosscheck`.
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
"""Seeds of ours for each run of the kernel: ours take no time."""

TOGETHER = 2
"""Runs of the kernel at a time, where there are as many cores: each has namespaces and links of its own."""

REGULATED = {"queue_mean_pkts": Bound(0.10, 1.0), "utilization": Bound(0.0, 0.02)}
"""AQMs that hold the queue at a target, whatever the senders are like."""
UNREGULATED = {"queue_mean_pkts": Bound(0.20, 1.0), "utilization": Bound(0.0, 0.03)}
"""AQMs whose queue follows from what the senders do."""
SENDERS = {"window_pkts": Bound(0.05, 0.0), "rtt_s": Bound(0.05, 0.0), "goodput_mbps": Bound(0.05, 0.0)}
"""Senders at a given probability. Goodput is window over round trip."""

BOUNDS = UNREGULATED | REGULATED | SENDERS
"""All of them, for the report."""

PROBABILITIES = (0.005, 0.02, 0.08, 0.2)
CONGESTION = {"reno": "linux-reno", "cubic": "linux", "bbr": "linux-bbr"}


def _cells() -> list[Cell]:
    regulated = {"PI": "pi", "STPI": "stpi", "ARM-PFC": "arm-pfc", "DropTail": "droptail"}
    unregulated = {"CoDel": "codel", "FQ-CoDel": "fq-codel", "PIE": "pie"}
    cells = [Cell("queue", "live/queue.toml", (), label, spec) for label, spec in (regulated | unregulated).items()]
    for name, preset in CONGESTION.items():
        # BBR takes no notice of marks: its packets cannot carry them.
        for signal in ("drops",) if name == "bbr" else ("marks", "drops"):
            transport = f'{{ preset = "{preset}", ecn = {str(signal == "marks").lower()} }}'
            # BBR takes all there is: each of its flows has a rate of its own.
            rate = "2.5Mbit" if name == "bbr" else "1Gbit"
            settings = (("flows.ftp.transport", transport), ("access.rate", rate))
            cells += [
                Cell("window", "live/window.toml", settings, f"{name}-{signal}-{p}", f"fixed:p={p}")
                for p in PROBABILITIES
            ]
    return cells


CELLS: list[Cell] = _cells()
"""Scenario files in the folder `validation`."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of one cell by one side."""

    figures: list[dict[str, float]]
    """One mapping per run."""
    invalid: list[str]
    """Why runs of the kernel do not count, after they were repeated once."""
    late_s: list[float]
    """How late one packet in a hundred was written, of each run that counts."""


def validate(
    cells: Sequence[Cell], base: Path, repeats: int, say: Callable[[str], None]
) -> Iterator[tuple[Cell, list[Row]]]:
    """Run both sides on every cell and give its rows: none where the kernel has no two runs that count.

    Args:
        cells: What to compare.
        base: The folder `validation`.
        repeats: Runs of the kernel; the packet engine has `MORE` seeds for each.
        say: Told of runs that do not count.
    """
    if repeats < 2:
        raise ScenarioError(f"seeds = {repeats}: a comparison needs at least two runs a side")
    for cell in cells:
        scenario = Scenario.load(base / cell.scenario)
        for key, value in cell.settings:
            scenario = scenario.set(key, value)
        ours = _ours(scenario, cell, range(1, MORE * repeats + 1))
        theirs = _theirs(scenario, cell, range(1, repeats + 1))
        for why in theirs.invalid:
            say(f"{cell.name}: {why}")
        if theirs.late_s:
            late = f"one packet in a hundred was written {max(theirs.late_s) * 1e6:.0f} us late or later"
            say(f"{cell.name}: {len(theirs.figures)} of {repeats} runs count; at worst {late}")
        rows = []
        if len(theirs.figures) > 1:
            rows = compare(cell.experiment, cell.label, "steady", ours, theirs.figures, bounds=_bounds(cell))
        # A window at a given p tells one thing in three ways; what counts is the window.
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
            # As they end: one that fails must not wait for those before it.
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
            runs.invalid.append(f"run {seed} does not count: {'; '.join(host['invalid_because'])}")
    return runs


def figures(cell: Cell, result: Mapping[str, Any]) -> dict[str, float]:
    """What is compared of one run, whichever engine ran it.

    Args:
        cell: Which experiment and AQM the two sides ran.
        result: The result's dictionary.
    """
    if cell.experiment != "window":
        metrics = result["links"]["bottleneck"]["steady"]
        return {name: float(metrics[name]) for name in _bounds(cell)}
    metrics = result["flows"]["ftp"]["steady"]
    flows, packet_bits = 40, 1500 * 8
    rtt_s = float(metrics["rtt_mean_s"])
    window = float(metrics["throughput_bps"]) * rtt_s / packet_bits / flows
    return {"window_pkts": window, "rtt_s": rtt_s, "goodput_mbps": float(metrics["goodput_bps"]) / 1e6}
