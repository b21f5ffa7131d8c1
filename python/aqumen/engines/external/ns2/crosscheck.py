"""Cells of the comparison with ns-2: AQMs and networks of both simulators, bounds, and recorded runs."""

import csv
from pathlib import Path

from aqumen.engines.external.crosscheck import METRICS, Cell

__all__ = ["CELLS", "FOLDER", "METRICS", "OURS", "WINDOWS", "reference"]

WINDOWS = ("all", "steady")
"""Windows to compare."""
FOLDER = "experiments"
"""Folder of the scenario files."""
OURS = 1
"""Seeds of the packet engine for each seed of ns-2."""


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
    # Other packet sizes, which reveal a wrong mean packet size; send overhead is half a packet time.
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
        # An overhead would halve the rate in recovery.
        ("flows.cubic.transport.send_overhead", "0s"),
        ("duration", "100s"),
    )
    short = {"DropTail": "droptail:ns2_limit=true", "RED30": "red30", "PI50": "pi50"}
    web = (("short", "fct_mean_s"), ("pages", "fct_mean_s"), ("pages", "page_load_mean_s"))
    # Equal loss ratios: bursts, independent losses, and bit errors (1 - 0.999996^8000 for 1000 bytes).
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
        # Short transfers leave the link idle at times, which increases the variance between seeds.
        *(Cell("web", "../validation/ns2/web.toml", (), label, spec, web, True, 2) for label, spec in short.items()),
        *(
            Cell(experiment, "../validation/ns2/wire.toml", settings, "DropTail", dropping["DropTail"], wire)
            for experiment, settings in wires.items()
        ),
    ]


def _sized(size: int, flows: int) -> tuple[tuple[str, str], ...]:
    """Return the settings of a shorter run with packets of `size` bytes, for which the AQMs are designed.

    Windows have four or five packets; with larger ones AVQ's queue varies too much between seeds.
    """
    return (
        ("flows.ftp.count", str(flows)),
        ("flows.ftp.transport.packet", f"{size}B"),
        ("flows.ftp.transport.send_overhead", f"{size // 2}us"),
        ("nominal.packet", f"{size}B"),
        ("duration", "60s"),
    )


CELLS: list[Cell] = _cells()
"""Cells of the comparison.

- ARM-PFC experiments 1, 3 (N = 50, 100) and 4 (N = 300) with DropTail, RED and PI (as printed, and x 1000); on 1 and 3
  with N = 50 also ARED, REM (targets of 20 and 100 packets) and AVQ; 3 with packets of 500 and 1500 bytes.
- SCTP alone; SCTP, TCP and UDP, also with a buffer in bytes; CUBIC; all with DropTail and a dropping RED. One CUBIC
  flow with DropTail.
- Web-like load with DropTail, RED and PI; wires with bursts of losses, independent losses and bit errors.
"""


def reference(path: Path) -> dict[tuple[str, str, str], list[dict[str, float]]]:
    """Read the recorded ns-2 runs of validation/ns2/reference.csv: (experiment, AQM label, window) -> `measures`."""
    runs: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = (row["experiment"], row["aqm"], row["window"])
            runs.setdefault(key, []).append({metric: float(row[metric]) for metric in METRICS})
    return runs
