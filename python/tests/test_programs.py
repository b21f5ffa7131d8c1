"""Programs that a run starts: what they used, and that none outlives the run."""

import os
import signal
import subprocess
import threading
import time

import pytest

from aqumen import _programs


def started(line, **more):
    return subprocess.Popen(["sh", "-c", line], **more)


def alive(pid):
    """Whether a process is there and no mere entry of one that ended."""
    told = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(told.strip()) and not told.startswith("Z")


def test_a_program_is_waited_for_with_what_it_used():
    process = started("exit 3")
    usage = _programs.wait(process)
    assert process.returncode == 3
    assert usage.ru_utime >= 0
    assert _programs._waiting == {}
    killed = started("kill -9 $$")
    _programs.wait(killed)
    assert killed.returncode == -signal.SIGKILL


def test_where_the_wait_is_broken_off_the_program_ends_with_all_that_it_started(monkeypatch, tmp_path):
    process = started(f"sleep 60 & echo $! > {tmp_path / 'pid'}; wait", start_new_session=True)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.01)

    def interrupted(pid, options):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "wait4", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _programs.wait(process)
    assert process.returncode == -signal.SIGKILL
    assert _programs._waiting == {}
    child = int((tmp_path / "pid").read_text())
    # Whoever is left of it is no longer at work.
    while alive(child):
        time.sleep(0.01)


def test_what_a_thread_waits_for_is_ended_from_another():
    process = started("sleep 60")
    thread = threading.Thread(target=_programs.wait, args=(process,))
    thread.start()
    while thread.ident not in _programs._waiting:
        time.sleep(0.01)
    # Who waits for nothing is left alone.
    _programs.stop([threading.get_ident()])
    assert thread.is_alive()
    _programs.stop([threading.get_ident(), thread.ident])
    thread.join()
    assert process.returncode == -signal.SIGKILL
