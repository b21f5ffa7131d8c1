"""Scenarios: network, traffic, AQM and duration."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aqumen import _core, _experiments
from aqumen._files import check_file
from aqumen.custom import CustomClass, catalogue, from_source, name_of, source_of
from aqumen.errors import ScenarioError

__all__ = ["Scenario", "as_scenario"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A network, its traffic, its AQMs and what to record; immutable.

    Get one with `Scenario.load`, `Scenario.parse` or from typed objects such as `aqumen.Dumbbell`.
    """

    core: _core.Scenario
    """The compiled scenario."""
    custom: tuple[CustomClass, ...] = ()
    """Custom AQMs and traffic sources that the scenario may use."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], custom: Sequence[CustomClass] = ()) -> Scenario:
        """Read a scenario file or an experiment that comes with Aqumen.

        Args:
            path: A TOML file or the name of an experiment: `arm-pfc/exp1`. A cell of a sweep and variants follow an
                `@`: `aqm-mo/rtt@464ms,ecn`.
            custom: Custom AQMs that the scenario may use and custom traffic sources that it must use.

        Raises:
            ScenarioError: The file is missing or not a valid scenario; the message names file, line and key.
        """
        if not os.path.exists(path):
            base, at, cell = os.fspath(path).rpartition("@")
            former = _experiments.cell_of(base if at else path)
            if former is not None:
                return cls.load(f"{former},{cell}" if at else former, custom)
            if at:
                return cls.load(base, custom).cell(cell)
            experiment = _experiments.find(path)
            if experiment is not None:
                return cls.parse(experiment.text, f"{experiment.name}.toml", custom)
            if not os.fspath(path).endswith(".toml"):
                raise ScenarioError(f"{os.fspath(path)}: {_experiments.suggestion(path)}")
        check_file(path)
        try:
            return cls(_core.Scenario.load(os.fspath(path), _catalogue(custom)), tuple(custom))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @classmethod
    def parse(
        cls,
        text: str,
        file: str = "scenario",
        custom: Sequence[CustomClass] = (),
        files: Mapping[str, bytes] | None = None,
    ) -> Scenario:
        """Parse a scenario.

        Args:
            text: TOML text.
            file: File name for error messages.
            custom: Classes of custom AQMs and traffic sources that the scenario may use.
            files: Contents of the files that it names; default: read from beside `file`.
        """
        try:
            return cls(_core.Scenario.parse(text, file, _catalogue(custom), files), tuple(custom))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def knowing(self, custom: Sequence[CustomClass]) -> Scenario:
        """Return a copy that may use more custom AQMs and traffic sources.

        Args:
            custom: Classes to add; one replaces a class of equal name.
        """
        more = [each for each in custom if each not in self.custom]
        if not more:
            return self
        names = {name_of(each) for each in more}
        known = (*(each for each in self.custom if name_of(each) not in names), *more)
        catalogue = _catalogue(known)
        assert catalogue is not None
        try:
            return Scenario(self.core.with_catalogue(catalogue), known)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as text, with the contents of the files that it names and the sources of custom classes."""
        sources = tuple(source_of(each) for each in self.custom)
        return _unpickled, (self.to_toml(), self.core.file, dict(self.core.files()), sources)

    @property
    def name(self) -> str:
        """Short name, as in results."""
        return self.core.name

    @property
    def title(self) -> str:
        """One-line description."""
        return self.core.title

    def set(self, key: str, value: str) -> Scenario:
        """Return a copy with one value changed, as `--set KEY=VALUE` does.

        Args:
            key: Key, with dots between tables: `bottleneck.rate`.
            value: Value as in the file: `10Mbit`.

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
        """Return a copy with several values changed; it is checked after all changes.

        Args:
            changes: Keys and values, as for `set`.
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
        """Names of the cells of its sweep; empty without a sweep."""
        return self.core.cells()

    @property
    def variants(self) -> list[str]:
        """Names of its variants, which can be added to any cell."""
        return self.core.variants()

    def cell(self, cell: str) -> Scenario:
        """Return one cell of its sweep, a variant, or both combined.

        Args:
            cell: Points of the sweep's axes and names of variants, separated by commas: `464ms,ecn`.
        """
        try:
            return replace(self, core=self.core.cell(cell))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def until(self, end: str) -> Scenario:
        """Return a copy that ends earlier; later events, windows and flow groups are left out.

        Args:
            end: Simulated time at which it ends, with a unit: `40s`.
        """
        try:
            return replace(self, core=self.core.until(end))
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def to_toml(self) -> str:
        """Return the scenario as TOML, which `Scenario.parse` reads back without change."""
        return self.core.to_toml()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scenario as a TOML file.

        Args:
            path: The file to write.
        """
        Path(path).write_text(self.to_toml(), encoding="utf-8")

    def plan(self, seed: int = 1, aqm: str | None = None) -> dict[str, Any]:
        """Return the plan: every node, link and flow, times in seconds, rates in bit/s.

        Args:
            seed: Seed of start times and delays.
            aqm: AQM under test, a SPEC; default: the scenario's.
        """
        try:
            return self.core.plan(seed, aqm)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def check_aqm(self, spec: str) -> None:
        """Raise `ScenarioError` if the scenario cannot use an AQM.

        Args:
            spec: A name, a profile of the scenario, or a name with parameters: `pi:a=1.822e-5,b=1.816e-5`.
        """
        try:
            self.core.check_aqm(spec)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    def qdisc_memory(self, spec: str) -> tuple[int, int] | None:
        """Return the memory of an AQM's queueing discipline on the first link under test, bytes.

        The first number is the total: object, tables and space for buffered packets (at most 16 384). The second is
        the part for each flow: the tables of a queue, or 0 if all flows share one. `None` for a custom AQM.

        Args:
            spec: The AQM.
        """
        try:
            return self.core.qdisc_memory(spec)
        except _core.ScenarioError as error:
            raise ScenarioError(str(error)) from None

    @property
    def aqms(self) -> list[str]:
        """Names of the AQMs that the scenario may use: its profiles, then all others."""
        return self.core.aqm_names()

    @property
    def custom_traffic(self) -> dict[str, str]:
        """Flow groups with a custom traffic source, and the name of the source."""
        return dict(self.core.custom_traffic())

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.title!r})"


def _unpickled(text: str, file: str, files: dict[str, bytes], sources: tuple[tuple[str, str, str], ...]) -> Scenario:
    """Return the scenario that `Scenario.__reduce__` took apart."""
    custom = tuple(from_source(*each) for each in sources)
    return Scenario.parse(text, file, custom, files)


def _catalogue(custom: Sequence[CustomClass]) -> _core.Catalogue | None:
    if not custom:
        return None
    return catalogue(tuple(custom))


def as_scenario(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    """Return a scenario unchanged, or load one.

    Args:
        scenario: A scenario, a typed object such as `Dumbbell`, a path, or the name of an experiment.
    """
    if isinstance(scenario, Scenario):
        return scenario
    to_scenario = getattr(scenario, "scenario", None)
    if callable(to_scenario):
        built = to_scenario()
        assert isinstance(built, Scenario)
        return built
    return Scenario.load(scenario)
