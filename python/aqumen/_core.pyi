"""The compiled core of Aqumen; the package `aqumen` is its public face."""

def version() -> str:
    """The version of the compiled core, for instance `0.1.0`."""
