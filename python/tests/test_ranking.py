"""The order of the AQMs, on intervals written by hand and at random."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqumen.errors import ScenarioError
from aqumen.ranking import GOALS, letter_groups, rank

NONE = {"mean": None, "std": None, "ci95": None, "n": 0}


def summary(mean, half=None):
    ci95 = None if half is None else [mean - half, mean + half]
    return {"mean": mean, "std": None if half is None else half, "ci95": ci95, "n": 1 if half is None else 5}


def metrics(qacd, utilization=0.99):
    return {"qacd_pkts": qacd, "utilization": summary(utilization, 0.0), "sojourn_mean_s": summary(0.1, 0.01)}


def order(ranking):
    return [(place.aqm, place.place, place.clearly_best) for place in ranking.places]


def test_apart_intervals_are_places():
    ranking = rank({"a": metrics(summary(30, 2)), "b": metrics(summary(10, 2))}, "l", "steady")
    assert order(ranking) == [("b", 1, True), ("a", 2, False)]
    assert ranking.by == "queue-error"


def test_overlapping_intervals_are_a_tie_ordered_by_the_mean():
    # [8, 12] and [11, 15] overlap.
    ranking = rank({"a": metrics(summary(13, 2), 0.99), "b": metrics(summary(10, 2), 0.90)}, "l", "steady")
    assert order(ranking) == [("b", 1, False), ("a", 1, False)]
    assert ranking.places[0].tied_with == ("a",)
    assert ranking.places[1].tied_with == ("b",)


def test_intervals_that_touch_overlap():
    ranking = rank({"a": metrics(summary(10, 2)), "b": metrics(summary(14, 2))}, "l", "steady")
    assert order(ranking) == [("a", 1, False), ("b", 1, False)]


def test_a_chain_of_overlaps_still_tells_the_ends_apart():
    # a [8, 12], b [11, 15], c [14, 18]: a is clearly better than c, b is tied with both.
    chain = {name: metrics(summary(mean, 2)) for name, mean in (("c", 16), ("b", 13), ("a", 10))}
    places = {place.aqm: place for place in rank(chain, "l", "steady").places}
    assert [places[name].place for name in "abc"] == [1, 1, 2]
    assert set(places["b"].tied_with) == {"a", "c"}
    assert not any(place.clearly_best for place in places.values())


def test_one_seed_has_an_order_by_its_means_and_no_proof():
    ranking = rank({"a": metrics(summary(3.0)), "b": metrics(summary(2.0))}, "l", "steady")
    assert order(ranking) == [("b", 1, False), ("a", 2, False)]


def test_one_aqm_is_not_best_of_anything():
    assert order(rank({"a": metrics(summary(3.0, 1.0))}, "l", "steady")) == [("a", 1, False)]


@pytest.mark.parametrize("missing", ["a", "b"])
def test_an_aqm_without_the_metric_comes_last(missing):
    each = {name: metrics(NONE) for name in "ab"}
    each[missing]["sojourn_mean_s"] = NONE
    assert rank(each, "l", "steady").places[-1].aqm == missing


# Without a target: delay at utilisation.


def link(delay_ms, utilization, half=0.1):
    return {
        "qacd_pkts": NONE,
        "sojourn_mean_s": summary(delay_ms / 1000, half / 1000),
        "utilization": summary(utilization, half / 1000),
    }


def test_as_full_and_faster_is_better_whatever_else_is_said():
    # The uplink of a household, 2 Mbit/s: CoDel is neither as full nor as fast as FQ-CoDel.
    each = {"codel": link(23.9, 0.954), "fq-codel": link(7.4, 0.997), "droptail": link(900.0, 0.998)}
    ranking = rank(each, "uplink", "steady", base_rtt_s=0.03)
    assert ranking.by == "delay-at-utilization"
    # Power, 1/s: 0.997 / 0.0374 = 26.7; 0.954 / 0.0539 = 17.7; 0.998 / 0.930 = 1.07.
    assert order(ranking) == [("fq-codel", 1, True), ("codel", 2, False), ("droptail", 3, False)]
    assert "utilisation over round-trip time (30 ms without queues" in ranking.words


@pytest.mark.parametrize(
    ("base_s", "first"),
    [
        # 0.80 / 0.025 = 32 against 0.99 / 0.070 = 14.1.
        (0.02, "fast"),
        # 0.80 / 1.005 = 0.796 against 0.99 / 1.050 = 0.943: beside a second on the way, 45 ms are little.
        (1.0, "full"),
    ],
)
def test_where_one_is_faster_and_the_other_fuller_power_decides(base_s, first):
    ranking = rank({"fast": link(5, 0.80), "full": link(50, 0.99)}, "l", "steady", base_rtt_s=base_s)
    assert order(ranking)[0] == (first, 1, True)


def test_powers_whose_intervals_overlap_are_a_tie():
    # 0.90 / 0.100 = 9 and 0.99 / 0.110 = 9, each figure give or take a bit.
    ranking = rank({"fast": link(60, 0.90), "full": link(70, 0.99)}, "l", "steady", base_rtt_s=0.04)
    assert [place.place for place in ranking.places] == [1, 1]
    assert ranking.places[0].tied_with == (ranking.places[1].aqm,)


@pytest.mark.parametrize("utilization", [0.9945, 0.9955, 0.990, 0.986])
def test_half_a_percent_of_utilisation_is_as_full(utilization):
    # A second without queues: powers within a thousandth of one another but for the last, whose intervals overlap
    # all the same; yet 1 ms against 4 ms, and as full, is proof.
    slow, fast = link(4, 0.99, half=0.5), link(1, utilization, half=0.5)
    ranking = rank({"slow": slow, "fast": fast}, "l", "steady", base_rtt_s=1.0)
    assert ranking.places[0].aqm == ("fast" if utilization > 0.988 else "slow")
    assert [place.place for place in ranking.places] == ([1, 2] if utilization > 0.988 else [1, 1])


def test_a_full_buffer_is_never_among_the_best_for_being_full():
    # As measured on a household's uplink: FQ-PIE is a little slower than FQ-CoDel and a little fuller.
    each = {
        "fq-codel": link(3.5, 0.707, half=0.3),
        "fq-pie": link(4.8, 0.793, half=0.3),
        "droptail": link(475, 0.965, half=30),
        "sfq": link(703, 1.0, half=16),
    }
    places = {place.aqm: place.place for place in rank(each, "l", "steady", base_rtt_s=0.03).places}
    assert max(places["fq-codel"], places["fq-pie"]) < places["droptail"] < places["sfq"]


FIGURE = {
    "queue-error": "qacd_pkts",
    "delay": "sojourn_mean_s",
    "p99": "sojourn_p99_s",
    "page-load": "page_load_mean_s",
    "calls": "mos",
    "goodput": "goodput_bps",
}


@pytest.mark.parametrize(("goal", "key"), FIGURE.items())
def test_each_goal_looks_at_its_figure_and_in_its_direction(goal, key):
    each = {"small": {key: summary(1.0, 0.1)}, "large": {key: summary(2.0, 0.1)}}
    best = "large" if goal in ("calls", "goodput") else "small"
    ranking = rank(each, "l", "steady", goal)
    assert order(ranking)[0] == (best, 1, True)
    assert ranking.figure.key == key
    with pytest.raises(ScenarioError, match=f"rank by {goal}: "):
        rank({"a": {key: NONE}, "b": {}}, "l", "steady", goal)


def test_a_goal_that_is_none_is_refused_with_the_list():
    with pytest.raises(ScenarioError, match="rank by speed: no such goal; choose from: queue-error, delay, p99"):
        rank({"a": link(1, 1)}, "l", "steady", "speed")
    assert set(GOALS) == {*FIGURE, "delay-at-utilization"}


# Letters.


def shared(one, other):
    return bool(set(one) & set(other))


def test_one_noisy_aqm_ties_with_each_and_takes_no_difference_from_the_others():
    each = {name: metrics(summary(mean, 1)) for name, mean in (("a", 10), ("b", 20), ("c", 30), ("d", 40))}
    groups = {place.aqm: place.group for place in rank(each, "l", "steady").places}
    assert groups == {"a": "a", "b": "b", "c": "c", "d": "d"}
    places = {place.aqm: place for place in rank({**each, "noisy": metrics(summary(21, 30))}, "l", "steady").places}
    assert {aqm: place.group for aqm, place in places.items()} == {
        **{"a": "a", "noisy": "abcd", "b": "b", "c": "c", "d": "d"}
    }


def test_letters_are_those_of_the_rows_as_they_are_shown():
    chain = {name: metrics(summary(mean, 2)) for name, mean in (("c", 16), ("b", 13), ("a", 10))}
    assert [(place.aqm, place.group) for place in rank(chain, "l", "steady").places] == [
        ("a", "a"), ("b", "ab"), ("c", "b"),
    ]  # fmt: skip
    # A single seed tells nothing, and so has no letter; the others have theirs.
    once = rank({**chain, "once": metrics(summary(1.0))}, "l", "steady").places
    assert [(place.aqm, place.group) for place in once] == [("once", None), ("a", "a"), ("b", "ab"), ("c", "b")]


def test_any_rows_have_letters():
    assert letter_groups(["x", "y", "z"], [("z", "x")]) == {"x": "a", "y": "ab", "z": "b"}
    assert letter_groups([], []) == {}


AQM = st.tuples(
    st.integers(0, 20), st.integers(0, 20), st.sampled_from([0.0, 0.5, 3.0, 9.0]), st.sampled_from([0.0, 0.5, 3.0, 9.0])
)


@given(st.lists(AQM, min_size=2, max_size=7), st.sampled_from([0.0, 0.03, 1.0]))
def test_nobody_stands_above_an_aqm_that_is_as_full_and_faster(drawn, base_s):
    each = {
        f"aqm{i}": {
            "sojourn_mean_s": summary(delay / 100, delay_half / 100),
            "utilization": summary(full / 20, full_half / 20),
        }
        for i, (delay, full, delay_half, full_half) in enumerate(drawn)
    }
    ranking = rank(each, "l", "steady", "delay-at-utilization", base_rtt_s=base_s)
    at = {place.aqm: (i, place.place) for i, place in enumerate(ranking.places)}
    means = {aqm: (m["sojourn_mean_s"]["mean"], -m["utilization"]["mean"]) for aqm, m in each.items()}
    for a, (delay, empty) in means.items():
        for b, (other_delay, other_empty) in means.items():
            if delay <= other_delay and empty <= other_empty and (delay, empty) != (other_delay, other_empty):
                assert at[a][0] < at[b][0]
                assert at[a][1] <= at[b][1]
    # The order is that of the powers, wherever nobody is proven better.
    for one, other in itertools.pairwise(ranking.places):
        assert one.place <= other.place
    best = [place for place in ranking.places if place.clearly_best]
    assert len(best) <= 1
    if best:
        assert at[best[0].aqm] == (0, 1)
        assert [place.place for place in ranking.places].count(1) == 1


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([0.0, 1.0, 4.0])), min_size=2, max_size=7))
def test_by_one_figure_places_follow_the_means_and_what_is_clear(drawn):
    each = {f"aqm{i}": {"sojourn_mean_s": summary(mean, half)} for i, (mean, half) in enumerate(drawn)}
    ranking = rank(each, "l", "steady", "delay")
    at = {place.aqm: place.place for place in ranking.places}
    means = [each[place.aqm]["sojourn_mean_s"]["mean"] for place in ranking.places]
    assert means == sorted(means)
    for a, one in each.items():
        for b, other in each.items():
            if one["sojourn_mean_s"]["ci95"][1] < other["sojourn_mean_s"]["ci95"][0]:
                assert at[a] < at[b]


ROWS = st.lists(AQM, min_size=2, max_size=7)


def by_power(drawn, order=None):
    """Rows by name, in some order."""
    rows = {
        f"aqm{i}": {
            "sojourn_mean_s": summary(delay / 100, delay_half / 100),
            "utilization": summary(full / 20, full_half / 20),
        }
        for i, (delay, full, delay_half, full_half) in enumerate(drawn)
    }
    rows = {name: rows[name] for name in order or rows}
    return {place.aqm: place for place in rank(rows, "l", "steady", "delay-at-utilization", base_rtt_s=0.03).places}


@given(ROWS, st.randoms())
def test_who_shares_a_letter_is_symmetric_and_no_matter_of_the_order_of_rows(drawn, random):
    places = by_power(drawn)
    other = by_power(drawn, random.sample(sorted(places), len(places)))
    for a, b in itertools.combinations(places, 2):
        alike = shared(places[a].group, places[b].group)
        assert alike == (b in places[a].tied_with) == (a in places[b].tied_with)
        assert alike == shared(other[a].group, other[b].group)
    assert next(iter(places.values())).group.startswith("a")


@given(ROWS)
def test_a_row_that_is_added_changes_nothing_between_the_others(drawn):
    fewer, more = by_power(drawn[:-1]), by_power(drawn)
    for a, b in itertools.combinations(fewer, 2):
        assert shared(fewer[a].group, fewer[b].group) == shared(more[a].group, more[b].group)
        assert (b in fewer[a].tied_with) == (b in more[a].tied_with)
