"""Requests of a group's sources, read from the plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import Ns2Unsupported

__all__ = ["RequestStep", "Requests", "read_requests"]

ASKS_MAX = 1_000_000
"""Maximum number of steps of a source; a source with as many may have more."""


@dataclass(frozen=True, slots=True)
class RequestStep:
    """A step, `wait_s` after the previous one: `page` begins a page, `transfer` requests bytes, `read` ends a page."""

    wait_s: float
    what: str
    size_bytes: int
    fresh: bool
    """Whether it opens a connection."""


@dataclass(frozen=True, slots=True)
class Requests:
    """Steps of a group's sources: one source for each flow, or (`shared`) one for all flows."""

    shared: bool
    sources: tuple[tuple[RequestStep, ...], ...]


def read_requests(raw: Mapping[str, Any]) -> Requests | None:
    """Read the requests of a group's plan; None for other traffic."""
    traffic = raw.get("traffic", "bulk")
    kind = traffic["kind"] if isinstance(traffic, Mapping) else traffic
    if kind not in ("transfers", "web") or raw["transport"].get("preset") not in ("ns2", None):
        return None
    sources = raw.get("requests")
    if sources is None:
        raise Ns2Unsupported(f"group '{raw['name']}': ns-2 runs web sessions only over one connection at a time")
    if any(len(source) >= ASKS_MAX for source in sources):
        raise Ns2Unsupported(f"group '{raw['name']}': ns-2 runs at most {ASKS_MAX} requests of a source")
    shared = kind == "transfers" and "think" not in traffic
    return Requests(shared, tuple(tuple(RequestStep(*ask) for ask in source) for source in sources))
