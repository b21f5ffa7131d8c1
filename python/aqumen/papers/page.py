"""HTML report of a reproduction: claims and measurements, figure by figure as in the papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from aqumen import _core
from aqumen._records import Records
from aqumen.papers.model import EXPLAINED, UNCONTROLLED, Panel
from aqumen.papers.overview import overview
from aqumen.papers.panels import colours, panel_html, printed
from aqumen.papers.study import COLUMNS, NOT_RUN, Outcome
from aqumen.papers.verdict import Judgement

__all__ = ["report_html"]

CSS = """
.r { text-align: center; font-size: .85em }
.r-holds { color: #1d7a34; font-weight: 600 }
.r-fails { color: #b3261e }
.r-open { color: #1b6ca8 }
.claims th.r { min-width: 3.5rem; overflow-wrap: anywhere }
.claims .v { white-space: normal; min-width: 7rem }
h4 { margin: 1rem 0 0; font-size: .95rem }
.held { display: block; overflow-x: auto }
.held svg { max-width: none }
.key { margin-right: .8rem; white-space: nowrap }
.key span { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
.note { font-size: .85em; color: #5b6472; margin: 0 }
.summary { font-size: 1.1em; border-left: 4px solid #1b6ca8; padding-left: .8rem }
@media (max-width: 44rem) {
  .claims tr > td.v { grid-area: 1 / 2 }
  .claims tr > td.r { grid-column: 1 / -1; text-align: left; padding: 0 .6rem }
  .claims tr > td.r::before { content: attr(data-r) ": "; color: #5b6472 }
  .claims tr.heads { display: none }
}
@media (prefers-color-scheme: dark) {
  .r-holds { color: #6fcf84 }
  .r-fails { color: #ff8a80 }
  .r-open { color: #7db8e8 }
}
"""
CLASSES = {
    "reproduced": 0,
    "reproduced in a reading": 0,
    "partly": 1,
    "refuted in every reading": 2,
    "open": 3,
    "inconsistent": 4,
    "cannot be tested": 5,
    NOT_RUN: 5,
}
"""Colours of the verdicts, by their number in the style sheet."""


def report_html(outcomes: Sequence[Outcome], records: Records, command: str) -> str:
    """Return the report as HTML text.

    Args:
        outcomes: Papers with their verdicts.
        records: Finished runs, for the plots.
        command: Command that produced it.
    """
    seeds = ", ".join(str(n) for n in sorted({outcome.seeds for outcome in outcomes}))
    css = (files("aqumen.view.report") / "plain.css").read_text("utf-8")
    heads = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(
        f"<tr><td><a href='#{outcome.paper.name}'>{outcome.paper.name}</a></td>"
        + "".join(f"<td class=n>{outcome.counts().get(name, 0)}</td>" for name in COLUMNS)
        + "</tr>"
        for outcome in outcomes
    )
    judged = sum(outcome.agreement()[0] for outcome in outcomes)
    others = sum(len(outcome.agreement()[1]) for outcome in outcomes)
    quick = (
        f"<p>{judged} verdicts are provisional, since they come from fewer seeds than the record has: an open check"
        " counts as it stands where that many seeds are expected to decide it. The record stands beside each;"
        f" {judged - others} agree with it.</p>"
        if judged
        else ""
    )
    differing = [each.claim.id for outcome in outcomes for each in outcome.differing()]
    record = (
        f"<p><b>{len(differing)} verdicts differ from the record:</b> {escape(', '.join(differing))}</p>"
        if differing
        else ""
    )
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport"
        " content='width=device-width,initial-scale=1'>"
        f"<title>Reproduction of papers</title><style>{css}{CSS}</style><h1>Reproduction of papers, claim by claim</h1>"
        f"<p>{seeds} seeds, engine packet. Each claim has a rule in"
        f" <code>experiments/PAPER/claims.toml</code>, which alone decides the verdict. Each reading of what a paper"
        f" leaves open is judged by itself. <i>{UNCONTROLLED}</i>: DropTail or a fixed probability satisfies the claim"
        f" as well.</p>{quick}{record}"
        "<div class=wide role=region tabindex=0 aria-label='Verdicts by paper'><table class=counts>"
        f"<tr><th>paper</th>{heads}</tr>{rows}</table></div>"
    ]
    parts.append(overview(outcomes, records))
    colour = colours(outcome.paper for outcome in outcomes)
    parts += [_paper(outcome, records, colour) for outcome in outcomes]
    parts.append(f"<h2>Command</h2><p><code>{escape(command)}</code>, aqumen {_core.__version__}</p></html>\n")
    return "".join(parts)


def _paper(outcome: Outcome, records: Records, colour: Mapping[str, str]) -> str:
    paper = outcome.paper
    summary = f"<p class=summary>{escape(paper.summary)}</p>" if paper.summary else ""
    parts = [f"<h2 id='{paper.name}'>{escape(paper.title)}</h2>{summary}{_readings(outcome)}"]
    beside = printed(paper.name)
    panels: dict[str, list[Panel]] = {}
    for panel in paper.panels:
        panels.setdefault(panel.figure, []).append(panel)
    figures: dict[str, list[int]] = {}
    for i, each in enumerate(outcome.judgements):
        figures.setdefault(each.claim.figure, []).append(i)
    for figure, members in figures.items():
        claims = [outcome.judgements[i] for i in members]
        plots = "".join(panel_html(paper, panel, records, colour, beside) for panel in panels.get(figure, ()))
        parts.append(f"<h3>{escape(figure)}</h3>{plots}")
        parts.append(_claims(outcome, claims))
    return "".join(parts)


def _readings(outcome: Outcome) -> str:
    """Return the table of readings: how many claims hold in each."""
    paper, rows = outcome.paper, []
    for name, about in paper.about.items():
        asked = [each.readings[name] for each in outcome.judgements if each.depends(name)]
        counted = [each for each in asked if each.state != "untested"]
        holding = sum(each.state == "holds" for each in counted)
        rows.append(
            f"<tr><td><b>{escape(name)}</b></td><td>{escape(about)}</td>"
            f"<td class=n>{holding} of {len(counted)} claims</td></tr>"
        )
    return (
        "<table><tr><th>reading</th><th>what it assumes</th><th class=n>holds in full</th></tr>"
        + "".join(rows)
        + "</table>"
    )


def _claims(outcome: Outcome, claims: Sequence[Judgement]) -> str:
    """Return the table of a figure's claims."""
    readings = list(outcome.paper.readings)
    heads = "".join(f"<th class=r>{escape(name)}</th>" for name in readings)
    rows = "".join(_row(outcome, each, readings) for each in claims)
    return (
        "<div class=wide role=region tabindex=0 aria-label='Claims'><table class=claims>"
        f"<tr class=heads><th>claim</th><th>the paper</th><th>measured</th>{heads}<th>verdict</th></tr>{rows}"
        "</table></div>"
    )


def _row(outcome: Outcome, each: Judgement, readings: Sequence[str]) -> str:
    claim = each.claim
    why, shown_by = outcome.paper.reasons.get(claim.id, ("", ""))
    reason = (
        f"<div class=why>{escape(why)} <code>{escape(shown_by)}</code></div>"
        if why and each.verdict in EXPLAINED
        else ""
    )
    checks = "".join(
        f"<li>{escape(check.outcome)} ({escape(', '.join(check.readings) or 'all')}): {escape(check.says)}</li>"
        for check in each.checks
    )
    details = (
        f"<details><summary>{len(each.checks)} checks</summary><ul>{checks}</ul></details>"
        if len(each.checks) > 1
        else ""
    )
    note = f"<div class=why>{escape(claim.note)}</div>" if claim.note else ""
    states = "".join(
        f"<td class='r r-{each.readings[name].state}' data-r='{escape(name)}'>{each.readings[name]}</td>"
        if each.depends(name)
        else f"<td class=r data-r='{escape(name)}'>–</td>"
        for name in readings
    )
    return (
        f"<tr id='{escape(claim.id)}'><td class=id>{escape(claim.id)}</td>"
        f"<td>{escape(claim.where)}<br>{escape(claim.quantity)}: "
        f"<b>{escape(claim.claimed)}</b>{note}</td><td>{escape(each.reason)}{reason}{details}</td>{states}"
        f"<td class='v v{CLASSES[each.verdict or NOT_RUN]}'>{escape(outcome.told(each))}</td></tr>"
    )
