"""The ns-3 engine: builds our own ns-3 program, hands it a network, reads what happened at the queues."""

from .build import find_program
from .errors import Ns3Error, Ns3Failed, Ns3Missing, Ns3Unsupported
from .runner import run

__all__ = ["Ns3Error", "Ns3Failed", "Ns3Missing", "Ns3Unsupported", "find_program", "run"]
