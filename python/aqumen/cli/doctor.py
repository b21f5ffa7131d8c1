"""`aqumen doctor` checks optional packages and programs; `aqumen completion` prints a shell's completion script."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import get_completion_class

import aqumen
from aqumen import _core, _experiments, engines
from aqumen.cli import talk
from aqumen.cli.verbs import app
from aqumen.errors import EngineError

__all__ = ["completion", "doctor"]

PACKAGES = {
    "matplotlib": ("plot", "figures: --plot, Result.plot()"),
    "pandas": ("pandas", "Result.to_pandas()"),
    "polars": ("polars", "Result.to_polars()"),
    "pyarrow": ("arrow", "Result.to_arrow()"),
    "xarray": ("xarray", "Result.to_xarray()"),
    "control": ("control", "python-control: Design.to_control()"),
    "duckdb": ("studies", "aqumen study query, export"),
    "scipy": ("studies", "sampling designs of studies"),
    "optuna": ("tune", "aqumen tune AQM --over STUDY.toml"),
    "distributed": ("dask", "aqumen study run --on dask:..."),
}
"""Optional packages: the extra that installs each, and its use."""
PROGRAMS = {
    "cargo": ("validate vectors", "https://rustup.rs"),
    "tshark": ("the tests of packet traces", "apt-get install tshark"),
    "chromium": ("the tests of the report", "apt-get install chromium"),
}


@click.command()
def doctor() -> int:
    """Check optional packages and programs, and say how to install missing ones."""
    folder = _experiments.folder()
    rows = {
        "aqumen": f"{aqumen.__version__}, engines {Path(_core.__file__).name}",
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "processors": f"{engines.cores()} available",
        "experiments": str(folder) if folder else f"{len(_core.experiments())} compiled in",
    }
    for peer in engines.external_names():
        try:
            rows[f"engine {peer}"] = str(engines.external_program(peer))
        except EngineError as error:
            rows[f"engine {peer}"] = f"missing: {error}"
    for program, (use, source) in PROGRAMS.items():
        rows[program] = shutil.which(program) or f"missing: {source}; for {use}"
    for package, (extra, use) in PACKAGES.items():
        rows[package] = (
            "installed" if find_spec(package) is not None else f"missing: pip install 'aqumen[{extra}]'; for {use}"
        )
    talk.entries(rows)
    return 0


SHELLS = {
    "bash": 'eval "$(aqumen completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(aqumen completion zsh)" in ~/.zshrc',
    "fish": "aqumen completion fish > ~/.config/fish/completions/aqumen.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> int:
    """Print a shell script that completes commands, experiments, AQMs and their parameters."""
    made = get_completion_class(shell)
    assert made is not None
    print(made(app, {}, "aqumen", "_AQUMEN_COMPLETE").source())
    if os.isatty(1):
        talk.say(f"to install it permanently: {SHELLS[shell]}")
    return 0
