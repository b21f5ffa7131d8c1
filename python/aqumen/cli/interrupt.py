"""Ctrl-C that keeps what is finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["first_interrupt"]


@contextmanager
def first_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets, so that finished runs are kept; a second one raises as usual."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
