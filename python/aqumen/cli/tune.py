"""`aqumen tune`: identify a queue's plant, design a controller for it, and hold packets against both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import __version__
from aqumen._files import laid_out, write_text
from aqumen.cli import complete, talk
from aqumen.cli.options import PATH, json_option, load, scenario_argument, set_option
from aqumen.errors import ScenarioError, optional
from aqumen.identification import Plant, RobustPi, identify, robust_pi
from aqumen.verification import Verification, verify
from aqumen.view.tuned import Section, drawn, page

if TYPE_CHECKING:
    from aqumen.scenario import Scenario

__all__ = ["tune"]

SCHEMA = 1
"""Version of the JSON; it grows when a key is removed or changes its meaning."""


@click.command()
@scenario_argument
@click.option("--aqm", required=True, shell_complete=complete.specs, metavar="SPEC", help="AQM to tune: pi.")
@click.option(
    "--loop", "loop_", is_flag=True, help="Tune the loop: identify the plant, design for it, verify in packets."
)
@set_option
@click.option("--margin", type=float, default=0.5, show_default=True, help="Modulus margin to keep.")
@click.option("--excite", default="prbs", show_default=True, metavar="KIND", help="Excitation: prbs or multisine.")
@click.option(
    "--seeds", type=int, default=3, show_default=True, metavar="N", help="Seeds of the packet runs, at least 2."
)
@click.option("--page", "page_", type=PATH, metavar="FILE", help="Write a page with tables and plots as HTML.")
@json_option
def tune(
    scenario: Path,
    aqm: str,
    loop_: bool,
    set_: tuple[str, ...],
    margin: float,
    excite: str,
    seeds: int,
    page_: Path | None,
    as_json: bool,
) -> int:
    """Tune the loop of a scenario: identify its plant, design a PI, verify in packets.

    The plant is identified in packets, and packets are measured before and after.
    """
    if not loop_:
        raise ScenarioError("tune needs --loop: identify the plant, design a controller for it, verify it in packets")
    if aqm.partition(":")[0] != "pi":
        raise ScenarioError(f"--aqm {aqm}: --loop tunes pi; `aqumen robust` optimises red, rem, paqm and arm-pfc")
    if seeds < 2:
        raise ScenarioError(f"--seeds {seeds}: at least 2, for an interval")
    if not 0.0 < margin < 1.0:
        raise ScenarioError(f"--margin {margin}: above 0, below 1")
    if page_ is not None:
        optional("matplotlib", "plot")
    loaded = load(scenario, set_)
    with talk.progress() as bar:
        task = bar.add_task("tuning", total=1.0, done="")

        def part(low: float, high: float, doing: str) -> Callable[[float], bool]:
            def told(done: float) -> bool:
                bar.update(task, completed=low + (high - low) * done, done=doing)
                return True

            return told

        plant = identify(loaded, aqm, excite=excite, on_progress=part(0.0, 0.2, "identifying"))
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
    return page(f"Tuned PI for {name}", headline, spec, [measured, margins, *sections], command)
