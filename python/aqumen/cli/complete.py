"""Shell completion of experiments, files, AQMs, parameters, scenario keys, engines and metrics."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

__all__ = ["engines", "figures", "keys", "scenarios", "senders", "specs"]


def scenarios(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of experiments and files.

    Args:
        incomplete: The incomplete word.
    """
    from aqumen._experiments import experiments

    named = [CompletionItem(each.name) for each in experiments() if each.name.startswith(incomplete)]
    return [*named, CompletionItem(incomplete, type="file")]


def specs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete AQMs, and after a colon their parameters.

    Args:
        incomplete: The incomplete word, such as `codel,pie:tar`.
    """
    from aqumen import _core

    rows = {row["name"]: row for row in _core.list_aqms()}
    done, colon, last = incomplete.rpartition(":")
    if colon:
        name = done.rpartition(",")[2]
        given, comma, key = last.rpartition(",")
        known = [*rows.get(name, {}).get("params", []), *rows.get(name, {}).get("common_params", [])]
        return [
            CompletionItem(f"{done}:{given}{comma}{each['name']}=", help=each["doc"])
            for each in known
            if each["name"].startswith(key)
        ]
    done, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(f"{done}{comma}{name}", help=row["summary"])
        for name, row in rows.items()
        if name.startswith(last)
    ]


def keys(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete keys of the scenario on the command line: `--set topology.bott`.

    Args:
        context: The parsed part of the command line.
        incomplete: The incomplete word.
    """
    from aqumen.errors import Error
    from aqumen.scenario import Scenario

    # Click stops parsing at the incomplete option, so the scenario may be among the unparsed arguments.
    given = context.params.get("scenario") or next(iter(context.args), None)
    try:
        known = Scenario.load(given).keys if given else []
    except (Error, OSError):
        return []
    return [CompletionItem(f"{key}=") for key in known if key.startswith(incomplete)]


def engines(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of engines, with the fluid engine's models.

    Args:
        incomplete: The incomplete word.
    """
    from aqumen.engines import names

    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def figures(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete metrics of an everyday network for `--weigh calls=`.

    Args:
        context: The parsed part of the command line.
        incomplete: The incomplete word.
    """
    from aqumen.situations import FIGURES, WORDS

    household = ("calls", "pages", "game", "upload", "film", "update")
    keys = FIGURES.get(context.info_name or "", household)
    return [CompletionItem(f"{key}=", help=WORDS[key]) for key in keys if key.startswith(incomplete)]


def senders(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete kinds of senders of an everyday network.

    Args:
        context: The parsed part of the command line.
        incomplete: The incomplete word, such as `cubic,bb`.
    """
    from aqumen.scenario import Scenario

    done, comma, last = incomplete.rpartition(",")
    cells = Scenario.load(f"everyday/{context.info_name}").cells
    return [CompletionItem(f"{done}{comma}{name}") for name in cells if "," not in name and name.startswith(last)]
