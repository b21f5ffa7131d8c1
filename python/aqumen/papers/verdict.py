"""Verdict on a claim: its checks combined, reading by reading.

A reading is one interpretation of what the paper leaves open. It holds if all its checks hold; it is open if none
fails and some interval contains the bound; otherwise it fails, with so many checks that hold. The verdict follows from
the readings:

- `reproduced`: holds in every reading.
- `reproduced in a reading`: holds in at least one.
- `open`: holds in none, and at least one has no failing check.
- `partly`: fails in every reading, with some checks that hold.
- `refuted in every reading`: as before, without.
- `inconsistent`: the paper contradicts itself, arithmetic or its own link.
- `cannot be tested`: nothing that a run could show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aqumen.papers.model import Claim, Paper

__all__ = ["Check", "Judgement", "Standing", "combine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of one question."""

    test: str
    """Kind of rule."""
    readings: tuple[str, ...]
    """Readings of the paper to which it applies; none: all."""
    outcome: str
    """`holds`, `fails`, `open` (interval contains the bound), `tie` (equal, which the claim allows), `undefined` (not
    measured), `missing` (not run), `inconsistent`."""
    says: str
    """Result in words."""
    measured: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Summary of each quantity, by its label."""
    seeds: int | None = None
    """If open: number of seeds that should decide it; `None` if none does."""
    leans: bool | None = None
    """If open: whether it holds in the mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Claim in one reading."""

    state: str
    """`holds`, `fails`, `open`, or `untested`."""
    holding: int
    """Number of checks that hold."""
    of: int
    """Number of checks that count: all but ties and what is not measured."""
    seeds: int | None = None
    """If open: number of seeds that should decide it."""

    def __str__(self) -> str:
        if self.state == "untested":
            return "–"
        if self.state == "fails":
            return f"{self.holding} of {self.of}" if self.holding else "fails"
        return self.state

    def to_dict(self) -> dict[str, Any]:
        """Return the object of the JSON output."""
        return {"state": self.state, "holding": self.holding, "of": self.of, "seeds_needed": self.seeds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Verdict on a claim."""

    claim: Claim
    """The claim that was judged."""
    verdict: str | None
    """One of `VERDICTS`; `None` if a run is missing."""
    headline: str
    """Verdict with its readings or the number of seeds it needs."""
    reason: str
    """Summary of the checks in words."""
    checks: tuple[Check, ...] = ()
    """Results of its questions."""
    readings: Mapping[str, Standing] = field(default_factory=dict)
    """Claim in each reading of the paper."""
    null: tuple[str, ...] = ()
    """AQMs without control that satisfy the claim as well."""
    provisional: bool = False
    """Whether fewer seeds were run than the record has."""

    def depends(self, reading: str) -> bool:
        """Return whether a check belongs to this reading in particular.

        Args:
            reading: Name of the reading.
        """
        return any(reading in check.readings for check in self.checks)

    @property
    def holding(self) -> tuple[str, ...]:
        """Readings in which the claim holds."""
        return tuple(name for name, each in self.readings.items() if each.state == "holds")


def combine(paper: Paper, claim: Claim, checks: Sequence[Check], planned: int | None = None) -> Judgement:
    """Combine the checks of a claim.

    Args:
        paper: Paper of the claim.
        claim: Claim that was checked.
        checks: Results of its questions.
        planned: Number of seeds of the record, if fewer were run.
    """
    counted = [_settled(check, planned) for check in checks]
    readings = {
        name: _standing([check for check in counted if not check.readings or name in check.readings])
        for name in paper.readings
    }
    verdict = _verdict(counted, readings.values())
    return Judgement(
        claim=claim,
        verdict=verdict,
        headline=_headline(verdict, readings, paper),
        reason=_reason(checks),
        checks=tuple(checks),
        readings=readings,
        provisional=planned is not None and any(check.test != "algebra" for check in checks),
    )


def _settled(check: Check, planned: int | None) -> Check:
    """Return an open check as it would stand with the planned number of seeds."""
    if check.outcome != "open" or planned is None or check.seeds is None or check.seeds > planned:
        return check
    return replace(check, outcome="holds" if check.leans else "fails")


def _standing(checks: Sequence[Check]) -> Standing:
    outcomes = [check.outcome for check in checks if check.outcome not in ("undefined", "tie")]
    holding = outcomes.count("holds")
    if "missing" in outcomes or not checks:
        return Standing(state="untested", holding=holding, of=len(outcomes))
    if not outcomes:
        # Ties alone show no order.
        tied = any(check.outcome == "tie" for check in checks)
        return Standing(state="open" if tied else "untested", holding=0, of=0)
    if holding == len(outcomes):
        return Standing(state="holds", holding=holding, of=holding)
    if holding + outcomes.count("open") < len(outcomes):
        return Standing(state="fails", holding=holding, of=len(outcomes))
    needed = [check.seeds for check in checks if check.outcome == "open"]
    seeds = None if None in needed else max(each for each in needed if each is not None)
    return Standing(state="open", holding=holding, of=len(outcomes), seeds=seeds)


def _verdict(checks: Sequence[Check], readings: Iterable[Standing]) -> str | None:
    outcomes = [check.outcome for check in checks]
    if "inconsistent" in outcomes:
        return "inconsistent"
    if "missing" in outcomes:
        return None
    asked = [each for each in readings if each.state != "untested"]
    if not asked:
        return "cannot be tested"
    states = [each.state for each in asked]
    if "holds" in states:
        return "reproduced" if set(states) == {"holds"} else "reproduced in a reading"
    if "open" in states:
        return "open"
    return "partly" if any(each.holding for each in asked) else "refuted in every reading"


def _headline(verdict: str | None, readings: Mapping[str, Standing], paper: Paper) -> str:
    if verdict is None:
        return "not run"
    if verdict == "reproduced in a reading":
        holding = [name for name, each in readings.items() if each.state == "holds"]
        phrases = [paper.phrases[name] for name in holding if name in paper.phrases]
        if others := [name for name in holding if name not in paper.phrases]:
            phrases.append(f"in reading{'s' if len(others) > 1 else ''} {', '.join(others)}")
        return "reproduced " + ", ".join(phrases)
    if verdict == "open":
        needed = [each.seeds for each in readings.values() if each.state == "open" and each.seeds is not None]
        return f"open: needs about {min(needed)} seeds" if needed else "open: a tie, or more than 1000 seeds"
    return verdict


def _reason(checks: Sequence[Check]) -> str:
    if len(checks) == 1:
        return checks[0].says
    holding = sum(check.outcome == "holds" for check in checks)
    others = [check for check in checks if check.outcome != "holds"]
    # A failing check says more than an open one.
    shown = min(others, key=lambda check: check.outcome != "fails") if others else checks[0]
    return f"{holding} of {len(checks)} checks hold; {'but ' if holding and others else ''}{shown.says}"
