"""Finished runs on disk, so that a comparison that was stopped goes on where it was.

A run is two files: `AQM-SEED.json`, the metrics as `run --json` prints them, and `AQM-SEED.npz`, its series and sojourn
times. Under `digest` the first has digests of what was run (`run`) and of what both files hold (`metrics`, `arrays`).
It is written last: where it stands, the run is whole.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import io
import json
import os
import re
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen._files import clear_parts, json_text, replace, write_text
from aqumen.custom import digest
from aqumen.engines import find
from aqumen.engines.answer import Answer
from aqumen.engines.kinds import Job
from aqumen.errors import Error, OutputError
from aqumen.scenario import Scenario

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["Damaged", "Digests", "Store"]

LAYOUT = 4
"""Version of what a run's two files hold: runs written with less are run again."""

BYTES_MAX = 4 << 30
"""More than any run's file has."""


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
        for each in (self.folder, self.runs):
            clear_parts(each)

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
        import numpy as np

        path, data = self.path(job, engine), json.loads(answer.json)
        arrays: dict[str, Any] = {}
        for k, link in enumerate(data["links"]):
            arrays[f"t_s_{k}"], arrays[f"queue_pkts_{k}"], arrays[f"probability_{k}"] = answer.series(link)
            arrays.update({f"state_{k}_{name}": values for name, values in answer.state(link)})
            for w, window in enumerate(data["windows"]):
                arrays[f"sojourn_s_{k}_{w}"], arrays[f"share_{k}_{w}"] = answer.sojourn_cdf(link, window)
                arrays[f"level_pkts_{k}_{w}"], arrays[f"time_share_{k}_{w}"] = answer.queue_cdf(link, window)
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        replace(path.with_suffix(".npz"), lambda file: file.write(packed.getbuffer()))
        metrics = json_text(data)
        sums = {"run": digest, "file": path.name, "metrics": _sum(metrics.encode()), "arrays": _sum(packed.getbuffer())}
        write_text(path, json_text({**data, "digest": sums}) + "\n")

    def load(self, job: Job, digest: str, engine: str | None = None) -> Answer | None:
        """A finished run; `None` where there is none, or one of something else.

        Args:
            job: AQM and seed.
            digest: Digest of what is to be run.
            engine: The engine, where runs of several stand beside each other.

        Raises:
            Damaged: What is there is not what was written.
        """
        import numpy as np

        path = self.path(job, engine)
        arrays_path = path.with_suffix(".npz")
        try:
            text = _read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Damaged(f"{path}: cannot read: {error.strerror}") from None
        try:
            data = json.loads(text)
            sums = data.pop("digest")
            if not isinstance(sums, dict):
                # Written before there were sums.
                return None
            metrics = json_text(data)
            whole = json_text({**data, "digest": sums}).encode() + b"\n" == text
            if not whole or sums["metrics"] != _sum(metrics.encode()):
                raise Damaged(f"{path}: changed since it was written")
            if sums.get("file", path.name) != path.name:
                raise Damaged(f"{path}: the run of {sums['file']}")
            if sums["run"] != digest:
                return None
            packed = _read(arrays_path)
            if sums["arrays"] != _sum(packed):
                raise Damaged(f"{arrays_path}: changed since it was written")
            with np.load(io.BytesIO(packed), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return StoredAnswer(metrics, arrays)
        except OSError as error:
            raise Damaged(f"{arrays_path}: cannot read: {error.strerror}") from None
        except (ValueError, TypeError, AttributeError, KeyError, AssertionError, RecursionError, zipfile.BadZipFile):
            raise Damaged(f"{path}: no finished run") from None


def _read(path: Path) -> bytes:
    """What a file holds: one on disk and no larger than a run is, since a pipe would never end, nor a device."""
    found = path.stat()
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "it is no file on disk")
    if found.st_size > BYTES_MAX:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return path.read_bytes()


class Damaged(Error):
    """A run on disk that is not as it was written; it is to be run again."""


class StoredAnswer:
    """A run read back from disk."""

    def __init__(self, metrics: str, arrays: dict[str, Floats]) -> None:
        """Take what the two files held.

        Args:
            metrics: The metrics as JSON text.
            arrays: Series and sojourn times.
        """
        self.json = metrics
        self._arrays = arrays
        data = json.loads(metrics)
        self._links, self._windows = list(data["links"]), list(data["windows"])

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Times in seconds, packets waiting, probability in force."""
        k = self._links.index(link)
        return self._arrays[f"t_s_{k}"], self._arrays[f"queue_pkts_{k}"], self._arrays[f"probability_{k}"]

    def state(self, link: str) -> list[tuple[str, Floats]]:
        """What the AQM showed of its state at those times, by name."""
        prefix = f"state_{self._links.index(link)}_"
        return [(key.removeprefix(prefix), values) for key, values in self._arrays.items() if key.startswith(prefix)]

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Sojourn times in seconds and the share of packets at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"sojourn_s_{k}_{w}"], self._arrays[f"share_{k}_{w}"]

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Queue lengths in packets and the share of time at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"level_pkts_{k}_{w}"], self._arrays[f"time_share_{k}_{w}"]


class Digests:
    """Digests of the runs of one scenario on one engine: of all that decides what a run answers."""

    def __init__(self, scenario: Scenario, engine: str) -> None:
        """Take what all its runs share.

        Args:
            scenario: The network, its flows, and what happens during a run.
            engine: What runs it, by name, such as `packet`.
        """
        parts = [str(LAYOUT), engine, _core.__version__, built(engine), scenario.to_toml()]
        if scenario.own:
            parts.append(digest(scenario.own))
        self._shared = "\0".join(parts).encode()
        self._scenario = scenario
        self._plans: dict[str | None, bytes] = {}

    def of(self, job: Job) -> str:
        """The digest of a run.

        Args:
            job: AQM and seed.
        """
        return hashlib.sha256(self._shared + self._plan(job[0]) + f"\0{job}".encode()).hexdigest()

    def _plan(self, spec: str | None) -> bytes:
        """The plan with an AQM: the text names files (rates, frames, models), the plan holds what stands in them.

        That of this AQM and no other: events may change parameters that another does not have.
        """
        if spec not in self._plans:
            self._plans[spec] = json_text(self._scenario.plan(aqm=spec)).encode()
        return self._plans[spec]


@functools.cache
def built(engine: str) -> str:
    """Digest of the program that an engine is: of what was compiled, and for a peer of what describes a plan to it.

    Args:
        engine: What runs it, by name, such as `packet`.
    """
    return hashlib.sha256(b"".join(_sum(file.read_bytes()).encode() for file in find(engine).files())).hexdigest()


def _sum(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
