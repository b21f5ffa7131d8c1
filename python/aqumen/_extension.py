"""The compiled core `aqumen._core`: the package's, or that of a crate with custom AQMs, which AQUMEN_CORE names."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

__all__ = ["VARIABLE", "load"]

VARIABLE = "AQUMEN_CORE"
"""Environment variable with the file of a core; child processes inherit it."""


def load() -> None:
    """Load the core that the environment names in place of the package's; without one, do nothing.

    A file that is no such core ends the process with exit code 2 and one line.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return
    path = Path(name).absolute()
    try:
        sys.modules["aqumen._core"] = sys.modules["aqumen"]._core = _core_of(path)  # type: ignore[attr-defined]
    except (ImportError, AttributeError, OSError) as error:
        reason = " ".join(str(error).split()) if path.is_file() else "no such file"
        print(f"aqumen: {VARIABLE}={name}: {reason}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _core_of(path: Path) -> ModuleType:
    loader = ExtensionFileLoader("aqumen._own", str(path))
    spec = importlib.util.spec_from_file_location("aqumen._own", path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    core: ModuleType = module._core
    core.__file__ = str(path)
    try:
        here = version("aqumen")
    except PackageNotFoundError:
        return core
    if core.__version__ != here:
        raise ImportError(
            f"was built with aqumen {core.__version__}, and this is {here}; build it with this one's sources"
        )
    return core
