"""Checks of claims, computed by rules from finished runs.

The rules of a claim expand to questions: one for each reading (interpretation) of the paper, AQM, cell and window. Each
question is answered by a check on runs paired by seed; `verdict` combines the checks.

- `number`: the interval of the mean over the seeds lies within the claim's tolerance.
- `order`: the interval of the paired differences of two AQMs lies on the claimed side of 0.
- `same`: that interval lies within the tolerance.
- `trend`: the interval of the slope over the cells lies on the claimed side of 0, no step is significantly opposite,
  and the last value is `ratio` times the first, if the claim has one.
- `correlation`: the interval of Pearson's coefficient over the cells lies above the bound.

A check fails if the interval lies on the other side of the bound, and is open if it contains the bound. Intervals are
Student's, at 95 % for each check. A reading holds only if all its checks do: an intersection-union test (Berger 1982),
which keeps the level of a single check without correction for their number. There is none across claims either.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aqumen import _core
from aqumen._quantities import Run, evaluate, range_of
from aqumen._statistics import ANY, summarize
from aqumen.papers import algebra
from aqumen.papers.model import Claim, Paper, Rule
from aqumen.papers.verdict import Check, Judgement, combine
from aqumen.view.tables import around

__all__ = ["Question", "cells_of", "judge", "needs", "questions"]

Values = dict[int, float]
"""Values by seed."""
Lookup = Callable[[str, str], Iterable[tuple[int, Run]]]
"""Returns the finished runs of a cell and an AQM, by seed."""
SURE = 0.95
SEEDS_MAX = 1000
"""Largest number of seeds that an open check names as sufficient."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A quantity of an AQM in one or more cells."""

    of: str
    """Expression of the quantity."""
    name: str
    """Name of the AQM in the paper."""
    spec: str
    """SPEC that runs."""
    cells: tuple[str, ...]
    """Cells; several only for aggregates and trends."""
    window: str
    """Name of the window."""
    bare: tuple[str, ...] = ()
    """The cells without the variants that belong to this AQM alone."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Link, or flow groups and how to combine them."""
    across: str | None = None
    """Aggregate over the cells."""
    rivals: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """AQMs for a rank, each with its cells."""
    over: Term | None = None
    """Divisor."""
    less: Term | None = None
    """Term from which the absolute distance is taken."""
    minus: Term | None = None
    """Subtrahend."""

    @property
    def label(self) -> str:
        """Name in tables."""
        place = self.cells[0] if len(self.cells) == 1 else f"{self.across} of {len(self.cells)} cells"
        link = f", {self.where['link']}" if "link" in self.where else ""
        flows = f", {self.where['flows']}" if "flows" in self.where else ""
        against = f" over {self.over.place}" if self.over else ""
        against += f" away from {self.less.cells[0]}, {self.less.window}" if self.less else ""
        against += f" less that of {self.minus.spec}" if self.minus else ""
        return f"{self.spec} at {place}{link}{flows}, {self.window}{against}"

    @property
    def place(self) -> str:
        """AQM, cell, link or flows, and window."""
        return ", ".join(
            [self.spec, self.cells[0], *(str(self.where[k]) for k in ("link", "flows") if k in self.where), self.window]
        )

    def needs(self) -> set[tuple[str, str]]:
        """Return the cells and AQMs that must run."""
        ranked = ((self.spec, self.cells), *self.rivals)
        own = {(cell, spec) for spec, cells in ranked for cell in cells}
        return own.union(*(term.needs() for term in (self.over, self.less, self.minus) if term))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One check to perform."""

    rule: Rule
    """Rule that it stems from."""
    readings: tuple[str, ...]
    """Readings that lead to this question."""
    terms: tuple[Term, ...]
    """Quantities to compare."""


def questions(paper: Paper, claim: Claim) -> list[Question]:
    """Expand the rules of a claim to questions; readings with equal questions share one.

    Args:
        paper: Paper of the claim.
        claim: Claim to expand.
    """
    found: dict[Any, Question] = {}
    for number, rule in enumerate(claim.rules):
        if rule["test"] in ("algebra", "none"):
            continue
        for reading in rule.get("reading", list(paper.readings)):
            for terms in _terms(rule, paper.readings[reading]):
                key = (number, tuple(map(repr, terms)))
                if key in found:
                    found[key] = replace(found[key], readings=(*found[key].readings, reading))
                else:
                    found[key] = Question(rule=rule, readings=(reading,), terms=terms)
    return list(found.values())


def needs(paper: Paper, null: bool = False) -> dict[str, list[str]]:
    """Return the AQMs to run in each cell.

    Args:
        paper: Paper whose claims are judged.
        null: Include the AQMs of the null check.
    """
    wanted: dict[str, list[str]] = {}
    for claim in paper.claims:
        asked = questions(paper, claim)
        if null:
            asked += [other for spec in paper.null.values() for other in _null_questions(paper, claim, spec)]
        for question in asked:
            for term in question.terms:
                for cell, spec in sorted(term.needs()):
                    specs = wanted.setdefault(cell, [])
                    if spec not in specs:
                        specs.append(spec)
    return wanted


def judge(paper: Paper, claim: Claim, lookup: Lookup, planned: int | None = None) -> Judgement:
    """Judge a claim.

    Args:
        paper: Paper of the claim.
        claim: Claim to judge.
        lookup: Returns the finished runs.
        planned: Number of seeds of the record, if fewer were run. The verdict is provisional then: an open check that
            this number is expected to decide counts as it stands so far.
    """
    for rule in claim.rules:
        if rule["test"] == "none":
            return Judgement(claim=claim, verdict="cannot be tested", headline="cannot be tested", reason=rule["why"])
    checks = [_algebra(rule) for rule in claim.rules if rule["test"] == "algebra"]
    checks += [_answer(question, lookup) for question in questions(paper, claim)]
    found = combine(paper, claim, checks, planned)
    return replace(found, null=_null(paper, claim, found, lookup)) if found.holding else found


def _null(paper: Paper, claim: Claim, found: Judgement, lookup: Lookup) -> tuple[str, ...]:
    """Return the AQMs without control that satisfy the claim in the readings in which it holds."""
    passing = []
    for name, spec in paper.null.items():
        asked = [q for q in _null_questions(paper, claim, spec) if set(q.readings) & set(found.holding)]
        if asked and all(_answer(question, lookup).outcome == "holds" for question in asked):
            passing.append(name)
    return tuple(passing)


def _null_questions(paper: Paper, claim: Claim, spec: str) -> list[Question]:
    """Return the questions of a claim about numbers of one AQM with another in its place; none for other claims."""
    asked = questions(paper, claim)
    if any(rule["test"] != "number" for rule in claim.rules):
        return []
    if any(term.spec.partition(":")[0] in ("droptail", "fixed") for question in asked for term in question.terms):
        return []

    def instead(term: Term) -> Term:
        own = {key: getattr(term, key) for key in ("over", "less", "minus")}
        changed = {
            key: replace(other, spec=spec, cells=other.bare) if other is not None and other.spec == term.spec else other
            for key, other in own.items()
        }
        return replace(term, spec=spec, cells=term.bare, **changed)

    return [replace(question, terms=tuple(map(instead, question.terms))) for question in asked]


def _algebra(rule: Rule) -> Check:
    outcome, says = algebra.CHECKS[rule["check"]]()
    return Check(test="algebra", readings=(), outcome=outcome, says=says)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def _terms(rule: Rule, reading: Mapping[str, Any]) -> list[tuple[Term, ...]]:
    """Return the terms of each question of a rule for one reading."""
    test = rule["test"]
    windows = _listed(rule.get("window", "steady"))
    whole = "across" in rule or test in ("trend", "correlation")
    cells = [tuple(_listed(rule["at"]))] if whole else [(cell,) for cell in _listed(rule.get("at", ""))]
    links = _listed(rule["link"]) if "link" in rule else [None]
    flows = _listed(rule["flows"]) if "flows" in rule else [None]
    names = _listed(rule["aqm"]) if "aqm" in rule else []
    found: list[tuple[Term, ...]] = []
    for window in windows:
        for at in cells:
            for link in links:
                for group in flows:
                    base = {**rule, "window": window, "at": list(at), "link": link, "flows": group}
                    if "terms" in rule:
                        sides = [_term({**base, **own}, reading) for own in rule["terms"]]
                        found += _pairs(rule, sides) if test in ("order", "same") else [(side,) for side in sides]
                    elif test in ("order", "same"):
                        found += _pairs(rule, [_term({**base, "aqm": name}, reading, names) for name in names])
                    else:
                        found += [(_term({**base, "aqm": name}, reading),) for name in names]
    return found


def _pairs(rule: Rule, sides: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Return pairs of terms, the one claimed to be lower first."""
    if "first" in rule:
        pairs: list[tuple[Term, ...]] = [(sides[0], other) for other in sides[1:]]
        return pairs if rule["first"] == "lowest" else [(other, first) for first, other in pairs]
    neighbours: list[tuple[Term, ...]] = list(itertools.pairwise(sides))
    return [(b, a) for a, b in neighbours] if rule.get("chain") == "falling" else neighbours


def _term(said: Mapping[str, Any], reading: Mapping[str, Any], rivals: Sequence[str] = ()) -> Term:
    where = {key: said[key] for key in ("link", "flows", "combine") if said.get(key) is not None}
    others = ("over", "less", "minus")
    plain = {key: value for key, value in said.items() if key not in others}
    over, less, minus = (_term({**plain, **said[key]}, reading, rivals) if key in said else None for key in others)
    cells = _listed(said["at"])
    across = said.get("across")
    return Term(
        of=said["of"],
        name=said["aqm"],
        spec=reading[said["aqm"]],
        cells=cells_of(cells, said["aqm"], reading),
        bare=cells_of(cells, "", reading),
        window=said["window"],
        where=where,
        across=across,
        rivals=tuple((reading[name], cells_of(cells, name, reading)) for name in rivals) if across == "rank" else (),
        over=over,
        less=less,
        minus=minus,
    )


def cells_of(cells: Sequence[str], name: str, reading: Mapping[str, Any]) -> tuple[str, ...]:
    """Add the variants of a reading and of an AQM to the cells.

    Args:
        cells: Cells as the claim names them.
        name: Name of the AQM in the paper.
        reading: Reading of the paper.
    """
    variants = [one for one in (reading.get("variant"), reading.get("variants", {}).get(name)) if one]
    return tuple(f"{cell}{',' if '@' in cell else '@'}{','.join(variants)}" if variants else cell for cell in cells)


def _values(term: Term, lookup: Lookup) -> dict[int, list[float | None]] | None:
    """Return the values in the term's cells, by seed; `None` if a run is missing."""
    by_cell = []
    for cell in term.cells:
        one = {
            seed: evaluate(run, {**term.where, "of": term.of, "window": term.window})
            for seed, run in lookup(cell, term.spec)
        }
        if not one:
            return None
        by_cell.append(one)
    seeds = sorted(set.intersection(*map(set, by_cell)))
    values = {seed: [one[seed] for one in by_cell] for seed in seeds}
    for other, together in ((term.over, _ratio), (term.less, _distance), (term.minus, _difference)):
        if other is not None:
            its = _values(other, lookup)
            if its is None:
                return None
            # A single reference cell applies to all cells.
            values = {
                seed: [together(a, b) for a, b in zip(own, its[seed] * (len(own) // len(its[seed])), strict=True)]
                for seed, own in values.items()
                if seed in its
            }
    return values


def _ratio(a: float | None, b: float | None) -> float | None:
    return None if a is None or not b else a / b


def _distance(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else abs(a - b)


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _figure(term: Term, lookup: Lookup) -> Values | None:
    """Return the quantity by seed, aggregated over the cells; `None` if a run is missing."""
    if term.across == "rank":
        return _ranks(term, lookup)
    values = _values(term, lookup)
    if values is None:
        return None
    together: Values = {}
    for seed, each in values.items():
        known = [value for value in each if value is not None]
        if len(known) == len(each):
            together[seed] = _across(term.across, known)
    return together


def _within(term: Term) -> tuple[float, float]:
    """Return the range of a term: that of its metric, unless the term transforms it."""
    changed = term.over or term.less or term.minus or term.across in ("rank", "ratio")
    return ANY if changed else range_of(term.of, term.where)


def _across(how: str | None, values: Sequence[float]) -> float:
    match how:
        case "spread":
            return max(values) - min(values)
        case "largest":
            return max(values)
        case "least":
            return min(values)
        case "ratio":
            return values[-1] / values[0] if values[0] else math.inf
        case _:
            return sum(values) / len(values)


def _ranks(term: Term, lookup: Lookup) -> Values | None:
    """Return the rank among its rivals, 1 for the lowest, averaged over the cells; ties share their mean rank."""
    columns = []
    for rival, cells in term.rivals:
        values = _values(replace(term, spec=rival, cells=cells, across=None), lookup)
        if values is None:
            return None
        columns.append(values)
    own = term.rivals.index((term.spec, term.cells))
    ranks: Values = {}
    for seed in sorted(set.intersection(*map(set, columns))):
        found = []
        for cell in range(len(term.cells)):
            row = [column[seed][cell] for column in columns]
            mine = row[own]
            if mine is not None:
                others = [value for value in row if value is not None]
                found.append(sum(v < mine for v in others) + (sum(v == mine for v in others) + 1) / 2)
        if found:
            ranks[seed] = sum(found) / len(found)
    return ranks


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's interval of the mean; `None` for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    half = _half(_deviation(values), n)
    return mean - half, mean + half


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def _half(deviation: float, n: int) -> float:
    """Return half the width of Student's interval of `n` values."""
    return float(_core.student_quantile(1 - (1 - SURE) / 2, n - 1)) * deviation / math.sqrt(n)


def _seeds_needed(values: Sequence[float], distance: float) -> int | None:
    """Return how many seeds make the interval narrower than the distance of the mean from the bound.

    Mean and deviation are taken to stay as they are. `None`: no number up to `SEEDS_MAX` does.
    """
    if len(values) < 2 or distance <= 0:
        return None
    deviation = _deviation(values)
    return next((n for n in range(2, SEEDS_MAX + 1) if _half(deviation, n) < distance), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """Parts of a check that are known before the answer."""

    test: str
    readings: tuple[str, ...]

    def check(self, outcome: str, says: str, measured: Mapping[str, Any] | None = None) -> Check:
        return Check(test=self.test, readings=self.readings, outcome=outcome, says=says, measured=measured or {})

    def open(self, says: str, measured: Mapping[str, Any], values: Sequence[float], beyond: float) -> Check:
        """Return an open check. `beyond`: signed distance of the mean from the bound, positive if it holds so far."""
        return Check(
            test=self.test,
            readings=self.readings,
            outcome="open",
            says=says,
            measured=measured,
            seeds=_seeds_needed(values, abs(beyond)),
            leans=beyond > 0,
        )


def _answer(question: Question, lookup: Lookup) -> Check:
    rule, terms = question.rule, question.terms
    test = rule["test"]
    asked = _Question(test=test, readings=question.readings)
    if test in ("trend", "correlation"):
        return _over_cells(rule, terms[0], lookup, asked)
    figures = [_figure(term, lookup) for term in terms]
    if any(figure is None for figure in figures):
        return asked.check("missing", f"{terms[0].label}: not run")
    known = [figure or {} for figure in figures]
    if any(not figure for figure in known):
        term = next(term for term, figure in zip(terms, known, strict=True) if not figure)
        return asked.check("undefined", f"{term.label}: {term.of} is not measured")
    measured = {
        term.label: summarize(list(figure.values()), _within(term)) for term, figure in zip(terms, known, strict=True)
    }
    if test == "number":
        return _number(rule, terms[0], list(known[0].values()), measured[terms[0].label], asked)
    lower, higher = known
    seeds = sorted(set(lower) & set(higher))
    factor, by = float(rule.get("factor", 1.0)), float(rule.get("by", 0.0))
    differences = [higher[seed] - factor * lower[seed] - by for seed in seeds]
    interval = _interval(differences)
    means = [f"{shown(measured[term.label]['mean'])} {term.label}" for term in terms]
    if test == "same":
        return _same(float(rule["tolerance"]), differences, means, measured, asked)
    beyond = f" by {by:g}" if by else (f" by the factor {factor:g}" if factor != 1 else "")
    text = f"{means[0]} below {means[1]}{beyond}"
    if interval is None:
        return asked.open(f"{text}: one seed gives no interval", measured, differences, sum(differences))
    span = f"difference{' beyond it' if beyond else ''} {shown(interval[0])} to {shown(interval[1])}"
    if interval[0] > 0:
        return asked.check("holds", f"{text}: {span}", measured)
    if interval[1] < 0:
        return asked.check("fails", f"{text}: no, {span}", measured)
    if rule.get("ties"):
        return asked.check("tie", f"{text}: alike, {span}", measured)
    return asked.open(f"{text}: open, {span}", measured, differences, sum(differences) / len(differences))


def _number(rule: Rule, term: Term, values: Sequence[float], summary: Mapping[str, Any], asked: _Question) -> Check:
    if "near" in rule:
        least, most = rule["near"] - rule["tolerance"], rule["near"] + rule["tolerance"]
    else:
        least, most = rule.get("least", -math.inf), rule.get("most", math.inf)
    mean = summary["mean"]
    if math.isinf(least):
        bounds = f"at most {most:g}"
    else:
        bounds = f"{least:g} or more" if math.isinf(most) else f"{least:g} to {most:g}"
    # Tolerance for rounding of exact values, such as a fraction of 1.
    slack = 1e-12 * abs(mean)
    low, high = summary["ci95"] or (-math.inf, math.inf)
    text = f"{term.of} = {shown(mean)}{around(mean, summary['ci95'], shown)} for {term.label}; claimed: {bounds}"
    measured = {term.label: summary}
    if least - slack <= low and high <= most + slack:
        return asked.check("holds", text, measured)
    if high < least - slack or low > most + slack:
        return asked.check("fails", text, measured)
    return asked.open(f"{text}: open", measured, values, min(mean - least, most - mean) + slack)


def _same(
    tolerance: float, differences: Sequence[float], means: Sequence[str], measured: Mapping[str, Any], asked: _Question
) -> Check:
    text = f"{means[0]} like {means[1]}, within {tolerance:g}"
    interval = _interval(differences)
    inside = tolerance - abs(sum(differences) / len(differences))
    if interval is None:
        return asked.open(f"{text}: one seed gives no interval", measured, differences, inside)
    span = f"difference {shown(interval[0])} to {shown(interval[1])}"
    if -tolerance <= interval[0] and interval[1] <= tolerance:
        return asked.check("holds", f"{text}: {span}", measured)
    if interval[0] > tolerance or interval[1] < -tolerance:
        return asked.check("fails", f"{text}: no, {span}", measured)
    return asked.open(f"{text}: open, {span}", measured, differences, inside)


def _over_cells(rule: Rule, term: Term, lookup: Lookup, asked: _Question) -> Check:
    """Check a trend or a correlation over the cells."""
    values = _values(term, lookup)
    if values is None:
        return asked.check("missing", f"{term.label}: not run")
    rows = {seed: [v for v in each if v is not None] for seed, each in values.items()}
    rows = {seed: each for seed, each in rows.items() if len(each) == len(term.cells)}
    if not rows:
        return asked.check("undefined", f"{term.spec}: {term.of} is not measured in every cell")
    points = [summarize([each[i] for each in rows.values()], _within(term)) for i in range(len(term.cells))]
    measured = {f"{term.spec} at {cell}, {term.window}": point for cell, point in zip(term.cells, points, strict=True)}
    if rule["test"] == "correlation":
        return _correlation(rule, term, rows, lookup, measured, asked)
    curve = ", ".join(shown(point["mean"]) for point in points)
    sign = 1.0 if rule["sense"] == "rising" else -1.0
    slopes = [sign * _slope(each) for each in rows.values()]
    interval = _interval(slopes)
    text = f"{term.of} of {term.spec} over {len(term.cells)} cells is {curve}"
    if interval is None:
        return asked.open(f"{text}: one seed gives no interval", measured, slopes, sum(slopes))
    if interval[1] < 0:
        return asked.check("fails", f"{text}: not {rule['sense']}", measured)
    if interval[0] <= 0:
        says = f"{text}: open, neither rising nor falling beyond chance"
        return asked.open(says, measured, slopes, sum(slopes) / len(slopes))
    for i in range(len(term.cells) - 1):
        step = _interval([sign * (each[i + 1] - each[i]) for each in rows.values()])
        if step is not None and step[1] < 0:
            return asked.check("fails", f"{text}: not {rule['sense']} at {term.cells[i + 1]}", measured)
    if "ratio" in rule:
        grown = [each[-1] - rule["ratio"] * each[0] for each in rows.values()]
        low, high = _interval(grown) or (0.0, 0.0)
        if high < 0:
            return asked.check("fails", f"{text}: less than {rule['ratio']:g} times from first to last", measured)
        if low <= 0:
            says = f"{text}: open whether {rule['ratio']:g} times from first to last"
            return asked.open(says, measured, grown, sum(grown) / len(grown))
    return asked.check("holds", f"{text}: {rule['sense']}", measured)


def _correlation(
    rule: Rule,
    term: Term,
    rows: Mapping[int, Sequence[float]],
    lookup: Lookup,
    measured: Mapping[str, Any],
    asked: _Question,
) -> Check:
    other = _values(replace(term, of=rule["with"]), lookup)
    assert other is not None, "the same runs"
    found = [_pearson(each, [v or 0.0 for v in other[seed]]) for seed, each in rows.items()]
    mean = sum(found) / len(found)
    text = f"{term.spec}: {term.of} and {rule['with']} correlate by {mean:.3f}; claimed: {rule['least']:g} or more"
    low, high = _interval(found) or (-1.0, 1.0)
    if low >= rule["least"]:
        return asked.check("holds", text, measured)
    if high < rule["least"]:
        return asked.check("fails", text, measured)
    return asked.open(f"{text}: open", measured, found, mean - rule["least"])


def _slope(values: Sequence[float]) -> float:
    middle = (len(values) - 1) / 2
    return sum((i - middle) * value for i, value in enumerate(values)) / sum(
        (i - middle) ** 2 for i in range(len(values))
    )


def _pearson(xs: Sequence[float], ys: Sequence[float]) -> float:
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    sxy = sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True))
    sxx, syy = sum((x - mx) ** 2 for x in xs), sum((y - my) ** 2 for y in ys)
    together = math.sqrt(sxx * syy)
    return sxy / together if together else 0.0


def shown(value: float | None) -> str:
    """Format a value with three or four significant digits.

    Args:
        value: Value to format.
    """
    if value is None:
        return "–"
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = 4 if 0.5 < abs(value) < 2 else 3
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
