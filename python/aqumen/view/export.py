"""Export of tables as Markdown, LaTeX and CSV, and of all metrics as tidy CSV or Parquet."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqumen.errors import OutputError, optional
from aqumen.view.tables import metric_columns, to_arrow

if TYPE_CHECKING:
    from rich.table import Table

    from aqumen._run_set import Runs

__all__ = ["FORMATS", "bibtex", "cells_of", "check_parquet", "parquet_bytes", "rows_parquet", "tidy_csv", "written"]

FORMATS = ("text", "csv", "latex", "markdown", "parquet")
"""Values of `--format`."""

TIDY = ["aqm", "kind", "name", "window", "metric", "n", "mean", "std", "ci95_low", "ci95_high", "events"]


def cells_of(table: Table) -> tuple[str, list[str], list[list[str]], int]:
    """Return title, heads, rows, and the number of columns that identify a row.

    Args:
        table: A table for the terminal.
    """
    heads = [" ".join(str(column.header).split()) for column in table.columns]
    rows = [list(row) for row in zip(*([str(cell) for cell in column.cells] for column in table.columns), strict=True)]
    names = sum(column.justify == "left" for column in table.columns)
    return str(table.title or "").strip(), heads, rows, names


def written(items: Iterable[Table | str], form: str) -> str:
    """Format tables and lines for papers.

    Args:
        items: Tables and lines for the terminal.
        form: `markdown`, `latex` or `csv`.
    """
    return "".join({"markdown": _markdown, "latex": _latex, "csv": _csv}[form](items))


def _markdown(items: Iterable[Table | str]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            if text := " ".join(item.split()):
                yield f"{text}\n\n"
            continue
        title, heads, rows, names = cells_of(item)
        if title:
            yield f"**{title}**\n\n"
        yield "| " + " | ".join(map(_piped, heads)) + " |\n"
        yield "|" + "|".join(["---"] * names + ["--:"] * (len(heads) - names)) + "|\n"
        yield from ("| " + " | ".join(map(_piped, row)) + " |\n" for row in rows)
        yield "\n"


def _piped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


_SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"},
    **{"±": r"$\pm$", "−": "$-$", "†": r"$^\dagger$", "–": "--", "²": "$^2$", "<": "$<$", ">": "$>$"},
}


def _tex(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


def _latex(items: Iterable[Table | str]) -> Iterator[str]:
    yield "% \\usepackage{booktabs}\n"
    said: list[str] = []
    number = 0
    for item in items:
        if isinstance(item, str):
            said += [" ".join(line.split()) for line in item.splitlines() if line.strip()]
            continue
        title, heads, rows, names = cells_of(item)
        number += 1
        caption = _tex(title or (said[0] if said else "AQMs compared"))
        yield "".join(f"% {line}\n" for line in said)
        said = []
        yield "\\begin{table}\n\\centering\n"
        yield f"\\caption{{{caption}}}\n\\label{{tab:aqumen-{number}}}\n"
        yield f"\\begin{{tabular}}{{{'l' * names}{'r' * (len(heads) - names)}}}\n\\toprule\n"
        yield " & ".join(map(_tex, heads)) + " \\\\\n\\midrule\n"
        yield from (" & ".join(map(_tex, row)) + " \\\\\n" for row in rows)
        yield "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    yield "".join(f"% {line}\n" for line in said)


def _csv(items: Iterable[Table | str]) -> Iterator[str]:
    for item in items:
        if not isinstance(item, str):
            _, heads, rows, _ = cells_of(item)
            yield _lines([heads, *rows])


def tidy_csv(comparison: Runs) -> str:
    """Return all metrics of a comparison as CSV: a row for each AQM, link or group, window and metric.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
    """
    rows: list[Sequence[Any]] = [TIDY]
    for aqm, entry in comparison.to_dict()["aqms"].items():
        for kind, key in (("link", "links"), ("flow group", "flows")):
            for name, windows in entry[key].items():
                for window, metrics in windows.items():
                    for metric, found in metrics.items():
                        low, high = found["ci95"] or (None, None)
                        told = (found["n"], found["mean"], found["std"], low, high, found.get("events"))
                        rows.append([aqm, kind, name, window, metric, *told])
    return _lines(rows)


def _lines(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def parquet_bytes(comparison: Runs) -> bytes:
    """Return all metrics of all runs as Parquet, one row each. Needs the extra `arrow`.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
    """
    return _parquet(to_arrow(metric_columns(comparison.results)))


def rows_parquet(rows: Sequence[Mapping[str, Any]], texts: Sequence[str], figures: Sequence[str] = ()) -> bytes:
    """Convert rows to Parquet. Needs the extra `arrow`.

    Args:
        rows: Rows, a mapping each.
        texts: Text columns; they come first.
        figures: Numeric columns.
    """
    arrow = optional("pyarrow", "arrow")
    words = {key: [None if row[key] is None else str(row[key]) for row in rows] for key in texts}
    columns = {key: arrow.array(values, arrow.string()) for key, values in words.items()}
    columns |= {key: arrow.array([row[key] for row in rows], arrow.float64()) for key in figures}
    return _parquet(arrow.table(columns))


def _parquet(table: Any) -> bytes:
    arrow, parquet = optional("pyarrow", "arrow"), optional("pyarrow.parquet", "arrow")
    sink = arrow.BufferOutputStream()
    parquet.write_table(table, sink)
    return bytes(sink.getvalue())


YEAR = "2026"
"""Year of this version, as in `CITATION.cff`."""


def bibtex(version: str) -> str:
    """Return a BibTeX entry for Aqumen.

    Args:
        version: Version to cite.
    """
    key = re.sub(r"\W", "", f"aqumen{version}")
    return (
        f"@software{{{key},\n  title = {{Aqumen: a workbench for active queue management}},\n"
        f"  author = {{{{The Aqumen authors}}}},\n  version = {{{version}}},\n  year = {{{YEAR}}}\n}}"
    )


def check_parquet(terminal: bool) -> None:
    """Raise `OutputError` if Parquet would be written to a terminal.

    Args:
        terminal: Whether the output is a terminal.
    """
    if terminal:
        raise OutputError("Parquet is binary: redirect it to a file, as in --format parquet > runs.parquet")
