"""Repetition of kept runs: a sample is run again and compared bit for bit."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from aqumen import _core
from aqumen._store import Digests
from aqumen.study.cases import Case
from aqumen.study.executors import Row, Threads
from aqumen.study.rows import Rows

__all__ = ["Repetition", "check"]


@dataclass(frozen=True, slots=True)
class Repetition:
    """A run that was repeated."""

    case: Case
    """Its case."""
    seed: int
    """Its seed."""
    fault: str
    """Difference to the row that is kept, in words; empty if all bits are equal."""


def check(rows: Rows, sample: int, seed: int | None = None) -> list[Repetition]:
    """Run a random sample of the finished runs again.

    Args:
        rows: Rows of a study.
        sample: Number of runs; all if there are fewer.
        seed: Seed of the choice; default: another one each time.

    Raises:
        EngineError: A run failed.
    """
    finished = [(case, number, row) for case, number, row in rows.records()]
    chosen = random.Random(seed).sample(finished, min(sample, len(finished)))
    found: dict[int, Repetition] = {}
    todo = []
    for k, (case, number, _) in enumerate(chosen):
        key = Digests(rows.bases.scenario(case), rows.engine, rows.bases.custom or None).case(case.spec)
        if key != case.key:
            now = dict(_core.ENGINES).get(rows.engine.partition(":")[0], "other")
            found[k] = Repetition(case, number, f"was made by other sources of the engine than this one's ({now[:8]})")
        else:
            todo.append(k)

    def keep(index: int, row: Row) -> bool:
        case, number, before = chosen[todo[index]]
        found[todo[index]] = Repetition(case, number, _fault(json.loads(row.text), before))
        return True

    Threads().run(rows.bases, rows.engine, [chosen[k][:2] for k in todo], keep)
    return [found[k] for k in sorted(found)]


def _fault(now: dict[str, object], before: dict[str, object]) -> str:
    if now["bits"] != before["bits"]:
        return "its results differ"
    return "" if (now["h"], now["v"]) == (before["h"], before["v"]) else "its row was changed"
