"""Figures of a paper for print: the queue over time in each cell of each figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen._records import Records
from aqumen.papers.judge import questions
from aqumen.papers.study import Outcome
from aqumen.view.figures import Draw, draw_all, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["write_paper_figures"]


def write_paper_figures(outcomes: Sequence[Outcome], records: Records, folder: Path, command: str) -> list[Path]:
    """Draw the queue over time (first seed) in the cells of each figure. Needs the extra `plot`.

    Args:
        outcomes: Papers with their verdicts.
        records: Finished runs.
        folder: Folder for the files.
        command: Command that redraws the figures.
    """
    drawn: dict[str, Draw] = {}
    for outcome in outcomes:
        paper = outcome.paper
        for claim in paper.claims:
            wanted: dict[str, list[str]] = {}
            for question in questions(paper, claim):
                for term in question.terms:
                    for cell, spec in sorted(term.needs()):
                        wanted.setdefault(cell, []).append(spec)
            for cell, specs in wanted.items():
                name = _plain(f"{paper.name}-{claim.figure.partition(':')[0]}-{cell.partition('/')[2]}")
                drawn.setdefault(name, _queue_of(records, cell, list(dict.fromkeys(specs))))
    return draw_all(drawn, folder, command)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.@=]+", "-", text).strip("-").lower()


def _queue_of(records: Records, cell: str, specs: Sequence[str]) -> Draw:
    def draw(axes: Axes) -> bool:
        first = records.seeds[0]
        known: list[tuple[str, dict[str, Any]]] = [
            (spec, next(iter(run["series"].values())))
            for spec in specs
            if (run := records.runs.get((cell, spec, first))) is not None and run.get("series")
        ]
        for i, (spec, series) in enumerate(known):
            axes.plot(series["t_s"], series["queue_pkts"], label=spec, **{**style(i), "linewidth": 0.8})
        axes.set(xlabel="Time, s", ylabel="Queue, packets", ylim=(0, None))
        if known:
            axes.legend(frameon=False, ncols=2)
        return bool(known)

    return draw
