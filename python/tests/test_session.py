"""Sessions: a run that is stopped, looked at, changed and copied from Python."""

from __future__ import annotations

import gc
import resource
import runpy
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import aqumen
from aqumen import SampledLaw, ScenarioError, Session

SMALL = """
name = "small"
duration = "6s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "8Mbit", delay = "20ms", buffer = "100pkt" }
access = { rate = "80Mbit", delay = "4ms" }
[[flows]]
name = "long"
count = 8
start = ["0s", "1s"]
transport = "modern"
[[flows]]
name = "short"
transport = "modern"
traffic = { kind = "transfers", rate = "9/s", size = "20kB" }
"""


@pytest.fixture
def small():
    return aqumen.Scenario.parse(SMALL, "small.toml")


def metrics(result):
    return {key: result.data[key] for key in ("links", "flows", "windows")}


def test_stops_and_looks_give_the_bits_of_a_run(small):
    with Session(small, aqm="pi", seed=3) as run:
        for step in ("100ms", 0.7, "1us", 1.0):
            run.advance(step)
            link = run.link()
            assert len(link.contents()) == link.queue_pkts
            assert sum(packet.bytes for packet in link.contents()) == link.queue_bytes
            assert {flow.group for flow in run.flows()} == {"long", "short"}
            seconds, fraction = link.sojourns()
            assert len(seconds) == len(fraction)
            assert (np.diff(fraction) > 0).all()
        assert run.advance_to("2s") == "sample"
        assert run.now_s == 2.0
        assert metrics(run.finish()) == metrics(aqumen.run(small, "pi", 3))
        with pytest.raises(ScenarioError, match="the run is over"):
            run.advance(1)
    with pytest.raises(ScenarioError, match="the session is closed"):
        run.link()


def test_a_played_session_is_a_scenario(small):
    run = Session(small, aqm="codel")
    run.advance("1s")
    run.set("bottleneck.rate", "3Mbit")
    run.push({"at": "2500ms", "stop": "long", "count": 3})
    run.advance("2s")
    run.set("bottleneck.loss", 0.01)
    played = run.scenario()
    assert "3Mbit" in played.to_toml()
    assert metrics(run.finish()) == metrics(aqumen.run(played, "codel", 1))


def test_futures_are_paired(small):
    run = Session(small, aqm="pi", packets=False)
    run.advance("2s")
    before = run.now_s
    table = aqumen.what_if(
        run,
        {
            "stay": None,
            "again": lambda future: None,
            "half": {"link": "bottleneck", "capacity": "4Mbit"},
        },
        "2s",
        futures=4,
    )
    assert run.now_s == before
    assert set(table) == {"stay", "again", "half"}
    # The same change meets the same random numbers.
    assert table["again"]["queue_mean_pkts"]["difference"] == 0.0
    low, high = table["half"]["throughput_bps"]["difference_ci95"]
    assert low < high < -3e6
    for futures, changes, message in [(1, {"a": None}, "at least 2"), (4, {}, "at least one future")]:
        with pytest.raises(ScenarioError, match=message):
            aqumen.what_if(run, changes, "1s", futures=futures)


class Counter(SampledLaw):
    """A law whose answer depends on how often it was called."""

    period = 0.01

    def start(self):
        self.calls = [0]

    def step(self, seen):
        self.calls[0] += 1
        return min(0.2, 1e-4 * self.calls[0])


class Locked(Counter):
    """A law that cannot be copied."""

    def start(self):
        super().start()
        self.lock = threading.Lock()


def test_an_aqm_of_ones_own_is_copied_with_its_state(small):
    run = Session(small, aqm=Counter)
    run.advance("2s")
    copy = run.copy()
    first = run.finish()
    assert metrics(copy.finish()) == metrics(first) == metrics(aqumen.run(small, Counter, 1))


def test_an_aqm_that_cannot_be_copied_says_so_and_the_session_goes_on(small):
    run = Session(small, aqm=Locked)
    run.advance("1s")
    with pytest.raises(aqumen.CustomError, match=r"locked: cannot be copied: .*pickle") as refused:
        run.copy()
    assert isinstance(refused.value.__cause__, TypeError)
    assert metrics(run.finish()) == metrics(aqumen.run(small, Locked, 1))


def test_a_step_is_one_packet(small):
    run = Session(small, aqm="pi")
    run.advance("1s")
    run.link()
    for _ in range(20):
        run.step_packet()
        assert run.link().observation.departures_pkts == 1


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda run: run.advance(-1), "-1: a time is a number of seconds"),
        (lambda run: run.advance("soon"), 'must be a time, such as "280ms"'),
        (lambda run: run.advance(float("nan")), "nan: a time is a number of seconds"),
        (lambda run: run.advance_to("500ms"), "0.5 s has passed: the run is at 1 s"),
        (lambda run: run.link("x"), 'no link "x"; choose from: bottleneck'),
        (lambda run: run.set("x.rate", "1Mbit"), 'no link "x"; choose from: bottleneck'),
        (lambda run: run.set("rate", "1Mbit"), 'invalid key "rate"; choose from: LINK.rate, LINK.delay'),
        (lambda run: run.set("bottleneck.rate", "x"), 'capacity = "x": must be a rate'),
        (lambda run: run.set("bottleneck.aqm", "nosuch"), "nosuch"),
        (lambda run: run.push({"at": "200ms", "capacity": "1Mbit"}), 'at = "0.2s" has passed: the run is at 1 s'),
        (lambda run: run.push({"at": "9s", "capacity": "1Mbit"}), "must be before the end of the run, 6s"),
        (lambda run: run.push("nonsense"), "an event must be a table, such as"),
        (lambda run: run.link().set_probability(1.01), "a probability is from 0 to 1, not 1.01"),
        (lambda run: run.link().set_probability(float("nan")), "a probability is from 0 to 1, not NaN"),
        (lambda run: run.reseed(-1), "seed -1: must be 0 to 2^64 - 1"),
    ],
)
def test_bad_input_is_one_line_and_the_session_stays_usable(small, act, message):
    run = Session(small, aqm="pi", seed=2)
    run.advance("1s")
    with pytest.raises(ScenarioError) as refused:
        act(run)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert metrics(run.finish()) == metrics(aqumen.run(small, "pi", 2))


def test_contents_need_packets(small):
    run = Session(small, aqm="pi", packets=False)
    run.advance("1s")
    with pytest.raises(ScenarioError, match="every_service"):
        run.link().contents()


def test_ctrl_c_leaves_a_session_usable():
    # A process that was started in the background ignores the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Millions of packets; the engine asks for signals at each report, of which a run has fifty.
    # It would take many times longer than the signal may, on a busy machine too.
    fast = aqumen.Scenario.load("arm-pfc/exp1").set("bottleneck.rate", "800Mbit").set("duration", "3000s")
    run = Session(fast, aqm="pi", packets=False)
    threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        run.advance("2999s")
    assert 0 < run.now_s < 2999
    run.advance("1s")


def test_dropped_sessions_leave_no_memory_and_no_thread(small):
    def drop(count):
        for seed in range(count):
            run = Session(small, aqm="pi", seed=seed, packets=False)
            run.advance("50ms")
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    threads = threading.active_count()
    before = drop(300)
    assert drop(10_000) - before < 5 * 1024  # KiB
    assert threading.active_count() == threads


def test_a_session_draws_what_it_has_seen(small):
    pytest.importorskip("matplotlib")
    run = Session(small, aqm="pi")
    run.advance("2s")
    figure = run.plot()
    queue = figure.axes[0].lines[0].get_ydata()
    run.advance("1s")
    assert run.plot(figure=figure) is figure
    assert len(figure.axes[0].lines[0].get_ydata()) > len(queue)


def test_the_example_plays_its_futures(capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(Path(__file__).parents[2] / "examples/session.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "packets wait, p = 0." in printed
    assert "codel: " in printed
    assert (tmp_path / "session.svg").stat().st_size > 1000
