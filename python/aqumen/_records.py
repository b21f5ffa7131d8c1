"""Compact records of runs for papers, rankings and RFC 7928; each is written when its run finishes.

A record lies in the store of its folder. It holds the metrics of the run, quantities derived from its series, and for
the first seed a thinned series of the queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aqumen import _core, engines
from aqumen._answers import SERIES
from aqumen._files import json_text
from aqumen._quantities import Run
from aqumen._store import Digests, Store
from aqumen.engines.answer import Answer
from aqumen.scenario import Scenario

__all__ = ["POINTS", "Records", "Wanted"]

Wanted = dict[str, list[str]]
"""AQMs to run in each cell, with every seed."""

LAYOUT = 3
"""Version of the record format; runs with other versions are repeated."""
SAMPLE = "sample-"
"""Prefix of the names of sample windows. Records keep only their total goodput and the mean sojourn time at the first
link, under `samples`."""
POINTS = 500
"""Maximum number of points of a sampled series."""


class Records:
    """Records by cell, AQM and seed, in memory and optionally on disk."""

    def __init__(
        self,
        wanted: Wanted,
        seeds: Iterable[int],
        folder: Path | None,
        fewer: Mapping[str, Sequence[int]] | None = None,
        prepare: Callable[[str, Scenario], Scenario] = lambda _, scenario: scenario,
        once: Wanted | None = None,
        series: str = "sampled",
    ) -> None:
        """Load the records on disk.

        Args:
            wanted: AQMs by cell.
            seeds: Seeds; the records of the first one contain the queue's series.
            folder: Folder of the records; `None` keeps them in memory.
            fewer: Seeds of cells that differ; the first seed must be equal.
            prepare: Changes the scenario of a cell before it runs.
            once: AQMs by cell that run with the first seed only.
            series: Series that the records of the first seed have, a name of `SERIES`.
        """
        self.seeds = list(seeds)
        self._series = SERIES.index(series)
        self._fewer = dict(fewer or {})
        self.runs: dict[tuple[str, str, int], Run] = {}
        self.scenarios = {cell: prepare(cell, Scenario.load(cell)) for cell in wanted}
        self.folder = folder
        self._store = None if folder is None else Store(folder)
        self.weights: dict[str, float] = {}
        self._left: dict[str, list[tuple[str, int]]] = {}
        self._digests: dict[str, Digests] = {}
        for cell, specs in wanted.items():
            scenario = self.scenarios[cell]
            plan = scenario.plan(self.seeds[0], specs[0])
            # The cost of a run is estimated by the packets that the links under test can carry.
            rates = [max(rate for _, rate in link["rates"]) for link in plan["links"] if link["record"]]
            self.weights[cell] = (
                0.05 + sum(rates) * float(plan["duration_s"]) / 8e3 / plan["nominal"]["packet_bytes"] / 1e3
            )
            self._left[cell] = []
            single = set((once or {}).get(cell, ()))
            for seed in self._fewer.get(cell, self.seeds):
                for spec in specs:
                    if spec in single and seed != self.seeds[0]:
                        continue
                    if not self._load(cell, spec, seed):
                        self._left[cell].append((spec, seed))
        self.resumed = len(self.runs)

    @property
    def left(self) -> int:
        """Number of missing runs."""
        return sum(map(len, self._left.values()))

    @property
    def work_left(self) -> float:
        """Cost of the missing runs, in the unit of `work`'s callback."""
        return sum(self.weights[cell] * len(jobs) for cell, jobs in self._left.items())

    def work(self, on_done: Callable[[str, str, int, float], bool]) -> None:
        """Run the missing runs.

        Args:
            on_done: Called with cell, AQM, seed and cost of each finished run; returning `False` stops.
        """
        try:
            self._work(on_done)
        finally:
            if self._store is not None:
                self._store.close()

    def _work(self, on_done: Callable[[str, str, int, float], bool]) -> None:
        go_on = True
        for cell, jobs in self._left.items():
            if not jobs or not go_on:
                continue
            scenario, todo = self.scenarios[cell], list(jobs)

            def done(index: int, answer: Answer, cell: str = cell, todo: list[tuple[str, int]] = todo) -> bool:
                nonlocal go_on
                spec, seed = todo[index]
                self._keep(cell, spec, seed, answer)
                self._left[cell].remove((spec, seed))
                go_on = on_done(cell, spec, seed, self.weights[cell])
                return go_on

            threads = engines.threads_within_memory(scenario, engines.cores())
            engines.run_many(scenario, todo, "packet", threads, done)

    def of(self, cell: str, spec: str) -> Iterator[tuple[int, Run]]:
        """Return the finished runs of a cell and AQM, by seed.

        Args:
            cell: Name of a wanted cell.
            spec: One of its AQMs.
        """
        seeds = self._fewer.get(cell, self.seeds)
        return ((seed, run) for seed in seeds if (run := self.runs.get((cell, spec, seed))) is not None)

    def _wanted_series(self, seed: int) -> int:
        """Return the place in `SERIES` of what the record of a seed has: only the first one has series."""
        return self._series if seed == self.seeds[0] else 0

    def _digest(self, cell: str, spec: str, seed: int, series: int) -> str:
        """Return a digest of scenario, AQM, seed, engine and record format."""
        if cell not in self._digests:
            self._digests[cell] = Digests(self.scenarios[cell], "packet")
        return f"{LAYOUT}-{series}-{self._digests[cell].of((spec, seed))}"

    def _load(self, cell: str, spec: str, seed: int) -> bool:
        if self._store is None:
            return False
        for series in range(self._wanted_series(seed), len(SERIES)):
            found = self._store.get(self._digest(cell, spec, seed, series))
            if found is not None:
                self.runs[cell, spec, seed] = json.loads(found)
                return True
        return False

    def _keep(self, cell: str, spec: str, seed: int, answer: Answer) -> None:
        series = self._wanted_series(seed)
        run = record_of(answer, series > 0, None if SERIES[series] == "all" else POINTS)
        self.runs[cell, spec, seed] = run
        if self._store is not None:
            self._store.put(self._digest(cell, spec, seed, series), json_text(run))


def record_of(answer: Answer, with_series: bool, most: int | None = POINTS) -> Run:
    """Return the record of a run.

    Args:
        answer: Result of the engine.
        with_series: Whether to include the series of queue and probability.
        most: Most points of each series; `None` for all.
    """
    data = json.loads(answer.json)
    samples = _extract_samples(data)
    series = {}
    for link, windows in data["links"].items():
        t_s, queue, probability = answer.series(link)
        for window, metrics in windows.items():
            start, end = data["windows"][window]
            inside = (t_s >= start) & (t_s <= end)
            target = data["aqm"]["nominal"]["target_pkts"]
            levels, share = answer.queue_cdf(link, window)
            metrics["empty_share"] = _share_at(levels, share, 0.0)
            metrics["below_target_share"] = _share_at(levels, share, target - 1.0)
            metrics["p_mean"] = _mean(probability[inside])
            metrics["p_std"] = None if not inside.any() else _finite(float(np.std(probability[inside])))
            metrics["length_s"] = end - start
            late = inside & (t_s >= (start + end) / 2)
            level = float(np.mean(queue[late])) if late.any() else 0.0
            seen = _core.transient(t_s, queue, level, start, end) if level > 0 else None
            metrics["settling_own_s"] = None if seen is None else seen[0]
            metrics["target_pkts"] = target
            for name, values in answer.state(link):
                own = values[inside & np.isfinite(values)]
                metrics[f"{name}_mean"] = _mean(own)
                metrics[f"{name}_p50"] = None if not len(own) else _finite(float(np.median(own)))
        if with_series:
            step = max(1, -(-len(t_s) // (most or len(t_s) or 1)))
            series[link] = {
                "t_s": [round(float(t), 3) for t in t_s[::step]],
                "queue_pkts": [round(float(q), 1) for q in queue[::step]],
                "probability": [_finite(round(float(p), 5)) for p in probability[::step]],
            }
    kept = ("scenario", "aqm", "seed", "windows", "links", "flows", "cost", "aqumen")
    more = {**({"series": series} if with_series else {}), **({"samples": samples} if samples else {})}
    return {**{key: data[key] for key in kept}, **more}


def _extract_samples(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Remove the sample windows from a run's data and return them."""
    names = [name for name in data["windows"] if name.startswith(SAMPLE)]
    link: dict[str, Any] = next(iter(data["links"].values()), {})
    samples = [
        {
            "at_s": data["windows"][name],
            "goodput_bps": sum(windows[name]["goodput_bps"] for windows in data["flows"].values()),
            "sojourn_mean_s": link[name]["sojourn_mean_s"],
        }
        for name in names
    ]
    for windows in (data["windows"], *data["links"].values(), *data["flows"].values()):
        for name in names:
            del windows[name]
    return samples


def _share_at(levels: np.ndarray[Any, Any], share: np.ndarray[Any, Any], at: float) -> float | None:
    """Return the fraction of time at or below a queue length."""
    if not len(levels):
        return None
    index = int(np.searchsorted(levels, at + 1e-9, side="right")) - 1
    return 0.0 if index < 0 else float(share[index])


def _mean(values: np.ndarray[Any, Any]) -> float | None:
    return None if not len(values) else _finite(float(np.mean(values)))


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
