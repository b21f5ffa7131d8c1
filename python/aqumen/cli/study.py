"""`aqumen study`: thousands of runs by a study file, on this machine, in shards or on a cluster; and what they say."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen._files import json_text
from aqumen._statistics import summarize
from aqumen.cli import talk
from aqumen.cli.missing_runs import run_missing
from aqumen.cli.options import (
    OUT,
    PATH,
    aqms_option,
    custom_option,
    force_option,
    json_option,
    spec_list,
    wide_option,
)
from aqumen.errors import OutputError, ScenarioError
from aqumen.view import tables
from aqumen.view.export import FORMATS

if TYPE_CHECKING:
    from rich.table import Table

    from aqumen.study import Rows, Study
    from aqumen.study.executors import Executor
    from aqumen.study.study import Status

__all__ = ["run_study", "study", "study_tables"]

CASES_MAX = 40
"""Most cases in a table on a terminal."""
HEADLINE = (
    ("utilization", "Utilisation %", 100, 2),
    ("sojourn_mean_s", "Sojourn ms", 1000, 2),
    ("sojourn_p99_s", "p99 ms", 1000, 1),
    ("queue_mean_pkts", "Queue pkt", 1, 2),
    ("qacd_pkts", "QACD pkt", 1, 2),
    ("mark_ratio", "Marked %", 100, 2),
)
"""Columns of the table of a study: metric, head, factor, digits."""

dir_argument = click.argument("folder", type=PATH, metavar="DIR")
file_argument = click.argument("file", type=PATH, metavar="STUDY.toml")
need_out = click.option(
    "--out", type=OUT, metavar="DIR", required=True, help="Folder of the rows; finished runs there are kept."
)
threads_option = click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Concurrent runs; default: the cores."
)


@click.group()
def study() -> None:
    """Run a study: scenarios, factors, AQMs and seeds, until a stopping rule is satisfied; ask what is kept.

    docs/studies.md describes the study file.
    """


@study.command()
@file_argument
@need_out
@click.option(
    "--on", metavar="WHERE", default="threads", show_default=True,
    help="threads, dask:local, or a scheduler of Dask: dask:tcp://HOST:8786.",
)  # fmt: skip
@threads_option
@force_option
@wide_option
@json_option
def run(file: Path, out: Path, on: str, threads: int | None, force: bool, wide: bool, as_json: bool) -> int:
    """Run the missing runs of a study; after Ctrl-C or a crash the same command goes on."""
    return run_study(_checked(file), out, _executor(on, threads), force=force, wide=wide, as_json=as_json)


@study.command()
@file_argument
@click.argument("part", metavar="K/N")
@need_out
@threads_option
@force_option
def shard(file: Path, part: str, out: Path, threads: int | None, force: bool) -> int:
    """Run one of N parts of a study, for job arrays and Snakemake; `study merge` puts the parts together."""
    found = re.fullmatch(r"(\d+)/(\d+)", part)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise ScenarioError(f"{part}: must be K/N with K from 1 to N, such as 3/40")
    return run_study(
        _checked(file), out, _executor("threads", threads), force=force, shard=(number, count), shown=False
    )


@study.command()
@file_argument
@click.argument("count", type=click.IntRange(1, 100_000), metavar="N")
@need_out
@click.option("--time", "limit", metavar="H:MM:SS", help="Time limit of a part; default: by the estimate, doubled.")
def sbatch(file: Path, count: int, out: Path, limit: str | None) -> int:
    """Print a script that runs the N shards of a study as a job array of SLURM."""
    loaded = _checked(file)
    seconds = max(sum(loaded.seconds(case) for case, _ in loaded.runs()) * _most(loaded) / count * 2, 300.0)
    hours, rest = divmod(round(seconds), 3600)
    folder = shlex.quote(str(out))
    print(
        "#!/bin/bash\n"
        f"# Submit with: sbatch this-file. Then: aqumen study merge {folder} {folder}/shards/*\n"
        f"#SBATCH --job-name=aqumen\n#SBATCH --array=1-{count}\n#SBATCH --cpus-per-task=1\n"
        f"#SBATCH --time={limit or f'{hours}:{rest // 60:02}:{rest % 60:02}'}\n"
        f'aqumen study shard {shlex.quote(str(file))} "$SLURM_ARRAY_TASK_ID/{count}" --threads 1 '
        f"--out {folder}/shards/$SLURM_ARRAY_TASK_ID"
    )
    return 0


@study.command()
@click.argument("into", type=PATH, metavar="DIR")
@click.argument("others", type=PATH, nargs=-1, required=True, metavar="FROM...")
def merge(into: Path, others: tuple[Path, ...]) -> int:
    """Add the rows of other folders to DIR; none is there twice."""
    from aqumen.study.study import merge as merged

    talk.say(f"added {merged(into, others)} records to {into}")
    return 0


@study.command()
@dir_argument
@json_option
def status(folder: Path, as_json: bool) -> int:
    """Print how many runs of each case are finished, and where the stopping rule is not satisfied."""
    from aqumen.study import Rows
    from aqumen.study.study import status as states

    rows = Rows(folder)
    found = list(states(rows))
    if as_json:
        print(json_text([_status(each) for each in found], indent=2))
        return 0
    closed = sum(each.closed for each in found)
    lines = [f"{sum(each.seeds for each in found)} runs, {closed} of {len(found)} cases complete"]
    open_cases = [each for each in found if not each.closed]
    if open_cases:
        table = talk.table("\nIncomplete", [*rows.labels, "runs", "of"], names=len(rows.labels))
        for each in open_cases[:CASES_MAX]:
            table.add_row(*_labels(rows, each.case.labels), str(each.seeds), f"{each.wanted}")
        talk.show(*lines, table, *_cut(len(open_cases)), wide=True)
    else:
        talk.show(*lines)
    talk.show(*_not_reached(rows, found), wide=True)
    return 0


@study.command()
@dir_argument
@click.argument("sql", metavar="SQL")
@click.option("--format", "form", type=click.Choice(("text", "csv")), default="text", help="Format on standard output.")
@json_option
def query(folder: Path, sql: str, form: str, as_json: bool) -> int:
    """Answer SQL about the table `runs`, by DuckDB: "select aqm, avg(queue_mean_pkts) from runs group by 1"."""
    from aqumen.study import Rows

    names, found = Rows(folder).query(sql)
    if as_json:
        print(json_text([dict(zip(names, row, strict=True)) for row in found], indent=2))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([names, *found])
    else:
        table = talk.table("", names, names=sum(not _is_number(found, k) for k in range(len(names))))
        for row in found:
            table.add_row(*("–" if x is None else f"{x:.6g}" if isinstance(x, float) else str(x) for x in row))
        talk.show(table, wide=True)
    return 0


@study.command()
@dir_argument
@click.argument("form", type=click.Choice(("csv", "parquet", "latex", "markdown")))
@click.option("--out", type=OUT, metavar="DIR", help="Folder for the file; without it, text goes to standard output.")
def export(folder: Path, form: str, out: Path | None) -> int:
    """Write all rows as CSV or Parquet (runs.*), or the table of means for a paper (table.tex, table.md)."""
    from aqumen._files import write_text
    from aqumen.study import Rows
    from aqumen.view.export import written

    rows = Rows(folder)
    names = {"csv": "runs.csv", "parquet": "runs.parquet", "latex": "table.tex", "markdown": "table.md"}
    text = written(study_tables(rows, whole=True), form) if form in ("latex", "markdown") else None
    if out is None:
        if text is None:
            raise OutputError(f"--out is missing; name a folder for {names[form]}, such as --out exported")
        print(text, end="")
        return 0
    out.mkdir(parents=True, exist_ok=True)
    file = out / names[form]
    if text is not None:
        write_text(file, text)
    elif form == "csv":
        rows.write_csv(file)
    else:
        rows.write_parquet(file)
    talk.say(f"wrote {file}" + ("" if text is not None else f": {len(rows)} rows"))
    return 0


@study.command()
@dir_argument
def compact(folder: Path) -> int:
    """Write the rows as Parquet for other programs, a part for each AQM, into DIR/parquet.

    The JSON lines in DIR/runs stay: the study resumes from them.
    """
    from aqumen.study import Rows

    rows = Rows(folder)
    rows.write_parquet(folder / "parquet", partitioned=True)
    talk.say(f"wrote {len(rows)} rows into {folder / 'parquet'}")
    return 0


@study.command()
@dir_argument
@click.option("--metric", metavar="METRIC", required=True, help="Column to compare, such as sojourn_p99_s.")
@json_option
def compare(folder: Path, metric: str, as_json: bool) -> int:
    """Compare the AQMs at each point: test, effect size, P-values corrected by Holm, letter groups."""
    from dataclasses import asdict

    from aqumen.study import Rows
    from aqumen.study.compared import compare_aqms

    points = compare_aqms(Rows(folder), metric)
    if as_json:
        print(json_text([asdict(point) for point in points], indent=2))
        return 0
    for point in points:
        title = ", ".join(f"{name} = {value}" for name, value in point.labels.items())
        means = talk.table(f"\n{title}", ["group", "AQM", metric], names=2)
        for group, aqm, mean in zip(point.groups, point.aqms, point.means, strict=True):
            means.add_row(group, aqm, f"{mean:.6g}")
        pairs = talk.table("", ["AQM", "against", "difference", "effect g", "test", "correlation", "P (Holm)"], names=2)
        for each in point.comparisons:
            effect, r = (tables.number(x, 2) for x in (each.effect, each.correlation))
            pairs.add_row(each.first, each.second, f"{each.difference:.4g}", effect, each.test, r, f"{each.p_holm:.2g}")
        talk.show(means, pairs, wide=True)
    total = sum(len(point.comparisons) for point in points)
    talk.show(f"\nP-values are corrected for all {total} comparisons. AQMs that share a letter do not differ at 5 %.")
    return 0


@study.command()
@dir_argument
@click.option("--sample", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="Runs to repeat.")
@click.option("--seed", type=int, metavar="N", help="Seed of the choice; default: another sample each time.")
def check(folder: Path, sample: int, seed: int | None) -> int:
    """Repeat a random sample of the runs and compare bit for bit; exit code 1 if any differs."""
    from aqumen.study import Rows
    from aqumen.study.checked import check as repeated

    found = repeated(Rows(folder), sample, seed)
    if not found:
        raise OutputError(f"{folder}: no run is finished, nothing to check")
    wrong = [each for each in found if each.fault]
    for each in wrong:
        print(f"{', '.join(map(str, each.case.labels.values()))}, seed {each.seed}: {each.fault}")
    print(f"{len(found) - len(wrong)} of {len(found)} repeated runs are equal, bit for bit")
    return talk.CHECK_FAILED if wrong else 0


@study.command()
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), metavar="N", help="Seed of the networks.")
@click.option("--freeze", "frozen", type=PATH, metavar="FILE", help="Take the seed of a freeze (`study freeze`).")
@click.option("--count", type=click.IntRange(1, 10_000), default=60, show_default=True, metavar="N", help="Networks.")
@click.option(
    "--family", type=click.Choice(("access", "provider", "datacenter", "any")), default="any", show_default=True,
    help="Their laws and ranges, docs/ranking.md.",
)  # fmt: skip
@click.option(
    "--misinformed", type=click.FloatRange(1, 100), default=1, show_default=True, metavar="X",
    help="Factor by which capacity, flows and round trip that AQMs are told are wrong.",
)  # fmt: skip
@click.option("--out", type=PATH, metavar="DIR", required=True, help="Folder of the scenario files.")
def draw(seed: int | None, frozen: Path | None, count: int, family: str, misinformed: float, out: Path) -> int:
    """Draw networks at random, write them as scenario files, and list them."""
    import tomllib

    from aqumen._files import write_text
    from aqumen.study.drawn import draw as drawn
    from aqumen.study.frozen import read_freeze

    if (seed is None) == (frozen is None):
        raise ScenarioError("give one of --seed and --freeze")
    networks = drawn(family, read_freeze(frozen).seed if seed is None and frozen else seed or 0, count, misinformed)
    known = {f"{each.name}.toml" for each in networks}
    if other := next((each.name for each in sorted(out.glob("*.toml")) if each.name not in known), None):
        raise OutputError(f"{out}: has another scenario, {other}; choose an empty folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}") from None
    for each in networks:
        write_text(out / f"{each.name}.toml", each.text)
        print(f"{each.name}  {tomllib.loads(each.text)['title']}")
    talk.say(f"wrote {count} scenario files into {out}")
    return 0


@study.command()
@aqms_option()
@custom_option
@click.option("--out", type=PATH, metavar="FILE", required=True, help="File of the freeze; none is replaced.")
def freeze(aqm: tuple[str, ...], aqm_from: tuple[str, ...], out: Path) -> int:
    """Fix AQMs before their networks are drawn: digests, date, and the seed for `study draw --freeze`."""
    from aqumen.study.frozen import freeze as frozen_now

    if not aqm and not aqm_from:
        raise ScenarioError("name an AQM: --aqm or --aqm-from")
    made = frozen_now(spec_list(aqm), aqm_from)
    made.write(out)
    print(f"frozen at {made.date}: {', '.join(made.aqms)}; seed of the networks: {made.seed}")
    return 0


@study.command()
@click.argument("folder", type=PATH, metavar="[DIR]", required=False)
@aqms_option(" Default: all that are there.")
@custom_option
@click.option("--seeds", metavar="N", help="Seeds of networks that are scenario files; default: 2.")
@click.option("--against", metavar="SPEC", help="AQM to which ratios refer; default: the first. Decides no order.")
@click.option("--by", metavar="FIGURE", help="Print one figure in order: power, p95, used, short, jain or lost.")
@click.option("--record", metavar="FILE|atlas", help="Take the finished runs of a record; only newcomers run.")
@click.option("--keep", type=PATH, metavar="FILE", help="Write a record of the runs.")
@click.option("--freeze", "frozen", type=PATH, metavar="FILE", help="Check that frozen AQMs met the networks blind.")
@click.option("--out", type=PATH, metavar="DIR", help="Folder of new runs and of the page; default: DIR, or `ranking`.")
@threads_option
@click.option(
    "--format",
    "form",
    type=click.Choice([form for form in FORMATS if form != "parquet"]),
    default="text",
    help="Format of the tables on standard output.",
)
@json_option
def rank(
    folder: Path | None,
    aqm: tuple[str, ...],
    aqm_from: tuple[str, ...],
    seeds: str | None,
    against: str | None,
    by: str | None,
    record: str | None,
    keep: Path | None,
    frozen: Path | None,
    out: Path | None,
    threads: int | None,
    form: str,
    as_json: bool,
) -> int:
    """Rank AQMs over many networks: paired ratios by figure, no overall score.

    DIR holds scenario files (those of `study draw`), which are run, or a finished study. docs/ranking.md defines the
    figures.
    """
    from aqumen.cli.ranking import RankRequest, rank_study

    return rank_study(
        RankRequest(
            folder=folder, aqms=spec_list(aqm), aqm_from=aqm_from, seeds=seeds, against=against, by=by, record=record,
            keep=keep, frozen=frozen, out=out, threads=threads, form=form, as_json=as_json,
        )
    )  # fmt: skip


def run_study(
    loaded: Study,
    out: Path,
    executor: Executor,
    *,
    force: bool = False,
    wide: bool = False,
    as_json: bool = False,
    shard: tuple[int, int] = (1, 1),
    shown: bool = True,
) -> int:
    """Run a study with a progress bar and print its table. Returns the exit code.

    Args:
        loaded: The study.
        out: Folder of the rows.
        executor: Where it runs.
        force: Run even if it is estimated to take hours.
        wide: Print every column.
        as_json: Print the state of each case as JSON.
        shard: Number and count of the part to run.
        shown: Whether to print the table.
    """
    from aqumen.study import Rows
    from aqumen.study.study import status as states

    if not force:
        runs, hours = loaded.check_size(shard)
        if hours > 0.02:
            most = "at most " if loaded.definition.stop is not None else ""
            talk.say(f"{most}{runs} runs, about {talk.about(hours * 3600)} of CPU time")
    if not run_missing(loaded, out, executor, shard):
        return talk.INTERRUPTED
    rows = Rows(out)
    if not shown:
        talk.say(f"finished part {shard[0]} of {shard[1]}")
        return 0
    found = list(states(rows))
    if as_json:
        print(json_text([_status(each) for each in found], indent=2))
    else:
        talk.show(*study_tables(rows), *_not_reached(rows, found), wide=wide)
    return 0


def study_tables(rows: Rows, whole: bool = False) -> list[Table | str]:
    """Format a study as a table: a row for each case, means with the half-width of their 95 % interval.

    Args:
        rows: Rows of the study.
        whole: Show all cases and all metrics that the stopping rule names.
    """
    from aqumen import _core

    columns = rows.columns()
    stop = () if rows.stop is None else ((rows.stop["metric"], rows.stop["metric"], 1, 4),)
    shown = [each for each in (*stop, *HEADLINE) if each[0] in columns]
    if stop:
        shown = [each for each in shown if each in stop or each[0] != stop[0][0]]
    where: dict[tuple[Any, ...], list[int]] = {}
    for k in range(len(rows)):
        where.setdefault(tuple(_text(columns[name][k]) for name in rows.labels), []).append(k)
    cells = []
    for labels, runs in where.items():
        spreads = []
        for key, _, factor, digits in shown:
            values = [None if x != x else float(x) for x in columns[key][runs]]
            spreads.append(tables.spread(summarize(values, _core.range_of(key)), factor, digits))
        cells.append([*labels, str(len(runs)), *spreads])
    heads = [*rows.labels, "runs", *(head for _, head, _, _ in shown)]
    kept = cells if whole else cells[:CASES_MAX]
    title = f"{rows.title or rows.folder.name}: {len(rows)} runs, means and 95 % intervals"
    return [talk.filled(title, heads, kept, names=len(rows.labels)), *(() if whole else _cut(len(cells)))]


def _checked(file: Path) -> Study:
    """Return the study of a file, checked with a progress bar: each point takes about half a millisecond."""
    from aqumen.study import Study

    with talk.progress() as bar:
        task = bar.add_task("checking", total=1.0, done="")
        return Study.load(
            file,
            lambda done, total: bar.update(task, total=total, completed=done, done=f"{done} of {total} points"),
        )


def _executor(on: str, threads: int | None) -> Executor:
    from aqumen.study.executors import Threads

    if on == "threads":
        return Threads(threads)
    kind, _, address = on.partition(":")
    if kind != "dask" or not address:
        raise ScenarioError(f"--on {on}: choose threads, dask:local, or an address such as dask:tcp://host:8786")
    if threads is not None:
        raise ScenarioError("--threads applies to threads of this machine; Dask's workers have one each")
    from aqumen.study.on_dask import Dask

    return Dask(address)


def _most(loaded: Study) -> float:
    stop = loaded.definition.stop
    return 1.0 if stop is None else stop.most / stop.least


def _not_reached(rows: Rows, found: Sequence[Status]) -> list[Table | str]:
    """Table of the cases in which the stopping rule gave up."""
    missed = [each for each in found if each.closed and each.reached is False]
    if not missed or rows.stop is None:
        return []
    width = f"{rows.stop['relative'] * 100:g} % of the mean" if rows.stop["relative"] else f"{rows.stop['absolute']:g}"
    table = talk.table(
        f"\nNot reached: the 95 % interval of {rows.stop['metric']} within {width}",
        [*rows.labels, "runs", "mean", "half-width"],
        names=len(rows.labels),
    )
    for each in missed[:CASES_MAX]:
        numbers = ("–" if x is None else f"{x:.4g}" for x in (each.mean, each.half_width))
        table.add_row(*_labels(rows, each.case.labels), str(each.seeds), *numbers)
    return [table, *_cut(len(missed))]


def _cut(count: int) -> list[str]:
    return (
        [f"... and {count - CASES_MAX} more; `aqumen study query` and `export` give all."] if count > CASES_MAX else []
    )


def _labels(rows: Rows, labels: Any) -> list[str]:
    return [_text(labels.get(name)) for name in rows.labels]


def _text(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _status(each: Status) -> dict[str, Any]:
    return {
        "labels": dict(each.case.labels), "runs": each.seeds, "wanted": each.wanted, "complete": each.closed,
        "reached": each.reached, "mean": each.mean, "half_width": each.half_width,
    }  # fmt: skip


def _is_number(found: Sequence[tuple[Any, ...]], k: int) -> bool:
    return bool(found) and all(row[k] is None or isinstance(row[k], (int, float)) for row in found)
