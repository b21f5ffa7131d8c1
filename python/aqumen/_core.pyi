"""The Rust engines, as compiled. The package `aqumen` is their public face."""

from collections.abc import Callable, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Cancelled",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "__version__",
    "json_schema",
    "list_aqms_json",
    "run",
    "run_many",
    "summary",
]

__version__: str

class ScenarioError(ValueError): ...
class Cancelled(Exception): ...

@final
class Scenario:
    @staticmethod
    def load(path: str) -> Scenario: ...
    @staticmethod
    def parse(text: str, file: str = "scenario") -> Scenario: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    def set(self, key: str, value: str) -> Scenario: ...
    def to_toml(self) -> str: ...
    def plan_json(self, seed: int, aqm: str | None) -> str: ...
    def aqm_names(self) -> list[str]: ...
    def check_aqm(self, spec: str) -> None: ...
    def memory_estimate(self) -> int: ...
    def check_memory(self, runs: int) -> None: ...

@final
class RunResult:
    @property
    def json(self) -> str: ...
    def series(self, link: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def sojourn_cdf(self, link: str, window: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

def run(
    scenario: Scenario,
    aqm: str | None,
    seed: int,
    pcap: str | None = None,
    progress: Callable[[float], bool] | None = None,
) -> RunResult: ...
def run_many(
    scenario: Scenario,
    jobs: Sequence[tuple[str | None, int]],
    threads: int,
    on_done: Callable[[int, RunResult], bool],
) -> None: ...
def run_fluid(
    scenario: Scenario,
    aqm: str | None,
    seed: int,
    model: str | None = None,
    progress: Callable[[float], bool] | None = None,
) -> RunResult: ...
def run_fluid_many(
    scenario: Scenario,
    jobs: Sequence[tuple[str | None, int]],
    model: str | None,
    threads: int,
    on_done: Callable[[int, RunResult], bool],
) -> None: ...
def summary(values: Sequence[float]) -> tuple[float, float | None, tuple[float, float] | None, int]: ...
def list_aqms_json() -> str: ...
def json_schema() -> str: ...
