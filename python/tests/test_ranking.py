"""The order of the AQMs, on intervals written by hand."""

import pytest

from aqumen.ranking import rank


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
    assert ranking.metric == "qacd_pkts"


def test_overlapping_intervals_are_a_tie_ordered_by_utilisation():
    # [8, 12] and [11, 15] overlap.
    ranking = rank({"a": metrics(summary(10, 2), 0.90), "b": metrics(summary(13, 2), 0.99)}, "l", "steady")
    assert order(ranking) == [("b", 1, False), ("a", 1, False)]
    assert ranking.places[0].tied_with == ("a",)


def test_a_chain_of_overlaps_still_tells_the_ends_apart():
    # a [8, 12], b [11, 15], c [14, 18]: a is clearly better than c, b is tied with both.
    chain = {name: metrics(summary(mean, 2)) for name, mean in (("c", 16), ("b", 13), ("a", 10))}
    places = {place.aqm: place for place in rank(chain, "l", "steady").places}
    assert [places[name].place for name in "abc"] == [1, 1, 2]
    assert set(places["b"].tied_with) == {"a", "c"}
    assert not any(place.clearly_best for place in places.values())


def test_without_a_target_the_sojourn_time_decides():
    none = {"mean": None, "std": None, "ci95": None, "n": 0}
    ranking = rank({"a": metrics(none), "b": metrics(summary(10, 2))}, "l", "steady")
    assert ranking.metric == "sojourn_mean_s"


def test_one_seed_has_an_order_by_its_means():
    ranking = rank({"a": metrics(summary(3.0)), "b": metrics(summary(2.0))}, "l", "steady")
    assert [place.aqm for place in ranking.places] == ["b", "a"]


def test_one_aqm_is_not_best_of_anything():
    assert order(rank({"a": metrics(summary(3.0, 1.0))}, "l", "steady")) == [("a", 1, False)]


@pytest.mark.parametrize("missing", ["a", "b"])
def test_an_aqm_without_the_metric_comes_last(missing):
    none = {"mean": None, "std": None, "ci95": None, "n": 0}
    each = {name: metrics(none) for name in "ab"}
    each[missing]["sojourn_mean_s"] = none
    assert rank(each, "l", "steady").places[-1].aqm == missing
