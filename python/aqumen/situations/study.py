"""Study of an everyday network: its runs, and the scores of its AQMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqumen.comparison import Gathering
from aqumen.errors import ScenarioError, listed
from aqumen.experience import ExperienceMetric, Score, scores
from aqumen.result import Result
from aqumen.scenario import Scenario
from aqumen.shaping import KERNEL

__all__ = ["AS_IT_IS", "Answer", "Situation", "Study"]

AS_IT_IS = "as it is"
"""Label of a line without shaper and AQM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """An everyday network with its numbers, and how its AQMs are judged."""

    scenario: Scenario
    """The network; its cells are the kinds of senders."""
    aqms: tuple[str, ...]
    """AQMs to compare by default."""
    metrics: tuple[ExperienceMetric, ...]
    """Metrics of user experience."""
    assumed: tuple[str, ...]
    """Assumptions that affect the results, one line each."""
    before: str | None = None
    """Variant of the scenario for the network as it is today, run with DropTail."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Shaper rates, bit/s, by direction."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Profile names of kernel AQMs with parameters, and their SPECs."""
    sent_bps: float | None = None
    """Rate of the queue for outgoing packets, in bit/s of IP packets."""
    delay: str = "game"
    """Key of the metric that shows delay under load."""

    def kernel(self, aqm: str) -> str | None:
        """Return the SPEC of the kernel's AQM for a row of the ranking; `None` if Linux has none.

        Args:
            aqm: The AQM as given by the user.
        """
        spec = self.profiles.get(aqm, aqm)
        return spec if spec.partition(":")[0] in KERNEL else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of a study."""

    score: Score
    """AQMs with their scores, best first."""
    weights: Mapping[str, float]
    """Weight of each metric."""
    senders: tuple[str, ...]
    """Kinds of senders that were run."""
    seeds: int
    """Number of seeds that every AQM finished."""
    leader_changes: Mapping[str, str]
    """AQM that leads if one weight is halved or doubled, where it differs: `upload doubled` -> AQM."""


class Study:
    """Runs of an everyday network: all senders, AQMs and seeds."""

    def __init__(
        self,
        situation: Situation,
        aqms: Sequence[str],
        senders: Sequence[str],
        seeds: int,
        weights: Mapping[str, float],
        out: Any = None,
    ) -> None:
        """Check the arguments and load finished runs.

        Args:
            situation: The everyday network.
            aqms: AQMs to compare, each a SPEC; empty for the network's default list.
            senders: Kinds of senders, each a cell of the scenario; empty for all.
            seeds: Number of seeds.
            weights: Weights that differ from the metrics' defaults.
            out: Folder for finished runs and a report for each kind of senders.
        """
        known = situation.scenario.cells
        for who in senders:
            if who not in known:
                raise ScenarioError(f"--senders {who}: choose from: {listed(known)}")
        keys = [f.key for f in situation.metrics]
        for key, weight in weights.items():
            if key not in keys:
                raise ScenarioError(f"--weigh {key}: choose from: {listed(keys)}")
            if not 0 <= weight < float("inf"):
                raise ScenarioError(f"--weigh {key}={weight:g}: must be a number of at least 0")
        self.situation = situation
        self.weights = {f.key: weights.get(f.key, f.weight) for f in situation.metrics}
        if not any(self.weights.values()):
            raise ScenarioError("--weigh: at least one weight must be above 0")
        self.aqms = tuple(aqms) or situation.aqms
        self.senders = tuple(dict.fromkeys(senders)) or tuple(known)
        self.gatherings: dict[tuple[str, str], Gathering] = {}
        for who in self.senders:
            for name, cell, specs in self._cells(who):
                folder = None if out is None else out / name
                self.gatherings[who, cell] = Gathering(
                    situation.scenario.cell(cell), specs, seeds, "packet", out=folder
                )

    def _cells(self, who: str) -> list[tuple[str, str, list[str]]]:
        """Return folder, cell and AQMs for each run of one kind of senders."""
        cells = [(who, who, list(self.aqms))]
        if self.situation.before is not None:
            cells.append((f"{self.situation.before}-{who}", f"{self.situation.before},{who}", ["droptail"]))
        return cells

    @property
    def total(self) -> int:
        """Number of runs."""
        return sum(len(each.jobs) for each in self.gatherings.values())

    def seconds(self) -> float:
        """Return the estimated time of the missing runs on this machine, seconds."""
        taken = 0.0
        for who in self.senders:
            for _, cell, specs in self._cells(who):
                gathering, core = self.gatherings[who, cell], self.situation.scenario.cell(cell).core
                each = sum(core.time_estimate("packet", spec) for spec in specs) / len(specs)
                taken += each * (len(gathering.jobs) - gathering.resumed) / gathering.threads
        return taken

    def work(self, on_progress: Callable[[int, int], bool]) -> None:
        """Run the missing runs.

        Args:
            on_progress: Called with the numbers of finished and wanted runs; returning `False` stops.
        """
        done = sum(each.resumed for each in self.gatherings.values())
        for each in self.gatherings.values():
            before = done - each.resumed

            def advance(finished: int, _wanted: int, before: int = before) -> bool:
                nonlocal done
                done = before + finished
                return on_progress(done, self.total)

            each.work(advance)
            if len(each.answers) < len(each.jobs):
                return

    def answer(self) -> Answer | None:
        """Return the scores of the AQMs; `None` if no seed is finished by all."""
        runs: dict[str, dict[str, dict[int, Result]]] = {}
        for (who, cell), gathering in self.gatherings.items():
            for result in gathering.comparison().results:
                name = AS_IT_IS if cell != who else str(result.spec)
                runs.setdefault(name, {}).setdefault(who, {})[result.seed] = result
        wanted = len(self.aqms) + (self.situation.before is not None)
        if len(runs) < wanted or any(len(by) < len(self.senders) for by in runs.values()):
            return None
        seeds = set.intersection(*(set(of) for by in runs.values() for of in by.values()))
        if not seeds:
            return None
        score = scores(runs, self.situation.metrics, self.weights)
        leader_changes = {}
        for key, weight in self.weights.items():
            for word, factor in (("halved", 0.5), ("doubled", 2.0)):
                leader = scores(runs, self.situation.metrics, {**self.weights, key: weight * factor})[0]
                if weight and leader.aqm not in (score[0].aqm, *score[0].tied_with):
                    leader_changes[f"{key} {word}"] = leader.aqm
        return Answer(
            score=score, weights=self.weights, senders=self.senders, seeds=len(seeds), leader_changes=leader_changes
        )
