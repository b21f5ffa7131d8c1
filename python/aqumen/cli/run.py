"""`aqumen run`: one AQM on one scenario with one seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import aqumen
from aqumen._files import json_text, write_text
from aqumen.cli import complete, talk
from aqumen.cli.compare import means_table, scenario_aqm
from aqumen.cli.options import (
    PATH,
    custom_classes,
    custom_option,
    engine_option,
    flent_option,
    force_option,
    json_option,
    load,
    named_too,
    out_option,
    scenario_argument,
    set_option,
    spec_list,
    target_option,
    theory_option,
    traffic_option,
    until_option,
    wide_option,
)
from aqumen.comparison import run as run_one
from aqumen.engines import check_engine, estimate_time, find
from aqumen.explain.prediction import Prediction, explain
from aqumen.result import Result
from aqumen.view import flent as flent_files
from aqumen.view import tables
from aqumen.view.columns import FLOW_COLUMNS, TRANSFER_COLUMNS, defined, transfers_by_size

if TYPE_CHECKING:
    from rich.table import Table

    from aqumen._kept import KeptRun
    from aqumen.scenario import Scenario

__all__ = ["run", "tables_of", "theory_of"]

ONE_THREAD = (
    "note: the run used one thread; a second one pays only if many events fall within the delay between hosts and "
    "queues, and never with --pcap or Python code"
)


@click.command()
@scenario_argument
@click.option("--aqm", shell_complete=complete.specs, metavar="SPEC", help="AQM; default: the scenario's.")
@custom_option
@traffic_option
@engine_option
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of all random numbers.")
@set_option
@until_option
@target_option
@out_option
@click.option("--threads", type=int, default=1, show_default=True, metavar="N", help="Maximum number of threads.")
@click.option("--pcap", type=PATH, metavar="FILE", help="Write the packets as pcapng.")
@flent_option
@theory_option
@force_option
@wide_option
@json_option
def run(
    scenario: Path,
    aqm: str | None,
    aqm_from: tuple[str, ...],
    traffic_from: tuple[str, ...],
    engine: str,
    seed: int,
    set_: tuple[str, ...],
    until: str | None,
    target: str | None,
    out: Path | None,
    threads: int,
    pcap: Path | None,
    flent: Path | None,
    theory: bool,
    force: bool,
    wide: bool,
    as_json: bool,
) -> int:
    """Run one AQM on a scenario with one seed.

    SCENARIO is a scenario file, or the name of an experiment: arm-pfc/exp1.
    """
    custom = custom_classes(aqm_from, traffic_from)
    loaded = load(scenario, set_, until, target, custom)
    if aqm is None and aqm_from:
        aqm, *others = named_too([], custom)
        if others:
            raise aqumen.ScenarioError(f"run takes one AQM: choose --aqm {aqm} or --aqm {others[0]}")
    store = None
    if out is not None:
        from aqumen._answers import as_text
        from aqumen._kept import KeptRun
        from aqumen._store import Digests, Store

        store = Store(out)
    if pcap is not None and not (pcap.parent.is_dir()):
        raise aqumen.OutputError(f"cannot write {pcap}: the folder {pcap.parent} does not exist")
    if aqm is not None:
        if len(spec_list([aqm])) > 1:
            raise aqumen.ScenarioError(f"--aqm {aqm}: run takes one AQM; `aqumen compare` takes several")
        loaded.check_aqm(aqm)
    check_engine(engine, loaded)
    if flent is not None:
        flent_files.check([engine])
    for runner in [engine, "theory"] if theory else [engine]:
        if (warning := estimate_time(loaded, [aqm], runner, force=force)) is not None:
            talk.say(warning)
    with talk.progress() as bar:
        task = bar.add_task(f"{aqm or loaded.name}, seed {seed}", total=1.0, done="")

        def advance(fraction: float) -> bool:
            bar.update(task, completed=fraction)
            return True

        result = run_one(loaded, aqm, seed, engine, pcap=pcap, on_progress=advance, force=True, threads=threads)
    if threads > 1 and "threads" not in result.data["cost"]:
        talk.say(ONE_THREAD)
    if store is not None:
        write_text(store.folder / "scenario.toml", loaded.to_toml())
        key = Digests(loaded, engine).of((aqm, seed))
        store.put(key, as_text(result.answer))
        store.close()
        _describe(store.folder, loaded, KeptRun(key=key, spec=aqm or scenario_aqm(loaded), engine=engine))
        talk.say(f"wrote the run into {store.runs}")
    if flent is not None:
        (made,) = flent_files.write(loaded, [(aqm, seed)], flent)
        talk.say(f"wrote {made}")
    predictions = explain(loaded, result, aqm, loops=theory) if find(engine).measures else []
    if as_json:
        beside: dict[str, dict[str, Any]] = {}
        for each in predictions:
            beside.setdefault(each.link, {})[each.window] = each.to_dict()
        print(json_text({**result.data, "theory": beside}) if beside else result.json)
    else:
        talk.show(*tables_of(result), *theory_of(predictions), wide=wide)
    return 0


def _describe(folder: Path, scenario: Scenario, run: KeptRun) -> None:
    """Add a run to the page of its folder, or begin a page if the folder has one of another scenario."""
    from aqumen._kept import RunsPage, read_page

    page = RunsPage(command=talk.command(), scenario=scenario, runs=(), wanted=0)
    given = read_page(folder)
    if given is not None and given["kind"] == "runs":
        known = RunsPage.of(given, folder)
        if known.scenario.to_toml() == scenario.to_toml():
            page = replace(known, command=page.command)
    page.adding(run).write(folder)


def theory_of(predictions: list[Prediction]) -> list[Table | str]:
    """Table of predictions and measurements, with explanations of the differences.

    Args:
        predictions: Predictions for each link and window.
    """
    if not predictions:
        return []
    table = talk.table(
        "\nPredicted / measured",
        ["link, window", "queue pkt", "signalled %", "utilisation %", "sojourn ms", "W0 pkt"],
    )
    for each in predictions:
        window = each.point.get("window_pkts")
        table.add_row(
            f"{each.link}, {each.window}",
            _pair(each, "queue_mean_pkts", 1, 1),
            _pair(each, "signal_ratio", 100, 2),
            _pair(each, "utilization", 100, 2),
            _pair(each, "sojourn_mean_s", 1000, 1),
            tables.number(window, 2),
        )
    notes = [f"{each.link}, {each.window}: {note}" for each in predictions for note in each.notes]
    return [table, *notes]


def _pair(each: Prediction, key: str, factor: float, digits: int) -> str:
    told = each.to_dict()
    values = (told["predicted"][key], told["measured"][key])
    return " / ".join(tables.number(None if value is None else value * factor, digits) for value in values)


def tables_of(result: Result) -> list[Table | str]:
    """Format a run as tables.

    Args:
        result: The run.
    """
    parameters = tables.parameters(result.params)
    heading = f"{result.spec} on {result.scenario}, engine {result.engine}, seed {result.seed}"
    links = talk.filled(
        "\nLinks",
        ["link, window", *(f"{title} {unit}" for title, unit in tables.LINK_HEADS)],
        [
            [f"{link}, {window}", *tables.link_cells(metrics)]
            for link, windows in result.data["links"].items()
            for window, metrics in windows.items()
        ],
    )
    flows = talk.filled(
        "\nFlow groups",
        ["group, window", "goodput Mbit/s", "sojourn ms", "p99 ms", "RTT ms", "Jain fairness", "resent %", "time-outs"],
        [
            [
                f"{group}, {window}",
                tables.number(metrics["goodput_bps"] / 1e6, 3),
                *(
                    tables.number(None if (time := metrics.get(key)) is None else time * 1000, 1)
                    for key in ("sojourn_mean_s", "sojourn_p99_s", "rtt_mean_s")
                ),
                tables.number(metrics["jain_fairness"], 4),
                tables.percent(metrics["retransmitted_ratio"]),
                tables.number(metrics["timeouts"], 0),
            ]
            for group, windows in result.data["flows"].items()
            for window, metrics in windows.items()
        ],
    )
    given = tables.parameters(result.given)
    lines: list[Table | str] = [heading, *([f"given: {given}"] if given else []), *([parameters] if parameters else [])]
    lines.append(links)
    notes = [f"\nNote: {note}" for note in result.notes]
    return [*lines, *([flows, *applications_of(result)] if result.flows else []), *notes]


def applications_of(result: Result) -> list[Table | str]:
    """Tables of delay, loss, quality and transfer times, for flow groups in which any of them is defined.

    Args:
        result: The run.
    """
    known = {
        "goodput_bps",
        "jain_fairness",
        "sojourn_mean_s",
        "sojourn_p99_s",
        "rtt_mean_s",
        "retransmitted_ratio",
        "throughput_bps",
    }
    columns = [column for column in FLOW_COLUMNS if column[0] not in known]
    rows = [
        ([f"{group}, {window}"], {key: {"mean": value, "n": value is not None} for key, value in metrics.items()})
        for group, windows in result.data["flows"].items()
        for window, metrics in windows.items()
    ]
    rows = [(names, metrics) for names, metrics in rows if defined(columns, [metrics])]
    sizes = [([*names, title], each) for names, metrics in rows for title, each in transfers_by_size(metrics)]
    shown: list[Table | str] = []
    if rows:
        shown.append(means_table("Applications", ["group, window"], columns, rows))
    if sizes:
        shown.append(means_table("Transfers by size", ["group, window", "size"], TRANSFER_COLUMNS, sizes))
    return shown
