"""Several AQMs on one scenario over several seeds, with statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from aqumen import custom, engines
from aqumen._files import write_text
from aqumen._run_set import RunSet
from aqumen.engines.answer import Answer
from aqumen.engines.kinds import Job
from aqumen.errors import ScenarioError, listed
from aqumen.ranking.order import GOALS
from aqumen.result import Result
from aqumen.scenario import Scenario, as_scenario
from aqumen.view import tables
from aqumen.view.plot import plot_comparison

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr
    from matplotlib.figure import Figure

    from aqumen._store import Digests, Store
    from aqumen.aqms import Aqm
    from aqumen.custom import Own

__all__ = ["Comparison", "compare", "run"]

SEEDS_MAX = 100_000
"""More seeds than this are taken for a slip of the hand."""


def run(
    scenario: Scenario | str | os.PathLike[str],
    aqm: str | Aqm | Own | None = None,
    seed: int = 1,
    engine: str = "packet",
    *,
    pcap: str | os.PathLike[str] | None = None,
    on_progress: Callable[[float], bool] | None = None,
    force: bool = False,
    threads: int = 1,
) -> Result:
    """Run one AQM on one scenario with one seed.

    Args:
        scenario: A scenario, or the path of its file.
        aqm: The AQM, a SPEC such as `pi`, `pi-printed` or `pi:a=1.822e-5,b=1.816e-5`, or an object of `aqumen.aqms`;
            or a class of your own; without one the scenario's own.
        seed: The seed; the same seed gives the same result, and the same traffic to every AQM.
        engine: `packet`, `fluid` (with a model: `fluid:hollot`), `theory`, or `ns2` where it is installed.
        pcap: A file for the packets of the bottleneck, as pcapng.
        on_progress: Called now and then with the share done, 0 to 1; `False` stops the run, which raises `Cancelled`.
        force: Run also what would take hours, which is refused otherwise.
        threads: How many may share the run; the result is the same. A second one helps on fast links (`cost.threads`
            says whether it did), a third does not.
    """
    check_threads(threads)
    scenario, specs = _known(as_scenario(scenario), [] if aqm is None else [aqm])
    spec = specs[0] if specs else None
    if spec is not None:
        scenario.check_aqm(spec)
    check_seed(seed)
    trace = None if pcap is None else os.fspath(pcap)
    answer = engines.run_one(scenario, (spec, seed), engine, trace, on_progress, force=force, threads=threads)
    return Result(answer, spec)


def compare(
    scenario: Scenario | str | os.PathLike[str],
    aqms: Sequence[str | Aqm | Own],
    seeds: int | Sequence[int] = 20,
    engine: str | Sequence[str] = "packet",
    *,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    rank_by: str | None = None,
    on_progress: Callable[[int, int], bool] | None = None,
    force: bool = False,
) -> Comparison:
    """Run several AQMs on one scenario, each with the same seeds, on all cores; or an AQM on several engines.

    Args:
        scenario: A scenario, or the path of its file.
        aqms: The AQMs, each a SPEC such as `pi`, `pi-printed` or `pi:a=1.822e-5,b=1.816e-5`, an object of
            `aqumen.aqms`, or a class of your own.
        seeds: How many seeds (1, 2, ... are taken), or the seeds themselves.
        engine: `packet`, `fluid` (with a model: `fluid:hollot`), `theory`, or `ns2` where it is installed; or
            several of them, of which the first is the one that the others are held against.
        threads: How many runs at a time; without it one per core.
        out: A folder into which every finished run is written, and from which those already there are taken.
        rank_by: What decides: `queue-error`, `delay`, `p99`, `delay-at-utilization`, `page-load`, `calls` or `goodput`;
            without it the queue's error where the scenario has a target, else delay at utilisation.
        on_progress: Called with the numbers of finished and of wanted runs; `False` leaves out the rest.
        force: Run also what would take hours, which is refused otherwise.
    """
    known, specs = _known(as_scenario(scenario), aqms)
    gathered = Gathering(known, specs, seeds, engine, threads=threads, out=out, rank_by=rank_by, force=force)
    gathered.work(on_progress)
    return gathered.comparison()


def _known(scenario: Scenario, aqms: Sequence[object]) -> tuple[Scenario, list[str]]:
    """The scenario that knows the classes among `aqms`, and the SPECs of all."""
    if not any(isinstance(aqm, type) for aqm in aqms):
        return scenario, [str(aqm) for aqm in aqms]
    specs, classes = custom.specs(aqms)
    return scenario.knowing(classes), specs


class Comparison(RunSet[Result]):
    """Finished runs of several AQMs on one scenario, with tables, plots and the report."""

    def write_report(self, path: str | os.PathLike[str], command: str | None = None, *, theory: bool = False) -> None:
        """Write the report: one HTML file that needs nothing else.

        Args:
            path: The file.
            command: The command that made the comparison, to be printed at the end.
            theory: Set margins and oscillations beside the result too, which may take seconds for each AQM.
        """
        from aqumen.view.report import report_html

        write_text(Path(path), report_html(self, command, loops=theory))

    def to_pandas(self) -> pd.DataFrame:
        """All metrics of all runs as a pandas table, one row each. Needs the extra `pandas`."""
        return tables.to_pandas(tables.metric_columns(self.results))

    def to_polars(self) -> pl.DataFrame:
        """All metrics of all runs as a polars table, one row each. Needs the extra `polars`."""
        return tables.to_polars(tables.metric_columns(self.results))

    def to_arrow(self) -> pa.Table:
        """All metrics of all runs as an Arrow table, one row each. Needs the extra `arrow`."""
        return tables.to_arrow(tables.metric_columns(self.results))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand all metrics to any library that reads Arrow streams. Needs the extra `arrow`.

        Args:
            requested_schema: The schema that the reader would like, as an Arrow capsule.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_xarray(self) -> xr.Dataset:
        """All metrics, by AQM, seed, link or group, and window. Needs the extra `xarray`."""
        return tables.metrics_dataset(self.results)

    def plot(self, link: str | None = None) -> Figure:
        """Draw queue length over time and delay against utilisation. Needs the extra `plot`.

        Args:
            link: The link; without one the first recorded.
        """
        return plot_comparison(self, link)

    def _repr_html_(self) -> str:
        ranking = self.ranking()
        rows = []
        for place, label in self.rows(ranking):
            metrics = self.summaries(label, ranking.link, ranking.window)
            means = {name: summary["mean"] if summary["n"] else None for name, summary in metrics.items()}
            ranked = ["", ""] if place is None else [f"{place.place}", place.group or ""]
            rows.append([*ranked, label, *tables.link_cells(means)])
        heads = ["", "group", "AQM", *(f"{title}, {unit}" for title, unit in tables.LINK_HEADS)]
        where = f"{escape(self.scenario.name)}, {escape(ranking.link)}, window {escape(ranking.window)}"
        return f"<p><b>{where}</b>, {len(self.results)} runs</p>" + tables.html_table(heads, rows)


class Gathering:
    """A comparison being made: runs come in one by one, and none is lost when it is stopped."""

    def __init__(
        self,
        scenario: Scenario,
        aqms: Sequence[str],
        seeds: int | Sequence[int],
        engine: str | Sequence[str],
        *,
        threads: int | None = None,
        out: str | os.PathLike[str] | None = None,
        rank_by: str | None = None,
        force: bool = False,
    ) -> None:
        """Check everything that can be checked before the first run, and take the runs that are on disk.

        Args:
            scenario: The network, its flows, and what happens during a run.
            aqms: The AQMs, each a SPEC.
            seeds: How many seeds, or the seeds themselves.
            engine: The engine, or several.
            threads: How many runs at a time; without it one per core.
            out: A folder for finished runs.
            rank_by: What decides, a name of `ranking.GOALS`.
            force: Run also what would take hours.
        """
        if rank_by is not None and rank_by not in GOALS:
            raise ScenarioError(f"rank by {rank_by}: no such goal; choose from: {listed(GOALS)}")
        self.rank_by = rank_by
        self.engines = [engine] if isinstance(engine, str) else list(engine)
        if not self.engines:
            raise ScenarioError("no engine given; name at least one")
        for each in self.engines:
            engines.check_engine(each, scenario)
        if not aqms:
            raise ScenarioError("no AQM to compare; name at least one")
        for what, names in (("AQM", list(aqms)), ("engine", self.engines)):
            twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if twice:
                raise ScenarioError(f"{what} `{twice[0]}` is named twice")
        for aqm in aqms:
            scenario.check_aqm(aqm)
        if threads is not None:
            check_threads(threads)
        self.scenario, self.aqms = scenario, list(aqms)
        self.seeds = seed_list(seeds)
        #: How long this will take, where that is long.
        self.long = [
            said
            for each in self.engines
            if (said := engines.foresee(scenario, aqms, each, len(self.seeds), force=force)) is not None
        ]
        self.threads = engines.threads_within_memory(scenario, threads or engines.cores())
        self.store: Store | None = None
        # Seed by seed, so that a comparison that is stopped has about as many runs of each AQM.
        self.jobs: list[tuple[str, Job]] = [
            (each, (aqm, seed)) for each in self.engines for seed in self.seeds for aqm in self.aqms
        ]
        self.answers: dict[tuple[str, Job], Answer] = {}
        self.damaged: list[str] = []
        self._digests: dict[str, Digests] = {}
        if out is not None:
            from aqumen._store import Damaged, Digests, Store

            self.store = Store(out)
            self._digests = {each: Digests(scenario, each) for each in self.engines}
            for each, job in self.jobs:
                try:
                    answer = self.store.load(job, self._digests[each].of(job), self._apart(each))
                except Damaged as error:
                    self.damaged.append(str(error))
                    continue
                if answer is not None:
                    self.answers[each, job] = answer
        self.resumed = len(self.answers)

    def work(self, on_progress: Callable[[int, int], bool] | None = None) -> None:
        """Run what is left, engine by engine.

        Args:
            on_progress: Called with the numbers of finished and of wanted runs; `False` leaves out the rest.
        """
        go_on = True
        for engine in self.engines:
            left = [job for each, job in self.jobs if each == engine and (each, job) not in self.answers]

            def done(index: int, answer: Answer, engine: str = engine, left: list[Job] = left) -> bool:
                nonlocal go_on
                job = left[index]
                if self.store is not None:
                    self.store.save(job, answer, self._digests[engine].of(job), self._apart(engine))
                self.answers[engine, job] = answer
                go_on = on_progress is None or on_progress(len(self.answers), len(self.jobs))
                return go_on

            if left and go_on:
                engines.run_many(self.scenario, left, engine, self.threads, done)

    def comparison(self) -> Comparison:
        """What is finished by now."""
        results = [
            Result(self.answers[each, (aqm, seed)], aqm, self._label(aqm, each))
            for aqm in self.aqms
            for each in self.engines
            for seed in self.seeds
            if (each, (aqm, seed)) in self.answers
        ]
        return Comparison(self.scenario, results, wanted=len(self.jobs), resumed=self.resumed, rank_by=self.rank_by)

    def _label(self, aqm: str, engine: str) -> str | None:
        return f"{aqm} ({engine})" if len(self.engines) > 1 else None

    def _apart(self, engine: str) -> str | None:
        return engine if len(self.engines) > 1 else None


def check_threads(threads: int) -> None:
    """Raise `ScenarioError` for a number of threads that is none.

    Args:
        threads: What was given for one.
    """
    if threads < 1:
        raise ScenarioError(f"threads = {threads}: at least 1 is needed")


def check_seed(seed: int) -> None:
    """Raise `ScenarioError` for a seed that is none.

    Args:
        seed: What was given for one.
    """
    if not 0 <= seed < 2**64:
        raise ScenarioError(f"seed {seed}: a seed is a whole number from 0 to 2^64 - 1")


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """The seeds, rising; a number n stands for 1, 2, ..., n.

    Args:
        seeds: How many, or which.
    """
    if isinstance(seeds, int):
        if not 1 <= seeds <= SEEDS_MAX:
            raise ScenarioError(f"seeds = {seeds}: the number of seeds is from 1 to {SEEDS_MAX}")
        return list(range(1, seeds + 1))
    if not seeds:
        raise ScenarioError("no seed given; name at least one")
    for seed in seeds:
        check_seed(seed)
    if len(set(seeds)) != len(seeds):
        raise ScenarioError("a seed is named twice")
    return sorted(seeds)
