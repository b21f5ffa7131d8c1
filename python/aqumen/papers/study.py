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
from aqumen.papers.judge import Check, Judgement, comparisons, judge, needs
from aqumen.papers.model import VERDICTS, Paper, load_paper

__all__ = ["QUICK_SEEDS", "SCHEMA", "SEEDS", "Outcome", "Reproduction", "reproduce"]

SCHEMA = 1
"""Version of the JSON; it grows when a key is removed or changes its meaning."""
SEEDS = 10
QUICK_SEEDS = 3


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
        """Count the claims by verdict; `not judged` if too little was run."""
        found = Counter(each.verdict or "not judged" for each in self.judgements)
        return {name: found[name] for name in (*VERDICTS, "not judged") if found[name]}

    def recorded(self, judgement: Judgement) -> str | None:
        """Return the recorded verdict.

        Args:
            judgement: Verdict of this run.
        """
        return self.paper.recorded.get(judgement.claim.id)

    def differing(self) -> list[Judgement]:
        """Return the claims whose verdict differs from the record."""
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
        differs = judgement.verdict in ("partly", "not reproduced")
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
            "recorded": self.recorded(judgement),
            "reason": judgement.reason,
            "why": why if differs and why else None,
            "shown_by": shown_by if differs and why else None,
            "checks": [_check(check) for check in judgement.checks],
        }


class Reproduction:
    """A reproduction in progress; finished runs are kept when it is stopped."""

    def __init__(
        self, papers: Sequence[str], seeds: int | None = None, *, quick: bool = False, out: Path | None = None
    ) -> None:
        """Read the claims and load finished runs.

        Args:
            papers: Names of the papers' folders, or `all`.
            seeds: Number of seeds; default: as recorded, or 3 if quick.
            quick: Leave out slow experiments; claims that need them, or more seeds, are not judged.
            out: Folder for finished runs.
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
            for cell, specs in needs(paper).items():
                if not (quick and cell in paper.slow):
                    wanted[cell], of_cell[cell] = specs, by_paper[paper.name]
        longest = max(by_paper.values(), key=len)
        self.records = Records(wanted, longest, out, of_cell)

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
        family = comparisons(paper)
        # With fewer seeds than recorded, an undecided check says nothing about the claim.
        count = len(self.seeds[paper.name])
        strict = count >= int(paper.record.get("seeds", SEEDS if self.quick else 2))
        judgements = tuple(judge(paper, claim, self.records.of, family, strict) for claim in paper.claims)
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
        quick: Leave out slow experiments; claims that need them, or more seeds, are not judged.
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
        "claims": [row for outcome in outcomes for row in outcome.rows()],
    }


def record_text(outcome: Outcome, command: str, date: str) -> str:
    """Return the contents of `experiments/PAPER/verdicts.toml`.

    Args:
        outcome: Paper with verdicts of a complete run.
        command: Command that ran it.
        date: Date, as 2026-11-22.
    """
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
        *(f'{each.claim.id} = "{each.verdict}"' for each in outcome.judgements if each.verdict is not None),
        "",
        "[measured]",
        *(f"{each.claim.id} = {json.dumps(each.reason, ensure_ascii=False)}" for each in outcome.judgements),
    ]
    return "\n".join(lines) + "\n"


def _check(check: Check) -> dict[str, Any]:
    return {
        "test": check.test,
        "readings": list(check.readings),
        "outcome": check.outcome,
        "says": check.says,
        "measured": dict(check.measured),
    }
