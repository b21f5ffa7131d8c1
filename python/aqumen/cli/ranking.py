"""`aqumen study rank`: which runs it needs, and what it prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aqumen import _core
from aqumen._files import laid_out, write_text
from aqumen.cli import talk
from aqumen.cli.missing_runs import run_missing
from aqumen.errors import OutputError, ScenarioError, listed, meant
from aqumen.view.export import written

if TYPE_CHECKING:
    from rich.table import Table

    from aqumen.study.record import Record

__all__ = ["RankRequest", "rank_study"]

SEEDS = "2"
LETTERS_MAX = 5
"""Longest letters of a group on a terminal."""
PIE_BYTES = (("aqms.pie-bytes.algorithm", "pie"), ("aqms.pie-bytes.bytemode", "true"))
"""Profile of every ranked network: PIE that spares small packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRequest:
    """Arguments of the command."""

    folder: Path | None
    """Folder of scenario files or of a study."""
    aqms: list[str]
    """AQMs to rank; all if empty."""
    aqm_from: tuple[str, ...]
    """Custom AQMs, each as FILE:CLASS."""
    seeds: str | None
    """Seeds of scenario files."""
    against: str | None
    """Reference of ratios."""
    by: str | None
    """The one figure to print."""
    record: str | None
    """File of a record, or `atlas`."""
    keep: Path | None
    """Record to write."""
    frozen: Path | None
    """Freeze to check."""
    out: Path | None
    """Folder of runs and page."""
    threads: int | None
    """Concurrent runs."""
    form: str
    """Format of the tables."""
    as_json: bool
    """Print JSON."""


def rank_study(asked: RankRequest) -> int:
    """Run what is missing and print the ranking. Returns the exit code.

    Args:
        asked: Arguments of the command.
    """
    from dataclasses import asdict

    from aqumen.study.figures import FIGURES
    from aqumen.study.ranked import rank_networks
    from aqumen.study.ranked_page import overview, ranked_html, table

    if (asked.folder is None) == (asked.record is None):
        raise ScenarioError("give one of DIR and --record")
    if asked.by is not None and asked.by not in FIGURES:
        raise ScenarioError(f"--by {asked.by}{meant(asked.by, FIGURES) or ':'} choose from: {listed(FIGURES)}")
    out = asked.out or asked.folder or Path("ranking")
    notes: list[str] = []
    found = _record(asked, out, notes)
    if found is None:
        return talk.INTERRUPTED
    values = found.values
    custom = [name for name in values.aqms if name in _custom_names(asked.aqm_from)]
    wanted = list(dict.fromkeys([*(asked.aqms or values.aqms), *custom]))
    if missing := [aqm for aqm in wanted if aqm not in values.aqms]:
        raise ScenarioError(f"{', '.join(missing)}: has no finished run there")
    if len(wanted) < 2:
        raise ScenarioError("a ranking needs two AQMs or more")
    if asked.keep is not None:
        found.write(asked.keep)
        talk.say(f"wrote {asked.keep}")
    values = values.of(wanted)
    rankings = [rank_networks(values, figure, asked.against) for figure in FIGURES]
    notes.insert(0, f"{len(wanted)} AQMs, {len(values.networks)} networks, {len(values.seeds)} seeds.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot write to {out}: {error.strerror}") from None
    write_text(out / "ranking.html", ranked_html(rankings, wanted, found.title or "Ranking", notes, talk.command()))
    talk.say(f"wrote {out / 'ranking.html'}")
    if asked.as_json:
        print(laid_out({"schema": 1, "notes": notes, "figures": [asdict(each) for each in rankings]}), end="")
        return 0
    if asked.by is None:
        heads, rows = overview(rankings, wanted)
        shown = talk.filled(f"Ratio to {rankings[0].reference}; of losses percentage points", heads, rows)
        counted = ", ".join(f"{each.figure.title} {each.networks}" for each in rankings)
        last = f"A star: differs from it. Networks that count: {counted}. --by FIGURE prints one in order."
        _show([*notes, shown, last], asked.form)
        return 0
    ranked = next(each for each in rankings if each.figure.key == asked.by)
    begin = _beginning(values.networks)
    heads, rows = table(ranked, begin)
    short = [[*row[:3], row[3] if len(row[3]) <= LETTERS_MAX else f"{row[3][:LETTERS_MAX]}…", *row[4:]] for row in rows]
    title = f"{ranked.figure.title}, ratio to {ranked.reference}: {ranked.figure.words}"
    left = f"{ranked.networks} networks count; {ranked.left_out} are left out, where it is undefined for an AQM."
    named = f"Names of networks begin with {begin}; # is the seed." if begin else "# is the seed."
    _show([*notes, talk.filled(title, heads, short), f"{left} {named}"], asked.form)
    return 0


def _show(items: Sequence[Table | str], form: str) -> None:
    """Print tables and lines."""
    if form == "text":
        talk.show(*items)
    else:
        print(written(items, form), end="")


def _beginning(names: Sequence[str]) -> str:
    """Return what all names begin with, up to their numbers."""
    begin = names[0]
    while not all(name.startswith(begin) for name in names):
        begin = begin[:-1]
    return begin.rstrip("0123456789")


def _custom_names(aqm_from: tuple[str, ...]) -> set[str]:
    from aqumen.custom import from_file, name_of

    return {name_of(from_file(each)) for each in aqm_from}


def _record(asked: RankRequest, out: Path, notes: list[str]) -> Record | None:
    """Return all runs, of which it runs those that are missing; `None` if interrupted."""
    from aqumen.study import Rows, Study
    from aqumen.study.definition import Definition, seeds_of
    from aqumen.study.executors import Threads
    from aqumen.study.frozen import read_freeze, unlike
    from aqumen.study.record import newcomers, read_record, record_of, shipped_record

    files = sorted(asked.folder.glob("*.toml")) if asked.folder is not None else []
    if asked.frozen is not None:
        frozen = read_freeze(asked.frozen)
        texts = {path.stem: path.read_text(encoding="utf-8") for path in files}
        if faults := unlike(frozen, asked.aqm_from, texts):
            raise OutputError(f"{asked.frozen}: {'; '.join(faults[:3])}")
        notes.append(f"Blind: {', '.join(frozen.aqms)} were frozen at {frozen.date}, before the networks were drawn.")
    if files:
        aqms = asked.aqms or [*(row["name"] for row in _core.list_aqms() if row["name"] != "fixed"), "pie-bytes"]
        seeds = tuple(seeds_of(asked.seeds or SEEDS))
        study = Study.of(
            Definition(
                scenarios=tuple(map(str, files)), aqms=tuple(aqms), aqm_from=asked.aqm_from, seeds=seeds,
                changes=PIE_BYTES, refused="skip", title="Ranking over networks",
            )
        )  # fmt: skip
        return record_of(Rows(out)) if run_missing(study, out, Threads(asked.threads)) else None
    if asked.seeds is not None:
        raise ScenarioError("--seeds applies to scenario files; finished runs have their seeds")
    if asked.folder is not None:
        base = record_of(Rows(asked.folder))
    else:
        base = read_record(shipped_record() if asked.record == "atlas" else Path(str(asked.record)))
        _check_engine(base, notes)
    new = [aqm for aqm in asked.aqms if aqm not in base.values.aqms and aqm not in _custom_names(asked.aqm_from)]
    if not new and not asked.aqm_from:
        return base
    if out == asked.folder:
        raise ScenarioError("--out is missing; name a folder for the runs of new AQMs")
    study = newcomers(base, out, new, asked.aqm_from)
    if not run_missing(study, out, Threads(asked.threads)):
        return None
    import dataclasses

    return dataclasses.replace(base, values=base.values.beside(record_of(Rows(out)).values))


def _check_engine(base: Record, notes: list[str]) -> None:
    """Refuse a record of an engine that gives other results than this one; say where another engine made it."""
    from aqumen._store import built
    from aqumen.study.record import SAMPLE, differing_runs

    now = built("packet")
    if base.sources == now:
        return
    other = f"the record was made by another engine ({base.sources[:8] or 'unknown'}, this is {now[:8]})"
    talk.say(f"{other}: repeating {SAMPLE} of its runs")
    if differing := differing_runs(base):
        raise OutputError(
            f"{other}, which gives other results ({len(differing)} of {SAMPLE} repeated runs differ: "
            f"{'; '.join(differing[:2])}); make it anew from its study"
        )
    notes.append(f"The record was made by another engine; {SAMPLE} of its runs were repeated and are equal.")
