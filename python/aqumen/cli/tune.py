"""`aqumen tune`: design a controller for an identified plant, or search the parameters of an AQM over a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import __version__
from aqumen._files import laid_out, write_text
from aqumen.cli import complete, talk
from aqumen.cli.interrupt import first_interrupt
from aqumen.cli.options import OUT, PATH, force_option, json_option, load, set_option
from aqumen.errors import Cancelled, ScenarioError, optional
from aqumen.identification import Plant, RobustPi, identify, robust_pi
from aqumen.verification import Verification, verify
from aqumen.view.tuned import Section, drawn, page

if TYPE_CHECKING:
    from aqumen.metrics import Summary
    from aqumen.scenario import Scenario
    from aqumen.search.tuning import TuningResult
    from aqumen.study.definition import Definition

__all__ = ["tune"]

SCHEMA = 1
"""Version of the JSON; it grows when a key is removed or changes its meaning."""


@click.command()
@click.argument("what", metavar="SCENARIO|AQM", shell_complete=complete.scenarios)
@click.option("--aqm", shell_complete=complete.specs, metavar="SPEC", help="AQM to tune with --loop: pi.")
@click.option(
    "--loop", "loop_", is_flag=True, help="Tune the loop: identify the plant, design for it, verify in packets."
)
@set_option
@click.option("--margin", type=float, default=0.5, show_default=True, help="Modulus margin to keep with --loop.")
@click.option(
    "--excite", default="prbs", show_default=True, metavar="KIND", help="Excitation with --loop: prbs or multisine."
)
@click.option(
    "--seeds", type=int, metavar="N", help="Seeds of the packet runs, at least 2; default: 3, or those of the study."
)
@click.option("--page", "page_", type=PATH, metavar="FILE", help="Write a page with tables and plots as HTML.")
@click.option(
    "--over", type=PATH, metavar="STUDY.toml", help="Search the study's factors of the AQM over its networks."
)
@click.option(
    "--objective",
    metavar="METRIC[,METRIC]",
    help="Metric of the rows to improve, such as sojourn_p99_s; min: or max: before it says which way.",
)
@click.option("--out", type=OUT, metavar="DIR", help="Folder of the runs of a search; finished ones there are kept.")
@click.option(
    "--candidates", type=click.IntRange(1), default=64, show_default=True, metavar="N", help="Parameter sets to try."
)
@click.option(
    "--sampler", default="tpe", show_default=True, metavar="NAME", help="Sampler of Optuna: tpe, cmaes or random."
)
@click.option(
    "--hold-out",
    "hold_out",
    default="0.25",
    show_default=True,
    metavar="SHARE|STUDY.toml",
    help="Share of the networks that the search does not see, or a study that has them; 0 for none.",
)
@click.option("--relative", is_flag=True, help="Divide each value by the default's on the same network and seed.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, metavar="N", help="Seed of sampler and hold-out."
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Concurrent runs; default: the cores.")
@force_option
@json_option
def tune(what: str, over: Path | None, as_json: bool, **given: Any) -> int:
    """Tune a loop (SCENARIO --loop), or search the parameters of an AQM over a study (AQM --over).

    With --loop the plant is identified in packets, a PI is designed for it, and packets are measured before and after.
    With --over parameters are searched that do best over the networks of a study. The first line says what is lost
    on networks that the search has not seen.
    """
    if over is not None:
        return _search(what, over, as_json, given)
    if not given["loop_"]:
        raise ScenarioError(
            "tune needs --loop (identify the plant, design a controller, verify it in packets), or --over STUDY.toml"
        )
    return _loop(Path(what), as_json, given)


def _search(aqm: str, over: Path, as_json: bool, given: Mapping[str, Any]) -> int:
    """Search parameters over a study."""
    from aqumen.search.objectives import Objective
    from aqumen.search.tuning import Progress
    from aqumen.search.tuning import tune as search
    from aqumen.study.definition import Definition
    from aqumen.study.executors import Threads

    for name in ("objective", "out"):
        if given[name] is None:
            raise ScenarioError(f"--{name} is missing; such as --objective sojourn_p99_s --out t")
    for name, option in (("loop_", "--loop"), ("aqm", "--aqm"), ("set_", "--set"), ("page_", "--page")):
        if given[name]:
            raise ScenarioError(f"{option} does not go with --over; the study says what is run")
    try:
        objectives = [Objective.read(each) for each in given["objective"].split(",")]
    except ScenarioError as error:
        raise ScenarioError(f"--objective {error}") from None
    definition = Definition.load(over)
    if given["seeds"] is not None:
        definition = replace(definition, seeds=tuple(range(1, given["seeds"] + 1)), stop=None)
    with talk.progress() as bar, first_interrupt() as stopped:
        task = bar.add_task("tuning", total=1.0, done="")

        def advance(now: Progress) -> bool:
            best = f", best so far {now.best}: {now.value:.5g}" if now.value is not None else ""
            bar.update(task, completed=now.done, done=f"{now.candidates} of {now.wanted} candidates{best}")
            return not stopped.is_set()

        try:
            found = search(
                definition,
                aqm,
                objectives,
                given["out"],
                candidates=given["candidates"],
                sampler=given["sampler"],
                hold_out=_hold_out(given["hold_out"]),
                seed=given["seed"],
                relative=given["relative"],
                on=Threads(given["threads"]),
                force=given["force"],
                on_progress=advance,
            )
        except ScenarioError as error:
            raise error if str(error).startswith(f"{over}:") else ScenarioError(f"{over}: {error}") from None
        except (KeyboardInterrupt, Cancelled):
            talk.say(f"stopped; {given['out']} keeps what is finished, repeat the command to continue")
            return talk.INTERRUPTED
    if as_json:
        print(laid_out({"schema": SCHEMA, "aqumen": __version__, **found.to_dict()}), end="")
    else:
        _show_search(found)
    return 0


def _hold_out(given: str) -> float | Definition:
    from aqumen.study.definition import Definition

    try:
        share = float(given)
    except ValueError:
        return Definition.load(Path(given))
    if not 0 <= share < 1:
        raise ScenarioError(f"--hold-out {given}: must be a share from 0 to below 1, or the file of a study")
    return share


def _show_search(found: TuningResult) -> None:
    """Print the loss to the hold-out, the best parameters, and their objectives beside the default's."""
    print("\n".join(found.headline()))
    several = len(found.best) > 1
    for k, objective in enumerate(found.objectives):
        way = "larger" if objective.more else "smaller"
        rows = []
        for networks, of in (("tuning", "tuning"), ("hold-out", "hold_out")):
            for j, each in enumerate(found.best):
                measured = getattr(each, of)
                if measured is None:
                    continue
                if j == 0:
                    rows.append([networks, f"{found.aqm} (default)", _interval(measured[k].default), "–", "–"])
                one = measured[k]
                gain = "–" if one.gain is None else f"{100 * one.gain:+.1f}"
                rows.append([networks, each.spec, _interval(one.value), _interval(one.difference), gain])
        title = f"\n{objective.column}: {way} is better"
        heads = ["networks", "AQM", "mean", "minus default", "gain %"]
        talk.show(talk.filled(title, heads, rows, names=2), wide=several)
    talk.show(f"\nMeans over the networks, 95 % intervals over {found.seeds} seeds that the search did not use.")
    if found.relative:
        talk.show("Values are ratios to the default's of the same network and seed.")


def _interval(of: Summary) -> str:
    if of["mean"] is None:
        return "–"
    half = "" if of["ci95"] is None else f" ± {(of['ci95'][1] - of['ci95'][0]) / 2:.2g}"
    return f"{of['mean']:.5g}{half}"


def _loop(scenario: Path, as_json: bool, given: Mapping[str, Any]) -> int:
    """Tune the loop of a scenario."""
    aqm, margin, page_ = given["aqm"], given["margin"], given["page_"]
    seeds = 3 if given["seeds"] is None else given["seeds"]
    if aqm is None:
        raise ScenarioError("--aqm is missing; --loop tunes pi")
    if aqm.partition(":")[0] != "pi":
        raise ScenarioError(f"--aqm {aqm}: --loop tunes pi; `aqumen robust` optimises red, rem, paqm and arm-pfc")
    if seeds < 2:
        raise ScenarioError(f"--seeds {seeds}: at least 2, for an interval")
    if not 0.0 < margin < 1.0:
        raise ScenarioError(f"--margin {margin}: above 0, below 1")
    if page_ is not None:
        optional("matplotlib", "plot")
    loaded = load(scenario, given["set_"])
    with talk.progress() as bar:
        task = bar.add_task("tuning", total=1.0, done="")

        def part(low: float, high: float, doing: str) -> Callable[[float], bool]:
            def told(done: float) -> bool:
                bar.update(task, completed=low + (high - low) * done, done=doing)
                return True

            return told

        plant = identify(loaded, aqm, excite=given["excite"], on_progress=part(0.0, 0.2, "identifying"))
        best = robust_pi(plant, modulus_margin=margin)
        spec = _spec(aqm, best)
        before = verify(plant.loop(aqm), loaded, seeds=seeds, on_progress=part(0.2, 0.6, "packets before"))
        after = verify(plant.loop(spec), loaded, seeds=seeds, on_progress=part(0.6, 1.0, "packets after"))
    if page_ is not None:
        write_text(page_, tuned_page(plant, best, spec, (before, after), talk.command()))
        talk.say(f"wrote {page_}")
    if as_json:
        print(laid_out(_json(loaded, plant, best, spec, (before, after))), end="")
        return 0
    _show(plant, spec, (before, after))
    return 0


def _spec(aqm: str, best: RobustPi) -> str:
    """Return the tuned AQM with the other parameters as given."""
    given = [pair for pair in aqm.partition(":")[2].split(",") if pair]
    kept = [pair for pair in given if pair.partition("=")[0] not in ("a", "b", "frequency")]
    return ",".join([best.spec, *kept])


def _json(
    scenario: Scenario, plant: Plant, best: RobustPi, spec: str, packets: tuple[Verification, Verification]
) -> dict[str, Any]:
    before, after = packets
    return {
        "schema": SCHEMA,
        "aqumen": __version__,
        "scenario": scenario.name,
        "plant": plant.to_dict(),
        "tuned": {**best.to_dict(), "spec": spec},
        "before": {**before.to_dict(), "margins": before.design.margins},
        "after": {**after.to_dict(), "margins": after.design.margins},
    }


def _show(plant: Plant, spec: str, packets: tuple[Verification, Verification]) -> None:
    print(f"tuned: {spec}")
    talk.show(talk.filled("\nPlant", ["", "value"], plant_rows(plant)))
    heads = ["margin", "before", "after"]
    talk.show(talk.filled("\nMargins of the loop", heads, margin_rows(packets)))
    for title, found in zip(("\nBefore", "\nAfter"), packets, strict=True):
        talk.show(talk.filled(title, ["quantity", "promised", "measured", "measured / promised"], found.rows()))


def plant_rows(plant: Plant) -> list[list[str]]:
    """Return the rows of a table of a plant.

    Args:
        plant: Plant to describe.
    """
    return [
        ["mean queue, packets", f"{plant.queue_pkts:.4g}"],
        ["mean probability", f"{plant.probability:.4g}"],
        ["round-trip time, s", f"{plant.rtt_s:.4g}"],
        ["excitation, root mean square of the probability", f"{plant.amplitude:.3g} ({plant.excite})"],
        ["largest coherence", f"{plant.spectrum.coherence.max():.2f}"],
        ["order of the model, steps", f"{plant.model.order} of {1e3 * plant.period_s:.4g} ms"],
        ["model inside the 95 % circles of the response", f"{100 * plant.consistency:.0f} %"],
        ["time at p = 0 or 1", f"{100 * plant.at_bound:.1f} %"],
    ]


MARGINS = {
    "gain_margin": "gain margin",
    "phase_margin_deg": "phase margin, degrees",
    "modulus_margin": "modulus margin",
    "delay_margin_s": "delay margin, s",
    "crossover_rad_s": "crossover, rad/s",
}
"""Margins of the tables, and their names."""


def margin_rows(packets: Sequence[Verification]) -> list[list[str]]:
    """Return the rows of a table of margins: name, before, after.

    Args:
        packets: Verifications before and after.
    """
    found = [each.design.margins or {} for each in packets]
    return [
        [words, *("–" if each.get(key) is None else f"{each[key]:.3g}" for each in found)]
        for key, words in MARGINS.items()
    ]


def tuned_page(
    plant: Plant, best: RobustPi, spec: str, packets: tuple[Verification, Verification], command: str
) -> str:
    """Return the page of a tuned loop as HTML text.

    Args:
        plant: Identified plant.
        best: Designed controller.
        spec: It as a SPEC.
        packets: Verifications before and after.
        command: Command that produced the page.
    """
    before, after = packets
    name = plant.scenario.name
    stds = [each["queue_std_pkts"].measured["mean"] for each in packets]
    headline = (
        f"The PI for the identified plant crosses over at {best.slowest_crossover_rad_s:.3g} rad/s with a modulus "
        f"margin of {best.worst_modulus_margin:.2f}. Standard deviation of the queue in packets: {stds[0]:.3g} before, "
        f"{stds[1]:.3g} after."
    )
    measured = Section(
        title="The plant",
        text="The excited queue, and the model fitted to it. It swings by the excitation half as much as by noise.",
        tables=[("Plant", ["", "value"], plant_rows(plant))],
        pictures=[("Coherence of queue and excitation", drawn(plant.loop(spec).plot("coherence")))],
    )
    margins = Section(
        title="The loop before and after",
        text="Margins around the identified plant.",
        tables=[("Margins", ["margin", "before", "after"], margin_rows(packets))],
    )
    sections = [
        Section(title=title, text=each.headline(), tables=[each.table()], pictures=each.pictures())
        for title, each in (("Before", before), ("After", after))
    ]
    return page(f"TuningResult PI for {name}", headline, spec, [measured, margins, *sections], command)
