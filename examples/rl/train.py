"""Train a small policy for a bottleneck by CMA-ES on a distribution of networks: `python examples/rl/train.py --help`.

Needs `pip install "aqumen[gym]" cma`. The policy is a neural network with one hidden layer. At each period it moves the
marking probability up or down, so it can integrate, as PI and PIE do. `compare.py` compares it with them, and
docs/agent.md has the result.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import cma
import gymnasium
import numpy as np

import aqumen
import aqumen.gym

RATE_BPS, RTT_S, FLOWS, BUFFER_S = (2e6, 20e6), (0.01, 0.1), (1, 30), (0.1, 0.4)
"""Ranges of the training networks, drawn uniformly in the logarithm; the buffer in seconds of the link's rate."""
PRESETS = ("modern", "cubic", "linux")
DURATION_S = 8.0

PERIOD_S, HISTORY, HIDDEN, DELAY_SCALE_S = 0.01, 2, 8, 0.05
INPUTS = HISTORY * len(aqumen.gym.FEATURES)
WEIGHTS = INPUTS * HIDDEN + 2 * HIDDEN + 1
STEP, LOWEST = 0.5, -6.0
"""Largest change of y in a period and smallest y, where the probability is sigmoid(y)^2."""

DELAY_COST_S, IDLE_COST = 0.02, 10.0
REWARD = aqumen.gym.delay_at_utilization(IDLE_COST, DELAY_COST_S)
"""Per period: minus sojourn time / 20 ms, minus 10 times the idle fraction. 1 % of idle link costs as much as 2 ms."""

CANDIDATES, NETWORKS, SIGMA = 16, 8, 0.1
"""Candidates of a generation, networks on which each plays, first standard deviation of the search."""
FIXED = list(range(10**9, 10**9 + 32))
"""Seeds of the fixed networks on which the mean of the search is judged every `EVERY` generations."""
EVERY = 10


@functools.lru_cache(maxsize=256)  # Candidates of a generation meet the same networks.
def network(
    rate_bps: float,
    rtt_s: float,
    flows: int,
    buffer_s: float,
    transport: aqumen.Transport,
    duration_s: float,
    events: tuple[aqumen.Event, ...],
) -> aqumen.Scenario:
    """Return a dumbbell whose flows start within the first second."""
    return aqumen.Dumbbell(
        name="network",
        rate_bps=round(rate_bps),
        delay_s=rtt_s / 4,
        access_delay_s=rtt_s / 8,
        buffer_pkts=max(20, round(buffer_s * rate_bps / 12000)),
        duration_s=duration_s,
        flows=[aqumen.Flows(name="f", count=flows, start_s=(0, 1), transport=transport)],
        events=events,
        windows_s={"steady": (duration_s / 4, duration_s)},
    ).scenario()


def draw(
    rng: np.random.Generator,
    duration_s: float = DURATION_S,
    *,
    rate: tuple[float, float] = RATE_BPS,
    rtt: tuple[float, float] = RTT_S,
    flows: tuple[float, float] = FLOWS,
    presets: tuple[str, ...] = PRESETS,
    events: tuple[aqumen.Event, ...] = (),
) -> aqumen.Scenario:
    """Draw a network from ranges: those of the training, where none are given. ECN is on for one in two."""
    ranges = (rate, rtt, flows, BUFFER_S)
    rate_bps, rtt_s, count, buffer_s = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in ranges)
    transport = aqumen.Transport(preset=presets[rng.integers(len(presets))], ecn=bool(rng.integers(2)))
    return network(rate_bps, rtt_s, round(count), buffer_s, transport, duration_s, events)


def act(weights: np.ndarray, observations: np.ndarray) -> np.ndarray:
    """Return the probabilities of policies (rows of `weights`) for observations (policies, networks, inputs)."""
    into, bias, out, last = np.split(weights, np.cumsum([INPUTS * HIDDEN, HIDDEN, HIDDEN]), axis=1)
    seen = observations.astype(np.float64).reshape(*observations.shape[:2], HISTORY, -1)
    root = np.sqrt(np.clip(seen[..., -1], 1e-9, 1 - 1e-6))
    y = np.log(root / (1 - root))
    features = np.log1p(seen)
    features[..., -1] = y / 4
    inputs = features.reshape(*observations.shape[:2], INPUTS)
    hidden = np.tanh(inputs @ into.reshape(-1, INPUTS, HIDDEN) + bias[:, None, :])
    change = STEP * np.tanh(hidden @ out[:, :, None] + last[:, None, :])[..., 0]
    return 1 / (1 + np.exp(-np.maximum(y[..., -1] + change, LOWEST))) ** 2


def rewards(weights: np.ndarray, seeds: list[int]) -> np.ndarray:
    """Return the mean reward per period of each policy on the networks of the seeds."""
    envs = environments(len(weights) * len(seeds))
    observations, _ = envs.reset(seed=seeds * len(weights))
    total = np.zeros(len(observations))
    # One step less than an episode has, since the last one would begin another.
    steps = round(DURATION_S / PERIOD_S) - 1
    for _ in range(steps):
        actions = act(weights, observations.reshape(len(weights), len(seeds), INPUTS))
        observations, reward, *_ = envs.step(actions.reshape(-1, 1))
        total += reward
    return total.reshape(len(weights), len(seeds)).mean(axis=1) / steps


@functools.cache
def environments(count: int) -> gymnasium.vector.VectorEnv:
    """Return that number of environments of the training distribution."""
    return gymnasium.make_vec(
        "aqumen/Bottleneck-v0",
        num_envs=count,
        scenario=draw,
        period_s=PERIOD_S,
        history=HISTORY,
        delay_scale_s=DELAY_SCALE_S,
        reward=REWARD,
    )


def train(
    minutes: float, seed: int, *, generations: int | None = None, fixed: list[int] = FIXED
) -> tuple[np.ndarray, list[tuple[int, float]]]:
    """Return the best weights and the rewards on the fixed networks, by generation. Ctrl-C ends the training.

    Args:
        minutes: Wall-clock time.
        seed: Seed of the search and of the training networks.
        generations: Most generations.
        fixed: Seeds of the fixed networks.
    """
    rng = np.random.default_rng(seed)
    # Without weights the probability stays at its lowest value: a drop-tail queue.
    start = np.zeros(WEIGHTS)
    options = {"popsize": CANDIDATES, "randn": lambda *shape: rng.standard_normal(shape), "seed": np.nan, "verbose": -9}
    search = cma.CMAEvolutionStrategy(start, SIGMA, options)
    best, progress, began = start, [], time.monotonic()
    try:
        progress.append((0, float(rewards(start[None], fixed)[0])))
        print(f"untrained: reward {progress[0][1]:.3f}", file=sys.stderr)
        over = False
        while not over:
            candidates = np.array(search.ask())
            seeds = [int(each) for each in rng.integers(10**9, size=NETWORKS)]
            search.tell(list(candidates), list(-rewards(candidates, seeds)))
            count, passed = search.countiter, time.monotonic() - began
            over = passed >= 60 * minutes or count == generations
            if over or count % EVERY == 0:
                reward = float(rewards(search.mean[None], fixed)[0])
                if reward > max(each for _, each in progress):
                    best = search.mean.copy()
                progress.append((count, reward))
                print(f"{passed:5.0f} s, generation {count}: reward {reward:.3f}", file=sys.stderr)
    except KeyboardInterrupt:
        print("stopped; the best policy so far is kept", file=sys.stderr)
    return best, progress


def save(path: Path, weights: np.ndarray, record: dict[str, Any]) -> None:
    """Write weights and how they came about."""
    with path.open("wb") as file:
        np.savez(file, weights=weights.astype(np.float32), record=json.dumps(record))


def load(path: Path) -> tuple[np.ndarray, dict[str, Any]]:
    """Return weights and record of a policy file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            weights, record = file["weights"].astype(np.float64), json.loads(str(file["record"]))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        raise ValueError(f"{path}: no policy file of train.py can be read there") from None
    if weights.shape != (WEIGHTS,):
        raise ValueError(f"{path}: weights of shape {weights.shape}, must be ({WEIGHTS},)")
    return weights, record


def agent(weights: np.ndarray) -> type[aqumen.SampledLaw]:
    """Return the AQM of a policy, for `aqumen.compare` and `aqumen.run`."""
    return aqumen.gym.as_aqm(
        lambda observation: act(weights[None], observation[None, None])[0],
        period_s=PERIOD_S,
        history=HISTORY,
        delay_scale_s=DELAY_SCALE_S,
    )


class Parser(argparse.ArgumentParser):
    """Parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with code 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def main() -> None:
    """Train and write the policy."""
    parser = Parser(description=__doc__.partition(":")[0])
    parser.add_argument("--minutes", type=float, default=8.0, help="wall-clock time, above 0 to 1440 (default 8)")
    parser.add_argument("--seed", type=int, default=1, help="0 or more (default 1)")
    parser.add_argument("--out", type=Path, default=Path("policy.npz"), help="policy file (default policy.npz)")
    parser.add_argument("--generations", type=int, help="stop after this number of generations, if minutes allow")
    given = parser.parse_args()
    if not 0 < given.minutes <= 1440:
        parser.error(f"--minutes {given.minutes:g}: must be above 0, at most 1440")
    if given.generations is not None and given.generations < 1:
        parser.error(f"--generations {given.generations}: must be 1 or more")
    if given.seed < 0:
        parser.error(f"--seed {given.seed}: must be 0 or more")
    if not given.out.parent.is_dir():
        parser.error(f"--out {given.out}: no such folder: {given.out.parent}")
    weights, progress = train(given.minutes, given.seed, generations=given.generations)
    record = {
        "command": f"python examples/rl/train.py --minutes {given.minutes:g} --seed {given.seed}",
        "seed": given.seed,
        "progress": progress,
        "versions": {
            "aqumen": aqumen.__version__,
            "cma": cma.__version__,
            "gymnasium": gymnasium.__version__,
            "numpy": np.__version__,
        },
    }
    save(given.out, weights, record)
    print(f"wrote {given.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
