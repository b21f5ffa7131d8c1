"""Finite transfers and web sessions in ns-2.35, from requests that Aqumen draws before the run.

A closed-loop source executes its list step by step; each step waits for some time after the last transfer was
acknowledged. A source of a group assigns each transfer to the first idle flow. If the next transfer opens a connection,
the agents of the flow are reset when the current one ends.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aqumen.engines.external.plan import Link

from .errors import Ns2Unsupported
from .plan import Flow, Transport
from .requests import Requests

__all__ = ["PROCEDURES", "ServedRequests", "request_metrics", "source_lines"]


@dataclass(slots=True)
class ServedRequests:
    """Completed and refused requests of a run; times in seconds."""

    transfers: dict[int, list[tuple[float, int, float]]] = field(default_factory=dict)
    """Flow number to (request time, bytes, delivery time)."""
    pages: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """Flow number to (request time, delivery time)."""
    refused: dict[int, list[float]] = field(default_factory=dict)
    """Group number to times of transfers without an idle flow."""


def source_lines(
    numbers: range, flows: Sequence[Flow], requests: Requests, transport: Transport, connects: Sequence[str]
) -> list[str]:
    """Return the Tcl of a group's sources. `connects` has the arguments of each flow's `connect`."""
    lines = []
    syn = transport.header_bytes if transport.syn else 0
    payload = transport.packet_bytes - transport.header_bytes
    for number, flow, connect in zip(numbers, flows, connects, strict=True):
        if len(flow.on) != 1 or flow.on[0][1] is not None:
            raise Ns2Unsupported("ns-2 cannot stop a source of transfers")
        lines.append(f"serve {number} {syn} {connect}")
    first = numbers.start
    group = flows[0].group
    for number, source in zip(numbers, requests.sources, strict=False):
        asks = " ".join(
            f"{{{ask.wait_s!r} {ask.what} {-(-ask.size_bytes // payload)} {ask.size_bytes} {int(ask.fresh)}}}"
            for ask in source
        )
        lines.append(f"set asks({'g' if requests.shared else ''}{number}) {{{asks}}}")
    if requests.shared:
        for number, flow in zip(numbers, flows, strict=True):
            lines.append(f'$ns at {flow.on[0][0]!r} "rest {number} {first}"')
            lines.append(f"set pool({number}) {first}")
        lines.append(f"set group_of({first}) {group}")
        lines.append(f'$ns at {min(flow.on[0][0] for flow in flows)!r} "ask g{first}"')
    else:
        lines += [f'$ns at {flow.on[0][0]!r} "ask {number}"' for number, flow in zip(numbers, flows, strict=True)]
    return lines


Window = tuple[float, float]
"""Start and end, seconds."""
_SIZES = ((10_000, "fct_under_10kB"), (100_000, "fct_10kB_100kB"), (1_000_000, "fct_100kB_1MB"))
_LARGEST = "fct_over_1MB"


def request_metrics(
    served: ServedRequests, numbers: range, group: int, flows: Sequence[Flow], links: Sequence[Link], window: Window
) -> dict[str, Any]:
    """Return a group's metrics by the keys of `run --json`, for requests completed or refused in a window."""

    def within(at: float) -> bool:
        return window[0] <= at < window[1]

    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (*(name for _, name in _SIZES), _LARGEST)}
    pages = []
    for number in numbers:
        path = [links[k] for k in flows[number].path]
        delay, slowest = sum(link.delay_s for link in path), min(link.rates[0][1] for link in path)
        for asked, size, delivered in served.transfers.get(number, ()):
            if within(delivered):
                name = next((name for below, name in _SIZES if size < below), _LARGEST)
                times[name].append((delivered - asked, (delivered - asked) / (delay + 8.0 * size / slowest)))
        pages += [delivered - asked for asked, delivered in served.pages.get(number, ()) if within(delivered)]
    metrics: dict[str, Any] = {"refused": sum(1 for at in served.refused.get(group, ()) if within(at))}
    for name, of_class in times.items():
        metrics[f"{name}_count"] = len(of_class)
        metrics |= _statistics(name, (time for time, _ in of_class))
        metrics[f"{name}_slowdown"] = float(np.mean([slow for _, slow in of_class])) if of_class else None
    if pages:
        metrics["pages"] = len(pages)
        metrics |= _statistics("page_load", pages)
    return metrics


def _statistics(name: str, values: Iterable[float]) -> dict[str, float | None]:
    times = np.array(list(values))
    if not times.size:
        return {f"{name}_{what}_s": None for what in ("mean", "p50", "p95", "p99")}
    quantiles: dict[str, float | None] = {
        f"{name}_p{percent}_s": float(np.quantile(times, percent / 100, method="inverted_cdf"))
        for percent in (50, 95, 99)
    }
    return quantiles | {f"{name}_mean_s": float(times.mean())}


PROCEDURES = r"""
# Records the time of the last arrival.
Class Application/Watch -superclass Application
Application/Watch instproc recv {bytes} {
    global ns
    $self instvar at
    set at [$ns now]
}

# A flow with finite transfers. `syn`: bytes that a connection sends before its data.
proc serve {i syn from to sender receiver settings} {
    global tcp sink watch past syn_bytes first_window
    connect $i $from $to $sender $receiver $settings
    $tcp($i) proc done {} "global ns; \$ns at \[\$ns now\] {served $i}"
    set watch($i) [new Application/Watch]
    $watch($i) attach-agent $sink($i)
    $watch($i) start
    set past($i) {0 0 0 0}
    set syn_bytes($i) $syn
    set first_window($i) [$tcp($i) set windowInit_]
}

# The next connection reuses the agents, since creating new ones costs more than all their packets. `reset` stops the
# timers; packets in flight are ignored.
proc close_connection {i} {
    global tcp sink past first_window
    set past($i) [totals $i]
    $sink($i) set bytes_ 0
    # A lost SYN sets it to 1, which `reset` would keep.
    $tcp($i) set windowInit_ $first_window($i)
    $tcp($i) reset
    $sink($i) reset
}

# Totals over the connections of a flow: bytes delivered without SYNs, packets sent, retransmissions, time-outs.
proc totals {i} {
    global tcp sink past syn_bytes
    set bytes [expr {int([$sink($i) set bytes_])}]
    if {$bytes > 0} { incr bytes -$syn_bytes($i) }
    set now [list $bytes [$tcp($i) set ndatapack_] [$tcp($i) set nrexmitpack_] [$tcp($i) set nrexmit_]]
    foreach before $past($i) more $now { lappend sums [expr {$before + $more}] }
    return $sums
}

# Schedules the next step of a source: a flow's number, or g and the first flow of a group.
proc ask {source} {
    global ns asks at_ask
    set k [expr {[info exists at_ask($source)] ? $at_ask($source) : 0}]
    set at_ask($source) [expr {$k + 1}]
    if {$k >= [llength $asks($source)]} { return }
    set step [lindex $asks($source) $k]
    $ns at [expr {[$ns now] + [lindex $step 0]}] "carry_out $source [lrange $step 1 end]"
}

proc carry_out {source what packets bytes opens} {
    global ns page_at watch idle group_of
    if {$what eq "page"} {
        set page_at($source) [$ns now]
        ask $source
    } elseif {$what eq "read"} {
        puts "G $source $page_at($source) [$watch($source) set at]"
        ask $source
    } elseif {[string index $source 0] ne "g"} {
        transfer $source $packets $bytes
    } else {
        set first [string range $source 1 end]
        if {[llength $idle($first)]} {
            set i [lindex $idle($first) 0]
            set idle($first) [lrange $idle($first) 1 end]
            transfer $i $packets $bytes
        } else {
            puts "R $group_of($first) [$ns now]"
        }
        ask $source
    }
}

proc transfer {i packets bytes} {
    global ns tcp asked
    set asked($i) "[$ns now] $bytes"
    $tcp($i) advanceby $packets
}

proc served {i} {
    global watch asked pool
    puts "T $i $asked($i) [$watch($i) set at]"
    set source [expr {[info exists pool($i)] ? "g$pool($i)" : $i}]
    if {[opens_next $source]} { close_connection $i }
    if {[info exists pool($i)]} { rest $i $pool($i) } else { ask $i }
}

# Whether the next transfer of a source opens a connection. Flows that share a source agree.
proc opens_next {source} {
    global asks at_ask
    for {set k $at_ask($source)} {$k < [llength $asks($source)]} {incr k} {
        set step [lindex $asks($source) $k]
        if {[lindex $step 1] eq "transfer"} { return [lindex $step 4] }
    }
    return 0
}

# Marks a flow as idle; the idle flow with the lowest number is used first.
proc rest {i first} {
    global idle
    lappend idle($first) $i
    set idle($first) [lsort -integer $idle($first)]
}
"""
