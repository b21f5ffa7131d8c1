"""Controllers of python-control and scipy, and functions, as AQMs."""

import functools
import json
import math
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import aqumen
from aqumen import CustomError, Scenario, ScenarioError, from_control, theory
from aqumen._store import Digests
from aqumen.cli import main

control = pytest.importorskip("control")
signal = pytest.importorskip("scipy.signal")

# The built-in `pi` on arm-pfc/exp1, about: C(s) = K (1 + s/z) / s, a, b = K/z +- K/(2 f).
F = 150.0
A, B = 9.2e-4, 9.1e-4
K = (A - B) * F
Z = 2 * K / (A + B)
BUILT_IN = f"pi:a={A},b={B},frequency={F:g}Hz"
NETWORK = {"capacity": "10Mbit", "flows": 100, "r0": "280ms", "target": "100pkt"}
PI = control.tf([K / Z, K], [1, 0])
FORMS = {
    "continuous": PI,
    "discrete": control.tf([A, -B], [1, -1], 1 / F),
    "state space": control.ss(PI),
    "other states": control.ss([[0.0]], [[20.0]], [[K / 20.0]], [[K / Z]]),
    "lti": signal.lti([K / Z, K], [1, 0]),
    "dlti": signal.dlti([A, -B], [1, -1], dt=1 / F),
    "zeros and poles": signal.ZerosPolesGain([-Z], [0], K / Z),
}

hollot = functools.partial(theory.design, model="hollot")


def short(seconds=15):
    return Scenario.load("arm-pfc/exp1").until(f"{seconds}s")


def queue(result):
    return result.series("bottleneck").queue_pkts


def made(aqm, **values):
    """An instance at 1250 packets/s with a target of 100 packets."""
    one = aqm()
    one.network = SimpleNamespace(capacity_pps=1250.0, target_pkts=100.0)
    for name, value in {"target": aqm.target.default, **values}.items():
        setattr(one, name, value)
    one.start()
    return one


def step(one, error):
    return one.step(SimpleNamespace(queue_pkts=100.0 + error))


@pytest.fixture(scope="module")
def built_in():
    return {engine: aqumen.run(short(), BUILT_IN, 3, engine) for engine in ("packet", "fluid")}


@pytest.mark.parametrize("form", FORMS)
def test_pi_in_each_form_is_the_built_in_one(form, built_in):
    aqm = from_control(FORMS[form], 1 / F)
    for engine, known in built_in.items():
        run = aqumen.run(short(), aqm, 3, engine)
        np.testing.assert_allclose(queue(run), queue(known), atol=1e-9)
        assert run.params == {"target": 100.0, "ecn": True}
    assert queue(built_in["packet"]).max() > 100


def test_a_delay_over_the_capacity_is_the_same_input_in_other_units(built_in):
    # 10 Mbit/s of 1000 B: 1250 packets a second, 100 packets are 80 ms.
    in_seconds = from_control(1250 * PI, 1 / F, unit="delay", reference=0.08)
    np.testing.assert_allclose(queue(aqumen.run(short(), in_seconds, 3)), queue(built_in["packet"]), atol=1e-9)
    one, other = (hollot(aqm, **NETWORK) for aqm in (in_seconds, BUILT_IN))
    assert one.margins["exact"]["gain_margin"] == pytest.approx(other.margins["exact"]["gain_margin"], rel=1e-9)
    assert one.operating_point["queue_pkts"] == pytest.approx(100)


def test_the_reference_is_a_parameter():
    aqm = from_control(PI, 1 / F, reference=40, name="my-pi")
    scenario = short().knowing([aqm])
    for spec, target in (("my-pi", 40), ("my-pi:target=50pkt", 50)):
        mine, known = aqumen.run(scenario, spec, 3), aqumen.run(scenario, f"{BUILT_IN},target={target}pkt", 3)
        np.testing.assert_allclose(queue(mine), queue(known), atol=1e-9)


def test_tustin_and_hold_are_those_of_the_textbook():
    # 1/s every T: Tustin T/2 (z+1)/(z-1), the hold T/(z-1). At errors of 1: T/2, then T more each step; 0, T, 2T.
    integrator, period = control.tf([1], [1, 0]), 0.01
    for method, first in (("tustin", 0.005), ("zoh", 0.0)):
        # With the target at 0 the empty queue before the start is no error.
        one = made(from_control(integrator, period, method=method), target=0.0)
        steps = [one.step(SimpleNamespace(queue_pkts=1.0)) for _ in range(3)]
        assert steps == pytest.approx([first, first + 0.01, first + 0.02])


@pytest.mark.parametrize(
    "controller",
    [
        PI * 1000,
        PI * control.tf([1], [0.05, 1]) ** 3 * 1000,
        control.tf([100, 100], [1, -3]),
        control.tf([1, 1, 0.25], [0.01, 1, 0, 0]),
    ],
    ids=["large gain", "filtered", "unstable", "double integrator"],
)
def test_a_saturated_controller_recovers_and_one_without_anti_windup_does_not(controller):
    def steps_at_one(anti_windup):
        one = made(from_control(controller, 1 / F, anti_windup=anti_windup))
        for _ in range(1500):
            p = step(one, 200.0)
        assert p == 1.0
        for k in range(1500):
            if step(one, -100.0) < 0.5:
                return k
        return math.inf

    # A second, seven times the slowest filter; what was integrated in ten seconds takes longer to come down.
    assert steps_at_one(True) < F < 3 * F < steps_at_one(False)


def test_an_empty_queue_at_the_start_winds_nothing_up():
    protected, bare = (
        aqumen.run(short(), from_control(PI, 1 / F, anti_windup=yes), 1).data["links"]["bottleneck"]["all"]
        for yes in (True, False)
    )
    assert bare["overflow_dropped_pkts"] > protected["overflow_dropped_pkts"]


@pytest.mark.parametrize("method", ["tustin", "zoh"])
@pytest.mark.parametrize("controller", [PI, control.ss(PI * control.tf([1], [0.05, 1]))], ids=["pi", "filtered pi"])
def test_margins_are_those_that_python_control_finds(controller, method):
    """Loop controller * plant * hold: python-control samples both, and finds the margins in z."""
    period = 1 / F
    design = hollot(from_control(controller, period, method=method), **NETWORK)
    assert design.margins["controller"] == "equation"
    plant, *_ = design.to_control(pade=8)
    held = control.sample_system(plant, period, method="zoh")
    sampled = control.sample_system(control.ss(controller), period, method={"tustin": "bilinear"}.get(method, method))
    gain, phase, *_ = control.margin(control.frd(-sampled * control.ss(held), design.frequencies(), smooth=True))
    assert design.margins["gain_margin"] == pytest.approx(gain, rel=2e-3)
    assert design.margins["phase_margin_deg"] == pytest.approx(phase, rel=2e-3)


def test_a_controller_without_an_integrator_rests_where_its_gain_says():
    # p = .001 (q - 100), and p = .0991 is what holds 199.1 packets.
    for controller in (control.tf([1e-3], [1]), control.tf([1e-3], [1, 1]), control.ss([], [], [], [[1e-3]])):
        design = hollot(from_control(controller, 0.01), **NETWORK)
        point = design.operating_point
        assert point["probability"] == pytest.approx(1e-3 * (point["queue_pkts"] - 100), rel=1e-6)
        assert point["queue_pkts"] > 150
        assert design.margins["stable"]


def test_many_slow_poles_do_not_lose_digits():
    # (1 / (1 + s/10))^5 as five states in a row: as one polynomial in z it is noise at low frequencies.
    chain = 10 * (np.diag(np.ones(4), -1) - np.eye(5))
    controller = control.ss(chain, [[10], [0], [0], [0], [0]], [[0, 0, 0, 0, 1]], [[0]]) * control.ss(PI)
    design = hollot(from_control(controller, 1 / F), **NETWORK)
    w = np.array([0.1, 0.3, 1.0, 2.0])
    # Far below the sampling frequency the hold is half a period of delay.
    expected = -controller(1j * w) * design.plant_response(w) * np.exp(-0.5j * w / F)
    np.testing.assert_allclose(design.loop_response(w), expected, rtol=1e-3)


def test_a_constant_function_is_the_fixed_probability():
    aqm = from_control(lambda seen: 0.05, 0.01)
    mine, known = (aqumen.run(short(5), spec, 3).data for spec in (aqm, "fixed:p=0.05"))
    assert mine["flows"] == known["flows"]
    # Only a sampled law has instants at which it samples the queue.
    mine, known = (run["links"]["bottleneck"]["all"] for run in (mine, known))
    assert {**mine, "qacd_sampled_pkts": None} == known
    assert known["marked_pkts"] > 100


class Counts:
    """A controller with state: the probability rises with each call."""

    def __init__(self):
        self.calls = 0

    def __call__(self, seen):
        self.calls += 1
        return min(1.0, 1e-3 * self.calls)


def test_an_object_with_state_begins_anew_in_each_run():
    counts = Counts()
    aqm = from_control(counts, 0.01)
    compared = aqumen.compare(short(2), [aqm], seeds=[1, 2], threads=2)
    series = [run.series("bottleneck") for run in compared.results]
    # 100 steps a second, of .001 each.
    for each in series:
        np.testing.assert_allclose(each.probability, 0.1 * each.t_s, atol=2e-3)
    assert counts.calls == 0


@pytest.mark.parametrize("controller", [PI, Counts()], ids=["linear", "object"])
def test_the_copy_of_a_session_has_the_controller_s_state(controller):
    with aqumen.Session(short(6), from_control(controller, 1 / F), seed=1) as run:
        run.advance("3s")
        with run.copy() as copy:
            one, other = run.finish(), copy.finish()
    np.testing.assert_array_equal(queue(one), queue(other))
    assert queue(one).max() > 0


@pytest.mark.parametrize(
    ("controller", "options", "told"),
    [
        (control.tf([[[1], [1]]], [[[1, 1], [1, 2]]]), {}, "TransferFunction: not SISO"),
        (control.ss(np.eye(2), np.eye(2), np.eye(2), 0), {}, "StateSpace: not SISO"),
        (signal.lti(np.eye(2), np.eye(2), np.eye(2), np.zeros((2, 2))), {}, "not SISO"),
        (signal.lti([[1, 2], [3, 4]], [1, 1]), {}, "not SISO"),
        (control.tf([1, 0], [1]), {}, "improper, its numerator has degree 1 and its denominator 0"),
        (control.tf([math.nan], [1, 1]), {}, "its coefficients must be finite real numbers"),
        (control.ss([[math.nan]], [[1.0]], [[1.0]], [[0.0]]), {}, "finite real numbers"),
        (signal.lti([1j], [1, 1]), {}, "finite real numbers"),
        (control.tf([1], [1, -2 * F]), {}, "cannot be sampled every 0.00666667 s"),
        (control.tf([1], [1, -1], 0.02), {}, "its dt is 0.02 s, the period 0.00666667 s"),
        (control.tf([1], [1, -1], True), {}, "discrete-time without a sampling period"),
        (control.frd([1, 2], [1, 2]), {}, "FrequencyResponseData: no controller"),
        (0.1, {}, "float: no controller; give a TransferFunction or StateSpace of python-control, an lti"),
        (Counts, {}, "type: no controller"),
        (Counts(), {"reference": 1}, "no effect on a function"),
        (PI, {"period": 0}, "period = 0: seconds, a number from 1e-6 to 1e9"),
        (PI, {"period": -0.01}, "period = -0.01"),
        (PI, {"period": math.nan}, "period = nan"),
        (PI, {"period": "10ms"}, "period = '10ms'"),
        (PI, {"method": "euler"}, "method = 'euler': choose from: tustin, zoh"),
        (PI, {"unit": "s"}, "unit = 's': choose from: packets, delay"),
        (PI, {"reference": -1}, "reference = -1: packets, a finite number of at least 0"),
        (PI, {"name": "My Pi"}, "the name `My Pi` must consist of words"),
    ],
)
def test_what_is_no_controller_is_refused_in_one_line(controller, options, told):
    with pytest.raises(ScenarioError) as error:
        from_control(controller, **{"period": 1 / F, **options})
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("answer", [math.nan, 1.2, -0.1, None])
def test_a_function_that_answers_no_probability_is_an_error(answer):
    with pytest.raises(CustomError, match=r"^controller at 0\.01 s: step\(\) returned"):
        aqumen.run(short(1), from_control(lambda seen: answer, 0.01))


def constant(seen):
    return 0.1


def test_finished_runs_are_known_by_the_controller():
    def digest(controller, **options):
        scenario = short().knowing([from_control(controller, 1 / F, **options)])
        return Digests(scenario, "packet").of(("controller", 1))

    assert digest(PI) == digest(control.tf([K / Z, K], [1, 0])) == digest(PI, reference=None)
    others = [digest(2 * PI), digest(PI, method="zoh"), digest(PI, reference=50), digest(PI, anti_windup=False)]
    assert len({digest(PI), *others}) == 5
    assert (
        digest(constant)
        == digest(constant)
        != Digests(short().knowing([from_control(constant, 0.02)]), "packet").of(("controller", 1))
    )
    # Two closures of one source are not told apart by it.
    assert digest((lambda p: lambda seen: p)(0.1)) != digest((lambda p: lambda seen: p)(0.2))
    with pytest.raises(ScenarioError, match="two custom classes are named `controller`"):
        aqumen.compare(short(1), [from_control(PI, 0.01), from_control(2 * PI, 0.01)], seeds=1)


def test_the_command_line_takes_it_from_a_file(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        f"import control\nfrom aqumen import from_control\nC = control.tf([{K / Z}, {K}], [1, 0])\n"
        f"Pi = from_control(C, {1 / F}, name='my-pi')\nSlow = from_control(0.1 * C, {1 / F}, name='slow')\n"
    )
    compare = ["compare", "arm-pfc/exp1", "--aqm", BUILT_IN, "--aqm-from", f"{file}:Pi", "--aqm-from", f"{file}:Slow"]
    assert main([*compare, "--seeds", "2", "--until", "5s", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["aqms"]
    known, mine, slow = (
        told[spec]["links"]["bottleneck"]["all"]["queue_mean_pkts"] for spec in (BUILT_IN, "my-pi", "slow")
    )
    assert mine["mean"] == pytest.approx(known["mean"], rel=1e-9)
    assert slow["mean"] > mine["mean"]
    place = ["--capacity", "10Mbit", "--flows", "100", "--r0", "280ms", "--target", "100pkt", "--json"]
    assert main(["design", "--aqm-from", f"{file}:Pi", *place]) == 0
    found = json.loads(capsys.readouterr().out)
    known = theory.design(BUILT_IN, **NETWORK).margins["exact"]
    for key in ("gain_margin", "phase_margin_deg", "modulus_margin"):
        assert found["margins"]["exact"][key] == pytest.approx(known[key], rel=1e-6)
    assert main(["run", "arm-pfc/exp1", "--aqm-from", f"{file}:C"]) == 2
    assert "no AQM class C (of SampledLaw, PacketAqm or from_control); choose from: Pi, Slow" in capsys.readouterr().err


def test_neither_library_is_loaded_for_a_function():
    code = (
        "import sys, aqumen; aqumen.run(aqumen.Scenario.load('arm-pfc/exp1').until('1s'),"
        " aqumen.from_control(lambda seen: 0.1, 0.01)); print({'scipy', 'control'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "set()\n"
