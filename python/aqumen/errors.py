"""Exceptions of Aqumen. Every message is one line that says how to fix the error."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

__all__ = [
    "Cancelled",
    "CustomError",
    "EngineError",
    "Error",
    "MissingExtra",
    "OutputError",
    "ScenarioError",
    "listed",
    "meant",
    "optional",
]

LIST_CHARS_MAX = 200
"""Maximum length of a list of names in a message, characters."""


class Error(Exception):
    """Base of all exceptions that Aqumen raises."""


class ScenarioError(Error, ValueError):
    """A scenario, an AQM or another argument is invalid."""


class EngineError(Error, RuntimeError):
    """An engine is missing or failed."""


class Cancelled(Error):
    """`on_progress` stopped a run."""


class CustomError(Error):
    """Custom code (an AQM or a traffic source) raised an exception, or returned an invalid value; see its cause."""


class OutputError(Error, OSError):
    """A result could not be written, or a file could not be read."""


class MissingExtra(Error, ImportError):
    """An optional package is not installed."""


def optional(module: str, extra: str) -> Any:
    """Import an optional module; raise `MissingExtra`, which says how to install it, if it is absent.

    Args:
        module: Name of the module.
        extra: The extra of this package that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        message = f"this needs {package}, which is not installed; install it with: pip install 'aqumen[{extra}]'"
        raise MissingExtra(message) from None


def listed(names: Iterable[str], command: str = "") -> str:
    """Join names by commas; a long list is cut, with the number of omitted names and a command that lists all.

    Args:
        names: Names, in order.
        command: Command that lists all names.
    """
    names = list(names)
    if len(whole := ", ".join(names)) <= LIST_CHARS_MAX:
        return whole
    # Cut at the last comma that fits.
    shown = whole[: whole.rindex(", ", 0, LIST_CHARS_MAX)] if ", " in whole[:LIST_CHARS_MAX] else ""
    left = len(names) - (shown.count(", ") + 1 if shown else 0)
    lists = f"; `{command}` lists all" if command else ""
    return f"{shown}, ... and {left} more{lists}" if shown else f"{left} of them{lists}"


def meant(word: str, names: Iterable[str], *, least: float = 0.6) -> str:
    """Return `; did you mean NAME?` for the most similar name; empty if none is similar.

    Args:
        word: The invalid name.
        names: Valid names.
        least: Minimum similarity, 0 to 1.
    """
    import difflib

    near = difflib.get_close_matches(word, names, 1, least)
    return f"; did you mean {near[0]}?" if near else ""
