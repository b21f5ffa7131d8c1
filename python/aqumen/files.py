"""Files as the disk is to hold them: whole or not at all, and JSON that any reader takes."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from aqumen.errors import OutputError

__all__ = ["json_text", "replace", "write_text"]


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


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all.

    Args:
        path: The file.
        text: What it is to hold.
    """
    replace(path, lambda file: file.write(text.encode()))


def replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Put a new file in the place of an old one, as a whole or not at all, also where the machine stops meanwhile.

    Args:
        path: The file.
        write: Writes what it is to hold.
    """
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
