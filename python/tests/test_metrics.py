"""Typed results: their keys are those that the engines give."""

from typing import get_type_hints

import aqumen
from aqumen import _core, theory
from aqumen.explain.disagreement import QueueDifference
from aqumen.explain.prediction import Expectation, OperatingPoint, WindowPrediction
from aqumen.metrics import FlowMetrics, LinkMetrics, Summary


def test_metrics_have_the_keys_of_a_run():
    assert [set(get_type_hints(kind)) for kind in (LinkMetrics, FlowMetrics)] == [
        set(keys) for keys in _core.metric_keys()
    ]


def test_summaries_and_disagreements_have_the_keys_of_a_comparison():
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("15s")
    compared = aqumen.compare(scenario, ["pi"], seeds=2, engine=["packet", "fluid"])
    assert set(compared.summary("pi (packet)", "mark_ratio")) == set(get_type_hints(Summary))
    (found,) = compared.disagreement().values()
    assert set(found["links"]["bottleneck"]["steady"]) == set(get_type_hints(QueueDifference))


def test_predictions_have_the_keys_of_the_theory():
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("15s")
    expected = theory.predict(scenario, "pi")["bottleneck"]["steady"]
    assert set(expected) | {"coupled", "several"} == set(get_type_hints(WindowPrediction))
    told, *_ = theory.explain(scenario, aqumen.run(scenario, "pi"))
    assert set(told.predicted) == set(told.measured) == set(get_type_hints(Expectation))
    assert {"window_pkts", "probability"} <= set(told.point) <= set(get_type_hints(OperatingPoint))
