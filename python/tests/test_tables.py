"""Results as tables of other packages."""

import sys

import numpy as np
import pytest

import aqumen

METRICS = 40 + 55
RUNS, WINDOWS = 4, 3


@pytest.fixture
def comparison(fake_core):
    return aqumen.compare(aqumen.Scenario.parse(fake_core.TOML), ["pi", "red"], seeds=2)


def rows_of_a_run():
    # One link with 43 metrics and two flow groups with 61, in each of three windows.
    return (43 + 2 * 61) * WINDOWS


def test_pandas(comparison):
    pytest.importorskip("pandas")
    frame = comparison.to_pandas()
    assert len(frame) == RUNS * rows_of_a_run()
    one = frame.query("aqm == 'red' and seed == 2 and kind == 'link' and window == 'late' and metric == 'utilization'")
    assert one["value"].item() == comparison.of("red")[1].link("bottleneck", "late")["utilization"]
    # What is not defined is missing, not 0.
    assert frame.query("metric == 'jitter_mean_s'")["value"].isna().all()


def test_polars(comparison):
    polars = pytest.importorskip("polars")
    frame = comparison.results[0].to_polars()
    assert frame.height == rows_of_a_run()
    assert frame.schema["value"] == polars.Float64


def test_arrow(comparison):
    arrow = pytest.importorskip("pyarrow")
    assert comparison.to_arrow().num_rows == RUNS * rows_of_a_run()
    assert arrow.table(comparison).equals(comparison.to_arrow())
    assert arrow.table(comparison.results[0]).num_rows == rows_of_a_run()


def test_xarray(comparison):
    pytest.importorskip("xarray")
    data = comparison.to_xarray()
    assert dict(data.sizes) == {"aqm": 2, "seed": 2, "link": 1, "window": 3, "group": 2}
    value = data["queue_mean_pkts"].sel(aqm="pi", seed=1, link="bottleneck", window="all").item()
    assert value == comparison.results[0].link("bottleneck", "all")["queue_mean_pkts"]
    assert data.attrs == {"scenario": "mock", "engine": "packet"}


def test_xarray_of_several_engines_names_them_all(fake_core):
    pytest.importorskip("xarray")
    both = aqumen.compare(aqumen.Scenario.parse(fake_core.TOML), ["pi"], seeds=1, engine=["packet", "fluid"])
    data = both.to_xarray()
    assert data.attrs["engine"] == "packet, fluid"
    assert data["aqm"].values.tolist() == [run.label for run in both.results]


def test_xarray_of_a_run_is_over_time(comparison):
    pytest.importorskip("xarray")
    run = comparison.results[3]
    series, data = run.series(), run.to_xarray()
    assert {name: each.dims for name, each in data.items()} == dict.fromkeys(
        ["queue_pkts", "probability"], ("link", "time")
    )
    assert np.array_equal(data["queue_pkts"].sel(link="bottleneck"), series.queue_pkts)
    assert np.array_equal(data["probability"].sel(link="bottleneck"), series.probability)
    assert np.array_equal(data["time"], series.t_s)
    assert (data["aqm"].item(), data["seed"].item()) == ("red", 2)
    assert data.attrs == {"scenario": "mock", "engine": "packet"}


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("to_pandas", "pandas", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_arrow", "pyarrow", "arrow"),
        ("to_xarray", "xarray", "xarray"),
        ("plot", "matplotlib", "plot"),
    ],
)
def test_an_absent_package_is_named_with_its_extra(comparison, monkeypatch, method, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    for each in (comparison, comparison.results[0]):
        with pytest.raises(aqumen.MissingExtra, match=rf"pip install 'aqumen\[{extra}\]'"):
            getattr(each, method)()


def test_plots_show_every_aqm_and_the_target(comparison):
    pytest.importorskip("matplotlib")
    queue, tradeoff = comparison.plot().axes
    assert [text.get_text() for text in queue.get_legend().get_texts()] == ["pi", "red", "target"]
    assert len(tradeoff.collections) == 2
    assert len(comparison.results[0].plot().axes) == 2


def test_notebooks_show_tables(comparison):
    assert "<td>bottleneck</td><td>steady</td>" in comparison.results[0]._repr_html_()
    shown = comparison._repr_html_()
    assert "4 runs" in shown
    assert shown.index("<td>pi</td>") < shown.index("<td>red</td>")


def test_plots_show_the_first_seed_over_time_and_all_seeds_as_points(comparison):
    pytest.importorskip("matplotlib")
    figure = comparison.plot()
    queue, tradeoff = figure.axes
    first, second = comparison.of("pi")
    pi, red, target = queue.lines
    assert np.array_equal(pi.get_ydata(), first.series("bottleneck").queue_pkts)
    assert np.array_equal(pi.get_xdata(), first.series("bottleneck").t_s)
    assert np.array_equal(red.get_ydata(), comparison.of("red")[0].series("bottleneck").queue_pkts)
    assert set(target.get_ydata()) == {comparison.targets()["bottleneck"]}
    told = [run.link("bottleneck", "steady") for run in (first, second)]
    points = tradeoff.collections[0].get_offsets()
    assert points.tolist() == [[1000 * each["sojourn_mean_s"], each["utilization"]] for each in told]
    assert pi.get_color() == "#0a6ab5" != red.get_color()
    assert queue.get_ylim()[0] == 0
    assert (queue.get_xlabel(), queue.get_ylabel()) == ("Time, s", "Queue, packets")
    assert (tradeoff.get_xlabel(), tradeoff.get_ylabel()) == ("Mean sojourn time, ms", "Utilisation")
    # Three inches a picture, and no line above it or to its right.
    assert figure.get_size_inches().tolist() == [8, 6]
    assert not any(axes.spines[side].get_visible() for axes in figure.axes for side in ("top", "right"))


def test_a_run_is_drawn_by_queue_and_probability(comparison):
    pytest.importorskip("matplotlib")
    run = comparison.results[0]
    queue, probability = run.plot().axes
    assert np.array_equal(queue.lines[0].get_ydata(), run.series().queue_pkts)
    assert np.array_equal(probability.lines[0].get_ydata(), run.series().probability)
    assert queue.get_title() == "pi on mock, seed 1"
    assert (probability.get_xlabel(), probability.get_ylabel()) == ("Time, s", "Probability")
    # Both have the same time.
    assert queue.get_shared_x_axes().joined(queue, probability)
    assert queue.get_ylim()[0] == probability.get_ylim()[0] == 0
