"""The page of a reproduction, from claims and runs made up for it: what stands where, and what is drawn."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aqumen.papers import page
from aqumen.papers.curves import curves
from aqumen.papers.judge import Check, Judgement
from aqumen.papers.model import Claim, Paper
from aqumen.papers.study import Outcome

RULE = {"test": "order", "of": "queue_mean_pkts", "aqm": ["A", "B"], "at": "net/one", "first": "lowest"}


def claim(name, figure="Fig. 1", **more):
    words = {"kind": "ordering", "quantity": f"queue of {name}", "claimed": "A < B", "note": "", "rules": (RULE,)}
    return Claim(id=name, where=f"section {name}", figure=figure, **(words | more))


def check(outcome, says):
    return Check(test="order", readings=("printed", "repaired"), outcome=outcome, says=says, measured={}, sure=True)


CLAIMS = (
    claim("one", note="read <so>"),
    claim("two", quantity="queue & delay"),
    claim("three", figure="Fig. 2"),
    claim("four", figure="Fig. 2"),
    claim("five", figure="Fig. 2"),
)
PAPER = Paper(
    name="none",
    title="Somebody & others: AQM <2000>",
    readings={"only": {"A": "a", "B": "b"}},
    about={"only": "as it <stands>"},
    claims=CLAIMS,
    reasons={"two": ("because of <it>", "exp/two"), "one": ("never shown", "x"), "five": ("so it is", "exp/5")},
    recorded={"one": "reproduced", "two": "reproduced", "three": "partly"},
)
VERDICTS = ("reproduced", "partly", None, "cannot be tested", "not reproduced")


def judgement(each, verdict):
    checks = (check("holds", f"first {each.id} <1>"), check("fails", "second"))
    return Judgement(
        claim=each, verdict=verdict, reason=f"measured {each.id} <x>", checks=checks[: 1 + (each.id == "two")]
    )


OUTCOME = Outcome(
    paper=PAPER,
    judgements=tuple(judgement(each, verdict) for each, verdict in zip(CLAIMS, VERDICTS, strict=True)),
    seeds=10,
    quick=False,
)


def series(*queue):
    return {"series": {"core": {"t_s": [float(k) for k in range(len(queue))], "queue_pkts": list(queue)}}}


RECORDS = SimpleNamespace(
    seeds=[3, 4],
    runs={("net/one", "a", 3): series(0, 100, 200), ("net/one", "b", 3): series(50, 0, 50), ("net/one", "a", 4): {}},
)


def made(outcomes=(OUTCOME,), records=RECORDS):
    return page.report_html(outcomes, records, "aqumen reproduce none --out '<o>'")


def test_the_head_counts_verdicts_and_names_what_differs():
    text = made()
    assert text.startswith("<!doctype html><html lang=en><meta charset=utf-8>")
    assert "<p>10 seeds, engine packet." in text
    heads = re.search(r"<tr><th>paper</th>(.*?)</tr>", text)[1]
    assert re.findall("<th>(.*?)</th>", heads) == [
        "reproduced",
        "partly",
        "not reproduced",
        "cannot be tested",
        "inconsistent",
        "not judged",
    ]
    row = re.search(r"<tr><td><a href='#none'>none</a></td>(.*?)</tr>", text)[1]
    assert re.findall("<td class=n>(.*?)</td>", row) == ["1", "1", "1", "1", "0", "1"]
    # Of the recorded claims only `two` comes out otherwise: `three` is not judged.
    assert "<p><b>1 verdicts differ from the record:</b> two</p>" in text
    assert "A quick run" not in text
    assert "<code>aqumen reproduce none --out &#x27;&lt;o&gt;&#x27;</code>, aqumen " in text
    assert text.endswith("</p></html>\n")


def test_several_papers_stand_one_after_the_other():
    other = replace(OUTCOME, paper=replace(PAPER, name="more", recorded={}), seeds=3, quick=True)
    text = made((other, OUTCOME))
    assert "<p>3, 10 seeds, engine packet." in text
    assert "A quick run leaves out slow experiments" in text
    assert [text.index(f"<h2 id='{name}'>") for name in ("more", "none")] == sorted(
        text.index(f"<h2 id='{name}'>") for name in ("more", "none")
    )
    assert "differ from the record" not in page.report_html((other,), RECORDS, "x")


def test_each_claim_is_told_beside_what_was_measured():
    text = made()
    assert "<h2 id='none'>Somebody &amp; others: AQM &lt;2000&gt;</h2><p>Read as:</p>" in text
    assert "<ul><li><b>only</b>: as it &lt;stands&gt;</li></ul>" in text
    assert re.findall("<h3>(.*?)</h3>", text) == ["Fig. 1", "Fig. 2"]
    rows = dict(re.findall(r"<tr><td class=id>(.*?)</td>(.*?)</tr>", text))
    assert list(rows) == ["one", "two", "three", "four", "five"]
    assert "<td>section one<br>queue of one: <b>A &lt; B</b><div class=why>read &lt;so&gt;</div></td>" in rows["one"]
    assert "queue &amp; delay: <b>A &lt; B</b></td>" in rows["two"]
    verdicts = {name: re.search(r"<td class='v v(\d)'>(.*?)</td>", row).groups() for name, row in rows.items()}
    assert verdicts == {
        "one": ("0", "reproduced"),
        "two": ("1", "partly"),
        "three": ("5", "not judged"),
        "four": ("3", "cannot be tested"),
        "five": ("2", "not reproduced"),
    }
    # Why a claim does not come out stands where it does not.
    assert "<td>measured one &lt;x&gt;</td>" in rows["one"]
    assert "measured two &lt;x&gt;<div class=why>because of &lt;it&gt; <code>exp/two</code></div>" in rows["two"]
    assert "<div class=why>so it is <code>exp/5</code></div>" in rows["five"]
    # Checks are listed where there are several.
    assert [name for name, row in rows.items() if "<details>" in row] == ["two"]
    assert (
        "<details><summary>2 checks</summary><ul><li>holds (printed, repaired): first two &lt;1&gt;</li>"
        "<li>fails (printed, repaired): second</li></ul></details>"
    ) in rows["two"]


def test_queues_over_time_are_drawn_to_one_scale():
    figure = page._plot(RECORDS, "net/one", ["a", "b"])
    # 480 wide from 40 on, 168 high below 4: 200 packets and 2 s fill it.
    assert re.findall(r"stroke='(#\w+)'.*?points='(.*?)'", figure) == [
        ("#1b6ca8", "40.0,172.0 280.0,88.0 520.0,4.0"),
        ("#d1495b", "40.0,130.0 280.0,172.0 520.0,130.0"),
    ]
    assert "<text x=2 y=12>200</text><text x=2 y=172>0 pkt</text><text x=486 y=186>2 s</text>" in figure
    assert "<path d='M40 4V172H520'" in figure
    assert "<svg width=520 height=190 viewBox='0 0 520 190'" in figure
    legend = "<span style='color:#1b6ca8'>a</span>, <span style='color:#d1495b'>b</span>"
    assert f"<figcaption>net/one: {legend}</figcaption>" in figure
    # The page has it under the heading of its claims.
    assert made().count("<figure>") == 2


def test_what_was_not_run_is_not_drawn():
    # No run, a run of another cell, one without series, and what is the same AQM with other parameters.
    assert page._plot(RECORDS, "net/two", ["a", "b"]) == ""
    records = SimpleNamespace(seeds=[4], runs={**RECORDS.runs, ("net/one", "b:x=1", 4): series(1, 2)})
    assert page._plot(records, "net/one", ["a", "b:x=1"]) == ""
    # A gap in the list leaves no gap in the colours; an empty queue keeps a scale of one packet.
    records = SimpleNamespace(seeds=[1], runs={("c", "z", 1): series(0, 0, 0, 0, 0)})
    figure = page._plot(records, "c", ["gone", "z"])
    assert "points='40.0,172.0 160.0,172.0 280.0,172.0 400.0,172.0 520.0,172.0'" in figure
    assert "<text x=2 y=12>1</text>" in figure
    assert "stroke='#1b6ca8'" in figure


def test_at_most_eight_lines_and_six_plots_and_the_rest_folded_away():
    many = {("net/one", f"q{k}", 1): series(k, k) for k in range(12)}
    figure = page._plot(SimpleNamespace(seeds=[1], runs=many), "net/one", [f"q{k}" for k in range(12)])
    assert len(re.findall("<polyline", figure)) == 8
    assert figure.count("#555b6e") == 2
    cells = [f"net/{k}" for k in range(9)]
    rules = tuple({**RULE, "at": cell} for cell in cells)
    paper = replace(PAPER, claims=(claim("one", rules=rules),), reasons={})
    outcome = replace(OUTCOME, paper=paper, judgements=(judgement(paper.claims[0], "reproduced"),))
    records = SimpleNamespace(seeds=[1], runs={(cell, "a", 1): series(1, 2) for cell in cells})
    shown, _, folded = page.report_html((outcome,), records, "x").partition("<summary>3 more networks</summary>")
    assert (shown.count("<figure>"), folded.count("<figure>")) == (6, 3)


@pytest.mark.parametrize(("times", "last"), [((0, 10), "10 s"), ((0, 99.6), "100 s")])
def test_the_axis_ends_with_the_longest_run(times, last):
    runs = {
        ("c", "a", 1): {"series": {"core": {"t_s": list(times), "queue_pkts": [1, 3]}}},
        ("c", "b", 1): {"series": {"core": {"t_s": [0, 5], "queue_pkts": [6, 2]}}},
    }
    figure = page._plot(SimpleNamespace(seeds=[1], runs=runs), "c", ["a", "b"])
    assert f">{last}</text>" in figure
    assert "<text x=2 y=12>6</text>" in figure
    ends = [line.split()[-1] for line in re.findall(r"points='(.*?)'", figure)]
    assert ends[0] == "520.0,88.0"
    assert float(ends[1].split(",")[0]) == pytest.approx(40 + 480 * 5 / times[1], abs=0.06)


def test_a_run_of_less_than_a_second_fills_the_width_too():
    short = {"series": {"core": {"t_s": [0.0, 0.1, 0.2], "queue_pkts": [0, 2, 4]}}}
    figure = page._plot(SimpleNamespace(seeds=[1], runs={("c", "z", 1): short}), "c", ["z"])
    assert "points='40.0,172.0 280.0,88.0 520.0,4.0'" in figure


def swept(mean):
    def run(seed_off):
        return {
            "scenario": "net",
            "windows": {"steady": (0, 10)},
            "links": {"core": {"steady": {"q": mean + seed_off}}},
        }

    return run


def sweep(means, off=0.0):
    """A paper that claims something of three cells, and two runs of b in each, so much below and above these means."""
    cells = ["net@5ms", "net@10ms", "net@20ms"]
    rules = tuple({**RULE, "of": "q", "at": cell} for cell in cells)
    runs = {
        (cell, "b", seed): swept(mean)(sign * off)
        for cell, mean in zip(cells, means, strict=True)
        for seed, sign in ((1, -1), (2, 1))
    }
    return replace(PAPER, claims=(claim("one", rules=rules),)), runs


def test_a_sweep_is_drawn_as_a_curve_over_its_cells():
    # 10, 20, 40 packets at three cells of b, a run of a at one of them.
    paper, runs = sweep((10, 20, 40), 0.001)
    runs |= {("net@10ms", "a", 1): swept(30)(0)}
    figure = curves(paper, paper.claims, runs)
    # From 50 to 490 wide; 168 high below 4, of which 40 packets fill all: b comes second.
    b = re.search(r"stroke='#d1495b' stroke-width=1.5 points='(.*?)'", figure)[1]
    assert [tuple(map(round, map(float, point.split(",")))) for point in b.split()] == [(50, 130), (270, 88), (490, 4)]
    assert re.search(r"stroke='#1b6ca8' stroke-width=1.5 points='270.0,4\d.\d'", figure)
    # A bar for each interval, from its low end to its high one: 0.0127 packets are a twentieth of a step.
    bars = re.findall(r"M(\S+) (\S+)V([\d.]+)", re.search(r"<path d='([^']*)' stroke='#d1495b'", figure)[1])
    assert [float(x) for x, _, _ in bars] == [50, 270, 490]
    assert all(0 <= float(low) - float(high) <= 0.2 for _, low, high in bars)
    assert any(low != high for _, low, high in bars)
    assert [label for label in ("5ms", "10ms", "20ms") if f"text-anchor=middle>{label}</text>" in figure] == [
        "5ms",
        "10ms",
        "20ms",
    ]
    assert "<figcaption>q at net, steady: " in figure
    # Two cells make no curve, and neither do runs that are not there.
    assert curves(paper, paper.claims, {key: run for key, run in runs.items() if key[0] != "net@20ms"}) == ""
    assert curves(paper, paper.claims, {}) == ""


@pytest.mark.parametrize(
    ("means", "low", "high"),
    [
        # From 0 on, but where that would hide the differences, or is above what there is.
        ((10, 20, 40), "0", "40"),
        ((20, 30, 40), "0", "40"),
        ((21, 30, 40), "21", "40"),
        ((-10, 20, 40), "-10", "40"),
        # What is the same everywhere has a scale too.
        ((7, 7, 7), "7", "8"),
        ((0, 0, 0), "0", "1"),
    ],
)
def test_the_scale_of_a_sweep_shows_its_differences(means, low, high):
    paper, runs = sweep(means)
    figure = curves(paper, paper.claims, runs)
    assert f"<text x=2 y=12>{high}</text><text x=2 y=172>{low}</text>" in figure
    (way,) = re.findall(r"points='(.*?)'", figure)
    drawn = [float(point.split(",")[1]) for point in way.split()]
    span = float(high) - float(low)
    assert drawn == pytest.approx([4 + 168 * (float(high) - mean) / span for mean in means], abs=0.06)
