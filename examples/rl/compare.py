"""Compare a trained policy with PI, PIE, CoDel and STPI on networks it has not seen: `python examples/rl/compare.py`.

Each network is drawn at random and run once with each AQM, with the same seed. The verdicts come from Student's 95 %
interval of the paired differences. Only the first class has the ranges of the training.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from train import DELAY_COST_S, IDLE_COST, Parser, agent, draw, load

import aqumen
from aqumen._statistics import dropped, summarize

DURATION_S = 20.0
SEED = 2 * 10**9
"""First seed; training draws seeds below 10^9 + 32."""
RIVALS = ("pi:target_delay=15ms,frequency=5kHz", "pie", "codel", "stpi:target_delay=15ms")
"""PI and STPI aim at 15 ms, as PIE does by default; CoDel has its 5 ms. PI is designed for each network: it knows rate,
flows and round-trip time. Windows below one packet ask for the high frequency."""

HALVED = (aqumen.Event(at_s=DURATION_S / 2, capacity_bps=1e6),)
CLASSES: dict[str, Callable[[np.random.Generator], aqumen.Scenario]] = {
    "training ranges": lambda rng: draw(rng, DURATION_S),
    "fast links, 40 to 160 Mbit/s": lambda rng: draw(rng, DURATION_S, rate=(40e6, 160e6)),
    "slow links, 0.3 to 1 Mbit/s": lambda rng: draw(rng, DURATION_S, rate=(0.3e6, 1e6)),
    "long round trips, 200 to 400 ms": lambda rng: draw(rng, DURATION_S, rtt=(0.2, 0.4)),
    "many flows, 60 to 150": lambda rng: draw(rng, DURATION_S, flows=(60, 150)),
    "BBR senders": lambda rng: draw(rng, DURATION_S, presets=("linux-bbr",)),
    "rate falls to 1 Mbit/s": lambda rng: draw(rng, DURATION_S, events=HALVED),
}
METRICS = {"delay, ms": -1, "utilisation, %": 1, "loss, %": -1, "reward": 1}
"""Metrics of the table, and whether more is better."""


def measured(run: aqumen.Result) -> list[float]:
    """Return the metrics of a run after its first quarter."""
    link = run.link("bottleneck", "steady")
    delay_s, utilization = link["sojourn_mean_s"] or 0.0, link["utilization"]
    reward = -delay_s / DELAY_COST_S - IDLE_COST * (1 - utilization)
    return [1e3 * delay_s, 100 * utilization, 100 * dropped(link), reward]


def runs(aqms: list[object], make: Callable[[np.random.Generator], aqumen.Scenario], pairs: int) -> np.ndarray:
    """Return the metrics of each AQM on each network, of shape (networks, AQMs, metrics)."""
    rows = []
    for pair in range(pairs):
        seed = SEED + pair
        compared = aqumen.compare(make(np.random.default_rng(seed)), aqms, seeds=[seed])
        rows.append([measured(run) for run in compared.results])
    return np.array(rows)


def verdict(differences: np.ndarray, sign: int) -> str:
    """Return whether the agent is better, with the mean difference and half of its 95 % interval."""
    summary = summarize(list(differences))
    mean, half = summary["mean"], (summary["ci95"][1] - summary["ci95"][0]) / 2
    word = "not different" if abs(mean) <= half else "better" if sign * mean > 0 else "worse"
    return f"{word}, {mean:+.2f} ± {half:.2f}"


def main() -> None:
    """Print the table."""
    parser = Parser(description=__doc__.partition(":")[0])
    parser.add_argument("policy", nargs="?", type=Path, default=Path(__file__).parent / "policy.npz")
    parser.add_argument("--pairs", type=int, default=30, help="networks of each class, 2 to 10000 (default 30)")
    parser.add_argument("--only", help="only the class that begins so")
    given = parser.parse_args()
    if not 2 <= given.pairs <= 10000:
        parser.error(f"--pairs {given.pairs}: must be from 2 to 10000")
    chosen = {name: make for name, make in CLASSES.items() if name.startswith(given.only or "")}
    if not chosen:
        parser.error(f'--only "{given.only}": no such class; choose from: {"; ".join(CLASSES)}')
    try:
        weights, _ = load(given.policy)
    except ValueError as error:
        parser.error(str(error))
    print("| class | AQM |" + "".join(f" {name} |" for name in METRICS))
    print("|" + "---|" * (2 + len(METRICS)))
    for name, make in chosen.items():
        print(f"{name} ...", file=sys.stderr)
        table = runs([agent(weights), *RIVALS], make, given.pairs)
        print(f"| {name} | agent |" + "".join(f" {mean:.2f} |" for mean in table[:, 0].mean(axis=0)))
        for index, rival in enumerate(RIVALS, 1):
            cells = [
                f" {table[:, index, k].mean():.2f} ({verdict(table[:, 0, k] - table[:, index, k], sign)}) |"
                for k, sign in enumerate(METRICS.values())
            ]
            print(f"| | {rival.partition(':')[0]} |" + "".join(cells))


if __name__ == "__main__":
    main()
