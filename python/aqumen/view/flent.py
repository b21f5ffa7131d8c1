"""Runs as data files of Flent, which measures networks for bufferbloat: `.flent.gz`, format version 4.

Flent draws what it knows: each file is a `tcp_nup` test with one upload a flow group (Mbit/s that its receivers got)
and a ping that is the round trip without queues and the mean wait at the link under test. Its `-p totals` and
`-p ping_cdf` then set AQMs that never ran on a wire beside those that did.
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
"""Of Flent's file format."""
TEST = "tcp_nup"
POINTS = 100
"""Least number of points of a run; of runs of more seconds, one each second."""
SAMPLE = "flent-"
"""How the windows of a point are called."""
EPOCH = "1970-01-01T00:00:00.000000Z"
"""When a run begins: simulated time is nobody's time, and the same run is the same file."""


def check(engine: Sequence[str]) -> None:
    """Refuse engines whose runs cannot be told second by second.

    Args:
        engine: What the comparison runs on, by name.
    """
    if any(name != "packet" for name in engine):
        raise EngineError("--flent is for the engine `packet`: it runs each once more, with a window for each second")


def write(scenario: Scenario, jobs: Sequence[tuple[str | None, int]], folder: Path) -> list[Path]:
    """Run jobs in windows of a second, and write a file for each.

    Args:
        scenario: The network, its flows, and what happens during a run.
        jobs: AQM and seed of each.
        folder: Where the files go; it is made where it is not there.
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
        # Without the moment at which it was compressed.
        replace(path, lambda file: file.write(gzip.compress(text, mtime=0)))
        made[index] = path
        return True

    threads = engines.threads_within_memory(cut, engines.cores())
    engines.run_many(cut, list(jobs), "packet", threads, done)
    return [made[index] for index in sorted(made)]


def document(data: dict[str, Any], step_s: float, label: str, filename: str) -> dict[str, Any]:
    """A run as Flent's file holds it.

    Args:
        data: The run, with a window for each point.
        step_s: Their length, seconds.
        label: What the legend calls it.
        filename: The name of the file.
    """
    windows = [name for name in data["windows"] if name.startswith(SAMPLE)]
    x = [data["windows"][name][0] for name in windows]
    link = next(iter(data["links"].values()))
    base_ms = 1e3 * float(data["aqm"]["nominal"]["base_rtt_s"])
    # The k-th group is the k-th upload.
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
    """The scenario with a window for each point, and their length."""
    duration_s = float(scenario.plan(aqm="droptail")["duration_s"])
    step_s = min(1.0, duration_s / POINTS)
    count = int(duration_s / step_s + 1e-9)
    ends = [f"{round(k * step_s * 1e9)}ns" for k in range(count + 1)]
    windows = [(f"windows.{SAMPLE}{k}", f'["{ends[k]}", "{ends[k + 1]}"]') for k in range(count)]
    return scenario.set_all(windows), step_s
