"""Report page of an everyday network: the recommended AQM, the comparison, and the set-up commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from aqumen import _core
from aqumen.situations.metrics import WORDS
from aqumen.view import tables
from aqumen.view.report.template import render

if TYPE_CHECKING:
    from aqumen.experience import AqmScore
    from aqumen.shaping import Setup
    from aqumen.situations.study import Answer, Study

__all__ = ["situation_html"]


def situation_html(
    study: Study,
    answer: Answer,
    *,
    headline: str,
    no_worse: str,
    pair: Sequence[tuple[str, AqmScore]],
    goal: str,
    note: str,
    alone: str,
    first: str,
    since: str | None,
    setup: Callable[[str], Setup],
    command: str,
) -> str:
    """Return the page as HTML text.

    Args:
        study: The finished study.
        answer: Scores of the AQMs.
        headline: The answer in a sentence.
        no_worse: AQMs not significantly different from the first, in a sentence; may be empty.
        pair: The network as it is and with the first AQM, each with its label; may be empty.
        goal: The ranking criterion in words.
        note: Note on the table's intervals.
        alone: Effect of the weights, in words.
        first: AQM whose commands are shown.
        since: First Linux version that implements it; `None` if there is none.
        setup: Returns the commands for an AQM.
        command: Command that produced the page.
    """
    situation = study.situation
    spec = situation.kernel(first)
    made = None if spec is None else setup(spec)
    shown = next(f for f in situation.metrics if f.key == situation.delay)
    return render(
        "aqumen.situations",
        "situation.html",
        scenario=situation.scenario,
        answer=answer,
        headline=headline,
        no_worse=no_worse,
        pair=pair,
        shown=shown,
        words=WORDS[shown.key],
        longest=max((each.values[shown.key]["mean"] or 0 for _, each in pair), default=0) or 1,
        metrics=situation.metrics,
        assumed=situation.assumed,
        folders=[each.store.folder.name for each in study.gatherings.values() if each.store is not None],
        goal=goal,
        note=note,
        alone=alone,
        first=first,
        since=since,
        commands=[] if made is None else made.commands,
        undo=[] if made is None else made.commands[: len(made.remove)],
        command=command,
        spread=tables.spread,
        around=tables.around,
        css=(files("aqumen.view.report") / "page.css").read_text("utf-8"),
        version=_core.__version__,
    )
