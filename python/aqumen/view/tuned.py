"""Pages of a design, of a verification and of a tuned loop: tables and pictures in one HTML file."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen.errors import optional
from aqumen.view.plot import COLOURS, CURVE, GUIDE
from aqumen.view.report.template import render

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Section", "drawn", "page", "plot_steps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Section of a page."""

    title: str
    """Its heading."""
    text: str
    """A paragraph."""
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()
    """Tables: label, heads and rows."""
    pictures: Sequence[tuple[str, str]] = field(default_factory=tuple)
    """Pictures: label and SVG text."""


def page(title: str, headline: str, spec: str, sections: Sequence[Section], command: str) -> str:
    """Return a page as HTML text.

    Args:
        title: Heading and title of the window.
        headline: The answer in a sentence.
        spec: The recommended AQM, or an empty text.
        sections: Sections in order.
        command: Command or call that produced it.
    """
    css = files("aqumen.view.report").joinpath("plain.css").read_text(encoding="utf-8")
    return render(
        "aqumen.view", "tuned.html",
        title=title, headline=headline, spec=spec, sections=sections, command=command, css=css,
        version=_core.__version__,
    )  # fmt: skip


def drawn(figure: Figure) -> str:
    """Return a figure as SVG text, the same for equal figures.

    Args:
        figure: A matplotlib figure.
    """
    matplotlib = optional("matplotlib", "plot")
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "aqumen", "svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    # Several drawings of one page have ids of their own.
    mark = f"f{zlib.crc32(text.encode()):x}"
    text = re.sub(r'id="([^"]+)"', rf'id="{mark}-\1"', text[text.index("<svg") :])
    return re.sub(r'(url\(#|href="#)([^)"]+)', rf"\g<1>{mark}-\2", text)


def plot_steps(promised: Any, measured: Any, title: str) -> Figure:
    """Plot a promised step response and the measured one.

    Args:
        promised: Times (s) and queue deviation / step; `None` for an unstable loop.
        measured: Times, mean and half-width of the 95 % interval.
        title: Title of the figure.
    """
    optional("matplotlib", "plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = figure.subplots()
    t, mean, half = measured
    axes.fill_between(t, mean - half, mean + half, color=COLOURS[1], alpha=0.2, linewidth=0)
    axes.plot(t, mean, color=COLOURS[1], label="packets, 95 %", **CURVE)
    if promised is not None:
        axes.plot(*promised, color=COLOURS[0], label="promised", **CURVE)
    axes.axhline(1, linestyle=":", **GUIDE)
    axes.set(xlabel="Time, s", ylabel="Queue deviation / target step", title=title, xlim=(0, t[-1]))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
