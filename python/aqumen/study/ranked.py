"""AQMs in order by one figure over many networks: paired ratios, bootstrap over networks, Holm, letter groups.

In each network two AQMs meet the same traffic, so that their figures, means over the seeds, are compared within it:
by the logarithm of their ratio, or by their difference. The networks are the sample. Intervals of the mean come from a
bootstrap over networks (B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7, 1979).
P-values come from the paired t test, since a bootstrap of 10 000 samples has none that is small enough for the
correction over all pairs (Holm). Two AQMs differ if that P-value is below 5 % and their mean ratio is beyond what
counts as alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from aqumen import _core
from aqumen.errors import ScenarioError, listed, meant
from aqumen.study.compared import holm
from aqumen.study.figures import FIGURES, Figure, Values

__all__ = ["FigureRanking", "RankedAqm", "rank_networks"]

LEVEL = 0.05
SAMPLES = 10_000
"""Samples of the bootstrap."""
NETWORKS_MIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedAqm:
    """An AQM by one figure, against the reference."""

    aqm: str
    """The AQM, a SPEC."""
    mean: float
    """Geometric mean of the ratios over networks, or mean of the differences."""
    ci95: tuple[float, float]
    """Its 95 % interval."""
    group: str
    """Letters: AQMs that share one do not differ."""
    differs: bool
    """Whether it differs from the reference."""
    p_holm: float
    """P-value against the reference, corrected for all pairs."""
    better: int
    """Networks in which it is better than the reference by more than what is alike."""
    worse: int
    """Networks in which it is worse by more than that."""
    worst: tuple[str, float]
    """Network in which it does worst against the reference, and its ratio or difference there."""
    worst_seed: tuple[str, int, float]
    """Run in which it does worst: network, seed, ratio or difference."""
    undefined: int
    """Networks in which the figure is undefined for this AQM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRanking:
    """All AQMs by one figure, the best mean first."""

    figure: Figure
    """The figure."""
    reference: str
    """AQM to which ratios and differences refer."""
    networks: int
    """Networks in which the figure is defined for all AQMs; only these count."""
    left_out: int
    """Other networks."""
    places: tuple[RankedAqm, ...]
    """AQMs in order; empty if fewer than two networks count."""


def rank_networks(values: Values, figure: str, reference: str | None = None) -> FigureRanking:
    """Rank AQMs by one figure.

    Args:
        values: Figures of all runs.
        figure: Name in `FIGURES`.
        reference: AQM to which ratios refer; default: the first. It changes no order and no group.

    Raises:
        ScenarioError: There is no such figure or AQM.
    """
    import numpy as np

    if figure not in FIGURES:
        raise ScenarioError(f"figure {figure}{meant(figure, FIGURES) or ':'} choose from: {listed(FIGURES)}")
    against = values.aqms[0] if reference is None else reference
    if against not in values.aqms:
        raise ScenarioError(f"{against}: is not ranked; choose from: {listed(values.aqms)}")
    what, runs = FIGURES[figure], values.figures[figure]
    known = ~np.isnan(runs)
    count = known.sum(axis=2)
    means = np.where(known, runs, 0.0).sum(axis=2) / np.maximum(count, 1)
    defined = count > 0
    whole = defined.all(axis=1)
    undefined = (~defined).sum(axis=0)
    left_out = len(values.networks) - int(whole.sum())
    if whole.sum() < NETWORKS_MIN:
        return FigureRanking(figure=what, reference=against, networks=int(whole.sum()), left_out=left_out, places=())
    x = _scale(means[whole], what)
    seeds = _scale(runs[whole], what)
    names = [name for name, counts in zip(values.networks, whole, strict=True) if counts]
    ref = values.aqms.index(against)
    ps = _pairs(x)
    sign = 1.0 if what.more else -1.0
    order = sorted(range(len(values.aqms)), key=lambda a: -sign * float(x[:, a].mean()))
    alike = _alike(what)
    far = {pair for pair, p in ps.items() if p < LEVEL and abs(float((x[:, pair[0]] - x[:, pair[1]]).mean())) > alike}
    at = {a: i for i, a in enumerate(order)}
    letters = _core.letter_groups(len(order), {(at[a], at[b]) for a, b in far})
    sampled = _bootstrap(x - x[:, [ref]])
    places = []
    for a, letter in zip(order, letters, strict=True):
        gain = sign * (x[:, a] - x[:, ref])
        each = sign * (seeds[:, a, :] - seeds[:, ref, :])
        worst = int(np.argmin(gain))
        run = np.unravel_index(int(np.nanargmin(each)), each.shape) if not np.isnan(each).all() else (worst, 0)
        shown = _shown((x[:, a] - x[:, ref]).mean(), what)
        pair = (min(a, ref), max(a, ref))
        places.append(
            RankedAqm(
                aqm=values.aqms[a],
                mean=shown,
                ci95=(_shown(sampled[0][a], what), _shown(sampled[1][a], what)),
                group=letter,
                differs=pair in far,
                p_holm=ps.get(pair, 1.0),
                better=int((gain > alike).sum()),
                worse=int((gain < -alike).sum()),
                worst=(names[worst], _shown(x[worst, a] - x[worst, ref], what)),
                worst_seed=(
                    names[int(run[0])],
                    values.seeds[int(run[1])],
                    _shown(seeds[run[0], a, run[1]] - seeds[run[0], ref, run[1]], what),
                ),
                undefined=int(undefined[a]),
            )
        )
    return FigureRanking(figure=what, reference=against, networks=len(names), left_out=left_out, places=tuple(places))


def _scale(values: Any, figure: Figure) -> Any:
    """Return the scale on which AQMs are compared: logarithms of ratios."""
    import numpy as np

    return np.log(values) if figure.ratio else values


def _shown(difference: Any, figure: Figure) -> float:
    return math.exp(float(difference)) if figure.ratio else float(difference)


def _alike(figure: Figure) -> float:
    # A little more, so that a difference of exactly the threshold is alike whatever its last bit.
    return (math.log1p(figure.alike) if figure.ratio else figure.alike) + 1e-12


def _pairs(x: Any) -> dict[tuple[int, int], float]:
    """Return the P-value of each pair of columns, corrected by Holm for all of them."""
    import numpy as np

    n, k = x.shape
    pairs, ps = [], []
    for a in range(k):
        differences = x[:, [a]] - x[:, a + 1 :]
        for b, mean, variance in zip(
            range(a + 1, k), differences.mean(axis=0), np.var(differences, axis=0, ddof=1), strict=True
        ):
            pairs.append((a, b))
            if variance <= 0.0:
                ps.append(1.0 if mean == 0.0 else 0.0)
            else:
                ps.append(_core.student_tail(float(mean) / math.sqrt(float(variance) / n), n - 1))
    return dict(zip(pairs, holm(ps), strict=True))


def _bootstrap(differences: Any) -> tuple[Any, Any]:
    """Return the ends of the 95 % interval of each column's mean, over samples of rows."""
    import numpy as np

    n = differences.shape[0]
    # Legacy generator: its stream never changes. Means of samples are products with counts of rows.
    drawn = np.random.RandomState(1).randint(0, n, size=(SAMPLES, n))
    counts = np.zeros((SAMPLES, n))
    for column in drawn.T:
        counts[np.arange(SAMPLES), column] += 1
    means = np.sort(counts @ differences / n, axis=0)
    tail = int(SAMPLES * LEVEL / 2)
    return means[tail], means[SAMPLES - 1 - tail]
