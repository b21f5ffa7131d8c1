"""Access lines, and the `tc` commands that put a Linux queue discipline before one: rate, framing, shaper.

Framing is as `tc-cake` has it: bytes added to an IP packet, a least size, and what cells or codes cost on top.
`tc stab` adds to the size that the kernel sees, which has the 14 bytes of the Ethernet header already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from string import ascii_letters

from aqumen.errors import ScenarioError, listed

__all__ = ["FULL_PACKET_B", "KERNEL", "LINES", "Line", "Setup", "host", "interface", "kernel_options", "shaper"]

FULL_PACKET_B = 1500
"""Bytes of an IP packet of full size."""
ETHERNET_B = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """How a kind of access line frames packets."""

    words: str
    """What it is."""
    overhead: int = 0
    """Bytes on the line beyond the IP packet."""
    least: int = 0
    """Least bytes of a frame."""
    cells: str = ""
    """`atm`: cells of 53 bytes carry 48; `ptm`: 65 bytes carry 64."""
    cake: str = ""
    """Its keywords for CAKE."""

    def frame(self, packet: int) -> float:
        """Bytes that an IP packet takes on the line.

        Args:
            packet: Bytes of the packet.
        """
        size = max(packet + self.overhead, self.least)
        if self.cells == "atm":
            return 53 * ceil(size / 48)
        return size * 65 / 64 if self.cells == "ptm" else size

    def carried(self, bps: float) -> float:
        """Bit/s of full IP packets that a line of so many bit/s carries.

        Args:
            bps: Rate of the line.
        """
        return bps * FULL_PACKET_B / self.frame(FULL_PACKET_B)


LINES = {
    "measured": Line(words="the rates are those that a speed test measures, so framing is in them already"),
    "ethernet": Line(words="Ethernet or fibre, 38 B a frame", overhead=38, least=84, cake="ethernet"),
    "docsis": Line(words="cable (DOCSIS), 18 B a frame", overhead=18, least=64, cake="docsis"),
    "vdsl": Line(words="VDSL2 with PPPoE, 30 B a frame, 64 of 65 bytes", overhead=30, cells="ptm", cake="pppoe-ptm"),
    "vdsl-bridged": Line(
        words="VDSL2 without PPPoE, 22 B a frame, 64 of 65 bytes", overhead=22, cells="ptm", cake="bridged-ptm"
    ),
    "adsl": Line(words="ADSL with PPPoE, 40 B a frame, ATM cells", overhead=40, cells="atm", cake="pppoe-llcsnap"),
    "adsl-bridged": Line(
        words="ADSL without PPPoE, 32 B a frame, ATM cells", overhead=32, cells="atm", cake="bridged-llcsnap"
    ),
}
"""Access lines by name."""

KERNEL = {
    "droptail": ("pfifo", "2.2"),
    "codel-linux": ("codel", "3.5"),
    "fq-codel-linux": ("fq_codel", "3.5"),
    "pie-linux": ("pie", "3.14"),
    "cake-linux": ("cake", "4.19"),
    "fq-pie-linux": ("fq_pie", "5.6"),
    "dualpi2-linux": ("dualpi2", "6.17"),
    "sfq-linux": ("sfq", "2.2"),
}
"""Profiles with Linux's settings: the name for `tc`, and the first kernel with it. RED has no settings of its own."""

_TIMES = {"target", "interval", "ce_threshold", "tupdate", "step"}
_OPTIONS = {
    "codel": {"target", "interval", "limit", "ecn", "ce_threshold"},
    "fq_codel": {"target", "interval", "limit", "ecn", "ce_threshold", "quantum", "queues", "memory"},
    "pie": {"target", "interval", "limit", "ecn"},
    "fq_pie": {"target", "interval", "limit", "ecn", "quantum", "queues"},
    "dualpi2": {"target", "tupdate", "limit", "step"},
    "cake": {"isolation"},
    "sfq": {"limit", "quantum", "depth"},
    "pfifo": set(),
}
_NAMES = {
    ("fq_codel", "queues"): "flows",
    ("fq_pie", "queues"): "flows",
    ("fq_codel", "memory"): "memory_limit",
    ("pie", "interval"): "tupdate",
    ("fq_pie", "interval"): "tupdate",
    ("dualpi2", "step"): "step_thresh",
}
_ISOLATION = {
    "triple": "triple-isolate",
    "dual-src": "dual-srchost",
    "dual-dst": "dual-dsthost",
    "flow-blind": "flowblind",
}


def kernel_options(spec: str) -> str:
    """What stands behind `tc qdisc ...` for a SPEC: `fq-codel-linux:target=10ms` is `fq_codel target 10ms`.

    Args:
        spec: One of `KERNEL`, perhaps with parameters that its qdisc has.
    """
    name, _, given = spec.partition(":")
    if name not in KERNEL:
        raise ScenarioError(f"{spec}: no queue discipline of Linux; choose from: {listed(KERNEL)}")
    qdisc = KERNEL[name][0]
    words = [qdisc]
    for pair in filter(None, given.split(",")):
        key, _, value = pair.partition("=")
        if key not in _OPTIONS[qdisc]:
            known = ", ".join(sorted(_OPTIONS[qdisc])) or "none"
            raise ScenarioError(f"{spec}: tc has no option of {qdisc} for `{key}`; with one: {known}")
        word = _NAMES.get((qdisc, key), key)
        match key:
            case "ecn":
                words.append("ecn" if value == "true" else "noecn")
            case "isolation":
                words.append(_ISOLATION.get(value, value))
            case _ if key in _TIMES:
                words += [word, value]
            case _:
                words += [word, value.rstrip(ascii_letters)]
    return " ".join(words)


def interface(name: str) -> str:
    """The name of an interface; anything else is refused, since it stands in commands for root.

    Args:
        name: What was given.
    """
    if not re.fullmatch(r"[A-Za-z0-9._:@-]{1,15}", name):
        raise ScenarioError(f"--device {name}: a name of 1 to 15 letters, digits and . _ : @ -")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Commands that put a discipline in place and take it away; `{device}` and `{ifb}` stand for the interfaces."""

    device: str
    """The interface to the line."""
    remove: tuple[str, ...]
    """What takes all of it away, and does nothing where there is nothing."""
    add: tuple[str, ...]
    """What puts it onto an interface without any; comments among them."""
    show: tuple[str, ...]
    """What shows it and its counters."""

    @property
    def commands(self) -> list[str]:
        """The commands to type. They may be repeated: what is there is removed first."""
        names = {"device": self.device, "ifb": f"ifb4{self.device}"[:15]}
        return [line.format(**names) for line in (*self.remove, *self.add)]

    def script(self, title: str) -> str:
        """A shell script with the arguments `start` (or none), `stop` and `status`.

        Args:
            title: What it sets up, a line.
        """
        names = {"device": '"$device"', "ifb": '"$ifb"'}
        functions = [
            "\n".join([f"{name}() {{", *(f"    {line.format(**names)}" for line in lines), "}"])
            for name, lines in (("stop", self.remove), ("start", self.add), ("status", self.show))
        ]
        return "\n\n".join([_HEAD.format(title=" ".join(title.split()), device=self.device), *functions, _TAIL])


_HEAD = """#!/bin/sh
# {title}
# As root: start (or no argument), stop or status. Another interface: DEVICE=eth1 before the command.
set -eu
device="${{DEVICE:-{device}}}"
ifb=$(printf 'ifb4%.11s' "$device")"""
_TAIL = """case "${1:-start}" in
start)
    ip link show dev "$device" >/dev/null
    stop
    # Nothing stays half done.
    trap stop EXIT
    start
    trap - EXIT
    status
    ;;
stop | status) "$1" ;;
*)
    echo "usage: $0 [start|stop|status]" >&2
    exit 2
    ;;
esac
"""


def shaper(spec: str, line: Line, up_bps: float, down_bps: float, device: str) -> Setup:
    """Both directions shaped at a router's interface, with a discipline behind each shaper.

    Args:
        spec: One of `KERNEL`, perhaps with parameters.
        line: How the line frames packets.
        up_bps: Rate to set for what is sent.
        down_bps: Rate to set for what is received.
        device: The interface to the line.
    """
    return Setup(
        device=device,
        remove=(
            "tc qdisc del dev {device} root 2>/dev/null || true",
            "tc qdisc del dev {device} ingress 2>/dev/null || true",
            "ip link del {ifb} 2>/dev/null || true",
        ),
        add=(
            "# what is sent",
            *_shaped(spec, line, up_bps, "{device}"),
            "# what is received, through a device of its own",
            "ip link show {ifb} >/dev/null 2>&1 || ip link add {ifb} type ifb",
            "ip link set {ifb} up",
            "tc qdisc add dev {device} handle ffff: ingress",
            "tc filter add dev {device} parent ffff: protocol all u32 match u32 0 0"
            " action mirred egress redirect dev {ifb}",
            *_shaped(spec, line, down_bps, "{ifb}"),
        ),
        show=("tc -s qdisc show dev {device}", "! ip link show {ifb} >/dev/null 2>&1 || tc -s qdisc show dev {ifb}"),
    )


def host(spec: str, device: str) -> Setup:
    """A discipline before an interface whose own rate is the limit.

    Args:
        spec: One of `KERNEL`, perhaps with parameters.
        device: The interface.
    """
    return Setup(
        device=device,
        remove=("tc qdisc del dev {device} root 2>/dev/null || true",),
        add=(f"tc qdisc add dev {{device}} root {kernel_options(spec)}",),
        show=("tc -s qdisc show dev {device}",),
    )


def _shaped(spec: str, line: Line, bps: float, device: str) -> list[str]:
    options = kernel_options(spec)
    if options.startswith("cake"):
        words = f"cake bandwidth {_kbit(bps)}{options.removeprefix('cake')} nat {line.cake}"
        return [f"tc qdisc add dev {device} root {words}".rstrip()]
    rate, stab = bps, ""
    if line.overhead:
        # 64 of 65 bytes: tc has no keyword for it, so the rate is that much lower.
        rate = bps * 64 / 65 if line.cells == "ptm" else bps
        cells = "atm" if line.cells == "atm" else "ethernet"
        least = f" mpu {line.least}" if line.least else ""
        stab = f" stab overhead {line.overhead - ETHERNET_B}{least} linklayer {cells}"
    # As much as a millisecond carries: a timer that is late by that costs no rate. tc's own least is a packet.
    burst = max(ceil(rate / 8 / 1000), 1600)
    return [
        f"tc qdisc add dev {device} root handle 1:{stab} htb default 1",
        f"tc class add dev {device} parent 1: classid 1:1 htb rate {_kbit(rate)} burst {burst} cburst {burst}"
        " quantum 1514",
        f"tc qdisc add dev {device} parent 1:1 {options}",
    ]


def _kbit(bps: float) -> str:
    return f"{bps / 1000:.0f}kbit"
