"""`aqumen replay`: a capture's packets offered to a queue under each AQM."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen._files import json_text
from aqumen.cli import talk
from aqumen.cli.options import (
    OUT,
    PATH,
    TARGET,
    aqms_option,
    custom_classes,
    custom_option,
    json_option,
    named_too,
    spec_list,
    wide_option,
)
from aqumen.errors import OutputError, ScenarioError
from aqumen.replay import Capture, Replay
from aqumen.view import tables

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["replay", "tables_of"]

SCHEMA = 1


@click.command()
@click.argument("capture", type=PATH, metavar="CAPTURE")
@aqms_option()
@custom_option
@click.option("--rate", metavar="RATE", help='Rate of the link: "10Mbit".')
@click.option("--load", type=float, metavar="X", help="Offered load, such as 0.95, in place of --rate.")
@click.option("--buffer", default="1000pkt", show_default=True, metavar="N", help='Buffer size: "1000pkt" or "1.5MB".')
@click.option(
    "--delay",
    default="0s",
    show_default=True,
    metavar="TIME",
    help="Propagation delay to add to departure times in --out.",
)
@click.option(
    "--target", type=TARGET, metavar="LENGTH", help="Target queue of the AQMs: packets (50pkt), or its delay (20ms)."
)
@click.option(
    "--flows", type=float, default=50, show_default=True, metavar="N", help="Number of flows for self-designing AQMs."
)
@click.option(
    "--rtt", default="100ms", show_default=True, metavar="TIME", help="Round-trip time for self-designing AQMs."
)
@click.option("--packet", metavar="SIZE", help="Packet size for self-designing AQMs; default: the capture's mean.")
@click.option(
    "--overhead",
    type=int,
    default=0,
    show_default=True,
    metavar="BYTES",
    help="Bytes on the link beyond a packet's captured length.",
)
@click.option(
    "--speedup",
    type=float,
    default=1,
    show_default=True,
    metavar="X",
    help="Replay the packets X times as fast as captured.",
)
@click.option("--interface", type=int, metavar="N", help="Replay only packets of this interface, counted from 0.")
@click.option("--top", type=int, default=10, show_default=True, metavar="N", help="Number of flows to report.")
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of the AQM's random numbers.")
@wide_option
@click.option("--out", type=OUT, metavar="DIR", help="Folder for the departing packets: a file AQM.pcapng each.")
@json_option
def replay(
    capture: Path,
    aqm: tuple[str, ...],
    aqm_from: tuple[str, ...],
    rate: str | None,
    load: float | None,
    buffer: str,
    delay: str,
    target: str | None,
    flows: float,
    rtt: str,
    packet: str | None,
    overhead: int,
    speedup: float,
    interface: int | None,
    top: int,
    seed: int,
    wide: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """Replay a capture into a queue, open loop: delays, marks and drops under each AQM.

    CAPTURE is a pcap or pcapng file, which may be compressed by gzip.

    After Ctrl-C the finished AQMs are printed, and the exit code is 130.
    """
    custom = custom_classes(aqm_from)
    specs = list(dict.fromkeys(named_too(spec_list(aqm), custom)))
    if not specs:
        raise ScenarioError("no AQM given: add --aqm, such as --aqm codel; `aqumen list aqms` lists all")
    outs = _outs(out, specs)
    settings: dict[str, str | float | None] = {
        "buffer": buffer,
        "delay": delay,
        "target": target,
        "flows": flows,
        "rtt": rtt,
        "packet": packet,
        "overhead": overhead,
        "speedup": speedup,
        "interface": interface,
        "top": top,
        "seed": seed,
    }
    finished: list[Replay] = []
    interrupted = False
    with talk.progress() as bar:
        try:
            task = bar.add_task(f"{capture.name}", total=1.0, done="")

            def advance(fraction: float) -> bool:
                bar.update(task, completed=fraction)
                return True

            offered = Capture(capture, rate=rate, load=load, custom=custom, on_progress=advance, **settings)
            for spec in specs:
                if (warning := offered.check(spec)) is not None:
                    talk.say(f"{spec}: {warning}")
            if out is not None:
                out.mkdir(parents=True, exist_ok=True)
            for spec, file in zip(specs, outs, strict=True):
                bar.reset(task, description=spec)
                finished.append(offered.run(spec, file, advance))
                if file is not None:
                    talk.say(f"wrote {file}")
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        talk.say(f"stopped: {len(finished)} of {len(specs)} AQMs are finished")
    if finished:
        answer = combined(capture, finished)
        if as_json:
            print(json_text(answer))
        else:
            talk.show(*tables_of(answer), wide=wide)
    return talk.INTERRUPTED if interrupted else 0


def _outs(out: Path | None, specs: list[str]) -> list[Path | None]:
    """Return the output file of each AQM, named by its SPEC."""
    if out is None:
        return [None] * len(specs)
    files: list[Path | None] = [out / (re.sub(r"[^A-Za-z0-9_.=-]+", "-", spec) + ".pcapng") for spec in specs]
    if len(set(files)) < len(files):
        raise OutputError(f"cannot write into {out}: two AQMs would share a file; replay them one at a time")
    return files


def combined(capture: Path, finished: list[Replay]) -> dict[str, Any]:
    """Combine the results of all AQMs into the object that `--json` prints.

    Args:
        capture: Path of the capture.
        finished: Results, one for each AQM.
    """
    answers = [each.data for each in finished]
    first = answers[0]
    own = ("aqm", "link", "total", "services", "traffic_classes", "flows", "other_flows", "cpu_s")
    return {
        "schema": SCHEMA,
        "capture": {"file": str(capture), **first["capture"]},
        "setup": first["setup"],
        "aqms": [
            {"spec": each.spec, **{key: answer[key] for key in own}}
            for each, answer in zip(finished, answers, strict=True)
        ],
    }


def tables_of(answer: dict[str, Any]) -> list[Table | str]:
    """Format the results as tables: AQMs side by side, then classes and flows.

    Args:
        answer: The object that `--json` prints.
    """
    capture, setup, aqms = answer["capture"], answer["setup"], answer["aqms"]
    offered = capture["offered_bps"]
    load = "" if offered is None else f", {offered / 1e6:.4g} Mbit/s offered (load {offered / setup['rate_bps']:.3f})"
    room = f"{setup['buffer_pkts']} packets"
    if setup["buffer_bytes"] is not None:
        room = f"{setup['buffer_bytes']} bytes"
    shown: list[Table | str] = [
        f"{capture['file']}: {capture['packets']} packets of {capture['flows']} flows "
        f"in {capture['duration_s']:.6g} s{load}",
        f"link: {setup['rate_bps'] / 1e6:.6g} Mbit/s, buffer: {room}; open loop: senders do not react",
    ]
    heads = ["AQM", "utilisation %", "queue pkt", "std", "departed", "marked", "early drops", "overflows"]
    overall = talk.table("", [*heads[:2], *_SOJOURNS, *heads[5:], *heads[2:5]])
    for each in aqms:
        link, total = each["link"], each["total"]
        overall.add_row(
            each["spec"],
            tables.percent(link["utilization"]),
            *_sojourns(total),
            *_fates(total),
            tables.number(link["queue_mean_pkts"], 1),
            tables.number(link["queue_std_pkts"], 1),
            str(total["departures_pkts"]),
        )
    shown.append(overall)
    shown.append(_classes("\nBy protocol and port", "services", aqms))
    shown.append(_classes("\nBy DSCP and ECN field on arrival", "traffic_classes", aqms))
    flows = talk.table(
        "\nFlows with most bytes", ["flow", "AQM", "mean ms", "max ms", *heads[5:], "packets", "bytes"], names=2
    )
    for rows in zip(*(each["flows"] for each in aqms), strict=False):
        for each, flow in zip(aqms, rows, strict=True):
            flows.add_row(
                flow["flow"],
                each["spec"],
                *(_milliseconds(flow[f"sojourn_{key}_s"]) for key in ("mean", "max")),
                *_fates(flow),
                str(flow["arrivals_pkts"]),
                str(flow["arrived_bytes"]),
            )
    shown.append(flows)
    return [*shown, *(f"\nNote: {note}" for note in _notes(capture))]


_SOJOURNS = ["sojourn ms", "p50", "p95", "p99"]


def _classes(title: str, key: str, aqms: list[dict[str, Any]]) -> Table:
    heads = ["class", "AQM", *_SOJOURNS, "marked", "early drops", "overflows", "packets", "bytes"]
    made = talk.table(title, heads, names=2)
    # All AQMs see the same packets in the same order, hence the same classes.
    for rows in zip(*(each[key] for each in aqms), strict=True):
        for each, row in zip(aqms, rows, strict=True):
            counts = (str(row["arrivals_pkts"]), str(row["arrived_bytes"]))
            made.add_row(row["name"], each["spec"], *_sojourns(row), *_fates(row), *counts)
    return made


def _fates(counts: dict[str, Any]) -> list[str]:
    return [str(counts[f"{key}_pkts"]) for key in ("marked", "early_dropped", "overflow_dropped")]


def _sojourns(row: dict[str, Any]) -> list[str]:
    return [_milliseconds(row[f"sojourn_{key}_s"]) for key in ("mean", "p50", "p95", "p99")]


def _milliseconds(seconds: float | None) -> str:
    return tables.number(None if seconds is None else seconds * 1000, 3)


def _notes(capture: dict[str, Any]) -> list[str]:
    texts = {
        "reordered_pkts": "{} packets have an earlier timestamp than the one before; they were offered with it",
        "pauses_shortened": "{} pauses of more than an hour were shortened to one",
        "timeless_pkts": "{} packets have no timestamp and were left out",
        "unknown_link_pkts": "{} packets have an unknown link type: only their times and sizes are used",
        "super_pkts": "{} packets are larger than any frame (captured before segmentation offload); each was served as "
        "one packet",
    }
    notes = [text.format(capture[key]) for key, text in texts.items() if capture[key]]
    return [*notes, *(["the file ends within a packet; the packets before it were used"] if capture["cut_off"] else [])]
