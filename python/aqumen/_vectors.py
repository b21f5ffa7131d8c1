"""The known answers: inputs and outputs of each algorithm, computed independently, that the Rust code replays."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aqumen.errors import EngineError

__all__ = ["Replay", "replay", "report", "table"]

SCHEMA = 1
"""Version of the JSON layout of `report`."""
COMMAND = (
    *("cargo", "test", "--locked", "--quiet", "--no-fail-fast", "--package", "aqumen-aqm", "--test", "all"),
    *("--", "vectors", "--nocapture", "--test-threads=1"),
)
"""What replays them: the tests of that name, and nothing else. Built from nothing it takes a quarter of a minute."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How one file replayed."""

    vector: str
    """Name of the file, without its ending."""
    algorithm: str
    """What it is of."""
    figures: int
    """Numbers compared."""
    worst: float
    """Largest error, as a share of the tolerance that the file gives."""
    verdict: str
    """`equal` or `different`."""


def replay() -> list[Replay]:
    """Replay all files with the tests of the algorithms' crate; needs a checkout and cargo."""
    root = Path(__file__).parents[2]
    if not (root / "crates/aqm/vectors").is_dir() or shutil.which("cargo") is None:
        raise EngineError(
            "the vectors replay in a checkout of Aqumen, with cargo: clone it, and install Rust (https://rustup.rs)"
        )
    run = subprocess.run(COMMAND, cwd=root, capture_output=True, text=True, check=False)
    found = []
    for line in run.stdout.splitlines():
        _, mark, rest = line.rpartition("vector\t")
        if mark:
            vector, algorithm, figures, worst, verdict = rest.split("\t")
            found.append(Replay(vector, algorithm, int(figures), float(worst), verdict))
    if not found or (run.returncode != 0 and all(one.verdict == "equal" for one in found)):
        raise EngineError(f"cargo test failed: {(run.stderr or run.stdout).strip().splitlines()[-1]}")
    return sorted(found, key=lambda one: (one.algorithm, one.vector))


def report(replays: Sequence[Replay]) -> dict[str, Any]:
    """As JSON."""
    return {"schema": SCHEMA, "vectors": [asdict(one) for one in replays]}


def table(replays: Sequence[Replay]) -> str:
    """As text; the error is a share of each file's tolerance, 1e-9 for nearly all."""
    lines = [f"{'algorithm':<21} {'vector':<28} {'figures':>8} {'error/tolerance':>16}  verdict"]
    lines += [
        f"{one.algorithm:<21} {one.vector:<28} {one.figures:>8} {one.worst:>16.1e}  {one.verdict}" for one in replays
    ]
    return "\n".join(lines) + "\n"
