"""HTML pages from Jinja2 templates; values are escaped unless a template marks them safe."""

from __future__ import annotations

import functools
import re
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

__all__ = ["render"]


def _options(text: str) -> Markup:
    """Escape text, and prevent line breaks within options such as `--rtt`."""
    return Markup(re.sub(r"--[a-z]+(?:-[a-z]+)*", r'<span class="opt">\g<0></span>', str(escape(text))))


@functools.cache
def _pages(package: str) -> Environment:
    pages = Environment(loader=PackageLoader(package, "."), autoescape=True, undefined=StrictUndefined)
    pages.filters["options"] = _options
    return pages


def render(package: str, name: str, /, **values: Any) -> str:
    """Render a page.

    Args:
        package: The package that has the template.
        name: The template's file.
        values: Variables of the template.
    """
    return _pages(package).get_template(name).render(**values)
