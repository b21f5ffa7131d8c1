"""Description of a folder's page, `page.json`: the command, the scenario, and which kept runs the page shows.

It makes a page from the folder alone, also by another version, whose runs would have other keys.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqumen._answers import StoredAnswer, from_text
from aqumen._files import laid_out, write_text
from aqumen._store import Store
from aqumen.custom import from_source, source_of
from aqumen.errors import OutputError
from aqumen.scenario import Scenario

__all__ = ["PAGE", "KeptRun", "RunsPage", "read_page", "write_page"]

PAGE = "page.json"
"""File of the description."""
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRun:
    """A run of a page."""

    key: str
    """Key of the run in the store."""
    spec: str
    """The AQM as given by the user."""
    engine: str
    """Name of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsPage:
    """Page of runs on one scenario."""

    command: str
    """Command that made the runs."""
    scenario: Scenario
    """Network, traffic and duration of the runs."""
    runs: tuple[KeptRun, ...]
    """The runs, AQM by AQM."""
    wanted: int
    """Number of runs that the command was to make."""
    rank_by: str | None = None
    """Ranking criterion, if given."""
    theory: bool = False
    """Whether the page has predicted margins and oscillations."""

    def write(self, folder: Path) -> None:
        """Write the description.

        Args:
            folder: Folder of the runs.
        """
        files = self.scenario.core.files()
        scenario = {
            "name": self.scenario.name,
            "text": self.scenario.to_toml(),
            "files": {file: base64.b64encode(contents).decode() for file, contents in files},
            "sources": [list(source_of(each)) for each in self.scenario.custom],
        }
        runs = [[run.key, run.spec, run.engine] for run in self.runs]
        more = {"wanted": self.wanted, "rank_by": self.rank_by, "theory": self.theory}
        write_page(folder, {"kind": "runs", "command": self.command, **more, "scenario": scenario, "runs": runs})

    @classmethod
    def of(cls, page: Mapping[str, Any], folder: Path) -> RunsPage:
        """Return the description that `read_page` read. Custom AQMs and sources are executed.

        Args:
            page: Object of `page.json`.
            folder: Folder of the runs, for messages.

        Raises:
            OutputError: A part is missing.
        """
        try:
            given = page["scenario"]
            custom = tuple(from_source(*each) for each in given["sources"])
            files = {file: base64.b64decode(contents) for file, contents in given["files"].items()}
            return cls(
                command=page["command"],
                scenario=Scenario.parse(given["text"], f"{given['name']}.toml", custom, files),
                runs=tuple(KeptRun(key=key, spec=spec, engine=engine) for key, spec, engine in page["runs"]),
                wanted=page["wanted"],
                rank_by=page["rank_by"],
                theory=page["theory"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OutputError(f"{folder / PAGE}: not the description of a page ({type(error).__name__})") from None

    def adding(self, run: KeptRun) -> RunsPage:
        """Return the description with one more run, after those of its AQM.

        Args:
            run: The run to add; one of equal key is replaced.
        """
        every = [*(each for each in self.runs if each.key != run.key), run]
        order = list(dict.fromkeys((each.spec, each.engine) for each in every))
        runs = sorted(every, key=lambda each: order.index((each.spec, each.engine)))
        return RunsPage(
            command=self.command,
            scenario=self.scenario,
            runs=tuple(runs),
            wanted=len(runs),
            rank_by=self.rank_by,
            theory=self.theory,
        )

    def answers(self, folder: Path) -> tuple[list[tuple[KeptRun, StoredAnswer]], int]:
        """Return the runs that the folder keeps with their series, and how many it keeps without.

        Args:
            folder: Folder of the runs.
        """
        store, found, bare = Store(folder, write=False), [], 0
        for run in self.runs:
            if (text := store.get(run.key)) is not None:
                answer = from_text(text)
                bare += answer.kept == "none"
                if answer.kept != "none":
                    found.append((run, answer))
        return found, bare


def write_page(folder: Path, page: Mapping[str, Any]) -> None:
    """Write the description of a page.

    Args:
        folder: Folder of the runs.
        page: `kind`, `command`, and what the kind needs.
    """
    write_text(folder / PAGE, laid_out({"schema": SCHEMA, **page}))


def read_page(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the description of a folder's page; `None` if it has none.

    Args:
        folder: Folder that a command wrote with `--out`.

    Raises:
        OutputError: The file cannot be read, or another version wrote it.
    """
    path = Path(folder) / PAGE
    try:
        page = json.loads(path.read_bytes())
        schema = page["schema"]
        found: dict[str, Any] = page
        if schema == SCHEMA and not (isinstance(page["command"], str) and isinstance(page["kind"], str)):
            raise TypeError
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{path}: not the description of a page ({type(error).__name__})") from None
    if schema != SCHEMA:
        raise OutputError(f"{path}: has schema {schema}; this version reads {SCHEMA}")
    return found
