"""The compiled core of Aqumen; the package `aqumen` is its public face."""

__all__ = ["version"]

def version() -> str:
    """The version of the compiled core, for instance `0.1.0`."""
