"""Network diagram of a scenario: routers, links with names, rates and delays, and flow groups; SVG from the plan.

All hosts of a flow group share one symbol, and so do their access links. If many groups are stacked, as in an access
network, their symbols are flat and contain the labels of their access links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

__all__ = ["scenario_svg"]

Plan = dict[str, Any]
Link = dict[str, Any]

BOX_W, BOX_H = 150.0, 62.0
COLUMN = 250.0
ROW = 96.0
MARGIN = 14.0
LOW_BOX_H, LOW_ROW = 36.0, 46.0
ROWS_MAX = 5
"""Maximum number of groups on one side with full-height symbols."""
ROUTER_R = 15.0


@dataclass(slots=True)
class Endpoints:
    """Sending or receiving endpoints of a flow group at one router."""

    group: str
    node: str
    sending: bool
    count: int = 0
    access: list[Link] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    low: bool = False


def scenario_svg(plan: Plan) -> str:
    """Return the diagram as SVG text.

    Args:
        plan: Plan of the scenario.
    """
    plan = _by_name(plan)
    links: list[Link] = plan["links"]
    routers, ends = _collapse(plan)
    columns = _columns(plan, routers)
    last = max(columns.values())
    aside = _place_ends(ends, columns, last)
    side_rows = max(sum(e.x == side for e in ends) for side in (-1.0, 1.0))
    per_column: dict[int, list[str]] = {}
    for router in routers:
        per_column.setdefault(columns[router], []).append(router)
    rows = max([side_rows, *map(len, per_column.values())])
    row_height = LOW_ROW if side_rows > ROWS_MAX else ROW
    for end in ends:
        end.low = side_rows > ROWS_MAX
    # Space for the labels above a link.
    changes = max(min(len(link["rates"]), 4) for link in links) - 1
    top, height = MARGIN + 15 * changes * (rows == 1), rows * row_height
    left = MARGIN + BOX_W + 120
    at = {
        router: (left + column * COLUMN, top + height * (row + 0.5) / len(members))
        for column, members in per_column.items()
        for row, router in enumerate(members)
    }
    width = left + last * COLUMN + 120 + BOX_W + MARGIN
    below: dict[str, int] = {}
    for side, x in ((-1.0, MARGIN), (1.0, width - MARGIN - BOX_W)):
        members_at = [e for e in ends if e.x == side]
        for row, end in enumerate(members_at):
            end.x = x
            end.y = top + height * (row + 0.5) / len(members_at)
    for end in aside:
        nth = below.get(end.node, 0)
        below[end.node] = nth + 1
        end.x = at[end.node][0] - BOX_W / 2 + (nth % 2) * 24
        end.y = top + height + 62 + nth * (BOX_H + 52)
    depth = top + height + (62 + max(below.values()) * (BOX_H + 52) if aside else 8)

    parts = [_access(end, at[end.node]) for end in ends]
    drawn: set[frozenset[str]] = set()
    for link in links:
        pair = frozenset((link["from"], link["to"]))
        if link["from"] in at and link["to"] in at and pair not in drawn:
            drawn.add(pair)
            both = [each for each in links if {each["from"], each["to"]} == pair]
            parts.append(_core_link(sorted(both, key=lambda each: not each["record"]), at))
    parts += [_router(router, *at[router]) for router in routers]
    parts += [_box(end, plan) for end in ends]
    label = escape(f"{len(plan['flows'])} flows over {len(links)} links")
    return (
        f'<svg class="net" viewBox="0 0 {width:.0f} {depth:.0f}" role="img" aria-label="{label}" '
        f'style="min-width:{width * 0.6:.0f}px;max-width:{width * 1.1:.0f}px">{"".join(parts)}</svg>'
    )


def _by_name(plan: Plan) -> Plan:
    """Replace positions of nodes and groups in the plan by names."""
    nodes, groups = plan["nodes"], [group["name"] for group in plan["groups"]]
    links = [{**link, "from": nodes[link["from"]], "to": nodes[link["to"]]} for link in plan["links"]]
    return {**plan, "links": links, "flows": [{**flow, "group": groups[flow["group"]]} for flow in plan["flows"]]}


def _collapse(plan: Plan) -> tuple[list[str], list[Endpoints]]:
    """Return the forwarding nodes in the plan's order, and the endpoints attached to them."""
    links = plan["links"]
    paths = [[links[i]["from"] for i in flow["path"]] + [links[flow["path"][-1]]["to"]] for flow in plan["flows"]]
    forward = {node for path in paths for node in path[1:-1]}
    if not forward:
        # Directly connected hosts: draw all of them.
        forward = {node for path in paths for node in path}
    for path in paths:
        # A host that also forwards stays a node; a path of one link has no inner node.
        if not forward.intersection(path):
            forward.update(path)
    ends: dict[tuple[str, str, bool], Endpoints] = {}
    for flow, path in zip(plan["flows"], paths, strict=True):
        inner = [i for i, node in enumerate(path) if node in forward]
        for sending, i in ((True, inner[0]), (False, inner[-1])):
            key = (flow["group"], path[i], sending)
            end = ends.setdefault(key, Endpoints(*key))
            end.count += 1
            crossed = flow["path"][:i] if sending else flow["path"][i:]
            end.access += [links[each] for each in crossed]
    return [node for node in plan["nodes"] if node in forward], list(ends.values())


def _columns(plan: Plan, routers: Sequence[str]) -> dict[str, int]:
    """Return the column of each router: right of all routers upstream of it, ignoring cycles."""
    known, after = set(routers), {router: set[str]() for router in routers}
    links = plan["links"]

    def reaches(start: str, goal: str) -> bool:
        seen, open_ = set(), [start]
        while open_:
            node = open_.pop()
            if node == goal:
                return True
            if node not in seen:
                seen.add(node)
                open_ += after[node]
        return False

    for i in dict.fromkeys(i for flow in plan["flows"] for i in flow["path"]):
        start, end = links[i]["from"], links[i]["to"]
        if start in known and end in known and not reaches(end, start):
            after[start].add(end)
    columns = dict.fromkeys(routers, 0)
    for _ in routers:
        for start, ends in after.items():
            for end in ends:
                columns[end] = max(columns[end], columns[start] + 1)
    return columns


def _place_ends(ends: Iterable[Endpoints], columns: dict[str, int], last: int) -> list[Endpoints]:
    """Mark endpoints at the left and right margin by x = -1 and 1. Returns the others."""
    aside = []
    for end in ends:
        if columns[end.node] == 0 and (end.sending or last > 0):
            end.x = -1.0
        elif columns[end.node] == last:
            end.x = 1.0
        else:
            aside.append(end)
    return aside


def _access(end: Endpoints, at: tuple[float, float]) -> str:
    x, y = at
    if end.y > y + ROW / 2 and MARGIN < end.x < x:
        start = (end.x + BOX_W / 2, end.y - BOX_H / 2)
        label_at, anchor = (start[0] + 8, start[1] - 8), "start"
    else:
        right = end.x > x
        start = (end.x if right else end.x + BOX_W, end.y)
        # On the free side: above a falling line, below a rising one.
        lift = -12 if y >= end.y else 34
        label_at, anchor = (start[0] + (-10 if right else 14), start[1] + lift), "end" if right else "start"
    # A flat symbol contains its label.
    lines = [] if end.low else _access_label(end.access)
    text = "".join(
        f'<text class="lbl" x="{label_at[0]:.1f}" y="{label_at[1] - 13 * (len(lines) - 1 - i):.1f}" '
        f'text-anchor="{anchor}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return f'<line class="acc" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>{text}'


def _access_label(links: Sequence[Link]) -> list[str]:
    if not links:
        return []
    rates = [link["rates"][0][1] for link in links]
    return [_range([_rate(min(rates)), _rate(max(rates))]), _delays([link["delay_s"] for link in links])]


def _core_link(both: Sequence[Link], at: dict[str, tuple[float, float]]) -> str:
    link = both[0]
    (x1, y1), (x2, y2) = at[link["from"]], at[link["to"]]
    middle, level = (x1 + x2) / 2, (y1 + y2) / 2
    labels = [f"{_rate(link['rates'][0][1])}, {_delays([link['delay_s']])}"]
    labels += [f"{_rate(bps)} from {t:g} s" for t, bps in link["rates"][1:3]]
    if len(link["rates"]) > 3:
        labels.append(f"and {len(link['rates']) - 3} more changes")
    labels.insert(0, link["name"])
    # Label the reverse direction if its first rate or delay differs.
    labels += [
        f"back {_rate(each['rates'][0][1])}, {_delays([each['delay_s']])}"
        for each in both[1:]
        if each["from"] == link["to"] and (each["rates"][0], each["delay_s"]) != (link["rates"][0], link["delay_s"])
    ]
    text = "".join(
        f'<text class="lbl strong" x="{middle:.1f}" y="{level - 14 - 15 * i:.1f}" text-anchor="middle">'
        f"{escape(line)}</text>"
        for i, line in enumerate(reversed(labels))
    )
    kind = "core seen" if link["record"] else "core"
    line = f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    return line + text + (_queue(link, x1, y1, x2) if link["record"] else "")


def _queue(link: Link, x1: float, y1: float, x2: float) -> str:
    """Draw a queue in front of a recorded link."""
    right = x2 >= x1
    toward = 1 if right else -1
    x = x1 + toward * (ROUTER_R + 8)
    bars = "".join(
        f'<rect class="pkt" x="{x + toward * 7 * i - (0 if right else 5):.1f}" y="{y1 + 9:.1f}" '
        'width="5" height="15" rx="1"/>'
        for i in range(5)
    )
    room = f"{link['buffer_pkts']:g} packets" if link["buffer_pkts"] is not None else f"{link['buffer_bytes']:g} bytes"
    words = [f"buffer {room}"]
    if link["target_pkts"] is not None:
        words.append(f"target {link['target_pkts']:g} packets")
    anchor = "start" if right else "end"
    return bars + "".join(
        f'<text class="lbl" x="{x + toward * 42:.1f}" y="{y1 + 20 + 14 * i:.1f}" text-anchor="{anchor}">'
        f"{escape(word)}</text>"
        for i, word in enumerate(words)
    )


def _router(name: str, x: float, y: float) -> str:
    return (
        f'<circle class="node" cx="{x:.1f}" cy="{y:.1f}" r="{ROUTER_R:g}"/>'
        f'<text class="in" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(name[:4])}</text>'
    )


def _box(end: Endpoints, plan: Plan) -> str:
    height = LOW_BOX_H if end.low else BOX_H
    x, y = end.x, end.y - height / 2
    shadows = "".join(
        f'<rect class="box" x="{x + shift:.1f}" y="{y + shift:.1f}" width="{BOX_W:g}" height="{height:g}" rx="6"/>'
        for shift in ((8, 4) if end.count > 1 and not end.low else ())
    )
    what = _description(end, plan) if end.sending else [f"{end.count} receiver{'s' if end.count > 1 else ''}"]
    title, words = end.group, what
    if end.low:
        title, words = f"{end.group}: {what[0].partition(',')[0]}", [", ".join(_access_label(end.access))]
    top = y + (15 if end.low else 21 if len(words) > 1 else 28)
    fit = ' textLength="142" lengthAdjust="spacingAndGlyphs"' if len(title) > 18 else ""
    first = top + (14 if end.low else 16)
    below = "".join(
        f'<text class="lbl" x="{x + BOX_W / 2:.1f}" y="{first + 15 * i:.1f}" text-anchor="middle">{escape(line)}</text>'
        for i, line in enumerate(words)
    )
    return (
        f'{shadows}<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{BOX_W:g}" height="{height:g}" rx="6"/>'
        f'<text class="strong" x="{x + BOX_W / 2:.1f}" y="{top:.1f}" text-anchor="middle"{fit}>'
        f"{escape(title)}</text>{below}"
    )


def _description(end: Endpoints, plan: Plan) -> list[str]:
    group = next(each for each in plan["groups"] if each["name"] == end.group)
    first = plan["flows"][group["flows"][0]]
    starts = [plan["flows"][i]["on"][0][0] for i in range(*group["flows"]) if plan["flows"][i]["on"]]
    transport, traffic = group["transport"], group.get("traffic", "bulk")
    kind = traffic["kind"] if isinstance(traffic, dict) else traffic
    protocol = transport["variant"] if "variant" in transport else transport["preset"]
    more = [kind] if kind != "bulk" else []
    words = [f"{end.count} flow{'s' if end.count > 1 else ''}, {protocol}{' + ECN' * bool(transport.get('ecn'))}"]
    if first["transfer_bytes"] is not None:
        more.append(f"{first['transfer_bytes'] / 1e6:g} MB each")
    if starts and min(starts) >= 2:
        more.append(f"from {min(starts):.0f} s")
    return [*words, ", ".join(more)] if more else words


def _rate(bps: float) -> str:
    for size, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if bps >= size:
            return f"{bps / size:g} {unit}"
    return f"{bps:g} bit/s"


def _delays(delays_s: Sequence[float]) -> str:
    low, high = min(delays_s) * 1000, max(delays_s) * 1000
    return f"{low:.3g} ms" if high - low < 0.05 else f"{low:.3g} to {high:.3g} ms"


def _range(ends: Sequence[str]) -> str:
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
