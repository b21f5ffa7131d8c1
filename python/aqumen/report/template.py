"""Pages from templates, by Jinja2: what is put in is escaped unless the template says that it is safe."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["render"]

_pages = Environment(loader=PackageLoader("aqumen.report", "."), autoescape=True, undefined=StrictUndefined)


def render(name: str, /, **values: Any) -> str:
    """A page.

    Args:
        name: The template, a file beside this one.
        values: What it asks for.
    """
    return _pages.get_template(name).render(**values)
