"""The picture of a scenario: where its parts stand, worked by hand from the sizes of boxes, rows and columns, and what
their labels say."""

import itertools
import re

import pytest

from aqumen.view.report.picture import scenario_svg


def link(start, end, rate=50e6, delay=0.01, record=False, **more):
    own = {"name": f"{start}-{end}", "from": start, "to": end, "rates": [[0, rate]], "delay_s": delay}
    return {**own, "record": record, "buffer_pkts": 60, "buffer_bytes": None, "target_pkts": None, **more}


def drawn(nodes, links, groups):
    """A picture of groups (name, paths, more): paths by names of links."""
    names = [each["name"] for each in links]
    flows, made = [], []
    for i, (name, paths, more) in enumerate(groups):
        first = len(flows)
        for path in paths:
            on = more.get("on", [[0.0, None]])
            ids = [names.index(each) for each in path]
            flows.append({"group": i, "path": ids, "on": on, "transfer_bytes": more.get("transfer")})
        transport = more.get("transport", {"preset": "cubic", "variant": "cubic", "ecn": False})
        made.append({"name": name, "flows": [first, len(flows)], "transport": transport, **more.get("own", {})})
    places = [{**each, "from": nodes.index(each["from"]), "to": nodes.index(each["to"])} for each in links]
    return scenario_svg({"nodes": nodes, "links": places, "groups": made, "flows": flows})


def dumbbell(flows=1, **core):
    """`a` and `b`, a source and a sink for each flow."""
    core = {"rate": 8e6, "delay": 0.02, "record": True, "target_pkts": 25, **core}
    back = core.pop("back", {"rate": core["rate"], "delay": core["delay"]})
    more = core.pop("group", {})
    nodes, links, paths = ["a", "b"], [link("a", "b", **core), link("b", "a", **back)], []
    for i in range(flows):
        nodes += [f"s{i}", f"d{i}"]
        links += [link(f"s{i}", "a", delay=0.001 * (i + 1)), link("b", f"d{i}", rate=(i + 1) * 1e9)]
        paths.append([f"s{i}-a", "a-b", f"b-d{i}"])
    return drawn(nodes, links, [("web", paths, more)])


def numbers(svg, pattern):
    return [tuple(map(float, each if isinstance(each, tuple) else (each,))) for each in re.findall(pattern, svg)]


BOX = r'<rect class="box" x="(\S+)" y="(\S+)" width="(\S+)" height="(\S+)"'
LINE = r'<line class="{}" x1="(\S+)" y1="(\S+)" x2="(\S+)" y2="(\S+)"/>'
NODE = r'<circle class="node" cx="(\S+)" cy="(\S+)" r="(\S+)"/>'


def words(svg):
    """Text with its place."""
    found = re.findall(r'<text[^>]* x="(\S+)" y="(\S+)"[^>]*>([^<]*)<', svg)
    return {text: (float(x), float(y)) for x, y, text in found}


def test_a_dumbbell_stands_between_its_margins():
    svg = dumbbell()
    # 14 of margin, a box of 150, 120 of way, a column of 250, and the same again; a row of 96 and 8 below it.
    assert 'viewBox="0 0 818 118"' in svg
    assert 'aria-label="1 flows over 4 links"' in svg
    assert "min-width:491px;max-width:900px" in svg
    assert numbers(svg, NODE) == [(284, 62, 15), (534, 62, 15)]
    # The boxes' middles are at the routers' height.
    assert numbers(svg, BOX) == [(14, 31, 150, 62), (654, 31, 150, 62)]
    assert numbers(svg, LINE.format("acc")) == [(164, 62, 284, 62), (654, 62, 534, 62)]
    assert numbers(svg, LINE.format("core seen")) == [(284, 62, 534, 62)]
    assert words(svg) == {
        # The labels of the ways of access: beside the box, the rate above the delay.
        "50 Mbit/s": (178, 37),
        "1 ms": (178, 50),
        "1 Gbit/s": (644, 37),
        "10 ms": (644, 50),
        # Over the middle of the link, its name on top.
        "a-b": (409, 33),
        "8 Mbit/s, 20 ms": (409, 48),
        "buffer 60 packets": (349, 82),
        "target 25 packets": (349, 96),
        "a": (284, 66),
        "b": (534, 66),
        # In the middles of the boxes.
        "web": (729, 59),
        "1 flow, cubic": (89, 75),
        "1 receiver": (729, 75),
    }
    # Five packets before the link.
    assert numbers(svg, r'<rect class="pkt" x="(\S+)" y="(\S+)" width="5" height="15"') == [
        (307 + 7 * i, 71) for i in range(5)
    ]


def test_many_flows_are_a_pile():
    svg = dumbbell(3)
    # Two shadows behind each box.
    assert numbers(svg, BOX) == [(x + shift, 31 + shift, 150, 62) for x in (14, 654) for shift in (8, 4, 0)]
    assert {"3 flows, cubic", "3 receivers", "50 Mbit/s", "1 to 3 ms", "1 Gbit/s to 3 Gbit/s", "10 ms"} <= set(
        words(svg)
    )
    assert 'aria-label="3 flows over 8 links"' in svg


def test_changes_of_a_link_are_told_above_it():
    svg = dumbbell(rates=[[0, 8e6], [10, 4e6], [20, 64e3], [30, 2e9], [40, 500]])
    # Four lines of labels at the most need three times 15 more.
    assert 'viewBox="0 0 818 163"' in svg
    said = words(svg)
    assert [said[each][1] for each in ("a-b", "8 Mbit/s, 20 ms", "4 Mbit/s from 10 s", "64 kbit/s from 20 s")] == [
        *(107 - 14 - 60, 107 - 14 - 45, 107 - 14 - 30, 107 - 14 - 15),
    ]
    assert said["and 2 more changes"] == (409, 93)
    assert "2 Gbit/s from 30 s" not in said
    three = words(dumbbell(rates=[[0, 500], [10, 4e6], [20, 2.5e9]]))
    assert {"500 bit/s, 20 ms", "4 Mbit/s from 10 s", "2.5 Gbit/s from 20 s"} <= set(three)
    assert not any("more" in each for each in three)


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ({"rate": 8e6, "delay": 0.02}, None),
        ({"rate": 1e6, "delay": 0.02}, "back 1 Mbit/s, 20 ms"),
        ({"rate": 8e6, "delay": 0.5}, "back 8 Mbit/s, 500 ms"),
    ],
)
def test_another_way_back_is_told(back, told):
    said = [each for each in words(dumbbell(back=back)) if each.startswith("back")]
    assert said == ([told] if told else [])


def test_a_buffer_is_in_packets_or_in_bytes():
    assert "buffer 64000 bytes" in words(dumbbell(buffer_pkts=None, buffer_bytes=64000))
    assert not any("target" in each for each in words(dumbbell(target_pkts=None)))
    plain = dumbbell(record=False)
    assert "pkt" not in plain
    assert numbers(plain, LINE.format("core")) == [(284, 62, 534, 62)]


@pytest.mark.parametrize(
    ("group", "told"),
    [
        ({"transport": {"preset": "udp"}, "own": {"traffic": {"kind": "voip"}}}, ["1 flow, udp", "voip"]),
        ({"transport": {"preset": "x", "variant": "reno", "ecn": True}}, ["1 flow, reno + ECN"]),
        ({"own": {"traffic": "web"}, "on": [[2.0, None]]}, ["1 flow, cubic", "web, from 2 s"]),
        ({"on": [[1.9, None]]}, ["1 flow, cubic"]),
        ({"on": []}, ["1 flow, cubic"]),
        ({"transfer": 2.5e6, "on": [[7.4, 9.0]]}, ["1 flow, cubic", "2.5 MB each, from 7 s"]),
    ],
)
def test_a_group_says_who_sends_what(group, told):
    svg = dumbbell(group=group)
    said = words(svg)
    assert set(told) <= set(said)
    # One line of words stands in the middle, two higher; 15 from line to line.
    first = 31 + (28 if len(told) == 1 else 21) + 16
    assert [said[each] for each in told] == [(89, first + 15 * i) for i in range(len(told))]
    assert len([each for each in said.values() if each[0] == 89]) == len(told) + (
        "web" not in said or said["web"][0] == 89
    )


def test_long_names_fit_their_box_and_nothing_is_markup():
    nodes = ["r<1>", "r2", "s", "d"]
    links = [link("r<1>", "r2", name="l&k"), link("s", "r<1>"), link("r2", "d")]
    for name, long in (("n" * 18, False), ("n" * 19, True), ("<b>", False)):
        svg = drawn(nodes, links, [(name, [["s-r<1>", "l&k", "r2-d"]], {})])
        assert svg.count('textLength="142"') == 2 * long
    assert "&lt;b&gt;" in svg
    assert "l&amp;k" in svg
    # Four letters of a router's name.
    assert ">r&lt;1&gt;<" in svg


def both_ways(groups):
    nodes, links, made = ["a", "b"], [link("a", "b", record=True), link("b", "a", delay=0.01)], []
    for i in range(groups):
        nodes += [f"s{i}", f"d{i}"]
        links += [link(f"s{i}", "a", delay=0.001 * (i + 1)), link("b", f"d{i}")]
        made.append((f"g{i}", [[f"s{i}-a", "a-b", f"b-d{i}"]], {}))
    return drawn(nodes, links, made)


def test_groups_stand_one_above_the_other():
    svg = both_ways(2)
    # Two rows of 96 below a margin of 14; the routers in the middle.
    assert 'viewBox="0 0 818 214"' in svg
    assert numbers(svg, NODE) == [(284, 110, 15), (534, 110, 15)]
    assert sorted(numbers(svg, BOX)) == [(x, y, 150, 62) for x in (14, 654) for y in (31, 127)]
    said = words(svg)
    # Above a line that falls, below one that rises.
    assert said["1 ms"] == (178, 62 - 12)
    assert said["2 ms"] == (178, 158 + 34)


def test_many_groups_are_low():
    five, six = both_ways(5), both_ways(6)
    assert {box[3] for box in numbers(five, BOX)} == {62}
    assert 'viewBox="0 0 818 502"' in five
    # Six rows of 46.
    assert 'viewBox="0 0 818 298"' in six
    assert sorted(numbers(six, BOX)) == [(x, 14 + 46 * (i + 0.5) - 18, 150, 36) for x in (14, 654) for i in range(6)]
    said = words(six)
    assert said["g0: 1 flow"] == (89, 14 + 5 + 15)
    assert said["50 Mbit/s, 1 ms"] == (89, 14 + 5 + 29)
    assert said["g5: 1 receiver"] == (729, 14 + 46 * 5 + 5 + 15)
    assert len(numbers(six, LINE.format("acc"))) == 12
    assert "50 Mbit/s" not in said


def chain(paths, nodes="abc", extra=()):
    """A row of routers, with groups from one to another, each with hosts of its own."""
    names = list(nodes)
    links = [link(x, y, record=True) for x, y in itertools.pairwise(names)] + list(extra)
    made = []
    for i, way in enumerate(paths):
        names += [f"s{i}", f"d{i}"]
        links += [link(f"s{i}", way[0]), link(way[-1], f"d{i}")]
        inner = [f"{x}-{y}" for x, y in itertools.pairwise(way)]
        made.append((f"g{i}", [[f"s{i}-{way[0]}", *inner, f"{way[-1]}-d{i}"]], {}))
    return drawn(names, links, made)


def test_who_joins_in_the_middle_stands_below():
    svg = chain(["abc", "ab", "bc"])
    # Three columns; two of the ends are at b.
    assert 'viewBox="0 0 1068' in svg
    assert [node[0] for node in numbers(svg, NODE)] == [284, 534, 784]
    boxes = numbers(svg, BOX)
    left, right = [[box[1] for box in boxes if box[0] == x] for x in (14, 904)]
    assert len(left) == len(right) == 2
    # Two rows: 14 + 192; the first 62 below them, the second a box and 52 further and 24 to the right.
    below = [box for box in boxes if box[1] > 206]
    assert below == [(534 - 75, 206 + 62 - 31, 150, 62), (534 - 75 + 24, 206 + 62 - 31 + 114, 150, 62)]
    assert re.search(r'viewBox="0 0 1068 (\d+)"', svg)[1] == str(14 + 192 + 62 + 2 * 114)
    # From the middle of its top, the label beside it: the rate 13 above the delay.
    ways = numbers(svg, LINE.format("acc"))
    assert {(534, 237, 534, 110), (558, 351, 534, 110)} < set(ways)
    rates = numbers(svg, r'<text class="lbl" x="(\S+)" y="(\S+)" text-anchor="start">50 Mbit/s')
    assert {(534 + 8, 237 - 8 - 13), (558 + 8, 351 - 8 - 13)} < set(rates)
    assert len(numbers(svg, LINE.format("core seen"))) == 2


def test_a_router_stands_after_all_that_data_cross_before_it():
    svg = chain(["abcd", "bd"], "abcd", [link("b", "d")])
    at = {text: x for text, (x, _) in words(svg).items() if text in "abcd"}
    assert at == {"a": 284, "b": 534, "c": 784, "d": 1034}
    # Data both ways make no column more.
    ring = chain(["ab", "ba"], "ab", [link("b", "a", record=True)])
    assert {text: x for text, (x, _) in words(ring).items() if text in "ab"} == {"a": 284, "b": 534}
    assert len(numbers(ring, LINE.format("core seen"))) == 1
    # Who sends and who receives at one router stand on its side.
    assert sorted(numbers(ring, BOX)) == [(x, y, 150, 62) for x in (14, 654) for y in (31, 127)]


def test_at_a_single_router_who_sends_is_on_the_left_and_who_receives_on_the_right():
    svg = drawn(["a", "s", "d"], [link("s", "a", record=True), link("a", "d")], [("g", [["s-a", "a-d"]], {})])
    assert numbers(svg, NODE) == [(284, 62, 15)]
    assert numbers(svg, BOX) == [(14, 31, 150, 62), (404, 31, 150, 62)]
    assert (words(svg)["1 flow, cubic"][0], words(svg)["1 receiver"][0]) == (89, 479)


def test_many_groups_on_the_right_alone_are_low_too():
    few, many = (chain(["abc"] + ["bc"] * more) for more in (4, 5))
    # One is sent from the left, five or six are received on the right.
    for svg, high in ((few, 62), (many, 36)):
        assert {box[3] for box in numbers(svg, BOX)} == {high}
    assert len([box for box in numbers(many, BOX) if box[0] == 904]) == 6


def test_hosts_that_are_joined_directly_are_all_drawn():
    svg = drawn(["a", "b"], [link("a", "b", record=True)], [("g", [["a-b"]], {})])
    assert [node[0] for node in numbers(svg, NODE)] == [284, 534]
    # No way of access has a label.
    assert not {"50 Mbit/s", "10 ms"} & set(words(svg))


def test_a_way_of_access_has_the_rate_that_it_begins_with():
    ways = [link("s", "a", rates=[[0, 2e6], [10, 1e9]]), link("b", "d", rates=[[0, 5e6], [5, 1e3], [9, 7e6]])]
    said = words(drawn(["a", "b", "s", "d"], [link("a", "b"), *ways], [("g", [["s-a", "a-b", "b-d"]], {})]))
    assert {"2 Mbit/s", "5 Mbit/s"} <= set(said)


def test_a_link_to_the_left_has_its_queue_on_its_right():
    nodes = ["a", "b", "s", "d"]
    links = [link("b", "a", record=True, target_pkts=9), link("a", "b"), link("s", "a"), link("b", "d")]
    svg = drawn(nodes, links, [("g", [["s-a", "a-b", "b-d"]], {})])
    assert numbers(svg, LINE.format("core seen")) == [(534, 62, 284, 62)]
    packets = numbers(svg, r'<rect class="pkt" x="(\S+)" y="(\S+)" width')
    assert packets == [(511 - 7 * i - 5, 71) for i in range(5)]
    assert words(svg)["buffer 60 packets"] == (469, 82)
    assert 'y="82.0" text-anchor="end"' in svg
