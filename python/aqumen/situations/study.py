"""Everyday networks from a few numbers: a household's line, a switch's port, a subscriber of a cell.

Each is a scenario file (`experiments/everyday`) with the numbers put in, the AQMs that a Linux kernel offers there, and
the figures that people feel. Nothing here knows which AQM ought to win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from aqumen import _core
from aqumen.comparison import Gathering
from aqumen.errors import ScenarioError, listed
from aqumen.experience import Felt, Score, scores
from aqumen.result import Result
from aqumen.scenario import Scenario
from aqumen.shaping import FULL_PACKET_B, KERNEL, LINES
from aqumen.view.columns import SIZES

__all__ = ["AS_IT_IS", "SLOW", "WORDS", "Answer", "Situation", "Study", "cell", "datacenter", "uplink"]

AS_IT_IS = "as it is"
"""The name of the line without any AQM, where that is a network of its own."""
WINDOW = "steady"
SLOW = "fq-codel-slow"
"""FQ-CoDel with the target and the quantum that a slow line asks for."""
SLOW_QUANTUM_B = 300
"""That quantum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A network with numbers put in, and how its AQMs are judged."""

    scenario: Scenario
    """The network; its cells are the kinds of senders."""
    aqms: tuple[str, ...]
    """What is compared, unless it is said."""
    felt: tuple[Felt, ...]
    """What people feel."""
    assumed: tuple[str, ...]
    """What was not asked for and yet decides figures, a line each."""
    before: str | None = None
    """The variant that is the network as it is today, run with DropTail."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Rates to set, bit/s."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Short names of the scenario for AQMs of the kernel with parameters."""
    sent_bps: float | None = None
    """Rate before which packets that are sent wait, in bit/s of IP packets."""
    delay: str = "game"
    """The figure, by its key, that shows delay under load."""

    def kernel(self, aqm: str) -> str | None:
        """The SPEC of the kernel's AQM that a row stands for; `None` where the kernel has none.

        Args:
            aqm: The AQM as it was asked for.
        """
        spec = self.profiles.get(aqm, aqm)
        return spec if spec.partition(":")[0] in KERNEL else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it."""

    score: Score
    """The AQMs in order."""
    weights: Mapping[str, float]
    """How much each figure counts."""
    senders: tuple[str, ...]
    """The kinds of senders that were run."""
    seeds: int
    """Seeds that every AQM finished."""
    swings: Mapping[str, str]
    """Who leads instead where one weight is halved or doubled: `upload doubled` -> AQM."""


class Study:
    """A situation being run: all senders, all AQMs, all seeds."""

    def __init__(
        self,
        situation: Situation,
        aqms: Sequence[str],
        senders: Sequence[str],
        seeds: int,
        weights: Mapping[str, float],
        out: Any = None,
    ) -> None:
        """Check all that can be checked before the first run.

        Args:
            situation: Which everyday network, with its lines and people.
            aqms: What is compared, each a SPEC; none: what the situation names.
            senders: Cells of the scenario; none: all of them.
            seeds: How many seeds.
            weights: How much each figure counts, where that differs from what the figure says.
            out: A folder for finished runs and the report of each kind of senders.
        """
        known = situation.scenario.cells
        for who in senders:
            if who not in known:
                raise ScenarioError(f"--senders {who}: choose from: {listed(known)}")
        keys = [f.key for f in situation.felt]
        for key, weight in weights.items():
            if key not in keys:
                raise ScenarioError(f"--weigh {key}: choose from: {listed(keys)}")
            if not 0 <= weight < float("inf"):
                raise ScenarioError(f"--weigh {key}={weight:g}: a weight is a number from 0 on")
        self.situation = situation
        self.weights = {f.key: weights.get(f.key, f.weight) for f in situation.felt}
        if not any(self.weights.values()):
            raise ScenarioError("--weigh: all weights are 0, so nothing decides")
        self.aqms = tuple(aqms) or situation.aqms
        self.senders = tuple(dict.fromkeys(senders)) or tuple(known)
        self.gatherings: dict[tuple[str, str], Gathering] = {}
        for who in self.senders:
            for name, cell, specs in self._cells(who):
                folder = None if out is None else out / name
                self.gatherings[who, cell] = Gathering(
                    situation.scenario.cell(cell), specs, seeds, "packet", out=folder
                )

    def _cells(self, who: str) -> list[tuple[str, str, list[str]]]:
        """Folder, cell and AQMs of one kind of senders."""
        cells = [(who, who, list(self.aqms))]
        if self.situation.before is not None:
            cells.append((f"{self.situation.before}-{who}", f"{self.situation.before},{who}", ["droptail"]))
        return cells

    @property
    def total(self) -> int:
        """How many runs are wanted."""
        return sum(len(each.jobs) for each in self.gatherings.values())

    def seconds(self) -> float:
        """Time that the runs which are left take here, by an estimate for each."""
        taken = 0.0
        for who in self.senders:
            for _, cell, specs in self._cells(who):
                gathering, core = self.gatherings[who, cell], self.situation.scenario.cell(cell).core
                each = sum(core.time_estimate("packet", spec) for spec in specs) / len(specs)
                taken += each * (len(gathering.jobs) - gathering.resumed) / gathering.threads
        return taken

    def work(self, on_progress: Callable[[int, int], bool]) -> None:
        """Run what is left.

        Args:
            on_progress: Called with the numbers of finished and of wanted runs; `False` leaves out the rest.
        """
        done = sum(each.resumed for each in self.gatherings.values())
        for each in self.gatherings.values():
            before = done - each.resumed

            def advance(finished: int, _wanted: int, before: int = before) -> bool:
                nonlocal done
                done = before + finished
                return on_progress(done, self.total)

            each.work(advance)
            if len(each.answers) < len(each.jobs):
                return

    def answer(self) -> Answer | None:
        """The AQMs in order; `None` where no seed is finished by all."""
        runs: dict[str, dict[str, dict[int, Result]]] = {}
        for (who, cell), gathering in self.gatherings.items():
            for result in gathering.comparison().results:
                name = AS_IT_IS if cell != who else str(result.spec)
                runs.setdefault(name, {}).setdefault(who, {})[result.seed] = result
        wanted = len(self.aqms) + (self.situation.before is not None)
        if len(runs) < wanted or any(len(by) < len(self.senders) for by in runs.values()):
            return None
        seeds = set.intersection(*(set(of) for by in runs.values() for of in by.values()))
        if not seeds:
            return None
        score = scores(runs, self.situation.felt, self.weights)
        swings = {}
        for key, weight in self.weights.items():
            for word, factor in (("halved", 0.5), ("doubled", 2.0)):
                leader = scores(runs, self.situation.felt, {**self.weights, key: weight * factor})[0]
                if weight and leader.aqm not in (score[0].aqm, *score[0].tied_with):
                    swings[f"{key} {word}"] = leader.aqm
        return Answer(score=score, weights=self.weights, senders=self.senders, seeds=len(seeds), swings=swings)


# Figures that people feel.


def _group(key: str, name: str, factor: float = 1.0) -> Callable[[Result], float | None]:
    def of(run: Result) -> float | None:
        value = run.flow_group(name, WINDOW).get(key)
        return None if value is None else value * factor

    return of


def _worse_call(run: Result) -> float | None:
    heard = [run.flow_group(group, WINDOW).get("mos") for group in ("call-up", "call-down")]
    return min((each for each in heard if each is not None), default=None)


def _there_and_back(run: Result) -> float | None:
    ways = [run.flow_group(group, WINDOW).get("delay_p95_s") for group in ("game-up", "game-down")]
    known = [each for each in ways if each is not None]
    return 1000 * sum(known) if len(known) == 2 else None


def _transfer(name: str, key: str, factor: float) -> Callable[[Result], float | None]:
    """A figure of transfers that are all of one size."""

    def of(run: Result) -> float | None:
        group = run.flow_group(name, WINDOW)
        for size, _ in SIZES:
            value = group.get(f"fct_{size}_{key}")
            if value is not None and group.get(f"fct_{size}_count"):
                return value * factor
        return None

    return of


def _rate_of(key: str, title: str, group: str, unit: str, scale: float, **more: Any) -> Felt:
    of = _group("goodput_bps", group, scale)
    return Felt(key=key, title=title, unit=unit, digits=2, of=of, more=True, worst=0, **more)


def _household(length_s: float) -> tuple[Felt, ...]:
    """What is not defined is as bad as can be: a page that does not come takes the whole run."""
    page, chunk = _group("page_load_mean_s", "web"), _transfer("film", "mean_s", 1)
    return (
        Felt(
            key="calls",
            title="Calls",
            unit="MOS",
            digits=2,
            of=_worse_call,
            more=True,
            from_=1,
            to=4.5,
            least=0.05,
            worst=1,
        ),
        Felt(key="pages", title="Page", unit="s", digits=2, of=page, worst=length_s),
        Felt(key="game", title="Game", unit="ms", digits=0, of=_there_and_back, worst=length_s * 1000),
        _rate_of("upload", "Upload", "upload", "Mbit/s", 1e-6),
        Felt(key="film", title="4 s of film", unit="s", digits=2, of=chunk, weight=0, worst=length_s),
        _rate_of("update", "Update", "update", "Mbit/s", 1e-6, weight=0),
    )


WORDS = {
    "calls": "quality of the call (MOS from 1, the worse of its two directions)",
    "pages": "mean time until a page is there",
    "game": "time of a game's packets there and back (95 % are faster, each way)",
    "upload": "rate of the upload",
    "film": "time to fetch 4 s of film",
    "update": "rate of the update",
    "requests": "time that 99 % of the requests stay below",
    "mean": "mean time of a request",
    "bulk": "rate of the long transfers together",
}
"""Each figure in words, for the line above the table."""
FIGURES = {"datacenter": ("requests", "mean", "bulk")}
"""The figures of those networks that are not a household's."""

_GROUPS = ("web", "call-down", "update", "film", "game-down", "upload", "call-up", "game-up")

KERNEL_AQMS = (
    "cake-linux",
    "fq-codel-linux",
    "fq-pie-linux",
    "sfq-linux",
    "codel-linux",
    "pie-linux",
    "dualpi2-linux",
)


def uplink(
    down: str,
    up: str,
    *,
    rtt: str = "40ms",
    line: str = "measured",
    bloat: str | None = None,
    headroom: tuple[float, float] = (5.0, 10.0),
    duration: str | None = None,
    target: str = "15ms",
) -> Situation:
    """A household before a line.

    Args:
        down: Rate towards the household.
        up: Rate from it.
        rtt: Round-trip time without queues.
        line: How the line frames packets, a name of `shaping.LINES`.
        bloat: How long packets wait in the modem, and at the provider, when the line is full and nothing is shaped;
            without it 500 ms, and 64 kB at the least.
        headroom: By how many percent the shapers are slower than the line, up and down.
        duration: How long a run lasts; without it longer for slower lines.
        target: Delay for which AQMs without a target of their own are designed (PI, RED, STPI); at least two packets.
    """
    if line not in LINES:
        raise ScenarioError(f"--line {line}: choose from: {listed(LINES)}")
    for percent in headroom:
        if not 0 <= percent < 90:
            raise ScenarioError(f"--headroom {percent:g}: percent of the line, from 0 to below 90")
    framed = LINES[line]
    base = Scenario.load("everyday/uplink")
    gross = {"up": _rate(base, "up", up), "down": _rate(base, "down", down)}
    waits, room = (0.5, 64e3) if bloat is None else (_time("bloat", bloat, least=0.001), 15e3)
    net = {way: framed.carried(bps) for way, bps in gross.items()}
    kept = {way: 1 - percent / 100 for way, percent in zip(("up", "down"), headroom, strict=True)}
    # Slow lines carry few packets a second and their pages take long, fast ones take the machine's time.
    length = duration or f"{min(max(120 * (20e6 / max(net.values())) ** 0.75, 15), 600):.0f}s"
    page = min(1.0, net["down"] / 8 * 4 / 2.3e6)
    codec = "g711" if min(net.values()) >= 500e3 else "g729"
    film = min(5e6, net["down"] / 4)
    slow = _slow(min(net[way] * kept[way] for way in net))
    profiles = {} if slow is None else {SLOW: slow}
    aim_s = _time("target", target, least=1e-6)
    aims = {way: max(aim_s * net[way] * kept[way] / 8 / FULL_PACKET_B, 2) for way in net}
    # Ten times the line: what waits, waits there.
    wide = f"{10 * max(net.values()):.0f}bit"
    changes = {
        "title": f"A household behind a line of {down} down and {up} up",
        "variants.now": "{ " + ", ".join(f"'topology.links.{way}.rate' = '{wide}'" for way in net) + " }",
        "duration": length,
        "windows.steady": f"{min(_time('duration', length, least=1) / 4, 10):g}s",
        "flows.web.traffic.main": f"{30e3 * page:.0f}B",
        "flows.web.traffic.embedded.mean": f"{35e3 * page:.0f}B",
        "flows.web.traffic.embedded.std": f"{105e3 * page:.0f}B",
        "flows.film.traffic.size": f"{film * 4 / 8:.0f}B",
        "flows.call-up.traffic.codec": codec,
        "flows.call-down.traffic.codec": codec,
        **{f"topology.links.{way}.rate": f"{net[way] * kept[way]:.0f}bit" for way in net},
        **{f"topology.links.{way}.target": f"{pkts:.4g}pkt" for way, pkts in aims.items()},
        **{f"topology.links.line-{way}.rate": f"{net[way]:.0f}bit" for way in net},
        **{f"topology.links.line-{way}.buffer": f"{max(net[way] * waits / 8, room):.0f}B" for way in net},
        **{f"flows.{name}.rtt": rtt for name in _GROUPS},
    }
    changes |= {f"aqms.{name}": _profile(spec) for name, spec in profiles.items()}
    scenario = _set(base, changes, {"rtt": rtt, "duration": length})
    return Situation(
        scenario=scenario,
        aqms=(*KERNEL_AQMS[:2], *profiles, *KERNEL_AQMS[2:]),
        profiles=profiles,
        felt=_household(_length(scenario)),
        before="now",
        rates={way: gross[way] * kept[way] for way in gross},
        sent_bps=net["up"] * kept["up"],
        assumed=(
            f"shapers {headroom[0]:g} % (up) and {headroom[1]:g} % (down) below the line; {framed.words} (--headroom, "
            "--line)",
            f"round trips of {rtt} without queues (--rtt); modem and provider without AQM, with room for "
            f"{bloat or '500 ms, 64 kB at least'} (--bloat)",
            f"all at once, all the time, {length} a run (--duration): two people surf (pages of {2.3 * page:.2g} MB), "
            f"a call ({codec}), a game, a film of {film / 1e6:.2g} Mbit/s, an upload, an update, each on a device of "
            "its own",
            *(f"{name} is {spec}: a full packet alone takes longer than 5 ms" for name, spec in profiles.items()),
        ),
    )


def _slow(bps: float) -> str | None:
    """FQ-CoDel as a slow line asks for it; `None` for other lines.

    RFC 8290 section 5.2.2: the target is at least the time of a packet of full size. The interval grows by as much, and
    a queue may send 300 bytes a round, as in OpenWrt's shaping scripts: a call's packets need not wait while each of
    the others sends a full one.

    Args:
        bps: Rate of the slower shaper, in bit/s of full IP packets.
    """
    packet_ms = ceil(FULL_PACKET_B * 8 / bps * 1000)
    if packet_ms <= 5:
        return None
    return f"fq-codel-linux:target={packet_ms}ms,interval={95 + packet_ms}ms,quantum={SLOW_QUANTUM_B}B"


def datacenter(
    rate: str = "10Gbit",
    *,
    rtt: str = "100us",
    buffer: str = "1500kB",
    load: float = 30.0,
    duration: str | None = None,
) -> Situation:
    """A port of a switch.

    Args:
        rate: How fast the port sends, with a unit.
        rtt: Round-trip time without queues.
        buffer: Room of its queue.
        load: The requests' share of the rate, percent.
        duration: How long a run lasts; without it longer for slower ports.
    """
    base = Scenario.load("everyday/datacenter")
    bps = _rate(base, "rate", rate)
    round_s = _time("rtt", rtt, least=1e-6)
    if not 1 <= load <= 90:
        raise ScenarioError(f"--load {load:g}: percent of the rate, from 1 to 90")
    length = duration or f"{min(max(0.2 * 10e9 / bps, 0.2, 1000 * round_s), 60):.3g}s"
    changes = {
        "title": f"A port of {rate}: short requests beside long transfers",
        "duration": length,
        "topology.links.port.rate": rate,
        "topology.links.port.buffer": buffer,
        "topology.access.rate": rate,
        "flows.requests.access.rate": rate,
        "flows.bulk.access.rate": rate,
        "flows.requests.rtt": rtt,
        "flows.bulk.rtt": rtt,
        "flows.requests.traffic.load": f"{bps * load / 100:.0f}bit",
        "windows.steady": f"{_time('duration', length, least=1e-3) / 10:.6g}s",
    }
    scenario = _set(base, changes, {"rtt": rtt, "buffer": buffer, "duration": length})
    # Linux's settings are for the Internet's round trips; the same rules with those of this network.
    target, interval = _us(max(round_s / 2, 12 * FULL_PACKET_B * 8 / bps)), _us(max(10 * round_s, 1e-3))
    length_s = _length(scenario)
    ms = {"unit": "ms", "digits": 3, "worst": length_s * 1000}
    return Situation(
        scenario=scenario,
        aqms=(
            "droptail",
            "fq-codel-linux",
            f"fq-codel-linux:ce_threshold={target}",
            f"fq-codel-linux:target={target},interval={interval}",
            f"codel-linux:target={target},interval={interval},ecn=true",
            "dualpi2-linux",
            "pie-linux",
        ),
        felt=(
            Felt(key="requests", title="Request, p99", of=_transfer("requests", "p99_s", 1000), **ms),  # type: ignore[arg-type]
            Felt(key="mean", title="mean", of=_transfer("requests", "mean_s", 1000), **ms),  # type: ignore[arg-type]
            _rate_of("bulk", "Long transfers", "bulk", "Gbit/s", 1e-9),
        ),
        delay="requests",
        assumed=(
            f"round trips of {rtt} without queues (--rtt), room for {buffer} (--buffer), {length} a run (--duration)",
            f"requests of 20 kB, {load:g} % of the rate (--load), beside four endless transfers; timeouts of at least "
            "5 ms",
            f"targets and thresholds other than Linux's own: {target}, half a round trip but at least 12 packets' time",
        ),
        rates={"port": bps},
    )


def cell(
    cqi: float = 10.0,
    *,
    resource_blocks: int = 50,
    share: float = 50.0,
    handover: str | None = "30s",
    rtt: str = "50ms",
    duration: str = "120s",
) -> Situation:
    """A subscriber of an LTE cell.

    Args:
        cqi: Mean channel quality indicator.
        resource_blocks: Width of the cell.
        share: What the subscriber gets of the cell, percent; of the way up half as much.
        handover: Mean time between handovers.
        rtt: Round-trip time without queues.
        duration: How long a run lasts.
    """
    base = Scenario.load("everyday/cell")
    if not 1 <= cqi <= 15:
        raise ScenarioError(f"--cqi {cqi:g}: must be 1 to 15")
    if not 0 < share <= 100:
        raise ScenarioError(f"--share {share:g}: percent of the cell, above 0 and at most 100")
    way = {"cqi": f"{float(cqi)}", "resource_blocks": str(resource_blocks), "handover_interval": handover or "24h"}
    changes = {
        "title": f"A subscriber with {share:g} % of an LTE cell, channel quality {cqi:g}",
        "duration": duration,
        **{f"topology.links.{link}.channel.{key}": value for link in ("up", "down") for key, value in way.items()},
        # A phone has a fifth of a base station's power: two steps of the indicator.
        "topology.links.up.channel.cqi": f"{max(float(cqi) - 2, 1.0)}",
        "topology.links.up.channel.share": f"{share / 200}",
        "topology.links.down.channel.share": f"{share / 100}",
        **{f"flows.{name}.rtt": rtt for name in _GROUPS},
    }
    said = {
        "cqi": f"{cqi:g}",
        "resource-blocks": str(resource_blocks),
        "handover": str(handover),
        "rtt": rtt,
        "duration": duration,
    }
    scenario = _set(base, changes, said)
    return Situation(
        scenario=scenario,
        aqms=("droptail", *KERNEL_AQMS),
        felt=_household(_length(scenario)),
        assumed=(
            f"channel quality {cqi:g} down, two less up; {resource_blocks} resource blocks, of which the subscriber "
            f"has {share:g} % down and half of that up; handovers each {handover or 'never'} (--cqi, "
            "--resource-blocks, "
            "--share, --handover)",
            f"round trips of {rtt} without queues (--rtt); rooms of 2000 packets at the base station, 500 in the phone",
            f"all at once, all the time, {duration} a run (--duration): one person surfs, a call, a game, a film of "
            "2.5 Mbit/s, an upload, an update",
        ),
    )


def _profile(spec: str) -> str:
    """A SPEC as a profile of a scenario."""
    name, _, given = spec.partition(":")
    pairs = (pair.split("=") for pair in given.split(","))
    return "{ " + ", ".join([f'algorithm = "{name}"', *(f'{key} = "{value}"' for key, value in pairs)]) + " }"


def _set(base: Scenario, changes: Mapping[str, str], said: Mapping[str, str]) -> Scenario:
    """The scenario with the changes; what is wrong is told in the words of the command line."""
    try:
        return base.set_all(list(changes.items()))
    except ScenarioError as error:
        for option, value in said.items():
            if f'"{value}"' in str(error) or f"= {value}:" in str(error):
                reason = str(error).rpartition(": ")[2]
                raise ScenarioError(f"--{option} {value}: {reason}") from None
        raise


def _rate(base: Scenario, option: str, value: str) -> float:
    """A rate in bit/s, by the rules of scenario files."""
    link = "port" if option == "rate" else f"line-{option}"
    try:
        changed = base.set_all([(f"topology.links.{link}.rate", value)])
        rates = next(each for each in changed.plan()["links"] if each["name"] == link)["rates"]
    except ScenarioError as error:
        raise ScenarioError(f"--{option} {value}: {str(error).rpartition(': ')[2]}") from None
    bps = float(rates[0][1])
    if bps < 64e3:
        raise ScenarioError(f"--{option} {value}: at least 64kbit, or nothing that is measured here gets through")
    return bps


def _time(option: str, value: str, least: float) -> float:
    """A time in seconds."""
    try:
        seconds = _core.quantity("time", value)
    except _core.ScenarioError as error:
        raise ScenarioError(f"--{option} {value}: {error}") from None
    if seconds < least:
        raise ScenarioError(f"--{option} {value}: at least {least:g}s")
    return seconds


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"


def _length(scenario: Scenario) -> float:
    return float(scenario.plan()["duration_s"])
