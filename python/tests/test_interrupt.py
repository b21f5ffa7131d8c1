"""Ctrl-C is answered whatever an engine is at: by exit code 130 and one line, not when the work is done."""

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

LONG = ("--set", "duration=80000s", "--set", "record.interval=10s")
"""Minutes of work, whichever engine."""
SLOW_MODEL = """
name = "slow"
[queue]
buffer = "400pkt"
service = "100pkt/s"
stages = 10
[[sources]]
name = "calls"
minisources = { count = 700, on = "400ms", off = "600ms", rate = "0.2pkt/s" }
"""
"""701 states at each of 4000 stages: a cycle of the iteration takes about a second."""
MANY_WINDOWS = (
    "import aqumen, aqumen.explain.prediction as beside; from aqumen.scenario import Scenario;"
    "text = Scenario.load('arm-pfc/exp1').to_toml() + ''.join("
    'f\'\\n[[events]]\\nat = "{k / 1000}s"\\ncapacity = "{9000 + k}kbit"\\n\' for k in range(1100, 10100));'
    "scenario = Scenario.parse(text); print('ready', flush=True); beside.predict(scenario, 'st-arm-pfc')"
)
"""A network of its own after each of 9000 events, to be analysed: half an hour, so that no machine is through before
the signal comes."""
LARGE_MAP = (
    "import numpy as np; from aqumen.theory import design, stability_map;"
    "found = design('red', capacity='10Mbit', flows=100, rtt='200ms', target='100pkt');"
    "axis = np.geomspace(1, 1000, 600);"
    "print('ready', flush=True); stability_map(found, 'flows', axis, 'rtt', axis / 1000)"
)
DESIGNS = (
    "from aqumen.theory import design; print('ready', flush=True)\n"
    "while True: design('st-arm-pfc', capacity='10Mbit', flows=10, rtt='400ms', target='100pkt')"
)


def heard():
    """In the foreground: a shell's background job would not hear the signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def stopped(*args, folder=None, begun=lambda: True, foreseen=False):
    """Output and exit code of a program that gets SIGINT half a second after it is ready.

    With `foreseen` the half second begins when it has said how long it will take, which is its first line.
    """
    words = ["-c", f"print('ready', flush=True); from aqumen.cli import main; raise SystemExit(main({list(args)}))"]
    if args[0] == "-c":
        words = list(args)
    program = subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        preexec_fn=heard,
    )
    try:
        assert program.stdout.readline() == "ready\n"
        first = program.stderr.readline() if foreseen else ""
        time.sleep(0.5)
        for _ in range(300):
            if begun():
                break
            time.sleep(0.1)
        assert program.poll() is None, program.communicate()
        os.kill(program.pid, signal.SIGINT)
        # Generous: the machine may be busy. What is interrupted would go on for minutes.
        _, said = program.communicate(timeout=30)
        return program.returncode, first + said
    finally:
        program.kill()


@pytest.mark.parametrize(
    "args",
    [
        ("run", "arm-pfc/exp1", "--aqm", "pi", *LONG),
        ("run", "arm-pfc/exp1", "--aqm", "pi", "--engine", "fluid", *LONG),
        ("compare", "arm-pfc/exp1", "--aqm", "pi,red", "--seeds", "2", *LONG),
        ("compare", "arm-pfc/exp1", "--aqm", "pi,red", "--seeds", "2", "--engine", "fluid", *LONG),
    ],
    ids=["run", "run fluid", "compare", "compare fluid"],
)
def test_a_run_that_would_take_minutes_stops(args):
    code, said = stopped(*args)
    assert (code, said.splitlines()[-1].startswith("aqumen: stopped")) == (130, True), said


@pytest.mark.parametrize("period", ["0.01", "1e6"], ids=["often", "never"])
def test_a_run_whose_law_is_python_stops_however_seldom_it_steps(period, tmp_path):
    law = f"class Law(aqumen.SampledLaw):\n    period = {period}\n    def step(self, seen):\n        return 0.1\n"
    (tmp_path / "law.py").write_text(f"import aqumen\n{law}")
    code, said = stopped("run", "arm-pfc/exp1", "--aqm-from", "law.py:Law", *LONG, folder=tmp_path)
    assert (code, said.splitlines()[-1].startswith("aqumen: stopped")) == (130, True), said


def test_a_replay_stops(tmp_path):
    # Two packets, five minutes apart; the AQM has an update each microsecond in between.
    frame = bytes(12) + b"\x08\x00" + bytes.fromhex("4500001c0000000040110000 0a000001 0a000002 00010002 00080000")
    packets = b"".join(struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame for at in (0, 300))
    (tmp_path / "two.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + packets)
    aqm = "pi:a=1e-5,b=1e-6,frequency=1000kHz"
    code, said = stopped("replay", "two.pcap", "--rate", "1Mbit", "--aqm", aqm, folder=tmp_path, foreseen=True)
    foreseen, stop = said.splitlines()
    assert foreseen.startswith(f"aqumen: {aqm}: this takes about ")
    assert (code, stop) == (130, "aqumen: stopped: 0 of 1 AQMs are finished")


def test_a_model_stops(tmp_path):
    (tmp_path / "slow.toml").write_text(SLOW_MODEL)
    code, said = stopped("mmpp", "slow.toml", folder=tmp_path, foreseen=True)
    foreseen, stop = said.splitlines()
    assert foreseen.startswith("aqumen: this takes about ")
    assert (code, stop) == (130, "aqumen: stopped")


@pytest.mark.parametrize("verb", ["run", "compare"])
def test_another_program_ends_too(verb, tmp_path, monkeypatch):
    # A stand-in that says who it is and works for ten minutes.
    program = tmp_path / "ns"
    program.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("AQUMEN_NS2", str(program))
    more = ("--seeds", "4") if verb == "compare" else ()
    words = [verb, "arm-pfc/exp1", "--aqm", "pi", "--engine", "ns2", *more]
    code = f"print('ready', flush=True); from aqumen.cli import main; raise SystemExit(main({words}))"
    ended, said = stopped("-c", code, begun=lambda: (tmp_path / "pids").exists())
    assert ended == 130, said
    assert (tmp_path / "pids").read_text().split()
    for pid in (tmp_path / "pids").read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.skipif(not Path("/usr/include/ns3/core-module.h").is_file(), reason="ns-3 is not installed")
def test_a_compiler_ends_with_what_it_has_started(tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nsleep 600 &\necho $! >> {tmp_path}/pids\nwait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.delenv("AQUMEN_NS3", raising=False)
    pids = tmp_path / "pids"
    words = ["validate", "ns3", "--seeds", "2", "--cell", "BBR"]
    code = f"print('ready', flush=True); from aqumen.cli import main; raise SystemExit(main({words}))"
    ended, said = stopped("-c", code, begun=lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    assert ended == 130, said
    assert said.splitlines()[-1].startswith("aqumen: stopped"), said
    # An orphan that has ended may wait for somebody to ask how.
    states = [Path(f"/proc/{pid}/stat") for pid in pids.read_text().split()]
    for _ in range(100):
        if all(not one.exists() or one.read_text().rpartition(")")[2].split()[0] == "Z" for one in states):
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"still at work: {pids.read_text().split()}")


@pytest.mark.parametrize("code", [MANY_WINDOWS, LARGE_MAP, DESIGNS], ids=["theory", "map", "design"])
def test_a_calculation_stops(code):
    ended, said = stopped("-c", code)
    assert (ended != 0, said.splitlines()[-1]) == (True, "KeyboardInterrupt"), said
