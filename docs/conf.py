# Sphinx reads the pages beside this file (MyST Markdown); `make docs` builds them.

import aqumen

project = "Aqumen"
author = copyright = "The Aqumen authors"
version = release = aqumen.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Aqumen {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
