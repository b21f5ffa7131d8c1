"""Promises held against packets, the gain at which a queue begins to swing, and the verb `tune`."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from test_laws_packets import group, scenario

import aqumen
from aqumen import theory
from aqumen.cli import main
from aqumen.errors import ScenarioError
from aqumen.identification import Record
from aqumen.verification import swing_gain


def network():
    """12 Mbit/s, 50 ms, 40 Reno flows: windows of 2.5 packets, so that runs are short and the loop is calm."""
    return scenario(group("ftp", "modern", 40), 12_000_000, 0.05, 200, 40, 40, 60)


def noisy_oscillator(critical, seed=1, steps=40_000, period=0.01):
    """Record of x'' near a Hopf bifurcation at gain `critical`, with noise and a cubic limit of the amplitude."""

    def record(gain):
        draw = np.random.default_rng(seed)
        z, found, turn = 0j, np.zeros(steps), np.exp(2j * np.pi * 0.02)
        for k in range(steps):
            z = z * turn * (1 + 0.05 * (gain / critical - 1) - 0.02 * abs(z) ** 2)
            z += 0.05 * complex(*draw.standard_normal(2))
            found[k] = z.real
        t = period * np.arange(steps)
        p = np.full(steps, 0.1)
        return Record(period_s=period, t_s=t, queue_pkts=found, probability=p, excitation=np.zeros(steps))

    return record


@pytest.mark.parametrize("critical", [0.5, 2.3])
def test_the_gain_of_a_noisy_hopf_bifurcation_is_found(critical):
    # The drift of |z| at small |z| is .05 (gain / critical - 1): it changes its sign at the critical gain.
    assert swing_gain(noisy_oscillator(critical), 0.1) == pytest.approx(critical, rel=0.15)


def test_noise_alone_never_swings():
    def record(gain):
        noise = np.random.default_rng(1).standard_normal(5000)
        t = 0.01 * np.arange(5000)
        return Record(period_s=0.01, t_s=t, queue_pkts=noise, probability=t * 0 + 0.1, excitation=t * 0)

    assert swing_gain(record, 0.1) is None


@pytest.fixture(scope="module")
def checked():
    plant = aqumen.identify(network(), "pi", duration_s=150)
    best = aqumen.robust_pi(plant, modulus_margin=0.5)
    return aqumen.verify(plant.loop(best.spec), network(), seeds=2)


def test_packets_do_as_the_identified_loop_promises(checked):
    assert checked["queue_mean_pkts"].promised == 40.0
    assert checked["queue_mean_pkts"].ratio == pytest.approx(1.0, abs=0.05)
    assert checked["queue_std_pkts"].ratio == pytest.approx(1.0, abs=0.25)
    assert checked["queue_p95_pkts"].ratio == pytest.approx(1.0, abs=0.15)
    assert checked["swing_gain"].promised > 1.5
    low, high = checked["swing_gain"].promised_ci95
    assert low < checked["swing_gain"].promised < high


def test_a_step_of_the_target_rises_as_promised(checked):
    t, y, half = checked.step
    # The curve itself: the moments at which a noisy one passes 10 and 90 % are those of chance.
    promised = np.interp(t, *checked.design.step_response())
    assert np.mean(np.abs(y - promised)) < 0.15
    assert checked["rise_s"].measured["mean"] > 0.0
    settled = y[t > 0.7 * t[-1]]
    assert settled.mean() == pytest.approx(1.0, abs=0.25)
    assert np.all(half >= 0)


def test_the_table_and_the_page_say_both(checked, tmp_path):
    pytest.importorskip("matplotlib")
    assert "gain at which it begins to swing" in str(checked)
    checked.write_report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text.count("<svg") == 3
    assert "Promised gain margin" in text


def test_a_design_of_theory_is_verified_too():
    design = theory.design("pi", capacity="12Mbit", flows=40, rtt=0.05, target="40pkt", packet="1500B")
    found = aqumen.verify(design, network(), seeds=2, swing=False, step=False)
    assert found["queue_mean_pkts"].ratio == pytest.approx(1.0, abs=0.1)
    assert found.aqm.startswith("pi:a=")
    assert [check.metric for check in found.checks] == ["queue_mean_pkts", "queue_std_pkts", "queue_p95_pkts"]


def test_one_seed_has_no_interval_and_is_refused():
    design = theory.design("pi", capacity="12Mbit", flows=40, rtt=0.05, target="40pkt", packet="1500B")
    with pytest.raises(ScenarioError, match="at least 2"):
        aqumen.verify(design, network(), seeds=1)


@pytest.mark.slow
def test_tune_says_what_it_found_before_and_after(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    file = tmp_path / "network.toml"
    network().save(file)
    page = tmp_path / "tuned.html"
    assert main(["tune", str(file), "--aqm", "pi", "--loop", "--seeds", "2", "--page", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["after"]["margins"]["modulus_margin"] == pytest.approx(0.5, abs=0.02)
    assert found["tuned"]["spec"].startswith("pi:a=")
    metrics = [check["metric"] for check in found["before"]["checks"]]
    assert metrics[:3] == ["queue_mean_pkts", "queue_std_pkts", "queue_p95_pkts"]
    text = page.read_text()
    assert text.count("<svg") == 7
    assert "nan" not in text.lower().replace("nance", "")
    assert all(f"<h2>{title}</h2>" in text for title in ("The plant", "Before", "After"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--aqm", "pi"], "tune needs --loop"),
        (["--aqm", "red", "--loop"], "--loop tunes pi"),
        (["--aqm", "pi", "--loop", "--seeds", "1"], "at least 2"),
        (["--aqm", "pi", "--loop", "--margin", "1.5"], "above 0, below 1"),
        (["--aqm", "pi", "--loop", "--excite", "step"], "choose from: prbs, multisine"),
    ],
)
def test_a_wrong_option_of_tune_is_one_line(options, message, capsys):
    assert main(["tune", "arm-pfc/exp1", *options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_example_runs(capsys):
    runpy.run_path(str(Path(__file__).parents[2] / "examples/identify.py"))
    assert "gain at which it begins to swing" in capsys.readouterr().out
