"""Freezes of AQMs: what was fixed, when, and the seed of the networks that are drawn afterwards.

The seed follows from digests of the AQMs and the date, so that it cannot be known before they are fixed. A changed AQM
does not match its freeze. A freeze does not prove that nobody made several; publish it before the networks are run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from aqumen._files import check_file, laid_out, write_text
from aqumen._store import built, compiled
from aqumen.custom import digest, from_file, name_of
from aqumen.errors import OutputError
from aqumen.study.drawn import FAMILIES, draw, misinformed_in

__all__ = ["FreezeRecord", "freeze", "read_freeze", "unlike"]

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeRecord:
    """AQMs at a moment."""

    aqms: Mapping[str, str]
    """Digest of source and parameters by AQM, a SPEC."""
    date: str
    """Moment of the freeze, UTC, ISO 8601."""

    @property
    def seed(self) -> int:
        """Seed of the networks, 0 to 2^32 - 1."""
        text = json.dumps([dict(self.aqms), self.date], sort_keys=True)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")

    def write(self, path: Path) -> None:
        """Write the freeze as JSON.

        Args:
            path: File to write; one that is there is not replaced.

        Raises:
            OutputError: The file exists.
        """
        if path.exists():
            raise OutputError(f"{path}: exists; a freeze is not replaced")
        write_text(path, laid_out({"schema": SCHEMA, "date": self.date, "aqms": dict(self.aqms), "seed": self.seed}))


def _digests(aqms: Sequence[str], aqm_from: Sequence[str]) -> dict[str, str]:
    custom = {name_of(each): digest([each]) for each in map(from_file, aqm_from)}
    sources = built("packet")
    names = [*aqms, *(name for name in custom if not any(aqm.partition(":")[0] == name for aqm in aqms))]

    def source(aqm: str) -> str:
        name = aqm.partition(":")[0]
        return custom.get(name) or compiled(name) or sources

    return {aqm: hashlib.sha256(f"{aqm}\0{source(aqm)}".encode()).hexdigest() for aqm in names}


def freeze(aqms: Sequence[str], aqm_from: Sequence[str]) -> FreezeRecord:
    """FreezeRecord AQMs now.

    Args:
        aqms: AQMs with parameters, each a SPEC.
        aqm_from: Custom AQMs, each as FILE:CLASS.
    """
    date = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return FreezeRecord(aqms=_digests(aqms, aqm_from), date=date)


def read_freeze(path: Path) -> FreezeRecord:
    """Read a freeze.

    Args:
        path: File of `study freeze`.

    Raises:
        OutputError: It is none, or its seed does not follow from it.
    """
    check_file(path)
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        found = FreezeRecord(aqms=dict(given["aqms"]), date=str(given["date"]))
        if given["seed"] != found.seed:
            raise OutputError(f"{path}: its seed, {given['seed']}, does not follow from its AQMs and date")
        return found
    except (ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path}: not a freeze ({type(error).__name__})") from None


def unlike(frozen: FreezeRecord, aqm_from: Sequence[str], networks: Mapping[str, str]) -> list[str]:
    """Return what contradicts that the frozen AQMs met these networks blind; empty if nothing does.

    Args:
        frozen: The freeze.
        aqm_from: Custom AQMs as they are now, each as FILE:CLASS.
        networks: Text of the scenario files by name.
    """
    now = _digests(list(frozen.aqms), aqm_from)
    found = [f"{aqm} was changed since the freeze" for aqm, known in frozen.aqms.items() if now[aqm] != known]
    for family in FAMILIES:
        mine = [name for name in networks if name.startswith(f"{family}-{frozen.seed}-")]
        if mine and len(mine) == len(networks):
            drawn = {each.name: each.text for each in draw(family, frozen.seed, len(mine), misinformed_in(mine[0]))}
            changed = [name for name, text in networks.items() if drawn.get(name) != text]
            return found + [f"{name}: is not as drawn from seed {frozen.seed}" for name in changed]
    return [*found, f"the networks were not drawn from the seed of the freeze, {frozen.seed}"]
