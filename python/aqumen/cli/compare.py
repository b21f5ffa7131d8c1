"""`aqumen compare`: several AQMs, the same seeds for each, statistics and a report."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from aqumen import tables
from aqumen.cli import talk
from aqumen.cli.options import (
    engines_option,
    json_option,
    load,
    out_option,
    scenario_argument,
    set_option,
    spec_list,
    theory_option,
    until_option,
)
from aqumen.columns import FLOW_COLUMNS, LINK_COLUMNS, TRANSFER_COLUMNS, Column, defined, transfers_by_size
from aqumen.comparison import Comparison, Gathering
from aqumen.files import write_text
from aqumen.transient import SMOOTH_S

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["compare", "means_table", "tables_of"]


@click.command()
@scenario_argument
@click.option("--aqm", multiple=True, metavar="SPEC", help="An AQM; repeat for each.")
@click.option("--seeds", type=int, default=20, show_default=True, metavar="N", help="How many seeds: 1 to N.")
@engines_option
@set_option
@until_option
@out_option
@theory_option
@json_option
def compare(
    scenario: Path,
    aqm: tuple[str, ...],
    seeds: int,
    engine: tuple[str, ...],
    set_: tuple[str, ...],
    until: str | None,
    out: Path | None,
    theory: bool,
    as_json: bool,
) -> int:
    """Compare AQMs on a scenario, or engines with --engine twice.

    SCENARIO is a scenario file, or the name of an experiment: arm-pfc/exp1.

    With --out a report and every finished run are written, and runs there are reused.

    Ctrl-C keeps what is finished: it is printed and written, and the exit code is 130.
    """
    gathering = Gathering(load(scenario, set_, until), spec_list(aqm), seeds, engine or ["packet"], out=out)
    total = len(gathering.jobs)
    for damage in gathering.damaged:
        talk.say(f"{damage}; it is run again")
    if gathering.resumed:
        talk.say(f"{gathering.resumed} of {total} runs are in {out} already and are not repeated")
    interrupted = False
    with talk.progress() as bar, _first_interrupt() as stopped:
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
        again = "; the same command goes on from here" if out is not None else ""
        talk.say(f"stopped: {len(comparison.results)} of {total} runs are finished{again}")
    if not comparison.results:
        return talk.INTERRUPTED
    if gathering.store is not None:
        folder = gathering.store.folder
        write_text(folder / "scenario.toml", gathering.scenario.to_toml())
        write_text(folder / "compare.json", comparison.to_json() + "\n")
        comparison.write_report(folder / "report.html", talk.command(), theory=theory)
        talk.say(f"wrote {folder / 'report.html'}")
    if as_json:
        print(comparison.to_json())
    else:
        talk.show(*tables_of(comparison))
    return talk.INTERRUPTED if interrupted else 0


@contextmanager
def _first_interrupt() -> Iterator[threading.Event]:
    """The first Ctrl-C stops the runs and keeps what is finished; a second one, while that is written, is the usual."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def ask(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()
        signal.signal(signal.SIGINT, before)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def tables_of(comparison: Comparison) -> list[Table | str]:
    """The comparison as a table for people: the ranking, means with the half width of their 95 % interval.

    Args:
        comparison: The comparison.
    """
    ranking = comparison.ranking()
    engines = ", ".join(dict.fromkeys(run.engine for run in comparison.results))
    heading = (
        f"{comparison.scenario.name}: {comparison.scenario.title}\n"
        f"{ranking.link}, window {ranking.window}, {len(comparison.results)} runs, "
        f"engine {engines}; mean ± half the 95 % interval over the seeds"
    )
    columns = [
        ("utilization", "utilisation", 1, 4),
        ("queue_mean_pkts", "queue pkt", 1, 1),
        ("qacd_pkts", "QACD pkt", 1, 1),
        ("sojourn_mean_s", "sojourn ms", 1000, 1),
        ("mark_ratio", "marked", 1, 4),
        ("early_drop_ratio", "early drops", 1, 4),
        ("overflow_drop_ratio", "overflows", 1, 4),
    ]
    made = talk.table("", ["place", "AQM", *(head for _, head, _, _ in columns)])
    made.columns[1].justify = "left"
    for place in ranking.places:
        cells = [
            spread(comparison.summary(place.aqm, metric, ranking.link, ranking.window), factor, digits)
            for metric, _, factor, digits in columns
        ]
        made.add_row(f"{place.place}{'=' if place.tied_with else ''}", place.aqm, *cells)
    rule = (
        "Ranked by the queue's distance from its target (QACD), the smallest first"
        if ranking.metric == "qacd_pkts"
        else "Ranked by mean sojourn time, the shortest first (no target)"
    )
    note = f"{rule}; = marks AQMs whose intervals overlap, which are ordered by utilisation."
    if len(comparison.seeds) == 1:
        note = f"{rule}. One seed gives no intervals, so the order says little: use --seeds 20."
    more = measures_tables(comparison, ranking.link, ranking.window)
    return [heading, made, "", note, *more, *mismatch_tables(comparison, ranking.window)]


def measures_tables(comparison: Comparison, link: str, window: str) -> list[Table | str]:
    """Distribution of the queue, losses and fairness at a link, what each flow group got, transfers by size.

    Args:
        comparison: The comparison.
        link: The link.
        window: The window.
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
    """Means of what is defined for any row; intervals are in the JSON and in the report.

    Args:
        title: Its title.
        names: Heads of the columns that name a row.
        columns: The columns.
        rows: Names and summaries of each row.
    """
    shown = defined(columns, [metrics for _, metrics in rows])
    made = talk.table(f"\n{title}", [*names, *(f"{head}\n{unit}" for _, head, unit, _, _ in shown)])
    for column in made.columns[: len(names)]:
        column.justify = "left"
    for own, metrics in rows:
        means = [(metrics[key]["mean"], factor, digits) for key, _, _, factor, digits in shown]
        cells = [tables.number(None if mean is None else mean * factor, digits) for mean, factor, digits in means]
        made.add_row(*own, *cells)
    return made


def mismatch_tables(comparison: Comparison, window: str) -> list[Table | str]:
    """How far the engines disagree about the queue; nothing with a single engine.

    Args:
        comparison: The comparison.
        window: The window.
    """
    found = comparison.mismatch()
    if not found:
        return []
    made = talk.table(
        f"\nMismatch of the queue in packets, window {window}",
        ["against", "link", "mean difference", "std difference", "curves, rms"],
    )
    for label, entry in found.items():
        for link, windows in entry["links"].items():
            each = windows[window]
            cells = (each["queue_mean_difference_pkts"], each["queue_std_difference_pkts"], each["curve_rms_pkts"])
            name = f"{label} against {entry['reference']}"
            made.add_row(name, link, *(tables.number(cell, 1) for cell in cells))
    return [made, f"Curves are compared as means over the seeds and over {SMOOTH_S:g} s."]


def spread(summary: dict[str, float | list[float] | None], factor: float, digits: int) -> str:
    """A mean with the half width of its interval.

    Args:
        summary: The summary.
        factor: What to multiply with, for the unit.
        digits: Digits behind the point.
    """
    mean, ci95 = summary["mean"], summary["ci95"]
    if not isinstance(mean, float):
        return tables.number(None, digits)
    if not isinstance(ci95, list):
        return tables.number(mean * factor, digits)
    return f"{mean * factor:.{digits}f} ± {(ci95[1] - ci95[0]) / 2 * factor:.{digits}f}"
