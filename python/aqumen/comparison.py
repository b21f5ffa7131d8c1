"""Comparison of several AQMs on one scenario over several seeds."""

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
    from aqumen.custom import CustomClass

__all__ = ["Comparison", "compare", "run"]

SEEDS_MAX = 100_000
"""Largest number of seeds; more is taken for a typing error."""


def run(
    scenario: Scenario | str | os.PathLike[str],
    aqm: str | Aqm | CustomClass | None = None,
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
        scenario: A scenario, a path, or the name of an experiment.
        aqm: The AQM: a SPEC such as `pi`, `pi-printed` or `pi:a=1.822e-5,b=1.816e-5`, an object of `aqumen.aqms`, or a
            custom class; default: the scenario's.
        seed: Seed of all random numbers. Equal seeds give equal results, and equal traffic to every AQM.
        engine: `packet`, `fluid` (with a model: `fluid:hollot`), `theory`, or `ns2` if installed.
        pcap: File for the packets of the bottleneck, as pcapng.
        on_progress: Called with the completed fraction, 0 to 1; returning `False` stops the run.
        force: Run even if it is estimated to take hours.
        threads: Maximum number of threads; the result does not depend on it. A second thread helps on fast links
            (`cost.threads` says whether it was used), a third does not.

    Raises:
        ScenarioError: An argument is invalid, or the run would take too long.
        EngineError: The engine is missing, cannot run the scenario, or failed.
        Cancelled: `on_progress` returned `False`.
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
    aqms: Sequence[str | Aqm | CustomClass],
    seeds: int | Sequence[int] = 20,
    engine: str | Sequence[str] = "packet",
    *,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    series: str = "all",
    rank_by: str | None = None,
    on_progress: Callable[[int, int], bool] | None = None,
    force: bool = False,
) -> Comparison:
    """Run several AQMs on one scenario with equal seeds, on all cores; or one AQM on several engines.

    Args:
        scenario: A scenario, a path, or the name of an experiment.
        aqms: The AQMs, each a SPEC such as `pi`, `pi-printed` or `pi:a=1.822e-5,b=1.816e-5`, an object of
            `aqumen.aqms`, or a custom class.
        seeds: Number of seeds (1, 2, ... are used), or the seeds themselves.
        engine: `packet`, `fluid` (with a model: `fluid:hollot`), `theory`, or `ns2` if installed; or several, of which
            the first is the reference.
        threads: Number of concurrent runs; default: the number of cores.
        out: Folder for finished runs; runs already there are reused.
        series: Series and distributions of the runs in `out`: `all`, `sampled` (at most 500 points of each), or `none`.
        rank_by: Ranking criterion: `queue-error`, `delay`, `p99`, `delay-at-utilization`, `page-load`, `calls` or
            `goodput`; default: `queue-error` if the scenario has a target, else `delay-at-utilization`.
        on_progress: Called with the numbers of finished and wanted runs; returning `False` stops.
        force: Run even if it is estimated to take hours.

    Raises:
        ScenarioError: An argument is invalid, or a run would take too long.
        EngineError: An engine is missing, cannot run the scenario, or failed.
        OutputError: `out` cannot be written.
    """
    known, specs = _known(as_scenario(scenario), aqms)
    gathered = Gathering(
        known, specs, seeds, engine, threads=threads, out=out, series=series, rank_by=rank_by, force=force
    )
    gathered.work(on_progress)
    return gathered.comparison()


def _known(scenario: Scenario, aqms: Sequence[object]) -> tuple[Scenario, list[str]]:
    """Add the classes among `aqms` to the scenario. Returns it with the SPECs of all AQMs."""
    if not any(isinstance(aqm, type) for aqm in aqms):
        return scenario, [str(aqm) for aqm in aqms]
    specs, classes = custom.specs(aqms)
    return scenario.knowing(classes), specs


class Comparison(RunSet[Result]):
    """Finished runs of several AQMs on one scenario, with tables, plots and the report."""

    def write_report(self, path: str | os.PathLike[str], command: str | None = None, *, theory: bool = False) -> None:
        """Write the report, a self-contained HTML file.

        Args:
            path: Path of the file.
            command: Command to print at its end.
            theory: Also predict margins and oscillations, which may take seconds for each AQM.
        """
        from aqumen.view.report import report_html

        write_text(Path(path), report_html(self, command, loops=theory))

    def to_pandas(self) -> pd.DataFrame:
        """Return all metrics of all runs as a pandas table, one row each. Needs the extra `pandas`."""
        return tables.to_pandas(tables.metric_columns(self.results))

    def to_polars(self) -> pl.DataFrame:
        """Return all metrics of all runs as a polars table, one row each. Needs the extra `polars`."""
        return tables.to_polars(tables.metric_columns(self.results))

    def to_arrow(self) -> pa.Table:
        """Return all metrics of all runs as an Arrow table, one row each. Needs the extra `arrow`."""
        return tables.to_arrow(tables.metric_columns(self.results))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all metrics as an Arrow stream. Needs the extra `arrow`.

        Args:
            requested_schema: Schema preferred by the reader, as an Arrow capsule.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_xarray(self) -> xr.Dataset:
        """Return all metrics by AQM, seed, link or group, and window. Needs the extra `xarray`."""
        return tables.metrics_dataset(self.results)

    def plot(self, link: str | None = None) -> Figure:
        """Plot queue length over time, and delay against utilisation. Needs the extra `plot`.

        Args:
            link: Name of the link; default: the first recorded one.
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
    """A comparison in progress; finished runs are kept when it is stopped."""

    def __init__(
        self,
        scenario: Scenario,
        aqms: Sequence[str],
        seeds: int | Sequence[int],
        engine: str | Sequence[str],
        *,
        threads: int | None = None,
        out: str | os.PathLike[str] | None = None,
        series: str = "all",
        rank_by: str | None = None,
        force: bool = False,
    ) -> None:
        """Check the arguments and load finished runs.

        Args:
            scenario: Network, traffic and duration of the runs.
            aqms: The AQMs, each a SPEC.
            seeds: Number of seeds, or the seeds themselves.
            engine: Name of the engine, or several names.
            threads: Number of concurrent runs; default: the number of cores.
            out: Folder for finished runs.
            series: Series and distributions to keep of each run, as for `compare`.
            rank_by: Ranking criterion, a name of `ranking.GOALS`.
            force: Run even if it is estimated to take hours.
        """
        if rank_by is not None and rank_by not in GOALS:
            raise ScenarioError(f'rank_by: invalid value "{rank_by}"; choose from: {listed(GOALS)}')
        if series not in ("none", "sampled", "all"):
            raise ScenarioError(f'series: invalid value "{series}"; choose from: none, sampled, all')
        self.rank_by, self.series = rank_by, series
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
        #: Warnings of long runs.
        self.long = [
            warning
            for each in self.engines
            if (warning := engines.estimate_time(scenario, aqms, each, len(self.seeds), force=force)) is not None
        ]
        self.threads = engines.threads_within_memory(scenario, threads or engines.cores())
        self.store: Store | None = None
        # Seed by seed, so that an interrupted comparison has about equally many runs of each AQM.
        self.jobs: list[tuple[str, Job]] = [
            (each, (aqm, seed)) for each in self.engines for seed in self.seeds for aqm in self.aqms
        ]
        self.answers: dict[tuple[str, Job], Answer] = {}
        self.damaged: list[str] = []
        self._digests: dict[str, Digests] = {}
        if out is not None:
            from aqumen._answers import SERIES, from_text, stored
            from aqumen._store import Digests, Store

            self.store = Store(out)
            self._digests = {each: Digests(scenario, each) for each in self.engines}
            for each, job in self.jobs:
                key = self._digests[each].of(job)
                found = self.store.get(key)
                kept = None if found is None else from_text(found)
                # A run with fewer series than wanted is made again.
                if kept is not None and SERIES.index(kept.kept) >= SERIES.index(series):
                    self.answers[each, job] = stored(kept, series)
                elif key in self.store.damaged:
                    self.damaged.append(f"{self.store.damaged[key]}: changed since it was written")
        self.resumed = len(self.answers)

    def work(self, on_progress: Callable[[int, int], bool] | None = None) -> None:
        """Run the missing runs, engine by engine.

        Args:
            on_progress: Called with the numbers of finished and wanted runs; returning `False` stops.
        """
        try:
            self._work(on_progress)
        finally:
            if self.store is not None:
                self.store.close()

    def _work(self, on_progress: Callable[[int, int], bool] | None) -> None:
        from aqumen._answers import as_text, stored

        go_on = True
        for engine in self.engines:
            left = [job for each, job in self.jobs if each == engine and (each, job) not in self.answers]

            def done(index: int, answer: Answer, engine: str = engine, left: list[Job] = left) -> bool:
                nonlocal go_on
                job = left[index]
                if self.store is not None:
                    if self.series != "all":
                        # What is printed now is what a later call prints from the store.
                        answer = stored(answer, self.series)
                    self.store.put(self._digests[engine].of(job), as_text(answer))
                self.answers[engine, job] = answer
                go_on = on_progress is None or on_progress(len(self.answers), len(self.jobs))
                return go_on

            if left and go_on:
                engines.run_many(self.scenario, left, engine, self.threads, done)

    def comparison(self) -> Comparison:
        """Return the comparison of the finished runs."""
        results = [
            Result(self.answers[each, (aqm, seed)], aqm, self._label(aqm, each))
            for aqm in self.aqms
            for each in self.engines
            for seed in self.seeds
            if (each, (aqm, seed)) in self.answers
        ]
        return Comparison(self.scenario, results, wanted=len(self.jobs), resumed=self.resumed, rank_by=self.rank_by)

    def write(self, comparison: Comparison, command: str, *, theory: bool = False) -> Path:
        """Write scenario, metrics and page of the finished runs into the folder. Returns the main file.

        Args:
            comparison: The finished runs.
            command: Command to print on the page.
            theory: Also predict margins and oscillations on the page.
        """
        from aqumen._kept import KeptRun, RunsPage

        assert self.store is not None
        folder = self.store.folder
        write_text(folder / "scenario.toml", self.scenario.to_toml())
        write_text(folder / "compare.json", comparison.to_json() + "\n")
        runs = [
            KeptRun(key=self._digests[each].of((aqm, seed)), spec=aqm, engine=each)
            for aqm in self.aqms
            for each in self.engines
            for seed in self.seeds
        ]
        RunsPage(
            command=command,
            scenario=self.scenario,
            runs=tuple(runs),
            wanted=len(runs),
            rank_by=self.rank_by,
            theory=theory,
        ).write(folder)
        if self.series == "none":
            return folder / "compare.json"
        comparison.write_report(folder / "report.html", command, theory=theory)
        return folder / "report.html"

    def _label(self, aqm: str, engine: str) -> str | None:
        return f"{aqm} ({engine})" if len(self.engines) > 1 else None


def check_threads(threads: int) -> None:
    """Raise `ScenarioError` unless the number of threads is at least 1.

    Args:
        threads: Requested number of threads.
    """
    if threads < 1:
        raise ScenarioError(f"threads = {threads}: must be at least 1")


def check_seed(seed: int) -> None:
    """Raise `ScenarioError` unless a seed is a 64-bit unsigned integer.

    Args:
        seed: Seed of a run.
    """
    if not 0 <= seed < 2**64:
        raise ScenarioError(f"seed {seed}: must be 0 to 2^64 - 1")


def seed_list(seeds: int | Sequence[int]) -> list[int]:
    """Return the seeds in ascending order; a number n stands for 1, 2, ..., n.

    Args:
        seeds: Number of seeds, or the seeds.
    """
    if isinstance(seeds, int):
        if not 1 <= seeds <= SEEDS_MAX:
            raise ScenarioError(f"seeds = {seeds}: must be 1 to {SEEDS_MAX}")
        return list(range(1, seeds + 1))
    if not seeds:
        raise ScenarioError("no seed given; name at least one")
    for seed in seeds:
        check_seed(seed)
    if len(set(seeds)) != len(seeds):
        raise ScenarioError("a seed is named twice")
    return sorted(seeds)
