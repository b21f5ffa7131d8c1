"""An access line with shapers: its rates, buffers and framing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from aqumen.errors import ScenarioError, listed
from aqumen.experience import ExperienceMetric
from aqumen.scenario import Scenario
from aqumen.shaping import FULL_PACKET_B, LINES
from aqumen.situations.numbers import quantity, read_rate, read_time
from aqumen.situations.study import Situation

__all__ = ["KERNEL_AQMS", "SLOW", "AccessLine"]

KERNEL_AQMS = (
    "cake-linux",
    "fq-codel-linux",
    "fq-pie-linux",
    "sfq-linux",
    "codel-linux",
    "pie-linux",
    "dualpi2-linux",
)
"""AQMs to compare by default, without the profile for slow lines."""
SLOW = "fq-codel-slow"
"""Profile of FQ-CoDel with target and quantum for slow lines."""
SLOW_QUANTUM_B = 300
"""Quantum of that profile, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLine:
    """An access line with a shaper in each direction; values by direction, `up` and `down`."""

    words: str
    """Description of the framing."""
    gross: Mapping[str, float]
    """Rate of the line, bit/s."""
    net: Mapping[str, float]
    """Rate of full IP packets that the line carries, bit/s."""
    headroom: tuple[float, float]
    """Percentages by which the shapers stay below the line rate, up and down."""
    buffers: Mapping[str, float]
    """Buffers of modem and provider, bytes."""
    bloat: str
    """Description of these buffers."""

    @classmethod
    def of(
        cls,
        down: str,
        up: str,
        *,
        line: str,
        bloat: str | None,
        bloat_default_s: float,
        headroom: tuple[float, float],
        down_option: str = "down",
    ) -> AccessLine:
        """Parse the numbers of a line.

        Args:
            down: Downstream rate, with a unit.
            up: Upstream rate, with a unit.
            line: Framing, a name of `LINES`.
            bloat: Delay of the full buffers; `None` takes the default, and at least 64 kB.
            bloat_default_s: That default, seconds.
            headroom: Percentages, up and down.
            down_option: Option with the downstream rate, for messages.
        """
        if line not in LINES:
            raise ScenarioError(f"--line {line}: choose from: {listed(LINES)}")
        for percent in headroom:
            if not 0 <= percent < 90:
                raise ScenarioError(f"--headroom {percent:g}: must be at least 0 and below 90 %")
        gross = {"down": read_rate(down_option, down), "up": read_rate("up", up)}
        waits, room = (bloat_default_s, 64e3) if bloat is None else (read_time("bloat", bloat, least=0.001), 15e3)
        net = {way: LINES[line].carried(bps) for way, bps in gross.items()}
        return cls(
            words=LINES[line].words,
            gross=gross,
            net=net,
            headroom=headroom,
            buffers={way: max(bps * waits / 8, room) for way, bps in net.items()},
            bloat=bloat or f"{1000 * bloat_default_s:g} ms, at least 64 kB",
        )

    @property
    def _fraction(self) -> dict[str, float]:
        """Fraction of the line's rate that the shapers use."""
        return {way: 1 - percent / 100 for way, percent in zip(("up", "down"), self.headroom, strict=True)}

    @property
    def shaped(self) -> dict[str, float]:
        """Rate of full IP packets behind the shapers, bit/s."""
        return {way: bps * self._fraction[way] for way, bps in self.net.items()}

    @property
    def profiles(self) -> dict[str, str]:
        """Profiles for slow lines."""
        slow = _slow(min(self.shaped.values()))
        return {} if slow is None else {SLOW: slow}

    @property
    def notes(self) -> list[str]:
        """Assumptions about these profiles."""
        return [f"{name} is {spec}, since a full packet takes longer than 5 ms" for name, spec in self.profiles.items()]

    def changes(self, target: str) -> dict[str, str]:
        """Return the changes of the scenario.

        Args:
            target: Target queue of AQMs without a default target: packets, or a time.
        """
        if target.endswith("pkt"):
            pkts = quantity("target", "packets", target)
            aims = {way: max(pkts, 2) for way in self.net}
        else:
            aim_s = read_time("target", target, least=1e-6)
            aims = {way: max(aim_s * bps / 8 / FULL_PACKET_B, 2) for way, bps in self.shaped.items()}
        # Shapers at ten times the line rate, so that the queue builds up in the modem.
        wide = f"{10 * max(self.net.values()):.0f}bit"
        return {
            "variants.now": "{ " + ", ".join(f"'topology.links.{way}.rate' = '{wide}'" for way in self.net) + " }",
            **{f"topology.links.{way}.rate": f"{bps:.0f}bit" for way, bps in self.shaped.items()},
            **{f"topology.links.{way}.target": f"{pkts:.4g}pkt" for way, pkts in aims.items()},
            **{f"topology.links.line-{way}.rate": f"{bps:.0f}bit" for way, bps in self.net.items()},
            **{f"topology.links.line-{way}.buffer": f"{size:.0f}B" for way, size in self.buffers.items()},
            **{f"aqms.{name}": _profile(spec) for name, spec in self.profiles.items()},
        }

    def assumed(self, rtt: str) -> tuple[str, str]:
        """Return the assumptions about the line, one line each.

        Args:
            rtt: Base round-trip time, as given.
        """
        up, down = self.headroom
        return (
            f"shapers {up:g} % (up) and {down:g} % (down) below the line; {self.words} (--headroom, --line)",
            f"base RTT {rtt} (--rtt); modem and provider without AQM, with a buffer of {self.bloat} (--bloat)",
        )

    def situation(
        self,
        scenario: Scenario,
        *,
        metrics: tuple[ExperienceMetric, ...],
        assumed: tuple[str, ...],
        delay: str = "game",
    ) -> Situation:
        """Return the everyday network behind this line.

        Args:
            scenario: The network.
            metrics: Metrics of user experience.
            assumed: Assumptions, one line each.
            delay: Key of the metric that shows delay under load.
        """
        return Situation(
            scenario=scenario,
            aqms=(*KERNEL_AQMS[:2], *self.profiles, *KERNEL_AQMS[2:]),
            profiles=self.profiles,
            metrics=metrics,
            before="now",
            rates={way: bps * self._fraction[way] for way, bps in self.gross.items()},
            sent_bps=self.shaped["up"],
            assumed=assumed,
            delay=delay,
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


def _profile(spec: str) -> str:
    """Format a SPEC as a profile of a scenario."""
    name, _, given = spec.partition(":")
    pairs = (pair.split("=") for pair in given.split(","))
    return "{ " + ", ".join([f'algorithm = "{name}"', *(f'{key} = "{value}"' for key, value in pairs)]) + " }"
