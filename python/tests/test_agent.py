"""The example of a trained agent: training, its policy file as an AQM, the comparison, bad input."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import aqumen

pytest.importorskip("gymnasium")
pytest.importorskip("cma")

RL = Path(__file__).parents[2] / "examples/rl"
FIXED = [5, 6]


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(RL))
    import compare
    import train

    return train, compare


@pytest.fixture
def small(scripts, monkeypatch):
    train, _ = scripts
    monkeypatch.setattr(train, "CANDIDATES", 4)
    monkeypatch.setattr(train, "NETWORKS", 2)
    monkeypatch.setattr(train, "SIGMA", 1.0)
    return train


def test_a_training_has_the_same_bits_by_seed(small):
    weights, progress = small.train(1, 3, generations=2, fixed=FIXED)
    again, same = small.train(1, 3, generations=2, fixed=FIXED)
    assert np.array_equal(weights, again)
    assert progress == same
    assert [count for count, _ in progress] == [0, 2]
    assert progress != small.train(1, 4, generations=2, fixed=FIXED)[1]


def test_ctrl_c_keeps_the_best_policy_so_far(small, monkeypatch, capsys):
    # Judged after generation 1 and 2; the second is worse, the third is stopped.
    monkeypatch.setattr(small, "EVERY", 1)
    judged = iter([-9.0, -2.0, -3.0])
    means = []

    def rewards(weights, seeds):
        if len(weights) > 1:
            if len(means) == 3:
                raise KeyboardInterrupt
            return -np.abs(weights - 0.1).sum(axis=1)
        means.append(weights[0].copy())
        return np.array([next(judged)])

    monkeypatch.setattr(small, "rewards", rewards)
    weights, progress = small.train(1, 3)
    assert [reward for _, reward in progress] == [-9.0, -2.0, -3.0]
    assert np.array_equal(weights, means[1])
    assert "stopped" in capsys.readouterr().err


def test_the_policy_file_runs_as_an_aqm(scripts):
    train, _ = scripts
    weights, record = train.load(RL / "policy.npz")
    assert record["command"].startswith("python examples/rl/train.py")
    assert {"aqumen", "cma", "numpy"} <= set(record["versions"])
    short = aqumen.Scenario.load("arm-pfc/exp1").until("10s")
    compared = aqumen.compare(short, ["droptail", train.agent(weights)], seeds=1)
    droptail, agent = (run.link("bottleneck", "all") for run in compared.results)
    assert agent["marked_pkts"] > 0
    assert agent["sojourn_mean_s"] < droptail["sojourn_mean_s"]


def test_a_policy_file_keeps_weights_and_record(scripts, tmp_path):
    train, _ = scripts
    weights = np.arange(train.WEIGHTS) / 4
    train.save(tmp_path / "p.npz", weights, {"seed": 7})
    loaded, record = train.load(tmp_path / "p.npz")
    assert np.array_equal(loaded, weights)
    assert record == {"seed": 7}


def test_probabilities_move_step_by_step_between_0_and_1(scripts):
    train, _ = scripts
    observations = np.zeros((1, 2, train.INPUTS))
    observations[0, 1, -1] = 0.25
    # With all weights zero the probability stays: 0 at its least, sigmoid(-6)^2, and 0.25 as it is.
    held = train.act(np.zeros((1, train.WEIGHTS)), observations)[0]
    assert held == pytest.approx([(1 + np.exp(6.0)) ** -2, 0.25])
    # The last weight alone moves y by 0.5 tanh(weight): from sigmoid(0)^2 to sigmoid(0.5)^2.
    up = np.zeros((1, train.WEIGHTS))
    up[0, -1] = 100.0
    assert train.act(up, observations)[0, 1] == pytest.approx((1 + np.exp(-0.5)) ** -2)


@pytest.mark.parametrize(
    ("differences", "sign", "expected"),
    [
        # Half of the interval: 4.303 / sqrt(3) = 2.48 at three values with standard deviation 1.
        ([1.0, 2.0, 3.0], 1, "not different, +2.00 ± 2.48"),
        ([9.0, 10.0, 11.0], 1, "better, +10.00 ± 2.48"),
        ([9.0, 10.0, 11.0], -1, "worse, +10.00 ± 2.48"),
    ],
)
def test_verdicts(scripts, differences, sign, expected):
    assert scripts[1].verdict(np.array(differences), sign) == expected


@pytest.mark.parametrize(
    ("script", "args", "message"),
    [
        (0, ["--minutes", "0"], "--minutes 0: must be above 0, at most 1440"),
        (0, ["--minutes", "nan"], "--minutes nan: must be above 0"),
        (0, ["--seed", "-1"], "--seed -1: must be 0 or more"),
        (0, ["--seed", "x"], "argument --seed: invalid int value: 'x'"),
        (0, ["--generations", "0"], "--generations 0: must be 1 or more"),
        (0, ["--out", "no/such/policy.npz"], "--out no/such/policy.npz: no such folder"),
        (1, ["--pairs", "1"], "--pairs 1: must be from 2 to 10000"),
        (1, ["--only", "x"], '--only "x": no such class; choose from: training ranges;'),
        (1, ["no.npz"], "no.npz: no policy file"),
        (1, [__file__], "test_agent.py: no policy file"),
    ],
)
def test_bad_input_is_one_line(scripts, script, args, message, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["example", *args])
    with pytest.raises(SystemExit) as exit_:
        scripts[script].main()
    assert exit_.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_the_comparison_prints_each_class_and_rival(scripts, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare.py", "--pairs", "2", "--only", "slow links"])
    scripts[1].main()
    rows = capsys.readouterr().out.splitlines()
    assert [row.split("|")[2].strip() for row in rows[2:]] == ["agent", "pi", "pie", "codel", "stpi"]
    assert all(any(word in row for word in ("better", "worse", "not different")) for row in rows[3:])


@pytest.mark.slow
def test_half_a_minute_of_training_raises_the_reward(scripts):
    train, _ = scripts
    weights, _ = train.train(0.5, 3)
    # Networks that are neither trained on nor used to choose the best.
    untrained, trained = train.rewards(
        np.array([np.zeros(train.WEIGHTS), weights]), list(range(2 * 10**9, 2 * 10**9 + 16))
    )
    assert trained > untrained
