"""Views of results: tables, figures, reports, files for other programs."""
