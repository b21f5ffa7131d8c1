"""Plots: the curves of a design by its equations, a map's colours and hatches, the numbers behind a report's plots."""

import dataclasses
import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from aqumen import theory
from aqumen.errors import ScenarioError
from aqumen.theory.maps import RobustAqm, RobustPi, StabilityMap
from aqumen.view import plot
from aqumen.view.report import curves

pytest.importorskip("matplotlib").use("Agg")

TITLE = "pi: N = 60, C = 3750 pkt/s, R0 = 0.246 s"

hollot = functools.partial(theory.design, model="hollot")


@pytest.fixture(scope="module")
def classic():
    return hollot("pi", capacity="30Mbit", flows=60, r0="246ms")


@pytest.fixture
def drawn():
    """Draws and hands over the axes; the figures are closed behind the test."""
    from matplotlib import pyplot

    def draw(make):
        return make().axes

    yield draw
    pyplot.close("all")


def data(line):
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


def textbook(design, w):
    """-k_t e^{-jwR} / ((1 + jw tau1)(1 + jw tau2)) times the controller."""
    return design.loop_response(w, exact=False)


def test_a_nyquist_plot_has_both_loops_the_circle_and_the_point(classic, drawn):
    (axes,) = drawn(lambda: classic.plot("nyquist"))
    exact, plain, *mirrors, circle, point, touching = axes.lines
    w = classic.frequencies(6000)
    for line, is_exact in ((exact, True), (plain, False)):
        x, y = data(line)
        np.testing.assert_allclose(x + 1j * y, classic.loop_response(w, exact=is_exact), rtol=1e-9)
    x, y = data(circle)
    np.testing.assert_allclose(np.hypot(x, y), 1)
    assert math.isclose(np.ptp(np.unwrap(np.arctan2(y, x))), 2 * math.pi)
    assert len(x) >= 100
    assert data(point) == (-1, 0)
    # The green circle around -1 touches the loop of the exact plant.
    x, y = data(touching)
    margin = classic.margins["exact"]["modulus_margin"]
    np.testing.assert_allclose(np.hypot(x + 1, y), margin)
    assert np.abs(1 + classic.loop_response(w)).min() == pytest.approx(margin, rel=1e-3)
    assert axes.get_xlim() == (-2, 1.3)
    assert axes.get_ylim() == (-1.65, 1.65)
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("Re L", "Im L", TITLE)
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert told == ["exact: -1 is not encircled", "textbook: -1 is not encircled", f"modulus margin {margin:.2f}"]
    # The half of negative frequencies is the mirror image.
    for line, mirror in zip((exact, plain), mirrors, strict=True):
        np.testing.assert_array_equal(data(mirror)[0], data(line)[0])
        np.testing.assert_array_equal(data(mirror)[1], -np.asarray(data(line)[1]))
    assert exact.get_color() != plain.get_color()
    assert axes.get_aspect() == 1


def test_a_bode_plot_has_gain_in_decibels_and_phase_without_jumps(classic, drawn):
    gain, phase = drawn(lambda: classic.plot("bode"))
    w = classic.frequencies(4000)
    for i, is_exact in enumerate((True, False)):
        loop = classic.loop_response(w, exact=is_exact)
        x, y = data(gain.lines[i])
        np.testing.assert_allclose(x, w)
        np.testing.assert_allclose(10 ** (y / 20), np.abs(loop), rtol=1e-9)
        _, degrees = data(phase.lines[i])
        np.testing.assert_allclose(np.exp(1j * np.radians(degrees)), loop / np.abs(loop), atol=1e-9)
        assert np.abs(np.diff(degrees)).max() < 180
    assert set(data(gain.lines[2])[1]) == {0}
    assert set(data(phase.lines[2])[1]) == {-180}
    assert gain.get_xscale() == "log"
    # Who looks closer at one looks at the same frequencies of the other.
    assert gain.get_shared_x_axes().joined(gain, phase)
    # Down to 450 degrees of lag, where the loop has no gain left, with ticks at whole quarters of a turn.
    assert phase.get_ylim() == (-450, 0)
    np.testing.assert_array_equal(phase.get_yticks(), np.arange(-450, 1, 90))
    assert (gain.get_ylabel(), phase.get_xlabel(), phase.get_ylabel()) == (
        "Gain, dB",
        "Frequency, rad/s",
        "Phase, degrees",
    )
    assert gain.get_title() == TITLE
    # Bars reach from 0 dB and from -180 degrees to the loop, at the crossovers.
    exact = classic.margins["exact"]
    (bar,) = (line for line in gain.lines if line.get_linewidth() == 2)
    at, ends = data(bar)
    assert set(at) == {exact["phase_crossover_rad_s"]}
    np.testing.assert_allclose(10 ** (ends / 20), [1 / exact["gain_margin"], 1])
    (bar,) = (line for line in phase.lines if line.get_linewidth() == 2)
    at, ends = data(bar)
    assert set(at) == {exact["crossover_rad_s"]}
    np.testing.assert_allclose(ends, [-180, exact["phase_margin_deg"] - 180])
    (x, turned) = data(phase.lines[0])
    assert np.interp(at[0], x, turned) == pytest.approx(ends[1], abs=0.5)
    notes = [axes.texts[0].get_text() for axes in (gain, phase)]
    assert notes[0].startswith(f"× {exact['gain_margin']:.3g} (")
    assert notes[1].startswith(f"{exact['phase_margin_deg']:.3g}° at")
    # Where the gain is 0 dB, the margin's crossover.
    x, y = data(gain.lines[1])
    assert x[np.argmin(np.abs(y))] == pytest.approx(classic.margins["crossover_rad_s"], rel=0.01)


def test_a_nichols_plot_has_gain_over_phase(classic, drawn):
    (axes,) = drawn(lambda: classic.plot("nichols"))
    w = classic.frequencies(4000)
    for line, is_exact in zip(axes.lines[:2], (True, False), strict=True):
        loop = classic.loop_response(w, exact=is_exact)
        x, y = data(line)
        np.testing.assert_allclose(10 ** (y / 20) * np.exp(1j * np.radians(x)), loop, rtol=1e-7)
        assert np.abs(np.diff(x)).max() < 180
    assert data(axes.lines[2]) == (-180, 0)
    assert (axes.get_xlim(), axes.get_ylim()) == ((-540, 0), (-40, 40))
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("Phase, degrees", "Gain, dB", TITLE)


def test_a_root_locus_has_the_poles_of_all_gains(classic, drawn):
    (axes,) = drawn(lambda: classic.plot("locus"))
    gains = np.geomspace(0.05, 5, 120)
    for i in (0, 60, 119):
        x, y = data(axes.lines[i])
        np.testing.assert_allclose(np.sort_complex(x + 1j * y), np.sort_complex(classic.poles(float(gains[i]))))
    own, circle = axes.lines[120:]
    x, y = data(own)
    np.testing.assert_allclose(np.sort_complex(x + 1j * y), np.sort_complex(classic.poles()))
    assert own.get_label() == "gain 1"
    np.testing.assert_allclose(np.hypot(*data(circle)), 1)
    # A stable loop has its poles within the circle.
    assert np.hypot(x, y).max() < 1
    assert axes.get_xlim() == axes.get_ylim() == (-1.3, 1.3)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Re z", "Im z")


def test_a_step_response_is_that_of_the_closed_loop(classic, drawn):
    from aqumen.theory.plots import step_response

    (axes,) = drawn(lambda: classic.plot("step"))
    x, y = data(axes.lines[0])
    # Forty times 1 / crossover, in 600 points.
    assert (len(x), x[0]) == (600, 0)
    assert x[-1] == pytest.approx(40 / classic.margins["crossover_rad_s"])
    assert set(data(axes.lines[1])[1]) == {1}
    # Rise and peak are told, the peak where there is one.
    (told,) = (text.get_text() for text in axes.texts)
    assert told.startswith("rise ")
    assert float(told.split()[1]) == pytest.approx(classic.step_metrics()["rise_s"], rel=0.1)
    quick = theory.design("pi", capacity="10Mbit", flows=60, rtt="200ms", target="100pkt")
    (other,) = drawn(lambda: quick.plot("step"))
    overshoot = quick.step_metrics()["overshoot"]
    assert [text.get_text() for text in other.texts][1:] == [f"overshoot {100 * overshoot:.0f} %"]
    assert data(other.lines[2])[1] == pytest.approx(1 + overshoot, abs=0.01)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Time, s", "Queue deviation / target step")
    t, own = step_response(classic, 20.0)
    assert t[-1] == 20
    # The same curve, whatever is drawn of it.
    np.testing.assert_allclose(np.interp(t, x, y), own, atol=5e-3)
    # The integral of what is missing from 1 is that of a loop with one integrator: 1 / lim s L(s).
    w = 1e-4
    missing = float(np.trapezoid(1 - y, x))
    assert missing == pytest.approx(1 / abs(w * classic.loop_response(np.array([w]))[0]), rel=0.02)
    assert y[x < 0.24] == pytest.approx(0, abs=0.02)
    assert y.max() < 1.35
    swinging = hollot("pi", capacity="30Mbit", flows=5, r0="246ms")
    if not swinging.margins.get("exact", swinging.margins)["stable"]:
        with pytest.raises(ScenarioError, match="step response grows without bound"):
            step_response(swinging)


@pytest.mark.parametrize("kind", ["nyquist", "bode", "step", "noise"])
def test_what_is_shown_stands_out_from_what_it_is_held_against(classic, drawn, kind):
    lines = [line for axes in drawn(lambda: classic.plot(kind)) for line in axes.lines]
    guides = [line for line in lines if line.get_color() == plot.GUIDE["color"]]
    curves = [line for line in lines if line.get_color() in plot.COLOURS[:2] and line.get_linestyle() == "-"]
    # Fine lines, in points; what is only there to compare with is finer.
    (thin,), (thick,) = ({line.get_linewidth() for line in each} for each in (guides, curves))
    assert 0 < thin < thick < 2


# Maps.


def a_map(**more):
    nan = math.nan
    made = {
        "aqm": "pi",
        "x": ("flows", np.array([10.0, 40.0, 90.0])),
        "y": ("rtt", np.array([0.1, 0.2])),
        "stable": np.array([[False, True, True], [False, False, True]]),
        "feasible": np.array([[True, True, True], [True, True, False]]),
        "gain_margin": np.array([[0.5, 2.0, nan], [0.001, nan, 100.0]]),
        "phase_margin_deg": np.zeros((2, 3)),
        "modulus_margin": np.zeros((2, 3)),
        "noise_valid": np.zeros((2, 3), dtype=bool),
        **dict.fromkeys(
            (
                *("queue_std_pkts", "qacd_pkts", "queue_p95_pkts", "utilization_lost"),
                *("coexisting_std_pkts", "coexisting_period_s", "supercritical"),
            ),
            np.full((2, 3), nan),
        ),
    }
    return StabilityMap(**{**made, **more})


def contours(axes):
    from matplotlib.contour import QuadContourSet

    return [each for each in axes.collections if isinstance(each, QuadContourSet)]


def test_a_map_shows_gain_margins_between_a_tenth_and_ten(drawn):
    axes, bar = drawn(lambda: a_map().plot())
    filled, edge, hatched = contours(axes)
    # From 0.1 to 10 in forty steps, margins beyond at the ends; what has none is at 10 if stable, else at 0.1.
    np.testing.assert_allclose(filled.levels, np.linspace(-1, 1, 41), atol=1e-12)
    np.testing.assert_allclose(filled.zmin, -1)
    np.testing.assert_allclose(filled.zmax, 1)
    assert list(edge.levels) == [0.5]
    assert list(hatched.levels) == [-0.5, 0.5]
    assert hatched.hatches == ["//"]
    assert (axes.get_xlim(), axes.get_ylim()) == ((10, 90), (0.1, 0.2))
    assert axes.get_title() == "pi: stable above a gain margin of 1"
    assert "flows" in axes.get_xlabel().lower()
    assert bar.get_ylabel() == "Gain margin"
    np.testing.assert_allclose(bar.get_yticks(), np.log10([0.1, 0.3, 1, 3, 10]))
    assert [label.get_text() for label in bar.get_yticklabels()] == ["0.1", "0.3", "1", "3", "10"]
    # 90 / 10 is more than 8; an axis of two values stays as it is.
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")


@pytest.mark.parametrize(
    ("values", "scale"), [([10.0, 40.0, 80.0], "linear"), ([0.0, 40.0, 90.0], "linear"), ([1.0, 4.0, 9.0], "log")]
)
def test_wide_axes_are_logarithmic(drawn, values, scale):
    axes, _ = drawn(lambda: a_map(x=("flows", np.array(values))).plot())
    assert axes.get_xscale() == scale


def test_ticks_of_a_map_are_round_numbers_in_readable_units(drawn):
    made = a_map(x=("flows", np.array([10.0, 40.0, 400.0])), y=("rtt", np.array([0.05, 0.2])))
    axes, _ = drawn(made.plot)
    axes.figure.canvas.draw()
    told = [label.get_text() for label in axes.get_xticklabels()]
    assert told == ["10", "20", "50", "100", "200", "400"]
    assert axes.get_ylabel() == "Base RTT, ms"
    assert {"100", "200"} <= {label.get_text() for label in axes.get_yticklabels()}


def test_a_map_without_boundary_has_no_line(drawn):
    everywhere = np.full((2, 3), True)
    for stable in (everywhere, ~everywhere):
        axes, _ = drawn(lambda stable=stable: a_map(stable=stable, feasible=everywhere).plot())
        assert len(contours(axes)) == 1


def test_cycles_beside_a_stable_rest_are_crossed_and_their_boundary_is_violet(drawn):
    coexisting = np.array([[np.nan, 70.0, np.nan], [np.nan, np.nan, np.nan]])
    axes, _ = drawn(lambda: a_map(coexisting_std_pkts=coexisting, supercritical=np.zeros((2, 3))).plot())
    _, edge, crossed, _ = contours(axes)
    assert list(edge.levels) == [0.5]
    colours = pytest.importorskip("matplotlib.colors")
    assert edge.get_edgecolor().tolist() == [list(colours.to_rgba("darkviolet"))]
    assert crossed.hatches == ["xx"]


def test_what_was_found_is_a_spec_to_run():
    pi = RobustPi(
        a=1.8528e-5,
        b=1.8521e-5,
        frequency_hz=160.0,
        gain=1.0,
        zero_rad_s=0.5,
        worst_modulus_margin=0.5,
        slowest_crossover_rad_s=0.2,
        worst_qacd_pkts=20.0,
        usual_worst_modulus_margin=-1.0,
        usual_worst_qacd_pkts=None,
    )
    assert pi.spec == "pi:a=1.8528e-05,b=1.8521e-05,frequency=160Hz"
    # Of a slow one a and b, of which a must be the larger, differ late.
    slow = dataclasses.replace(pi, a=1.85280012e-5, b=1.85280011e-5)
    assert slow.spec == "pi:a=1.85280012e-05,b=1.85280011e-05,frequency=160Hz"
    assert pi.to_dict()["spec"] == pi.spec
    assert pi.to_dict()["zero_rad_s"] == 0.5
    aqm = RobustAqm(
        aqm="red",
        values={"max_p": 0.1234567, "weight": 0.002},
        worst_modulus_margin=0.5,
        slowest_crossover_rad_s=0.2,
        worst_qacd_pkts=17.0,
        given_worst_modulus_margin=0.1,
        given_worst_qacd_pkts=None,
    )
    assert aqm.spec == "red:max_p=0.123457,weight=0.002"
    assert aqm.to_dict()["values"] == {"max_p": 0.1234567, "weight": 0.002}


def test_ranges_that_are_not_given_are_the_design_s_own(classic):
    alone = theory.robust_pi(classic, flows=(30, 90))
    point = classic.operating_point
    both = theory.robust_pi(
        classic, flows=(30, 90), rtt_s=(point["base_rtt_s"],) * 2, capacity_pps=(point["capacity_pps"],) * 2
    )
    assert alone == both
    assert alone.frequency_hz == 160
    assert alone.worst_modulus_margin == pytest.approx(0.5, abs=0.02)
    slow = theory.robust_pi(classic, flows=(30, 90), slowest_rad_s=alone.slowest_crossover_rad_s / 2)
    assert slow.worst_modulus_margin > alone.worst_modulus_margin


def test_a_map_is_calculated_row_by_row(classic):
    found = theory.stability_map(classic, "gain", [0.1, 1.0, 100.0], "flows", [60.0, 61.0])
    assert found.stable.shape == (2, 3)
    assert found.stable.tolist() == [[True, True, False]] * 2
    # A hundred times the gain, a hundredth of the margin.
    np.testing.assert_allclose(found.gain_margin[:, 0], 10 * found.gain_margin[:, 1], rtol=1e-6)
    assert (found.x[0], found.y[0], found.aqm) == ("gain", "flows", "pi")
    assert found.phase_margin_deg[0, 0] > found.phase_margin_deg[0, 1] > 0 > found.phase_margin_deg[0, 2]
    for empty in ([], [1.0]), ([1.0], []):
        with pytest.raises(ScenarioError, match="at least one value on each axis"):
            theory.stability_map(classic, "gain", empty[0], "flows", empty[1])


# The numbers behind a report's plots.


def test_a_rate_is_averaged_over_the_window():
    link = {"rates": [[0.0, 8e6], [10.0, 2e6], [20.0, 4e6]]}
    # 5 s of 8, 10 s of 2 and 5 s of 4.
    assert curves._mean_rate(link, (5.0, 25.0)) == (5 * 8e6 + 10 * 2e6 + 5 * 4e6) / 20
    assert curves._mean_rate(link, (12.0, 18.0)) == 2e6
    assert curves._mean_rate(link, (30.0, 50.0)) == 4e6


def test_an_ellipse_holds_95_percent():
    rng = np.random.default_rng(3)
    points = rng.multivariate_normal([50, 8], [[9, 2], [2, 1]], size=4000)
    outline = np.array(curves._ellipse(points))
    assert len(outline) == 73
    np.testing.assert_allclose(outline[0], outline[-1], atol=1e-4)
    np.testing.assert_allclose(outline[:-1].mean(axis=0), points.mean(axis=0), atol=1e-3)
    # Every point of it has the Mahalanobis distance whose square is 5.991.
    inverse = np.linalg.inv(np.cov(points.T))
    away = outline - points.mean(axis=0)
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, inverse, away), -2 * math.log(0.05), rtol=1e-3)


def test_a_distribution_function_is_a_staircase():
    values, share = np.array([1.0, 2.0, 4.0]), np.array([0.25, 0.5, 1.0])
    grid = np.array([0.0, 0.99, 1.0, 1.5, 2.0, 3.9, 4.0, 9.0])
    assert curves._stairs(values, share, grid).tolist() == [0, 0, 0.25, 0.25, 0.5, 0.5, 1, 1]


class Made:
    """A run with series and distributions made up."""

    def __init__(self, spec, seed, queue, p=0.0, mark=0.0, drop=0.0, wait=0.02, use=0.9):
        self.spec, self.seed, self.label, self.links = spec, seed, "packet", ["l"]
        self.windows = {"all": (0.0, 30.0), "steady": (10.0, 30.0)}
        self.queue, self.p, self.wait, self.use = queue, p, wait, use
        self.data = {"links": {"l": {"steady": {"mark_ratio": mark, "early_drop_ratio": drop}}}}

    def link(self, name, window):
        assert name == "l"
        del window
        return {"queue_mean_pkts": self.queue, "sojourn_mean_s": self.wait, "utilization": self.use}

    def series(self, link):
        del link
        t = np.arange(3001) / 100
        return SimpleNamespace(t_s=t, queue_pkts=np.full(3001, self.queue) + t, probability=np.full(3001, self.p))

    def sojourn_cdf(self, link, window):
        del link, window
        return SimpleNamespace(sojourn_s=np.array([0.01, self.wait]), share=np.array([0.5, 1.0]))

    def queue_cdf(self, link, window):
        del link, window
        return SimpleNamespace(queue_pkts=np.array([1.0, self.queue]), share=np.array([0.25, 1.0]))


class Compared:
    """A comparison of such runs."""

    def __init__(self, runs):
        self.results = runs
        self.aqms = list(dict.fromkeys(run.spec for run in runs))
        self.seeds = sorted({run.seed for run in runs})
        self.scenario = self

    def of(self, aqm):
        return [run for run in self.results if run.spec == aqm]

    def ranking(self):
        return SimpleNamespace(window="steady")

    def plan(self, seed, spec):
        del seed, spec
        return {"links": [{"name": "l", "target_pkts": 20, "buffer_pkts": 60, "rates": [[0, 8e6], [15, 4e6]]}]}


RUNS = [
    Made("a", 1, 10, p=0.1, wait=0.02, use=0.9),
    Made("a", 2, 20, p=0.2, wait=0.03, use=0.8),
    Made("a", 3, 60, p=0.3, wait=0.04, use=1.0),
    Made("b", 1, 5, mark=0.2),
    Made("b", 2, 6, drop=0.1),
    Made("b", 3, 7),
]


def test_the_seed_that_is_shown_is_the_least_unusual():
    assert curves.representative_seed(Compared(RUNS)) == 2
    # What one AQM did not finish cannot be shown.
    assert curves.representative_seed(Compared([run for run in RUNS if (run.spec, run.seed) != ("b", 2)])) != 2


def test_who_signals_at_moments_has_no_curve_of_probability():
    assert curves.without_probability(Compared(RUNS), "l") == ["b"]
    assert curves.without_probability(Compared([Made("c", 1, 5)]), "l") == []
    # Marks alone and drops alone are signals; one run that has a probability is enough for a curve.
    for signal in ({"mark": 0.1}, {"drop": 0.1}):
        assert curves.without_probability(Compared([Made("c", 1, 5, **signal)]), "l") == ["c"]
        assert curves.without_probability(Compared([Made("c", 1, 5, **signal), Made("c", 2, 5, p=0.1)]), "l") == []


def test_curves_are_thinned_and_banded():
    found = curves.curves(Compared(RUNS))
    assert (found["aqms"], found["seed"], found["seeds"], found["window"], found["end"]) == (
        ["a", "b"],
        2,
        3,
        "steady",
        30,
    )
    link = found["links"]["l"]
    assert (link["target"], link["buffer"]) == (20, 60)
    # 3001 points, every third.
    assert len(link["t"]) == 1001
    assert link["t"][:3] == [0, 0.03, 0.06]
    a = link["time"]["a"]
    assert a["queue"][100] == pytest.approx(23)
    # The band between a tenth and nine tenths of 10, 20, 60.
    assert (a["queue_low"][0], a["queue_high"][0]) == (12, 52)
    assert (a["p"][0], a["p_low"][0], a["p_high"][0]) == (0.2, 0.12, 0.28)
    assert set(link["time"]["b"]["p"]) == {None}
    assert "averaged" not in a
    cdf = link["cdf"]
    # To 2 % beyond the longest wait.
    assert len(cdf["x"]) == 240
    assert cdf["x"][-1] == pytest.approx(40.8)
    assert cdf["share"]["a"][-1] == 1
    # At 25 ms the first seed is through, the others have half.
    at = int(np.searchsorted(cdf["x"], 25))
    assert cdf["share"]["a"][at] == pytest.approx(2 / 3, abs=1e-5)
    levels = link["levels"]
    assert levels["x"] == list(range(61))
    assert levels["share"]["a"][15] == pytest.approx((1 + 0.25 + 0.25) / 3)
    trade = link["tradeoff"]["a"]
    # 15 s of 8 Mbit/s and 15 of 4 are 6 on average.
    assert trade["x"] == [20, 30, 40]
    assert trade["y"] == pytest.approx([5.4, 4.8, 6.0])
    assert trade["seed"] == [1, 2, 3]
    assert len(trade["ellipse"]) == 73
    two = curves.curves(Compared([run for run in RUNS if run.seed < 3]))
    assert two["links"]["l"]["tradeoff"]["a"]["ellipse"] == []
    one = curves.curves(Compared([run for run in RUNS if run.seed == 1]))
    assert "queue_low" not in one["links"]["l"]["time"]["a"]


def test_of_several_engines_the_average_over_runs_and_the_last_second_is_drawn_too():
    runs = [Made("a", 1, 10.04), Made("a", 2, 20.07)]
    runs[1].label = "fluid"
    link = curves.curves(Compared(runs))["links"]["l"]
    averaged = link["time"]["a"]["averaged"]
    # The mean of both rises by 1 a second: half a second before 15 s it was 15.055 + 14.5, to a tenth of a packet.
    assert len(averaged) == len(link["t"])
    assert averaged[link["t"].index(15)] == 29.6


def stepped(monkeypatch, *values, band=0.05, seconds=1.0):
    """Figures of a step's answer that has these values, so many seconds apart."""
    from aqumen.theory import plots

    answer = seconds * np.arange(float(len(values))), np.array(values)
    monkeypatch.setattr(plots, "step_response", lambda _: answer)
    return plots.step_metrics(None, band)


def test_a_step_is_told_by_rise_overshoot_and_settling(monkeypatch):
    told = stepped(monkeypatch, 0, 0.05, 0.1, 0.5, 0.9, 1.2, 0.98, 1.06, 1.04, 0.96, 1.0)
    # A tenth at 2 s, nine at 4 s; 1.06 to 1.04 passes 1.05 half-way between 7 and 8 s. The parabola through .9, 1.2
    # and .98 is highest .08^2 / (8 (.52)) above its middle.
    assert told == {"rise_s": 2, "overshoot": pytest.approx(0.2 + 0.0064 / 4.16), "settling_s": pytest.approx(7.5)}
    # 1.2 to .98 passes 1.1 after 10/22 s.
    wide = stepped(monkeypatch, 0, 0.05, 0.1, 0.5, 0.9, 1.2, 0.98, 1.06, 1.04, 0.96, 1.0, band=0.1)
    assert wide["settling_s"] == pytest.approx(5 + 10 / 22)
    # What never comes to pass.
    assert stepped(monkeypatch, 0, 0.5, 0.8, 0.85) == {"rise_s": None, "overshoot": 0, "settling_s": None}
    assert stepped(monkeypatch, 0, 0.05) == {"rise_s": None, "overshoot": 0, "settling_s": None}
    assert stepped(monkeypatch, 1, 1)["settling_s"] == 0


@pytest.mark.parametrize("damping", [0.3, 0.5, 0.8])
def test_the_figures_of_a_step_do_not_depend_on_the_samples_that_they_are_read_from(monkeypatch, damping):
    # A second-order answer of 1 rad/s, sampled each .4 s and in closed form.
    damped = np.sqrt(1 - damping**2)

    def answer(t):
        return 1 - np.exp(-damping * t) * (np.cos(damped * t) + damping / damped * np.sin(damped * t))

    t = np.linspace(0, 40, 4_000_001)
    exact = answer(t)
    rise = t[np.argmax(exact >= 0.9)] - t[np.argmax(exact >= 0.1)]
    settling = t[np.flatnonzero(np.abs(exact - 1) > 0.05)[-1]]
    told = stepped(monkeypatch, *answer(np.arange(0, 40, 0.4)), seconds=0.4)
    assert told["rise_s"] == pytest.approx(rise, rel=0.02)
    assert told["overshoot"] == pytest.approx(np.exp(-np.pi * damping / damped), abs=0.003)
    assert told["settling_s"] == pytest.approx(settling, rel=0.02)


def test_arrows_on_a_nyquist_plot_point_the_way_frequency_rises(classic, drawn):
    (axes,) = drawn(lambda: classic.plot("nyquist"))
    w = classic.frequencies(6000)
    arrows = [text for text in axes.texts if text.arrow_patch is not None]
    assert len(arrows) == 2
    for arrow, is_exact in zip(arrows, (True, False), strict=True):
        loop = classic.loop_response(w, exact=is_exact)
        # It stands where the gain is 1.
        here = int(np.argmin(np.abs(np.abs(loop) - 1)))
        assert complex(*arrow.xy) == loop[here + 1]
        assert complex(*arrow.xyann) == loop[here - 1]


def test_a_root_locus_in_continuous_time_starts_at_the_poles_of_the_plant(drawn):
    control = pytest.importorskip("control")
    red = hollot("red", capacity="30Mbit", flows=60, rtt="200ms", target="100pkt")
    (axes,) = drawn(lambda: red.plot("locus"))
    *loci, own, axis = axes.lines
    loop = red.to_control(pade=8)[2]
    # For each of the loop's poles a line through 120 gains, the first a twentieth, the last five times ours.
    assert {len(line.get_xdata()) for line in loci} == {120}
    for gain, which in ((0.05, 0), (5.0, -1)):
        expected = control.feedback(gain * loop, 1).poles()
        found = np.array([complex(line.get_xdata()[which], line.get_ydata()[which]) for line in loci])
        assert np.sort(found.real) == pytest.approx(np.sort(expected.real), rel=1e-3, abs=1e-3)
    x, y = data(own)
    expected = control.feedback(loop, 1).poles()
    assert np.sort(x) == pytest.approx(np.sort(expected.real), rel=1e-6)
    assert np.sort(y) == pytest.approx(np.sort(expected.imag), rel=1e-6, abs=1e-9)
    assert own.get_label() == "gain 1"
    assert data(axis)[0].tolist() == [0, 0]
    # Six over the round trip to the left, half of it to the right.
    edge = 6 / red.operating_point["rtt_s"]
    assert axes.get_xlim() == pytest.approx((-edge, edge / 2))
    assert axes.get_ylim() == pytest.approx((-edge, edge))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Re s, 1/s", "Im s, 1/s")


def test_the_noise_is_drawn_so_that_equal_areas_are_equal_parts(classic, drawn):
    (axes,) = drawn(lambda: classic.plot("noise"))
    x, y = data(axes.lines[0])
    spectrum = classic.noise["spectrum"]
    np.testing.assert_allclose(x, spectrum["w_rad_s"])
    # The integral over the logarithm of frequency, of w S(w) / pi, is the variance.
    variance = np.trapezoid(y, np.log(x))
    assert variance == pytest.approx(classic.noise["queue_std_pkts"] ** 2, rel=0.02)
    assert set(data(axes.lines[1])[0]) == {spectrum["peak_rad_s"]}
    assert axes.lines[0].get_color() == plot.COLOURS[0] != axes.lines[1].get_color()
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] == 0
    assert axes.get_xlabel() == "Frequency, rad/s"
    assert axes.get_title() == f"{TITLE}\nstandard deviation {classic.noise['queue_std_pkts']:.3g} packets"
    red = hollot("red", capacity="30Mbit", flows=60, rtt="200ms", target="100pkt")
    with pytest.raises(ScenarioError, match="the noise is unknown: "):
        red.plot("noise")


def test_a_loop_that_cannot_come_to_rest_has_no_step_response():
    # PI with a thousand times the gain.
    wild = hollot("pi:a=1.822e-2,b=1.816e-2", capacity="30Mbit", flows=60, r0="246ms")
    from aqumen.theory.plots import step_response

    assert not wild.margins["exact"]["stable"]
    with pytest.raises(ScenarioError, match="unstable: its step response grows without bound"):
        step_response(wild)
