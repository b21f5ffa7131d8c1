"""What can go wrong with the ns-3 engine: each message is one line that says what to do about it."""

__all__ = ["Ns3Error", "Ns3Failed", "Ns3Missing", "Ns3Unsupported"]


class Ns3Error(RuntimeError):
    """Any failure of the ns-3 engine."""


class Ns3Unsupported(Ns3Error):
    """The scenario asks for something that ns-3, or our program for it, does not have."""


class Ns3Missing(Ns3Error):
    """No ns-3 on this machine, or nothing to build the program with."""


class Ns3Failed(Ns3Error):
    """The program was not built, or started and did not come to its end."""
