"""The Python API: runs, comparisons, statistics, finished runs on disk."""

import json
import math

import pytest

import aqumen
from aqumen import _store
from aqumen._statistics import summarize


@pytest.fixture
def scenario(fake_core):
    return aqumen.Scenario.parse(fake_core.TOML)


def test_run_gives_metrics_series_and_sojourn_times(scenario):
    result = aqumen.run(scenario, aqm="pi", seed=7)
    assert (result.spec, result.seed, result.engine, result.scenario) == ("pi", 7, "packet", "mock")
    assert result.link("bottleneck", "all")["arrivals_pkts"] > 0
    assert result.flow_group("ftp")["goodput_bps"] > 0
    series = result.series()
    assert len(series.t_s) == len(series.queue_pkts) == len(series.probability) == 1000
    cdf = result.sojourn_cdf("bottleneck", "steady")
    assert cdf.share[-1] == 1.0
    assert json.loads(result.json) == result.data


class OfThreeLinks:
    """Result of an engine whose figures encode their link and window."""

    json = json.dumps(
        {
            "aqm": {"name": "pi"},
            "links": {
                name: {window: {"of": f"{name} {window}"} for window in ("steady", "all")} for name in ("b", "a", "c")
            },
        }
    )

    def series(self, link):
        return f"{link} t", f"{link} queue", f"{link} p"

    def state(self, link):
        return [("drops", f"{link} state")]

    def sojourn_cdf(self, link, window):
        return f"{link} {window} waits", f"{link} {window} share"

    def queue_cdf(self, link, window):
        return f"{link} {window} levels", f"{link} {window} share"


@pytest.mark.parametrize("link", [None, "a"])
def test_where_no_link_is_named_the_first_one_is_told(link):
    result, name = aqumen.Result(OfThreeLinks()), link or "b"
    series = result.series(link)
    assert (series.t_s, series.queue_pkts, series.probability) == OfThreeLinks().series(name)
    assert series.state == {"drops": f"{name} state"}
    for window in ("steady", "all"):
        # Without a window it is the steady one.
        where = (link,) if window == "steady" else (link, window)
        assert result.link(*where) == {"of": f"{name} {window}"}
        waits, levels = result.sojourn_cdf(*where), result.queue_cdf(*where)
        assert (waits.sojourn_s, waits.share) == (f"{name} {window} waits", f"{name} {window} share")
        assert (levels.queue_pkts, levels.share) == (f"{name} {window} levels", f"{name} {window} share")


def test_progress_can_stop_a_run(scenario):
    seen = []
    with pytest.raises(aqumen.Cancelled):
        aqumen.run(scenario, aqm="pi", on_progress=lambda share: seen.append(share) or share < 0.5)
    assert seen == [0.25, 0.5]


def test_compare_takes_a_number_of_seeds_or_the_seeds(scenario):
    assert aqumen.compare(scenario, ["pi"], seeds=3).seeds == [1, 2, 3]
    assert aqumen.compare(scenario, ["pi"], seeds=[9, 4]).seeds == [4, 9]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"aqms": []}, "no AQM to compare"),
        ({"aqms": ["pi"], "seeds": []}, "no seed given"),
        ({"aqms": ["pi"], "seeds": [1, 1]}, "named twice"),
        ({"aqms": ["pi"], "seeds": [2**64]}, "must be 0 to 2"),
        ({"aqms": ["pi"], "threads": 0}, "at least 1"),
        ({"aqms": ["pi"], "engine": "lives"}, "unknown engine"),
    ],
)
def test_bad_arguments(scenario, kwargs, message):
    with pytest.raises(aqumen.Error, match=message):
        aqumen.compare(scenario, **kwargs)


def test_results_stand_aqm_by_aqm_with_rising_seeds(scenario):
    comparison = aqumen.compare(scenario, ["red", "pi"], seeds=3)
    assert [(run.spec, run.seed) for run in comparison.results] == [
        ("red", 1), ("red", 2), ("red", 3), ("pi", 1), ("pi", 2), ("pi", 3),
    ]  # fmt: skip


def test_progress_is_told_and_can_stop(scenario):
    seen = []
    comparison = aqumen.compare(
        scenario, ["pi"], seeds=5, on_progress=lambda done, wanted: seen.append((done, wanted)) or done < 2
    )
    assert seen == [(1, 5), (2, 5)]
    assert len(comparison.results) == 2
    assert not comparison.complete


def test_summary_is_of_the_defined_values(fake_core):
    # 1 and 3: mean 2, standard deviation sqrt(2), t(0.975, 1) = 12.706: half width 12.706 * sqrt(2) / sqrt(2) = 12.706.
    summary = summarize([1.0, None, 3.0])
    assert (summary["mean"], summary["n"]) == (2.0, 2)
    assert summary["std"] == pytest.approx(math.sqrt(2))
    assert summary["ci95"] == pytest.approx([2 - 12.7062, 2 + 12.7062], abs=1e-4)
    assert summarize([None]) == {"mean": None, "std": None, "ci95": None, "n": 0}


def test_comparison_carries_the_mean_of_each_metric(scenario):
    comparison = aqumen.compare(scenario, ["pi"], seeds=2)
    values = [run.link("bottleneck", "late")["queue_mean_pkts"] for run in comparison.results]
    assert comparison.summary("pi", "queue_mean_pkts", window="late")["mean"] == pytest.approx(sum(values) / 2)


def stored(folder):
    (runs,) = (folder / "runs").iterdir()
    return runs.read_bytes().splitlines()


def test_runs_on_disk_are_not_repeated_unless_something_changed(scenario, tmp_path, monkeypatch):
    first = aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path)
    before = stored(tmp_path)
    again = aqumen.compare(scenario, ["pi"], seeds=3, out=tmp_path)
    assert (again.resumed, len(again.results)) == (2, 3)
    assert again.results[0].data == first.results[0].data
    assert (again.results[0].series().queue_pkts == first.results[0].series().queue_pkts).all()
    shown, known = (each.results[0].series().state["capacity_estimate"] for each in (again, first))
    assert len(shown) == len(known) > 0
    assert (shown == known).all()
    assert (again.results[0].sojourn_cdf().share == first.results[0].sojourn_cdf().share).all()
    assert stored(tmp_path)[:2] == before
    # Other sources of the engine may answer differently.
    monkeypatch.setattr("aqumen._core.ENGINES", [("packet", "other")])
    _store.built.cache_clear()
    try:
        assert aqumen.compare(scenario, ["pi"], seeds=3, out=tmp_path).resumed == 0
    finally:
        _store.built.cache_clear()


def test_another_scenario_under_the_same_name_is_run_again(scenario, tmp_path):
    aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path)
    changed = scenario.set("bottleneck.rate", "9Mbit")
    assert changed.name == scenario.name
    assert aqumen.compare(changed, ["pi"], seeds=2, out=tmp_path).resumed == 0


def test_specs_that_look_alike_are_kept_apart(scenario, tmp_path):
    aqumen.compare(scenario, ["pi:target=100pkt", "pi_target=100pkt".replace("_", ":a=1,")], seeds=1, out=tmp_path)
    assert len(stored(tmp_path)) == 2


def test_fewer_threads_where_memory_is_short(scenario, fake_core, monkeypatch):
    asked = []
    monkeypatch.setattr(fake_core, "FREE_BYTES", 3 << 20)
    monkeypatch.setattr("aqumen._core.run_many", lambda _s, _j, threads, _d: asked.append(threads))
    # 1 MiB a run and 3 MiB free: three at a time.
    aqumen.compare(scenario, ["pi"], seeds=8, threads=8)
    assert asked == [3]


def test_the_window_steady_is_judged_where_there_is_one_else_the_first(scenario, fake_core, monkeypatch):
    comparison = aqumen.compare(scenario, ["pi", "red"], seeds=2)
    assert (comparison.ranking().link, comparison.ranking().window) == ("bottleneck", "steady")
    wanted = comparison.summary("pi", "qacd_pkts", "bottleneck", "steady")
    assert comparison.ranking().summaries["pi"]["qacd_pkts"] == wanted
    assert wanted != comparison.summary("pi", "qacd_pkts", "bottleneck", "all")
    for run in comparison.results:
        del run.data["windows"]["steady"]
    assert comparison.ranking().window == "all"
    assert comparison.ranking().summaries["pi"]["qacd_pkts"] == comparison.summary("pi", "qacd_pkts", window="all")


def test_a_comparison_says_whether_it_is_whole_and_how_many_seeds_it_takes(scenario):
    comparison = aqumen.compare(scenario, ["pi"], seeds=2)
    assert comparison.complete
    for results, wanted, complete in ((comparison.results[:1], 2, False), (comparison.results * 300, 600, True)):
        assert aqumen.Comparison(scenario=scenario, results=results, wanted=wanted).complete == complete
    with pytest.raises(aqumen.ScenarioError, match="seeds = 100001: must be 1 to 100000"):
        aqumen.compare(scenario, ["pi"], seeds=100_001)


def test_what_a_link_dropped_is_early_and_for_want_of_room_together(scenario, monkeypatch, fake_core):
    link = fake_core.RunResult.link

    def with_drops(self, window):
        return {**link(self, window), "early_drop_ratio": 0.02, "overflow_drop_ratio": 0.01}

    monkeypatch.setattr(fake_core.RunResult, "link", with_drops)
    comparison = aqumen.compare(scenario, ["pi"], seeds=2)
    assert comparison.summaries("pi")["drop_ratio"]["mean"] == pytest.approx(0.03)


def test_objects_say_in_a_line_what_they_are(scenario, tmp_path):
    comparison = aqumen.compare(scenario, ["pi", "red"], seeds=2)
    assert repr(comparison) == "Comparison('mock', aqms=['pi', 'red'], runs=4 of 4)"
    assert repr(comparison.results[1]) == "Result('pi' on 'mock', engine='packet', seed=2)"
    assert repr(scenario) == f"Scenario('mock', {scenario.title!r})"
    scenario.save(tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == scenario.to_toml()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rank_by": "luck"}, 'rank_by: invalid value "luck"; choose from: '),
        ({"engine": []}, "no engine given; name at least one"),
    ],
)
def test_what_decides_and_what_runs_is_said_or_refused(scenario, kwargs, message):
    with pytest.raises(aqumen.ScenarioError, match=message):
        aqumen.compare(scenario, ["pi"], **kwargs)


def test_nothing_that_finished_is_no_comparison(scenario):
    from aqumen.comparison import Comparison

    with pytest.raises(aqumen.ScenarioError, match="nothing to compare: no run finished"):
        Comparison(scenario, [], wanted=2).to_dict()


def test_drops_are_those_of_both_kinds():
    from aqumen._statistics import dropped

    told = {(None, None): None, (0.1, None): 0.1, (None, 0.2): 0.2, (0.1, 0.2): 0.1 + 0.2, (0.0, 0.0): 0.0}
    for (early, overflow), together in told.items():
        assert dropped({"early_drop_ratio": early, "overflow_drop_ratio": overflow}) == together


def test_a_goal_is_a_figure_of_the_link_or_of_its_flows():
    from types import SimpleNamespace

    from aqumen._run_set import judged

    groups = {
        "ftp": {"steady": {"goodput_bps": 3e6, "mos": None}},
        "web": {"steady": {"goodput_bps": 1e6, "mos": 4.0}},
        "call": {"steady": {"goodput_bps": None, "mos": 3.0}},
    }
    run = SimpleNamespace(data={"links": {"l": {"steady": {"utilization": 1, "none": None}}}, "flows": groups})
    told = {key: judged(run, key, "l", "steady") for key in ("utilization", "none", "goodput_bps", "mos", "delay")}
    # Goodput is shared, so it is the sum; of what each has for itself it is the mean.
    assert told == {"utilization": 1, "none": None, "goodput_bps": 4e6, "mos": 3.5, "delay": None}
