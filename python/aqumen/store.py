"""Finished runs on disk, so that a comparison that was stopped goes on where it was.

A run is two files: `AQM-SEED.json`, the metrics as `run --json` prints them with the digest of what was run, and
`AQM-SEED.npz`, its series and sojourn times. The first is written last: where it stands, the run is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from aqumen import _core
from aqumen.engines import Job
from aqumen.errors import OutputError
from aqumen.result import Answer, Floats
from aqumen.scenario import Scenario

__all__ = ["Store", "write_text"]

LAYOUT = 2
"""Version of what a run's two files hold: runs written with less are run again."""


class Store:
    """The runs under a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Make the folder where it is absent.

        Args:
            folder: Where results go; runs go into `runs` below it.
        """
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            # Told now, and not after the first run.
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise OutputError(f"cannot write to {self.folder}: {error.strerror}") from None

    def path(self, job: Job, engine: str | None = None) -> Path:
        """Where a run's metrics are.

        Args:
            job: AQM and seed.
            engine: The engine, where runs of several stand beside each other.
        """
        aqm, seed = job
        spec = (aqm or "scenario") + (f"@{engine}" if engine else "")
        plain = re.sub(r"[^A-Za-z0-9.=@_-]+", "_", spec)
        if plain != spec or len(spec) > 80:
            # Two specs must not share a file.
            plain = f"{plain[:80]}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"
        return self.runs / f"{plain}-{seed}.json"

    def save(self, job: Job, answer: Answer, digest: str, engine: str | None = None) -> None:
        """Write a finished run; it is there as a whole or not at all.

        Args:
            job: AQM and seed.
            answer: The engine's answer.
            digest: Digest of what was run.
            engine: The engine, where runs of several stand beside each other.
        """
        path, data = self.path(job, engine), json.loads(answer.json)
        arrays: dict[str, Any] = {}
        for k, link in enumerate(data["links"]):
            arrays[f"t_s_{k}"], arrays[f"queue_pkts_{k}"], arrays[f"probability_{k}"] = answer.series(link)
            for w, window in enumerate(data["windows"]):
                arrays[f"sojourn_s_{k}_{w}"], arrays[f"share_{k}_{w}"] = answer.sojourn_cdf(link, window)
                arrays[f"level_pkts_{k}_{w}"], arrays[f"time_share_{k}_{w}"] = answer.queue_cdf(link, window)
        _replace(path.with_suffix(".npz"), lambda file: np.savez_compressed(file, **arrays))
        write_text(path, json.dumps({**data, "digest": digest}) + "\n")

    def load(self, job: Job, digest: str, engine: str | None = None) -> Answer | None:
        """A finished run, if it is there and was run with just this.

        Args:
            job: AQM and seed.
            digest: Digest of what is to be run.
            engine: The engine, where runs of several stand beside each other.
        """
        path = self.path(job, engine)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(data, dict) or data.pop("digest", None) != digest:
                return None
            with path.with_suffix(".npz").open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return StoredAnswer(data, arrays)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            # Absent or damaged: it is run again.
            return None


class StoredAnswer:
    """A run read back from disk."""

    def __init__(self, data: dict[str, object], arrays: dict[str, Floats]) -> None:
        """Take what the two files held.

        Args:
            data: The metrics.
            arrays: Series and sojourn times.
        """
        self.json = json.dumps(data)
        self._arrays = arrays
        self._links, self._windows = list(_names(data, "links")), list(_names(data, "windows"))

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Times in seconds, packets waiting, probability in force."""
        k = self._links.index(link)
        return self._arrays[f"t_s_{k}"], self._arrays[f"queue_pkts_{k}"], self._arrays[f"probability_{k}"]

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"sojourn_s_{k}_{w}"], self._arrays[f"share_{k}_{w}"]

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Queue lengths in packets and the share of time at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"level_pkts_{k}_{w}"], self._arrays[f"time_share_{k}_{w}"]


def digest_of(scenario: Scenario, job: Job, engine: str) -> str:
    """Digest of all that decides a run: the plan, which holds the AQM's parameters and the seed; engine; versions.

    Args:
        scenario: The scenario.
        job: AQM and seed.
        engine: The engine.
    """
    aqm, seed = job
    parts = [_core.__version__, str(LAYOUT), engine, str(seed), scenario.plan_json(seed, aqm)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole or not at all.

    Args:
        path: The file.
        text: What it is to hold.
    """
    _replace(path, lambda file: file.write(text.encode()))


def _replace(path: Path, write: Callable[[BinaryIO], object]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        # Nothing half-written stays, whatever stopped us.
        part.unlink(missing_ok=True)


def _names(data: dict[str, object], key: str) -> list[str]:
    named = data[key]
    assert isinstance(named, dict)
    return list(named)
