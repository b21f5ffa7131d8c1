"""Tables of the report: queue distribution, losses, fairness, delays and transfers.

A column is omitted if its metric is undefined for every AQM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from aqumen._run_set import Runs
from aqumen.explain.disagreement import QueueDifference
from aqumen.view.columns import FLOW_COLUMNS, LINK_COLUMNS, TRANSFER_COLUMNS, Column, defined, transfers_by_size
from aqumen.view.tables import number

__all__ = ["engines_section", "flow_section", "link_section"]

Spread = Callable[[Mapping[str, Any], float, int], str]


def link_section(data: dict[str, Any], link: str, window: str, spread: Spread) -> str:
    """Return the table of a link's queue distribution, losses and fairness.

    Args:
        data: The comparison as a dictionary.
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
        spread: Formats a summary, given factor and decimal places.
    """
    rows = [(i, [aqm], entry["links"][link][window]) for i, (aqm, entry) in enumerate(data["aqms"].items())]
    return _table("Queue, losses and fairness", ["AQM"], LINK_COLUMNS, rows, spread)


def flow_section(data: dict[str, Any], window: str, spread: Spread) -> str:
    """Return the tables of the flow groups and of their transfers by size.

    Args:
        data: The comparison as a dictionary.
        window: `steady`, `all`, or a window of the scenario.
        spread: Formats a summary, given factor and decimal places.
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
    """Return the plot and the table that compare engines; empty with one engine.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        window: `steady`, `all`, or a window of the scenario.
    """
    found = comparison.disagreement()
    if not found:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{escape(entry["reference"])}</td><td>{escape(link)}</td>'
        + "".join(f"<td>{number(each, 1)}</td>" for each in _differences(windows[window]))
        + "</tr>"
        for label, entry in found.items()
        for link, windows in entry["links"].items()
    )
    return (
        "<section>\n<h2>Comparison of engines</h2>\n"
        '<p class="sub">Queue length in packets, averaged over the seeds and over the last second.</p>\n'
        '<div id="engines" class="grid one"></div>\n'
        '<div class="wide" role="region" tabindex="0" aria-label="Comparison of engines"><table>'
        '<caption class="unseen">Comparison of engines</caption>'
        '<thead><tr><th class="name">Engine</th><th>Reference</th><th>Link</th>'
        "<th>Mean queue, difference<small>packets</small></th><th>Std of queue, difference<small>packets</small></th>"
        f"<th>Rms difference<small>packets</small></th></tr></thead><tbody>{rows}</tbody></table></div>\n"
        f'<p class="note">Window {escape(window)}. Difference: engine minus reference.</p>\n'
        "</section>"
    )


def _table(
    caption: str,
    names: Sequence[str],
    columns: Sequence[Column],
    rows: Sequence[tuple[int, list[str], dict[str, Any]]],
    spread: Spread,
) -> str:
    """Return an HTML table of (colour, names, summaries), without columns that are undefined in every row."""
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
    caption_html = f'<caption class="unseen">{caption}</caption>'
    return f'<table class="rank dense">{caption_html}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _wide(label: str, table: str) -> str:
    """Wrap a table so that it scrolls horizontally on narrow pages, also by keyboard."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{label}">{table}</div>'


def _words(words: Iterable[str]) -> str:
    return "".join(f'<td class="word">{escape(word)}</td>' for word in words)


def _differences(difference: QueueDifference) -> tuple[float | None, ...]:
    mean, std = difference["queue_mean_difference_pkts"], difference["queue_std_difference_pkts"]
    return mean, std, difference["curve_rms_pkts"]
