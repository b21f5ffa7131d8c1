"""Views of results: tables, plots, reports and exports."""
