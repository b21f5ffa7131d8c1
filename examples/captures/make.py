"""Makes home.pcap: ten seconds of the downstream of a home, headers only, the same bytes each time.

    python examples/captures/make.py examples/captures/home.pcap
    python examples/captures/make.py big.pcap --packets 1000000

A voice call (UDP, EF), a video stream (UDP/443, ECT(1)), page loads (TCP/443, ECT(0)), a download without ECN (TCP/80)
that comes in bursts, name look-ups and pings. Nothing of it is anybody's traffic: the addresses are for documentation.
"""

import argparse
import random
import struct
from pathlib import Path

HEADERS = 54
"""Bytes captured of each packet: Ethernet, IPv4 and the longest transport header."""
NOT_ECT, ECT1, ECT0 = 0, 1, 2


def checksum(header: bytes) -> int:
    """The IPv4 header checksum (RFC 791)."""
    total = sum(struct.unpack("!10H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def packet(size: int, tos: int, protocol: int, server: int, ports: tuple[int, int], number: int) -> bytes:
    """The first bytes of a frame of `size` bytes from 192.0.2.`server` to the home."""
    source, home = bytes((192, 0, 2, server)), bytes((198, 51, 100, 7))

    def ip(check: int) -> bytes:
        head = struct.pack("!BBHHHBBH", 0x45, tos, size - 14, number & 0xFFFF, 0x4000, 57, protocol, check)
        return head + source + home

    above = {
        6: struct.pack("!HHIIBBHHH", *ports, number * 1448 & 0xFFFFFFFF, 1, 0x50, 0x10, 501, 0, 0),
        17: struct.pack("!HHHH", *ports, size - 34, 0),
        1: struct.pack("!BBHHH", 0, 0, 0, 7, number),
    }[protocol]
    ethernet = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0"
    return (ethernet + ip(checksum(ip(0))) + above + bytes(HEADERS))[: min(HEADERS, size)]


def traffic(rng: random.Random, duration_s: float) -> list[tuple[int, int, bytes]]:
    """Times in nanoseconds, sizes and headers of all packets, in order."""
    sent: list[tuple[int, int, bytes]] = []

    def send(at_s: float, size: int, tos: int, protocol: int, server: int, ports: tuple[int, int]) -> None:
        if at_s < duration_s:
            sent.append((round(at_s * 1e9), size, packet(size, tos, protocol, server, ports, len(sent))))

    for frame in range(int(duration_s / 0.02)):
        send(frame * 0.02 + rng.uniform(0, 0.002), 214, 46 << 2, 17, 10, (16_384, 16_390))
    for frame in range(int(duration_s / 0.2)):
        for part in range(rng.choice((2, 3, 4))):
            send(frame * 0.2 + part * 0.0005, 1242, ECT1, 17, 20, (443, 51_000))
    at = 0.3
    while at < duration_s:
        port = rng.randrange(40_000, 50_000)
        send(at, 130, NOT_ECT, 17, 53, (53, port))
        for part in range(rng.randrange(8, 30)):
            send(at + 0.04 + part // 10 * 0.03 + part * 0.0002, 1514, ECT0, 6, 30, (443, port))
        at += rng.uniform(0.3, 1.4)
    at = 1.0
    while at < duration_s:
        for part in range(20):
            send(at + part * 0.00013, 1514, NOT_ECT, 6, 40, (80, 45_678))
        at += rng.uniform(0.4, 0.7)
    for ping in range(int(duration_s)):
        send(ping + 0.5, 98, NOT_ECT, 1, 1, (0, 0))
    return sorted(sent)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Makes a capture of a home's downstream.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--packets", type=int, help="repeat the ten seconds until there are so many packets")
    arguments = parser.parse_args()
    epoch_s, duration_s = 1_790_000_000, 10.0
    once = traffic(random.Random(1), duration_s)
    wanted = arguments.packets or len(once)
    with arguments.file.open("wb") as file:
        # Little-endian, nanoseconds, Ethernet.
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, HEADERS, 1))
        for number in range(wanted):
            turn, place = divmod(number, len(once))
            at_ns, size, data = once[place]
            seconds, rest = divmod(at_ns + round(turn * duration_s * 1e9), 1_000_000_000)
            file.write(struct.pack("<IIII", epoch_s + seconds, rest, len(data), size) + data)
    print(f"{arguments.file}: {wanted} packets, {arguments.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
