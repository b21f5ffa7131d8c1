"""Losses on the wire, read from a link of the plan: what every simulator of packets is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aqumen._core import quantity

__all__ = ["NO_LOSS", "WireLoss", "read_wire"]


@dataclass(frozen=True, slots=True)
class WireLoss:
    """What a wire loses. Probabilities, each of a packet or a bit; times in seconds."""

    random: float = 0.0
    """Of any packet."""
    bit_errors: float = 0.0
    """Of a bit to be wrong."""
    chain: tuple[float, float, float, float] | None = None
    """Gilbert-Elliott from packet to packet: to bad, to good, loss in the good state, in the bad one."""
    times: tuple[float, float, float, float] | None = None
    """States that last for exponential times: means of the good and of the bad one, loss in each."""


NO_LOSS = WireLoss()
"""A wire that loses nothing."""


def read_wire(link: Mapping[str, Any], refuse: Callable[[str], Exception], simulator: str) -> WireLoss:
    """The losses of a link.

    Args:
        link: The link of the plan.
        refuse: Makes the error for what else happens to the link.
        simulator: Its name, for that error.
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
                f"link '{link['name']}': {simulator} runs rates over time and losses from the start here, no channels, "
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
