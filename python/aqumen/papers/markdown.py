"""Generator of `docs/reproduction.md`, the recorded verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aqumen.papers.model import VERDICTS, Paper

__all__ = ["page"]

HEAD = """# The five papers, claim by claim

<!-- Written by `aqumen reproduce PAPER --record`; edit the claims or this page's head, not the tables. -->

What the papers say, what we measured, and the verdict. `aqumen reproduce PAPER` runs it again and ends with exit code
1 if a verdict comes out otherwise; `--quick` takes fewer seeds and says what it cannot judge.

Each verdict comes from a rule that stands beside the claim in `experiments/PAPER/claims.toml` and was written before
the run:

- A **number** holds if the mean over the seeds lies within the claim's tolerance.
- An **ordering** holds if the differences seed by seed (two AQMs meet the same traffic) have an interval on the
  claimed side of 0. The intervals are Student's, at 95 % for all comparisons of a paper together (Bonferroni).
- A **shape** is a trend over the cells of a sweep (slope beyond chance, no step against it), a correlation, a spread
  or a share, as the rule says.
- **Algebra** is checked by a function in `python/aqumen/papers/algebra.py`, which is run.

What a paper leaves open is read in several ways, which the head of its claims names; a claim has a check for each
reading, AQM, cell and window that it covers. All hold: *reproduced*. Some: *partly*. None: *not reproduced*.
*Inconsistent* contradicts the paper itself, arithmetic, or its link. *Cannot be tested* says why.
"""


def page(papers: Sequence[Paper]) -> str:
    """Return the page as Markdown, from claims and recorded verdicts.

    Args:
        papers: Papers; those without a record are left out.
    """
    known = [paper for paper in papers if paper.recorded]
    heads = [*VERDICTS, "not judged", "claims"]
    lines = [HEAD, "| paper | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    totals = dict.fromkeys(VERDICTS, 0)
    for paper in known:
        counts = Counter(paper.recorded.values())
        for name in VERDICTS:
            totals[name] += counts[name]
        cells = " | ".join(str(counts[name]) for name in VERDICTS)
        lines.append(f"| {paper.name} | {cells} | {len(paper.claims) - counts.total()} | {len(paper.claims)} |")
    claims = sum(len(paper.claims) for paper in known)
    open_ = claims - sum(totals.values())
    lines.append("| all | " + " | ".join(map(str, totals.values())) + f" | {open_} | {claims} |")
    slow = [cell for paper in known for cell in paper.slow if len(paper.recorded) < len(paper.claims)]
    if slow:
        lines += ["", f"Not judged: claims about `{'`, `'.join(slow)}`, of which no run is on record."]
    for paper in known:
        run = paper.record
        lines += ["", f"## {paper.name}", "", f"{paper.title}. From `{run['command']}` of {run['date']}. Read as:", ""]
        lines += [f"- **{name}**: {about}" for name, about in paper.about.items()]
        figure = None
        for claim in paper.claims:
            if claim.figure != figure:
                figure = claim.figure
                lines += ["", f"### {figure}", "", "| claim | the paper | measured | verdict |", "|---|---|---|---|"]
            verdict = paper.recorded.get(claim.id, "not judged")
            why, shown_by = paper.reasons.get(claim.id, ("", ""))
            measured = paper.measured.get(claim.id, "")
            if verdict in ("partly", "not reproduced") and why:
                measured += f". Why: {why} (`{shown_by}`)"
            row = (claim.id, f"{claim.where}: {claim.quantity}: {claim.claimed}", measured, verdict)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines) + "\n"
