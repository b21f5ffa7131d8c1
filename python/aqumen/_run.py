"""Data of one run: metrics, series over time, distributions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aqumen.engines.answer import Answer

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["QueueCdf", "RunData", "Series", "SojournCdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A link over time, sampled at equal steps."""

    t_s: Floats
    """Sampling instants, seconds."""
    queue_pkts: Floats
    """Packets waiting, the one in transmission not counted."""
    probability: Floats
    """Marking or dropping probability in force."""
    state: dict[str, Floats] = field(default_factory=dict)
    """What the AQM shows of its state, such as `capacity_estimate`, by name; NaN where it showed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SojournCdf:
    """How long packets waited: the distribution function."""

    sojourn_s: Floats
    """Times from arrival to the start of transmission, seconds, rising."""
    share: Floats
    """Share of packets that waited at most so long, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCdf:
    """How long the queue was: the distribution function over time."""

    queue_pkts: Floats
    """Packets waiting, rising."""
    share: Floats
    """Share of the time in which at most so many waited, 0 to 1."""


class RunData:
    """Data of one run: what `Result` holds, without its tables and plots."""

    def __init__(self, answer: Answer, spec: str | None = None, label: str | None = None) -> None:
        """Wrap what an engine answered.

        Args:
            answer: The engine's answer.
            spec: The AQM as it was asked for; without one its name is taken.
            label: What tells it from others; without one the AQM.
        """
        self.answer: Answer = answer
        """What the engine answered."""
        self.json: str = answer.json
        """The metrics as JSON text, exactly as `aqumen run --json` prints them."""
        self.data: dict[str, Any] = json.loads(self.json)
        """The same as a dictionary."""
        self.spec: str = spec or self.data["aqm"]["name"]
        """The AQM as it was asked for."""
        self.label: str = label or self.spec
        """What it is called beside others: the AQM, with the engine where several are compared."""

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.data["seed"])

    @property
    def engine(self) -> str:
        """The engine that ran it."""
        return str(self.data["engine"])

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.data["scenario"])

    @property
    def params(self) -> dict[str, float | bool | str]:
        """Parameters of the AQM in force, those included that it designed for itself."""
        return dict(self.data["aqm"]["params"])

    @property
    def given(self) -> dict[str, float | bool | str]:
        """What the AQM was given, by a profile or its SPEC; the rest of `params` is designed, or a default."""
        return dict(self.data["aqm"].get("given", {}))

    @property
    def notes(self) -> list[str]:
        """What a reader should know of the run, one line each."""
        return list(self.data.get("notes", []))

    @property
    def windows(self) -> dict[str, tuple[float, float]]:
        """Start and end of each window, seconds."""
        return {name: (float(start), float(end)) for name, (start, end) in self.data["windows"].items()}

    @property
    def links(self) -> list[str]:
        """Names of the recorded links."""
        return list(self.data["links"])

    @property
    def flows(self) -> list[str]:
        """Names of the flow groups."""
        return list(self.data["flows"])

    def link(self, name: str | None = None, window: str = "steady") -> dict[str, float | None]:
        """Metrics of a link.

        Args:
            name: The link; without one the first recorded.
            window: A name of `windows`; "steady" leaves out the start, "all" has the whole run.
        """
        return dict(self.data["links"][name or self.links[0]][window])

    def flow_group(self, name: str, window: str = "steady") -> dict[str, float | None]:
        """Metrics of a flow group.

        Args:
            name: A name of `flows`, as the scenario calls its group.
            window: A name of `windows`; "steady" leaves out the start, "all" has the whole run.
        """
        return dict(self.data["flows"][name][window])

    def series(self, link: str | None = None) -> Series:
        """Queue length, probability and the AQM's state over time.

        Args:
            link: The link; without one the first recorded.
        """
        name = link or self.links[0]
        t, queue, p = self.answer.series(name)
        return Series(t_s=t, queue_pkts=queue, probability=p, state=dict(self.answer.state(name)))

    def sojourn_cdf(self, link: str | None = None, window: str = "steady") -> SojournCdf:
        """Distribution of the time that packets waited.

        Args:
            link: The link; without one the first recorded.
            window: A name of `windows`; "steady" leaves out the start, "all" has the whole run.
        """
        values, share = self.answer.sojourn_cdf(link or self.links[0], window)
        return SojournCdf(sojourn_s=values, share=share)

    def queue_cdf(self, link: str | None = None, window: str = "steady") -> QueueCdf:
        """Distribution of the queue length over time.

        Args:
            link: The link; without one the first recorded.
            window: A name of `windows`; "steady" leaves out the start, "all" has the whole run.
        """
        values, share = self.answer.queue_cdf(link or self.links[0], window)
        return QueueCdf(queue_pkts=values, share=share)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r} on {self.scenario!r}, engine={self.engine!r}, seed={self.seed})"
