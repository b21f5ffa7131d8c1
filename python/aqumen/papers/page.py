"""HTML report of a reproduction: claims and measurements, figure by figure as in the papers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

from aqumen import _core
from aqumen._records import Records
from aqumen.papers.curves import BOTTOM, COLOURS, HEIGHT, LEFT, WIDTH, curves
from aqumen.papers.judge import needs
from aqumen.papers.model import VERDICTS
from aqumen.papers.study import Outcome

__all__ = ["report_html"]

SHOWN = 6
"""Maximum number of visible plots of a figure; the others are collapsed."""


def report_html(outcomes: Sequence[Outcome], records: Records, command: str) -> str:
    """Return the report as HTML text.

    Args:
        outcomes: Papers with their verdicts.
        records: Finished runs, for the plots.
        command: Command that produced it.
    """
    first = outcomes[0]
    seeds = ", ".join(str(n) for n in sorted({outcome.seeds for outcome in outcomes}))
    css = (files("aqumen.view.report") / "plain.css").read_text("utf-8")
    heads = "".join(f"<th>{name}</th>" for name in (*VERDICTS, "not judged"))
    rows = "".join(
        f"<tr><td><a href='#{outcome.paper.name}'>{outcome.paper.name}</a></td>"
        + "".join(f"<td class=n>{outcome.counts().get(name, 0)}</td>" for name in (*VERDICTS, "not judged"))
        + "</tr>"
        for outcome in outcomes
    )
    quick = (
        "<p>A quick run leaves out slow experiments, and three seeds do not decide every comparison;"
        " such claims are not judged.</p>"
        if first.quick
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
        f"<title>Reproduction of papers</title><style>{css}</style><h1>Reproduction of papers, claim by claim</h1>"
        f"<p>{seeds} seeds, engine packet. Each claim has a rule in"
        f" <code>experiments/PAPER/claims.toml</code>, written before the"
        f" run, which alone decides the verdict.</p>{quick}{record}"
        "<div class=wide role=region tabindex=0 aria-label='Verdicts by paper'><table class=counts>"
        f"<tr><th>paper</th>{heads}</tr>{rows}</table></div>"
    ]
    parts += [_paper(outcome, records) for outcome in outcomes]
    parts.append(f"<h2>Command</h2><p><code>{escape(command)}</code>, aqumen {_core.__version__}</p></html>\n")
    return "".join(parts)


def _paper(outcome: Outcome, records: Records) -> str:
    paper = outcome.paper
    readings = "".join(f"<li><b>{escape(name)}</b>: {escape(about)}</li>" for name, about in paper.about.items())
    parts = [f"<h2 id='{paper.name}'>{escape(paper.title)}</h2><p>Read as:</p><ul>{readings}</ul>"]
    figures: dict[str, list[int]] = {}
    for i, each in enumerate(outcome.judgements):
        figures.setdefault(each.claim.figure, []).append(i)
    for figure, members in figures.items():
        claims = [outcome.judgements[i] for i in members]
        inside = type(paper)(
            name=paper.name,
            title="",
            readings=paper.readings,
            about={},
            claims=tuple(c.claim for c in claims),
            reasons={},
            recorded={},
        )
        drawn = [plot for cell, specs in needs(inside).items() if (plot := _plot(records, cell, specs))]
        rest = drawn[SHOWN:]
        plots = curves(paper, inside.claims, records.runs) + "".join(drawn[:SHOWN])
        parts.append(f"<h3>{escape(figure)}</h3><div class=plots>{plots}</div>")
        if rest:
            parts.append(
                f"<details><summary>{len(rest)} more networks</summary><div class=plots>{''.join(rest)}</div></details>"
            )
        parts.append(
            "<div class=wide><table class=claims>"
            "<tr><th>claim</th><th>the paper</th><th>measured</th><th>verdict</th></tr>"
        )
        for each in claims:
            claim = each.claim
            index = VERDICTS.index(each.verdict) if each.verdict else 5
            why, shown_by = paper.reasons.get(claim.id, ("", ""))
            reason = (
                f"<div class=why>{escape(why)} <code>{escape(shown_by)}</code></div>"
                if why and each.verdict in ("partly", "not reproduced")
                else ""
            )
            checks = "".join(
                f"<li>{escape(check.outcome)} ({escape(', '.join(check.readings))}): {escape(check.says)}</li>"
                for check in each.checks
            )
            details = (
                f"<details><summary>{len(each.checks)} checks</summary><ul>{checks}</ul></details>"
                if len(each.checks) > 1
                else ""
            )
            note = f"<div class=why>{escape(claim.note)}</div>" if claim.note else ""
            parts.append(
                f"<tr><td class=id>{escape(claim.id)}</td><td>{escape(claim.where)}<br>{escape(claim.quantity)}: "
                f"<b>{escape(claim.claimed)}</b>{note}</td><td>{escape(each.reason)}{reason}{details}</td>"
                f"<td class='v v{index}'>{escape(each.verdict or 'not judged')}</td></tr>"
            )
        parts.append("</table></div>")
    return "".join(parts)


def _plot(records: Records, cell: str, specs: Sequence[str]) -> str:
    """Plot the queue of a cell's first recorded link over time, for each AQM, first seed."""
    lines, legend, end, top = [], [], 0.0, 1.0
    for spec in specs[:8]:
        run = records.runs.get((cell, spec, records.seeds[0]))
        if run is None or "series" not in run or ":" in spec:
            continue
        link = next(iter(run["series"]))
        series = run["series"][link]
        end = max(end, series["t_s"][-1])
        top = max(top, max(series["queue_pkts"]))
        lines.append((spec, series))
    if not lines:
        return ""
    drawn = []
    for i, (spec, series) in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(
            f"{LEFT + (WIDTH - LEFT) * t / end:.1f},{(HEIGHT - BOTTOM) * (1 - q / top) + 4:.1f}"
            for t, q in zip(series["t_s"], series["queue_pkts"], strict=True)
        )
        drawn.append(f"<polyline fill=none stroke='{colour}' stroke-width=1 stroke-opacity=.8 points='{points}'/>")
        legend.append(f"<span style='color:{colour}'>{escape(spec)}</span>")
    axis = (
        f"<g font-size=10 fill=currentColor><text x=2 y=12>{top:.0f}</text><text x=2"
        f" y={HEIGHT - BOTTOM + 4}>0 pkt</text>"
        f"<text x={WIDTH - 34} y={HEIGHT - 4}>{end:.0f} s</text></g>"
        f"<path d='M{LEFT} 4V{HEIGHT - BOTTOM + 4}H{WIDTH}' fill=none stroke=currentColor stroke-opacity=.4 />"
    )
    return (
        f"<figure><svg width={WIDTH} height={HEIGHT} viewBox='0 0 {WIDTH} {HEIGHT}' role=img"
        f" aria-label='queue over time'>"
        f"{axis}{''.join(drawn)}</svg><figcaption>{escape(cell)}: {', '.join(legend)}</figcaption></figure>"
    )
