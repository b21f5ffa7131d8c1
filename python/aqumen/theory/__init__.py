"""What can be said without simulating a packet: design, margins, stability.

from aqumen import theory

design = theory.design("pi", capacity="30Mbit", flows=60, r0="246ms")
design.gains["a"], design.margins["phase_margin_deg"]
design.plot("nyquist")
"""

from aqumen.theory.design import Design, design

__all__ = ["Design", "design"]
