"""Engines as objects: found by name, saying what they can answer; the keys of their results."""

import json
import threading
from pathlib import Path

import pytest

from aqumen import EngineError, Scenario, engines
from aqumen.engines.external.answer import ExternalAnswer, metric_keys
from aqumen.engines.external.engine import Ns2


def short():
    return Scenario.load("arm-pfc/exp1").until("2s")


def test_each_engine_is_found_by_its_names_and_no_other():
    assert [engines.find(name).name for name in engines.names()] == engines.names()
    assert engines.names()[:6] == ["packet", "fluid", "theory", "live", "ns2", "ns3"]
    assert engines.find("fluid:reno").model == "reno"
    assert engines.find("fluid").model is None
    for name, told in [
        ("pocket", "unknown engine `pocket`; did you mean packet?"),
        ("packet:reno", "unknown engine `packet:reno`"),
        ("fluid:renoo", "unknown fluid model `renoo`; choose from: hollot, ecn, reno, drop"),
        ("", "unknown engine ``"),
    ]:
        with pytest.raises(EngineError) as error:
            engines.find(name)
        assert told in str(error.value)


def test_each_says_what_it_can_answer():
    def those(question):
        return [kind for kind in engines.ENGINES if question(engines.find(kind))]

    assert those(lambda engine: engine.is_external) == engines.external_names() == ["live", "ns2", "ns3"]
    assert those(lambda engine: engine.has_packets) == ["packet"]
    assert those(lambda engine: not engine.measures) == ["theory"]
    assert those(lambda engine: not engine.has_estimate) == ["live"]


@pytest.mark.parametrize("engine", ["fluid:reno", "theory"])
def test_a_trace_is_refused_where_there_are_no_packets(engine, tmp_path):
    kind = engine.partition(":")[0]
    with pytest.raises(EngineError, match=f"engine `{kind}` knows no packets; leave out --pcap or use engine `packet`"):
        engines.run_one(short(), ("pi", 1), engine, pcap=str(tmp_path / "out.pcapng"))


@pytest.mark.parametrize("engine", ["packet", "fluid", "theory"])
def test_the_keys_of_metrics_are_those_of_a_run(engine):
    answer = json.loads(engines.run_one(short(), ("pi", 1), engine).json)
    for part, keys in metric_keys().items():
        for windows in answer[part].values():
            assert all(set(metrics) == set(keys) for metrics in windows.values())


def test_what_a_peer_does_not_measure_is_null():
    link = {"steady": {"utilization": 0.5}}
    flows = {"ftp": {"steady": {"goodput_bps": 1e6}}}
    told = json.loads(ExternalAnswer({"links": {"l": link}, "flows": flows, "series": {}}).json)
    for part, name, key in [("links", "l", "utilization"), ("flows", "ftp", "goodput_bps")]:
        metrics = told[part][name]["steady"]
        assert set(metrics) == set(metric_keys()[part])
        assert [known for known, value in metrics.items() if value is not None] == [key]


@pytest.mark.parametrize(("kind", "most"), [("live", 1), ("ns2", 3)])
def test_runs_in_real_time_stand_alone_and_others_side_by_side(kind, most, monkeypatch):
    engine, lock, now, seen, done = engines.find(kind), threading.Lock(), [0], [], []
    together = threading.Barrier(most)

    def run(scenario, job, pcap=None, progress=None):
        with lock:
            now[0] += 1
            seen.append(now[0])
        # Each waits for as many as there should be at a time.
        together.wait(timeout=20)
        with lock:
            now[0] -= 1
        return job

    monkeypatch.setattr(type(engine), "run", lambda self, *args: run(*args))
    engine.run_many(short(), [("pi", seed) for seed in (1, 2, 3)], 3, lambda index, answer: done.append(index) or True)
    assert (max(seen), sorted(done)) == (most, [0, 1, 2])


def test_an_engine_is_asked_whether_it_is_here_and_can_run_the_scenario(monkeypatch):
    asked = []
    monkeypatch.setattr(Ns2, "program", lambda self: asked.append("program") or Path("ns"))
    monkeypatch.setattr(Ns2, "check", lambda self, scenario: asked.append(scenario))
    engines.check_engine("ns2")
    assert asked == ["program"]
    scenario = Scenario.load("rfc7928/aggressive")
    engines.check_engine("ns2", scenario)
    assert asked[1:] == ["program", scenario]
    # Ours are always here.
    engines.check_engine("packet", scenario)
    assert len(asked) == 3


def test_where_the_equations_rest_is_asked_job_by_job_until_that_is_enough():
    done = []

    def first(index, answer):
        done.append((index, json.loads(answer.json)["seed"]))
        return False

    engines.run_many(short(), [("pi", 4), ("pi", 5)], "theory", 1, first)
    assert done == [(0, 4)]


@pytest.mark.parametrize("kind", ["live", "ns2", "ns3"])
def test_of_programs_nobody_hears_more_than_was_enough(kind, monkeypatch):
    engine, done = engines.find(kind), []
    monkeypatch.setattr(type(engine), "run", lambda self, scenario, job, *_: job)
    engine.run_many(short(), [("pi", seed) for seed in range(20)], 1, lambda index, _: done.append(index) or False)
    assert len(done) == 1


def test_a_simulator_that_is_not_there_is_told_as_an_error_of_engines(monkeypatch):
    from aqumen.engines.external import ns3

    def missing():
        raise ns3.Ns3Missing("ns-3 is not installed")

    monkeypatch.setattr(ns3, "find_program", missing)
    with pytest.raises(EngineError, match="ns-3 is not installed"):
        engines.check_engine("ns3")
