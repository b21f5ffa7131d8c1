"""The command line `aqumen`: verbs, one module each.

Data goes to stdout, talk and progress to stderr. Exit codes: 0 done, 1 a check failed, 2 could not run (one line says
why), 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer import exceptions

import aqumen
from aqumen.cli import compare, design, listing, mmpp, replay, run, talk, validate

__all__ = ["main"]

app = typer.Typer(
    name="aqumen",
    help="A workbench for active queue management (AQM).",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("compare")(compare.compare)
app.command("design")(design.design)
app.command("mmpp")(mmpp.mmpp)
app.command("replay")(replay.replay)
app.command("list")(listing.list_things)
app.command("validate")(validate.validate)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"aqumen {aqumen.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(False, "--version", callback=_print_version, is_eager=True, help="Print the version."),
) -> None:
    pass


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code.

    Args:
        args: The arguments after the program's name; without them those of the process.
    """
    talk.remember_command(args)
    try:
        # Who says nothing asks for help.
        words = list(sys.argv[1:] if args is None else args) or ["--help"]
        return int(app(args=words, prog_name="aqumen", standalone_mode=False) or 0)
    except aqumen.Error as error:
        return talk.failed(str(error))
    except exceptions.TyperException as error:
        return talk.failed(error.format_message().replace("Value error, ", ""))
    except (KeyboardInterrupt, exceptions.Abort):
        talk.say("stopped")
        return talk.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`aqumen list aqms | head`): that is no failure, and the interpreter must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
