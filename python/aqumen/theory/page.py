"""HTML page of a design: the loop in a sentence, gains, margins, pictures, noise budget, equations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from aqumen.errors import ScenarioError, optional
from aqumen.theory import plots
from aqumen.view.tuned import Section, drawn, page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aqumen.theory.design import Design

__all__ = ["SOURCES", "design_page", "noise_rows"]

SOURCES = {
    "halvings": "which packets are signalled",
    "windows": "windows that differ, growth by whole packets, delayed acknowledgements",
    "arrivals": "random arrivals",
    "spacing": "signals at even gaps, compared with tosses",
    "nonlinearity": "PIE's safeguard beyond its linear part",
    "paths": "packets that the paths hold",
    "transfers": "short transfers",
}
"""Sources of packet noise, in words."""
MARGINS = {
    "gain_margin": "gain margin",
    "gain_margin_low": "smallest stable factor on the gain",
    "phase_margin_deg": "phase margin, degrees",
    "modulus_margin": "modulus margin",
    "delay_margin_s": "delay margin, s",
    "crossover_rad_s": "gain crossover, rad/s",
    "phase_crossover_rad_s": "phase crossover, rad/s",
}
POINT = {
    "capacity_pps": "capacity, packets/s",
    "flows": "flows",
    "base_rtt_s": "base RTT, s",
    "rtt_s": "RTT at the operating point, s",
    "queue_pkts": "queue, packets",
    "window_pkts": "mean window W0, packets",
    "probability": "probability p0",
}
NOISE = {
    "queue_std_pkts": "standard deviation, packets",
    "qacd_pkts": "QACD, packets",
    "queue_p95_pkts": "95th percentile, packets",
    "utilization_lost": "utilisation lost",
}
PICTURES = {
    "bode": "Gain and phase of the loop, with its margins",
    "nyquist": "Nyquist plot: arrows point to higher frequencies, the green circle touches the loop",
    "step": "Response of the queue to a step of the target",
    "noise": "Spectrum of the packet noise",
}
EQUATIONS = (
    ("L(jω) = − C(jω) P(jω)", "open loop: controller C, exact plant P with its delay", "Which plant"),
    ("1 / max |1 / (1 + L)|", "modulus margin: smallest distance of L from −1", "Maps and robust designs"),
    ("y(t) = (2/π) ∫ Re{L / (1 + L)} sin(ωt) / ω dω", "response to a step of the target", "The loop in pictures"),
    ("σ² = (1/π) ∫ Σ Sₖ(ω) / |1 + L|² dω", "variance of the queue: sources of noise through the loop", "Packet noise"),
)
"""Equations of the page: the equation, its meaning, and the section of docs/theory/design.md."""


def noise_rows(design: Design) -> list[list[str]]:
    """Return the rows of the noise budget: source, meaning, variance in packets², its share; the sum last.

    Args:
        design: The design that is asked; one without a deviation has no rows.
    """
    budget = design.noise["budget"]
    if not budget:
        return []
    rows = [
        [part["source"], SOURCES[part["source"]], f"{part['variance_pkts2']:.4g}", f"{100 * part['share']:.1f} %"]
        for part in budget
    ]
    whole = sum(part["variance_pkts2"] for part in budget)
    return [*rows, ["all", f"standard deviation {whole**0.5:.4g} packets", f"{whole:.4g}", "100.0 %"]]


def design_page(design: Design, command: str) -> str:
    """Return the page as HTML text.

    Args:
        design: The design to show.
        command: Command that produced the page.

    Raises:
        ScenarioError: matplotlib is not installed.
    """
    sections = [_operating_point(design), _loop(design), _noise(design), *_senders(design), _equations()]
    title = f"{design.aqm} for {design.operating_point['flows']:g} flows"
    return page(title, _headline(design), "", [section for section in sections if section], command)


def _headline(design: Design) -> str:
    """Say in a sentence what the loop does."""
    point, exact = design.operating_point, (design.margins or {}).get("exact")
    held = f"{design.aqm} holds the queue at {point['queue_pkts']:.4g} packets with p = {_cell(point['probability'])}"
    if not point["feasible"]:
        held = f"No signal probability holds the queue of {point['flows']:g} flows at {point['queue_pkts']:.4g} packets"
    if exact is None:
        return f"{held}; there is no linear loop."
    gain, phase = exact["gain_margin"], exact["phase_margin_deg"]
    margins = [f"a modulus margin of {exact['modulus_margin']:.2f}"]
    margins += [] if gain is None else [f"a gain margin of {gain:.3g}"]
    margins += [] if phase is None else [f"a phase margin of {phase:.3g}°"]
    words = "The loop is stable" if exact["stable"] else "The loop is unstable"
    swing = design.noise["queue_std_pkts"]
    told = "" if swing is None else f" Packets make the queue deviate by {swing:.3g} packets."
    return f"{held}. {words}, with {', '.join(margins)}.{told}"


def _operating_point(design: Design) -> Section:
    point = design.operating_point
    sender = design.data.get("sender", "a mean window")
    warned = "".join(f" Warning: {warning}." for warning in design.warnings)
    return Section(
        title="Network and gains",
        text=f"Operating point of the flows ({sender}) and parameters in force.{warned}",
        tables=[
            ("Operating point", ["quantity", "value"], [[words, _cell(point[key])] for key, words in POINT.items()]),
            ("Gains", ["gain", "value"], [[name, _cell(value)] for name, value in design.gains.items()]),
        ],
    )


def _loop(design: Design) -> Section | None:
    margins = design.margins
    if margins is None:
        return None
    rows = [
        [words, _cell(margins["exact"][key]), _cell(margins[key])]
        for key, words in MARGINS.items()
        if margins[key] is not None or margins["exact"][key] is not None
    ]
    return Section(
        title="Loop",
        text=(
            "Exact plant: linearisation of the fluid model with all delays; prefer its margins. Textbook plant: two "
            "poles and a dead time, as in design rules and papers."
        ),
        tables=[("Margins", ["margin", "exact plant", "textbook plant"], rows)],
        pictures=_pictures(design, ["bode", "nyquist", "step"]),
    )


def _noise(design: Design) -> Section:
    noise = design.noise
    why = f" They do not hold: {noise['why']}." if noise["why"] else ""
    if noise["queue_std_pkts"] is None:
        return Section(title="Packet noise", text=f"It is not known: {noise['why']}.")
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        ("Packet noise", ["metric", "value"], [[words, _cell(noise[key])] for key, words in NOISE.items()])
    ]
    if rows := noise_rows(design):
        tables.append(("Noise budget", ["source", "meaning", "variance, packets²", "share"], rows))
    return Section(
        title="Packet noise",
        text=f"Random marks and arrivals move the queue around its equilibrium; the loop answers them.{why}",
        tables=tables,
        pictures=_pictures(design, ["noise"]),
    )


def _senders(design: Design) -> list[Section]:
    found = design.data.get("senders")
    if not found:
        return []
    keys = ("probability", "gain_margin", "phase_margin_deg", "modulus_margin", "queue_std_pkts")
    rows = [[name, *(_cell(each[key]) for key in keys)] for name, each in found.items()]
    heads = ["sender", "probability", "gain margin", "phase margin, degrees", "modulus margin", "deviation, packets"]
    return [
        Section(
            title="Senders",
            text=f"The page shows the sender with the smallest modulus margin, {design.data['sender']}.",
            tables=[("Senders", heads, rows)],
        )
    ]


def _equations() -> Section:
    lines = [
        Markup("<br><code>{}</code> {} (docs/theory/design.md, {})").format(equation, meaning, section)
        for equation, meaning, section in EQUATIONS
    ]
    text = Markup("Derivation of the plants, senders and noise: docs/theory/models.md.") + Markup("").join(lines)
    return Section(title="Equations", text=text)


def _pictures(design: Design, kinds: Sequence[str]) -> list[tuple[str, str]]:
    pyplot = optional("matplotlib.pyplot", "plot")
    found = []
    for kind in kinds:
        try:
            figure = plots.plot(design, kind)
        except ScenarioError:
            # An unstable loop has no step response; its noise is not known.
            continue
        figure.set_size_inches(5.0, 4.2)
        for axes in figure.axes:
            axes.set_title("")
        found.append((PICTURES[kind], drawn(figure)))
        pyplot.close(figure)
    return found


def _cell(value: Any) -> str:
    """Format a value of a table."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return str(value)
