"""Whether this machine wakes a program on time: what a live run is late by may be ours, or the machine's.

A disk that is written to, or a neighbour of a virtual machine, keeps a program of any priority from its CPU for
milliseconds; then a live run shows nothing. A probe beside the run, which only sleeps, tells the two apart.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

# A live run may be 2 ms late. Where one sleep in a hundred ends half of that too late, the machine disturbs it;
# on a quiet one it is a tenth of a millisecond.
DISTURBED_S = 0.001
PROBE = """
import os, select, sys, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
except PermissionError:
    pass
late = []
while not select.select([sys.stdin], [], [], 0)[0]:
    began = time.monotonic()
    time.sleep(0.001)
    late.append(time.monotonic() - began - 0.001)
late.sort()
print(late[len(late) * 99 // 100] if late else 0.0)
"""


class Probe:
    """While it is entered a program sleeps a millisecond at a time, with the priority of the links of a live run."""

    late_s: float

    def __enter__(self) -> "Probe":
        words = [sys.executable, "-c", PROBE]
        self.program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.late_s = float(self.program.communicate()[0])

    @property
    def disturbed(self) -> bool:
        """Whether one sleep in a hundred ended too late."""
        return self.late_s > DISTURBED_S


def calm(patience_s: float = 60) -> None:
    """Wait until what waits for the disk is written and this machine wakes programs on time, but not for ever."""
    os.sync()
    end, probe = time.monotonic() + patience_s, None
    while (probe is None or probe.disturbed) and time.monotonic() < end:
        with Probe() as probe:
            time.sleep(1)


def counted(run: Callable[[], Any], host: Callable[[Any], dict[str, Any]]) -> Any:
    """Result of `run` with a valid `host`. A late run is repeated once.

    Late twice is a failure, unless the machine itself was late: then the test is skipped, for it has shown nothing.
    """
    for _ in range(2):
        calm()
        with Probe() as probe:
            answer = run()
        if host(answer)["valid"]:
            return answer
    why = f"invalid twice: {host(answer)['invalid_because']}"
    if not probe.disturbed:
        raise AssertionError(f"{why}; this machine was on time")
    pytest.skip(f"{why}; one sleep in a hundred of this machine was {1e3 * probe.late_s:.1f} ms late")
