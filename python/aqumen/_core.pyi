"""Compiled Rust engines; the package `aqumen` is their public interface."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ALIKE",
    "ENGINES",
    "Analysis",
    "Cancelled",
    "Catalogue",
    "Environments",
    "Law",
    "LawView",
    "PacketView",
    "QueueRecord",
    "QueueView",
    "Replay",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "Session",
    "__version__",
    "analyse",
    "compare_prediction",
    "compiled_aqms",
    "curve_rms",
    "experiments",
    "goals",
    "letter_groups",
    "list_aqms",
    "list_traffic",
    "list_transports",
    "mean_curve",
    "metric_keys",
    "mmpp_solve",
    "mmpp_solve_text",
    "oscillation",
    "predict",
    "quantity",
    "range_of",
    "rank",
    "rank_by_experience",
    "run",
    "run_each",
    "run_fluid",
    "run_fluid_many",
    "run_many",
    "run_theory",
    "student_quantile",
    "student_tail",
    "summary",
    "survey",
    "transient",
]

__version__: str
ALIKE: float
ENGINES: list[tuple[str, str]]

class ScenarioError(ValueError): ...
class Cancelled(Exception): ...

@final
class Catalogue:
    def __new__(cls, classes: Sequence[Any]) -> Catalogue: ...

@final
class Law:
    """Sampled law of the first link under test."""

    periods_s: list[float]
    initial: float
    ecn: bool
    def __new__(cls, scenario: Scenario, spec: str | None) -> Law: ...
    def step(self, which: int, seen: Sequence[float]) -> float: ...
    def set_integral(self, p: float) -> bool: ...
    def __deepcopy__(self, memo: Any) -> Law: ...

@final
class Session:
    """Packet run that stops where its user wants."""

    now_s: float
    end_s: float
    def __new__(cls, scenario: Scenario, aqm: str | None, seed: int, packets: bool) -> Session: ...
    def links(self) -> list[tuple[int, str]]: ...
    def groups(self) -> list[str]: ...
    def advance_to(self, until_s: float) -> str: ...
    def advance_packet(self, link: int) -> str: ...
    def observe(self, link: int) -> list[float]: ...
    def contents(self, link: int) -> list[tuple[int, int, bool]]: ...
    def flows(self) -> list[tuple[int, float | None, float, int, int]]: ...
    def sojourns(self, link: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def series(self, link: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    def set_probability(self, link: int, p: float) -> None: ...
    def set_aqm(self, link: int, spec: str) -> None: ...
    def push(self, event: str) -> None: ...
    def reseed(self, seed: int) -> None: ...
    def copy(self) -> Session: ...
    def scenario(self) -> Scenario: ...
    def finish(self) -> RunResult: ...

@final
class Environments:
    """Runs that an agent steps together."""

    def __new__(
        cls,
        count: int,
        period_s: float,
        history: int,
        delay_scale_s: float,
        aqm: tuple[str, list[tuple[str, str]]] | None,
    ) -> Environments: ...
    def reset(self, index: int, scenario: Scenario, seed: int, link: str) -> NDArray[np.float32]: ...
    def step(self, p: float) -> tuple[NDArray[np.float32], list[float], bool]: ...
    def step_many(
        self, actions: NDArray[np.float64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_]]: ...

@final
class LawView:
    """Observation passed to a control law. Counts are since the same loop's last step."""

    @property
    def now_s(self) -> float:
        """The simulated time, seconds."""
    @property
    def interval_s(self) -> float:
        """Time since this loop's last step, seconds."""
    @property
    def queue_pkts(self) -> float:
        """Packets waiting; fractional in the fluid engine."""
    @property
    def queue_bytes(self) -> float:
        """Bytes waiting."""
    @property
    def arrivals_pkts(self) -> float:
        """Packets offered, including discarded ones."""
    @property
    def accepted_pkts(self) -> float:
        """Packets that entered the queue."""
    @property
    def departures_pkts(self) -> float:
        """Packets whose transmission ended."""
    @property
    def departures_bytes(self) -> float:
        """Bytes whose transmission ended."""
    @property
    def busy_s(self) -> float:
        """Time of these transmissions, seconds: departures per busy time are the link's rate."""
    @property
    def idle_s(self) -> float:
        """Time without transmission, seconds."""
    @property
    def sojourn_s(self) -> float:
        """Sojourn time of the last packet taken for transmission, seconds."""
    @property
    def applied(self) -> float:
        """The probability in force."""
    @property
    def loop(self) -> int:
        """Number of the loop: 0, or 1 of a law with two periods."""

@final
class PacketView:
    """Packet passed to a per-packet AQM."""

    @property
    def bytes(self) -> int:
        """Size on the wire."""
    @property
    def ect(self) -> bool:
        """Whether it is ECN-capable."""
    @property
    def ce(self) -> bool:
        """Whether it is marked already."""
    @property
    def flow(self) -> int:
        """Hash of its flow."""
    @property
    def class_(self) -> int:
        """Its traffic class."""

@final
class QueueView:
    """Queue passed to a per-packet AQM, without the packet being processed."""

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
        """Capacity in packets."""
    @property
    def full(self) -> bool:
        """Whether the arriving packet overflows the buffer, whatever the verdict."""
    @property
    def sojourn_s(self) -> float:
        """Sojourn time of the packet at the head, seconds; outside `on_dequeue` that of the last one transmitted."""
    @property
    def uniform(self) -> float:
        """Random number in [0, 1), drawn for this packet."""
    @property
    def arrivals_pkts(self) -> int:
        """Packets that arrived so far."""
    @property
    def departures_pkts(self) -> int:
        """Packets whose transmission has ended."""

@final
class Scenario:
    def __deepcopy__(self, memo: Any) -> Scenario: ...
    @staticmethod
    def load(path: str, catalogue: Catalogue | None = None) -> Scenario: ...
    @staticmethod
    def parse(
        text: str,
        file: str = "scenario",
        catalogue: Catalogue | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> Scenario: ...
    @staticmethod
    def from_network(
        capacity: str,
        flows: float,
        round_trip: str,
        at_target: bool,
        packet: str,
        target: str | None = None,
        buffer: str | None = None,
        catalogue: Catalogue | None = None,
    ) -> Scenario: ...
    @property
    def file(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    def set(self, changes: Sequence[tuple[str, str]]) -> Scenario: ...
    def until(self, end: str) -> Scenario: ...
    def with_catalogue(self, catalogue: Catalogue) -> Scenario: ...
    def cells(self) -> list[str]: ...
    def variants(self) -> list[str]: ...
    def cell(self, id: str) -> Scenario: ...
    def to_toml(self) -> str: ...
    def files(self) -> list[tuple[str, bytes]]: ...
    def plan(self, seed: int, aqm: str | None) -> dict[str, Any]: ...
    def requests(self, seed: int) -> list[list[list[tuple[float, str, int, bool]]] | None]: ...
    def custom_traffic(self) -> list[tuple[str, str]]: ...
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
    def row(self) -> tuple[str, str]: ...
    def columns(self) -> list[str]: ...
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
    def metrics(
        self, start_s: float, end_s: float, queue_integral: float | None, sampled_pkts: Sequence[float]
    ) -> dict[str, float | int | None]: ...

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
    def margins(
        self, exact: bool, controller: tuple[Sequence[float], Sequence[float], float | None] | None = None
    ) -> dict[str, Any]: ...
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
        others: Sequence[Analysis],
    ) -> tuple[list[float], list[float], list[float]]: ...
    def robust(
        self,
        flows: tuple[float, float],
        rtt: tuple[float, float],
        capacity: tuple[float, float],
        aim: tuple[str, float, float],
        others: Sequence[Analysis],
    ) -> tuple[list[tuple[str, float]], list[float], list[float]]: ...

def analyse(
    scenario: Scenario, aqm: str, at_target: bool, model: str | None = None, sender: str | None = None
) -> Analysis: ...
def run(
    scenario: Scenario,
    aqm: str | None,
    seed: int,
    pcap: str | None = None,
    progress: Callable[[float], bool] | None = None,
    threads: int = 1,
) -> RunResult: ...
def run_each(
    jobs: Sequence[tuple[Scenario, str | None, int]],
    threads: int,
    on_done: Callable[[int, RunResult], bool],
) -> None: ...
def run_many(
    scenario: Scenario,
    jobs: Sequence[tuple[str | None, int]],
    threads: int,
    on_done: Callable[[int, RunResult], bool],
) -> None: ...
def run_theory(scenario: Scenario, aqm: str | None, seed: int) -> RunResult: ...
def predict(scenario: Scenario, aqm: str | None, seed: int, loops: bool = True) -> dict[str, Any]: ...
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
def goals() -> list[dict[str, Any]]: ...
def rank(
    summaries: Sequence[tuple[str, Sequence[tuple[str, Mapping[str, Any]]]]], by: str | None, base_rtt_s: float
) -> tuple[str, str, list[tuple[str, int, bool, list[str], str | None]]]: ...
def letter_groups(n: int, pairs: set[tuple[int, int]]) -> list[str]: ...
def mean_curve(t_s: NDArray[np.float64], queues: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]: ...
def curve_rms(
    t_s: NDArray[np.float64], one: NDArray[np.float64], other: NDArray[np.float64], start_s: float, stop_s: float
) -> float | None: ...
def compare_prediction(
    predicted: Mapping[str, Any],
    measured: Mapping[str, Any],
    oscillation: Mapping[str, Any] | None,
    timeouts: int | None,
    loops: bool,
) -> dict[str, Any]: ...
def oscillation(
    t_s: Sequence[float] | NDArray[np.float64],
    queue_pkts: Sequence[float] | NDArray[np.float64],
    probability: Sequence[float] | NDArray[np.float64],
    noise_std_pkts: float | None,
) -> dict[str, Any] | None: ...
def rank_by_experience(
    metrics: Sequence[tuple[bool, float, float, float, float, float]],
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
def student_tail(t: float, freedom: float) -> float: ...
def student_quantile(probability: float, freedom: float) -> float: ...
def experiments() -> list[tuple[str, str]]: ...
def list_aqms() -> list[dict[str, Any]]: ...
def compiled_aqms() -> list[str]: ...
def list_traffic() -> list[dict[str, Any]]: ...
def quantity(kind: str, text: str) -> float: ...
def metric_keys() -> tuple[list[str], list[str]]: ...
def list_transports() -> list[dict[str, Any]]: ...
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

@final
class Replay:
    @property
    def setup(self) -> dict[str, Any]: ...
    def check_aqm(self, spec: str) -> None: ...
    def check_cost(self, spec: str, progress: Callable[[float], bool] | None = None) -> str | None: ...
    def run(self, spec: str, out: str | None = None, progress: Callable[[float], bool] | None = None) -> str: ...

def survey(
    capture: str,
    settings: Sequence[tuple[str, str | float]],
    progress: Callable[[float], bool] | None = None,
    catalogue: Catalogue | None = None,
) -> Replay: ...
