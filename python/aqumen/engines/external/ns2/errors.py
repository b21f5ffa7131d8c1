"""Errors of the ns-2 engine; each message is one line that says how to fix it."""

__all__ = ["Ns2Error", "Ns2Failed", "Ns2Missing", "Ns2Unsupported"]


class Ns2Error(RuntimeError):
    """Base of all errors of the ns-2 engine."""


class Ns2Unsupported(Ns2Error):
    """The scenario uses a feature that ns-2.35 lacks."""


class Ns2Missing(Ns2Error):
    """ns-2 is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "ns-2 is not installed: no program 'ns' on the PATH; on Debian or Ubuntu run `apt-get install ns2`, "
            "or set AQUMEN_NS2 to the path of `ns`"
        )


class Ns2Failed(Ns2Error):
    """ns-2 started but did not finish."""
