"""What can go wrong, as exceptions. Every message is one line that says what to do about it."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "Cancelled",
    "EngineError",
    "Error",
    "MissingExtra",
    "OutputError",
    "OwnError",
    "ScenarioError",
    "listed",
    "meant",
]

LIST_CHARS_MAX = 200
"""Longest list of names in a message, characters."""


class Error(Exception):
    """The base of all errors that Aqumen raises on purpose."""


class ScenarioError(Error, ValueError):
    """A scenario, an AQM, a setting or another argument that cannot be used."""


class EngineError(Error, RuntimeError):
    """An engine that is absent or could not finish."""


class Cancelled(Error):
    """A run that its `on_progress` stopped."""


class OwnError(Error):
    """Code of your own (an AQM) raised, or answered what is no answer. Its cause is what was raised."""


class OutputError(Error, OSError):
    """A result that could not be written, or one on disk that could not be read."""


class MissingExtra(Error, ImportError):
    """An optional package that this call needs and that is not installed."""


def listed(names: Iterable[str], command: str = "") -> str:
    """Names for a message, with commas; of a long list the beginning, how many more there are, and what lists them all.

    Args:
        names: What to list, in the order to show it.
        command: The command that lists them.
    """
    names = list(names)
    if len(whole := ", ".join(names)) <= LIST_CHARS_MAX:
        return whole
    # The last comma that stands where there is room: what follows it is cut off.
    shown = whole[: whole.rindex(", ", 0, LIST_CHARS_MAX)] if ", " in whole[:LIST_CHARS_MAX] else ""
    left = len(names) - (shown.count(", ") + 1 if shown else 0)
    lists = f"; `{command}` lists all" if command else ""
    return f"{shown}, ... and {left} more{lists}" if shown else f"{left} of them{lists}"


def meant(word: str, names: Iterable[str], *, least: float = 0.6) -> str:
    """`; did you mean NAME?` for a message, of the name that a word is near to; nothing where none is.

    Args:
        word: What was said.
        names: What there is.
        least: How near it has to be, 0 to 1.
    """
    import difflib

    near = difflib.get_close_matches(word, names, 1, least)
    return f"; did you mean {near[0]}?" if near else ""
