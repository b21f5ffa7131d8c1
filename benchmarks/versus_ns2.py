"""CPU time per bottleneck packet of the packet engine and of ns-2, on one scenario, in alternating runs.

Both are taken from time 0 to the end, in one process: ns-2 reads `/proc/self/schedstat` there, ours says what the run
cost and what its set-up, a run of one millisecond, did. A machine that is busy with something else slows both, so the
ratio is what to quote: the median over the rounds, with their range beside it.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from aqumen import _core
from aqumen.engines.external.ns2.bench import ns2_cost, ns2_packets

ROOT = Path(__file__).parents[1]
CASES = {
    "exp1: 120 flows, 8 Mbit/s": (ROOT / "experiments/arm-pfc/exp1.toml", "pi-x1000", 1000),
    # As many packets in less time: ns-2 takes a minute for ten seconds of it.
    "bench-n1000: 1000 flows, 622 Mbit/s": (ROOT / "benchmarks/exp1-n1000.toml", "pi", 10),
}
"""Scenario, AQM and simulated seconds of each."""


def ours(scenario: _core.Scenario, aqm: str) -> float:
    """Nanoseconds of CPU per bottleneck packet, without the set-up."""
    short = scenario.set([("flows.0.start", "0s"), ("record.interval", "1ms"), ("windows", "{}"), ("duration", "1ms")])
    setup = json.loads(_core.run(short, aqm, 1).json)["cost"]["cpu_s"]
    cost = json.loads(_core.run(scenario, aqm, 1).json)["cost"]
    return float((cost["cpu_s"] - setup) / cost["bottleneck_packets"] * 1e9)


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name, (file, aqm, seconds) in CASES.items():
        scenario = _core.Scenario.load(str(file)).set([("duration", f"{seconds}s")])
        plan = scenario.plan(1, aqm)
        packets = ns2_packets(plan)
        pairs, setups = [], []
        for number in range(arguments.rounds):
            print(f"{name}: round {number + 1} of {arguments.rounds}", file=sys.stderr)
            mine, theirs = ours(scenario, aqm), ns2_cost(plan)
            pairs.append((mine, theirs.run_s / packets * 1e9))
            setups.append(theirs.setup_s / (theirs.setup_s + theirs.run_s))
        ratios = [theirs / mine for mine, theirs in pairs]
        rows.append(
            {
                "case": name,
                "aqm": aqm,
                "simulated_s": seconds,
                "rounds": arguments.rounds,
                "aqumen_ns": statistics.median(mine for mine, _ in pairs),
                "ns2_ns": statistics.median(theirs for _, theirs in pairs),
                "ns2_setup_share": statistics.median(setups),
                "ratio": statistics.median(ratios),
                "ratio_min": min(ratios),
                "ratio_max": max(ratios),
            }
        )
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'case':<36} {'aqumen ns':>10} {'ns-2 ns':>9} {'ratio':>7}   range of {arguments.rounds} rounds")
    for row in rows:
        spread = f"{row['ratio_min']:.1f} to {row['ratio_max']:.1f}"
        print(f"{row['case']:<36} {row['aqumen_ns']:>10.0f} {row['ns2_ns']:>9.0f} {row['ratio']:>7.1f}   {spread}")


if __name__ == "__main__":
    main()
