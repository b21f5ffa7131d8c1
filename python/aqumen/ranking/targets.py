"""AQMs at a given target delay."""

from __future__ import annotations

from aqumen import _core

__all__ = ["at_target"]


def at_target(spec: str, delay: str) -> str | None:
    """The AQM of a SPEC with this delay as its target, so that laws can be compared apart from their targets; `None` if
    it has none.

    Args:
        spec: The AQM, without a target.
        delay: The target, such as `15ms`.
    """
    known = {row["name"]: row for row in _core.list_aqms()}
    row = known.get(spec.partition(":")[0], {})
    # What a profile sets stays: a second target beside it would be refused.
    if {"target", "target_delay", "min_th", "thresholds"} & set(row.get("settings", ())):
        return None
    units = {param["name"]: param["unit"] for param in known.get(row.get("algorithm"), row).get("params", ())}
    key = "target_delay" if "target_delay" in units else "target" if units.get("target") == "s" else None
    if key is None:
        return None
    # RED's thresholds follow a delay by one of their rules alone.
    rule = "thresholds=ns2-auto," if "thresholds" in units else ""
    return f"{spec}{',' if ':' in spec else ':'}{rule}{key}={delay}"
