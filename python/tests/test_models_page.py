"""Formulas of docs/theory/models.md by hand, and its figures."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from aqumen import theory

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "theory" / "models.md"
SCRIPT = ROOT / "scripts" / "theory-pictures"
NETWORK = {"capacity": "10Mbit", "flows": 60, "rtt": "200ms", "target": "100pkt"}
# N, C in packets/s, R0 = 0.2 + 100/1250, W0 = R0 C / N.
N, C, R = 60, 1250.0, 0.28
W = R * C / N
SPREAD = 1.3098**2 / 2
OMEGA = np.array([0.1, 1.0, 5.0, 20.0])
S = 1j * OMEGA


def slopes_of_reno():
    """The page's a and b."""
    p, h = 1.3098**2 / (W * (W + 2)), W / (W + 2)
    a = -(h**2) * (p - 2 / W**2 + 2 * SPREAD / (W + 2) ** 2) - p * W / SPREAD
    return a, -(h**2) * W - W**2 / (2 * SPREAD)


def near(left, right, error=1e-12):
    return np.max(np.abs(np.asarray(left) / np.asarray(right) - 1)) < error


@pytest.mark.parametrize(
    ("given", "probability"),
    [
        ({"model": "hollot"}, 2 / W**2),
        ({"model": "ecn"}, 2 / (2 + W**2)),
        ({"sender": "ns2"}, 1.3098**2 / (W * (W + 2))),
    ],
)
def test_the_operating_point_is_that_of_the_page(given, probability):
    at = theory.design("pi", **NETWORK, **given).operating_point
    assert near([at["rtt_s"], at["window_pkts"], at["probability"]], [R, W, probability])


def test_the_linear_plants_are_those_of_the_page():
    hollot = theory.design("pi", **NETWORK, model="hollot")
    now = np.array([[-N / (R**2 * C), -1 / (R**2 * C)], [N / R, -1 / R]])
    delayed = np.array([[-N / (R**2 * C), 1 / (R**2 * C)], [0, 0]])
    by_hand = []
    for s in S:
        late = np.exp(-s * R)
        push = np.array([-(W**2) / (2 * R) * late, 0])
        by_hand.append(np.linalg.solve(s * np.eye(2) - now - delayed * late, push)[1])
    assert near(hollot.plant_response(OMEGA), by_hand)
    gain, tau1, tau2 = R**3 * C**3 / (4 * N**2), R, R**2 * C / (2 * N)
    textbook = -gain * np.exp(-S * R) / ((tau1 * S + 1) * (tau2 * S + 1))
    assert near(hollot.plant_response(OMEGA, exact=False), textbook)

    p = 2 / (2 + W**2)
    ecn = -(1 + W**2 / 2) / R * np.exp(-S * R) * N / R / ((S + W * p / R) * (S + 1 / R))
    assert near(theory.design("pi", **NETWORK, model="ecn").plant_response(OMEGA), ecn)

    a, b = slopes_of_reno()
    reno = N / R * b / R * np.exp(-S * R) * (1 + 0.75 * S * R) / ((S - a / R) * (S + 1 / R))
    assert near(theory.design("pi", **NETWORK, sender="ns2").plant_response(OMEGA), reno)


def test_the_noise_of_ns2_is_that_of_the_page():
    design = theory.design("pi", **NETWORK, sender="ns2")
    a, _ = slopes_of_reno()
    w = np.geomspace(1e-4 / R, 100 / R, 6000)
    halvings = N * 2 / 3 * W**2 / (W + 2) / R / (w**2 + (a / R) ** 2)
    power = (halvings + C * R**2) / (1 + w**2 * R**2) / np.abs(1 + design.loop_response(w)) ** 2
    deviation = np.sqrt(np.sum((power[1:] + power[:-1]) / 2 * np.diff(w)) / np.pi)
    assert near(design.noise["queue_std_pkts"], deviation, 1e-3)
    assert near(design.noise["queue_p95_pkts"], 100 + 1.644854 * deviation, 1e-3)


@pytest.mark.parametrize(("sender", "product"), [("dctcp", np.sqrt(2)), ("prague", 1 + np.sqrt(3))])
def test_scalable_windows_go_as_one_over_p(sender, product):
    large = {"capacity": "12Gbit", "packet": "1500B", "flows": 250, "r0": 0.1, "target": "1000pkt"}
    at = theory.design("pi", **large, sender=sender).operating_point
    assert near(at["probability"] * at["window_pkts"], product, 0.01)


def test_each_figure_has_its_command_and_each_picture_is_shown():
    pytest.importorskip("matplotlib")
    text = PAGE.read_text()
    shown = re.findall(
        r"!\[[^]]+\]\(\.\./images/models-(\w+)\.svg\)\n\n\*.*`scripts/theory-pictures (\w+)`\*$", text, re.M
    )
    assert len(shown) == text.count("![")
    assert all(figure == name for figure, name in shown)
    unknown = subprocess.run([sys.executable, SCRIPT, "nothing"], capture_output=True, text=True)
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr
    known = re.search(r"choose from (.*)", unknown.stderr)[1].split(", ")
    assert sorted(known) == sorted(name for _, name in shown)
    assert all((ROOT / "docs" / "images" / f"models-{name}.svg").is_file() for name in known)


def test_a_picture_is_drawn_without_a_background_of_its_own(tmp_path):
    pytest.importorskip("matplotlib")
    subprocess.run([sys.executable, SCRIPT, "lots", "--into", tmp_path], check=True, capture_output=True)
    drawn = (tmp_path / "models-lots.svg").read_text()
    assert "second link" in drawn
    # The page's own background shows in both themes.
    assert not re.search(r"fill: #(ffffff|000000)", drawn)
