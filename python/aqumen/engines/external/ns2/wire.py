"""Losses on the wire in ns-2.35: an `ErrorModel` after the delay of a link, applied to arriving packets.

ns-2's `insert-linkloss` puts the model before the transmitter, where a lost packet takes a random part of its
transmission time at 2 Mbit/s. Here packets are transmitted before they are lost.
"""

from collections.abc import Mapping
from typing import Any

from aqumen.engines.external import wire
from aqumen.engines.external.wire import WireLoss

from .errors import Ns2Unsupported

__all__ = ["PROCEDURES", "read_wire", "wire_lines"]


def read_wire(link: Mapping[str, Any]) -> WireLoss:
    """Read the losses of a link of the plan; raise `Ns2Unsupported` for other models."""
    loss = wire.read_wire(link, Ns2Unsupported, "ns-2")
    if loss.times is not None and loss.times[2:] != (0.0, 1.0):
        raise Ns2Unsupported(
            f"link '{link['name']}': with timed states ns-2 loses every packet in the bad state and none in the good "
            f"one, not {loss.times[3]:g} and {loss.times[2]:g}"
        )
    return loss


def wire_lines(number: int, loss: WireLoss) -> list[str]:
    """Return the Tcl of a link's losses. Bursts come first, since every packet advances their state."""
    lines = []
    if loss.random > 0.0:
        lines.append(f"lose {number} [random_losses pkt {loss.random!r}]")
    if loss.bit_errors > 0.0:
        # ns-2's unit is an erroneous byte.
        lines.append(f"lose {number} [random_losses byte {1.0 - (1.0 - loss.bit_errors) ** 8!r}]")
    if loss.chain is not None:
        lines.append(f"lose {number} [chained_losses {' '.join(map(repr, loss.chain))}]")
    if loss.times is not None:
        lines.append(f"lose {number} [timed_losses {' '.join(map(repr, loss.times[:2]))}]")
    return lines


PROCEDURES = r"""
proc random_losses {unit rate} {
    set model [new ErrorModel]
    $model unit $unit
    $model set rate_ $rate
    $model ranvar [new RandomVariable/Uniform]
    return $model
}

# Each packet advances the state, then is lost with the state's probability.
proc chained_losses {to_bad to_good good bad} {
    set states [list [random_losses pkt $good] [random_losses pkt $bad]]
    set moves [list [list [expr {1 - $to_bad}] $to_bad] [list $to_good [expr {1 - $to_good}]]]
    return [new ErrorModel/MultiState $states {0 0} $moves pkt pkt 2 [lindex $states 0]]
}

proc timed_losses {mean_good mean_bad} {
    foreach mean [list $mean_good $mean_bad] {
        set time [new RandomVariable/Exponential]
        $time set avg_ $mean
        lappend times $time
    }
    return [new ErrorModel/TwoState [lindex $times 0] [lindex $times 1] time]
}

# The last model is applied first. Losses are counted; the queue does not see them.
proc lose {i model} {
    global ns link lost
    set wire [$link($i) link]
    $model target [$wire target]
    $wire target $model
    if {![info exists lost($i)]} { set lost($i) [new QueueMonitor/ED] }
    set snoop [new SnoopQueue/Drop]
    $snoop set-monitor $lost($i)
    $snoop target [$ns set nullAgent_]
    $model drop-target $snoop
}
"""
