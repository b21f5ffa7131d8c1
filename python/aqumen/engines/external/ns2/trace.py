"""Reader for ns-2's packet trace of one queue.

ns-2 writes a line for each packet that arrives (`+`), departs (`-`) or is dropped (`d`; `e` for early), with
the time rounded to 1 us. The queue is FIFO and drops only arriving packets, so the k-th accepted packet is the k-th to
leave. Queue lengths and sojourn times follow with a precision of 1 us.
"""

from pathlib import Path

import numpy as np

from aqumen.engines.external.plan import Link
from aqumen.engines.external.trace import QueueTrace

from .errors import Ns2Failed

__all__ = ["read_trace"]

_CE = 4
"""Index of the CE flag among the seven flag characters of a trace line."""


def read_trace(path: Path, link: Link) -> QueueTrace:
    """Read the trace that ns-2 wrote for a link."""
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
    # REM and AVQ give no reason for a drop: it is an overflow if the buffer was full.
    tells = link.aqm.name not in ("rem", "avq")
    with path.open(encoding="ascii") as lines:
        for line in lines:
            what, time, _, _, _, size, flags, _ = line.split(" ", 7)
            now = float(time)
            if what == "+":
                arrived.append(time)
                # An arriving packet counts as accepted unless a drop at the same time follows.
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
                    raise Ns2Failed(f"{path.name}: the packet dropped at {now} did not arrive at that time")
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
    """Return whether the buffer is too small for these packets and bytes."""
    if link.buffer_bytes is not None:
        return size_bytes > link.buffer_bytes
    assert link.buffer_pkts is not None
    return pkts > link.buffer_pkts
