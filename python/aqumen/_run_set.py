"""Runs of several AQMs on one scenario, with statistics over the seeds and the order of the AQMs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from aqumen import _core
from aqumen._files import json_text
from aqumen._run import RunData
from aqumen._statistics import dropped, summarize, summarize_metric
from aqumen.errors import ScenarioError
from aqumen.explain.disagreement import mismatch
from aqumen.explain.transient import transients
from aqumen.ranking.order import GOALS, Place, Ranking, rank
from aqumen.scenario import Scenario

__all__ = ["SCHEMA", "RunSet", "Runs"]

SCHEMA = 1
"""Version of the JSON of a comparison. It grows when a key changes its meaning or goes away."""


R = TypeVar("R", bound=RunData, covariant=True)


class RunSet(Generic[R]):
    """Finished runs of several AQMs on one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        results: Sequence[R],
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
        self.results: Sequence[R] = list(results)
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

    def of(self, aqm: str) -> list[R]:
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

    def __repr__(self) -> str:
        runs = f"{len(self.results)} of {self.wanted}"
        return f"{type(self).__name__}({self.scenario.name!r}, aqms={self.aqms}, runs={runs})"


Runs = RunSet[RunData]
"""Runs as views read them."""


def _summaries(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Name -> window -> metric -> summary over the runs."""
    return {
        name: {
            window: {metric: summarize_metric(metric, [run[name][window] for run in runs]) for metric in metrics}
            for window, metrics in windows.items()
        }
        for name, windows in runs[0].items()
    }


def _transients(runs: Sequence[RunData], link: str, target_pkts: float) -> dict[str, Any]:
    """Event -> settling time and overshoot over the runs."""
    per_run = [transients(run, link, target_pkts) for run in runs]
    return {
        event: {
            "settling_s": summarize([each[event].settling_s for each in per_run], (0, math.inf)),
            "overshoot_pkts": summarize([each[event].overshoot_pkts for each in per_run], (0, math.inf)),
        }
        for event in per_run[0]
    }


def judged(run: RunData, key: str, link: str, window: str) -> float | None:
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
