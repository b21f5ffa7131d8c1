"""Translates a plan to a Tcl script for ns-2.35: nodes, simplex links, manual routes, agent and sink of each flow.

The script prints a snapshot of counters at every window boundary (`S time`, then `L` lines for recorded links and `F`
lines for flows), and `P` lines with queue length and probability at every sampling interval. It writes a packet trace
for each recorded link into the working directory. All AQM parameters and all configurable TCP parameters are set
explicitly.
"""

import hashlib
from collections.abc import Callable
from typing import Any

from aqumen.engines.external.plan import Aqm, Link
from aqumen.errors import listed

from . import transfers, wire
from .errors import Ns2Unsupported
from .others import Sctp, sctp_sets, udp_application
from .plan import Flow, Group, Plan, Transport

__all__ = ["ANSWERS", "script", "trace_file"]

ANSWERS = "answers"
"""Output file of scripts whose standard output is used by an agent."""


def trace_file(link: int) -> str:
    """Return the file name of a recorded link's packet trace."""
    return f"link{link}.tr"


def script(plan: Plan, *, timing: bool = False, count: bool = False) -> str:
    """Return the Tcl script of a run.

    `timing` disables traces and monitors, and reads the CPU time at start and end. `count`, with `timing`, keeps the
    packet counters of the recorded links.
    """
    recorded = [i for i, link in enumerate(plan.links) if link.record and not timing]
    counted = [i for i, link in enumerate(plan.links) if link.record] if count else []
    lines = [f"# {plan.scenario}, seed {plan.seed}: written by aqumen for ns-2.35"]
    lines += [_PROCEDURES, wire.PROCEDURES, transfers.PROCEDURES]
    if any(
        isinstance(group.transport, Transport) and group.transport.congestion == "cubic-2.1" for group in plan.groups
    ):
        lines.append("prepare_cubic {" + ANSWERS + "}")
    lines += [f"ns-random {_ns_seed(plan.seed)}", f"make_nodes {len(plan.nodes)}", f"set flows {len(plan.flows)}"]
    if timing:
        # Scheduled first, hence executed first.
        lines.append('$ns at 0 "meter"')
    for i, link in enumerate(plan.links):
        lines += _link(i, link)
    lines += [f"route {at} {to} {link}" for at, to, link in plan.routes()]
    for i, flow in enumerate(plan.flows):
        lines += _flow(plan, i, flow, counted=bool(recorded))
    for group in plan.groups:
        lines += _sources(plan, group)
    for i in recorded:
        lines.append(f"record {i} {{{trace_file(i)}}} {int(plan.links[i].aqm.name in _EARLY_DROP_TARGET)}")
    for i in counted:
        lines.append(f"count {i}")
    if recorded:
        for time in sorted({t for window in plan.windows.values() for t in window} - {0.0, plan.duration_s}):
            lines.append(f'$ns at {time!r} "snapshot"')
        for i in recorded:
            variable = _PROBABILITY.get(plan.links[i].aqm.name, "")
            lines.append(f'$ns at 0 "sample {i} {{{variable}}} {plan.sample_interval_s!r} 0"')
    lines += [f'$ns at {plan.duration_s!r} "finish"', "$ns run"]
    return "\n".join(lines) + "\n"


def _flow(plan: Plan, number: int, flow: Flow, counted: bool) -> list[str]:
    """Return the Tcl of a flow's agents and ON periods; `counted`: snapshots need its deliveries."""
    transport = plan.groups[flow.group].transport
    source, sink = plan.links[flow.path[0]].tail, plan.links[flow.path[-1]].head
    periods = [(start, stop) for start, stop in flow.on if start < plan.duration_s]
    stops = [stop for _, stop in periods if stop is not None and stop < plan.duration_s]
    if isinstance(transport, Transport):
        if plan.groups[flow.group].requests is not None:
            return []
        cubic = transport.congestion == "cubic-2.1"
        agents = f"{{{_LINUX if cubic else _SENDERS[transport.variant]}}} {{{_sink(transport)}}}"
        lines = [f"connect {number} {source} {sink} {agents} {{{_sets(transport)}}}"]
        if cubic:
            threshold = transport.initial_threshold or 0
            lines.append(f"use_cubic {number} {float(transport.rto_granularity_s)!r} {threshold}")
        amount = -1 if flow.transfer_bytes is None else flow.transfer_bytes
        for start, stop in periods:
            lines.append(f'$ns at {start!r} "$tcp({number}) send {amount}"')
            if stop in stops:
                lines.append(f'$ns at {stop!r} "stop {number}"')
        return lines
    if flow.transfer_bytes is not None:
        raise Ns2Unsupported(f"group '{plan.groups[flow.group].name}': ns-2 runs finite transfers only over TCP")
    if isinstance(transport, Sctp):
        if stops or len(periods) > 1:
            raise Ns2Unsupported(f"group '{plan.groups[flow.group].name}': ns-2 cannot stop an SCTP association")
        sets = " ".join(f"{key} {_value(value)}" for key, value in sctp_sets(transport).items())
        lines = [f"connect_sctp {number} {source} {sink} {{{sets}}}"]
        if counted:
            lines.append(f"count_sctp {number} {flow.path[-1]}")
    else:
        kind, values = udp_application(transport)
        sets = " ".join(f"{key} {_value(value)}" for key, value in values.items())
        lines = [f"connect_udp {number} {source} {sink} {transport.packet_bytes} {kind} {{{sets}}}"]
    for start, stop in periods:
        # An association of ns-2 sends a heartbeat before data and waits for the reply: one round trip.
        early = plan.base_rtt_s(flow) if isinstance(transport, Sctp) else 0.0
        lines.append(f'$ns at {max(start - early, 0.0)!r} "$application({number}) start"')
        if stop in stops:
            lines.append(f'$ns at {stop!r} "$application({number}) stop"')
    return lines


def _sources(plan: Plan, group: Group) -> list[str]:
    """Return the Tcl of a group's request sources and of its flows' agents."""
    transport = group.transport
    if group.requests is None or not isinstance(transport, Transport):
        return []
    if transport.congestion == "cubic":
        raise Ns2Unsupported(f"group '{group.name}': ns-2 runs only bulk traffic over CUBIC")
    flows = plan.flows[group.first : group.last]
    agents = f"{_SENDERS[transport.variant]} {_sink(transport)} {{{_sets(transport)}}}"
    ends = [f"{plan.links[flow.path[0]].tail} {plan.links[flow.path[-1]].head}" for flow in flows]
    numbers = range(group.first, group.last)
    connects = [f"{both} {agents}" for both in ends]
    return transfers.source_lines(numbers, flows, group.requests, transport, connects)


def _ns_seed(seed: int) -> int:
    """Return a seed for ns-2, 1 to 2^31 - 2; a hash avoids the correlated streams of adjacent seeds."""
    digest = hashlib.sha256(f"aqumen ns2 {seed}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % (2**31 - 2) + 1


def _link(number: int, link: Link) -> list[str]:
    name, limit, settings = _AQMS[link.aqm.name](link) if link.aqm.name in _AQMS else _unknown(link.aqm)
    sets = " ".join(f"{key} {_value(value)}" for key, value in settings.items())
    lines = [
        f"make_link {number} {link.tail} {link.head} {link.rates[0][1]!r} {link.delay_s!r} {name} {limit} {{{sets}}}"
    ]
    lines += wire.wire_lines(number, link.wire_loss)
    lines += [f'$ns at {time!r} "[$link({number}) link] set bandwidth_ {rate!r}"' for time, rate in link.rates[1:]]
    return lines


def _value(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _unknown(aqm: Aqm) -> tuple[str, int, dict[str, Any]]:
    raise Ns2Unsupported(f"ns-2 has no AQM '{aqm.name}'; it has {listed(sorted(_AQMS))}")


class _Params:
    """Parameters of an AQM. Raises `Ns2Unsupported` for those that ns-2 lacks."""

    def __init__(self, aqm: Aqm) -> None:
        self._aqm = aqm
        self._left = dict(aqm.params)

    def take(self, name: str, default: Any = None) -> Any:
        value = self._left.pop(name, None)
        if value is None and default is None:
            raise Ns2Unsupported(f"AQM '{self._aqm.name}' for ns-2 needs the parameter '{name}'")
        return default if value is None else value

    def fixed(self, name: str, value: Any) -> None:
        """Check a parameter that is built into ns-2."""
        given = self._left.pop(name, None)
        if given is not None and given != value:
            raise Ns2Unsupported(f"AQM '{self._aqm.name}' in ns-2 has {name} = {value} built in, not {given}")

    def superseded(self, *names: str) -> None:
        """Drop design rules, whose resulting values are among the parameters."""
        for name in names:
            self._left.pop(name, None)

    def done(self) -> None:
        for name, value in self._left.items():
            if value is not None:
                raise Ns2Unsupported(f"AQM '{self._aqm.name}' in ns-2 has no parameter '{name}'")


def _below(link: Link, params: _Params) -> int:
    """Return the limit of a queue that drops the packet reaching it; one more than the buffer without `ns2_limit`."""
    room = link.buffer_pkts if link.buffer_bytes is None else link.buffer_bytes
    assert room is not None
    return room if params.take("ns2_limit", False) else room + 1


def _packets(link: Link) -> int:
    """Return the limit of a queue that counts packets."""
    if link.buffer_pkts is None:
        raise Ns2Unsupported(
            f"link '{link.name}': ns-2's {link.aqm.name} needs a buffer in the unit of its queue, here packets, "
            "not bytes"
        )
    return link.buffer_pkts


def _limit_in_queue_units(link: Link, settings: dict[str, Any]) -> int:
    """Return the limit of RED, in mean packets; with a queue in bytes the buffer must be a multiple of these."""
    mean = int(settings["mean_pktsize_"])
    if not settings["queue_in_bytes_"] or link.buffer_bytes is None:
        return _packets(link)
    if link.buffer_bytes % mean:
        raise Ns2Unsupported(
            f"link '{link.name}': the RED of ns-2 needs a buffer that is a multiple of mean_packet = {mean} bytes, "
            f"not {link.buffer_bytes} bytes"
        )
    return link.buffer_bytes // mean


def _droptail(link: Link) -> tuple[str, int, dict[str, Any]]:
    params = _Params(link.aqm)
    limit = _below(link, params)
    params.done()
    # The limit counts mean packets: with one-byte packets it counts bytes.
    in_bytes = link.buffer_bytes is not None
    return "DropTail", limit, {"queue_in_bytes_": in_bytes, "drop_front_": False, "mean_pktsize_": 1}


def _pi(link: Link) -> tuple[str, int, dict[str, Any]]:
    params = _Params(link.aqm)
    settings = {
        "a_": float(params.take("a")),
        "b_": float(params.take("b")),
        "w_": float(params.take("frequency")),
        "qref_": float(params.take("target")),
        "bytes_": False,
        "queue_in_bytes_": False,
        "setbit_": bool(params.take("ecn", True)),
    }
    params.superseded("crossover")
    params.fixed("anti_windup", "none")
    params.done()
    return "PI", _packets(link), settings


def _red(link: Link, adaptive: bool = False) -> tuple[str, int, dict[str, Any]]:
    params = _Params(link.aqm)
    settings = {
        "thresh_": float(params.take("min_th")),
        "maxthresh_": float(params.take("max_th")),
        "q_weight_": float(params.take("weight")),
        "linterm_": 1.0 / float(params.take("max_p", 0.1)),
        "gentle_": bool(params.take("gentle", True)),
        "wait_": bool(params.take("wait", True)),
        "bytes_": bool(params.take("bytes", False)),
        "queue_in_bytes_": bool(params.take("queue_in_bytes", False)),
        "mean_pktsize_": int(params.take("mean_packet", 1000)),
        "setbit_": bool(params.take("ecn", True)),
        "use_mark_p_": bool(params.take("use_mark_p", False)),
        "mark_p_": float(params.take("mark_p", 0.1)),
        "adaptive_": int(adaptive),
        "feng_adaptive_": 0,
        "cautious_": 0,
        "drop_tail_": True,
        "drop_front_": False,
        "drop_rand_": False,
        "ns1_compat_": False,
    }
    limit = _limit_in_queue_units(link, settings)
    params.fixed("spacing", "ns2")
    params.fixed("above", "drop")
    params.superseded("thresholds", "weight_rule", "link_delay")
    if not adaptive:
        params.superseded("target_delay")
    else:
        settings |= {
            "alpha_": float(params.take("alpha", 0.01)),
            "beta_": float(params.take("beta", 0.9)),
            "interval_": float(params.take("interval", 0.5)),
            "targetdelay_": float(params.take("target_delay", 0.005)),
            "top_": float(params.take("top", 0.5)),
            "bottom_": float(params.take("bottom", 0.0)),
        }
        params.superseded("bottom_rule")
        params.fixed("ns2_stale_gentle", True)
    params.done()
    return "RED", limit, settings


def _rem(link: Link) -> tuple[str, int, dict[str, Any]]:
    params = _Params(link.aqm)
    ecn = bool(params.take("ecn", True))
    settings = {
        "gamma_": float(params.take("gamma", 0.001)),
        "phi_": float(params.take("phi", 1.001)),
        "inw_": float(params.take("inw", 1.0)),
        "pupdtime_": float(params.take("interval", 0.002)),
        "pbo_": float(params.take("target", 20.0)),
        # Converts the capacity to packets/s, as Aqumen's design does with the nominal packet size.
        "mean_pktsize_": round(link.aqm.nominal.get("packet_bytes", 1000)),
        "markpkts_": ecn,
        "qib_": False,
    }
    params.fixed("alpha", 0.1)
    params.fixed("anti_windup", "none")
    # ns-2's REM marks departing packets and drops arriving ones.
    params.fixed("signal_at", "dequeue" if ecn else "arrival")
    _packets(link)
    limit = _below(link, params)
    params.done()
    return "REM", limit, settings


def _avq(link: Link) -> tuple[str, int, dict[str, Any]]:
    params = _Params(link.aqm)
    ecn = bool(params.take("ecn", True))
    settings = {
        "gamma_": float(params.take("gamma", 0.98)),
        "ecnlim_": float(params.take("initial_fraction", 0.8)),
        "buflim_": float(params.take("buffer_fraction", 1.0)),
        "queue_in_bytes_": bool(params.take("bytes", False)),
        "mean_pktsize_": int(params.take("mean_packet", 1000)),
        "markpkts_": ecn,
        "markfront_": False,
        "drop_front_": False,
    }
    params.fixed("alpha", 0.15)
    params.fixed("form", "ns2")
    if ecn:
        params.fixed("spare_not_ect", True)
    else:
        params.superseded("spare_not_ect")
    params.done()
    if settings["queue_in_bytes_"] and link.buffer_bytes is not None:
        # With bytes, the mean packet size affects only the unit of the limit.
        return "Vq", link.buffer_bytes, settings | {"mean_pktsize_": 1}
    return "Vq", _packets(link), settings


_AQMS: dict[str, Callable[[Link], tuple[str, int, dict[str, Any]]]] = {
    "droptail": _droptail,
    "pi": _pi,
    "red": _red,
    "ared": lambda link: _red(link, adaptive=True),
    "rem": _rem,
    "avq": _avq,
}
# Tcl variable of the current marking or dropping probability; DropTail and Vq have none.
_PROBABILITY = {"pi": "prob_", "red": "prob1_", "ared": "prob1_", "rem": "prob_"}
# Queues with a separate target for early drops, which distinguishes them from overflows in the trace.
_EARLY_DROP_TARGET = {"pi", "red", "ared"}

_SENDERS = {
    "reno": "Agent/TCP/Reno",
    "newreno": "Agent/TCP/Newreno",
    "sack": "Agent/TCP/Sack1",
}
_LINUX = "Agent/TCP/Linux"


def _sink(transport: Transport) -> str:
    kind = "Agent/TCPSink"
    if transport.variant == "sack":
        kind += "/Sack1"
    return kind if transport.delayed_ack_s is None else kind + "/DelAck"


def _sets(transport: Transport) -> str:
    """Return the variables of the sender, then after `--` those of the sink."""
    sender = {
        # useHeaders_: data packets are packetSize_ + tcpip_base_hdr_size_ bytes, a SYN tcpip_base_hdr_size_.
        "packetSize_": transport.packet_bytes - transport.header_bytes,
        "tcpip_base_hdr_size_": transport.header_bytes,
        "useHeaders_": True,
        "window_": float(transport.receive_window),
        "windowInit_": float(transport.initial_window),
        "windowInitOption_": 1,
        "maxburst_": transport.max_burst,
        "overhead_": float(transport.send_overhead_s),
        "ecn_": transport.ecn,
        "syn_": transport.syn,
        "delay_growth_": transport.syn,
        "singledup_": transport.limited_transmit,
        "SetCWRonRetransmit_": transport.cwr_retransmissions,
        "slow_start_restart_": transport.restart_window is not None,
        "minrto_": float(transport.min_rto_s),
        "maxrto_": float(transport.max_rto_s),
        "rtxcur_init_": float(transport.initial_rto_s),
        "tcpTick_": float(transport.rto_granularity_s),
    }
    if transport.congestion == "cubic-2.1":
        # The header size includes the timestamps.
        sender |= {"timestamps_": True, "ts_option_size_": 0}
    if transport.variant == "newreno":
        sender["exit_recovery_fix_"] = transport.exit_by_flight
    sink: dict[str, Any] = {"packetSize_": transport.ack_bytes}
    if transport.delayed_ack_s is not None:
        sink["interval_"] = float(transport.delayed_ack_s)
    text = " ".join(f"{key} {_value(value)}" for key, value in sender.items())
    return text + " -- " + " ".join(f"{key} {_value(value)}" for key, value in sink.items())


_PROCEDURES = r"""
set ns [new Simulator]
$ns rtproto Manual

proc make_nodes {count} {
    global ns node
    for {set i 0} {$i < $count} {incr i} { set node($i) [$ns node] }
}

proc make_link {i from to rate delay kind limit settings} {
    global ns node link
    $ns simplex-link $node($from) $node($to) $rate $delay $kind
    set link($i) [$ns link $node($from) $node($to)]
    set queue [$link($i) queue]
    $queue set limit_ $limit
    foreach {name value} $settings { $queue set $name $value }
}

proc route {at to over} {
    global node link
    [$node($at) get-module "Manual"] add-route [$node($to) id] [$link($over) head]
}

proc connect {i from to sender receiver settings} {
    global ns node tcp sink
    set tcp($i) [new $sender]
    set sink($i) [new $receiver]
    set agent $tcp($i)
    foreach {name value} [string map {" -- " " -- 0 "} $settings] {
        if {$name eq "--"} { set agent $sink($i) } else { $agent set $name $value }
    }
    $tcp($i) set fid_ $i
    $ns attach-agent $node($from) $tcp($i)
    $ns attach-agent $node($to) $sink($i)
    $ns connect $tcp($i) $sink($i)
}

# Agent/TCP/Linux prints each command to standard output with separate buffering, so output goes to a file. beta is
# 717/1024 = 0.7 as in RFC 9438, instead of 819/1024.
proc prepare_cubic {file} {
    global answers
    set answers [open $file w]
    rename puts write
    proc puts {text} { global answers; write $answers $text }
    [new Agent/TCP/Linux] set_ca_default_param cubic beta 717
}

# Called after the variables are set: selecting the control reads the windows and sets the clock to 1 ms. A threshold of
# 0 stands for the window.
proc use_cubic {i tick threshold} {
    global tcp
    $tcp($i) reset
    $tcp($i) select_ca cubic
    $tcp($i) set_ca_param cubic initial_ssthresh $threshold
    $tcp($i) set tcpTick_ $tick
}

proc connect_sctp {i from to settings} {
    global ns node sctp application
    set sctp($i) [new Agent/SCTP]
    set receiver [new Agent/SCTP]
    foreach agent [list $sctp($i) $receiver] {
        foreach {name value} $settings { $agent set $name $value }
    }
    $sctp($i) set fid_ $i
    $ns attach-agent $node($from) $sctp($i)
    $ns attach-agent $node($to) $receiver
    $ns connect $sctp($i) $receiver
    set application($i) [new Application/FTP]
    $application($i) attach-agent $sctp($i)
}

# SCTP receivers have no counters, so departures from the last link are counted.
proc count_sctp {i over} {
    global monitor counter
    if {![info exists monitor($over)]} { watch $over }
    set counter($i) $monitor($over)
}

proc connect_udp {i from to largest generator settings} {
    global ns node udp application
    set agent [new Agent/UDP]
    set udp($i) [new Agent/LossMonitor]
    $udp($i) set runs 0
    $agent set packetSize_ $largest
    $agent set fid_ $i
    $ns attach-agent $node($from) $agent
    $ns attach-agent $node($to) $udp($i)
    $ns connect $agent $udp($i)
    set application($i) [new $generator]
    foreach {name value} $settings { $application($i) set $name $value }
    $application($i) attach-agent $agent
}

# Called once for each run of missing packets.
Agent/LossMonitor instproc log-loss {} {
    $self instvar runs
    incr runs
}

# Stops new data; outstanding data is still delivered.
proc stop {i} {
    global tcp
    $tcp($i) advance [expr {[$tcp($i) set maxseq_] + 1}]
}

proc watch {i} {
    global link monitor
    set monitor($i) [new QueueMonitor/ED]
    $link($i) attach-monitors [new SnoopQueue/In] [new SnoopQueue/Out] [new SnoopQueue/Drop] $monitor($i)
}

proc count {i} {
    watch $i
}

# Traces packets that enter (+), leave (-) or are dropped (d; e: early) at a queue, and integrates the queue length.
proc record {i file early} {
    global ns link monitor area traces
    set out [open $file w]
    lappend traces $out
    set from [$link($i) src]
    set to [$link($i) dst]
    set queue [$link($i) queue]
    set head [$link($i) set drophead_]
    set arrival [$ns create-trace Enque $out $from $to]
    $link($i) add-to-head $arrival
    set departure [$ns create-trace Deque $out $from $to]
    $departure target [$queue target]
    $queue target $departure
    set drop [$ns create-trace Drop $out $from $to]
    $drop target [$head target]
    $head target $drop
    watch $i
    set area($i) [new Integrator]
    $monitor($i) set-pkts-integrator $area($i)
    if {$early} {
        set snoop [new SnoopQueue/EDrop]
        $snoop set-monitor $monitor($i)
        $snoop target [$ns set nullAgent_]
        set tap [$ns create-trace EDrop $out $from $to]
        $tap target $snoop
        $queue early-drop-target $tap
    }
}

proc snapshot {} {
    global ns monitor area tcp sink udp counter flows past lost
    set now [$ns now]
    puts "S $now"
    foreach i [lsort -integer [array names area]] {
        $area($i) newpoint $now [$area($i) set lasty_]
        puts "L $i [$area($i) set sum_]"
    }
    foreach i [lsort -integer [array names lost]] { puts "W $i [$lost($i) set pdrops_]" }
    for {set i 0} {$i < $flows} {incr i} {
        if {[info exists past($i)]} {
            puts "F $i [totals $i]"
        } elseif {[info exists tcp($i)]} {
            set t $tcp($i)
            puts "F $i [$sink($i) set bytes_] [$t set ndatapack_] [$t set nrexmitpack_] [$t set nrexmit_]"
        } elseif {[info exists udp($i)]} {
            puts "F $i [$udp($i) set bytes_] 0 0 0"
            puts "U $i [$udp($i) set npkts_] [$udp($i) set nlost_] [$udp($i) set runs]"
        } else {
            puts "F $i [expr {int([$counter($i) set bdepartures_])}] 0 0 0"
        }
    }
}

# Prints queue length and probability now and every `interval` seconds.
proc sample {i variable interval step} {
    global ns link monitor
    set p [expr {$variable eq "" ? "-" : [[$link($i) queue] set $variable]}]
    puts "P $i [$ns now] [$monitor($i) set pkts_] $p"
    incr step
    $ns at [expr {$step * $interval}] [list sample $i $variable $interval $step]
}

# Prints the CPU time of this process, nanoseconds.
proc meter {} {
    global metered
    set metered 1
    set file [open /proc/self/schedstat]
    puts "M [lindex [gets $file] 0]"
    close $file
}

proc finish {} {
    global area monitor traces metered
    if {[info exists metered]} meter
    if {[array exists area]} {
        snapshot
        foreach out $traces { close $out }
    } elseif {[array exists monitor]} {
        foreach i [lsort -integer [array names monitor]] { puts "C $i [$monitor($i) set pdepartures_]" }
    }
    puts "END"
    exit 0
}
"""
