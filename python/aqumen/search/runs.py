"""Runs of a search: each case and seed is run once, and finished ones are read from the store."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from aqumen._store import Store
from aqumen.errors import ScenarioError, meant
from aqumen.study.cases import Bases, Case
from aqumen.study.executors import Executor, Row, Run
from aqumen.study.rows import SHAPE, row_key

__all__ = ["Runs"]


class Runs:
    """Finished runs of a search by case and seed, in a store or in memory."""

    def __init__(self, engine: str, executor: Executor, store: Store | None = None) -> None:
        """Choose where runs happen and where they are kept.

        Args:
            engine: Name of the engine.
            executor: Threads, or machines.
            store: Open store; default: none, runs stay in memory.
        """
        self.engine, self.executor, self.store = engine, executor, store
        self._memory: dict[str, str] = {}
        self._shapes: dict[str, list[str]] = {}

    def run(self, bases: Bases, runs: Sequence[Run], on_run: Callable[[Run], bool] | None = None) -> bool:
        """Run what is missing. Returns whether all of it is finished; what is, is kept.

        Args:
            bases: Scenarios of the cases.
            runs: Cases and seeds.
            on_run: Called after each run; returning `False` stops.
        """
        wanted = {row_key(case.key, seed): (case, seed) for case, seed in runs}
        missing = [run for key, run in wanted.items() if self._text(key) is None]
        going = True

        def keep(index: int, row: Row) -> bool:
            nonlocal going
            case, seed = missing[index]
            if row.columns is not None:
                self._put(f"{SHAPE}{row.shape}", json.dumps(row.columns))
            self._put(row_key(case.key, seed), row.text)
            going = on_run is None or on_run(missing[index])
            return going

        if missing:
            self.executor.run(bases, self.engine, missing, keep)
        if self.store is not None:
            self.store.flush()
        return going

    def value(self, case: Case, seed: int, column: str) -> float:
        """Return a metric of a finished run; NaN if it is undefined.

        Args:
            case: Network, parameters and AQM.
            seed: Random seed, 1 or more.
            column: Name of the column.

        Raises:
            ScenarioError: The run has no such column, and no link or flow group that could have it.
        """
        row = json.loads(self._text(row_key(case.key, seed)) or "null")
        names = self._columns(row["h"])
        if column in names:
            return float(row["v"][names.index(column)])
        place = _place(column)
        if place and not any(_place(name) == place for name in names):
            known = sorted(filter(None, set(map(_place, names))))
            raise ScenarioError(f"{column}: no link or flow group `{place}`{meant(place, known)}")
        return math.nan

    def _columns(self, shape: str) -> list[str]:
        if shape not in self._shapes:
            self._shapes[shape] = json.loads(self._text(f"{SHAPE}{shape}") or "[]")
        return self._shapes[shape]

    def _text(self, key: str) -> str | bytes | None:
        if key in self._memory:
            return self._memory[key]
        return None if self.store is None or key not in self.store else self.store.get(key)

    def _put(self, key: str, text: str) -> None:
        if self.store is None:
            self._memory[key] = text
        elif key not in self.store:
            self.store.put(key, text)


def _place(column: str) -> str:
    """Return the link or flow group of a column and its window; empty for the first link in `steady`."""
    name, at, window = column.partition("@")
    end = max(name.rfind(":"), name.rfind("."))
    return f"{name[: end + 1]}{at}{window}"
