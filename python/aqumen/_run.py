"""Data of one run: metrics, series over time, distributions."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from aqumen.engines.answer import Answer
from aqumen.metrics import FlowMetrics, LinkMetrics

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["QueueCdf", "RunData", "Series", "SojournCdf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Time series of a link, equally spaced; all arrays have one value for each time."""

    t_s: Floats
    """Sampling times, seconds."""
    queue_pkts: Floats
    """Queue length without the packet in transmission, packets."""
    probability: Floats
    """Marking or dropping probability in force, 0 to 1."""
    state: dict[str, Floats] = field(default_factory=dict)
    """State variables of the AQM by name, such as `capacity_estimate`; NaN where undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SojournCdf:
    """Distribution function of the sojourn time."""

    sojourn_s: Floats
    """Times from arrival to the start of transmission, seconds, ascending."""
    share: Floats
    """Fraction of packets at or below each time, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCdf:
    """Distribution function of the queue length over time."""

    queue_pkts: Floats
    """Queue lengths, packets, ascending."""
    share: Floats
    """Fraction of time at or below each length, 0 to 1."""


class RunData:
    """Data of one run, without tables and plots."""

    def __init__(self, answer: Answer, spec: str | None = None, label: str | None = None) -> None:
        """Wrap the result of an engine.

        Args:
            answer: Result of the engine.
            spec: The AQM as given by the user; default: its name.
            label: Label in comparisons; default: the AQM.
        """
        self.answer: Answer = answer
        """Result of the engine."""
        self.json: str = answer.json
        """Metrics as JSON text, exactly as `aqumen run --json` prints them."""
        self.data: dict[str, Any] = json.loads(self.json)
        """Metrics as a dictionary."""
        self.spec: str = spec or self.data["aqm"]["name"]
        """The AQM as given by the user."""
        self.label: str = label or self.spec
        """Label in comparisons: the AQM, with the engine if several are compared."""

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.data["seed"])

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return str(self.data["engine"])

    @property
    def scenario(self) -> str:
        """Name of the scenario."""
        return str(self.data["scenario"])

    @property
    def params(self) -> dict[str, float | bool | str]:
        """Parameters of the AQM in force, including those that it designed itself."""
        return dict(self.data["aqm"]["params"])

    @property
    def given(self) -> dict[str, float | bool | str]:
        """Parameters given by a profile or SPEC; the others of `params` are designed or defaults."""
        return dict(self.data["aqm"].get("given", {}))

    @property
    def notes(self) -> list[str]:
        """Remarks on the run, one line each."""
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

    def link(self, name: str | None = None, window: str = "steady") -> LinkMetrics:
        """Return the metrics of a link.

        Args:
            name: Name of the link; default: the first recorded one.
            window: A name of `windows`; "steady" omits the start-up, "all" is the whole run.
        """
        return cast(LinkMetrics, dict(self.data["links"][name or self.links[0]][window]))

    def flow_group(self, name: str, window: str = "steady") -> FlowMetrics:
        """Return the metrics of a flow group.

        Args:
            name: Name of the group in the scenario, one of `flows`.
            window: A name of `windows`; "steady" omits the start-up, "all" is the whole run.
        """
        return cast(FlowMetrics, dict(self.data["flows"][name][window]))

    def series(self, link: str | None = None) -> Series:
        """Return queue length, probability and the AQM's state over time.

        Args:
            link: Name of the link; default: the first recorded one.
        """
        name = link or self.links[0]
        t, queue, p = self.answer.series(name)
        return Series(t_s=t, queue_pkts=queue, probability=p, state=dict(self.answer.state(name)))

    def sojourn_cdf(self, link: str | None = None, window: str = "steady") -> SojournCdf:
        """Return the distribution of the sojourn time.

        Args:
            link: Name of the link; default: the first recorded one.
            window: A name of `windows`; "steady" omits the start-up, "all" is the whole run.
        """
        values, share = self.answer.sojourn_cdf(link or self.links[0], window)
        return SojournCdf(sojourn_s=values, share=share)

    def queue_cdf(self, link: str | None = None, window: str = "steady") -> QueueCdf:
        """Return the distribution of the queue length over time.

        Args:
            link: Name of the link; default: the first recorded one.
            window: A name of `windows`; "steady" omits the start-up, "all" is the whole run.
        """
        values, share = self.answer.queue_cdf(link or self.links[0], window)
        return QueueCdf(queue_pkts=values, share=share)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as text, with series and distributions."""
        from aqumen._answers import stored

        return type(self), (stored(self.answer), self.spec, self.label)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r} on {self.scenario!r}, engine={self.engine!r}, seed={self.seed})"
