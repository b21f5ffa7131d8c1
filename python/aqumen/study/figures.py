"""Figures by which AQMs are ranked over networks: their definitions, and their values in the rows of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from aqumen.scenario import Scenario
from aqumen.study.factors import Value
from aqumen.study.rows import Rows

__all__ = ["FIGURES", "Facts", "Figure", "Values", "facts_of", "network_of", "values_of"]

PACKET_BITS = 12_000
"""Bits of a full packet."""
USED_MIN = 1e-3
"""Least utilisation in a ratio; below it an AQM starves the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of one run."""

    key: str
    """Short name."""
    title: str
    """Column heading."""
    words: str
    """Definition."""
    more: bool
    """Whether larger is better."""
    alike: float
    """Two AQMs are alike in a network if their ratio is within 1 + this, or their difference within this."""
    ratio: bool = True
    """Whether AQMs are compared by ratios; by differences otherwise."""


FIGURES: Mapping[str, Figure] = {
    each.key: each
    for each in (
        Figure(
            key="power",
            title="Power",
            words="utilisation over response time (round trip of the empty network + mean queueing delay)",
            more=True,
            alike=0.02,
        ),
        Figure(
            key="p95",
            title="Delay p95",
            words="95th percentile of the queueing delay + transmission time of 1500 B",
            more=False,
            alike=0.05,
        ),
        Figure(key="used", title="Used", words="utilisation of the link", more=True, alike=0.01),
        Figure(
            key="short",
            title="Short",
            words="mean completion time of transfers of 10 to 100 kB, all groups together",
            more=False,
            alike=0.05,
        ),
        Figure(
            key="jain",
            title="Jain",
            words="Jain's index of the goodputs of all endless TCP transfers, two or more",
            more=True,
            alike=0.02,
        ),
        Figure(
            key="lost",
            title="Lost",
            words="packets that the AQM or the full queue dropped, of those that arrived; compared by differences",
            more=False,
            alike=0.001,
            ratio=False,
        ),
    )
}
"""Figures by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Properties of a network that its figures need."""

    base_rtt_s: float
    """Mean round trip without queueing, seconds."""
    capacity_bps: float
    """Mean capacity of the first link under test, bit/s."""
    long: Mapping[str, int]
    """Number of endless TCP transfers by flow group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Figures of all runs."""

    networks: tuple[str, ...]
    """Names of the networks."""
    aqms: tuple[str, ...]
    """AQMs, each a SPEC."""
    seeds: tuple[int, ...]
    """Seeds."""
    figures: Mapping[str, Any]
    """Array by figure: network, AQM, seed; NaN where undefined."""

    def of(self, aqms: Sequence[str]) -> Values:
        """Return the values of some AQMs, in their order.

        Args:
            aqms: AQMs that are there.
        """
        at = [self.aqms.index(aqm) for aqm in aqms]
        kept = {key: each[:, at, :] for key, each in self.figures.items()}
        return Values(networks=self.networks, aqms=tuple(aqms), seeds=self.seeds, figures=kept)

    def beside(self, other: Values) -> Values:
        """Return these values and those of further AQMs in the same networks with the same seeds.

        Args:
            other: Values of AQMs that are not here; networks and seeds that it lacks are undefined.
        """
        import numpy as np

        new = [aqm for aqm in other.aqms if aqm not in self.aqms]
        figures = {}
        for key, mine in self.figures.items():
            added = np.full((len(self.networks), len(new), len(self.seeds)), np.nan)
            for n, network in enumerate(self.networks):
                for s, seed in enumerate(self.seeds):
                    if network in other.networks and seed in other.seeds:
                        place = other.networks.index(network), other.seeds.index(seed)
                        for a, aqm in enumerate(new):
                            added[n, a, s] = other.figures[key][place[0], other.aqms.index(aqm), place[1]]
            figures[key] = np.concatenate([mine, added], axis=1)
        return Values(networks=self.networks, aqms=(*self.aqms, *new), seeds=self.seeds, figures=figures)


def facts_of(scenario: Scenario) -> Facts:
    """Return the properties of a network.

    Args:
        scenario: The network.
    """
    plan = scenario.plan()
    long = {
        str(group["name"]): int(group["flows"][1] - group["flows"][0])
        for group in plan["groups"]
        if group["traffic"] == "bulk"
        and "congestion" in group["transport"]
        and all(plan["flows"][k]["transfer_bytes"] is None for k in range(*group["flows"]))
    }
    # Not the nominal network: AQMs may be told another one.
    actual = plan["actual"]
    return Facts(base_rtt_s=actual["base_rtt_s"], capacity_bps=actual["capacity_bps"], long=long)


def values_of(rows: Rows) -> Values:
    """Return the figures of a study's finished runs. A network is a scenario at one point of the factors.

    Args:
        rows: Rows of the study.
    """
    import numpy as np

    columns = rows.columns()
    own = [name for name in rows.labels if ":" in name]
    shared = [name for name in rows.labels if name not in ("aqm", *own)]
    short = [name.removesuffix("fct_10kB_100kB_count") for name in columns if name.endswith(".fct_10kB_100kB_count")]
    facts: dict[str, Facts] = {}
    for case in rows.cases:
        network = network_of(case.labels, shared)
        if network not in facts:
            facts[network] = facts_of(rows.bases.scenario(case))
    found: dict[tuple[str, str, int], dict[str, float | None]] = {}
    labels = {name: columns[name].tolist() for name in rows.labels}
    for k, seed in enumerate(columns["seed"].tolist()):
        network = network_of({name: labels[name][k] for name in shared}, shared)
        aqm = _spec(str(labels["aqm"][k]), {name: labels[name][k] for name in own})
        found[network, aqm, int(seed)] = _figures(columns, k, facts[network], short)
    networks = tuple(facts)
    aqms = tuple(dict.fromkeys(aqm for _, aqm, _ in found))
    seeds = tuple(sorted({seed for _, _, seed in found}))
    figures = {key: np.full((len(networks), len(aqms), len(seeds)), np.nan) for key in FIGURES}
    place = {name: i for names in (networks, aqms, seeds) for i, name in enumerate(names)}
    for (network, aqm, seed), each in found.items():
        for key, value in each.items():
            if value is not None:
                # As a record keeps them, so that both give the same ranking.
                figures[key][place[network], place[aqm], place[seed]] = float(f"{value:.5g}")
    return Values(networks=networks, aqms=aqms, seeds=seeds, figures=figures)


def network_of(labels: Mapping[str, Value], shared: Sequence[str]) -> str:
    """Return the name of a network: that of its scenario without folder, and its factors.

    Args:
        labels: Labels of a case.
        shared: Labels that are not of an AQM.
    """
    scenario = PurePath(str(labels["scenario"]))
    name = scenario.stem if scenario.suffix == ".toml" else str(labels["scenario"])
    factors = [f"{key}={labels[key]}" for key in shared if key != "scenario" and labels.get(key) is not None]
    return ",".join([name, *factors])


def _spec(aqm: str, own: Mapping[str, Any]) -> str:
    params = [f"{name.partition(':')[2]}={x:g}" if isinstance(x, float) else f"{name.partition(':')[2]}={x}"
              for name, x in own.items() if x is not None and x == x]  # fmt: skip
    return f"{aqm}{',' if ':' in aqm else ':'}{','.join(params)}" if params else aqm


def _figures(columns: Mapping[str, Any], k: int, facts: Facts, short: Sequence[str]) -> dict[str, float | None]:
    """Return the figures of the run in row `k`."""

    def at(name: str) -> float | None:
        value = float(columns[name][k]) if name in columns else math.nan
        return None if value != value else value

    used, mean, p95 = at("utilization"), at("sojourn_mean_s"), at("sojourn_p95_s")
    early, overflow = at("early_drop_ratio"), at("overflow_drop_ratio")
    power = None if used is None or mean is None else max(used, USED_MIN) / (facts.base_rtt_s + mean)
    transfers = [(at(f"{group}fct_10kB_100kB_count"), at(f"{group}fct_10kB_100kB_mean_s")) for group in short]
    known = [(count, seconds) for count, seconds in transfers if count and seconds is not None]
    return {
        "power": power,
        "p95": None if p95 is None else p95 + PACKET_BITS / facts.capacity_bps,
        "used": None if used is None else max(used, USED_MIN),
        "short": sum(n * s for n, s in known) / sum(n for n, _ in known) if known else None,
        "jain": _jain([(at(f"{g}.goodput_bps"), at(f"{g}.jain_fairness"), n) for g, n in facts.long.items()]),
        "lost": None if early is None or overflow is None else early + overflow,
    }


def _jain(groups: Sequence[tuple[float | None, float | None, int]]) -> float | None:
    """Return Jain's index over groups, each with the sum of its goodputs, its own index and its number of flows."""
    total = squares = 0.0
    count = sum(n for _, _, n in groups)
    for goodput, jain, n in groups:
        if goodput is None:
            return None
        if goodput > 0:
            if jain is None and n > 1:
                return None
            total, squares = total + goodput, squares + goodput**2 / (n * (jain or 1.0))
    return total**2 / (count * squares) if count > 1 and squares > 0 else None
