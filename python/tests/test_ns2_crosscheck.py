"""The equivalence test between two engines, on numbers whose answer can be worked out by hand."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aqumen import engines
from aqumen._core import student_quantile
from aqumen.cli import main
from aqumen.engines.external import crosscheck
from aqumen.engines.external.crosscheck import METRICS, Cell, Row, compare, measures, report, select, table, validate
from aqumen.engines.external.ns2.crosscheck import CELLS, reference
from aqumen.engines.external.ns2.plan import Plan
from aqumen.engines.external.ns2.tcl import script
from aqumen.errors import ScenarioError
from aqumen.scenario import Scenario

REFERENCE = Path(__file__).parents[2] / "validation" / "ns2" / "reference.csv"
STILL = {"utilization": 1.0, "queue_mean_pkts": 100.0, "queue_std_pkts": 15.0, "mark_ratio": 0.1, "drop_ratio": 0.0}


def runs(metric: str, *values: float) -> list[dict[str, float]]:
    """Runs that differ in one metric only."""
    return [STILL | {metric: value} for value in values]


def row(metric: str, ours: list[dict[str, float]], ns2: list[dict[str, float]], **options: Any) -> Row:
    return next(row for row in compare("exp", "pi", "all", ours, ns2, **options) if row.metric == metric)


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    # From printed tables; for 1 degree of freedom tan(pi (p - 1/2)), for 2 sqrt(2) (2p - 1) / sqrt(1 - (2p - 1)^2).
    [(0.975, 1, 12.7062), (0.975, 2, 4.302653), (0.975, 10, 2.228139), (0.975, 38, 2.024394), (0.9995, 4, 8.610302)],
)
def test_students_quantile(probability: float, freedom: float, expected: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-6)


def test_the_interval_of_a_difference() -> None:
    # Both sides have variance 1 and 3 seeds: error sqrt(2/3), 4 degrees of freedom, t(0.975) = 2.776445.
    result = row("queue_mean_pkts", runs("queue_mean_pkts", 99, 100, 101), runs("queue_mean_pkts", 100, 101, 102))
    assert result.difference == pytest.approx(-1.0)
    half = 2.776445 * math.sqrt(2 / 3)
    assert (result.low, result.high) == pytest.approx((-1.0 - half, -1.0 + half), rel=1e-6)
    # The bound is 2 % of 101 packets; the interval, -3.3 to 1.3, sticks out.
    assert result.bound == pytest.approx(2.02)
    assert result.verdict == "unclear"


@pytest.mark.parametrize(
    ("metric", "shift", "verdict"),
    [
        ("utilization", -0.002, "equivalent"),
        ("utilization", -0.004, "different"),
        ("queue_mean_pkts", 1.9, "equivalent"),
        ("queue_mean_pkts", 2.1, "different"),
        ("queue_std_pkts", 2.2, "equivalent"),
        ("queue_std_pkts", 2.3, "different"),
        ("mark_ratio", 0.0049, "equivalent"),
        ("mark_ratio", 0.0051, "different"),
        ("drop_ratio", 0.0004, "equivalent"),
        ("drop_ratio", 0.0006, "different"),
    ],
)
def test_bounds_relative_or_absolute_whichever_is_larger(metric: str, shift: float, verdict: str) -> None:
    # Without spread the interval is the difference. Bounds: 0.003; 2 % of 100 packets; 15 % of 15; 5 % of 0.1; 0.0005.
    ours = runs(metric, STILL[metric] + shift, STILL[metric] + shift)
    assert row(metric, ours, runs(metric, STILL[metric], STILL[metric])).verdict == verdict


def test_runs_that_belong_together_are_compared_one_by_one() -> None:
    # Differences of -1, -1 and -1.3 packets: mean -1.1, deviation 0.1732, error 0.1, t(0.975) for 2 is 4.302653.
    ours, ns2 = runs("queue_mean_pkts", 89, 99, 108.7), runs("queue_mean_pkts", 90, 100, 110)
    result = row("queue_mean_pkts", ours, ns2, paired=True)
    assert (result.low, result.high) == pytest.approx((-1.1 - 0.4302653, -1.1 + 0.4302653), rel=1e-6)
    assert result.verdict == "equivalent"
    # Seen as independent they say nothing.
    assert row("queue_mean_pkts", ours, ns2).verdict == "unclear"


def test_a_bound_of_standard_errors_for_other_scenarios() -> None:
    ours, ns2 = runs("queue_mean_pkts", 97, 100, 103), runs("queue_mean_pkts", 97, 100, 103)
    assert row("queue_mean_pkts", ours, ns2).verdict == "unclear"
    wide = row("queue_mean_pkts", ours, ns2, standard_errors=4.0)
    assert wide.bound == pytest.approx(4 * math.sqrt(6))
    assert wide.verdict == "equivalent"


def test_one_seed_is_not_enough() -> None:
    with pytest.raises(ValueError, match="at least two seeds"):
        compare("exp", "pi", "all", [STILL], [STILL, STILL])


def result(queue_mean_pkts: float) -> dict[str, Any]:
    metrics = {name: STILL[name] for name in METRICS if name != "drop_ratio"}
    window = metrics | {"early_drop_ratio": 0.25, "overflow_drop_ratio": 0.5, "queue_mean_pkts": queue_mean_pkts}
    return {"links": {"bottleneck": {"all": window, "steady": window}}}


def test_all_drops_count() -> None:
    assert measures(result(100.0), "all")["drop_ratio"] == 0.75


def test_validate_runs_both_engines_on_every_cell() -> None:
    asked: list[tuple[str, str]] = []

    def engine(name: str, queue_mean_pkts: float) -> Any:
        def answer(cell: Cell, seeds: Any) -> list[dict[str, Any]]:
            asked.append((name, cell.label))
            return [result(queue_mean_pkts) for _ in seeds]

        return answer

    by_cell = list(validate(CELLS[:2], 3, engine("packet", 110.0), engine("ns2", 100.0)))
    assert [{row.aqm for row in rows} for rows in by_cell] == [{"DropTail"}, {"RED50mk"}]
    rows = [row for rows in by_cell for row in rows]
    assert asked == [("packet", "DropTail"), ("ns2", "DropTail"), ("packet", "RED50mk"), ("ns2", "RED50mk")]
    # Five metrics over `all`, and all but utilisation over `steady`.
    assert len(rows) == 2 * (5 + 4)
    answer = report(rows, "ns2")
    assert answer["verdicts"] == {"equivalent": 14, "unclear": 0, "different": 4}
    assert {row["metric"] for row in answer["rows"] if row["verdict"] == "different"} == {"queue_mean_pkts"}
    text = table(rows, "ns-2").splitlines()
    assert len(text) == 1 + 18 + 1
    assert "+10.00 [+10.00, +10.00]" in text[2]
    assert text[-1] == "14 equivalent, 0 unclear, 4 different"


def test_what_is_unclear_gets_more_seeds_and_the_other_side_runs_none_twice() -> None:
    asked: list[tuple[str, list[int]]] = []

    def engine(name: str) -> Any:
        def answer(_: Cell, seeds: Any) -> list[dict[str, Any]]:
            asked.append((name, list(seeds)))
            # From seed to seed 6 packets up and down: for a bound of 2 four seeds are too few, two hundred are enough.
            return [result(100.0 + 6.0 * (-1.0) ** seed) for seed in seeds]

        return answer

    cell = replace(CELLS[0], seeds=2)
    (rows,) = validate([cell], 2, engine("packet"), engine("ns2"), more=(50,))
    assert asked == [
        ("packet", [1, 2, 3, 4]),
        ("ns2", [1, 2, 3, 4]),
        ("ns2", list(range(5, 201))),
        ("packet", list(range(1, 201))),
    ]
    assert {(row.ours_n, row.theirs_n, row.verdict) for row in rows} == {(200, 200, "equivalent")}


def test_a_plan_runs_as_many_seeds_as_the_scatter_asks_for_and_thrice_as_many_as_before_at_most() -> None:
    asked: list[int] = []

    def theirs(_: Cell, seeds: Any) -> list[dict[str, Any]]:
        asked.append(len(seeds))
        return [result(100.0 + 6.0 * (-1.0) ** seed) for seed in seeds]

    cell = replace(CELLS[0], seeds=1)
    (rows,) = validate([cell], 2, lambda cell, seeds: theirs(cell, seeds)[:], theirs, more=(4, 100), planned=True)
    # Ours and theirs have a variance of 36 n / (n - 1), the bound is 2: 1.25 * 2^2 * 72 (n / (n - 1)) / 2^2 seeds: 180
    # after 2, 108 after 6, 96 after 18, but no more than thrice as many; 92 after 54: 2 * sqrt(72.8 / 92) = 1.8.
    assert {(row.theirs_n, row.verdict) for row in rows} == {(92, "equivalent")}
    assert asked == [2, 2, 4, 6, 12, 18, 36, 54, 38, 92]


def test_a_plan_ends_at_the_most_it_may_run() -> None:
    def engine(_: Cell, seeds: Any) -> list[dict[str, Any]]:
        return [result(100.0 + 60.0 * (-1.0) ** seed) for seed in seeds]

    (rows,) = validate([replace(CELLS[0], seeds=1)], 2, engine, engine, more=(4, 16), planned=True)
    assert {row.theirs_n for row in rows} == {32}
    assert "unclear" in {row.verdict for row in rows}


def test_cells_are_chosen_by_name_or_experiment() -> None:
    assert select(CELLS, []) == CELLS
    assert [cell.label for cell in select(CELLS, ["arm_exp4_N300"])] == ["DropTail", "RED50mk", "PIpaper", "PIx1000"]
    # In the order of the list, whatever the order of the names, and once.
    two = select(CELLS, ["sctp/RED30", "arm_exp1/AVQ", "sctp/RED30"])
    assert [cell.name for cell in two] == ["arm_exp1/AVQ", "sctp/RED30"]
    with pytest.raises(ScenarioError, match="no cell `arm_exp5`; choose from: arm_exp1/DropTail, "):
        select(CELLS, ["arm_exp5"])


def test_of_many_cells_the_first_are_named_and_the_command_that_lists_all(capsys) -> None:
    from aqumen.cli import main

    with pytest.raises(ScenarioError) as refused:
        select(CELLS, ["arm_exp5"], "aqumen validate ns2 --list")
    names, rest = str(refused.value).removeprefix("no cell `arm_exp5`; choose from: ").split(", ... and ")
    shown = names.split(", ")
    assert shown == [cell.name for cell in CELLS[: len(shown)]]
    assert 150 < len(names) <= 200
    assert rest == f"{len(CELLS) - len(shown)} more; `aqumen validate ns2 --list` lists all"
    assert main(["validate", "ns2", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == [cell.name for cell in CELLS]


def test_recorded_runs_cover_every_cell() -> None:
    recorded = reference(REFERENCE)
    for cell in CELLS:
        # Its recorded runs would be with ns-2's own thresholds; nobody recorded other transports and sizes of packets.
        if cell.label == "ARED" or cell.scenario.startswith("../validation") or not cell.experiment.startswith("arm_"):
            continue
        for window in ("all", "steady"):
            seeds = recorded[cell.experiment, cell.label, window]
            assert len(seeds) >= 2
            # AVQ and a target of 20 packets give up some of the link.
            least = 0.95 if cell.label in ("AVQ", "REM20") else 0.98
            assert all(least < run["utilization"] <= 1.001 for run in seeds)
    assert len(CELLS) == 16 + 8 + 2 * 6 + 4 + 3 + 6 + 3


@pytest.mark.parametrize("size", [500, 1500])
def test_each_aqm_of_ns2_is_told_how_large_packets_are(size: int) -> None:
    folder = Path(__file__).parents[2] / "experiments"
    told = {}
    for cell in select(CELLS, [f"{size}B"]):
        scenario = Scenario.load(folder / cell.scenario).set_all(list(cell.settings))
        lines = script(Plan.from_dict(scenario.plan(1, cell.aqm))).splitlines()
        words = next(line for line in lines if line.startswith("make_link 0 ")).partition("{")[2].rstrip("}").split()
        told[cell.label] = dict(zip(words[::2], words[1::2], strict=True)).get("mean_pktsize_")
    # PI counts packets, and DropTail too: they ask for no size.
    sized = {"RED50mk": str(size), "ARED": str(size), "REM20": str(size), "AVQ": str(size)}
    assert told == {"DropTail": "1", "PIx1000": None, **sized}


def test_what_is_finished_at_ctrl_c_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(cells: list[Cell], *_: Any, **__: Any) -> Any:
        first = cells[0]
        yield compare(first.experiment, first.label, "all", runs("mark_ratio", 0.1, 0.1), runs("mark_ratio", 0.1, 0.1))
        raise KeyboardInterrupt

    monkeypatch.setattr(crosscheck, "validate", stopped)
    monkeypatch.setattr(engines, "check_engine", lambda name, scenario=None: None)
    assert main(["validate", "ns2", "--cell", "sctp", "--cell", "mixed/RED30"]) == 130
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "5 equivalent, 0 unclear, 0 different"
    assert err.splitlines() == [
        "aqumen: sctp/DropTail, 2 seeds: equivalent (1/3)",
        "aqumen: stopped after 1 of 3 cells; for the rest: --cell sctp/RED30 --cell mixed/RED30",
    ]


def test_the_completion_time_of_a_group_is_the_mean_over_its_transfers_of_all_sizes():
    group = {
        "goodput_bps": 7.0,
        "fct_10kB_count": 3,
        "fct_10kB_mean_s": 0.2,
        "fct_1MB_count": 1,
        "fct_1MB_mean_s": 1.0,
        "fct_10MB_count": 0,
        "fct_10MB_mean_s": None,
    }
    assert crosscheck._of_group(group, "fct_mean_s") == pytest.approx((3 * 0.2 + 1.0) / 4)
    assert crosscheck._of_group(group, "goodput_bps") == 7.0


def test_the_bounds_are_those_that_were_set_beforehand() -> None:
    # Relative to the other's mean, and in the figure's own unit: whichever is larger.
    def told(bounds: dict[str, crosscheck.Bound]) -> dict[str, tuple[float, float]]:
        return {name: (bound.relative, bound.absolute) for name, bound in bounds.items()}

    assert told(METRICS) == {
        "utilization": (0, 0.003),
        "queue_mean_pkts": (0.02, 1),
        "queue_std_pkts": (0.15, 2),
        "mark_ratio": (0.05, 0.0005),
        "drop_ratio": (0.06, 0.0005),
    }
    assert told(crosscheck.FLOW_METRICS) == {
        "fct_mean_s": (0.05, 0.01),
        "page_load_mean_s": (0.05, 0.01),
        "loss_ratio": (0.06, 0.0005),
        "loss_burst_mean_pkts": (0.05, 0.02),
    }
    assert crosscheck.Bound(0.05, 0.01).at(-1.0) == 0.05
    assert crosscheck.Bound(0.05, 0.01).at(0.1) == 0.01
    from aqumen.engines.external.live import crosscheck as live

    assert told(dict(live.REGULATED)) == {"queue_mean_pkts": (0.10, 1), "utilization": (0, 0.02)}
    assert told(dict(live.UNREGULATED)) == {"queue_mean_pkts": (0.20, 1), "utilization": (0, 0.03)}
    assert told(dict(live.SENDERS)) == dict.fromkeys(("window_pkts", "rtt_s", "goodput_mbps"), (0.05, 0))
