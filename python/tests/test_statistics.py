"""Statistics of comparisons, worked by hand: equivalence of engines, goals of rankings, averaged curves."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from aqumen import ranking
from aqumen.engines.external.crosscheck import (
    EACH_GROUP,
    METRICS,
    Bound,
    Cell,
    compare,
    measures,
    report,
    table,
    validate,
)
from aqumen.explain.disagreement import averaged, disagreement
from aqumen.ranking import GOALS, rank

# Equivalence.

WIDE = {"queue_mean_pkts": Bound(0.5, 1.0)}


def rows(ours, theirs, bound=WIDE, **more):
    key = next(iter(bound))
    sides = ([{key: value} for value in side] for side in (ours, theirs))
    (row,) = compare("x", "pi", "all", *sides, bounds=bound, **more)
    return row


def test_a_difference_has_welchs_interval():
    # 1, 2, 3 and 2, 6: variances 1 and 8, over their numbers 1/3 and 4; 4.333^2 / (1/18 + 16) = 1.1697 degrees.
    row = rows([1, 2, 3], [2, 6])
    assert (row.ours_mean, row.ours_std, row.theirs_mean, row.theirs_std) == (2, 1, 4, pytest.approx(math.sqrt(8)))
    assert row.difference == -2
    half = (row.high - row.low) / 2
    assert row.low + half == pytest.approx(-2)
    # Student's quantile for 1.1697 degrees lies between those for one, 12.706, and two, 4.303.
    assert 4.303 < half / math.sqrt(13 / 3) < 12.706
    assert half / math.sqrt(13 / 3) == pytest.approx(9.2, abs=0.4)
    # Equal variances and numbers: four degrees, 2.776.
    row = rows([1, 2, 3], [11, 12, 13])
    assert (row.high - row.low) / 2 == pytest.approx(2.7764 * math.sqrt(2 / 3), rel=1e-3)
    # Without any variance there is no interval.
    row = rows([5, 5], [5, 5])
    assert (row.low, row.high, row.verdict) == (0, 0, "equivalent")
    # At 90 %, 2.132.
    row = rows([1, 2, 3], [11, 12, 13], confidence=0.9)
    assert (row.high - row.low) / 2 == pytest.approx(2.1318 * math.sqrt(2 / 3), rel=1e-3)


def test_runs_that_belong_together_have_students_interval():
    # Differences 1, 2, 3: two degrees, 4.303.
    row = rows([11, 102, 1003], [10, 100, 1000], paired=True)
    assert row.difference == 2
    assert (row.high - row.low) / 2 == pytest.approx(4.3027 / math.sqrt(3), rel=1e-3)
    for one, other, paired in (([1], [1], True), ([1], [1, 2], False), ([1, 2], [1], False)):
        with pytest.raises(ValueError, match="at least two seeds on each side"):
            rows(one, other, paired=paired)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        # 20 ± 0.1 of 20, of 29.8 and 30.2 and 31, and as far below; the bound is half of 20.
        (20, "equivalent"),
        (29.5, "equivalent"),
        (30, "unclear"),
        (31, "different"),
        (10.5, "equivalent"),
        (10, "unclear"),
        (9, "different"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(ours, verdict):
    assert rows([ours - 0.05, ours, ours + 0.05], [19.95, 20, 20.05]).verdict == verdict


def test_a_bound_is_relative_or_absolute_whichever_is_larger():
    assert [Bound(0.1, 2).at(mean) for mean in (-50, 0, 10, 20, 50)] == [5, 2, 2, 2, 5]
    assert rows([1, 2, 3], [1, 2, 3]).bound == 1
    assert rows([1, 2, 3], [9, 10, 11]).bound == 5
    # Four standard errors of sqrt(2/3) are 3.27.
    assert rows([1, 2, 3], [1, 2, 3], standard_errors=4).bound == pytest.approx(4 * math.sqrt(2 / 3))


def result(queue, goodputs=(3e6, 1e6), **more):
    link = {
        **{"utilization": 0.99, "queue_mean_pkts": queue, "queue_std_pkts": 2.0, "mark_ratio": 0.1},
        **{"early_drop_ratio": 0.02, "overflow_drop_ratio": 0.03, "departures_pkts": 100},
        **more,
    }
    flows = {
        f"g{i}": {"all": {"goodput_bps": goodput, "jain_fairness": None if i else 0.9, "timeouts": 5 * i}}
        for i, goodput in enumerate(goodputs)
    }
    return {"links": {"bottleneck": {"all": link, "steady": link}}, "flows": flows}


def test_what_is_compared_of_a_run():
    assert measures(result(7), "all") == {
        **{"utilization": 0.99, "queue_mean_pkts": 7, "queue_std_pkts": 2, "mark_ratio": 0.1},
        "drop_ratio": pytest.approx(0.05),
    }
    each = {name: Bound(0, 1) for name in EACH_GROUP}
    assert measures(result(7), "all", bounds=each) == {
        "g0.goodput_share": 0.75,
        "g0.jain_fairness": 0.9,
        "g0.timeout_ratio": 0,
        "g1.goodput_share": 0.25,
        "g1.jain_fairness": 0,
        "g1.timeout_ratio": 0.05,
    }
    # A single group always has all goodput.
    assert set(measures(result(7, (1e6,)), "all", bounds=each)) == {"g0.jain_fairness", "g0.timeout_ratio"}
    transfers = result(7)
    transfers["flows"]["web"] = {
        "all": {
            **{"fct_small_count": 3, "fct_small_mean_s": 0.1, "fct_large_count": 1, "fct_large_mean_s": 2.0},
            **{"fct_huge_count": 0, "fct_huge_mean_s": None, "page_load_mean_s": 4},
        }
    }
    found = measures(transfers, "all", flows=[("web", "fct_mean_s"), ("web", "page_load_mean_s")])
    # Three of 0.1 s and one of 2 s.
    assert (found["web.fct_mean_s"], found["web.page_load_mean_s"]) == (pytest.approx(0.575), 4)


def test_an_unclear_cell_gets_more_of_our_runs_and_keeps_theirs():
    asked = {"ours": [], "theirs": []}

    def ours(cell, seeds):
        del cell
        asked["ours"].append(list(seeds))
        return [result(20 + (seed % 3)) for seed in seeds]

    def theirs(cell, seeds):
        del cell
        asked["theirs"].append(list(seeds))
        return [result(20.9 + (seed % 3)) for seed in seeds]

    cell = Cell("x", "file", (), "pi", "pi")
    (found,) = list(validate([cell], 3, ours, theirs, more=(2,)))
    assert asked == {"ours": [[1, 2, 3], [1, 2, 3, 4, 5, 6]], "theirs": [[1, 2, 3], [4, 5, 6]]}
    assert {row.ours_n for row in found} == {row.theirs_n for row in found} == {6}
    # Utilisation is compared over the first window alone.
    seen = [(row.window, row.metric) for row in found]
    assert ("all", "utilization") in seen
    assert ("steady", "utilization") not in seen
    assert len(seen) == 2 * len(METRICS) - 1
    # Where that is not enough it goes on, and no further than it is told.
    asked["ours"].clear()
    asked["theirs"].clear()
    list(validate([cell], 3, ours, theirs, more=(2, 3)))
    assert asked["theirs"] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert asked["ours"][-1] == list(range(1, 10))
    asked["ours"].clear()
    (once,) = list(validate([cell], 3, ours, theirs))
    assert asked["ours"] == [[1, 2, 3]]
    told = report(once, "ns2")
    assert told["verdicts"] == {
        name: sum(row.verdict == name for row in once) for name in ("equivalent", "unclear", "different")
    }
    assert sum(told["verdicts"].values()) == len(once) == len(told["rows"])
    lines = table(once, "ns-3").splitlines()
    assert len(lines) == len(once) + 2
    assert lines[0].split()[:6] == ["experiment", "aqm", "window", "metric", "ours", "ns-3"]
    # Packets with two digits, ratios with five.
    queue = next(line for line in lines if "queue_mean_pkts" in line)
    assert "21.00 ±1.00 21.90 ±1.00 -0.90 [-3.17, +1.37] ±1.00 unclear" in " ".join(queue.split())
    assert "0.05000 ±0.00000" in next(line for line in lines if "drop_ratio" in line)
    assert lines[-1] == ", ".join(f"{count} {name}" for name, count in told["verdicts"].items())
    # All columns begin below their heads.
    assert all(line.index("all") == lines[0].index("window") for line in lines[1:6])


# Rankings.

FACTORS = {"ms": 1000, "%": 100, "Mbit/s": 1e-6}


@pytest.mark.parametrize("name", GOALS)
def test_a_goal_shows_its_figures_in_their_units(name):
    for figure in GOALS[name].figures:
        assert figure.factor == FACTORS.get(figure.unit, 1)
        # Delays and distances are better small, the rest large.
        assert figure.more == (figure.key in ("utilization", "mos", "goodput_bps"))
        shown = {"goodput_bps": 3, "utilization": 2, "page_load_mean_s": 2, "mos": 2}
        assert figure.digits == shown.get(figure.key, 1)
        assert figure.alike == (0.005 if figure.key == "utilization" else 0)


def summary(mean, half=None, n=5):
    return {"mean": mean, "std": None, "ci95": None if half is None else [mean - half, mean + half], "n": n}


def test_a_target_decides_the_goal_only_where_all_have_one():
    none = {"mean": None, "std": None, "ci95": None, "n": 0}
    rest = {"sojourn_mean_s": summary(0.1, 0.01), "utilization": summary(0.9, 0.01)}
    full = {"qacd_pkts": summary(3, 1), **rest}
    assert rank({"a": full, "b": full}, "l", "w").by == "queue-error"
    assert rank({"a": full, "b": {"qacd_pkts": none, **rest}}, "l", "w").by == "delay-at-utilization"
    assert rank({"a": rest, "b": rest}, "l", "w").by == "delay-at-utilization"
    assert rank({"a": {"qacd_pkts": summary(3, n=1), **rest}}, "l", "w").by == "queue-error"
    assert rank({"a": rest}, "l", "w").summaries["a"].keys() == {"sojourn_mean_s", "utilization"}


def test_utilizations_within_half_a_percent_are_alike():
    def of(delay, full):
        return {"sojourn_mean_s": summary(delay, 0.001), "utilization": summary(full, 0.0)}

    def places(**aqms):
        found = rank(aqms, "l", "w", by="delay-at-utilization")
        return {place.aqm: place.place for place in found.places}

    # As full and faster.
    assert places(a=of(0.010, 0.990), b=of(0.020, 0.9949)) == {"a": 1, "b": 2}
    # Faster and less full: power decides, utilisation over response time, here without a base RTT.
    assert places(a=of(0.010, 0.980), b=of(0.020, 0.990)) == {"a": 1, "b": 2}
    # As fast and fuller.
    assert places(a=of(0.010, 0.980), b=of(0.0101, 0.990)) == {"a": 2, "b": 1}


def test_who_has_no_figure_stands_last():
    ranked = rank(
        {"a": {"mos": summary(None, n=0)}, "b": {"mos": summary(2, 0.1)}, "c": {"mos": summary(4, 0.1)}},
        "l",
        "w",
        "calls",
    )
    assert [(place.aqm, place.place) for place in ranked.places] == [("c", 1), ("b", 2), ("a", 3)]
    assert ranked.places[0].clearly_best is False
    assert ranked.figure.key == "mos"
    assert ranked.goal is GOALS["calls"]
    assert (
        ranking.rank({"b": {"mos": summary(2, 0.1)}, "c": {"mos": summary(4, 0.1)}}, "l", "w", "calls")
        .places[0]
        .clearly_best
    )


# Curves of two engines.


def run(label, seed, queue, spec="pi", step=0.5, mean=None):
    queue = np.asarray(queue, dtype=float)
    series = SimpleNamespace(t_s=np.arange(1, len(queue) + 1) * step, queue_pkts=queue)
    metrics = {"queue_mean_pkts": float(queue.mean()) if mean is None else mean, "queue_std_pkts": float(queue.std())}
    return SimpleNamespace(
        label=label,
        spec=spec,
        seed=seed,
        links=["l"],
        windows={"all": (0.0, 3.0), "late": (1.0, 3.0), "after": (9.0, 10.0)},
        series=lambda link: series,
        link=lambda name, window: metrics,
    )


def test_a_curve_is_averaged_over_runs_and_over_the_last_second():
    one, other = run("packet", 1, [0, 2, 4, 6, 8, 10]), run("packet", 2, [2, 4, 6, 8, 10, 12])
    t, queue = averaged([one, other], "l")
    # The mean is 1, 3, 5, ...; a second are two samples.
    assert t.tolist() == [0.5, 1, 1.5, 2, 2.5, 3]
    assert queue.tolist() == [1, 2, 4, 6, 8, 10]
    assert averaged([run("packet", 1, [4, 8], step=2.0)], "l")[1].tolist() == [4, 8]
    assert averaged([run("packet", 1, [4])], "l")[1].tolist() == [4]


def test_engines_are_held_against_the_first():
    runs = [run("packet", 1, [0, 2, 4, 6, 8, 10]), run("fluid", 1, [1, 3, 5, 7, 9, 11]), run("x", 1, [1], spec="red")]
    found = disagreement(runs)
    assert set(found) == {"fluid"}
    assert found["fluid"]["reference"] == "packet"
    links = found["fluid"]["links"]["l"]
    assert links["all"]["queue_mean_difference_pkts"] == 1
    assert links["all"]["queue_std_difference_pkts"] == pytest.approx(0)
    assert links["all"]["curve_rms_pkts"] == pytest.approx(1)
    assert links["after"]["curve_rms_pkts"] is None
    # Within a window, its beginning left out: at 1.5 s and later they are 3 apart.
    apart = disagreement([run("packet", 1, [0] * 6), run("fluid", 1, [0, 0, 6, 0, 6, 0])])["fluid"]["links"]["l"]
    assert apart["late"]["curve_rms_pkts"] == 3
    assert apart["all"]["curve_rms_pkts"] == pytest.approx(3 * math.sqrt(4 / 6))
    unknown = disagreement([run("packet", 1, [0] * 6), run("theory", 1, [0] * 6)])
    assert unknown["theory"]["links"]["l"]["all"]["queue_mean_difference_pkts"] == 0
