"""Runs `aqumend` for one job and reads its result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen.engines.external.answer import ExternalAnswer
from aqumen.errors import Cancelled, EngineError

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats
    from aqumen.engines.kinds import Job
    from aqumen.scenario import Scenario

__all__ = ["LiveAnswer", "LiveError", "find_program", "run"]

PROGRAM = "aqumend"
PREFIX = f"{PROGRAM}: "
PROGRESS = "progress "


class LiveError(EngineError):
    """`aqumend` is missing or refused the run."""


class LiveAnswer(ExternalAnswer):
    """Result of `aqumend`: the keys of the packet engine, and `host`."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Wrap the program's output.

        Args:
            answer: Dictionary with `result`, the metrics, and `curves`, series and distributions.
        """
        curves = answer["curves"]
        super().__init__({**answer["result"], "series": curves["series"], "sojourn": curves["sojourn"]})
        self._queue = curves["queue"]

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return queue lengths (packets) and the fraction of time at or below each."""
        packets, share = self._queue[link][window]
        return np.array(packets, dtype=np.float64), np.array(share, dtype=np.float64)


def find_program() -> Path:
    """Find `aqumend` beside this Python or on the path; raise `LiveError` if it is absent."""
    found = shutil.which(PROGRAM, path=str(Path(sys.executable).parent)) or shutil.which(PROGRAM)
    if found is None:
        what = "in a checkout of Aqumen `make setup` builds it" if sys.platform == "linux" else "it needs Linux"
        raise LiveError(f"engine `live` needs the program {PROGRAM}, which is not installed; {what}")
    return Path(found)


class _Machine:
    """Lock of this machine: shared by concurrent runs, or exclusive for one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._running == 0)
            # Holding the lock keeps other runs from starting.
            yield


_MACHINE = _Machine()


def run(scenario: Scenario, job: Job, progress: Callable[[float], bool] | None = None) -> LiveAnswer:
    """Run one job in real time.

    A run with late packets is repeated once, without concurrent runs of this process. If it is late again, `host` in
    the result says so.

    Args:
        scenario: The network, its flows, and what happens during a run.
        job: AQM and seed.
        progress: Called with the completed fraction, 0 to 1; returning `False` stops the run.
    """
    aqm, seed = job
    command = [
        str(find_program()),
        "run",
        "-",
        "--name",
        scenario.core.file,
        "--seed",
        str(seed),
        "--curves",
        "--progress",
    ]
    if aqm is not None:
        command += ["--aqm", aqm]
    told = 0.0

    def tell(share: float) -> bool:
        nonlocal told
        told = max(told, share)
        return progress is None or progress(told)

    with _MACHINE.shared():
        answer = _answer(command, scenario.to_toml(), tell)
    if not answer["result"]["host"]["valid"]:
        with _MACHINE.alone():
            answer = _answer(command, scenario.to_toml(), tell)
    return LiveAnswer(answer)


def _answer(command: list[str], text: str, progress: Callable[[float], bool]) -> dict[str, Any]:
    """Run the program and return its output."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE, text=True)
        try:
            said, stopped = _follow(process, text, progress)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        code = process.wait()
        if stopped:
            raise Cancelled("the run was stopped")
        if code != 0:
            raise LiveError(said[-1].removeprefix(PREFIX) if said else f"{PROGRAM} ended with code {code}")
        out.seek(0)
        answer: dict[str, Any] = json.load(out)
        return answer


def _follow(process: subprocess.Popen[str], text: str, progress: Callable[[float], bool]) -> tuple[list[str], bool]:
    """Write the scenario to the program and read its messages to the end. Returns them, and whether `progress` stopped
    it.
    """
    assert process.stdin is not None
    assert process.stderr is not None
    said, stopped = [], False
    try:
        # Close in any case: otherwise unread data would be written again when the pipe is destroyed.
        with process.stdin as pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass
    for line in process.stderr:
        if not line.startswith(PROGRESS):
            said.append(line.strip())
        elif not stopped and not progress(float(line.removeprefix(PROGRESS))):
            stopped = True
            process.terminate()
    process.stderr.close()
    return said, stopped
