"""The compiled core `aqumen._core`: the package's, or that of a crate with custom AQMs, which AQUMEN_CORE names."""

from __future__ import annotations

import os
import sys
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
    try:
        sys.modules["aqumen._core"] = sys.modules["aqumen"]._core = _core_of(name)  # type: ignore[attr-defined]
    except (ImportError, AttributeError, OSError) as error:
        reason = " ".join(str(error).split()) if os.path.isfile(name) else "no such file"
        print(f"aqumen: {VARIABLE}={name}: {reason}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _core_of(name: str) -> ModuleType:
    # Imported here, since most processes need neither.
    from importlib.machinery import ExtensionFileLoader
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import module_from_spec, spec_from_file_location

    path = os.path.abspath(name)
    loader = ExtensionFileLoader("aqumen._own", path)
    spec = spec_from_file_location("aqumen._own", path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    core: ModuleType = module._core
    core.__file__ = path
    try:
        here = version("aqumen")
    except PackageNotFoundError:
        return core
    if core.__version__ != here:
        raise ImportError(f"it was built with aqumen {core.__version__}, and this is {here}; build it anew")
    return core
