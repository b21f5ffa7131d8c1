"""Everyday networks from a few numbers: a household, an office, a port of a switch, a subscriber of a cell, a
provider's link."""

from aqumen.situations.access import KERNEL_AQMS, SLOW
from aqumen.situations.metrics import FIGURES, WORDS
from aqumen.situations.networks import backbone, cell, datacenter, office, uplink
from aqumen.situations.study import AS_IT_IS, Answer, Situation, Study

__all__ = [
    "AS_IT_IS",
    "FIGURES",
    "KERNEL_AQMS",
    "SLOW",
    "WORDS",
    "Answer",
    "Situation",
    "Study",
    "backbone",
    "cell",
    "datacenter",
    "office",
    "uplink",
]
