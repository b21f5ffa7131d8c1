"""Results as tables: columns for pandas, polars and Arrow, arrays for xarray, HTML for notebooks.

Optional packages, and numpy, are imported on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from aqumen._statistics import MARK, few
from aqumen.errors import optional

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr

    from aqumen._run import RunData

__all__: list[str] = []

COLUMNS = ["scenario", "engine", "aqm", "seed", "kind", "name", "window", "metric", "value"]


def metric_columns(results: Iterable[RunData]) -> dict[str, list[Any]]:
    """Return one row for each run, link or flow group, window and metric."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for result in results:
        for kind, key in (("link", "links"), ("flow group", "flows")):
            for name, windows in result.data[key].items():
                for window, metrics in windows.items():
                    for metric, value in metrics.items():
                        number = None if value is None else float(value)
                        run = (result.scenario, result.engine, result.spec, result.seed)
                        for column, cell in zip(COLUMNS, (*run, kind, name, window, metric, number), strict=True):
                            columns[column].append(cell)
    return columns


def to_pandas(columns: dict[str, list[Any]]) -> pd.DataFrame:
    """Convert columns to a pandas table."""
    pandas = optional("pandas", "pandas")
    frame: pd.DataFrame = pandas.DataFrame(columns).astype({"value": float})
    return frame


def to_polars(columns: dict[str, list[Any]]) -> pl.DataFrame:
    """Convert columns to a polars table."""
    polars = optional("polars", "polars")
    frame: pl.DataFrame = polars.DataFrame(columns, schema_overrides={"value": polars.Float64})
    return frame


def to_arrow(columns: dict[str, list[Any]]) -> pa.Table:
    """Convert columns to an Arrow table."""
    arrow = optional("pyarrow", "arrow")
    values = arrow.array(columns["value"], arrow.float64())
    return arrow.table({**columns, "value": values})


def series_dataset(result: RunData) -> xr.Dataset:
    """Return queue length and probability of a run: link x time."""
    import numpy as np

    xarray = optional("xarray", "xarray")
    every = [result.series(link) for link in result.links]
    dimensions = ("link", "time")
    queue, probability = (np.stack([getattr(one, key) for one in every]) for key in ("queue_pkts", "probability"))
    dataset: xr.Dataset = xarray.Dataset(
        {
            "queue_pkts": (dimensions, queue, {"long_name": "queue length", "units": "packets"}),
            "probability": (dimensions, probability, {"long_name": "marking probability"}),
        },
        coords={
            "aqm": result.label,
            "seed": result.seed,
            "link": result.links,
            "time": ("time", every[0].t_s, {"units": "s"}),
        },
        attrs=_attributes([result]),
    )
    return dataset


def metrics_dataset(results: Sequence[RunData]) -> xr.Dataset:
    """Return all metrics of all runs: aqm x seed x link x window, and aqm x seed x group x window; NaN if undefined."""
    import numpy as np

    xarray = optional("xarray", "xarray")
    aqms, seeds = list(dict.fromkeys(result.label for result in results)), sorted({result.seed for result in results})
    links = results[0].links
    windows, groups = list(results[0].windows), results[0].flows
    variables = {}
    for axis, names, key in (("link", links, "links"), ("group", groups, "flows")):
        if not names:
            continue
        for metric in results[0].data[key][names[0]][windows[0]]:
            values = np.full((len(aqms), len(seeds), len(names), len(windows)), np.nan)
            for result in results:
                for j, name in enumerate(names):
                    for k, window in enumerate(windows):
                        value = result.data[key][name][window][metric]
                        if value is not None:
                            values[aqms.index(result.label), seeds.index(result.seed), j, k] = value
            variables[metric] = (("aqm", "seed", axis, "window"), values)
    dataset: xr.Dataset = xarray.Dataset(
        variables,
        coords={"aqm": aqms, "seed": seeds, "link": links, "window": windows, "group": groups},
        attrs=_attributes(results),
    )
    return dataset


def _attributes(results: Sequence[RunData]) -> dict[str, str]:
    """Return the scenario's name and the engines."""
    return {"scenario": results[0].scenario, "engine": ", ".join(dict.fromkeys(result.engine for result in results))}


LINK_HEADS = (
    ("utilisation", "%"),
    ("sojourn", "ms"),
    ("p99", "ms"),
    ("dropped", "%"),
    ("marked", "%"),
    ("queue", "pkt"),
    ("QACD", "pkt"),
)
"""Titles and units of the columns of `link_cells`."""


def link_cells(metrics: Mapping[str, float | None]) -> list[str]:
    """Format the most important metrics of a link."""
    sojourn, p99 = (
        None if seconds is None else seconds * 1000
        for seconds in (metrics["sojourn_mean_s"], metrics.get("sojourn_p99_s"))
    )
    early, overflow = metrics["early_drop_ratio"], metrics["overflow_drop_ratio"]
    return [
        percent(metrics["utilization"]),
        number(sojourn, 1),
        number(p99, 1),
        percent(None if early is None and overflow is None else (early or 0.0) + (overflow or 0.0)),
        percent(metrics["mark_ratio"]),
        number(metrics["queue_mean_pkts"], 1),
        number(metrics["qacd_pkts"], 1),
    ]


def number(value: float | None, digits: int) -> str:
    """Format a number with fixed decimal places; a dash if undefined."""
    return "–" if value is None else f"{value:.{digits}f}"


def percent(share: float | None, digits: int = 2) -> str:
    """Format a fraction in percent; a dash if undefined."""
    return number(None if share is None else share * 100, digits)


def spread(summary: Mapping[str, Any], factor: float, digits: int) -> str:
    """Format a mean with its 95 % confidence interval; a dash if undefined. Means of few events are marked.

    Args:
        summary: Summary of a metric over several runs.
        factor: Factor from the metric to the unit of the table.
        digits: Decimal places.
    """
    mean, ci95 = summary["mean"], summary.get("ci95")
    if mean is None or not summary["n"]:
        return number(None, digits)
    plain, mark = number(mean * factor, digits), MARK if few(summary) else ""
    return plain + around(mean, ci95, lambda width: number(width * factor, digits)) + mark


def around(mean: float, ci95: Sequence[float] | None, write: Callable[[float], str]) -> str:
    """Format the interval of a mean: ± half-width, or the distances below and above; empty without an interval.

    Args:
        mean: Mean of a metric over the runs.
        ci95: Ends of the interval.
        write: Formats a distance.
    """
    if ci95 is None:
        return ""
    below, above = (write(abs(end - mean)) for end in ci95)
    return f" ± {below}" if below == above else f" −{below}/+{above}"


def parameter(value: float | bool | str) -> str:
    """Format a parameter's value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).lower()
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def parameters(values: Mapping[str, float | bool | str]) -> str:
    """Format parameters in one line."""
    return ", ".join(f"{name} = {parameter(value)}" for name, value in values.items())


def html_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
