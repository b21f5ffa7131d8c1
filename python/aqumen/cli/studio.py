"""`aqumen studio`: the playground in a browser on this machine, with the results of a comparison or a study."""

from __future__ import annotations

import contextlib
import webbrowser
from pathlib import Path

import click

from aqumen import studio as page
from aqumen.cli import talk
from aqumen.cli.options import PATH

__all__ = ["studio"]


@click.command()
@click.argument("folder", required=False, type=PATH, metavar="[DIR]")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="TCP port; 0: any free one."
)
@click.option("--open", "open_", is_flag=True, help="Open the page in the browser.")
def studio(folder: Path | None, port: int, open_: bool) -> int:
    """Serve the playground and the results of a comparison or a study to a browser on this machine.

    Ctrl-C ends it. With DIR, a folder that `aqumen compare --out` or `aqumen study run --out` wrote, the page shows its
    runs and repeats the chosen one live, with the same bits.
    """
    results, scenario_of = (None, None) if folder is None else page.open_folder(folder)
    with page.server(port, results, scenario_of) as server:
        address = f"http://127.0.0.1:{server.server_port}/" + ("?results" if results else "")
        talk.say(f"The playground: {address} (Ctrl-C ends it)")
        if open_:
            webbrowser.open(address)
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0
