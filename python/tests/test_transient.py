"""Settling time and overshoot, on queues drawn by hand."""

import numpy as np
import pytest

from aqumen._run import Series
from aqumen.explain.transient import events, transient, transients


def series(*pieces, step=0.1):
    """A queue that holds each level for so many seconds, sampled from the first step on."""
    queue = np.concatenate([np.full(round(seconds / step), float(level)) for seconds, level in pieces])
    return Series(t_s=np.arange(1, len(queue) + 1) * step, queue_pkts=queue, probability=np.zeros_like(queue))


def test_a_queue_that_jumps_to_the_target_settles_when_its_average_does():
    # Empty for 2 s, then 100: at 2 + k/10 s the mean over the last second is 10 k packets, which is within 30 % of 100
    # from 70 on, k = 7.
    seen = transient(series((2, 0), (20, 100)), 100.0, 0.0, 22.0)
    assert seen.settling_s == pytest.approx(2.7)
    assert seen.overshoot_pkts == 0.0


def test_overshoot_is_the_peak_above_the_target_until_it_settles():
    # 250 for 3 s is a peak of 150; the later visit to 125 comes after settling and is inside the band.
    seen = transient(series((3, 250), (10, 100), (5, 125)), 100.0, 0.0, 18.0)
    # The mean falls by 15 packets a sample: 130 at 3 + 8/10 s.
    assert seen.settling_s == pytest.approx(3.8)
    assert seen.overshoot_pkts == 150.0


def test_five_seconds_have_to_be_held():
    # In the band for 4 s, out for 2, then in for good.
    seen = transient(series((4, 100), (2, 200), (10, 100)), 100.0, 0.0, 16.0)
    # The mean over the last second falls by 10 packets a sample from 200 at 6 s: 130 at 6.7 s.
    assert seen.settling_s == pytest.approx(6.7)
    assert seen.overshoot_pkts == 100.0


def test_a_queue_that_never_settles_has_no_settling_time():
    seen = transient(series((30, 290)), 100.0, 0.0, 30.0)
    assert seen.settling_s is None
    assert seen.overshoot_pkts == 190.0


def test_an_event_is_judged_from_its_own_start_to_the_next():
    queue = series((10, 100), (2, 180), (28, 100))
    assert transient(queue, 100.0, 10.0, 40.0).overshoot_pkts == 80.0
    # Before the event there was no overshoot, and settled it was from the first sample on.
    before = transient(queue, 100.0, 0.0, 10.0)
    assert (before.settling_s, before.overshoot_pkts) == (pytest.approx(0.1), 0.0)


def test_nothing_recorded_is_nothing_settled():
    seen = transient(series((5, 100)), 100.0, 50.0, 60.0)
    assert (seen.settling_s, seen.overshoot_pkts) == (None, 0.0)


def test_events_are_the_windows_besides_all_and_steady():
    windows = {"all": (0.0, 90.0), "steady": (10.0, 90.0), "half": (60.0, 90.0), "twice": (30.0, 60.0)}
    assert events(windows) == [("start-up", 0.0), ("twice", 30.0), ("half", 60.0)]
    # Two windows from one moment on are one event.
    assert events({**windows, "tail": (60.0, 80.0)}) == [("start-up", 0.0), ("twice", 30.0), ("half", 60.0)]


class Run:
    """A run with windows and a queue drawn by hand."""

    def __init__(self, windows, queue):
        self.windows, self.queue = windows, queue

    def series(self, _link):
        return self.queue


def test_each_event_of_a_run_is_judged_until_the_next_one_and_the_last_until_its_end():
    # 160 at 20 s, 190 at 40 s, 130 at 60 s, each for 2 s; windows begin at 20 and 40 s alone.
    queue = series((20, 100), (2, 160), (18, 100), (2, 190), (18, 100), (2, 130), (18, 100))
    windows = {"all": (0.0, 80.0), "steady": (10.0, 80.0), "second": (20.0, 40.0), "third": (40.0, 55.0)}
    seen = transients(Run(windows, queue), "link", 100.0)
    assert list(seen) == ["start-up", "second", "third"]
    # Overshoot ends where the next event begins: neither sees the peaks of the others.
    assert [seen[name].overshoot_pkts for name in seen] == [0.0, 60.0, 90.0]
    assert seen["start-up"].settling_s == pytest.approx(0.1)


def test_where_no_window_holds_the_whole_run_it_begins_at_0():
    assert events({"steady": (10.0, 90.0), "late": (50.0, 90.0)}) == [("start-up", 0.0), ("late", 50.0)]
    # A run that is looked at from 5 s on starts there.
    assert events({"all": (5.0, 90.0), "early": (5.0, 20.0)}) == [("start-up", 5.0)]
