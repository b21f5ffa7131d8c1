"""Page of a ranking over networks: the overview, and a section with intervals for each figure."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from aqumen.study.ranked import FigureRanking, RankedAqm
from aqumen.view.tuned import Section, page

__all__ = ["overview", "ranked_html", "shown", "table"]


def shown(value: float, ranked: FigureRanking) -> str:
    """Return a ratio with three digits, or a difference in percentage points.

    Args:
        value: The ratio or difference.
        ranked: The ranking that it belongs to.
    """
    return f"{value:.3g}" if ranked.figure.ratio else f"{100 * value:+.2f}"


def overview(found: Sequence[FigureRanking], aqms: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of all figures, AQMs in the given order.

    Args:
        found: Rankings, one for each figure.
        aqms: AQMs in order.
    """
    rows = []
    for aqm in aqms:
        cells = []
        for ranked in found:
            place = next((each for each in ranked.places if each.aqm == aqm), None)
            cells.append("–" if place is None else shown(place.mean, ranked) + ("*" if place.differs else ""))
        rows.append([aqm, *cells])
    return ["AQM", *(each.figure.title for each in found)], rows


def table(ranked: FigureRanking, begin: str = "") -> tuple[list[str], list[list[str]]]:
    """Return heads and rows of one figure, the best AQM first.

    Args:
        ranked: The ranking.
        begin: Beginning of all names of networks, which is left out.
    """
    heads = ["AQM", "mean", "95 %", "group", "better\nworse", "worst\nnetwork", "worst\nseed", "undef."]
    rows = []
    for each in ranked.places:
        network, seed, value = each.worst_seed
        rows.append(
            [
                each.aqm,
                shown(each.mean, ranked),
                f"{shown(each.ci95[0], ranked)} {shown(each.ci95[1], ranked)}",
                each.group,
                f"{each.better}/{each.worse}",
                f"{shown(each.worst[1], ranked)} {each.worst[0].removeprefix(begin)}",
                f"{shown(value, ranked)} {network.removeprefix(begin)}#{seed}",
                str(each.undefined),
            ]
        )
    return heads, rows


def ranked_html(
    found: Sequence[FigureRanking], aqms: Sequence[str], title: str, notes: Sequence[str], command: str
) -> str:
    """Return the page as HTML text.

    Args:
        found: Rankings, one for each figure.
        aqms: AQMs in the order in which they were given.
        title: Heading.
        notes: Sentences about the runs.
        command: Command that produced it.
    """
    reference = found[0].reference
    heads, rows = overview(found, aqms)
    text = (
        f"Geometric mean of the ratio to {reference} over the networks; of losses the mean difference in percentage "
        "points. A star: differs from it (paired test over networks, corrected by Holm for all pairs, 5 %) by more "
        "than what counts as alike. AQMs stand in the order in which they were given: no figure decides a ranking "
        "that you do not choose."
    )
    sections = [Section(title="Overview", text=text, tables=[("All figures", heads, rows)])]
    for ranked in found:
        figure = ranked.figure
        alike = f"{100 * figure.alike:g} {'%' if figure.ratio else 'percentage points'}"
        counted = f"{ranked.networks} networks count, {ranked.left_out} are left out, where it is undefined for an AQM."
        words = (
            f"{figure.words[0].upper()}{figure.words[1:]}; {'more' if figure.more else 'less'} is better. "
            f"Alike within {alike}. {counted} Intervals: bootstrap over networks. AQMs that share a letter do not "
            "differ."
        )
        tables = [(figure.title, *table(ranked))] if ranked.places else []
        pictures = [(f"{figure.title}: mean and 95 % interval", _picture(ranked))] if ranked.places else []
        sections.append(Section(title=figure.title, text=words, tables=tables, pictures=pictures))
    return page(title, " ".join(notes), "", sections, command)


def _picture(ranked: FigureRanking) -> str:
    """Return mean and interval of each AQM as SVG, in the colour of the text."""

    def scale(value: float) -> float:
        return math.log(value) if ranked.figure.ratio else value

    ends = [scale(end) for each in ranked.places for end in each.ci95]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    width, left, step = 340.0, 130.0, 16

    def x(value: float) -> float:
        return left + (width - left - 10) * ((value - low) / (high - low) if high > low else 0.5)

    def line(k: int, each: RankedAqm) -> str:
        y = 12 + step * k
        ends = [x(scale(end)) for end in each.ci95]
        return (
            f'<text x="{left - 8:g}" y="{y + 4}" text-anchor="end">{html.escape(each.aqm[:20])}</text>'
            f'<line x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}" stroke-width="2"/>'
            f'<circle cx="{x(scale(each.mean)):.1f}" cy="{y}" r="3"/>'
        )

    height = 12 + step * len(ranked.places)
    drawn = "".join(line(k, each) for k, each in enumerate(ranked.places))
    zero = f'<line x1="{x(0.0):.1f}" x2="{x(0.0):.1f}" y1="0" y2="{height}" stroke-dasharray="2 3"/>'
    return (
        f'<svg viewBox="0 0 {width:g} {height}" font-size="10" fill="currentColor" stroke="none">'
        f'<g stroke="currentColor">{zero}</g><g stroke="currentColor" style="paint-order:stroke">'
        f"{drawn.replace('<text', '<text stroke=' + chr(34) + 'none' + chr(34))}</g></svg>"
    )
