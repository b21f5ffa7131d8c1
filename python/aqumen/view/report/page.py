"""The report page: a template filled with text, tables, a diagram and plot data."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from aqumen import _core
from aqumen._files import json_text
from aqumen._run_set import Runs
from aqumen._statistics import MARK, NOTE
from aqumen.explain.disagreement import sentences
from aqumen.explain.transient import BAND, HOLD_S, SMOOTH_S, START_UP
from aqumen.ranking import Rank, Ranking
from aqumen.view.export import bibtex
from aqumen.view.report.curves import curves, without_probability
from aqumen.view.report.measures import engines_section, flow_section, link_section
from aqumen.view.report.picture import scenario_svg
from aqumen.view.report.template import render
from aqumen.view.report.theory import theory_section
from aqumen.view.tables import number, parameters, spread

__all__ = ["report_html"]

COLUMNS = [
    ("utilization", "Utilisation", "%", 100, 2),
    ("queue_mean_pkts", "Queue, mean", "packets", 1, 1),
    ("sojourn_mean_s", "Sojourn, mean", "ms", 1000, 1),
    ("sojourn_p99_s", "Sojourn, p99", "ms", 1000, 1),
    ("mark_ratio", "Marked", "%", 100, 2),
    ("drop_ratio", "Dropped", "%", 100, 2),
]


def report_html(comparison: Runs, command: str | None = None, *, loops: bool = False) -> str:
    """Return the report as HTML text.

    Args:
        comparison: The finished runs, by engine, AQM and seed.
        command: Command to print; default: the Python call.
        loops: Also predict margins and oscillations, which may take seconds for each AQM.
    """
    data, numbers = comparison.to_dict(), curves(comparison)
    ranking = comparison.ranking()
    scenario = comparison.scenario
    plan = scenario.plan(numbers["seed"], comparison.results[0].spec)
    folder = files("aqumen.view.report")
    specs = list(dict.fromkeys(run.spec for run in comparison.results))
    call = f"aqumen.compare(scenario, aqms={specs!r}, seeds={comparison.seeds!r})"
    made = {
        "facts": _facts(comparison, plan),
        "verdict": _engines_verdict(data, ranking) or _verdict(data, ranking),
        "legend": _legend(comparison, data),
        "ranking": _ranking(comparison, data, ranking),
        "ranking_note": _ranking_note(comparison, ranking),
        "link_switch": _link_switch(comparison),
        "transients": _transients(comparison, data),
        "no_probability": _no_probability(comparison, ranking.link),
        "links": link_section(data, ranking.link, ranking.window, _spread_html),
        "flows": flow_section(data, ranking.window, _spread_html),
        "engines": engines_section(comparison, ranking.window),
        "theory": theory_section(comparison, ranking.window, loops=loops),
        "picture": scenario_svg(plan),
        "versions": _versions(comparison, data),
        "aqms": _aqms(data),
        "css": (folder / "page.css").read_text("utf-8"),
        "js": (folder / "panels.js").read_text("utf-8") + (folder / "page.js").read_text("utf-8"),
        "uplot_css": (folder / "vendor" / "uPlot.min.css").read_text("utf-8"),
        "uplot_js": (folder / "vendor" / "uPlot.iife.min.js").read_text("utf-8"),
        # A name that contains "</script>" must not end the script.
        "data": json_text(numbers).replace("<", "\\u003c"),
    }
    made["few"] = f'<p class="note">{NOTE}</p>' if MARK in made["ranking"] + made["links"] + made["flows"] else ""
    band, target = len(comparison.seeds) > 1, bool(comparison.targets())
    return render(
        "aqumen.view.report",
        "page.html",
        title=scenario.title or scenario.name,
        name=scenario.name,
        ranking_title="Ranking" if len(ranking.places) > 1 or not data["mismatch"] else "The AQM on each engine",
        seed=numbers["seed"],
        band="the shaded band contains the middle 80 % of the seeds" if band else "one seed, hence no band",
        window=_window_words(data, ranking.window),
        dashed=" Dashed: the target." if target else "",
        error_note=ERROR_NOTE if target else "",
        command=command or call,
        studio=command is not None and any(run.engine == "packet" for run in comparison.results),
        toml=scenario.to_toml(),
        bibtex=bibtex(data["aqumen"]),
        # Generated here, with names escaped.
        **{key: Markup(text) for key, text in made.items()},
    )


ERROR_NOTE = "Error: distance of the queue from its target, absolute and squared, integrated over the window."


def _facts(comparison: Runs, plan: dict[str, Any]) -> str:
    runs = f"{len(comparison.results)} runs"
    if not comparison.complete:
        runs = f"<strong>{len(comparison.results)} of {comparison.wanted} runs, stopped early</strong>"
    aqms = dict.fromkeys(run.spec for run in comparison.results)
    engines = dict.fromkeys(run.engine for run in comparison.results)
    words = [
        f"{len(aqms)} AQM{'s' if len(aqms) > 1 else ''}",
        f"{len(comparison.seeds)} seed{'s' if len(comparison.seeds) > 1 else ''}",
        runs,
        f"{len(plan['flows'])} flows",
        f"{plan['duration_s']:g} s",
        f"engine{'s' if len(engines) > 1 else ''} {escape(', '.join(engines))}",
    ]
    return "".join(f"<li>{word}</li>" for word in words)


def _engines_verdict(data: dict[str, Any], ranking: Ranking) -> str:
    """Describe how far other engines differ from the reference; empty with one engine."""
    return escape(" ".join(sentences(data["mismatch"], ranking.link, ranking.window)), quote=False)


def _verdict(data: dict[str, Any], ranking: Ranking) -> str:
    """State the result in a sentence: the leader's metric and its utilisation."""
    best, figure = ranking.places[0], ranking.figure
    use = spread(data["aqms"][best.aqm]["links"][ranking.link][ranking.window]["utilization"], 100, 2)
    value = spread(ranking.summaries[best.aqm][figure.key], figure.factor, figure.digits)
    name = f"<b>{escape(best.aqm)}</b>"
    did = f"{_DID[figure.key].format(f'{value} {figure.unit}')} at {use} % utilisation"
    if len(ranking.places) == 1:
        return f"{name} {did}."
    if best.clearly_best:
        return f"{name} {did}, significantly better than the {_count(len(ranking.places) - 1)}."
    alike = " and ".join(f"<b>{escape(place.aqm)}</b>" for place in ranking.places if _like_best(ranking, place))
    if not alike:
        return f"{name} {did} and ranks first, but is not significantly better than every other AQM."
    verb = "does" if alike.count("<b>") == 1 else "do"
    return f"{name} {did}. {alike} {verb} not differ significantly from it."


def _like_best(ranking: Ranking, place: Rank) -> bool:
    """Return whether an AQM other than the first shares a letter with it."""
    return place.group is not None and ranking.places[0].aqm in place.tied_with


_DID = {
    "qacd_pkts": "keeps the queue within {} of its target (root mean square)",
    "sojourn_mean_s": "has a mean sojourn time of {}",
    "sojourn_p99_s": "serves 99 % of its packets within {}",
    "page_load_mean_s": "loads pages in {}",
    "mos": "has calls of {}",
    "goodput_bps": "has a goodput of {}",
}


def _count(n: int) -> str:
    return "other one" if n == 1 else f"{n} others"


def _legend(comparison: Runs, data: dict[str, Any]) -> str:
    return "".join(
        f'<button type="button" class="chip" style="--c:var(--c{i % 8})" data-aqm="{escape(aqm)}" aria-pressed="true">'
        f"<i></i>{escape(aqm)}</button>"
        for i, aqm in enumerate(comparison.aqms)
    )


def _ranking(comparison: Runs, data: dict[str, Any], ranking: Ranking) -> str:
    order = list(data["aqms"])
    figure = ranking.figure
    unit, factor = figure.unit, figure.factor
    columns = [column for column in COLUMNS if column[0] != figure.key]
    head = "".join(f"<th>{title}<small>{u}</small></th>" for _, title, u, _, _ in columns)
    spans = {}
    for label, summaries in ranking.summaries.items():
        summary = summaries[figure.key]
        if (mean := summary["mean"]) is not None:
            low, high = summary["ci95"] or (mean, mean)
            spans[label] = (low * factor, mean * factor, high * factor)
    longest = max((high for _, _, high in spans.values()), default=None) or 1.0
    ranked = len(ranking.places) > 1 or not data["mismatch"]
    grouped = ranked and any(place.group for place in ranking.places)
    rows = []
    for place, label in comparison.rows(ranking):
        metrics = comparison.summaries(label, ranking.link, ranking.window)
        cells = "".join(f"<td>{_spread_html(metrics[key], f, digits)}</td>" for key, _, _, f, digits in columns)
        badge = ""
        if place is not None and place.clearly_best:
            badge = '<span class="badge best">significantly best</span>'
        elif place is not None and _like_best(ranking, place):
            badge = '<span class="badge">not significantly different from the best</span>'
        colour = order.index(label) % 8
        places = f'<td class="place">{"" if place is None else place.place}</td>' if ranked else ""
        groups = f'<td class="word">{"" if place is None else place.group or number(None, 0)}</td>' if grouped else ""
        rows.append(
            f'<tr data-aqm="{escape(label)}" style="--c:var(--c{colour})">{places}{groups}'
            f'<th scope="row"><i class="dot"></i>{escape(label)}{badge}</th>'
            f'<td class="key">{_spread_html(ranking.summaries[label][figure.key], factor, figure.digits)}</td>'
            f'<td class="forest">{_whisker(spans.get(label), longest)}</td>{cells}</tr>'
        )
    title = f"Ranking by {figure.title}" if ranked else "The AQM on each engine"
    heads = ('<th><span class="unseen">Place</span></th>' if ranked else "") + ("<th>Group</th>" if grouped else "")
    return (
        f'<table class="rank"><caption class="unseen">{title}</caption><thead><tr>{heads}'
        f'<th class="name">AQM</th><th>{figure.title}<small>{unit}</small></th>'
        f'<th class="forest">95 % interval<small>0 to {longest:.3g} {unit}</small></th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _whisker(span: tuple[float, float, float] | None, longest: float) -> str:
    if span is None:
        return ""
    low, mean, high = (4 + 102 * max(value, 0.0) / longest for value in span)
    return (
        '<svg viewBox="0 0 110 16" width="110" height="16" aria-hidden="true">'
        '<line class="base" x1="4" y1="8" x2="106" y2="8"/>'
        f'<line class="ci" x1="{low:.1f}" y1="8" x2="{max(high, low + 0.5):.1f}" y2="8"/>'
        f'<circle cx="{mean:.1f}" cy="8" r="4"/></svg>'
    )


def _ranking_note(comparison: Runs, ranking: Ranking) -> str:
    several = bool(comparison.disagreement())
    if several and len(ranking.places) == 1:
        return "Values are means over the seeds and 95 % confidence intervals."
    where = f"AQMs are ranked on {comparison.results[0].engine} alone, by" if several else "Ranked by"
    what = f"{where} {ranking.words}."
    if ranking.by == "queue-error":
        what += " QACD combines a constant offset from the target and oscillations about it."
    if len(comparison.seeds) == 1:
        return f"{what} One seed gives no confidence intervals: the order may be chance."
    return (
        f"{what} Values are means over the seeds and 95 % confidence intervals. A place is 1 + "
        "the number of AQMs that are significantly better. AQMs that share a group letter do not differ significantly."
    )


def _no_probability(comparison: Runs, link: str) -> str:
    """Explain why some AQMs have no curve: they signal at times that their law computes, not at random."""
    names = without_probability(comparison, link)
    if not names:
        return ""
    listing = ", ".join(f"<b>{escape(name)}</b>" for name in names)
    signal = "signals" if len(names) == 1 else "signal"
    return f" {listing} {signal} without a probability; the ranking has the fractions marked and dropped."


def _link_switch(comparison: Runs) -> str:
    links = comparison.results[0].links
    if len(links) == 1:
        return ""
    options = "".join(f"<option>{escape(link)}</option>" for link in links)
    return f'<label class="pick">Link <select id="link">{options}</select></label>'


def _window_words(data: dict[str, Any], window: str) -> str:
    start, end = data["windows"][window]
    return f"{window}, {start:g} to {end:g} s"


def _transients(comparison: Runs, data: dict[str, Any]) -> str:
    """Return the section on settling and overshoot after start-up and each event; empty without a target."""
    link = next(iter(data["aqms"][comparison.aqms[0]]["transients"]), None)
    if link is None:
        return ""
    names = list(data["aqms"][comparison.aqms[0]]["transients"][link])
    moments = {name: start for name, (start, _) in data["windows"].items()}
    head = "".join(
        f'<th colspan="3" class="group">{escape("Start-up" if name == START_UP else name)}'
        f"<small>from {moments.get(name, 0):g} s</small></th>"
        for name in names
    )
    heads = (("Settled", "runs"), ("Settling time", "s"), ("Overshoot", "packets"))
    sub = "".join(f"<th>{title}<small>{unit}</small></th>" for title, unit in heads)
    rows = []
    for i, aqm in enumerate(comparison.aqms):
        cells = ""
        for name in names:
            entry = data["aqms"][aqm]["transients"][link][name]
            settled, runs = entry["settling_s"]["n"], entry["overshoot_pkts"]["n"]
            share = f"{settled} of {runs}" if settled else '<span class="never">never</span>'
            cells += (
                f"<td>{share}</td><td>{_spread_html(entry['settling_s'], 1, 1)}</td>"
                f"<td>{_spread_html(entry['overshoot_pkts'], 1, 0)}</td>"
            )
        rows.append(
            f'<tr data-aqm="{escape(aqm)}" style="--c:var(--c{i % 8})"><th scope="row"><i class="dot"></i>{escape(aqm)}'
            f"</th>{cells}</tr>"
        )
    return (
        "<section>\n<h2>Settling and overshoot</h2>\n"
        '<div class="wide" role="region" tabindex="0" aria-label="Settling and overshoot">'
        f'<table class="settle"><caption class="unseen">Settling and overshoot</caption>'
        f'<thead><tr><th rowspan="2" class="name">AQM</th>{head}</tr>'
        f"<tr>{sub * len(names)}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>\n"
        f'<p class="note">Settling time: from the event until the queue, averaged over {SMOOTH_S:g} s, stays within '
        f"±{BAND * 100:.0f} % of the target for {HOLD_S:g} s. Overshoot: the largest queue above the target until "
        "then. Means over the seeds that settled, and 95 % intervals.</p>\n</section>"
    )


def _aqms(data: dict[str, Any]) -> str:
    rows = []
    for aqm, entry in data["aqms"].items():
        cells = [parameters(entry["given"]) or "none", parameters(entry["params"]) or "no parameters"]
        row = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows.append(f"<tr><th scope='row'>{escape(aqm)}</th>{row}</tr>")
    head = "<thead><tr><th>AQM</th><th>Given</th><th>In force</th></tr></thead>"
    caption = '<caption class="unseen">AQMs and their parameters</caption>'
    return f'<table class="plain">{caption}{head}<tbody>{"".join(rows)}</tbody></table>'


def _versions(comparison: Runs, data: dict[str, Any]) -> str:
    seeds = comparison.seeds
    run = f"{seeds[0]} to {seeds[-1]}" if seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 1 else None
    rows = {
        "Seeds": run or ", ".join(map(str, seeds)),
        "Aqumen": f"{data['aqumen']} (this page: {_core.__version__})",
        "Python": platform.python_version(),
        "System": f"{platform.system()} {platform.machine()}",
        "CPU time": f"{sum(float(run.data['cost']['cpu_s'] or 0) for run in comparison.results):.1f} s",
    }
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())


def _spread_html(summary: Mapping[str, Any], factor: float, digits: int) -> str:
    mean, blank, rest = spread(summary, factor, digits).partition(" ")
    return f"{mean}<span class='pm'> {rest}</span>" if blank else mean
