"""Definition of a study, from a TOML file or from Python, checked before the first run."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aqumen import engines
from aqumen._files import check_file
from aqumen.errors import ScenarioError, listed, meant
from aqumen.study.drawn import COUNT_MAX, FAMILIES, MISINFORMED_MAX
from aqumen.study.factors import DESIGNS, POINTS_MAX, Design, Factor
from aqumen.study.stopping import StoppingRule

__all__ = ["KEYS", "Definition", "seeds_of"]

KEYS = (
    "title", "scenarios", "draw", "aqms", "aqm-from", "traffic-from", "engine", "until", "set", "factors", "design",
    "seeds", "stop", "warm-up", "refused",
)  # fmt: skip
"""Keys of a study."""
DESIGN_KEYS = ("kind", "points", "seed")
DRAW_KEYS = ("family", "seed", "count", "misinformed")
STOP_KEYS = ("metric", "relative", "absolute", "least", "most")
SEEDS_MAX = 100_000
"""Largest number of seeds; more is taken for a typing error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """Scenarios x points x AQMs x seeds of a study."""

    scenarios: tuple[str, ...]
    """Files, names of shipped ones, cells as `NAME@CELL`, all cells as `NAME@*`."""
    aqms: tuple[str, ...]
    """AQMs, each a SPEC."""
    draw: tuple[str, int, int, float] | None = None
    """Family, seed and number of networks that are drawn, beside the scenarios, and how wrong AQMs are told."""
    factors: tuple[Factor, ...] = ()
    """Keys and parameters that vary from point to point."""
    design: Design = field(default_factory=Design)
    """How factors are combined."""
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    """Seeds of each case; with a stopping rule the first `most` of 1, 2, 3, ..."""
    stop: StoppingRule | None = None
    """Stopping rule in place of fixed seeds."""
    engine: str = "packet"
    """Name of the engine."""
    until: str | None = None
    """Simulated time at which each run ends."""
    changes: tuple[tuple[str, str], ...] = ()
    """Keys of the scenarios that are set in all points."""
    aqm_from: tuple[str, ...] = ()
    """Custom AQMs, each as FILE:CLASS."""
    traffic_from: tuple[str, ...] = ()
    """Custom traffic sources, each as FILE:CLASS."""
    warm_up: str | None = None
    """`mser-5`: the window `steady` begins where a pilot run has settled."""
    refused: str = "error"
    """`skip`: an AQM that cannot run in a scenario is left out there."""
    title: str = ""
    """One line."""
    folder: Path = Path()
    """Folder to which names of files are relative."""

    @classmethod
    def load(cls, path: Path) -> Definition:
        """Read a study file.

        Args:
            path: The TOML file.

        Raises:
            ScenarioError: The message names file, line, key and what is accepted.
        """
        check_file(path)
        try:
            text = path.read_text(encoding="utf-8")
            return cls.read(tomllib.loads(text), folder=path.parent, where=Lines(str(path), text))
        except UnicodeDecodeError:
            raise ScenarioError(f"{path}: not UTF-8 text; a study is a TOML file") from None
        except OSError as error:
            raise ScenarioError(f"{path}: cannot read: {error.strerror}") from None
        except tomllib.TOMLDecodeError as error:
            raise ScenarioError(f"{path}: {error}") from None

    @classmethod
    def read(cls, given: Mapping[str, Any], folder: Path = Path(), where: Lines | None = None) -> Definition:
        """Check a study given as a dictionary.

        Args:
            given: The tables of the file.
            folder: Folder to which names of files are relative.
            where: Lines of the file, for messages.
        """
        at = where or Lines("study", "")
        _known(given, KEYS, at, "")
        stop = _stop(given["stop"], at) if "stop" in given else None
        if stop is not None and "seeds" in given:
            raise at.error("seeds", "a study has either `seeds` or a stopping rule, [stop]; leave one out")
        changes = _table(given, "set", at)
        engine = _text(given, "engine", at) or "packet"
        try:
            engines.find(engine)
        except Exception as error:
            raise at.error("engine", str(error)) from None
        warm_up = _text(given, "warm-up", at)
        if warm_up not in (None, "mser-5"):
            raise at.error("warm-up", f'"{warm_up}": must be "mser-5"')
        refused = _text(given, "refused", at) or "error"
        if refused not in ("error", "skip"):
            raise at.error("refused", f'"{refused}": must be "error" or "skip"')
        return cls(
            title=_text(given, "title", at) or "",
            scenarios=_texts(given, "scenarios", at, need="draw" not in given),
            draw=_draw(_table(given, "draw", at), at) if "draw" in given else None,
            refused=refused,
            aqms=_texts(given, "aqms", at, need=not given.get("aqm-from")),
            aqm_from=_texts(given, "aqm-from", at),
            traffic_from=_texts(given, "traffic-from", at),
            factors=_factors(_table(given, "factors", at), at),
            design=_design(_table(given, "design", at), at),
            seeds=tuple(range(1, stop.most + 1)) if stop is not None else _seeds(given.get("seeds", 5), at),
            stop=stop,
            engine=engine,
            until=_text(given, "until", at),
            changes=tuple((key, _plain(value)) for key, value in changes.items()),
            warm_up=warm_up,
            folder=folder,
        )


@dataclass(frozen=True, slots=True)
class Lines:
    """A file's text, in which messages find the line of a key."""

    file: str
    """Name in messages."""
    text: str
    """Contents."""

    def error(self, key: str, message: str) -> ScenarioError:
        """Return an error that names file, line and key.

        Args:
            key: The key; one in a table as `TABLE/KEY`.
            message: The fault and what is accepted.
        """
        line = self.line(key)
        place = self.file if line is None else f"{self.file}:{line}"
        return ScenarioError(f"{place}: {key.replace('/', '.')}: {message}")

    def line(self, key: str) -> int | None:
        """Return the line of a key, or `None`.

        Args:
            key: The key; one in a table as `TABLE/KEY`.
        """
        table, slash, name = key.rpartition("/")
        inside = not slash
        for number, line in enumerate(self.text.splitlines(), 1):
            head = re.match(r"\s*\[+\s*([^\]]*?)\s*\]+", line)
            if head is not None:
                inside = head[1] == table
                if not slash and head[1] == name:
                    return number
            elif (inside and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=""", line)) or (
                slash and re.match(rf"\s*{re.escape(table)}\s*=", line)
            ):
                return number
        return self.line(table) if slash else None


def _known(given: Mapping[str, Any], keys: Sequence[str], at: Lines, table: str) -> None:
    for key in given:
        if key not in keys:
            raise at.error(f"{table}{key}", f"unknown key{meant(key, keys) or ';'} choose from: {listed(keys)}")


def _table(given: Mapping[str, Any], key: str, at: Lines) -> dict[str, Any]:
    value = given.get(key, {})
    if not isinstance(value, Mapping):
        raise at.error(key, f"{value!r}: must be a table, [{key}]")
    return dict(value)


def _text(given: Mapping[str, Any], key: str, at: Lines) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise at.error(key, f"{value!r}: must be a text in quotes")
    return value


def _texts(given: Mapping[str, Any], key: str, at: Lines, need: bool = False) -> tuple[str, ...]:
    value = given.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(each, str) for each in texts):
        raise at.error(key, f"{value!r}: must be a list of texts")
    if need and not texts:
        raise at.error(key, "missing; name at least one")
    if len(set(texts)) != len(texts):
        raise at.error(key, "a name stands there twice")
    return tuple(texts)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _factors(given: Mapping[str, Any], at: Lines) -> tuple[Factor, ...]:
    found = []
    for name, levels in _flat(given).items():
        try:
            found.append(Factor.read(name, levels))
        except ScenarioError as error:
            raise at.error(f"factors/{name}", str(error)) from None
    return tuple(found)


def _flat(given: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Join bare dotted keys, which TOML reads as nested tables."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping) and value and not {"from", "to", "law"} & set(value):
            flat.update(_flat(value, f"{name}."))
        else:
            flat[name] = value
    return flat


def _design(given: Mapping[str, Any], at: Lines) -> Design:
    _known(given, DESIGN_KEYS, at, "design/")
    kind, count, seed = given.get("kind", "grid"), given.get("points", 0), given.get("seed", 1)
    if kind not in DESIGNS:
        raise at.error("design/kind", f'"{kind}": choose from: {listed(DESIGNS)}')
    if kind == "grid" and "points" in given:
        raise at.error("design/points", "a grid has as many points as its levels give; choose a design that samples")
    if kind != "grid" and not (type(count) is int and 1 <= count <= POINTS_MAX):
        raise at.error("design/points", f"{count!r}: must be 1 to {POINTS_MAX}")
    if type(seed) is not int or not 0 <= seed < 2**63:
        raise at.error("design/seed", f"{seed!r}: must be 0 to 2^63 - 1")
    return Design(kind=kind, points=count, seed=seed)


def _draw(given: Mapping[str, Any], at: Lines) -> tuple[str, int, int, float]:
    _known(given, DRAW_KEYS, at, "draw/")
    if missing := next((key for key in ("family", "seed") if key not in given), None):
        raise at.error(f"draw/{missing}", "missing")
    family, seed, count = given["family"], given["seed"], given.get("count", 60)
    if family not in FAMILIES:
        raise at.error("draw/family", f"{family!r}: choose from: {listed(FAMILIES)}")
    if type(seed) is not int or not 0 <= seed < 2**64:
        raise at.error("draw/seed", f"{seed!r}: must be 0 to 2^64 - 1")
    if type(count) is not int or not 1 <= count <= COUNT_MAX:
        raise at.error("draw/count", f"{count!r}: must be 1 to {COUNT_MAX}")
    misinformed = given.get("misinformed", 1)
    if type(misinformed) not in (int, float) or not 1 <= misinformed <= MISINFORMED_MAX:
        raise at.error("draw/misinformed", f"{misinformed!r}: must be 1 to {MISINFORMED_MAX:g}")
    return family, seed, count, float(misinformed)


def _stop(given: object, at: Lines) -> StoppingRule:
    if not isinstance(given, Mapping):
        raise at.error("stop", f"{given!r}: must be a table, [stop]")
    _known(given, STOP_KEYS, at, "stop/")
    metric = given.get("metric")
    if not isinstance(metric, str) or not metric:
        raise at.error("stop/metric", "missing; name a metric, such as queue_mean_pkts")
    if ("relative" in given) == ("absolute" in given):
        raise at.error("stop", 'needs one width: relative = "2%" or absolute = 0.5')
    widths: dict[str, float] = {}
    for key in ("relative", "absolute"):
        if key in given:
            text = str(given[key]).strip()
            try:
                width = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            except ValueError:
                width = 0.0
            if not 0 < width < float("inf") or isinstance(given[key], bool):
                raise at.error(f"stop/{key}", f'{given[key]!r}: must be a number above 0, or a percentage such as "2%"')
            widths[key] = width
    least, most = given.get("least", 5), given.get("most", 200)
    if type(least) is not int or not 2 <= least <= SEEDS_MAX:
        raise at.error("stop/least", f"{least!r}: must be 2 to {SEEDS_MAX}")
    if type(most) is not int or not least <= most <= SEEDS_MAX:
        raise at.error("stop/most", f"{most!r}: must be {least} (least) to {SEEDS_MAX}")
    return StoppingRule(metric=metric, least=least, most=most, **widths)


def _seeds(given: object, at: Lines) -> tuple[int, ...]:
    try:
        return tuple(seeds_of(given))
    except ScenarioError as error:
        raise at.error("seeds", str(error)) from None


def seeds_of(given: object) -> list[int]:
    """Return the seeds that a number (1 to N), a range `11-20`, a list of both by commas, or a list stand for.

    Args:
        given: As in a study file or after `--seeds`.

    Raises:
        ScenarioError: It stands for none, or for too many.
    """
    if type(given) is int or (isinstance(given, str) and re.fullmatch(r"\s*\d+\s*", given)):
        count = int(str(given))
        if not 1 <= count <= SEEDS_MAX:
            raise ScenarioError(f"{given}: must be 1 to {SEEDS_MAX}")
        return list(range(1, count + 1))
    pieces = given.split(",") if isinstance(given, str) else given
    seeds: list[int] = []
    for piece in pieces if isinstance(pieces, (list, tuple)) else ["?"]:
        found = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", str(piece))
        first, last = (0, -1) if found is None else (int(found[1]), int(found[2] or found[1]))
        if found is None or not first <= last < 2**64 or last - first >= SEEDS_MAX:
            raise ScenarioError(f"{given}: must be a number of seeds (20), a range (11-20) or a list (1,2,7)")
        seeds += range(first, last + 1)
    if not seeds or len(set(seeds)) != len(seeds):
        raise ScenarioError(f"{given}: names no seed, or one twice")
    return sorted(seeds)
