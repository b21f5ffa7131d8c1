"""`aqumen mmpp`: occupancy, delay, loss and marks of bursty sources at a finite buffer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aqumen import mmpp as analysis
from aqumen._files import write_text
from aqumen.cli import talk
from aqumen.cli.options import PATH, json_option, set_option, wide_option
from aqumen.errors import OutputError, ScenarioError
from aqumen.view import tables

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["mmpp", "tables_of"]

LONG_S = 1.0
"""Solution time above which an estimate is printed, seconds."""
LARGE_BYTES = 100_000_000
"""Memory above which an estimate is printed, bytes."""
AGAIN_S = 10.0
"""Interval between two reports of the remaining time, seconds."""


@click.command()
@click.argument("model", type=PATH, metavar="MODEL.toml|CAPTURE")
@click.option("--buffer", metavar="N", help='Buffer size: "100pkt".')
@click.option("--link", metavar="RATE", help='Rate of the link: "10Mbit".')
@click.option("--service", metavar="RATE", help='Service rate, in place of --link: "975pkt/s".')
@set_option
@click.option("--load-within", type=float, metavar="LOSS", help="Find the highest load with no loss above LOSS.")
@click.option(
    "--threshold-within",
    type=float,
    metavar="LOSS",
    help="Find the lowest threshold with no loss above LOSS.",
)
@click.option("--simulate", is_flag=True, help="Also simulate the model packet by packet.")
@click.option("--plot", type=PATH, metavar="FILE", help="Plot the distribution into this file.")
@click.option("--save", type=PATH, metavar="FILE", help="Write the complete model as TOML.")
@wide_option
@json_option
def mmpp(
    model: Path,
    buffer: str | None,
    link: str | None,
    service: str | None,
    load_within: float | None,
    threshold_within: float | None,
    set_: tuple[str, ...],
    simulate: bool,
    plot: Path | None,
    save: Path | None,
    wide: bool,
    as_json: bool,
) -> int:
    """Solve a queueing model: MMPP sources, Erlang service, a finite buffer."""
    given = {"queue.buffer": buffer, "queue.link": link, "queue.service": service}
    changes = _changes(given, {"load": load_within, "threshold": threshold_within}, set_)
    for path in (plot, save):
        if path is not None and not path.parent.is_dir():
            raise OutputError(f"cannot write {path}: the folder {path.parent} does not exist")
    if model.suffix == ".toml":
        answer = analysis.solve(model, changes, simulate, Remaining())
    else:
        if "queue.buffer" not in changes or not {"queue.link", "queue.service"} & set(changes):
            raise ScenarioError(f"{model}: a capture needs a queue: give --buffer 100pkt and --link 10Mbit")
        answer = analysis.predict(model, changes, simulate, Remaining())
    if plot is not None:
        figure = answer.plot()
        try:
            figure.savefig(plot)
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot write {plot}: {error}") from None
        talk.say(f"wrote {plot}")
    if save is not None:
        write_text(save, answer.toml)
        talk.say(f"wrote {save}")
    if as_json:
        print(answer.json)
    else:
        talk.show(*tables_of(answer.data), wide=wide)
    return 0


def _changes(given: dict[str, str | None], bounds: dict[str, float | None], set_: tuple[str, ...]) -> dict[str, str]:
    """Return the model's keys that the options set, with their TOML values."""
    changes = {key: f'"{value}"' for key, value in given.items() if value is not None}
    asked = [(find, loss) for find, loss in bounds.items() if loss is not None]
    if len(asked) > 1:
        raise ScenarioError("--load-within and --threshold-within exclude each other")
    for find, loss in asked:
        # The model's check would name the key `admit`, which the user did not write.
        if not 0 < loss < 1:
            raise ScenarioError(f"--{find}-within {loss:g}: must be above 0 and below 1, such as 0.01")
        changes["admit"] = f'{{find = "{find}", loss = {loss!r}}}'
    for change in set_:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(f"--set {change}: write it as KEY=VALUE, for instance --set queue.buffer=40pkt")
        changes[key.strip()] = value.strip()
    return changes


class Remaining:
    """Progress callback: reports the expected time and memory at the start, and the remaining time every 10 s."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.reported_s: float | None = None
        self.began_s = clock()

    def __call__(self, seconds: float, memory: int) -> None:
        """Report the remaining time if it is due.

        Args:
            seconds: Estimated remaining time, seconds.
            memory: Memory of the solution, bytes.
        """
        now_s = self.clock()
        if self.reported_s is None:
            # A solution that exceeds its estimate is reported too.
            if seconds > LONG_S or memory > LARGE_BYTES or now_s - self.began_s > AGAIN_S:
                talk.say(f"this takes about {_long(seconds)} and {max(1, round(memory / 1e6))} MB of memory")
                self.reported_s = now_s
        elif now_s - self.reported_s >= AGAIN_S:
            talk.say(f"about {_long(seconds)} left")
            self.reported_s = now_s


def _long(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds > 100 else f"{max(1.0, seconds):.0f} s"


def tables_of(data: dict[str, Any]) -> list[Table | str]:
    """Format an analysis as tables.

    Args:
        data: The analysis, as `--json` prints it.
    """
    queue = data["queue"]
    server = f"{queue['service_pps']:.6g} packets/s, Erlang-{queue['stages']}, buffer {queue['buffer_pkts']} packets"
    shown: list[Table | str] = [
        f"{data['title'] or data['model']}: {data['states']} states",
        f"server {server}; load {data['load']:.4f}, utilisation {data['utilization']:.7f}",
        f"in the system {data['occupancy_mean_pkts']:.4f} packets on average, "
        f"standard deviation {data['occupancy_std_pkts']:.4f}",
    ]
    if (admission := data.get("admission")) is not None:
        shown.append(_admitted(admission, data["load"]))
    heads = ["source", "offered/s", "loss", "overflow", "early", "marked", "threshold"]
    streams = talk.table("\nPackets", [*heads, "delay ms", "std ms", "p50", "p95", "p99", "p99.9"])
    for name, stream in {**data["sources"], "all": data["total"]}.items():
        ratios = [_ratio(stream[f"{key}_ratio"]) for key in ("loss", "overflow_drop", "early_drop", "mark")]
        delays = [_milliseconds(stream[f"delay_{key}_s"]) for key in ("mean", "std", "p50", "p95", "p99", "p999")]
        threshold = tables.number(stream.get("threshold_pkts"), 1)
        streams.add_row(name, tables.number(stream["offered_pps"], 2), *ratios, threshold, *delays)
    shown.append(streams)
    for name, fit in data.get("fits", {}).items():
        shown += _fit(name, fit)
    if "simulation" in data:
        shown.append(_simulation(data["simulation"]))
    shown += [f"\nNote: {warning}" for warning in data["warnings"]]
    return shown


def _admitted(admission: dict[str, Any], load: float) -> str:
    bound = f"no source loses more than {admission['loss_ratio_max']:g}"
    if admission["find"] == "load":
        return f"highest admissible load: {load:.6f}, all rates times {admission['rate_factor']:.6f}; {bound}"
    return f"lowest admissible threshold: early drops from {admission['threshold_pkts']:.6g} packets; {bound}"


def _fit(name: str, fit: dict[str, Any]) -> list[Table | str]:
    heading = (
        f"\n{name}: {fit['packets']} packets in {fit['duration_s']:.6g} s, {fit['rate_pps']:.6g}/s; "
        f"{fit['states']} states fitted"
    )
    made = talk.table("", ["window s", "index of dispersion", "fitted", "error %"])
    curve = fit["dispersion"]
    for window, measured, fitted in zip(curve["window_s"], curve["measured"], curve["fitted"], strict=True):
        made.add_row(f"{window:.4g}", f"{measured:.4f}", f"{fitted:.4f}", f"{100 * (fitted / measured - 1):+.1f}")
    shown: list[Table | str] = [heading, made]
    replay = fit.get("replay")
    if replay is not None:
        shown.append(
            f"the capture itself replayed into this queue: loss {_ratio(replay['loss_ratio'])}, "
            f"mean delay {_milliseconds(replay['delay_mean_s'])} ms, utilisation {replay['utilization']:.4f}"
        )
    return shown


def _simulation(simulation: dict[str, Any]) -> Table:
    made = talk.table(
        f"\nPacket-level simulation: {simulation['seeds']} runs of {simulation['duration_s']:g} s",
        ["source, measure", "predicted", "simulated", "95 % interval", "inside"],
    )
    for name, measures in {"all": simulation["total"], **simulation["sources"]}.items():
        for measure, entry in measures.items():
            if not entry["predicted"] and not entry["mean"]:
                continue
            interval = "–" if entry["ci95"] is None else " to ".join(f"{end:.6g}" for end in entry["ci95"])
            cells = [f"{entry[key]:.6g}" if entry[key] is not None else "–" for key in ("predicted", "mean")]
            made.add_row(f"{name}, {measure}", *cells, interval, {True: "yes", False: "no"}.get(entry["inside"], "–"))
    return made


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}" if value else "0"


def _milliseconds(value: float | None) -> str:
    return tables.number(None if value is None else value * 1000, 4)
