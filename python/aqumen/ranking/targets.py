"""AQMs at a given target delay."""

from __future__ import annotations

from aqumen import _core

__all__ = ["at_target"]


def at_target(spec: str, delay: str) -> str | None:
    """Return an AQM with a given target delay; `None` if it has no target, or if a profile sets one.

    Args:
        spec: AQM without a target.
        delay: The target, such as `15ms`.
    """
    known = {row["name"]: row for row in _core.list_aqms()}
    row = known.get(spec.partition(":")[0], {})
    # A profile's target excludes another one.
    if {"target", "target_delay", "min_th", "thresholds"} & set(row.get("settings", ())):
        return None
    units = {param["name"]: param["unit"] for param in known.get(row.get("algorithm"), row).get("params", ())}
    key = "target_delay" if "target_delay" in units else "target" if units.get("target") == "s" else None
    if key is None:
        return None
    # Only one rule derives RED's thresholds from a delay.
    rule = "thresholds=ns2-auto," if "thresholds" in units else ""
    return f"{spec}{',' if ':' in spec else ':'}{rule}{key}={delay}"
