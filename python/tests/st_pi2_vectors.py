"""Vectors of ST-PI2: an independent implementation, from the equations of docs/aqms/st-pi2.md, before a link.

`python python/tests/st_pi2_vectors.py crates/aqm/vectors` writes them anew. Rows: `arrive` is a packet, with the queue
that it meets and its fate (0 passed, 1 marked, 2 dropped); `step` is a step of the law, with the counters that it reads
and the state after it.
"""

from __future__ import annotations

import heapq
import json
import math
import random
import sys
from pathlib import Path
from typing import Any

WAYS, SETS, HANDSHAKES = 4, 512, 256
MARK, DROP = 1, 2


def nanos(seconds: float) -> int:
    """Return whole nanoseconds."""
    return math.floor(seconds * 1e9 + 0.5)


class Model:
    """ST-PI2 by the book."""

    def __init__(self, sigma=0.3, b=0.25, gamma=0.5, rtt=0.1, idle=2.0, exempt=1.0, ecn=True) -> None:
        self.sigma, self.b, self.gamma, self.given, self.weight, self.exempt, self.ecn = (
            *(sigma, b, gamma, rtt, idle, exempt),
            ecn,
        )
        self.rtt, self.samples, self.mean_rtt, self.open = rtt, 0, 0.0, {}
        self.root = self.average = self.delay = self.target = self.idle = 0.0
        self.n, self.steps = 1.0, 0
        self.sent = self.busy = 0.0
        self.waited = False
        self.epoch, self.epoch_ns, self.epoch_s, self.seen, self.active = 1, 0, 4 * rtt, 0, 0
        self.mean_rate = self.mean_bytes = 0.0
        self.sets: list[list[dict[str, Any]]] = [
            [{"flow": 0, "epoch": 0, "last": 0, "bytes": 0, "before": 0.0, "sum": 0.0} for _ in range(WAYS)]
            for _ in range(SETS)
        ]
        self.last_ns = 0
        self.totals = (0, 0, 0)

    @property
    def capacity(self) -> float:
        return self.sent / self.busy if self.busy > 0 else 0.0

    @property
    def period_ns(self) -> int:
        return nanos(min(max(self.rtt / 8, 2e-4), 0.05))

    def handshake(self, flow: int, syn: bool, now: int, wait: float) -> None:
        slot = (flow * 0x9E3779B1 % 2**32) >> 24
        if syn:
            self.open[slot] = (flow, now + nanos(wait))
        elif slot in self.open and self.open[slot][0] == flow:
            taken = max(0, now - self.open.pop(slot)[1])
            if taken <= 3 * 10**9:
                self.samples += 1
                self.mean_rtt += max(1 / 16, 1 / self.samples) * (max(taken / 1e9, 1e-5) - self.mean_rtt)

    def place(self, flow: int, size: int) -> tuple[dict[str, Any], float]:
        ways = self.sets[(flow * 0x9E3779B1 % 2**32) >> 23]
        found = [way for way in ways if way["flow"] == flow and way["epoch"] > 0]
        way = found[0] if found else min(ways, key=lambda way: way["epoch"])
        if not found:
            live = way["epoch"] > 0 and way["epoch"] + 1 >= self.epoch
            way.update(flow=flow, epoch=0, last=0, bytes=0, before=0.0, sum=way["sum"] if live else 0.0)
        if way["epoch"] != self.epoch:
            way["before"] = way["bytes"] if way["epoch"] + 1 == self.epoch else 0
            if way["epoch"] + 8 < self.epoch:
                way["sum"] = 0.0
            way["epoch"], way["bytes"] = self.epoch, 0
            self.seen += 1
        way["bytes"] += size
        return way, way["before"] + way["bytes"]

    def arrive(self, now: int, flow: int, size: int, ecn: int, syn: bool, packets: int, waiting: int) -> int:
        c = self.capacity
        self.handshake(flow, syn, now, waiting / c if c > 0 else 0.0)
        fair = c / max(self.active, self.seen, 1)
        way, recent = self.place(flow, size)
        rate = recent / (self.epoch_s + (now - self.epoch_ns) / 1e9)
        share = min(1.0, size / (c * self.epoch_s)) if c > 0 else 1.0
        self.mean_rate += share * (rate - self.mean_rate)
        self.mean_bytes = self.mean_bytes + share * (size - self.mean_bytes) if self.mean_bytes > 0 else size
        if self.root <= 0 or packets <= self.exempt:
            return 0
        scalable = self.ecn and ecn == 1
        if not scalable and self.root < 0.3 and way["last"] > 0 and self.steps - way["last"] < 8:
            return 0
        if scalable:
            p = min(1.0, 2 * self.root)
        else:
            at = min(self.root, max(self.average, self.root / 10))
            p = at * (2 * self.root - at)
        m = size / self.mean_bytes
        if rate > fair:
            m = max(1.0, m)
        w = min(4.0, max(0.25, (rate / self.mean_rate) ** self.gamma)) if self.gamma > 0 and self.mean_rate > 0 else 1.0
        way["sum"] += p * m * w
        if way["sum"] < 1:
            return 0
        way["sum"] = min(1.0, way["sum"] - 1)
        way["last"] = self.steps
        return DROP if self.root > 0.5 or not self.ecn or ecn == 0 else MARK

    def step(self, now: int, packets: int, waiting: int, sent: int, busy_ns: int, busy_until_ns: int) -> None:
        self.rtt = self.mean_rtt if self.samples else self.given
        h = (now - self.last_ns) / 1e9
        idle_s = max(0, now - self.last_ns - (busy_until_ns - self.totals[2])) / 1e9
        departed, busy = sent - self.totals[0], (busy_ns - self.totals[1]) / 1e9
        self.last_ns, self.totals = now, (sent, busy_ns, busy_until_ns)
        if packets > 0 and self.waited:
            busy = h
        self.waited = packets > 0
        if busy > 0 and departed > 0:
            keep = math.exp(-busy / max(self.rtt, 0.02))
            self.sent, self.busy = self.sent * keep + departed, self.busy * keep + busy
        c = self.capacity
        if c <= 0 or h <= 0:
            return
        packet, d = max(40.0, self.mean_bytes), waiting / c
        self.n = max(1.0, c / packet * (self.rtt + self.target) * self.average / math.sqrt(2))
        self.target = max(self.sigma * self.rtt / math.sqrt(self.n), self.exempt * packet / c)
        r = self.rtt + self.target
        a = max(math.sqrt(2) * self.average, 0.03) / r
        self.idle += (1 - math.exp(-h / r)) * (idle_s / h - self.idle)
        signals = c * r / packet * max(self.root, self.average) ** 2
        b = self.b * min(1.0, max(0.2, signals))
        k = b * math.sqrt(1 + b**2) / (math.sqrt(2) * r)
        missing = self.weight * r * self.idle
        self.root = min(1.0, max(0.0, self.root + k * (d - self.delay + a * h * (d - self.target - missing))))
        self.delay = d
        self.average += (1 - math.exp(-h / (10 * r))) * (self.root - self.average)
        self.steps += 1
        if (now - self.epoch_ns) / 1e9 >= self.epoch_s:
            self.epoch_ns, self.epoch_s = now, max(0.005, 4 * (self.rtt + self.target))
            self.epoch, self.active, self.seen = self.epoch + 1, self.seen, 0


def trace(packets: list[tuple[int, int, int, int, bool]], rate_bps: float, settings: dict[str, Any]) -> list[Any]:
    """Return the rows of a link of this rate that gets these packets: time (ns), flow, size, ECN field, SYN."""
    model, rows = Model(**settings), []
    queue: list[int] = []
    sent = sent_bytes = busy_ns = 0
    ends, since, size_sent = None, None, 0
    arrivals = list(packets)
    heapq.heapify(arrivals)
    due = model.period_ns
    while arrivals:
        now = min([due, arrivals[0][0]] + ([ends] if ends is not None else []))
        if due == now:
            until = busy_ns + (now - since if since is not None else 0)
            waiting = sum(queue)
            model.step(now, len(queue), waiting, sent_bytes, busy_ns, until)
            state = {
                "root": model.root, "average": model.average, "target": model.target, "delay": model.delay,
                "idle": model.idle, "flows": model.n, "rtt": model.rtt, "capacity": 8 * model.capacity,
            }  # fmt: skip
            counters = {"q": len(queue), "bytes": waiting, "dep": sent, "dep_bytes": sent_bytes, "busy_ns": busy_ns}
            rows.append({"op": "step", "t_ns": now, **counters, "since_ns": since, **state})
            due = now + model.period_ns
            continue
        if ends == now:
            sent, sent_bytes, busy_ns = sent + 1, sent_bytes + size_sent, busy_ns + now - since
            ends = since = None
        else:
            _, flow, size, ecn, syn = heapq.heappop(arrivals)
            packets_waiting, waiting = len(queue), sum(queue)
            fate = model.arrive(now, flow, size, ecn, syn, packets_waiting, waiting)
            rows.append(
                {"op": "arrive", "t_ns": now, "flow": flow, "size": size, "ecn": ecn, "syn": int(syn),
                 "q": packets_waiting, "bytes": waiting, "fate": fate}
            )  # fmt: skip
            if fate != DROP:
                queue.append(size)
        if ends is None and queue:
            size_sent = queue.pop(0)
            since, ends = now, now + nanos(size_sent * 8 / rate_bps)
    return rows


def load(seed: int, flows: list[int], seconds: float, rate_pps: float, ecn: list[int], sizes: list[int]) -> list[Any]:
    """Return packets at random, each flow with a share, size and ECN field; each after a handshake."""
    draw = random.Random(seed)
    weights = [1 / (k + 1) for k in range(len(flows))]
    packets = []
    for flow in flows:
        at = draw.randrange(10**7)
        packets += [(at, flow, 60, 0, True), (at + 30_000_000 + draw.randrange(10**6), flow, 60, 0, False)]
    for _ in range(int(seconds * rate_pps)):
        k = draw.choices(range(len(flows)), weights)[0]
        at = 45_000_000 + draw.randrange(int(seconds * 1e9))
        packets.append((at, flows[k], sizes[k % len(sizes)], ecn[k % len(ecn)], False))
    return sorted(packets)


def vectors() -> dict[str, tuple[str, dict[str, Any], list[Any]]]:
    """Return description, settings and rows by name."""
    alike = [flow for flow in range(400_000) if (flow * 0x9E3779B1 % 2**32) >> 23 == 7][:7]
    few, many = list(range(1, 7)), list(range(100, 130))
    drops: dict[str, Any] = {"ecn": False, "gamma": 0.0, "idle": 0.0}
    late: dict[str, Any] = {"rtt": 0.04, "exempt": 1.0}

    def later(packets: list[Any], by_ns: int) -> list[Any]:
        return [(at + by_ns, *rest) for at, *rest in packets]

    paused = load(3, few, 0.4, 400, [2], [1000]) + later(load(4, few, 0.4, 500, [2], [1000]), 9 * 10**8)
    light = load(6, few, 0.3, 420, [2], [1200]) + later(load(7, few, 0.6, 300, [2], [1200]), 3 * 10**8)
    without = [packet for packet in load(5, alike, 0.8, 500, [0, 2], [1500, 200]) if not packet[4]]
    slow = {"b": 0.15}
    classic = load(1, few, 0.9, 420, [2], [1500])
    mixed = load(2, many, 0.7, 800, [2, 1, 1], [1500, 100, 600])
    return {
        "st_pi2_classic": ("six classic flows, 140 % load, marked", slow, trace(classic, 3.6e6, slow)),
        "st_pi2_mixed": (
            "ECT(0), ECT(1), sizes of 100 to 1500 B, double load until marks become drops",
            {"b": 0.6},
            trace(mixed, 1.8e6, {"b": 0.6}),
        ),
        "st_pi2_idle": (
            "pauses that leave the link idle; without marks, gamma and the weight of idle time off",
            drops,
            trace(paused, 2.4e6, drops),
        ),
        "st_pi2_sets": ("seven flows that share a set of four places, without SYN", late, trace(without, 2.7e6, late)),
        "st_pi2_light": ("a light load after a start: the link idles", {}, trace(light, 3.2e6, {})),
    }


def main() -> None:
    for name, (description, settings, rows) in vectors().items():
        file = {
            "name": name, "algorithm": "st-pi2", "description": description, "params": settings,
            "tolerance": 1e-9, "tolerance_abs": 1e-12, "tolerance_kind": "relative",
        }  # fmt: skip
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        head = json.dumps(file, indent=1)[:-2]
        Path(sys.argv[1], f"{name}.json").write_text(f'{head},\n "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
