"""Your own code: an AQM, as a control law that is sampled or deciding packet by packet, or a source of traffic.

import aqumen

class MyPi(aqumen.SampledLaw):
    period = 0.01
    p = 0.0

    def step(self, seen):
        self.p = min(max(self.p + 1e-5 * (seen.queue_pkts - 100), 0.0), 1.0)
        return self.p

aqumen.compare("arm-pfc/exp1", ["pi", MyPi], seeds=20)
"""

from __future__ import annotations

import functools
import hashlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from aqumen import _core
from aqumen.errors import OwnError, ScenarioError

if TYPE_CHECKING:
    from aqumen._core import PacketView, QueueView, Seen

__all__ = ["Network", "OwnAqm", "PacketAqm", "Param", "SampledLaw", "TrafficSource", "from_file"]

UNITS = ("", "pkt", "B", "s", "Hz", "bit/s", "1/pkt")
"""Units of a parameter. In a SPEC it is written with one of the same kind: `5ms` for seconds."""


class Param:
    """A parameter: an attribute of the class, and of each instance the value in force.

    gain = Param(1e-5, unit="1/pkt", low=0, doc="weight of the error")
    """

    def __init__(
        self,
        default: float | None,
        unit: str = "",
        low: float | None = None,
        high: float | None = None,
        doc: str = "",
    ) -> None:
        """Describe it.

        Args:
            default: Its value where a SPEC gives none; `None`: `start` chooses one.
            unit: "pkt", "B", "s", "Hz", "bit/s", "1/pkt", or "" for a plain number.
            low: The least value that it takes.
            high: The greatest.
            doc: One line on what it does.
        """
        self.default, self.unit, self.low, self.high, self.doc = default, unit, low, high, doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> Any:
        # Only until the instance has an attribute of this name: from then on a step reads that, without a call.
        return self if instance is None else self.default


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network for which an AQM designs itself: the scenario's `[nominal]`, and the link."""

    capacity_bps: float
    """Capacity, bit/s."""
    flows: float
    """Number of long-lived flows."""
    base_rtt_s: float
    """Round-trip time without queueing, seconds."""
    target_pkts: float
    """Target queue length, packets."""
    packet_bytes: float
    """Size of a packet on the wire, bytes."""
    link_bps: float
    """Rate of the link when the run starts, bit/s."""
    buffer_pkts: float
    """Room of the queue, packets."""

    @property
    def capacity_pps(self) -> float:
        """Capacity, packets per second."""
        return self.capacity_bps / (8.0 * self.packet_bytes)

    @property
    def r0_s(self) -> float:
        """Round-trip time when the queue is at its target, seconds."""
        return self.base_rtt_s + self.target_pkts / self.capacity_pps


class OwnAqm:
    """What both kinds of AQMs share. Instances are made for each queue and run; none is shared."""

    name: ClassVar[str] = ""
    """Its name in a SPEC; without one it follows from the class: `MyPi` is `my-pi`."""
    network: Network
    """The nominal network, there when `start` is called."""

    def start(self) -> None:
        """Called once, when `network` and all parameters are there: choose here what follows from them."""

    def take_over(self, old: Any) -> None:
        """Called after `start` when parameters change during a run: take from `old` what is state.

        Args:
            old: The instance before.
        """


class SampledLaw(OwnAqm):
    """A control law: at each period it turns what was seen into the probability of a mark or loss.

    It runs in the packet engine, the fluid engine, replays and the theory.
    """

    period: float | tuple[float, float] = 0.01
    """Seconds between two steps; of a law with two loops both, and `seen.loop` says which one steps."""
    initial: float = 0.0
    """The probability before the first step."""
    ecn: bool = True
    """Whether packets that can carry a mark are marked and not dropped: the parameter `ecn`."""

    def step(self, seen: Seen) -> float:
        """The probability, from 0 to 1, that applies until the next step.

        Args:
            seen: The queue now, and what went through it since the same loop's last step.
        """
        raise NotImplementedError


class PacketAqm(OwnAqm):
    """An algorithm that decides packet by packet: slower than a law, and free to do anything.

    A verdict is None or "pass", "mark" or "drop"; "mark" drops a packet that cannot carry a mark. Only what a class
    defines is called.
    """

    period: float = 0.01
    """Seconds between two calls of `on_timer`."""

    def on_arrival(self, packet: PacketView, queue: QueueView) -> str | None:
        """What happens to a packet that arrives.

        Args:
            packet: Its size, ECN field and flow.
            queue: The queue before it enters.
        """
        return None

    def on_dequeue(self, packet: PacketView, queue: QueueView) -> str | None:
        """What happens to the packet at the head, about to be transmitted. After a drop the next one is asked about.

        Args:
            packet: Its size, ECN field and flow.
            queue: The queue without it; `sojourn_s` is how long it waited.
        """
        return None

    def on_timer(self, queue: QueueView) -> None:
        """Called at each period.

        Args:
            queue: What waits there now, and how full it is.
        """


class TrafficSource:
    """What an application sends, as packets or as whatever the flow's transport makes of so many bytes at once.

    An instance is made for each flow and run. It runs in the packet engine.
    """

    name: ClassVar[str] = ""
    """Its name in a scenario; without one it follows from the class: `MySource` is `my-source`."""
    random: Random
    """Chances of this flow and seed, there when `start` is called: with no others equal seeds give equal results."""

    def start(self) -> None:
        """Called once, when all parameters are there: choose here what follows from them."""

    def next(self) -> tuple[float, int] | None:
        """How many seconds after the bytes before the next are sent, and how many; the first after the flow's start.

        With 0 bytes it only waits; `None`: it sends no more.
        """
        raise NotImplementedError


OwnAqmClass = type[SampledLaw] | type[PacketAqm]
Own = OwnAqmClass | type[TrafficSource]


def name_of(own: Own) -> str:
    """Its name in a SPEC.

    Args:
        own: The class.
    """
    name = own.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", own.__name__).lower().replace("_", "-")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ScenarioError(f"{own.__name__}: the name `{name}` must be words of a-z and 0-9 with `-` between them")
    return name


def params_of(own: Own) -> list[Param]:
    """Its parameters, those of its bases first.

    Args:
        own: The class.
    """
    found: dict[str, Param] = {}
    for base in reversed(own.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Param):
                found[name] = value
            else:
                found.pop(name, None)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Row:
    """What the compiled core reads of a class."""

    name: str
    title: str
    summary: str
    params: list[tuple[str, str, float | None, float | None, float | None, str]]
    kind: str
    make: Callable[[Any, dict[str, Any]], Any]


def _row(own: Own) -> _Row:
    params = params_of(own)
    for param in params:
        if param.unit not in UNITS:
            known = ", ".join(f'"{unit}"' for unit in UNITS)
            raise ScenarioError(f'{own.__name__}.{param.name}: unknown unit "{param.unit}"; there are: {known}')
    told = [(p.name, p.unit, _number(p.default), _number(p.low), _number(p.high), p.doc) for p in params]
    base, kind, asked = next(each for each in _KINDS if issubclass(own, each[0]))
    if all(getattr(own, name) is getattr(base, name) for name in asked):
        raise ScenarioError(f"{own.__name__}: it {_IDLE[kind]}; define {' or '.join(f'{name}()' for name in asked)}")
    summary = (inspect.getdoc(own) or "").partition("\n")[0]
    make: Any = _source if kind == "traffic" else _make
    return _Row(name_of(own), own.__name__, summary, told, kind, functools.partial(make, own))


_KINDS: tuple[tuple[type, str, tuple[str, ...]], ...] = (
    (SampledLaw, "law", ("step",)),
    (PacketAqm, "packets", ("on_arrival", "on_dequeue", "on_timer")),
    (TrafficSource, "traffic", ("next",)),
)
"""What there is: the base class, what the core calls it, and the methods of which at least one is defined."""
_IDLE = {"law": "decides nothing", "packets": "decides nothing", "traffic": "sends nothing"}


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _started(own: Own, given: dict[str, Any], values: dict[str, Any]) -> tuple[Any, list[tuple[str, float]]]:
    """An instance that has `given` and its parameters when it starts; and their values in force."""
    made = own()
    params = params_of(own)
    for name, value in {**{param.name: param.default for param in params}, **values, **given}.items():
        setattr(made, name, value)
    made.start()
    force = []
    for param in params:
        value = getattr(made, param.name)
        if value is None:
            raise TypeError(f"parameter {param.name} has no default, and start() gave it no value")
        force.append((param.name, float(value)))
    return made, force


def _source(own: type[TrafficSource], seed: int, values: dict[str, Any]) -> Callable[[], tuple[float, int] | None]:
    """The `next` of an instance, as the core takes it."""
    made, _ = _started(own, {"random": Random(seed)}, values)
    asked: Callable[[], tuple[float, int] | None] = made.next
    return asked


def _make(own: OwnAqmClass, network: dict[str, float], values: dict[str, Any]) -> tuple[Any, ...]:
    """An instance, as the core takes it."""
    made, force = _started(own, {"network": Network(**network)}, values)
    if isinstance(made, SampledLaw):
        periods = list(made.period) if isinstance(made.period, (tuple, list)) else [made.period]
        if not 1 <= len(periods) <= 2:
            raise ValueError(f"period = {made.period}: a law has one period or two")
        if not 0.0 <= made.initial <= 1.0:
            raise ValueError(f"initial = {made.initial}: a probability is from 0 to 1")
        return made, made.step, [_seconds(each) for each in periods], float(made.initial), force, bool(made.ecn)
    asked = [
        getattr(made, name) if getattr(own, name) is not getattr(PacketAqm, name) else None
        for name in ("on_arrival", "on_dequeue", "on_timer")
    ]
    return made, *asked, _seconds(made.period), force


def _seconds(period: Any) -> float:
    if isinstance(period, Real):
        return float(period)
    raise TypeError(f"period = {period!r}: a number of seconds, such as 0.01")


@functools.lru_cache(maxsize=64)
def catalogue(own: tuple[Own, ...]) -> _core.Catalogue:
    """What is built in, and these.

    Args:
        own: The classes.
    """
    names = [name_of(each) for each in own]
    for name in names:
        if names.count(name) > 1:
            raise ScenarioError(f"two classes of your own are called `{name}`; give one a `name`")
    try:
        return _core.Catalogue([_row(each) for each in own])
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def as_own(thing: object) -> Own | None:
    """`thing` if it is a class of one's own AQM or source.

    Args:
        thing: Anything.
    """
    return thing if isinstance(thing, type) and issubclass(thing, (SampledLaw, PacketAqm, TrafficSource)) else None


def is_aqm(own: Own) -> bool:
    """Whether it is an AQM, and no source of traffic.

    Args:
        own: The class.
    """
    return not issubclass(own, TrafficSource)


def specs(aqms: Iterable[object]) -> tuple[list[str], list[Own]]:
    """SPECs and classes as SPECs, and the classes among them.

    Args:
        aqms: SPECs, objects of `aqumen.aqms`, classes.
    """
    found = [(as_own(aqm), aqm) for aqm in aqms]
    for own, _ in found:
        if own and not is_aqm(own):
            raise ScenarioError(f"{own.__name__}: a source of traffic, no AQM; a scenario that knows it names it")
    return [name_of(own) if own else str(aqm) for own, aqm in found], [own for own, _ in found if own]


def from_file(spec: str, *, traffic: bool = False) -> Own:
    """The class of an AQM, or of a source of traffic, in a file.

    Args:
        spec: The file and the class: `my_aqm.py:MyPi`. The class may be left out where the file has one alone. A file
            whose name does not end in .py is given with its folder: `./my_aqm:MyPi`.
        traffic: Whether a source of traffic is meant.
    """
    file, wanted = _parts(spec)
    path = Path(file)
    if path.suffix != ".py" and "/" not in file and os.sep not in file:
        example = "my_source.py:MySource" if traffic else "my_aqm.py:MyAqm"
        raise ScenarioError(f"{spec}: name a Python file and a class in it: {example}")
    if not path.is_file():
        raise ScenarioError(f"{path}: {'a folder' if path.is_dir() else 'no such file'}")
    module = _module(path.resolve(), path.stat().st_mtime_ns)
    every = {
        name: own
        for name, value in vars(module).items()
        if (own := as_own(value)) and value.__module__ == module.__name__
    }
    here = {name: own for name, own in every.items() if is_aqm(own) is not traffic}
    if wanted in here:
        return here[wanted]
    known = ", ".join(here) or "none"
    what, bases = ("source", "TrafficSource") if traffic else ("AQM", "SampledLaw or PacketAqm")
    if wanted in every:
        other = "--aqm-from" if traffic else "--traffic-from"
        raise ScenarioError(f"{path}: {wanted} is no {what} but for {other}; there are: {known}")
    if wanted:
        raise ScenarioError(f"{path}: no {what} class {wanted} (of {bases}); there are: {known}")
    if len(here) != 1:
        raise ScenarioError(f"{path}: which class? Write {path}:CLASS; there are: {known}")
    return next(iter(here.values()))


def _parts(spec: str) -> tuple[str, str]:
    """The file and the class of FILE:CLASS, where the file's name may have colons too."""
    file, _, wanted = spec.rpartition(":")
    if not file or not wanted.isidentifier() or (Path(spec).is_file() and not Path(file).is_file()):
        return spec.removesuffix(":"), ""
    return file, wanted


@functools.lru_cache(maxsize=64)
def _module(path: Path, _changed_ns: int) -> Any:
    """The module in a file, run once for each of its versions."""
    name = f"aqumen_own_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    loader = importlib.machinery.SourceFileLoader(name, os.fspath(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Modules beside it are found as for a script.
    beside = str(path.parent)
    sys.path.insert(0, beside)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise OwnError(f"{path.name}: cannot be read: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(beside)
    return module


def digest(own: Sequence[Own]) -> str:
    """Digest of the source of classes: of the files in which they and their bases stand, and of modules beside those.

    Args:
        own: The classes.
    """
    parts = [f"{name_of(each)}\0{each.__qualname__}" for each in own]
    files: set[Path] = set()
    for each in own:
        for base in each.__mro__:
            if base.__module__ in ("builtins", "aqumen.own"):
                continue
            try:
                file = Path(inspect.getfile(base))
                parts.append(inspect.getsource(base))
            except (TypeError, OSError):
                # Written where no source is kept: what it does cannot be known again.
                parts.append(f"{id(base)} of process {os.getpid()}")
                continue
            files.add(file)
    folders = {file.parent.resolve() for file in files if file.is_file()}
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if source and (path := Path(source)).suffix == ".py" and path.parent.resolve() in folders:
            files.add(path.resolve())
    parts += [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(files) if file.is_file()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
