"""`aqumen man`: the manual page, generated from the help of the commands."""

from __future__ import annotations

import click

import aqumen
from aqumen.cli.verbs import VERBS, app

__all__ = ["man", "page"]


@click.command()
def man() -> int:
    """Print the manual page: aqumen man > ~/.local/share/man/man1/aqumen.1

    To read it at once: `aqumen man | man -l -`.
    """
    print(page(), end="")
    return 0


def page() -> str:
    """Return the manual page of all commands in roff."""
    context = click.Context(app, info_name="aqumen")
    lines = [
        f'.TH AQUMEN 1 "" "aqumen {aqumen.__version__}" "User commands"',
        ".SH NAME",
        "aqumen \\- a workbench for active queue management",
        ".SH SYNOPSIS",
        ".B aqumen",
        "\\fIVERB\\fR [\\fIOPTIONS\\fR]",
    ]
    for verb in VERBS:
        command = app.get_command(context, verb)
        assert command is not None
        own = click.Context(command, info_name=verb, parent=context)
        lines += [
            f".SH {_roff(verb.upper())}",
            f".B aqumen {_roff(verb)}",
            _roff(" ".join(command.collect_usage_pieces(own))),
        ]
        for paragraph in (command.help or "").split("\n\n"):
            lines += [".PP", _roff(" ".join(paragraph.split()))]
        for parameter in command.get_params(own):
            record = parameter.get_help_record(own)
            if record is not None:
                lines += [".TP", f".B {_roff(record[0])}", _roff(record[1])]
    lines += [
        ".SH EXIT STATUS",
        "0 success, 1 a check failed, 2 an error (one line says which), 130 stopped by Ctrl\\-C.",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _roff(text: str) -> str:
    """Escape text for roff."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe
