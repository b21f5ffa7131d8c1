"""The page of an everyday network: which AQM, with which senders, and how to set it up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from aqumen import _core
from aqumen.situations.study import WORDS
from aqumen.view import tables
from aqumen.view.report.template import render

if TYPE_CHECKING:
    from aqumen.experience import Scored
    from aqumen.shaping import Setup
    from aqumen.situations.study import Answer, Study

__all__ = ["situation_html"]


def situation_html(
    study: Study,
    answer: Answer,
    *,
    headline: str,
    no_worse: str,
    pair: Sequence[tuple[str, Scored]],
    goal: str,
    note: str,
    alone: str,
    first: str,
    since: str | None,
    setup: Callable[[str], Setup],
    command: str,
) -> str:
    """The page as HTML text.

    Args:
        study: What was run.
        answer: What came of it.
        headline: The answer in a sentence.
        no_worse: AQMs that are not significantly different from the first, in a sentence; may be empty.
        pair: The network as it is and with the first AQM, by what they are called; may be empty.
        goal: What decides, in words.
        note: How to read the table.
        alone: What the weights decide, in words.
        first: The AQM whose commands are shown.
        since: The first Linux that has it; `None`: none has.
        setup: The commands that set an AQM up.
        command: The command that made it.
    """
    situation = study.situation
    spec = situation.kernel(first)
    made = None if spec is None else setup(spec)
    shown = next(f for f in situation.felt if f.key == situation.delay)
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
        felt=situation.felt,
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
