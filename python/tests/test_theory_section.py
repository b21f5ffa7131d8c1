"""The report's section that sets theory beside runs, from predictions made up for it."""

import re
from types import SimpleNamespace

import pytest

from aqumen.explain import prediction
from aqumen.explain.prediction import Prediction
from aqumen.view.report import theory

PREDICTED = {"queue_mean_pkts": 100.0, "signal_ratio": 0.0123, "utilization": 1.0, "sojourn_mean_s": 0.1}
MEASURED = {"queue_mean_pkts": 98.44, "signal_ratio": 0.0118, "utilization": 0.9876, "sojourn_mean_s": None}
NOISE = {"queue_std_pkts": 12.3, "qacd_pkts": 9.8, "queue_p95_pkts": 121.0}


def told(link="core", window="steady", notes=("packets are <few>",), **point):
    return Prediction(
        link=link,
        window=window,
        predicted={**PREDICTED, **NOISE},
        measured={**MEASURED, **dict.fromkeys(NOISE)},
        point=point,
        notes=list(notes),
    )


def section(monkeypatch, explained, *, loops=False, engine="packet"):
    """The section of a comparison of these AQMs, each with what is explained of it."""
    runs = {aqm: SimpleNamespace(engine=engine, spec=aqm, seed=7) for aqm in explained}
    asked = []

    def explain(scenario, run, spec, *, loops):
        asked.append((spec, loops))
        return explained[spec]

    monkeypatch.setattr(theory, "explain", explain)
    comparison = SimpleNamespace(
        aqms=list(runs), of=lambda aqm: [runs[aqm]], scenario=None, results=list(runs.values())
    )
    return theory.theory_section(comparison, "steady", loops=loops), asked


def rows(text):
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]


def test_each_figure_is_predicted_and_measured(monkeypatch):
    # Each link comes with all of its windows.
    each = [told(window_pkts=8.333, gain_margin=2.0), told(window="late"), told("edge"), told("edge", "late")]
    text, asked = section(monkeypatch, {"pi": each, "codel": []})
    heads, core, edge = rows(text)
    assert heads == [
        *("AQM", "Link", "Queue, packets", "Signalled, %", "Utilisation, %", "Sojourn, ms", "W0, packets"),
    ]
    assert core == ["pi", "core", "100.0 / 98.4", "1.23 / 1.18", "100.00 / 98.76", "100.0 / –", "8.33"]
    assert edge[-1] == "–"
    assert asked == [("pi", False), ("codel", False)]
    assert text.count("<li><b>pi</b>: packets are &lt;few&gt;.</li>") == 2
    assert "window steady, seed 7. " in text
    assert "<code>--theory</code> adds margins and oscillations." in text
    # Without notes there is no list.
    assert "<ul>" not in section(monkeypatch, {"pi": [told(notes=())]})[0]


def test_with_loops_there_is_noise_and_a_margin(monkeypatch):
    text, asked = section(monkeypatch, {"pi": [told(gain_margin=2.0)]}, loops=True)
    heads, row = rows(text)
    assert heads[6:] == [
        *("Standard deviation, packets", "QACD, packets", "95th percentile, packets", "W0, packets", "Gain margin"),
    ]
    assert row[6:] == ["12.3 / –", "9.8 / –", "121.0 / –", "–", "2.00"]
    assert asked == [("pi", True)]
    assert "--theory" not in text


def test_where_nothing_is_predicted_or_measured_there_is_no_section(monkeypatch):
    assert section(monkeypatch, {"codel": [], "pi": [told(window="late")]})[0] == ""
    # The theory engine measures nothing.
    assert section(monkeypatch, {"pi": [told()]}, engine="theory") == ("", [])


@pytest.mark.parametrize(("timeouts", "all_"), [((3, None, 4), 7), ((None, None), None), ((0,), 0)])
def test_timeouts_are_those_of_all_flows_where_any_are_counted(monkeypatch, timeouts, all_):
    asked = []
    monkeypatch.setattr(prediction, "predict", lambda *args, **more: {"core": {"steady": {}}, "other": {"steady": {}}})
    monkeypatch.setattr(prediction, "compare_prediction", lambda **given: asked.append(given))
    flows = {str(k): {"steady": {"timeouts": each}} for k, each in enumerate(timeouts)}
    result = SimpleNamespace(seed=1, data={"links": {"core": {"steady": {"a": 1}}}, "flows": flows})
    prediction.explain(None, result, loops=False)
    # A link that is not recorded has nothing beside it.
    place = {"link": "core", "window": "steady", "expected": {}, "measured": {"a": 1}}
    assert asked == [{**place, "measured_oscillation": None, "timeouts": all_, "loops": False}]
