"""A run ends in one line before the system runs out of memory; of several at once the last started waits its turn."""

import json
import subprocess
import sys

import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process holds")

SAMPLES = """
name = "samples"
duration = "{duration}"
record = {{ interval = "1us" }}
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "8Mbit", delay = "10ms", buffer = "100pkt" }}
access = {{ rate = "1Gbit", delay = "1ms" }}
[[flows]]
name = "group"
count = 4
transport = "ns2"
"""
"""A run whose samples take about 60 MB for each second."""

LIMITED = """
import resource, sys
from aqumen import _core
from aqumen.cli import main
import aqumen
def held():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmSize")).split()[1])
small, more = sys.argv[1], int(sys.argv[2])
aqumen.compare(aqumen.Scenario.load(small), ["pi", "droptail"], seeds=1, threads=2)
resource.setrlimit(resource.RLIMIT_AS, (held() + more, resource.RLIM_INFINITY))
raise SystemExit(main(sys.argv[3:]))
"""


def limited(tmp_path, more, *args):
    """The program in a process that may take `more` bytes of addresses than a small run has taken."""
    small = tmp_path / "small.toml"
    small.write_text(SAMPLES.format(duration="1ms"))
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(small), str(more), *args], capture_output=True, text=True, timeout=300
    )


@linux
@pytest.mark.parametrize("engine", ["packet", "fluid"])
def test_a_run_that_takes_too_much_says_how_far_it_got(engine, tmp_path):
    (tmp_path / "long.toml").write_text(SAMPLES.format(duration="9s"))
    done = limited(
        tmp_path, 400 << 20, "run", str(tmp_path / "long.toml"), "--aqm", "pi", "--engine", engine, "--force"
    )
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "Traceback" not in done.stderr
    assert "long.toml: out of memory at " in last
    assert " of 9 s: the process uses " in last
    assert "ulimit -v" in last


@linux
def test_of_two_runs_that_do_not_fit_together_the_last_started_waits(tmp_path):
    (tmp_path / "two.toml").write_text(SAMPLES.format(duration="6s"))
    args = ("compare", str(tmp_path / "two.toml"), "--aqm", "pi,droptail", "--seeds", "1", "--json")
    done = limited(tmp_path, 1500 << 20, *args)
    assert done.returncode == 0, done.stderr
    alone = limited(tmp_path, 8 << 30, *args)
    assert json.loads(done.stdout) == json.loads(alone.stdout)


@linux
def test_flows_that_cannot_fit_are_refused_before_their_network_is_laid_out(tmp_path):
    args = ("arm-pfc/exp1", "--aqm", "pi", "--set", "flows.0.count=10000000")
    for command in ("run", "compare"):
        done = limited(tmp_path, 1 << 30, command, *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert "exp1.toml: needs at least 22.4 GiB of memory, but " in done.stderr
        assert done.stderr.count("\n") == 1
