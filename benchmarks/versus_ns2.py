"""CPU time per bottleneck packet of the packet engine and of ns-2, on one scenario, in alternating runs.

Both times leave the set-up out: ours by a run of one millisecond, ns-2's by a run of no time. A machine that is busy
with something else slows both, so the ratio is what to quote; its spread over the rounds is printed beside it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from aqumen import _core
from aqumen.ns2.bench import ns2_cpu_per_packet

ROOT = Path(__file__).parents[1]
CASES = {
    "N = 120, 8 Mbit/s": (ROOT / "experiments/arm-pfc/exp1.toml", "pi-x1000"),
    "N = 1000, 622 Mbit/s": (ROOT / "benchmarks/exp1-n1000.toml", "pi"),
}
REPEATS = 5
"""Of our runs in a round: they are short."""


def ours(scenario: _core.Scenario, aqm: str) -> float:
    """Nanoseconds of CPU per bottleneck packet: the least of some runs, less the least set-up."""
    short = scenario.set([("flows.0.start", "0s"), ("record.interval", "1ms"), ("windows", "{}"), ("duration", "1ms")])
    costs, packets = [], 0
    for _ in range(REPEATS):
        cost = json.loads(_core.run(scenario, aqm, 1).json)["cost"]
        costs.append(cost["cpu_s"])
        packets = cost["bottleneck_packets"]
    setup = min(json.loads(_core.run(short, aqm, 1).json)["cost"]["cpu_s"] for _ in range(REPEATS))
    return float((min(costs) - setup) / packets * 1e9)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name, (file, aqm) in CASES.items():
        scenario = _core.Scenario.load(str(file))
        plan = json.loads(scenario.plan_json(1, aqm))
        pairs = []
        for number in range(arguments.rounds):
            print(f"{name}: round {number + 1} of {arguments.rounds}", file=sys.stderr)
            pairs.append((ours(scenario, aqm), ns2_cpu_per_packet(plan, repeats=1).ns_per_packet))
        ratios = [theirs / mine for mine, theirs in pairs]
        rows.append(
            {
                "case": name,
                "aqm": aqm,
                "rounds": arguments.rounds,
                "aqumen_ns": statistics.mean(mine for mine, _ in pairs),
                "ns2_ns": statistics.mean(theirs for _, theirs in pairs),
                "ratio": statistics.mean(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
            }
        )
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'case':<22} {'aqumen ns':>10} {'ns-2 ns':>10} {'ratio':>7}   range of {arguments.rounds} rounds")
    for row in rows:
        spread = f"{row['ratio_min']:.1f} to {row['ratio_max']:.1f}"
        print(f"{row['case']:<22} {row['aqumen_ns']:>10.0f} {row['ns2_ns']:>10.0f} {row['ratio']:>7.1f}   {spread}")


if __name__ == "__main__":
    main()
