"""Several AQMs on one scenario over several seeds, with statistics."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen import _core, engines
from aqumen._evidence import events
from aqumen._files import json_text, write_text
from aqumen.engines import Job
from aqumen.errors import ScenarioError, listed
from aqumen.explain.transient import transients
from aqumen.ranking import GOALS, Place, Ranking, rank
from aqumen.result import Answer, Result
from aqumen.scenario import Scenario, as_scenario
from aqumen.view import tables

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr
    from matplotlib.figure import Figure

    from aqumen._store import Digests, Store
    from aqumen.aqms import Aqm
    from aqumen.custom import Own

__all__ = ["ANY", "SCHEMA", "Comparison", "compare", "run"]

SCHEMA = 1
"""Version of the JSON of a comparison. It grows when a key changes its meaning or goes away."""
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
    from aqumen import custom

    specs, classes = custom.specs(aqms)
    return scenario.knowing(classes), specs


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


class Comparison:
    """Finished runs of several AQMs on one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        results: Sequence[Result],
        *,
        wanted: int,
        resumed: int = 0,
        rank_by: str | None = None,
    ) -> None:
        """Gather runs.

        Args:
            scenario: The network, its flows, and what happens during a run.
            results: The finished runs, AQM by AQM.
            wanted: How many were wanted.
            resumed: How many were taken from disk.
            rank_by: What decides, a name of `ranking.GOALS`; without it what the scenario holds does.
        """
        self.rank_by: str | None = rank_by
        """What decides, where that was said."""
        self.scenario: Scenario = scenario
        """The scenario."""
        self.results: list[Result] = list(results)
        """The finished runs, AQM by AQM, seeds rising."""
        self.wanted: int = wanted
        """How many runs were wanted."""
        self.resumed: int = resumed
        """How many runs were taken from disk."""
        self.aqms: list[str] = list(dict.fromkeys(result.label for result in self.results))
        """What is compared, in the order in which it was named: the AQMs; with several engines, each on each."""
        self.seeds: list[int] = sorted({result.seed for result in self.results})
        """The seeds of which any run finished."""

    @property
    def complete(self) -> bool:
        """Whether every wanted run finished."""
        return len(self.results) == self.wanted

    def of(self, aqm: str) -> list[Result]:
        """The runs of one AQM.

        Args:
            aqm: The AQM as it was asked for; with several engines `pi (fluid)`.
        """
        return [result for result in self.results if result.label == aqm]

    def targets(self) -> dict[str, float]:
        """Target queue length of each recorded link that has one, packets."""
        plan = self.scenario.plan(self.seeds[0], self.results[0].spec)
        return {
            link["name"]: float(link["target_pkts"])
            for link in plan["links"]
            if link["record"] and link["target_pkts"] is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """The comparison as `aqumen compare --json` prints it."""
        if not self.results:
            raise ScenarioError("no run finished, so there is nothing to compare")
        first, targets = self.results[0].data, self.targets()
        aqms = {}
        for aqm in self.aqms:
            runs = self.of(aqm)
            aqms[aqm] = {
                "name": runs[0].data["aqm"]["name"],
                "engine": runs[0].engine,
                "given": runs[0].given,
                "params": runs[0].params,
                "seeds": [run.seed for run in runs],
                "links": _summaries([run.data["links"] for run in runs]),
                "flows": _summaries([run.data["flows"] for run in runs]),
                "transients": {link: _transients(runs, link, target) for link, target in targets.items()},
            }
        return {
            "schema": SCHEMA,
            "aqumen": first["aqumen"],
            "scenario": first["scenario"],
            "engine": ", ".join(dict.fromkeys(run.engine for run in self.results)),
            "windows": first["windows"],
            "runs": {"wanted": self.wanted, "finished": len(self.results)},
            "ranking": _ranking_dict(self.ranking(), self.results[0].engine),
            "mismatch": self.mismatch(),
            "aqms": aqms,
        }

    def to_json(self) -> str:
        """The same as JSON text."""
        return json_text(self.to_dict(), indent=2)

    def mismatch(self) -> dict[str, Any]:
        """How far engines disagree about the queue; empty with a single one."""
        if len({run.label for run in self.results}) == len({run.spec for run in self.results}):
            return {}
        from aqumen.explain.disagreement import mismatch

        return mismatch(self.results)

    def ranking(self) -> Ranking:
        """The AQMs in order, the best first, on the first recorded link in the window `steady`.

        Of several engines the first one is the reference: the AQMs are ranked there, engines are never ranked.
        """
        first = self.results[0]
        link, window = first.links[0], "steady" if "steady" in first.windows else next(iter(first.windows))
        keys = {figure.key for goal in GOALS.values() for figure in goal.figures}
        summaries = {aqm: {key: self._judged(aqm, key, link, window) for key in keys} for aqm in self.aqms}
        nominal = self.scenario.plan(first.seed, first.spec)["nominal"] or {}
        base_rtt_s = nominal.get("base_rtt_s") or 0.0
        again = {label for labels in self.by_aqm.values() for label in labels[1:]}
        return rank(summaries, link, window, self.rank_by, base_rtt_s=base_rtt_s, unranked=again)

    def _judged(self, label: str, key: str, link: str, window: str) -> dict[str, Any]:
        runs = self.of(label)
        if key in runs[0].data["links"][link][window]:
            return summarize_metric(key, [run.data["links"][link][window] for run in runs])
        return summarize([judged(run, key, link, window) for run in runs], _core.range_of(key))

    @property
    def by_aqm(self) -> dict[str, list[str]]:
        """The labels of each AQM: one; with several engines one for each, that of the reference first."""
        labels: dict[str, list[str]] = {}
        for run in self.results:
            if run.label not in labels.setdefault(run.spec, []):
                labels[run.spec].append(run.label)
        return labels

    def rows(self, ranking: Ranking) -> list[tuple[Place | None, str]]:
        """The rows of a ranking: place and label. An AQM on another engine stands below it and has no place.

        Args:
            ranking: What `ranking` returned.
        """
        below = {first: others for first, *others in self.by_aqm.values()}
        rows: list[tuple[Place | None, str]] = []
        for place in ranking.places:
            rows += [(place, place.aqm), *((None, label) for label in below[place.aqm])]
        return rows

    def summary(self, aqm: str, metric: str, link: str | None = None, window: str = "steady") -> dict[str, Any]:
        """Mean, standard deviation, 95 % interval and number of runs of one metric of a link.

        Args:
            aqm: The AQM as it was asked for.
            metric: A key of a link's metrics, such as "sojourn_mean_s".
            link: The link; without one the first recorded.
            window: One that the scenario defines, such as "steady"; "all" has the whole run.
        """
        return dict(self.summaries(aqm, link, window)[metric])

    def summaries(self, aqm: str, link: str | None = None, window: str = "steady") -> dict[str, Any]:
        """The same of every metric of a link, and of `drop_ratio`, early and overflow drops together.

        Args:
            aqm: The AQM as it was asked for.
            link: The link; without one the first recorded.
            window: One that the scenario defines, such as "steady"; "all" has the whole run.
        """
        name = link or self.results[0].links[0]
        runs = [run.data["links"][name][window] for run in self.of(aqm)]
        every = [{**run, "drop_ratio": dropped(run)} for run in runs]
        return {metric: summarize_metric(metric, every) for metric in every[0]}

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
        from aqumen.view.plot import plot_comparison

        return plot_comparison(self, link)

    def _links(self, aqm: str) -> dict[str, Any]:
        return _summaries([run.data["links"] for run in self.of(aqm)])

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

    def __repr__(self) -> str:
        return f"Comparison({self.scenario.name!r}, aqms={self.aqms}, runs={len(self.results)} of {self.wanted})"


ANY = (-math.inf, math.inf)
"""The range of a figure that may be anything."""


def summarize(values: Sequence[float | None], within: tuple[float, float] = ANY) -> dict[str, Any]:
    """Mean, standard deviation, 95 % interval and number of the values that are defined.

    Args:
        values: One value per run.
        within: The range of the figure, in which its interval stays; without ends it is Student's.
    """
    defined = [float(value) for value in values if value is not None]
    if not defined:
        return {"mean": None, "std": None, "ci95": None, "n": 0}
    mean, std, ci95, n = _core.summary(defined, *within)
    return {"mean": mean, "std": std, "ci95": None if ci95 is None else list(ci95), "n": n}


def summarize_metric(metric: str, runs: Sequence[Mapping[str, float | None]]) -> dict[str, Any]:
    """The same of a metric, and how many events stand behind it, where those are counted.

    Args:
        metric: The key of the metric.
        runs: The metrics of a link or a flow group in one window, a run each.
    """
    found = summarize([run[metric] for run in runs], _core.range_of(metric))
    behind = events(metric, runs) if found["n"] else None
    return found if behind is None else {**found, "events": behind}


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


def _summaries(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Name -> window -> metric -> summary over the runs."""
    return {
        name: {
            window: {metric: summarize_metric(metric, [run[name][window] for run in runs]) for metric in metrics}
            for window, metrics in windows.items()
        }
        for name, windows in runs[0].items()
    }


def _transients(runs: Sequence[Result], link: str, target_pkts: float) -> dict[str, Any]:
    """Event -> settling time and overshoot over the runs."""
    per_run = [transients(run, link, target_pkts) for run in runs]
    return {
        event: {
            "settling_s": summarize([each[event].settling_s for each in per_run], (0, math.inf)),
            "overshoot_pkts": summarize([each[event].overshoot_pkts for each in per_run], (0, math.inf)),
        }
        for event in per_run[0]
    }


def dropped(metrics: dict[str, float | None]) -> float | None:
    """Share of the packets that a link dropped, early or for want of room.

    Args:
        metrics: The link's metrics.
    """
    early, overflow = metrics["early_drop_ratio"], metrics["overflow_drop_ratio"]
    return None if early is None and overflow is None else (early or 0.0) + (overflow or 0.0)


def judged(run: Result, key: str, link: str, window: str) -> float | None:
    """A figure by which AQMs are ranked: of the link; of its flows the sum of their goodput, or the mean of the groups.

    Args:
        run: The result of one seed.
        key: The metric.
        link: Name of a link that is recorded, such as `bottleneck`.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
    """
    of_link = run.data["links"][link][window]
    if key in of_link:
        return None if of_link[key] is None else float(of_link[key])
    values = [group[window].get(key) for group in run.data["flows"].values()]
    known = [float(value) for value in values if value is not None]
    if not known:
        return None
    return sum(known) if key == "goodput_bps" else sum(known) / len(known)


def _ranking_dict(ranking: Ranking, engine: str) -> dict[str, Any]:
    places = [
        {
            "aqm": p.aqm,
            "place": p.place,
            "group": p.group,
            "clearly_best": p.clearly_best,
            "tied_with": list(p.tied_with),
        }
        for p in ranking.places
    ]
    return {
        "link": ranking.link,
        "window": ranking.window,
        "by": ranking.by,
        "goal": ranking.words,
        "metric": ranking.figure.key,
        "engine": engine,
        "order": places,
    }
