"""The command line `aqumen`: verbs, one module each.

Data goes to stdout, talk and progress to stderr. Exit codes: 0 done, 1 a check failed, 2 could not run (one line says
why), 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

import aqumen
from aqumen.cli import talk
from aqumen.errors import Error, OwnError, listed, meant

__all__ = ["VERBS", "main"]

VERBS = {
    "run": ("run", "run", "Run one AQM on a scenario with one seed."),
    "compare": ("compare", "compare", "Compare AQMs on a scenario, or engines with --engine twice."),
    "uplink": (
        "situation",
        "uplink",
        "Which AQM for a household's line: ranked by what people feel, with the commands that set it up.",
    ),
    "datacenter": (
        "situation",
        "datacenter",
        "Which AQM for a port of a switch: short requests beside long transfers.",
    ),
    "cell": (
        "situation",
        "cell",
        "Which AQM for the queues of an LTE cell and its phones: ranked by what a subscriber feels.",
    ),
    "reproduce": (
        "reproduce",
        "reproduce",
        "Reproduce a paper: run its experiments, judge its claims, compare with the verdicts on record.",
    ),
    "calibrate": ("calibrate", "calibrate", "Find how many flows make a level of congestion: DropTail loses 1 %."),
    "design": ("design", "design", "Design an AQM for a network and show its margins."),
    "mmpp": ("mmpp", "mmpp", "Solve a queueing model: MMPP sources, Erlang service, a finite buffer."),
    "replay": (
        "replay",
        "replay",
        "Offer a capture's packets to a queue, open loop: who waits, is marked or dropped under each AQM.",
    ),
    "new": ("new", "new", "Write a folder with an AQM of your own, and a test of it that runs."),
    "list": ("listing", "list_things", "List AQMs, transports, traffic, papers or scenarios."),
    "validate": (
        "validate",
        "validate",
        "Compare the packet engine with ns-2, ns-3 or the kernel (live), or replay the vectors.",
    ),
    "doctor": ("doctor", "doctor", "Say what is installed, what is missing, and how to get it."),
    "man": ("man", "man", "Print the manual page: aqumen man > ~/.local/share/man/man1/aqumen.1"),
    "completion": (
        "doctor",
        "completion",
        "Print what lets a shell complete verbs, experiments, AQMs and their parameters.",
    ),
}
"""Module, function and first line of the help of each verb."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code.

    Args:
        args: The arguments after the program's name; without them those of the process.
    """
    talk.remember_command(args)
    # Who says nothing asks for help.
    words = list(sys.argv[1:] if args is None else args) or ["--help"]
    if sys.stdout is None:
        # Started with its output closed (`>&-`): nobody listens.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        code = _answer(words)
        # What is still in the buffer is written here, where a failure can be told.
        sys.stdout.flush()
        return code
    except OwnError as error:
        if error.__cause__ is not None:
            talk.traceback_of(error.__cause__)
        return talk.failed(str(error))
    except Error as error:
        return talk.failed(str(error))
    except click.ClickException as error:
        return talk.failed(_said(error))
    except (KeyboardInterrupt, click.Abort):
        talk.say("stopped")
        return talk.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`aqumen list aqms | head`): that is no failure.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return talk.failed(f"{error.filename or 'cannot write to standard output'}: {error.strerror or error}")


def _answer(words: list[str]) -> int:
    if "_AQUMEN_COMPLETE" in os.environ:
        # The tab key was pressed.
        _app.main(words, prog_name="aqumen", complete_var="_AQUMEN_COMPLETE")
    # Not `_app.main`, which ends the process with 1 where the reader of its output has gone.
    try:
        with _app.make_context("aqumen", words) as context:
            return int(_app.invoke(context) or 0)
    except click.exceptions.Exit as asked:
        return asked.exit_code


def _said(error: click.ClickException) -> str:
    """Return click's message; choices in the wording of all other messages, all missing arguments at once."""
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        return _missing(error.ctx)
    parameter = error.param if isinstance(error, click.BadParameter) else None
    word = re.match(r"'(.*)' is not one of ", error.message)
    if parameter is None or word is None or not isinstance(parameter.type, click.Choice):
        return error.format_message()
    names = [str(name) for name in parameter.type.choices]
    option = f"{parameter.opts[0]}: " if isinstance(parameter, click.Option) else ""
    return f'{option}invalid value "{word[1]}"{meant(word[1], names) or ";"} choose from: {listed(names)}'


def _missing(context: click.Context) -> str:
    """Return a message with the missing arguments of a verb. Click checks the given ones first."""
    lacks = [each for each in context.command.params if each.required and each.name not in context.params]
    said = [
        f"{each.opts[0]} {each.make_metavar(context)}" if isinstance(each, click.Option) else each.make_metavar(context)
        for each in lacks
    ]
    return f"missing: {' '.join(said)}; `{context.command_path} --help` says what each is"


def _drop_output() -> None:
    """Let the interpreter write what is left to nowhere: it must not complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Verbs(click.Group):
    """The verbs, each loaded when it is asked for: all together take longer than a short run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, function, _ = VERBS[cmd_name]
        command: click.Command = getattr(import_module(f"aqumen.cli.{module}"), function)
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
        with formatter.section("Commands"):
            formatter.write_dl([(verb, summary) for verb, (_, _, summary) in VERBS.items()])


@click.group(cls=_Verbs)
@click.version_option(aqumen.__version__, message="aqumen %(version)s")
def _app() -> None:
    """A workbench for active queue management (AQM)."""
