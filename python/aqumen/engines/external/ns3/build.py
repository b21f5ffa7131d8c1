"""Builds the ns-3 program on first use and after a change of its source."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from aqumen import _programs

from .errors import Ns3Failed, Ns3Missing

__all__ = ["find_program"]

_MODULES = ("core", "network", "internet", "point-to-point", "traffic-control", "applications")
_FLAGS = ("-O2", "-std=c++17", "-Wl,--no-as-needed")


def find_program() -> Path:
    """Return the path of the program, which is built if needed; `AQUMEN_NS3` overrides it.

    Raises `Ns3Missing` without ns-3 or a compiler, `Ns3Failed` if compilation fails.
    """
    given = os.environ.get("AQUMEN_NS3")
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise Ns3Missing(f"AQUMEN_NS3 is not a program: {given}")
        return Path(found)
    source = Path(__file__).with_name("dumbbell.cc")
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise Ns3Missing("no C++ compiler for the ns-3 program; on Debian or Ubuntu run `apt-get install g++`")
    if not any(Path(folder, "ns3", "core-module.h").is_file() for folder in ("/usr/include", "/usr/local/include")):
        raise Ns3Missing("ns-3 is not installed; on Debian or Ubuntu run `apt-get install libns3-dev`")
    digest = hashlib.sha256(source.read_bytes() + repr((compiler, _FLAGS)).encode()).hexdigest()[:16]
    program = _folder() / f"dumbbell-{digest}"
    if not program.is_file():
        _compile(compiler, source, program)
    return program


def _folder() -> Path:
    """Return the folder of built programs: `build` of a checkout, else the user's cache."""
    checkout = Path(__file__).parents[5]
    if (checkout / "Cargo.toml").is_file():
        return checkout / "build" / "ns3"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aqumen" / "ns3"


def _compile(compiler: str, source: Path, program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    # Build in a temporary folder and rename, since another process may build too.
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        built = Path(folder, "dumbbell")
        libraries = [f"-lns3-{module}" for module in _MODULES]
        command = [compiler, *_FLAGS, str(source), "-o", str(built), *libraries]
        complaint = Path(folder, "err")
        with complaint.open("wb") as err:
            # The compiler starts child processes, which must end with it.
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
            _programs.wait(process)
        if process.returncode != 0:
            text = complaint.read_text(encoding="utf-8", errors="replace")
            said = next((line for line in text.splitlines() if "error" in line), text.strip())
            raise Ns3Failed(f"the ns-3 program does not compile: {said}")
        built.replace(program)
