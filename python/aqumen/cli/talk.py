"""How the command line speaks: data on stdout, talk and progress bars on stderr."""

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


def traceback_of(error: BaseException) -> None:
    """Show where code of the user's own raised, on stderr: from its own lines on.

    Args:
        error: What it raised.
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
        items: What to print.
        wide: Print all columns.
    """
    from rich.console import Console

    width = _width()
    lost = False
    # Drawn aside: a console that writes for itself ends the process where the reader has gone.
    drawn = io.StringIO()
    for item in items:
        if isinstance(item, str):
            for line in item.split("\n"):
                # What begins with two blanks is to be copied, so it is not broken.
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
    """Print names and what is said of each on stdout, long lines broken between words; a path stays in one piece.

    Args:
        rows: What is said, by name.
    """
    width, names = _width(), max(map(len, rows))
    for name, said in rows.items():
        line = f"{name:{names}}  {said}"
        indent = " " * (names + 2)
        print(textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


PIPED_WIDTH = 120
"""Columns of output into a file or a pipe."""


def _width() -> int:
    """Columns to print in: of COLUMNS, else of the terminal, else `PIPED_WIDTH`."""
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
"""Blanks between two columns."""


def _natural(table: Table) -> int:
    widths = _widths(table)
    title = max(map(len, str(table.title or "").split("\n")))
    return max(sum(widths) + GAP * (len(widths) - 1), title)


def _fitted(table: Table, width: int) -> Table:
    """The table without the columns at its right that do not fit."""
    from copy import copy

    if _wraps(table):
        return table
    widths = _widths(table)
    names = next((i for i, column in enumerate(table.columns) if column.justify == "right"), len(widths))
    kept = len(widths)
    # One figure stays, however long the names are.
    while kept > names + 1 and sum(widths[:kept]) + GAP * (kept - 1) > width:
        kept -= 1
    if kept >= len(widths):
        return table
    fitted = copy(table)
    fitted.columns = table.columns[:kept]
    return fitted


def table(title: str, heads: Sequence[str], *, names: int = 1, figures: bool = True) -> Table:
    """An empty table.

    Args:
        title: What stands above the table.
        heads: Its column heads.
        names: How many columns name a row; all others hold figures.
        figures: Whether they do; else all are words, of which all but the first column may be broken into lines.
    """
    from rich.table import Table

    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        named = i < names or not figures
        made.add_column(head, justify="left" if named else "right", no_wrap=figures or i == 0)
    return made


def filled(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> Table:
    """A table of figures, without the columns that hold none in any row.

    Args:
        title: What stands above the table.
        heads: Its column heads.
        rows: Its cells, as they are shown.
        names: How many columns name a row.
    """
    shown = [i for i in range(len(heads)) if i < names or any(row[i] != "–" for row in rows)]
    made = table(title, [heads[i] for i in shown], names=names)
    for row in rows:
        made.add_row(*(row[i] for i in shown))
    return made


SAY_EACH_S = 10.0
"""How often a line says how far it is, for those who see no bar."""


class _Lines:
    """Progress of one task in lines on stderr: one every ten seconds, whether anything happened or not."""

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
        """Begin."""
        self._task = {"description": description, "total": total, "completed": completed, "first": completed, **fields}
        self._begun = time.monotonic()
        return 0

    def reset(self, _task: Any, **fields: Any) -> None:
        """Begin again."""
        self._task |= {"completed": 0, "first": 0, **fields}
        self._begun = time.monotonic()

    def update(self, _task: Any, *, advance: float = 0, **fields: Any) -> None:
        """Say how far it is."""
        self._task |= {"completed": self._task["completed"] + advance, **fields}

    def advance(self, task: Any, advance: float = 1) -> None:
        """Say that so much more is done."""
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
    """A time as it is estimated: seconds, minutes or hours.

    Args:
        seconds: The time.
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"


def progress() -> Progress | _Lines:
    """A progress bar on stderr; where that is no terminal, a line every ten seconds."""
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
