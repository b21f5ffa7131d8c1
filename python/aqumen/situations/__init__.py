"""Everyday networks from a few numbers: a household's line, a port of a switch, a subscriber of a cell."""

from aqumen.situations.study import (
    AS_IT_IS,
    FIGURES,
    KERNEL_AQMS,
    SLOW,
    WORDS,
    Answer,
    Situation,
    Study,
    cell,
    datacenter,
    uplink,
)

__all__ = [
    "AS_IT_IS",
    "FIGURES",
    "KERNEL_AQMS",
    "SLOW",
    "WORDS",
    "Answer",
    "Situation",
    "Study",
    "cell",
    "datacenter",
    "uplink",
]
