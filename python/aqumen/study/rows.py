"""Rows of a study: what a folder keeps, as columns, tables and answers to SQL."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen._files import write_text
from aqumen._store import Store
from aqumen.errors import OutputError, ScenarioError, listed, meant, optional
from aqumen.study.cases import Bases, Case

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    Columns = dict[str, Any]

__all__ = ["COST", "MANIFEST", "Rows", "manifest", "row_key"]

MANIFEST = "study.json"
"""File of a study's folder: its definition, bases and cases."""
SCHEMA = 1
COST = ("cpu_s", "wall_s", "events", "bottleneck_packets")
"""Columns of the cost of a run."""
SHAPE = "columns-"
"""Prefix of the keys of records that name the columns of a shape."""


def row_key(case: str, seed: int) -> str:
    """Return the key of a run in the store.

    Args:
        case: Key of its case.
        seed: Seed of the run.
    """
    return f"{case}-{seed}"


def manifest(
    engine: str,
    seeds: Sequence[int],
    stop: Mapping[str, Any] | None,
    title: str,
    bases: Bases,
    cases: Sequence[Case],
    command: str = "",
) -> str:
    """Return the text of `study.json`.

    Args:
        engine: Name of the engine.
        seeds: Seeds of each case.
        stop: The stopping rule, as in a study file.
        title: One line about the study.
        bases: Its scenarios.
        cases: Cases in the study's order.
        command: Command of its last call, for its page.
    """
    head = {"schema": SCHEMA, "title": title, "engine": engine, "seeds": list(seeds), "stop": stop}
    head["command"] = command
    head["bases"] = bases.to_dict()
    # A line for each case, so that tools for text see what changed.
    lines = ",\n".join(json.dumps(case.to_list()) for case in cases)
    return f'{json.dumps(head)[:-1]}, "cases": [\n{lines}\n]}}\n'


class Rows:
    """Finished runs of a study, a row each.

    A row has the columns `scenario`, `aqm`, one for each factor, `seed`, the metrics, and the cost. A metric of the
    first recorded link in the window `steady` is called as in the result (`queue_mean_pkts`); `LINK:METRIC` is that of
    another link, `GROUP.METRIC` of a flow group, and `METRIC@all` of another window. Numbers have 12 significant
    digits.
    """

    def __init__(self, folder: str | os.PathLike[str], store: Store | None = None) -> None:
        """Open the folder of a study.

        Args:
            folder: Folder of `study run`.
            store: Its store, if it is open already.

        Raises:
            OutputError: The folder has no study.
        """
        self.folder = Path(folder)
        path = self.folder / MANIFEST
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            if given["schema"] != SCHEMA:
                raise OutputError(f"{path}: has schema {given['schema']}; this version reads {SCHEMA}")
            self.engine: str = given["engine"]
            self.seeds: list[int] = given["seeds"]
            self.stop: dict[str, Any] | None = given["stop"]
            self.title: str = given["title"]
            self.command: str = given.get("command", "")
            self.bases = Bases.from_dict(given["bases"])
            self.cases = [Case.from_list(each) for each in given["cases"]]
        except FileNotFoundError:
            raise OutputError(
                f"{self.folder}: holds no study; `aqumen study run STUDY.toml --out DIR` makes one"
            ) from None
        except OutputError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{path}: not the manifest of a study ({type(error).__name__})") from None
        self.store = store or Store(self.folder, write=False)
        self._columns: Columns | None = None

    @property
    def labels(self) -> list[str]:
        """Names of the columns that identify a case: `scenario`, `aqm`, and the factors."""
        return list(dict.fromkeys(name for case in self.cases for name in case.labels))

    def records(self) -> Iterator[tuple[Case, int, dict[str, Any]]]:
        """Iterate over the finished runs: case, seed and row as the store has it."""
        known: dict[str, list[Case]] = {}
        for case in self.cases:
            known.setdefault(case.key, []).append(case)
        for key, data in self.store.items():
            name, _, seed = key.rpartition("-")
            if name in known:
                row = json.loads(data)
                for case in known[name]:
                    yield case, int(seed), row

    def shapes(self) -> dict[str, list[str]]:
        """Return the names of the columns of each shape."""
        names = [key for key in self.store if key.startswith(SHAPE)]
        return {key.removeprefix(SHAPE): json.loads(self.store.get(key) or b"[]") for key in names}

    def columns(self) -> Columns:
        """Return all rows as NumPy arrays by column, in order of cases and seeds. Undefined numbers are NaN."""
        if self._columns is None:
            self._columns = self._made()
        return self._columns

    def _made(self) -> Columns:
        import numpy as np

        place = {(case.key, *map(str, case.labels.items())): i for i, case in enumerate(self.cases)}
        found = sorted(
            ((place[(case.key, *map(str, case.labels.items()))], seed, row) for case, seed, row in self.records()),
            key=lambda each: each[:2],
        )
        shapes = self.shapes()
        columns: Columns = {}
        for name in self.labels:
            values = [self.cases[i].labels.get(name) for i, _, _ in found]
            columns[name] = _array(values)
        columns["seed"] = np.array([seed for _, seed, _ in found], dtype=np.int64)
        for shape, names in shapes.items():
            here = [k for k, (_, _, row) in enumerate(found) if row["h"] == shape]
            if here:
                numbers = np.array([found[k][2]["v"] for k in here], dtype=float)
                for j, name in enumerate(names):
                    column = columns.setdefault(name, np.full(len(found), np.nan))
                    column[here] = numbers[:, j]
        cost = np.array([row["cost"] for _, _, row in found], dtype=float).reshape(len(found), len(COST))
        columns |= {name: cost[:, j] for j, name in enumerate(COST)}
        columns["bits"] = np.array([row["bits"] for _, _, row in found], dtype=object)
        return columns

    def metric(self, name: str) -> Any:
        """Return the values of a column of numbers.

        Args:
            name: Name of the column, such as `queue_mean_pkts`.

        Raises:
            ScenarioError: There is no such column; the message suggests one.
        """
        columns = self.columns()
        if name not in columns or columns[name].dtype == object:
            known = [key for key, values in columns.items() if values.dtype != object]
            raise ScenarioError(f"no metric `{name}`{meant(name, known) or ';'} choose from: {listed(known)}")
        return columns[name]

    def query(self, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Answer SQL about the table `runs`. Returns names of columns and rows. Needs the extra `studies`.

        Args:
            sql: Such as `select aqm, avg(queue_mean_pkts) from runs group by 1`; a name with a point or `@` stands in
                double quotes.
        """
        connection = self._connected()
        try:
            found = connection.execute(sql)
            return [str(column[0]) for column in found.description or []], found.fetchall()
        except optional("duckdb", "studies").Error as error:
            raise ScenarioError(f"query: {' '.join(str(error).split())}") from None
        finally:
            connection.close()

    def _connected(self) -> Any:
        duckdb = optional("duckdb", "studies")
        connection = duckdb.connect()
        columns = self.columns()
        # DuckDB reads a dictionary of arrays under the name of a variable. What is undefined is NULL, not NaN.
        names = ", ".join(_sql(name, values) for name, values in columns.items())
        connection.execute(f"create table runs as select {names} from columns")
        return connection

    def to_polars(self) -> pl.LazyFrame:
        """Return all rows as a lazy frame of polars. Needs the extra `polars`."""
        polars = optional("polars", "polars")
        frame: pl.LazyFrame = polars.LazyFrame(self.columns())
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a table of pandas. Needs the extra `pandas`."""
        frame: pd.DataFrame = optional("pandas", "pandas").DataFrame(self.columns())
        return frame

    def write_csv(self, path: Path) -> None:
        """Write all rows as CSV.

        Args:
            path: File to write.
        """
        import io

        columns, text = self.columns(), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*(values.tolist() for values in columns.values()), strict=True):
            writer.writerow("" if value is None or value != value else value for value in row)
        write_text(path, text.getvalue())

    def write_parquet(self, path: Path, partitioned: bool = False) -> None:
        """Write all rows as Parquet. Needs the extra `studies`.

        Args:
            path: File to write; with partitions a folder.
            partitioned: A part for each AQM.
        """
        if partitioned and not self.columns()["seed"].size:
            raise OutputError(f"{self.folder}: no run is finished, nothing to write")
        connection = self._connected()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            more = ", partition_by (aqm), overwrite_or_ignore" if partitioned else ""
            target = str(path).replace("'", "''")
            connection.execute(f"copy runs to '{target}' (format parquet, compression zstd{more})")
        except (optional("duckdb", "studies").Error, OSError) as error:
            raise OutputError(f"cannot write {path}: {' '.join(str(error).split())}") from None
        finally:
            connection.close()

    def __len__(self) -> int:
        return int(self.columns()["seed"].size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, cases={len(self.cases)}, runs={len(self)})"


def _sql(name: str, values: Any) -> str:
    """Return the column of a table, with NULL for NaN."""
    quoted = '"' + name.replace('"', '""') + '"'
    odd = values.dtype == float and bool((values != values).any())
    return f"case when isnan({quoted}) then null else {quoted} end as {quoted}" if odd else quoted


def _array(values: list[Any]) -> Any:
    """Return labels as numbers if all are, else as text; missing ones are NaN or `None`."""
    import numpy as np

    known = [value for value in values if value is not None]
    if known and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    return np.array([None if value is None else str(value) for value in values], dtype=object)
