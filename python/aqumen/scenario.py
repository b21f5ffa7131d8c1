"""The scenario: which network, which traffic, which AQM, for how long."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqumen import _core, _experiments
from aqumen._files import check_file
from aqumen.custom import Own, catalogue, name_of
from aqumen.errors import ScenarioError

__all__ = ["Scenario", "as_scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A network, its traffic, its AQMs and what to record; immutable.

    Get one with `Scenario.load`, `Scenario.parse` or from typed objects such as `aqumen.Dumbbell`.
    """

    core: _core.Scenario
    """The compiled scenario."""
    own: tuple[Own, ...] = ()
    """AQMs and sources of traffic of one's own that it knows beside what is built in."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], own: Sequence[Own] = ()) -> Scenario:
        """Read a scenario file, or an experiment that comes with Aqumen.

        Args:
            path: A TOML file; or, where there is none, the name of an experiment: `arm-pfc/exp1`. Behind an `@` stands
                a cell of its sweep, with variants: `aqm-mo/rtt@464ms,ecn`.
            own: Classes of your own AQMs and sources of traffic, which it may name.

        Raises:
            ScenarioError: The file is absent, is no text, or is no scenario; the message names file, line and key.
        """
        if not os.path.exists(path):
            base, at, cell = os.fspath(path).rpartition("@")
            former = _experiments.cell_of(base if at else path)
            if former is not None:
                return cls.load(f"{former},{cell}" if at else former, own)
            if at:
                return cls.load(base, own).cell(cell)
            experiment = _experiments.find(path)
            if experiment is not None:
                return cls.parse(experiment.text, f"{experiment.name}.toml", own)
            if not os.fspath(path).endswith(".toml"):
                raise ScenarioError(f"{os.fspath(path)}: {_experiments.suggestion(path)}")
        check_file(path)
        try:
            return cls(_core.Scenario.load(os.fspath(path), _catalogue(own)), tuple(own))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @classmethod
    def parse(cls, text: str, file: str = "scenario", own: Sequence[Own] = ()) -> Scenario:
        """Read a scenario from text.

        Args:
            text: The TOML text.
            file: The name that error messages give it.
            own: Classes of your own AQMs and sources of traffic, which it may name.
        """
        try:
            return cls(_core.Scenario.parse(text, file, _catalogue(own)), tuple(own))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def knowing(self, own: Sequence[Own]) -> Scenario:
        """A copy that knows more AQMs and sources of traffic.

        Args:
            own: Classes of your own. One of a name that it knows already takes that one's place.
        """
        more = [each for each in own if each not in self.own]
        if not more:
            return self
        names = {name_of(each) for each in more}
        known = (*(each for each in self.own if name_of(each) not in names), *more)
        catalogue = _catalogue(known)
        assert catalogue is not None
        try:
            return Scenario(self.core.with_catalogue(catalogue), known)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def name(self) -> str:
        """The short name, as results carry it."""
        return self.core.name

    @property
    def title(self) -> str:
        """What it is, in a line."""
        return self.core.title

    def set(self, key: str, value: str) -> Scenario:
        """A copy with one value changed, as `--set KEY=VALUE` does.

        Args:
            key: The key, with dots between tables: `bottleneck.rate`.
            value: The value as it would stand in the file: `10Mbit`.

        Raises:
            ScenarioError: If the changed scenario is not valid. Where the error is at another key, the message names
                `set_all`, which changes keys that are valid only together.
        """
        try:
            return self.set_all([(key, value)])
        except ScenarioError as error:
            message = str(error)
            place = re.search(r": ([\w.-]+)(?: = |: )", message)
            if place is None or "unknown key" in message or place[1].endswith(key.rpartition(".")[2]):
                raise
            raise ScenarioError(f"{message}; `set_all` changes several keys at once") from None

    def set_all(self, changes: Sequence[tuple[str, str]]) -> Scenario:
        """A copy with several values changed, and checked when all are in place.

        Args:
            changes: Keys and values, as in `set`.
        """
        try:
            return replace(self, core=self.core.set(changes))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def keys(self) -> list[str]:
        """Keys of all values, with dots between tables and the numbers of list items: `flows.0.count`."""

        def of(value: object, path: str) -> list[str]:
            if isinstance(value, dict):
                return [key for name, each in value.items() for key in of(each, f"{path}.{name}" if path else name)]
            if isinstance(value, list) and any(isinstance(each, dict) for each in value):
                return [key for i, each in enumerate(value) for key in of(each, f"{path}.{i}")]
            return [path]

        return of(tomllib.loads(self.to_toml()), "")

    @property
    def cells(self) -> list[str]:
        """Ids of the cells of its sweep; empty without one."""
        return self.core.cells()

    @property
    def variants(self) -> list[str]:
        """Names of its variants, which can be added to any cell."""
        return self.core.variants()

    def cell(self, cell: str) -> Scenario:
        """One cell of its sweep, or a variant, or both.

        Args:
            cell: Points of its axes and names of variants, with commas between: `464ms,ecn`.
        """
        try:
            return replace(self, core=self.core.cell(cell))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def until(self, end: str) -> Scenario:
        """Its beginning alone: events, windows and groups of flows that come later are left out.

        Args:
            end: When it ends, before the scenario's own end: `40s`.
        """
        try:
            return replace(self, core=self.core.until(end))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def to_toml(self) -> str:
        """The scenario as TOML; `Scenario.parse` of it gives the same scenario."""
        return self.core.to_toml()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as a TOML file.

        Args:
            path: The file to write.
        """
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def plan(self, seed: int = 1, aqm: str | None = None) -> dict[str, Any]:
        """The scenario made explicit: every node, link and flow by itself, times in seconds, rates in bit/s.

        Args:
            seed: The seed that places start times and delays.
            aqm: The AQM under test, a SPEC; without one the scenario's own.
        """
        try:
            return self.core.plan(seed, aqm)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def check_aqm(self, spec: str) -> None:
        """Raise `ScenarioError` if the AQM cannot be used here.

        Args:
            spec: A name, a profile of the scenario, or a name with parameters: `pi:a=1.822e-5,b=1.816e-5`.
        """
        try:
            self.core.check_aqm(spec)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def qdisc_memory(self, spec: str) -> tuple[int, int] | None:
        """Bytes of memory that the queue discipline of an AQM reserves on the first link under test.

        Beside all of them (itself, its tables, room for the packets that its buffer holds, 16 384 at most) what one
        flow takes: the tables of a queue, or 0 where all flows share one. `None` for an AQM of one's own.

        Args:
            spec: The AQM.
        """
        try:
            return self.core.qdisc_memory(spec)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def aqms(self) -> list[str]:
        """Names of the AQMs that can run here: the scenario's profiles, and all known ones."""
        return self.core.aqm_names()

    @property
    def own_traffic(self) -> dict[str, str]:
        """The groups of flows whose traffic is a source of one's own, and its name."""
        return dict(self.core.custom_traffic())

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.title!r})"


def _catalogue(own: Sequence[Own]) -> _core.Catalogue | None:
    if not own:
        return None
    return catalogue(tuple(own))


def as_scenario(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    """The scenario itself, or the one in a file.

    Args:
        scenario: A scenario, the path of its file, or the name of an experiment.
    """
    if isinstance(scenario, Scenario):
        return scenario
    to_scenario = getattr(scenario, "scenario", None)
    if callable(to_scenario):
        built = to_scenario()
        assert isinstance(built, Scenario)
        return built
    return Scenario.load(scenario)
