"""Losses on the wire of a plan's link, as all external simulators read them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqumen._core import quantity

__all__ = ["NO_LOSS", "WireLoss", "read_wire"]


@dataclass(frozen=True, slots=True)
class WireLoss:
    """Loss model of a wire: probabilities for a packet or a bit, times in seconds."""

    random: float = 0.0
    """Probability of an independent loss."""
    bit_errors: float = 0.0
    """Probability of a bit error."""
    chain: tuple[float, float, float, float] | None = None
    """Gilbert-Elliott chain by packets: to bad, to good, loss in the good state, loss in the bad state."""
    times: tuple[float, float, float, float] | None = None
    """Exponential states: mean times of good and bad state (s), loss in each."""


NO_LOSS = WireLoss()
"""A wire without losses."""


def read_wire(link: Mapping[str, Any], refuse: Callable[[str], Exception], simulator: str) -> WireLoss:
    """Read the losses of a link.

    Args:
        link: The link of the plan.
        refuse: Creates the exception for unsupported changes of the link.
        simulator: Name of the simulator, for messages.
    """
    line = link.get("line")
    if line is None:
        return NO_LOSS
    others = [line["channel"], *line["delays"], *line["outages"], *line["aqms"]]
    match line["losses"]:
        case [] if not any(others):
            return NO_LOSS
        case [[0.0, loss]] if not any(others):
            return _loss(loss)
        case _:
            raise refuse(
                f"link '{link['name']}': {simulator} runs only rates over time and constant losses, not channels, "
                "failures or other changes"
            )


def _loss(loss: Any) -> WireLoss:
    if not isinstance(loss, Mapping):
        return WireLoss(random=float(loss))
    burst = loss.get("burst")
    chain = times = None
    if burst is not None:
        good, bad = float(burst.get("good", 0.0)), float(burst.get("bad", 1.0))
        if "to_bad" in burst:
            chain = (float(burst["to_bad"]), float(burst["to_good"]), good, bad)
        else:
            times = (quantity("time", burst["mean_good"]), quantity("time", burst["mean_bad"]), good, bad)
    return WireLoss(float(loss.get("random", 0.0)), float(loss.get("bit_errors", 0.0)), chain, times)
