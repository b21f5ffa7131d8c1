"""RFC 7928's evaluation of AQMs: its scenarios under each AQM and under DropTail, the reference that it asks for.

There is nothing to be judged here: the answer is what each AQM does, section by section, with intervals over the
seeds, and delay against goodput as the RFC's section 2.7 draws it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from aqumen import _core
from aqumen.claims.quantities import Run
from aqumen.claims.records import Records, Wanted
from aqumen.comparison import summarize
from aqumen.scenario import Scenario

__all__ = ["MEASURES", "REFERENCE", "Section", "page", "rows", "sections", "wanted"]

REFERENCE = "droptail"
COLOURS = ["#555b6e", "#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e28413", "#3a7d7c", "#6b4226"]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the RFC."""

    number: str
    """Its number."""
    title: str
    """What it asks."""
    cells: tuple[str, ...]
    """The cells that answer."""
    windows: tuple[str, ...] = ("steady",)
    """The windows that count."""


def _cells(name: str) -> tuple[str, ...]:
    scenario = Scenario.load(f"rfc7928/{name}")
    found = [f"rfc7928/{name}@{cell}" for cell in scenario.cells] or [f"rfc7928/{name}"]
    for variant in scenario.variants:
        # ECN and other initial windows at the whole scenario; at the points of an axis they would be many and alike.
        if not scenario.cells or name == "congestion":
            found += [f"{cell}{',' if '@' in cell else '@'}{variant}" for cell in found if variant not in cell]
    return tuple(dict.fromkeys(found))


def sections() -> list[Section]:
    """The sections with what answers them, in the order of the RFC."""
    load = ("mild", "medium", "heavy", "mild-again")
    capacity = ("steady", "narrow", "wide", "narrow-again")
    return [
        Section("5.1", "TCP-friendly senders, same and different initial windows", _cells("tcp-friendly")),
        Section("5.2", "aggressive senders", _cells("aggressive")),
        Section("5.3", "unresponsive senders", _cells("unresponsive")),
        Section("5.4", "less than best effort", _cells("less-than-best-effort")),
        Section("6", "fairness of round-trip times", _cells("rtt-fairness")),
        Section("7", "bursts", _cells("bursts")),
        Section("8.2.2", "mild, medium and heavy congestion", _cells("congestion")),
        Section("8.2.5", "congestion that varies", _cells("varying-load"), load),
        Section("8.2.6", "capacity that varies", _cells("varying-capacity"), capacity),
        Section("9.1", "a mix of traffic", _cells("mix")),
        Section("9.2", "traffic both ways", _cells("bidirectional")),
        Section("10", "an AQM after an AQM", _cells("two-aqms")),
    ]


MEASURES = (
    ("goodput_bps", "goodput", "Mbit/s", 1e-6, 2),
    ("utilization", "utilisation", "%", 100, 1),
    ("sojourn_mean_s", "queueing delay", "ms", 1000, 1),
    ("sojourn_p95_s", "its p95", "ms", 1000, 1),
    ("loss_ratio", "lost", "%", 100, 2),
    ("mark_ratio", "marked", "%", 100, 2),
    ("sync_index", "synchronisation", "", 1, 3),
    ("goodput_ratio", "second / first group", "", 1, 2),
    ("page_load_mean_s", "page load", "s", 1, 2),
    ("mos", "voice, MOS", "", 1, 2),
)
"""Key, title, unit, factor, digits of what is told of each run."""


def wanted(aqms: Sequence[str], quick: bool) -> Wanted:
    """What is to be run.

    Args:
        aqms: The AQMs, beside the reference.
        quick: Leave out two of three round-trip times.
    """
    found: Wanted = {}
    for section in sections():
        cells = section.cells[::3] if quick and section.number == "6" else section.cells
        for cell in cells:
            found[cell] = list(dict.fromkeys([REFERENCE, *aqms]))
    return found


def figures(run: Run, window: str) -> dict[str, float | None]:
    """What is told of a run, in a window; the link is the first one recorded.

    Args:
        run: The run.
        window: The window.
    """
    link = next(iter(run["links"].values()))[window]
    flows = {name: windows[window] for name, windows in run["flows"].items()}
    goodputs = [group["goodput_bps"] for group in flows.values()]

    def first(key: str) -> float | None:
        return next((group[key] for group in flows.values() if group[key] is not None), None)

    return {
        "goodput_bps": sum(goodputs),
        "utilization": link["utilization"],
        "sojourn_mean_s": link["sojourn_mean_s"],
        "sojourn_p95_s": link["sojourn_p95_s"],
        "loss_ratio": _sum(link["early_drop_ratio"], link["overflow_drop_ratio"]),
        "mark_ratio": link["mark_ratio"],
        "sync_index": link["sync_index"],
        "goodput_ratio": goodputs[1] / goodputs[0] if len(goodputs) > 1 and goodputs[0] else None,
        "page_load_mean_s": first("page_load_mean_s"),
        "mos": first("mos"),
    }


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def rows(records: Records, aqms: Sequence[str]) -> list[dict[str, Any]]:
    """The table: a row for each section, cell, window and AQM, with mean, deviation and interval of each measure.

    Args:
        records: The runs.
        aqms: The AQMs, beside the reference.
    """
    found = []
    for section in sections():
        for cell in section.cells:
            for window in section.windows:
                for aqm in dict.fromkeys([REFERENCE, *aqms]):
                    each = [figures(run, window) for _, run in records.of(cell, aqm)]
                    if each:
                        measured = {key: summarize([one[key] for one in each]) for key, *_ in MEASURES}
                        pairs = [(one["sojourn_mean_s"], one["goodput_bps"]) for one in each]
                        found.append(
                            {
                                "section": section.number,
                                "cell": cell,
                                "window": window,
                                "aqm": aqm,
                                "measured": measured,
                                "ellipse": ellipse([(x, y) for x, y in pairs if x is not None and y is not None]),
                            }
                        )
    return found


def ellipse(points: Sequence[tuple[float, float]]) -> dict[str, float] | None:
    """Delay against goodput over the seeds: the ellipse of one standard deviation of their normal distribution.

    Args:
        points: Delay in seconds and goodput in bit/s of each seed.
    """
    n = len(points)
    if n < 2:
        return None
    mx, my = (sum(p[i] for p in points) / n for i in (0, 1))
    sxx = sum((x - mx) ** 2 for x, _ in points) / (n - 1)
    syy = sum((y - my) ** 2 for _, y in points) / (n - 1)
    sxy = sum((x - mx) * (y - my) for x, y in points) / (n - 1)
    return {"delay_s": mx, "goodput_bps": my, "delay_std_s": sxx**0.5, "goodput_std_bps": syy**0.5, "covariance": sxy}


def page(table: Sequence[dict[str, Any]], aqms: Sequence[str], seeds: int, command: str) -> str:
    """The report as one HTML file: for each section delay against goodput, and the table.

    Args:
        table: The rows.
        aqms: The AQMs, beside the reference.
        seeds: How many seeds.
        command: The command that made it.
    """
    names = list(dict.fromkeys([REFERENCE, *aqms]))
    css = (files("aqumen.claims") / "page.css").read_text("utf-8")
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>RFC 7928</title><style>{css}</style><h1>RFC 7928: {escape(', '.join(aqms))} beside DropTail</h1>"
        f"<p>{seeds} seeds, mean ± half the 95 % interval. In the pictures each AQM is an ellipse of one standard"
        " deviation over the seeds; the axis of delay is reversed, so that up and to the right is better (section"
        " 2.7).</p>"
    ]
    for section in sections():
        own = [row for row in table if row["section"] == section.number]
        if not own:
            continue
        parts.append(f"<h2>{section.number} {escape(section.title)}</h2><div class=plots>")
        places = list(dict.fromkeys((row["cell"], row["window"]) for row in own))
        for cell, window in places[:6]:
            parts.append(_picture([r for r in own if (r["cell"], r["window"]) == (cell, window)], names, cell, window))
        shown = [m for m in MEASURES if any(row["measured"][m[0]]["n"] for row in own)]
        heads = "".join(f"<th>{escape(title)}<br>{escape(unit)}</th>" for _, title, unit, _, _ in shown)
        parts.append(f"</div><table><tr><th>cell, window</th><th>AQM</th>{heads}</tr>")
        for row in own:
            cells = "".join(f"<td class=n>{_spread(row['measured'][key], f, d)}</td>" for key, _, _, f, d in shown)
            place = f"{row['cell'].partition('/')[2]}, {row['window']}"
            parts.append(f"<tr><td class=id>{escape(place)}</td><td>{escape(row['aqm'])}</td>{cells}</tr>")
        parts.append("</table>")
    parts.append(f"<h2>Made by</h2><p><code>{escape(command)}</code>, aqumen {_core.__version__}</p></html>\n")
    return "".join(parts)


def _spread(summary: dict[str, Any], factor: float, digits: int) -> str:
    if not summary["n"]:
        return "–"
    half = "" if summary["ci95"] is None else f" ± {(summary['ci95'][1] - summary['ci95'][0]) / 2 * factor:.{digits}f}"
    return f"{summary['mean'] * factor:.{digits}f}{half}"


def _picture(own: Sequence[dict[str, Any]], names: Sequence[str], cell: str, window: str) -> str:
    """Delay against goodput."""
    width, height, left, bottom = 360.0, 220.0, 46.0, 26.0
    drawn = [(row["aqm"], row["ellipse"]) for row in own if row["ellipse"] is not None]
    if not drawn:
        return ""
    slow = max(e["delay_s"] + 2 * e["delay_std_s"] for _, e in drawn) or 1e-3
    high = max(e["goodput_bps"] + 2 * e["goodput_std_bps"] for _, e in drawn) or 1.0
    low = min(e["goodput_bps"] - 2 * e["goodput_std_bps"] for _, e in drawn)
    low, high = max(0.0, low - 0.1 * (high - low)), high + 0.1 * (high - low) + 1e-9

    def at(delay: float, goodput: float) -> tuple[float, float]:
        x = left + (width - left - 8) * (1 - delay / slow)
        return x, 6 + (height - bottom - 6) * (1 - (goodput - low) / (high - low))

    shapes = []
    for aqm, e in drawn:
        colour = COLOURS[names.index(aqm) % len(COLOURS)]
        # The square root of the covariance matrix takes the unit circle to the ellipse.
        a, d, b = e["delay_std_s"], e["goodput_std_bps"], e["covariance"]
        slope = b / a if a else 0.0
        rest = math.sqrt(max(0.0, d * d - slope * slope))
        ring = [(math.cos(t * math.pi / 24), math.sin(t * math.pi / 24)) for t in range(48)]
        corners = [at(e["delay_s"] + a * c, e["goodput_bps"] + slope * c + rest * s) for c, s in ring]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        x, y = at(e["delay_s"], e["goodput_bps"])
        shapes.append(
            f"<polygon points='{path}' fill='{colour}' fill-opacity=.25 stroke='{colour}'/><circle"
            f" cx={x:.1f} cy={y:.1f} "
            f"r=2.5 fill='{colour}'/><text x={x + 4:.1f} y={y - 4:.1f} font-size=10"
            f" fill='{colour}'>{escape(aqm)}</text>"
        )
    axes = (
        f"<path d='M{left} 6V{height - bottom}H{width - 8}' fill=none stroke=currentColor stroke-opacity=.4 />"
        f"<g font-size=10 fill=currentColor><text x=2 y=14>{high / 1e6:.2f}</text>"
        f"<text x=2 y={height - bottom}>{low / 1e6:.2f}</text><text x={left} y={height - 8}>{slow * 1e3:.1f} ms</text>"
        f"<text x={width - 34} y={height - 8}>0 ms</text></g>"
    )
    title = f"{cell.partition('/')[2]}, {window}: goodput in Mbit/s over queueing delay"
    return (
        f"<figure><svg width={width:.0f} height={height:.0f} viewBox='0 0 {width:.0f} {height:.0f}' role=img "
        f"aria-label='{escape(title)}'>{axes}{''.join(shapes)}</svg><figcaption>{escape(title)}</figcaption></figure>"
    )
