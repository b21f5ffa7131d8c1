# Sphinx reads the pages beside this file (MyST Markdown) and runs the notebooks; `make docs` builds them.

import warnings

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import aqumen

project = "Aqumen"
author = copyright = "The Aqumen authors"
version = release = aqumen.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"
exclude_patterns = ["_build", "jupyter_execute"]
highlight_language = "text"
# In docstrings single backquotes stand around code.
default_role = "literal"

# The notebooks run on each build; an error or more than a minute in one cell fails the build.
nb_execution_mode = "force"
nb_execution_timeout = 60
nb_execution_raise_on_error = True
nb_merge_streams = True
warnings.filterwarnings("ignore", category=DeprecationWarning, module="nbclient")

html_theme = "furo"
html_title = f"Aqumen {release}"

# Output is not for copying, commands and code are.
copybutton_selector = "div:not(.output) > div.highlight pre"
copybutton_exclude = ".linenos, .gp, .go"

# Attributes of several classes share a name, such as `flows`.
suppress_warnings = ["ref.python"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"


def mathml(display):
    """Returns a visitor that writes a formula as MathML, which browsers show without scripts, fonts or a network.

    A formula on lines of its own scrolls where the page is narrower.
    """

    def visit(writer, node):
        formula = convert(node.astext(), display=display)
        writer.body.append(formula if display == "inline" else f'<div style="overflow-x: auto">{formula}</div>')
        raise SkipNode

    return visit


def setup(app):
    app.add_html_math_renderer("mathml", (mathml("inline"), None), (mathml("block"), None))
