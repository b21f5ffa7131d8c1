"""The page `docs/which-aqm.md`: three situations, who is ahead in each, and the rankings behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aqumen.ranking.networks import CRITERIA, OWN, REFERENCE, SITUATIONS, TARGET, Situation
from aqumen.view.tables import around, spread

__all__ = ["NAMES", "page"]

ROWS = 8
"""How many AQMs a situation's table shows."""
NAMED = 6
"""How many of those that are tied are named."""
NAMES: Mapping[str, str] = {OWN: "as they come", TARGET: "at the target of each place"}


def page(data: Mapping[str, Any], command: str, date: str) -> str:
    """The page.

    Args:
        data: What `aqumen reproduce ranking --json` prints.
        command: The command that made it.
        date: The day, as 2026-11-22.
    """
    count = len(data["places"])
    parts = [
        "# Which AQM?",
        "",
        f"Written by `{command} --record` on {date}, version {data['aqumen']}: {len(data['aqms'])} AQMs and profiles,"
        f" {count} networks; {data['seeds']} seeds each in the situations{_drawn(data)}, one in all other runs."
        " Three situations, then all networks together. Where one AQM is"
        " told apart from all others it is the pick; elsewhere who is ahead is a tie."
        " Nothing here was tuned, and no AQM was given a value of its own: each is as `aqumen list aqms` has it. For a"
        " line, a port or a cell of your own run `aqumen uplink`, `aqumen datacenter` or `aqumen cell`"
        " ([a network of every day](everyday.md)).",
        "",
        "How to read it: in each network and for each figure the AQMs are ranked, 1 for the best. The *mean rank* is"
        " over all of them. Mean ranks that differ by less than the *critical difference* (95 % for all pairs together)"
        " are not told apart and share a letter of their *group*. In a situation the AQMs are ranked seed by seed, all"
        " with the same traffic, and the"
        " difference follows from how ranks scatter over the seeds (Tukey): it says who is ahead in these networks."
        " Over all networks it follows from how many these are (Nemenyi), and each runs with one seed."
        f"{_agreement(data['agreement'])} Behind ±, or behind − and +, stands how far the 95 % interval over the seeds"
        " goes.",
        "",
    ]
    for situation, picked in zip(SITUATIONS, data["situations"], strict=True):
        parts += _situation(situation, {place["cell"]: place["today"] for place in data["places"]}, picked)
    parts += [
        "## All networks",
        "",
        "Delay, utilisation and losses are those of the first bottleneck under test, all packets together. Under fair"
        " queues that hides how short a sparse flow waits: the situations above tell it, this order does not. Networks"
        " of one paper are alike, so that the critical differences, which take them for independent, are the least"
        " there can be.",
        "",
    ]
    for which in (OWN, TARGET):
        parts += _ranking(which, data["rankings"][which])
    parts += _moved(data["rankings"])
    heads = "| network | target of the second ranking | run until | seeds, as they come |"
    parts += ["## The networks", "", heads, "|---|---|---|---|"]
    parts += [
        f"| `{place['cell']}` | {place['target']} | {place['until'] or 'its end'} | {place['seeds']} |"
        for place in data["places"]
    ]
    if data["refused"]:
        parts += ["", "Not ranked, since a network refuses it:", ""]
        parts += [f"- `{aqm}`: {why}" for aqm, why in data["refused"].items()]
    return "\n".join(parts) + "\n"


def _drawn(data: Mapping[str, Any]) -> str:
    """In how many networks all seeds ran beside those of the situations."""
    compared = {cell for situation in SITUATIONS for cell in situation.cells}
    count = sum(place["seeds"] > 1 and place["cell"] not in compared for place in data["places"])
    return f" and in {count} other networks, drawn at random" if count else ""


def _agreement(agreement: Mapping[str, Mapping[str, Any]]) -> str:
    """How alike two seeds rank."""
    parts = []
    for where, heading in (("situations", "in one network of a situation"), ("drawn", "in one of those drawn")):
        told = [
            f"{words} {one['mean']:.2f}{around(one['mean'], one['ci95'], '{:.2f}'.format)}"
            for key, words, _ in CRITERIA
            if (one := agreement[where][key])["ci95"] is not None
        ]
        if told:
            parts.append(f"{heading} {', '.join(told)}")
    if not parts:
        return ""
    return (
        " How alike two seeds rank all of them, by Kendall's tau (1: the same order), with the 95 % interval over"
        f" the networks: {'; '.join(parts)}."
    )


def _situation(situation: Situation, today: Mapping[str, str | None], picked: Mapping[str, Any]) -> list[str]:
    measures = {measure.key: measure for measure in situation.measures}
    ranked = picked["ranks"]
    if ranked is None:
        return [f"## {situation.title}", "", "Not run.", ""]
    means: Mapping[str, float] = ranked["means"]
    parts = [f"## {situation.title}", "", _ahead(picked, ranked), ""]
    if any(today.get(cell) for cell in situation.cells):
        parts += [f"`{REFERENCE}` is the line as it is: without shapers, with the buffers of modem and provider.", ""]
    kernel = picked["kernel"]
    chosen = list(means)[:ROWS]
    chosen += [aqm for aqm in (kernel, "droptail") if aqm is not None and aqm not in chosen]
    for cell in dict.fromkeys(row["cell"] for row in picked["figures"]):
        rows = [row for row in picked["figures"] if row["cell"] == cell]
        heads = [measures[row["measure"]].words for row in rows]
        parts += [
            f"`{cell}`:",
            "",
            f"| AQM | mean rank | group | {' | '.join(heads)} |",
            "|---" * (len(heads) + 3) + "|",
        ]
        for aqm in chosen:
            cells = [_figure(row["figures"][aqm], measures[row["measure"]].digits) for row in rows]
            parts.append(f"| `{aqm}` | {means[aqm]:.1f} | {ranked['groups'][aqm]} | {' | '.join(cells)} |")
        parts.append("")
    return parts


def _ahead(picked: Mapping[str, Any], ranked: Mapping[str, Any]) -> str:
    """Who is ahead: a pick if it is told apart from all others, else a tie."""
    means: Mapping[str, float] = ranked["means"]
    best, kernel, critical = picked["pick"], picked["kernel"], ranked["critical_difference"]
    tied = [aqm for aqm in means if aqm in ranked["tied_with_best"] and aqm != best]
    figures = f"over {ranked['figures']} figures{'' if critical is None else f' (critical difference {critical:.1f})'}"
    if not tied:
        text = f"Pick: **`{best}`**, mean rank {means[best]:.1f} {figures}, told apart from every other."
    elif len(tied) == len(means) - 1:
        return (
            f"No pick: so few seeds tell none of the {len(means)} apart {figures}. The order below, with `{best}`"
            f" first by its mean rank of {means[best]:.1f}, is a lean, not a finding."
        )
    else:
        rest = f" and {len(tied) - NAMED} more" if len(tied) > NAMED else ""
        text = (
            f"A tie of {len(tied) + 1} among {len(means)}: `{best}`, mean rank {means[best]:.1f} {figures}, is not told"
            f" apart from {_list(tied[:NAMED])}{rest}."
        )
    if kernel is None or kernel == best:
        return text
    where = " is in the tie" if kernel in tied else " comes first, not with these" if tied else " comes first"
    return f"{text} Of what a Linux kernel has, `{kernel}` (mean rank {means[kernel]:.1f}){where}."


def _ranking(which: str, found: Mapping[str, Any]) -> list[str]:
    parts = [f"### AQMs {NAMES[which]}", ""]
    counts, what, _ = CRITERIA[0]
    main = found["by"][counts]
    if main is None:
        return [*parts, "Not enough networks.", ""]
    differences = ", ".join(
        f"{words} {found['by'][key]['critical_difference']:.1f}"
        for key, words, _ in CRITERIA
        if found["by"][key] is not None
    )
    front = [aqm for aqm in found["front"] if aqm in main["means"]]
    parts += [
        f"In order of {what} (Kleinrock's power). Critical differences: {differences}. Friedman's statistic"
        f" of the first: {main['friedman']:.0f} over {main['places']} networks. On the front of delay against"
        f" utilisation, where nobody is better in one without being worse in the other: {_list(front)}.",
        "",
        f"| AQM | {' | '.join(f'rank by {words}' for _, words, _ in CRITERIA)} | group by {what} | delay / DropTail's"
        " | utilisation |",
        "|---" * (len(CRITERIA) + 4) + "|",
    ]
    for aqm in main["means"]:
        ranks = [found["by"][key] for key, _, _ in CRITERIA]
        cells = ["–" if one is None else f"{one['means'][aqm]:.1f}" for one in ranks]
        point = found["tradeoff"].get(aqm)
        rest = (
            ["–", "–"]
            if point is None
            else [f"{point['delay_of_droptail']:.2f}", f"{100 * point['utilization']:.1f} %"]
        )
        parts.append(f"| `{aqm}` | {' | '.join([*cells, main['groups'][aqm], *rest])} |")
    return [*parts, ""]


def _moved(rankings: Mapping[str, Any]) -> list[str]:
    """What the target alone explains: who moves most from one ranking to the other."""
    main, *_ = next(iter(CRITERIA))
    if any(rankings[which]["by"][main] is None for which in (OWN, TARGET)):
        return []
    places = {
        which: {aqm: k + 1 for k, aqm in enumerate(rankings[which]["by"][main]["means"])} for which in (OWN, TARGET)
    }
    moves = sorted(places[OWN], key=lambda aqm: -abs(places[TARGET][aqm] - places[OWN][aqm]))[:6]
    told = [
        f"`{aqm}` from {places[OWN][aqm]} to {places[TARGET][aqm]}"
        for aqm in moves
        if places[OWN][aqm] != places[TARGET][aqm]
    ]
    if not told:
        return []
    return [
        f"Who moves most from the first order to the second, by what its target alone did for it: {', '.join(told)}.",
        "",
    ]


def _figure(summary: Mapping[str, Any], digits: int) -> str:
    return spread(summary, 1, digits) if summary["n"] else "none"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
