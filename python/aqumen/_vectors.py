"""Test vectors: independently computed inputs and outputs of each algorithm, checked by the Rust code."""

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
"""Command that runs the tests of this name only. A build from scratch takes about 15 s."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of one file of test vectors."""

    vector: str
    """Name of the file, without suffix."""
    algorithm: str
    """Name of the algorithm."""
    figures: int
    """Number of compared values."""
    worst: float
    """Largest error / tolerance of the file."""
    verdict: str
    """`equal` or `different`."""


def replay() -> list[Replay]:
    """Run all test vectors with the tests of the crate `aqm`; needs a checkout and cargo."""
    root = Path(__file__).parents[2]
    if not (root / "crates/aqm/vectors").is_dir() or shutil.which("cargo") is None:
        raise EngineError(
            "test vectors need a checkout of Aqumen and cargo: clone it, and install Rust (https://rustup.rs)"
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
    """Return the results as a JSON object."""
    return {"schema": SCHEMA, "vectors": [asdict(one) for one in replays]}


def table(replays: Sequence[Replay]) -> str:
    """Format the results as text; the error is relative to each file's tolerance, mostly 1e-9."""
    lines = [f"{'algorithm':<21} {'vector':<28} {'figures':>8} {'error/tolerance':>16}  verdict"]
    lines += [
        f"{one.algorithm:<21} {one.vector:<28} {one.figures:>8} {one.worst:>16.1e}  {one.verdict}" for one in replays
    ]
    return "\n".join(lines) + "\n"
