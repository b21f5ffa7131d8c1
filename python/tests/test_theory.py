"""Design, linear analysis, maps, the fluid and theory engines, as Python sees them."""

import functools
import json
import re
from pathlib import Path

import numpy as np
import pytest

import aqumen
from aqumen import theory
from aqumen.cli import main
from aqumen.explain.prediction import compare_prediction

EXPERIMENTS = Path(__file__).parents[2] / "experiments" / "arm-pfc"

hollot = functools.partial(theory.design, model="hollot")


@pytest.fixture(scope="module")
def classic():
    return hollot("pi", capacity="30Mbit", flows=60, r0="246ms")


def test_design_pi_prints_the_gains_of_hollots_rule(capsys):
    args = ["design", "pi", "--capacity", "30Mbit", "--flows", "60", "--r0", "246ms", "--packet", "1000B", "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert found["gains"]["a"] == pytest.approx(1.8528e-5, rel=1e-4)
    assert found["gains"]["frequency"] == 160
    # 90 - w R - atan(w R) with w R = 0.13008: 75.14 degrees, less half a sample of hold.
    assert found["margins"]["phase_margin_deg"] == pytest.approx(75.04, abs=0.02)
    assert found["warnings"] == []


def test_design_arm_pfc_prints_its_predictor(capsys):
    network = ["--capacity", "10Mbit", "--flows", "100", "--r0", "280ms", "--target", "100pkt"]
    assert main(["design", "arm-pfc:h=7", *network, "--json"]) == 0
    gains = json.loads(capsys.readouterr().out)["gains"]
    assert gains["d"] == 5
    for name, expected in (
        ("T_s", 0.056),
        ("beta1", 2.714617541175),
        ("beta2", -2.020644345810),
        ("eta", -27.509781549235),
    ):
        assert gains[name] == pytest.approx(expected, rel=1e-10)


def test_design_for_people_names_margins_and_warnings(capsys):
    network = ["--capacity", "10Mbit", "--flows", "100", "--rtt", "200ms", "--target", "100pkt"]
    assert main(["design", "red", *network]) == 0
    out, err = capsys.readouterr()
    assert "gain_margin" in out
    assert "L_RED" in out
    # Two plants, and which is to be trusted.
    assert re.search(r"margin +textbook plant +exact plant", out)
    assert "Exact plant: linearisation of the fluid model with all delays; prefer its margins." in " ".join(out.split())
    assert "too fast for Hollot's rule" in err


@pytest.mark.parametrize(
    ("args", "expect"),
    [
        ("pi --capacity 30Mbit --flows 60", "either --rtt (without queueing) or --r0"),
        ("pi --capacity 30Mbit --flows 60 --rtt 1s --r0 1s", "either --rtt"),
        ("px --capacity 30Mbit --flows 60 --r0 246ms", 'no AQM "px"; did you mean pi?'),
        ("pi --capacity fast --flows 60 --r0 246ms", "capacity"),
        ("pi --capacity 30Mbit --flows 0 --r0 246ms", "flows"),
        ("pi --capacity 30Mbit --flows 60 --r0 246ms --target 2000pkt", "longer than the whole round trip"),
        ("pi --capacity 30Mbit --flows 60 --r0 246ms --sender tcp", "unknown sender `tcp`; choose from: linux, cubic"),
        ("droptail --capacity 30Mbit --flows 60 --r0 246ms --plot x.png", "not a linear controller"),
        ("pi --capacity 30Mbit --flows 60 --r0 246ms --plot x.png --kind pie", "unknown plot"),
        ("codel --capacity 30Mbit --flows 60 --r0 246ms", "no linear law"),
        ("fq-codel --capacity 30Mbit --flows 60 --r0 246ms", "its own queue"),
        ("pi", "--capacity and --flows of a network, or --scenario FILE"),
        ("pi --capacity 30Mbit --flows 60 --r0 246ms --target 5lengths", "target"),
        ("pi --scenario arm-pfc/exp1 --rtt 1s --flows 60", "--flows, --rtt and --scenario exclude"),
        ("pi --scenario arm-pfc/exp1 --flows 0", "--flows and --scenario exclude"),
        ("codel --scenario arm-pfc/exp1", "no linear law"),
    ],
)
def test_a_design_that_cannot_be_made_says_why_in_one_line(capsys, args, expect):
    if "--plot" in args:
        pytest.importorskip("matplotlib")
    assert main(["design", *args.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert expect in err
    assert err.count("\n") == 1


def test_numbers_and_texts_design_the_same(classic):
    same = hollot("pi", capacity=30e6, flows=60.0, r0=0.246, target=184, packet=1000)
    assert same.gains == classic.gains


def test_without_a_target_the_queue_takes_a_fifth_of_the_round_trip(classic):
    # 0.2 * 0.246 * 3750 = 184.5; of 200 ms without queueing a quarter: 0.25 * 0.2 * 3750 = 187.5.
    assert classic.operating_point["queue_pkts"] == 184
    base = hollot("pi", capacity="30Mbit", flows=60, rtt="200ms")
    assert base.operating_point["queue_pkts"] == 188


def test_the_response_is_that_of_the_equations(classic):
    # Textbook: k_t e^{-jwR} / ((1 + jw tau1)(1 + jw tau2)), negative.
    point = classic.operating_point
    w = np.array([0.1, 1.0, 5.0])
    tau1, tau2 = point["time_constants_s"]
    expected = -point["gain_pkts"] * np.exp(-1j * w * point["rtt_s"]) / ((1 + 1j * w * tau1) * (1 + 1j * w * tau2))
    np.testing.assert_allclose(classic.plant_response(w, exact=False), expected, rtol=1e-12)


def test_margins_agree_with_python_control(classic):
    control = pytest.importorskip("control")
    plant, controller, _ = classic.to_control(pade=12)
    # The hold of a fast sampler is half a sample of delay; compared without it, in continuous time.
    gains = classic.gains
    continuous = control.tf([gains["K"] / gains["z"], gains["K"]], [1, 0])
    gain, phase, w_gain, w_phase = control.margin(-plant * continuous)
    ours = classic.margins_with(continuous, exact=False)
    assert ours["gain_margin"] == pytest.approx(gain, rel=1e-4)
    assert ours["phase_margin_deg"] == pytest.approx(phase, rel=1e-4)
    assert ours["phase_crossover_rad_s"] == pytest.approx(w_gain, rel=1e-4)
    assert ours["crossover_rad_s"] == pytest.approx(w_phase, rel=1e-4)
    # A sampled controller comes back as it went out.
    assert classic.margins_with(controller)["gain_margin"] == pytest.approx(
        classic.margins["exact"]["gain_margin"], rel=1e-9
    )


def test_the_loop_works_in_python_control(classic):
    control = pytest.importorskip("control")
    plant, controller, loop = classic.to_control(pade=4)
    assert (plant.name, controller.name, loop.name) == ("textbook_plant", "controller", "textbook_loop")
    # Stable by our margins, so closed it is stable and comes to rest at the target.
    closed = control.feedback(loop, 1)
    assert np.abs(control.poles(closed)).max() < 1
    answer = control.step_response(closed, T=np.arange(0, 60, loop.dt))
    assert float(np.squeeze(answer.outputs)[-1]) == pytest.approx(1, abs=0.01)
    # At our gain margin a pole reaches the circle.
    critical = control.feedback(classic.margins["gain_margin"] * loop, 1)
    assert np.abs(control.poles(critical)).max() == pytest.approx(1, abs=2e-4)
    assert control.root_locus_map(loop, gains=[0.5, 1.0]).loci.shape[0] == 2


def test_without_an_approximation_the_loop_is_the_exact_one_and_interpolates(classic):
    control = pytest.importorskip("control")
    _, _, loop = classic.to_control()
    assert loop.name == "exact_loop"
    # Between the points of its table.
    w = np.sqrt(loop.omega[:-1] * loop.omega[1:])[::97]
    np.testing.assert_allclose(loop(1j * w), classic.loop_response(w), rtol=1e-3)
    gain, phase, *_ = control.margin(loop)
    exact = classic.margins["exact"]
    assert gain == pytest.approx(exact["gain_margin"], rel=1e-3)
    assert phase == pytest.approx(exact["phase_margin_deg"], rel=1e-3)
    with pytest.raises(aqumen.ScenarioError, match="pade = 0"):
        classic.to_control(pade=0)


NETWORKS = {
    "arm-pfc": {"capacity": "10Mbit", "flows": 100, "rtt": "200ms", "target": "100pkt"},
    "red": {"capacity": "20Mbit", "flows": 80, "rtt": "150ms", "target": "80pkt"},
    "pie": {"capacity": "50Mbit", "flows": 40, "rtt": "60ms"},
    "pi2": {"capacity": "50Mbit", "flows": 40, "rtt": "60ms"},
    "aqm-mo": {"capacity": "10Mbit", "flows": 60, "rtt": "100ms", "target": "50pkt"},
}


# With that much in its polynomials python-control says that it searches by frequencies.
@pytest.mark.filterwarnings("ignore:stability_margins. Falling back")
@pytest.mark.parametrize("aqm", NETWORKS)
def test_python_control_finds_the_margins_of_both_plants(aqm):
    """By its own search on what `to_control` gives: sampled laws, continuous ones, stable loops and (RED's) another."""
    control = pytest.importorskip("control")
    design = hollot(aqm, **NETWORKS[aqm])
    for loop, ours, near in (
        (design.to_control(pade=8)[2], design.margins, 2e-3),
        (design.to_control()[2], design.margins["exact"], 1e-4),
    ):
        gain, phase, *_ = control.margin(loop)
        assert gain == pytest.approx(ours["gain_margin"], rel=near)
        assert phase == pytest.approx(ours["phase_margin_deg"], rel=near)
    # MATLAB's script has the dead time as it is: its plant, with the delay written as Pade, is that of pade=8.
    text = design.to_matlab()
    gain, coefficients, delay = re.search(r"P = tf\((\S+), \[(.+?)\], 'InputDelay', (\S+),", text).groups()
    plant = control.tf([float(gain)], [float(x) for x in coefficients.split()])
    read = control.tf(plant * control.tf(*control.pade(float(delay), 8)))
    w = np.array([0.3, 1.0, 3.0])
    np.testing.assert_allclose(read(1j * w), design.to_control(pade=8)[0](1j * w), rtol=1e-6)


def test_exact_plant_and_sampled_controller_make_the_loop(classic):
    pytest.importorskip("control")
    plant, controller, loop = classic.to_control()
    w = loop.omega[::50]
    product = plant * controller
    np.testing.assert_allclose(-product(1j * w), loop(1j * w), rtol=1e-6)
    # The controller is its own difference equation: D = (a - b / z) / (1 - 1 / z).
    a, b, period = classic.gains["a"], classic.gains["b"], 1 / classic.gains["frequency"]
    back = np.exp(-1j * w * period)
    np.testing.assert_allclose(controller(1j * w), (a - b * back) / (1 - back), rtol=1e-4)
    # Far below the sampling frequency the hold is half a period of delay.
    slow = w[w < 0.02 / period]
    held = classic.plant_response(slow) * np.exp(-0.5j * slow * period)
    np.testing.assert_allclose(plant(1j * slow), held, rtol=2e-3)
    # One in continuous time meets the plant as it is: RED's average, L / (1 + s / K).
    red = hollot("red", **NETWORKS["red"])
    plant, controller, loop = red.to_control()
    w = loop.omega[::50]
    np.testing.assert_allclose(plant(1j * w), red.plant_response(w), rtol=1e-6)
    at_rest = controller(1j * w[0]) * (1 + 1j * w[0] / red.gains["K"])
    np.testing.assert_allclose(controller(1j * w) * (1 + 1j * w / red.gains["K"]), at_rest, rtol=1e-4)


def test_the_state_space_is_the_plant_and_goes_into_files(classic, tmp_path):
    found = classic.state_space()
    a, late, b, b_late = (np.array(found[name]) for name in ("A", "A_d", "B", "B_d"))
    for w in (0.3, 2.0):
        e = np.exp(-1j * w * found["delay_s"])
        response = np.array(found["C"]) @ np.linalg.solve(1j * w * np.eye(2) - a - late * e, b + b_late * e)
        assert response[0, 0] == pytest.approx(classic.plant_response([w])[0], rel=1e-9)
    classic.save(tmp_path / "plant.json")
    assert json.loads((tmp_path / "plant.json").read_text())["A"] == found["A"]
    scipy_io = pytest.importorskip("scipy.io")
    classic.save(tmp_path / "plant.mat", exact=False)
    read = scipy_io.loadmat(tmp_path / "plant.mat", squeeze_me=True, simplify_cells=True)
    plain = classic.state_space(exact=False)
    for name in ("A", "A_d", "B", "B_d", "C", "delay_s"):
        np.testing.assert_allclose(read[name], np.squeeze(plain[name]))
    for name, value in plain["controller"].items():
        np.testing.assert_allclose(read["controller"][name], value)
    assert read["controller"]["period_s"] == 1 / 160
    # MATLAB has no null: a controller in continuous time has the period 0.
    red = hollot("red", **NETWORKS["red"])
    red.save(tmp_path / "red.mat")
    assert scipy_io.loadmat(tmp_path / "red.mat", simplify_cells=True)["controller"]["period_s"] == 0
    assert red.state_space()["controller"]["period_s"] is None
    with pytest.raises(aqumen.ScenarioError, match=r"must be \.mat or \.json"):
        classic.save(tmp_path / "plant.txt")


def delay_roots(now, delayed, points=40):
    """Eigenvalues of x' = A x + sum A_k x(t - d_k): the generator on Chebyshev's points, as TRACE-DDE has it.

    Breda, Maset and Vermiglio, "Pseudospectral differencing methods for characteristic roots of delay differential
    equations", 2005. `delayed` holds pairs (d_k, A_k); the past is one polynomial over the longest delay.
    """
    size, longest = len(now), max(delay for delay, _ in delayed)
    angle = np.pi * np.arange(points + 1) / points
    x, weight = np.cos(angle), np.where(np.arange(points + 1) % points == 0, 2.0, 1.0) * (-1.0) ** np.arange(points + 1)
    apart = x[:, None] - x[None, :] + np.eye(points + 1)
    slope = np.outer(weight, 1 / weight) / apart
    slope -= np.diag(slope.sum(axis=1))
    generator = np.kron(slope * 2 / longest, np.eye(size))
    generator[:size] = 0
    generator[:size, :size] = now
    for delay, matrix in delayed:
        # The polynomial through the points at t - d, by its barycentric form.
        away = 1 - 2 * delay / longest - x
        lagrange = np.eye(points + 1)[np.abs(away).argmin()] if np.abs(away).min() < 1e-12 else (1 / weight) / away
        lagrange = lagrange / lagrange.sum()
        generator[:size] += np.kron(lagrange, matrix)
    return np.linalg.eigvals(generator)


def test_another_way_to_roots_gives_those_that_dde_biftool_prints():
    """Its demo1_normalforms: two coupled neurons at their double Hopf point, 16 roots in four decimals."""
    kappa, beta, a21, tau = 0.5, -1.0, 0.2072962661, 8.6340742204
    coupled = np.array([[0.0, 1.0], [a21, 0.0]])
    found = delay_roots(-kappa * np.eye(2), [(tau, beta * np.eye(2)), (0.2, coupled)], 60)
    printed = (
        (0.1284, 0.2509),
        (0.0, 0.9157),
        (0.0, 0.3287),
        (-0.0298, 1.0012),
        (-0.0662, 1.6968),
        (-0.0671, 1.6371),
        (-0.0982, 2.4063),
        (-0.1095, 2.3640),
    )
    for real, imaginary in printed:
        # They are printed before Newton's method has refined them.
        assert np.abs(found - (real + 1j * imaginary)).min() < 2e-4


@pytest.mark.parametrize("model", ["hollot", "ecn", "reno"])
@pytest.mark.parametrize("flows", [40, 80, 160])
def test_the_rightmost_root_is_that_of_another_way_to_it(model, flows):
    """The exact plant's matrices closed with RED's filter, K / (1 + s T): one more state."""
    design = hollot("red", **NETWORKS["red"] | {"flows": flows}, model=model)
    found = design.state_space()
    num, den = found["controller"]["num"], found["controller"]["den"]
    assert (len(num), len(den), found["controller"]["period_s"]) == (1, 2, None)
    a, late, b, b_late = (np.array(found[name]) for name in ("A", "A_d", "B", "B_d"))
    now, delayed = np.zeros((3, 3)), np.zeros((3, 3))
    now[:2], delayed[:2] = np.hstack([a, b]), np.hstack([late, b_late])
    now[2] = [0, num[0] / den[1], -den[0] / den[1]]
    roots = delay_roots(now, [(found["delay_s"], delayed)])
    rightmost = roots[roots.real.argmax()]
    ours = design.margins["rightmost_root"]
    assert ours == pytest.approx([rightmost.real, abs(rightmost.imag)], rel=1e-6, abs=1e-6)


def test_sensitivities_and_step_metrics(classic):
    w = np.geomspace(0.01, 50, 400)
    s, t = classic.sensitivities(w)
    np.testing.assert_allclose(s + t, 1, rtol=1e-12)
    # The largest sensitivity is one over the modulus margin.
    assert 1 / np.abs(s).max() == pytest.approx(classic.margins["exact"]["modulus_margin"], rel=0.01)
    told = classic.step_metrics()
    assert 0 < told["rise_s"] < told["settling_s"]
    assert 0 <= told["overshoot"] < 0.5


def test_the_nu_gap_is_a_distance_of_plants(classic):
    assert theory.nu_gap(classic, classic) == 0
    network = {"capacity": "30Mbit", "r0": "246ms"}
    near, far = (hollot("pi", flows=flows, **network) for flows in (55, 15))
    small, large = theory.nu_gap(classic, near), theory.nu_gap(classic, far)
    assert 0 < small < large <= 1
    assert theory.nu_gap(near, classic, weighted=False) == pytest.approx(theory.nu_gap(classic, near, weighted=False))


def test_matlab_gets_the_dead_time_and_both_plants(classic):
    text = classic.to_matlab()
    point = classic.operating_point
    assert f"'InputDelay', {point['rtt_s']:.17g}" in text
    for name in ("textbook plant", "exact plant", "controller"):
        assert f"'Name', '{name}'" in text
    said = re.search(r"([\d.]+) degrees with P, ([\d.]+) with Pexact", text)
    assert float(said[1]) == pytest.approx(classic.margins["phase_margin_deg"], rel=1e-3)
    assert float(said[2]) == pytest.approx(classic.margins["exact"]["phase_margin_deg"], rel=1e-3)
    # P by its coefficients has the textbook's response.
    gain, one, two, three = map(float, re.search(r"P = tf\((\S+), \[(\S+) (\S+) (\S+)\]", text).groups())
    s = 1j * 2.0
    response = gain / (one * s**2 + two * s + three) * np.exp(-s * point["rtt_s"])
    assert response == pytest.approx(classic.plant_response([2.0], exact=False)[0], rel=1e-12)


def test_the_poles_of_the_sampled_loop_cross_the_circle_at_the_gain_margin(classic):
    margin = classic.margins["gain_margin"]
    below, above = (np.abs(classic.poles(margin * factor)).max() for factor in (0.999, 1.001))
    assert below < 1 < above


@pytest.mark.parametrize("kind", ["nyquist", "bode", "nichols", "step", "locus", "noise"])
def test_every_plot_is_drawn(classic, kind, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    figure = classic.plot(kind)
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 5000
    pyplot.close(figure)


def test_the_step_response_settles_on_one(classic):
    from aqumen.theory.plots import step_response

    t, y = step_response(classic)
    assert y[0] == pytest.approx(0, abs=0.02)
    # Nothing happens before a round trip has passed.
    assert abs(y[t < 0.2]).max() < 0.02
    assert y[-100:] == pytest.approx(1, abs=0.02)


def test_a_map_has_its_boundary_where_the_equations_swing(classic):
    found = theory.stability_map(classic, "flows", np.geomspace(5, 200, 60), "rtt", [0.1, 0.2, 0.4])
    assert found.stable.shape == (3, 60)
    row = found.stable[2]
    assert not row[0]
    assert row[-1]
    edge = found.x[1][int(np.argmax(row))]
    _, calm, _ = classic.core.check(200.0, flows=edge * 1.4, rtt=0.4)
    _, swinging, _ = classic.core.check(200.0, flows=edge * 0.7, rtt=0.4)
    assert calm < 2 < swinging


def test_the_boundary_is_followed_as_a_curve(classic):
    pieces = theory.boundary(classic, "flows", (5, 400), "rtt", (0.05, 0.6))
    (piece,) = pieces
    # A map has its line there: stable to the right of it.
    for k in range(0, len(piece.x), 7):
        beside = theory.stability_map(classic, "flows", [0.97 * piece.x[k], 1.03 * piece.x[k]], "rtt", [piece.y[k]])
        assert beside.stable[0].tolist() == [False, True]
    assert set(piece.supercritical) <= {0.0, 1.0}
    assert (np.diff(piece.y) * (piece.y[-1] - piece.y[0]) > 0).all()
    with pytest.raises(aqumen.ScenarioError, match="from above 0, to above from"):
        theory.boundary(classic, "flows", (0, 400), "rtt", (0.05, 0.6))


def test_a_scenario_is_answered_queue_by_queue(capsys):
    assert main(["design", "pi", "--scenario", "arm-pfc/parking-lot", "--json"]) == 0
    queues = json.loads(capsys.readouterr().out)["queues"]
    # Flows of the way through and across fill the three links in the middle.
    assert queues["link2"]["several"]["links"] == ["link2", "link3", "link4"]
    assert queues["link3"]["queue_pkts"] == pytest.approx(100)
    assert queues["link1"]["queue_pkts"] == 0
    assert main(["design", "pi", "--scenario", "arm-pfc/parking-lot"]) == 0
    assert "link2" in capsys.readouterr().out


def test_a_target_is_a_number_of_packets_or_the_time_that_they_take(capsys):
    network = ["--capacity", "10Mbit", "--flows", "60", "--rtt", "200ms", "--json"]
    gains = []
    for target in ("100pkt", "80ms"):
        assert main(["design", "pi", *network, "--target", target]) == 0
        gains.append(json.loads(capsys.readouterr().out)["gains"])
    # 80 ms at 1250 packets a second.
    assert gains[0] == gains[1]
    shorter = ["run", "arm-pfc/exp1", "--aqm", "pi", "--engine", "theory", "--json", "--target"]
    for target in ("50pkt", "40ms"):
        assert main([*shorter, target]) == 0
        gains.append(json.loads(capsys.readouterr().out)["links"]["bottleneck"]["steady"]["queue_mean_pkts"])
    # The network of the design has 1250 packets a second.
    assert gains[2:] == [50, 50]


def test_reds_hard_excitation_is_in_its_design_and_on_its_map(capsys):
    network = ["--capacity", "10Mbit", "--flows", "50", "--rtt", "200ms", "--target", "100pkt", "--sender", "ecn"]
    assert main(["design", "red", *network]) == 0
    assert "limit cycle" in capsys.readouterr().out
    red = hollot("red", capacity="10Mbit", flows=50, rtt="200ms", target="100pkt", model="ecn")
    (repelling,) = red.hopf["cycles"]
    assert not repelling["attracts"]
    found = theory.stability_map(red, "flows", [20, 50], "rtt", [0.2], cycles=True)
    assert np.isnan(found.coexisting_std_pkts[0, 0])
    assert found.coexisting_std_pkts[0, 1] == pytest.approx(68, abs=4)
    assert found.coexisting_std_pkts[0, 1] > repelling["std_pkts"]
    assert np.isnan(theory.stability_map(red, "flows", [50], "rtt", [0.2]).coexisting_std_pkts).all()


def test_ten_thousand_points_of_a_map_are_no_wait(classic):
    found = theory.stability_map(classic, "flows", np.geomspace(5, 500, 100), "rtt", np.geomspace(0.05, 0.6, 100))
    assert found.stable.size == 10_000
    assert found.stable.any()
    assert not found.stable.all()


def test_a_map_tells_what_is_stable_in_a_table_and_as_json(capsys):
    network = ["--capacity", "10Mbit", "--flows", "60", "--rtt", "200ms", "--target", "100pkt", "--sender", "hollot"]
    axes = ["--over", "flows=10:400", "--over", "rtt=50ms:600ms"]
    assert main(["map", "pi", *network, *axes, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found["y"]["values"][end] for end in (0, -1)] == pytest.approx([0.05, 0.6])
    # Rows are those of the round trip: few flows far away are unstable, many near are not.
    assert found["stable"][0][-1]
    assert not found["stable"][-1][0]
    assert found["gain_margin"][-1][0] < 1 < found["gain_margin"][0][-1]
    assert found["queue_std_pkts"][-1][0] is None
    assert main(["map", "pi", *network, *axes]) == 0
    shown = capsys.readouterr().out
    share = np.mean(found["stable"])
    assert re.search(rf"stable +{share:.1%}", shown)


def test_a_robust_pi_holds_where_the_usual_one_does_not(capsys):
    network = ["--capacity", "10Mbit", "--flows", "60", "--rtt", "200ms", "--target", "100pkt"]
    assert main(["robust", "pi", *network, "--over", "flows=15:200", "--json"]) == 0
    robust = json.loads(capsys.readouterr().out)
    assert robust["worst_modulus_margin"] == pytest.approx(0.5, abs=0.01)
    assert robust["usual_worst_modulus_margin"] < robust["worst_modulus_margin"]
    # The SPEC that it prints can be run.
    again = hollot(robust["spec"], capacity="10Mbit", flows=15, rtt="200ms", target="100pkt")
    assert again.margins["exact"]["stable"]


def test_the_least_noise_at_a_margin_is_designed_for(capsys):
    network = ["--capacity", "10Mbit", "--flows", "60", "--rtt", "200ms", "--target", "100pkt"]
    asked = ["robust", "pi", *network, "--over", "flows=40:150", "--margin", "0.6", "--json"]
    assert main([*asked, "--aim", "noise"]) == 0
    quiet = json.loads(capsys.readouterr().out)
    assert main(asked) == 0
    fast = json.loads(capsys.readouterr().out)
    assert quiet["worst_modulus_margin"] >= 0.6
    assert quiet["worst_qacd_pkts"] < fast["worst_qacd_pkts"] < fast["usual_worst_qacd_pkts"]
    assert quiet["slowest_crossover_rad_s"] >= 0.499 * fast["slowest_crossover_rad_s"]
    for wrong in (["--aim", "beauty"], ["--margin", "1.2"]):
        assert main(["robust", "pi", *network, "--over", "flows=40:150", *wrong]) == 2
    assert "unknown aim `beauty`" in capsys.readouterr().err


def test_a_map_shows_noise_where_it_is_known(classic):
    found = theory.stability_map(classic, "flows", np.geomspace(20, 600, 20), "rtt", [0.1, 0.2])
    assert found.queue_std_pkts.shape == (2, 20)
    # Where there is no margin there is no noise to be told, and windows below two packets are not told of.
    assert np.isnan(found.qacd_pkts[found.modulus_margin < -0.2]).all()
    assert np.isnan(found.queue_std_pkts[:, -1]).all()
    assert found.noise_valid.any()
    held = found.noise_valid
    assert (found.queue_p95_pkts[held] > classic.operating_point["queue_pkts"]).all()
    assert found.plot("qacd_pkts").axes
    with pytest.raises(aqumen.errors.ScenarioError, match="unknown quantity"):
        found.plot("beauty")


def test_other_aqms_are_made_robust_by_their_own_gains(capsys):
    network = ["--capacity", "10Mbit", "--flows", "100", "--rtt", "200ms", "--target", "100pkt"]
    assert main(["robust", "rem", *network, "--over", "flows=60:150", "--json"]) == 0
    robust = json.loads(capsys.readouterr().out)
    assert robust["worst_modulus_margin"] == pytest.approx(0.5, abs=0.01)
    assert set(robust["values"]) == {"gamma", "alpha"}
    assert hollot(robust["spec"], capacity="10Mbit", flows=60, rtt="200ms", target="100pkt").margins["exact"]["stable"]
    assert main(["robust", "aqm-mo", *network, "--over", "flows=60:150"]) == 2
    assert "no robust design of aqm-mo; there is one of pi, red, rem, paqm, arm-pfc" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["fluid", "fluid:hollot", "theory"])
def test_the_engines_without_packets_answer_as_the_others(engine, capsys):
    args = ["run", str(EXPERIMENTS / "exp1.toml"), "--aqm", "arm-pfc", "--engine", engine, "--json"]
    assert main(args) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["engine"] == engine.partition(":")[0]
    steady = found["links"]["bottleneck"]["steady"]
    assert steady["queue_mean_pkts"] == pytest.approx(100, abs=0.5)
    assert steady["utilization"] == pytest.approx(1, abs=1e-3)
    # 2 / W0^2 = .32, or 1.3098^2 / (W0 (W0 + 2)) = .15, which is what packets ask for.
    assert steady["mark_ratio"] == pytest.approx(0.32 if engine == "fluid:hollot" else 0.15, rel=0.05)


def test_comparisons_run_on_the_fluid_engine(tmp_path):
    compared = aqumen.compare(EXPERIMENTS / "exp1.toml", ["arm-pfc", "pi"], seeds=2, engine="fluid")
    means = compared.to_dict()["aqms"]["pi"]["links"]["bottleneck"]["steady"]["queue_mean_pkts"]
    assert means["mean"] == pytest.approx(100, abs=0.5)
    report = tmp_path / "report.html"
    compared.write_report(report)
    assert "Predicted / measured" in report.read_text()


def test_a_run_is_set_beside_its_prediction(capsys):
    assert main(["run", str(EXPERIMENTS / "exp1.toml"), "--aqm", "pi", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["theory"]["bottleneck"]["steady"]
    assert told["predicted"]["queue_mean_pkts"] == pytest.approx(100)
    assert told["measured"]["queue_mean_pkts"] == pytest.approx(100, abs=5)
    # W0 = 2.5 or so: time-outs; but the share that is signalled is the expected one.
    assert any("time-outs rule" in note for note in told["notes"])
    assert told["measured"]["signal_ratio"] == pytest.approx(told["predicted"]["signal_ratio"], rel=0.1)
    assert not any("share of" in note for note in told["notes"])
    assert main(["run", str(EXPERIMENTS / "exp1.toml"), "--aqm", "pi"]) == 0
    assert "Predicted / measured" in capsys.readouterr().out


def test_an_expected_limit_cycle_is_recognised():
    scenario = aqumen.Scenario.load(EXPERIMENTS / "exp3.toml").cell("n50")
    aqm = "red:min_th=50pkt,max_th=150pkt,max_p=0.3,weight=0.002"
    told = theory.explain(scenario, aqumen.run(scenario, aqm, engine="fluid"), aqm)
    (steady,) = (each for each in told if each.window == "steady")
    note = next(note for note in steady.notes if "limit cycle expected" in note)
    assert "seen" in note
    assert "none seen" not in note


def test_margins_and_oscillations_wait_until_they_are_asked_for(capsys):
    # Their nonlinear equations take longer than a short run: where the queue rests is all that comes unasked.
    args = ["run", f"{EXPERIMENTS / 'exp3.toml'}@n50", "--aqm", "red", "--until", "20s", "--json"]
    assert main(args) == 0
    rest = json.loads(capsys.readouterr().out)["theory"]["bottleneck"]["steady"]
    assert main([*args, "--theory"]) == 0
    whole = json.loads(capsys.readouterr().out)["theory"]["bottleneck"]["steady"]
    assert rest["predicted"]["queue_std_pkts"] is None
    for key in ("queue_mean_pkts", "signal_ratio", "sojourn_mean_s"):
        assert rest["predicted"][key] == whole["predicted"][key]
    assert set(rest["point"]) == {"window_pkts", "probability"}
    assert "gain_margin" in whole["point"]
    assert not any("gain" in note or "no operating point" in note for note in rest["notes"])


def test_an_aqm_without_a_law_is_refused_by_name_and_leaves_no_section(capsys):
    args = ["run", str(EXPERIMENTS / "exp1.toml"), "--aqm", "codel", "--set", "duration=5s"]
    assert main([*args, "--engine", "theory"]) == 2
    assert "codel has no linear law: it signals at scheduled times" in capsys.readouterr().err
    assert main([*args, "--json"]) == 0
    assert "theory" not in json.loads(capsys.readouterr().out)


def test_a_link_that_holds_nobody_back_is_expected_to_be_empty():
    expected = {
        "analysis": None,
        "flows": 0.0,
        "queue_pkts": 0.0,
        "capacity_pps": 1000.0,
        "probability": 0.0,
        "utilization": 0.3,
    }
    measured = dict.fromkeys(
        ("queue_mean_pkts", "queue_std_pkts", "utilization", "sojourn_mean_s", "mark_ratio", "early_drop_ratio"), None
    )
    told = compare_prediction("link", "all", expected, {**measured, "overflow_drop_ratio": None}, None, None)
    assert told.measured["signal_ratio"] is None
    assert told.notes == ["no flow is limited by this link: the queue is expected to be empty"]


def test_without_margins_the_blame_is_laid_where_they_were_looked_for():
    expected = theory.predict(aqumen.Scenario.load("arm-pfc/exp1"), "pi")["bottleneck"]["steady"]
    expected["analysis"]["margins"] = None
    measured = dict.fromkeys(("queue_std_pkts", "sojourn_mean_s", "mark_ratio", "early_drop_ratio"))
    measured |= {"queue_mean_pkts": 300.0, "utilization": 1.0, "overflow_drop_ratio": 0.0}
    args = ("bottleneck", "steady", expected, measured, None, None)
    assert (
        compare_prediction(*args)
        .notes[-1]
        .endswith("300 packets where 100 were expected: this AQM has no operating point")
    )
    assert not any("has no operating point" in note for note in compare_prediction(*args, loops=False).notes)


@pytest.mark.parametrize("engine", ["fluid", "theory"])
def test_applications_that_are_no_bulk_transfers_are_refused_by_the_equations(engine):
    text = """
name = "web"
duration = "10s"
aqm = "pi"
[topology]
preset = "dumbbell"
bottleneck = { rate = "1Mbit", delay = "5ms", buffer = "50pkt" }
access = { rate = "10Mbit", delay = "5ms" }
[[flows]]
name = "surfers"
count = 4
transport = "modern"
traffic = "web"
"""
    with pytest.raises(aqumen.Error, match="group surfers: the equations know bulk transfers alone"):
        aqumen.run(aqumen.Scenario.parse(text), engine=engine)


def test_a_controller_of_python_control_is_read_by_rising_powers():
    control = pytest.importorskip("control")
    from aqumen.theory.loop import from_control

    # (2 s + 3) / (s^2 + 5 s + 7), and 0.5 z / (z^2 - z) = 0.5 z^-1 / (1 - z^-1) each 10 ms.
    assert from_control(control.tf([2, 3], [1, 5, 7])) == ([3, 2], [7, 5, 1], None)
    assert from_control(control.tf([0.5, 0], [1, -1, 0], 0.01)) == ([0, 0.5, 0], [1, -1, 0], 0.01)
    one = control.tf([1], [1, 1])
    for wrong, why in (
        (control.append(one, one), "one input .* and one output"),
        (control.append(one, one)[0, :], "one input .* and one output"),
        (control.append(one, one)[:, 0], "one input .* and one output"),
        (control.tf([1], [1, 1], True), "the sampling period of the controller is not given"),
        (control.tf([1, 0, 0], [1, 1], 0.1), "is not causal"),
    ):
        with pytest.raises(aqumen.ScenarioError, match=why):
            from_control(wrong)


def test_plants_that_turn_round_each_other_are_the_furthest_apart(classic):
    # Round trips of 3 s and of 246 ms: whatever gains make of the distance, no controller holds both.
    far = hollot("pi", capacity="30Mbit", flows=60, r0="3s")
    assert theory.nu_gap(classic, far, weighted=False) == theory.nu_gap(far, classic, weighted=False) == 1
    # Loops are compared, on the exact plants, where nothing else is said; unweighted the gap is that of packets.
    near = hollot("pi", capacity="30Mbit", flows=55, r0="246ms")
    told = theory.nu_gap(classic, near)
    assert told == theory.nu_gap(classic, near, weighted=True, exact=True, points=4000)
    others = [theory.nu_gap(classic, near, **more) for more in ({"weighted": False}, {"exact": False}, {"points": 50})]
    assert len({told, *others}) == 4
    assert others[2] == pytest.approx(told, rel=0.1)


@pytest.mark.parametrize("aqm", ["pi:a=1.822e-4,b=1.816e-4,frequency=1Hz", "red"])
def test_a_gap_of_loops_is_taken_where_the_controller_acts(aqm):
    network = {"capacity": "30Mbit", "rtt": "200ms", "target": "100pkt"}
    one, other = (hollot(aqm, flows=flows, **network) for flows in (60, 40))
    own = one.state_space()["controller"]
    w = np.geomspace(1e-4, 1e3, 4000) / one.operating_point["rtt_s"]
    if own["period_s"] is not None:
        # A sampled one up to half of its frequency: beyond that it answers the images of what is below.
        w = w[w < np.pi / own["period_s"]]
        assert w[-1] == pytest.approx(np.pi, rel=0.01)
    by = 1j * w if own["period_s"] is None else np.exp(-1j * w * own["period_s"])
    controller = sum(c * by**k for k, c in enumerate(own["num"])) / sum(c * by**k for k, c in enumerate(own["den"]))
    x, y = (design.plant_response(w) * controller for design in (one, other))
    chordal = np.abs(x - y) / np.sqrt((1 + np.abs(x) ** 2) * (1 + np.abs(y) ** 2))
    assert theory.nu_gap(one, other) == pytest.approx(chordal.max(), rel=1e-9)


def test_what_cannot_be_written_is_said(classic, tmp_path):
    with pytest.raises(aqumen.OutputError, match="cannot write"):
        classic.save(tmp_path / "no" / "plant.json")
    with pytest.raises(aqumen.ScenarioError, match=r"give either rtt \(without queueing\) or r0"):
        hollot("pi", capacity="30Mbit", flows=60)
    with pytest.raises(aqumen.ScenarioError, match="give either rtt"):
        hollot("pi", capacity="30Mbit", flows=60, rtt="1s", r0="1s")


def test_what_the_equations_refuse_is_told_as_an_error_of_the_scenario(classic):
    # A rule that tosses no coin has no spectrum, and a map needs axes that there are.
    tail = hollot("droptail", capacity="30Mbit", flows=60, rtt="200ms", target="100pkt")
    with pytest.raises(aqumen.ScenarioError, match="no linear controller"):
        tail.noise_power([1.0])
    with pytest.raises(aqumen.ScenarioError, match="invalid axis 'beauty'; choose from: flows, rtt"):
        theory.stability_map(classic, "beauty", [1.0], "flows", [60.0])
    with pytest.raises(aqumen.ScenarioError, match=r"^codel has no linear law"):
        theory.coupled("codel", capacity="10Mbit", flows=5, scalable=1, rtt="20ms")


@pytest.mark.parametrize("r0", ["246ms", "1ms"])
@pytest.mark.parametrize("aqm", ["pi:a=1.822e-5,b=1.816e-5", "pi:a=1.822e-12,b=1.816e-12,frequency=1Hz", "red"])
def test_frequencies_rise_to_where_the_controller_ends(aqm, r0):
    w = hollot(aqm, capacity="30Mbit", flows=60, target="2pkt", r0=r0).frequencies(50)
    # A decade of them at least, also of a loop so weak that its gain is 1 nowhere.
    assert len(w) == 50
    assert (np.diff(w) > 0).all()
    assert w[-1] >= 9.99 * w[0]
    if "1Hz" in aqm:
        # Half of the sampling frequency.
        assert w[-1] == pytest.approx(np.pi)


def test_the_power_of_the_noise_makes_its_variance(classic):
    w = np.array(classic.noise["spectrum"]["w_rad_s"])
    variance = np.trapezoid(classic.noise_power(w), w) / np.pi
    assert variance == pytest.approx(classic.noise["queue_std_pkts"] ** 2, rel=0.02)


def test_senders_are_a_dimension_of_a_design_and_the_worst_of_several_is_told():
    network = {"capacity": "10Mbit", "flows": 15, "rtt": "200ms", "target": "100pkt"}
    # PI made robust with Hollot's mean window alone.
    spec = theory.robust_pi(hollot("pi", **network), flows=(15, 100)).spec
    both = theory.design(spec, **network, sender=["linux", "modern"])
    alone = {name: theory.design(spec, **network, sender=name).margins["exact"] for name in ("linux", "modern")}
    assert both.data["sender"] == min(alone, key=lambda name: alone[name]["modulus_margin"]) == "linux"
    assert both.margins["exact"] == alone["linux"]
    assert both.data["senders"]["modern"]["gain_margin"] == alone["modern"]["gain_margin"]
    # It promised .5; and the default is Linux's sender.
    assert alone["linux"]["modulus_margin"] < 0.3
    assert theory.design(spec, **network).data["sender"] == "linux"
    kept = theory.robust_pi(both, flows=(15, 100))
    assert kept.worst_modulus_margin == pytest.approx(0.5, abs=0.01)
    for name in ("linux", "modern"):
        again = theory.design(kept.spec, **network, sender=name).margins["exact"]
        assert again["modulus_margin"] >= 0.48
    with pytest.raises(aqumen.errors.ScenarioError, match="exclude each other"):
        theory.design("pi", **network, sender="linux", model="ecn")
    with pytest.raises(aqumen.errors.ScenarioError, match="unknown sender `bbr`"):
        theory.design("pi", **network, sender="bbr")


def test_a_response_and_a_spectrum_are_those_of_the_sender():
    network = {"capacity": "10Mbit", "flows": 30, "rtt": "100ms", "target": "40pkt"}
    linux = theory.design("pi", **network)
    w = np.array([0.5, 2.0, 8.0])
    plant, controller, _ = linux.to_control()
    known = linux.loop_response(w)
    assert np.abs(-(plant(1j * w) * controller(1j * w)) / known - 1).max() < 0.02
    assert abs(known[0] / hollot("pi", **network).loop_response(w)[0] - 1) > 0.2
    spectrum = linux.noise["spectrum"]
    power = linux.noise_power(spectrum["w_rad_s"])
    assert np.allclose(power, spectrum["power_pkts2_s"], rtol=1e-6)
    with pytest.raises(aqumen.errors.ScenarioError, match="no two equations"):
        linux.state_space()
    found = theory.stability_map(linux, "flows", [10, 60], "rtt", [0.1, 0.3])
    there = theory.design("pi", **network | {"flows": 60}).margins["exact"]
    assert found.stable[0, 1]
    assert found.gain_margin.shape == (2, 2)
    assert there["stable"]
