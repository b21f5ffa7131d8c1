"""Everyday networks from a few numbers: a household's access line, a switch port, a subscriber of an LTE cell.

Each consists of a scenario file (`experiments/everyday`) with the numbers filled in, the AQMs that Linux offers there,
and metrics of user experience. No AQM is preferred here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from aqumen import _core
from aqumen.comparison import Gathering
from aqumen.errors import ScenarioError, listed
from aqumen.experience import ExperienceMetric, Score, scores
from aqumen.result import Result
from aqumen.scenario import Scenario
from aqumen.shaping import FULL_PACKET_B, KERNEL, LINES
from aqumen.view.columns import SIZES

__all__ = ["AS_IT_IS", "SLOW", "WORDS", "Answer", "Situation", "Study", "cell", "datacenter", "uplink"]

AS_IT_IS = "as it is"
"""Label of the household's line without shaper and AQM."""
WINDOW = "steady"
SLOW = "fq-codel-slow"
"""Profile of FQ-CoDel with target and quantum for slow lines."""
SLOW_QUANTUM_B = 300
"""Quantum of that profile, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """An everyday network with its numbers, and how its AQMs are judged."""

    scenario: Scenario
    """The network; its cells are the kinds of senders."""
    aqms: tuple[str, ...]
    """AQMs to compare by default."""
    metrics: tuple[ExperienceMetric, ...]
    """Metrics of user experience."""
    assumed: tuple[str, ...]
    """Assumptions that affect the results, one line each."""
    before: str | None = None
    """Variant of the scenario for the network as it is today, run with DropTail."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Shaper rates, bit/s, by direction."""
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Profile names of kernel AQMs with parameters, and their SPECs."""
    sent_bps: float | None = None
    """Rate of the queue for outgoing packets, in bit/s of IP packets."""
    delay: str = "game"
    """Key of the metric that shows delay under load."""

    def kernel(self, aqm: str) -> str | None:
        """Return the SPEC of the kernel's AQM for a row of the ranking; `None` if Linux has none.

        Args:
            aqm: The AQM as given by the user.
        """
        spec = self.profiles.get(aqm, aqm)
        return spec if spec.partition(":")[0] in KERNEL else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of a study."""

    score: Score
    """AQMs with their scores, best first."""
    weights: Mapping[str, float]
    """Weight of each metric."""
    senders: tuple[str, ...]
    """Kinds of senders that were run."""
    seeds: int
    """Number of seeds that every AQM finished."""
    leader_changes: Mapping[str, str]
    """AQM that leads if one weight is halved or doubled, where it differs: `upload doubled` -> AQM."""


class Study:
    """Runs of an everyday network: all senders, AQMs and seeds."""

    def __init__(
        self,
        situation: Situation,
        aqms: Sequence[str],
        senders: Sequence[str],
        seeds: int,
        weights: Mapping[str, float],
        out: Any = None,
    ) -> None:
        """Check the arguments and load finished runs.

        Args:
            situation: The everyday network.
            aqms: AQMs to compare, each a SPEC; empty for the network's default list.
            senders: Kinds of senders, each a cell of the scenario; empty for all.
            seeds: Number of seeds.
            weights: Weights that differ from the metrics' defaults.
            out: Folder for finished runs and a report for each kind of senders.
        """
        known = situation.scenario.cells
        for who in senders:
            if who not in known:
                raise ScenarioError(f"--senders {who}: choose from: {listed(known)}")
        keys = [f.key for f in situation.metrics]
        for key, weight in weights.items():
            if key not in keys:
                raise ScenarioError(f"--weigh {key}: choose from: {listed(keys)}")
            if not 0 <= weight < float("inf"):
                raise ScenarioError(f"--weigh {key}={weight:g}: must be a number of at least 0")
        self.situation = situation
        self.weights = {f.key: weights.get(f.key, f.weight) for f in situation.metrics}
        if not any(self.weights.values()):
            raise ScenarioError("--weigh: at least one weight must be above 0")
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
        """Return folder, cell and AQMs for each run of one kind of senders."""
        cells = [(who, who, list(self.aqms))]
        if self.situation.before is not None:
            cells.append((f"{self.situation.before}-{who}", f"{self.situation.before},{who}", ["droptail"]))
        return cells

    @property
    def total(self) -> int:
        """Number of runs."""
        return sum(len(each.jobs) for each in self.gatherings.values())

    def seconds(self) -> float:
        """Return the estimated time of the missing runs on this machine, seconds."""
        taken = 0.0
        for who in self.senders:
            for _, cell, specs in self._cells(who):
                gathering, core = self.gatherings[who, cell], self.situation.scenario.cell(cell).core
                each = sum(core.time_estimate("packet", spec) for spec in specs) / len(specs)
                taken += each * (len(gathering.jobs) - gathering.resumed) / gathering.threads
        return taken

    def work(self, on_progress: Callable[[int, int], bool]) -> None:
        """Run the missing runs.

        Args:
            on_progress: Called with the numbers of finished and wanted runs; returning `False` stops.
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
        """Return the scores of the AQMs; `None` if no seed is finished by all."""
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
        score = scores(runs, self.situation.metrics, self.weights)
        leader_changes = {}
        for key, weight in self.weights.items():
            for word, factor in (("halved", 0.5), ("doubled", 2.0)):
                leader = scores(runs, self.situation.metrics, {**self.weights, key: weight * factor})[0]
                if weight and leader.aqm not in (score[0].aqm, *score[0].tied_with):
                    leader_changes[f"{key} {word}"] = leader.aqm
        return Answer(
            score=score, weights=self.weights, senders=self.senders, seeds=len(seeds), leader_changes=leader_changes
        )


# Metrics of user experience.


def _group(key: str, name: str, factor: float = 1.0) -> Callable[[Result], float | None]:
    def of(run: Result) -> float | None:
        value = run.data["flows"][name][WINDOW].get(key)
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
    """Return a function for a metric of transfers that have one size."""

    def of(run: Result) -> float | None:
        group = run.data["flows"][name][WINDOW]
        for size, _ in SIZES:
            value = group.get(f"fct_{size}_{key}")
            if value is not None and group.get(f"fct_{size}_count"):
                return float(value) * factor
        return None

    return of


def _rate_of(key: str, title: str, group: str, unit: str, scale: float, **more: Any) -> ExperienceMetric:
    of = _group("goodput_bps", group, scale)
    return ExperienceMetric(key=key, title=title, unit=unit, digits=2, of=of, more=True, worst=0, **more)


def _household(length_s: float) -> tuple[ExperienceMetric, ...]:
    """Return the metrics of a household. An undefined one takes its worst value: an unfinished page the whole run."""
    page, chunk = _group("page_load_mean_s", "web"), _transfer("film", "mean_s", 1)
    return (
        ExperienceMetric(
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
        ExperienceMetric(key="pages", title="Page", unit="s", digits=2, of=page, worst=length_s),
        ExperienceMetric(key="game", title="Game", unit="ms", digits=0, of=_there_and_back, worst=length_s * 1000),
        _rate_of("upload", "Upload", "upload", "Mbit/s", 1e-6),
        ExperienceMetric(key="film", title="4 s of film", unit="s", digits=2, of=chunk, weight=0, worst=length_s),
        _rate_of("update", "Update", "update", "Mbit/s", 1e-6, weight=0),
    )


WORDS = {
    "calls": "quality of the call (MOS from 1, the worse of its two directions)",
    "pages": "mean load time of a page",
    "game": "round-trip time of a game's packets (95th percentile of each direction)",
    "upload": "rate of the upload",
    "film": "time to fetch 4 s of film",
    "update": "rate of the update",
    "requests": "99th percentile of the request time",
    "mean": "mean request time",
    "bulk": "total rate of the long transfers",
}
"""Description of each metric."""
FIGURES = {"datacenter": ("requests", "mean", "bulk")}
"""Metrics of the networks that are not a household's."""

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
    """A household behind an access line.

    Args:
        down: Downstream rate, with a unit.
        up: Upstream rate, with a unit.
        rtt: Base round-trip time, with a unit.
        line: Framing of the line, a name of `shaping.LINES`.
        bloat: Queueing delay in the modem and at the provider when the line is full and nothing is shaped; default: 500
            ms, and at least 64 kB.
        headroom: Percentages by which the shapers stay below the line rate, up and down.
        duration: Duration of a run; default: longer for slower lines.
        target: Design delay of AQMs without a default target (PI, RED, STPI); at least two packets.
    """
    if line not in LINES:
        raise ScenarioError(f"--line {line}: choose from: {listed(LINES)}")
    for percent in headroom:
        if not 0 <= percent < 90:
            raise ScenarioError(f"--headroom {percent:g}: must be at least 0 and below 90 % % %")
    framed = LINES[line]
    base = Scenario.load("everyday/uplink")
    gross = {"up": _rate(base, "up", up), "down": _rate(base, "down", down)}
    waits, room = (0.5, 64e3) if bloat is None else (_time("bloat", bloat, least=0.001), 15e3)
    net = {way: framed.carried(bps) for way, bps in gross.items()}
    kept = {way: 1 - percent / 100 for way, percent in zip(("up", "down"), headroom, strict=True)}
    # Slow lines need long runs for enough pages and packets; fast ones cost computing time.
    length = duration or f"{min(max(120 * (20e6 / max(net.values())) ** 0.75, 15), 600):.0f}s"
    page = min(1.0, net["down"] / 8 * 4 / 2.3e6)
    codec = "g711" if min(net.values()) >= 500e3 else "g729"
    film = min(5e6, net["down"] / 4)
    slow = _slow(min(net[way] * kept[way] for way in net))
    profiles = {} if slow is None else {SLOW: slow}
    aim_s = _time("target", target, least=1e-6)
    aims = {way: max(aim_s * net[way] * kept[way] / 8 / FULL_PACKET_B, 2) for way in net}
    # Shapers at ten times the line rate, so that the queue builds up in the modem.
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
        metrics=_household(_length(scenario)),
        before="now",
        rates={way: gross[way] * kept[way] for way in gross},
        sent_bps=net["up"] * kept["up"],
        assumed=(
            f"shapers {headroom[0]:g} % (up) and {headroom[1]:g} % (down) below the line; {framed.words} (--headroom, "
            "--line)",
            f"base RTT {rtt} (--rtt); modem and provider without AQM, with a buffer of "
            f"{bloat or '500 ms, at least 64 kB'} (--bloat)",
            f"concurrent traffic over {length} (--duration): two people surf (pages of {2.3 * page:.2g} MB), "
            f"a call ({codec}), a game, a video of {film / 1e6:.2g} Mbit/s, an upload, an update, each on a separate "
            "device",
            *(f"{name} is {spec}, since a full packet takes longer than 5 ms" for name, spec in profiles.items()),
        ),
    )


def _slow(bps: float) -> str | None:
    """Return FQ-CoDel with parameters for a slow line; `None` for other lines.

    RFC 8290 section 5.2.2: the target is at least the transmission time of a full packet. The interval grows by the
    same time. The quantum is 300 bytes, as in OpenWrt's shaping scripts, so that small packets of a call do not wait
    for a full packet of every other flow.

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
    """A port of a data-centre switch.

    Args:
        rate: Rate of the port, with a unit.
        rtt: Base round-trip time, with a unit.
        buffer: Buffer size, with a unit.
        load: Load of the requests, percent of the rate.
        duration: Duration of a run; default: longer for slower ports.
    """
    base = Scenario.load("everyday/datacenter")
    bps = _rate(base, "rate", rate)
    round_s = _time("rtt", rtt, least=1e-6)
    if not 1 <= load <= 90:
        raise ScenarioError(f"--load {load:g}: must be 1 to 90 %")
    length = duration or f"{min(max(0.2 * 10e9 / bps, 0.2, 1000 * round_s), 60):.3g}s"
    changes = {
        "title": f"A switch port of {rate}: short requests and long transfers",
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
    # Linux's defaults suit round trips of the Internet; these follow the same rules for this network.
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
        metrics=(
            ExperienceMetric(key="requests", title="Request, p99", of=_transfer("requests", "p99_s", 1000), **ms),  # type: ignore[arg-type]
            ExperienceMetric(key="mean", title="mean", of=_transfer("requests", "mean_s", 1000), **ms),  # type: ignore[arg-type]
            _rate_of("bulk", "Long transfers", "bulk", "Gbit/s", 1e-9),
        ),
        delay="requests",
        assumed=(
            f"base RTT {rtt} (--rtt), buffer {buffer} (--buffer), runs of {length} (--duration)",
            f"requests of 20 kB at {load:g} % of the rate (--load), and four endless transfers; time-outs of at least "
            "5 ms",
            f"targets and thresholds other than Linux's defaults: {target}, half the base RTT, at least 12 packets",
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
        cqi: Mean channel quality indicator, 1 to 15.
        resource_blocks: Bandwidth of the cell in resource blocks.
        share: The subscriber's share of the cell downstream, percent; half of it upstream.
        handover: Mean time between handovers.
        rtt: Base round-trip time, with a unit.
        duration: Duration of a run.
    """
    base = Scenario.load("everyday/cell")
    if not 1 <= cqi <= 15:
        raise ScenarioError(f"--cqi {cqi:g}: must be 1 to 15")
    if not 0 < share <= 100:
        raise ScenarioError(f"--share {share:g}: must be above 0 and at most 100 %")
    way = {"cqi": f"{float(cqi)}", "resource_blocks": str(resource_blocks), "handover_interval": handover or "24h"}
    changes = {
        "title": f"A subscriber with {share:g} % of an LTE cell, channel quality {cqi:g}",
        "duration": duration,
        **{f"topology.links.{link}.channel.{key}": value for link in ("up", "down") for key, value in way.items()},
        # A phone has a fifth of a base station's power, which is about two steps of the indicator.
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
        metrics=_household(_length(scenario)),
        assumed=(
            f"channel quality {cqi:g} down, two less up (--cqi); {resource_blocks} resource blocks "
            f"(--resource-blocks), of which the subscriber has {share:g} % down and half of that up (--share); "
            + (f"a handover every {handover} on average (--handover)" if handover else "no handovers (--handover)"),
            f"base RTT {rtt} (--rtt); buffers of 2000 packets at the base station, 500 in the phone",
            f"concurrent traffic over {duration} (--duration): one person surfs, a call, a game, a video of "
            "2.5 Mbit/s, an upload, an update",
        ),
    )


def _profile(spec: str) -> str:
    """Format a SPEC as a profile of a scenario."""
    name, _, given = spec.partition(":")
    pairs = (pair.split("=") for pair in given.split(","))
    return "{ " + ", ".join([f'algorithm = "{name}"', *(f'{key} = "{value}"' for key, value in pairs)]) + " }"


def _set(base: Scenario, changes: Mapping[str, str], said: Mapping[str, str]) -> Scenario:
    """Change the scenario; an error names the command line's option in place of the key."""
    try:
        return base.set_all(list(changes.items()))
    except ScenarioError as error:
        for option, value in said.items():
            if f'"{value}"' in str(error) or f"= {value}:" in str(error):
                reason = str(error).rpartition(": ")[2]
                raise ScenarioError(f"--{option} {value}: {reason}") from None
        raise


def _rate(base: Scenario, option: str, value: str) -> float:
    """Parse a rate as scenario files do. Returns bit/s."""
    link = "port" if option == "rate" else f"line-{option}"
    try:
        changed = base.set_all([(f"topology.links.{link}.rate", value)])
        rates = next(each for each in changed.plan()["links"] if each["name"] == link)["rates"]
    except ScenarioError as error:
        raise ScenarioError(f"--{option} {value}: {str(error).rpartition(': ')[2]}") from None
    bps = float(rates[0][1])
    if bps < 64e3:
        raise ScenarioError(f"--{option} {value}: must be at least 64kbit")
    return bps


def _time(option: str, value: str, least: float) -> float:
    """Parse a time. Returns seconds."""
    try:
        seconds = _core.quantity("time", value)
    except _core.ScenarioError as error:
        raise ScenarioError(f"--{option} {value}: {error}") from None
    if seconds < least:
        raise ScenarioError(f"--{option} {value}: must be at least {least:g}s")
    return seconds


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"


def _length(scenario: Scenario) -> float:
    return float(scenario.plan()["duration_s"])
