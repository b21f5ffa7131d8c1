"""Errors of the ns-3 engine; each message is one line that says how to fix it."""

__all__ = ["Ns3Error", "Ns3Failed", "Ns3Missing", "Ns3Unsupported"]


class Ns3Error(RuntimeError):
    """Base of all errors of the ns-3 engine."""


class Ns3Unsupported(Ns3Error):
    """The scenario uses a feature that ns-3, or Aqumen's program for it, lacks."""


class Ns3Missing(Ns3Error):
    """ns-3 or a compiler is not installed."""


class Ns3Failed(Ns3Error):
    """The program could not be built, or did not finish."""
