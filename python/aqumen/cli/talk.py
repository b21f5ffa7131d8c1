"""Output of the command line: data on stdout, messages and progress on stderr."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

__all__ = [
    "CHECK_FAILED",
    "COULD_NOT_RUN",
    "INTERRUPTED",
    "about",
    "entries",
    "failed",
    "filled",
    "progress",
    "say",
    "show",
    "table",
]

CHECK_FAILED = 1
COULD_NOT_RUN = 2
INTERRUPTED = 130

_command = ["aqumen"]


def remember_command(args: Sequence[str] | None) -> None:
    """Store the command line for reports.

    Args:
        args: Arguments after the program's name; `None` takes those of the process.
    """
    _command[:] = ["aqumen", *(sys.argv[1:] if args is None else args)]


def command() -> str:
    """Return the command line as typed, with quotes."""
    return shlex.join(_command)


def say(message: str) -> None:
    """Print a message on stderr.

    Args:
        message: One line of text.
    """
    print(f"aqumen: {message}", file=sys.stderr, flush=True)


def failed(message: str) -> int:
    """Report an error in one line and return the exit code.

    Args:
        message: Error and its remedy.
    """
    say(" ".join(message.split()))
    return COULD_NOT_RUN


def traceback_of(error: BaseException) -> None:
    """Print the traceback of an exception in custom code on stderr, without Aqumen's own frames.

    Args:
        error: Exception raised by custom code.
    """
    import traceback

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    told = traceback.TracebackException.from_exception(error)
    told.stack[:] = [frame for frame in told.stack if not os.path.abspath(frame.filename).startswith(ours)]
    print("".join(told.format()), file=sys.stderr, end="", flush=True)


def show(*items: Table | str, wide: bool = False) -> None:
    """Print tables and lines on stdout.

    A table of metrics that is wider than the output (`_width`) loses columns at its right, never its names.

    Args:
        items: Tables and lines.
        wide: Print all columns.
    """
    from rich.console import Console

    width = _width()
    lost = False
    # Rendered to a buffer, since rich's console exits on a closed pipe.
    drawn = io.StringIO()
    for item in items:
        if isinstance(item, str):
            for line in item.split("\n"):
                # Indented lines are meant for copying and stay unbroken.
                if line.startswith("  "):
                    drawn.write(line + "\n")
                else:
                    drawn.write(textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) + "\n")
            continue
        table = item if wide else _fitted(item, width)
        lost = lost or table is not item
        room = _natural(table) if wide or not _wraps(table) else width
        console = Console(
            file=drawn,
            width=room,
            force_terminal=sys.stdout.isatty(),
            markup=False,
        )
        console.print(table)
    if lost:
        drawn.write(f"\nTables are cut to {width} columns; --wide prints them whole.\n")
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines()))


def entries(rows: Mapping[str, str]) -> None:
    """Print names and descriptions on stdout; long lines are wrapped between words.

    Args:
        rows: Descriptions by name.
    """
    width, names = _width(), max(map(len, rows))
    for name, said in rows.items():
        line = f"{name:{names}}  {said}"
        indent = " " * (names + 2)
        print(textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


PIPED_WIDTH = 120
"""Width of output to a file or a pipe, characters."""


def _width() -> int:
    """Return the output width: COLUMNS, else that of the terminal, else `PIPED_WIDTH`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_WIDTH


def _wraps(table: Table) -> bool:
    return not all(column.no_wrap for column in table.columns)


def _widths(table: Table) -> list[int]:
    from rich.cells import cell_len

    return [
        max(cell_len(line) for text in (column.header, *column.cells) for line in [*str(text).splitlines(), ""])
        for column in table.columns
    ]


GAP = 2
"""Spaces between two columns."""


def _natural(table: Table) -> int:
    widths = _widths(table)
    title = max(map(len, str(table.title or "").split("\n")))
    return max(sum(widths) + GAP * (len(widths) - 1), title)


def _fitted(table: Table, width: int) -> Table:
    """Return the table without the rightmost columns that do not fit."""
    from copy import copy

    if _wraps(table):
        return table
    widths = _widths(table)
    names = next((i for i, column in enumerate(table.columns) if column.justify == "right"), len(widths))
    kept = len(widths)
    # At least one metric stays.
    while kept > names + 1 and sum(widths[:kept]) + GAP * (kept - 1) > width:
        kept -= 1
    if kept >= len(widths):
        return table
    fitted = copy(table)
    fitted.columns = table.columns[:kept]
    return fitted


def table(title: str, heads: Sequence[str], *, names: int = 1, figures: bool = True) -> Table:
    """Create an empty table.

    Args:
        title: Heading of the table.
        heads: Column heads.
        names: Number of columns that identify a row; the others hold numbers.
        figures: Whether the other columns hold numbers; else all hold text, and all but the first may wrap.
    """
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        named = i < names or not figures
        made.add_column(head, justify="left" if named else "right", no_wrap=figures or i == 0)
    return made


def filled(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> Table:
    """Create a table without the columns that are empty in every row.

    Args:
        title: Heading of the table.
        heads: Column heads.
        rows: Formatted cells.
        names: Number of columns that identify a row.
    """
    shown = [i for i in range(len(heads)) if i < names or any(row[i] != "–" for row in rows)]
    made = table(title, [heads[i] for i in shown], names=names)
    for row in rows:
        made.add_row(*(row[i] for i in shown))
    return made


SAY_EACH_S = 10.0
"""Interval between progress messages without a progress bar, seconds."""


class _Lines:
    """Progress of one task as messages on stderr, one every ten seconds."""

    def __init__(self) -> None:
        self._task: dict[str, Any] = {}
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._teller = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._teller.join()

    def add_task(self, description: str, *, total: float, completed: float = 0, **fields: Any) -> Any:
        """Start the task."""
        self._task = {"description": description, "total": total, "completed": completed, "first": completed, **fields}
        self._begun = time.monotonic()
        return 0

    def reset(self, _task: Any, **fields: Any) -> None:
        """Restart the task."""
        self._task |= {"completed": 0, "first": 0, **fields}
        self._begun = time.monotonic()

    def update(self, _task: Any, *, advance: float = 0, **fields: Any) -> None:
        """Record progress."""
        self._task |= {"completed": self._task["completed"] + advance, **fields}

    def advance(self, task: Any, advance: float = 1) -> None:
        """Record an increment of progress."""
        self.update(task, advance=advance)

    def _tell(self) -> None:
        while not self._ended.wait(SAY_EACH_S):
            if self._task:
                say(self._line())

    def _line(self) -> str:
        task = self._task
        done = task["done"] or f"{100 * task['completed'] / task['total']:.0f} %"
        gone_s, made = time.monotonic() - self._begun, task["completed"] - task["first"]
        left = f"; about {about(gone_s * (task['total'] - task['completed']) / made)} left" if made > 0 else ""
        return f"{task['description']}: {done}{left}"


def about(seconds: float) -> str:
    """Format an estimated time in seconds, minutes or hours.

    Args:
        seconds: Estimated time, seconds.
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def progress() -> Progress | _Lines:
    """Return a progress bar on stderr, or progress messages if that is not a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return _Lines()
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
