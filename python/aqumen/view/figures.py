"""Figures of a comparison for print: one column wide, in SVG, PDF and PNG.

Colours follow Okabe and Ito (safe for colour-blind readers); dashes distinguish lines in grey print. Fonts (STIX, 8 pt)
are embedded as editable text. Equal runs give equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen.errors import OutputError, optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from aqumen._run_set import Runs

__all__ = ["Draw", "draw_all", "style", "write_figures"]

Draw = Callable[["Axes"], bool]
"""Draws into axes and returns whether there was data."""
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")
COLUMN_IN = 3.5
"""Column width of IEEE journals, inches."""
HEIGHT_IN = 2.2
SETTINGS = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "aqumen",
}
KINDS = ("svg", "pdf", "png")
SAMPLES_MAX = 600
"""Maximum number of points over time at this width; longer series are averaged."""


def write_figures(comparison: Runs, folder: Path, command: str) -> list[Path]:
    """Draw a comparison's figures into a folder. Needs the extra `plot`.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        folder: The folder; it is created if needed.
        command: Command that redraws the figures, for `remake.sh`.
    """
    ranking = comparison.ranking()
    drawn: dict[str, Callable[[Axes, Runs, str, str], bool]] = {
        "ranking": _ranking,
        "queue": _queue,
        "delay-throughput": _tradeoff,
        "sojourn-cdf": _sojourn,
    }

    def of_comparison(draw: Callable[[Axes, Runs, str, str], bool]) -> Draw:
        return lambda axes: draw(axes, comparison, ranking.link, ranking.window)

    return draw_all({name: of_comparison(draw) for name, draw in drawn.items()}, folder, command)


def draw_all(drawn: Mapping[str, Draw], folder: Path, command: str) -> list[Path]:
    """Draw figures into a folder, each as SVG, PDF and PNG. Needs the extra `plot`.

    Args:
        drawn: Drawing function of each figure, by file name.
        folder: The folder; it is created if needed.
        command: Command that redraws the figures, for `remake.sh`.
    """
    matplotlib = optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    made = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with matplotlib.rc_context(SETTINGS):
            for name, draw in drawn.items():
                figure = Figure(figsize=(COLUMN_IN, HEIGHT_IN), layout="constrained")
                axes = figure.subplots()
                axes.spines[["top", "right"]].set_visible(False)
                if draw(axes):
                    made += _saved(figure, folder / name)
        script = folder / "remake.sh"
        script.write_text(f"#!/bin/sh -e\n# Redraws these figures.\n{command}\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {folder}: {error.strerror or error}") from None
    return made


def _saved(figure: Figure, base: Path) -> list[Path]:
    # Without dates, so that equal figures give equal files.
    without = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}, "png": {}}
    files = []
    for kind in KINDS:
        file = base.with_suffix(f".{kind}")
        figure.savefig(file, dpi=600, metadata=without[kind])
        files.append(file)
    return files


def style(i: int) -> dict[str, Any]:
    """Return the line style of the i-th curve.

    Args:
        i: Index, from 0.
    """
    # Seven colours and four dash patterns: 28 distinct styles.
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


def _ranking(axes: Axes, comparison: Runs, link: str, window: str) -> bool:
    """Plot mean and interval of the ranking's metric, the best on top."""
    ranking = comparison.ranking()
    figure = ranking.figure
    groups = {label: place.group for place, label in comparison.rows(ranking) if place is not None}
    known = [(label, ranking.summaries[label][figure.key]) for _, label in comparison.rows(ranking)]
    means = [(aqm, found["mean"], found["ci95"]) for aqm, found in known if found["mean"] is not None]
    for i, (aqm, mean, ci95) in enumerate(means):
        colour = COLOURS[comparison.aqms.index(aqm) % len(COLOURS)]
        centre, low, high = (each * figure.factor for each in (mean, *(ci95 or (mean, mean))))
        axes.errorbar(centre, i, xerr=[[centre - low], [high - centre]], fmt="o", color=colour, markersize=4, capsize=2)
    axes.set_yticks(range(len(means)), [f"{aqm}  {groups.get(aqm) or ''}".rstrip() for aqm, _, _ in means])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"{figure.title}, {figure.unit}" + (" (95 % interval)" if len(comparison.seeds) > 1 else ""))
    return bool(means)


def _queue(axes: Axes, comparison: Runs, link: str, window: str) -> bool:
    """Plot the queue over time, averaged over the seeds."""
    import numpy as np

    for i, aqm in enumerate(comparison.aqms):
        every = [run.series(link) for run in comparison.of(aqm)]
        mean = np.mean([each.queue_pkts for each in every], axis=0)
        t, mean = _downsample(every[0].t_s, mean)
        axes.plot(t, mean, label=aqm, **{**style(i), "linewidth": 0.8})
    target = comparison.targets().get(link)
    if target is not None:
        axes.axhline(target, color="0.4", linewidth=0.6, linestyle=":")
    axes.set(xlabel="Time, s", ylabel="Queue, packets", ylim=(0, None))
    _legend(axes, comparison.aqms)
    return True


def _downsample(t: Any, values: Any) -> tuple[Any, Any]:
    step = -(-len(t) // SAMPLES_MAX)
    whole = len(t) // step * step
    return t[:whole].reshape(-1, step).mean(axis=1), values[:whole].reshape(-1, step).mean(axis=1)


def _tradeoff(axes: Axes, comparison: Runs, link: str, window: str) -> bool:
    """Plot mean sojourn time against utilisation: a point for each seed, a larger one for the mean."""
    any_ = False
    for i, aqm in enumerate(comparison.aqms):
        points = [
            (run.link(link, window)["sojourn_mean_s"], run.link(link, window)["utilization"])
            for run in comparison.of(aqm)
        ]
        known = [(1000 * x, 100 * y) for x, y in points if x is not None and y is not None]
        if not known:
            continue
        any_ = True
        xs, ys = zip(*known, strict=True)
        colour, marker = COLOURS[i % len(COLOURS)], "osD^vPX*"[i % 8]
        axes.scatter(xs, ys, s=5, color=colour, alpha=0.4, linewidths=0, marker=marker)
        axes.scatter(
            [sum(xs) / len(xs)],
            [sum(ys) / len(ys)],
            s=26,
            color=colour,
            label=aqm,
            marker=marker,
            edgecolor="white",
            linewidths=0.5,
        )
    axes.set(xlabel="Mean sojourn time, ms", ylabel="Utilisation, %", xlim=(0, None))
    _legend(axes, comparison.aqms)
    return any_


def _sojourn(axes: Axes, comparison: Runs, link: str, window: str) -> bool:
    """Plot the distribution function of the sojourn time, all seeds."""
    import numpy as np

    any_, furthest = False, 0.0
    for i, aqm in enumerate(comparison.aqms):
        known = [cdf for run in comparison.of(aqm) if len((cdf := run.sojourn_cdf(link, window)).sojourn_s)]
        if not known:
            continue
        any_ = True
        grid = np.unique(np.concatenate([cdf.sojourn_s for cdf in known]))
        share = np.mean(
            [np.concatenate([[0.0], c.share])[np.searchsorted(c.sojourn_s, grid, side="right")] for c in known], axis=0
        )
        axes.step(1000 * grid, share, where="post", label=aqm, **style(i))
        furthest = max(furthest, 1000 * float(grid[min(int(np.searchsorted(share, 0.999)), len(grid) - 1)]))
    axes.set(xlabel="Sojourn time, ms", ylabel="Fraction of packets", ylim=(0, 1.01), xlim=(0, furthest or None))
    _legend(axes, comparison.aqms)
    return any_


def _legend(axes: Axes, aqms: Sequence[str]) -> None:
    if len(aqms) > 1:
        # Above the axes, so that it covers no curve.
        columns = min(len(aqms), 4 if max(map(len, aqms)) < 11 else 2)
        axes.legend(
            frameon=False,
            handlelength=2.2,
            borderaxespad=0.2,
            columnspacing=1.0,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=columns,
        )
