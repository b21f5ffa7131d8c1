"""Ranking of AQMs across many networks: `aqumen reproduce ranking`.

Every AQM and profile runs twice in each network: with its defaults, and at a common target, since most differences
between AQMs are due to their targets. The first ranking says which AQM to install, the second which law is better.

Ranks follow Friedman's test with Nemenyi's critical difference; each network contributes the first seed. Its variance
is that between networks, which exceeds that between seeds. The latter is measured (`Study.agreement`) in a few random
networks, in which the AQMs with defaults run with all seeds. The networks of the situations run with all seeds too: the
best AQM of a situation is decided by its seeds.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen._quantities import Run
from aqumen._records import Records, Wanted
from aqumen._statistics import summarize
from aqumen.errors import Error
from aqumen.metrics import Summary
from aqumen.ranking import targets
from aqumen.ranking.mean_ranks import as_dict, concordance, pareto, ranks, seed_ranks
from aqumen.scenario import Scenario
from aqumen.shaping import KERNEL

__all__ = [
    "CRITERIA",
    "NETWORKS",
    "OWN",
    "SITUATIONS",
    "TARGET",
    "Measure",
    "Network",
    "Situation",
    "Study",
    "candidates",
]

REFERENCE = "droptail"
OWN, TARGET = "own", "target"
"""The two rankings: AQMs with their defaults, and at the target of each network."""

DRAWN = 8
"""Number of random networks, outside the situations, that run with all seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network in which AQMs are compared."""

    cell: str
    """Scenario, with its cell."""
    target: str
    """Target delay of the second ranking: that of the scenario if it has one."""
    until: str | None = None
    """Simulated time at which expensive runs are cut; `None` for the scenario's end."""
    link: str | None = None
    """Link under evaluation; `None` for the first one under test."""
    slow: bool = False
    """Whether a quick ranking leaves it out."""
    today: tuple[str, str] | None = None
    """Cell and link of the network without an AQM, if that is a different network: DropTail runs there."""


NETWORKS = (
    Network(cell="rfc7928/tcp-friendly", target="15ms"),
    Network(cell="rfc7928/tcp-friendly@mixed-windows", target="15ms", slow=True),
    Network(cell="rfc7928/aggressive", target="15ms", slow=True),
    Network(cell="rfc7928/unresponsive@udp-half,beside", target="15ms"),
    Network(cell="rfc7928/unresponsive@udp-over,beside", target="15ms", slow=True),
    Network(cell="rfc7928/less-than-best-effort", target="15ms", slow=True),
    Network(cell="rfc7928/rtt-fairness@20ms", target="15ms", slow=True),
    Network(cell="rfc7928/rtt-fairness@250ms", target="15ms", slow=True),
    Network(cell="rfc7928/bursts", target="15ms"),
    Network(cell="rfc7928/congestion@mild", target="15ms"),
    Network(cell="rfc7928/congestion@medium", target="15ms", slow=True),
    Network(cell="rfc7928/congestion@heavy", target="15ms"),
    Network(cell="rfc7928/congestion@heavy,ecn", target="15ms"),
    Network(cell="rfc7928/varying-load", target="15ms", slow=True),
    Network(cell="rfc7928/varying-capacity", target="15ms", slow=True),
    Network(cell="rfc7928/mix@x1", target="15ms"),
    Network(cell="rfc7928/mix@x2", target="15ms", slow=True),
    Network(cell="rfc7928/mix@x4", target="15ms"),
    Network(cell="rfc7928/bidirectional", target="15ms"),
    Network(cell="rfc7928/two-aqms", target="15ms", slow=True),
    Network(cell="arm-pfc/exp1", target="100ms"),
    Network(cell="arm-pfc/exp2", target="80ms", slow=True),
    Network(cell="arm-pfc/exp3@n50", target="100ms", slow=True),
    Network(cell="arm-pfc/exp3@n100", target="100ms", slow=True),
    Network(cell="arm-pfc/exp3@n200", target="100ms", slow=True),
    Network(cell="arm-pfc/exp4", target="80ms", slow=True),
    Network(cell="arm-pfc/exp5", target="80ms", slow=True),
    Network(cell="arm-pfc/exp6-small", target="80ms", slow=True),
    Network(cell="arm-pfc/exp6-large", target="80ms"),
    Network(cell="arm-pfc/exp7", target="80ms", slow=True),
    Network(cell="arm-pfc/exp8", target="80ms", slow=True),
    Network(cell="arm-pfc/exp8@20kbyte", target="80ms", slow=True),
    Network(cell="arm-pfc/parking-lot", target="53ms", link="link2", slow=True),
    Network(cell="arm-pfc/parking-lot@light", target="53ms", link="link2", slow=True),
    Network(cell="arm-pfc/parking-lot@heavy", target="53ms", link="link2", slow=True),
    Network(cell="arm-pfc/parking-lot@cross", target="53ms", link="link2", slow=True),
    Network(cell="paqm/load@n3", target="53ms", until="50s", slow=True),
    Network(cell="paqm/load@n5", target="53ms", until="50s", slow=True),
    Network(cell="paqm/load@n7", target="53ms", until="50s", slow=True),
    Network(cell="paqm/load@n10", target="53ms", until="50s", slow=True),
    Network(cell="paqm/load@n14", target="53ms", until="50s", slow=True),
    Network(cell="aqm-mo/rtt@10ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@22ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@46ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@100ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@215ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@464ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/rtt@1000ms", target="27ms", until="300s", slow=True),
    Network(cell="aqm-mo/bottlenecks", target="27ms", slow=True),
    Network(cell="aaqm/load@n10", target="34ms", until="125s", slow=True),
    Network(cell="aaqm/load@n25", target="34ms", until="125s", slow=True),
    Network(cell="aaqm/load@n50", target="34ms", until="125s", slow=True),
    Network(cell="aaqm/load@n70", target="34ms", until="125s", slow=True),
    Network(cell="aaqm/load@n100", target="34ms", until="125s", slow=True),
    Network(cell="aaqm/web", target="34ms", until="150s", slow=True),
    Network(cell="self-tuning/fortieth", target="5144us", until="200s", slow=True),
    Network(cell="everyday/uplink@cubic", target="15ms", today=("everyday/uplink@now,cubic", "line-up")),
    Network(cell="everyday/uplink@cubic-ecn", target="15ms", today=("everyday/uplink@now,cubic-ecn", "line-up")),
    Network(cell="everyday/uplink@bbr", target="15ms", slow=True, today=("everyday/uplink@now,bbr", "line-up")),
    Network(cell="everyday/uplink@bbr-ecn", target="15ms", slow=True, today=("everyday/uplink@now,bbr-ecn", "line-up")),
    Network(cell="everyday/cell@cubic", target="15ms", slow=True),
    Network(cell="everyday/cell@bbr", target="15ms", slow=True),
    Network(cell="everyday/datacenter@cubic", target="100us"),
    Network(cell="everyday/datacenter@cubic-ecn", target="100us", slow=True),
    Network(cell="everyday/datacenter@dctcp", target="100us"),
    Network(cell="everyday/backbone@cubic", target="15ms"),
    Network(cell="everyday/backbone@cubic-ecn", target="15ms"),
)
"""Networks of the comparison: those of RFC 7928, of the papers and of everyday use.

Targets are the scenario's if it has one (arm-pfc 100 packets of 1000 B, paqm 200, aqm-mo a third of its buffer, aaqm 33
packets, self-tuning 20), else 15 ms as in RFC 8033; in the data centre a round trip. The most expensive runs are cut,
which omits AAQM's light load, the last 800 of its web sessions, and the return of self-tuning's capacity. Left out are
aqm-mo/sources (link load of an eighth), aaqm/tuning (same network as aaqm/load@n50) and self-tuning/full (replaced by
self-tuning/fortieth, at a fortieth of the rate). A household without an AQM has no shaper: DropTail stands for the
modem's buffer."""

CRITERIA = (
    ("power", "utilisation over response time", True),
    ("sojourn_p95_s", "queueing delay, p95", False),
    ("utilization", "utilisation", True),
    ("loss_ratio", "losses", False),
)
"""Ranking criteria: key, description, whether larger is better. The first one is the main criterion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A metric of user experience in a situation."""

    key: str
    """Short name."""
    words: str
    """Description with the unit."""
    of: Callable[[Run], float | None]
    """Returns the metric of a run, in that unit."""
    more: bool = False
    """Whether larger is better."""
    digits: int = 1
    """Decimal places."""
    within: tuple[float, float] = (0.0, math.inf)
    """Range of the metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A group of networks for which the best AQM is determined."""

    key: str
    """Short name."""
    title: str
    """Description."""
    cells: tuple[str, ...]
    """Its networks."""
    measures: tuple[Measure, ...]
    """Its metrics."""


def _steady(run: Run, name: str | None = None) -> Mapping[str, Any]:
    """Return the steady metrics of a link; default: the first one under test."""
    links: Mapping[str, Any] = run["links"]
    told: Mapping[str, Any] = links[next(iter(links)) if name is None else name]["steady"]
    return told


def _flow(group: str, key: str, factor: float) -> Callable[[Run], float | None]:
    def of(run: Run) -> float | None:
        value = run["flows"][group]["steady"].get(key)
        return None if value is None else float(value) * factor

    return of


def _link(key: str, factor: float) -> Callable[[Run], float | None]:
    def of(run: Run) -> float | None:
        value = _steady(run).get(key)
        return None if value is None else float(value) * factor

    return of


def _lost(run: Run, name: str | None = None) -> float | None:
    link = _steady(run, name)
    early, overflow = link["early_drop_ratio"], link["overflow_drop_ratio"]
    return None if early is None or overflow is None else 100 * (early + overflow)


HOME = (
    Measure(key="call", words="call upwards, MOS", of=_flow("call-up", "mos", 1), more=True, digits=2, within=(1, 4.5)),
    Measure(key="game", words="game upwards, p99 of the delay, ms", of=_flow("game-up", "delay_p99_s", 1e3)),
    Measure(key="page", words="page load, s", of=_flow("web", "page_load_mean_s", 1), digits=2),
    Measure(key="upload", words="upload, Mbit/s", of=_flow("upload", "goodput_bps", 1e-6), more=True, digits=2),
    Measure(key="update", words="download, Mbit/s", of=_flow("update", "goodput_bps", 1e-6), more=True, digits=2),
)
PORT = (
    Measure(key="p99", words="request, p99, ms", of=_flow("requests", "fct_10kB_100kB_p99_s", 1e3), digits=2),
    Measure(key="mean", words="request, mean, ms", of=_flow("requests", "fct_10kB_100kB_mean_s", 1e3), digits=3),
    Measure(key="bulk", words="long transfers, Gbit/s", of=_flow("bulk", "goodput_bps", 1e-9), more=True, digits=2),
)
PROVIDER = (
    Measure(key="delay", words="queueing delay, p95, ms", of=_link("sojourn_p95_s", 1e3)),
    Measure(key="used", words="utilisation, %", of=_link("utilization", 100), more=True, within=(0, 100)),
    Measure(key="lost", words="lost, %", of=_lost, digits=2, within=(0, 100)),
    Measure(
        key="short",
        words="transfer of 10 to 100 kB, ms",
        of=_flow("short", "fct_10kB_100kB_mean_s", 1e3),
        digits=0,
    ),
    Measure(
        key="fair",
        words="fairness of the long ones, Jain",
        of=_flow("long", "jain_fairness", 1),
        more=True,
        digits=3,
        within=(0, 1),
    ),
)
SITUATIONS = (
    Situation(
        key="uplink",
        title="A household's line: 20 Mbit/s down, 2 Mbit/s up",
        cells=(
            "everyday/uplink@cubic",
            "everyday/uplink@cubic-ecn",
            "everyday/uplink@bbr",
            "everyday/uplink@bbr-ecn",
        ),
        measures=HOME,
    ),
    Situation(
        key="datacenter",
        title="A port of a switch in a data centre: 10 Gbit/s",
        cells=("everyday/datacenter@cubic", "everyday/datacenter@cubic-ecn", "everyday/datacenter@dctcp"),
        measures=PORT,
    ),
    Situation(
        key="backbone",
        title="A provider's link with many flows: 100 Mbit/s, 100 long transfers and many short ones",
        cells=("everyday/backbone@cubic", "everyday/backbone@cubic-ecn"),
        measures=PROVIDER,
    ),
)


def candidates() -> list[str]:
    """Return all AQMs and profiles, DropTail first, without the constant probability `fixed`."""
    return [row["name"] for row in _core.list_aqms() if row["name"] != "fixed"]


def at_target(spec: str, target: str) -> str:
    """Return the AQM at a target; unchanged if it has none, or if a profile sets it.

    Args:
        spec: AQM, a SPEC.
        target: The target, such as `15ms`.
    """
    return targets.at_target(spec, target) or spec


class Study:
    """Runs of a ranking, and their evaluation."""

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        quick: bool = False,
        out: Any = None,
        aqms: Sequence[str] = (),
        places: Sequence[Network] = NETWORKS,
    ) -> None:
        """Plan the runs and load finished ones.

        Args:
            seeds: Seeds of AQMs with defaults in the networks of situations and in random ones; all other runs use the
                first seed, which also records the queue's series.
            quick: Leave out slow networks, and draw no random ones.
            out: Folder for finished runs.
            aqms: AQMs to compare; empty for all.
            places: Networks of the comparison.
        """
        self.places = [place for place in places if not (quick and place.slow)]
        self.quick = quick
        self.aqms = list(dict.fromkeys([REFERENCE, *(aqms or candidates())]))
        self.refused: dict[str, str] = {}
        scenarios = {place.cell: _cut(place, Scenario.load(place.cell)) for place in self.places}
        for aqm in list(self.aqms):
            for place in self.places:
                try:
                    for spec in (aqm, at_target(aqm, place.target)):
                        scenarios[place.cell].check_aqm(spec)
                except Error as error:
                    # A ranked AQM must run in every network.
                    self.refused[aqm] = f"{place.cell}: {error}"
                    self.aqms.remove(aqm)
                    break
        wanted: Wanted = {
            place.cell: list(dict.fromkeys(spec for aqm in self.aqms for spec in (aqm, at_target(aqm, place.target))))
            for place in self.places
        }
        for place in self.places:
            if place.today is not None:
                wanted[place.cell].remove(REFERENCE)
                wanted[place.today[0]] = [REFERENCE]
                scenarios[place.today[0]] = _cut(place, Scenario.load(place.today[0]))
        compared = {cell for situation in SITUATIONS for cell in situation.cells}
        others = [place.cell for place in self.places if place.cell not in compared]
        self.drawn = [] if quick else sorted(random.Random(1).sample(others, min(DRAWN, len(others))))
        self._repeated = compared.union(self.drawn)
        self._repeated |= {each.today[0] for each in self.places if each.today and each.cell in self._repeated}
        own = set(self.aqms)
        # Equivalent SPECs run once.
        self._same = {cell: _same(scenarios[cell], specs) for cell, specs in wanted.items()}
        wanted = {cell: list(dict.fromkeys(same.values())) for cell, same in self._same.items()}
        self.records = Records(
            wanted,
            seeds,
            out,
            prepare=lambda cell, _: scenarios[cell],
            once={
                cell: [spec for spec in specs if cell not in self._repeated or spec not in own]
                for cell, specs in wanted.items()
            },
        )

    def runs(self, place: Network, aqm: str, which: str) -> list[Run]:
        """Return the runs of an AQM in a network, by seed.

        Args:
            place: One of the `places` of this study.
            aqm: Name or SPEC, as in `aqms`, or DropTail.
            which: `own` or `target`.
        """
        spec = aqm if which == OWN else at_target(aqm, place.target)
        return list(self._by_seed(place, spec).values())

    def figures(self, which: str) -> dict[str, dict[str, dict[str, Mapping[str, Any]]]]:
        """Return the criteria of the first seed: network -> AQM -> criterion -> summary.

        Args:
            which: `own` or `target`.
        """
        found: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
        for place in self.places:
            found[place.cell] = {}
            for aqm in self.aqms:
                each = [_judged(run, _link_of(place, aqm)) for run in self.runs(place, aqm, which)[:1]]
                keys = (*(key for key, _, _ in CRITERIA), "sojourn_mean_s")
                found[place.cell][aqm] = {
                    key: summarize([one[key] for one in each], _core.range_of(key)) for key in keys
                }
        return found

    def ranking(self, which: str) -> dict[str, Any]:
        """Return mean ranks by each criterion, delay and utilisation of each AQM, and their Pareto front.

        Args:
            which: `own` or `target`.
        """
        figures = self.figures(which)
        by: dict[str, Any] = {}
        for key, _, more in CRITERIA:
            table = [
                {aqm: one[key]["mean"] for aqm, one in place.items()}
                for place in figures.values()
                if all(one[key]["n"] for one in place.values())
            ]
            ranked = ranks(table, more=more)
            by[key] = None if ranked is None else as_dict(ranked)
        points = {}
        for aqm in self.aqms:
            # Relative to DropTail, since delays of a data centre and a household differ by orders of magnitude.
            pairs = [
                (own["sojourn_mean_s"]["mean"] / base["sojourn_mean_s"]["mean"], own["utilization"]["mean"])
                for place in figures.values()
                if (own := place[aqm])["sojourn_mean_s"]["n"]
                and (base := place[REFERENCE])["sojourn_mean_s"]["n"]
                and base["sojourn_mean_s"]["mean"] > 0
            ]
            if pairs:
                points[aqm] = (sum(x for x, _ in pairs) / len(pairs), sum(y for _, y in pairs) / len(pairs))
        return {
            "by": by,
            "tradeoff": {aqm: {"delay_of_droptail": x, "utilization": y} for aqm, (x, y) in points.items()},
            "front": pareto({aqm: (x, -y) for aqm, (x, y) in points.items()}),
        }

    def pick(self, situation: Situation) -> dict[str, Any]:
        """Determine the best AQM of a situation, with defaults: mean ranks over its cells and metrics.

        AQMs are ranked within each seed, since they see equal traffic there.

        Args:
            situation: A member of `SITUATIONS`, with its networks and metrics.
        """
        places = [place for place in self.places if place.cell in situation.cells]
        runs = {(place.cell, aqm): self._by_seed(place, aqm) for place in places for aqm in self.aqms}
        # After an interruption, only seeds that are finished for all AQMs.
        seeds = [seed for seed in self.records.seeds if all(seed in each for each in runs.values())]
        tables: list[list[dict[str, float]]] = [[] for _ in seeds]
        shown = []
        for place in places:
            for measure in situation.measures:
                told = {aqm: [measure.of(runs[place.cell, aqm][seed]) for seed in seeds] for aqm in self.aqms}
                sign = -1.0 if measure.more else 1.0
                for k, table in enumerate(tables):
                    known = {aqm: each[k] for aqm, each in told.items()}
                    # An undefined metric counts as the worst.
                    table.append({aqm: math.inf if one is None else sign * one for aqm, one in known.items()})
                summaries = {aqm: summarize(each, measure.within) for aqm, each in told.items()}
                shown.append({"cell": place.cell, "measure": measure.key, "figures": summaries})
        ranked = seed_ranks(tables)
        if ranked is None:
            return {"key": situation.key, "pick": None, "kernel": None, "ranks": None, "figures": shown}
        kernel = next((aqm for aqm in ranked.means if aqm.partition(":")[0] in KERNEL), None)
        return {
            "key": situation.key,
            "pick": next(iter(ranked.means)),
            "kernel": kernel,
            "ranks": as_dict(ranked),
            "figures": shown,
        }

    def _seeds(self, cell: str) -> int:
        """Return the number of seeds of AQMs with defaults in a cell."""
        return len(self.records.seeds) if cell in self._repeated else 1

    def _by_seed(self, place: Network, aqm: str) -> dict[int, Run]:
        """Return the runs of an AQM, a SPEC, by seed."""
        cell = place.today[0] if place.today is not None and aqm == REFERENCE else place.cell
        return dict(self.records.of(cell, self._same[cell][aqm]))

    def agreement(self) -> dict[str, dict[str, Summary]]:
        """Return the agreement of rankings between seeds: Kendall's tau, averaged over pairs of seeds.

        Summarised over networks by criterion, for the `situations` and for the `drawn` networks. A value of 1 means
        that the choice of the seed has no effect.
        """
        compared = [cell for situation in SITUATIONS for cell in situation.cells]
        return {"situations": self._agreement(compared), "drawn": self._agreement(self.drawn)}

    def _agreement(self, cells: Sequence[str]) -> dict[str, Summary]:
        """Return the agreement between seeds by criterion, over these cells."""
        found: dict[str, list[float]] = {key: [] for key, _, _ in CRITERIA}
        for place in self.places:
            if place.cell not in cells:
                continue
            runs = {aqm: self._by_seed(place, aqm) for aqm in self.aqms}
            seeds = [seed for seed in self.records.seeds if all(seed in each for each in runs.values())]
            figures = [[_judged(each[seed], _link_of(place, aqm)) for aqm, each in runs.items()] for seed in seeds]
            for key, taus in found.items():
                told = [[one[key] for one in each] for each in figures]
                lists = [[value for value in each if value is not None] for each in told]
                # A criterion counts only if it is defined for all AQMs.
                if len(lists) > 1 and all(len(each) == len(self.aqms) for each in lists):
                    pairs = [concordance(a, b) for k, a in enumerate(lists) for b in lists[:k]]
                    taus.append(sum(pairs) / len(pairs))
        return {key: summarize(taus, (-1, 1)) for key, taus in found.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `aqumen reproduce ranking --json` prints."""
        return {
            "schema": 5,
            "aqumen": _core.__version__,
            "seeds": len(self.records.seeds),
            "quick": self.quick,
            "places": [
                {
                    "cell": place.cell,
                    "target": place.target,
                    "until": place.until,
                    "seeds": self._seeds(place.cell),
                    "today": None if place.today is None else place.today[0],
                }
                for place in self.places
            ],
            "aqms": self.aqms,
            "refused": self.refused,
            "rankings": {which: self.ranking(which) for which in (OWN, TARGET)},
            "figures": {which: self.figures(which) for which in (OWN, TARGET)},
            "agreement": self.agreement(),
            "situations": [self.pick(situation) for situation in SITUATIONS],
        }


def _link_of(place: Network, aqm: str) -> str | None:
    """Return the link under evaluation for an AQM."""
    return place.today[1] if place.today is not None and aqm == REFERENCE else place.link


def _cut(place: Network, scenario: Scenario) -> Scenario:
    return scenario if place.until is None else scenario.until(place.until)


def _same(scenario: Scenario, specs: Sequence[str]) -> dict[str, str]:
    """Map each SPEC to the first equivalent one: equal resulting parameters, such as `pie` and `pie:target=15ms`. If
    events or rate changes can redesign an AQM, the given parameters must be equal too."""
    found: dict[str, str] = {}
    first: dict[str, str] = {}
    uneventful = "[[events]]" not in scenario.to_toml()
    for spec in specs:
        plan = scenario.plan(aqm=spec)
        steady = uneventful and all(len(link["rates"]) == 1 for link in plan["links"])
        aqms = [{k: v for k, v in link["aqm"].items() if not steady or k != "given"} for link in plan["links"]]
        found[spec] = first.setdefault(json.dumps(aqms, sort_keys=True), spec)
    return found


def _judged(run: Run, name: str | None) -> dict[str, float | None]:
    """Return the criteria of a run, at the named link or the first one."""
    link = _steady(run, name)
    used, waits = link["utilization"], link["sojourn_mean_s"]
    base = float(run["aqm"]["nominal"]["base_rtt_s"])
    lost = _lost(run, name)
    return {
        # Kleinrock's power: throughput over response time.
        "power": None if used is None or waits is None else used / (base + waits),
        "sojourn_mean_s": waits,
        "sojourn_p95_s": link["sojourn_p95_s"],
        "utilization": used,
        "loss_ratio": None if lost is None else lost / 100,
    }
