"""Engine `ns2`: writes a plan as Tcl, runs the installed `ns` (ns-2.35) and reads its results."""

from .errors import Ns2Error, Ns2Failed, Ns2Missing, Ns2Unsupported
from .runner import find_ns, run

__all__ = ["Ns2Error", "Ns2Failed", "Ns2Missing", "Ns2Unsupported", "find_ns", "run"]
