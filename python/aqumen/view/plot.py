"""Figures for print, drawn with matplotlib where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqumen.errors import optional

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from aqumen._run import RunData
    from aqumen._run_set import Runs

    Floats = NDArray[np.float64]

__all__ = ["plot_comparison", "plot_result", "plot_series"]

# The report's colours on white.
COLOURS = ["#0a6ab5", "#c8500a", "#0b8a62", "#a8487f", "#8a6a00", "#5a4fb0", "#2490a8", "#6b7280"]
CURVE: dict[str, Any] = {"linewidth": 1.0}
"""Style of curves."""
GUIDE: dict[str, Any] = {"linewidth": 0.7, "color": "#9aa3ad"}
"""Style of reference lines."""


def plot_result(result: RunData, link: str | None = None) -> Figure:
    """Plot queue length and probability over time.

    Args:
        result: The run.
        link: The link; default: the first recorded one.
    """
    series = result.series(link)
    title = f"{result.spec} on {result.scenario}, seed {result.seed}"
    return plot_series(title, series.t_s, series.queue_pkts, series.probability)


def plot_series(
    title: str, t_s: Floats, queue_pkts: Floats, probability: Floats, figure: Figure | None = None
) -> Figure:
    """Queue length and probability over time.

    Args:
        title: Title of the figure.
        t_s: Sampling times, seconds.
        queue_pkts: Packets waiting.
        probability: Probability in force.
        figure: A figure of this function to draw anew.
    """
    if figure is None:
        figure, _ = _axes(2, sharex=True)
    upper, lower = figure.axes
    for axes, values, colour, label in (
        (upper, queue_pkts, COLOURS[0], "Queue, packets"),
        (lower, probability, COLOURS[1], "Probability"),
    ):
        axes.clear()
        axes.plot(t_s, values, color=colour, **CURVE)
        axes.set(ylabel=label, ylim=(0, None))
    upper.set(title=title)
    lower.set(xlabel="Time, s")
    return figure


def plot_comparison(comparison: Runs, link: str | None = None) -> Figure:
    """Plot queue length over time (first seed), and mean sojourn time against utilisation (all seeds).

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        link: The link; default: the first recorded one.
    """
    name = link or comparison.results[0].links[0]
    figure, (queue, tradeoff) = _axes(2, sharex=False)
    window = comparison.ranking().window
    for i, aqm in enumerate(comparison.aqms):
        runs, colour = comparison.of(aqm), COLOURS[i % len(COLOURS)]
        series = runs[0].series(name)
        queue.plot(series.t_s, series.queue_pkts, color=colour, label=aqm, **CURVE)
        points = [run.link(name, window) for run in runs]
        shown = [(p["sojourn_mean_s"], p["utilization"]) for p in points if p["sojourn_mean_s"] is not None]
        tradeoff.scatter([x * 1000 for x, _ in shown if x is not None], [y for _, y in shown], color=colour)
    target = comparison.targets().get(name)
    if target is not None:
        queue.axhline(target, linestyle="--", label="target", **GUIDE)
    queue.set(xlabel="Time, s", ylabel="Queue, packets", ylim=(0, None), title=comparison.scenario.title)
    queue.legend(frameon=False, ncols=len(comparison.aqms) + 1, loc="upper right")
    tradeoff.set(xlabel="Mean sojourn time, ms", ylabel="Utilisation")
    return figure


def _axes(rows: int, sharex: bool) -> tuple[Figure, Any]:
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    # pyplot would keep a reference to the figure.
    figure = Figure(figsize=(8.0, 3.0 * rows), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=sharex)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes
