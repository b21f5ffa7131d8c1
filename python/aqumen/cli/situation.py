"""`aqumen uplink`, `office`, `datacenter`, `cell` and `backbone`: an AQM for an everyday network, ranked by a score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen._files import laid_out, write_text
from aqumen.cli import complete, talk
from aqumen.cli.interrupt import first_interrupt
from aqumen.cli.options import PATH, TARGET, json_option, out_option, spec_list, wide_option
from aqumen.errors import ScenarioError
from aqumen.experience import ALIKE, AqmScore
from aqumen.replay import Capture
from aqumen.shaping import KERNEL, LINES, Setup, host, interface, kernel_options, shaper
from aqumen.situations import AS_IT_IS, WORDS, Answer, Situation, Study
from aqumen.situations import backbone as backbone_of
from aqumen.situations import cell as cell_of
from aqumen.situations import datacenter as datacenter_of
from aqumen.situations import office as office_of
from aqumen.situations import uplink as uplink_of
from aqumen.view import tables

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["backbone", "cell", "datacenter", "office", "uplink"]

SCHEMA = 1


def _shared(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that the commands share."""
    for option in reversed(
        (
            click.option(
                "--aqm",
                multiple=True,
                shell_complete=complete.specs,
                metavar="SPEC",
                help="AQM to compare, in place of the default list; may be repeated.",
            ),
            click.option(
                "--senders",
                multiple=True,
                shell_complete=complete.senders,
                metavar="NAME",
                help="Kinds of senders, such as cubic; default: all.",
            ),
            click.option(
                "--seeds", type=int, default=5, show_default=True, metavar="N", help="Number of seeds: 1 to N."
            ),
            click.option(
                "--weigh",
                multiple=True,
                shell_complete=complete.figures,
                metavar="METRIC=X",
                help="Weight of a metric: upload=2.",
            ),
            click.option(
                "--device",
                default="eth0",
                show_default=True,
                metavar="NAME",
                callback=lambda _context, _option, name: interface(name),
                help="Network interface for the `tc` commands.",
            ),
            click.option("--print", "print_", is_flag=True, help="Print the scenario as TOML, to edit and run it."),
            out_option,
            wide_option,
            json_option,
        )
    ):
        command = option(command)
    return command


def _access_line(rtt: str, bloat: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options of an access line with shapers.

    Args:
        rtt: Default of `--rtt`.
        bloat: Description of the default of `--bloat`.
    """

    def add(command: Callable[..., int]) -> Callable[..., int]:
        for option in reversed(
            (
                click.option(
                    "--rtt", default=rtt, show_default=True, metavar="TIME", help="Round-trip time without queues."
                ),
                click.option(
                    "--line",
                    default="measured",
                    show_default=True,
                    type=click.Choice(list(LINES)),
                    help="Framing of the line.",
                ),
                click.option(
                    "--bloat",
                    metavar="TIME",
                    help=f"Extra ping delay under load today; default: {bloat}, and at least 64 kB.",
                ),
                click.option(
                    "--headroom",
                    default="5,10",
                    show_default=True,
                    metavar="UP,DOWN",
                    help="Shaper rates below the line rate, in %.",
                ),
                click.option(
                    "--duration", metavar="TIME", help="Duration of each run; default: longer for slower lines."
                ),
                click.option(
                    "--target",
                    type=TARGET,
                    default="15ms",
                    show_default=True,
                    metavar="LENGTH",
                    help="Target queue of AQMs without a default (pi, red): packets (20pkt), or its delay (15ms).",
                ),
                click.option(
                    "--capture",
                    type=PATH,
                    metavar="FILE",
                    help="Also replay these outgoing packets (tcpdump -Q out) into each AQM.",
                ),
            )
        ):
            command = option(command)
        return command

    return add


def _headroom(text: str) -> tuple[float, float]:
    """Parse `--headroom`: percentages up and down."""
    parts = text.split(",")
    try:
        percentages = (float(parts[0]), float(parts[-1]))
    except ValueError:
        raise ScenarioError(f"--headroom {text}: must be percentages, such as 5,10") from None
    if len(parts) > 2:
        raise ScenarioError(f"--headroom {text}: must be one percentage, or two for up,down")
    return percentages


def _shaped(situation: Situation, line: str, device: str, **shared: Any) -> int:
    """Run the study of an access line, with shapers in the commands."""

    def setup(spec: str) -> Setup:
        return shaper(spec, LINES[line], situation.rates["up"], situation.rates["down"], device)

    return _run_study(situation, setup, **shared)


@click.command()
@click.option("--down", required=True, metavar="RATE", help='Downstream rate: "20Mbit".')
@click.option("--up", required=True, metavar="RATE", help='Upstream rate: "2Mbit".')
@_access_line("40ms", "500 ms")
@_shared
def uplink(
    down: str,
    up: str,
    rtt: str,
    line: str,
    bloat: str | None,
    headroom: str,
    duration: str | None,
    target: str,
    **shared: Any,
) -> int:
    """Choose an AQM for a household's access line: ranking by user experience, and the `tc` commands.

    Simulates calls, web pages, games and an upload at once, with each AQM of the Linux kernel and without an AQM.
    """
    situation = uplink_of(
        down, up, rtt=rtt, line=line, bloat=bloat, headroom=_headroom(headroom), duration=duration, target=target
    )
    return _shaped(situation, line, **shared)


@click.command()
@click.option("--rate", required=True, metavar="RATE", help='Rate of the line: "1Gbit".')
@click.option("--people", type=int, required=True, metavar="N", help="People in the office.")
@click.option("--up", metavar="RATE", help="Upstream rate, if it differs.")
@_access_line("20ms", "100 ms")
@_shared
def office(
    rate: str,
    people: int,
    up: str | None,
    rtt: str,
    line: str,
    bloat: str | None,
    headroom: str,
    duration: str | None,
    target: str,
    **shared: Any,
) -> int:
    """Choose an AQM for an office's access line: ranking by user experience, and the `tc` commands.

    Simulates calls, video meetings, web pages, backups and downloads at once, as many as the people make, with each
    AQM of the Linux kernel and without an AQM.
    """
    situation = office_of(
        rate,
        people,
        up=up,
        rtt=rtt,
        line=line,
        bloat=bloat,
        headroom=_headroom(headroom),
        duration=duration,
        target=target,
    )
    return _shaped(situation, line, **shared)


@click.command()
@click.option("--rate", default="10Gbit", show_default=True, metavar="RATE", help="Rate of the port.")
@click.option("--rtt", default="100us", show_default=True, metavar="TIME", help="Round-trip time without queues.")
@click.option("--buffer", default="1500kB", show_default=True, metavar="N", help='Buffer size: "1500kB" or "1000pkt".')
@click.option(
    "--load", type=float, default=30, show_default=True, metavar="PERCENT", help="Load of the requests, % of the rate."
)
@click.option(
    "--duration", metavar="TIME", help="Duration of each run; default: at least 200 ms, longer for slower ports."
)
@_shared
def datacenter(rate: str, rtt: str, buffer: str, load: float, duration: str | None, device: str, **shared: Any) -> int:
    """Choose an AQM for a switch port that carries short requests and long transfers.

    Ranks AQMs by the 99th percentile and mean of the request time and by the rate of the transfers. Senders are CUBIC,
    with and without ECN, and DCTCP.
    """
    situation = datacenter_of(rate, rtt=rtt, buffer=buffer, load=load, duration=duration)
    return _run_study(situation, lambda spec: host(spec, device), **shared)


@click.command()
@click.option(
    "--cqi", type=float, default=10, show_default=True, metavar="X", help="Mean channel quality indicator, 1 to 15."
)
@click.option(
    "--resource-blocks",
    type=int,
    default=50,
    show_default=True,
    metavar="N",
    help="Bandwidth of the cell: 50 are 10 MHz.",
)
@click.option(
    "--share", type=float, default=50, show_default=True, metavar="PERCENT", help="The subscriber's share of the cell."
)
@click.option("--handover", default="30s", show_default=True, metavar="TIME", help="Mean time between handovers.")
@click.option("--rtt", default="50ms", show_default=True, metavar="TIME", help="Round-trip time without queues.")
@click.option("--duration", default="120s", show_default=True, metavar="TIME", help="Duration of each run.")
@_shared
def cell(
    cqi: float,
    resource_blocks: int,
    share: float,
    handover: str,
    rtt: str,
    duration: str,
    device: str,
    **shared: Any,
) -> int:
    """Choose an AQM for an LTE base station and its phones: ranking by user experience.

    Simulates calls, web pages, games and an upload at once, over a link whose rate follows the radio channel.
    """
    situation = cell_of(
        cqi, resource_blocks=resource_blocks, share=share, handover=handover, rtt=rtt, duration=duration
    )
    return _run_study(situation, lambda spec: host(spec, device), **shared)


@click.command()
@click.option("--rate", default="100Mbit", show_default=True, metavar="RATE", help="Rate of the link.")
@click.option("--flows", type=int, default=100, show_default=True, metavar="N", help="Long transfers.")
@click.option(
    "--rtt", default="200ms", show_default=True, metavar="TIME",
    help="Longest round-trip time without queues; the shortest is a tenth.",
)  # fmt: skip
@click.option("--buffer", metavar="N", help='Buffer size: "10MB" or "1000pkt"; default: 100 ms at the rate.')
@click.option(
    "--load",
    type=float,
    default=25,
    show_default=True,
    metavar="PERCENT",
    help="Load of the short ones, % of the rate.",
)
@click.option("--duration", metavar="TIME", help="Duration of each run; default: shorter for faster links.")
@_shared
def backbone(
    rate: str, flows: int, rtt: str, buffer: str | None, load: float, duration: str | None, device: str, **shared: Any
) -> int:
    """Choose an AQM for a provider's link, which carries many long and short transfers.

    Ranks AQMs by the time of short transfers, fairness, round-trip time over utilisation, and losses. Senders are
    CUBIC, with and without ECN.
    """
    situation = backbone_of(rate, flows=flows, rtt=rtt, buffer=buffer, load=load, duration=duration)
    return _run_study(situation, lambda spec: host(spec, device), **shared)


def _run_study(
    situation: Situation,
    setup: Callable[[str], Setup],
    *,
    aqm: tuple[str, ...],
    senders: tuple[str, ...],
    seeds: int,
    weigh: tuple[str, ...],
    print_: bool,
    out: Path | None,
    wide: bool,
    as_json: bool,
    capture: Path | None = None,
) -> int:
    """Run the study, print the answer and return the exit code."""
    if print_:
        print(situation.scenario.to_toml(), end="")
        return 0
    names = [name for given in senders for name in given.split(",")]
    study = Study(situation, spec_list(aqm), names, seeds, _weights(weigh), out)
    offered = None if capture is None else _replay_capture(capture, situation, study.aqms)
    announce_duration(study)
    with talk.progress() as bar, first_interrupt() as stopped:
        task = bar.add_task("running", total=study.total, done="")

        def advance(finished: int, wanted: int) -> bool:
            bar.update(task, completed=finished, done=f"{finished} of {wanted}")
            return not stopped.is_set()

        try:
            study.work(advance)
        except KeyboardInterrupt:
            stopped.set()
    answer = study.answer()
    if answer is None:
        talk.say(
            "stopped before any AQM was run with all senders" + ("; repeat the command to continue" if out else "")
        )
        return talk.INTERRUPTED
    shown = _tables(situation, answer, setup)
    if out is not None:
        _write(out, study, answer, setup)
    if as_json:
        print(laid_out(_dict(situation, answer, setup, offered)), end="")
    else:
        talk.show(*shown, *_capture_table(offered), wide=wide)
    return talk.INTERRUPTED if stopped.is_set() else 0


def _weights(given: Sequence[str]) -> dict[str, float]:
    weights = {}
    for text in (piece for each in given for piece in each.split(",")):
        key, _, value = text.partition("=")
        try:
            weights[key.strip()] = float(value)
        except ValueError:
            raise ScenarioError(f"--weigh {text}: write it as METRIC=X, for instance --weigh upload=2") from None
    return weights


def goal(situation: Situation, answer: Answer) -> str:
    """Describe the ranking criterion in words.

    Args:
        situation: The everyday network.
        answer: Scores of the AQMs.
    """
    counted = [(f, answer.weights[f.key]) for f in situation.metrics if answer.weights[f.key]]
    alike = len({weight for _, weight in counted}) == 1
    parts = [WORDS[f.key] + ("" if alike else f" (weight {weight:g})") for f, weight in counted]
    weighs = "all with equal weight (--weigh)" if alike else "with weights by --weigh"
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else parts[0]
    return (
        f"Ranked by a score: the geometric mean over {listed}, each relative to the best AQM, {weighs}. "
        f"Kinds of senders have equal weight. Scores within {ALIKE * 100:g} % count as equal."
    )


def announce_duration(study: Study) -> None:
    """Report the estimated time of the runs.

    Args:
        study: The study to run.
    """
    left = study.total - sum(each.resumed for each in study.gatherings.values())
    if left:
        talk.say(f"{left} runs, about {talk.about(study.seconds())} on {_cores(study)}")


def _cores(study: Study) -> str:
    count = max(each.threads for each in study.gatherings.values())
    return "1 core" if count == 1 else f"{count} cores"


def _tables(situation: Situation, answer: Answer, setup: Callable[[str], Setup]) -> list[Table | str]:
    """Format the answer as text and tables."""
    ways = f"{len(answer.score)} AQMs, senders {', '.join(answer.senders)}, {_counted(answer.seeds)}"
    head = f"{situation.scenario.name}: {situation.scenario.title}\n{ways}\n{goal(situation, answer)}"
    shown = [f for f in situation.metrics if answer.weights[f.key]] + [
        f for f in situation.metrics if not answer.weights[f.key]
    ]
    rows = [
        [
            f"{each.place}",
            *([each.group or "–"] if answer.seeds > 1 else []),
            each.aqm,
            # Without spaces, so that the deciding columns fit into 80 characters.
            _tight(_score(each)),
            *(_tight(tables.spread(each.values[f.key], 1, f.digits)) for f in shown),
        ]
        for each in answer.score
    ]
    names = ["", *(["group"] if answer.seeds > 1 else []), "AQM"]
    heads = [*names, "Score\n%", *(f"{f.title}\n{f.unit}" for f in shown)]
    by_senders = [[each.aqm, *(f"{each.by_senders[who]:.1f}" for who in answer.senders)] for each in answer.score]
    lines: list[Table | str] = [
        *_summary(situation, answer),
        "",
        head,
        "",
        talk.filled("", heads, rows, names=len(names)),
        "",
        _note(answer),
        _sensitivity(situation, answer),
    ]
    if len(answer.senders) > 1:
        lines.append(talk.filled("\nScore by kind of senders, %", ["AQM", *answer.senders], by_senders))
    lines += ["", *(f"Assumed: {line}." for line in situation.assumed)]
    return [*lines, *_commands(situation, answer, setup)]


def _note(answer: Answer) -> str:
    if answer.seeds == 1:
        return "One seed gives no confidence intervals; use --seeds 5 for a ranking."
    return (
        "Means over the seeds and 95 % intervals. AQMs that share a letter of their groups do not differ significantly."
    )


def _sensitivity(situation: Situation, answer: Answer) -> str:
    """Describe how the first place depends on the weights."""
    leads = {f.key: next(each.aqm for each in answer.score if f.key in each.alone) for f in situation.metrics}
    text = "Best by a single metric: " + ", ".join(f"{key} {aqm}" for key, aqm in leads.items()) + "."
    if answer.leader_changes:
        changes = ", ".join(f"{word}: {aqm}" for word, aqm in answer.leader_changes.items())
        return f"{text} First place changes with {changes}."
    return text + " Halving or doubling any one weight does not change the first place."


def _counted(seeds: int) -> str:
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def _score(each: AqmScore) -> str:
    return f"{each.score:.1f}{tables.around(each.score, each.score_ci95, '{:.1f}'.format)}"


def _tight(figure: str) -> str:
    return figure.replace(" ± ", "±").replace(" −", "−")


def leader(answer: Answer) -> str:
    """Return the AQM with the best score, not counting the network as it is.

    Args:
        answer: Scores of the AQMs.
    """
    return next((each.aqm for each in answer.score if each.aqm != AS_IT_IS), AS_IT_IS)


def headline(situation: Situation, answer: Answer) -> str:
    """Summarise the answer in one sentence.

    Args:
        situation: The everyday network.
        answer: Scores of the AQMs.
    """
    if answer.score[0].aqm == AS_IT_IS:
        return "Leave the line as it is: no AQM scores better."
    first = leader(answer)
    spec = situation.kernel(first)
    if spec is None:
        return f"Best: {first}, which no Linux kernel implements."
    shaped = [f"{_rate(situation.rates[way])} {way}" for way in ("up", "down") if way in situation.rates]
    return f"Use {kernel_options(spec)}" + (f", shaped to {' and '.join(shaped)}." if shaped else ".")


def _rate(bps: float) -> str:
    return f"{bps / 1e6:.3g} Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.3g} kbit/s"


def tied_sentence(answer: Answer) -> str:
    """Name the AQMs that are not significantly different from the first; empty if there are none.

    Args:
        answer: Scores of the AQMs.
    """
    first = _entry(answer, leader(answer))
    if not first.tied_with or answer.seeds == 1:
        return ""
    return f"Not significantly different from {first.aqm}: {', '.join(first.tied_with)}. More seeds may separate them."


def _entry(answer: Answer, aqm: str) -> AqmScore:
    return next(each for each in answer.score if each.aqm == aqm)


def before_and_after(answer: Answer) -> list[tuple[str, AqmScore]]:
    """Return the network as it is and the first AQM, each with its label; empty if they are the same.

    Args:
        answer: Scores of the AQMs.
    """
    first = leader(answer)
    today = next((each for each in answer.score if each.aqm in (AS_IT_IS, "droptail")), None)
    return [] if today is None or today.aqm == first else [(today.aqm, today), (f"with {first}", _entry(answer, first))]


BAR = 30
"""Width of the longest bar, characters."""


def _summary(situation: Situation, answer: Answer) -> list[Table | str]:
    """Return the recommendation and the metrics to expect."""
    lines: list[Table | str] = [headline(situation, answer)]
    if sentence := tied_sentence(answer):
        lines.append(sentence)
    if pair := before_and_after(answer):
        shown = next(f for f in situation.metrics if f.key == situation.delay)
        values = {name: each.values[shown.key] for name, each in pair}
        longest = max(summary["mean"] or 0 for summary in values.values()) or 1
        width = max(map(len, values))
        lines.append(f"\nDelay under load, {shown.unit}: {WORDS[shown.key]}")
        for name, summary in values.items():
            # Block characters have a resolution of an eighth of a column.
            full, part = divmod(round(8 * BAR * (summary["mean"] or 0) / longest), 8)
            bar = "█" * full + ("", *"▏▎▍▌▋▊▉")[part]
            lines.append(f"  {name:{width}}  {bar:{BAR}}  {tables.spread(summary, 1, shown.digits)}")
        rows = [
            [f"{f.title}, {f.unit}", *(tables.spread(each.values[f.key], 1, f.digits) for _, each in pair)]
            for f in situation.metrics
        ]
        lines.append(talk.filled("\nWhat to expect", ["", *(name for name, _ in pair)], rows))
    return lines


def _commands(situation: Situation, answer: Answer, setup: Callable[[str], Setup]) -> list[Table | str]:
    """Return the `tc` commands for the first AQM."""
    first = leader(answer)
    if (spec := situation.kernel(first)) is None:
        return []
    made = setup(spec)
    lines = [f"{first}, Linux {minimum_kernel(spec)} and later, as root:", *(f"  {line}" for line in made.commands)]
    undo = f"The first {len(made.remove)} lines undo" if len(made.remove) > 1 else "The first line undoes"
    return ["\n" + "\n".join([*lines, f"{undo} it." if made.remove else ""]).rstrip()]


def minimum_kernel(spec: str) -> str:
    """Return the first Linux version with the queueing discipline of a SPEC.

    Args:
        spec: A name of `KERNEL`, optionally with parameters.
    """
    return KERNEL[spec.partition(":")[0]][1]


def _dict(
    situation: Situation, answer: Answer, setup: Callable[[str], Setup], offered: list[dict[str, Any]] | None
) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    order = [
        {
            "aqm": each.aqm,
            "place": each.place,
            "group": each.group,
            "tied_with": list(each.tied_with),
            "score_percent": each.score,
            "score_half_interval": each.score_half,
            "score_ci95": each.score_ci95,
            "score_by_senders": dict(each.by_senders),
            "felt": {f.key: {"unit": f.unit, **each.values[f.key]} for f in situation.metrics},
            "commands": None if (spec := situation.kernel(each.aqm)) is None else setup(spec).commands,
        }
        for each in answer.score
    ]
    return {
        "schema": SCHEMA,
        "scenario": situation.scenario.name,
        "answer": headline(situation, answer),
        "goal": goal(situation, answer),
        "weights": dict(answer.weights),
        "senders": list(answer.senders),
        "seeds": answer.seeds,
        "assumed": list(situation.assumed),
        "rates_to_set_bps": dict(situation.rates),
        "order": order,
        "first_place_changes_with": dict(answer.leader_changes),
        **({} if offered is None else {"capture": offered}),
    }


def _write(out: Path, study: Study, answer: Answer, setup: Callable[[str], Setup]) -> None:
    """Write the scenario, the answer, a script for each AQM and the reports into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "scenario.toml", study.situation.scenario.to_toml())
    write_text(out / "answer.json", laid_out(_dict(study.situation, answer, setup, None)))
    for each in answer.score:
        if (spec := study.situation.kernel(each.aqm)) is not None:
            name = "".join(character if character.isalnum() else "-" for character in each.aqm)
            title = f"{each.aqm}: {study.situation.scenario.title}"
            write_text(out / f"{name}.sh", setup(spec).script(title), program=True)
    for gathering in study.gatherings.values():
        if gathering.store is not None:
            gathering.write(gathering.comparison(), talk.command())
    from aqumen.situations.page import situation_html

    spec = study.situation.kernel(leader(answer))
    page = situation_html(
        study=study,
        answer=answer,
        headline=headline(study.situation, answer),
        no_worse=tied_sentence(answer),
        pair=before_and_after(answer),
        goal=goal(study.situation, answer),
        note=_note(answer),
        alone=_sensitivity(study.situation, answer),
        first=leader(answer),
        since=None if spec is None else minimum_kernel(spec),
        setup=setup,
        command=talk.command(),
    )
    write_text(out / "report.html", page)
    talk.say(f"wrote {out / 'report.html'}")


def _replay_capture(file: Path, situation: Situation, aqms: Sequence[str]) -> list[dict[str, Any]]:
    """Replay a capture into each AQM at the shaper's rate, open loop."""
    capture = Capture(file, rate=f"{situation.sent_bps:.0f}bit", buffer="20000pkt")
    return [{"spec": aqm, "total": capture.run(aqm).data["total"]} for aqm in aqms]


def _capture_table(offered: list[dict[str, Any]] | None) -> list[Table | str]:
    if offered is None:
        return []
    rows = []
    for each in offered:
        total = each["total"]
        lost = (total["early_dropped_pkts"] + total["overflow_dropped_pkts"]) / max(total["arrivals_pkts"], 1)
        times = [total[f"sojourn_{key}_s"] for key in ("mean", "p95", "p99")]
        rows.append(
            [
                each["spec"],
                *(tables.number(None if t is None else 1000 * t, 1) for t in times),
                tables.percent(lost),
                tables.percent(total["marked_pkts"] / max(total["arrivals_pkts"], 1)),
            ]
        )
    note = "Open loop: senders do not react to marks and drops. Not part of the ranking."
    heads = ["AQM", "Sojourn, mean ms", "p95 ms", "p99 ms", "Dropped %", "Marked %"]
    return [talk.filled("\nThe capture replayed into each AQM at the upstream shaper's rate", heads, rows), note]
