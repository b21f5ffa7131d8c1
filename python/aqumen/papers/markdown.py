"""Generator of `docs/reproduction.md`, the recorded verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aqumen.papers.model import EXPLAINED, UNCONTROLLED, VERDICTS, Paper

__all__ = ["page"]

HEAD = """# The five papers, claim by claim

<!-- Written by `aqumen reproduce PAPER --record`; edit the claims or this page's head, not the tables. -->

What the papers say, what we measured, and the verdict. `aqumen reproduce PAPER` runs it again and ends with exit code
1 if a verdict comes out otherwise. `--quick` takes three seeds: its verdicts are provisional, beside the record.

Each verdict comes from a rule that stands beside the claim in `experiments/PAPER/claims.toml`:

- A **number** holds if the interval of its mean over the seeds lies within the claim's tolerance.
- An **ordering** holds if the differences seed by seed (two AQMs meet the same traffic) have an interval on the
  claimed side of 0.
- A **shape** is a trend over the cells of a sweep (slope beyond chance, no step against it), a correlation, a spread
  or a share, as the rule says.
- **Algebra** is checked by a function in `python/aqumen/papers/algebra.py`, which is run.

A check *holds* if the interval lies on the claimed side of the bound, *fails* if it lies on the other, and is *open* if
it contains the bound. Intervals are Student's at 95 % for each check. There is no correction for the number of checks:
a claim holds only if all its checks do, and such an intersection-union test keeps the level of a single check (Berger
1982).

What a paper leaves open is read in several ways, each judged by itself, in a column of its own: the claim *holds* in
this reading, *n of m* of its checks do, it *fails* (none does), or is *open*; – if the reading does not matter.
The verdict:

- *reproduced*: holds in every reading. *Reproduced as, or in reading, X*: holds in X.
- *open: needs about n seeds*: holds in none, and in at least one nothing fails; n follows from the interval, if mean
  and deviation stay as they are.
- *partly*: something fails in every reading, and something holds. *Refuted in every reading*: nothing holds.
- *inconsistent*: contradicts the paper itself, arithmetic, or its link. *Cannot be tested* says why.

Claims about numbers are also asked of DropTail and of a fixed probability, which control nothing. Those that hold for
one of them too say so, and are counted apart as *passed without control*: they show nothing about the AQM.
"""


def page(papers: Sequence[Paper]) -> str:
    """Return the page as Markdown, from claims and recorded verdicts.

    Args:
        papers: Papers; those without a record are left out.
    """
    known = [paper for paper in papers if paper.recorded]
    heads = [VERDICTS[0], UNCONTROLLED, *VERDICTS[1:], "not judged", "claims"]
    lines = [HEAD, "| paper | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    totals: Counter[str] = Counter()
    for paper in known:
        counts = _counts(paper)
        totals += counts
        lines.append(f"| {paper.name} | " + " | ".join(str(counts[name]) for name in heads) + " |")
    lines.append("| all | " + " | ".join(str(totals[name]) for name in heads) + " |")
    slow = [cell for paper in known for cell in paper.slow if len(paper.recorded) < len(paper.claims)]
    if slow:
        lines += ["", f"Not judged: claims about `{'`, `'.join(slow)}`, of which no run is on record."]
    for paper in known:
        lines += _paper(paper)
    return "\n".join(lines) + "\n"


def _counts(paper: Paper) -> Counter[str]:
    """Count the claims by recorded verdict."""
    verdicts = (
        UNCONTROLLED if claim.id in paper.passed else paper.recorded.get(claim.id, "not judged")
        for claim in paper.claims
    )
    return Counter((*verdicts, *("claims" for _ in paper.claims)))


def _paper(paper: Paper) -> list[str]:
    run = paper.record
    lines = ["", f"## {paper.name}", "", f"{paper.title}. From `{run['command']}` of {run['date']}."]
    if "seeds_run" in run:
        lines[-1] += f" Provisional: {run['seeds_run']} of {run['seeds']} seeds were run."
    if paper.summary:
        lines += ["", f"**{paper.summary}**"]
    depending = [states for states in paper.standings.values() if states]
    lines += ["", "| reading | | holds in full |", "|---|---|---|"]
    for name, about in paper.about.items():
        asked = [states[name] for states in depending if states.get(name, "–") != "–"]
        lines.append(f"| {name} | {about} | {asked.count('holds')} of {len(asked)} claims with runs |")
    figure = None
    heads = ["claim", "the paper", "measured", *paper.readings, "verdict"]
    for claim in paper.claims:
        if claim.figure != figure:
            figure = claim.figure
            lines += ["", f"### {figure}", "", "| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
        why, shown_by = paper.reasons.get(claim.id, ("", ""))
        measured = paper.measured.get(claim.id, "")
        if paper.recorded.get(claim.id) in EXPLAINED and why:
            measured += f". Why: {why} (`{shown_by}`)"
        states = paper.standings.get(claim.id, {})
        verdict = paper.headlines.get(claim.id, "not judged")
        if claim.id in paper.passed:
            verdict += f" ({' and '.join(paper.passed[claim.id])} too)"
        said = f"{claim.where}: {claim.quantity}: {claim.claimed}"
        row = (claim.id, said, measured, *(states.get(name, "–") for name in paper.readings), verdict)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return lines
