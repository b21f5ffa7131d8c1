"""`aqumen validate live`: what is made of the runs of both sides, with runs made up for it."""

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import aqumen
from aqumen.engines.external.live import crosscheck

VALIDATION = Path(__file__).parents[2] / "validation"


def compared(monkeypatch, cell, *valid, repeats=None):
    """The rows of a cell, and what is said; of the kernel's runs these count, and ours are alike."""
    asked, said = [], []

    def figures(seed):
        link = {"queue_mean_pkts": 100.0 + 0.1 * seed, "utilization": 0.95}
        flow = {"throughput_bps": 48e6, "goodput_bps": 46e6, "rtt_mean_s": 0.1 + 0.0001 * seed}
        return {"links": {"bottleneck": {"steady": link}}, "flows": {"ftp": {"steady": flow}}}

    def ours(scenario, jobs, engine, threads, done):
        asked.append((engine, [seed for _, seed in jobs]))
        # The last one is the first that is finished.
        for index in reversed(range(len(jobs))):
            assert done(index, SimpleNamespace(json=json.dumps(figures(jobs[index][1]))))

    def theirs(scenario, job, engine, progress):
        assert progress(0.5)
        spec, seed = job
        asked.append((engine, spec, seed))
        late = {"valid": valid[seed - 1], "write_late_p99_s": None if seed == 1 else 1e-5 * seed}
        return SimpleNamespace(json=json.dumps({**figures(seed), "host": {**late, "invalid_because": ["x", "y"]}}))

    monkeypatch.setattr(crosscheck.engines, "run_many", ours)
    monkeypatch.setattr(crosscheck.engines, "run_one", theirs)
    ((same, rows),) = crosscheck.validate([cell], VALIDATION, repeats or len(valid), said.append)
    assert same is cell
    return rows, said, asked


def cell_of(label):
    return next(cell for cell in crosscheck.CELLS if cell.label == label)


def test_the_kernel_is_compared_with_three_seeds_for_each_of_its_runs(monkeypatch):
    rows, said, asked = compared(monkeypatch, cell_of("PI"), True, False, True)
    assert asked[0] == ("packet", list(range(1, 10)))
    assert sorted(asked[1:]) == [("live", "pi", seed) for seed in (1, 2, 3)]
    assert said == [
        "queue/PI: run 2 is invalid: x; y",
        "queue/PI: 2 of 3 runs are valid; at worst 1 % of the packets were written at least 30 us late",
    ]
    # 100.5 packets over nine seeds, 100.2 over the first and the third.
    queue = next(row for row in rows if row.metric == "queue_mean_pkts")
    assert (queue.ours_mean, queue.theirs_mean, queue.verdict) == (
        pytest.approx(100.5),
        pytest.approx(100.2),
        "equivalent",
    )
    assert queue.bound == pytest.approx(10.02)
    assert {row.metric for row in rows} == {"queue_mean_pkts", "utilization"}
    # Where the queue follows from the senders the bound is twice as wide.
    rows, _, _ = compared(monkeypatch, cell_of("PIE"), True, True)
    assert rows[0].bound == pytest.approx(20.03)


def test_of_a_window_three_figures_are_told_and_one_is_judged(monkeypatch):
    rows, said, _ = compared(monkeypatch, cell_of("reno-drops-0.02"), True, True)
    verdicts = {row.metric: row.verdict for row in rows}
    assert verdicts == {"window_pkts": "equivalent", "rtt_s": "-", "goodput_mbps": "-"}
    assert said == [
        "window/reno-drops-0.02: 2 of 2 runs are valid; at worst 1 % of the packets were written at least 20 us late"
    ]


def test_a_single_run_that_counts_says_nothing(monkeypatch):
    rows, said, _ = compared(monkeypatch, cell_of("PI"), True, False)
    assert rows == []
    assert said[-1].startswith(
        "queue/PI: 1 of 2 runs are valid; at worst 1 % of the packets were written at least 0 us"
    )
    assert compared(monkeypatch, cell_of("PI"), False, False)[1] == [
        f"queue/PI: run {seed} is invalid: x; y" for seed in (1, 2)
    ]
    with pytest.raises(aqumen.ScenarioError, match="seeds = 1: must be at least 2"):
        compared(monkeypatch, cell_of("PI"), True)


def test_bbr_is_compared_under_drops_alone_and_the_others_under_marks_too():
    windows = [cell.label for cell in crosscheck.CELLS if cell.experiment == "window"]
    probabilities = ("0.005", "0.02", "0.08", "0.2")
    assert windows == [
        f"{name}-{signal}-{p}"
        for name, signals in (("reno", ("marks", "drops")), ("cubic", ("marks", "drops")), ("bbr", ("drops",)))
        for signal in signals
        for p in probabilities
    ]
    settings = {cell.label: dict(cell.settings) for cell in crosscheck.CELLS}
    assert settings["reno-marks-0.02"]["flows.ftp.transport"] == '{ preset = "linux-reno", ecn = true }'
    assert settings["reno-drops-0.02"]["flows.ftp.transport"] == '{ preset = "linux-reno", ecn = false }'
    assert settings["bbr-drops-0.2"]["access.rate"] == "2.5Mbit"
    assert settings["cubic-drops-0.2"]["access.rate"] == "1Gbit"


def test_where_one_run_of_the_kernel_fails_the_others_stop(monkeypatch):
    stopped, failed = threading.Event(), threading.Event()

    def theirs(scenario, job, engine, progress):
        if job[1] == 2:
            failed.set()
            raise aqumen.EngineError("no kernel")
        failed.wait(20)
        # As long as nobody says stop it would go on for ever.
        for _ in range(2000):
            if not progress(0.5):
                stopped.set()
                raise aqumen.Cancelled("the run was stopped")
            time.sleep(0.01)
        raise AssertionError

    monkeypatch.setattr(crosscheck, "_ours", lambda *_: [])
    monkeypatch.setattr(crosscheck.engines, "run_one", theirs)
    monkeypatch.setattr(crosscheck.engines, "cores", lambda: 4)
    with pytest.raises(aqumen.EngineError, match="no kernel"):
        list(crosscheck.validate([cell_of("PI")], VALIDATION, 2, lambda _: None))
    assert stopped.is_set()
