"""A packet run to step through: look inside, change it, copy it.

with aqumen.Session("arm-pfc/exp1", aqm="pi", seed=1) as run:
    run.advance("5s")
    print(run.link().queue_pkts)
    run.set("bottleneck.rate", "4Mbit")
    run.advance("5s")
    run.plot()
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aqumen import _core
from aqumen.comparison import check_seed
from aqumen.errors import ScenarioError
from aqumen.result import Result
from aqumen.scenario import Scenario, as_scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from aqumen.custom import CustomClass

T = TypeVar("T")

__all__ = ["FlowState", "LinkState", "Observation", "Session", "WaitingPacket", "what_if"]

EVENT_KEYS = {"rate": "capacity", "delay": "delay", "loss": "loss", "state": "state", "aqm": "aqm"}
"""Keys of a link that `Session.set` takes, with the key of the event that changes them."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation of a queue, as a sampled control law makes it. Counts are since the previous observation."""

    now_s: float
    """Simulated time, seconds."""
    interval_s: float
    """Time since the previous observation, seconds."""
    queue_pkts: float
    """Packets waiting, without the one in transmission."""
    queue_bytes: float
    """Bytes waiting."""
    arrivals_pkts: float
    """Packets that arrived, discarded ones included."""
    accepted_pkts: float
    """Packets that entered the queue."""
    departures_pkts: float
    """Packets whose transmission ended."""
    departures_bytes: float
    """Bytes whose transmission ended."""
    busy_s: float
    """Time of these transmissions, seconds."""
    idle_s: float
    """Time without transmission, seconds."""
    sojourn_s: float
    """Sojourn time of the last packet taken for transmission, seconds."""
    probability: float
    """Marking or dropping probability in force."""


OBSERVATION_FIELDS = tuple(field.name for field in fields(Observation))
"""Names of the numbers of an observation, in order."""


@dataclass(frozen=True, slots=True)
class WaitingPacket:
    """A packet in a queue."""

    flow: int
    """Number of its flow."""
    bytes: int
    """Size on the wire."""
    marked: bool
    """Whether it carries a congestion mark."""


@dataclass(frozen=True, slots=True)
class FlowState:
    """A flow since the previous call of `Session.flows`."""

    group: str
    """Name of its group."""
    window_pkts: float | None
    """Congestion window now, segments; `None` for transports other than TCP."""
    goodput_bps: float
    """Payload delivered in order, bit/s."""
    retransmitted_pkts: int
    """Segments sent again."""
    timeouts: int
    """Retransmission timeouts."""


class LinkState:
    """A link of a session, as it is now."""

    def __init__(self, session: _core.Session, number: int, name: str) -> None:
        """Name the link of a session; `Session.link` does it."""
        self._session, self._number = session, number
        self.name = name
        """Name of the link."""
        self.observation = Observation(*session.observe(number))
        """Observation of the queue since the previous `Session.link` for this link."""

    @property
    def queue_pkts(self) -> int:
        """Packets waiting, without the one in transmission."""
        return int(self.observation.queue_pkts)

    @property
    def queue_bytes(self) -> int:
        """Bytes waiting."""
        return int(self.observation.queue_bytes)

    @property
    def probability(self) -> float:
        """Marking or dropping probability in force."""
        return self.observation.probability

    def contents(self) -> list[WaitingPacket]:
        """Return the packets that wait now, in the order of their arrival."""
        return [WaitingPacket(*packet) for packet in _call(self._session.contents, self._number)]

    def sojourns(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distribution of the sojourn times since the previous call: seconds, and the fraction below."""
        return _call(self._session.sojourns, self._number)

    def series(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the samples so far: times in seconds, packets waiting, probability."""
        return _call(self._session.series, self._number)

    def set_probability(self, p: float) -> None:
        """Replace the AQM by a constant probability, from 0 to 1; packets that can carry a mark are marked."""
        _call(self._session.set_probability, self._number, float(p))

    def _repr_html_(self) -> str:
        waiting = f"{self.queue_pkts} packets, {self.queue_bytes} bytes"
        return f"<b>{self.name}</b> at {self.observation.now_s:g} s: {waiting}, p = {self.probability:.4g}"


class Session:
    """A packet run in progress.

    Stops and looks change nothing: the result has the bits of `aqumen.run`. A session is a context manager, which lets
    its memory go.
    """

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str],
        aqm: str | CustomClass | object | None = None,
        seed: int = 1,
        *,
        packets: bool = True,
    ) -> None:
        """Begin a run.

        Args:
            scenario: A scenario, its name, or the path of its file.
            aqm: AQM of the links under test, as in `aqumen.run`; `None`: that of the scenario.
            seed: Seed of the run.
            packets: Whether `LinkState.contents` is wanted; without it ports are computed in fewer events.
        """
        made = as_scenario(scenario)
        if isinstance(aqm, type):
            from aqumen import custom

            (aqm,), classes = custom.specs([aqm])
            made = made.knowing(classes)
        check_seed(seed)
        self._scenario = made
        self._spec = None if aqm is None else str(aqm)
        self._core: _core.Session | None = _call(_core.Session, made.core, self._spec, seed, packets)

    def __enter__(self) -> Session:
        """Return the session."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the session."""
        self._core = None

    @property
    def _run(self) -> _core.Session:
        if self._core is None:
            raise ScenarioError("the session is closed")
        return self._core

    @property
    def now_s(self) -> float:
        """Time that the run has reached, seconds: all events before it have happened."""
        return _call(lambda: self._run.now_s)

    @property
    def end_s(self) -> float:
        """End of the run, seconds."""
        return _call(lambda: self._run.end_s)

    def advance(self, by: float | str) -> str:
        """Run on for a time, or to the end if that comes first; Ctrl-C leaves the session usable.

        Args:
            by: A time such as `"5s"`, or seconds.

        Returns:
            What is due at the stop: `sample`, `control` (an event, a window's edge, a flow's start or stop), `event`
            (anything of packets) or `end`.
        """
        return self.advance_to(self.now_s + _seconds(by))

    def advance_to(self, until: float | str) -> str:
        """Run up to a time, as `advance` does.

        Args:
            until: A time such as `"20s"`, or seconds since the start.
        """
        return _call(self._run.advance_to, _seconds(until))

    def step_packet(self, link: str | None = None) -> str:
        """Run to the end of the next transmission at a link, as `advance` does.

        Args:
            link: Name of the link; without one the first link under test.
        """
        return _call(self._run.advance_packet, self._number(link)[0])

    @property
    def links(self) -> list[str]:
        """Names of the recorded links."""
        return [name for _, name in _call(self._run.links)]

    def link(self, name: str | None = None) -> LinkState:
        """Look at a link.

        Args:
            name: Name of the link; without one the first link under test.
        """
        number, name = self._number(name)
        return _call(LinkState, self._run, number, name)

    def flows(self) -> list[FlowState]:
        """Return each flow since the previous call."""
        groups = self._run.groups()
        return [
            FlowState(groups[group], window, goodput, retransmitted, timeouts)
            for group, window, goodput, retransmitted, timeouts in _call(self._run.flows)
        ]

    def push(self, event: str | Mapping[str, Any]) -> None:
        """Add an event of a scenario whose time has not passed. The run is repeated up to now, with the same bits.

        Args:
            event: A table such as `{"at": "5s", "capacity": "4Mbit"}`, or its TOML text; without `at` it happens now.
        """
        if not isinstance(event, str):
            event = _table({"at": f"{self.now_s!r}s", **event})
        _call(self._run.push, event)

    def set(self, key: str, value: str | float) -> None:
        """Change a link from now on.

        Args:
            key: `LINK.rate`, `LINK.delay`, `LINK.loss`, `LINK.state` (`up` or `down`) or `LINK.aqm`.
            value: The new value, as in a scenario file.
        """
        link, _, key_of_link = key.rpartition(".")
        if not link or key_of_link not in EVENT_KEYS:
            known = ", ".join(f"{link or 'LINK'}.{known}" for known in EVENT_KEYS)
            raise ScenarioError(f'invalid key "{key}"; choose from: {known}')
        number, _ = self._number(link)
        if key_of_link == "aqm" and isinstance(value, str):
            return _call(self._run.set_aqm, number, value)
        self.push({"link": link, EVENT_KEYS[key_of_link]: value})

    def copy(self) -> Session:
        """Return a copy that continues from the same state with the same bits; custom AQMs are deep-copied."""
        copy = object.__new__(Session)
        copy._scenario, copy._spec, copy._core = self._scenario, self._spec, _call(self._run.copy)
        return copy

    def reseed(self, seed: int) -> None:
        """Draw from other random numbers from now on; the conditions of a radio stay.

        Args:
            seed: Their seed.
        """
        check_seed(seed)
        _call(self._run.reseed, seed)

    def scenario(self) -> Scenario:
        """Return the scenario with what was pushed and set; its run has the bits of this one."""
        return replace(self._scenario, core=_call(self._run.scenario))

    def finish(self) -> Result:
        """Run to the end and return the result. The session is over then."""
        return Result(_call(self._run.finish), self._spec)

    def plot(self, link: str | None = None, figure: Figure | None = None) -> Figure:
        """Draw queue and probability so far; in a notebook call it again with its figure to update the picture.

        Args:
            link: Name of the link; without one the first link under test.
            figure: A figure to draw into.
        """
        from aqumen.view.plot import plot_series

        number, name = self._number(link)
        t_s, queue_pkts, probability = _call(self._run.series, number)
        return plot_series(name, t_s, queue_pkts, probability, figure)

    def _number(self, name: str | None) -> tuple[int, str]:
        links = _call(self._run.links)
        if name is None:
            return links[0]
        for number, known in links:
            if known == name:
                return number, known
        raise ScenarioError(f'no link "{name}"; choose from: {", ".join(known for _, known in links)}')


METRICS = ("queue_mean_pkts", "sojourn_mean_s", "throughput_bps", "probability_mean")
"""Metrics of a future, over the horizon."""


def what_if(
    session: Session,
    changes: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]] | Callable[[Session], object] | None],
    horizon: float | str,
    *,
    futures: int = 10,
    link: str | None = None,
) -> dict[str, dict[str, dict[str, Any]]]:
    """Play paired futures of one state: each change meets the same random numbers.

    Args:
        session: The state to start from; it stays as it is.
        changes: What happens now, by name: an event, several events, a function of a session, or `None` for nothing.
        horizon: How far each future goes, as in `Session.advance`.
        futures: Number of futures of each change, at least 2.
        link: Name of the link that is measured; without one the first link under test.

    Returns:
        For each name, for each of `METRICS`: `mean`, `ci95` (Student's interval over the futures), and for all but the
        first name `difference` and `difference_ci95` (of the pairs, to the first name).
    """
    if futures < 2:
        raise ScenarioError(f"futures = {futures}: at least 2, for an interval")
    if not changes:
        raise ScenarioError("changes is empty: name at least one future")
    found: dict[str, list[dict[str, float]]] = {}
    for name, change in changes.items():
        found[name] = []
        for seed in range(1, futures + 1):
            future = session.copy()
            future.reseed(seed)
            if callable(change):
                change(future)
            elif change is not None:
                for event in [change] if isinstance(change, Mapping) else change:
                    future.push(event)
            found[name].append(_future(future, horizon, link))
    first = next(iter(found.values()))
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for name, runs in found.items():
        table[name] = {}
        for metric in METRICS:
            values = [run[metric] for run in runs]
            mean, _, ci95, _ = _core.summary(values)
            row: dict[str, Any] = {"mean": mean, "ci95": ci95}
            if runs is not first:
                pairs = [value - other[metric] for value, other in zip(values, first, strict=True)]
                row["difference"], _, row["difference_ci95"], _ = _core.summary(pairs)
            table[name][metric] = row
    return table


def _future(session: Session, horizon: float | str, link: str | None) -> dict[str, float]:
    begin = session.now_s
    session.link(link).sojourns()
    session.advance(horizon)
    state = session.link(link)
    t_s, queue_pkts, probability = state.series()
    seen = t_s >= begin
    if not seen.any():
        raise ScenarioError(f"horizon: no sample of the series within {horizon}")
    times, fraction = state.sojourns()
    sojourn = float(np.sum(times * np.diff(fraction, prepend=0.0))) if len(times) else 0.0
    elapsed = session.now_s - begin
    return {
        "queue_mean_pkts": float(queue_pkts[seen].mean()),
        "sojourn_mean_s": sojourn,
        "throughput_bps": state.observation.departures_bytes * 8 / elapsed,
        "probability_mean": float(probability[seen].mean()),
    }


def _seconds(time: float | str) -> float:
    seconds = _call(_core.quantity, "time", time) if isinstance(time, str) else float(time)
    if not 0 <= seconds < 1e9:
        raise ScenarioError(f"{time!r}: a time is a number of seconds from 0 on, such as 5 or '200ms'")
    return seconds


def _table(event: Mapping[str, Any]) -> str:
    """An event as an inline table of TOML."""
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in event.items()) + " }"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _table(value)
    return json.dumps(value)


def _call(call: Callable[..., T], *args: Any) -> T:
    """Call the compiled core; its refusals become those of the package."""
    try:
        return call(*args)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
