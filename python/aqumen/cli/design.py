"""`aqumen design`: gains and margins of an AQM for a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import __version__
from aqumen._files import laid_out, write_text
from aqumen.cli import talk
from aqumen.cli.network import designed, given, network_options, plain
from aqumen.cli.options import PATH, custom_classes, json_option, load, named_too, out_option
from aqumen.errors import OutputError, ScenarioError
from aqumen.explain.prediction import predict
from aqumen.theory import Design
from aqumen.theory.loop import SCHEMA
from aqumen.theory.page import design_page, noise_rows

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["design", "tables_of"]

PAGE = "design.html"
"""Page of a design in its output folder."""


@click.command()
@click.argument("aqm", metavar="SPEC", required=False)
@network_options
@click.option("--r0", metavar="TIME", help="Round-trip time at the target, in place of --rtt.")
@click.option("--plot", type=PATH, metavar="FILE", help="Plot the loop into this file.")
@click.option("--kind", default="nyquist", show_default=True, help="nyquist, bode, nichols, step, locus or noise.")
@click.option("--scenario", metavar="FILE", help="Analyse every queue of a scenario, in place of a network.")
@out_option
@json_option
def design(
    aqm: str | None,
    aqm_from: tuple[str, ...],
    plot: Path | None,
    kind: str,
    scenario: str | None,
    out: Path | None,
    as_json: bool,
    **network: Any,
) -> int:
    """Design an AQM for a network and show its margins.

    SPEC is optional with --scenario, or if --aqm-from names a single AQM.
    """
    if scenario is not None:
        if named := given([*network, "plot", "kind", "out"]):
            raise ScenarioError(f"{', '.join(named)} and --scenario exclude each other: a scenario defines its network")
        return _of_scenario(scenario, aqm, aqm_from, as_json=as_json)
    if network["capacity"] is None and network["flows"] is None:
        raise ScenarioError("give --capacity and --flows of a network, or --scenario FILE")
    if plot is None and (named := given(["kind"])):
        raise ScenarioError(f"{named[0]} needs --plot FILE")
    found = designed("design", aqm, aqm_from, **network)
    if plot is not None:
        figure = found.plot(kind)
        try:
            figure.savefig(plot)
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot write {plot}: {error}") from None
        talk.say(f"wrote {plot}")
    if out is not None:
        text = design_page(found, talk.command())
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot write {out}: {error.strerror}") from None
        write_text(out / PAGE, text)
        talk.say(f"wrote {out / PAGE}")
    if as_json:
        print(found.json)
    else:
        talk.show(*tables_of(found))
        for warning in found.warnings:
            talk.say(f"warning: {warning}")
    return 0


def _of_scenario(scenario: str, aqm: str | None, aqm_from: tuple[str, ...], as_json: bool) -> int:
    """Analyse an AQM at the queues of a scenario, including links that share flows."""
    custom = custom_classes(aqm_from)
    loaded = load(Path(scenario), (), None, None, custom)
    named = [aqm] if aqm is not None else named_too([], custom)
    if len(named) > 1:
        raise ScenarioError("name one AQM: aqumen design SPEC --scenario FILE")
    found: dict[str, dict[str, Any]] = {}
    for name, windows in predict(loaded, named[0] if named else None).items():
        window = "steady" if "steady" in windows else next(iter(windows))
        found[name] = {"window": window, **windows[window]}
    if as_json:
        print(laid_out({"schema": SCHEMA, "aqumen": __version__, "scenario": loaded.name, "queues": found}), end="")
        return 0
    table = talk.table(
        f"\n{named[0] if named else 'The AQMs'} at the queues of {loaded.name}",
        ["queue", "length, pkt", "probability", "W, pkt", "gain margin", "std, pkt", "remark"],
    )
    for name, at in found.items():
        analysis, noise = at["analysis"] or {}, (at["analysis"] or {}).get("noise", {})
        own_margins = (analysis.get("margins") or {}).get("exact", {})
        # Links that share flows, and coupled queues, have a joint loop.
        several = at.get("several")
        loops = (several if name in several["links"] else {}) if several else at.get("coupled") or own_margins
        figures = (
            at["queue_pkts"],
            at["probability"],
            noise.get("window_pkts"),
            loops.get("gain_margin"),
            noise.get("queue_std_pkts"),
        )
        table.add_row(name, *(plain(figure) for figure in figures), noise.get("why") or "")
    talk.show(table)
    return 0


PLANTS = (
    "Textbook plant: two poles and a dead time, as in design rules and papers. Exact plant: linearisation of the fluid "
    "model with all delays; prefer its margins."
)
"""Explanation of the two plants."""


def tables_of(found: Design) -> list[Table | str]:
    """Format a design as tables.

    Args:
        found: A result of `theory.design`.
    """
    point = found.operating_point
    heading = (
        f"{found.aqm} for N = {point['flows']:g}, C = {point['capacity_pps']:g} pkt/s, R0 = {point['rtt_s']:.6g} s: "
        f"W0 = {point['window_pkts']:.4g} pkt, p0 = {point['probability']:.4g}, queue {point['queue_pkts']:.4g} pkt"
    )
    settling_s = found.data["expected"]["settling_s"]
    if settling_s is not None:
        heading += f"; a start lasts about {settling_s:.3g} s"
    gains = talk.table("\nGains", ["gain", "value"])
    for name, value in found.gains.items():
        gains.add_row(name, plain(value))
    lines: list[Table | str] = [heading, gains]
    if found.margins is not None:
        margins = talk.table("\nMargins", ["margin", "textbook plant", "exact plant"])
        exact = found.margins["exact"]
        for name, value in exact.items():
            margins.add_row(name, plain(found.margins[name]), plain(value))
        margins.add_row("spectral_radius", plain(found.margins["spectral_radius"]), "")
        lines.append(margins)
        lines.append(PLANTS)
    if found.hopf is not None:
        branch = talk.table("\nHopf bifurcation", ["limit cycle", "value"])
        for name, value in found.hopf.items():
            if name != "cycles":
                branch.add_row(name, plain(value))
        for cycle in found.hopf["cycles"]:
            branch.add_row("limit cycle of this loop", plain(cycle))
        lines.append(branch)
    noise = found.noise
    if noise["queue_std_pkts"] is not None:
        figures = talk.table("\nPacket noise", ["metric", "value"])
        for name in ("queue_std_pkts", "qacd_pkts", "queue_p95_pkts", "utilization_lost", "probability"):
            figures.add_row(name, plain(noise[name]))
        lines.append(figures)
    if rows := noise_rows(found):
        short = [[source, *numbers] for source, _, *numbers in rows]
        lines.append(talk.filled("\nNoise budget", ["source", "variance, packets²", "share"], short))
    lines += [f"\nNote: {note}" for note in found.notes]
    if noise["why"] is not None:
        lines.append(f"\nPacket noise: {noise['why']}")
    return lines
