"""Several threads for one run: the same answer, and a word where they do not help or cannot be had."""

import json

import pytest

import aqumen
from aqumen import SampledLaw, engines
from aqumen.cli import main

FAST = """
name = "fast"
duration = "1s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "1Gbit", delay = "2ms", buffer = "2000pkt" }
access = { rate = "100Mbit", delay = ["5ms", "20ms"] }
[[flows]]
name = "bulk"
count = 200
transport = "linux"
[[flows]]
name = "calls"
count = 3
transport = "udp"
traffic = "voip"
"""


@pytest.fixture
def fast(tmp_path):
    file = tmp_path / "fast.toml"
    file.write_text(FAST)
    return file


def shared(result):
    """How many threads shared the run of `result`."""
    return result.data["cost"].get("threads", 1)


def test_two_threads_answer_what_one_does(fast):
    alone, both = (aqumen.run(fast, "fq-codel", threads=threads) for threads in (1, 2))
    assert [shared(result) for result in (alone, both)] == [1, min(2, engines.cores())]
    for key in ("links", "flows", "windows", "aqm"):
        assert json.dumps(alone.data[key]) == json.dumps(both.data[key]), key
    assert both.data["cost"]["cpu_s"] > 0.5 * alone.data["cost"]["cpu_s"]


def test_a_run_with_too_little_in_a_window_says_that_one_thread_did_it_all(capsys, fast):
    assert main(["run", "arm-pfc/exp1", "--aqm", "pi", "--until", "5s", "--threads", "2"]) == 0
    assert "note: the run used one thread" in capsys.readouterr().err
    if engines.cores() > 1:
        assert main(["run", str(fast), "--aqm", "pi", "--threads", "2"]) == 0
        assert "thread" not in capsys.readouterr().err


def test_a_law_in_python_is_run_by_one_thread(fast):
    class Half(SampledLaw):
        """Marks what it likes."""

        period = 0.01

        def step(self, seen):
            return 0.01

    assert shared(aqumen.run(fast, Half, threads=2)) == 1


@pytest.mark.parametrize(
    ("args", "expect"),
    [
        (["--threads", "0"], "threads = 0: must be at least 1"),
        (["--threads", "2", "--engine", "fluid"], "engine `fluid` runs on one thread; leave out --threads"),
    ],
)
def test_what_threads_cannot_do_is_one_clear_line(capsys, args, expect):
    assert main(["run", "arm-pfc/exp1", "--aqm", "pi", *args]) == 2
    captured = capsys.readouterr()
    assert expect in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")
