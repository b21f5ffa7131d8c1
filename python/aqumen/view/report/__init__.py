"""The report of a comparison: one HTML file that needs no network."""

from aqumen.view.report.page import report_html

__all__ = ["report_html"]
