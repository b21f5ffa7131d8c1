"""Executors: where the runs of a study happen. All give the same rows.

An executor takes runs, (case, seed) each, and hands back the row of each as text, in any order. It knows neither
store nor stopping rule; shards need no executor, since each is a study of its own over a part of the runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aqumen import _core, engines
from aqumen.engines.answer import Answer
from aqumen.study.cases import Bases, Case

__all__ = ["Executor", "Run", "Threads", "row_of"]

Run = tuple[Case, int]
"""Case and seed."""

Keep = Callable[[int, "Row"], bool]
"""Called with the index of a finished run and its row; returning `False` stops."""

SLICE = 256
"""Runs whose scenarios are in memory at a time."""


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a run."""

    shape: str
    """Digest of its columns."""
    columns: list[str] | None
    """Names of its columns; `None` if they went with an earlier row of this shape."""
    text: str
    """The row as JSON: `h` (shape), `bits` (digest of all results), `v` (values), `cost`."""


class Executor(Protocol):
    """Interface of all executors."""

    def run(self, bases: Bases, engine: str, runs: Sequence[Run], keep: Keep) -> None:
        """Run runs; rows are passed to `keep` in this thread as they finish.

        Args:
            bases: Scenarios of the study.
            engine: Name of the engine.
            runs: The runs in order.
            keep: Called with the index of a finished run and its row; returning `False` stops.

        Raises:
            EngineError: Runs failed, or the executor is out of reach; rows that were passed on are finished.
        """


class Threads:
    """Threads of this process."""

    def __init__(self, threads: int | None = None) -> None:
        """Choose their number.

        Args:
            threads: Number of concurrent runs; default: the number of cores.
        """
        self.threads = threads or engines.cores()

    def run(self, bases: Bases, engine: str, runs: Sequence[Run], keep: Keep) -> None:
        """Run runs on threads."""
        found, known = engines.find(engine), set[str]()
        for start in range(0, len(runs), SLICE):
            part = runs[start : start + SLICE]
            jobs = [(bases.scenario(case), (case.spec, seed)) for case, seed in part]
            threads = engines.threads_within_memory(jobs[0][0], self.threads)
            go_on = True

            def done(index: int, answer: Answer, start: int = start) -> bool:
                nonlocal go_on
                go_on = keep(start + index, row_of(answer, known))
                return go_on

            found.run_each(jobs, threads, done)
            if not go_on:
                return


def row_of(answer: Answer, known: set[str]) -> Row:
    """Return the row of an answer.

    Args:
        answer: Result of an engine.
        known: Shapes whose columns are known; grows.
    """
    if isinstance(answer, _core.RunResult):
        shape, text = answer.row()
        columns = None if shape in known else answer.columns()
    else:
        shape, text, columns = _row(answer)
    known.add(shape)
    return Row(shape, columns, text)


def _row(answer: Answer) -> tuple[str, str, list[str]]:
    """Return shape, row and columns of an external engine's answer, as the core makes them of its own."""
    import hashlib

    def sum_of(*parts: Any) -> str:
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    data = json.loads(answer.json)
    main = "steady" if "steady" in data["windows"] else "all"
    row: dict[str, float] = {}
    for kind, end in (("links", ":"), ("flows", ".")):
        for i, (name, windows) in enumerate(data[kind].items()):
            place = "" if kind == "links" and i == 0 else f"{name}{end}"
            for window, metrics in windows.items():
                at = "" if window == main else f"@{window}"
                row |= {f"{place}{key}{at}": value for key, value in metrics.items() if value is not None}
    shape, bits = sum_of(*row), sum_of(data["windows"], data["aqm"], data["links"], data["flows"])
    cost = [data["cost"].get(key) for key in ("cpu_s", "wall_s", "events", "bottleneck_packets")]
    values = [float(f"{value:.12g}") for value in row.values()]
    text = json.dumps({"h": shape, "bits": bits, "v": values, "cost": cost}, separators=(",", ":"))
    return shape, text, list(row)
