"""Numbers of everyday networks as given on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from aqumen import _core
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

__all__ = ["change", "length_s", "quantity", "read_rate", "read_time"]


def change(base: Scenario, changes: Mapping[str, str], said: Mapping[str, str]) -> Scenario:
    """Change a scenario; an error names the command line's option in place of the key.

    Args:
        base: The scenario.
        changes: New values by key.
        said: Values as given, by option.

    Raises:
        ScenarioError: A value is not accepted.
    """
    try:
        return base.set_all(list(changes.items()))
    except ScenarioError as error:
        for option, value in said.items():
            if f'"{value}"' in str(error) or f"= {value}:" in str(error):
                reason = str(error).rpartition(": ")[2]
                raise ScenarioError(f"--{option} {value}: {reason}") from None
        raise


def read_rate(option: str, value: str) -> float:
    """Parse a rate.

    Args:
        option: Name of the command line's option, for messages.
        value: The rate, with a unit.

    Returns:
        The rate, bit/s.
    """
    bps = quantity(option, "rate", value)
    if bps < 64e3:
        raise ScenarioError(f"--{option} {value}: must be at least 64kbit")
    return bps


def read_time(option: str, value: str, least: float) -> float:
    """Parse a time.

    Args:
        option: Name of the command line's option, for messages.
        value: The time, with a unit.
        least: Least value that is accepted, seconds.

    Returns:
        The time, seconds.
    """
    seconds = quantity(option, "time", value)
    if seconds < least:
        raise ScenarioError(f"--{option} {value}: must be at least {least:g}s")
    return seconds


def quantity(option: str, kind: str, value: str) -> float:
    """Parse a number with a unit; an error names the option.

    Args:
        option: Name of the command line's option.
        kind: `rate`, `time`, `size` or `packets`.
        value: The number, with a unit.

    Returns:
        The number in bit/s, seconds, bytes or packets.
    """
    try:
        return _core.quantity(kind, value)
    except _core.ScenarioError as error:
        raise ScenarioError(f"--{option} {value}: {error}") from None


def length_s(scenario: Scenario) -> float:
    """Return the duration of a scenario, seconds.

    Args:
        scenario: Scenario with its duration, as `--until` may have shortened it.
    """
    return float(scenario.plan()["duration_s"])
