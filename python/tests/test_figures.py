"""Figures for print, from runs made up for them: what is drawn where, and what the files are like."""

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from aqumen.view import figures

pytest.importorskip("matplotlib").use("Agg")

from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


def run(sojourn_s, used, queue=(0, 10, 20), waits=((0.001, 0.5), (0.002, 1.0))):
    """A run of one link."""
    t = np.arange(float(len(queue)))
    cdf = SimpleNamespace(sojourn_s=np.array([w for w, _ in waits]), share=np.array([s for _, s in waits]))
    return SimpleNamespace(
        series=lambda link: SimpleNamespace(t_s=t, queue_pkts=np.array(queue, dtype=float)),
        link=lambda link, window: {"sojourn_mean_s": sojourn_s, "utilization": used},
        sojourn_cdf=lambda link, window: cdf,
    )


def comparison(runs, target=None, summaries=None, seeds=(1, 2)):
    """Runs by AQM, of which the first is the best."""
    places = [SimpleNamespace(aqm=aqm, group=letter) for aqm, letter in zip(runs, "abc", strict=False)]
    goal = SimpleNamespace(key="k", factor=1000, title="Delay", unit="ms")
    ranking = SimpleNamespace(figure=goal, places=places, summaries=summaries, link="l", window="steady")
    return SimpleNamespace(
        aqms=list(runs),
        seeds=list(seeds),
        of=runs.__getitem__,
        targets=lambda: {} if target is None else {"l": target},
        ranking=lambda: ranking,
        rows=lambda ranking: [(place, place.aqm) for place in ranking.places],
    )


def axes_of(draw, made):
    """Contents of a figure, and whether it was drawn."""
    axes = Figure().subplots()
    return axes, draw(axes, made, "l", "steady")


def data(line):
    return [list(map(float, each)) for each in line.get_data()]


def test_the_ranking_has_a_point_with_its_interval_for_each_aqm_the_best_on_top():
    told = {"n": 2, "mean": 0.01, "ci95": (0.008, 0.013)}
    alone = {"n": 1, "mean": 0.03, "ci95": None}
    summaries = {"pie": {"k": told}, "none": {"k": {"n": 0, "mean": None, "ci95": None}}, "codel": {"k": alone}}
    made = comparison({aqm: [] for aqm in summaries}, summaries=summaries)
    axes, drawn = axes_of(figures._ranking, made)
    assert drawn
    points = [container.lines[0] for container in axes.containers]
    assert [data(point) for point in points] == [[[10], [0]], [[30], [1]]]
    # The interval in the figure's own unit; of a single run there is none.
    bars = [container.lines[2][0].get_segments()[0] for container in axes.containers]
    assert bars[0].tolist() == [[8, 0], [13, 0]]
    assert bars[1].tolist() == [[30, 1], [30, 1]]
    # Colours stay those of the AQM's place in all figures.
    assert [to_hex(point.get_color()).upper() for point in points] == [figures.COLOURS[0], figures.COLOURS[2]]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["pie  a", "codel  c"]
    bottom, top = axes.get_ylim()
    assert bottom > top
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlabel() == "Delay, ms (95 % interval)"
    axes, drawn = axes_of(figures._ranking, comparison({"pie": []}, summaries={"pie": {"k": alone}}, seeds=(1,)))
    assert axes.get_xlabel() == "Delay, ms"
    assert not axes_of(figures._ranking, comparison({"none": []}, summaries=summaries))[1]


def test_the_queue_over_time_is_the_mean_of_the_seeds():
    made = comparison({"pie": [run(1, 1), run(1, 1, queue=(10, 20, 60))], "codel": [run(1, 1)]}, target=15)
    axes, drawn = axes_of(figures._queue, made)
    assert drawn
    pie, codel, target = axes.lines
    assert data(pie) == [[0, 1, 2], [5, 15, 40]]
    assert data(codel) == [[0, 1, 2], [0, 10, 20]]
    assert set(target.get_ydata()) == {15}
    assert pie.get_linestyle() != codel.get_linestyle()
    assert target.get_linewidth() < pie.get_linewidth() == codel.get_linewidth() < 1
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_ylim()[0]) == ("Time, s", "Queue, packets", 0)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["pie", "codel"]
    axes, _ = axes_of(figures._queue, comparison({"pie": [run(1, 1)]}))
    assert len(axes.lines) == 1
    assert axes.get_legend() is None


@pytest.mark.parametrize(("points", "step"), [(599, 1), (600, 1), (601, 2), (1200, 2), (1201, 3)])
def test_what_nobody_sees_is_averaged_over_stretches(points, step):
    t, values = figures._downsample(np.arange(float(points)), np.arange(float(points)) % step)
    whole = points // step
    assert len(t) == len(values) == whole <= 600
    # The first stretch is 0 to step - 1, its mean (step - 1) / 2, and so it goes on.
    assert t[0] == values[0] == (step - 1) / 2
    assert t[-1] == (whole - 1) * step + (step - 1) / 2
    assert set(values) == {(step - 1) / 2}


def test_delay_against_utilisation_has_a_point_for_each_seed_and_their_mean():
    made = comparison({"pie": [run(0.01, 0.9), run(0.03, 0.8)], "none": [run(None, 0.5)], "codel": [run(0.02, 1.0)]})
    axes, drawn = axes_of(figures._tradeoff, made)
    assert drawn
    seeds, mean, codel, codel_mean = (each.get_offsets().tolist() for each in axes.collections)
    assert seeds == [[10, 90], [30, 80]]
    assert mean == [[20, 85]]
    assert codel == codel_mean == [[20, 100]]
    sizes = [each.get_sizes()[0] for each in axes.collections]
    assert sizes[0] == sizes[2] < sizes[1] == sizes[3]
    faces = [to_hex(each.get_facecolor()[0]).upper() for each in axes.collections]
    assert faces == [figures.COLOURS[0]] * 2 + [figures.COLOURS[2]] * 2
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Mean sojourn time, ms", "Utilisation, %")
    assert axes.get_xlim()[0] == 0
    assert not axes_of(figures._tradeoff, comparison({"none": [run(0.1, None), run(None, 0.1)]}))[1]


def test_points_differ_by_shape_and_by_colour():
    names = [f"a{i}" for i in range(15)]
    axes, _ = axes_of(figures._tradeoff, comparison({name: [run(0.01, 0.9)] for name in names}))
    looks = [
        (each.get_paths()[0].vertices.tobytes(), to_hex(each.get_facecolor()[0]).upper()) for each in axes.collections
    ]
    seeds, means = looks[::2], looks[1::2]
    assert seeds == means
    # Eight shapes and seven colours, each in its turn.
    shapes, colours = zip(*means, strict=True)
    assert len(set(shapes[:8])) == 8
    assert shapes[8:] == shapes[:7]
    assert colours == (*figures.COLOURS, *figures.COLOURS, figures.COLOURS[0])


def test_waits_are_a_distribution_over_all_seeds():
    half = ((0.001, 0.5), (0.004, 1.0))
    made = comparison({"pie": [run(1, 1), run(1, 1, waits=half)], "none": [run(1, 1, waits=())]})
    axes, drawn = axes_of(figures._sojourn, made)
    assert drawn
    (line,) = axes.lines
    # Of two seeds half waited 1 ms; at 2 ms all of one and half of the other.
    assert data(line) == [[1, 2, 4], [0.5, 0.75, 1]]
    assert line.get_drawstyle() == "steps-post"
    assert axes.get_xlim() == (0, 4)
    assert axes.get_ylim() == (0, 1.01)
    # One packet in a thousand and more may be beyond the edge.
    tail = tuple((k / 1000, 0.9 if k == 1 else 0.9995 if k == 2 else 1.0) for k in (1, 2, 50))
    axes, _ = axes_of(figures._sojourn, comparison({"pie": [run(1, 1, waits=tail)]}))
    assert axes.get_xlim() == (0, 2)
    assert not axes_of(figures._sojourn, comparison({"none": [run(1, 1, waits=())]}))[1]


def test_lines_differ_by_colour_and_by_dashes():
    styles = [figures.style(i) for i in range(28)]
    assert [each["linestyle"] for each in styles[:5]] == ["-", "--", "-.", ":", "-"]
    assert [each["color"] for each in styles[:8]] == [*figures.COLOURS, figures.COLOURS[0]]
    assert len({(each["color"], each["linestyle"]) for each in styles}) == 28


@pytest.mark.parametrize(
    ("names", "columns"),
    [(("a", "b"), 2), (tuple("abcdef"), 4), (("a" * 10, "b", "c"), 3), (("a" * 11, "b", "c"), 2)],
)
def test_names_stand_above_the_figure_in_as_many_columns_as_fit(names, columns):
    axes = Figure().subplots()
    for name in names:
        axes.plot([0, 1], label=name)
    figures._legend(axes, names)
    assert axes.get_legend()._ncols == columns
    assert not axes.get_legend().get_frame_on()


def test_files_are_of_a_columns_width_with_the_letters_of_a_journal(tmp_path):
    def draw(axes):
        axes.plot([0, 1], [0, 1], label="pie")
        axes.set(xlabel="Time, s")
        axes.legend()
        return True

    made = figures.draw_all({"one": draw, "none": lambda axes: False}, tmp_path / "new" / "folder", "aqumen x")
    assert [path.name for path in made] == ["one.svg", "one.pdf", "one.png"]
    folder = made[0].parent
    assert {path.name for path in folder.iterdir()} == {"one.svg", "one.pdf", "one.png", "remake.sh"}
    assert (folder / "remake.sh").read_text() == "#!/bin/sh -e\n# Redraws these figures.\naqumen x\n"
    svg = made[0].read_text()
    # 3.5 by 2.2 inches of 72 points.
    width, height = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', svg).groups()
    assert (float(width), float(height)) == pytest.approx((252, 158.4))
    by_text = {text: size for size, text in re.findall(r"<text[^>]*?(\d+)px[^>]*STIXGeneral[^>]*>([^<]*)<", svg)}
    assert (by_text["Time, s"], by_text["pie"], by_text["0.0"]) == ("8", "7", "7")
    strokes = {float(each) for each in re.findall(r"stroke-width: ([\d.]+)", svg)}
    # Of axes and of ticks; a line of 1 is what SVG has where nothing is said.
    assert strokes == {0.6, 0.8}
    # Nothing says when it was made, and 600 points make an inch of the picture.
    assert "<dc:date>" not in svg
    assert b"CreationDate" not in made[1].read_bytes()
    from matplotlib.image import imread

    assert imread(made[2]).shape[:2] == pytest.approx((2.2 * 600, 3.5 * 600), abs=1)


def test_a_quiet_queue_has_a_scale_too():
    axes, _ = axes_of(figures._sojourn, comparison({"pie": [run(1, 1, waits=((0.0, 1.0),))]}))
    assert axes.get_xlim()[0] == 0
    assert math.isfinite(axes.get_xlim()[1])
