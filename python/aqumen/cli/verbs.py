"""Verbs of the command line, each loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

import aqumen
from aqumen.cli.examples import EXAMPLES
from aqumen.errors import meant

__all__ = ["GROUPS", "VERBS", "app"]

VERBS = {
    "run": ("run", "run", "Run one AQM on a scenario with one seed."),
    "compare": ("compare", "compare", "Compare AQMs on a scenario, or engines with --engine twice."),
    "study": (
        "study",
        "study",
        "Run a study: scenarios, factors, AQMs and seeds, until a stopping rule is satisfied; ask what is kept.",
    ),
    "uplink": (
        "situation",
        "uplink",
        "Choose an AQM for a household's access line: ranking by user experience, and the `tc` commands.",
    ),
    "office": (
        "situation",
        "office",
        "Choose an AQM for an office's access line: ranking by user experience, and the `tc` commands.",
    ),
    "datacenter": (
        "situation",
        "datacenter",
        "Choose an AQM for a switch port that carries short requests and long transfers.",
    ),
    "cell": (
        "situation",
        "cell",
        "Choose an AQM for an LTE base station and its phones: ranking by user experience.",
    ),
    "backbone": (
        "situation",
        "backbone",
        "Choose an AQM for a provider's link, which carries many long and short transfers.",
    ),
    "reproduce": (
        "reproduce",
        "reproduce",
        "Reproduce a paper: run its experiments, judge its claims, compare with the recorded verdicts.",
    ),
    "report": ("report", "report", "Make the page of kept runs again, from the folder of a study or of --out."),
    "calibrate": ("calibrate", "calibrate", "Find the number of flows at which a queue loses a given fraction."),
    "design": ("design", "design", "Design an AQM for a network and show its margins."),
    "map": ("map", "map_", "Map the stability and noise of an AQM's loop over two quantities of the network."),
    "robust": (
        "robust",
        "robust",
        "Find the gains of an AQM with the best worst case over ranges of networks, or over identified plants.",
    ),
    "tune": (
        "tune",
        "tune",
        "Tune a loop (SCENARIO --loop), or search the parameters of an AQM over a study (AQM --over).",
    ),
    "break": ("breaking", "break_", "Search networks in which an AQM does worse than a reference."),
    "mmpp": ("mmpp", "mmpp", "Solve a queueing model: MMPP sources, Erlang service, a finite buffer."),
    "replay": (
        "replay",
        "replay",
        "Replay a capture into a queue, open loop: delays, marks and drops under each AQM.",
    ),
    "studio": (
        "studio",
        "studio",
        "Serve the playground and the results of a comparison or a study to a browser on this machine.",
    ),
    "new": ("new", "new", "Create a folder with a template of a custom AQM and a test."),
    "list": ("listing", "list_things", "List AQMs, transports, traffic, papers or scenarios."),
    "validate": (
        "validate",
        "validate",
        "Compare the packet engine with ns-2, ns-3 or the kernel (live), or run the test vectors.",
    ),
    "doctor": ("doctor", "doctor", "Check optional packages and programs, and say how to install missing ones."),
    "man": ("man", "man", "Print the manual page: aqumen man > ~/.local/share/man/man1/aqumen.1"),
    "completion": (
        "doctor",
        "completion",
        "Print a shell script that completes commands, experiments, AQMs and their parameters.",
    ),
}
"""Command name to (module, function, first line of its help)."""
GROUPS = {
    "Everyday": ("uplink", "office", "datacenter", "cell", "backbone", "replay", "studio"),
    "Research": ("run", "compare", "study", "reproduce", "report", "break", "mmpp", "new", "list"),
    "Control": ("design", "map", "robust", "tune", "calibrate"),
    "Checks": ("validate", "doctor", "man", "completion"),
}
"""Sections of `aqumen --help`, by what a reader wants to do."""


class _Verbs(click.Group):
    """The commands. Each is imported on use, since importing all takes longer than a short run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, function, _ = VERBS[cmd_name]
        command: click.Command = getattr(import_module(f"aqumen.cli.{module}"), function)
        # After \b click leaves the line breaks as they are.
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in EXAMPLES.get(cmd_name, ()))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in VERBS:
            raise click.UsageError(
                f"{args[0]}: no such command{meant(args[0], VERBS) or ';'} `aqumen --help` lists all"
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(verb, help=VERBS[verb][2]) for verb in VERBS if verb.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(verb, VERBS[verb][2]) for verb in verbs])


@click.group(cls=_Verbs)
@click.version_option(aqumen.__version__, message="aqumen %(version)s")
def app() -> None:
    """A workbench for active queue management (AQM)."""
