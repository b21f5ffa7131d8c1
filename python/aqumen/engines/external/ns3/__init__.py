"""Engine `ns3`: builds Aqumen's ns-3 program, passes it a network and reads its queue traces."""

from .build import find_program
from .errors import Ns3Error, Ns3Failed, Ns3Missing, Ns3Unsupported
from .runner import run

__all__ = ["Ns3Error", "Ns3Failed", "Ns3Missing", "Ns3Unsupported", "find_program", "run"]
