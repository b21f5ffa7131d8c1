"""Claims of a paper: statements and the rules that judge them, read from `experiments/PAPER/claims.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aqumen import _experiments
from aqumen.errors import ScenarioError, listed, meant

__all__ = ["EXPLAINED", "UNCONTROLLED", "VERDICTS", "Claim", "Panel", "Paper", "Rule", "load_paper"]

VERDICTS = (
    "reproduced",
    "reproduced in a reading",
    "partly",
    "refuted in every reading",
    "open",
    "inconsistent",
    "cannot be tested",
)
"""Possible verdicts on a claim; `verdict` says how they follow from the readings."""
UNCONTROLLED = "passed without control"
"""Claims that hold for an AQM without control as well are counted under this name, not as reproduced."""
EXPLAINED = ("reproduced in a reading", "partly", "refuted in every reading", "open")
"""Verdicts whose cause is given."""

Rule = dict[str, Any]

KEYS = {
    "number": {"near", "tolerance", "least", "most"},
    "order": {"first", "chain", "factor", "by", "ties", "terms"},
    "same": {"tolerance", "terms"},
    "trend": {"sense", "ratio"},
    "correlation": {"with", "least"},
    "algebra": {"check"},
    "none": {"why"},
}
"""Keys of each kind of rule, in addition to those that locate its quantity."""
WHERE = {"test", "of", "aqm", "at", "window", "link", "flows", "combine", "across", "over", "less", "minus", "reading"}
TERM = WHERE - {"test", "reading"}
AGGREGATES = ("mean", "spread", "largest", "least", "rank", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A statement of a paper that can be true or false."""

    id: str
    """Identifier."""
    where: str
    """Section, figure or equation of the paper."""
    figure: str
    """Heading of the claim in reports."""
    kind: str
    """`number`, `ordering`, `shape` or `statement`."""
    quantity: str
    """Subject of the claim."""
    claimed: str
    """Statement of the paper."""
    note: str
    """Remark on its interpretation."""
    rules: tuple[Rule, ...]
    """Rules that judge it; all checks of all rules have equal weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Contents of a panel of a paper's figure."""

    figure: str
    """Heading of the claims that it belongs to."""
    title: str
    """Name in the paper: `Figure 6a`."""
    of: str
    """`queue` or `probability` over time, or an expression over the cells of a sweep."""
    at: tuple[str, ...]
    """Cells: one over time, several in the order of a sweep."""
    aqm: tuple[str, ...]
    """Names of AQMs in the paper."""
    x: tuple[float, ...] = ()
    """Abscissae of the cells of a sweep."""
    x_label: str = ""
    """Label of the abscissa."""
    label: str = ""
    """Label of the ordinate, if not the expression."""
    log: bool = False
    """Whether the abscissa is logarithmic, as in the paper."""
    window: str = "steady"
    """Window of a sweep's quantity."""
    link: str | None = None
    """Link, if not the first."""
    flows: str | None = None
    """Pattern of flow groups."""
    combine: str | None = None
    """How groups are combined."""
    target: bool = True
    """Whether the scenario's target is drawn; not for AQMs without one."""
    span_s: tuple[float, float] | None = None
    """Part of the time that is drawn; default: all."""

    def between(self, t_s: float) -> bool:
        """Return whether a time is drawn.

        Args:
            t_s: Time, s.
        """
        return self.span_s is None or self.span_s[0] <= t_s <= self.span_s[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper with its claims."""

    name: str
    """Name of its folder: `arm-pfc`."""
    title: str
    """Authors, title and year."""
    readings: Mapping[str, Mapping[str, Any]]
    """Interpretations of what the paper leaves open. Each maps the paper's names of AQMs to SPECs; `variant` is the
    scenario variant of all cells, `variants` that of single AQMs."""
    about: Mapping[str, str]
    """Description of each interpretation."""
    claims: tuple[Claim, ...]
    """Claims in the order of the paper."""
    reasons: Mapping[str, tuple[str, str]]
    """Claim id -> cause of a claim that is not reproduced, and the experiment that shows it."""
    recorded: Mapping[str, str]
    """Claim id -> recorded verdict."""
    headlines: Mapping[str, str] = field(default_factory=dict)
    """Claim id -> recorded headline."""
    standings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Claim id -> recorded state in each reading."""
    passed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Claim id -> AQMs without control that satisfy the claim, on record."""
    summary: str = ""
    """Result in a sentence."""
    phrases: Mapping[str, str] = field(default_factory=dict)
    """Reading -> words for "in this reading" in a headline."""
    surprising: tuple[tuple[str, str], ...] = ()
    """Claims whose results surprise most, each with the result in a sentence."""
    panels: tuple[Panel, ...] = ()
    """Panels of its figures."""
    null: Mapping[str, str] = field(default_factory=dict)
    """AQMs without control, by name: SPECs."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """Run that produced the recorded verdicts."""
    measured: Mapping[str, str] = field(default_factory=dict)
    """Claim id -> result of that run, in words."""
    slow: tuple[str, ...] = ()
    """Scenarios that a quick run leaves out, with their variants."""


def load_paper(name: str) -> Paper:
    """Read a paper's claims and recorded verdicts.

    Args:
        name: Name of the paper's folder.
    """
    text = _experiments.data(f"{name}/claims")
    if text is None:
        raise ScenarioError(
            f"no claims of a paper `{name}`{meant(name, _experiments.PAPERS) or ';'} "
            f"choose from: {listed(_experiments.PAPERS)}"
        )
    file = f"{name}/claims.toml"
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{file}: {error}") from None
    claims = tuple(_claim(file, entry) for entry in said["claims"])
    ids = [claim.id for claim in claims]
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise ScenarioError(f"{file}: claim {twice} is defined twice")
    reasons: dict[str, tuple[str, str]] = {}
    for entry in said.get("reasons", []):
        for claim_id in entry["claims"]:
            if claim_id not in ids:
                raise ScenarioError(f"{file}: a reason refers to the unknown claim {claim_id}")
            reasons[claim_id] = (entry["why"], entry["shown_by"])
    words = ("about", "phrase")
    for entry in said.get("surprising", []):
        if entry["claim"] not in ids:
            raise ScenarioError(f"{file}: a surprising result refers to the unknown claim {entry['claim']}")
    readings = {key: {k: v for k, v in value.items() if k not in words} for key, value in said["readings"].items()}
    paper = Paper(
        name=name,
        title=_experiments.PAPERS[name],
        readings=readings,
        about={key: value.get("about", "") for key, value in said["readings"].items()},
        phrases={key: value["phrase"] for key, value in said["readings"].items() if "phrase" in value},
        summary=said.get("summary", ""),
        null=said.get("null", {}),
        surprising=tuple((entry["claim"], entry["says"]) for entry in said.get("surprising", [])),
        panels=tuple(_panel(file, entry, readings, claims) for entry in said.get("panels", [])),
        claims=claims,
        reasons=reasons,
        **_recorded(name),
        slow=tuple(said.get("slow", [])),
    )
    for claim in claims:
        for rule in claim.rules:
            _check_rule(file, paper, claim, rule)
    return paper


def _recorded(name: str) -> dict[str, Any]:
    text = _experiments.data(f"{name}/verdicts")
    said = {} if text is None else tomllib.loads(text)
    return {
        "recorded": said.get("verdicts", {}),
        "record": said.get("run", {}),
        "measured": said.get("measured", {}),
        "headlines": said.get("headlines", {}),
        "standings": said.get("readings", {}),
        "passed": said.get("without_control", {}),
    }


def _panel(
    file: str, entry: dict[str, Any], readings: Mapping[str, Mapping[str, Any]], claims: tuple[Claim, ...]
) -> Panel:
    title = entry.get("title", "?")
    given: dict[str, Any] = {
        key: (entry[key],) if isinstance(entry[key], str) else tuple(entry[key]) for key in ("at", "aqm")
    }
    if entry["figure"] not in {claim.figure for claim in claims}:
        raise ScenarioError(f"{file}: panel {title}: no claims under the heading {entry['figure']!r}")
    for aqm in given["aqm"]:
        if any(aqm not in reading for reading in readings.values()):
            raise ScenarioError(f"{file}: panel {title}: no reading defines {aqm}")
    more: dict[str, Any] = {key: tuple(entry[key]) for key in ("x", "span_s") if key in entry}
    if len(given["at"]) > 1 and "x" not in more:
        more["x"] = _numbers(file, title, given["at"])
    try:
        return Panel(**{**entry, **given, **more})
    except TypeError as error:
        raise ScenarioError(f"{file}: panel {title}: {error}") from None


def _numbers(file: str, title: str, cells: tuple[str, ...]) -> tuple[float, ...]:
    """Return the number in the label of each cell of a sweep: 10 of `rtt@10ms`."""
    found = [re.search(r"\d+(?:\.\d+)?", cell.partition("@")[2]) for cell in cells]
    if None in found:
        raise ScenarioError(f"{file}: panel {title}: no number in the label of {cells[found.index(None)]}; give `x`")
    return tuple(float(match[0]) for match in found if match)


def _claim(file: str, entry: dict[str, Any]) -> Claim:
    try:
        rules = entry["rule"]
        return Claim(
            id=entry["id"],
            where=entry["where"],
            figure=entry.get("figure") or entry["where"],
            kind=entry["kind"],
            quantity=entry["quantity"],
            claimed=entry["claimed"],
            note=entry.get("note", ""),
            rules=tuple(rules if isinstance(rules, list) else [rules]),
        )
    except KeyError as error:
        raise ScenarioError(f"{file}: claim {entry.get('id', '?')} lacks {error}") from None


def _check_rule(file: str, paper: Paper, claim: Claim, rule: Rule) -> None:
    """Raise `ScenarioError` for a rule with unknown or missing keys."""

    def refuse(why: str) -> ScenarioError:
        return ScenarioError(f"{file}: claim {claim.id}: {why}")

    test = rule.get("test")
    if test not in KEYS:
        raise refuse(f"test = {test!r}; choose from: {listed(KEYS)}")
    if strange := set(rule) - KEYS[test] - WHERE:
        raise refuse(f"test `{test}` has no {sorted(strange)[0]}")
    if test in ("algebra", "none"):
        return
    if "of" not in rule or ("at" not in rule and "terms" not in rule):
        raise refuse("a rule needs `of` and `at`")
    for term in [rule, *rule.get("terms", [])]:
        if (across := term.get("across")) is not None and across not in AGGREGATES:
            raise refuse(f"across = {across!r}; choose from: {listed(AGGREGATES)}")
        names = term.get("aqm", [])
        for aqm in [names] if isinstance(names, str) else names:
            if any(aqm not in reading for reading in paper.readings.values()):
                raise refuse(f"no reading defines {aqm}")
    for term in rule.get("terms", []):
        if strange := set(term) - TERM:
            raise refuse(f"a term has no {sorted(strange)[0]}")
    for reading in rule.get("reading", []):
        if reading not in paper.readings:
            raise refuse(f"no reading {reading}; choose from: {listed(paper.readings)}")
