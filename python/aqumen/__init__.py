"""Aqumen: a workbench for active queue management (AQM)."""

from aqumen._core import version as _version

__version__ = _version()

__all__ = ["__version__"]
