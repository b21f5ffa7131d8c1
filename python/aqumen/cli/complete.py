"""What the shell offers at the tab key: experiments and files, AQMs and their parameters."""

from __future__ import annotations

import json

import click
from click.shell_completion import CompletionItem

__all__ = ["scenarios", "specs"]


def scenarios(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Experiments by name, and files.

    Args:
        begun: What stands there.
    """
    from aqumen.experiments import experiments

    named = [CompletionItem(each.name) for each in experiments() if each.name.startswith(begun)]
    return [*named, CompletionItem(begun, type="file")]


def specs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """AQMs, and behind a colon their parameters.

    Args:
        begun: What stands there: `codel,pie:tar`.
    """
    from aqumen import _core

    rows = {row["name"]: row for row in json.loads(_core.list_aqms_json())}
    done, colon, last = begun.rpartition(":")
    if colon:
        name = done.rpartition(",")[2]
        given, comma, key = last.rpartition(",")
        known = [*rows.get(name, {}).get("params", []), *rows.get(name, {}).get("common_params", [])]
        return [
            CompletionItem(f"{done}:{given}{comma}{each['name']}=", help=each["doc"])
            for each in known
            if each["name"].startswith(key)
        ]
    done, comma, last = begun.rpartition(",")
    return [
        CompletionItem(f"{done}{comma}{name}", help=row["summary"])
        for name, row in rows.items()
        if name.startswith(last)
    ]
