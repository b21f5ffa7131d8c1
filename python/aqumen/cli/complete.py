"""What the shell offers at the tab key: experiments and files, AQMs and their parameters, keys, engines, figures."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

__all__ = ["engines", "figures", "keys", "scenarios", "senders", "specs"]


def scenarios(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Experiments by name, and files.

    Args:
        begun: What stands there.
    """
    from aqumen._experiments import experiments

    named = [CompletionItem(each.name) for each in experiments() if each.name.startswith(begun)]
    return [*named, CompletionItem(begun, type="file")]


def specs(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """AQMs, and behind a colon their parameters.

    Args:
        begun: What stands there: `codel,pie:tar`.
    """
    from aqumen import _core

    rows = {row["name"]: row for row in _core.list_aqms()}
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


def keys(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Keys of the scenario that stands before: `--set topology.bott`.

    Args:
        context: What was typed so far.
        begun: What stands there.
    """
    from aqumen.errors import Error
    from aqumen.scenario import Scenario

    # The option that is being typed has no value yet, and with it the rest was not looked at.
    given = context.params.get("scenario") or next(iter(context.args), None)
    try:
        known = Scenario.load(given).keys if given else []
    except (Error, OSError):
        return []
    return [CompletionItem(f"{key}=") for key in known if key.startswith(begun)]


def engines(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Engines, the fluid's models too.

    Args:
        begun: What stands there.
    """
    from aqumen.engines import names

    return [CompletionItem(name) for name in names() if name.startswith(begun)]


def figures(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Figures that an everyday network is judged by, to be weighed: `--weigh calls=`.

    Args:
        context: What was typed so far.
        begun: What stands there.
    """
    from aqumen.situations import FIGURES, WORDS

    others = {key for figures in FIGURES.values() for key in figures}
    keys = FIGURES.get(context.info_name or "") or [key for key in WORDS if key not in others]
    return [CompletionItem(f"{key}=", help=WORDS[key]) for key in keys if key.startswith(begun)]


def senders(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Kinds of senders of an everyday network.

    Args:
        context: What was typed so far.
        begun: What stands there: `cubic,bb`.
    """
    from aqumen.scenario import Scenario

    done, comma, last = begun.rpartition(",")
    cells = Scenario.load(f"everyday/{context.info_name}").cells
    return [CompletionItem(f"{done}{comma}{name}") for name in cells if "," not in name and name.startswith(last)]
