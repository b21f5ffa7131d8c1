"""Requests of the sources of a group, read from the plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import Ns2Unsupported

__all__ = ["Ask", "Requests", "read_requests"]

ASKS_MAX = 1_000_000
"""As many are worked out for a source; one that has so many might need more."""


@dataclass(frozen=True, slots=True)
class Ask:
    """`wait_s` after the last was served: `page` begins a page, `transfer` asks for bytes, `read` ends the page."""

    wait_s: float
    what: str
    size_bytes: int
    fresh: bool
    """Whether it opens a connection."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What the sources of a group ask for: one source for each flow, or (`shared`) one for all flows."""

    shared: bool
    sources: tuple[tuple[Ask, ...], ...]


def read_requests(raw: Mapping[str, Any]) -> Requests | None:
    """The requests of a group of the plan; None for other traffic."""
    traffic = raw.get("traffic", "bulk")
    kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
    if kind not in ("transfers", "web") or raw["transport"].get("preset") not in ("ns2", None):
        return None
    sources = raw.get("requests")
    if sources is None:
        raise Ns2Unsupported(f"group '{raw['name']}': ns-2 runs web sessions over one connection at a time here")
    if any(len(source) >= ASKS_MAX for source in sources):
        raise Ns2Unsupported(f"group '{raw['name']}': ns-2 runs at most {ASKS_MAX} requests of a source here")
    shared = kind == "transfers" and "think" not in traffic
    return Requests(shared, tuple(tuple(Ask(*ask) for ask in source) for source in sources))
