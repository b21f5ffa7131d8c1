"""The command line `aqumen`: one module for each command.

Data goes to stdout, messages and progress to stderr. Exit codes: 0 success, 1 a check failed, 2 an error (one line
says which), 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import click

from aqumen.cli import talk
from aqumen.cli.verbs import VERBS, app
from aqumen.errors import CustomError, Error, listed, meant

__all__ = ["VERBS", "main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Args:
        args: Arguments after the program's name; `None` takes those of the process.
    """
    talk.remember_command(args)

    words = list(sys.argv[1:] if args is None else args) or ["--help"]
    if sys.stdout is None:
        # Started with standard output closed (`>&-`).
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        code = _answer(words)
        # Flush here, where a write error can still be reported.
        sys.stdout.flush()
        return code
    except CustomError as error:
        if error.__cause__ is not None:
            talk.traceback_of(error.__cause__)
        return talk.failed(str(error))
    except Error as error:
        return talk.failed(str(error))
    except click.ClickException as error:
        return talk.failed(_message(error))
    except (KeyboardInterrupt, click.Abort):
        talk.say("stopped")
        return talk.INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`aqumen list aqms | head`): no error.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return talk.failed(f"{error.filename or 'cannot write to standard output'}: {error.strerror or error}")


def _answer(words: list[str]) -> int:
    if "_AQUMEN_COMPLETE" in os.environ:
        # A shell asks for completions.
        app.main(words, prog_name="aqumen", complete_var="_AQUMEN_COMPLETE")
    # Not `app.main`, which ends the process with 1 where the reader of its output has gone.
    try:
        with app.make_context("aqumen", words) as context:
            return int(app.invoke(context) or 0)
    except click.exceptions.Exit as finished:
        return finished.exit_code


def _message(error: click.ClickException) -> str:
    """Return click's message in the wording of Aqumen's other messages; all missing arguments at once."""
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
    missing = [each for each in context.command.params if each.required and each.name not in context.params]
    names = [
        f"{each.opts[0]} {each.make_metavar(context)}" if isinstance(each, click.Option) else each.make_metavar(context)
        for each in missing
    ]
    return f"missing: {' '.join(names)}; `{context.command_path} --help` says what each is"


def _drop_output() -> None:
    """Redirect standard output to the null device, so that the interpreter's final flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
