"""`aqumend link` under the kernel's TCP: it joins two network namespaces, which are gone when our processes end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import fmean

import machine
import pytest

import aqumen
from aqumen.engines.external import live

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0 or not os.path.exists("/dev/net/tun"),
        reason="aqumend link needs Linux, root and /dev/net/tun",
    ),
]

RECEIVE = """
import select, socket
poll, listener = select.epoll(), socket.create_server(("10.9.1.2", 5001), backlog=64)
poll.register(listener)
print("listens", flush=True)
ends = {}
while True:
    for number, _ in poll.poll():
        if number == listener.fileno():
            end, _ = listener.accept()
            ends[end.fileno()] = end
            poll.register(end, select.EPOLLIN)
        else:
            ends[number].recv(1 << 20)
"""
SEND = """
import socket, sys, threading, time
def send():
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"reno")
        asked = time.monotonic()
        sender.connect(("10.9.1.2", 5001))
        print(time.monotonic() - asked, flush=True)
        while True:
            sender.sendall(bytes(1 << 16))
for _ in range(int(sys.argv[1])):
    threading.Thread(target=send, daemon=True).start()
    time.sleep(0.02)
time.sleep(60)
"""


class Namespace:
    """A network namespace that a process of ours holds: it ends with this test, however this ends."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.path = f"/proc/{self.holder.pid}/ns/net"
        own, deadline = os.readlink("/proc/self/ns/net"), time.monotonic() + 10
        while os.readlink(self.path) == own:
            assert time.monotonic() < deadline, "unshare made no namespace"
            time.sleep(0.005)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a program in it."""
        command = ["nsenter", f"--net={self.path}", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def sh(self, line: str) -> None:
        """Run a line of the shell in it."""
        subprocess.run(["nsenter", f"--net={self.path}", "sh", "-ec", line], check=True)

    def end(self) -> None:
        """A namespace disappears with its last process."""
        with self.holder:
            self.holder.stdin.close()


@pytest.fixture
def sides() -> Iterator[tuple[Namespace, Namespace]]:
    """Sender and receiver."""
    both = (Namespace(), Namespace())
    yield both
    for side in both:
        side.end()


def scenario(seconds, steady):
    """24 Mbit/s and 80 ms: 160 packets, and 60 more in the queue, for 16 flows."""
    text = f"""
        name = "link"
        duration = "{seconds}s"
        aqm = "pi"
        [windows]
        steady = "{steady}s"
        [nominal]
        target = "60pkt"
        [topology]
        preset = "dumbbell"
        bottleneck = {{ rate = "24Mbit", delay = "30ms", buffer = "300pkt" }}
        access = {{ rate = "1Gbit", delay = "5ms" }}
        [[flows]]
        name = "ftp"
        count = 16
        transport = "linux-reno"
    """
    return aqumen.Scenario.parse(text, "link")


def linked(sides, text, flows, *options, stop=None):
    """Result of `aqumend link` after kernel TCP crossed it, and the times that connections took to open.

    `stop` is a signal, and the seconds of traffic after which it comes.
    """
    left, right = sides
    command = [
        str(live.find_program()),
        "link",
        "-",
        "--left",
        f"{left.path}/l0",
        "--right",
        f"{right.path}/r0",
        *options,
    ]
    with ExitStack() as programs:
        link = programs.enter_context(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        link.stdin.write(text)
        link.stdin.close()
        said = link.stderr.readline()
        assert "the link is there" in said, said
        for side, own, device in ((left, "10.9.1.1", "l0"), (right, "10.9.1.2", "r0")):
            side.sh(
                f"ip addr add {own}/24 dev {device}; cd /proc/sys/net/ipv4; echo 1 >tcp_ecn; echo 0 >tcp_ecn_fallback; "
                "echo 1 >tcp_no_metrics_save"
            )
        receiver = programs.enter_context(right.start(sys.executable, "-c", RECEIVE))
        assert receiver.stdout.readline() == "listens\n"
        sender = programs.enter_context(left.start(sys.executable, "-c", SEND, str(flows)))
        if stop is not None:
            number, seconds = stop
            time.sleep(seconds)
            link.send_signal(number)
        answer, errors = link.stdout.read(), link.stderr.read()
        for process in (sender, receiver):
            process.terminate()
        took = [float(line) for line in sender.stdout]
        assert link.wait() == 0, errors
    return json.loads(answer), took


@pytest.mark.parametrize("options", [(), ("--gso",)], ids=["packets", "super-packets"])
def test_kernel_traffic_over_a_link_fares_as_in_the_packet_engine(sides, options):
    given = scenario(12, 4)
    answer, took = machine.counted(
        lambda: linked(sides, given.to_toml(), 16, *options), lambda answered: answered[0]["host"]
    )
    link = answer["links"]["bottleneck"]["steady"]
    packet = [aqumen.run(given, "pi", seed).link() for seed in range(1, 6)]
    queue, used = (fmean(run[metric] for run in packet) for metric in ("queue_mean_pkts", "utilization"))
    print(link["queue_mean_pkts"], queue, link["utilization"], used, link["marked_pkts"])
    # The delay: 40 ms each way, and what the queue adds.
    assert len(took) == 16
    assert min(took) >= 0.080
    assert min(took) < 0.2
    # The rate and the AQM. The margins are those of `aqumen validate live`, and as much again for one short run.
    assert link["utilization"] == pytest.approx(used, abs=0.04)
    assert link["queue_mean_pkts"] == pytest.approx(queue, rel=0.20)
    assert link["marked_pkts"] > 50
    assert link["early_dropped_pkts"] < link["marked_pkts"] / 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_link_that_is_stopped_tells_what_it_saw(sides, number):
    answer, _ = linked(sides, scenario(3600, 1).to_toml(), 4, stop=(number, 3))
    begin, end = answer["windows"]["steady"]
    assert begin == 1
    # Three seconds of traffic, what it takes to set it up, and what a busy machine adds.
    assert 3 < end < 60
    link = answer["links"]["bottleneck"]["steady"]
    assert link["departures_pkts"] > 100
    # The packets sent in the window, of 1500 bytes at most, and no others: a rate over the hour that was planned
    # would be nothing.
    assert link["departures_pkts"] * 1500 * 8 >= 0.99 * link["utilization"] * (end - begin) * 24e6 > 0
    assert any("stopped after" in note for note in answer["notes"]), answer["notes"]
    left, _ = sides
    with pytest.raises(subprocess.CalledProcessError):
        left.sh("ip link show dev l0 2>/dev/null")


def test_the_link_goes_with_its_program(sides):
    left, _ = sides
    linked(sides, scenario(1, 0.5).to_toml(), 1)
    with pytest.raises(subprocess.CalledProcessError):
        left.sh("ip link show dev l0 2>/dev/null")
