"""CPU time per bottleneck packet of the packet engine, ns-2, ns-3 and csg-htsim on one dumbbell, in alternating runs.

The cost of a packet is marginal: what a run of the full length takes more than a run of a quarter of it, over the
packets between. So it holds neither a program's start nor its set-up. A machine that is busy with something else slows
all programs, therefore the ratio is the figure to quote: the median over the rounds, with their range.

ns-2 and htsim run against our senders of ns-2; ns-3 has other senders, and runs against ours of that kind.
`--write` puts the tables into docs/validation/performance.md. csg-htsim is its folder `sim`, with `libhtsim.a` built.
"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aqumen import _core, _programs
from aqumen.engines.external.ns2.bench import ns2_cost
from aqumen.engines.external.ns2.errors import Ns2Missing
from aqumen.engines.external.ns3.build import find_program
from aqumen.engines.external.ns3.describe import describe
from aqumen.engines.external.ns3.errors import Ns3Missing

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/validation/performance.md"
MARKS = ("<!-- figures: benchmarks/versus.py --write -->", "<!-- end of figures -->")

NS2 = '{ preset = "ns2", packet = "1000B", ack = "40B", receive_window = "1000pkt" }'
NS3 = (
    '{ preset = "modern", packet = "1000B", receive_window = "1000pkt", min_rto = "1s", delayed_ack = "none",'
    ' halve_flight = false, rto_floor = "timeout", loss_detection = "rfc6675", reduction = "at-once",'
    " ect_retransmissions = true }"
)
SENDERS = {"ns-2": NS2, "htsim": NS2, "ns-3": NS3}
"""Our senders that are the most like those of each program."""
AQMS = {"ns-2": ("droptail", "pi"), "htsim": ("droptail",), "ns-3": ("droptail",)}
SIZES = {120: ("8Mbit", 300, 100), 1000: ("622Mbit", 2000, 3)}
"""Number of flows: the link's rate, its buffer in packets, simulated seconds."""


@dataclass(frozen=True)
class Row:
    """One program against ours, on one dumbbell. Costs are CPU nanoseconds per packet at the bottleneck."""

    flows: int
    aqm: str
    program: str
    aqumen_ns: float
    other_ns: float
    ratio: float
    ratio_min: float
    ratio_max: float


def scenario(flows: int, senders: str, seconds: float) -> _core.Scenario:
    """Return the dumbbell of `flows` endless transfers that lasts for `seconds`."""
    rate, buffer, _ = SIZES[flows]
    text = f"""
        name = "race"
        duration = "{seconds:.3f}s"
        windows = {{}}
        topology.preset = "dumbbell"
        topology.bottleneck = {{ rate = "{rate}", delay = "20ms", buffer = "{buffer}pkt" }}
        topology.access = {{ rate = "10Mbit", delay = "20ms" }}
        [[flows]]
        name = "ftp"
        count = {flows}
        start = ["0s", "1s"]
        transport = {senders}
        """
    return _core.Scenario.parse(text, "race")


def ours(flows: int, senders: str, aqm: str, seconds: float) -> tuple[float, int]:
    """Return CPU seconds and bottleneck packets of our run."""
    cost = json.loads(_core.run(scenario(flows, senders, seconds), aqm, 1).json)["cost"]
    return cost["cpu_s"], cost["bottleneck_packets"]


def ns2(flows: int, aqm: str, seconds: float) -> float:
    """Return CPU seconds of a run of ns-2 without traces."""
    return ns2_cost(scenario(flows, NS2, seconds).plan(1, aqm)).run_s


def ns3(flows: int, aqm: str, seconds: float) -> float:
    """Return CPU seconds of a run of ns-3 that records nothing."""
    text = describe(scenario(flows, NS3, seconds).plan(1, aqm)).text
    text = "".join(line + "\n" for line in text.splitlines() if not line.startswith("record "))
    return child([str(find_program())], text)


def htsim(program: Path, flows: int, seconds: float) -> float:
    """Return CPU seconds of a run of csg-htsim."""
    rate, buffer, _ = SIZES[flows]
    return child([str(program), str(flows), rate.removesuffix("Mbit"), str(buffer), str(seconds)], "")


def child(command: list[str], text: str) -> float:
    """Return the CPU seconds of a program that reads `text`."""
    with tempfile.TemporaryFile("w+") as source:
        source.write(text)
        source.seek(0)
        process = subprocess.Popen(command, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        usage = _programs.wait(process)
    if process.returncode:
        raise SystemExit(f"{command[0]} stopped with status {process.returncode}")
    return float(usage.ru_utime + usage.ru_stime)


def compile_htsim(library: Path) -> Path:
    """Compile our dumbbell for csg-htsim, whose built library is in the folder `library`."""
    if not (library / "libhtsim.a").is_file():
        raise SystemExit(f"{library}: no libhtsim.a; build it there with `make libhtsim.a`")
    program = ROOT / "build" / "htsim"
    program.parent.mkdir(exist_ok=True)
    source = [str(ROOT / "benchmarks/htsim.cc"), str(library / "libhtsim.a")]
    subprocess.run(["g++", "-O3", "-std=c++17", f"-I{library}", *source, "-o", str(program)], check=True)
    return program


def programs(library: Path | None) -> Iterator[tuple[str, Callable[[int, str, float], float]]]:
    """Yield the programs that this machine has; say in a line which it lacks."""
    try:
        if shutil.which(os.environ.get("AQUMEN_NS2", "ns")) is None:
            raise Ns2Missing
        yield "ns-2", ns2
    except Ns2Missing as error:
        print(f"Skipped: {error}", file=sys.stderr)
    try:
        find_program()
        yield "ns-3", ns3
    except Ns3Missing as error:
        print(f"Skipped: {error}", file=sys.stderr)
    if library is None:
        print("Skipped: csg-htsim; give its folder `sim` with --htsim.", file=sys.stderr)
    else:
        program = compile_htsim(library)
        yield "htsim", lambda flows, _, seconds: htsim(program, flows, seconds)


def race(name: str, other: Callable[[int, str, float], float], flows: int, aqm: str, rounds: int) -> Row:
    """Time one program and ours in turn."""
    seconds = SIZES[flows][2]
    pairs = []
    for number in range(rounds):
        print(f"{name}, {flows} flows, {aqm}: round {number + 1} of {rounds}", file=sys.stderr)
        (few_s, few), (many_s, many) = (ours(flows, SENDERS[name], aqm, part * seconds) for part in (0.25, 1.0))
        theirs = other(flows, aqm, seconds) - other(flows, aqm, 0.25 * seconds)
        pairs.append(((many_s - few_s) / (many - few) * 1e9, theirs / (many - few) * 1e9))
    ratios = [theirs / mine for mine, theirs in pairs]
    mine, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    return Row(flows, aqm, name, mine, theirs, statistics.median(ratios), min(ratios), max(ratios))


def table(rows: list[Row], rounds: int) -> str:
    """Return the rows as Markdown."""
    lines = [
        f"{processor()}; {'one round' if rounds == 1 else f'medians of {rounds} rounds, with the range of the ratio'}.",
        "",
        "| flows | AQM | program | Aqumen, ns | the program, ns | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        spread = f" ({row.ratio_min:.3g} to {row.ratio_max:.3g})" if rounds > 1 else ""
        ratio = f"{row.ratio:.3g}{spread}"
        lines.append(
            f"| {row.flows} | {row.aqm} | {row.program} | {row.aqumen_ns:.0f} | {row.other_ns:.0f} | {ratio} |"
        )
    return "\n".join(lines)


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--htsim", type=Path, help="the folder sim of csg-htsim")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="put the table into docs/validation/performance.md")
    arguments = parser.parse_args()
    found = dict(programs(arguments.htsim))
    rows = [
        race(name, other, flows, aqm, arguments.rounds)
        for flows in SIZES
        for name, other in found.items()
        for aqm in AQMS[name]
    ]
    text = table(rows, arguments.rounds)
    if arguments.write:
        before, mark, rest = PAGE.read_text().partition(MARKS[0])
        _, end, after = rest.partition(MARKS[1])
        PAGE.write_text(f"{before}{mark}\n{text}\n{end}{after}")
    print(json.dumps([dataclasses.asdict(row) for row in rows], indent=2) if arguments.json else text)


if __name__ == "__main__":
    main()
