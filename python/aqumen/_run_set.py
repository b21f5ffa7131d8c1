"""Runs of several AQMs on one scenario, with statistics over the seeds and the order of the AQMs."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from aqumen import _core
from aqumen._files import json_text
from aqumen._run import RunData
from aqumen._statistics import dropped, summarize, summarize_metric
from aqumen.errors import ScenarioError
from aqumen.explain.disagreement import Disagreement, disagreement
from aqumen.explain.transient import transients
from aqumen.metrics import Summary
from aqumen.ranking.order import GOALS, Rank, Ranking, rank
from aqumen.scenario import Scenario

__all__ = ["SCHEMA", "RunSet", "Runs"]

SCHEMA = 1
"""Version of the JSON of a comparison; it grows when a key is removed or changes its meaning."""


R = TypeVar("R", bound=RunData, covariant=True)


class RunSet(Generic[R]):
    """Finished runs of several AQMs on one scenario, without tables and plots."""

    def __init__(
        self,
        scenario: Scenario,
        results: Sequence[R],
        *,
        wanted: int,
        resumed: int = 0,
        rank_by: str | None = None,
    ) -> None:
        """Collect finished runs.

        Args:
            scenario: Network, traffic and duration of the runs.
            results: Finished runs, AQM by AQM.
            wanted: Number of wanted runs.
            resumed: Number of runs loaded from disk.
            rank_by: Ranking criterion, a name of `ranking.GOALS`; default: by the scenario.
        """
        self.rank_by: str | None = rank_by
        """Ranking criterion, if given."""
        self.scenario: Scenario = scenario
        """The scenario."""
        self.results: Sequence[R] = list(results)
        """Finished runs, AQM by AQM, in order of seeds."""
        self.wanted: int = wanted
        """Number of wanted runs."""
        self.resumed: int = resumed
        """Number of runs loaded from disk."""
        self.aqms: list[str] = list(dict.fromkeys(result.label for result in self.results))
        """Labels in the given order: the AQMs; with several engines, each AQM on each engine."""
        self.seeds: list[int] = sorted({result.seed for result in self.results})
        """Seeds with at least one finished run."""

    @property
    def complete(self) -> bool:
        """Whether every wanted run finished."""
        return len(self.results) == self.wanted

    def of(self, aqm: str) -> list[R]:
        """Return the runs of one AQM.

        Args:
            aqm: The AQM as given by the user; with several engines such as `pi (fluid)`.
        """
        return [result for result in self.results if result.label == aqm]

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        """Plan of the first run."""
        return self.scenario.plan(self.results[0].seed, self.results[0].spec)

    def targets(self) -> dict[str, float]:
        """Return the target queue of each recorded link that has one, packets."""
        return {
            link["name"]: float(link["target_pkts"])
            for link in self.plan["links"]
            if link["record"] and link["target_pkts"] is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as `aqumen compare --json` prints it."""
        if not self.results:
            raise ScenarioError("nothing to compare: no run finished")
        first = self.results[0].data
        return {
            "schema": SCHEMA,
            "aqumen": first["aqumen"],
            "scenario": first["scenario"],
            "engine": ", ".join(dict.fromkeys(run.engine for run in self.results)),
            "windows": first["windows"],
            "runs": {"wanted": self.wanted, "finished": len(self.results)},
            "ranking": _ranking_dict(self.ranking(), self.results[0].engine),
            "mismatch": self.disagreement(),
            "aqms": self._summarized,
        }

    @functools.cached_property
    def _summarized(self) -> dict[str, Any]:
        """Summaries of all metrics by AQM, made once."""
        targets, aqms = self.targets(), {}
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
        return aqms

    def to_json(self) -> str:
        """Return the comparison as JSON text."""
        return json_text(self.to_dict(), indent=2)

    def disagreement(self) -> dict[str, Disagreement]:
        """Return the differences between engines in the queue; empty with one engine."""
        if len({run.label for run in self.results}) == len({run.spec for run in self.results}):
            return {}
        return disagreement(self.results)

    def ranking(self) -> Ranking:
        """Return the ranking of the AQMs on the first recorded link in the window `steady`, best first.

        With several engines, AQMs are ranked on the first one. Engines are never ranked.
        """
        first = self.results[0]
        link, window = first.links[0], "steady" if "steady" in first.windows else next(iter(first.windows))
        keys = {figure.key for goal in GOALS.values() for figure in goal.figures}
        summaries = {aqm: {key: self._judged(aqm, key, link, window) for key in keys} for aqm in self.aqms}
        nominal = self.plan["nominal"] or {}
        base_rtt_s = nominal.get("base_rtt_s") or 0.0
        again = {label for labels in self.by_aqm.values() for label in labels[1:]}
        return rank(summaries, link, window, self.rank_by, base_rtt_s=base_rtt_s, unranked=again)

    def _judged(self, label: str, key: str, link: str, window: str) -> Summary:
        runs = self.of(label)
        if key in runs[0].data["links"][link][window]:
            return summarize_metric(key, [run.data["links"][link][window] for run in runs])
        return summarize([judged(run, key, link, window) for run in runs], _core.range_of(key))

    @property
    def by_aqm(self) -> dict[str, list[str]]:
        """Labels of each AQM: one, or with several engines one for each, the reference first."""
        labels: dict[str, list[str]] = {}
        for run in self.results:
            if run.label not in labels.setdefault(run.spec, []):
                labels[run.spec].append(run.label)
        return labels

    def rows(self, ranking: Ranking) -> list[tuple[Rank | None, str]]:
        """Return the rows of a ranking: place and label. An AQM on another engine follows it without a place.

        Args:
            ranking: Result of `ranking`.
        """
        below = {first: others for first, *others in self.by_aqm.values()}
        rows: list[tuple[Rank | None, str]] = []
        for place in ranking.places:
            rows += [(place, place.aqm), *((None, label) for label in below[place.aqm])]
        return rows

    def summary(self, aqm: str, metric: str, link: str | None = None, window: str = "steady") -> Summary:
        """Return mean, standard deviation, 95 % confidence interval and number of runs of a link's metric.

        Args:
            aqm: The AQM as given by the user.
            metric: Key of a link's metric, such as "sojourn_mean_s".
            link: Name of the link; default: the first recorded one.
            window: A window of the scenario, such as "steady"; "all" is the whole run.
        """
        return self.summaries(aqm, link, window)[metric]

    def summaries(self, aqm: str, link: str | None = None, window: str = "steady") -> dict[str, Summary]:
        """Return the summary of every metric of a link, and of `drop_ratio` (early and overflow drops together).

        Args:
            aqm: The AQM as given by the user.
            link: Name of the link; default: the first recorded one.
            window: A window of the scenario, such as "steady"; "all" is the whole run.
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
    """Summarise every metric over the runs: name -> window -> metric -> summary."""
    return {
        name: {
            window: {metric: summarize_metric(metric, [run[name][window] for run in runs]) for metric in metrics}
            for window, metrics in windows.items()
        }
        for name, windows in runs[0].items()
    }


def _transients(runs: Sequence[RunData], link: str, target_pkts: float) -> dict[str, Any]:
    """Summarise settling time and overshoot over the runs: event -> metric -> summary."""
    per_run = [transients(run, link, target_pkts) for run in runs]
    return {
        event: {
            "settling_s": summarize([each[event].settling_s for each in per_run], (0, math.inf)),
            "overshoot_pkts": summarize([each[event].overshoot_pkts for each in per_run], (0, math.inf)),
        }
        for event in per_run[0]
    }


def judged(run: RunData, key: str, link: str, window: str) -> float | None:
    """Return a metric for the ranking: of the link, or of its flow groups (goodput summed, others averaged).

    Args:
        run: Result of one seed.
        key: Key of the metric.
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
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
