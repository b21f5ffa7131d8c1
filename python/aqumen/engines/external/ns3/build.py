"""Builds the ns-3 program when it is first needed, and again when its source has changed."""

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
    """Path of the program, built if need be; `AQUMEN_NS3` names one that was built elsewhere.

    Raises `Ns3Missing` without ns-3 or a compiler, `Ns3Failed` if the compiler does not like it.
    """
    given = os.environ.get("AQUMEN_NS3")
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise Ns3Missing(f"AQUMEN_NS3 names no program: {given}")
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
    """Where built programs are kept: in a checkout its folder `build`, else the user's cache."""
    checkout = Path(__file__).parents[5]
    if (checkout / "Cargo.toml").is_file():
        return checkout / "build" / "ns3"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aqumen" / "ns3"


def _compile(compiler: str, source: Path, program: Path) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    # Built aside and moved: another process may be doing the same.
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        built = Path(folder, "dumbbell")
        libraries = [f"-lns3-{module}" for module in _MODULES]
        command = [compiler, *_FLAGS, str(source), "-o", str(built), *libraries]
        complaint = Path(folder, "err")
        with complaint.open("wb") as err:
            # A compiler is several programs: they end together.
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
            _programs.wait(process)
        if process.returncode != 0:
            text = complaint.read_text(encoding="utf-8", errors="replace")
            said = next((line for line in text.splitlines() if "error" in line), text.strip())
            raise Ns3Failed(f"the ns-3 program does not compile: {said}")
        built.replace(program)
