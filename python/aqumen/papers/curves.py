"""Curves of a figure's claims over the cells of a sweep, one for each AQM, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from aqumen._quantities import Run, evaluate, range_of
from aqumen._statistics import summarize
from aqumen.errors import ScenarioError
from aqumen.papers.judge import Term, questions
from aqumen.papers.model import Claim, Paper

__all__ = ["BOTTOM", "COLOURS", "HEIGHT", "LEFT", "WIDTH", "curves"]

COLOURS = ["#1b6ca8", "#d1495b", "#2e933c", "#8d5a97", "#e28413", "#3a7d7c", "#6b4226", "#555b6e"]
WIDTH, HEIGHT, LEFT, BOTTOM = 520, 190, 40, 22
CELLS = 3
"""Minimum number of cells of a curve."""
Runs = Mapping[tuple[str, str, int], Run]
LinesByAqm = dict[str, dict[str, Term]]
"""Terms by AQM and cell."""


def curves(paper: Paper, claims: Iterable[Claim], runs: Runs) -> str:
    """Return plots of each claimed quantity over the cells of a sweep: means over the seeds with 95 % intervals.

    Args:
        paper: Paper whose interpretations apply.
        claims: Claims of one figure.
        runs: Finished runs by cell, AQM and seed.
    """
    asked: dict[tuple[str, ...], LinesByAqm] = {}
    for claim in claims:
        for question in questions(paper, claim):
            for term in question.terms:
                for cell in term.cells:
                    experiment, _, labels = cell.partition("@")
                    _, _, variant = labels.partition(",")
                    if labels:
                        where = ", ".join(str(value) for value in term.where.values())
                        key = (term.of, term.window, where, experiment, variant)
                        asked.setdefault(key, {}).setdefault(term.spec, {})[cell] = term
    drawn = (_plot(key, lines, runs) for key, lines in asked.items())
    return "".join(plot for plot in drawn if plot)


def _points(terms: Mapping[str, Term], runs: Runs, spec: str) -> dict[str, tuple[float, float, float]]:
    """Return mean and interval in each cell."""
    points = {}
    for cell, term in terms.items():
        found = [run for (other, name, _), run in sorted(runs.items(), key=_seed) if (other, name) == (cell, spec)]
        try:
            values = [evaluate(run, {**term.where, "of": term.of, "window": term.window}) for run in found]
        except ScenarioError:
            continue
        known = [value for value in values if value is not None]
        if known:
            summary = summarize(known, range_of(term.of, term.where))
            mean = summary["mean"]
            points[cell] = (mean, *(summary["ci95"] or (mean, mean)))
    return points


def _seed(entry: tuple[tuple[str, str, int], Run]) -> int:
    return entry[0][2]


def _plot(key: tuple[str, ...], lines: LinesByAqm, runs: Runs) -> str:
    of, window, where, experiment, variant = key
    by_spec = {spec: _points(terms, runs, spec) for spec, terms in list(lines.items())[: len(COLOURS)]}
    cells = list(dict.fromkeys(cell for terms in lines.values() for cell in terms))
    cells = [cell for cell in cells if any(cell in points for points in by_spec.values())]
    if len(cells) < CELLS:
        return ""
    known = [value for points in by_spec.values() for value in points.values()]
    top, low = max(high for _, _, high in known), min(low for _, low, _ in known)
    # The axis begins at zero unless that would hide the differences.
    low = low if low < 0 or low > top / 2 else 0.0
    top = top if top > low else low + 1.0
    right, depth = WIDTH - 30, HEIGHT - BOTTOM

    def x(cell: str) -> float:
        return LEFT + 10 + (right - LEFT - 10) * cells.index(cell) / (len(cells) - 1)

    def y(value: float) -> float:
        return 4 + depth * (top - value) / (top - low)

    drawn, legend = [], []
    for colour, (spec, points) in zip(COLOURS, by_spec.items(), strict=False):
        if not points:
            continue
        there = [cell for cell in cells if cell in points]
        way = " ".join(f"{x(cell):.1f},{y(points[cell][0]):.1f}" for cell in there)
        bars = "".join(f"M{x(cell):.1f} {y(points[cell][1]):.1f}V{y(points[cell][2]):.1f}" for cell in there)
        drawn.append(
            f"<polyline fill=none stroke='{colour}' stroke-width=1.5 points='{way}'/>"
            f"<path d='{bars}' stroke='{colour}' stroke-width=3 stroke-opacity=.5 />"
        )
        legend.append(f"<span style='color:{colour}'>{escape(spec)}</span>")
    labels = "".join(
        f"<text x={x(cell):.0f} y={HEIGHT - 4} text-anchor=middle>"
        f"{escape(cell.partition('@')[2].partition(',')[0])}</text>"
        for cell in cells
    )
    axis = (
        f"<g font-size=10 fill=currentColor><text x=2 y=12>{top:.3g}</text><text x=2 y={y(low):.0f}>{low:.3g}</text>"
        f"{labels}</g><path d='M{LEFT} 4V{y(low):.0f}H{WIDTH}' fill=none stroke=currentColor stroke-opacity=.4 />"
    )
    place = ", ".join(part for part in (experiment + (f"@{variant}" if variant else ""), where, window) if part)
    return (
        f"<figure><svg width={WIDTH} height={HEIGHT} viewBox='0 0 {WIDTH} {HEIGHT}' role=img"
        f" aria-label='{escape(of)} over the sweep'>{axis}{''.join(drawn)}</svg>"
        f"<figcaption>{escape(of)} at {escape(place)}: {', '.join(legend)}</figcaption></figure>"
    )
