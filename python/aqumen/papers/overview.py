"""Front page of the report: verdicts by paper and kind of claim, surprising results, and the cost of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from aqumen._records import Records
from aqumen.papers.judge import needs
from aqumen.papers.model import UNCONTROLLED, VERDICTS
from aqumen.papers.study import NOT_RUN, Outcome
from aqumen.papers.verdict import Judgement

__all__ = ["overview"]

COLOURS = {
    "reproduced": "#1d7a34",
    UNCONTROLLED: "#9bb8a2",
    "reproduced in a reading": "#7fbf8e",
    "partly": "#e0a030",
    "refuted in every reading": "#c0392b",
    "open": "#5b9bd5",
    "inconsistent": "#7a3b9a",
    "cannot be tested": "#b8bec8",
    NOT_RUN: "#e3e6eb",
}
KINDS = ("number", "ordering", "shape", "statement")
BAR, ROW, LEFT = 560, 20, 170
SURPRISING = 10


def overview(outcomes: Sequence[Outcome], records: Records) -> str:
    """Return the front page as HTML.

    Args:
        outcomes: Papers with their verdicts.
        records: Finished runs, for their cost.
    """
    return _picture(outcomes) + _surprising(outcomes) + _cost(outcomes, records)


def _verdict(outcome: Outcome, each: Judgement) -> str:
    """Return the verdict of this run, else that of the record."""
    verdict = each.verdict or outcome.recorded(each) or NOT_RUN
    held = verdict.startswith("reproduced") and outcome.without_control(each)
    return UNCONTROLLED if held else verdict


def _picture(outcomes: Sequence[Outcome]) -> str:
    """Return a bar of verdicts for each paper and kind of claim; lengths are numbers of claims."""
    rows: list[tuple[str, Counter[str]]] = []
    for outcome in outcomes:
        for kind in KINDS:
            counted = Counter(_verdict(outcome, each) for each in outcome.judgements if each.claim.kind == kind)
            if counted:
                rows.append((f"{outcome.paper.name}: {kind}s", counted))
    longest = max((counted.total() for _, counted in rows), default=1)
    parts = []
    for i, (name, counted) in enumerate(rows):
        parts.append(f"<text x={LEFT - 8} y={ROW * i + 14} text-anchor=end>{escape(name)}</text>")
        at = float(LEFT)
        for verdict, colour in COLOURS.items():
            if counted[verdict]:
                width = BAR * counted[verdict] / longest
                says = f"{escape(name)}: {counted[verdict]} {verdict}"
                parts.append(
                    f"<rect x={at:.1f} y={ROW * i + 3} width={width:.1f} height={ROW - 6} fill='{colour}'>"
                    f"<title>{says}</title></rect>"
                )
                if width > 12:
                    parts.append(
                        f"<text x={at + width / 2:.1f} y={ROW * i + 14} text-anchor=middle font-size=9 fill=#fff>"
                        f"{counted[verdict]}</text>"
                    )
                at += width
    present = {verdict for _, counted in rows for verdict in counted}
    legend = " ".join(
        f"<span class=key><span style='background:{COLOURS[name]}'></span>{name}</span>"
        for name in (VERDICTS[0], UNCONTROLLED, *VERDICTS[1:], NOT_RUN)
        if name in present
    )
    width, height = LEFT + BAR, ROW * len(rows) + 4
    return (
        f"<h2 id=held>What held</h2><p>{legend}</p><figure class=held><svg width={width} height={height}"
        f" viewBox='0 0 {width} {height}' role=img aria-label='Verdicts by paper and kind of claim'>"
        f"<g font-size=12 fill=currentColor>{''.join(parts)}</g></svg></figure>"
    )


def _surprising(outcomes: Sequence[Outcome]) -> str:
    items = []
    for outcome in outcomes:
        judged = {each.claim.id: each for each in outcome.judgements}
        for claim, says in outcome.paper.surprising:
            items.append(
                f"<li><a href='#{claim}'>{escape(outcome.paper.name)}, {escape(claim)}</a>: {escape(says)}"
                f" <i>{escape(outcome.told(judged[claim]))}</i></li>"
            )
    if not items:
        return ""
    return f"<h2 id=surprising>Most surprising</h2><ol>{''.join(items[:SURPRISING])}</ol>"


def _cost(outcomes: Sequence[Outcome], records: Records) -> str:
    rows = []
    for outcome in outcomes:
        cells = needs(outcome.paper, null=not outcome.quick)
        costs = [
            float(run.get("cost", {}).get("cpu_s", 0.0))
            for (cell, spec, _), run in records.runs.items()
            if spec in cells.get(cell, ())
        ]
        flags = " --quick" if outcome.quick else ""
        rows.append(
            f"<tr><td><code>aqumen reproduce {outcome.paper.name}{flags} --seeds {outcome.seeds}</code></td>"
            f"<td class=n>{len(costs)}</td><td class=n>{sum(costs) / 60:.1f}</td></tr>"
        )
    return (
        "<h2 id=cost>What it takes</h2><div class=wide><table class=counts><tr><th>command</th><th class=n>runs</th>"
        f"<th class=n>processor time, minutes</th></tr>{''.join(rows)}</table></div>"
    )
