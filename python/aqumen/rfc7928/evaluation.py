"""Evaluation of AQMs by RFC 7928: its scenarios with each AQM, and with DropTail as the reference.

The result is a characterisation without verdicts: metrics by section with confidence intervals over the seeds, and
delay against goodput as in section 2.7 of the RFC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen._quantities import Run
from aqumen._records import SAMPLE, Records, Wanted
from aqumen._statistics import events, few, summarize
from aqumen.errors import Error
from aqumen.metrics import Summary
from aqumen.ranking.targets import at_target
from aqumen.scenario import Scenario
from aqumen.view.columns import Column

__all__ = [
    "MEASURES",
    "REFERENCE",
    "Section",
    "parameter_changes",
    "rows",
    "safe_ranges",
    "sampled",
    "scheduled",
    "sections",
    "standing",
    "wanted",
]

REFERENCE = "droptail"
TARGETS = ("5ms", "15ms", "45ms")
STEP_S = 1.0
"""Length of the samples of delay and goodput, seconds: ten typical round trips."""
BESIDE_CELLS = {"two-aqms"}
"""Sweeps whose base scenario is a case of its own: the AQM under test on both links."""
EACH_CELL_WITH_ECN = {"congestion", "packet-size"}
"""Sweeps that run with ECN in each cell."""
KNOB_CELL = "rfc7928/congestion@medium"
FACTORS = (1 / 8, 1 / 4, 1 / 2, 2.0, 4.0, 8.0)
QUICK_FACTORS = (1 / 2, 2.0)
"""Factors on each parameter in section 12, one parameter at a time."""
SAFE = 0.1
"""Relative change of delay and utilisation up to which a parameter value is safe."""
TARGET_KNOBS = ("target", "target_delay")
"""Parameters that set the delay: utilisation alone decides whether a value is safe."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the RFC."""

    number: str
    """Number in the RFC."""
    title: str
    """Subject."""
    cells: tuple[str, ...]
    """Cells that evaluate it."""
    windows: tuple[str, ...] = ("steady",)
    """Windows to report."""
    targets: tuple[str, ...] = ()
    """Targets at which each AQM runs instead of its default; AQMs without a target are unchanged."""
    scheduling: bool = False
    """Whether each AQM runs beside its counterpart with, or without, flow queueing; others are left out."""

    @property
    def is_study(self) -> bool:
        """Whether the section has AQMs of its own and is left out of rankings."""
        return bool(self.targets) or self.scheduling

    def specs(self, aqms: Sequence[str]) -> list[str]:
        """Return the AQMs that run in this section, the reference first.

        Args:
            aqms: The AQMs under test.
        """
        if self.scheduling:
            pairs = [spec for aqm in aqms if (other := scheduled(aqm)) is not None for spec in (aqm, other)]
            return list(dict.fromkeys([REFERENCE, *pairs])) if pairs else []
        if not self.targets:
            return list(dict.fromkeys([REFERENCE, *aqms]))
        own = [aqm for aqm in aqms if "target" not in aqm]
        at = [at_target(aqm, target) or aqm for aqm in own for target in self.targets]
        return list(dict.fromkeys([REFERENCE, *at]))


def scheduled(aqm: str) -> str | None:
    """Return the AQM with flow queueing, or without it if it has it: `codel` and `fq-codel`; `None` if there is none.

    Args:
        aqm: A SPEC; its parameters are kept if the counterpart takes them.
    """
    name, colon, text = aqm.partition(":")
    other = name.removeprefix("fq-") if name.startswith("fq-") else f"fq-{name}"
    if other not in {row["name"] for row in _core.list_aqms()}:
        return None
    spec = f"{other}{colon}{text}"
    try:
        Scenario.load(KNOB_CELL).plan(aqm=spec)
    except Error:
        return other
    return spec


def _cells(name: str) -> tuple[str, ...]:
    scenario = Scenario.load(f"rfc7928/{name}")
    found = [f"rfc7928/{name}@{cell}" for cell in scenario.cells] or [f"rfc7928/{name}"]
    if scenario.cells and name in BESIDE_CELLS:
        found.insert(0, f"rfc7928/{name}")
    for variant in scenario.variants:
        if not scenario.cells or name in EACH_CELL_WITH_ECN:
            found += [f"{cell}{',' if '@' in cell else '@'}{variant}" for cell in found if variant not in cell]
        else:
            # With ECN only the base scenario runs, since the points of the axis would be similar.
            found.append(f"rfc7928/{name}@{variant}")
    return tuple(dict.fromkeys(found))


def sections() -> list[Section]:
    """Return the sections in the order of the RFC."""
    load = ("mild", "medium", "heavy", "mild-again")
    capacity = ("steady", "narrow", "wide", "narrow-again")
    levels = _cells("congestion")
    fair = ("rfc7928/aggressive", "rfc7928/aggressive@ecn", "rfc7928/tcp-friendly")
    return [
        Section("4.4", "packets of 500 and 1500 bytes", _cells("packet-size")),
        Section(
            "4.6",
            "interaction with scheduling: each AQM with and without flow queueing",
            (*(cell for cell in levels if "medium" in cell), *fair),
            scheduling=True,
        ),
        Section("5.1", "TCP-friendly senders, same and different initial windows", _cells("tcp-friendly")),
        Section("5.2", "aggressive senders", _cells("aggressive")),
        Section("5.3", "unresponsive senders", _cells("unresponsive")),
        Section("5.4", "less than best effort", _cells("less-than-best-effort")),
        Section("6", "fairness of round-trip times", _cells("rtt-fairness")),
        Section("7", "bursts", _cells("bursts")),
        Section("8.2.2", "mild, medium and heavy congestion", levels),
        Section("8.2.5", "varying congestion", _cells("varying-load"), load),
        Section("8.2.6", "varying capacity", _cells("varying-capacity"), capacity),
        Section("8.3", "sensitivity: targets of 5, 15 and 45 ms", ("rfc7928/congestion@medium",), targets=TARGETS),
        Section("9.1", "a mix of traffic", _cells("mix")),
        Section("9.2", "traffic in both directions", _cells("bidirectional")),
        Section(
            "10", "an AQM after an AQM; delay and utilisation of the first link, then of the second", _cells("two-aqms")
        ),
    ]


MEASURES: Sequence[Column] = (
    ("goodput_bps", "goodput", "Mbit/s", 1e-6, 2),
    ("utilization", "utilisation", "%", 100, 1),
    ("sojourn_mean_s", "queueing delay", "ms", 1000, 1),
    ("sojourn_p95_s", "queueing delay, p95", "ms", 1000, 1),
    ("delay_variation_p95_s", "delay variation, p95", "ms", 1000, 1),
    ("loss_ratio", "lost", "%", 100, 2),
    ("mark_ratio", "marked", "%", 100, 2),
    ("loss_interval_mean_s", "between losses", "ms", 1000, 0),
    ("loss_sync_ratio", "flows hit", "%", 100, 1),
    ("sync_index", "synchronisation", "", 1, 3),
    ("goodput_ratio", "goodput, second / first group", "", 1, 2),
    ("first_loss_ratio", "lost, first group", "%", 100, 2),
    ("second_loss_ratio", "lost, second group", "%", 100, 2),
    ("startup_mean_s", "first byte", "ms", 1000, 0),
    ("fct_under_10kB_mean_s", "transfer below 10 kB", "ms", 1000, 0),
    ("fct_10kB_100kB_mean_s", "transfer of 10 to 100 kB", "ms", 1000, 0),
    ("fct_100kB_1MB_mean_s", "transfer of 100 kB to 1 MB", "ms", 1000, 0),
    ("fct_over_1MB_mean_s", "transfer above 1 MB", "ms", 1000, 0),
    ("page_load_mean_s", "page load", "s", 1, 2),
    ("mos", "voice, MOS", "", 1, 2),
    ("frame_loss_ratio", "frames lost", "%", 100, 2),
    ("video_bitrate_mean_bps", "video rate", "Mbit/s", 1e-6, 2),
    ("video_stalled_ratio", "video stalled", "%", 100, 1),
    ("second_sojourn_mean_s", "queueing delay, second link", "ms", 1000, 1),
    ("second_utilization", "utilisation, second link", "%", 100, 1),
)
"""Key, title, unit, factor and decimal places of each metric."""


def standing(table: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return delay and goodput of each AQM, means over all sections, and their Pareto front.

    Args:
        table: Result of `rows`.
    """
    places: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    studies = {section.number for section in sections() if section.is_study}
    for row in (row for row in table if row["section"] not in studies):
        places.setdefault((row["cell"], row["window"]), {})[row["aqm"]] = row["measured"]
    aqms = {aqm for measured in places.values() for aqm in measured}
    points = {}
    for aqm in sorted(aqms):
        pairs = [
            (one[aqm]["sojourn_mean_s"]["mean"], one[aqm]["goodput_bps"]["mean"] / best)
            for one in places.values()
            if aqm in one
            and one[aqm]["sojourn_mean_s"]["n"]
            and (best := max(each["goodput_bps"]["mean"] for each in one.values())) > 0
        ]
        if pairs:
            points[aqm] = (sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs))
    return {
        "tradeoff": {aqm: {"delay_s": x, "goodput_share": y} for aqm, (x, y) in points.items()},
        "front": _pareto({aqm: (x, -y) for aqm, (x, y) in points.items()}),
    }


def _pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names that no other beats: better in one metric and not worse in the other. Smaller is better."""

    def beaten(name: str) -> bool:
        x, y = points[name]
        return any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())

    return sorted((name for name in points if not beaten(name)), key=lambda name: points[name])


COST_CELL = "rfc7928/congestion@heavy"


def costs(records: Records, aqms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Section 11: CPU time of the simulation per packet at the link (ns), and memory of the discipline (bytes).

    The difference from the reference, paired by seed, is the CPU time of the AQM. Memory is given in total and for each
    flow.

    Args:
        records: Finished runs.
        aqms: AQMs in addition to the reference.
    """

    def by_seed(aqm: str) -> dict[int, float]:
        runs = ((seed, run["cost"]) for seed, run in records.of(COST_CELL, aqm))
        return {seed: cost["cpu_s"] / cost["bottleneck_packets"] * 1e9 for seed, cost in runs}

    reference = by_seed(REFERENCE)
    scenario = Scenario.load(COST_CELL)
    found = {}
    for aqm in dict.fromkeys([REFERENCE, *aqms]):
        own = by_seed(aqm)
        more = [own[seed] - reference[seed] for seed in own if seed in reference]
        held, flow = scenario.qdisc_memory(aqm) or (None, None)
        found[aqm] = {
            "packet_ns": summarize(list(own.values()), (0, math.inf)),
            "above_reference_ns": summarize(more),
            "memory_bytes": held,
            "flow_bytes": flow,
        }
    return found


def knobs(aqms: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Section 12: parameters of each AQM with defaults and ranges.

    Args:
        aqms: SPECs; only the algorithm of a SPEC matters.
    """
    known = {row["name"]: row["params"] for row in _core.list_aqms()}
    names = dict.fromkeys(aqm.partition(":")[0] for aqm in aqms)
    keys = ("name", "unit", "default", "designed", "min", "max", "choices", "doc")
    return {name: [{key: param[key] for key in keys} for param in known[name]] for name in names if name in known}


def wanted(aqms: Sequence[str], quick: bool) -> Wanted:
    """Return the runs to execute: cell -> AQMs.

    Args:
        aqms: AQMs in addition to the reference.
        quick: Leave out two of three RTTs and pairs of AQMs, and the extreme parameter values.
    """
    found: Wanted = {}
    for section in sections():
        cells = section.cells[::3] if quick and section.number in ("6", "10") else section.cells
        for cell in cells:
            found[cell] = list(dict.fromkeys([*found.get(cell, []), *section.specs(aqms)]))
    specs = [knob.spec for aqm in aqms for knob in parameter_changes(aqm, quick)]
    found[KNOB_CELL] = list(dict.fromkeys([*found.get(KNOB_CELL, []), *specs]))
    return found


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """An AQM with one parameter changed."""

    knob: str
    """Name of the parameter."""
    unit: str
    """Its unit."""
    default: float
    """Default value."""
    value: float
    """Changed value."""
    spec: str
    """SPEC with the changed value."""


def parameter_changes(aqm: str, quick: bool) -> list[ParameterChange]:
    """Return the AQM with each numeric parameter changed, one at a time; invalid values are left out.

    Args:
        aqm: A SPEC; its own parameters are kept.
        quick: Use fewer values.
    """
    scenario = Scenario.load(KNOB_CELL)
    rows = {row["name"]: row for row in _core.list_aqms()}
    name, _, text = aqm.partition(":")
    row = rows.get(name, {})
    table = rows.get(row.get("algorithm"), row).get("params", ())
    report = next(link["aqm"] for link in scenario.plan(aqm=aqm)["links"] if link["record"])
    given = {key: value for key, equals, value in (pair.partition("=") for pair in text.split(",")) if equals}
    found = []
    for param in table:
        default = report["params"].get(param["name"])
        if isinstance(default, bool) or not isinstance(default, int | float) or not default or param["choices"]:
            continue
        for factor in QUICK_FACTORS if quick else FACTORS:
            value = default * factor
            # Counts stay integers.
            if param["unit"] in ("pkt", "B") and default == int(default):
                value = float(max(1, round(value)))
            changed = {**given, param["name"]: f"{value:.9g}{param['unit']}"}
            spec = f"{name}:{','.join(f'{key}={each}' for key, each in changed.items())}"
            try:
                scenario.plan(aqm=spec)
            except Error:
                continue
            found.append(ParameterChange(param["name"], param["unit"], float(default), value, spec))
    return found


def safe_ranges(records: Records, aqms: Sequence[str], quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Section 12: delay and utilisation over each parameter of an AQM, and its safe range.

    The safe range contains the adjacent values around the default at which both stay within a tenth of the default's.
    A target sets the delay: its values are judged by utilisation alone.

    Args:
        records: Finished runs.
        aqms: AQMs whose parameters were varied, as SPECs.
        quick: Whether fewer values were used.
    """

    def means(spec: str) -> tuple[float, float] | None:
        each = [figures(run, "steady") for _, run in records.of(KNOB_CELL, spec)]
        pairs = [(one["sojourn_mean_s"], one["utilization"]) for one in each]
        known = [(delay, used) for delay, used in pairs if delay is not None and used is not None]
        return (sum(d for d, _ in known) / len(known), sum(u for _, u in known) / len(known)) if known else None

    found: dict[str, list[dict[str, Any]]] = {}
    for aqm in aqms:
        base = means(aqm)
        if base is None:
            continue
        by_knob: dict[str, list[ParameterChange]] = {}
        for each in parameter_changes(aqm, quick):
            by_knob.setdefault(each.knob, []).append(each)
        found[aqm] = [_safe(turned, base, means) for turned in by_knob.values()]
    return found


def _safe(
    turned: Sequence[ParameterChange], base: tuple[float, float], means: Callable[[str], tuple[float, float] | None]
) -> dict[str, Any]:
    """Return the values tried for one parameter, and the safe range around the default."""
    first = turned[0]
    by_delay = first.knob not in TARGET_KNOBS
    tried = [{"value": first.default, "delay_s": base[0], "utilization": base[1], "safe": True}]
    for each in turned:
        if (seen := means(each.spec)) is not None:
            pairs = list(zip(seen, base, strict=True))[0 if by_delay else 1 :]
            near = all(abs(is_ - was) <= SAFE * abs(was) for is_, was in pairs)
            tried.append({"value": each.value, "delay_s": seen[0], "utilization": seen[1], "safe": near})
    tried.sort(key=lambda one: one["value"])
    middle = next(k for k, one in enumerate(tried) if one["value"] == first.default)
    low = high = middle
    while low > 0 and tried[low - 1]["safe"]:
        low -= 1
    while high + 1 < len(tried) and tried[high + 1]["safe"]:
        high += 1
    return {
        "knob": first.knob,
        "unit": first.unit,
        "judged_by": ["delay", "utilization"] if by_delay else ["utilization"],
        "default": first.default,
        "low": tried[low]["value"],
        "high": tried[high]["value"],
        "low_is_end": low == 0,
        "high_is_end": high == len(tried) - 1,
        "tried": tried,
    }


def sampled(scenario: Scenario) -> Scenario:
    """Add a window for each second of `steady`: section 2.7 of the RFC pairs delay and goodput within a run.

    Args:
        scenario: Scenario with a window `steady`.
    """
    plan = scenario.plan(aqm=REFERENCE)
    start = math.ceil(plan_window(plan, "steady")[0] / STEP_S)
    end = math.floor(float(plan["duration_s"]) / STEP_S)
    windows = [(f"windows.{SAMPLE}{k}", f'["{k * STEP_S:g}s", "{(k + 1) * STEP_S:g}s"]') for k in range(start, end)]
    return scenario.set_all(windows)


def plan_window(plan: dict[str, Any], name: str) -> tuple[float, float]:
    """Return start and end of a window of a plan, seconds.

    Args:
        plan: Result of `Scenario.plan`.
        name: A key of its `windows`.
    """
    start, end = plan["windows"][name]
    return float(start), float(end)


def figures(run: Run, window: str) -> dict[str, float | None]:
    """Return the metrics of a run in a window, at the first recorded link.

    Args:
        run: Finished run, as a record.
        window: A key of its `windows`.
    """
    link, *others = (windows[window] for windows in run["links"].values())
    second = others[0] if others else {}
    # Groups that a variant leaves out do not start before the end.
    flows = [told for windows in run["flows"].values() if not _absent(told := windows[window])]
    goodputs = [group["goodput_bps"] for group in flows]
    losses = [group.get("loss_ratio") for group in flows] if len(flows) == 2 else [None, None]

    def first(key: str) -> float | None:
        return next((group[key] for group in flows if group.get(key) is not None), None)

    return {
        "goodput_bps": sum(goodputs),
        "utilization": link["utilization"],
        "sojourn_mean_s": link["sojourn_mean_s"],
        "sojourn_p95_s": link["sojourn_p95_s"],
        "loss_ratio": _sum(link["early_drop_ratio"], link["overflow_drop_ratio"]),
        "mark_ratio": link["mark_ratio"],
        "sync_index": link["sync_index"],
        "loss_interval_mean_s": link["loss_interval_mean_s"],
        # A fraction of all flows, including those that never start.
        "loss_sync_ratio": link["loss_sync_ratio"] if len(flows) == len(run["flows"]) else None,
        "delay_variation_p95_s": first("delay_variation_p95_s"),
        "startup_mean_s": first("startup_mean_s"),
        "fct_under_10kB_mean_s": first("fct_under_10kB_mean_s"),
        "fct_10kB_100kB_mean_s": first("fct_10kB_100kB_mean_s"),
        "fct_100kB_1MB_mean_s": first("fct_100kB_1MB_mean_s"),
        "fct_over_1MB_mean_s": first("fct_over_1MB_mean_s"),
        "goodput_ratio": goodputs[1] / goodputs[0] if len(goodputs) > 1 and goodputs[0] else None,
        "first_loss_ratio": losses[0],
        "second_loss_ratio": losses[1],
        "page_load_mean_s": first("page_load_mean_s"),
        "mos": first("mos"),
        "frame_loss_ratio": first("frame_loss_ratio"),
        "video_bitrate_mean_bps": first("video_bitrate_mean_bps"),
        "video_stalled_ratio": first("video_stalled_ratio"),
        "second_sojourn_mean_s": second.get("sojourn_mean_s"),
        "second_utilization": second.get("utilization"),
    }


def _absent(group: Mapping[str, Any]) -> bool:
    """Return whether a flow group sent nothing; a starved group has losses or retransmissions."""
    return not group["goodput_bps"] and group.get("loss_ratio") is None


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def rows(records: Records, aqms: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each section, cell, window and AQM, with a summary of each metric.

    Args:
        records: Finished runs.
        aqms: AQMs in addition to the reference.
    """
    found = []
    for section in sections():
        for cell in section.cells:
            for window in section.windows:
                for aqm in section.specs(aqms):
                    # A variant may lack windows of another one.
                    runs = [run for _, run in records.of(cell, aqm) if window in run["windows"]]
                    each = [figures(run, window) for run in runs]
                    if each:
                        measured = {key: _summary(key, each, runs, window) for key, *_ in MEASURES}
                        pairs = [pair for run in runs for pair in paired(run, window)]
                        found.append(
                            {
                                "section": section.number,
                                "cell": cell,
                                "window": window,
                                "aqm": aqm,
                                "measured": measured,
                                "ellipse": ellipse(pairs),
                            }
                        )
    return found


def _summary(key: str, each: Sequence[Mapping[str, float | None]], runs: Sequence[Run], window: str) -> Summary:
    """Summarise a metric with the number of events behind it; a mean of few events has no interval."""
    found = summarize([one[key] for one in each], _core.range_of(key))
    counted = "drop_ratio" if key == "loss_ratio" else key
    behind = events(counted, [_holder(run, window, key) for run in runs]) if found["n"] else None
    if behind is None:
        return found
    known: Summary = {**found, "events": behind}
    return {**known, "ci95": None} if few(known) else known


def _holder(run: Run, window: str, key: str) -> Mapping[str, float | None]:
    """Return the metrics of the link or of the flow group that a metric of `figures` comes from."""
    link: Mapping[str, float | None] = next(iter(run["links"].values()))[window]
    if key == "loss_ratio" or key in link:
        return link
    groups = [windows[window] for windows in run["flows"].values()]
    return next((group for group in groups if group.get(key) is not None), {})


def paired(run: Run, window: str) -> list[tuple[float, float]]:
    """Return delay (s) and goodput (bit/s) of each sample within a window of a run.

    Args:
        run: Finished run of a scenario from `sampled`.
        window: A key of its `windows`; samples that extend beyond it are left out.
    """
    start, end = run["windows"][window]
    within = (one for one in run.get("samples", ()) if start <= one["at_s"][0] and one["at_s"][1] <= end)
    return [(one["sojourn_mean_s"], one["goodput_bps"]) for one in within if one["sojourn_mean_s"] is not None]


def ellipse(points: Sequence[tuple[float, float]]) -> dict[str, float] | None:
    """Return the one-standard-deviation ellipse of delay and goodput.

    Args:
        points: Delay (s) and goodput (bit/s) of each sample, over all seeds.
    """
    n = len(points)
    if n < 2:
        return None
    mx, my = (sum(p[i] for p in points) / n for i in (0, 1))
    sxx = sum((x - mx) ** 2 for x, _ in points) / (n - 1)
    syy = sum((y - my) ** 2 for _, y in points) / (n - 1)
    sxy = sum((x - mx) * (y - my) for x, y in points) / (n - 1)
    return {"delay_s": mx, "goodput_bps": my, "delay_std_s": sxx**0.5, "goodput_std_bps": syy**0.5, "covariance": sxy}
