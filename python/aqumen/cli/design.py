"""`aqumen design`: gains and margins of an AQM for a network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from aqumen import __version__
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.options import PATH, custom_classes, custom_option, json_option, load, named_too
from aqumen.errors import OutputError, ScenarioError
from aqumen.explain.prediction import predict
from aqumen.theory import Design, RobustAqm, RobustPi, StabilityMap, robust_pi, stability_map
from aqumen.theory import coupled as coupled_for
from aqumen.theory import design as design_for
from aqumen.theory import robust as robust_for
from aqumen.theory.loop import SCHEMA

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["design", "tables_of"]

MAP_POINTS = 100
"""Points along each axis of a map."""


@click.command()
@click.argument("aqm", metavar="SPEC", required=False)
@custom_option
@click.option("--capacity", metavar="RATE", help="Capacity: 30Mbit.")
@click.option("--flows", type=float, metavar="N", help="Long-lived flows.")
@click.option("--rtt", metavar="TIME", help="Base RTT, without queueing.")
@click.option("--r0", metavar="TIME", help="Round-trip time at the target.")
@click.option("--target", metavar="PKTS", help="Target queue: 100pkt.")
@click.option("--packet", default="1000B", show_default=True, metavar="BYTES", help="Packet size on the wire.")
@click.option("--buffer", metavar="PKTS", help="Buffer size: 300pkt.")
@click.option("--model", default="hollot", show_default=True, metavar="MODEL", help="hollot, ecn, reno or drop.")
@click.option("--plot", type=PATH, metavar="FILE", help="Plot the loop into this file.")
@click.option("--kind", default="nyquist", show_default=True, help="nyquist, bode, nichols, step, locus or noise.")
@click.option(
    "--map",
    "map_",
    multiple=True,
    metavar="AXIS=FROM:TO",
    help="Twice: a stability map over flows, rtt (s), capacity (pkt/s), target (pkt) or gain, into --plot.",
)
@click.option(
    "--robust",
    multiple=True,
    metavar="AXIS=FROM:TO",
    help="Optimise the worst case over ranges of flows, rtt, capacity: pi, red, rem, paqm, arm-pfc.",
)
@click.option("--aim", default="speed", show_default=True, help="Objective of --robust: speed or noise.")
@click.option("--margin", type=float, default=0.5, show_default=True, help="Modulus margin of --robust.")
@click.option(
    "--show", default="gain_margin", show_default=True, help="Quantity of --map: queue_std_pkts, qacd_pkts, ..."
)
@click.option("--cycles", is_flag=True, help="With --map: also search coexisting limit cycles.")
@click.option(
    "--scenario", "scenario_", metavar="FILE", help="Analyse every queue of a scenario, in place of a network."
)
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="With --scenario: only these queues.")
@click.option("--scalable", type=int, metavar="N", help="Number of Prague flows, for the coupled queues of dualpi2.")
@json_option
def design(
    aqm: str | None,
    aqm_from: tuple[str, ...],
    capacity: str | None,
    flows: float | None,
    rtt: str | None,
    r0: str | None,
    target: str | None,
    packet: str,
    buffer: str | None,
    model: str,
    plot: Path | None,
    kind: str,
    map_: tuple[str, ...],
    robust: tuple[str, ...],
    aim: str,
    margin: float,
    show: str,
    cycles: bool,
    scenario_: str | None,
    queues: tuple[str, ...],
    scalable: int | None,
    as_json: bool,
) -> int:
    """Design an AQM for a network and show its margins.

    SPEC is optional with --scenario, or if --aqm-from names a single AQM.
    """
    if scenario_ is not None:
        network = {"capacity": capacity, "flows": flows, "rtt": rtt, "r0": r0}
        given = [f"--{name}" for name, value in network.items() if value is not None]
        if given:
            raise ScenarioError(f"{', '.join(given)} and --scenario exclude each other: a scenario defines its network")
        return _of_scenario(scenario_, aqm, aqm_from, queues, as_json=as_json)
    if queues:
        raise ScenarioError("--queue needs --scenario FILE")
    if capacity is None and flows is None:
        raise ScenarioError("give --capacity and --flows of a network, or --scenario FILE")
    if capacity is None or flows is None:
        missing = "--flows N" if flows is None else "--capacity RATE"
        raise click.UsageError(f"missing: {missing}; `aqumen design --help` says what each is")
    _require("--plot FILE", plot is not None, "kind")
    _require("--map", bool(map_), "cycles", "show")
    _require("--robust", bool(robust), "aim", "margin")
    if map_ and _given(["kind"]):
        raise ScenarioError("--kind and --map exclude each other: --plot writes one plot")
    if (rtt is None) == (r0 is None):
        raise ScenarioError("give either --rtt (without queueing) or --r0 (at the target)")
    custom = custom_classes(aqm_from)
    specs = named_too([], custom) if aqm is None else [aqm]
    if len(specs) != 1:
        raise ScenarioError("name one AQM: aqumen design SPEC, perhaps with --aqm-from FILE:CLASS")
    found = design_for(
        specs[0],
        capacity=capacity,
        flows=flows,
        rtt=rtt,
        r0=r0,
        target=target,
        packet=packet,
        buffer=buffer,
        model=model,
        custom=custom,
    )
    if scalable is not None:
        if rtt is None:
            raise ScenarioError(
                "--scalable needs --rtt, since the queues have different round-trip times at the target"
            )
        both = coupled_for(specs[0], capacity=capacity, flows=int(flows), scalable=scalable, rtt=rtt, packet=packet)
        found.data["coupled"] = both
    if map_ and plot is None:
        raise ScenarioError("--map needs --plot FILE to draw into")
    best = _robust(found, robust, aim, margin) if robust else None
    if best is not None:
        found.data["robust"] = best.to_dict()
    if plot is not None:
        figure = _map(found, map_, cycles=cycles).plot(show) if map_ else found.plot(kind)
        try:
            figure.savefig(plot)
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot write {plot}: {error}") from None
        talk.say(f"wrote {plot}")
    if as_json:
        print(found.json)
    else:
        talk.show(*tables_of(found))
        if scalable is not None:
            talk.show(*_coupled_tables(both))
        if best is not None:
            talk.show(_robust_table(best))
        for warning in dict.fromkeys([*found.warnings, *(both["warnings"] if scalable is not None else [])]):
            talk.say(f"warning: {warning}")
    return 0


def _given(names: Sequence[str]) -> list[str]:
    """Return the options among `names` that are on the command line, with their dashes."""
    context = click.get_current_context()
    return [f"--{name}" for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]


def _require(needed: str, present: bool, *names: str) -> None:
    """Raise `ScenarioError` for options that have no effect without another one."""
    if not present and (given := _given(names)):
        raise ScenarioError(f"{given[0]} needs {needed}")


def _of_scenario(
    scenario: str, aqm: str | None, aqm_from: tuple[str, ...], queues: Sequence[str], as_json: bool
) -> int:
    """Analyse an AQM at the queues of a scenario, including links that share flows."""
    custom = custom_classes(aqm_from)
    loaded = load(Path(scenario), (), None, None, custom)
    named = [aqm] if aqm is not None else named_too([], custom)
    if len(named) > 1:
        raise ScenarioError("name one AQM: aqumen design SPEC --scenario FILE")
    predicted = predict(loaded, named[0] if named else None)
    unknown = [queue for queue in queues if queue not in predicted]
    if unknown:
        raise ScenarioError(f"no queue `{unknown[0]}`; choose from: {', '.join(predicted)}")
    found: dict[str, dict[str, Any]] = {}
    for name, windows in predicted.items():
        if not queues or name in queues:
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
        table.add_row(name, *(_plain(figure) for figure in figures), noise.get("why") or "")
    talk.show(table)
    return 0


def _span(text: str) -> tuple[str, float, float]:
    name, equals, ends = text.partition("=")
    low, colon, high = ends.partition(":")
    try:
        if equals and colon:
            return name.strip(), float(low), float(high)
    except ValueError:
        pass
    raise ScenarioError(f"{text}: write it as AXIS=FROM:TO with plain numbers, for instance flows=10:200")


def _map(found: Design, axes: Sequence[str], cycles: bool) -> StabilityMap:
    spans = [_span(axis) for axis in axes]
    if len(spans) != 2:
        raise ScenarioError("a map has two axes: give --map twice")
    (x, x_low, x_high), (y, y_low, y_high) = spans
    if min(x_low, x_high, y_low, y_high) <= 0:
        raise ScenarioError("the ends of an axis must be above 0")
    across, up = (np.geomspace(*ends, MAP_POINTS) for ends in ((x_low, x_high), (y_low, y_high)))
    return stability_map(found, x, across, y, up, cycles=cycles)


def _robust(found: Design, ranges: Sequence[str], aim: str, margin: float) -> RobustPi | RobustAqm:
    spans = {name: (low, high) for name, low, high in map(_span, ranges)}
    unknown = [name for name in spans if name not in ("flows", "rtt", "capacity")]
    if unknown:
        raise ScenarioError(f"--robust {unknown[0]}: there are flows, rtt (s), capacity (pkt/s)")
    flows, rtt_s, pps = spans.get("flows"), spans.get("rtt"), spans.get("capacity")
    if found.aqm == "pi":
        return robust_pi(found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)
    return robust_for(design=found, flows=flows, rtt_s=rtt_s, capacity_pps=pps, aim=aim, modulus_margin=margin)


def _robust_table(best: RobustPi | RobustAqm) -> Table:
    table = talk.table("\nRobust design", ["", "value"])
    for name, value in best.to_dict().items():
        table.add_row(name, _plain(value))
    return table


def _coupled_tables(both: dict[str, Any]) -> list[Table | str]:
    table = talk.table("\nCoupled queues", ["", "classic", "low latency"])
    for name in both["classic"]:
        table.add_row(name, _plain(both["classic"][name]), _plain(both["low_latency"][name]))
    about = (
        f"\np' = {both['base_probability']:.4g}, k p' = {both['coupled_probability']:.4g}, "
        f"total queue {both['queue_pkts']:.4g} pkt, standard deviation of the classic delay "
        f"{_plain(both['delay_std_s'])} s, gain margin {_plain(both['gain_margin'])}"
    )
    lines: list[Table | str] = [table, about]
    if both["noise"]["why"]:
        lines.append(f"Noise: {both['noise']['why']}")
    return lines


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
    gains = talk.table("\nGains", ["gain", "value"])
    for name, value in found.gains.items():
        gains.add_row(name, _plain(value))
    lines: list[Table | str] = [heading, gains]
    if found.margins is not None:
        margins = talk.table("\nMargins", ["margin", "textbook plant", "exact plant"])
        exact = found.margins["exact"]
        for name, value in exact.items():
            margins.add_row(name, _plain(found.margins[name]), _plain(value))
        margins.add_row("spectral_radius", _plain(found.margins["spectral_radius"]), "")
        lines.append(margins)
        lines.append(PLANTS)
    if found.hopf is not None:
        branch = talk.table("\nHopf bifurcation", ["limit cycle", "value"])
        for name, value in found.hopf.items():
            if name != "cycles":
                branch.add_row(name, _plain(value))
        for cycle in found.hopf["cycles"]:
            branch.add_row("limit cycle of this loop", _plain(cycle))
        lines.append(branch)
    noise = found.noise
    if noise["queue_std_pkts"] is not None:
        figures = talk.table("\nPacket noise", ["metric", "value"])
        for name in ("queue_std_pkts", "qacd_pkts", "queue_p95_pkts", "utilization_lost", "probability"):
            figures.add_row(name, _plain(noise[name]))
        lines.append(figures)
    if noise["why"] is not None:
        lines.append(f"\nPacket noise: {noise['why']}")
    return lines


def _plain(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(f"{x:.6g}" for x in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(x)}" for name, x in value.items())
    return str(value)
