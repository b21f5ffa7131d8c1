"""The report's tables of what flows and packets got: distribution of the queue, losses, fairness, delays, transfers.

A column is shown where any AQM has a figure for it, so that a scenario without calls has no column for calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from aqumen._run_set import Runs
from aqumen.view.columns import FLOW_COLUMNS, LINK_COLUMNS, TRANSFER_COLUMNS, Column, defined, transfers_by_size
from aqumen.view.tables import number

__all__ = ["engines_section", "flow_section", "link_section"]

Spread = Callable[[dict[str, Any], float, int], str]


def link_section(data: dict[str, Any], link: str, window: str, spread: Spread) -> str:
    """Distribution of the queue, losses and fairness at one link.

    Args:
        data: The comparison as a dictionary.
        link: Name of a link that is recorded, such as `bottleneck`.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
        spread: Writes a summary with factor and digits.
    """
    rows = [(i, [aqm], entry["links"][link][window]) for i, (aqm, entry) in enumerate(data["aqms"].items())]
    return _table("Queue, losses and fairness", ["AQM"], LINK_COLUMNS, rows, spread)


def flow_section(data: dict[str, Any], window: str, spread: Spread) -> str:
    """What each flow group got, and the times of its transfers by their size.

    Args:
        data: The comparison as a dictionary.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
        spread: Writes a summary with factor and digits.
    """
    rows = [
        (i, [aqm, group], windows[window])
        for i, (aqm, entry) in enumerate(data["aqms"].items())
        for group, windows in entry["flows"].items()
    ]
    transfers = [
        (i, [*names, title], summaries) for i, names, metrics in rows for title, summaries in transfers_by_size(metrics)
    ]
    parts = [_wide("Flow groups", _table("Flow groups", ["AQM", "Group"], FLOW_COLUMNS, rows, spread))]
    if transfers:
        title = "Transfers by size"
        table = _table(title, ["AQM", "Group", "Size"], TRANSFER_COLUMNS, transfers, spread)
        parts.append(f"<h3>{title}</h3>{_wide(title, table)}")
    return "".join(parts)


def engines_section(comparison: Runs, window: str) -> str:
    """Where the curves of several engines are drawn over one another, and how far they are apart; empty with one.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        window: Which part of the run: `steady`, `all`, or one that the scenario names.
    """
    found = comparison.mismatch()
    if not found:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(entry["reference"])}</td><td>{escape(link)}</td>'
        + "".join(f"<td>{number(each, 1)}</td>" for each in windows[window].values())
        + "</tr>"
        for label, entry in found.items()
        for link, windows in entry["links"].items()
    )
    return (
        "<section>\n<h2>Engines over one another</h2>\n"
        '<p class="sub">Packets waiting, averaged over the seeds and over the last second.</p>\n'
        '<div id="engines" class="grid one"></div>\n'
        '<div class="wide" role="region" tabindex="0" aria-label="Engines over one another"><table>'
        '<caption class="unseen">Engines over one another</caption>'
        '<thead><tr><th class="name">Engine</th><th>against</th><th>Link</th>'
        "<th>Mean queue, difference<small>packets</small></th><th>Its deviation, difference<small>packets</small></th>"
        f"<th>Curves apart<small>packets, rms</small></th></tr></thead><tbody>{rows}</tbody></table></div>\n"
        f'<p class="note">Window {escape(window)}. Difference: the engine less the one it is held against.</p>\n'
        "</section>"
    )


def _table(
    caption: str,
    names: Sequence[str],
    columns: Sequence[Column],
    rows: Sequence[tuple[int, list[str], dict[str, Any]]],
    spread: Spread,
) -> str:
    """Rows of (colour, names, summaries); columns without any figure are left out."""
    shown = defined(columns, [metrics for _, _, metrics in rows])
    heads = "".join(f'<th class="name">{name}</th>' for name in names)
    heads += "".join(f"<th>{title}<small>{unit}</small></th>" for _, title, unit, _, _ in shown)
    body = "".join(
        f'<tr data-aqm="{escape(own[0])}" style="--c:var(--c{colour % 8})">'
        f'<th scope="row"><i class="dot"></i>{escape(own[0])}</th>{_words(own[1:])}'
        + "".join(f"<td>{spread(metrics[key], factor, digits)}</td>" for key, _, _, factor, digits in shown)
        + "</tr>"
        for colour, own, metrics in rows
    )
    said = f'<caption class="unseen">{caption}</caption>'
    return f'<table class="rank dense">{said}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _wide(label: str, table: str) -> str:
    """A table that scrolls where the page is narrow, by keyboard too."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{label}">{table}</div>'


def _words(words: Iterable[str]) -> str:
    return "".join(f'<td class="word">{escape(word)}</td>' for word in words)
