"""The page of a reproduction, from claims and runs made up for it: what stands where, and what is drawn."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from aqumen.errors import ScenarioError
from aqumen.papers import page, panels
from aqumen.papers.judge import cells_of, needs
from aqumen.papers.model import Claim, Panel, Paper, load_paper
from aqumen.papers.panels import PrintedCurve, colours, panel_html, printed
from aqumen.papers.study import COLUMNS, Outcome
from aqumen.papers.verdict import Check, Judgement, Standing

RULE = {"test": "order", "of": "queue_mean_pkts", "aqm": ["A", "B"], "at": "net/one", "first": "lowest"}


def claim(name, figure="Fig. 1", **more):
    words = {"kind": "ordering", "quantity": f"queue of {name}", "claimed": "A < B", "note": "", "rules": (RULE,)}
    return Claim(id=name, where=f"section {name}", figure=figure, **(words | more))


def check(outcome, says):
    return Check(test="order", readings=("printed", "repaired"), outcome=outcome, says=says)


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
    readings={"printed": {"A": "a", "B": "b"}, "repaired": {"A": "a", "B": "b"}, "other": {"A": "a", "B": "b"}},
    about={"printed": "as it <stands>", "repaired": "mended", "other": "else"},
    summary="A is <shorter>.",
    passed={"one": ("DropTail",)},
    claims=CLAIMS,
    reasons={"two": ("because of <it>", "exp/two"), "one": ("never shown", "x"), "five": ("so it is", "exp/5")},
    recorded={"one": "reproduced", "two": "reproduced", "three": "partly"},
)
VERDICTS = ("reproduced", "partly", None, "cannot be tested", "refuted in every reading")


def judgement(each, verdict):
    checks = (check("holds", f"first {each.id} <1>"), check("fails", "second"))[: 1 + (each.id == "two")]
    holds = Standing(state="holds", holding=1, of=1)
    half = Standing(state="fails", holding=1, of=2)
    return Judgement(
        claim=each,
        verdict=verdict,
        headline=verdict or "not run",
        reason=f"measured {each.id} <x>",
        checks=checks,
        readings={"printed": half if each.id == "two" else holds, "repaired": holds, "other": holds},
        null=("DropTail",) if each.id == "one" else (),
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
    scenarios={},
    runs={("net/one", "a", 3): series(0, 100, 200), ("net/one", "b", 3): series(50, 0, 50), ("net/one", "a", 4): {}},
)


def made(outcomes=(OUTCOME,), records=RECORDS):
    return page.report_html(outcomes, records, "aqumen reproduce none --out '<o>'")


def test_the_head_counts_verdicts_and_names_what_differs():
    text = made()
    assert text.startswith("<!doctype html><html lang=en><meta charset=utf-8>")
    assert "<p>10 seeds, engine packet." in text
    heads = re.search(r"<tr><th>paper</th>(.*?)</tr>", text)[1]
    assert re.findall("<th>(.*?)</th>", heads) == list(COLUMNS)
    row = re.search(r"<tr><td><a href='#none'>none</a></td>(.*?)</tr>", text)[1]
    assert re.findall("<td class=n>(.*?)</td>", row) == ["0", "1", "0", "1", "1", "0", "0", "1", "1"]
    # Of the recorded claims only `two` comes out otherwise: `three` is not judged.
    assert "<p><b>1 verdicts differ from the record:</b> two</p>" in text
    assert "provisional" not in text
    assert "<code>aqumen reproduce none --out &#x27;&lt;o&gt;&#x27;</code>, aqumen " in text
    assert text.endswith("</p></html>\n")


def test_several_papers_stand_one_after_the_other():
    sooner = tuple(replace(each, provisional=True) for each in OUTCOME.judgements)
    other = replace(OUTCOME, paper=replace(PAPER, name="more", recorded={}), judgements=sooner, seeds=3, quick=True)
    text = made((other, OUTCOME))
    assert "<p>3, 10 seeds, engine packet." in text
    assert "4 verdicts are provisional" in text
    assert [text.index(f"<h2 id='{name}'>") for name in ("more", "none")] == sorted(
        text.index(f"<h2 id='{name}'>") for name in ("more", "none")
    )
    assert "differ from the record" not in page.report_html((other,), RECORDS, "x")


def test_each_claim_is_told_beside_what_was_measured():
    text = made()
    head = "<h2 id='none'>Somebody &amp; others: AQM &lt;2000&gt;</h2><p class=summary>A is &lt;shorter&gt;.</p>"
    assert head in text
    # How many claims hold in a reading, of those that it matters to.
    assert "<b>printed</b></td><td>as it &lt;stands&gt;</td><td class=n>4 of 5 claims</td>" in text
    assert "<b>other</b></td><td>else</td><td class=n>0 of 0 claims</td>" in text
    assert re.findall("<h3>(.*?)</h3>", text) == ["Fig. 1", "Fig. 2"]
    rows = dict(re.findall(r"<tr id='\w+'><td class=id>(.*?)</td>(.*?)</tr>", text))
    assert list(rows) == ["one", "two", "three", "four", "five"]
    assert "<td>section one<br>queue of one: <b>A &lt; B</b><div class=why>read &lt;so&gt;</div></td>" in rows["one"]
    assert "queue &amp; delay: <b>A &lt; B</b></td>" in rows["two"]
    verdicts = {name: re.search(r"<td class='v v(\d)'>(.*?)</td>", row).groups() for name, row in rows.items()}
    assert verdicts == {
        "one": ("0", "reproduced (DropTail too)"),
        "two": ("1", "partly (on record: reproduced)"),
        "three": ("5", "not run; record: partly"),
        "four": ("5", "cannot be tested"),
        "five": ("2", "refuted in every reading"),
    }
    # A column for each reading.
    states = re.findall(r"<td class='?(r[^' ]*(?: r-\w+)?)'? data-r='(\w+)'>(.*?)</td>", rows["two"])
    assert states == [("r r-fails", "printed", "1 of 2"), ("r r-holds", "repaired", "holds"), ("r", "other", "–")]
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


def drawn(panel, records=RECORDS, paper=PAPER, beside=()):
    paper = replace(paper, panels=(panel,))
    return panel_html(paper, panel, records, colours([paper]), beside)


OVER_TIME = Panel(figure="Fig. 1", title="Figure 1a", of="queue", at=("net/one",), aqm=("A", "B"))


def test_queues_over_time_are_drawn_to_one_scale():
    figure = drawn(OVER_TIME)
    # 366 wide from 44 on, 148 high below 8: 200 packets and 2 s fill it. The three readings have the same runs.
    assert re.findall(r"stroke='(#\w+)' stroke-width=1 .*?points='(.*?)'", figure) == [
        ("#1b6ca8", "44.0,156.0 227.0,82.0 410.0,8.0"),
        ("#d1495b", "44.0,119.0 227.0,156.0 410.0,119.0"),
    ]
    legend = "<span style='color:#1b6ca8'>A</span>, <span style='color:#d1495b'>B</span>"
    assert f"<figcaption>printed, repaired, other: {legend}</figcaption>" in figure
    assert "<h4>Figure 1a: queue, packets</h4>" in figure
    assert [tick for tick in ("0", "50", "100", "150", "200") if f"text-anchor=end>{tick}</text>" in figure] == [
        *("0", "50", "100", "150", "200"),
    ]
    # The page has it under the heading of its claims, and a part of the time where the paper has one.
    outcome = replace(OUTCOME, paper=replace(PAPER, panels=(OVER_TIME,)))
    assert re.search(r"<h3>Fig. 1</h3><h4>Figure 1a.*?<h3>Fig. 2</h3>", made((outcome,)))
    assert "points='44.0,119.0 410.0,119.0'" not in figure
    part = drawn(replace(OVER_TIME, aqm=("A",), span_s=(0.0, 1.0)))
    assert re.findall(r"stroke-width=1 .*?points='(.*?)'", part) == ["44.0,156.0 410.0,8.0"]


def test_each_reading_has_its_own_picture_on_one_scale():
    paper = replace(PAPER, readings={**PAPER.readings, "other": {"A": "b", "B": "a"}})
    figure = drawn(replace(OVER_TIME, aqm=("A",)), paper=paper)
    assert re.findall(r"<figcaption>(.*?):", figure) == ["printed, repaired", "other"]
    ways = re.findall(r"points='(.*?)'", figure)
    assert ways == ["44.0,156.0 227.0,82.0 410.0,8.0", "44.0,119.0 227.0,156.0 410.0,119.0"]


def test_what_was_not_run_is_not_drawn():
    assert drawn(replace(OVER_TIME, at=("net/two",))) == ""
    assert drawn(OVER_TIME, SimpleNamespace(**{**vars(RECORDS), "seeds": [4]})) == ""
    assert drawn(replace(OVER_TIME, link="edge")) == ""


def test_a_spec_with_parameters_is_drawn_and_an_aqm_has_one_colour():
    paper = replace(PAPER, readings={"only": {"A": "a:x=1", "B": "b"}})
    records = SimpleNamespace(**{**vars(RECORDS), "runs": {("net/one", "a:x=1", 3): series(1, 2)}})
    assert drawn(OVER_TIME, records, paper).count("<polyline") == 1
    panels = (replace(OVER_TIME, aqm=("B",)), OVER_TIME)
    assert colours([replace(PAPER, panels=panels), replace(PAPER, panels=panels)]) == {"B": "#1b6ca8", "A": "#d1495b"}


def test_target_events_and_stated_values_stand_in_the_picture():
    plan = {"windows": {"all": [0, 2], "dip": [0.5, 2]}, "duration_s": 2, "nominal": {"target_pkts": 100}}
    scenario = SimpleNamespace(plan=lambda seed: plan)
    records = SimpleNamespace(**{**vars(RECORDS), "scenarios": {"net/one": scenario}})
    rule = {"test": "number", "of": "queue_mean_pkts", "aqm": "A", "at": "net/one", "near": 50, "tolerance": 5}
    paper = replace(PAPER, claims=(claim("one", rules=(rule,)),))
    beside = [PrintedCurve(panel="Figure 1a", aqm="B", points=((1.0, 200.0),), source="read off")]
    figure = drawn(OVER_TIME, records, paper, beside)
    assert "<path class=target d='M44 82.0H410'" in figure
    assert "<path class=event d='M135.5 8V156'" in figure
    assert "<path d='M44 119.0H410' stroke='#1b6ca8' stroke-width=1.5 stroke-dasharray='7 4'/>" in figure
    assert "<circle cx=227.0 cy=8.0 r=4 fill=none stroke='#d1495b'" in figure
    assert "Stated by the paper (circles, dashed): B: read off; A: section one" in figure


def swept(mean):
    return {"scenario": "net", "windows": {"steady": (0, 10)}, "links": {"core": {"steady": {"q": mean}}}}


SWEEP = Panel(
    figure="Fig. 1", title="Figure 2", of="q", at=("net@10ms", "net@100ms", "net@1000ms"), x=(10, 100, 1000), aqm=("A",)
)


def test_a_sweep_is_drawn_in_its_order_and_on_the_papers_axis():
    means = {"net@10ms": 10, "net@100ms": 20, "net@1000ms": 40}
    runs = {(cell, "a", seed): swept(mean + off) for cell, mean in means.items() for seed, off in ((1, -1), (2, 1))}
    records = SimpleNamespace(seeds=[1, 2], runs=runs, scenarios={})
    (way,) = re.findall(r"points='(.*?)'", drawn(replace(SWEEP, log=True), records))
    # From 44 to 410 wide on a logarithmic axis; 40 packets fill the height.
    assert way == "44.0,119.0 227.0,82.0 410.0,8.0"
    (way,) = re.findall(r"points='(.*?)'", drawn(SWEEP, records))
    assert way == "44.0,119.0 77.3,82.0 410.0,8.0"
    # A bar for each interval, cut at the edge of the picture.
    assert drawn(SWEEP, records).count("stroke-width=3") == 3
    assert drawn(SWEEP, SimpleNamespace(seeds=[1], runs={}, scenarios={})) == ""


def test_curves_of_a_paper_are_read_from_its_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(panels._experiments, "folder", lambda: tmp_path)
    assert printed("none") == []
    figures = tmp_path / "none" / "figures"
    figures.mkdir(parents=True)
    (figures / "a.csv").write_text("panel,aqm,x,y,source\nFigure 1a,A,1,50,page 3\nFigure 1a,A,2,60,page 3\n")
    assert printed("none") == [PrintedCurve(panel="Figure 1a", aqm="A", points=((1, 50), (2, 60)), source="page 3")]
    (figures / "b.csv").write_text("panel,aqm,x,y,source\nFigure 1a,A,one,50,page 3\n")
    with pytest.raises(ScenarioError, match=r"b.csv, line 2: a row needs panel, aqm, x, y"):
        printed("none")


@pytest.mark.parametrize("name", ["arm-pfc", "paqm", "aqm-mo", "aaqm", "self-tuning"])
def test_the_panels_of_a_paper_name_runs_of_its_claims(name):
    paper = load_paper(name)
    wanted = needs(paper)
    names = {(panel.title, aqm) for panel in paper.panels for aqm in panel.aqm}
    for panel in paper.panels:
        assert list(panel.x) == sorted(panel.x), panel.title
        for aqm in panel.aqm:
            runs = [(cells_of(panel.at, aqm, reading), reading[aqm]) for reading in paper.readings.values()]
            assert any(all(spec in wanted.get(cell, ()) for cell in cells) for cells, spec in runs), (panel.title, aqm)
    assert {(each.panel, each.aqm) for each in printed(name)} <= names


def test_the_front_page_shows_what_held_what_surprises_and_what_it_takes():
    costly = {key: {**run, "cost": {"cpu_s": 60.0}} for key, run in RECORDS.runs.items()}
    records = SimpleNamespace(**{**vars(RECORDS), "runs": costly})
    paper = replace(PAPER, surprising=(("two", "it is <not> so"),))
    text = made((replace(OUTCOME, paper=paper),), records)
    bar = re.search(r"aria-label='Verdicts by paper and kind of claim'>(.*?)</svg>", text)[1]
    assert re.findall(r"<title>(.*?)</title>", bar) == [
        "none: orderings: 1 passed without control",
        "none: orderings: 2 partly",
        "none: orderings: 1 refuted in every reading",
        "none: orderings: 1 cannot be tested",
    ]
    assert "<li><a href='#two'>none, two</a>: it is &lt;not&gt; so <i>partly (on record: reproduced)</i></li>" in text
    assert "<tr id='two'>" in text
    assert "<code>aqumen reproduce none --seeds 10</code></td><td class=n>3</td><td class=n>3.0</td>" in text
