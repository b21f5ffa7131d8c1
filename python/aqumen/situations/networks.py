"""Everyday networks from a few numbers: a household, an office, a switch port, a subscriber of an LTE cell, a
provider's link.

Each consists of a scenario file (`experiments/everyday`) with the numbers filled in, the AQMs that Linux offers there,
and metrics of user experience. No AQM is preferred here.
"""

from __future__ import annotations

from aqumen.errors import ScenarioError
from aqumen.experience import ExperienceMetric
from aqumen.scenario import Scenario
from aqumen.shaping import FULL_PACKET_B
from aqumen.situations import metrics
from aqumen.situations.access import KERNEL_AQMS, AccessLine
from aqumen.situations.numbers import change, length_s, read_rate, read_time
from aqumen.situations.study import Situation

__all__ = ["backbone", "cell", "datacenter", "office", "uplink"]

_OFFICE_GROUPS = ("web", "call-down", "call-up", "meeting-down", "meeting-up", "backup", "files")
_GROUPS = ("web", "call-down", "update", "film", "game-down", "upload", "call-up", "game-up")


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
        down: Downstream rate of the line, with a unit.
        up: Upstream rate of the line, with a unit.
        rtt: Base round-trip time, with a unit.
        line: Framing of the line, a name of `LINES`.
        bloat: Delay of the full buffers at the modem and at the provider when nothing is shaped; default: 500 ms, and
            at least 64 kB.
        headroom: Percentages by which the shapers stay below the line rate, up and down.
        duration: Duration of a run; default: longer for slower lines.
        target: Target queue of AQMs without a default target (PI, RED, STPI): packets, or a time; at least two packets.
    """
    base = Scenario.load("everyday/uplink")
    access = AccessLine.of(down, up, line=line, bloat=bloat, bloat_default_s=0.5, headroom=headroom)
    net = access.net
    # Slow lines need long runs for enough pages and packets; fast ones cost computing time.
    length = duration or f"{min(max(120 * (20e6 / max(net.values())) ** 0.75, 15), 600):.0f}s"
    page = min(1.0, net["down"] / 8 * 4 / 2.3e6)
    codec = "g711" if min(net.values()) >= 500e3 else "g729"
    film = min(5e6, net["down"] / 4)
    changes = {
        "title": f"A household behind a line of {down} down and {up} up",
        "duration": length,
        "windows.steady": f"{min(read_time('duration', length, least=1) / 4, 10):g}s",
        "flows.web.traffic.main": f"{30e3 * page:.0f}B",
        "flows.web.traffic.embedded.mean": f"{35e3 * page:.0f}B",
        "flows.web.traffic.embedded.std": f"{105e3 * page:.0f}B",
        "flows.film.traffic.size": f"{film * 4 / 8:.0f}B",
        "flows.call-up.traffic.codec": codec,
        "flows.call-down.traffic.codec": codec,
        **access.changes(target),
        **{f"flows.{name}.rtt": rtt for name in _GROUPS},
    }
    scenario = change(base, changes, {"rtt": rtt, "duration": length})
    return access.situation(
        scenario,
        metrics=metrics.household(length_s(scenario)),
        assumed=(
            *access.assumed(rtt),
            f"concurrent traffic over {length} (--duration): two people surf (pages of {2.3 * page:.2g} MB), "
            f"a call ({codec}), a game, a video of {film / 1e6:.2g} Mbit/s, an upload, an update, each on a separate "
            "device",
            *access.notes,
        ),
    )


def office(
    rate: str,
    people: int,
    *,
    up: str | None = None,
    rtt: str = "20ms",
    line: str = "measured",
    bloat: str | None = None,
    headroom: tuple[float, float] = (5.0, 10.0),
    duration: str | None = None,
    target: str = "15ms",
) -> Situation:
    """An office behind an access line.

    Half of the people read pages, one in ten is on the phone, one in five in a video meeting; one computer in twenty
    uploads a backup, one downloads files. At least one of each.

    Args:
        rate: Rate of the line, with a unit.
        people: Number of people, 1 to 1000.
        up: Upstream rate, with a unit; default: `rate`.
        rtt: Base round-trip time, with a unit.
        line: Framing of the line, a name of `LINES`.
        bloat: Delay of the full buffers at the modem and at the provider when nothing is shaped; default: 100 ms, and
            at least 64 kB.
        headroom: Percentages by which the shapers stay below the line rate, up and down.
        duration: Duration of a run; default: longer for slower lines.
        target: Target queue of AQMs without a default target (PI, RED, STPI): packets, or a time; at least two packets.
    """
    if not 1 <= people <= 1000:
        raise ScenarioError(f"--people {people}: must be 1 to 1000")
    base = Scenario.load("everyday/office")
    access = AccessLine.of(
        rate, up or rate, line=line, bloat=bloat, bloat_default_s=0.1, headroom=headroom, down_option="rate"
    )
    length = duration or f"{min(max(120 * (20e6 / max(access.net.values())) ** 0.75, 15), 300):.0f}s"
    counts = {"web": 2, "call": 10, "meeting": 5, "backup": 20, "files": 20}
    number = {name: max(1, round(people / share)) for name, share in counts.items()}
    groups = {name: number[name.partition("-")[0]] for name in _OFFICE_GROUPS}
    changes = {
        "title": f"An office of {people} people behind a line of {rate}" + (f" down and {up} up" if up else ""),
        "duration": length,
        "windows.steady": f"{read_time('duration', length, least=1) / 4:g}s",
        **{f"flows.{name}.{key}": f"{count}" for name, count in groups.items() for key in ("count", "hosts")},
        **{f"flows.{name}.rtt": rtt for name in groups},
        **access.changes(target),
    }
    scenario = change(base, changes, {"rtt": rtt, "duration": length})
    return access.situation(
        scenario,
        metrics=metrics.office(length_s(scenario), number["meeting"]),
        assumed=(
            *access.assumed(rtt),
            f"concurrent traffic over {length} (--duration), by --people: {number['web']} people read pages of 2.3 MB, "
            f"one about every 30 s; {number['call']} calls; {number['meeting']} video meetings of 150 kbit/s to "
            f"2.5 Mbit/s each way, which adapt to the delay; {number['backup']} backups up and {number['files']} "
            "downloads without end; computers with 1 Gbit/s each",
            *access.notes,
        ),
        delay="meetings",
    )


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
    bps = read_rate("rate", rate)
    round_s = read_time("rtt", rtt, least=1e-6)
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
        "windows.steady": f"{read_time('duration', length, least=1e-3) / 10:.6g}s",
    }
    scenario = change(base, changes, {"rtt": rtt, "buffer": buffer, "duration": length})
    # Linux's defaults suit round trips of the Internet; these follow the same rules for this network.
    target, interval = _us(max(round_s / 2, 12 * FULL_PACKET_B * 8 / bps)), _us(max(10 * round_s, 1e-3))
    worst_ms = length_s(scenario) * 1000
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
            *(
                ExperienceMetric(
                    key=key,
                    title=title,
                    unit="ms",
                    digits=3,
                    of=metrics.transfer("requests", metric, 1000),
                    worst=worst_ms,
                )
                for key, title, metric in (("requests", "Request, p99", "p99_s"), ("mean", "mean", "mean_s"))
            ),
            metrics.rate_of("bulk", "Long transfers", "bulk", "Gbit/s", 1e-9),
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


def backbone(
    rate: str = "100Mbit",
    *,
    flows: int = 100,
    rtt: str = "200ms",
    buffer: str | None = None,
    load: float = 25.0,
    duration: str | None = None,
) -> Situation:
    """A provider's link between routers: many flows from everywhere.

    Args:
        rate: Rate of the link, with a unit.
        flows: Number of long transfers, 1 to 10 000.
        rtt: Longest base round-trip time, with a unit; the shortest is a tenth of it.
        buffer: Buffer size, with a unit; default: 100 ms at the rate.
        load: Load of the short transfers, percent of the rate.
        duration: Duration of a run; default: 20 s at 100 Mbit/s, shorter for faster links, at least 50 round trips.
    """
    base = Scenario.load("everyday/backbone")
    bps = read_rate("rate", rate)
    round_s = read_time("rtt", rtt, least=1e-4)
    if not 1 <= flows <= 10_000:
        raise ScenarioError(f"--flows {flows}: must be 1 to 10000")
    if not 1 <= load <= 90:
        raise ScenarioError(f"--load {load:g}: must be 1 to 90 %")
    length = duration or f"{max(20 * min(100e6 / bps, 5), 50 * round_s):.3g}s"
    held, spread = buffer or f"{bps / 80:.0f}B", f'["{round_s * 100:.6g}ms", "{rtt}"]'
    changes = {
        "title": f"A provider's link of {rate} with {flows} long transfers",
        "duration": length,
        "topology.bottleneck.rate": rate,
        "topology.bottleneck.delay": _us(round_s / 40),
        "topology.bottleneck.buffer": held,
        "topology.access.rate": f"{max(10 * bps, 1e9):.0f}bit",
        "flows.long.count": str(flows),
        "flows.long.rtt": spread,
        "flows.short.rtt": spread,
        "flows.short.traffic.load": f"{bps * load / 100:.0f}bit",
        "windows.steady": f"{read_time('duration', length, least=1e-3) / 4:.6g}s",
    }
    scenario = change(base, changes, {"rtt": rtt, "buffer": held, "duration": length})
    return Situation(
        scenario=scenario,
        aqms=("droptail", *KERNEL_AQMS),
        metrics=metrics.backbone(length_s(scenario), scenario.plan()["actual"]["base_rtt_s"]),
        delay="response",
        assumed=(
            f"base RTT {round_s * 100:.6g}ms to {rtt} (--rtt), buffer {held} (--buffer), runs of {length} (--duration)",
            f"{flows} endless transfers (--flows); short ones of 60 kB on average, at {load:g} % of the rate (--load)",
            "loss rates below 1 % count as equal",
        ),
        rates={"bottleneck": bps},
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
    scenario = change(base, changes, said)
    return Situation(
        scenario=scenario,
        aqms=("droptail", *KERNEL_AQMS),
        metrics=metrics.household(length_s(scenario)),
        assumed=(
            f"channel quality {cqi:g} down, two less up (--cqi); {resource_blocks} resource blocks "
            f"(--resource-blocks), of which the subscriber has {share:g} % down and half of that up (--share); "
            + (f"a handover every {handover} on average (--handover)" if handover else "no handovers (--handover)"),
            f"base RTT {rtt} (--rtt); buffers of 2000 packets at the base station, 500 in the phone",
            f"concurrent traffic over {duration} (--duration): one person surfs, a call, a game, a video of "
            "2.5 Mbit/s, an upload, an update",
        ),
    )


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}us"
