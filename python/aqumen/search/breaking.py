"""Search for networks in which an AQM does worse than a reference, made as small as they go.

Networks are drawn at random first, then near the worst ones so far (a (mu + lambda) evolution strategy for each
criterion). The worst is confirmed with fresh seeds and made simple, factor by factor, as property-based testing shrinks
a failing example (D. MacIver, A. Donaldson, "Test-case reduction via test-case generation", ECOOP 2020). At each step
the failure must stay in every fresh seed, so that a lucky seed is no failure. The budget counts estimated CPU time, so
that the answer does not depend on the machine.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aqumen import _core
from aqumen._statistics import summarize
from aqumen._store import Digests
from aqumen.custom import source_of
from aqumen.errors import Cancelled, ScenarioError
from aqumen.metrics import Summary
from aqumen.scenario import Scenario
from aqumen.search.criteria import Criterion
from aqumen.search.networks import Space, is_list
from aqumen.search.runs import Runs
from aqumen.study.cases import Bases, Case
from aqumen.study.executors import Executor, Threads
from aqumen.study.factors import Factor, Value, text_of

__all__ = ["Failure", "Progress", "Search"]

BATCH = 16
"""Networks that run together, whatever the number of threads."""
PARENTS = 4
"""Worst networks of a criterion near which others are drawn."""
CONFIRMED_MAX = 6
"""Worst networks of a criterion that are confirmed at most."""
BISECTIONS = 5
"""Steps towards the simple end of a range."""
FIRST, CONFIRM, SHRINK, FINAL = (1,), (2, 3, 4), (5, 6, 7), (11, 12, 13, 14, 15)
"""Seeds of the search, of confirmation, of shrinking, and of the figures that are printed."""

Point = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a search."""

    done: float
    """Used fraction of the budget, 0 to 1."""
    networks: int
    """Networks that were run."""
    doing: str
    """Part of the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A network in which the AQM does worse than the reference."""

    criterion: Criterion
    """Figure in which it does."""
    values: dict[str, Value]
    """The network by factor, made simple."""
    found: dict[str, Value]
    """The network as it was found."""
    scenario: Scenario
    """Its scenario."""
    value: Summary
    """Figure of the AQM over the final seeds."""
    reference: Summary
    """Figure of the reference."""
    excess: Summary
    """By how much the AQM is worse."""
    seeds: tuple[int, ...]
    """The final seeds, which neither search nor shrinking used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    """A network with a case for the AQM and one for the reference."""

    point: Point
    values: dict[str, Value]
    scenario: Scenario
    pair: tuple[Case, Case]
    seconds: float
    """Estimated CPU time of both runs with one seed."""


class Search:
    """Search of one AQM's failures."""

    def __init__(
        self,
        space: Space,
        aqm: str,
        reference: str,
        criteria: Sequence[Criterion],
        *,
        budget_s: float = 60.0,
        runs_max: int | None = None,
        seed: int = 1,
        on: Executor | None = None,
        on_progress: Callable[[Progress], bool] | None = None,
    ) -> None:
        """Define a search.

        Args:
            space: Networks.
            aqm: AQM to break, a SPEC.
            reference: AQM that it is compared with, a SPEC.
            criteria: What counts as a failure; each is searched.
            budget_s: Estimated CPU time of all runs, seconds.
            runs_max: Most runs; default: as many as the budget allows.
            seed: Seed of the draws.
            on: Executor; default: threads of this process.
            on_progress: Called after each run; returning `False` stops.

        Raises:
            ScenarioError: The AQMs are equal or do not exist.
        """
        if aqm == reference:
            raise ScenarioError(f"{aqm}: is its own reference; name another with --against")
        self.space, self.specs, self.criteria = space, (aqm, reference), list(criteria)
        self.budget_s, self.runs_max, self.on_progress = budget_s, runs_max, on_progress
        self.random = np.random.Generator(np.random.PCG64(seed))
        self.bases = Bases({}, [], space.custom)
        self.runs = Runs(space.engine, on or Threads())
        self.networks: dict[str, _Network | None] = {}
        self.excesses: dict[tuple[str, int], dict[str, float]] = {}
        self.spent_s, self.spent_runs, self.doing = 0.0, 0, "searching"
        self.fault: ScenarioError | None = None

    # What a search costs.

    def spent(self) -> float:
        """Return the used fraction of the budget."""
        of_runs = self.spent_runs / self.runs_max if self.runs_max else 0.0
        return max(self.spent_s / self.budget_s, of_runs)

    def _said(self, _run: object = None) -> bool:
        now = Progress(done=min(self.spent(), 1.0), networks=len(self.networks), doing=self.doing)
        return self.on_progress is None or self.on_progress(now)

    # Networks and their runs.

    def network(self, point: Point) -> _Network | None:
        """Return the network at a point; `None` if it is no valid scenario for both AQMs.

        Args:
            point: A number in [0, 1) by factor.
        """
        values = self.space.values(point)
        name = hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:16]
        if name not in self.networks:
            try:
                self.networks[name] = self._network(name, point, values)
            except ScenarioError as error:
                self.networks[name], self.fault = None, error
        return self.networks[name]

    def _network(self, name: str, point: Point, values: dict[str, Value]) -> _Network:
        scenario = self.space.scenario(values)
        for spec in self.specs:
            scenario.check_aqm(spec)
        if not self.bases.sources:
            self.bases.sources = [source_of(each) for each in scenario.custom]
        self.bases.texts[name] = scenario.to_toml(), dict(scenario.core.files())
        digests = Digests(scenario, self.space.engine, self.space.custom or None)
        own, other = (Case(digests.case(spec), name, (), spec, {}) for spec in self.specs)
        return _Network(
            point=dict(point), values=values, scenario=scenario, pair=(own, other), seconds=self._seconds(scenario)
        )

    def _seconds(self, scenario: Scenario) -> float:
        engine = self.space.engine.partition(":")[0]
        try:
            return sum(scenario.core.time_estimate(engine, spec) for spec in self.specs)
        except _core.ScenarioError:
            return 0.2

    def evaluate(self, networks: Sequence[_Network], seeds: Sequence[int]) -> None:
        """Run both AQMs on networks.

        Args:
            networks: Networks to run both AQMs on.
            seeds: Seeds of the runs.

        Raises:
            Cancelled: `on_progress` stopped the search.
        """
        new = {
            (each.pair[0].base, seed): each
            for each in networks
            for seed in seeds
            if (each.pair[0].base, seed) not in self.excesses
        }
        self.spent_s += sum(each.seconds for each in new.values())
        self.spent_runs += 2 * len(new)
        if not self._said() or not self.runs.run(
            self.bases, [(case, seed) for (_, seed), each in new.items() for case in each.pair], self._said
        ):
            raise Cancelled("stopped")
        for (base, seed), each in new.items():
            found = [self._figures(each, case, seed) for case in each.pair]
            self.excesses[base, seed] = {
                one.name: one.excess(*(figures[one.name] for figures in found)) for one in self.criteria
            }

    def _figures(self, network: _Network, case: Case, seed: int) -> dict[str, float]:
        def column(name: str) -> float:
            return self.runs.value(case, seed, name)

        return {each.name: each.value(column, network.scenario) for each in self.criteria}

    def excess(self, network: _Network, criterion: Criterion, seeds: Sequence[int]) -> list[float]:
        """Return the excess of a network by seed; minus infinity where it is undefined.

        Args:
            network: A network that was run with these seeds.
            criterion: Figure to compare.
            seeds: Seeds of the runs.
        """
        found = [self.excesses[network.pair[0].base, seed][criterion.name] for seed in seeds]
        return [-math.inf if each != each else each for each in found]

    # The search.

    def explore(self, until: float = 0.5) -> None:
        """Draw networks, at first anywhere, then near the worst ones of each criterion.

        Args:
            until: Fraction of the budget to use.

        Raises:
            ScenarioError: None of the first networks is valid.
        """
        idle = 0
        while self.spent() < until and idle < 20:
            anywhere = self.spent() < until / 2
            points = [self._anywhere() if anywhere else self._near(k) for k in range(BATCH)]
            before = len(self.networks)
            found = {id(each): each for each in map(self.network, points) if each is not None}
            if not any(self.networks.values()) and self.fault is not None:
                raise self.fault
            self.evaluate(list(found.values()), FIRST)
            # A small space is exhausted.
            idle = idle + 1 if len(self.networks) == before else 0

    def _anywhere(self) -> Point:
        return {each.name: float(self.random.random()) for each in self.space.factors}

    def _near(self, k: int) -> Point:
        criterion = self.criteria[k % len(self.criteria)]
        parents = self.worst(criterion)[:PARENTS]
        if not parents:
            return self._anywhere()
        point = dict(parents[k // len(self.criteria) % len(parents)].point)
        factors = self.space.factors
        chosen = [each for each in factors if self.random.random() < 0.3] or [
            factors[self.random.integers(len(factors))]
        ]
        for each in chosen:
            if is_list(each) or self.random.random() < 0.3:
                point[each.name] = float(self.random.random())
            else:
                moved = point[each.name] + 0.15 * float(self.random.standard_normal())
                point[each.name] = min(max(moved, 0.0), 1 - 1e-9)
        return point

    def worst(self, criterion: Criterion) -> list[_Network]:
        """Return the networks of the search, those with the largest excess first.

        Args:
            criterion: Figure to compare.
        """
        ran = [each for each in self.networks.values() if each and (each.pair[0].base, FIRST[0]) in self.excesses]
        key = {id(each): self.excess(each, criterion, FIRST)[0] for each in ran}
        return sorted((each for each in ran if key[id(each)] > -math.inf), key=lambda each: -key[id(each)])

    def failure(self, criterion: Criterion, until: float = 1.0) -> Failure | None:
        """Confirm the worst network of a criterion, and make it small; `None` if none fails in every fresh seed.

        Args:
            criterion: Figure to compare.
            until: Fraction of the budget after which it is made no smaller.
        """
        self.doing = f"confirming {criterion.name}"
        for network in self.worst(criterion)[:CONFIRMED_MAX]:
            if self.excess(network, criterion, FIRST)[0] < criterion.least:
                return None
            if self._fails(network, criterion, CONFIRM, criterion.least):
                self.doing = f"shrinking {criterion.name}"
                mean = float(np.mean(self.excess(network, criterion, CONFIRM)))
                for each in reversed(self._shrunk(network, criterion, max(criterion.least, mean / 2), until)):
                    if self._fails(each, criterion, FINAL, criterion.least):
                        return self._failure(network, each, criterion)
        return None

    def _fails(self, network: _Network, criterion: Criterion, seeds: Sequence[int], least: float) -> bool:
        self.evaluate([network], seeds)
        return min(self.excess(network, criterion, seeds)) >= least

    def _shrunk(self, network: _Network, criterion: Criterion, least: float, until: float) -> list[_Network]:
        """Return the network, and smaller and smaller ones that fail by at least `least`."""
        chain = [network]
        again = True
        while again and self.spent() < until:
            again = False
            for factor in self.space.factors:
                for smaller in self._simpler(factor, chain[-1], criterion, least, until):
                    chain.append(smaller)
                    again = True
        return chain

    def _simpler(
        self, factor: Factor, network: _Network, criterion: Criterion, least: float, until: float
    ) -> list[_Network]:
        """Return networks that fail, with simpler and simpler values of a factor."""

        def fails(u: float) -> _Network | None:
            made = self.network({**network.point, factor.name: u})
            if self.spent() >= until or made is None or made.values == network.values:
                return None
            return made if self._fails(made, criterion, SHRINK, least) else None

        if is_list(factor):
            count = len(factor.levels)
            now = factor.levels.index(network.values[factor.name])
            levels = (fails((k + 0.5) / count) for k in range(now))
            return [each for each in [next((each for each in levels if each is not None), None)] if each is not None]
        if (simplest := fails(0.0)) is not None:
            return [simplest]
        found: list[_Network] = []
        low, high = 0.0, network.point[factor.name]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            if (made := fails(middle)) is not None:
                found.append(made)
                high = middle
            else:
                low = middle
        return found

    def _failure(self, found: _Network, small: _Network, criterion: Criterion) -> Failure:
        figures = [
            [self._figures(small, case, seed)[criterion.name] for seed in FINAL] for case in small.pair
        ]  # fmt: skip
        return Failure(
            criterion=criterion,
            values=small.values,
            found=found.values,
            scenario=small.scenario,
            value=summarize(figures[0]),
            reference=summarize(figures[1]),
            excess=summarize(self.excess(small, criterion, FINAL)),
            seeds=FINAL,
        )

    def all(self, on_failure: Callable[[Failure], None] | None = None) -> list[Failure]:
        """Search, then confirm and shrink the worst network of each criterion.

        Args:
            on_failure: Called with each failure as it is complete.
        """
        self.explore()
        found = []
        for k, criterion in enumerate(self.criteria):
            start = self.spent()
            failure = self.failure(criterion, start + (1 - start) / (len(self.criteria) - k))
            if failure is not None:
                found.append(failure)
                if on_failure is not None:
                    on_failure(failure)
        return found


def described(values: Mapping[str, Value]) -> str:
    """Return the values of factors on one line.

    Args:
        values: Values by factor.
    """
    return ", ".join(f"{name} = {text_of(value)}" for name, value in values.items())
