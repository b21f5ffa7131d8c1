"""Search of an AQM's parameters over the networks of a study, by Optuna.

Candidates are asked from a sampler in batches of fixed size and run on the tuning networks. Seeds are rungs: a batch
begins with a few seeds, and its better half goes on to more (synchronous successive halving: K. Jamieson,
A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016). Nothing but the runs is
kept: a repeated search asks the same candidates, and finds their runs in the store.

The best value of a search is better than its parameters are, since chance helped to choose it. What is reported is
therefore measured with seeds that the search has not used, on the tuning networks and on held-out ones.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from aqumen._files import write_text
from aqumen._statistics import summarize
from aqumen._store import Store
from aqumen.errors import Cancelled, ScenarioError, listed, optional
from aqumen.metrics import Summary
from aqumen.search.objectives import Objective
from aqumen.search.runs import Runs
from aqumen.study.cases import Bases, Case, expand, with_parameters
from aqumen.study.definition import Definition
from aqumen.study.executors import Executor, Threads
from aqumen.study.factors import Factor, Value
from aqumen.study.rows import MANIFEST, manifest
from aqumen.study.study import HOURS_MAX, forget_nameless

__all__ = ["SAMPLERS", "Measurement", "Progress", "TuningResult", "tune"]

SAMPLERS = ("tpe", "cmaes", "random")
"""Names of the samplers."""
BATCH = 8
"""Candidates that are asked together, whatever the number of threads."""

Values = dict[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """State of a search."""

    candidates: int
    """Evaluated candidates."""
    wanted: int
    """Candidates to evaluate."""
    done: float
    """Finished fraction of the search, 0 to 1."""
    best: str
    """Best parameters so far, a SPEC; empty at first."""
    value: float | None
    """Their first objective in the search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """An objective on a set of networks with seeds that the search has not used.

    Each seed gives one value, the mean over the networks.
    """

    value: Summary
    """The objective."""
    default: Summary
    """The objective with default parameters."""
    gain: float | None
    """Mean improvement over the default, relative to the default; negative where it is worse."""
    difference: Summary
    """Value minus default by seed; its interval decides whether they differ."""

    def better(self, objective: Objective) -> bool:
        """Return whether it is better than the default at 95 %.

        Args:
            objective: Direction of the metric.
        """
        ends = self.difference["ci95"]
        return ends is not None and max(objective.sign * end for end in ends) < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """Parameters that the search found."""

    spec: str
    """The AQM with them, a SPEC."""
    values: Values
    """Parameters by factor."""
    tuning: list[Measurement]
    """Each objective on the tuning networks."""
    hold_out: list[Measurement] | None
    """Each objective on the held-out networks; `None` without any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult:
    """Result of a search of parameters."""

    aqm: str
    """The AQM with default parameters."""
    objectives: list[Objective]
    """Objectives in order."""
    best: list[Optimum]
    """The best parameters; with several objectives the Pareto front, in order of the first."""
    candidates: int
    """Evaluated candidates."""
    invalid: int
    """Candidates that the AQM refused, or whose objective was undefined."""
    networks: tuple[int, int]
    """Number of tuning and of held-out networks."""
    seeds: int
    """Number of fresh seeds behind each summary."""
    relative: bool
    """Whether values are ratios to the default's."""

    def better(self) -> bool:
        """Return whether some parameters beat the default on the tuning networks in an objective, and lose in none."""
        return any(self._better_in(each.tuning) for each in self.best)

    def headline(self) -> list[str]:
        """Return the answer in lines: loss from tuning to hold-out, whether the default is as good, the best SPEC."""
        tuning, held = self.networks
        if held:
            parts = [self._loss(k) for k in range(len(self.objectives))]
            front = f"; means of {len(self.best)} on the Pareto front" if len(self.objectives) > 1 else ""
            lines = [f"Loss from tuning to hold-out: {'; '.join(parts)}{front}"]
        else:
            lines = ["Loss from tuning to hold-out: unknown, no network is held out"]
        alike = "is as good as each of them in some objective" if len(self.objectives) > 1 else "is as good"
        alike = f"{self.aqm} {alike} (95 % intervals)"
        if not self.better():
            lines.append(f"No better than the default on the {tuning} tuning networks: {alike}")
        elif held and not any(self._better_in(each.hold_out or []) for each in self.best):
            lines.append(f"No better than the default on the {held} held-out networks: {alike}")
        if self.invalid:
            refused = "were refused by the AQM or left the objective undefined"
            lines.append(f"{self.invalid} of {self.candidates} candidates {refused}")
        name = "Best" if len(self.objectives) == 1 else "Pareto front"
        return [*lines, f"{name}: {' '.join(each.spec for each in self.best)}"]

    def _loss(self, k: int) -> str:
        """Say how much of the gain over the default is lost on the held-out networks."""
        column, (tuning, held) = self.objectives[k].column, self.networks
        pairs = [(each.tuning[k].gain, each.hold_out[k].gain) for each in self.best if each.hold_out is not None]
        known = [(a, b) for a, b in pairs if a is not None and b is not None]
        if not known:
            return f"undefined for {column}, which is 0 or undefined for the default"
        a, b = (100 * float(np.mean([pair[i] for pair in known])) for i in (0, 1))
        return (
            f"{a - b:.1f} points of {column} (gain over the default {a:.1f} % on {tuning} tuning networks, {b:.1f} % "
            f"on {held} held-out ones)"
        )

    def _better_in(self, measured: Sequence[Measurement]) -> bool:
        pairs = list(zip(measured, self.objectives, strict=bool(measured)))
        worse = [each.better(replace(objective, more=not objective.more)) for each, objective in pairs]
        return any(each.better(objective) for each, objective in pairs) and not any(worse)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON keeps it."""

        def of(each: Measurement) -> dict[str, Any]:
            return {
                "value": each.value, "default": each.default, "gain": each.gain, "difference": each.difference,
            }  # fmt: skip

        best = [
            {
                "spec": each.spec,
                "values": each.values,
                "tuning": [of(one) for one in each.tuning],
                "hold_out": None if each.hold_out is None else [of(one) for one in each.hold_out],
            }
            for each in self.best
        ]
        return {
            "aqm": self.aqm,
            "objectives": [{"metric": each.column, "goal": "max" if each.more else "min"} for each in self.objectives],
            "better_than_default": self.better(),
            "best": best,
            "candidates": self.candidates,
            "invalid": self.invalid,
            "tuning_networks": self.networks[0],
            "hold_out_networks": self.networks[1],
            "seeds": self.seeds,
            "relative": self.relative,
        }


class _Candidate:
    """Parameters under test."""

    def __init__(self, values: Values, cases: list[Case] | None) -> None:
        self.values = values
        """Parameters by factor."""
        self.cases = cases
        """A case for each tuning network; `None` if the AQM refuses the parameters."""
        self.seeds = 0
        """Seeds of which all runs are finished."""
        self.means: list[float] = []
        """Each objective, signed so that smaller is better."""


def tune(
    definition: Definition,
    aqm: str,
    objectives: Sequence[Objective],
    out: Path,
    *,
    candidates: int = 64,
    sampler: str = "tpe",
    hold_out: float | Definition = 0.25,
    seed: int = 1,
    relative: bool = False,
    on: Executor | None = None,
    force: bool = False,
    on_progress: Callable[[Progress], bool] | None = None,
) -> TuningResult:
    """Search the parameters of an AQM that do best over a study.

    The study's factors of the AQM (`pi:target`) are searched; lists as levels, ranges evenly, or by ratios where they
    say `log`. Scenarios and other factors are its networks. The objective is the mean over networks and seeds.

    Args:
        definition: The study. Its seeds are those of the search.
        aqm: AQM to tune, a SPEC.
        objectives: One, or several for a Pareto front.
        out: Folder of the runs; a repeated call finds them there.
        candidates: Number of parameter sets to try.
        sampler: A name of `SAMPLERS`.
        hold_out: Fraction of the networks that the search does not see, drawn by `seed`; or a study whose networks
            they are; 0 for none.
        seed: Seed of sampler and hold-out.
        relative: Divide each value by the default's of equal network and seed.
        on: Executor; default: threads of this process.
        force: Search even if it takes hours.
        on_progress: Called after each run; returning `False` stops.

    Raises:
        ScenarioError: The study has no factor of the AQM, the hold-out leaves no network, or an objective is undefined.
        MissingExtra: Optuna is not installed.
        Cancelled: `on_progress` stopped the search; finished runs are kept.
    """
    search = _Search(definition, aqm, objectives, hold_out, seed, relative)
    asked = _sampler(sampler, seed, len(search.factors), len(objectives))
    if not force:
        hours = search.seconds(candidates) / 3600
        if hours > HOURS_MAX:
            raise ScenarioError(
                f"the search takes about {hours:.2g} CPU hours; the limit is {HOURS_MAX:g}; --force runs it"
            )
    with Store(out) as store:
        if store.damaged:
            forget_nameless(store)
        search.runs = Runs(definition.engine, on or Threads(), store)
        try:
            found = search.go(asked, candidates, on_progress)
        finally:
            write_text(out / MANIFEST, search.manifest())
    return found


class _Search:
    """One call of `tune`."""

    def __init__(
        self,
        definition: Definition,
        aqm: str,
        objectives: Sequence[Objective],
        hold_out: float | Definition,
        seed: int,
        relative: bool,
    ) -> None:
        name = aqm.partition(":")[0]
        self.factors = [each for each in definition.factors if each.name.partition(":")[0] == name and ":" in each.name]
        if not self.factors:
            raise ScenarioError(
                f'the study has no factor of {name}; add one below [factors], such as "{name}:PARAMETER" = '
                "{ from = 1, to = 10, log = true }"
            )
        self.definition, self.aqm, self.objectives, self.relative = definition, aqm, list(objectives), relative
        self.bases, networks = _networks(definition, aqm)
        stop = definition.stop
        self.seeds = list(definition.seeds if stop is None else definition.seeds[: stop.least])
        if len(self.seeds) < 2:
            raise ScenarioError("the study has one seed; a search needs at least 2, for an interval")
        self.fresh = [max(self.seeds) + 1 + k for k in range(len(self.seeds))]
        self.held: tuple[Bases, list[Case]]
        if isinstance(hold_out, Definition):
            self.held, self.tuning = _held_out(hold_out, definition, aqm), networks
        else:
            self.tuning, held = _split(networks, hold_out, seed)
            self.held = self.bases, held
        self.runs: Runs
        self.all: dict[tuple[str, str], tuple[Bases, Case]] = {}
        self.candidates: list[_Candidate] = []
        self.on_progress: Callable[[Progress], bool] = lambda _: True
        self.wanted = 0
        self.cost_s, self.total_s = 0.0, 1.0
        self._estimates: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def rungs(self) -> list[int]:
        """Numbers of seeds after which the worse half of a batch is given up."""
        n = len(self.seeds)
        return sorted({math.ceil(n / 4), math.ceil(n / 2), n})

    def seconds(self, candidates: int) -> float:
        """Return the estimated CPU time of a search, seconds."""
        self.wanted = candidates
        cost = [sum(map(self._seconds, cases)) for cases in (self.tuning, self.held[1])]
        runs, kept, before = 0.0, 1.0, 0
        for rung in self.rungs():
            runs, kept, before = runs + kept * (rung - before), kept / 2, rung
        final = (1 + max(1, 6 * (len(self.objectives) - 1))) * len(self.fresh)
        self.total_s = max(cost[0] * (runs * candidates + final + len(self.seeds)) + cost[1] * final, 1e-9)
        return self.total_s

    def _seconds(self, case: Case) -> float:
        from aqumen import _core

        network = case.base, case.changes
        if network not in self._estimates:
            bases = self.held[0] if case in self.held[1] else self.bases
            try:
                core = bases.scenario(case).core
                self._estimates[network] = core.time_estimate(self.definition.engine.partition(":")[0], case.spec)
            except _core.ScenarioError:
                self._estimates[network] = 0.1
        return self._estimates[network]

    def go(self, study: Any, wanted: int, on_progress: Callable[[Progress], bool] | None) -> TuningResult:
        """Search, then measure what was found with fresh seeds."""
        self.seconds(wanted)
        self.on_progress = on_progress or self.on_progress
        self._run(self.bases, self.tuning, self.seeds)
        self._check_objectives()
        optuna = optional("optuna", "tune")
        for start in range(0, wanted, BATCH):
            trials = [study.ask(self._space(optuna)) for _ in range(min(BATCH, wanted - start))]
            batch = [self._candidate(trial.params) for trial in trials]
            self.candidates += batch
            if all(each.cases is None for each in self.candidates):
                raise self.fault
            self._race([each for each in batch if each.cases is not None])
            for trial, each in zip(trials, batch, strict=True):
                bad = each.cases is None or not all(map(math.isfinite, each.means))
                state = optuna.trial.TrialState.FAIL if bad else optuna.trial.TrialState.COMPLETE
                study.tell(trial, None if bad else each.means, state=state)
        return self._measured()

    def _space(self, optuna: Any) -> dict[str, Any]:
        # A factor's quantile makes its scale, rounding and unit; the sampler sees the unit interval.
        return {each.name: optuna.distributions.FloatDistribution(0.0, 1.0) for each in self.factors}

    def _candidate(self, asked: Mapping[str, float]) -> _Candidate:
        values = {each.name: each.quantile(min(asked[each.name], 1 - 1e-12)) for each in self.factors}
        try:
            return _Candidate(values, self._with(self.bases, self.tuning, values))
        except ScenarioError as error:
            self.fault = error
            return _Candidate(values, None)

    def _with(self, bases: Bases, networks: Sequence[Case], values: Values) -> list[Case]:
        return [with_parameters(bases, self.definition.engine, case, values) for case in networks]

    def _race(self, alive: list[_Candidate]) -> None:
        """Run a batch, rung by rung."""
        before = 0
        for rung in self.rungs():
            cases = [case for each in alive for case in each.cases or ()]
            self._run(self.bases, cases, self.seeds[before:rung])
            for each in alive:
                each.seeds, each.means = rung, self._means(each.cases or [], self.tuning, self.seeds[:rung])
            before = rung
            order = sorted(alive, key=lambda each: (_dominated(each, alive), each.means[0]))
            alive = order[: max(1, math.ceil(len(order) / 2))]

    def _run(self, bases: Bases, cases: Sequence[Case], seeds: Sequence[int]) -> None:
        self.all |= {(case.key, str(case.labels)): (bases, case) for case in cases}

        def done(run: tuple[Case, int]) -> bool:
            self.cost_s += self._seconds(run[0])
            return self.on_progress(self._progress())

        self.on_progress(self._progress())
        if not self.runs.run(bases, [(case, seed) for seed in seeds for case in cases], done):
            raise Cancelled("stopped")

    def _progress(self) -> Progress:
        full = [each for each in self.candidates if each.seeds == len(self.seeds) and each.cases is not None]
        best = min(full, key=lambda each: each.means[0], default=None)
        spec = "" if best is None or best.cases is None else best.cases[0].spec
        value = None if best is None else self.objectives[0].sign * best.means[0]
        done = min(self.cost_s / self.total_s, 1.0)
        return Progress(candidates=len(self.candidates), wanted=self.wanted, done=done, best=spec, value=value)

    def _table(self, cases: Sequence[Case], defaults: Sequence[Case], seeds: Sequence[int], column: str) -> Any:
        """Return the values of a column, seeds x networks."""

        def read(of: Sequence[Case]) -> Any:
            return np.array([[self.runs.value(case, seed, column) for case in of] for seed in seeds])

        if not self.relative:
            return read(cases)
        with np.errstate(divide="ignore", invalid="ignore"):
            return read(cases) / read(defaults)

    def _means(self, cases: Sequence[Case], defaults: Sequence[Case], seeds: Sequence[int]) -> list[float]:
        return [
            float(each.sign * self._table(cases, defaults, seeds, each.column).mean())
            if seeds else math.nan
            for each in self.objectives
        ]  # fmt: skip

    def _check_objectives(self) -> None:
        """Refuse an objective that the default parameters leave undefined in a tuning network."""
        for each in self.objectives:
            table = np.isfinite(self._table(self.tuning, self.tuning, self.seeds, each.column))
            if not table.all():
                row, column = map(int, np.argwhere(~table)[0])
                labels = self.tuning[column].labels.items()
                network = ", ".join(f"{name} = {value}" for name, value in labels if name != "aqm")
                zero = " or 0, which has no ratio" if self.relative else ""
                raise ScenarioError(
                    f"{each.column}: undefined{zero} under {self.aqm} with {network}, seed {self.seeds[row]}; "
                    "leave the network out, let it run longer, or choose another objective"
                )

    def _measured(self) -> TuningResult:
        full = [
            each for each in self.candidates if each.seeds == len(self.seeds) and all(map(math.isfinite, each.means))
        ]
        if not full:
            names = listed(each.column for each in self.objectives)
            raise ScenarioError(f"{names}: undefined with all of the {len(self.candidates)} candidates")
        front: dict[str, _Candidate] = {}
        for each in sorted(full, key=lambda each: each.means):
            if not _dominated(each, full):
                front.setdefault(str(each.values), each)
            if len(self.objectives) == 1:
                break
        sets = [(self.bases, self.tuning), self.held]
        for bases, networks in sets:
            cases = [case for each in front.values() for case in self._with(bases, networks, each.values)]
            self._run(bases, [*networks, *cases], self.fresh)
        best = []
        for each in front.values():
            tuning, held = (
                [self._compared(self._with(bases, networks, each.values), networks, one) for one in self.objectives]
                if networks
                else None
                for bases, networks in sets
            )
            spec = (each.cases or [])[0].spec
            best.append(Optimum(spec=spec, values=each.values, tuning=tuning or [], hold_out=held))
        invalid = sum(each.cases is None or not all(map(math.isfinite, each.means)) for each in self.candidates)
        return TuningResult(
            aqm=self.aqm,
            objectives=self.objectives,
            best=best,
            candidates=len(self.candidates),
            invalid=invalid,
            networks=(len(self.tuning), len(self.held[1])),
            seeds=len(self.fresh),
            relative=self.relative,
        )

    def _compared(self, cases: Sequence[Case], defaults: Sequence[Case], objective: Objective) -> Measurement:
        own, default = (
            self._table(each, defaults, self.fresh, objective.column).mean(axis=1) for each in (cases, defaults)
        )

        def of(values: Any) -> Summary:
            return summarize([None if value != value else float(value) for value in values])

        mean = default.mean()
        gain = objective.sign * float((default - own).mean() / mean) if mean else math.nan
        return Measurement(
            value=of(own), default=of(default), gain=gain if math.isfinite(gain) else None, difference=of(own - default)
        )

    def manifest(self) -> str:
        """Return the manifest of the folder: all cases that were run, those of the hold-out among them."""
        texts, sources = dict(self.bases.texts), list(self.bases.sources)
        texts.update(self.held[0].texts)
        bases = Bases(texts, sources, self.bases.custom)
        seeds = [*self.seeds, *self.fresh]
        title = f"Search of {self.aqm}: {listed(each.column for each in self.objectives)}"
        return manifest(self.definition.engine, seeds, None, title, bases, [case for _, case in self.all.values()])


def _networks(definition: Definition, aqm: str) -> tuple[Bases, list[Case]]:
    """Return the networks of a study, each as a case with the default parameters."""
    factors: tuple[Factor, ...] = tuple(each for each in definition.factors if ":" not in each.name)
    design = definition.design if factors else replace(definition.design, kind="grid")
    bases, cases = expand(replace(definition, aqms=(aqm,), factors=factors, design=design))
    # Custom AQMs of the study are there too; networks that the AQM refuses may be left out.
    networks = [case for case in cases if case.spec == aqm]
    if not networks:
        raise ScenarioError(f"{aqm} refuses all networks of the study")
    return bases, networks


def _held_out(study: Definition, tuning: Definition, aqm: str) -> tuple[Bases, list[Case]]:
    """Return the networks of a study that is held out, under names of their own."""
    bases, networks = _networks(replace(study, engine=tuning.engine), aqm)
    if (study.aqm_from, study.traffic_from) != (tuning.aqm_from, tuning.traffic_from):
        raise ScenarioError("the study that is held out must name the same `aqm-from` and `traffic-from`")
    texts = {f"hold-out/{name}": text for name, text in bases.texts.items()}
    renamed = [replace(case, base=f"hold-out/{case.base}") for case in networks]
    return Bases(texts, bases.sources, bases.custom), renamed


def _split(networks: list[Case], share: float, seed: int) -> tuple[list[Case], list[Case]]:
    """Return the networks to tune on, and those held out, both in the order of the study."""
    count = max(1, round(share * len(networks))) if share else 0
    if count >= len(networks):
        raise ScenarioError(
            f"a hold-out of {share:g} takes {count} of {len(networks)} networks and leaves none to tune on; "
            "add scenarios or factors, or give --hold-out 0 or the file of another study"
        )
    held = set(np.random.Generator(np.random.PCG64(seed)).permutation(len(networks))[:count].tolist())
    pairs = list(enumerate(networks))
    return [case for k, case in pairs if k not in held], [case for k, case in pairs if k in held]


def _dominated(one: _Candidate, others: Sequence[_Candidate]) -> int:
    """Return how many are better in an objective and worse in none; all if it is undefined."""
    if not all(map(math.isfinite, one.means)):
        return len(others) + 1
    count = 0
    for other in others:
        pairs = list(zip(other.means, one.means, strict=True))
        count += all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
    return count


def _sampler(name: str, seed: int, factors: int, objectives: int) -> Any:
    """Return an empty study of Optuna."""
    if name not in SAMPLERS:
        raise ScenarioError(f"{name}: choose from: {listed(SAMPLERS)}")
    if name == "cmaes" and (factors < 2 or objectives > 1):
        reason = f"{objectives} objectives, where it has one" if objectives > 1 else "one parameter, where it needs two"
        raise ScenarioError(f"cmaes: {reason}; choose tpe")
    optuna = optional("optuna", "tune")
    if name == "cmaes":
        optional("cmaes", "tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samplers = optuna.samplers
        made = {
            "tpe": lambda: samplers.TPESampler(seed=seed, multivariate=factors > 1),
            "cmaes": lambda: samplers.CmaEsSampler(seed=seed),
            "random": lambda: samplers.RandomSampler(seed=seed),
        }[name]()
        return optuna.create_study(sampler=made, directions=["minimize"] * objectives)
