"""Steps per second of an agent's environment: one, 64 in one call, and the way with a thread for each run.

    python benchmarks/environments.py [PRESET]

The network is experiment 1 of the ARM-PFC paper (120 flows at 8 Mbit/s, steps of 10 ms) with the senders of PRESET
(`ns2`). The thread way runs `aqumen.run` with a law of one's own that waits for the agent at each step.
"""

import sys
import threading
import time
from collections.abc import Callable

import gymnasium
import numpy as np

import aqumen
import aqumen.gym

STEPS = 9000


def rate(step: Callable[[], object], steps: int) -> float:
    """Return calls per second."""
    for _ in range(steps // 10):
        step()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    return steps / (time.perf_counter() - begin)


def one(scenario: aqumen.Scenario) -> float:
    """Return the steps per second of one environment."""
    env = gymnasium.make("aqumen/Bottleneck-v0", scenario=scenario, disable_env_checker=True).unwrapped
    env.reset(seed=1)
    action = np.array([0.1], dtype=np.float32)
    return rate(lambda: env.step(action), STEPS)


def many(scenario: aqumen.Scenario, count: int) -> float:
    """Return the steps per second of `count` environments together."""
    envs = gymnasium.make_vec("aqumen/Bottleneck-v0", num_envs=count, scenario=scenario)
    envs.reset(seed=1)
    actions = np.full((count, 1), 0.1, dtype=np.float32)
    return count * rate(lambda: envs.step(actions), 500)


def with_thread(scenario: aqumen.Scenario) -> float:
    """Return the steps per second of a law that waits for the agent in a thread of its own."""
    asked, answered, done = threading.Semaphore(0), threading.Semaphore(0), threading.Event()

    class Waits(aqumen.SampledLaw):
        """Law that waits for the agent."""

        period = 0.01

        def step(self, seen: object) -> float:
            if not done.is_set():
                asked.release()
                answered.acquire()
            return 0.1

    def step() -> None:
        asked.acquire()
        answered.release()

    # The run must not end while the agent waits.
    thread = threading.Thread(target=aqumen.run, args=(scenario.set("duration", "110s"), Waits))
    thread.start()
    steps = rate(step, STEPS)
    done.set()
    answered.release()
    thread.join()
    return steps


def main() -> None:
    """Print a row for each way."""
    preset = sys.argv[1] if len(sys.argv) > 1 else "ns2"
    scenario = aqumen.Scenario.load("arm-pfc/exp1")
    scenario = scenario.set("flows.ftp.transport", f'{{ preset = "{preset}", ecn = true, packet = "1000B" }}')
    for name, steps in (
        ("one", one(scenario)),
        ("64 in one call", many(scenario, 64)),
        ("one in a thread", with_thread(scenario)),
    ):
        print(f"{preset:>8} {name:>16} {steps:10.0f} steps/s")


if __name__ == "__main__":
    main()
