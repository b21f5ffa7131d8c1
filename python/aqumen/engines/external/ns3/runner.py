"""Runs the ns-3 program on a plan and converts its output to a result (`run --json`)."""

import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aqumen import _programs
from aqumen.engines.external.answer import answer
from aqumen.engines.external.trace import QueueTrace, length_at, link_metrics

from .build import find_program
from .describe import Group, Run, describe
from .errors import Ns3Failed

__all__ = ["read_trace", "run"]

_ARRIVED, _LEFT, _LEFT_MARKED, _EARLY, _OVERFLOW, _LENGTH = range(6)


@dataclass(slots=True)
class _Output:
    """Output of a run, with CPU and wall-clock time."""

    snapshots: list[list[tuple[int, ...]]]
    """For each snapshot and flow: bytes delivered, segments sent, retransmissions, time-outs; for UDP packets arrived,
    packets missing, runs of missing packets."""
    wire_lost: list[dict[int, int]]
    """For each snapshot: link number to packets lost on its wire, for lossy wires."""
    cpu_s: float
    wall_s: float


def run(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate one plan (one scenario, one seed) in ns-3."""
    described = describe(plan)
    program = find_program()
    with tempfile.TemporaryDirectory(prefix="aqumen-ns3-") as name:
        directory = Path(name)
        output = _execute(program, described.text, directory)
        links: dict[str, Any] = {}
        series: dict[str, Any] = {}
        packets = 0
        samples = np.arange(0.0, described.duration_s + 1e-9, described.sample_interval_s)
        for i, link in enumerate(described.links):
            if not link.record:
                continue
            trace = read_trace(directory / f"link{i}.bin")
            packets += len(trace.left_s)
            links[link.name] = {
                window: link_metrics(trace, link, start, end, sample_interval_s=described.sample_interval_s)
                | _wire_metrics(described, output, i, start, end)
                for window, (start, end) in described.windows.items()
            }
            series[link.name] = {
                "t": samples.tolist(),
                "queue_pkts": length_at(trace, samples).tolist(),
                "p": [None] * len(samples),
            }
    return answer(
        "ns3",
        described,
        links=links,
        flows=_groups(described, output),
        series=series,
        cpu_s=output.cpu_s,
        wall_s=output.wall_s,
        packets=packets,
    )


def _execute(program: Path, text: str, directory: Path) -> _Output:
    begin = time.perf_counter()
    (directory / "in").write_text(text, encoding="ascii")
    with (
        (directory / "in").open("rb") as into,
        (directory / "out").open("wb") as out,
        (directory / "err").open("wb") as err,
    ):
        process = subprocess.Popen([str(program)], cwd=directory, stdin=into, stdout=out, stderr=err)
        usage = _programs.wait(process)
    lines = (directory / "out").read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode != 0 or not lines or lines[-1] != "END":
        complaint = (directory / "err").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = complaint[0] if complaint else (lines[-1] if lines else "nothing")
        raise Ns3Failed(f"ns-3 stopped with status {process.returncode} and said: {said}")
    output = _Output([], [], usage.ru_utime + usage.ru_stime, time.perf_counter() - begin)
    for line in lines[:-1]:
        kind, *words = line.split()
        if kind == "S":
            output.snapshots.append([])
            output.wire_lost.append({})
        elif kind == "W":
            output.wire_lost[-1][int(words[0])] = int(words[1])
        else:
            output.snapshots[-1].append(tuple(int(word) for word in words))
    return output


def read_trace(path: Path) -> QueueTrace:
    """Read the program's binary trace of a queue."""
    time_s, kind, first, second = np.fromfile(path, dtype=np.float64).reshape(-1, 4).T
    left = (kind == _LEFT) | (kind == _LEFT_MARKED)
    length = kind == _LENGTH
    lost = (kind == _EARLY) | (kind == _OVERFLOW)
    # 0 stands for the latest arrival.
    number = np.where(first[lost] > 0, first[lost], np.cumsum(kind == _ARRIVED)[lost])
    return QueueTrace(
        arrived_s=time_s[kind == _ARRIVED],
        left_s=time_s[left],
        left_bytes=first[left],
        wait_s=second[left],
        marked=kind[left] == _LEFT_MARKED,
        early_drop_s=time_s[kind == _EARLY],
        overflow_drop_s=time_s[kind == _OVERFLOW],
        lost=np.column_stack((time_s[lost], number, kind[lost] == _EARLY)),
        change_s=time_s[length],
        length_pkts=first[length],
    )


def _groups(described: Run, output: _Output) -> dict[str, Any]:
    return {
        group.name: {
            window: _group_metrics(described, output, group, start, end)
            for window, (start, end) in described.windows.items()
        }
        for group in described.groups
    }


def _wire_metrics(described: Run, output: _Output, link: int, start_s: float, end_s: float) -> dict[str, int]:
    """Count packets lost on a wire in a window, by time of arrival; empty for a wire without losses."""

    def at(time_s: float) -> int:
        return 0 if time_s == 0.0 else output.wire_lost[described.snapshots_s.index(time_s)][link]

    return {"wire_lost_pkts": at(end_s) - at(start_s)} if link in output.wire_lost[-1] else {}


def _group_metrics(described: Run, output: _Output, group: Group, start_s: float, end_s: float) -> dict[str, Any]:
    """Return goodput, fairness, retransmissions, time-outs and UDP losses of a group in a window."""

    def at(time_s: float) -> np.ndarray[Any, Any]:
        if time_s == 0.0:
            return np.zeros((group.last - group.first, 7))
        return np.array(output.snapshots[described.snapshots_s.index(time_s)])[group.first : group.last]

    delivered, sent, again, timeouts, arrived, missing, runs = (at(end_s) - at(start_s)).T
    goodputs = delivered * 8.0 / (end_s - start_s)
    squares = float(np.dot(goodputs, goodputs))
    metrics: dict[str, Any] = {
        "goodput_bps": float(goodputs.sum()),
        "jain_fairness": float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0.0 else None,
        "rtt_mean_s": None,
        "retransmitted_ratio": float(again.sum() / sent.sum()) if sent.sum() else None,
        "timeouts": int(timeouts.sum()) if group.is_tcp else None,
    }
    numbered, lost, in_runs = (float(one.sum()) for one in (arrived + missing, missing, runs))
    if numbered:
        metrics |= {"loss_ratio": lost / numbered, "loss_burst_mean_pkts": lost / in_runs if in_runs else None}
    return metrics
