"""A study at work: missing runs, rounds of runs until the stopping rule is satisfied, state of each case."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqumen import _core
from aqumen._files import write_text
from aqumen._store import Store
from aqumen.errors import OutputError, ScenarioError, meant
from aqumen.study.cases import Bases, Case, expand
from aqumen.study.definition import Definition
from aqumen.study.executors import Executor, Row, Run, Threads
from aqumen.study.rows import MANIFEST, SHAPE, Rows, manifest, row_key
from aqumen.study.stopping import StoppingRule

__all__ = ["Progress", "Status", "Study", "forget_nameless", "status"]

HOURS_MAX = 10.0
"""CPU hours above which a study wants `force`."""
RUNS_MAX = 50_000
"""Runs above which a study wants `force`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a study at work."""

    runs: int
    """Finished runs."""
    planned: int
    """Runs that are finished or planned so far; a stopping rule plans more as it goes."""
    closed: int
    """Cases of which no run is missing."""
    cases: int
    """Cases of the study."""
    cost_s: float
    """Estimated CPU time of the finished runs of this call, seconds."""
    left_s: float
    """Estimated CPU time of the planned runs that are left, seconds."""


@dataclass(frozen=True, slots=True)
class Status:
    """State of a case."""

    case: Case
    """The case."""
    seeds: int
    """Finished runs."""
    wanted: int
    """Runs that it needs, as far as is known."""
    reached: bool | None
    """Whether the stopping rule is satisfied; `None` without one."""
    mean: float | None
    """Mean of the metric of the rule."""
    half_width: float | None
    """Half-width of its 95 % interval."""

    @property
    def closed(self) -> bool:
        """Whether no run is missing."""
        return self.seeds >= self.wanted


class Study:
    """Many runs: scenarios x points of factors x AQMs x seeds."""

    def __init__(self, **given: Any) -> None:
        """Define a study in Python, with the keys of a study file (`-` is `_`), and check every case.

        Args:
            given: `scenarios`, `aqms`, `factors`, `design`, `seeds` or `stop`, `engine`, `until`, `set`, `aqm_from`,
                `warm_up`, `title`, as in the file.

        Raises:
            ScenarioError: A key, a factor, a scenario or an AQM is not valid; the message names what is accepted.
        """
        self._take(Definition.read({key.replace("_", "-"): value for key, value in given.items()}))

    @classmethod
    def load(cls, path: str | os.PathLike[str], on_progress: Callable[[int, int], object] | None = None) -> Study:
        """Read a study file and check every case.

        Args:
            path: The TOML file.
            on_progress: Called with the numbers of checked points and of all.

        Raises:
            ScenarioError: As for `Study`; the message names file and line.
        """
        study = cls.__new__(cls)
        study._take(Definition.load(Path(path)), str(path), on_progress)
        return study

    @classmethod
    def of(cls, definition: Definition) -> Study:
        """Return the study of a definition.

        Args:
            definition: Scenarios, factors, AQMs, seeds.
        """
        study = cls.__new__(cls)
        study._take(definition)
        return study

    def _take(
        self, definition: Definition, file: str = "", on_progress: Callable[[int, int], object] | None = None
    ) -> None:
        self.definition = definition
        """Scenarios, factors, AQMs, seeds."""
        try:
            bases, cases = expand(definition, on_progress)
        except ScenarioError as error:
            raise ScenarioError(f"{file}: {error}") from None if file else error
        self.bases: Bases = bases
        """Scenarios as they were read."""
        self.cases: list[Case] = cases
        """Cases in order: scenarios, points, AQMs."""
        self._seconds: dict[str, float] = {}

    def runs(self, shard: tuple[int, int] = (1, 1)) -> list[Run]:
        """Return the runs of fixed seeds, or the first runs of each case under a stopping rule, seed by seed.

        Args:
            shard: Number K and count N: every N-th case, or run without a stopping rule, from the K-th on.
        """
        number, count = shard
        stop = self.definition.stop
        seeds = self.definition.seeds if stop is None else self.definition.seeds[: stop.least]
        if stop is not None:
            return [(case, seed) for seed in seeds for case in self.cases[number - 1 :: count]]
        return [(case, seed) for seed in seeds for case in self.cases][number - 1 :: count]

    def seconds(self, case: Case) -> float:
        """Return the estimated CPU time of a run, seconds; 0.1 for engines without an estimate.

        Args:
            case: A case of this study.
        """
        if case.key not in self._seconds:
            try:
                core = self.bases.scenario(case).core
                self._seconds[case.key] = core.time_estimate(self.definition.engine.partition(":")[0], case.spec)
            except _core.ScenarioError:
                self._seconds[case.key] = 0.1
        return self._seconds[case.key]

    def check_size(self, shard: tuple[int, int] = (1, 1)) -> tuple[int, float]:
        """Return the numbers of runs and of CPU hours that the study takes (at most, under a stopping rule).

        Args:
            shard: As for `runs`.

        Raises:
            ScenarioError: It takes more than `RUNS_MAX` runs or `HOURS_MAX` hours, which needs `force`.
        """
        first = self.runs(shard)
        each = 1 if self.definition.stop is None else self.definition.stop.most / self.definition.stop.least
        runs, hours = round(len(first) * each), sum(self.seconds(case) for case, _ in first) * each / 3600
        if runs > RUNS_MAX or hours > HOURS_MAX:
            most = " at most" if self.definition.stop is not None else ""
            raise ScenarioError(
                f"the study takes{most} {runs} runs and about {hours:.2g} CPU hours; the limit is {RUNS_MAX} runs and "
                f"{HOURS_MAX:g} hours; --force runs it"
            )
        return runs, hours

    def run(
        self,
        out: str | os.PathLike[str],
        *,
        on: Executor | None = None,
        shard: tuple[int, int] = (1, 1),
        force: bool = False,
        on_progress: Callable[[Progress], bool] | None = None,
        command: str = "",
    ) -> Rows:
        """Run the missing runs; finished ones in the folder are kept, also when this is stopped.

        Args:
            out: Folder of the rows. It may hold another state of this study, which goes on.
            on: Executor; default: threads of this process.
            shard: Number K and count N: only the K-th of N parts.
            force: Run even if it takes many runs or hours.
            on_progress: Called after each run; returning `False` stops.
            command: Command to print on the page of the study.

        Raises:
            ScenarioError: The study is too large.
            OutputError: The folder cannot be written.
            EngineError: A run failed, or the executor is out of reach.
        """
        if not force:
            self.check_size(shard)
        with Store(out) as store:
            write_text(Path(out) / MANIFEST, self._manifest(command))
            _Work(self, store, shard, on_progress).go(on or Threads())
        return Rows(out)

    def _manifest(self, command: str) -> str:
        stop = None if self.definition.stop is None else dataclasses.asdict(self.definition.stop)
        seeds, title = self.definition.seeds, self.definition.title
        return manifest(self.definition.engine, seeds, stop, title, self.bases, self.cases, command)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.definition.title!r}, cases={len(self.cases)})"


class _Work:
    """One call of `Study.run`."""

    def __init__(
        self, study: Study, store: Store, shard: tuple[int, int], on_progress: Callable[[Progress], bool] | None
    ) -> None:
        self.study, self.store, self.on_progress = study, store, on_progress
        self.stop = study.definition.stop
        # Cases of equal key are run once.
        first = {row_key(case.key, seed): (case, seed) for case, seed in study.runs(shard)}
        self.planned: dict[str, Run] = first
        self.cases = list({case.key: case for case, _ in first.values()}.values())
        self.metrics = _Metrics(store, None if self.stop is None else self.stop.metric)
        if store.damaged:
            forget_nameless(store)
        self.done = sum(key in store for key in first)
        self.cost_s, self.left_s, self.closed = 0.0, 0.0, 0

    def go(self, executor: Executor) -> None:
        """Run rounds until nothing is missing."""
        while True:
            if self.stop is not None:
                self._plan(self.stop)
            missing = [run for key, run in self.planned.items() if key not in self.store]
            left: dict[str, int] = {}
            for case, _ in missing:
                left[case.key] = left.get(case.key, 0) + 1
            self.closed = len(self.cases) - len(left)
            self.left_s = sum(self.study.seconds(case) for case, _ in missing)
            if not missing or not self._round(executor, missing, left):
                return
            self.store.flush()

    def _plan(self, stop: StoppingRule) -> None:
        """Plan the runs of each case up to the next look of the rule."""
        for case in self.cases:
            for seed in self.study.definition.seeds[
                : stop.wanted(self.metrics.of(case.key, self.study.definition.seeds))
            ]:
                self.planned.setdefault(row_key(case.key, seed), (case, seed))
        self.done = sum(key in self.store for key in self.planned)

    def _round(self, executor: Executor, missing: Sequence[Run], left: dict[str, int]) -> bool:
        """Run the missing runs. Returns whether to go on."""
        go_on = True

        def keep(index: int, row: Row) -> bool:
            nonlocal go_on
            case, seed = missing[index]
            if row.columns is not None and f"{SHAPE}{row.shape}" not in self.store:
                self._check_metric(row.columns)
                self.store.put(f"{SHAPE}{row.shape}", json.dumps(row.columns))
            self.store.put(row_key(case.key, seed), row.text)
            left[case.key] -= 1
            self.closed += left[case.key] == 0
            seconds = self.study.seconds(case)
            self.done, self.cost_s, self.left_s = self.done + 1, self.cost_s + seconds, self.left_s - seconds
            go_on = self.on_progress is None or self.on_progress(self._progress())
            return go_on

        executor.run(self.study.bases, self.study.definition.engine, missing, keep)
        return go_on

    def _check_metric(self, columns: Sequence[str]) -> None:
        """Refuse a rule about a metric that the first rows lack; one may be undefined in some."""
        if self.stop is not None and self.stop.metric not in columns:
            link, flow = _core.metric_keys()
            if self.stop.metric.rpartition(".")[2].partition("@")[0].rpartition(":")[2] not in (*link, *flow):
                raise ScenarioError(
                    f"stop.metric = {self.stop.metric}: no such metric{meant(self.stop.metric, columns)}"
                )

    def _progress(self) -> Progress:
        return Progress(
            runs=self.done,
            planned=len(self.planned),
            closed=self.closed,
            cases=len(self.cases),
            cost_s=self.cost_s,
            left_s=max(self.left_s, 0.0),
        )


def forget_nameless(store: Store) -> None:
    """Forget the rows whose names of columns were in a damaged line, so that they are run again.

    Args:
        store: Open store of a study.
    """
    for key, data in list(store.items()):
        if not key.startswith(SHAPE) and f"{SHAPE}{json.loads(data)['h']}" not in store:
            store.forget(key)


class _Metrics:
    """Values of one metric by case and seed, read from a store as it grows."""

    def __init__(self, store: Store, metric: str | None) -> None:
        self.store, self.metric = store, metric
        self._shapes: dict[str, int | None] = {}
        self._values: dict[str, float | None] = {}

    def of(self, case: str, seeds: Sequence[int]) -> list[float | None]:
        """Return the values of a case for the first seeds that are all finished.

        Args:
            case: Key of the case.
            seeds: Seeds in order.
        """
        found = []
        for seed in seeds:
            key = row_key(case, seed)
            if key not in self._values:
                data = self.store.get(key) if key in self.store else None
                if data is None:
                    break
                self._values[key] = self._value(json.loads(data))
            found.append(self._values[key])
        return found

    def _value(self, row: Mapping[str, Any]) -> float | None:
        shape = row["h"]
        if shape not in self._shapes:
            names = json.loads(self.store.get(f"{SHAPE}{shape}") or b"[]")
            self._shapes[shape] = names.index(self.metric) if self.metric in names else None
        at = self._shapes[shape]
        return None if at is None else float(row["v"][at])


def status(rows: Rows) -> Iterator[Status]:
    """Return the state of each case of a folder.

    Args:
        rows: The open folder.
    """
    rule = None if rows.stop is None else StoppingRule(**rows.stop)
    metrics = _Metrics(rows.store, None if rule is None else rule.metric)
    for case in rows.cases:
        if rule is None:
            done = sum(row_key(case.key, seed) in rows.store for seed in rows.seeds)
            yield Status(case, done, len(rows.seeds), None, None, None)
            continue
        values = metrics.of(case.key, rows.seeds)
        wanted, found = rule.wanted(values), rule.half_width(values) if len(values) > 1 else None
        mean, half = found or (None, None)
        yield Status(case, len(values), wanted, rule.reached(values), mean, half)


def merge(into: str | os.PathLike[str], others: Sequence[str | os.PathLike[str]]) -> int:
    """Add the rows of other folders to one, and their cases. Returns the number of added rows.

    Args:
        into: Folder that receives the rows; created if it does not exist.
        others: Folders of the same or of other studies.

    Raises:
        OutputError: One of the others holds no study.
    """
    sources = [Rows(other) for other in others]
    first = Path(into) / MANIFEST
    known = Rows(into) if first.exists() else sources[0]
    for each in sources:
        if each.engine != known.engine:
            raise OutputError(f"{each.folder}: ran on engine {each.engine}, {known.folder} on {known.engine}")
    cases = {json.dumps(case.to_list()): case for each in (known, *sources) for case in each.cases}
    for each in sources:
        for name, text in each.bases.texts.items():
            if known.bases.texts.setdefault(name, text) != text:
                raise OutputError(f"{each.folder}: its scenario {name} differs from that of {known.folder}")
        known.bases.sources = list(dict.fromkeys([*known.bases.sources, *each.bases.sources]))
    seeds = sorted({seed for each in (known, *sources) for seed in each.seeds})
    with Store(into) as store:
        added = sum(store.merge(each.store) for each in sources)
        every = list(cases.values())
        write_text(first, manifest(known.engine, seeds, known.stop, known.title, known.bases, every, known.command))
    return added
