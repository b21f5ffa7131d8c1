"""Append-only store of finished runs: JSON lines below a folder, which any program reads.

A line is one record: `{"key":KEY,"sum":SUM,"data":DATA}`. KEY is `CASE-SEED`, where CASE digests all that
decides a run but its seed (`Digests`); SUM is the CRC-32 of KEY and DATA. A record is never changed: a damaged line
counts as missing, and a later line replaces an earlier one of its key.

Each writer has a file of its own, `runs/HOST-N.jsonl`, which it locks, so that several may write at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Self
from zlib import crc32

from aqumen import _core
from aqumen._files import clear_parts
from aqumen.custom import digest
from aqumen.engines import find
from aqumen.engines.kinds import Job
from aqumen.errors import OutputError
from aqumen.scenario import Scenario

__all__ = ["Digests", "Store"]

LAYOUT = 5
"""Version of the format; runs of other versions are repeated."""

FLUSH_S = 0.5
"""Longest time that a finished run stays in memory, seconds."""

LINE_MAX = 1 << 30
"""Longest line, bytes."""

BEGIN, SUM, DATA = b'{"key":"', b'","sum":"', b'","data":'


class Store:
    """Finished runs below a folder, by key.

    Reading needs no lock. The folder is created, and a file opened, when the first record is written.
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool = True) -> None:
        """Read the keys of the records that are there.

        Args:
            folder: Output folder; records go into its subfolder `runs`.
            write: Create the folder, and report now if it cannot be written.
        """
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        self.damaged: dict[str, str] = {}
        """Places of damaged lines, by key; the place itself is the key where none can be read."""
        if write:
            self._prepare()
        self._places: dict[str, tuple[Path, int, int]] = {}
        for path in sorted(self.runs.glob("*.jsonl")) if self.runs.is_dir() else ():
            for key, _, place in self._lines(path):
                self._places[key] = place
        for key in self._places:
            self.damaged.pop(key, None)
        self._file: FileIO | None = None
        self._waiting: list[bytes] = []
        self._flushed = time.monotonic()

    def _prepare(self) -> None:
        if re.match(r"[A-Za-z][\w+.-]+:/", str(self.folder)):
            raise OutputError(f"{self.folder}: is an address; name a folder of a file system")
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise OutputError(f"cannot write to {self.folder}: {error.strerror}") from None
        for each in (self.folder, self.runs):
            clear_parts(each)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def get(self, key: str) -> bytes | None:
        """Return the data of a record as JSON text; `None` if there is none.

        Args:
            key: Case and seed, as `Digests.of` returns them.
        """
        self.flush()
        place = self._places.get(key)
        if place is None:
            return None
        path, start, length = place
        with path.open("rb") as file:
            file.seek(start)
            return file.read(length)

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Iterate over all records: key and data as JSON text."""
        self.flush()
        for path in dict.fromkeys(path for path, _, _ in self._places.values()):
            for key, data, place in self._lines(path):
                if self._places.get(key) == place:
                    yield key, data

    def put(self, key: str, data: str) -> None:
        """Add a record. It is on disk after `FLUSH_S`, or when `flush` returns.

        Args:
            key: Case and seed, as `Digests.of` returns them.
            data: JSON text on one line.
        """
        self._waiting.append(record(key, data.encode()))
        if time.monotonic() - self._flushed > FLUSH_S:
            self.flush()

    def forget(self, key: str) -> None:
        """Treat a record as missing; its line stays until a later one of its key replaces it.

        Args:
            key: Key of a record that is there.
        """
        del self._places[key]

    def flush(self) -> None:
        """Write the records that wait, and sync the file.

        Raises:
            OutputError: The disk is full or gone. Nothing is half-written; records written before are kept.
        """
        if not self._waiting:
            return
        if self._file is None:
            self._prepare()
            self._file = self._own_file()
        block, start = b"".join(self._waiting), self._file.seek(0, os.SEEK_END)
        path = Path(self._file.name)
        try:
            left = memoryview(block)
            while left:
                # Near a limit, only a part is written.
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(start)
            raise OutputError(f"cannot write {path}: {error.strerror}") from None
        for line in self._waiting:
            key, data, at = parsed(line[:-1]) or ("", b"", 0)
            self._places[key] = (path, start + at, len(data))
            self.damaged.pop(key, None)
            start += len(line)
        self._waiting, self._flushed = [], time.monotonic()

    def close(self) -> None:
        """Write the records that wait and release the file."""
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def merge(self, other: Store) -> int:
        """Add the records of another store that are missing here. Returns how many.

        Args:
            other: The store to read.
        """
        added = 0
        for key, data in other.items():
            if key not in self:
                self.put(key, data.decode())
                added += 1
        self.flush()
        return added

    def _own_file(self) -> FileIO:
        """Open and lock the first file of this machine that no other writer holds."""
        host = re.sub(r"[^A-Za-z0-9_-]+", "_", socket.gethostname()) or "host"
        for number in range(1, 10_000):
            path = self.runs / f"{host}-{number}.jsonl"
            try:
                # Unbuffered, so that a failed write leaves nothing to be written later.
                file = FileIO(path, "a+")
            except OSError as error:
                raise OutputError(f"cannot write {path}: {error.strerror}") from None
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    # A killed writer left half a line.
                    file.write(b"\n")
            return file
        raise OutputError(f"cannot write to {self.runs}: too many writers")

    def _lines(self, path: Path) -> Iterator[tuple[str, bytes, tuple[Path, int, int]]]:
        """Yield key, data and place of each whole record of a file; damaged ones go to `damaged`."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise OSError(0, "not a regular file")
            with path.open("rb") as file:
                start = 0
                for number, line in enumerate(iter(lambda: file.readline(LINE_MAX), b""), 1):
                    found = parsed(line[:-1])
                    if found is not None and line.endswith(b"\n"):
                        key, data, at = found
                        yield key, data, (path, start + at, len(data))
                    elif line.endswith(b"\n") and line.strip():
                        # A last line without end was being written when its writer was killed.
                        said = line[len(BEGIN) : line.find(b'"', len(BEGIN))] if line.startswith(BEGIN) else b""
                        place = f"{path}:{number}"
                        self.damaged[said.decode("ascii", "replace") or place] = place
                    start += len(line)
        except OSError as error:
            self.damaged[str(path)] = f"{path}: cannot read: {error.strerror}"


def record(key: str, data: bytes) -> bytes:
    """Return the line of a record.

    Args:
        key: Case and seed, without quotes.
        data: JSON text on one line.
    """
    name = key.encode()
    return b"%b%b%b%08x%b%b}\n" % (BEGIN, name, SUM, crc32(data, crc32(name)), DATA, data)


def parsed(line: bytes) -> tuple[str, bytes, int] | None:
    """Return key, data and the start of the data in a line; `None` if it is damaged.

    Args:
        line: A line without its end.
    """
    end = line.find(b'"', len(BEGIN))
    start = end + len(SUM) + 8 + len(DATA)
    key, data = line[len(BEGIN) : end], line[start:-1]
    head = b"%b%b%b%08x%b" % (BEGIN, key, SUM, crc32(data, crc32(key)), DATA)
    if end < 0 or line[:start] != head or line[-1:] != b"}":
        return None
    return key.decode("ascii", "replace"), data, start


class Digests:
    """Keys of the runs of one scenario on one engine: digests of everything that decides them."""

    def __init__(self, scenario: Scenario, engine: str, custom: str | None = None) -> None:
        """Digest the inputs that all runs share: the engine's sources, the scenario's text, the files that it names.

        Args:
            scenario: The network, its flows, and what happens during a run.
            engine: Name of the engine, such as `packet`.
            custom: Digest of the scenario's custom classes, if known.
        """
        text = scenario.to_toml()
        shared = hashlib.sha256(f"{LAYOUT}\0{engine}\0{built(engine)}\0{text}\0{compiled(text)}".encode())
        for name, contents in scenario.core.files():
            shared.update(f"{name}\0{len(contents)}\0".encode() + contents)
        if scenario.custom:
            shared.update((custom or digest(scenario.custom)).encode())
        self._shared = shared

    def case(self, aqm: str | None) -> str:
        """Return the digest of everything but the seed.

        Args:
            aqm: The AQM, a SPEC, or `None` for the scenario's.
        """
        case = self._shared.copy()
        case.update(f"\0{aqm}{compiled(aqm or '')}".encode())
        return case.hexdigest()[:24]

    def of(self, job: Job) -> str:
        """Return the key of a run.

        Args:
            job: AQM and seed.
        """
        return f"{self.case(job[0])}-{job[1]}"


@functools.cache
def _compiled() -> tuple[re.Pattern[str], str] | None:
    names = "|".join(map(re.escape, _core.compiled_aqms()))
    if not names:
        return None
    digest = hashlib.sha256(Path(_core.__file__).read_bytes()).hexdigest()
    return re.compile(rf"(?<![\w-])(?:{names})(?![\w-])"), digest


def compiled(text: str) -> str:
    """Return a digest of the compiled core, if a text names a custom AQM that is compiled in, else an empty string.

    Args:
        text: A SPEC, or a scenario.
    """
    found = _compiled()
    return found[1] if found is not None and found[0].search(text) else ""


@functools.cache
def built(engine: str) -> str:
    """Return a digest of a compiled engine's sources, or of an external program and the code that translates plans.

    Args:
        engine: Name of the engine, such as `packet`.
    """
    sources = dict(_core.ENGINES).get(find(engine).kind)
    if sources is not None:
        return sources
    parts = [hashlib.sha256(file.read_bytes()).digest() for file in find(engine).files()]
    return hashlib.sha256(b"".join(parts)).hexdigest()
