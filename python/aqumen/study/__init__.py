"""Studies: the same question put to many runs, which stop when they know enough.

`definition` reads a study, `cases` expands it, `study` runs what is missing by an executor (`executors`, `on_dask`),
`rows` is what a folder keeps. `compared` has the statistics of AQMs against one another, `checked` repeats a sample.
"""

import os

from aqumen.study.rows import Rows
from aqumen.study.study import Study

__all__ = ["Rows", "Study", "open"]


def open(folder: str | os.PathLike[str]) -> Rows:
    """Open the folder of a study.

    Args:
        folder: Folder of `aqumen study run --out`.

    Raises:
        OutputError: The folder holds no study.
    """
    return Rows(folder)
