"""A bottleneck as an environment of Gymnasium: an agent sets the marking probability (extra `aqumen[gym]`).

import gymnasium
import aqumen.gym

env = gymnasium.make("aqumen/Bottleneck-v0", scenario="arm-pfc/exp1", period_s=0.01)
envs = gymnasium.make_vec("aqumen/Bottleneck-v0", num_envs=64, scenario="arm-pfc/exp1")
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from aqumen import _core, custom
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario, as_scenario
from aqumen.session import OBSERVATION_FIELDS

__all__ = ["FEATURES", "Bottleneck", "BottleneckVector", "as_aqm", "delay_at_utilization", "delay_target", "power"]

Floats = NDArray[np.float64]
Scenarios = Scenario | str | os.PathLike[str] | Callable[[np.random.Generator], Scenario]
"""A scenario, or a function that draws one: a distribution of scenarios."""
Reward = Callable[[dict[str, Any]], Any]
"""Reward from the numbers of `aqumen.session.Observation` by name: floats, or arrays with a value an environment."""

Parameters = tuple[str, dict[str, tuple[str, str]]]
"""An AQM, and the range of each parameter that an agent sets: `("pi", {"target": ("10pkt", "200pkt")})`."""

FEATURES = ("queue_delay", "sojourn", "arrival_rate", "departure_rate", "idle", "probability")
"""Numbers of an observation that the agent sees: waiting bytes over the link's rate and sojourn time (both over
`delay_scale_s`), arriving and departing packets (over those that the link can send in a period), fraction of the
period without transmission, probability in force."""


def power(seen: dict[str, Any]) -> Any:
    """Return the power: utilisation over (1 + sojourn time / 20 ms)."""
    return (1.0 - seen["idle_s"] / seen["interval_s"]) / (1.0 + seen["sojourn_s"] / 0.02)


def delay_target(target_s: float) -> Reward:
    """Return a reward: minus the distance of the sojourn time from a target, over the target, 2 at most.

    Args:
        target_s: The target, seconds.
    """
    return lambda seen: -np.minimum(np.abs(seen["sojourn_s"] - target_s) / target_s, 2.0)


def delay_at_utilization(weight: float = 2.0, scale_s: float = 0.02) -> Reward:
    """Return a reward: minus the sojourn time over `scale_s`, minus `weight` times the unused fraction of the link.

    Args:
        weight: Price of a link that is idle all the time.
        scale_s: Sojourn time that costs 1, seconds.
    """
    return lambda seen: -seen["sojourn_s"] / scale_s - weight * seen["idle_s"] / seen["interval_s"]


class _Runs:
    """The runs behind both kinds of environment."""

    def __init__(
        self,
        count: int,
        scenario: Scenarios,
        period_s: float,
        link: str,
        history: int,
        delay_scale_s: float,
        parameters: Parameters | None,
    ) -> None:
        if not 1e-6 <= period_s <= 100:
            raise ScenarioError(f"period_s = {period_s}: must be from 1e-6 to 100 seconds")
        if not 1 <= history <= 1000:
            raise ScenarioError(f"history = {history}: must be from 1 to 1000")
        if not 1e-6 <= delay_scale_s <= 1e3:
            raise ScenarioError(f"delay_scale_s = {delay_scale_s}: must be from 1e-6 to 1000 seconds")
        self.scenario = scenario if callable(scenario) else as_scenario(scenario)
        spec, ranges = parameters or (None, {"probability": ("0", "1")})
        ends = {name: [_quantity(name, end) for end in pair] for name, pair in ranges.items()}
        for name, ((low, unit), (high, other)) in ends.items():
            if unit != other or not low < high:
                raise ScenarioError(f"parameter {name}: {ranges[name]} must rise, in one unit")
        aqm = None if spec is None else (spec, [(name, unit) for name, ((_, unit), _) in ends.items()])
        self.core, self.link = _core.Environments(count, period_s, history, delay_scale_s, aqm), link
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, (history * len(FEATURES),), np.float32)
        low, high = np.array([[end for end, _ in pair] for pair in ends.values()], dtype=np.float32).T
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)

    def reset(self, index: int, rng: np.random.Generator) -> NDArray[np.float32]:
        scenario = self.scenario(rng) if callable(self.scenario) else self.scenario
        first: NDArray[np.float32] = _checked(
            self.core.reset, index, scenario.core, int(rng.integers(2**63)), self.link
        )
        return first


def _quantity(name: str, text: str) -> tuple[float, str]:
    """Number and unit of a parameter's value."""
    match = re.fullmatch(r"([-+.\d]+(?:[eE][-+]?\d+)?)([A-Za-z/]*)", text)
    try:
        return float(match[1] if match else ""), match[2] if match else ""
    except ValueError:
        raise ScenarioError(f'parameter {name}: "{text}" must be a number with its unit, such as "20pkt"') from None


def _checked(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


class Bottleneck(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One bottleneck whose marking probability an agent sets, one action a period.

    Observation: `history` periods of `FEATURES`, the oldest first. Action: the probability. An episode is a run of the
    scenario; `reset(seed)` gives the same bits. `info` has the numbers of `aqumen.session.Observation`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (the interface of Gymnasium)

    def __init__(
        self,
        scenario: Scenarios = "arm-pfc/exp1",
        period_s: float = 0.01,
        *,
        link: str = "bottleneck",
        history: int = 4,
        delay_scale_s: float = 0.05,
        reward: Reward = power,
        parameters: Parameters | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            scenario: A scenario, or a function that draws one from a generator for each episode.
            period_s: Simulated time of a step, seconds.
            link: Name of the link whose AQM the agent is.
            history: Number of periods in an observation.
            delay_scale_s: Delay that counts 1 in an observation, seconds.
            reward: Reward of a step; `power`, `delay_target(...)` and `delay_at_utilization()` are there.
            parameters: An AQM and ranges of its parameters, which the agent sets in place of the probability; an action
                is in the units of the ranges.
            render_mode: None.
        """
        self.render_mode = render_mode
        self._runs, self._reward = _Runs(1, scenario, period_s, link, history, delay_scale_s, parameters), reward
        self.observation_space, self.action_space = self._runs.observation_space, self._runs.action_space
        self._sets_probability = parameters is None
        self._over = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._over = False
        return self._runs.reset(0, self.np_random), {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Apply a probability for a period. The end of the run truncates the episode."""
        if self._over:
            raise ScenarioError("the episode is over: call reset()")
        if np.shape(action) != self.action_space.shape:
            raise ScenarioError(f"action of shape {np.shape(action)}: must be {self.action_space.shape}")
        if self._sets_probability:
            observation, numbers, self._over = _checked(self._runs.core.step, action[0])
        else:
            rows = _checked(self._runs.core.step_many, np.asarray(action, dtype=np.float64)[None])
            (observation,), (numbers,), (self._over,) = rows
        seen = dict(zip(OBSERVATION_FIELDS, numbers, strict=True))
        return observation, float(self._reward(seen)), False, self._over, seen


class BottleneckVector(gymnasium.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Any]):
    """Many bottlenecks that are stepped in one call, on all cores; see `Bottleneck`.

    An episode that is over begins anew in the same step (`AutoresetMode.SAME_STEP`): `info["final_obs"]` has its last
    observation.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (the interface of Gymnasium)

    def __init__(
        self,
        num_envs: int,
        scenario: Scenarios = "arm-pfc/exp1",
        period_s: float = 0.01,
        *,
        link: str = "bottleneck",
        history: int = 4,
        delay_scale_s: float = 0.05,
        reward: Reward = power,
        parameters: Parameters | None = None,
    ) -> None:
        """Make the environments; arguments as for `Bottleneck`."""
        self.num_envs = num_envs
        self._runs, self._reward = _Runs(num_envs, scenario, period_s, link, history, delay_scale_s, parameters), reward
        self.single_observation_space = self._runs.observation_space
        self.single_action_space = self._runs.action_space
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode of each environment; environment k has seed + k."""
        if seed is not None:
            seeds = [seed + k for k in range(self.num_envs)] if isinstance(seed, int) else seed
            self._generators = [
                old if one is None else np.random.default_rng(np.random.SeedSequence(one))
                for one, old in zip(seeds, self._generators, strict=True)
            ]
        rows = [self._runs.reset(k, generator) for k, generator in enumerate(self._generators)]
        return np.stack(rows), {}

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], Floats, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Apply a probability to each environment for a period."""
        actions = np.asarray(actions, dtype=np.float64)
        if actions.shape != self.action_space.shape:
            raise ScenarioError(f"actions of shape {actions.shape}: must be {self.action_space.shape}")
        observations, numbers, over = _checked(self._runs.core.step_many, np.ascontiguousarray(actions))
        rewards = self._reward(dict(zip(OBSERVATION_FIELDS, numbers.T, strict=True)))
        info: dict[str, Any] = {}
        if over.any():
            final = np.full(self.num_envs, None, dtype=object)
            for k in np.flatnonzero(over):
                final[k] = observations[k].copy()
                observations[k] = self._runs.reset(int(k), self._generators[k])
            info = {"final_obs": final, "_final_obs": over, "final_info": {}, "_final_info": over}
        return observations, rewards, np.zeros(self.num_envs, dtype=bool), over, info


def as_aqm(
    policy: Callable[[NDArray[np.float32]], Any],
    *,
    name: str = "agent",
    period_s: float = 0.01,
    history: int = 4,
    delay_scale_s: float = 0.05,
) -> type[custom.SampledLaw]:
    """Make an AQM of a trained policy, for `aqumen.compare`, `reproduce rfc7928` and `uplink`.

    Args:
        policy: Returns the probability for an observation of `Bottleneck` with the same history and scale.
        name: Name of the AQM.
        period_s: Its period, seconds.
        history: Number of periods in an observation.
        delay_scale_s: Delay that counts 1 in an observation, seconds.
    """

    class Agent(custom.SampledLaw):
        """Policy of an agent."""

        period = period_s

        def start(self) -> None:
            self.memory = np.zeros((history, len(FEATURES)))

        def step(self, seen: Any) -> float:
            rate = self.network.link_bps / 8
            capacity_pkts = rate * period_s / self.network.packet_bytes
            interval = max(seen.interval_s, 1e-12)
            self.memory[:-1] = self.memory[1:]
            self.memory[-1] = (
                seen.queue_bytes / rate / delay_scale_s,
                seen.sojourn_s / delay_scale_s,
                seen.arrivals_pkts / capacity_pkts,
                seen.departures_pkts / capacity_pkts,
                seen.idle_s / interval,
                seen.applied,
            )
            action = np.asarray(policy(self.memory.reshape(-1).astype(np.float32)), dtype=np.float64).reshape(-1)
            return float(np.clip(action[0], 0.0, 1.0))

    Agent.name = name
    Agent.__name__ = Agent.__qualname__ = name
    return Agent


gymnasium.register(
    id="aqumen/Bottleneck-v0",
    entry_point="aqumen.gym:Bottleneck",
    vector_entry_point="aqumen.gym:BottleneckVector",
)
