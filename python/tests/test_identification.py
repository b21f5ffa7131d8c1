"""Identified plants: fits held against models and closed forms that are known, and margins against packets."""

import json
from dataclasses import replace

import numpy as np
import pytest
from test_laws_packets import group, scenario

import aqumen
from aqumen import theory
from aqumen.cli import main
from aqumen.errors import ScenarioError
from aqumen.identification import RecursiveLeastSquares, armarkov, arx
from aqumen.identification.excited import excited
from aqumen.identification.fits import best_arx
from aqumen.identification.measure import fitted
from aqumen.identification.network import network_of
from aqumen.verification import swing_gain_of

A, B = [1.0, -1.5, 0.7], [0.0, 0.0, -30.0, -12.0]
"""Poles of radius .84, and a dead time of two steps."""


def closed_loop(count, seed, noise=1.0, excitation=0.02):
    """Output, input and excitation of the plant B/A with white noise e/A, under proportional feedback."""
    draw = np.random.default_rng(seed)
    e, r = noise * draw.standard_normal(count), excitation * (2.0 * draw.integers(0, 2, count) - 1.0)
    y, u = np.zeros(count), np.zeros(count)
    for k in range(3, count):
        y[k] = -A[1] * y[k - 1] - A[2] * y[k - 2] + B[2] * u[k - 2] + B[3] * u[k - 3] + e[k]
        u[k] = 0.002 * y[k] + r[k]
    return y, u, r


def true_response(angle):
    z = np.exp(-1j * angle)
    return np.polynomial.polynomial.polyval(z, B) / np.polynomial.polynomial.polyval(z, A)


def linux_network(count=20):
    """20 Mbit/s, 40 ms, PI designed for it: windows of 8 packets."""
    return scenario(group("ftp", "linux", count), 20_000_000, 0.04, 200, 40, count, 60)


@pytest.fixture(scope="module")
def plant():
    return aqumen.identify(linux_network(), "pi", duration_s=200)


@pytest.fixture(scope="module")
def plants(plant):
    return [plant, aqumen.identify(linux_network(40), "pi", duration_s=100)]


def test_a_known_plant_in_closed_loop_is_found_within_its_interval():
    angle = np.linspace(0.05, 2.5, 40)
    inside = []
    for seed in range(5):
        y, u, _ = closed_loop(20_000, seed)
        fit = arx([(y, u)], 3)
        inside.append(np.abs(fit.response(angle) - true_response(angle)) <= 1.73 * fit.response_std(angle))
        assert fit.noise_std == pytest.approx(1.0, rel=0.02)
    assert np.mean(inside) >= 0.8


def test_the_order_is_selected():
    y, u, _ = closed_loop(20_000, 1)
    assert best_arx([(y, u)], range(1, 12)).order in (3, 4)


def test_recursive_least_squares_ends_where_least_squares_does():
    y, u, _ = closed_loop(3000, 2)
    fit = RecursiveLeastSquares(3, initial=1e9)
    for here, given in zip(y, u, strict=True):
        fit.update(here, given)
    found, expected = fit.model(), arx([(y, u)], 3)
    assert found.a == pytest.approx(expected.a, abs=1e-3)
    assert found.b == pytest.approx(expected.b, abs=0.05)
    assert found.noise_std == pytest.approx(expected.noise_std, rel=0.01)


def test_recursive_least_squares_follows_a_plant_that_changes():
    one, other = closed_loop(3000, 3), closed_loop(3000, 4)
    fit = RecursiveLeastSquares(3, forgetting=0.995)
    for sign, (y, u, _) in ((1.0, one), (-1.0, other)):
        for here, given in zip(y, u, strict=True):
            fit.update(here, sign * given)
        assert fit.model().b[2] == pytest.approx(sign * B[2], rel=0.3)


def test_armarkov_has_the_markov_parameters_of_the_plant():
    # Without noise: h_2 = -30, h_3 = -12 + 1.5 * -30 = -57, h_4 = 1.5 * -57 - .7 * -30 = -64.5.
    y, u, _ = closed_loop(2000, 5, noise=1e-9)
    fit = armarkov([(y, u)], 3, 4)
    assert fit.markov_parameters(5) == pytest.approx([0.0, 0.0, -30.0, -57.0, -64.5], abs=1e-3)
    assert fit.b[1:5] == pytest.approx([0.0, -30.0, -57.0, -64.5], abs=1e-3)
    angle = np.linspace(0.1, 2.0, 20)
    assert fit.response(angle) == pytest.approx(true_response(angle), rel=1e-4)


def test_from_the_fluid_model_its_linearisation_is_identified():
    network = {"capacity": "12Mbit", "flows": 40, "rtt": 0.1, "packet": "1500B"}
    made = scenario(group("ftp", "modern", 40), 12_000_000, 0.1, 300, 60, 40, 400)
    law, instances = excited(
        made,
        "pi",
        begin_s=100.0,
        chip_s=0.05,
        signal=(2e-3 * (2.0 * np.random.default_rng(1).integers(0, 2, 6000) - 1)),
    )
    aqumen.run(made, law, engine="fluid:hollot")
    record = max(instances, key=lambda each: len(each.samples)).record()
    found = fitted([record], network_of(made), made, "pi", amplitude=2e-3, excite="prbs", order=20)
    told = theory.design("pi", target="60pkt", model="hollot", **network)
    w = np.geomspace(0.5, 12.0, 20)
    hold = np.exp(-0.5j * w * found.law_period_s)
    assert found.response(w) == pytest.approx(told.plant_response(w) * hold, rel=0.1)
    margins = found.loop("pi").margins
    assert margins["gain_margin"] == pytest.approx(told.margins["exact"]["gain_margin"], rel=0.05)
    assert margins["phase_margin_deg"] == pytest.approx(told.margins["exact"]["phase_margin_deg"], abs=3.0)


def test_a_plant_says_how_far_it_can_be_trusted(plant):
    assert plant.queue_pkts == pytest.approx(40.0, rel=0.1)
    assert plant.consistency >= 0.8
    seen = plant.spectrum
    assert seen.coherence[seen.w * plant.rtt_s < 1.5].min() > 0.1
    low, high = plant.loop("pi").margins["gain_margin_ci95"]
    assert low < plant.loop("pi").margins["gain_margin"] < high < 1.4 * low


def test_the_excitation_is_sized_by_the_noise(plant):
    # Half of the noise's deviation, unless the probability leaves no room for it.
    assert 0.02 < plant.amplitude / plant.probability < 0.6
    noise = plant.loop("pi").queue_std_pkts()
    assert 1.0 < plant.queue_std_pkts / noise < 1.35
    assert plant.at_bound < 0.2


def test_a_loop_that_is_unstable_at_three_times_its_gain_says_so(plant):
    gain = plant.loop("pi").margins["gain_margin"]
    num, den, period = plant.loop("pi").controller
    for factor, stable in ((0.9 * gain, True), (1.1 * gain, False)):
        loop = plant.loop(([factor * x for x in num], den, period))
        assert loop.margins["stable"] == stable
        assert (loop.margins["modulus_margin"] > 0) == stable
        assert loop.margins["gain_margin"] == pytest.approx(gain / factor, rel=1e-3)
    with pytest.raises(ScenarioError, match="unstable"):
        loop.step_response()


def test_a_pi_for_several_plants_keeps_the_margin_in_all(plants):
    plant, other = plants
    best = aqumen.robust_pi([plant, other], modulus_margin=0.6)
    margins = [each.loop(best.controller).margins["modulus_margin"] for each in (plant, other)]
    assert min(margins) == pytest.approx(0.6, abs=0.02)
    assert plant.loop(best.spec).margins["gain_margin"] == pytest.approx(
        plant.loop(best.controller).margins["gain_margin"], rel=1e-6
    )
    alone = aqumen.robust_pi(plant, modulus_margin=0.6)
    assert alone.a - alone.b >= best.a - best.b
    # Packets of both networks are calm at 15 % less than the promised gain.
    for each in (plant, other):
        promised = each.loop(best.spec).margins["gain_margin"]
        begins = swing_gain_of(each.scenario, best.spec, 1)
        assert begins is None or begins > 0.85 * promised
        assert promised >= best.worst_gain_margin * (1 - 1e-3)


@pytest.mark.parametrize("aqm", ["pi", "rem:interval=5ms", "paqm", "arm-pfc:h=7"])
def test_a_design_over_plants_keeps_its_margin_in_all_and_no_faster_one_does(plants, aqm):
    best = theory.robust(aqm, plants=plants, modulus_margin=0.6)
    margins = [each.loop(best.spec).margins["modulus_margin"] for each in plants]
    assert min(margins) == pytest.approx(0.6, abs=0.01)
    assert best.worst_modulus_margin == pytest.approx(0.6, abs=1e-3)
    assert [each["modulus_margin"] for each in best.each] == pytest.approx(margins, abs=0.01)
    # Other parameters stay as given, and a tenth more gain has less margin.
    name, _, given = aqm.partition(":")
    assert best.spec.startswith(f"{name}:")
    assert given in best.spec
    faster = [loop.varied(gain=1.1)["modulus_margin"] for loop in (each.loop(best.spec) for each in plants)]
    assert min(faster) < 0.6
    assert theory.robust(aqm, plants=plants[:1], modulus_margin=0.6).worst_modulus_margin == pytest.approx(
        0.6, abs=1e-3
    )


def test_the_design_of_least_noise_is_calmer_and_keeps_half_of_the_integral_gain(plants):
    fast, calm, same = (
        theory.robust("pi", plants=plants[:1], aim=aim, speed=speed)
        for aim, speed in (("speed", 0.5), ("noise", 0.5), ("noise", 1.0))
    )
    gains = [each.values["a"] - each.values["b"] for each in (fast, calm, same)]
    assert calm.worst_queue_std_pkts < fast.worst_queue_std_pkts
    assert calm.worst_modulus_margin >= 0.5 - 1e-6
    assert 0.5 * gains[0] * (1 - 1e-6) <= gains[1] <= gains[0]
    assert gains[2] == pytest.approx(gains[0])


@pytest.mark.parametrize(
    ("aqm", "options", "message"),
    [
        ("red", {}, "no robust design of red over identified plants"),
        ("pi", {"modulus_margin": 1.0}, "above 0, below 1"),
        ("pi", {"aim": "luck"}, "unknown aim `luck`"),
        ("pi", {"aim": "noise", "speed": 0.0}, "speed = 0.0: above 0, at most 1"),
        ("pi", {"flows": (1, 2)}, "plants exclude flows"),
        ("pi", {"plants": []}, "plants is empty"),
        ("pi:nonsense=1", {}, "nonsense"),
    ],
)
def test_a_wrong_argument_of_a_design_over_plants_is_one_line(plants, aqm, options, message):
    with pytest.raises(ScenarioError, match=message) as raised:
        theory.robust(aqm, **{"plants": plants, **options})
    assert "\n" not in str(raised.value)


def test_a_plant_whose_queue_grows_with_the_probability_is_refused_by_name(plants):
    model = replace(plants[1].model, b=-plants[1].model.b)
    wrong = [plants[0], replace(plants[1], model=model)]
    for design in (lambda: theory.robust("paqm", plants=wrong), lambda: aqumen.robust_pi(wrong)):
        with pytest.raises(ScenarioError, match=r"Plant\('random', .*: its queue grows with the probability"):
            design()


def test_a_slow_law_has_its_margins_too(plant):
    slow = plant.loop("paqm:alpha=1e-5").margins
    assert slow["stable"]
    assert slow["modulus_margin"] == pytest.approx(1.0, abs=0.1)
    assert slow["crossover_rad_s"] is not None


def test_a_plant_comes_back_from_its_file(plant, tmp_path, capsys):
    file = tmp_path / "plant.json"
    plant.save(file)
    again = aqumen.Plant.load(file)
    assert again.loop("pi").margins == plant.loop("pi").margins
    assert again.consistency == plant.consistency
    assert again.to_dict() == plant.to_dict()
    assert again.scenario.plan(1, "pi") == plant.scenario.plan(1, "pi")
    # The command line takes it, and says what the function does.
    assert main(["robust", "paqm", "--plant", str(file), "--plant", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["spec"] == theory.robust("paqm", plants=[plant]).spec
    assert [each["plant"] for each in told["each"]] == [str(file)] * 2
    assert main(["robust", "paqm", "--plant", str(file)]) == 0
    assert "Margins of each plant" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("schema"), "schema = None: must be 1"),
        (lambda data: data["identified"].pop("network"), "network is missing; `Plant.save` writes it"),
        (lambda data: data["identified"]["model"]["covariance"].pop(), "must have the shape"),
        (lambda data: data["model"].update(a="x"), "not a plant"),
        (lambda data: data["identified"].update(scenario="x ="), "plant.json:1"),
    ],
)
def test_a_damaged_file_of_a_plant_is_refused_in_one_line(plant, tmp_path, change, message, capsys):
    file = tmp_path / "plant.json"
    plant.save(file)
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))
    assert main(["robust", "pi", "--plant", str(file)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert str(file) in error
    assert len(error.strip().splitlines()) == 1


def test_a_map_of_plants_shows_the_worst_at_each_point(plant):
    gains, delays = np.array([0.5, 1.0, 2.0, 8.0]), np.array([0.0, 0.1])
    loops = [plant.loop("pi"), plant.loop("pi:a=4e-4,b=3.9e-4,frequency=160Hz")]
    both = theory.stability_map(loops, "gain", gains, "delay", delays)
    each = [theory.stability_map(loop, "gain", gains, "delay", delays) for loop in loops]
    assert np.allclose(both.modulus_margin, np.minimum(each[0].modulus_margin, each[1].modulus_margin))
    assert (both.stable == (each[0].stable & each[1].stable)).all()
    assert not both.noise_valid.any()
    one, margins = each[0], loops[0].margins
    assert one.gain_margin[0] * gains == pytest.approx(margins["gain_margin"], rel=0.01)
    assert (one.stable[0] == (gains < margins["gain_margin"])).all()
    # A delay shorter than its margin keeps a loop stable, a longer one does not.
    ends = theory.stability_map(loops[0], "gain", [1.0], "delay", np.array([0.9, 1.1]) * margins["delay_margin_s"])
    assert ends.stable[:, 0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("axes", "options", "message"),
    [
        (("flows", "gain"), {}, "unknown axis `flows` of identified plants; choose from: gain, delay"),
        (("gain", "delay"), {"cycles": True}, "cycles need the nonlinear equations"),
    ],
)
def test_what_a_map_of_plants_lacks_is_refused(plant, axes, options, message):
    with pytest.raises(ScenarioError, match=message):
        theory.stability_map(plant.loop("pi"), axes[0], [1.0], axes[1], [1.0], **options)
    with pytest.raises(ScenarioError, match="gain = -1: must be above 0"):
        theory.stability_map(plant.loop("pi"), "gain", [-1.0], "delay", [0.0])
    with pytest.raises(ScenarioError, match="no loop: give at least one"):
        theory.stability_map([], "gain", [1.0], "delay", [0.0])


def test_theory_beside_a_plant_is_that_of_its_own_senders(plant):
    loop = plant.loop("pi")
    own, linux, modern = (loop.theory(sender) for sender in (None, "linux", "modern"))
    margins = [each.margins["exact"]["gain_margin"] for each in (own, linux, modern)]
    assert margins[0] == margins[1] != margins[2]
    assert margins[0] == pytest.approx(loop.margins["gain_margin"], rel=0.3)


def test_operating_points_are_changes_of_the_scenario():
    points = [{"nominal.target": "30pkt"}, {"nominal.target": "60pkt"}]
    found = aqumen.identify_points(linux_network(), points, "pi", duration_s=40, amplitude=0.01)
    assert [each.queue_pkts for each in found] == pytest.approx([30, 60], rel=0.15)


def test_a_session_is_identified_and_goes_on_unchanged():
    with aqumen.Session(linux_network().set("duration", "150s"), "pi") as session:
        session.advance("20s")
        found = aqumen.identify(session, "pi")
        assert session.now_s == 20.0
        after = session.finish()
    assert found.queue_pkts == pytest.approx(40.0, rel=0.2)
    assert after.data["links"] == aqumen.run(linux_network().set("duration", "150s"), "pi").data["links"]


def test_equal_seeds_give_equal_plants():
    one, other = (
        aqumen.identify(linux_network(), "pi", duration_s=30, amplitude=0.01, excite="multisine") for _ in range(2)
    )
    assert one.model.b.tolist() == other.model.b.tolist()


def test_python_control_and_matlab_have_the_plant(plant, tmp_path):
    control = pytest.importorskip("control")
    w = np.array([1.0, 10.0, 30.0])
    told = plant.to_control()(np.exp(1j * w * plant.period_s))
    assert told == pytest.approx(plant.response(w, plant.period_s), rel=1e-6)
    loop = plant.loop("pi")
    gain, *_ = control.margin(loop.to_control()[2])
    assert gain == pytest.approx(loop.margins["gain_margin"], rel=0.01)
    assert "tf([" in plant.to_matlab()
    plant.save(tmp_path / "plant.json")
    assert json.loads((tmp_path / "plant.json").read_text())["model"]["order"] == plant.model.order
    with pytest.raises(ScenarioError, match=r"must be \.json or \.m"):
        plant.save(tmp_path / "plant.txt")


def test_pictures_have_their_marks(plant):
    pytest.importorskip("matplotlib")
    loop = plant.loop("pi")
    network = {"capacity": "20Mbit", "flows": 20, "rtt": 0.04, "target": "40pkt", "packet": "1500B"}
    bode = loop.plot("bode", theory.design("pi", **network))
    assert {text.get_text() for text in bode.axes[0].get_legend().get_texts()} == {
        "identified, 95 %", "theory", "without a model",
    }  # fmt: skip
    assert any("×" in text.get_text() for text in bode.axes[0].texts)
    assert any("-1" in text.get_text() for text in loop.plot("nyquist").axes[0].texts)
    assert any("rise" in text.get_text() for text in loop.plot("step").axes[0].texts)
    with pytest.raises(ScenarioError, match="unknown plot"):
        loop.plot("nichols")


def test_a_scenario_longer_than_the_experiment_keeps_its_windows():
    found = aqumen.identify(linux_network().set("duration", "120s"), "pi", duration_s=20, amplitude=0.01)
    assert found.records[0].t_s[-1] > 100.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aqm": "codel"}, "not a sampled control law"),
        ({"aqm": "pi", "excite": "step"}, "choose from: prbs, multisine"),
        ({"aqm": "pi", "amplitude": 0.7}, "at most 0.5"),
        ({"aqm": "pi", "duration_s": -1.0}, "above 0"),
        ({"aqm": "pi", "order": 1, "duration_s": 20, "amplitude": 0.01}, "at least 2"),
        ({"aqm": "nonsense"}, "nonsense"),
    ],
)
def test_a_wrong_argument_is_one_line(options, message):
    with pytest.raises(ScenarioError, match=message) as raised:
        aqumen.identify(linux_network(), **options)
    assert "\n" not in str(raised.value)


def test_a_session_without_time_left_is_refused():
    with aqumen.Session(linux_network().until("30s"), "pi") as session:
        session.advance("20s")
        with pytest.raises(ScenarioError, match="400 round-trip times"):
            aqumen.identify(session, "pi")


def test_a_boundary_of_several_senders_is_refused():
    design = theory.design("pi", capacity="20Mbit", flows=20, rtt="40ms", target="40pkt", sender=["ns2", "modern"])
    with pytest.raises(ScenarioError, match="a boundary is the curve of one sender"):
        theory.boundary(design, "flows", (10, 40), "rtt", (0.02, 0.1))
    assert theory.boundary(design.each["ns2"], "flows", (2, 40), "rtt", (0.02, 0.4))
