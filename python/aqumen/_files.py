"""Files as the disk is to hold them: whole or not at all, and JSON that any reader takes."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from aqumen.errors import OutputError, ScenarioError, meant

__all__ = ["check_file", "clear_parts", "is_packed", "json_text", "laid_out", "replace", "write_text"]


def json_text(data: object, indent: int | None = None) -> str:
    """JSON as its standard has it: a number that is not finite becomes null.

    Args:
        data: Dictionaries, lists, numbers, words.
        indent: Spaces to indent by; without it one line.
    """
    try:
        return json.dumps(data, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(data), indent=indent, allow_nan=False)


def laid_out(data: object) -> str:
    """JSON for people to read, too: a file, or what `--json` prints.

    Args:
        data: Dictionaries, lists, numbers, words.
    """
    return json_text(data, indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise `ScenarioError` for what is no file that can be read, with the file that may be meant.

    Args:
        path: What was asked for.
    """
    asked = Path(path)
    if asked.is_dir():
        raise ScenarioError(f"{asked}: is a folder, not a file")
    if not asked.exists():
        folder = asked.parent
        beside = [each for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
        # Without their endings: all TOML files are near to one another by those.
        near = [str(each) for each in beside if meant(asked.stem, [each.stem])]
        raise ScenarioError(f"{asked}: no such file{meant(str(asked), near)}")


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is compressed by gzip.

    Args:
        path: The file.
    """
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def write_text(path: Path, text: str, *, program: bool = False) -> None:
    """Write a file as a whole or not at all.

    Args:
        path: The file.
        text: What it is to hold.
        program: Whether it may be executed.
    """

    def write(file: BinaryIO) -> None:
        if program:
            os.fchmod(file.fileno(), 0o755)
        file.write(text.encode())

    replace(path, write)


def replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Put a new file in the place of an old one, as a whole or not at all, also where the machine stops meanwhile.

    Args:
        path: The file.
        write: Writes what it is to hold.
    """
    clear_parts(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            # On the disk before it has its name: a name may survive a crash that the bytes do not.
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        # Nothing half-written stays, whatever stopped us.
        part.unlink(missing_ok=True)


@functools.cache
def clear_parts(folder: Path) -> None:
    """Remove what processes left half-written in a folder that are gone, killed for instance; once for each folder.

    Args:
        folder: Where results are written.
    """
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if re.fullmatch(r"\..+\.\d+\.part", part.name) and not _runs(int(part.name.split(".")[-2])):
                part.unlink()


def _runs(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
