"""Cases of a study: everything that decides a run but its seed, and the labels under which its rows stand.

A definition expands to cases: scenarios x points x AQMs, without repetitions. A case is kept as text (base scenario,
changes, SPEC), since thousands of scenarios do not fit into memory and text travels to other machines.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aqumen import _core, engines
from aqumen._store import Digests
from aqumen.custom import digest, from_file, from_source, is_aqm, name_of, source_of
from aqumen.errors import Error, ScenarioError
from aqumen.scenario import Scenario
from aqumen.study.definition import Definition
from aqumen.study.drawn import draw
from aqumen.study.factors import Value, points, text_of
from aqumen.study.warm_up import settled

__all__ = ["Bases", "Case", "expand", "with_parameters"]


@dataclass(frozen=True, slots=True)
class Case:
    """A point of a study with one AQM."""

    key: str
    """Digest of all that decides its runs but the seed."""
    base: str
    """Name of its scenario among the bases."""
    changes: tuple[tuple[str, str], ...]
    """Keys of the scenario that are set."""
    spec: str
    """The AQM with its parameters, a SPEC."""
    labels: Mapping[str, Value]
    """Columns that identify its rows: `scenario`, `aqm`, and the factors that it has."""

    def to_list(self) -> list[Any]:
        """Return the case as JSON keeps it."""
        return [self.key, self.base, [list(each) for each in self.changes], self.spec, dict(self.labels)]

    @classmethod
    def from_list(cls, given: Sequence[Any]) -> Case:
        """Return the case of a list from `to_list`.

        Args:
            given: The list, from JSON.
        """
        key, base, changes, spec, labels = given
        return cls(key, base, tuple((name, value) for name, value in changes), spec, labels)


class Bases:
    """Scenarios of a study as they were read, with the files that they name and custom classes, as text."""

    def __init__(
        self, texts: Mapping[str, tuple[str, dict[str, bytes]]], sources: Sequence[tuple[str, str, str]], custom: str
    ) -> None:
        """Keep texts.

        Args:
            texts: TOML text and contents of the named files, by name of the scenario.
            sources: File name, class name and text of each custom class.
            custom: Digest of the custom classes; empty without one.
        """
        self.texts, self.sources, self.custom = dict(texts), list(sources), custom
        self._base = functools.lru_cache(64)(self._load)
        self._last: tuple[object, Scenario] | None = None

    def _load(self, name: str) -> Scenario:
        text, files = self.texts[name]
        custom = tuple(from_source(*each) for each in self.sources)
        return Scenario.parse(text, f"{name}.toml", custom, files)

    def scenario(self, case: Case) -> Scenario:
        """Return the scenario of a case. Cases that follow one another share it where it is equal.

        Args:
            case: A case of this study.
        """
        asked = (case.base, case.changes)
        if self._last is None or self._last[0] != asked:
            base = self._base(case.base)
            self._last = asked, base.set_all(case.changes) if case.changes else base
        return self._last[1]

    def to_dict(self) -> dict[str, Any]:
        """Return the texts as JSON keeps them."""
        texts = {
            name: [text, {file: base64.b64encode(contents).decode() for file, contents in files.items()}]
            for name, (text, files) in self.texts.items()
        }
        return {"scenarios": texts, "sources": [list(each) for each in self.sources], "custom": self.custom}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Bases:
        """Return the bases of a dictionary from `to_dict`.

        Args:
            given: The dictionary, from JSON.
        """
        texts = {
            name: (text, {file: base64.b64decode(contents) for file, contents in files.items()})
            for name, (text, files) in given["scenarios"].items()
        }
        return cls(texts, [(a, b, c) for a, b, c in given["sources"]], given["custom"])


def expand(definition: Definition, on_progress: Callable[[int, int], object] | None = None) -> tuple[Bases, list[Case]]:
    """Return the bases and cases of a study; each case is checked.

    Args:
        definition: The study.
        on_progress: Called with the numbers of checked points and of all.

    Raises:
        ScenarioError: A scenario, a factor or an AQM is not valid; the message names it and what is accepted.
    """
    folder = definition.folder
    custom = [from_file(_beside(folder, file)) for file in definition.aqm_from]
    custom += [from_file(_beside(folder, file), traffic=True) for file in definition.traffic_from]
    aqms = [
        *definition.aqms,
        *(name_of(each) for each in custom if is_aqm(each) and name_of(each) not in definition.aqms),
    ]
    scenarios: dict[str, Scenario] = {}
    for name in definition.scenarios:
        path, at, cell = name.rpartition("@")
        place = _beside(definition.folder, path if at else name)
        if cell == "*" and at:
            whole = Scenario.load(place, custom)
            if not whole.cells:
                raise ScenarioError(f"{name}: the scenario has no sweep, so no cells; leave out @*")
            scenarios.update({f"{path}@{each}": whole.cell(each) for each in whole.cells})
        else:
            scenarios[name] = Scenario.load(f"{place}@{cell}" if at else place, custom)
    if definition.draw is not None:
        drawn = draw(*definition.draw)
        scenarios |= {each.name: Scenario.parse(each.text, f"{each.name}.toml", custom) for each in drawn}
    if definition.until is not None:
        scenarios = {name: each.until(definition.until) for name, each in scenarios.items()}
    texts = {name: (each.to_toml(), dict(each.core.files())) for name, each in scenarios.items()}
    known = digest(custom) if custom else ""
    bases = Bases(texts, [source_of(each) for each in custom], known)
    _check_parameters(definition, aqms)
    cases: dict[tuple[str, ...], Case] = {}
    every = points(definition.factors, definition.design)
    for before, (name, scenario) in enumerate(scenarios.items()):
        engines.check_engine(definition.engine, scenario)
        for number, point in enumerate(every):
            if on_progress is not None:
                on_progress(before * len(every) + number, len(scenarios) * len(every))
            for case in _at(definition, bases, name, scenario, point, aqms, known):
                cases.setdefault((case.key, *map(str, case.labels.items())), case)
    return bases, list(cases.values())


def _at(
    definition: Definition,
    bases: Bases,
    name: str,
    scenario: Scenario,
    point: Mapping[str, Value],
    aqms: Sequence[str],
    known: str,
) -> list[Case]:
    """Return the cases of one scenario at one point, an AQM each."""
    keys = {key: value for key, value in point.items() if ":" not in key}
    changes = (*definition.changes, *((key, text_of(value)) for key, value in keys.items()))
    try:
        changed = scenario.set_all(changes) if changes else scenario
    except ScenarioError as error:
        raise ScenarioError(f"{_shown(keys)}: {error}") from None
    cases = []
    for aqm in aqms:
        own = {key: value for key, value in point.items() if key.partition(":")[0] == _name(aqm) and ":" in key}
        spec = _with(aqm, own)
        here, more = changed, changes
        try:
            here.check_aqm(spec)
            if definition.warm_up is not None:
                more = (*changes, *settled(changed, spec, definition.engine))
                here = scenario.set_all(more)
        except Error as error:
            if definition.refused == "skip":
                continue
            raise ScenarioError(f"{_shown({**keys, **own}) or name}: {error}") from None
        labels = {"scenario": name, "aqm": aqm, **keys, **own}
        key = Digests(here, definition.engine, known or None).case(spec)
        cases.append(Case(key, name, more, spec, labels))
    return cases


def with_parameters(bases: Bases, engine: str, case: Case, values: Mapping[str, Value]) -> Case:
    """Return a case with other parameters of its AQM.

    Args:
        bases: Scenarios of the study.
        engine: Name of the engine.
        case: A case of the study.
        values: Parameters by name of the factor, such as `pi:target`.

    Raises:
        ScenarioError: The AQM does not take them.
    """
    scenario, spec = bases.scenario(case), _with(case.spec, values)
    scenario.check_aqm(spec)
    key = Digests(scenario, engine, bases.custom or None).case(spec)
    return Case(key, case.base, case.changes, spec, {**case.labels, **values})


def _with(spec: str, values: Mapping[str, Value]) -> str:
    for key, value in values.items():
        spec += f"{',' if ':' in spec else ':'}{key.partition(':')[2]}={text_of(value)}"
    return spec


def _check_parameters(definition: Definition, aqms: Sequence[str]) -> None:
    """Refuse factors of AQMs that the study does not run, and names that rows have anyway."""
    names = {_name(aqm) for aqm in aqms}
    link, _ = _core.metric_keys()
    for factor in definition.factors:
        aqm, colon, _ = factor.name.partition(":")
        if colon and aqm not in names:
            raise ScenarioError(
                f"factors.{factor.name}: the study runs no AQM `{aqm}`; it runs {', '.join(sorted(names))}"
            )
        if factor.name in ("seed", "scenario", "aqm", *link):
            raise ScenarioError(
                f"factors.{factor.name}: is a column of the rows already; `aqms` and `scenarios` list those"
            )


def _shown(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def _name(spec: str) -> str:
    return spec.partition(":")[0].strip()


def _beside(folder: Path, name: str) -> str:
    """Return a path relative to the study's folder, or the name itself if no such file exists."""
    beside = folder / name
    return str(beside) if beside.exists() or (":" in name and (folder / name.rpartition(":")[0]).exists()) else name
