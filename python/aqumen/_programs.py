"""Programs that a run starts and waits for: none of them outlives the run."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Collection
from typing import Any

__all__ = ["stop", "wait"]

_waiting: dict[int, subprocess.Popen[Any]] = {}
"""What each thread, by its number, waits for."""


def wait(process: subprocess.Popen[Any]) -> Any:
    """Wait for a program's end and give what it used (`os.wait4`); where the wait is broken off the program ends too.

    With it ends what it has started itself, if it leads a session of its own (`start_new_session`).

    Args:
        process: The program.
    """
    me = threading.get_ident()
    _waiting[me] = process
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        _end(process)
        process.wait()
        raise
    finally:
        del _waiting[me]
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage


def stop(threads: Collection[int]) -> None:
    """End what these threads wait for.

    Args:
        threads: Their numbers.
    """
    for thread in threads:
        process = _waiting.get(thread)
        if process is not None:
            _end(process)


def _end(process: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
