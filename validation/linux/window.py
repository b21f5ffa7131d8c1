"""The window over p: goodput of 40 flows of 100 ms at a constant probability, one change at a time.

    python validation/linux/window.py            # three seeds
    python validation/linux/window.py --seeds 1

Each cell: Mbit/s in the first 20 s, and from 10 to 60 s; then, of the first 20 s, the mean round trip in milliseconds
and the timeouts. `KERNEL` is Linux 6.18 with Reno between two TUN devices, where nothing is paced or merged, in its
first 20 s. The table stands in docs/transports/tcp.md.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import aqumen

SCENARIO = Path(__file__).parent / "window.toml"

SIGNALS = [(p, ecn) for ecn in (True, False) for p in (0.005, 0.02, 0.08, 0.2)]

KERNEL = {
    (0.005, True): "97.1",
    (0.02, True): "40.2",
    (0.08, True): "18.0",
    (0.2, True): "12.1; 112 ms",
    (0.02, False): "39.8",
    (0.08, False): "16.8; 8 timeouts",
}

MODERN = {"preset": "modern"}
WHOLE = {"whole_windows": "true", "halve_flight": "false"}
LINUX = {"preset": "linux-reno"}
LATE = {"adaptive_acks": "false", "write": "none", "tso": "false"}

ROWS: dict[str, dict[str, str]] = {
    "`modern` with RFC 6675, window reduced at once": MODERN | {"loss_detection": "rfc6675", "reduction": "at-once"},
    "`modern`: RACK-TLP, PRR at marks too": MODERN,
    "and whole windows": MODERN | WHOLE,
    "and `growth_limit` of Linux": MODERN | WHOLE | {"growth_limit": "1073741824pkt"},
    "and quick acknowledgements": MODERN | WHOLE | {"growth_limit": "1073741824pkt", "quick_acks": "16pkt"},
    "and F-RTO: `linux-reno` without `ack_marks`": LINUX | LATE | {"ack_marks": "false"},
    "and `ack_marks`": LINUX | LATE,
    "`linux-reno` without `tso`: `adaptive_acks`, `write`": LINUX | {"tso": "false"},
    "`linux-reno`": LINUX,
    "`linux-reno`, paced": LINUX | {"pacing": "true"},
    "`cubic`": {"preset": "cubic"},
    "`linux`": {"preset": "linux"},
    "`linux-bbr`": {"preset": "linux-bbr"},
}


def goodput(changes: dict[str, str], p: float, ecn: bool, seeds: int) -> str:
    """All four figures."""
    settings = [(f"flows.0.transport.{key}", value) for key, value in changes.items()]
    scenario = aqumen.Scenario.load(SCENARIO).set_all(settings)
    runs = [aqumen.run(scenario, aqm=f"fixed:p={p},ecn={str(ecn).lower()}", seed=seed) for seed in range(1, seeds + 1)]
    means = [
        statistics.mean(run.flow_group("ftp", window)["goodput_bps"] or 0.0 for run in runs) / 1e6
        for window in ("start", "steady")
    ]
    starts = [run.flow_group("ftp", "start") for run in runs]
    rtt_s, timeouts = (statistics.mean(start[key] or 0.0 for start in starts) for key in ("rtt_mean_s", "timeouts"))
    return ", ".join(f"{mean:.1f}" for mean in means) + f"; {rtt_s * 1e3:.0f}, {timeouts:.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    print("| | " + " | ".join(f"{'marks' if ecn else 'drops'} {p}" for p, ecn in SIGNALS) + " |")
    print("|---" * (len(SIGNALS) + 1) + "|")
    print("| kernel, first 20 s | " + " | ".join(KERNEL.get(signal, "") for signal in SIGNALS) + " |")
    for name, changes in ROWS.items():
        print(f"| {name} | " + " | ".join(goodput(changes, *signal, seeds) for signal in SIGNALS) + " |", flush=True)


if __name__ == "__main__":
    main()
