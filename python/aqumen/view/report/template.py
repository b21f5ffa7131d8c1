"""Pages from templates, by Jinja2: what is put in is escaped unless the template says that it is safe."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

__all__ = ["render"]

_loader = ChoiceLoader([PackageLoader("aqumen.view.report", "."), PackageLoader("aqumen.rfc7928", ".")])
_pages = Environment(loader=_loader, autoescape=True, undefined=StrictUndefined)


def _options(text: str) -> Markup:
    """Text in which a line does not end within an option such as `--rtt`."""
    return Markup(re.sub(r"--[a-z]+(?:-[a-z]+)*", r'<span class="opt">\g<0></span>', str(escape(text))))


_pages.filters["options"] = _options


def render(name: str, /, **values: Any) -> str:
    """A page.

    Args:
        name: The template, a file beside this one or in `rfc7928`.
        values: What it asks for.
    """
    return _pages.get_template(name).render(**values)
