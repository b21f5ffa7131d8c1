"""The page of a design: what it says, that it stands by itself, and what it leaves out where nothing is known."""

import re

import pytest

from aqumen import theory
from aqumen.cli import main
from aqumen.theory.page import design_page, noise_rows

pytest.importorskip("matplotlib").use("Agg")

NETWORK = {"capacity": "10Mbit", "flows": 60, "rtt": "200ms", "target": "100pkt"}
OPTIONS = ["--capacity", "10Mbit", "--flows", "60", "--rtt", "200ms", "--target", "100pkt"]


def text_of(html):
    """Text of a page without tags, drawings and styles."""
    words = re.sub(r"<(style|svg).*?</\1>|<[^>]+>", " ", html, flags=re.DOTALL)
    return " ".join(words.split())


def test_a_page_says_what_the_loop_does_and_stands_by_itself(tmp_path, capsys):
    out = tmp_path / "made" / "here"
    assert main(["design", "pi", *OPTIONS, "--out", str(out)]) == 0
    html = (out / "design.html").read_text()
    assert "wrote" in capsys.readouterr().err
    said, design = text_of(html), theory.design("pi", **NETWORK)
    exact = design.margins["exact"]
    assert f"a gain margin of {exact['gain_margin']:.3g}, a phase margin of {exact['phase_margin_deg']:.3g}°" in said
    assert f"Packets make the queue deviate by {design.noise['queue_std_pkts']:.3g} packets" in said
    assert f"little margin: gain {exact['gain_margin']:.2f}" in said
    assert "aqumen design pi --capacity 10Mbit" in said
    for head in ("Network and gains", "Loop", "Packet noise", "Equations"):
        assert f"<h2>{head}</h2>" in html
    # Bode, Nyquist, step, noise; nothing is loaded from elsewhere.
    assert html.count("<svg") == 4
    assert not re.search(r'(src|href)="(?!#)', re.sub(r'xlink:href="#', "", html).replace('href="#', ""))
    # Drawings of one page have ids of their own.
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert "prefers-color-scheme: dark" in html
    assert "width=device-width" in html


def test_an_unstable_loop_has_a_page_without_step_and_noise():
    html = design_page(theory.design("pi:a=1.822e-3,b=1.816e-3", **NETWORK), "aqumen design")
    assert "The loop is unstable" in text_of(html)
    assert html.count("<svg") == 2


def test_where_no_probability_holds_the_queue_there_are_no_margins():
    crowded = theory.design("pi", capacity="1Mbit", flows=60, rtt="20ms", target="20pkt")
    html = design_page(crowded, "aqumen design")
    assert "there is no linear loop" in text_of(html)
    assert "<h2>Loop</h2>" not in html
    assert "It is not known" in text_of(html)


def test_of_several_senders_the_page_has_a_row_each():
    html = design_page(theory.design("pi", **NETWORK, sender=["linux", "dctcp"]), "aqumen design")
    rows = re.findall(r'<th scope="row">(linux|dctcp)</th>', html)
    assert rows == ["linux", "dctcp"]


def test_a_page_that_cannot_be_written_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["design", "pi", *OPTIONS, "--out", str(tmp_path / "file" / "x")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert main(["design", "pi", "--scenario", "x.toml", "--out", str(tmp_path)]) == 2
    assert "--out and --scenario exclude each other" in capsys.readouterr().err


def test_the_noise_budget_stands_in_page_and_terminal_and_sums_up_to_the_variance(capsys):
    design = theory.design("pi", **NETWORK)
    budget = design.noise["budget"]
    assert sum(part["variance_pkts2"] for part in budget) == pytest.approx(design.noise["queue_std_pkts"] ** 2)
    rows = noise_rows(design)
    assert [row[0] for row in rows] == [*(part["source"] for part in budget), "all"]
    said = text_of(design_page(design, "aqumen design"))
    assert all(f"{source} {meaning}" in said for source, meaning, *_ in rows)
    assert main(["design", "pi", *OPTIONS]) == 0
    assert "Noise budget" in capsys.readouterr().out
    # An unstable loop has none.
    assert noise_rows(theory.design("pi:a=1.822e-3,b=1.816e-3", **NETWORK)) == []
