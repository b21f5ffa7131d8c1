"""Local web server of the playground: the page, and the runs of a comparison that it opens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aqumen._files import json_text
from aqumen._store import Digests, Store
from aqumen.errors import Error, ScenarioError
from aqumen.scenario import Scenario

__all__ = ["Results", "page_folder", "read_results", "server"]

Results = dict[str, Any]
"""Runs of a comparison: `name`, `scenario` (TOML text), `runs` (each with `aqm`, `seed`, `metrics`)."""

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
    """Files of the page, and `studio.json`, the results."""

    extensions_map = {  # noqa: RUF012
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".wasm": "application/wasm",
    }
    results: bytes | None = None

    def do_GET(self) -> None:
        """Answer a request."""
        if self.path.split("?")[0] != "/studio.json":
            super().do_GET()
            return
        if self.results is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.results)))
        self.end_headers()
        self.wfile.write(self.results)

    def end_headers(self) -> None:
        """End the headers; a browser asks again each time."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse lists of files."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def server(port: int, results: Results | None = None) -> ThreadingHTTPServer:
    """Make a server on this machine, which only this machine reaches.

    Args:
        port: TCP port; 0 for any free one.
        results: Runs to open.

    Raises:
        Error: The page is not built, or the port is taken.
    """
    folder = str(page_folder())

    class Handler(_Handler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=folder)

    Handler.results = None if results is None else json_text(results).encode()
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except (OSError, OverflowError) as error:
        raise Error(f"--port {port}: {getattr(error, 'strerror', None) or error}") from None
