"""Local web server of the playground: the page, and the runs of a comparison or a study that it opens."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aqumen._files import json_text
from aqumen._store import Digests, Store
from aqumen.errors import Error, ScenarioError
from aqumen.scenario import Scenario
from aqumen.study import Rows
from aqumen.study.rows import MANIFEST

__all__ = ["Results", "ScenarioOf", "open_folder", "page_folder", "read_results", "read_study", "server"]

Results = dict[str, Any]
"""Runs: `name`, `scenario` (TOML text of a comparison), `runs` (each with `aqm`, `seed`, `metrics`; those of a study
also with `case`, its number, and `labels`)."""

ScenarioOf = Callable[[int], str]
"""Returns the TOML text of the case with a number."""

METRICS = (
    "utilization",
    "queue_mean_pkts",
    "queue_std_pkts",
    "qacd_pkts",
    "sojourn_mean_s",
    "sojourn_p99_s",
    "mark_ratio",
    "early_drop_ratio",
    "overflow_drop_ratio",
    "probability_mean",
)
"""Metrics of the first link that a run shows, over the window `steady`."""


def page_folder() -> Path:
    """Return the folder of the built page: that of the installed package, or that of a checkout.

    Raises:
        Error: Neither exists.
    """
    package = Path(__file__).parent
    for folder in (package / "playground", package.parents[1] / "web" / "dist"):
        if (folder / "index.html").is_file():
            return folder
    raise Error("the playground is not built: make playground (it needs Node.js)")


def read_results(folder: Path) -> Results:
    """Read the runs of a comparison.

    Args:
        folder: Folder that `aqumen compare --out` wrote.

    Raises:
        ScenarioError: The folder holds no comparison of packet runs.
    """
    try:
        compared = json.loads((folder / "compare.json").read_bytes())
        scenario = (folder / "scenario.toml").read_text()
        aqms = list(compared["aqms"])
    except FileNotFoundError as error:
        missing = Path(str(error.filename)).name
        raise ScenarioError(f"{folder}: no {missing}; name a folder that aqumen compare --out wrote") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ScenarioError(f"{folder}: compare.json cannot be read: {error!r}") from None
    if compared.get("engine") != "packet":
        raise ScenarioError(f"{folder}: runs of the engine {compared.get('engine')}; the page repeats those of packet")
    runs = [run for aqm in aqms for run in _runs(folder, aqm)]
    if not runs:
        raise ScenarioError(f"{folder}: no finished run of this version of the engine; repeat aqumen compare --out")
    return {"name": str(compared["scenario"]), "scenario": scenario, "runs": runs}


def open_folder(folder: Path) -> tuple[Results, ScenarioOf | None]:
    """Read the runs of a folder, and how to make the scenarios of its cases if it is that of a study.

    Args:
        folder: Folder that `aqumen compare --out` or `aqumen study run --out` wrote.

    Raises:
        Error: The folder holds no packet runs.
    """
    return read_study(folder) if (folder / MANIFEST).exists() else (read_results(folder), None)


def read_study(folder: Path) -> tuple[Results, ScenarioOf]:
    """Read the finished runs of a study, and how to make the scenario of a case.

    Args:
        folder: Folder that `aqumen study run --out` wrote.

    Raises:
        Error: The folder holds no study of packet runs, or no finished run.
    """
    rows = Rows(folder)
    if rows.engine != "packet":
        raise ScenarioError(f"{folder}: runs of the engine {rows.engine}; the page repeats those of packet")
    place = {id(case): number for number, case in enumerate(rows.cases)}
    shapes = rows.shapes()
    runs = []
    for case, seed, row in rows.records():
        values = dict(zip(shapes[row["h"]], row["v"], strict=True))
        metrics = {key: values.get(key) for key in METRICS}
        labels = {key: value for key, value in case.labels.items() if key != "aqm"}
        runs.append({"case": place[id(case)], "aqm": case.spec, "seed": seed, "labels": labels, "metrics": metrics})
    if not runs:
        raise ScenarioError(f"{folder}: no run is finished; aqumen study run goes on with the study")
    runs.sort(key=lambda run: (run["case"], run["seed"]))
    lock = threading.Lock()

    def scenario_of(number: int) -> str:
        with lock:
            return rows.bases.scenario(rows.cases[number]).to_toml()

    return {"name": rows.title or folder.name, "runs": runs}, scenario_of


def _runs(folder: Path, aqm: str) -> Iterator[dict[str, Any]]:
    store = Store(folder, write=False)
    digests = Digests(Scenario.load(folder / "scenario.toml"), "packet")
    # Seeds of a comparison are 1 to N.
    seed = 1
    while (record := store.get(digests.of((aqm, seed)))) is not None:
        try:
            windows = next(iter(json.loads(record)["run"]["links"].values()))
            metrics = windows.get("steady", windows["all"])
        except (ValueError, KeyError, AttributeError, StopIteration) as error:
            raise ScenarioError(f"{folder}: {aqm}, seed {seed}: cannot be read: {error!r}") from None
        yield {"aqm": aqm, "seed": seed, "metrics": {key: metrics.get(key) for key in METRICS}}
        seed += 1


class _Handler(SimpleHTTPRequestHandler):
    """Files of the page, `studio.json` with the results, and `scenario.toml?case=N`, the scenario of a case."""

    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }
    results: bytes | None = None
    scenario_of: ScenarioOf | None = None

    def do_GET(self) -> None:
        """Answer a request."""
        asked = urlsplit(self.path)
        if asked.path == "/studio.json":
            self._answer("application/json", self.results)
        elif asked.path == "/scenario.toml":
            self._answer("text/plain; charset=utf-8", self._scenario(asked.query))
        else:
            super().do_GET()

    def _scenario(self, query: str) -> bytes | None:
        """Return the scenario of the case that a query names, such as `case=3`."""
        try:
            number = int(parse_qs(query)["case"][0])
            return self.scenario_of(number).encode() if self.scenario_of and number >= 0 else None
        except (KeyError, ValueError, IndexError):
            return None

    def _answer(self, kind: str, content: bytes | None) -> None:
        if content is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """End the headers; a browser asks again each time."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse lists of files."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def server(port: int, results: Results | None = None, scenario_of: ScenarioOf | None = None) -> ThreadingHTTPServer:
    """Make a server on this machine, which only this machine reaches.

    Args:
        port: TCP port; 0 for any free one.
        results: Runs to open.
        scenario_of: Makes the scenario of a case of a study.

    Raises:
        Error: The page is not built, or the port is taken.
    """
    folder = str(page_folder())

    class Handler(_Handler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=folder)

    Handler.results = None if results is None else json_text(results).encode()
    Handler.scenario_of = None if scenario_of is None else staticmethod(scenario_of)
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise Error(f"--port {port}: {getattr(error, 'strerror', None) or error}") from None
