"""The memory that a run is said to need is what it needs: no less than the peak, no more than three times it."""

import subprocess
import sys
from pathlib import Path

import pytest

PI = "pi:a=1e-4,b=9e-5,frequency=100Hz,target=50pkt"
MEASURE = (
    f"PI = {PI!r}"
    + """
import contextlib, os, sys
from aqumen.cli import main
from aqumen.scenario import Scenario
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
def run(path, aqm):
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
        assert main(["run", path, "--aqm", aqm, *sys.argv[4:]]) == 0
    return peak()
small, large, aqm, engine = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[5]
base = run(small, PI)
print(run(large, aqm) - base)
for path, aqm in ((small, PI), (large, aqm)):
    print(Scenario.load(path).core.memory_estimate(engine, aqm))
"""
)


def dumbbell(*, flows=2, rate="8Mbit", duration="1s", more="", group="", buffer="100pkt", transport='"ns2"'):
    return f"""
name = "dumbbell"
duration = "{duration}"
[topology]
preset = "dumbbell"
bottleneck = {{ rate = "{rate}", delay = "10ms", buffer = "{buffer}" }}
access = {{ rate = "1Gbit", delay = "1ms" }}
[[flows]]
name = "group"
count = {flows}
transport = {transport}
{group}
{more}
"""


def row(links, duration, interval, buffer="100pkt"):
    nodes = [f"n{k}" for k in range(links + 1)]
    text = (
        f'name = "row"\nduration = "{duration}"\nrecord = {{ interval = "{interval}" }}\n[topology]\nnodes = {nodes}\n'
    )
    text += 'access = { rate = "100Mbit", delay = "1ms" }\n'
    for k in range(links):
        text += f'[[topology.links]]\nname = "l{k}"\nfrom = "n{k}"\nto = "n{k + 1}"\n'
        text += f'rate = "8Mbit"\ndelay = "1ms"\nbuffer = "{buffer}"\naqm = "test"\n'
    return f'{text}[[flows]]\nname = "ftp"\ncount = 20\ntransport = "ns2"\nfrom = "n0"\nto = "n{links}"\n'


def two(groups):
    text = 'name = "two"\nduration = "20s"\n[topology]\nnodes = ["n0", "n1", "n2"]\n'
    text += 'access = { rate = "1Gbit", delay = "1ms" }\n'
    for k, rate in enumerate(("20Mbit", "10Mbit")):
        text += f'[[topology.links]]\nname = "l{k}"\nfrom = "n{k}"\nto = "n{k + 1}"\n'
        text += f'rate = "{rate}"\ndelay = "10ms"\nbuffer = "50000pkt"\naqm = "test"\n'
    return text + groups


def cbr(rate):
    return f'traffic = {{ kind = "cbr", rate = "{rate}", packet = "1000B" }}'


def wide(preset, window="1000000pkt"):
    return f'{{ preset = "{preset}", receive_window = "{window}" }}'


def windows(number):
    return "[windows]\n" + "".join(f'w{k} = ["{k / number / 2}s", "{k / number / 2 + 0.4}s"]\n' for k in range(number))


SHAPES = {
    "many flows": dumbbell(flows=8000, rate="1Gbit"),
    "many flows of today": dumbbell(flows=6000, rate="1Gbit").replace('"ns2"', '"linux"'),
    "fine samples": dumbbell(flows=120, more='record = { interval = "2us" }'),
    "fine samples of few": dumbbell(flows=2, duration="3s", more='record = { interval = "8us" }'),
    "long": dumbbell(flows=4, rate="100kbit", duration="30000s"),
    "many links": row(60, "5s", "1ms"),
    "many windows": dumbbell(flows=20, more=windows(500)),
    "windows and flows": dumbbell(flows=2000, rate="1Gbit", more=windows(120)),
    "many events": dumbbell(
        flows=20,
        duration="20s",
        more="".join(
            f'[[events]]\nat = "{1 + k / 100:.2f}s"\nlink = "bottleneck"\ncapacity = "{8 + k % 3}Mbit"\n'
            for k in range(1000)
        ),
    ),
    "a long past": dumbbell(flows=20, duration="8000s"),
    "a past of many round trips": dumbbell(
        flows=200, duration="50s", rate="1Mbit", group='rtt = ["40ms", "2s"]'
    ).replace('"100pkt"', '"10000pkt"'),
    "a buffer of millions": dumbbell(flows=2000, rate="1Gbit").replace('"100pkt"', '"4000000pkt"'),
    "a buffer of millions today": dumbbell(flows=2000, rate="1Gbit", duration="2s")
    .replace('"100pkt"', '"4000000pkt"')
    .replace('"ns2"', '"linux"'),
    "a buffer of millions that calls leave empty": dumbbell(
        flows=1500, rate="1Gbit", group='traffic = { kind = "cbr", rate = "100kbit" }', duration="2s"
    )
    .replace('"100pkt"', '"4000000pkt"')
    .replace('"ns2"', '"udp"'),
    "a buffer of millions that voices leave empty": dumbbell(
        flows=1500, rate="1Gbit", group='traffic = "voip"', duration="3s"
    )
    .replace('"100pkt"', '"4000000pkt"')
    .replace('"ns2"', '"rtp"'),
    "associations": dumbbell(flows=2000, rate="1Gbit", duration="2s").replace('"ns2"', '"sctp"'),
    "voices": dumbbell(flows=2000, rate="1Gbit", duration="2s", group='traffic = "voip"').replace('"ns2"', '"rtp"'),
    "calls": dumbbell(
        flows=3000, rate="100Mbit", group='traffic = { kind = "cbr", rate = "100kbit" }', duration="2s"
    ).replace('"ns2"', '"udp"'),
}


FULL = {
    "full of Reno's packets": dumbbell(
        flows=4, rate="100Mbit", duration="30s", buffer="150000pkt", transport=wide("ns2")
    ),
    "full of today's packets": dumbbell(
        flows=20, rate="100Mbit", duration="40s", buffer="150000pkt", transport=wide("linux")
    ),
    "full of datagrams": dumbbell(flows=4, duration="20s", buffer="150000pkt", transport='"udp"', group=cbr("20Mbit")),
    "full of chunks": dumbbell(
        flows=4, rate="100Mbit", duration="30s", buffer="150000pkt", transport=wide("sctp", "1GB")
    ),
    "a short run": dumbbell(flows=10, rate="1Gbit", duration="700ms", buffer="1000000pkt", transport=wide("ns2")),
    "many queues full of datagrams": dumbbell(
        flows=200, duration="20s", buffer="100000pkt", transport='"udp"', group=cbr("1Mbit")
    ),
    "ten times what leaves": dumbbell(
        flows=4, rate="40Mbit", duration="20s", buffer="150000pkt", transport='"udp"', group=cbr("100Mbit")
    ),
    "ten times what leaves, in small packets": dumbbell(
        flows=4, duration="20s", buffer="40000pkt", transport='"udp"', group=cbr("20Mbit").replace("1000B", "250B")
    ),
    "a hundred times what leaves, in small packets": dumbbell(
        flows=64, duration="5s", buffer="40000pkt", transport='"udp"', group=cbr("20Mbit").replace("1000B", "250B")
    ),
    "many that send at one moment": dumbbell(
        flows=400, rate="20Mbit", duration="20s", buffer="20000pkt", transport='"udp"', group=cbr("500kbit")
    ),
    "films and pages over two links": two(
        """
[[flows]]
name = "films"
count = 12
from = "n0"
to = "n2"
transport = "rtp"
traffic = { kind = "video", rate = "2Mbit" }
[[flows]]
name = "pages"
count = 1500
from = "n0"
to = "n1"
transport = "linux"
traffic = "web"
"""
    ),
    "films beside an association": dumbbell(
        flows=2,
        rate="400Mbit",
        duration="6s",
        buffer="100000pkt",
        transport='"udp"',
        group='traffic = { kind = "video", rate = "120Mbit" }',
        more='[[flows]]\nname = "bulk"\ntransport = { preset = "sctp", receive_window = "10MB" }\n',
    ),
    "pages under BBR": dumbbell(
        flows=1500,
        rate="100Mbit",
        duration="20s",
        buffer="20000pkt",
        transport='"linux-bbr"',
        group='traffic = { kind = "web", reading = "5s" }',
    ),
    "BBR before many losses": dumbbell(
        flows=100, rate="900Mbit", duration="5s", buffer="15MB", transport='"bbr"', group='rtt = "60ms"'
    ),
    "media that come at the least rate": dumbbell(
        flows=200, duration="20s", buffer="30000pkt", transport='"rtp-tfrc"', group=cbr("7kbit")
    ),
    "messages that wait for others": dumbbell(
        flows=30,
        rate="200Mbit",
        duration="30s",
        buffer="3000pkt",
        transport='"sctp"',
        group=cbr("8Mbit"),
        more='[[flows]]\nname = "bulk"\ncount = 2\ntransport = "dctcp"\n',
    ),
    "many transfers": dumbbell(
        flows=500,
        rate="1Gbit",
        duration="20s",
        transport='"linux"',
        group='traffic = { kind = "transfers", size = "5kB", think = "100ms" }',
    ),
    "sources together": dumbbell(
        flows=1000, rate="100Mbit", transport='"udp"', group='traffic = { kind = "self-similar", rate = "20kbit" }'
    ),
    "a buffer of a million that stays empty": dumbbell(
        flows=3000, rate="1Gbit", duration="2s", buffer="1000000pkt", transport='"udp"', group=cbr("200kbit")
    ),
}
"""What fills a queue for real, or leaves it empty, and the AQM there."""
AQMS = {
    **dict.fromkeys(FULL, "droptail"),
    "many queues full of datagrams": "sfq",
    "ten times what leaves": "pie",
    "BBR before many losses": "red",
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of one program")
@pytest.mark.parametrize(
    ("shape", "engine"),
    [
        *((shape, "packet") for shape in SHAPES if "past" not in shape),
        *((shape, "packet") for shape in FULL),
        ("a long past", "fluid"),
        ("a past of many round trips", "fluid"),
        ("many flows", "fluid"),
        ("fine samples of few", "fluid"),
        ("many windows", "fluid"),
    ],
)
def test_what_is_said_lies_between_the_peak_and_three_times_it(shape, engine, tmp_path):
    small, large = tmp_path / "small.toml", tmp_path / "large.toml"
    # What every run needs, once: of this the peak of the second run says nothing.
    small.write_text(dumbbell())
    text = {**SHAPES, **FULL}[shape]
    if "record = { interval" in text and "[topology]" in text and shape.startswith("fine"):
        # Keys of the file itself stand before its tables.
        line = next(line for line in text.splitlines() if line.startswith("record = "))
        text = f"{line}\n" + text.replace(line, "")
    large.write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(small), str(large), AQMS.get(shape, PI), "--engine", engine, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    peak, of_small, said = (int(line) for line in done.stdout.split())
    assert peak > 4 << 20, "too small a case to tell"
    assert peak <= said - of_small + (1 << 20) <= 3 * peak, (peak >> 20, (said - of_small) >> 20)
