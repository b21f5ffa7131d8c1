"""Result of one run, with its tables and plots."""

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
        """All metrics as columns: one row per link or flow group, window and metric."""
        return tables.metric_columns([self])

    def to_pandas(self) -> pd.DataFrame:
        """All metrics as a pandas table, one row each. Needs the extra `pandas`."""
        return tables.to_pandas(self.metrics())

    def to_polars(self) -> pl.DataFrame:
        """All metrics as a polars table, one row each. Needs the extra `polars`."""
        return tables.to_polars(self.metrics())

    def to_arrow(self) -> pa.Table:
        """All metrics as an Arrow table, one row each. Needs the extra `arrow`."""
        return tables.to_arrow(self.metrics())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand all metrics to any library that reads Arrow streams. Needs the extra `arrow`.

        Args:
            requested_schema: The schema that the reader would like, as an Arrow capsule.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_xarray(self) -> xr.Dataset:
        """Queue and probability over time, by link. Needs the extra `xarray`."""
        return tables.series_dataset(self)

    def plot(self, link: str | None = None) -> Figure:
        """Draw queue length and probability over time. Needs the extra `plot`.

        Args:
            link: The link; without one the first recorded.
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
