"""Export of runs as data files of Flent, a bufferbloat test tool: `.flent.gz`, format version 4.

Each file is a `tcp_nup` test with one upload for each flow group (goodput in Mbit/s) and a ping (base RTT plus mean
sojourn time at the link under test). Flent's plots `-p totals` and `-p ping_cdf` then compare simulated and measured
AQMs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aqumen import _core, engines
from aqumen._files import json_text, replace
from aqumen.engines.answer import Answer
from aqumen.errors import EngineError, OutputError
from aqumen.scenario import Scenario

__all__ = ["check", "document", "write"]

VERSION = 4
"""Version of Flent's file format."""
TEST = "tcp_nup"
POINTS = 100
"""Minimum number of points of a run; runs of more seconds have one each second."""
SAMPLE = "flent-"
"""Prefix of the names of the windows."""
EPOCH = "1970-01-01T00:00:00.000000Z"
"""Start time of every run: simulated time has no date, and equal runs give equal files."""


def check(engine: Sequence[str]) -> None:
    """Raise `EngineError` for engines without metrics for each second.

    Args:
        engine: Names of the engines.
    """
    if any(name != "packet" for name in engine):
        raise EngineError(
            "--flent needs the engine `packet`, which reruns each simulation with a window for each second"
        )


def write(scenario: Scenario, jobs: Sequence[tuple[str | None, int]], folder: Path) -> list[Path]:
    """Rerun simulations with windows of a second, and write a file for each.

    Args:
        scenario: Network, traffic and duration of the runs.
        jobs: AQM and seed of each run.
        folder: Folder for the files; it is created if needed.
    """
    import gzip

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror or error}") from None
    cut, step_s = _sampled(scenario)
    made: dict[int, Path] = {}

    def done(index: int, answer: Answer) -> bool:
        aqm, seed = jobs[index]
        data = json.loads(answer.json)
        name = re.sub(r"[^A-Za-z0-9.=@,_-]+", "_", f"{scenario.name}-{aqm or data['aqm']['name']}-{seed}")
        path = folder / f"{name}.flent.gz"
        text = json_text(document(data, step_s, aqm or data["aqm"]["name"], path.name)).encode()
        # Without a time of compression.
        replace(path, lambda file: file.write(gzip.compress(text, mtime=0)))
        made[index] = path
        return True

    threads = engines.threads_within_memory(cut, engines.cores())
    engines.run_many(cut, list(jobs), "packet", threads, done)
    return [made[index] for index in sorted(made)]


def document(data: dict[str, Any], step_s: float, label: str, filename: str) -> dict[str, Any]:
    """Return a run as the contents of a Flent file.

    Args:
        data: The run, with a window for each point.
        step_s: Length of the windows, seconds.
        label: Label in legends.
        filename: Name of the file.
    """
    windows = [name for name in data["windows"] if name.startswith(SAMPLE)]
    x = [data["windows"][name][0] for name in windows]
    link = next(iter(data["links"].values()))
    base_ms = 1e3 * float(data["aqm"]["nominal"]["base_rtt_s"])

    streams = {f"TCP upload::{k}": group for k, group in enumerate(data["flows"], 1)}
    rates = {
        name: [data["flows"][group][window]["goodput_bps"] / 1e6 for window in windows]
        for name, group in streams.items()
    }
    total = [sum(each) for each in zip(*rates.values(), strict=True)]
    waits = [link[window]["sojourn_mean_s"] for window in windows]
    results: dict[str, list[float | None]] = {
        "TCP upload avg": [each / len(rates) for each in total],
        "TCP upload sum": list(total),
        "Ping (ms) ICMP": [None if wait is None else base_ms + 1e3 * wait for wait in waits],
        **rates,
    }
    length = max(1, round(data["windows"]["all"][1] - data["windows"]["all"][0]))
    return {
        "metadata": {
            "NAME": TEST,
            "TITLE": label,
            "NOTE": f"simulated by Aqumen {_core.__version__}: {data['scenario']}, AQM {label}, seed {data['seed']}; "
            + ", ".join(f"{name} is {group}" for name, group in streams.items()),
            "HOST": data["scenario"],
            "LOCAL_HOST": "aqumen",
            "TIME": EPOCH,
            "T0": EPOCH,
            "LENGTH": length,
            "TOTAL_LENGTH": length,
            "STEP_SIZE": step_s,
            "IP_VERSION": 4,
            "FLENT_VERSION": "2.1.1",
            "DATA_FILENAME": filename,
            "TEST_PARAMETERS": {"upload_streams": str(len(streams))},
            "SERIES_META": {name: {"group": group, "UNITS": "Mbits/s"} for name, group in streams.items()},
        },
        "version": VERSION,
        "x_values": x,
        "results": results,
        "raw_values": {
            name: [{"t": t, "val": value} for t, value in zip(x, values, strict=True) if value is not None]
            for name, values in results.items()
        },
    }


def _sampled(scenario: Scenario) -> tuple[Scenario, float]:
    """Add a window for each point to a scenario. Returns it with the length of the windows."""
    duration_s = float(scenario.plan(aqm="droptail")["duration_s"])
    step_s = min(1.0, duration_s / POINTS)
    count = int(duration_s / step_s + 1e-9)
    ends = [f"{round(k * step_s * 1e9)}ns" for k in range(count + 1)]
    windows = [(f"windows.{SAMPLE}{k}", f'["{ends[k]}", "{ends[k + 1]}"]') for k in range(count)]
    return scenario.set_all(windows), step_s
