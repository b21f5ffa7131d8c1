"""`aqumen validate`: the packet engine compared with ns-2, ns-3 or the kernel, or with the test vectors."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import engines
from aqumen._experiments import folder
from aqumen._files import laid_out
from aqumen.cli import talk
from aqumen.cli.options import OUT, json_option
from aqumen.comparison import Gathering, seed_list
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.engines.external.crosscheck import Cell, Row

__all__ = ["validate"]


MORE = 4
"""Factor on the seeds with which an undecided cell is repeated. If the packet engine has more seeds than the other
simulator anyway, a cell that is still undecided is repeated with the square of this factor."""


class Yardstick(StrEnum):
    """References of a validation."""

    ns2 = "ns2"
    ns3 = "ns3"
    vectors = "vectors"
    live = "live"


SEEDS = {Yardstick.live: 3}
"""Seeds of the reference where the default of 20 does not apply: the kernel runs in real time."""


@click.command()
@click.argument("yardstick", type=click.Choice(Yardstick), metavar="|".join(Yardstick))
@click.option(
    "--seeds",
    type=int,
    default=None,
    metavar="N",
    help="Seeds of the reference: 1 to N, at least 2; default 20, for live 3.",
)
@click.option("--cell", multiple=True, metavar="NAME", help="Only this experiment or EXPERIMENT/AQM; may be repeated.")
@click.option("--list", "only_list", is_flag=True, help="Print the names of the cells without running them.")
@click.option(
    "--drawn",
    type=(int, int),
    metavar="SEED N",
    help="With ns3: N random cells drawn with SEED, in place of the listed ones.",
)
@click.option(
    "--out",
    type=OUT,
    metavar="DIR",
    help="With ns2 or ns3: keep finished runs in DIR and reuse them.",
)
@json_option
def validate(
    yardstick: Yardstick,
    seeds: int | None,
    cell: tuple[str, ...],
    only_list: bool,
    drawn: tuple[int, int] | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Compare the packet engine with ns-2, ns-3 or the kernel (live), or run the test vectors.

    The exit code is 1 if a metric is not within its bound. After Ctrl-C the finished cells are printed.
    """
    if out is not None and yardstick not in (Yardstick.ns2, Yardstick.ns3):
        raise ScenarioError(f"--out {out}: only ns2 and ns3 keep runs")
    if yardstick is Yardstick.vectors:
        return _vectors(as_json)
    if only_list:
        names = [one.name for one in _cells(yardstick)]
        print(laid_out(names) if as_json else "".join(f"{name}\n" for name in names), end="")
        return 0
    seeds = SEEDS.get(yardstick, 20) if seeds is None else seeds
    if seeds < 2:
        raise ScenarioError(f"--seeds {seeds}: must be at least 2")
    seed_list(seeds)  # raises for implausibly many
    from aqumen.engines.external import crosscheck

    peer = yardstick.value
    engines.check_engine(peer)
    experiments = folder()
    if experiments is None:
        raise ScenarioError(
            f"validate {peer}: needs a checkout of Aqumen, since an installed package lacks the networks; "
            f"a single scenario runs with --engine {peer}"
        )
    if yardstick is Yardstick.live:
        return _live(experiments.parent / "validation", seeds, cell, as_json)
    check = _check(yardstick)
    base = experiments.parent / check.FOLDER
    cells = _cells(yardstick)
    if drawn is not None:
        if not hasattr(check, "drawn") or drawn[1] < 1 or drawn[0] < 0:
            raise ScenarioError(f"--drawn {drawn[0]} {drawn[1]}: needs ns3, a seed from 0 and at least 1 cell")
        cells = check.drawn(*drawn)
    cells = crosscheck.select(cells, cell, f"aqumen validate {peer} --list")
    bounds, ours = check.METRICS, check.OURS
    rows: list[Row] = []
    done: list[Cell] = []
    code = 0
    with talk.progress() as bar:
        task = bar.add_task("running", total=(1 + ours) * sum(one.seeds for one in cells) * seeds, done="")

        def of(engine: str, cell: Cell, which: Sequence[int]) -> Sequence[Mapping[str, Any]]:
            bar.update(task, description=f"{cell.name}, {engine}, {len(which)} seeds")
            return _runs(base, cell, engine, which, lambda: bar.advance(task), out)

        found = crosscheck.validate(
            cells,
            seeds,
            lambda cell, which: of("packet", cell, range(1, ours * len(which) + 1)),
            lambda cell, which: of(peer, cell, which),
            windows=check.WINDOWS,
            bounds=bounds,
            more=(MORE,) if ours == 1 else (MORE, MORE * MORE),
            # Runs of the other simulator are expensive: no more than the test needs.
            planned=ours > 1,
        )
        try:
            for one, its_rows in zip(cells, found, strict=True):
                done.append(one)
                rows += its_rows
                outside = [row.verdict for row in its_rows if row.verdict != "equivalent"]
                verdict = ", ".join(outside) if outside else "equivalent"
                talk.say(f"{one.name}, {its_rows[0].theirs_n} seeds: {verdict} ({len(done)}/{len(cells)})")
        except KeyboardInterrupt:
            code = talk.INTERRUPTED
    if code:
        rest = " ".join(f"--cell {shlex.quote(one.name)}" for one in cells[len(done) :])
        talk.say(f"stopped after {len(done)} of {len(cells)} cells; for the rest: {rest}")
    if as_json:
        print(laid_out(crosscheck.report(rows, peer, bounds)), end="")
    else:
        print(crosscheck.table(rows, engines.find(peer).title), end="")
    return code or (0 if all(row.verdict == "equivalent" for row in rows) else talk.CHECK_FAILED)


def _cells(yardstick: Yardstick) -> list[Cell]:
    """Return the cells to compare: experiments, each with an AQM."""
    return list(_check(yardstick).CELLS)


def _check(yardstick: Yardstick) -> Any:
    """Return the module of a reference's cells: `CELLS`, `METRICS`, `WINDOWS`, `FOLDER`, `OURS`."""
    return import_module(f"aqumen.engines.external.{yardstick.value}.crosscheck")


def _live(base: Path, repeats: int, wanted: tuple[str, ...], as_json: bool) -> int:
    """Compare the packet engine with the kernel's TCP, in real time."""
    from aqumen.engines.external import crosscheck
    from aqumen.engines.external.live import crosscheck as live

    cells = crosscheck.select(live.CELLS, wanted, "aqumen validate live --list")
    rows: list[Row] = []
    counted = 0
    code = 0
    try:
        for done, (one, its_rows) in enumerate(live.validate(cells, base, repeats, talk.say), 1):
            rows += its_rows
            counted += bool(its_rows)
            outside = [row.verdict for row in its_rows if row.verdict not in ("equivalent", "-")]
            verdict = ", ".join(outside) if outside else "equivalent"
            talk.say(f"{one.name}: {verdict if its_rows else 'no valid runs'} ({done}/{len(cells)})")
    except KeyboardInterrupt:
        code = talk.INTERRUPTED
    if as_json:
        print(laid_out(crosscheck.report(rows, "live", live.BOUNDS)), end="")
    else:
        print(crosscheck.table(rows, engines.find("live").title), end="")
    passed = counted == len(cells) and all(row.verdict in ("equivalent", "-") for row in rows)
    return code or (0 if passed else talk.CHECK_FAILED)


def _vectors(as_json: bool) -> int:
    """Run the test vectors of the algorithms."""
    from aqumen import _vectors

    replays = _vectors.replay()
    print(laid_out(_vectors.report(replays)) if as_json else _vectors.table(replays), end="")
    return 0 if all(one.verdict == "equal" for one in replays) else talk.CHECK_FAILED


def _runs(
    base: Path, cell: Cell, engine: str, seeds: Sequence[int], advance: Callable[[], None], out: Path | None
) -> list[Mapping[str, Any]]:
    """Return the metrics of a cell, seed by seed; runs are kept below `out`, by cell and engine."""
    scenario = Scenario.load(base / cell.scenario)
    for key, value in cell.settings:
        scenario = scenario.set(key, value)
    kept = None if out is None else out / re.sub(r"[^A-Za-z0-9.=@_-]+", "_", cell.name) / engine
    gathering = Gathering(scenario, [cell.aqm], list(seeds), engine, out=kept, force=True)
    for one in gathering.damaged:
        talk.say(f"{one}; this run is repeated")
    counted = 0

    def done(finished: int, _wanted: int) -> bool:
        nonlocal counted
        for _ in range(counted, finished):
            advance()
        counted = finished
        return True

    done(gathering.resumed, len(gathering.jobs))
    gathering.work(done)
    return [json.loads(gathering.answers[job].json) for job in gathering.jobs]
