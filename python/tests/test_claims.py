"""Claims, rules and verdicts: what a rule says of runs made up for it, and that all that is on record can be read."""

import itertools
import json
import math
import re
import shlex
from dataclasses import replace

import pytest

from aqumen import _core, _experiments
from aqumen._quantities import evaluate
from aqumen._records import Records
from aqumen.cli import main
from aqumen.errors import ScenarioError
from aqumen.papers import algebra, load_paper
from aqumen.papers.judge import judge, needs, questions
from aqumen.papers.markdown import page
from aqumen.papers.model import EXPLAINED, VERDICTS, Claim, Paper
from aqumen.ranking.targets import at_target
from aqumen.rfc7928 import evaluation
from aqumen.scenario import Scenario

KNOWN = [name for name in _experiments.PAPERS if _experiments.data(f"{name}/claims") is not None]
ON_RECORD = [name for name in KNOWN if _experiments.data(f"{name}/verdicts") is not None]


def paper(*rules, readings=None):
    said = readings or {"only": {"A": "a", "B": "b", "C": "c"}}
    claim = Claim(id="x", where="1", figure="1", kind="number", quantity="q", claimed="c", note="", rules=tuple(rules))
    return Paper(name="none", title="", readings=said, about={}, claims=(claim,), reasons={}, recorded={})


def runs(**by_aqm):
    """A cell `s` in which each AQM has a queue of its own with each seed; cells `s0`, `s1` where there are several."""

    def lookup(cell, spec):
        values = by_aqm[spec]
        if isinstance(values[0], list):
            values = values[int(cell[1:])]
        for seed, value in enumerate(values):
            link = {"queue_mean_pkts": value, "settling_s": None, "utilization": 0.5}
            yield (
                seed,
                {"scenario": cell, "windows": {"steady": [10, 50]}, "links": {"l": {"steady": link}}, "flows": {}},
            )

    return lookup


def verdict(rule, lookup, planned=None, readings=None):
    made = paper(rule, readings=readings)
    return judge(made, made.claims[0], lookup, planned).verdict


NEAR = {"test": "number", "of": "queue_mean_pkts", "aqm": "A", "at": "s", "near": 100, "tolerance": 5}
LESS = {"test": "order", "of": "queue_mean_pkts", "aqm": ["A", "B"], "at": "s", "first": "lowest"}


def test_a_number_holds_within_its_tolerance():
    # Half the interval of three values 1 apart is 2.48.
    assert verdict(NEAR, runs(a=[101, 102, 103])) == "reproduced"
    assert verdict(NEAR, runs(a=[107, 108, 109])) == "refuted in every reading"
    # The mean is within, what is known of it is not.
    assert verdict(NEAR, runs(a=[103, 104, 105])) == "open"
    # Two readings, one of which holds.
    both = {"printed": {"A": "a"}, "repaired": {"A": "b"}}
    assert verdict(NEAR, runs(a=[100, 100.1], b=[200, 201]), readings=both) == "reproduced in a reading"
    # Readings that come to the same AQM count once.
    made = paper(NEAR, readings={"printed": {"A": "a"}, "repaired": {"A": "a"}})
    (question,) = questions(made, made.claims[0])
    assert question.readings == ("printed", "repaired")


def test_an_ordering_needs_paired_differences_beyond_chance():
    # The seeds scatter by 100, the pairs differ by 1 each time.
    a = [100, 150, 200, 120]
    assert verdict(LESS, runs(a=a, b=[x + 1 for x in a])) == "reproduced"
    assert verdict(LESS, runs(a=[x + 1 for x in a], b=a)) == "refuted in every reading"
    # By a factor, and by a margin.
    assert verdict({**LESS, "factor": 2}, runs(a=[10, 11, 12], b=[18, 19, 21])) == "refuted in every reading"
    assert verdict({**LESS, "factor": 2}, runs(a=[10, 11, 12], b=[30, 33, 36.5])) == "reproduced"
    assert verdict({**LESS, "by": 5}, runs(a=[10, 11, 12], b=[14, 15, 16.1])) == "refuted in every reading"


def test_what_seeds_do_not_decide_is_open_and_names_the_seeds_that_should():
    # Differences 1, -1, 1, 2: mean 0.75, deviation 1.26; with n seeds the interval is 0.75 +- t(n - 1) 1.26 / sqrt(n).
    made = paper(LESS)
    found = judge(made, made.claims[0], runs(a=[1, 2, 3, 4], b=[2, 1, 4, 6]))
    (check,) = found.checks
    assert (found.verdict, check.outcome, check.leans) == ("open", "open", True)
    half = [_core.student_quantile(0.975, n - 1) * 1.2583 / math.sqrt(n) for n in (check.seeds - 1, check.seeds)]
    assert half[0] > 0.75 > half[1]
    assert found.headline == f"open: needs about {check.seeds} seeds"
    assert found.readings["only"].to_dict() == {"state": "open", "holding": 0, "of": 1, "seeds_needed": check.seeds}
    # With the seeds of the record it is expected to hold, which a run with fewer takes for granted, and says so.
    sooner = judge(made, made.claims[0], runs(a=[1, 2, 3, 4], b=[2, 1, 4, 6]), check.seeds)
    assert (sooner.verdict, sooner.provisional) == ("reproduced", True)
    assert judge(made, made.claims[0], runs(a=[1, 2, 3, 4], b=[2, 1, 4, 6]), check.seeds - 1).verdict == "open"
    # What is the same with every seed is decided by no number of them.
    tied = judge(made, made.claims[0], runs(a=[5, 5, 5], b=[5, 5, 5]), 10)
    assert (tied.verdict, tied.headline) == ("open", "open: a tie, or more than 1000 seeds")


def test_one_failing_check_refutes_a_reading_and_many_need_no_correction():
    # Sixty checks, each of which holds at 95 %: the claim holds.
    a, b = [0, 0, 0, 0], [0.9, 1.0, 1.1, 1.0]
    many = {**LESS, "aqm": ["A", *["B"] * 60]}
    assert verdict(many, runs(a=a, b=b)) == "reproduced"
    both = {"one": {"A": "a", "B": "b", "C": "c"}, "two": {"A": "b", "B": "a", "C": "c"}}
    lookup = runs(a=a, b=b, c=[2, 2, 2, 2])
    chain = {**LESS, "aqm": ["A", "B", "C"], "chain": "rising"}
    del chain["first"]
    made = paper(chain, readings=both)
    found = judge(made, made.claims[0], lookup)
    assert (found.verdict, found.headline) == ("reproduced in a reading", "reproduced in reading one")
    assert {name: str(each) for name, each in found.readings.items()} == {"one": "holds", "two": "1 of 2"}
    assert verdict(chain, lookup, readings={"two": both["two"]}) == "partly"
    # An open reading keeps the claim open, whatever the others refute.
    loose = {"two": both["two"], "three": {"A": "a", "B": "d", "C": "c"}}
    assert verdict(chain, runs(a=a, b=b, c=[2, 2, 2, 2], d=[1, -1, 1, 1]), readings=loose) == "open"


def test_what_holds_without_control_says_so():
    made = paper(NEAR)
    made = replace(made, null={"DropTail": "droptail", "fixed probability": "fixed:p=0.1"})
    lookup = runs(a=[100, 100], **{"droptail": [100, 100], "fixed:p=0.1": [50, 50]})
    assert judge(made, made.claims[0], lookup).null == ("DropTail",)
    assert needs(made) == {"s": ["a"]}
    assert needs(made, null=True) == {"s": ["a", "droptail", "fixed:p=0.1"]}
    # A claim that fails, an ordering, and a claim about DropTail are not asked.
    assert judge(made, made.claims[0], runs(a=[200, 200], **{"droptail": [100, 100]})).null == ()
    order = replace(paper(LESS), null=made.null)
    assert needs(order, null=True) == {"s": ["a", "b"]}
    own = replace(paper(NEAR, readings={"only": {"A": "droptail"}}), null=made.null)
    assert needs(own, null=True) == {"s": ["droptail"]}


def test_a_tie_counts_neither_way_where_the_claim_allows_it():
    chain = {
        "test": "order",
        "of": "queue_mean_pkts",
        "aqm": ["A", "B", "C"],
        "at": "s",
        "chain": "falling",
        "ties": True,
    }
    assert verdict(chain, runs(a=[5, 6, 7], b=[3, 4, 5], c=[3, 4, 5])) == "reproduced"
    assert verdict(chain, runs(a=[3, 4, 5], b=[3, 4, 5], c=[3, 4, 5])) == "open"
    assert verdict(chain, runs(a=[5, 6, 7], b=[3, 4, 5], c=[8, 9, 10])) == "partly"


def test_alike_is_an_interval_within_the_tolerance():
    same = {"test": "same", "of": "queue_mean_pkts", "aqm": ["A", "B"], "at": "s", "tolerance": 5}
    assert verdict(same, runs(a=[10, 20, 30], b=[11, 22, 31])) == "reproduced"
    assert verdict(same, runs(a=[10, 20, 30], b=[20, 30, 40.5])) == "refuted in every reading"
    # The mean is within, what is known of it is not.
    assert verdict(same, runs(a=[10, 20, 30], b=[30, 10, 20])) == "open"


def test_a_trend_rises_at_every_step_but_for_chance():
    rising = {"test": "trend", "of": "queue_mean_pkts", "aqm": "A", "at": ["s0", "s1", "s2"], "sense": "rising"}
    assert verdict(rising, runs(a=[[1, 1, 2], [3, 3, 4], [5, 5.5, 6]])) == "reproduced"
    assert verdict(rising, runs(a=[[1, 1, 2], [9, 9, 9.5], [5, 5.5, 6]])) == "refuted in every reading"
    assert verdict({**rising, "ratio": 9}, runs(a=[[1, 1, 1], [3, 3, 4], [5, 5.5, 6]])) == "refuted in every reading"
    assert (
        verdict({**rising, "sense": "falling"}, runs(a=[[1, 1, 2], [3, 3, 4], [5, 5.5, 6]]))
        == "refuted in every reading"
    )


def test_ranks_spreads_and_comparisons_with_other_cells():
    cells = ["s0", "s1"]
    ranks = {**LESS, "at": cells, "across": "rank"}
    assert verdict(ranks, runs(a=[[1, 1, 1], [1, 1, 1]], b=[[2, 2, 2], [2, 2, 2]])) == "reproduced"
    # A leads in one cell, B in the other: both have rank 1.5.
    assert verdict(ranks, runs(a=[[1, 1, 1], [3, 3, 3]], b=[[2, 2, 2], [2, 2, 2]])) == "open"
    spread = {**NEAR, "at": cells, "across": "spread", "near": 4, "tolerance": 0.5}
    assert verdict(spread, runs(a=[[1, 2, 3], [5, 6, 7]])) == "reproduced"
    over = {**NEAR, "at": "s1", "over": {"at": "s0"}, "near": 3, "tolerance": 0.1}
    assert verdict(over, runs(a=[[1, 2, 3], [3, 6, 9]])) == "reproduced"
    less = {**NEAR, "at": "s1", "less": {"at": "s0"}, "near": 4, "tolerance": 0.1}
    assert verdict(less, runs(a=[[1, 2, 3], [5, 6, 7]])) == "reproduced"
    assert needs(paper(over)) == {"s1": ["a"], "s0": ["a"]}


def test_what_never_settled_took_the_whole_window():
    run = dict(runs(a=[1])("s", "a"))[0]
    assert evaluate(run, {"of": "settling_s", "window": "steady"}) == 40
    assert evaluate(run, {"of": "queue_mean_pkts / 4 + utilization", "window": "steady"}) == 0.75
    for wrong in ("queue_mean", "__import__('os')", "queue_mean_pkts +"):
        with pytest.raises(ScenarioError):
            evaluate(run, {"of": wrong, "window": "steady"})


@pytest.mark.parametrize("name", sorted(algebra.CHECKS))
def test_every_check_of_algebra_answers(name):
    outcome, says = algebra.CHECKS[name]()
    assert outcome in ("holds", "fails", "inconsistent")
    assert says


@pytest.mark.parametrize("name", KNOWN)
def test_the_claims_of_a_paper_name_cells_and_aqms_that_are_there(name):
    made = load_paper(name)
    for cell, specs in needs(made).items():
        scenario = Scenario.load(cell)
        for spec in specs:
            scenario.check_aqm(spec)
    for claim in made.claims:
        assert all(rule["test"] != "algebra" or rule["check"] in algebra.CHECKS for rule in claim.rules), claim.id
    if name not in ON_RECORD:
        return
    for claim in made.claims:
        slow = any(cell in made.slow for q in questions(made, claim) for term in q.terms for cell, _ in term.needs())
        assert made.recorded.get(claim.id) in VERDICTS or slow, claim.id
    # Why a claim does not hold as it stands is said of those that do not, and of no others.
    assert set(made.reasons) == {claim for claim, verdict in made.recorded.items() if verdict in EXPLAINED}
    # Each reading that matters has a state on record; what passes without control is a claim that holds.
    assert all(set(states) == set(made.readings) for states in made.standings.values())
    assert all(made.recorded[claim].startswith("reproduced") for claim in made.passed)


@pytest.mark.parametrize("name", KNOWN)
def test_the_experiment_that_shows_a_reason_can_be_run(name):
    for shown_by in {shown_by for _, shown_by in load_paper(name).reasons.values()}:
        program, verb, what, *rest = shlex.split(shown_by)
        assert program == "aqumen"
        if verb == "reproduce":
            assert what in KNOWN
            continue
        options = [pair for pair in itertools.pairwise(rest) if pair[0] in ("--aqm", "--set")]
        if verb == "design":
            assert what in {row["name"] for row in _core.list_aqms()}
            continue
        assert verb in ("compare", "run")
        scenario = Scenario.load(what).set_all([tuple(value.split("=", 1)) for key, value in options if key == "--set"])
        specs = [value for key, value in options if key == "--aqm"]
        assert specs, shown_by
        for spec in specs:
            scenario.check_aqm(spec)


def test_the_page_of_verdicts_is_that_of_the_record():
    assert _experiments.folder().parent.joinpath("docs", "reproduction.md").read_text() == page(
        [load_paper(name) for name in KNOWN]
    )


def test_rules_that_nobody_would_read_are_refused(monkeypatch):
    text = _experiments.data("arm-pfc/claims")
    real = _experiments.data
    for old, new, told in (
        ('test = "trend"', 'test = "tend"', "choose from: number, order"),
        ("near = 0.9957", "nigh = 0.9957", "has no nigh"),
        ('aqm = "PI"', 'aqm = "PIE"', "no reading defines PIE"),
    ):
        broken = text.replace(old, new, 1)
        monkeypatch.setattr(_experiments, "data", lambda name, t=broken: t if name == "arm-pfc/claims" else real(name))
        with pytest.raises(ScenarioError, match=told):
            load_paper("arm-pfc")


def test_a_stopped_reproduction_goes_on_where_it_was(tmp_path):
    wanted = {"arm-pfc/exp1@h7": ["arm-pfc-printed", "red-printed"]}
    first = Records(wanted, [1, 2], tmp_path)
    seen = []
    first.work(lambda cell, spec, seed, cost: seen.append((cell, spec, seed)) or len(seen) < 2)
    again = Records(wanted, [1, 2], tmp_path)
    assert again.resumed == len(first.runs) >= 2
    assert again.left == 4 - again.resumed
    again.work(lambda *_: True)
    assert again.left == 0
    run = again.runs["arm-pfc/exp1@h7", "arm-pfc-printed", 1]
    assert 0 <= run["links"]["bottleneck"]["steady"]["empty_share"] <= 1
    assert math.isclose(run["links"]["bottleneck"]["steady"]["length_s"], 90)
    assert "series" in run


def test_reproduce_says_what_it_cannot_run(capsys):
    assert main(["reproduce", "arm-pfd"]) == 2
    assert "arm-pfc, paqm" in capsys.readouterr().err
    assert main(["reproduce", "arm-pfc", "--seeds", "0"]) == 2
    assert "seeds = 0: must be 1 to" in capsys.readouterr().err


@pytest.mark.slow
def test_the_record_comes_out_again(tmp_path, capsys):
    code = main(["reproduce", "arm-pfc", "--quick", "--json", "--out", str(tmp_path)])
    told = json.loads(capsys.readouterr().out)
    assert told["differing"] == []
    assert code == 0
    assert (tmp_path / "report.html").read_text().count("<svg") > 10


def test_an_ellipse_is_that_of_the_samples():
    # Delays 1, 2, 3 and goodputs 2, 4, 6: both have their variance about the middle, and move together.
    found = evaluation.ellipse([(1, 2), (2, 4), (3, 6)])
    assert found == {"delay_s": 2, "goodput_bps": 4, "delay_std_s": 1, "goodput_std_bps": 2, "covariance": 2}
    assert evaluation.ellipse([(1, 2)]) is None


def test_delay_and_goodput_are_paired_within_a_run():
    scenario = evaluation.sampled(Scenario.load("rfc7928/varying-load"))
    plan = scenario.plan(1, "droptail")
    windows = plan["windows"]
    lengths = [end - start for name, (start, end) in windows.items() if name.startswith("sample-")]
    assert len(lengths) == plan["duration_s"] - windows["steady"][0]
    assert set(lengths) == {1}
    run = {
        "windows": {"mild": [10, 12], "steady": [0, 20]},
        "samples": [
            {"at_s": [at, at + 1], "goodput_bps": 1e6 * at, "sojourn_mean_s": None if at == 11 else 0.01 * at}
            for at in (9, 10, 11, 12)
        ],
    }
    # From 10 to 12 s there are two seconds, and in one of them no packet crossed the link.
    assert evaluation.paired(run, "mild") == [(0.1, 10e6)]
    assert len(evaluation.paired(run, "steady")) == 3


def test_an_aqm_can_be_run_at_the_target_of_another():
    assert at_target("pie", "15ms") == "pie:target=15ms"
    assert at_target("pi:frequency=100Hz", "15ms") == "pi:frequency=100Hz,target_delay=15ms"
    assert at_target("red", "15ms") == "red:thresholds=ns2-auto,target_delay=15ms"
    assert at_target("droptail", "15ms") is None
    scenario = Scenario.load("rfc7928/bursts")
    for spec in ("pie", "pi", "red", "fq-codel", "stpi", "cake"):
        scenario.check_aqm(at_target(spec, "15ms"))


def test_the_front_of_delay_and_goodput_is_over_all_networks():
    def row(cell, aqm, delay, goodput):
        measured = {
            key: {"mean": value, "n": 3} for key, value in (("goodput_bps", goodput), ("sojourn_mean_s", delay))
        }
        return {"section": "5.1", "cell": cell, "window": "steady", "aqm": aqm, "measured": measured}

    cells = ["a", "b", "c"]
    rows = [row(cell, aqm, *both) for cell in cells for aqm, both in (("x", (1, 8)), ("y", (2, 10)), ("z", (3, 9)))]
    found = evaluation.standing(rows)
    # z waits longer than y and carries less.
    assert found["front"] == ["x", "y"]
    assert found["tradeoff"]["x"] == pytest.approx({"delay_s": 1, "goodput_share": 0.8})


def test_the_scenarios_of_rfc_7928_can_run():
    for cell, specs in evaluation.wanted(["pie", "codel:target=10ms"], quick=False).items():
        scenario = Scenario.load(cell)
        assert specs[0] == "droptail"
        for spec in specs:
            scenario.check_aqm(spec)


def test_an_aqm_is_for_rfc_7928_alone(capsys):
    assert main(["reproduce", "arm-pfc", "--aqm", "pie"]) == 2
    assert "--aqm applies to rfc7928" in capsys.readouterr().err


@pytest.mark.slow
def test_rfc_7928_tells_each_section(tmp_path, capsys):
    arguments = ["--quick", "--seeds", "2", "--aqm", "pie", "--json", "--out", str(tmp_path)]
    assert main(["reproduce", "rfc7928", *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["section"] for row in told["rows"]} == {each.number for each in evaluation.sections()}
    targets = {f"pie:target={target}" for target in ("5ms", "15ms", "45ms")}
    assert {row["aqm"] for row in told["rows"] if row["section"] == "8.3"} == {"droptail", *targets}
    assert {row["aqm"] for row in told["rows"] if row["section"] == "4.6"} == {"droptail", "pie", "fq-pie"}
    assert {row["aqm"] for row in told["rows"] if row["section"] not in ("4.6", "8.3")} == {"droptail", "pie"}
    assert all(one["sections"] for one in told["requirements"])
    assert [row["level"] for row in told["margins"]] == ["mild", "medium", "heavy"]
    assert set(told["standing"]["front"]) <= {"droptail", "pie"}
    assert all(row["ellipse"] is not None for row in told["rows"] if row["section"] == "5.1")
    assert told["costs"]["pie"]["packet_ns"]["mean"] > 0
    assert "target" in {knob["name"] for knob in told["knobs"]["pie"]}
    assert (tmp_path / "pie.html").is_file()
    # With long flows at a full buffer PIE's queue is the shorter one.
    delays = {
        row["aqm"]: row["measured"]["sojourn_mean_s"]["mean"]
        for row in told["rows"]
        if row["cell"] == "rfc7928/congestion@heavy"
    }
    assert delays["pie"] < delays["droptail"] / 2


def test_an_aqm_can_have_a_variant_of_its_own_in_a_reading():
    rule = {**LESS, "aqm": ["A", "B"], "at": "s@n10"}
    own = {"one": {"A": "a", "B": "b", "variant": "ecn", "variants": {"B": "retuned"}}}
    assert needs(paper(rule, readings=own)) == {"s@n10,ecn": ["a"], "s@n10,ecn,retuned": ["b"]}
    # Where it is ranked, its rivals keep theirs.
    ranked = {**rule, "at": ["s", "t"], "across": "rank"}
    cells = {"s@ecn", "t@ecn", "s@ecn,retuned", "t@ecn,retuned"}
    made = paper(ranked, readings=own)
    assert set(needs(made)) == cells

    def lookup(cell, spec):
        assert (spec == "b") == cell.endswith("retuned")
        link = {"queue_mean_pkts": {"a": 1.0, "b": 2.0}[spec]}
        run = {"scenario": cell, "windows": {"steady": [0, 1]}, "links": {"l": {"steady": link}}, "flows": {}}
        return [(seed, run) for seed in (1, 2, 3)]

    assert judge(made, made.claims[0], lookup).verdict == "reproduced"


def test_what_an_aqm_shows_of_its_state_can_be_judged(fake_core, scenario_file):
    records = Records({str(scenario_file): ["pi"]}, [1], None)
    records.work(lambda *_: True)
    ((_, run),) = records.of(str(scenario_file), "pi")
    rule = {"of": "capacity_estimate_p50 / capacity_estimate_mean", "window": "steady"}
    assert evaluate(run, rule) == 1


def test_a_papers_figures_are_drawn_from_its_runs(tmp_path):
    pytest.importorskip("matplotlib")
    from aqumen.papers.figures import write_paper_figures
    from aqumen.papers.study import Outcome

    made = paper({**LESS, "at": "arm-pfc/exp1"})

    class Kept:
        seeds = (1,)
        runs = {  # noqa: RUF012
            ("arm-pfc/exp1", spec, 1): {"series": {"bottleneck": {"t_s": [1, 2, 3], "queue_pkts": [0, level, level]}}}
            for spec, level in (("a", 10), ("b", 20))
        }

    outcome = Outcome(paper=made, judgements=(), seeds=1, quick=False)
    files = write_paper_figures([outcome], Kept, tmp_path, "aqumen reproduce none")
    assert [file.name for file in files] == [f"none-1-exp1.{kind}" for kind in ("svg", "pdf", "png")]
    text = files[0].read_text()
    # Both AQMs stand in the legend as text.
    assert ">a<" in text
    assert ">b<" in text


def test_a_papers_figure_has_the_first_seeds_queues_that_there_are():
    pytest.importorskip("matplotlib")
    from types import SimpleNamespace

    from matplotlib.figure import Figure

    from aqumen.papers.figures import _queue_of

    def series(*queue):
        return {
            "series": {"first": {"t_s": [0, 1], "queue_pkts": list(queue)}, "second": {"t_s": [], "queue_pkts": []}}
        }

    runs = {
        ("net", "a", 3): series(5, 7),
        ("net", "b", 3): {},
        ("net", "c", 3): series(1, 2),
        ("net", "a", 4): series(9, 9),
    }
    axes = Figure().subplots()
    assert _queue_of(SimpleNamespace(seeds=[3, 4], runs=runs), "net", ["a", "b", "c", "gone"])(axes)
    assert [(line.get_label(), list(line.get_ydata())) for line in axes.lines] == [("a", [5, 7]), ("c", [1, 2])]
    assert len({line.get_color() for line in axes.lines}) == 2
    assert {0 < line.get_linewidth() < 1 for line in axes.lines} == {True}
    assert axes.get_ylim()[0] == 0
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("Time, s", "Queue, packets")
    assert axes.get_legend() is not None
    empty = Figure().subplots()
    assert not _queue_of(SimpleNamespace(seeds=[4], runs=runs), "net", ["b"])(empty)
    assert empty.get_legend() is None


def test_claims_leave_as_parquet():
    parquet = pytest.importorskip("pyarrow.parquet")
    import io

    from aqumen.cli.reproduce import CLAIM_KEYS
    from aqumen.view.export import rows_parquet

    row = dict.fromkeys(CLAIM_KEYS, "x") | {"why": None, "checks": []}
    table = parquet.read_table(io.BytesIO(rows_parquet([row, row], CLAIM_KEYS)))
    assert table.column_names == list(CLAIM_KEYS)
    assert table.to_pylist()[1]["why"] is None


def test_what_contradicts_itself_is_neither_true_nor_false():
    contradiction = {"test": "algebra", "check": "mmpp_states"}
    assert verdict(contradiction, runs()) == "inconsistent"
    # Whatever else holds.
    made = paper(contradiction, NEAR)
    found = judge(made, made.claims[0], runs(a=[100, 100]))
    assert found.verdict == "inconsistent"
    assert found.reason.startswith("1 of 2 checks hold; but four sources of two states")
    check = found.checks[0]
    assert (check.test, check.readings, check.seeds, check.measured) == ("algebra", (), None, {})


def test_what_is_not_measured_everywhere_is_no_trend_and_no_rank():
    cells = {"at": ["s0", "s1"], "aqm": "A"}
    rising = {"test": "trend", "of": "queue_mean_pkts", "sense": "rising", **cells}
    gone = runs(a=[[1, 1], [None, None]])
    made = paper(rising)
    found = judge(made, made.claims[0], gone)
    assert (found.verdict, found.checks[0].outcome) == ("cannot be tested", "undefined")
    assert found.reason == "a: queue_mean_pkts is not measured in every cell"

    def half(cell, spec):
        return runs(a=[[1, 1]])(cell, spec) if cell == "s0" else iter(())

    found = judge(made, made.claims[0], half)
    assert (found.verdict, found.reason) == (None, "a at None of 2 cells, steady: not run")
    ranked = {**LESS, "at": ["s0", "s1"], "across": "rank"}
    missing = judge(
        paper(ranked), paper(ranked).claims[0], lambda cell, spec: iter(()) if spec == "b" else half("s0", "a")
    )
    assert (missing.verdict, missing.headline, missing.checks[0].outcome) == (None, "not run", "missing")
    # Where an AQM has no figure in a cell, the others are ranked among themselves.
    with_gap = runs(a=[[1, 1, 1], [3, 3, 3]], b=[[2, 2, 2], [None, None, None]])
    (check,) = judge(paper(ranked), paper(ranked).claims[0], with_gap).checks
    assert {label: each["mean"] for label, each in check.measured.items()} == {
        "a at rank of 2 cells, steady": 1,
        "b at rank of 2 cells, steady": 2,
    }


def test_a_seed_that_lacks_a_run_counts_nowhere():
    def lookup(cell, spec):
        every = runs(a=[10, 20, 30], b=[11, 21, 31])(cell, spec)
        return (pair for pair in every if (spec, pair[0]) != ("b", 1))

    (check,) = judge(paper(LESS), paper(LESS).claims[0], lookup).checks
    # Two differences of 1.
    assert check.says.endswith("difference 1 to 1")
    over = {**NEAR, "over": {"aqm": "B"}, "near": 1, "tolerance": 0.1}
    (check,) = judge(paper(over), paper(over).claims[0], lookup).checks
    assert [each["n"] for each in check.measured.values()] == [2]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"across": "median"}, "across = 'median'; choose from: mean, spread"),
        ({"at": None}, "a rule needs `of` and `at`"),
        ({"of": None}, "a rule needs `of` and `at`"),
        ({"terms": [{"near": 1}]}, "a term has no near"),
        ({"reading": ["third"]}, "no reading third; choose from: one"),
        ({"zzz": 1, "aaa": 1}, "test `order` has no aaa"),
        ({"terms": [{"zzz": 1, "aaa": 1}]}, "a term has no aaa"),
    ],
)
def test_a_rule_that_says_too_little_or_too_much_is_named(change, told):
    from aqumen.papers import model

    rule = {**LESS, **change}
    rule = {key: value for key, value in rule.items() if value is not None}
    made = paper(rule, readings={"one": {"A": "a", "B": "b"}})
    with pytest.raises(ScenarioError, match=re.escape(f"f: claim x: {told}")):
        model._check_rule("f", made, made.claims[0], rule)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("claims = [", "p/claims.toml: "),
        (
            2 * '[[claims]]\nid = "a"\nwhere = "1"\nkind = "number"\nquantity = "q"\nclaimed = "c"\nrule = []\n',
            "claim a is defined twice",
        ),
        ("[[claims]]\nrule = []\n", "p/claims.toml: claim ? lacks 'id'"),
        (
            'claims = []\n[[reasons]]\nclaims = ["b"]\nwhy = "w"\nshown_by = "s"\n',
            "a reason refers to the unknown claim b",
        ),
    ],
)
def test_claims_that_cannot_be_read_are_told(monkeypatch, text, told):
    monkeypatch.setattr(_experiments, "data", lambda name: text if name == "p/claims" else None)
    with pytest.raises(ScenarioError, match=re.escape(told)):
        load_paper("p")
