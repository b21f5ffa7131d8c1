"""The network of `aqumen design`, `map` and `robust` on the command line: its options, and the loop of an AQM in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from aqumen.cli.options import TARGET, custom_classes, custom_option, named_too
from aqumen.errors import ScenarioError, listed
from aqumen.theory import Design
from aqumen.theory import design as design_for
from aqumen.theory.design import MODELS, SENDER, SENDERS, nominal_network

__all__ = ["AXIS", "designed", "given", "network_options", "plain", "span"]

AXIS = "AXIS=FROM:TO"
"""How a range of a quantity is written."""
_Command = TypeVar("_Command", bound=Callable[..., Any])
_OPTIONS = (
    custom_option,
    click.option("--capacity", metavar="RATE", help="Capacity: 30Mbit."),
    click.option("--flows", type=float, metavar="N", help="Long-lived flows."),
    click.option("--rtt", metavar="TIME", help="Base RTT, without queueing."),
    click.option(
        "--target", type=TARGET, metavar="LENGTH", help="Target queue: packets (100pkt), or its delay (20ms)."
    ),
    click.option("--packet", default="1000B", show_default=True, metavar="BYTES", help="Packet size on the wire."),
    click.option(
        "--sender",
        default=SENDER,
        show_default=True,
        metavar="SENDER",
        help=f"{listed(SENDERS)}; several, with commas, for the worst of them; or a mean window: {listed(MODELS)}.",
    ),
)


def network_options(command: _Command) -> _Command:
    """Add the options of a network to a command.

    Args:
        command: The function of the command; it hands them to `designed`.
    """
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def designed(verb: str, aqm: str | None, aqm_from: tuple[str, ...], **network: Any) -> Design:
    """Return the design of an AQM for the network of the options.

    Args:
        verb: Name of the command, for messages.
        aqm: The SPEC; `None` takes the only class of `aqm_from`.
        aqm_from: Values of `--aqm-from`.
        network: Arguments of `theory.design` by name.

    Raises:
        click.UsageError: Capacity or flows are missing.
        ScenarioError: A value is invalid.
    """
    missing = [
        text for name, text in (("capacity", "--capacity RATE"), ("flows", "--flows N")) if network.get(name) is None
    ]
    if missing:
        raise click.UsageError(f"missing: {', '.join(missing)}; `aqumen {verb} --help` says what each is")
    if (network["rtt"] is None) == (network.get("r0") is None):
        both = "either --rtt (without queueing) or --r0 (at the target)" if verb == "design" else "--rtt TIME"
        raise ScenarioError(f"give {both}")
    custom = custom_classes(aqm_from)
    specs = named_too([], custom) if aqm is None else [aqm]
    if len(specs) != 1:
        raise ScenarioError(f"name one AQM: aqumen {verb} SPEC, perhaps with --aqm-from FILE:CLASS")
    senders = [name.strip() for name in network.pop("sender").split(",")]
    if senders[0] in MODELS and len(senders) == 1:
        return design_for(specs[0], custom=custom, model=senders[0], **network)
    return design_for(specs[0], custom=custom, sender=senders, **network)


def span(text: str, network: dict[str, Any]) -> tuple[str, float, float]:
    """Parse a range `AXIS=FROM:TO`: its quantity and its ends in base units.

    A plain number is in base units: seconds, packets/s, packets. With a unit it is as in the option of that name.

    Args:
        text: The range.
        network: Capacity, RTT and packet size, as on the command line.

    Raises:
        ScenarioError: It is written otherwise, or an end is not above 0.
    """
    name, equals, ends = (part.strip() for part in text.partition("="))
    low, colon, high = ends.partition(":")
    if not (equals and colon):
        raise ScenarioError(f"{text}: write it as {AXIS}, for instance flows=10:200 or rtt=20ms:200ms")
    found = name, _number(text, name, low, network), _number(text, name, high, network)
    if min(found[1:]) <= 0:
        raise ScenarioError(f"{text}: the ends of a range must be above 0")
    return found


def _number(text: str, name: str, end: str, network: dict[str, Any]) -> float:
    try:
        return float(end)
    except ValueError:
        pass
    if name not in ("rtt", "capacity", "target"):
        raise ScenarioError(f"{text}: write it as {AXIS} with plain numbers, for instance flows=10:200")
    found = nominal_network(**{"flows": 1.0, **{key: network[key] for key in ("capacity", "rtt", "packet")}, name: end})
    if name == "capacity":
        return float(found["capacity_bps"] / (8 * found["packet_bytes"]))
    return float(found["base_rtt_s" if name == "rtt" else "target_pkts"])


def given(names: Sequence[str]) -> list[str]:
    """Return the options among `names` that are on the command line, with their dashes.

    Args:
        names: Names of parameters of the running command.
    """
    context = click.get_current_context()
    known = [option.name for option in context.command.params if option.name in names]
    return [f"--{name}" for name in known if context.get_parameter_source(str(name)) is ParameterSource.COMMANDLINE]


def plain(value: Any) -> str:
    """Format a value of a table.

    Args:
        value: A number, flag, word, list or dictionary of these; `None` where it is unknown.
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(f"{x:.6g}" for x in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(x)}" for name, x in value.items())
    return str(value)
