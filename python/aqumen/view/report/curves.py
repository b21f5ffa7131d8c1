"""Data of the report's plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqumen._run import RunData
from aqumen._run_set import Runs
from aqumen.explain.disagreement import averaged
from aqumen.explain.transient import events

if TYPE_CHECKING:
    from aqumen.engines.answer import Floats

__all__ = ["curves", "judged_window", "representative_seed", "without_probability"]

POINTS_MAX = 1500
"""Maximum number of points of a time series."""
CDF_POINTS = 240
BAND_SHARES = (0.1, 0.9)
"""Quantiles of the band over seeds: the middle 80 %."""
CHI2_95 = 5.991464547107979
"""95 % quantile of the chi-squared distribution with two degrees of freedom."""


def judged_window(comparison: Runs) -> str:
    """Return the window of the ranking: `steady` if it exists."""
    return comparison.ranking().window


def representative_seed(comparison: Runs) -> int:
    """Return the most typical seed: the least total distance from the median mean queue, over AQMs.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
    """
    link, window = comparison.results[0].links[0], judged_window(comparison)
    distance = dict.fromkeys(comparison.seeds, 0.0)
    runs_of = {aqm: comparison.of(aqm) for aqm in comparison.aqms}
    for runs in runs_of.values():
        queues = {run.seed: run.link(link, window)["queue_mean_pkts"] or 0.0 for run in runs}
        middle = float(np.median(list(queues.values())))
        for seed in distance:
            # A seed that is unfinished for some AQM cannot show all under equal traffic.
            distance[seed] += abs(queues[seed] - middle) / max(middle, 1.0) if seed in queues else math.inf
    return min(distance, key=lambda seed: (distance[seed], seed))


def curves(comparison: Runs) -> dict[str, Any]:
    """Return the data of the plots, by link.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
    """
    seed, window = representative_seed(comparison), judged_window(comparison)
    first = comparison.results[0]
    plan = comparison.scenario.plan(seed, first.spec)
    planned = {link["name"]: link for link in plan["links"]}
    # After start-up a saturated link has equal throughput under every AQM, so the whole run is compared.
    whole = "all" if "all" in first.windows else window
    return {
        "aqms": comparison.aqms,
        "seed": seed,
        "seeds": len(comparison.seeds),
        "window": window,
        "end": max(end for _, end in first.windows.values()),
        "events": events(first.windows)[1:],
        "links": {
            name: {
                "target": planned[name]["target_pkts"],
                "buffer": planned[name]["buffer_pkts"],
                **_over_time(comparison, name, seed),
                "cdf": _cdf(comparison, name, window),
                "levels": _levels(comparison, name, window),
                "tradeoff": {
                    aqm: _tradeoff(comparison.of(aqm), name, whole, _mean_rate(planned[name], first.windows[whole]))
                    for aqm in comparison.aqms
                },
            }
            for name in first.links
        },
    }


def _over_time(comparison: Runs, link: str, seed: int) -> dict[str, Any]:
    t = comparison.results[0].series(link).t_s
    step = max(1, math.ceil(len(t) / POINTS_MAX))
    per_aqm = {}
    for aqm in comparison.aqms:
        runs = comparison.of(aqm)
        shown = next((run for run in runs if run.seed == seed), runs[0])
        entry: dict[str, list[float | None]] = {}
        for key, digits, field in (("queue", 1, "queue_pkts"), ("p", 5, "probability")):
            entry[key] = _round(_thin(getattr(shown.series(link), field), step), digits)
            if len(runs) > 1:
                every = [_thin(getattr(run.series(link), field), step) for run in runs]
                spread = np.quantile(every, BAND_SHARES, axis=0)
                entry[f"{key}_low"], entry[f"{key}_high"] = _round(spread[0], digits), _round(spread[1], digits)
        if len({run.label for run in comparison.results if run.spec == shown.spec}) > 1:
            entry["averaged"] = _round(_thin(averaged(runs, link)[1], step), 1)
        per_aqm[aqm] = entry
    for aqm in without_probability(comparison, link):
        for key in ("p", "p_low", "p_high"):
            if key in per_aqm[aqm]:
                per_aqm[aqm][key] = [None] * len(per_aqm[aqm][key])
    return {"t": _round(t[::step][: len(_thin(t, step))], 3), "time": per_aqm}


def without_probability(comparison: Runs, link: str) -> list[str]:
    """Return the AQMs that signal at deterministic times: marks or early drops with zero or undefined probability.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        link: Name of a recorded link, such as `bottleneck`.
    """
    found = []
    for aqm in comparison.aqms:
        runs = comparison.of(aqm)
        windows = [window for run in runs for window in run.data["links"][link].values()]
        signalled = any((each["mark_ratio"] or 0) + (each["early_drop_ratio"] or 0) > 0 for each in windows)
        if signalled and not any(np.nan_to_num(run.series(link).probability).any() for run in runs):
            found.append(aqm)
    return found


def _thin(values: Floats, step: int) -> Floats:
    """Return every `step`-th value; a mean would hide oscillations."""
    return values[::step]


def _cdf(comparison: Runs, link: str, window: str) -> dict[str, Any]:
    """Return the distribution function of the sojourn time (ms), averaged over the seeds."""
    every = {aqm: [run.sojourn_cdf(link, window) for run in comparison.of(aqm)] for aqm in comparison.aqms}
    ends = [float(cdf.sojourn_s[-1]) for each in every.values() for cdf in each if len(cdf.sojourn_s)]
    if not ends:
        return {"x": [], "share": {}}
    grid = np.linspace(0.0, max(ends) * 1.02, CDF_POINTS)
    share = {}
    for aqm, cdfs in every.items():
        known = [cdf for cdf in cdfs if len(cdf.sojourn_s)]
        if known:
            share[aqm] = _round(np.mean([_stairs(cdf.sojourn_s, cdf.share, grid) for cdf in known], axis=0), 5)
    return {"x": _round(grid * 1000, 3), "share": share}


def _levels(comparison: Runs, link: str, window: str) -> dict[str, Any]:
    """Return the distribution function of the queue length (packets), averaged over the seeds."""
    every = {aqm: [run.queue_cdf(link, window) for run in comparison.of(aqm)] for aqm in comparison.aqms}
    known = {aqm: [cdf for cdf in cdfs if len(cdf.queue_pkts)] for aqm, cdfs in every.items()}
    ends = [float(cdf.queue_pkts[-1]) for cdfs in known.values() for cdf in cdfs]
    if not ends:
        return {"x": [], "share": {}}
    # Whole packets, thinned for long queues.
    step = max(1, math.ceil(max(ends) / POINTS_MAX))
    grid = np.arange(0, max(ends) + step, step)
    share = {
        aqm: _round(np.mean([_stairs(cdf.queue_pkts, cdf.share, grid) for cdf in cdfs], axis=0), 5)
        for aqm, cdfs in known.items()
        if cdfs
    }
    return {"x": _round(grid, 0), "share": share}


def _stairs(values: Floats, share: Floats, grid: Floats) -> Floats:
    """Evaluate a distribution function on a grid."""
    stairs: Floats = np.concatenate([[0.0], share])[np.searchsorted(values, grid, side="right")]
    return stairs


def _tradeoff(runs: Sequence[RunData], link: str, window: str, rate_bps: float) -> dict[str, Any]:
    """Return mean sojourn time (ms) and throughput (Mbit/s) of each run, and the 95 % ellipse."""
    points = []
    for run in runs:
        metrics = run.link(link, window)
        sojourn, utilization = metrics["sojourn_mean_s"], metrics["utilization"]
        if sojourn is not None and utilization is not None:
            points.append((sojourn * 1000, utilization * rate_bps / 1e6, run.seed))
    xy = np.array([(x, y) for x, y, _ in points])
    return {
        "x": [round(x, 4) for x, _, _ in points],
        "y": [round(y, 6) for _, y, _ in points],
        "seed": [seed for _, _, seed in points],
        "ellipse": _ellipse(xy) if len(points) > 2 else [],
    }


def _ellipse(xy: Floats) -> list[list[float]]:
    """Return the outline of the normal 95 % region: mean + sqrt(chi2) L u, L L' the covariance, |u| = 1."""
    centre, covariance = xy.mean(axis=0), np.cov(xy.T)
    variances, axes = np.linalg.eigh(covariance)
    angles = np.linspace(0, 2 * np.pi, 73)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    outline = centre[:, None] + axes @ (np.sqrt(CHI2_95 * np.clip(variances, 0, None))[:, None] * circle)
    return [[round(float(x), 4), round(float(y), 6)] for x, y in outline.T]


def _mean_rate(link: dict[str, Any], window: tuple[float, float]) -> float:
    """Return the link's capacity averaged over a window, bit/s."""
    start, end = window
    rates = link["rates"]
    ends = [t for t, _ in rates[1:]] + [math.inf]
    bits = sum(bps * max(0.0, min(end, until) - max(start, t)) for (t, bps), until in zip(rates, ends, strict=True))
    return float(bits / (end - start))


def _round(values: Floats, digits: int) -> list[float | None]:
    return [None if math.isnan(x) else round(float(x), digits) for x in values]
