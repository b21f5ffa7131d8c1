"""Where the experiments' scenario files are."""

from __future__ import annotations

from pathlib import Path

__all__ = ["experiments", "folder"]


def folder() -> Path | None:
    """The folder `experiments` here, or else that of the checkout this package runs from."""
    for candidate in (Path("experiments"), Path(__file__).parents[2] / "experiments"):
        if candidate.is_dir():
            return candidate
    return None


def experiments() -> list[Path]:
    """All scenario files in it."""
    found = folder()
    return [] if found is None else sorted(found.glob("*/*.toml"))
