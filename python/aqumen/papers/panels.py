"""Panels of a paper's figures as SVG: queue or probability over time, and quantities over a sweep.

`[[panels]]` of `claims.toml` names what a panel of the paper shows. It is drawn for each reading, with one scale for
all: target and events of the run, values that the paper states, and curves of `experiments/PAPER/figures/*.csv`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from aqumen import _experiments
from aqumen._quantities import Run, evaluate, range_of
from aqumen._records import POINTS, Records
from aqumen._statistics import summarize
from aqumen.errors import ScenarioError
from aqumen.papers.judge import cells_of
from aqumen.papers.model import Panel, Paper

__all__ = ["PrintedCurve", "colours", "panel_html", "printed"]

COLOURS = (
    *("#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e28413", "#3a7d7c", "#6b4226", "#555b6e"),
    *("#b5179e", "#7a9e1f", "#0096c7", "#c9a227", "#9c6644", "#5f0f40"),
)
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 420, 190, 44, 8, 34, 10
SERIES = {"queue": ("queue_pkts", "queue, packets"), "probability": ("probability", "signal probability")}
"""Quantities over time: key of the series, and label of the axis."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCurve:
    """Values of a paper's figure, from its text or digitised."""

    panel: str
    """Title of the panel."""
    aqm: str
    """Name of the AQM in the paper."""
    points: tuple[Point, ...]
    """Abscissa and ordinate, in the units of the panel."""
    source: str
    """Sentence or figure that they come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    aqm: str
    points: tuple[Point, ...]
    bars: tuple[tuple[float, float, float], ...] = ()
    """Abscissa and ends of 95 % intervals."""


def colours(papers: Iterable[Paper]) -> dict[str, str]:
    """Return a colour for each AQM of the panels, equal on the whole page.

    Args:
        papers: Papers of the page.
    """
    names = dict.fromkeys(aqm for paper in papers for panel in paper.panels for aqm in panel.aqm)
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def printed(paper: str) -> list[PrintedCurve]:
    """Return the curves of `experiments/PAPER/figures/*.csv`; columns panel, aqm, x, y, source.

    Args:
        paper: Name of its folder.
    """
    folder = _experiments.folder()
    found: dict[tuple[str, str, str], list[Point]] = {}
    for path in sorted((folder / paper / "figures").glob("*.csv")) if folder else []:
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.DictReader(file), 2):
                try:
                    point = (float(row["x"]), float(row["y"]))
                    found.setdefault((row["panel"], row["aqm"], row["source"]), []).append(point)
                except (KeyError, TypeError, ValueError):
                    raise ScenarioError(
                        f"{path}, line {number}: a row needs panel, aqm, x, y (numbers) and source"
                    ) from None
    return [
        PrintedCurve(panel=panel, aqm=aqm, points=tuple(points), source=source)
        for (panel, aqm, source), points in found.items()
    ]


def panel_html(
    paper: Paper, panel: Panel, records: Records, colour: Mapping[str, str], beside: Sequence[PrintedCurve]
) -> str:
    """Return the panel in each reading as HTML; readings with equal runs share one. Empty if nothing was run.

    Args:
        paper: Paper of the panel.
        panel: Contents of the panel.
        records: Finished runs.
        colour: Colours by AQM.
        beside: Values of the paper's figures.
    """
    drawn: dict[tuple[Any, ...], tuple[list[str], list[_Line]]] = {}
    for name, reading in paper.readings.items():
        specs = tuple((reading[aqm], cells_of(panel.at, aqm, reading)) for aqm in panel.aqm)
        if specs in drawn:
            drawn[specs][0].append(name)
            continue
        lines = [
            line
            for aqm, (spec, cells) in zip(panel.aqm, specs, strict=True)
            if (line := _line(panel, aqm, spec, cells, records)) is not None
        ]
        if lines:
            drawn[specs] = ([name], lines)
    own = [each for each in beside if each.panel == panel.title and each.aqm in panel.aqm]
    stated = [*own, *_stated(paper, panel)]
    known = [point for _, lines in drawn.values() for line in lines for point in line.points]
    if not known:
        return ""
    marks = _marks(panel, records)
    known += [point for each in stated for point in each.points]
    frame = _Frame.around(known, panel, marks)
    pictures = "".join(
        _picture(frame, panel, ", ".join(names), lines, stated, colour, marks) for names, lines in drawn.values()
    )
    sources = "; ".join(dict.fromkeys(f"{each.aqm}: {each.source}" for each in stated))
    note = f"<p class=note>Stated by the paper (circles, dashed): {escape(sources)}</p>" if sources else ""
    return f"<h4>{escape(panel.title)}: {escape(_label(panel))}</h4><div class=plots>{pictures}</div>{note}"


def _label(panel: Panel) -> str:
    return SERIES[panel.of][1] if panel.of in SERIES else panel.label or panel.of


def _line(panel: Panel, aqm: str, spec: str, cells: Sequence[str], records: Records) -> _Line | None:
    if panel.of in SERIES:
        run = records.runs.get((cells[0], spec, records.seeds[0]))
        series = (run or {}).get("series", {})
        chosen = series.get(panel.link) if panel.link else next(iter(series.values()), None)
        if chosen is None:
            return None
        step = max(1, -(-len(chosen["t_s"]) // POINTS))
        over_time = zip(chosen["t_s"][::step], chosen[SERIES[panel.of][0]][::step], strict=True)
        points = tuple((t, v) for t, v in over_time if v is not None and panel.between(t))
        return _Line(aqm=aqm, points=points) if points else None
    means: list[Point] = []
    bars: list[tuple[float, float, float]] = []
    where = {key: value for key, value in (("flows", panel.flows), ("combine", panel.combine)) if value}
    for x, cell in zip(panel.x, cells, strict=True):
        values = _values(records, cell, spec, {**where, "of": panel.of, "window": panel.window})
        if values:
            summary = summarize(values, range_of(panel.of, where))
            means.append((x, sum(values) / len(values)))
            if summary["ci95"]:
                bars.append((x, summary["ci95"][0], summary["ci95"][1]))
    return _Line(aqm=aqm, points=tuple(means), bars=tuple(bars)) if means else None


def _values(records: Records, cell: str, spec: str, term: Mapping[str, Any]) -> list[float]:
    runs: list[Run] = [run for (c, s, _), run in sorted(records.runs.items()) if (c, s) == (cell, spec)]
    return [value for run in runs if (value := evaluate(run, term)) is not None]


def _stated(paper: Paper, panel: Panel) -> list[PrintedCurve]:
    """Return the values that the paper's claims state for a panel."""
    found = []
    for claim in paper.claims:
        for rule in claim.rules:
            names = rule.get("aqm", [])
            cells = rule.get("at", [])
            cells = [cells] if isinstance(cells, str) else cells
            changed = {"over", "less", "minus", "across", "terms"} & set(rule)
            of = "queue_mean_pkts" if panel.of == "queue" else panel.of
            if changed or "near" not in rule or rule["of"] != of or rule.get("flows") != panel.flows:
                continue
            if rule.get("link") not in (None, panel.link):
                continue
            at = [i for i, cell in enumerate(panel.at) if cell in cells]
            for aqm in [names] if isinstance(names, str) else names:
                if at and aqm in panel.aqm:
                    points = [(panel.x[i], rule["near"]) for i in at] if panel.x else [(math.nan, rule["near"])]
                    found.append(PrintedCurve(panel=panel.title, aqm=aqm, points=tuple(points), source=claim.where))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    target: float | None = None
    events: tuple[float, ...] = ()


def _marks(panel: Panel, records: Records) -> _Marks:
    """Return target and event times of the runs of a panel over time."""
    if panel.of not in SERIES or panel.at[0] not in records.scenarios:
        return _Marks()
    plan = records.scenarios[panel.at[0]].plan(records.seeds[0])
    windows = [span for name, span in plan["windows"].items() if name not in ("all", "steady")]
    events = {end for span in windows for end in span if 0 < end < plan["duration_s"] and panel.between(end)}
    target = float(plan["nominal"]["target_pkts"]) if panel.of == "queue" and panel.target else None
    return _Marks(target=target, events=tuple(sorted(events)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Axes."""

    x: tuple[float, float]
    y: tuple[float, float]
    log: bool

    @classmethod
    def around(cls, points: Sequence[Point], panel: Panel, marks: _Marks) -> _Frame:
        xs = [x for x, _ in points if not math.isnan(x)]
        ys = [y for _, y in points] + ([marks.target] if marks.target is not None else [])
        low, high = min(ys), max(ys)
        # The axis begins at zero unless that would hide the differences.
        low = low if low < 0 or low > high / 2 else 0.0
        return cls(x=(min(xs), max(xs)), y=(low, high if high > low else low + 1.0), log=panel.log)

    def at(self, x: float, y: float) -> Point:
        a, b = self.x
        share = 0.5 if b == a else (math.log(x / a) / math.log(b / a) if self.log else (x - a) / (b - a))
        low, high = self.y
        return LEFT + (WIDTH - LEFT - RIGHT) * share, TOP + (HEIGHT - TOP - BOTTOM) * (high - y) / (high - low)

    def ticks(self, low: float, high: float) -> list[float]:
        """Return round values within a range, three to six of them."""
        step: float = 10 ** math.floor(math.log10((high - low) / 3))
        step *= next(k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 5)
        return [step * i for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _axes(frame: _Frame, panel: Panel) -> str:
    parts = []
    for y in frame.ticks(*frame.y):
        _, at = frame.at(frame.x[0], y)
        parts.append(f"<path d='M{LEFT} {at:.1f}H{WIDTH - RIGHT}' stroke-opacity=.15 />")
        parts.append(f"<text x={LEFT - 4} y={at + 3:.1f} text-anchor=end>{y:g}</text>")
    for x in dict.fromkeys(panel.x) if panel.x else frame.ticks(*frame.x):
        at, _ = frame.at(x, frame.y[0])
        parts.append(f"<text x={min(at, WIDTH - 14):.1f} y={HEIGHT - BOTTOM + 13} text-anchor=middle>{x:g}</text>")
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f"<text x={middle:.0f} y={HEIGHT - 4} text-anchor=middle>{escape(panel.x_label or 'time, s')}</text>")
    edge = f"<path d='M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}' fill=none stroke-opacity=.5 />"
    return f"<g font-size=10 fill=currentColor stroke=none>{''.join(parts)}</g>".replace(
        "<path", "<path stroke=currentColor"
    ) + edge.replace("<path", "<path stroke=currentColor")


def _picture(
    frame: _Frame,
    panel: Panel,
    names: str,
    lines: Sequence[_Line],
    stated: Sequence[PrintedCurve],
    colour: Mapping[str, str],
    marks: _Marks,
) -> str:
    parts = [_axes(frame, panel)]
    for event in marks.events:
        at, _ = frame.at(event, frame.y[0])
        parts.append(
            f"<path class=event d='M{at:.1f} {TOP}V{HEIGHT - BOTTOM}' stroke=currentColor stroke-opacity=.3 />"
        )
    if marks.target is not None:
        _, at = frame.at(frame.x[0], marks.target)
        parts.append(
            f"<path class=target d='M{LEFT} {at:.1f}H{WIDTH - RIGHT}' stroke=currentColor stroke-dasharray='2 3'/>"
        )
    for line in lines:
        ink = colour[line.aqm]
        way = " ".join(f"{a:.1f},{b:.1f}" for a, b in (frame.at(*point) for point in line.points))
        width = 1.6 if panel.x else 1
        parts.append(f"<polyline fill=none stroke='{ink}' stroke-width={width} stroke-opacity=.85 points='{way}'/>")
        for x, low, high in line.bars:
            (at, bottom), (_, top) = frame.at(x, max(low, frame.y[0])), frame.at(x, min(high, frame.y[1]))
            parts.append(
                f"<path d='M{at:.1f} {bottom:.1f}V{top:.1f}' stroke='{ink}' stroke-width=3 stroke-opacity=.4 />"
            )
    for each in stated:
        parts.append(_said(frame, each, colour[each.aqm]))
    legend = ", ".join(f"<span style='color:{colour[line.aqm]}'>{escape(line.aqm)}</span>" for line in lines)
    label = f"{panel.title}, {_label(panel)}, {names}"
    return (
        f"<figure><svg width={WIDTH} height={HEIGHT} viewBox='0 0 {WIDTH} {HEIGHT}' role=img"
        f" aria-label='{escape(label)}'>{''.join(parts)}</svg>"
        f"<figcaption>{escape(names)}: {legend}</figcaption></figure>"
    )


def _said(frame: _Frame, each: PrintedCurve, ink: str) -> str:
    """Return a value that holds at every abscissa as a dashed line, others as circles."""
    if math.isnan(each.points[0][0]):
        _, at = frame.at(frame.x[0], each.points[0][1])
        return f"<path d='M{LEFT} {at:.1f}H{WIDTH - RIGHT}' stroke='{ink}' stroke-width=1.5 stroke-dasharray='7 4'/>"
    placed = [frame.at(*point) for point in each.points if frame.x[0] <= point[0] <= frame.x[1]]
    way = " ".join(f"{a:.1f},{b:.1f}" for a, b in placed)
    dots = "".join(f"<circle cx={a:.1f} cy={b:.1f} r=4 fill=none stroke='{ink}' stroke-width=1.5 />" for a, b in placed)
    return f"<polyline fill=none stroke='{ink}' stroke-dasharray='7 4' points='{way}'/>{dots}"
