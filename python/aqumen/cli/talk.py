"""How the command line speaks: data on stdout, talk and progress bars on stderr."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

__all__ = ["CHECK_FAILED", "COULD_NOT_RUN", "INTERRUPTED", "failed", "progress", "say", "show", "table"]

CHECK_FAILED = 1
COULD_NOT_RUN = 2
INTERRUPTED = 130

_command = ["aqumen"]


def remember_command(args: Sequence[str] | None) -> None:
    """Keep the command for the report.

    Args:
        args: The arguments after the program's name; without them those of the process.
    """
    _command[:] = ["aqumen", *(sys.argv[1:] if args is None else args)]


def command() -> str:
    """The command as it would be typed."""
    return shlex.join(_command)


def say(message: str) -> None:
    """Talk: a line on stderr.

    Args:
        message: The line.
    """
    print(f"aqumen: {message}", file=sys.stderr, flush=True)


def failed(message: str) -> int:
    """Say in one line why nothing could be run, and give the exit code.

    Args:
        message: Why, and what to do about it.
    """
    say(" ".join(message.split()))
    return COULD_NOT_RUN


def show(*tables: Table | str) -> None:
    """Print tables and lines on stdout, as wide as they are where it is no terminal.

    Args:
        tables: What to print.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    # Drawn aside: a console that writes for itself ends the process where the reader has gone.
    drawn = io.StringIO()
    console = Console(file=drawn, width=width, force_terminal=sys.stdout.isatty(), highlight=False)
    for item in tables:
        console.print(item, markup=False, soft_wrap=isinstance(item, str)) if isinstance(item, str) else console.print(
            item
        )
    sys.stdout.write(drawn.getvalue())


def table(title: str, heads: Sequence[str], numbers: bool = True) -> Table:
    """An empty table.

    Args:
        title: Its title.
        heads: Its column heads.
        numbers: Whether all columns but the first hold numbers.
    """
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        made.add_column(head, justify="right" if numbers and i > 0 else "left", no_wrap=True)
    return made


class _Silence:
    """A progress bar that nobody sees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _nothing(self, *_: object, **__: object) -> Any:
        return 0

    add_task = update = reset = advance = _nothing


def progress() -> Progress | _Silence:
    """A progress bar on stderr; silent where that is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return _Silence()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=32),
        TaskProgressColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
