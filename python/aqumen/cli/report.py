"""`aqumen report`: the page of kept runs, made again without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from aqumen._files import write_text
from aqumen._kept import PAGE, RunsPage, read_page
from aqumen.cli import talk
from aqumen.cli.options import PATH, theory_option
from aqumen.errors import OutputError, ScenarioError
from aqumen.study.rows import MANIFEST

__all__ = ["report"]


@click.command()
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--page", "file", type=PATH, metavar="FILE", help="Page to write; default: DIR/report.html.")
@click.option(
    "--metric",
    multiple=True,
    metavar="METRIC",
    help="Column of a study that its page has first, such as queue_mean_pkts@all; may be repeated.",
)
@theory_option
def report(folder: Path, file: Path | None, metric: tuple[str, ...], theory: bool) -> int:
    """Make the page of kept runs again, from the folder of a study or of --out.

    DIR is the folder of run, compare, reproduce or a study. Nothing is run; runs that the folder lacks are named.
    """
    if not folder.is_dir():
        raise OutputError(f"{folder}: no such folder; name one that a command wrote with --out")
    target = file or folder / "report.html"
    page = read_page(folder)
    if page is None and (folder / MANIFEST).exists():
        from aqumen.study import Rows
        from aqumen.study.page import study_html

        if theory:
            raise ScenarioError("--theory applies to runs on one scenario; a study has many")
        write_text(target, study_html(Rows(folder), metric))
        talk.say(f"wrote {target}")
        return 0
    if metric:
        raise ScenarioError("--metric applies to the page of a study; other pages have all metrics")
    if page is None:
        inside = sorted(path.parent.name for path in folder.glob(f"*/{PAGE}"))
        if inside:
            raise OutputError(f"{folder}: holds pages of several networks: name one of {', '.join(inside)} in it")
        raise OutputError(f"{folder}: holds no {PAGE}; run, compare or reproduce with --out writes it")
    if page["kind"] == "runs":
        _runs_page(folder, page, target, theory)
    elif page["kind"] in ("papers", "rfc7928"):
        from aqumen.cli.reproduce import page_again

        write_text(target, page_again(folder, page))
    else:
        raise OutputError(f"{folder / PAGE}: unknown kind of page `{page['kind']}`; another version wrote it")
    talk.say(f"wrote {target}")
    return 0


def _runs_page(folder: Path, given: dict[str, Any], target: Path, theory: bool) -> None:
    """Write the page of runs on one scenario."""
    from aqumen.comparison import Comparison
    from aqumen.result import Result

    page = RunsPage.of(given, folder)
    found, bare = page.answers(folder)
    if not found:
        why = "kept with --series none; a page needs sampled or all" if bare else "no longer kept, or damaged"
        raise OutputError(f"{folder}: its runs are {why}")
    missing = len(page.runs) - len(found) - bare
    for count, why in ((missing, "are not kept, or damaged"), (bare, "were kept with --series none")):
        if count:
            talk.say(f"{count} of {len(page.runs)} runs {why}; the page is without them")
    several = len({run.engine for run in page.runs}) > 1
    results = [Result(answer, run.spec, f"{run.spec} ({run.engine})" if several else None) for run, answer in found]
    comparison = Comparison(page.scenario, results, wanted=page.wanted, resumed=len(results), rank_by=page.rank_by)
    comparison.write_report(target, page.command, theory=theory or page.theory)
