"""Generator of `docs/validation/ranking.md`: AQMs ranked in three situations and over many networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aqumen.ranking.networks import CRITERIA, OWN, REFERENCE, SITUATIONS, TARGET, Situation
from aqumen.view.tables import around, spread

__all__ = ["NAMES", "page"]

ROWS = 8
"""Maximum number of AQMs in a situation's table."""
NAMED = 6
"""Maximum number of tied AQMs to name."""
NAMES: Mapping[str, str] = {OWN: "with their defaults", TARGET: "at the target of each network"}


def page(data: Mapping[str, Any], command: str, date: str) -> str:
    """Return the page as Markdown.

    Args:
        data: What `aqumen reproduce ranking --json` prints.
        command: Command that produced the data.
        date: Date, as 2026-11-22.
    """
    count = len(data["places"])
    parts = [
        "# AQMs ranked over many networks",
        "",
        "[Choose an AQM](../everyday.md) has the answer for a home, an office, a data centre or a cell. This page is"
        f" the ranking of {len(data['aqms'])} AQMs and profiles of Aqumen, with their defaults, over {count} networks:"
        " three situations first, then all networks together, the method last. An AQM that is significantly better than"
        " all others is the pick; otherwise the best are tied.",
        "",
    ]
    for situation, picked in zip(SITUATIONS, data["situations"], strict=True):
        parts += _situation(situation, {place["cell"]: place["today"] for place in data["places"]}, picked)
    parts += [
        "## All networks",
        "",
        "Delay, utilisation and losses are those of all packets at the first bottleneck under test. This hides the low"
        " delay of sparse flows under fair queueing, which the situations show. Networks of one paper are similar;"
        " critical differences assume independent networks and are therefore lower bounds.",
        "",
    ]
    for which in (OWN, TARGET):
        parts += _ranking(which, data["rankings"][which])
    parts += _moved(data["rankings"])
    parts += [
        "## How it is ranked",
        "",
        f"Written by `{command} --record` on {date}, version {data['aqumen']}; {data['seeds']} seeds each in the"
        f" situations{_drawn(data)}, one in all other runs.",
        "",
        "AQMs are ranked by each metric in each network, 1 for the best; the *mean rank* is over all of these."
        " Mean ranks that differ by less than the *critical difference* (95 % for all pairs together) do not differ"
        " significantly, and share a letter of their *group*. In a situation AQMs are ranked within each seed, with"
        " equal traffic; the critical difference follows from the variance between seeds (Tukey) and applies to"
        " these networks. Over all networks it follows from their number (Nemenyi); each runs with one seed."
        f"{_agreement(data['agreement'])} Numbers after ±, or after − and +, are the distances to the ends of the 95 %"
        " confidence interval over the seeds.",
        "",
    ]
    heads = "| network | target of the second ranking | run until | seeds, with defaults |"
    parts += ["## The networks", "", heads, "|---|---|---|---|"]
    parts += [
        f"| `{place['cell']}` | {place['target']} | {place['until'] or 'its end'} | {place['seeds']} |"
        for place in data["places"]
    ]
    if data["refused"]:
        parts += ["", "Not ranked, since it cannot run in a network:", ""]
        parts += [f"- `{aqm}`: {why}" for aqm, why in data["refused"].items()]
    return "\n".join(parts) + "\n"


def _drawn(data: Mapping[str, Any]) -> str:
    """Describe how many other networks ran with all seeds."""
    compared = {cell for situation in SITUATIONS for cell in situation.cells}
    count = sum(place["seeds"] > 1 and place["cell"] not in compared for place in data["places"])
    return f" and in {count} random other networks" if count else ""


def _agreement(agreement: Mapping[str, Mapping[str, Any]]) -> str:
    """Describe the agreement of rankings between seeds."""
    parts = []
    for where, heading in (("situations", "in a network of a situation"), ("drawn", "in a random network")):
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
        " Agreement of the rankings of two seeds, as Kendall's tau (1: equal order) with the 95 % interval over the"
        f" networks: {'; '.join(parts)}."
    )


def _situation(situation: Situation, today: Mapping[str, str | None], picked: Mapping[str, Any]) -> list[str]:
    measures = {measure.key: measure for measure in situation.measures}
    ranked = picked["ranks"]
    if ranked is None:
        return [f"## {situation.title}", "", "Not run.", ""]
    means: Mapping[str, float] = ranked["means"]
    parts = [f"## {situation.title}", "", _ahead(picked, ranked), ""]
    if any(today.get(cell) for cell in situation.cells):
        parts += [f"`{REFERENCE}` is the line without shapers, with the buffers of modem and provider.", ""]
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
    """Name the best AQM if it is significantly better than all others, else the tie."""
    means: Mapping[str, float] = ranked["means"]
    best, kernel, critical = picked["pick"], picked["kernel"], ranked["critical_difference"]
    tied = [aqm for aqm in means if aqm in ranked["tied_with_best"] and aqm != best]
    figures = f"over {ranked['figures']} metrics{'' if critical is None else f' (critical difference {critical:.1f})'}"
    if not tied:
        text = f"Pick: **`{best}`**, mean rank {means[best]:.1f} {figures}, significantly better than every other."
    elif len(tied) == len(means) - 1:
        return (
            f"No pick: none of the {len(means)} differ significantly {figures} with so few seeds. The order below, with"
            f" `{best}` first (mean rank {means[best]:.1f}), may be chance."
        )
    else:
        rest = f" and {len(tied) - NAMED} more" if len(tied) > NAMED else ""
        text = (
            f"A tie of {len(tied) + 1} among {len(means)}: `{best}`, mean rank {means[best]:.1f} {figures}, does not"
            f" differ significantly from {_list(tied[:NAMED])}{rest}."
        )
    if kernel is None or kernel == best:
        return text
    where = " is in the tie" if kernel in tied else " is best, outside the tie" if tied else " is best"
    return f"{text} Among the AQMs of the Linux kernel, `{kernel}` (mean rank {means[kernel]:.1f}){where}."


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
        f" of the first: {main['friedman']:.0f} over {main['places']} networks. Pareto front of delay and utilisation:"
        f" {_list(front)}.",
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
    """List the AQMs that move most between the two rankings, which shows the effect of their targets."""
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
        f"Largest changes of place from the first ranking to the second, due to the target: {', '.join(told)}.",
        "",
    ]


def _figure(summary: Mapping[str, Any], digits: int) -> str:
    return spread(summary, 1, digits) if summary["n"] else "none"


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
