"""What is compared with ns-2: AQMs and networks that both have, the bounds of a difference, and recorded runs."""

import csv
from pathlib import Path

from aqumen.engines.external.crosscheck import METRICS, Cell

__all__ = ["CELLS", "FOLDER", "METRICS", "OURS", "WINDOWS", "reference"]

WINDOWS = ("all", "steady")
"""Where it is compared."""
FOLDER = "experiments"
"""Where the scenario files are."""
OURS = 1
"""How many seeds ours has for one of theirs."""


def _cells() -> list[Cell]:
    aqms = {
        "DropTail": "droptail:ns2_limit=true",
        "RED50mk": "red50",
        "PIpaper": "pi-printed",
        "PIx1000": "pi-x1000",
    }
    experiments = {
        "arm_exp1": ("arm-pfc/exp1.toml", ()),
        "arm_exp3_N50": ("arm-pfc/exp3.toml@n50", ()),
        "arm_exp3_N100": ("arm-pfc/exp3.toml@n100", ()),
        "arm_exp4_N300": ("arm-pfc/exp4.toml", ()),
    }
    more = {
        "ARED": "ared:ns2_stale_gentle=true",
        "REM20": "rem-ns2",
        "REM100": "rem-ns2:target=100pkt",
        "AVQ": "avq-ns2",
    }
    cells = [
        Cell(experiment, scenario, settings, label, spec)
        for experiment, (scenario, settings) in experiments.items()
        for label, spec in (aqms | (more if experiment in ("arm_exp1", "arm_exp3_N50") else {})).items()
    ]
    # Packets of other sizes: an AQM that is told a wrong mean size shows here. An overhead of half a packet time.
    of_sizes = {label: spec for label, spec in (aqms | more).items() if label not in ("PIpaper", "REM100")}
    cells += [
        Cell(f"{size}B", "arm-pfc/exp3.toml@n50", _sized(size, flows), label, spec)
        for size, flows in ((500, 120), (1500, 50))
        for label, spec in of_sizes.items()
    ]
    dropping = {"DropTail": "droptail:ns2_limit=true", "RED30": "red30"}
    others = {"sctp": "../validation/ns2/sctp.toml", "mixed": "../validation/ns2/mixed.toml"}
    # Packets of 1000 and 1500 bytes in a buffer of bytes.
    few_sctp = (
        ("topology.bottleneck.buffer", "180kB"),
        ("flows.sctp.count", "1"),
        ("flows.tcp.count", "24"),
    )
    in_bytes = {"DropTail": "droptail", "RED30": "red30:bytes=true,queue_in_bytes=true", "AVQ": "avq-ns2:bytes=true"}
    cubic = {"DropTail": "droptail:ns2_limit=true", "REDcubic": "red-cubic"}
    one = (
        ("flows.cubic.count", "1"),
        ("topology.bottleneck.rate", "5Mbit"),
        ("topology.bottleneck.buffer", "60pkt"),
        ("flows.cubic.start", "1s"),
        ("flows.cubic.transport.initial_threshold", "50pkt"),
        # Without it the rate is halved in recovery.
        ("flows.cubic.transport.send_overhead", "0s"),
        ("duration", "100s"),
    )
    short = {"DropTail": "droptail:ns2_limit=true", "RED30": "red30", "PI50": "pi50"}
    web = (("short", "fct_mean_s"), ("pages", "fct_mean_s"), ("pages", "page_load_mean_s"))
    # As many losses: in runs, one by one, and by wrong bits (1 - 0.999996^8000 of the packets of 1000 bytes).
    wires: dict[str, tuple[tuple[str, str], ...]] = {
        "wire": (),
        "wire_random": (("bottleneck.loss", "0.032"),),
        "wire_bits": (("bottleneck.loss", "{ bit_errors = 4e-6 }"),),
    }
    wire = (("cbr", "loss_ratio"), ("cbr", "loss_burst_mean_pkts"))
    return [
        *cells,
        *(
            Cell(experiment, scenario, (), label, spec)
            for experiment, scenario in others.items()
            for label, spec in dropping.items()
        ),
        *(Cell("bytes", others["mixed"], few_sctp, label, spec) for label, spec in in_bytes.items()),
        *(Cell("cubic", "../validation/ns2/cubic.toml", (), label, spec) for label, spec in cubic.items()),
        Cell("cubic_one", "../validation/ns2/cubic.toml", one, "DropTail", cubic["DropTail"]),
        # Short transfers leave the link idle now and then, for longer with some seeds than with others.
        *(Cell("web", "../validation/ns2/web.toml", (), label, spec, web, True, 2) for label, spec in short.items()),
        *(
            Cell(experiment, "../validation/ns2/wire.toml", settings, "DropTail", dropping["DropTail"], wire)
            for experiment, settings in wires.items()
        ),
    ]


def _sized(size: int, flows: int) -> tuple[tuple[str, str], ...]:
    """A shorter run of an experiment with packets of `size` bytes, for which its AQMs are designed too.

    The windows have four or five packets: with larger ones AVQ's queue scatters too much from seed to seed.
    """
    return (
        ("flows.ftp.count", str(flows)),
        ("flows.ftp.transport.packet", f"{size}B"),
        ("flows.ftp.transport.send_overhead", f"{size // 2}us"),
        ("nominal.packet", f"{size}B"),
        ("duration", "60s"),
    )


CELLS: list[Cell] = _cells()
"""The experiments whose AQM ns-2 has: ARM-PFC 1, 3 (N = 50, 100), 4 (N = 300); DropTail, RED, PI (printed, x 1000); on
1 and 3 with N = 50 also ARED, REM (targets 20 and 100 packets) and AVQ; 3 with packets of 500 and 1500 bytes. Then SCTP
alone, SCTP, TCP and UDP together, the same with a buffer in bytes, and CUBIC, under DropTail and a RED that drops; one
CUBIC flow alone under DropTail. Web-like load under DropTail, RED and PI; wires that lose packets in bursts, at random
and by bit errors."""


def reference(path: Path) -> dict[tuple[str, str, str], list[dict[str, float]]]:
    """The recorded ns-2 runs of validation/ns2/reference.csv: `measures` by (experiment, aqm label, window)."""
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = (row["experiment"], row["aqm"], row["window"])
            runs.setdefault(key, []).append({metric: float(row[metric]) for metric in METRICS})
    return runs
