"""Page of a study: curves, heat maps and phase diagrams of any metric over its factors, and what was run.

The page computes what it draws from the mean, the standard deviation and the number of runs of each case, which are
embedded: 5 bytes for each case and metric.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from aqumen import _core
from aqumen._files import json_text
from aqumen.errors import OutputError
from aqumen.study.factors import Value
from aqumen.study.rows import COST, Rows
from aqumen.study.study import Status
from aqumen.study.study import status as states
from aqumen.view.export import bibtex
from aqumen.view.report.template import render

__all__ = ["PAGE_MAX", "direction", "study_html"]

PAGE_MAX = 2_900_000
"""Largest page, bytes: metrics beyond are left out and named."""
TEXT_MAX = 200_000
"""Largest text of scenarios on the page, bytes."""
LEVELS_MAX = 12
"""Most levels of a factor that are listed."""
ABSENT = 65535
"""Level of a case that does not have a factor."""

MORE = r"utilization|goodput_bps|throughput_bps|jain_fairness|fairness_mean|mos|r_factor|video_bitrate_mean_bps|pages"
LESS = (
    r"sojourn_\w+_s|delay_\w+_s|jitter_mean_s|\w*drop_ratio|\w+_dropped_pkts|loss_ratio|frame_loss_ratio|"
    r"retransmitted_ratio|timeouts|refused|page_load_\w+_s|fct_\w+_(mean_s|p\d+_s|slowdown)|startup_\w+_s|"
    r"video_(startup_mean_s|stalls|stalled_ratio)|qacd_pkts|qacd_sampled_pkts|queue_i[as]e_\w+|queue_std_pkts|"
    r"settling_s|overshoot_pkts|convergence_s"
)


def direction(metric: str) -> bool | None:
    """Return whether more of a metric is better; `None` where that depends on what is asked, as for a queue's length.

    Args:
        metric: Name of a column, such as `queue_mean_pkts` or `web.page_load_mean_s@all`.
    """
    key = _key(metric)
    return True if re.fullmatch(MORE, key) else False if re.fullmatch(LESS, key) else None


def study_html(rows: Rows, metrics: Sequence[str] = ()) -> str:
    """Return the page as HTML text.

    Args:
        rows: Rows of the study.
        metrics: Metrics to have first; the others follow as far as the page stays below `PAGE_MAX`.

    Raises:
        OutputError: No run is finished.
        ScenarioError: There is no such metric.
    """
    columns = rows.columns()
    if not len(rows):
        raise OutputError(f"{rows.folder}: no run is finished; `aqumen study run` makes them")
    starts = _starts(rows, columns)
    aqms = columns["aqm"][starts].tolist()
    data: dict[str, Any] = {
        "aqms": list(dict.fromkeys(aqms)),
        "dims": [_dim(name, columns[name][starts].tolist()) for name in rows.labels if name != "aqm"],
        "cases": len(starts),
        "aqm": _packed16(_codes(aqms)),
        "n": _packed16(np.diff([*starts, len(rows)])),
        "student": [[f, round(_core.student_quantile(0.975, f), 5)] for f in _FREEDOM],
    }
    folder = files("aqumen.view.report")
    parts = {
        "css": (folder / "page.css").read_text("utf-8"),
        "uplot_css": (folder / "vendor" / "uPlot.min.css").read_text("utf-8"),
        "uplot_js": (folder / "vendor" / "uPlot.iife.min.js").read_text("utf-8"),
        "js": (folder / "panels.js").read_text("utf-8") + (files("aqumen.study") / "page.js").read_text("utf-8"),
    }
    scenarios = {name: text for name, (text, _) in rows.bases.texts.items()}
    if sum(map(len, scenarios.values())) > TEXT_MAX:
        scenarios = {}
    fixed = sum(map(len, parts.values())) + sum(map(len, scenarios.values())) + len(json_text(data)) + 30_000
    data["metrics"], constant, left = _metrics(rows, columns, starts, metrics, PAGE_MAX - fixed)
    found = list(states(rows))
    return render(
        "aqumen.study",
        "page.html",
        title=rows.title or rows.folder.name,
        runs=len(rows),
        facts=_facts(rows, found),
        ran=_ran(rows),
        missing=_missing(rows, found),
        constant=constant,
        left=left,
        stop=rows.stop,
        command=rows.command,
        studio=rows.engine == "packet" and len(rows) > 0,
        scenarios=scenarios,
        texts=len(rows.bases.texts),
        version=_core.__version__,
        bibtex=bibtex(_core.__version__),
        data=json_text(data).replace("<", "\\u003c"),
        **parts,
    )


_FREEDOM = (*(k / 4 for k in range(4, 40)), *range(10, 31), 40, 60, 120, 100_000)
"""Degrees of freedom at which the page has quantiles of Student's t."""


def _starts(rows: Rows, columns: dict[str, Any]) -> Any:
    """Return the first row of each case: rows are in order of cases, and a case begins where a label changes."""
    codes = np.array([_codes(columns[name].tolist()) for name in rows.labels])
    return np.flatnonzero(np.concatenate([[True], (np.diff(codes, axis=1) != 0).any(axis=0)]))


def _dim(name: str, given: Sequence[Any]) -> dict[str, Any]:
    """Return a factor: levels as text, as numbers if they are quantities of one kind, and the level of each case."""
    values = [None if value is None or value != value else value for value in given]
    known = [value for value in dict.fromkeys(values) if value is not None]
    numbers, unit = _quantities([str(value) for value in known])
    if numbers is not None:
        order = sorted(range(len(known)), key=numbers.__getitem__)
        known, numbers = [known[i] for i in order], [numbers[i] for i in order]
    place: dict[Value | None, int] = {value: i for i, value in enumerate(known)}
    return {
        "name": name,
        "labels": [f"{value:g}" if isinstance(value, float) else str(value) for value in known],
        "values": numbers,
        "unit": unit,
        "at": _packed16(np.array([place.get(value, ABSENT) for value in values])),
    }


_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
_UNITS = {"s": "s", "bit": "bit/s", "B": "B", "pkt": "packets", "%": "%", "": ""}


def _quantities(texts: Sequence[str]) -> tuple[list[float] | None, str]:
    """Return numbers and their common unit; `None` if a text is no quantity or units differ."""
    numbers, units = [], set()
    for text in texts:
        found = re.fullmatch(r"\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*([numkMG]?)(s|bit|B|pkt|%|)\s*", text)
        if found is None or (found[2] and not found[3]):
            return None, ""
        try:
            numbers.append(float(found[1]) * _PREFIXES[found[2]])
        except ValueError:
            return None, ""
        units.add(_UNITS[found[3]])
    if len(units) != 1:
        return None, ""
    (unit,) = units
    return numbers, unit


def _metrics(
    rows: Rows, columns: dict[str, Any], starts: Any, wanted: Sequence[str], room: int
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the metrics that fit, those that are constant, and those that do not fit."""
    stop = [] if rows.stop is None else [str(rows.stop["metric"])]
    skipped = {*rows.labels, "seed", "bits", *COST}
    others = [name for name in columns if name not in skipped and "@" not in name]
    counts = np.diff([*starts, len(rows)])
    found, constant, left = [], [], []
    for name in dict.fromkeys([*wanted, *stop, *others]):
        values = rows.metric(name) if name in wanted else columns.get(name)
        if values is None or np.isnan(values).all():
            continue
        known = values[~np.isnan(values)]
        if name not in wanted and len(known) == len(values) and known.min() == known.max():
            constant.append(f"{name} = {known[0]:g}")
            continue
        metric = _metric(name, values, starts, counts)
        room -= len(metric["data"]) + len(metric.get("n", "")) + 150
        if room < 0 and name not in wanted:
            left.append(name)
            continue
        found.append(metric)
    return found, constant, left


def _metric(name: str, values: Any, starts: Any, counts: Any) -> dict[str, Any]:
    """Return a metric: mean (24 bits) and standard deviation (16 bits) of each case, planes of bytes in base 64."""
    known = ~np.isnan(values)
    n = np.add.reduceat(known.astype(int), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.add.reduceat(np.where(known, values, 0.0), starts) / n
        off = np.where(known, values - np.repeat(mean, counts), 0.0)
        std = np.sqrt(np.add.reduceat(off * off, starts) / (n - 1))
    # The first bytes of a float of 32 bits: 16 significant bits of a mean, 8 of a deviation.
    parts = [_rounded(mean, 8), _rounded(np.where(n > 1, std, np.nan), 16)]
    planes = [parts[0][:, 0], parts[0][:, 1], parts[0][:, 2], parts[1][:, 0], parts[1][:, 1]]
    low, high = _core.range_of(_key(name))
    return {
        "name": name,
        "more": direction(name),
        "range": [low if np.isfinite(low) else None, high if np.isfinite(high) else None],
        "data": base64.b64encode(np.concatenate(planes).tobytes()).decode(),
        **({} if (n == counts).all() else {"n": _packed16(n)}),
    }


def _rounded(values: Any, bits: int) -> Any:
    """Return the bytes of floats, highest first, rounded to nearest where the last `bits` are cut."""
    whole = np.ascontiguousarray(values, dtype="<f4").view("<u4").astype(np.uint64)
    whole = np.where(np.isnan(values), 0x7FC00000, whole + (1 << (bits - 1)))
    return whole.astype(">u4").view(np.uint8).reshape(-1, 4)


def _packed16(values: Any) -> str:
    return base64.b64encode(np.asarray(values).clip(0, ABSENT).astype("<u2").tobytes()).decode()


def _codes(values: Sequence[Any]) -> Any:
    place: dict[Any, int] = {}
    # NaN differs from itself.
    return np.array([place.setdefault(None if value != value else value, len(place)) for value in values])


def _key(metric: str) -> str:
    return metric.partition("@")[0].rpartition(":")[2].rpartition(".")[2]


def _facts(rows: Rows, found: Sequence[Status]) -> list[str]:
    closed = sum(each.closed for each in found)
    cost = float(rows.columns()["cpu_s"].sum())
    facts = [f"{len(rows)} runs", f"{closed} of {len(found)} cases complete", f"engine {rows.engine}"]
    return [*facts, f"{cost:.3g} s of CPU time"] if cost == cost else facts


def _ran(rows: Rows) -> list[tuple[str, int, str]]:
    """Return what was run: name, number of levels, levels."""
    levels: dict[str, dict[Value, None]] = {name: {} for name in rows.labels}
    for case in rows.cases:
        for name, value in case.labels.items():
            levels[name][value] = None
    table = [(name, len(values), _listed([str(value) for value in values])) for name, values in levels.items()]
    seeds = rows.seeds
    first = f"{seeds[0]} to {seeds[-1]}" if seeds == list(range(seeds[0], seeds[-1] + 1)) else _listed(seeds)
    return [*table, ("seeds", len(seeds), first if rows.stop is None else f"{first}, as many as the rule wants")]


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:LEVELS_MAX]))
    return shown if len(values) <= LEVELS_MAX else f"{shown}, ... to {values[-1]}"


def _missing(rows: Rows, found: Sequence[Status]) -> list[str]:
    """Return sentences on what the page lacks."""
    left = sum(max(each.wanted - each.seeds, 0) for each in found)
    bare = sum(each.seeds == 0 for each in found)
    missed = sum(each.closed and each.reached is False for each in found)
    told = []
    if left:
        cases = f", {bare} cases have none" if bare else ""
        told.append(f"{left} runs are missing{cases}; the command below makes them.")
    if missed:
        told.append(f"The stopping rule was not reached in {missed} cases.")
    if rows.store.damaged:
        told.append(f"{len(rows.store.damaged)} damaged records of the store are left out.")
    return told
