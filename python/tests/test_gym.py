"""Environments of Gymnasium: the interface, equal bits, many at once, a policy as an AQM."""

from __future__ import annotations

import numpy as np
import pytest

import aqumen
from aqumen import ScenarioError

gymnasium = pytest.importorskip("gymnasium")
gym = pytest.importorskip("aqumen.gym")

SHORT = aqumen.Scenario.load("arm-pfc/exp1").until("2s")


def make(**settings):
    return gymnasium.make("aqumen/Bottleneck-v0", scenario=SHORT, disable_env_checker=True, **settings).unwrapped


def play(env, seed, actions):
    observation, _ = env.reset(seed=seed)
    rows, rewards = [observation], []
    for action in actions:
        observation, reward, _, over, _ = env.step(np.array([action], dtype=np.float32))
        rows.append(observation)
        rewards.append(reward)
        if over:
            break
    return np.array(rows), np.array(rewards)


@pytest.mark.filterwarnings("ignore:.*Box observation space maximum value is infinity")
def test_the_environment_passes_the_checker():
    from gymnasium.utils.env_checker import check_env

    check_env(make(), skip_render_check=True)


def test_a_seed_gives_the_same_bits_and_an_episode_ends_with_the_run():
    actions = np.random.default_rng(1).uniform(0, 0.3, 300)
    rows, rewards = play(make(), 5, actions)
    again, same = play(make(), 5, actions)
    assert np.array_equal(rows, again)
    assert np.array_equal(rewards, same)
    assert len(rewards) == 200  # 2 s of 10 ms
    assert not np.array_equal(rows[:50], play(make(), 6, actions)[0][:50])
    env = make()
    play(env, 5, actions)
    with pytest.raises(ScenarioError, match="the episode is over"):
        env.step(np.array([0.1], dtype=np.float32))


def test_the_agent_is_the_aqm():
    """Constant actions give the queue of `fixed`."""
    env = make()
    env.reset(seed=1)
    queues = []
    for _ in range(150):
        *_, info = env.step(np.array([0.05], dtype=np.float32))
        queues.append(info["queue_pkts"])
    assert info["probability"] == np.float64(np.float32(0.05))
    seed = int(np.random.default_rng(np.random.SeedSequence(1)).integers(2**63))
    session = aqumen.Session(SHORT, aqm=f"fixed:p={float(np.float32(0.05))!r}", seed=seed, packets=False)
    expected = []
    for _ in range(150):
        session.advance(0.01)
        expected.append(session.link().queue_pkts)
    assert queues == expected


def test_many_environments_are_those_of_one_each():
    envs = gymnasium.make_vec("aqumen/Bottleneck-v0", num_envs=3, scenario=SHORT, history=2)
    observations, _ = envs.reset(seed=7)
    one = make(history=2)
    first, _ = one.reset(seed=8)
    assert np.array_equal(observations[1], first)
    action = np.array([[0.1], [0.02], [0.3]], dtype=np.float32)
    for k in range(200):
        observations, rewards, ended, truncated, info = envs.step(action)
        single, reward, _, over, _ = one.step(action[1])
        assert reward == rewards[1]
        assert not ended.any()
        if k < 199:
            assert not truncated.any()
            assert np.array_equal(observations[1], single)
    assert truncated.all()
    assert over
    # An episode that is over begins anew in the same step.
    assert np.array_equal(info["final_obs"][1], single)
    assert not np.array_equal(observations[1], single)
    envs.step(action)


def test_a_distribution_of_scenarios_is_drawn_anew_for_each_episode():
    drawn = []

    def draw(rng):
        drawn.append(f"{rng.integers(2, 20)}Mbit")
        return SHORT.set("bottleneck.rate", drawn[-1])

    env = gymnasium.make("aqumen/Bottleneck-v0", scenario=draw, disable_env_checker=True).unwrapped
    for _ in range(6):
        env.reset(seed=None)
    assert len(set(drawn)) > 2


@pytest.mark.parametrize(
    ("reward", "sign"), [(gym.power, 1), (gym.delay_target(0.02), -1), (gym.delay_at_utilization(), -1)]
)
def test_standard_rewards_of_one_and_of_many(reward, sign):
    seen = dict.fromkeys(aqumen.session.OBSERVATION_FIELDS, 0.0) | {
        "interval_s": 0.01,
        "idle_s": 0.001,
        "sojourn_s": 0.03,
    }
    one = reward(seen)
    assert np.sign(one) == sign
    many = reward({name: np.full(4, value) for name, value in seen.items()})
    assert np.allclose(many, one)


def test_a_policy_is_an_aqm():
    agent = gym.as_aqm(lambda observation: 0.05, name="agent")
    ours = aqumen.run(SHORT, agent, 1).data["links"]["bottleneck"]["steady"]
    fixed = aqumen.run(SHORT, "fixed:p=0.05", 1).data["links"]["bottleneck"]["steady"]
    # The probability is 0 in the agent's first period.
    assert ours["queue_mean_pkts"] == pytest.approx(fixed["queue_mean_pkts"], rel=0.1)
    # It sees what the environment shows.
    shown = []
    aqumen.run(SHORT, gym.as_aqm(lambda observation: shown.append(observation.copy()) or 0.05), 9)
    env = make()
    env._runs.reset(0, type("Nine", (), {"integers": lambda self, n: 9})())
    env._over = False
    for k in range(100):
        observation, *_ = env.step(np.array([0.0 if k == 0 else 0.05]))
        assert np.allclose(observation, shown[k], rtol=1e-5), k


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period_s": 0.0}, "period_s = 0.0: must be from 1e-6 to 100 seconds"),
        ({"period_s": float("nan")}, "period_s = nan"),
        ({"history": 0}, "history = 0: must be from 1 to 1000"),
        ({"delay_scale_s": 0.0}, "delay_scale_s = 0.0"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ScenarioError, match=message):
        make(**settings)


def test_an_agent_sets_the_parameters_of_an_aqm():
    ranges = {"target": ("5pkt", "200pkt")}
    env = make(parameters=("pi", ranges))
    assert env.action_space.low == 5
    assert env.action_space.high == 200
    envs = gymnasium.make_vec("aqumen/Bottleneck-v0", num_envs=2, scenario=SHORT, parameters=("pi", ranges))
    envs.reset(seed=4)
    env.reset(seed=4)
    for _ in range(150):
        observation, *_, info = env.step(np.array([20.0], dtype=np.float32))
        observations, *_ = envs.step(np.array([[20.0], [150.0]], dtype=np.float32))
        assert np.array_equal(observations[0], observation)
    assert info["probability"] > 0
    # A lower target, a shorter queue.
    assert observations[0, -6] < observations[1, -6]
    with pytest.raises(ScenarioError, match="target = 0"):
        env.step(np.array([0.0]))
    for pair, message in [
        (("3pkt", "3pkt"), "must rise, in one unit"),
        (("3pkt", "3ms"), "must rise, in one unit"),
        (("few", "9pkt"), '"few" must be a number with its unit'),
    ]:
        with pytest.raises(ScenarioError, match=message):
            make(parameters=("pi", {"target": pair}))
    with pytest.raises(ScenarioError, match="nosuch"):
        make(parameters=("nosuch", ranges)).reset()


def test_bad_actions_and_links():
    env = make()
    env.reset(seed=1)
    for action, message in [
        (np.zeros(2), r"action of shape \(2,\): must be \(1,\)"),
        (np.array([1.5]), "a probability is from 0 to 1, not 1.5"),
        (np.array([np.nan]), "a probability is from 0 to 1, not NaN"),
    ]:
        with pytest.raises(ScenarioError, match=message):
            env.step(action)
    env.step(np.array([0.5]))
    with pytest.raises(ScenarioError, match='no link "x"; choose from: bottleneck'):
        make(link="x").reset()
    envs = gymnasium.make_vec("aqumen/Bottleneck-v0", num_envs=2, scenario=SHORT)
    envs.reset(seed=1)
    with pytest.raises(ScenarioError, match=r"actions of shape \(2,\): must be \(2, 1\)"):
        envs.step(np.zeros(2))
