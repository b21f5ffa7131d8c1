"""Section 13 of RFC 7928: the scenarios that an evaluation must, should or may show, and where this one shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["REQUIREMENTS", "Requirement", "shown"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A row of the RFC's table."""

    subject: str
    """Subject, as the RFC names it."""
    number: str
    """Section of the RFC."""
    level: str
    """Requirement in the RFC's words."""
    sections: tuple[str, ...]
    """Sections of the evaluation that show it."""


_CONSIDERED = "MUST be considered"

REQUIREMENTS = (
    Requirement("Interaction with ECN", "4.5", "MUST be discussed if supported", ("8.2.2",)),
    Requirement("Interaction with scheduling", "4.6", "feasibility MUST be discussed", ("4.6",)),
    Requirement("TCP-friendly sender", "5.1", _CONSIDERED, ("5.1",)),
    Requirement("Aggressive sender", "5.2", _CONSIDERED, ("5.2",)),
    Requirement("Unresponsive sender", "5.3", _CONSIDERED, ("5.3",)),
    Requirement("Less-than-best-effort sender", "5.4", "MAY be considered", ("5.4",)),
    Requirement("Round-trip time fairness", "6", _CONSIDERED, ("6",)),
    Requirement("Burst absorption", "7", _CONSIDERED, ("7",)),
    Requirement("Varying congestion levels", "8.2.5", _CONSIDERED, ("8.2.5",)),
    Requirement("Varying available capacity", "8.2.6", _CONSIDERED, ("8.2.6",)),
    Requirement("Parameters and stability", "8.3", "SHOULD be discussed", ("8.3",)),
    Requirement("Traffic mix", "9.1", "RECOMMENDED", ("9.1",)),
    Requirement("Bidirectional traffic", "9.2", "MAY be considered", ("9.2",)),
    Requirement("Multi-AQM scenario", "10", "MAY be considered", ("10",)),
    Requirement("Implementation cost", "11", "pseudocode SHOULD be provided", ("11",)),
    Requirement("Operator control", "12", "tuning SHOULD NOT be required", ("12",)),
)
"""Table of section 13."""


def shown(sections: Iterable[str]) -> list[dict[str, Any]]:
    """Return the table with the sections of an evaluation that show each requirement.

    Args:
        sections: Numbers of the sections with results.

    Returns:
        For each requirement `subject`, `number`, `level` and `sections`, empty if it is not shown.
    """
    there = set(sections)
    return [
        {
            "subject": one.subject,
            "number": one.number,
            "level": one.level,
            "sections": [number for number in one.sections if number in there],
        }
        for one in REQUIREMENTS
    ]
