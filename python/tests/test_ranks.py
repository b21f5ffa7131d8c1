"""Mean ranks over places, what tells them apart, and Pareto's front."""

import pytest

from aqumen.ranking.mean_ranks import concordance, critical_range, pareto, ranks, seed_ranks


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (7, 2.949), (10, 3.164)])
def test_the_critical_values_are_those_of_the_tables(k, q):
    # Demšar, 2006, table 5 (a): the studentised range over the square root of 2.
    assert critical_range(k) / 2**0.5 == pytest.approx(q, abs=1e-3)


def test_the_example_of_the_article_comes_out():
    # Demšar, section 3.2.4: four classifiers on 14 data sets have mean ranks 3.143, 2.000, 2.893, 1.964, which make
    # Friedman's statistic 9.28 and, at 5 %, a critical difference of 2.569 sqrt(4 5 / (6 14)) = 1.25.
    c45 = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957]
    m = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978]
    cf = [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946]
    both = [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970]
    table = [dict(zip(("c45", "m", "cf", "both"), row, strict=True)) for row in zip(c45, m, cf, both, strict=True)]
    found = ranks(table, more=True)
    assert found is not None
    assert found.places == 14
    assert found.means["c45"] == pytest.approx(3.143, abs=1e-3)
    assert found.means["both"] == pytest.approx(1.964, abs=1e-3)
    assert found.friedman == pytest.approx(9.28, abs=0.01)
    assert found.critical_difference == pytest.approx(1.25, abs=0.01)
    # Both others with the parameter m tuned are as good as the best; c45 is not among the winners' ties by 1.179.
    assert found.tied_with_best() == ["both", "m", "cf", "c45"]


def test_equal_figures_share_their_rank_and_too_little_says_nothing():
    found = ranks([{"a": 1.0, "b": 1.0, "c": 2.0}] * 4)
    assert found is not None
    assert found.means == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert ranks([{"a": 1.0, "b": 2.0}]) is None
    assert ranks([{"a": 1.0}] * 5) is None
    assert ranks([]) is None


def test_the_front_holds_what_nobody_beats():
    points = {"fast": (1.0, 5.0), "full": (4.0, 1.0), "between": (2.0, 3.0), "beaten": (3.0, 3.0), "slow": (4.0, 6.0)}
    assert pareto(points) == ["fast", "between", "full"]
    # Two that are alike stand both.
    assert pareto({"a": (1.0, 1.0), "b": (1.0, 1.0)}) == ["a", "b"]


def test_over_seeds_two_differ_as_the_paired_test_has_it():
    # x is first with two seeds of three: mean ranks 4/3 and 5/3. The differences 1, 1, -1 have the standard error 2/3,
    # and Student's quantile of two degrees is 4.303.
    found = seed_ranks([[{"x": 1, "y": 2}], [{"x": 1, "y": 2}], [{"x": 2, "y": 1}]])
    assert found.means == pytest.approx({"x": 4 / 3, "y": 5 / 3})
    assert found.critical_difference == pytest.approx(4.303 * 2 / 3, rel=2e-3)
    assert found.tied_with_best() == ["x", "y"]


def test_more_seeds_tell_apart_what_few_do_not():
    # Of seven seeds in ten x is first by both figures, else y is; z is always last.
    def seed(k):
        ahead, behind = ("x", "y") if k % 10 < 7 else ("y", "x")
        return [{ahead: 1, behind: 2, "z": 3}, {ahead: 5, behind: 6, "z": 9}]

    few, many = (seed_ranks([seed(k) for k in range(n)]) for n in (10, 100))
    assert (few.tied_with_best(), many.tied_with_best()) == (["x", "y"], ["x"])
    # (3 - 1) (100 - 1) degrees of freedom, deviations of 0.458: 3.314 sqrt(42 / 198 / 100).
    assert many.critical_difference == pytest.approx(0.153, rel=0.02)
    assert (many.figures, many.seeds) == (2, 100)


def test_one_seed_tells_nobody_apart():
    found = seed_ranks([[{"x": 1, "y": 2}]])
    assert (found.critical_difference, found.tied_with_best()) == (None, ["x", "y"])
    assert seed_ranks([[{"x": 1}]]) is None
    assert seed_ranks([]) is None


def test_all_seeds_alike_tell_apart_but_not_those_that_are_equal():
    found = seed_ranks([[{"x": 1, "y": 1, "z": 2}]] * 3)
    assert (found.critical_difference, found.tied_with_best()) == (0, ["x", "y"])


def test_kendalls_tau_counts_pairs_in_the_same_order():
    # Of the six pairs of four one is the other way round: (5 - 1) / 6.
    assert concordance([1, 2, 3, 4], [1, 3, 2, 4]) == pytest.approx(4 / 6)
    assert concordance([1, 2, 3], [30, 20, 10]) == -1
    # Two are equal in the second list: two pairs of three told there, two agree: 2 / sqrt(3 x 2).
    assert concordance([1, 2, 3], [1, 1, 2]) == pytest.approx(2 / 6**0.5)
    # A list that tells nothing contradicts nothing.
    assert concordance([1, 2, 3], [5, 5, 5]) == 1
