"""Queueing analysis: MMPP sources at a finite buffer, solved exactly.

from aqumen import mmpp

answer = mmpp.solve("examples/mmpp/reference.toml")
answer.data["total"]["loss_ratio"]
answer.plot().savefig("reference.pdf")
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen._files import check_file, is_packed
from aqumen.errors import ScenarioError, optional
from aqumen.view.plot import COLOURS, CURVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["QueueAnalysis", "load_within", "predict", "solve", "threshold_within"]


@dataclass(frozen=True, slots=True)
class QueueAnalysis:
    """Result of a queueing analysis; `docs/formats/mmpp.md` defines the keys."""

    json: str
    """Output of `aqumen mmpp --json`."""
    toml: str
    """The complete model as TOML, without presets, captures and searches."""

    @property
    def data(self) -> dict[str, Any]:
        """Result as a dictionary."""
        return dict(json.loads(self.json))

    def plot(self) -> Figure:
        """Plot the distributions of occupancy and delay, and for fitted sources the fit."""
        return _plot(self.data)

    def __repr__(self) -> str:
        data = self.data
        return f"QueueAnalysis({data['model']!r}, loss_ratio={data['total']['loss_ratio']:.6g})"


def solve(
    model: str | os.PathLike[str],
    settings: Mapping[str, str] | None = None,
    simulate: bool = False,
    remaining: Callable[[float, int], None] | None = None,
) -> QueueAnalysis:
    """Solve a model file.

    Args:
        model: Path of the model.
        settings: Values to change, as with `--set KEY=VALUE`: `{"queue.buffer": "40pkt"}`.
        simulate: Also simulate the model packet by packet.
        remaining: Called repeatedly with the remaining time (s) and the memory of the solution (bytes).
    """
    check_file(model)
    try:
        return QueueAnalysis(
            *_core.mmpp_solve(os.fspath(model), list((settings or {}).items()), simulate, _without_stop(remaining))
        )
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def load_within(
    model: str | os.PathLike[str],
    loss_ratio_max: float,
    settings: Mapping[str, str] | None = None,
    remaining: Callable[[float, int], None] | None = None,
) -> QueueAnalysis:
    """Find the highest load at which no source loses more than a bound; the rates of all sources scale together.

    Args:
        model: Path of the model.
        loss_ratio_max: Bound on the loss ratio of each source, above 0 and below 1.
        settings: Values to change, as for `solve`.
        remaining: Called repeatedly with the remaining time (s) and the memory of the solution (bytes).

    Returns:
        The analysis at that load, `data["load"]`; `data["admission"]["rate_factor"]` is the factor on the rates.

    Raises:
        ScenarioError: The model or the bound is invalid.
    """
    return solve(model, _with_search("load", loss_ratio_max, settings), remaining=remaining)


def threshold_within(
    model: str | os.PathLike[str],
    loss_ratio_max: float,
    settings: Mapping[str, str] | None = None,
    remaining: Callable[[float, int], None] | None = None,
) -> QueueAnalysis:
    """Find the lowest threshold of early drops, equal for all sources, at which no source loses more than a bound.

    Args:
        model: Path of the model; it must not have `early`.
        loss_ratio_max: Bound on the loss ratio of each source, above 0 and below 1.
        settings: Values to change, as for `solve`.
        remaining: Called repeatedly with the remaining time (s) and the memory of the solution (bytes).

    Returns:
        The analysis at that threshold, `data["admission"]["threshold_pkts"]`.

    Raises:
        ScenarioError: The model or the bound is invalid, or overflow alone exceeds the bound.
    """
    return solve(model, _with_search("threshold", loss_ratio_max, settings), remaining=remaining)


def _with_search(find: str, loss_ratio_max: float, settings: Mapping[str, str] | None) -> dict[str, str]:
    return {**(settings or {}), "admit": f'{{find = "{find}", loss = {float(loss_ratio_max)!r}}}'}


def predict(
    capture: str | os.PathLike[str],
    settings: Mapping[str, str],
    simulate: bool = False,
    remaining: Callable[[float, int], None] | None = None,
) -> QueueAnalysis:
    """Fit a source to a capture and analyse it at a queue.

    Args:
        capture: A pcap or pcapng file, or a text file with a time in seconds in each line.
        settings: At least the queue: `{"queue.link": "10Mbit", "queue.buffer": "100pkt"}`.
        simulate: Also simulate the model packet by packet.
        remaining: Called repeatedly with the remaining time (s) and the memory of the solution (bytes).
    """
    check_file(capture)
    path = Path(capture)
    if is_packed(path):
        # The resulting model refers to the capture, which must be readable later.
        raise ScenarioError(f"{path}: is compressed; unpack it first: gunzip -k {path}")
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in path.stem)[:64] or "trace"
    sources = f'[{{name = "trace", trace = {{file = {json.dumps(path.name, ensure_ascii=False)}}}}}]'
    overrides = [("name", f'"{name}"'), ("sources", sources), *settings.items()]
    try:
        return QueueAnalysis(*_core.mmpp_solve_text("", os.fspath(path), overrides, simulate, _without_stop(remaining)))
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def _plot(data: dict[str, Any]) -> Figure:
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    fits = data.get("fits", {})
    rows = 1 + len(fits)
    # pyplot would keep a reference to the figure.
    figure = Figure(figsize=(10.0, 3.6 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    for each in axes.flat:
        each.spines[["top", "right"]].set_visible(False)
    occupancy, delay = axes[0]
    occupancy.step(range(len(data["occupancy"])), data["occupancy"], where="mid", color=COLOURS[0], **CURVE)
    occupancy.set(
        xlabel="Packets in the system", ylabel="Probability", yscale="log", title=data["title"] or data["model"]
    )
    curves = data["delay_distribution"]
    milliseconds = [t * 1000 for t in curves["delay_s"]]
    shown = {"all": curves["share_longer"]["total"], **curves["share_longer"]["sources"]}
    for i, (name, share) in enumerate(shown.items()):
        delay.plot(milliseconds, share, color=COLOURS[i % len(COLOURS)], label=name, **CURVE)
    delay.set(xlabel="Delay, ms", ylabel="Fraction of packets with a longer delay", yscale="log", ylim=(5e-5, 1.1))
    delay.legend(frameon=False)
    for (name, fit), (dispersion, correlation) in zip(fits.items(), axes[1:], strict=True):
        scales = fit["dispersion"]
        dispersion.plot(scales["window_s"], scales["measured"], "o", color=COLOURS[0], label="measured")
        dispersion.plot(scales["window_s"], scales["fitted"], color=COLOURS[1], label="fitted", **CURVE)
        dispersion.set(xlabel="Window, s", ylabel="Index of dispersion", xscale="log", yscale="log", title=name)
        dispersion.legend(frameon=False)
        lags = fit["autocorrelation"]
        correlation.plot(lags["lag_s"], lags["measured"], "o", color=COLOURS[0], label="measured")
        correlation.plot(lags["lag_s"], lags["fitted"], color=COLOURS[1], label="fitted", **CURVE)
        correlation.set(xlabel="Lag, s", ylabel=f"Autocorrelation, windows of {lags['window_s']:.3g} s", title=name)
        correlation.legend(frameon=False)
    return figure


def _without_stop(remaining: Callable[[float, int], None] | None) -> Callable[[float, int], bool] | None:
    """Adapt a callback that cannot stop the solution."""
    return None if remaining is None else lambda seconds, memory: remaining(seconds, memory) is None
