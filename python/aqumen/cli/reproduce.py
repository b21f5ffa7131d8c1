"""`aqumen reproduce`: a paper's experiments and claims, or the evaluation of RFC 7928."""

from __future__ import annotations

import csv
import io
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import _experiments
from aqumen._files import laid_out, write_text
from aqumen._kept import write_page
from aqumen._records import Records
from aqumen.cli import talk
from aqumen.cli.options import TARGET, figures_option, format_option, json_option, out_option, series_option, spec_list
from aqumen.comparison import seed_list
from aqumen.errors import OutputError, ScenarioError
from aqumen.papers.figures import write_paper_figures
from aqumen.papers.markdown import page as markdown_page
from aqumen.papers.model import load_paper
from aqumen.papers.page import report_html
from aqumen.papers.study import COLUMNS, QUICK_SEEDS, SEEDS, Outcome, Reproduction, record_text, to_dict
from aqumen.ranking.targets import at_target
from aqumen.rfc7928 import evaluation, requirements
from aqumen.rfc7928 import page as evaluation_page
from aqumen.rfc7928.margins import margins
from aqumen.view import tables
from aqumen.view.export import check_parquet, rows_parquet, written

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["page_again", "reproduce"]

CLAIM_KEYS = (
    *("paper", "id", "where", "kind", "quantity", "claimed"),
    *("verdict", "headline", "provisional", "recorded", "reason", "why", "shown_by"),
)
"""Columns of a claim in CSV and Parquet."""


@click.command()
@click.argument("paper", metavar="PAPER|all|rfc7928")
@click.option(
    "--aqm",
    multiple=True,
    metavar="SPEC",
    help="With rfc7928: an AQM to evaluate; may be repeated.",
)
@click.option(
    "--target",
    type=TARGET,
    metavar="LENGTH",
    help="With rfc7928: also run each AQM with this target: packets (50pkt), or a delay (20ms).",
)
@click.option("--quick", is_flag=True, help="Use three seeds, leave out slow experiments; verdicts are provisional.")
@click.option(
    "--seeds", type=int, metavar="N", help="Number of seeds; default: as recorded (10 without a record), 3 if quick."
)
@out_option
@series_option(
    "sampled",
    "Series of queue and probability in the papers' runs of --out, of the first seed: all, sampled (500 points), none.",
)
@figures_option
@format_option
@json_option
@click.option(
    "--record",
    is_flag=True,
    help="Record the verdicts in this checkout.",
)
def reproduce(
    paper: str,
    aqm: tuple[str, ...],
    target: str | None,
    quick: bool,
    seeds: int | None,
    out: Path | None,
    series: str,
    figures: Path | None,
    form: str,
    as_json: bool,
    record: bool,
) -> int:
    """Reproduce a paper: run its experiments, judge its claims, compare with the recorded verdicts.

    With --out, a report and every finished run are written; finished runs in that folder are reused. The exit code is
    1 if a verdict differs from the record. The verdicts of a quick run are provisional and stand beside the record.

    rfc7928 characterises the given AQMs and DropTail by RFC 7928. `aqumen study rank` ranks AQMs over many networks.
    """
    if form == "parquet" and not as_json:
        check_parquet(sys.stdout.isatty())
    if paper == "rfc7928":
        if figures is not None:
            raise OutputError("--figures applies to papers only; the report of rfc7928 contains its figures")
        specs = spec_list(aqm) or ["codel", "pie"]
        if target is not None:
            also = [at_target(spec, target) for spec in specs]
            for spec in (spec for spec, other in zip(specs, also, strict=True) if other is None):
                talk.say(f"{spec}: has no target in this unit to change; it runs as it is")
            specs = list(dict.fromkeys([*specs, *(spec for spec in also if spec is not None)]))
        return _evaluate(specs, quick, seeds, out, form, as_json)
    if target is not None:
        raise ScenarioError("--target applies to rfc7928 only; a paper's claims name their AQMs")
    if paper == "ranking":
        raise ScenarioError("a ranking over many networks is `aqumen study rank --record atlas` now")
    if aqm:
        raise ScenarioError("--aqm applies to rfc7928 only; a paper's claims name their AQMs")
    if record and _experiments.folder() is None:
        raise OutputError("--record needs a checkout of Aqumen with its folder `experiments`")
    study = Reproduction([paper], seeds, quick=quick, out=out, series=series)
    records = study.records
    if not _work(study.records, out):
        return talk.INTERRUPTED
    outcomes = study.outcomes()
    data = to_dict(outcomes)
    if out is not None:
        write_text(out / "reproduce.json", laid_out(data))
        write_text(out / "report.html", report_html(outcomes, records, talk.command()))
        write_text(out / "claims.csv", _csv(data))
        asked = {"paper": paper, "seeds": seeds, "quick": quick, "series": series}
        write_page(out, {"kind": "papers", "command": talk.command(), **asked})
        talk.say(f"wrote {out / 'report.html'}")
    if figures is not None:
        made = write_paper_figures(outcomes, records, figures, talk.command())
        talk.say(f"wrote {len(made)} files into {figures}")
    if record:
        _record(outcomes)
    match "json" if as_json else form:
        case "json":
            print(laid_out(data), end="")
        case "csv":
            print(_csv(data), end="")
        case "parquet":
            sys.stdout.buffer.write(rows_parquet(data["claims"], CLAIM_KEYS))
        case "text":
            talk.show(*_tables(outcomes))
        case _:
            print(written(_tables(outcomes), form), end="")
    return talk.CHECK_FAILED if data["differing"] and not record else 0


def _work(records: Records, out: Path | None) -> bool:
    """Run the missing runs with a progress bar. Returns whether all are done."""
    if records.resumed:
        talk.say(
            f"{records.resumed} of {records.resumed + records.left} runs are already in {out} and are not repeated"
        )
    total, whole, runs = records.work_left, records.left, 0
    with talk.progress() as bar:
        task = bar.add_task("running", total=total, done=f"0 of {whole} runs")

        def advance(cell: str, spec: str, seed: int, cost: float) -> bool:
            nonlocal runs
            runs += 1
            name = f"{cell} {spec} {seed}"[:48]
            bar.update(task, advance=cost, done=f"{runs} of {whole} runs", description=name)
            return True

        try:
            records.work(advance)
        except KeyboardInterrupt:
            again = "; repeat the command to continue" if out is not None else ""
            talk.say(f"stopped after {runs} of {whole} runs{again}")
            return False
    return True


def _evaluate(aqms: list[str], quick: bool, seeds: int | None, out: Path | None, form: str, as_json: bool) -> int:
    """Run the evaluation of RFC 7928: tables by section, delay against goodput, no verdicts."""
    numbers = seed_list(seeds if seeds is not None else QUICK_SEEDS if quick else SEEDS)
    records = _evaluation_records(aqms, numbers, quick, out)
    if not _work(records, out):
        return talk.INTERRUPTED
    data = _evaluation(records, aqms, quick)
    table, spent, safe, stability = data["rows"], data["costs"], data["safe_ranges"], data["margins"]
    if out is not None:
        write_text(out / "rfc7928.json", laid_out(data))
        write_text(out / "report.html", _evaluation_page(data, aqms, talk.command()))
        for aqm in aqms:
            mine = {section.number: section.specs([aqm]) for section in evaluation.sections()}
            own = [row for row in table if row["aqm"] in mine[row["section"]]]
            name = re.sub(r"[^A-Za-z0-9.=-]+", "_", aqm)
            write_text(out / f"{name}.html", _evaluation_page({**data, "rows": own}, [aqm], talk.command()))
        asked = {"aqms": aqms, "seeds": len(numbers), "quick": quick}
        write_page(out, {"kind": "rfc7928", "command": talk.command(), **asked})
        talk.say(f"wrote {out / 'report.html'} and a page for each AQM")
    if as_json:
        print(laid_out(data), end="")
        return 0
    shown_tables = []
    for section in evaluation.sections():
        own = [row for row in table if row["section"] == section.number]
        if not own:
            continue
        shown = [m for m in evaluation.MEASURES if any(row["measured"][m[0]]["n"] for row in own)]
        heads = ["cell, window", "AQM", *(f"{title}\n{unit}" for _, title, unit, _, _ in shown)]
        made = talk.table(f"\n{section.number} {section.title}", heads)
        made.columns[1].justify = "left"
        for row in own:
            means = [(row["measured"][key]["mean"], factor, digits) for key, _, _, factor, digits in shown]
            cells = [tables.number(None if mean is None else mean * factor, digits) for mean, factor, digits in means]
            made.add_row(f"{row['cell'].partition('/')[2]}, {row['window']}", row["aqm"], *cells)
        shown_tables.append(made)
        if section.number == "8.3":
            shown_tables.append(_margins_table(stability))
    made = talk.table("\n11 cost", ["AQM", "per packet\nns", "above DropTail\nns", "memory\nkB", "per flow\nbytes"])
    for aqm, cost in spent.items():
        times = [tables.number(cost[key]["mean"], 0) for key in ("packet_ns", "above_reference_ns")]
        memory = cost["memory_bytes"]
        held = tables.number(None if memory is None else memory / 1000, 1)
        made.add_row(aqm, *times, held, tables.number(cost["flow_bytes"], 0))
    shown_tables.append(made)
    for aqm, turned in safe.items():
        made = talk.table(f"\n12 {aqm}: each parameter varied alone", ["parameter", "unit", "default", "from", "to"])
        for knob in turned:
            ends = (f"{knob[end]:.5g}{'…' if knob[f'{end}_is_end'] else ''}" for end in ("low", "high"))
            made.add_row(knob["knob"], knob["unit"], f"{knob['default']:.5g}", *ends)
        shown_tables.append(made)
    shown_tables.append(_requirements_table(data["requirements"]))
    match form:
        case "text":
            talk.show(*shown_tables)
        case "parquet":
            keys = [key for key, *_ in evaluation.MEASURES]
            flat = [{**row, **{key: row["measured"][key]["mean"] for key in keys}} for row in table]
            sys.stdout.buffer.write(rows_parquet(flat, ["section", "cell", "window", "aqm"], keys))
        case _:
            print(written(shown_tables, form), end="")
    return 0


def _evaluation_records(aqms: list[str], seeds: list[int], quick: bool, out: Path | None) -> Records:
    return Records(evaluation.wanted(aqms, quick), seeds, out, prepare=lambda _, scenario: evaluation.sampled(scenario))


def _evaluation(records: Records, aqms: list[str], quick: bool) -> dict[str, Any]:
    """Return the evaluation of RFC 7928 as `--json` prints it."""
    table = evaluation.rows(records, aqms)
    data = {"schema": 1, "seeds": len(records.seeds), "aqms": aqms, "reference": evaluation.REFERENCE, "rows": table}
    data["standing"] = evaluation.standing(table)
    data["costs"] = evaluation.costs(records, aqms)
    data["knobs"] = evaluation.knobs(aqms)
    data["safe_ranges"] = evaluation.safe_ranges(records, aqms, quick)
    data["margins"] = margins(aqms)
    data["requirements"] = requirements.shown([*(row["section"] for row in table), "11", "12"])
    return data


def _evaluation_page(data: dict[str, Any], aqms: list[str], command: str) -> str:
    parts = (data["costs"], data["safe_ranges"], data["margins"])
    return evaluation_page.page(data["rows"], aqms, data["seeds"], command, *parts)


def page_again(folder: Path, page: dict[str, Any]) -> str:
    """Return the page of a folder of `reproduce`, without running anything.

    Args:
        folder: Folder of the records.
        page: Object of its `page.json`.

    Raises:
        OutputError: The folder lacks all runs, or any that the page of RFC 7928 needs.
    """
    try:
        if page["kind"] == "papers":
            asked = {"quick": page["quick"], "series": page["series"]}
            study = Reproduction([page["paper"]], page["seeds"], **asked, out=folder)
            _check_kept(study.records, folder)
            return report_html(study.outcomes(), study.records, page["command"])
        aqms, quick = list(page["aqms"]), bool(page["quick"])
        records = _evaluation_records(aqms, seed_list(page["seeds"]), quick, folder)
        _check_kept(records, folder, all_of_them=True)
        return _evaluation_page(_evaluation(records, aqms, quick), aqms, page["command"])
    except (KeyError, TypeError) as error:
        raise OutputError(f"{folder}: its page.json is incomplete ({error})") from None


def _check_kept(records: Records, folder: Path, all_of_them: bool = False) -> None:
    """Name missing runs; refuse a page without any, or with gaps where it needs all."""
    wanted = records.resumed + records.left
    if not records.resumed or (records.left and all_of_them):
        raise OutputError(
            f"{folder}: {records.left} of {wanted} runs are not kept, or another version made them; the command of "
            "the page makes them"
        )
    if records.left:
        talk.say(
            f"{records.left} of {wanted} runs are not kept, or another version made them; the page is without them"
        )


def _margins_table(stability: list[dict[str, Any]]) -> Table:
    """Return the table of stability margins of section 8.3."""
    heads = ["AQM", "congestion", "phase margin\ndegrees", "gain margin", "delay margin\nms", "stable"]
    made = talk.table("\n8.3 stability margins, from the design", heads)
    made.columns[1].justify = made.columns[5].justify = "left"
    words = {None: "no linear law", True: "yes", False: "no"}
    for row in stability:
        delay = row["delay_margin_s"]
        cells = ((row["phase_margin_deg"], 1), (row["gain_margin"], 2), (None if delay is None else delay * 1e3, 1))
        figures = (tables.number(value, digits) for value, digits in cells)
        made.add_row(row["aqm"], row["level"], *figures, words[row["stable"]])
    return made


def _requirements_table(found: list[dict[str, Any]]) -> Table:
    """Return the table of section 13."""
    made = talk.table("\n13 requirements", ["scenario", "section", "requirement", "shown in"])
    for column in made.columns[1:]:
        column.justify = "left"
    for one in found:
        made.add_row(one["subject"], one["number"], one["level"], ", ".join(one["sections"]) or "not shown")
    return made


def _record(outcomes: list[Outcome]) -> None:
    folder = _experiments.folder()
    assert folder is not None
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    for outcome in outcomes:
        path = folder / outcome.paper.name / "verdicts.toml"
        quick = " --quick" if outcome.quick else ""
        command = f"aqumen reproduce {outcome.paper.name}{quick} --seeds {outcome.seeds}"
        write_text(path, record_text(outcome, command, day))
        talk.say(f"wrote {path}")
    path = folder.parent / "docs" / "reproduction.md"
    known = [name for name in _experiments.PAPERS if _experiments.data(f"{name}/claims") is not None]
    write_text(path, markdown_page([load_paper(name) for name in known]))
    talk.say(f"wrote {path}")


def _csv(data: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, CLAIM_KEYS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(data["claims"])
    return text.getvalue()


def _tables(outcomes: list[Outcome]) -> list[Table | str]:
    """Return a row for each claim, then the counts by paper."""
    shown: list[Table | str] = []
    for outcome in outcomes:
        readings = list(outcome.paper.readings)
        heads = ["claim", "where", "claimed", *readings, "verdict", "measured"]
        made = talk.table(f"\n{outcome.paper.title}", heads, figures=False)
        for each in outcome.judgements:
            claim = each.claim
            states = [str(each.readings[name]) if each.depends(name) else "–" for name in readings]
            claimed = f"{claim.quantity}: {claim.claimed}"
            made.add_row(claim.id, claim.where, claimed, *states, outcome.told(each), each.reason)
        shown.append(made)
        if outcome.paper.summary:
            shown.append(outcome.paper.summary)
    counts = talk.table("\nVerdicts", ["paper", *COLUMNS])
    for outcome in outcomes:
        found = outcome.counts()
        counts.add_row(outcome.paper.name, *(str(found.get(name, 0)) for name in COLUMNS))
    shown.append(counts)
    judged = sum(outcome.agreement()[0] for outcome in outcomes)
    others = [each.claim.id for outcome in outcomes for each in outcome.agreement()[1]]
    if judged:
        shown.append(
            f"{judged} verdicts are provisional, from fewer seeds than the record has; "
            f"{judged - len(others)} agree with it" + (f". Others: {', '.join(others)}" if others else ".")
        )
    differing = [each for outcome in outcomes for each in outcome.differing()]
    if differing:
        shown.append(
            f"{len(differing)} verdicts differ from the record: {', '.join(each.claim.id for each in differing)}"
        )
    elif not all(outcome.paper.recorded for outcome in outcomes):
        shown.append("No verdicts are on record for some of these papers.")
    elif not judged:
        shown.append("All verdicts agree with the record.")
    return shown
