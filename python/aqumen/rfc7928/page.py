"""HTML report of the RFC 7928 evaluation, with delay against goodput as ellipses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from markupsafe import Markup

from aqumen import _core
from aqumen._statistics import NOTE, few
from aqumen.rfc7928.evaluation import (
    KNOB_CELL,
    MEASURES,
    REFERENCE,
    SAFE,
    knobs,
    scheduled,
    sections,
    standing,
)
from aqumen.rfc7928.requirements import shown
from aqumen.view.report.template import render
from aqumen.view.tables import number, spread

__all__ = ["page"]

COLOURS = ["#555b6e", "#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e28413", "#3a7d7c", "#6b4226"]
WIDTH, HEIGHT, LEFT, BOTTOM = 360.0, 220.0, 46.0, 26.0
LETTER, LINE = 6.0, 11.0
"""Approximate width of a letter and height of a line of a label, pixels."""


def page(
    table: Sequence[dict[str, Any]],
    aqms: Sequence[str],
    seeds: int,
    command: str,
    spent: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    safe: Mapping[str, Sequence[dict[str, Any]]] = MappingProxyType({}),
    stability: Sequence[dict[str, Any]] = (),
) -> str:
    """Return the report as one HTML file: delay against goodput and a table for each section.

    Args:
        table: Result of `evaluation.rows`.
        aqms: AQMs in addition to the reference.
        seeds: Number of seeds.
        command: Command that produced it.
        spent: Cost of each AQM, if measured.
        safe: Safe range of each parameter, if measured.
        stability: Result of `margins.margins`.
    """
    names = list(dict.fromkeys([REFERENCE, *aqms, *(row["aqm"] for row in table)]))
    found = []
    for section in sections():
        own = [row for row in table if row["section"] == section.number]
        if not own:
            continue
        places = list(dict.fromkeys((row["cell"], row["window"]) for row in own))
        drawn = [
            _picture([row for row in own if (row["cell"], row["window"]) == place], names, *place) for place in places
        ]
        found.append(
            {
                "number": section.number,
                "title": f"{section.number} {section.title}",
                "pictures": [picture for picture in drawn if picture is not None],
                "measures": [measure for measure in MEASURES if any(row["measured"][measure[0]]["n"] for row in own)],
                "places": [
                    (
                        f"{cell.partition('/')[2]}{'' if len(section.windows) == 1 else f', {window}'}",
                        [row for row in own if (row["cell"], row["window"]) == (cell, window)],
                    )
                    for cell, window in places
                ],
            }
        )
    own_spent = {aqm: spent[aqm] for aqm in (REFERENCE, *aqms) if aqm in spent}
    numbers = [row["section"] for row in table]
    numbers += (["11"] if own_spent else []) + (["12"] if knobs(aqms) else [])
    return render(
        "aqumen.rfc7928",
        "evaluation.html",
        css=(files("aqumen.view.report") / "plain.css").read_text("utf-8"),
        aqms=aqms,
        seeds=seeds,
        standing=standing(table),
        sections=found,
        spent=own_spent,
        stability=[row for row in stability if row["aqm"] in aqms],
        requirements=shown(numbers),
        unscheduled=[aqm for aqm in aqms if scheduled(aqm) is None],
        note=NOTE if any(few(told) for row in table for told in row["measured"].values()) else "",
        knobs=knobs(aqms),
        safe={aqm: safe[aqm] for aqm in aqms if safe.get(aqm)},
        knob_cell=KNOB_CELL,
        share=f"{SAFE:.0%}",
        spread=spread,
        number=number,
        range_of=_range,
        command=command,
        version=_core.__version__,
    )


def _range(param: dict[str, Any]) -> str:
    if param["choices"]:
        return ", ".join(str(choice).lower() for choice in param["choices"])
    low, high = param["min"], param["max"]
    ends = [
        f"{word if bound['allowed'] else strict} {bound['value']:g}"
        for bound, word, strict in ((low, "at least", "above"), (high, "at most", "below"))
        if bound is not None
    ]
    return ", ".join(ends) or "any"


def _picture(own: Sequence[dict[str, Any]], names: Sequence[str], cell: str, window: str) -> tuple[str, Markup] | None:
    """Return title and drawing of delay against goodput; `None` without samples."""
    drawn = [(row["aqm"], row["ellipse"]) for row in own if row["ellipse"] is not None]
    if not drawn:
        return None
    slow = max(e["delay_s"] + 2 * e["delay_std_s"] for _, e in drawn) or 1e-3
    high = max(e["goodput_bps"] + 2 * e["goodput_std_bps"] for _, e in drawn) or 1.0
    low = min(e["goodput_bps"] - 2 * e["goodput_std_bps"] for _, e in drawn)
    low, high = max(0.0, low - 0.1 * (high - low)), high + 0.1 * (high - low) + 1e-9

    def at(delay: float, goodput: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 8) * (1 - delay / slow)
        return x, 6 + (HEIGHT - BOTTOM - 6) * (1 - (goodput - low) / (high - low))

    shape = Markup(
        '<polygon points="{path}" fill="{colour}" fill-opacity=".25" stroke="{colour}"/>'
        '<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'
    )
    text = Markup('<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="currentColor">{aqm}</text>')
    shapes, labels = [], []
    taken: list[tuple[float, float, float]] = []
    for aqm, e in drawn:
        # The Cholesky factor of the covariance matrix maps the unit circle to the ellipse.
        a, d, b = e["delay_std_s"], e["goodput_std_bps"], e["covariance"]
        slope = b / a if a else 0.0
        rest = math.sqrt(max(0.0, d * d - slope * slope))
        ring = [(math.cos(t * math.pi / 24), math.sin(t * math.pi / 24)) for t in range(48)]
        corners = [at(e["delay_s"] + a * c, e["goodput_bps"] + slope * c + rest * s) for c, s in ring]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        x, y = at(e["delay_s"], e["goodput_bps"])
        shapes.append(shape.format(path=path, colour=COLOURS[names.index(aqm) % len(COLOURS)], x=x, y=y))
        # Prediction its point, inside the picture, and below the labels that are there already.
        wide = LETTER * len(aqm)
        left, base = min(x + 4, WIDTH - wide), y - 4
        while any(left < right and begin < left + wide and abs(base - line) < LINE for begin, right, line in taken):
            base += 1
        taken.append((left, left + wide, base))
        labels.append(text.format(x=left, y=base, aqm=aqm))
    axes = Markup(
        f'<path d="M{LEFT} 6V{HEIGHT - BOTTOM}H{WIDTH - 8}" fill="none" stroke="currentColor" stroke-opacity=".4"/>'
        f'<g font-size="10" fill="currentColor"><text x="2" y="14">{high / 1e6:.2f}</text>'
        f'<text x="2" y="{HEIGHT - BOTTOM}">{low / 1e6:.2f}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 8}">{slow * 1e3:.1f} ms</text>'
        f'<text x="{WIDTH - 34}" y="{HEIGHT - 8}">0 ms</text></g>'
    )
    title = f"{cell.partition('/')[2]}, {window}: goodput in Mbit/s over queueing delay"
    return title, axes + Markup("").join([*shapes, *labels])
