"""Reads the packet trace of one queue.

ns-2 writes a line per packet that arrives (`+`), leaves the queue for transmission (`-`) or is dropped (`d`; `e` when
the AQM dropped it early), with the time rounded to a microsecond. The queue is first in, first out and drops arriving
packets only, so that the k-th packet let in is the k-th to leave: lengths and waits follow, exact to that microsecond.
"""

from pathlib import Path

import numpy as np

from aqumen.engines.external.plan import Link
from aqumen.engines.external.trace import QueueTrace

from .errors import Ns2Failed

__all__ = ["read_trace"]

_CE = 4
"""Position of the congestion-experienced flag among the seven flag characters of a trace line."""


def read_trace(path: Path, link: Link) -> QueueTrace:
    """Read the trace of `link` that ns-2 left at `path`."""
    arrived: list[str] = []
    let_in: list[tuple[float, bool]] = []
    left: list[float] = []
    sizes: list[int] = []
    waits: list[float] = []
    marked: list[bool] = []
    lost: list[tuple[float, int, bool]] = []
    change: list[float] = []
    length: list[int] = []
    waiting = waiting_bytes = 0
    head = 0
    # Queues that do not say why they drop (REM, AVQ): a drop is an overflow when the buffer was full.
    tells = link.aqm.name not in ("rem", "avq")
    with path.open(encoding="ascii") as lines:
        for line in lines:
            what, time, _, _, _, size, flags, _ = line.split(" ", 7)
            now = float(time)
            if what == "+":
                arrived.append(time)
                # The packet that came last counts as let in until a drop at the same moment says otherwise.
                let_in.append((now, flags[_CE] == "E"))
                waiting += 1
                waiting_bytes += int(size)
            elif what == "-":
                came, ce_before = let_in[head]
                head += 1
                waiting -= 1
                waiting_bytes -= int(size)
                left.append(now)
                sizes.append(int(size))
                waits.append(now - came)
                marked.append(flags[_CE] == "E" and not ce_before)
            else:
                if not let_in or let_in[-1][0] != now:
                    raise Ns2Failed(f"{path.name}: a packet was dropped at {now} that had not just arrived")
                let_in.pop()
                full = what == "d" and (tells or _overflows(link, waiting, waiting_bytes))
                waiting -= 1
                waiting_bytes -= int(size)
                lost.append((now, len(arrived), not full))
            change.append(now)
            length.append(waiting)
    return QueueTrace(
        arrived_s=np.array(arrived, dtype=np.float64),
        left_s=np.array(left),
        left_bytes=np.array(sizes, dtype=np.float64),
        wait_s=np.array(waits),
        marked=np.array(marked, dtype=np.bool_),
        early_drop_s=np.array([now for now, _, early in lost if early]),
        overflow_drop_s=np.array([now for now, _, early in lost if not early]),
        lost=np.array(lost, dtype=np.float64).reshape(-1, 3),
        change_s=np.array(change),
        length_pkts=np.array(length, dtype=np.float64),
    )


def _overflows(link: Link, pkts: int, size_bytes: int) -> bool:
    """Whether the buffer has no room for so many packets and bytes."""
    if link.buffer_bytes is not None:
        return size_bytes > link.buffer_bytes
    assert link.buffer_pkts is not None
    return pkts > link.buffer_pkts
