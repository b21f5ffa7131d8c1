"""`aqumen compare`: several AQMs with equal seeds, statistics and a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen._statistics import MARK, NOTE
from aqumen.cli import talk
from aqumen.cli.interrupt import first_interrupt
from aqumen.cli.options import (
    aqms_option,
    custom_classes,
    custom_option,
    engines_option,
    factors_of,
    figures_option,
    flent_option,
    force_option,
    format_option,
    json_option,
    load,
    named_too,
    out_option,
    pairs_of,
    scenario_argument,
    seeds_option,
    series_option,
    set_option,
    spec_list,
    sweep_option,
    target_option,
    theory_option,
    traffic_option,
    until_option,
    wide_option,
)
from aqumen.comparison import Comparison, Gathering
from aqumen.errors import ScenarioError
from aqumen.explain.disagreement import sentences
from aqumen.explain.transient import SMOOTH_S
from aqumen.ranking import GOALS, Ranking
from aqumen.scenario import Scenario
from aqumen.view import flent as flent_files
from aqumen.view import tables
from aqumen.view.columns import FLOW_COLUMNS, LINK_COLUMNS, TRANSFER_COLUMNS, Column, defined, transfers_by_size
from aqumen.view.export import check_parquet, parquet_bytes, tidy_csv, written
from aqumen.view.figures import write_figures

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["compare", "means_table", "scenario_aqm", "tables_of"]


@click.command()
@scenario_argument
@aqms_option(" Default: the scenario's AQM and droptail.")
@custom_option
@traffic_option
@seeds_option
@engines_option
@set_option
@sweep_option
@until_option
@target_option
@click.option("--rank-by", metavar="GOAL", type=click.Choice(list(GOALS)), help=f"Criterion: {', '.join(GOALS)}.")
@out_option
@series_option(
    "all",
    "Series and distributions in the runs of --out: all, sampled (500 points of each), or none, without a report.",
)
@theory_option
@force_option
@figures_option
@flent_option
@wide_option
@format_option
@json_option
def compare(
    scenario: Path,
    aqm: tuple[str, ...],
    aqm_from: tuple[str, ...],
    traffic_from: tuple[str, ...],
    seeds: list[int] | int,
    engine: tuple[str, ...],
    set_: tuple[str, ...],
    sweep: tuple[str, ...],
    until: str | None,
    target: str | None,
    rank_by: str | None,
    out: Path | None,
    series: str,
    theory: bool,
    force: bool,
    figures: Path | None,
    flent: Path | None,
    wide: bool,
    form: str,
    as_json: bool,
) -> int:
    """Compare AQMs on a scenario, or engines with --engine twice.

    SCENARIO is a scenario file, or the name of an experiment: arm-pfc/exp1.

    With --sweep, the AQMs are compared at each value, and at each combination of several sweeps.

    With --out, a report and every finished run are written; finished runs in that folder are reused.

    After Ctrl-C the finished runs are printed and written, and the exit code is 130.
    """
    if form == "parquet" and not as_json:
        check_parquet(sys.stdout.isatty())
    if sweep:
        plain = (engine[1:], traffic_from, theory, figures, flent, rank_by, form != "text")
        if any(plain):
            raise ScenarioError("--sweep goes with one engine and the table of means; `aqumen study` exports the rest")
        changes = [*set_, *([f"nominal.target={target}"] if target is not None else [])]
        return _swept(
            scenario, spec_list(aqm), aqm_from, seeds, engine, changes, sweep, until, out, force, wide, as_json
        )
    custom = custom_classes(aqm_from, traffic_from)
    loaded = load(scenario, set_, until, target, custom)
    specs = named_too(spec_list(aqm), custom) or _default_specs(loaded, engine)
    if flent is not None:
        flent_files.check(engine)
    gathering = Gathering(
        loaded, specs, seeds, engine or ["packet"], out=out, series=series, rank_by=rank_by, force=force
    )
    for warning in gathering.long:
        talk.say(warning)
    total = len(gathering.jobs)
    for damage in gathering.damaged:
        talk.say(f"{damage}; this run is repeated")
    if gathering.resumed:
        talk.say(f"{gathering.resumed} of {total} runs are already in {out} and are not repeated")
    interrupted = False
    with talk.progress() as bar, first_interrupt() as stopped:
        task = bar.add_task("running", total=total, completed=gathering.resumed, done=f"{gathering.resumed} of {total}")

        def advance(finished: int, wanted: int) -> bool:
            bar.update(task, completed=finished, done=f"{finished} of {wanted}")
            return not stopped.is_set()

        try:
            gathering.work(advance)
        except KeyboardInterrupt:
            interrupted = True
    comparison = gathering.comparison()
    interrupted = interrupted or not comparison.complete
    if interrupted:
        again = "; repeat the command to continue" if out is not None else ""
        talk.say(f"stopped: {len(comparison.results)} of {total} runs are finished{again}")
    if not comparison.results:
        return talk.INTERRUPTED
    if gathering.store is not None:
        talk.say(f"wrote {gathering.write(comparison, talk.command(), theory=theory)}")
    if figures is not None:
        made = write_figures(comparison, figures, talk.command())
        talk.say(f"wrote {len(made)} files into {figures}")
    if flent is not None:
        files = flent_files.write(loaded, [(run.spec, run.seed) for run in comparison.results], flent)
        talk.say(f"wrote {len(files)} files for Flent into {flent}")
    match "json" if as_json else form:
        case "json":
            print(comparison.to_json())
        case "csv":
            print(tidy_csv(comparison), end="")
        case "parquet":
            sys.stdout.buffer.write(parquet_bytes(comparison))
        case "text":
            talk.show(*tables_of(comparison), wide=wide)
        case _:
            print(written(tables_of(comparison), form), end="")
    return talk.INTERRUPTED if interrupted else 0


def _swept(
    scenario: Path,
    specs: list[str],
    aqm_from: Sequence[str],
    seeds: list[int] | int,
    engine: Sequence[str],
    changes: Sequence[str],
    sweeps: Sequence[str],
    until: str | None,
    out: Path | None,
    force: bool,
    wide: bool,
    as_json: bool,
) -> int:
    """Run a study of one scenario. Without `out`, its folder is temporary."""
    from tempfile import TemporaryDirectory

    from aqumen.cli.study import run_study
    from aqumen.study import Study
    from aqumen.study.executors import Threads

    given = {
        "title": f"{scenario}, {', '.join(sweeps)}",
        "scenarios": [str(scenario)],
        "aqms": specs or ([] if aqm_from else _default_specs(load(scenario, changes, until), engine)),
        "aqm_from": list(aqm_from),
        "seeds": seeds,
        "engine": engine[0] if engine else "packet",
        "set": dict(pairs_of("--set", changes)),
        "factors": factors_of(sweeps),
        **({} if until is None else {"until": until}),
    }
    loaded = Study(**given)
    if out is not None:
        return run_study(loaded, out, Threads(), force=force, wide=wide, as_json=as_json)
    with TemporaryDirectory() as folder:
        return run_study(loaded, Path(folder), Threads(), force=force, wide=wide, as_json=as_json)


def scenario_aqm(scenario: Scenario) -> str:
    """Return the SPEC of the scenario's AQM.

    Args:
        scenario: Scenario whose file may name an AQM; without one it is `droptail`.
    """
    import tomllib

    return str(tomllib.loads(scenario.to_toml()).get("aqm", "droptail"))


def _default_specs(scenario: Scenario, engines: Sequence[str]) -> list[str]:
    """Return the SPECs to compare without `--aqm`: the scenario's AQM, and DropTail if there is one engine."""
    its = scenario_aqm(scenario)
    if len(engines) > 1:
        return [its]
    if its == "droptail":
        raise ScenarioError("no AQM to compare: the scenario has none; add --aqm, such as --aqm codel,pie")
    talk.say(f"no --aqm given: comparing {its} (the scenario's) with droptail")
    return [its, "droptail"]


def tables_of(comparison: Comparison) -> list[Table | str]:
    """Format a comparison as tables: ranking, then means with the half-width of their 95 % interval.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
    """
    ranking = comparison.ranking()
    found = comparison.disagreement()
    engines = list(dict.fromkeys(run.engine for run in comparison.results))
    heading = [
        f"{comparison.scenario.name}: {comparison.scenario.title}",
        f"{ranking.link}, window {ranking.window}, {len(comparison.results)} runs, "
        f"engine{'s' if len(engines) > 1 else ''} {', '.join(engines)}",
        *sentences(found, ranking.link, ranking.window),
    ]
    if not found:
        heading.append(f"Ranked by {ranking.words}.")
    elif len(ranking.places) > 1:
        heading.append(f"AQMs are ranked on {engines[0]} alone, by {ranking.words}.")
    shown: list[Table | str] = [
        "\n".join(heading),
        *disagreement_tables(comparison, ranking.window),
        _ranking_table(comparison, ranking),
        "",
        _note(comparison, ranking),
        *measures_tables(comparison, ranking.link, ranking.window),
    ]
    cells = (cell for each in shown if not isinstance(each, str) for column in each.columns for cell in column.cells)
    return [*shown, f"\n{NOTE}"] if any(MARK in str(cell) for cell in cells) else shown


def _ranking_table(comparison: Comparison, ranking: Ranking) -> Table:
    """Return places, letter groups and means; an AQM that ran on several engines has no place."""
    goal = [(f.key, f.title, f.unit, f.factor, f.digits) for f in ranking.goal.figures]
    columns = [*goal, *(column for column in HEADLINE if column[0] not in {key for key, *_ in goal})]
    ranked = len(ranking.places) > 1 or not comparison.disagreement()
    grouped = ranked and any(place.group for place in ranking.places)
    rows = []
    for place, label in comparison.rows(ranking):
        summaries = {**comparison.summaries(label, ranking.link, ranking.window), **ranking.summaries[label]}
        names = [label]
        if grouped:
            names.insert(0, "" if place is None else place.group or "–")
        if ranked:
            names.insert(0, "" if place is None else f"{place.place}")
        rows.append([*names, *(tables.spread(summaries[key], factor, digits) for key, _, _, factor, digits in columns)])
    names = [*(["place"] if ranked else []), *(["group"] if grouped else []), "AQM"]
    return talk.filled("", [*names, *(f"{head} {unit}" for _, head, unit, _, _ in columns)], rows, names=len(names))


def _note(comparison: Comparison, ranking: Ranking) -> str:
    if len(comparison.seeds) == 1:
        return "One seed gives no confidence intervals; use --seeds 20 for a ranking."
    note = "Means over the seeds and 95 % intervals."
    if len(ranking.places) > 1:
        note += " AQMs that share a letter of their groups do not differ significantly."
    return note


HEADLINE: Sequence[Column] = (
    ("utilization", "Utilisation", "%", 100, 2),
    ("sojourn_mean_s", "Sojourn, mean", "ms", 1000, 1),
    ("sojourn_p99_s", "Sojourn, p99", "ms", 1000, 1),
    ("drop_ratio", "Dropped", "%", 100, 2),
    ("mark_ratio", "Marked", "%", 100, 2),
    ("queue_mean_pkts", "Queue", "pkt", 1, 1),
    ("qacd_pkts", "QACD", "pkt", 1, 1),
)
"""Columns of the ranking besides its criterion, the most important first: narrow terminals cut the last."""


def measures_tables(comparison: Comparison, link: str, window: str) -> list[Table | str]:
    """Tables of a link's queue, losses and fairness, of the flow groups, and of transfers by size.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        link: Name of a recorded link, such as `bottleneck`.
        window: `steady`, `all`, or a window of the scenario.
    """
    aqms = comparison.to_dict()["aqms"]
    links = [([aqm], entry["links"][link][window]) for aqm, entry in aqms.items()]
    flows = [
        ([aqm, group], windows[window]) for aqm, entry in aqms.items() for group, windows in entry["flows"].items()
    ]
    sizes = [([*names, title], each) for names, metrics in flows for title, each in transfers_by_size(metrics)]
    shown: list[Table | str] = [
        means_table(f"{link}: queue, losses, fairness", ["AQM"], LINK_COLUMNS, links),
        means_table("Flow groups", ["AQM", "group"], FLOW_COLUMNS, flows),
    ]
    if sizes:
        shown.append(means_table("Transfers by size", ["AQM", "group", "size"], TRANSFER_COLUMNS, sizes))
    return shown


def means_table(
    title: str, names: list[str], columns: Sequence[Column], rows: Sequence[tuple[list[str], dict[str, Any]]]
) -> Table:
    """Table of means with their confidence intervals, without columns that are undefined in every row.

    Args:
        title: Heading of the table.
        names: Heads of the columns that identify a row.
        columns: Metrics to show.
        rows: Identifying cells and metric summaries of each row.
    """
    shown = defined(columns, [metrics for _, metrics in rows])
    heads = [*names, *(f"{head}\n{unit}" for _, head, unit, _, _ in shown)]
    cells = [
        [*own, *(tables.spread(metrics[key], factor, digits) for key, _, _, factor, digits in shown)]
        for own, metrics in rows
    ]
    return talk.filled(f"\n{title}", heads, cells, names=len(names))


def disagreement_tables(comparison: Comparison, window: str) -> list[Table | str]:
    """Table of the differences between engines in the queue; empty with a single engine.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        window: `steady`, `all`, or a window of the scenario.
    """
    found = comparison.disagreement()
    if not found:
        return []
    made = talk.table(
        f"\nDisagreement of the engines: queue in packets, window {window}",
        ["engines", "link", "difference of means", "difference of std", "rms difference over time"],
    )
    for label, entry in found.items():
        for link, windows in entry["links"].items():
            each = windows[window]
            cells = (each["queue_mean_difference_pkts"], each["queue_std_difference_pkts"], each["curve_rms_pkts"])
            name = f"{label} against {entry['reference']}"
            made.add_row(name, link, *(tables.number(cell, 1) for cell in cells))
    return [made, f"Rms difference: between queue lengths averaged over the seeds and over {SMOOTH_S:g} s.", ""]
