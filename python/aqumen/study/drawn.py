"""Networks drawn at random: scenario files from a family, a seed and a number, the same on every machine.

Each value is drawn by its name from a digest of family, seed and number, so that a network does not depend on how many
are drawn, and a law that is added later changes no other value. `laws` returns the table of docs/ranking.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen.errors import ScenarioError, listed
from aqumen.scenario import Scenario

__all__ = ["COUNT_MAX", "FAMILIES", "PACKETS_MAX", "DrawnNetwork", "draw", "laws", "misinformed_in"]

LAWS = 1
"""Version of the laws; a change of any law that moves drawn values increases it."""
PACKETS_MAX = 300_000
"""Packets that cross the bottleneck in a run, at most, about."""
ROUND_TRIPS = 40
"""Longest round trips that a run lasts, at least."""
COUNT_MAX = 10_000
"""Most networks of one seed."""
MISINFORMED_MAX = 100.0
"""Largest factor by which AQMs are misinformed."""
PER_DECADE = 48
"""Values of a decade from which logarithmic laws draw, three digits each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Ranges and weights of a family of networks."""

    title: str
    """Kind of links."""
    rate: tuple[float, float]
    """Rate of a wired link, bit/s."""
    rtt: tuple[float, float]
    """Longest round-trip time without queueing, seconds."""
    flows: tuple[float, float]
    """Endless TCP transfers."""
    media: Mapping[str, int]
    """Weights of media."""
    senders: Mapping[str, int]
    """Weights of the mixes of senders."""
    min_rto: str = ""
    """Lower bound of the retransmission timeout; the transport's if empty."""


SENDERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cubic": (("cubic", 'preset = "linux", ecn = false'),),
    "cubic-ecn": (("cubic", 'preset = "linux", ecn = true'),),
    "reno": (("reno", 'preset = "linux-reno", ecn = false'),),
    "bbr": (("bbr", 'preset = "linux-bbr", ecn = false'),),
    "mixed": (("cubic", 'preset = "linux", ecn = false'), ("bbr", 'preset = "linux-bbr", ecn = false')),
    "dctcp": (("dctcp", 'preset = "dctcp"'),),
    "l4s": (("cubic", 'preset = "linux", ecn = true'), ("prague", 'preset = "prague"')),
}
"""Groups of endless transfers of each mix, half of the flows each where there are two."""
EVERY = {"cubic": 3, "cubic-ecn": 2, "reno": 1, "bbr": 1, "mixed": 2, "l4s": 2}
FAMILIES: Mapping[str, Family] = {
    "access": Family(
        title="lines of households, Wi-Fi and cells",
        rate=(64e3, 1e9),
        rtt=(5e-3, 0.6),
        flows=(1, 30),
        media={"wired": 5, "wifi": 2, "lte": 2, "umts": 1, "shared": 1},
        senders=EVERY,
    ),
    "provider": Family(
        title="links between routers with many flows",
        rate=(10e6, 10e9),
        rtt=(2e-3, 0.6),
        flows=(10, 1000),
        media={"wired": 1},
        senders=EVERY,
    ),
    "datacenter": Family(
        title="links between and in data centres",
        rate=(1e9, 10e9),
        rtt=(1e-3, 5e-3),
        flows=(1, 300),
        media={"wired": 1},
        senders={"cubic": 1, "cubic-ecn": 2, "dctcp": 2, "l4s": 1},
        min_rto="5ms",
    ),
    "any": Family(
        title="all of these, each value over its whole range",
        rate=(64e3, 10e9),
        rtt=(1e-3, 0.6),
        flows=(1, 1000),
        media={"wired": 8, "wifi": 1, "lte": 1, "umts": 1, "shared": 1},
        senders={**EVERY, "dctcp": 1},
    ),
}
"""Families by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNetwork:
    """A network of a family."""

    name: str
    """Name, such as `any-7-012`: family, seed, number; `any-7-012-x4` if AQMs are told values wrong by 4."""
    text: str
    """The scenario as TOML text."""


def draw(family: str, seed: int, count: int, misinformed: float = 1.0) -> list[DrawnNetwork]:
    """Draw networks. The first ones do not depend on `count`.

    Args:
        family: Name in `FAMILIES`.
        seed: Seed, 0 to 2^64 - 1.
        count: Number of networks, 1 to `COUNT_MAX`.
        misinformed: Factor, 1 to `MISINFORMED_MAX`, by which capacity, flows and round trip that AQMs are told are
            wrong, each too large or too small at random; 1: they are told the truth.

    Raises:
        ScenarioError: A value is out of its range.
    """
    if family not in FAMILIES:
        raise ScenarioError(f"family {family}: choose from: {listed(FAMILIES)}")
    if not 0 <= seed < 2**64:
        raise ScenarioError(f"seed {seed}: must be 0 to 2^64 - 1")
    if not 1 <= count <= COUNT_MAX:
        raise ScenarioError(f"count {count}: must be 1 to {COUNT_MAX}")
    if not 1 <= misinformed <= MISINFORMED_MAX:
        raise ScenarioError(f"misinformed {misinformed:g}: must be 1 to {MISINFORMED_MAX:g}")
    networks = [_network(family, seed, number) for number in range(1, count + 1)]
    if misinformed == 1:
        return networks
    return [
        _misinformed(each, _Draws(family, seed, number), misinformed) for number, each in enumerate(networks, start=1)
    ]


def misinformed_in(name: str) -> float:
    """Return the factor by which AQMs are misinformed in a drawn network.

    Args:
        name: Name of the network.
    """
    factor = re.search(r"-x([\d.]*\d)$", name)
    return float(factor[1]) if factor else 1.0


def _misinformed(network: DrawnNetwork, draws: _Draws, factor: float) -> DrawnNetwork:
    """Return a network whose AQMs are told other values than its own."""
    name = f"{network.name}-x{factor:g}"
    actual = Scenario.parse(network.text, f"{network.name}.toml").plan()["actual"]

    def told(key: str, value: float) -> float:
        return value * float(draws.among(f"told {key}", [1 / factor, factor]))

    capacity, flows = told("capacity", actual["capacity_bps"]), told("flows", actual["flows"])
    rtt = told("rtt", actual["base_rtt_s"])
    text = network.text.replace(f'name = "{network.name}"', f'name = "{name}"', 1).replace(
        ", laws ", f", misinformed by {factor:g}, laws ", 1
    )
    tail = f'\n[nominal]\ncapacity = "{round(capacity)}bit"\nflows = {flows:g}\nbase_rtt = "{_time(rtt)}"\n'
    return DrawnNetwork(name=name, text=text + tail)


class _Draws:
    """Draws of one network, by name."""

    def __init__(self, family: str, seed: int, number: int) -> None:
        self._of = f"aqumen networks {LAWS}\0{family}\0{seed}\0{number}\0"

    def uniform(self, name: str) -> float:
        """Return a number from 0 to below 1, a multiple of 2^-53."""
        drawn = hashlib.sha256((self._of + name).encode()).digest()
        return (int.from_bytes(drawn[:8], "big") >> 11) / (1 << 53)

    def among(self, name: str, values: Sequence[Any]) -> Any:
        return values[int(self.uniform(name) * len(values))]

    def weighted(self, name: str, weights: Mapping[str, int]) -> str:
        return str(self.among(name, [key for key, weight in weights.items() for _ in range(weight)]))

    def whole(self, name: str, low: int, high: int) -> int:
        return low + int(self.uniform(name) * (high - low + 1))

    def logarithmic(self, name: str, low: float, high: float) -> float:
        """Return a value of three digits; values of equal ratio are equally likely."""
        return float(self.among(name, _values(low, high) or [high]))


def _values(low: float, high: float) -> list[float]:
    """Return the values from `low` to `high`: whole numbers of three digits times powers of ten."""
    # From text, so that no product is rounded in another way elsewhere.
    every = (float(f"{mantissa}e{decade}") for decade in range(-6, 10) for mantissa in _MANTISSAS)
    return [value for value in every if low <= value <= high]


_MANTISSAS = [round(100 * 10 ** (k / PER_DECADE)) for k in range(PER_DECADE)]
"""100 to 953. None of the powers is near the middle of two whole numbers, so that every machine rounds them alike."""


def _network(family: str, seed: int, number: int) -> DrawnNetwork:
    law, draws = FAMILIES[family], _Draws(family, seed, number)
    name = f"{family}-{seed}-{number:03}"
    medium = draws.weighted("medium", law.media)
    rate, capacity = _medium(medium, draws, law)
    calls = min(draws.whole("calls", 0, 4), int(rate / 400e3)) if draws.uniform("has calls") < 0.5 else 0
    # Bulk packets have 1500 B; the last ones of transfers and those of constant rate are smaller.
    packets = rate / (8 * 1350) + 50 * calls
    longest = 0.95 * PACKETS_MAX / packets
    rtt = draws.logarithmic("rtt", law.rtt[0], min(law.rtt[1], longest / ROUND_TRIPS))
    nearest = max(1e-3, rtt / draws.among("rtt spread", [1, 1, 2, 5]))
    duration = min(longest, max(30.0, 100 * rtt, 3000 / packets))
    buffer = max(20, round(draws.logarithmic("buffer", 0.25, 4) * rate * (rtt + 0.02) / 12000))
    flows = round(draws.logarithmic("flows", law.flows[0], max(law.flows[0], min(law.flows[1], rate / 20e3))))
    flows = max(1, min(flows, int(rate / 20e3)))
    senders = draws.weighted("senders", law.senders)
    times = f'["{_time(nearest)}", "{_time(rtt)}"]' if nearest < rtt else f'"{_time(rtt)}"'
    groups = []
    mix = SENDERS[senders]
    for k, (group, transport) in enumerate(mix):
        of = (flows + len(mix) - 1 - k) // len(mix)
        rto = f', min_rto = "{law.min_rto}"' if law.min_rto else ""
        if of:
            groups.append(_group(f"long-{group}", of, duration, times, f"{{ {transport}{rto} }}"))
    groups += _beside(draws, law, rate, rtt, duration, times, mix[0][1], calls)
    head = (
        f'name = "{name}"\ntitle = "{medium}, {_rate(rate)}, {_time(rtt)}, {flows} flows, {senders}"\n'
        f'description = "Drawn by: aqumen study draw --family {family} --seed {seed}, number {number}, laws {LAWS}."\n'
        f'duration = "{_time(duration)}"\n\n[topology]\npreset = "dumbbell"\n\n[topology.bottleneck]\n{capacity}\n'
        f'delay = "{_time(nearest / 8)}"\nbuffer = "{buffer}pkt"\n\n[topology.access]\n'
        f'rate = "{_rate(max(100e6, min(10 * rate, 100e9)))}"\n'
    )
    tail = f'\n[windows]\nsteady = "{_time(duration / 4)}"\n'
    return DrawnNetwork(name=name, text="\n".join([head, *groups]) + tail)


def _medium(medium: str, draws: _Draws, law: Family) -> tuple[float, str]:
    """Return the mean capacity of the bottleneck, bit/s, and its keys."""
    rate = draws.logarithmic("rate", *law.rate)
    if medium == "wired":
        return rate, f'rate = "{_rate(rate)}"'
    if medium == "wifi":
        channel = f"mcs = {draws.whole('mcs', 0, 7)}.0, contenders = {draws.whole('contenders', 0, 8)}, spread = 1.0"
    elif medium == "lte":
        channel = f"cqi = {draws.whole('cqi', 3, 15)}.0, share = {draws.whole('share', 1, 10) / 10}"
    elif medium == "umts":
        channel = f"cqi = {draws.whole('cqi', 8, 30)}.0, share = {draws.whole('share', 3, 10) / 10}"
    else:
        rate = min(rate, 100e6)
        channel = f'rate = "{_rate(rate)}", neighbours = {draws.whole("neighbours", 1, 4)}'
    keys = f'channel = {{ model = "{medium}", {channel} }}'
    plain = (
        f'name = "x"\nduration = "1s"\n[topology]\npreset = "dumbbell"\n[topology.bottleneck]\n{keys}\ndelay = "0s"\n'
        'buffer = "100pkt"\n[topology.access]\nrate = "1Gbit"\n[[flows]]\nname = "x"\n'
    )
    capacity = Scenario.parse(plain, "medium.toml").plan()["nominal"]["capacity_bps"]
    return float(f"{capacity:.3g}"), keys


def _beside(
    draws: _Draws, law: Family, rate: float, rtt: float, duration: float, times: str, transport: str, calls: int
) -> list[str]:
    """Return the groups of everything but endless transfers."""
    groups = []
    if draws.uniform("has transfers") < 0.75:
        load = draws.whole("transfers", 5, 40) / 100 * rate
        mean, largest = min(60e3, 3 * rate / 8), min(5e6, 30 * rate / 8)
        size = f'{{ law = "pareto", mean = "{mean:.0f}B", shape = 1.3, max = "{largest:.0f}B" }}'
        count = round(min(400.0, max(20.0, load / (8 * mean) * (10 * rtt + 0.05))))
        rto = f', min_rto = "{law.min_rto}"' if law.min_rto else ""
        traffic = f'{{ kind = "transfers", load = "{_rate(load)}", size = {size} }}'
        groups.append(_group("short", count, 0.0, times, f"{{ {transport}{rto} }}", traffic))
    if law.rate[0] < 1e6 and rate >= 2e6 and draws.uniform("has web") < 0.3:
        traffic = (
            '{ kind = "web", connections = 6, main = "30kB", embedded = { law = "lognormal", mean = "35kB", std = '
            '"105kB", max = "3MB" }, objects = { law = "uniform", min = 35, max = 95 }, '
            'reading = { law = "exponential", mean = "5s" } }'
        )
        groups.append(_group("web", draws.whole("web", 1, 3), duration, times, f"{{ {transport} }}", traffic))
    if calls:
        groups.append(_group("call", calls, duration, times, '"udp"', '{ kind = "voip", suppress = false }'))
    if draws.uniform("has constant rate") < 0.2:
        constant = draws.whole("constant rate", 2, 20) / 100 * rate
        traffic = f'{{ kind = "cbr", rate = "{_rate(constant)}", packet = "1200B" }}'
        groups.append(_group("udp", 1, duration, times, '"udp"', traffic))
    return groups


def _group(name: str, count: int, duration: float, times: str, transport: str, traffic: str = "") -> str:
    start = f'start = ["0s", "{_time(duration / 10)}"]\n' if duration else ""
    more = f"traffic = {traffic}\n" if traffic else ""
    return f'[[flows]]\nname = "{name}"\ncount = {count}\n{start}rtt = {times}\ntransport = {transport}\n{more}'


def _time(seconds: float) -> str:
    return f"{round(seconds * 1e6)}us" if seconds < 1e-3 else f"{round(seconds * 1e6) / 1e3:.10g}ms"


def _rate(bps: float) -> str:
    for unit, factor in (("Gbit", 1e9), ("Mbit", 1e6), ("kbit", 1e3)):
        if bps >= factor:
            return f"{round(bps / factor, 3):g}{unit}" if bps % (factor / 1000) == 0 else f"{round(bps)}bit"
    return f"{round(bps)}bit"


def laws() -> str:
    """Return the table of laws and ranges, in Markdown."""

    def span(ends: tuple[float, float], say: Callable[[float], str]) -> str:
        return f"{say(ends[0])} to {say(ends[1])}"

    def shares(weights: Mapping[str, int]) -> str:
        total = sum(weights.values())
        return ", ".join(f"{key} {round(100 * weight / total)} %" for key, weight in weights.items())

    rows: list[tuple[str, Callable[[Family], str]]] = [
        ("links", lambda each: each.title),
        ("rate of a wired link", lambda each: span(each.rate, _rate)),
        ("longest round trip", lambda each: span(each.rtt, _time)),
        ("endless transfers", lambda each: span(each.flows, lambda x: f"{x:g}")),
        ("media", lambda each: shares(each.media)),
        ("senders", lambda each: shares(each.senders)),
        ("least retransmission timeout", lambda each: each.min_rto or "that of the transport"),
    ]
    lines = [f"| | {' | '.join(f'`{name}`' for name in FAMILIES)} |", f"|---|{'---|' * len(FAMILIES)}"]
    lines += [f"| {head} | {' | '.join(cell(each) for each in FAMILIES.values())} |" for head, cell in rows]
    return "\n".join(lines) + "\n"
