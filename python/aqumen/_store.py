"""Finished runs on disk, so that an interrupted comparison can continue.

A run has two files: `AQM-SEED.json`, the metrics as `run --json` prints them, and `AQM-SEED.npz`, series and
distributions. The key `digest` of the first holds digests of the inputs (`run`) and of the contents of both files
(`metrics`, `arrays`). The JSON file is written last, so a run that has one is complete.
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

__all__ = ["DamagedRun", "Digests", "Store"]

LAYOUT = 4
"""Version of the file format; runs of older versions are repeated."""

BYTES_MAX = 4 << 30
"""Upper bound on the size of a run's file, bytes."""


class Store:
    """Runs below a folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Create the folder if needed.

        Args:
            folder: Output folder; runs go into its subfolder `runs`.
        """
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            # Report a write error now instead of after the first run.
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise OutputError(f"cannot write to {self.folder}: {error.strerror}") from None
        for each in (self.folder, self.runs):
            clear_parts(each)

    def path(self, job: Job, engine: str | None = None) -> Path:
        """Return the path of a run's metrics.

        Args:
            job: AQM and seed.
            engine: The engine, if the folder holds runs of several.
        """
        aqm, seed = job
        spec = (aqm or "scenario") + (f"@{engine}" if engine else "")
        plain = re.sub(r"[^A-Za-z0-9.=@_-]+", "_", spec)
        if plain != spec or len(spec) > 80:
            # A hash keeps different SPECs apart.
            plain = f"{plain[:80]}-{hashlib.sha256(spec.encode()).hexdigest()[:8]}"
        return self.runs / f"{plain}-{seed}.json"

    def save(self, job: Job, answer: Answer, digest: str, engine: str | None = None) -> None:
        """Write a finished run atomically.

        Args:
            job: AQM and seed.
            answer: Result of the engine.
            digest: Digest of the inputs.
            engine: The engine, if the folder holds runs of several.
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
        """Read a finished run; `None` if there is none with this digest.

        Args:
            job: AQM and seed.
            digest: Digest of the inputs.
            engine: The engine, if the folder holds runs of several.

        Raises:
            DamagedRun: The files were changed or cannot be read.
        """
        import numpy as np

        path = self.path(job, engine)
        arrays_path = path.with_suffix(".npz")
        try:
            text = _read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedRun(f"{path}: cannot read: {error.strerror}") from None
        try:
            data = json.loads(text)
            sums = data.pop("digest")
            if not isinstance(sums, dict):
                # Written by a version without checksums.
                return None
            metrics = json_text(data)
            whole = json_text({**data, "digest": sums}).encode() + b"\n" == text
            if not whole or sums["metrics"] != _sum(metrics.encode()):
                raise DamagedRun(f"{path}: changed since it was written")
            if sums.get("file", path.name) != path.name:
                raise DamagedRun(f"{path}: holds the run of {sums['file']}")
            if sums["run"] != digest:
                return None
            packed = _read(arrays_path)
            if sums["arrays"] != _sum(packed):
                raise DamagedRun(f"{arrays_path}: changed since it was written")
            with np.load(io.BytesIO(packed), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return StoredAnswer(metrics, arrays)
        except OSError as error:
            raise DamagedRun(f"{arrays_path}: cannot read: {error.strerror}") from None
        except (ValueError, TypeError, AttributeError, KeyError, AssertionError, RecursionError, zipfile.BadZipFile):
            raise DamagedRun(f"{path}: not a finished run") from None


def _read(path: Path) -> bytes:
    """Read a regular file of bounded size. Pipes and devices are refused, since they may never end."""
    found = path.stat()
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "not a regular file")
    if found.st_size > BYTES_MAX:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return path.read_bytes()


class DamagedRun(Error):
    """A run on disk that was changed or cannot be read; it has to be repeated."""


class StoredAnswer:
    """A run read from disk."""

    def __init__(self, metrics: str, arrays: dict[str, Floats]) -> None:
        """Wrap the contents of a run's two files.

        Args:
            metrics: The metrics as JSON text.
            arrays: Series and distributions.
        """
        self.json = metrics
        self._arrays = arrays
        data = json.loads(metrics)
        self._links, self._windows = list(data["links"]), list(data["windows"])

    def series(self, link: str) -> tuple[Floats, Floats, Floats]:
        """Return times (s), queue lengths (packets, without the one in transmission) and probabilities."""
        k = self._links.index(link)
        return self._arrays[f"t_s_{k}"], self._arrays[f"queue_pkts_{k}"], self._arrays[f"probability_{k}"]

    def state(self, link: str) -> list[tuple[str, Floats]]:
        """Return the AQM's state variables at those times, by name."""
        prefix = f"state_{self._links.index(link)}_"
        return [(key.removeprefix(prefix), values) for key, values in self._arrays.items() if key.startswith(prefix)]

    def sojourn_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return sojourn times (s) and the fraction of packets at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"sojourn_s_{k}_{w}"], self._arrays[f"share_{k}_{w}"]

    def queue_cdf(self, link: str, window: str) -> tuple[Floats, Floats]:
        """Return queue lengths (packets) and the fraction of time at or below each."""
        k, w = self._links.index(link), self._windows.index(window)
        return self._arrays[f"level_pkts_{k}_{w}"], self._arrays[f"time_share_{k}_{w}"]


class Digests:
    """Digests of everything that determines the runs of one scenario on one engine."""

    def __init__(self, scenario: Scenario, engine: str) -> None:
        """Digest the inputs that all runs share.

        Args:
            scenario: The network, its flows, and what happens during a run.
            engine: Name of the engine, such as `packet`.
        """
        parts = [str(LAYOUT), engine, _core.__version__, built(engine), scenario.to_toml()]
        if scenario.custom:
            parts.append(digest(scenario.custom))
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
        """Return the plan with an AQM.

        The plan contains the files that a scenario names (rates, frames, models). It is made for one AQM, since events
        may change parameters that other AQMs lack.
        """
        if spec not in self._plans:
            self._plans[spec] = json_text(self._scenario.plan(aqm=spec)).encode()
        return self._plans[spec]


@functools.cache
def built(engine: str) -> str:
    """Return a digest of an engine's program, or of the code that translates plans for an external simulator.

    Args:
        engine: Name of the engine, such as `packet`.
    """
    return hashlib.sha256(b"".join(_sum(file.read_bytes()).encode() for file in find(engine).files())).hexdigest()


def _sum(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
