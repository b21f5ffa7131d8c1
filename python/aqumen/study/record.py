"""Records: the figures of finished runs in one small file, so that a newcomer costs its own runs only.

A record is gzip'd JSON lines: a head (engine and digest of its sources, seeds, figures), a line for each network with
its scenario, a line for each AQM with its figures by network and seed. Numbers have five digits; undefined ones are
null. 60 networks, 46 AQMs and two seeds take about 100 kB, so that Parquet would need an extra and save nothing.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqumen import _core
from aqumen._files import check_file, replace, write_text
from aqumen._store import Digests, built
from aqumen.errors import OutputError, ScenarioError
from aqumen.study.definition import Definition
from aqumen.study.figures import FIGURES, Values, network_of, values_of
from aqumen.study.rows import Rows
from aqumen.study.study import Study

__all__ = ["Record", "differing_runs", "newcomers", "read_record", "record_of", "shipped_record"]

SCHEMA = 1
SAMPLE = 12
"""Runs that are repeated where another engine made a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Networks and the figures of AQMs in them."""

    title: str
    """One line."""
    sources: str
    """Digest of the sources of the engine that made the runs; empty if it is not this one."""
    networks: Mapping[str, tuple[str, Mapping[str, bytes]]]
    """Scenario text, and the files that it names, by name of the network."""
    values: Values
    """Figures of the runs."""

    def write(self, path: Path) -> None:
        """Write the record; equal records give equal files.

        Args:
            path: File to write, such as `atlas.jsonl.gz`.
        """
        head = {
            "schema": SCHEMA,
            "title": self.title,
            "aqumen": _core.__version__,
            "sources": self.sources,
            "seeds": self.values.seeds,
            "figures": list(self.values.figures),
        }
        lines: list[dict[str, Any]] = [head]
        for name, (text, files) in self.networks.items():
            packed = {file: base64.b64encode(contents).decode() for file, contents in files.items()}
            lines.append({"network": name, "scenario": text, "files": packed})
        for a, aqm in enumerate(self.values.aqms):
            by = {
                key: [[_number(x) for x in row] for row in each[:, a, :]] for key, each in self.values.figures.items()
            }
            lines.append({"aqm": aqm, "values": by})
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        packed_text = io.BytesIO()
        with gzip.GzipFile(fileobj=packed_text, mode="wb", mtime=0) as file:
            file.write(text.encode())
        replace(path, lambda file: file.write(packed_text.getvalue()))


def _number(value: float) -> float | None:
    return None if value != value else float(f"{value:.5g}")


def shipped_record() -> Path:
    """Return the path of the record `atlas` that comes with Aqumen.

    Raises:
        OutputError: There is none in this installation.
    """
    path = Path(__file__).with_name("atlas.jsonl.gz")
    if not path.is_file():
        raise OutputError("--record atlas: this installation has no atlas; name a file that `study rank --keep` wrote")
    return path


def read_record(path: Path) -> Record:
    """Read a record.

    Args:
        path: File that `Record.write` wrote.

    Raises:
        OutputError: It is not a record, or one of another version.
    """
    import numpy as np

    check_file(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            head, *lines = (json.loads(line) for line in file)
        if head["schema"] != SCHEMA:
            raise OutputError(f"{path}: a record of schema {head['schema']}; this version reads {SCHEMA}")
        networks = {
            line["network"]: (line["scenario"], {k: base64.b64decode(v) for k, v in line["files"].items()})
            for line in lines
            if "network" in line
        }
        aqms = [line for line in lines if "aqm" in line]
        shape = (len(networks), len(aqms), len(head["seeds"]))
        figures = {}
        for key in FIGURES:
            rows = [[[np.nan if x is None else x for x in row] for row in line["values"][key]] for line in aqms]
            figures[key] = np.array(rows, dtype=float).reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2)
        values = Values(
            networks=tuple(networks),
            aqms=tuple(line["aqm"] for line in aqms),
            seeds=tuple(head["seeds"]),
            figures=figures,
        )
        return Record(title=head["title"], sources=head["sources"], networks=networks, values=values)
    except OutputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise OutputError(f"{path}: not a record ({type(error).__name__})") from None


def record_of(rows: Rows) -> Record:
    """Return the record of a study's finished runs.

    Args:
        rows: Rows of the study.
    """
    values = values_of(rows)
    networks: dict[str, tuple[str, Mapping[str, bytes]]] = {}
    shared = [name for name in rows.labels if name != "aqm" and ":" not in name]
    for case in rows.cases:
        name = network_of(case.labels, shared)
        if name not in networks:
            scenario = rows.bases.scenario(case)
            networks[name] = (scenario.to_toml(), dict(scenario.core.files()))
    # Rows name no engine, but their keys follow from its sources.
    if not rows.cases:
        raise ScenarioError("no network runs these AQMs; `aqumen list aqms` has the names")
    case = rows.cases[0]
    key = Digests(rows.bases.scenario(case), rows.engine, rows.bases.custom or None).case(case.spec)
    sources = built(rows.engine) if key == case.key else ""
    return Record(title=rows.title, sources=sources, networks=networks, values=values)


def _study(record: Record, folder: Path, names: Sequence[str], **given: Any) -> Study:
    """Return a study over networks of a record, whose files it writes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        text, files = record.networks[name]
        write_text(folder / f"{name}.toml", text)
        for file, contents in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            replace(folder / file, lambda out, contents=contents: out.write(contents))  # type: ignore[misc]
    return Study.of(Definition(scenarios=tuple(str(folder / f"{name}.toml") for name in names), **given))


def newcomers(record: Record, out: Path, aqms: Sequence[str], aqm_from: Sequence[str]) -> Study:
    """Return the study of AQMs that a record lacks, over its networks and seeds.

    Args:
        record: Networks and seeds to run in.
        out: Folder of the study; the networks go into its subfolder `networks`.
        aqms: AQMs, each a SPEC.
        aqm_from: Custom AQMs, each as FILE:CLASS.
    """
    names = list(record.networks)
    more = {"aqms": tuple(aqms), "aqm_from": tuple(aqm_from), "seeds": record.values.seeds, "refused": "skip"}
    return _study(record, out / "networks", names, **more)


def differing_runs(record: Record, sample: int = SAMPLE) -> list[str]:
    """Repeat some runs of a record with this engine. Returns those that differ, in words.

    Args:
        record: Runs that another engine may have made.
        sample: Number of runs.

    Raises:
        ScenarioError: The record has no run to repeat.
    """
    import numpy as np

    values, used = record.values, record.values.figures["used"]
    known = [tuple(map(int, place)) for place in np.argwhere(~np.isnan(used))]
    if not known:
        raise ScenarioError("the record has no finished run")
    differing = []
    for n, a, s in random.Random(0).sample(known, min(sample, len(known))):
        network, aqm, seed = values.networks[n], values.aqms[a], values.seeds[s]
        with tempfile.TemporaryDirectory() as folder:
            study = _study(record, Path(folder) / "networks", [network], aqms=(aqm,), seeds=(seed,))
            again = values_of(study.run(Path(folder) / "runs"))
        pairs = [(each[0, 0, 0], values.figures[key][n, a, s]) for key, each in again.figures.items()]
        if any(x != y and not (x != x and y != y) for x, y in pairs):
            differing.append(f"{aqm} in {network}, seed {seed}")
    return differing
