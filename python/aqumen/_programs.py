"""Child processes that never outlive the run that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Collection
from typing import Any

__all__ = ["stop", "wait"]

_waiting: dict[int, subprocess.Popen[Any]] = {}
"""Process that each thread waits for, by thread number."""


def wait(process: subprocess.Popen[Any]) -> Any:
    """Wait for a process to end and return its resource usage (`os.wait4`). An interrupted wait kills the process.

    Its own children are killed too if it leads a session (`start_new_session`).

    Args:
        process: Running child process.
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
    """Kill the processes that threads wait for.

    Args:
        threads: Thread numbers.
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
