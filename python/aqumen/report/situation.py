"""The page of an everyday network: which AQM, with which senders, and how to set it up."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from aqumen import _core, tables
from aqumen.report.template import render

if TYPE_CHECKING:
    from aqumen.shaping import Setup
    from aqumen.situations import Answer, Study

__all__ = ["situation_html"]


def situation_html(
    study: Study,
    answer: Answer,
    *,
    goal: str,
    alone: str,
    first: str,
    setup: Callable[[str], Setup],
    command: str,
) -> str:
    """The page as HTML text.

    Args:
        study: What was run.
        answer: What came of it.
        goal: What decides, in words.
        alone: What the weights decide, in words.
        first: The AQM whose commands are shown.
        setup: The commands that set an AQM up.
        command: The command that made it.
    """
    spec = study.situation.kernel(first)
    return render(
        "situation.html",
        scenario=study.situation.scenario,
        answer=answer,
        felt=study.situation.felt,
        assumed=study.situation.assumed,
        folders=[each.store.folder.name for each in study.gatherings.values() if each.store is not None],
        goal=goal,
        alone=alone,
        first=first,
        commands=[] if spec is None else setup(spec).commands,
        command=command,
        spread=tables.spread,
        css=(files("aqumen.report") / "page.css").read_text("utf-8"),
        version=_core.__version__,
    )
