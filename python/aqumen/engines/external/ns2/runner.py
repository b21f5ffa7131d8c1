"""Runs ns-2 on a plan and converts its output to a result (`run --json`)."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aqumen import _programs
from aqumen.engines.external.answer import answer
from aqumen.engines.external.trace import link_metrics

from .errors import Ns2Failed, Ns2Missing
from .others import Udp
from .plan import Plan, Transport
from .tcl import ANSWERS, script, trace_file
from .trace import read_trace
from .transfers import ServedRequests, request_metrics

__all__ = ["Output", "execute", "find_ns", "run"]


def find_ns() -> str:
    """Return the path of the program `ns`; raise `Ns2Missing` if it is not installed."""
    found = shutil.which(os.environ.get("AQUMEN_NS2", "ns"))
    if found is None:
        raise Ns2Missing
    return found


@dataclass(slots=True)
class Output:
    """Output of a run of `ns`, with CPU and wall-clock time."""

    times_s: list[float] = field(default_factory=list)
    """Times of the snapshots; the following lists have one entry for each."""
    queue_integrals: list[dict[int, float]] = field(default_factory=list)
    """Link number to the integral of its queue length, packet-seconds."""
    flows: list[dict[int, tuple[int, int, int, int]]] = field(default_factory=list)
    """Flow number to (bytes delivered in order with headers, packets sent, retransmissions, time-outs)."""
    wire_lost: list[dict[int, int]] = field(default_factory=list)
    """Link number to packets lost on its wire, for lossy wires."""
    datagrams: list[dict[int, tuple[int, int, int]]] = field(default_factory=list)
    """UDP flow number to (packets arrived, packets missing, runs of missing packets)."""
    served: ServedRequests = field(default_factory=ServedRequests)
    samples: dict[int, list[tuple[float, int, float | None]]] = field(default_factory=dict)
    """Link number to (time_s, queue length, probability)."""
    counts: dict[int, int] = field(default_factory=dict)
    """Link number to departed packets, in a counting run."""
    metered_ns: list[int] = field(default_factory=list)
    """CPU time of the process at time 0 and at the end, in a timing run."""
    cpu_s: float = 0.0
    """User and system time of the process, including set-up."""
    user_s: float = 0.0
    wall_s: float = 0.0


def execute(text: str, directory: Path) -> Output:
    """Run `ns` on a script in a directory and read its output; raise `Ns2Failed` if it does not finish."""
    ns = find_ns()
    (directory / "run.tcl").write_text(text, encoding="ascii")
    begin = time.perf_counter()
    with (directory / "out").open("wb") as out, (directory / "err").open("wb") as err:
        process = subprocess.Popen([ns, "run.tcl"], cwd=directory, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        usage = _programs.wait(process)
    answers = directory / ANSWERS
    said_in = answers if answers.exists() else directory / "out"
    lines = said_in.read_text(encoding="utf-8", errors="replace").splitlines()
    if process.returncode != 0 or not lines or lines[-1] != "END":
        complaint = (directory / "err").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        said = complaint[0] if complaint else (lines[-1] if lines else "nothing")
        raise Ns2Failed(f"ns-2 stopped with status {process.returncode} and said: {said}")
    output = _parse(lines)
    output.cpu_s = usage.ru_utime + usage.ru_stime
    output.user_s = usage.ru_utime
    output.wall_s = time.perf_counter() - begin
    return output


def _parse(lines: Sequence[str]) -> Output:
    output = Output()
    for line in lines:
        kind, *words = line.split()
        match kind:
            case "S":
                output.times_s.append(float(words[0]))
                output.queue_integrals.append({})
                output.flows.append({})
                output.wire_lost.append({})
                output.datagrams.append({})
            case "L":
                output.queue_integrals[-1][int(words[0])] = float(words[1])
            case "F":
                number, delivered, sent, again, timeouts = (int(word) for word in words)
                output.flows[-1][number] = (delivered, sent, again, timeouts)
            case "W":
                output.wire_lost[-1][int(words[0])] = int(words[1])
            case "U":
                number, arrived, missing, runs = (int(word) for word in words)
                output.datagrams[-1][number] = (arrived, missing, runs)
            case "T":
                one = (float(words[1]), int(words[2]), float(words[3]))
                output.served.transfers.setdefault(int(words[0]), []).append(one)
            case "G":
                output.served.pages.setdefault(int(words[0]), []).append((float(words[1]), float(words[2])))
            case "R":
                output.served.refused.setdefault(int(words[0]), []).append(float(words[1]))
            case "P":
                probability = None if words[3] == "-" else float(words[3])
                output.samples.setdefault(int(words[0]), []).append((float(words[1]), int(words[2]), probability))
            case "M":
                output.metered_ns.append(int(words[0]))
            case "C":
                output.counts[int(words[0])] = int(words[1])
    return output


def run(plan: Mapping[str, Any] | Plan, *, timing: bool = False) -> dict[str, Any]:
    """Simulate one plan (one scenario, one seed) in ns-2.

    `timing` disables traces and monitors; the result then contains only `cost`.
    """
    plan = plan if isinstance(plan, Plan) else Plan.from_dict(plan)
    with tempfile.TemporaryDirectory(prefix="aqumen-ns2-") as name:
        directory = Path(name)
        output = execute(script(plan, timing=timing), directory)
        links: dict[str, Any] = {}
        series: dict[str, Any] = {}
        packets = 0
        for i, link in enumerate(plan.links):
            if timing or not link.record:
                continue
            trace = read_trace(directory / trace_file(i), link)
            packets += len(trace.left_s)
            links[link.name] = {
                window: link_metrics(trace, link, start, end, _integral(output, i, start, end), plan.sample_interval_s)
                | _wire_metrics(output, i, start, end)
                for window, (start, end) in plan.windows.items()
            }
            samples = output.samples[i]
            series[link.name] = {
                "t": [sample[0] for sample in samples],
                "queue_pkts": [sample[1] for sample in samples],
                "p": [sample[2] for sample in samples],
            }
    return answer(
        "ns2",
        plan,
        links=links,
        flows={} if timing else _groups(plan, output),
        series=series,
        cpu_s=output.cpu_s,
        wall_s=output.wall_s,
        packets=None if timing else packets,
    )


def _snapshot(output: Output, time_s: float) -> int | None:
    """Return the index of the snapshot at a time; None at time 0, where all counters are zero."""
    return None if time_s == 0.0 else min(range(len(output.times_s)), key=lambda k: abs(output.times_s[k] - time_s))


def _integral(output: Output, link: int, start_s: float, end_s: float) -> float:
    def at(time_s: float) -> float:
        k = _snapshot(output, time_s)
        return 0.0 if k is None else output.queue_integrals[k][link]

    return at(end_s) - at(start_s)


def _wire_metrics(output: Output, link: int, start_s: float, end_s: float) -> dict[str, int]:
    """Count packets lost on a wire in a window, by time of arrival; empty for a wire without losses."""

    def at(time_s: float) -> int:
        k = _snapshot(output, time_s)
        return 0 if k is None else output.wire_lost[k].get(link, 0)

    return {"wire_lost_pkts": at(end_s) - at(start_s)} if output.wire_lost[-1].get(link) is not None else {}


def _groups(plan: Plan, output: Output) -> dict[str, Any]:
    return {
        group.name: {
            window: _group_metrics(plan, output, range(group.first, group.last), start, end)
            | _datagram_metrics(output, range(group.first, group.last), start, end)
            | _requests(plan, output, number, (start, end))
            for window, (start, end) in plan.windows.items()
        }
        for number, group in enumerate(plan.groups)
    }


def _requests(plan: Plan, output: Output, number: int, window: tuple[float, float]) -> dict[str, Any]:
    group = plan.groups[number]
    if group.requests is None:
        return {}
    return request_metrics(output.served, range(group.first, group.last), number, plan.flows, plan.links, window)


def _datagram_metrics(output: Output, flows: range, start_s: float, end_s: float) -> dict[str, float | None]:
    """Return loss ratio and mean length of a loss burst of a UDP group in a window."""

    def at(time_s: float, flow: int) -> tuple[int, int, int]:
        k = _snapshot(output, time_s)
        return (0, 0, 0) if k is None else output.datagrams[k].get(flow, (0, 0, 0))

    pairs = [(at(start_s, flow), at(end_s, flow)) for flow in flows]
    arrived, missing, runs = (sum(after[k] - before[k] for before, after in pairs) for k in range(3))
    if arrived + missing == 0:
        return {}
    return {"loss_ratio": missing / (arrived + missing), "loss_burst_mean_pkts": missing / runs if runs else None}


def _group_metrics(plan: Plan, output: Output, flows: range, start_s: float, end_s: float) -> dict[str, Any]:
    """Return goodput, fairness, retransmissions and time-outs of flows in a window; ns-2 reports no RTTs."""

    def at(time_s: float, flow: int) -> tuple[int, int, int, int]:
        k = _snapshot(output, time_s)
        return (0, 0, 0, 0) if k is None else output.flows[k][flow]

    rates = []
    sent = again = timeouts = 0
    for flow in flows:
        before, after = at(start_s, flow), at(end_s, flow)
        # The receiver counts whole packets and the SYN, modulo 2^32. Integer division removes the SYN's header.
        size, payload = _sizes(plan, flow)
        rates.append(((after[0] - before[0]) % 2**32) // size * payload * 8.0 / (end_s - start_s))
        sent += after[1] - before[1]
        again += after[2] - before[2]
        timeouts += after[3] - before[3]
    is_tcp = all(isinstance(plan.groups[plan.flows[flow].group].transport, Transport) for flow in flows)
    goodputs = np.array(rates)
    squares = float(np.dot(goodputs, goodputs))
    return {
        "goodput_bps": float(goodputs.sum()),
        "jain_fairness": float(goodputs.sum()) ** 2 / (len(goodputs) * squares) if squares > 0.0 else None,
        "rtt_mean_s": None,
        "retransmitted_ratio": again / sent if sent else None,
        "timeouts": timeouts if is_tcp else None,
    }


def _sizes(plan: Plan, flow: int) -> tuple[int, int]:
    """Return the size of a flow's full packet and of its payload, bytes."""
    transport = plan.groups[plan.flows[flow].group].transport
    if isinstance(transport, Udp):
        payload = transport.generator.payload_bytes
        return payload + transport.header_bytes, payload
    return transport.packet_bytes, transport.packet_bytes - transport.header_bytes
