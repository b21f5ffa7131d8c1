"""Result of one run: metrics, time series and distributions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from aqumen._run import RunData
from aqumen.view import tables
from aqumen.view.plot import plot_result

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Result"]


class Result(RunData):
    """Result of one run of one AQM with one seed.

    The metrics are defined in the documentation, page "The result".
    """

    def metrics(self) -> dict[str, list[Any]]:
        """Return all metrics as columns: one row for each link or flow group, window and metric."""
        return tables.metric_columns([self])

    def to_pandas(self) -> pd.DataFrame:
        """Return all metrics as a pandas table, one row each. Needs the extra `pandas`."""
        return tables.to_pandas(self.metrics())

    def to_polars(self) -> pl.DataFrame:
        """Return all metrics as a polars table, one row each. Needs the extra `polars`."""
        return tables.to_polars(self.metrics())

    def to_arrow(self) -> pa.Table:
        """Return all metrics as an Arrow table, one row each. Needs the extra `arrow`."""
        return tables.to_arrow(self.metrics())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all metrics as an Arrow stream. Needs the extra `arrow`.

        Args:
            requested_schema: Schema preferred by the reader, as an Arrow capsule.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_xarray(self) -> xr.Dataset:
        """Return queue length and probability over time, by link. Needs the extra `xarray`."""
        return tables.series_dataset(self)

    def plot(self, link: str | None = None) -> Figure:
        """Plot queue length and probability over time. Needs the extra `plot`.

        Args:
            link: Name of the link; default: the first recorded one.
        """
        return plot_result(self, link)

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.spec)}</b> on {escape(self.scenario)}, seed {self.seed}</p>" + tables.html_table(
            ["link", "window", *(f"{title}, {unit}" for title, unit in tables.LINK_HEADS)],
            [
                [link, window, *tables.link_cells(metrics)]
                for link, windows in self.data["links"].items()
                for window, metrics in windows.items()
            ],
        )
