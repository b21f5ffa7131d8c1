"""Starts `aqumend` for one run and reads what it answers."""

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
    """The engine is missing, or refused the run; one line."""


class LiveAnswer(ExternalAnswer):
    """What `aqumend` answered: all that a run of the packet engine has, and `host`."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Take the program's dictionary.

        Args:
            answer: Under `result` the metrics, under `curves` series and distributions.
        """
        curves = answer["curves"]
        super().__init__({**answer["result"], "series": curves["series"], "sojourn": curves["sojourn"]})
        self._queue = curves["queue"]

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Queue lengths in packets and the share of time at or below each."""
        packets, share = self._queue[link][window]
        return np.array(packets, dtype=np.float64), np.array(share, dtype=np.float64)


def find_program() -> Path:
    """Where `aqumend` is: beside this Python, else on the path; raises `LiveError` where it is not."""
    found = shutil.which(PROGRAM, path=str(Path(sys.executable).parent)) or shutil.which(PROGRAM)
    if found is None:
        what = "in a checkout of Aqumen `make setup` builds it" if sys.platform == "linux" else "it needs Linux"
        raise LiveError(f"engine `live` needs the program {PROGRAM}, which is not here; {what}")
    return Path(found)


class _Machine:
    """Which runs share this machine: any number beside each other, or one alone."""

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
            # The lock stays ours: nobody begins meanwhile.
            yield


_MACHINE = _Machine()


def run(scenario: Scenario, job: Job, progress: Callable[[float], bool] | None = None) -> LiveAnswer:
    """Run one job; it takes as long as the scenario says.

    A machine that was busy for a moment gets a second chance, and no third: a run that was late is repeated once, with
    no other run of this process beside it; one that was late twice says so under `host`.

    Args:
        scenario: The network, its flows, and what happens during a run.
        job: AQM and seed.
        progress: Called now and then with the share done, 0 to 1; `False` stops the run.
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
    """What the program answers to one run."""
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
    """Hand the scenario over and listen until the program ends: what it said, and whether `progress` stopped it."""
    assert process.stdin is not None
    assert process.stderr is not None
    said, stopped = [], False
    try:
        # Closed in any case: else what the program did not read would be written once more when the pipe goes away.
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
