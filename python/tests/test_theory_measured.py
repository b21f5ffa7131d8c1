"""Theory of an AQM that measures its network (ST-PI2), and of values that theory does not know."""

import json

import numpy as np
import pytest

import aqumen
from aqumen import theory
from aqumen.cli import main

NETWORK = {"capacity": "20Mbit", "flows": 20, "rtt": "50ms"}
ARGUMENTS = ["--capacity", "20Mbit", "--flows", "20", "--rtt", "50ms"]


def margins_by_hand(b, r0, window, p, rtt):
    """Gain and phase margin of ST-PI2's law around Hollot's plant of p', swept over frequency."""
    # After a signal a flow is exempt for 8 steps, in which W R / R0 packets pass.
    exempt = p * window * rtt / r0
    k, h = b * np.sqrt(1 + b * b) / (np.sqrt(2) * r0), rtt / 8
    zero = np.sqrt(2 * p / (1 - exempt)) / r0
    s = 1j * np.geomspace(0.01, np.pi / h, 100_000)
    # docs/aqms/st-pi2.md and controller: P = sqrt 2 / R e^{-sR} / ((s + a)(s + 1/R)), a = sqrt(2 p) / R.
    plant = np.sqrt(2) / r0 * np.exp(-s * r0) / ((s + np.sqrt(2 * p) / r0) * (s + 1 / r0)) * (1 - exempt) ** 1.5
    law = k * (1 + zero * h - np.exp(-s * h)) / (1 - np.exp(-s * h)) * (1 - np.exp(-s * h)) / (s * h)
    loop = plant * law
    phase = np.unwrap(np.angle(loop))
    return 1 / abs(loop[np.argmax(phase < -np.pi)]), 180 + np.degrees(phase[np.argmax(abs(loop) < 1)])


@pytest.mark.parametrize("b", [0.1, 0.25, 0.5])
def test_st_pi2s_margins_are_those_of_its_formulas(b):
    found = theory.design(f"st-pi2:idle=0,b={b}", **NETWORK, model="hollot")
    at = found.operating_point
    gain, phase = margins_by_hand(b, at["rtt_s"], at["window_pkts"], at["probability"], 0.05)
    # The target's slow answer to p' is not in the sweep.
    assert found.margins["gain_margin"] == pytest.approx(gain, rel=0.02)
    assert found.margins["phase_margin_deg"] == pytest.approx(phase, abs=1.5)
    # T = sigma R / sqrt N with the estimate of N, and the queue stands there.
    assert found.gains["target_delay_s"] == pytest.approx(0.3 * 0.05 / np.sqrt(found.gains["flows_estimate"]), rel=1e-6)
    assert at["queue_pkts"] == pytest.approx(found.gains["target_delay_s"] * at["capacity_pps"], rel=1e-6)


def test_st_pi2_is_designed_for_each_sender_and_python_control_finds_its_margins():
    control = pytest.importorskip("control")
    for sender in ("linux", "cubic", "modern", "ns2", "prague"):
        found = theory.design("st-pi2", **NETWORK, sender=sender)
        exact = found.margins["exact"]
        assert exact["stable"], sender
        assert found.noise["valid"] is False
        assert any("missing delay" in warning for warning in found.warnings)
    gain, phase, *_ = control.margin(theory.design("st-pi2", **NETWORK, sender="ns2").to_control()[2])
    exact = theory.design("st-pi2", **NETWORK, sender="ns2").margins["exact"]
    assert gain == pytest.approx(exact["gain_margin"], rel=0.03)
    assert phase == pytest.approx(exact["phase_margin_deg"], abs=2.0)


def test_a_map_over_wrong_estimates_ends_where_the_round_trip_is_a_quarter_of_its_value():
    found = theory.design("st-pi2:idle=0", capacity="24Mbit", flows=30, rtt="100ms", packet=1500, sender="ns2")
    made = theory.stability_map(found, "rtt_estimate", [0.25, 0.5, 1, 2], "capacity_estimate", [0.5, 1, 2])
    assert made.stable[1].tolist() == [False, True, True, True]
    assert (np.diff(made.gain_margin, axis=0) > 0).all(), "a capacity too large makes delays look short"
    assert (np.diff(made.gain_margin, axis=1) > 0).all(), "a round trip too long makes the law slow"
    assert made.gain_margin[1, 2] == pytest.approx(found.margins["exact"]["gain_margin"], rel=0.05)
    with pytest.raises(aqumen.Error, match="st-pi2 sets its target itself"):
        theory.stability_map(found, "rtt_estimate", [1.0], "target", [20.0])
    pi = theory.design("pi", **NETWORK, sender="ns2")
    with pytest.raises(aqumen.Error, match="pi has no estimates"):
        theory.stability_map(pi, "rtt_estimate", [1.0], "flows", [20.0])


def test_a_map_over_estimates_is_written_on_the_command_line(capsys):
    over = ["--over", "rtt_estimate=0.25:4", "--over", "flows_estimate=0.5:2", "--sender", "hollot", "--json"]
    assert main(["map", "st-pi2", *ARGUMENTS, *over]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [made["x"]["name"], made["y"]["name"]] == ["rtt_estimate", "flows_estimate"]
    assert main(["map", "st-pi2", *ARGUMENTS, "--over", "rtt_estimate=0:4", "--over", "flows=1:2"]) == 2
    assert "above 0" in capsys.readouterr().err


def test_windows_whose_signals_move_the_law_by_more_than_its_probability_are_warned_of():
    def warned(capacity, flows):
        found = theory.design("st-pi2:idle=0", capacity=capacity, flows=flows, rtt="50ms", packet=1500)
        return [warning for warning in found.warnings if "one signal" in warning]

    (warning,) = warned("120Mbit", 2)
    # W = C R0 / N = 10 000 * 0.0592 / 2 = 296.
    assert warning.startswith("one signal takes 148 packets off the queue")
    assert not warned("24Mbit", 20)


def test_the_fluid_engine_drives_st_pi2_to_the_queue_of_theory():
    scenario = aqumen.Scenario.parse("""
name = "fluid"
duration = "60s"
windows = { steady = ["30s", "60s"] }
[[flows]]
name = "ftp"
count = 20
transport = "modern"
[topology]
preset = "dumbbell"
bottleneck = { rate = "24Mbit", delay = "20ms", buffer = "400pkt" }
access = { rate = "100Mbit", delay = "2ms" }
""")
    links = {engine: aqumen.run(scenario, "st-pi2", engine=engine) for engine in ("fluid", "theory")}
    fluid, at_rest = (links[engine].link("bottleneck", "steady") for engine in ("fluid", "theory"))
    assert fluid["queue_mean_pkts"] == pytest.approx(at_rest["queue_mean_pkts"], rel=0.15)
    assert fluid["utilization"] == pytest.approx(1.0, abs=1e-3)
    # Noise of signals at even gaps is not known, and is left out.
    assert at_rest["sojourn_p99_s"] is None
    assert at_rest["queue_std_pkts"] is None


def test_theory_tells_percentiles_only_where_its_noise_holds():
    valid = aqumen.run("arm-pfc/exp1", "pi", engine="theory").link("bottleneck", "steady")
    assert valid["sojourn_p99_s"] > valid["sojourn_p95_s"] > valid["sojourn_mean_s"]
    unknown = aqumen.run("arm-pfc/exp4", "arm-pfc", engine="theory").link("bottleneck", "steady")
    assert unknown["sojourn_mean_s"] > 0
    assert [unknown[key] for key in ("sojourn_p50_s", "sojourn_p95_s", "sojourn_p99_s", "queue_std_pkts")] == [None] * 4
    full = aqumen.run("arm-pfc/exp1", "droptail", engine="theory").link("bottleneck", "steady")
    assert full["sojourn_p99_s"] == full["sojourn_mean_s"]


def test_a_sender_of_many_windows_says_where_its_stability_is_read_without_roots(capsys):
    assert main(["design", "pi", *ARGUMENTS]) == 0
    assert "rightmost_root and hopf are not" in " ".join(capsys.readouterr().out.split())
    assert main(["design", "pi", *ARGUMENTS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hopf"] is None
    assert "margins.exact" in found["notes"][0]
    assert theory.design("pi", **NETWORK, sender="ns2").notes == []


def test_paqm_is_warned_of(capsys):
    assert main(["design", "paqm", *ARGUMENTS, "--sender", "ns2"]) == 0
    assert "warning: PAQM integrates alone" in " ".join(capsys.readouterr().err.split())
