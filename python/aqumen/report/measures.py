"""The report's tables of what flows and packets got: distribution of the queue, losses, fairness, delays, transfers.

A column is shown where any AQM has a figure for it, so that a scenario without calls has no column for calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from aqumen.comparison import Comparison
from aqumen.mismatch import mismatch
from aqumen.tables import number

__all__ = ["engines_section", "flow_section", "link_section"]

Column = tuple[str, str, str, float, int]
"""Key, title, unit, factor, digits."""

LINK_COLUMNS: Sequence[Column] = (
    ("queue_p5_pkts", "Queue, p5", "packets", 1, 0),
    ("queue_p50_pkts", "p50", "packets", 1, 0),
    ("queue_p95_pkts", "p95", "packets", 1, 0),
    ("queue_iae_pkts_s", "Error, absolute", "packets s", 1, 0),
    ("queue_ise_pkts2_s", "Error, squared", "packets² s", 1, 0),
    ("loss_run_mean_pkts", "Losses in a row", "mean", 1, 2),
    ("loss_run_max_pkts", "longest", "packets", 1, 0),
    ("loss_dispersion", "Dispersion of losses", "variance / mean", 1, 2),
    ("sync_index", "Synchronisation", "0 to 1", 1, 3),
    ("rtt_fairness_slope", "RTT fairness", "slope", 1, 2),
    ("fairness_mean", "Fairness in 1 s", "Jain", 1, 3),
    ("convergence_s", "Fair after", "s", 1, 1),
)
FLOW_COLUMNS: Sequence[Column] = (
    ("throughput_bps", "Throughput", "Mbit/s", 1e-6, 3),
    ("goodput_bps", "Goodput", "Mbit/s", 1e-6, 3),
    ("jain_fairness", "Jain", "", 1, 3),
    ("rtt_mean_s", "RTT", "ms", 1000, 1),
    ("retransmitted_ratio", "Resent", "%", 100, 2),
    ("delay_mean_s", "Delay, mean", "ms", 1000, 1),
    ("delay_p95_s", "p95", "ms", 1000, 1),
    ("delay_p99_s", "p99", "ms", 1000, 1),
    ("jitter_mean_s", "Jitter", "ms", 1000, 2),
    ("loss_ratio", "Lost", "%", 100, 2),
    ("mos", "MOS", "", 1, 2),
    ("frame_loss_ratio", "Frames lost", "%", 100, 2),
    ("page_load_mean_s", "Page load, mean", "s", 1, 2),
    ("page_load_p95_s", "p95", "s", 1, 2),
    ("refused", "Refused", "", 1, 0),
)
SIZES = (
    ("under_10kB", "below 10 kB"),
    ("10kB_100kB", "10 to 100 kB"),
    ("100kB_1MB", "100 kB to 1 MB"),
    ("over_1MB", "1 MB and more"),
)
TRANSFER_COLUMNS: Sequence[Column] = (
    ("count", "Transfers", "finished", 1, 0),
    ("mean_s", "Time, mean", "s", 1, 3),
    ("p50_s", "p50", "s", 1, 3),
    ("p95_s", "p95", "s", 1, 3),
    ("p99_s", "p99", "s", 1, 3),
    ("slowdown", "Slowdown", "times", 1, 2),
)
Spread = Callable[[dict[str, Any], float, int], str]


def link_section(data: dict[str, Any], link: str, window: str, spread: Spread) -> str:
    """Distribution of the queue, losses and fairness at one link.

    Args:
        data: The comparison as a dictionary.
        link: The link.
        window: The window.
        spread: Writes a summary with factor and digits.
    """
    rows = [(i, [aqm], entry["links"][link][window]) for i, (aqm, entry) in enumerate(data["aqms"].items())]
    return _table(["AQM"], LINK_COLUMNS, rows, spread)


def flow_section(data: dict[str, Any], window: str, spread: Spread) -> str:
    """What each flow group got, and the times of its transfers by their size.

    Args:
        data: The comparison as a dictionary.
        window: The window.
        spread: Writes a summary with factor and digits.
    """
    rows = [
        (i, [aqm, group], windows[window])
        for i, (aqm, entry) in enumerate(data["aqms"].items())
        for group, windows in entry["flows"].items()
    ]
    transfers = [
        (i, [*names, title], {key: metrics[f"fct_{size}_{key}"] for key, *_ in TRANSFER_COLUMNS})
        for i, names, metrics in rows
        for size, title in SIZES
        if (metrics[f"fct_{size}_count"]["mean"] or 0) > 0
    ]
    parts = [_table(["AQM", "Group"], FLOW_COLUMNS, rows, spread)]
    if transfers:
        parts.append("<h3>Transfers by size</h3>" + _table(["AQM", "Group", "Size"], TRANSFER_COLUMNS, transfers, spread))
    return "".join(f'<div class="wide">{part}</div>' if part.startswith("<table") else _wide(part) for part in parts)


def engines_section(comparison: Comparison, window: str) -> str:
    """Where the curves of several engines are drawn over one another, and how far they are apart; empty with one engine.

    Args:
        comparison: The comparison.
        window: The window.
    """
    found = mismatch(comparison.results)
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
        '<div class="wide"><table class="plain-numbers"><thead><tr><th class="name">Engine</th><th>against</th><th>Link</th>'
        "<th>Mean queue, difference<small>packets</small></th><th>Its deviation, difference<small>packets</small></th>"
        f"<th>Curves apart<small>packets, rms</small></th></tr></thead><tbody>{rows}</tbody></table></div>\n"
        f'<p class="note">Window {escape(window)}. Difference: the engine less the one it is held against.</p>\n</section>'
    )


def _wide(part: str) -> str:
    head, table, rest = part.partition("<table")
    return f'{head}<div class="wide">{table}{rest}</div>'


def _table(
    names: Sequence[str],
    columns: Sequence[Column],
    rows: Sequence[tuple[int, list[str], dict[str, Any]]],
    spread: Spread,
) -> str:
    """Rows of (colour, names, summaries); columns without any figure are left out."""
    shown = [column for column in columns if any(metrics[column[0]]["n"] for _, _, metrics in rows)]
    heads = "".join(f'<th class="name">{name}</th>' for name in names)
    heads += "".join(f"<th>{title}<small>{unit}</small></th>" for _, title, unit, _, _ in shown)
    body = "".join(
        f'<tr data-aqm="{escape(own[0])}" style="--c:var(--c{colour % 8})">'
        f'<th scope="row"><i class="dot"></i>{escape(own[0])}</th>{_words(own[1:])}'
        + "".join(f"<td>{spread(metrics[key], factor, digits)}</td>" for key, _, _, factor, digits in shown)
        + "</tr>"
        for colour, own, metrics in rows
    )
    return f'<table class="rank"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def _words(words: Iterable[str]) -> str:
    return "".join(f'<td class="word">{escape(word)}</td>' for word in words)
