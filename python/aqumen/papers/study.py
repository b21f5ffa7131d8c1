"""Reproduction of papers: their runs, verdicts, and differences from the record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqumen import _core
from aqumen._experiments import PAPERS, data
from aqumen._records import Records
from aqumen.comparison import seed_list
from aqumen.papers.judge import judge, needs
from aqumen.papers.model import EXPLAINED, UNCONTROLLED, VERDICTS, Paper, load_paper
from aqumen.papers.verdict import Check, Judgement

__all__ = ["COLUMNS", "NOT_RUN", "QUICK_SEEDS", "SCHEMA", "SEEDS", "Outcome", "Reproduction", "reproduce"]

SCHEMA = 2
"""Version of the JSON; it grows when a key is removed or changes its meaning."""
SEEDS = 10
QUICK_SEEDS = 3
NOT_RUN = "not run"
COLUMNS = (VERDICTS[0], UNCONTROLLED, *VERDICTS[1:], NOT_RUN)
"""Columns of the counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A paper with the verdicts on its claims."""

    paper: Paper
    """The paper that was reproduced."""
    judgements: tuple[Judgement, ...]
    """Verdict on each claim, in the paper's order."""
    seeds: int
    """Number of seeds."""
    quick: bool
    """Whether slow experiments were left out."""

    def counts(self) -> dict[str, int]:
        """Count the claims by verdict; `not run` without one. What passes without control is counted as that."""
        found = Counter(
            UNCONTROLLED if each.holding and self.without_control(each) else each.verdict or NOT_RUN
            for each in self.judgements
        )
        return {name: found[name] for name in COLUMNS if found[name]}

    def without_control(self, judgement: Judgement) -> tuple[str, ...]:
        """Return the AQMs without control that satisfy a claim; as recorded if they did not run.

        Args:
            judgement: Verdict of this run.
        """
        return tuple(self.paper.passed.get(judgement.claim.id, ())) if self.quick else judgement.null

    def recorded(self, judgement: Judgement) -> str | None:
        """Return the recorded verdict.

        Args:
            judgement: Verdict of this run.
        """
        return self.paper.recorded.get(judgement.claim.id)

    def told(self, judgement: Judgement) -> str:
        """Return the verdict in words, beside the record if it is provisional or differs.

        Args:
            judgement: Verdict of this run.
        """
        recorded = self.recorded(judgement)
        on_record = self.paper.headlines.get(judgement.claim.id, recorded)
        words = judgement.headline
        if judgement.verdict is None:
            return f"{words}; record: {on_record or 'none'}"
        if passing := self.without_control(judgement):
            words += f" ({' and '.join(passing)} too)" if judgement.holding else ""
        if judgement.provisional:
            return f"{words} so far; record: {on_record or 'none'}"
        return words if recorded in (None, judgement.verdict) else f"{words} (on record: {on_record})"

    def differing(self) -> list[Judgement]:
        """Return the claims whose verdict differs from the record. A provisional verdict does not count."""
        return [each for each in self._others() if not each.provisional]

    def agreement(self) -> tuple[int, list[Judgement]]:
        """Return the number of provisional verdicts, and those that differ from the record."""
        others = [each for each in self._others() if each.provisional]
        return sum(each.provisional and each.verdict is not None for each in self.judgements), others

    def _others(self) -> list[Judgement]:
        return [
            each
            for each in self.judgements
            if each.verdict is not None and self.recorded(each) not in (None, each.verdict)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return the claims as `aqumen reproduce --json` prints them."""
        return [self._row(each) for each in self.judgements]

    def _row(self, judgement: Judgement) -> dict[str, Any]:
        claim = judgement.claim
        why, shown_by = self.paper.reasons.get(claim.id, ("", ""))
        differs = judgement.verdict in EXPLAINED
        measured: dict[str, Any] = {}
        for check in judgement.checks:
            measured.update(check.measured)
        return {
            "paper": self.paper.name,
            "id": claim.id,
            "where": claim.where,
            "kind": claim.kind,
            "quantity": claim.quantity,
            "claimed": claim.claimed,
            "rule": [dict(rule) for rule in claim.rules],
            "measured": measured,
            "verdict": judgement.verdict,
            "headline": judgement.headline,
            "provisional": judgement.provisional,
            "recorded": self.recorded(judgement),
            "readings": {name: each.to_dict() for name, each in judgement.readings.items()},
            "without_control": list(self.without_control(judgement)),
            "reason": judgement.reason,
            "why": why if differs and why else None,
            "shown_by": shown_by if differs and why else None,
            "checks": [_check(check) for check in judgement.checks],
        }


class Reproduction:
    """A reproduction in progress; finished runs are kept when it is stopped."""

    def __init__(
        self,
        papers: Sequence[str],
        seeds: int | None = None,
        *,
        quick: bool = False,
        out: Path | None = None,
        series: str = "sampled",
    ) -> None:
        """Read the claims and load finished runs.

        Args:
            papers: Names of the papers' folders, or `all`.
            seeds: Number of seeds; default: as recorded, or 3 if quick.
            quick: Leave out slow experiments and the null check; verdicts are provisional.
            out: Folder for finished runs.
            series: Series that the runs of the first seed keep: `none`, `sampled` or `all`.
        """
        judged = [name for name in PAPERS if data(f"{name}/claims") is not None]
        names = judged if "all" in papers else list(dict.fromkeys(papers))
        self.papers = [load_paper(name) for name in names]
        # The default number of seeds is that of each paper's record.
        by_paper = {
            paper.name: seed_list(
                seeds if seeds is not None else QUICK_SEEDS if quick else int(paper.record.get("seeds", SEEDS))
            )
            for paper in self.papers
        }
        self.seeds = by_paper
        self.quick = quick
        wanted: dict[str, list[str]] = {}
        of_cell: dict[str, list[int]] = {}
        for paper in self.papers:
            for cell, specs in needs(paper, null=not quick).items():
                if not (quick and cell.partition("@")[0] in paper.slow):
                    wanted[cell], of_cell[cell] = specs, by_paper[paper.name]
        longest = max(by_paper.values(), key=len)
        self.records = Records(wanted, longest, out, of_cell, series=series)

    def work(self, on_done: Callable[[str, str, int, float], bool]) -> None:
        """Run the missing runs.

        Args:
            on_done: Called with cell, AQM, seed and cost of each finished run; returning `False` stops.
        """
        self.records.work(on_done)

    def outcomes(self) -> list[Outcome]:
        """Return the papers with their verdicts."""
        return [self._outcome(paper) for paper in self.papers]

    def _outcome(self, paper: Paper) -> Outcome:
        count = len(self.seeds[paper.name])
        recorded = int(paper.record.get("seeds", SEEDS if self.quick else 2))
        planned = recorded if count < recorded else None
        judgements = tuple(judge(paper, claim, self.records.of, planned) for claim in paper.claims)
        return Outcome(paper=paper, judgements=judgements, seeds=count, quick=self.quick)


def reproduce(
    paper: str,
    seeds: int | None = None,
    *,
    quick: bool = False,
    out: Path | None = None,
    on_done: Callable[[str, str, int, float], bool] | None = None,
) -> list[Outcome]:
    """Run a paper's experiments and judge its claims.

    Args:
        paper: Name of its folder, such as `arm-pfc`, or `all`.
        seeds: Number of seeds; default: as recorded, or 3 if quick.
        quick: Leave out slow experiments and the null check; verdicts are provisional.
        out: Folder for finished runs, which are not repeated.
        on_done: Called with cell, AQM, seed and cost of each finished run; returning `False` stops.
    """
    study = Reproduction([paper], seeds, quick=quick, out=out)
    study.work(on_done or (lambda *_: True))
    return study.outcomes()


def to_dict(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the object that `aqumen reproduce --json` prints.

    Args:
        outcomes: Papers with their verdicts.
    """
    return {
        "schema": SCHEMA,
        "aqumen": _core.__version__,
        "seeds": {outcome.paper.name: outcome.seeds for outcome in outcomes},
        "quick": outcomes[0].quick,
        "counts": {outcome.paper.name: outcome.counts() for outcome in outcomes},
        "differing": [each.claim.id for outcome in outcomes for each in outcome.differing()],
        "provisional": sum(outcome.agreement()[0] for outcome in outcomes),
        "provisional_differing": [each.claim.id for outcome in outcomes for each in outcome.agreement()[1]],
        "claims": [row for outcome in outcomes for row in outcome.rows()],
    }


def record_text(outcome: Outcome, command: str, date: str) -> str:
    """Return the contents of `experiments/PAPER/verdicts.toml`.

    Args:
        outcome: Paper with verdicts of a complete run.
        command: Command that ran it.
        date: Date, as 2026-11-22.
    """
    judged = [each for each in outcome.judgements if each.verdict is not None]
    lines = [
        "# The verdicts on record, from the run named here; `aqumen reproduce` ends with exit code 1"
        " where it comes to others.",
        "",
        "[run]",
        f"command = {json.dumps(command)}",
        f'date = "{date}"',
        f'aqumen = "{_core.__version__}"',
        f"seeds = {outcome.seeds}",
        "",
        "[verdicts]",
        *(f'{each.claim.id} = "{each.verdict}"' for each in judged),
        "",
        "[headlines]",
        *(f'{each.claim.id} = "{each.headline}"' for each in judged),
        "",
        "[readings]",
        *(f"{each.claim.id} = {_inline(each)}" for each in judged if any(check.readings for check in each.checks)),
        "",
        "[without_control]",
        *(f"{each.claim.id} = {json.dumps(each.null)}" for each in judged if each.null),
        "",
        "[measured]",
        *(f"{each.claim.id} = {json.dumps(each.reason, ensure_ascii=False)}" for each in outcome.judgements),
    ]
    return "\n".join(lines) + "\n"


def _inline(judgement: Judgement) -> str:
    """Return the states in the readings as a TOML table."""
    return "{ " + ", ".join(f'{name} = "{each}"' for name, each in judgement.readings.items()) + " }"


def _check(check: Check) -> dict[str, Any]:
    return {
        "test": check.test,
        "readings": list(check.readings),
        "outcome": check.outcome,
        "seeds_needed": check.seeds,
        "says": check.says,
        "measured": dict(check.measured),
    }
