"""The Rust engines, as compiled. The package `aqumen` is their public face."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALIKE",
    "Analysis",
    "Cancelled",
    "Catalogue",
    "PacketView",
    "QueueRecord",
    "QueueView",
    "Replay",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Seen",
    "__version__",
    "analyse",
    "averaged",
    "beside_json",
    "curve_rms",
    "experienced",
    "experiments",
    "goals_json",
    "json_schema",
    "letter_groups",
    "list_aqms_json",
    "list_traffic_json",
    "list_transports_json",
    "metric_keys",
    "mmpp_json_schema",
    "mmpp_solve",
    "mmpp_solve_text",
    "predict_json",
    "quantity",
    "range_of",
    "rank",
    "run",
    "run_fluid",
    "run_fluid_many",
    "run_many",
    "run_theory",
    "student_quantile",
    "summary",
    "survey",
    "swing_json",
    "transient",
]

__version__: str
ALIKE: float

class ScenarioError(ValueError): ...
class Cancelled(Exception): ...

@final
class Catalogue:
    def __new__(cls, own: Sequence[Any]) -> Catalogue: ...

@final
class Seen:
    """The queue as a control law sees it. Counts are since the same loop's last step."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""
    @property
    def interval_s(self) -> float:
        """Time since this loop's last step."""
    @property
    def queue_pkts(self) -> float:
        """Packets waiting; in the fluid engine with fractions."""
    @property
    def queue_bytes(self) -> float:
        """Bytes waiting."""
    @property
    def arrivals_pkts(self) -> float:
        """Packets offered, those discarded too."""
    @property
    def accepted_pkts(self) -> float:
        """Packets that entered the queue."""
    @property
    def departures_pkts(self) -> float:
        """Packets whose transmission ended."""
    @property
    def departures_bytes(self) -> float:
        """Their bytes."""
    @property
    def busy_s(self) -> float:
        """Time spent on those transmissions: departures per busy time are the link's rate."""
    @property
    def idle_s(self) -> float:
        """Time during which nothing was transmitted."""
    @property
    def sojourn_s(self) -> float:
        """How long the packet taken for transmission last had waited."""
    @property
    def applied(self) -> float:
        """The probability in force."""
    @property
    def loop(self) -> int:
        """Which loop steps: 0, or 1 of a law with two periods."""

@final
class PacketView:
    """A packet as an algorithm sees it."""

    @property
    def bytes(self) -> int:
        """Size on the wire."""
    @property
    def ect(self) -> bool:
        """Whether it can carry a mark."""
    @property
    def ce(self) -> bool:
        """Whether it carries one already."""
    @property
    def flow(self) -> int:
        """Hash of its flow."""
    @property
    def class_(self) -> int:
        """Its traffic class."""

@final
class QueueView:
    """The queue as an algorithm sees it, the packet at hand not counted."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""
    @property
    def packets(self) -> int:
        """Packets waiting."""
    @property
    def bytes(self) -> int:
        """Bytes waiting."""
    @property
    def limit_packets(self) -> int:
        """Packets that may wait."""
    @property
    def full(self) -> bool:
        """Whether the packet that arrives finds no room, whatever the verdict."""
    @property
    def sojourn_s(self) -> float:
        """How long the packet at the head waited; at other calls the one transmitted last."""
    @property
    def uniform(self) -> float:
        """A random number from 0 to below 1, drawn for this packet."""
    @property
    def arrivals_pkts(self) -> int:
        """Packets that arrived so far."""
    @property
    def departures_pkts(self) -> int:
        """Packets whose transmission has ended."""

@final
class Scenario:
    @staticmethod
    def load(path: str, own: Catalogue | None = None) -> Scenario: ...
    @staticmethod
    def parse(text: str, file: str = "scenario", own: Catalogue | None = None) -> Scenario: ...
    @staticmethod
    def of_network(
        capacity: str,
        flows: float,
        round_trip: str,
        at_target: bool,
        packet: str,
        target: str | None = None,
        buffer: str | None = None,
        own: Catalogue | None = None,
    ) -> Scenario: ...
    @property
    def file(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    def set(self, changes: Sequence[tuple[str, str]]) -> Scenario: ...
    def until(self, end: str) -> Scenario: ...
    def knowing(self, own: Catalogue) -> Scenario: ...
    def cells(self) -> list[str]: ...
    def variants(self) -> list[str]: ...
    def cell(self, id: str) -> Scenario: ...
    def to_toml(self) -> str: ...
    def plan_json(self, seed: int, aqm: str | None) -> str: ...
    def requests(self, seed: int) -> list[list[list[tuple[float, str, int, bool]]] | None]: ...
    def own_traffic(self) -> list[tuple[str, str]]: ...
    def aqm_names(self) -> list[str]: ...
    def check_aqm(self, spec: str) -> None: ...
    def qdisc_memory(self, spec: str) -> tuple[int, int] | None: ...
    def check_cost(self, engine: str, aqm: str | None, runs: int, loops: bool = True) -> str | None: ...
    def time_estimate(self, engine: str = "packet", aqm: str | None = None) -> float: ...
    def check_memory(self, runs: int) -> None: ...

@final
class RunResult:
    @property
    def json(self) -> str: ...
    def series(self, link: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def state(self, link: str) -> list[tuple[str, NDArray[np.float64]]]: ...
    def sojourn_cdf(self, link: str, window: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def queue_cdf(self, link: str, window: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

@final
class QueueRecord:
    def __new__(
        cls,
        arrived: NDArray[np.float64],
        taken: NDArray[np.float64],
        lost: NDArray[np.float64],
        changes: NDArray[np.float64],
        rates: Sequence[tuple[float, float]],
        target_pkts: float | None,
        sample_interval_s: float,
    ) -> QueueRecord: ...
    def metrics_json(
        self, start_s: float, end_s: float, queue_integral: float | None, sampled_pkts: Sequence[float]
    ) -> str: ...

@final
class Analysis:
    @property
    def json(self) -> str: ...
    def controller(self) -> tuple[list[float], list[float], float | None] | None: ...
    def plant(self, exact: bool) -> tuple[list[list[float]], list[list[float]], list[float], list[float], float]: ...
    def plant_response(self, w: Sequence[float], exact: bool) -> tuple[list[float], list[float]]: ...
    def loop_response(
        self,
        w: Sequence[float],
        exact: bool,
        controller: tuple[Sequence[float], Sequence[float], float | None] | None = None,
    ) -> tuple[list[float], list[float]]: ...
    def margins_json(
        self, exact: bool, controller: tuple[Sequence[float], Sequence[float], float | None] | None = None
    ) -> str: ...
    def noise_power(self, w: Sequence[float]) -> list[float]: ...
    def sampled_poles(self, gain: float = 1.0) -> tuple[list[float], list[float]] | None: ...
    def map(
        self, x: tuple[str, Sequence[float]], y: tuple[str, Sequence[float]], threads: int, cycles: bool
    ) -> tuple[list[bool], list[bool], list[bool], list[list[float]], list[list[float]]]: ...
    def boundary(
        self, x: tuple[str, tuple[float, float]], y: tuple[str, tuple[float, float]], threads: int
    ) -> list[list[list[float]]]: ...
    def check(
        self,
        duration_s: float,
        flows: float | None = None,
        rtt: float | None = None,
        capacity: float | None = None,
        start: float | None = None,
    ) -> tuple[float, float, float | None]: ...
    def robust_pi(
        self,
        flows: tuple[float, float],
        rtt: tuple[float, float],
        capacity: tuple[float, float],
        frequency: float,
        aim: tuple[str, float, float],
    ) -> tuple[list[float], list[float], list[float]]: ...
    def robust(
        self,
        flows: tuple[float, float],
        rtt: tuple[float, float],
        capacity: tuple[float, float],
        aim: tuple[str, float, float],
    ) -> tuple[list[tuple[str, float]], list[float], list[float]]: ...

def analyse(scenario: Scenario, aqm: str, at_target: bool, model: str | None = None) -> Analysis: ...
def run(
    scenario: Scenario,
    aqm: str | None,
    seed: int,
    pcap: str | None = None,
    progress: Callable[[float], bool] | None = None,
    threads: int = 1,
) -> RunResult: ...
def run_many(
    scenario: Scenario,
    jobs: Sequence[tuple[str | None, int]],
    threads: int,
    on_done: Callable[[int, RunResult], bool],
) -> None: ...
def run_theory(scenario: Scenario, aqm: str | None, seed: int) -> RunResult: ...
def predict_json(scenario: Scenario, aqm: str | None, seed: int, loops: bool = True) -> str: ...
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
def range_of(metric: str) -> tuple[float, float]: ...
def summary(
    values: Sequence[float], low: float = ..., high: float = ...
) -> tuple[float, float | None, tuple[float, float] | None, int]: ...
def transient(
    t_s: Sequence[float] | NDArray[np.float64],
    queue_pkts: Sequence[float] | NDArray[np.float64],
    target_pkts: float,
    start_s: float,
    stop_s: float,
) -> tuple[float | None, float] | None: ...
def goals_json() -> str: ...
def rank(
    summaries: Sequence[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]], by: str | None, base_rtt_s: float
) -> tuple[str, str, list[tuple[str, int, bool, list[str], str | None]]]: ...
def letter_groups(n: int, pairs: set[tuple[int, int]]) -> list[str]: ...
def averaged(t_s: NDArray[np.float64], queues: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]: ...
def curve_rms(
    t_s: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64], start_s: float, stop_s: float
) -> float | None: ...
def beside_json(predicted: str, measured: str, swing: str | None, timeouts: int | None, loops: bool) -> str: ...
def swing_json(
    t_s: Sequence[float] | NDArray[np.float64],
    queue_pkts: Sequence[float] | NDArray[np.float64],
    probability: Sequence[float] | NDArray[np.float64],
    noise_std_pkts: float | None,
) -> str | None: ...
def experienced(
    felt: Sequence[tuple[bool, float, float, float, float, float]],
    runs: Sequence[tuple[str, Sequence[Sequence[Sequence[float | None]]]]],
) -> list[
    tuple[
        str,
        int,
        list[str],
        str | None,
        float,
        float | None,
        list[float],
        list[tuple[float, float | None, tuple[float, float] | None, int] | None],
        list[bool],
    ]
]: ...
def student_quantile(probability: float, freedom: float) -> float: ...
def experiments() -> list[tuple[str, str]]: ...
def list_aqms_json() -> str: ...
def list_traffic_json() -> str: ...
def quantity(kind: str, text: str) -> float: ...
def metric_keys() -> tuple[list[str], list[str]]: ...
def list_transports_json() -> str: ...
def json_schema() -> str: ...
def mmpp_solve(
    path: str,
    overrides: Sequence[tuple[str, str]],
    simulate: bool = False,
    remaining: Callable[[float, int], bool] | None = None,
) -> tuple[str, str]: ...
def mmpp_solve_text(
    text: str,
    file: str,
    overrides: Sequence[tuple[str, str]],
    simulate: bool = False,
    remaining: Callable[[float, int], bool] | None = None,
) -> tuple[str, str]: ...
def mmpp_json_schema() -> str: ...

@final
class Replay:
    @property
    def setup_json(self) -> str: ...
    def check_aqm(self, spec: str) -> None: ...
    def check_cost(self, spec: str, progress: Callable[[float], bool] | None = None) -> str | None: ...
    def run(self, spec: str, out: str | None = None, progress: Callable[[float], bool] | None = None) -> str: ...

def survey(
    capture: str,
    settings: Sequence[tuple[str, str | float]],
    progress: Callable[[float], bool] | None = None,
    own: Catalogue | None = None,
) -> Replay: ...
