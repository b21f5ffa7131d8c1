"""The package on the compiled core: what only holds when both fit together."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_result_page import PAGE, run_keys

import aqumen
from aqumen.cli import main

EXPERIMENT = Path(__file__).parents[2] / "experiments" / "arm-pfc" / "exp1.toml"


@pytest.fixture
def printed(capsys):
    """Run a command that must succeed and give what it printed."""

    def run(*args):
        assert main([str(arg) for arg in args]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture(scope="module")
def short():
    return aqumen.Scenario.load(EXPERIMENT).set("duration", "20s")


def test_the_same_command_twice_gives_the_same_bytes(printed):
    args = ("run", EXPERIMENT, "--aqm", "arm-pfc", "--seed", "1", "--json", "--set", "duration=15s")
    first, second = (json.loads(printed(*args)) for _ in range(2))
    for key in ("links", "flows"):
        assert json.dumps(first[key]) == json.dumps(second[key])


def test_every_key_of_a_real_run_is_defined(short):
    found = set(run_keys(aqumen.run(short, "pi").data))
    assert {key for key in found if f"`{key}`" not in PAGE} == set()
    # As many as test_result_page.py counts.
    assert len(found) == 10 + 4 + 4 + 43 + 34 + 4 * 6


def test_many_runs_are_the_same_as_each_alone(short):
    comparison = aqumen.compare(short, ["pi", "red"], seeds=2)
    for result in comparison.results:
        alone = aqumen.run(short, result.spec, result.seed)
        assert alone.data["links"] == result.data["links"]
        assert alone.data["flows"] == result.data["flows"]
        assert np.array_equal(alone.series().queue_pkts, result.series().queue_pkts)


def test_the_mean_of_the_series_is_near_the_exact_mean(short):
    result = aqumen.run(short, "pi")
    series, (start, end) = result.series(), result.windows["steady"]
    sampled = series.queue_pkts[(series.t_s >= start) & (series.t_s < end)].mean()
    # 100 samples of a queue whose standard deviation is below 30 packets: four standard errors, were they independent,
    # are 12 packets; queues of TCP swing with the round trip, so that they are nearly so.
    assert sampled == pytest.approx(result.link()["queue_mean_pkts"], abs=12)
    cdf = result.sojourn_cdf()
    assert cdf.share[-1] == 1.0
    assert np.interp(0.5, cdf.share, cdf.sojourn_s) == pytest.approx(result.link()["sojourn_p50_s"], rel=0.02)


def test_progress_is_told_and_can_stop_a_run(short):
    seen = []
    aqumen.run(short, "pi", on_progress=lambda share: seen.append(share) or True)
    assert seen == sorted(seen)
    assert 0.0 < seen[0] < 1.0
    with pytest.raises(aqumen.Cancelled):
        aqumen.run(short, "pi", on_progress=lambda share: False)


def test_stopping_a_comparison_keeps_what_is_finished(short):
    comparison = aqumen.compare(short, ["pi"], seeds=6, threads=1, on_progress=lambda done, _: done < 2)
    assert [result.seed for result in comparison.results] == [1, 2]


def test_a_typed_scenario_reads_back_as_itself():
    built = aqumen.Dumbbell(
        name="uplink",
        rate_bps=8e6,
        delay_s=0.02,
        buffer_pkts=300,
        target_pkts=100,
        nominal_flows=20,
        base_rtt_s=0.1,
        access_delay_s=(0.035, 0.045),
        flows=[aqumen.Flows(name="ftp", count=12, transport=aqumen.Transport(variant="sack", ecn=True))],
        events=[aqumen.Event(at_s=40, name="half", capacity_bps=4e6)],
        windows_s={"early": (5, 7.5)},
    ).scenario()
    again = aqumen.Scenario.parse(built.to_toml())
    assert again.to_toml() == built.to_toml()
    plan = again.plan(1, "pi")
    assert plan == built.plan(1, "pi")
    assert plan["links"][0]["rates"] == [[0.0, 8_000_000], [40.0, 4_000_000]]
    assert plan["windows"]["early"] == [5.0, 7.5]
    assert plan["windows"]["half"] == [40.0, 100.0]
    assert plan["groups"][0]["transport"]["variant"] == "sack"


def test_the_capacity_event_is_a_transient_of_its_own():
    scenario = aqumen.Scenario.load(EXPERIMENT.with_name("exp5.toml"))
    transients = aqumen.compare(scenario, ["arm-pfc"], seeds=1).to_dict()["aqms"]["arm-pfc"]["transients"]
    assert len(transients["bottleneck"]) > 1


@pytest.mark.parametrize(
    ("args", "expect"),
    [
        (["run", "{exp1}", "--aqm", "arn-pfc"], "did you mean arm-pfc"),
        (["run", "{exp1}", "--aqm", "pi:taget=3pkt"], "target"),
        (["run", "{exp1}", "--set", "duratoin=3s"], "duration"),
        (["run", "{exp1}", "--set", "topology.bottleneck.rate=-3Mbit"], "topology.bottleneck.rate"),
        (["run", "{exp1}", "--set", "topology.bottleneck.buffer=0pkt"], "topology.bottleneck.buffer"),
        (["run", "absent.toml"], "absent.toml"),
        (["run", "/"], "/"),
    ],
)
def test_bad_input_is_one_clear_line(capsys, args, expect):
    assert main([arg.format(exp1=EXPERIMENT) for arg in args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert expect in captured.err


@pytest.mark.parametrize(
    "asked",
    [
        lambda scenario: scenario.set("duratoin", "3s"),
        lambda scenario: scenario.cell("nosuch"),
        lambda scenario: scenario.until("1h"),
        lambda scenario: scenario.plan(1, "nosuch"),
        lambda scenario: scenario.check_aqm("nosuch"),
        lambda scenario: scenario.qdisc_memory("nosuch"),
    ],
)
def test_whatever_a_scenario_refuses_is_an_error_of_the_package(short, asked):
    with pytest.raises(aqumen.ScenarioError, match=r"nosuch|duratoin|3600s") as refused:
        asked(short)
    # Nothing of the engine stands in the traceback.
    assert refused.value.__suppress_context__


def test_set_names_set_all_where_keys_are_valid_only_together(short):
    keys = [("flows.0.transport.pacing", "true"), ("flows.0.transport.congestion", "prague")]
    reno = short.set("flows.0.transport", '{ preset = "modern", congestion = "reno" }')
    with pytest.raises(aqumen.ScenarioError, match=r"pacing: must be true.*`set_all` changes several keys at once"):
        reno.set(*keys[1])
    assert 'congestion = "prague"' in reno.set_all(keys).to_toml()
    # An error at the key itself needs no other key.
    with pytest.raises(aqumen.ScenarioError, match='duration = "bad": must be a time') as refused:
        short.set("duration", "bad")
    assert "set_all" not in str(refused.value)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01", b"\x00" * 1000, b"name = \xe9", bytes(range(256))])
def test_files_that_are_no_text(capsys, tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    assert main(["run", str(path)]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert str(path) in captured.err


@pytest.mark.parametrize("kind", ["transports", "traffic"])
def test_every_parameter_of_a_list_is_explained(printed, kind):
    rows = json.loads(printed("list", kind, "--json"))[kind]
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names) >= 3
    for row in rows:
        assert all(row[key] for key in ("summary", "reference", "kind")), row["name"]
        for param in row["params"]:
            assert all(param[key] for key in ("doc", "unit")), (row["name"], param["name"])
            assert kind == "traffic" or param["default"] is not None


def test_a_kind_of_traffic_that_needs_nothing_can_be_written_as_a_word(short):
    for row in aqumen._core.list_traffic():
        if any(param["required"] for param in row["params"]):
            continue
        if row["name"] != "mmpp":  # which takes one of four
            assert short.set("flows.0.traffic", row["name"]).to_toml()
