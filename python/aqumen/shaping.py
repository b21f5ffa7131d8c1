"""Access lines, and the `tc` commands for a Linux queueing discipline in front of one: rate, framing, shaper.

Framing follows `tc-cake`: bytes added to an IP packet, a minimum frame size, and the overhead of cells or line codes.
`tc stab` adds to the size that the kernel sees, which includes the 14 bytes of the Ethernet header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from string import ascii_letters

from aqumen.errors import ScenarioError, listed

__all__ = ["FULL_PACKET_B", "KERNEL", "LINES", "Line", "Setup", "host", "interface", "kernel_options", "shaper"]

FULL_PACKET_B = 1500
"""Size of a full IP packet, bytes."""
ETHERNET_B = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Framing of a kind of access line."""

    words: str
    """Description for people."""
    overhead: int = 0
    """Bytes on the line beyond the IP packet."""
    least: int = 0
    """Minimum frame size, bytes."""
    cells: str = ""
    """`atm`: cells of 53 bytes carry 48; `ptm`: 65 bytes carry 64; empty: neither."""
    cake: str = ""
    """Keywords of CAKE for this framing."""

    def frame(self, packet: int) -> float:
        """Return the bytes that an IP packet takes on the line.

        Args:
            packet: Size of the packet, bytes.
        """
        size = max(packet + self.overhead, self.least)
        if self.cells == "atm":
            return 53 * ceil(size / 48)
        return size * 65 / 64 if self.cells == "ptm" else size

    def carried(self, bps: float) -> float:
        """Return the rate of full IP packets that a line carries, bit/s.

        Args:
            bps: Rate of the line, bit/s.
        """
        return bps * FULL_PACKET_B / self.frame(FULL_PACKET_B)


LINES = {
    "measured": Line(words="rates as measured by a speed test, which include framing"),
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
"""Profiles with the defaults of Linux: name for `tc`, and first kernel version. RED has no defaults."""

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
    """Translate a SPEC to the arguments of `tc qdisc`: `fq-codel-linux:target=10ms` is `fq_codel target 10ms`.

    Args:
        spec: A name of `KERNEL`, optionally with parameters of its qdisc.

    Raises:
        ScenarioError: The kernel lacks the discipline, or `tc` lacks an option for a parameter.
    """
    name, _, given = spec.partition(":")
    if name not in KERNEL:
        raise ScenarioError(f"{spec}: not a queueing discipline of Linux; choose from: {listed(KERNEL)}")
    qdisc = KERNEL[name][0]
    words = [qdisc]
    for pair in filter(None, given.split(",")):
        key, _, value = pair.partition("=")
        if key not in _OPTIONS[qdisc]:
            known = ", ".join(sorted(_OPTIONS[qdisc])) or "none"
            raise ScenarioError(f"{spec}: tc {qdisc} has no option for `{key}`; parameters with one: {known}")
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
    """Check the name of a network interface, since it is put into commands for root.

    Args:
        name: Name as given on the command line.
    """
    if not re.fullmatch(r"[A-Za-z0-9._:@-]{1,15}", name):
        raise ScenarioError(f"--device {name}: must be 1 to 15 letters, digits or . _ : @ -")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Commands that install and remove a queueing discipline; `{device}` and `{ifb}` stand for the interfaces."""

    device: str
    """Interface to the line."""
    remove: tuple[str, ...]
    """Commands that remove the discipline; no error if there is none."""
    add: tuple[str, ...]
    """Commands that install it on an interface without one; may contain comments."""
    show: tuple[str, ...]
    """Commands that show it and its counters."""
    openwrt: str = ""
    """Section of OpenWrt's `/etc/config/sqm` for the same; empty without a shaper."""

    @property
    def commands(self) -> list[str]:
        """Commands to type, removal first, so that they can be repeated."""
        names = {"device": self.device, "ifb": f"ifb4{self.device}"[:15]}
        return [line.format(**names) for line in (*self.remove, *self.add)]

    def script(self, title: str) -> str:
        """Return a shell script with the arguments `start` (default), `stop`, `status`, `systemd` and `openwrt`.

        Args:
            title: Title for its first comment, one line.
        """
        names = {"device": '"$device"', "ifb": '"$ifb"'}
        functions = [
            "\n".join([f"{name}() {{", *(f"    {line.format(**names)}" for line in lines), "}"])
            for name, lines in (("stop", self.remove), ("start", self.add), ("status", self.show))
        ]
        title = " ".join(title.split())
        uci = self.openwrt or "# No shaper, so SQM has nothing to set."
        blocks = [_SYSTEMD.format(title=title.replace("%", "%%")), _OPENWRT.format(uci=uci)]
        return "\n\n".join([_HEAD.format(title=title, device=self.device), *functions, *blocks, _TAIL])


_HEAD = """#!/bin/sh
# {title}
# As root: start (or no argument), stop or status. Another interface: DEVICE=eth1 before the command.
# At each boot, on Linux with systemd:
#   install -m 755 "$0" /usr/local/sbin/aqumen-shaper
#   aqumen-shaper systemd >/etc/systemd/system/aqumen-shaper.service
#   systemctl enable --now aqumen-shaper
# On OpenWrt with the package sqm-scripts (which replaces the commands of this script):
#   sh "$0" openwrt >>/etc/config/sqm && service sqm restart
set -eu
device="${{DEVICE:-{device}}}"
ifb=$(printf 'ifb4%.11s' "$device")"""
_SYSTEMD = """systemd() {{
    cat <<END
[Unit]
Description={title}
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
Environment=DEVICE=$device
ExecStart=$(readlink -f "$0") start
ExecStop=$(readlink -f "$0") stop

[Install]
WantedBy=multi-user.target
END
}}"""
_OPENWRT = """openwrt() {{
    cat <<END
{uci}
END
}}"""
_TAIL = """case "${1:-start}" in
start)
    ip link show dev "$device" >/dev/null
    stop
    # Roll back if a command fails.
    trap stop EXIT
    start
    trap - EXIT
    status
    ;;
stop | status | systemd | openwrt) "$1" ;;
*)
    echo "usage: $0 [start|stop|status|systemd|openwrt]" >&2
    exit 2
    ;;
esac
"""


def _sqm(spec: str, line: Line, up_bps: float, down_bps: float) -> str:
    """Return a section of OpenWrt's SQM: rates, discipline and framing."""
    qdisc, _, options = kernel_options(spec).partition(" ")
    cake = qdisc == "cake"
    # As for tc: no keyword for PTM's 64 of 65 bytes, and a size table knows the Ethernet header.
    factor = 64 / 65 if line.cells == "ptm" and not cake else 1.0
    words = options
    if cake:
        words = " ".join(filter(None, (options, "nat", line.cake if line.cells == "ptm" else "")))
    values = {
        "enabled": "1",
        "interface": "$device",
        "download": f"{down_bps * factor / 1000:.0f}",
        "upload": f"{up_bps * factor / 1000:.0f}",
        "qdisc": qdisc,
        "script": "piece_of_cake.qos" if cake else "simplest.qos",
        "qdisc_advanced": "1",
        # ECN as by default in the kernel.
        "ingress_ecn": "ECN" if _has_ecn(qdisc, options) else "NOECN",
        "egress_ecn": "ECN" if _has_ecn(qdisc, options) else "NOECN",
        "linklayer": "none",
    }
    if words:
        values |= {"qdisc_really_really_advanced": "1", "iqdisc_opts": words, "eqdisc_opts": words}
    if line.overhead and not (cake and line.cells == "ptm"):
        values |= {
            "linklayer": "atm" if line.cells == "atm" else "ethernet",
            "overhead": f"{line.overhead if cake else line.overhead - ETHERNET_B}",
            "linklayer_advanced": "1",
            "linklayer_adaptation_mechanism": "cake" if cake else "tc_stab",
            "tcMPU": f"{line.least}",
        }
    return "\n".join(["config queue 'aqumen'", *(f"\toption {key} '{value}'" for key, value in values.items())])


def _has_ecn(qdisc: str, options: str) -> bool:
    """Whether the discipline marks: as its options say, or by the kernel's default."""
    words = options.split()
    return "ecn" in words or (qdisc in ("fq_codel", "cake") and "noecn" not in words)


def shaper(spec: str, line: Line, up_bps: float, down_bps: float, device: str) -> Setup:
    """Shape both directions at a router's interface, with a queueing discipline behind each shaper.

    Args:
        spec: A name of `KERNEL`, optionally with parameters.
        line: Framing of the line.
        up_bps: Upstream rate of the shaper, bit/s.
        down_bps: Downstream rate of the shaper, bit/s.
        device: Interface to the line.
    """
    return Setup(
        device=device,
        remove=(
            "tc qdisc del dev {device} root 2>/dev/null || true",
            "tc qdisc del dev {device} ingress 2>/dev/null || true",
            "ip link del {ifb} 2>/dev/null || true",
        ),
        add=(
            "# upstream",
            *_shaped(spec, line, up_bps, "{device}"),
            "# downstream, through an intermediate device",
            "ip link show {ifb} >/dev/null 2>&1 || ip link add {ifb} type ifb",
            "ip link set {ifb} up",
            "tc qdisc add dev {device} handle ffff: ingress",
            "tc filter add dev {device} parent ffff: protocol all u32 match u32 0 0"
            " action mirred egress redirect dev {ifb}",
            *_shaped(spec, line, down_bps, "{ifb}"),
        ),
        show=("tc -s qdisc show dev {device}", "! ip link show {ifb} >/dev/null 2>&1 || tc -s qdisc show dev {ifb}"),
        openwrt=_sqm(spec, line, up_bps, down_bps),
    )


def host(spec: str, device: str) -> Setup:
    """Put a discipline on an interface whose own rate is the bottleneck.

    Args:
        spec: A name of `KERNEL`, optionally with parameters.
        device: Network interface, such as `eth0`.
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
        # tc has no keyword for PTM's 64 of 65 bytes, so the rate is reduced instead.
        rate = bps * 64 / 65 if line.cells == "ptm" else bps
        cells = "atm" if line.cells == "atm" else "ethernet"
        least = f" mpu {line.least}" if line.least else ""
        stab = f" stab overhead {line.overhead - ETHERNET_B}{least} linklayer {cells}"
    # One millisecond's data, so that a timer late by 1 ms loses no rate. tc's minimum is one packet.
    burst = max(ceil(rate / 8 / 1000), 1600)
    return [
        f"tc qdisc add dev {device} root handle 1:{stab} htb default 1",
        f"tc class add dev {device} parent 1: classid 1:1 htb rate {_kbit(rate)} burst {burst} cburst {burst}"
        " quantum 1514",
        f"tc qdisc add dev {device} parent 1:1 {options}",
    ]


def _kbit(bps: float) -> str:
    return f"{bps / 1000:.0f}kbit"
