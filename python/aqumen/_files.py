"""Files written atomically, and JSON in the standard's syntax."""

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
    """Format JSON; numbers that are not finite become null.

    Args:
        data: Dictionaries, lists, numbers and strings.
        indent: Spaces of indentation; `None` for one line.
    """
    try:
        return json.dumps(data, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(data), indent=indent, allow_nan=False)


def laid_out(data: object) -> str:
    """Format JSON with indentation, for files and `--json`.

    Args:
        data: Dictionaries, lists, numbers and strings.
    """
    return json_text(data, indent=2) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def check_file(path: str | os.PathLike[str]) -> None:
    """Check that a path is a file.

    Args:
        path: Path of a file to read.

    Raises:
        ScenarioError: The path is a folder or does not exist; the message suggests a file with a similar name.
    """
    asked = Path(path)
    if asked.is_dir():
        raise ScenarioError(f"{asked}: is a folder, not a file")
    if not asked.exists():
        folder = asked.parent
        beside = [each for each in folder.iterdir() if each.is_file()] if folder.is_dir() else []
        # Without suffixes, which would make all TOML files similar.
        near = [str(each) for each in beside if meant(asked.stem, [each.stem])]
        raise ScenarioError(f"{asked}: no such file{meant(str(asked), near)}")


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is compressed by gzip.

    Args:
        path: Path of the file to inspect.
    """
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def write_text(path: Path, text: str, *, program: bool = False) -> None:
    """Write a text file atomically.

    Args:
        path: Path of the file to write.
        text: Its contents.
        program: Whether to make it executable.
    """

    def write(file: BinaryIO) -> None:
        if program:
            os.fchmod(file.fileno(), 0o755)
        file.write(text.encode())

    replace(path, write)


def replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Create or replace a file atomically, even if the machine crashes meanwhile.

    Args:
        path: Path of the file to write.
        write: Writes the contents.
    """
    clear_parts(path.parent)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            # Sync before renaming: after a crash the new name must not refer to missing data.
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)


@functools.cache
def clear_parts(folder: Path) -> None:
    """Remove incomplete files of processes that no longer exist; once for each folder.

    Args:
        folder: Output folder.
    """
    for part in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if re.fullmatch(r"\..+\.\d+\.part", part.name) and not _runs(int(part.name.split(".")[-2])):
                part.unlink()


def _runs(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
