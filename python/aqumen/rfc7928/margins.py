"""Section 8.3 of RFC 7928: stability margins of each AQM at mild, medium and heavy congestion, from the design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aqumen.errors import Error
from aqumen.explain.prediction import predict
from aqumen.scenario import Scenario

__all__ = ["LEVELS", "margins"]

LEVELS = ("mild", "medium", "heavy")
"""Cells of `rfc7928/congestion`."""


def margins(aqms: Sequence[str]) -> list[dict[str, Any]]:
    """Return the margins of each AQM at each level of congestion, with the exact linearisation of the fluid model.

    Args:
        aqms: SPECs of the AQMs.

    Returns:
        For each AQM and level `aqm`, `level`, `flows`, `probability`, `queue_pkts`, `stable`, `phase_margin_deg`,
        `gain_margin` (a factor), `delay_margin_s`, and `remark`: why there are no margins (`stable` is `None`), or
        what the design warns of.
    """
    return [{"aqm": aqm, "level": level, **_at(aqm, level)} for aqm in aqms for level in LEVELS]


def _at(aqm: str, level: str) -> dict[str, Any]:
    keys = ("stable", "phase_margin_deg", "gain_margin", "delay_margin_s")
    point: dict[str, Any] = dict.fromkeys(("flows", "probability", "queue_pkts", *keys, "remark"))
    try:
        (queue,) = predict(Scenario.load(f"rfc7928/congestion@{level}"), aqm).values()
    except Error as error:
        return {**point, "remark": str(error)}
    at = queue["steady"]
    analysis = at["analysis"] or {}
    found = (analysis.get("margins") or {}).get("exact")
    point |= {key: at[key] for key in ("flows", "probability", "queue_pkts")}
    if found is None:
        return {**point, "remark": f"{aqm} has no linear law at this operating point"}
    return {**point, **{key: found[key] for key in keys}, "remark": "; ".join(analysis["warnings"])}
