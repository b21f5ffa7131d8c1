"""Design of an AQM for a network: gains, operating point, margins and open loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aqumen import _core
from aqumen.custom import catalogue, specs
from aqumen.errors import ScenarioError, listed
from aqumen.theory import interop, plots
from aqumen.theory.loop import Loop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from aqumen.aqms import Aqm
    from aqumen.custom import CustomClass

__all__ = ["Design", "design"]

MODELS = ("hollot", "ecn", "reno", "drop")
"""Fluid models of a mean window."""
SENDERS = ("linux", "cubic", "dctcp", "prague", "modern", "linux-reno", "ns2")
"""TCP presets whose windows under marks a design knows."""
SENDER = "linux"
"""Sender of a design unless another is given: today's most common one."""


def design(
    aqm: str | Aqm | CustomClass,
    *,
    capacity: str | float,
    flows: float,
    rtt: str | float | None = None,
    r0: str | float | None = None,
    target: str | float | None = None,
    packet: str | float = "1000B",
    buffer: str | float | None = None,
    sender: str | Sequence[str] | None = None,
    model: str | None = None,
    custom: Sequence[CustomClass] = (),
) -> Design:
    """Design an AQM for a network and analyse its loop.

    Args:
        aqm: A SPEC: `pi`, `arm-pfc:h=7`; an object of `aqumen.aqms`; or a custom class.
        capacity: Capacity of the link: `30Mbit`, or bits per second.
        flows: Number of long-lived flows.
        rtt: Round-trip time without queueing: `200ms`, or seconds. Either this or `r0`.
        r0: Round-trip time at the target, including queueing: `246ms`, or seconds.
        target: Target queue: `100pkt`, or packets, or the time that it takes at the capacity: `20ms`; default: a fifth
            of the bandwidth-delay product at the target.
        packet: Packet size on the wire: `1000B`, or bytes.
        buffer: Buffer size: `300pkt`, or packets; default: three targets.
        sender: TCP preset of the flows, which answer marks: `linux` (default), `cubic`, `dctcp`, `prague`, `modern`,
            `linux-reno` or `ns2`. Of several the design is that of the one with the smallest modulus margin, and `each`
            has all.
        model: In place of a sender, the equations of a mean window: `hollot`, `ecn`, `reno` or `drop`.
        custom: Custom AQM classes that the SPEC may name.
    """
    (spec,), classes = specs([aqm])
    if (rtt is None) == (r0 is None):
        raise ScenarioError("give either rtt (without queueing) or r0 (at the target)")
    if model is not None and sender is not None:
        raise ScenarioError("sender and model exclude each other: a model is the mean window of no particular sender")
    if model is not None and model not in MODELS:
        raise ScenarioError(f"unknown fluid model `{model}`; choose from: {listed(MODELS)}")
    senders = [sender or SENDER] if sender is None or isinstance(sender, str) else list(dict.fromkeys(sender))
    for name in senders if model is None else []:
        if name not in SENDERS:
            raise ScenarioError(f"unknown sender `{name}`; choose from: {listed(SENDERS)}")
    scenario = _network(
        _written(capacity, "bit"),
        float(flows),
        _written(r0 if rtt is None else rtt, "s"),
        rtt is None,
        _written(packet, "B"),
        None if target is None else _written(target, "pkt"),
        None if buffer is None else _written(buffer, "pkt"),
        catalogue((*custom, *classes)) if custom or classes else None,
    )
    try:
        if model is not None:
            return Design(_core.analyse(scenario, spec, rtt is None, model))
        each = {name: Design(_core.analyse(scenario, spec, rtt is None, None, name)) for name in senders}
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
    return _worst(each)


def _worst(each: dict[str, Design]) -> Design:
    """Return the design with the sender of the smallest modulus margin; no margin at all is worse than any."""

    def margin(design: Design) -> float:
        exact = (design.margins or {}).get("exact")
        return float(exact["modulus_margin"]) if exact else -1e9

    name = min(each, key=lambda name: margin(each[name]))
    worst = each[name]
    worst.each = each
    worst.data["sender"] = name
    if len(each) > 1:
        worst.data["senders"] = {
            name: {
                "probability": design.operating_point["probability"],
                **{key: (design.margins or {}).get("exact", {}).get(key) for key in _BESIDE},
                "queue_std_pkts": design.noise["queue_std_pkts"],
            }
            for name, design in each.items()
        }
    return worst


_BESIDE = ("stable", "gain_margin", "phase_margin_deg", "modulus_margin")
"""Margins of each sender in a design for several."""


class Design(Loop):
    """An AQM with its gains for a network, and its open loop."""

    def to_control(self, pade: int | None = None) -> tuple[Any, Any, Any]:
        """Return plant, controller and loop as systems of python-control; the loop is minus plant times controller.

        Without `pade` they are exact, interpolated frequency responses, for `bode_plot`, `margin`, `nyquist_plot`,
        products and feedback. The plant of a sampled controller includes its zero-order hold. With `pade` they are
        transfer functions of the textbook plant (Hollot's two poles and a dead time), also for `step_response`,
        `poles`, `root_locus` and `feedback`. The name of a system says which plant it uses.

        Args:
            pade: Order of the Pade approximation of the dead time.
        """
        return interop.to_control(self, pade)

    def state_space(self, *, exact: bool = True) -> dict[str, Any]:
        """Return the plant's matrices and delay (A, A_d, B, B_d, C, delay_s), and the controller's coefficients.

        Args:
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
        """
        return interop.state_space(self, exact)

    def save(self, path: str | Path, *, exact: bool = True) -> None:
        """Write state space and controller as .mat or .json.

        Args:
            path: The file; its suffix selects the format.
            exact: Use the exact linearisation of the fluid model instead of the textbook plant.
        """
        interop.save(self, Path(path), exact)

    def step_metrics(self, band: float = 0.05) -> dict[str, float | None]:
        """Return rise time (10 to 90 %), overshoot and settling time of the step response.

        Args:
            band: Half-width of the settling band around the new target, relative to the step.
        """
        return plots.step_metrics(self, band)

    def to_matlab(self) -> str:
        """Return a MATLAB script: textbook plant with dead time, controller, exact plant as frequency response data."""
        return interop.matlab(self)

    def plot(self, kind: str = "nyquist") -> Figure:
        """Draw the loop.

        Args:
            kind: `nyquist`, `bode`, `nichols`, `step`, `locus` or `noise`.
        """
        return plots.plot(self, kind)


def nominal_network(
    *, capacity: str | float, flows: float, rtt: str | float, packet: str | float, target: str = "100pkt"
) -> dict[str, Any]:
    """Parse the quantities of a network: `capacity_bps`, `base_rtt_s`, `packet_bytes`, `target_pkts`, ...

    Args:
        capacity: Capacity of the link.
        flows: Number of flows.
        rtt: Round-trip time without queueing.
        packet: Packet size on the wire.
        target: Target queue: `100pkt`, or the time that it takes at the capacity: `20ms`.
    """
    found = _network(_written(capacity, "bit"), float(flows), _written(rtt, "s"), False, _written(packet, "B"), target)
    return dict(found.plan(1, "droptail")["nominal"])


def _written(value: str | float | None, unit: str) -> str:
    return value if isinstance(value, str) else f"{value!r}{unit}"


def _network(*numbers: Any) -> _core.Scenario:
    try:
        return _core.Scenario.from_network(*numbers)
    except _core.ScenarioError as error:
        raise ScenarioError(str(error)) from None
