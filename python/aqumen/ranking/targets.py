"""AQMs with a given target."""

from __future__ import annotations

from aqumen import _core

__all__ = ["at_target"]


def at_target(spec: str, target: str) -> str | None:
    """Return an AQM with a given target; `None` if it has none in that unit, or if a profile sets one.

    Args:
        spec: AQM without a target.
        target: Packets or a delay, such as `50pkt` or `15ms`.
    """
    known = {row["name"]: row for row in _core.list_aqms()}
    row = known.get(spec.partition(":")[0], {})
    # A profile's target excludes another one.
    if {"target", "target_delay", "min_th", "thresholds"} & set(row.get("settings", ())):
        return None
    units = {param["name"]: param["unit"] for param in known.get(row.get("algorithm"), row).get("params", ())}
    if target.endswith("pkt"):
        return f"{spec}{',' if ':' in spec else ':'}target={target}" if units.get("target") == "pkt" else None
    key = "target_delay" if "target_delay" in units else "target" if units.get("target") == "s" else None
    if key is None:
        return None
    # Only one rule derives RED's thresholds from a delay.
    rule = "thresholds=ns2-auto," if "thresholds" in units else ""
    return f"{spec}{',' if ':' in spec else ':'}{rule}{key}={target}"
