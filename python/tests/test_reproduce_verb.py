"""`aqumen reproduce` of papers made up for it, whose runs are finished at once: seeds, verdicts, files, exit codes."""

import csv
import io
import json
import sys
import tomllib
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from test_claims_findings import rfc_run

from aqumen import _core
from aqumen.cli import main
from aqumen.cli import reproduce as verb
from aqumen.papers import study
from aqumen.papers.model import Claim, Paper
from aqumen.rfc7928.evaluation import COST_CELL, KNOB_CELL

NEAR = {"test": "number", "of": "queue_mean_pkts", "aqm": "A", "near": 10, "tolerance": 1}


def claim(name, **rule):
    words = {"figure": "Fig. 1", "kind": "number", "quantity": f"queue of {name}", "claimed": "10", "note": ""}
    return Claim(id=name, where=f"section {name}", rules=({**NEAR, **rule},), **words)


def paper(name, *claims, **more):
    said = {"readings": {"only": {"A": "pie", "B": "codel"}}, "about": {}, "reasons": {}, "recorded": {}}
    return Paper(name=name, title=f"The {name}", claims=claims, **(said | more))


# PIE's queue is 10 packets, CoDel's 20.
FIRST = paper(
    "first",
    claim("holds", at="net/quick"),
    claim("misses", at="net/quick", aqm="B"),
    claim("open", at="net/slow"),
    slow=("net/slow",),
    reasons={"misses": ("since it is CoDel", "aqumen run net/quick"), "holds": ("never told", "x")},
    recorded={"holds": "reproduced", "misses": "refuted in every reading", "open": "partly"},
    headlines={"holds": "reproduced", "misses": "refuted in every reading", "open": "partly"},
    passed={"holds": ("DropTail",)},
    null={"DropTail": "droptail"},
    summary="PIE holds it.",
    record={"seeds": 4},
)
SECOND = paper("second", claim("alone", at="net/other"), record={})
PAPERS = {"first": FIRST, "second": SECOND}


class Made:
    """Runs that are finished at once, but for those of cells that were not asked for."""

    def __init__(self, wanted, seeds, folder, fewer, series="sampled"):
        self.wanted, self.seeds, self.folder, self.fewer = wanted, list(seeds), folder, fewer
        self.resumed, self.left, self.work_left = 0, 8, 2.0
        self.runs = {}
        asked.append(self)

    def work(self, on_done):
        for cell in self.wanted:
            self.work_left -= 0.25
            assert on_done(cell, "pie", 1, 0.25)

    def of(self, cell, spec):
        if cell not in self.wanted:
            return
        for seed in self.fewer[cell]:
            link = {"queue_mean_pkts": {"pie": 10.0, "codel": 20.0, "droptail": 10.0}[spec]}
            yield seed, {"scenario": cell, "windows": {"steady": [0, 9]}, "links": {"l": {"steady": link}}, "flows": {}}


asked: list[Made] = []


@pytest.fixture(autouse=True)
def made(monkeypatch):
    asked.clear()
    monkeypatch.setattr(study, "Records", Made)
    monkeypatch.setattr(study, "PAPERS", {**PAPERS, "unread": ""})
    monkeypatch.setattr(study, "data", lambda name: None if name == "unread/claims" else "")
    monkeypatch.setattr(study, "load_paper", PAPERS.__getitem__)


def told(capsys, *args):
    """Exit code, standard output and what was said, in one line."""
    code = main(["reproduce", *args])
    out, err = capsys.readouterr()
    return code, out, " ".join(err.split())


def test_a_paper_runs_with_the_seeds_of_its_record_and_all_papers_each_with_its_own(capsys):
    assert told(capsys, "first")[0] == 1
    # DropTail for the claims about numbers, since it may satisfy them too.
    assert asked[0].wanted == {"net/quick": ["pie", "droptail", "codel"], "net/slow": ["pie", "droptail"]}
    assert (asked[0].seeds, asked[0].folder) == ([1, 2, 3, 4], None)
    told(capsys, "all")
    # Ten where there is no record; the paper that has no claims yet is left out.
    assert asked[1].seeds == list(range(1, 11))
    by_cell = {cell: len(seeds) for cell, seeds in asked[1].fewer.items()}
    assert by_cell == {"net/quick": 4, "net/slow": 4, "net/other": 10}
    told(capsys, "first", "--seeds", "2", "--quick")
    assert (asked[2].seeds, asked[2].wanted) == ([1, 2], {"net/quick": ["pie", "codel"]})
    told(capsys, "second", "--quick")
    assert asked[3].seeds == [1, 2, 3]


def test_the_exit_code_says_whether_a_verdict_is_another_than_on_record(capsys):
    code, out, _ = told(capsys, "first", "--json")
    data = json.loads(out)
    assert (code, data["differing"]) == (1, ["open"])
    assert data["counts"] == {"first": {"passed without control": 2, "refuted in every reading": 1}}
    assert (data["schema"], data["seeds"], data["quick"], data["provisional"]) == (2, {"first": 4}, False, 0)
    # What a quick run does not run differs from nothing, and neither does what it judges from fewer seeds.
    code, out, _ = told(capsys, "first", "--quick", "--json")
    data = json.loads(out)
    assert (code, data["differing"], data["quick"]) == (0, [], True)
    assert data["counts"] == {"first": {"passed without control": 1, "refuted in every reading": 1, "not run": 1}}
    assert (data["provisional"], data["provisional_differing"]) == (2, [])
    PAPERS["other"] = replace(FIRST, name="other", recorded={**FIRST.recorded, "misses": "partly"})
    try:
        code, out, _ = told(capsys, "other", "--quick", "--json")
    finally:
        del PAPERS["other"]
    data = json.loads(out)
    assert (code, data["differing"], data["provisional_differing"]) == (0, [], ["misses"])
    assert told(capsys, "second")[0] == 0


def test_a_claim_is_told_with_its_rule_its_figures_and_why_it_does_not_come_out(capsys):
    holds, misses, _ = json.loads(told(capsys, "first", "--json")[1])["claims"]
    assert holds["measured"]["pie at net/quick, steady"]["mean"] == 10
    assert holds["rule"] == [{**NEAR, "at": "net/quick"}]
    assert holds["readings"] == {"only": {"state": "holds", "holding": 1, "of": 1, "seeds_needed": None}}
    assert (holds["without_control"], misses["without_control"]) == (["DropTail"], [])
    assert (holds["verdict"], holds["recorded"], holds["why"], holds["shown_by"]) == (
        "reproduced",
        "reproduced",
        None,
        None,
    )
    assert (misses["why"], misses["shown_by"]) == ("since it is CoDel", "aqumen run net/quick")
    (check,) = misses["checks"]
    assert (check["test"], check["readings"], check["outcome"]) == ("number", ["only"], "fails")
    assert (
        check["says"]
        == misses["reason"]
        == ("queue_mean_pkts = 20 ± 0 for codel at net/quick, steady; claimed: 9 to 11")
    )
    assert check["measured"] == misses["measured"]


def test_the_table_has_a_line_for_each_claim_and_the_counts_below(capsys):
    code, out, _ = told(capsys, "first", "--format", "markdown")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in out.splitlines() if "|" in line]
    assert code == 1
    by_name = {row[0]: row for row in rows}
    assert by_name["holds"][1:] == [
        "section holds",
        "queue of holds: 10",
        "holds",
        "reproduced (DropTail too)",
        "queue_mean_pkts = 10 ± 0 for pie at net/quick, steady; claimed: 9 to 11",
    ]
    assert by_name["open"][4] == "reproduced (DropTail too) (on record: partly)"
    assert by_name["misses"][3:5] == ["fails", "refuted in every reading"]
    assert by_name["paper"][1:] == list(study.COLUMNS)
    assert by_name["first"][1:] == ["0", "2", "0", "0", "1", "0", "0", "0", "0"]
    assert "PIE holds it." in out
    assert "1 verdicts differ from the record: open" in out
    # A quick run has no empty verdict: it is provisional beside the record, or the record alone.
    _, out, _ = told(capsys, "first", "--quick", "--format", "markdown")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in out.splitlines() if "|" in line]
    by_name = {row[0]: row for row in rows}
    assert by_name["holds"][4] == "reproduced (DropTail too) so far; record: reproduced"
    assert by_name["open"][4] == "not run; record: partly"
    assert "2 verdicts are provisional, from fewer seeds than the record has; 2 agree with it." in " ".join(out.split())
    _, out, _ = told(capsys, "second")
    assert "No verdicts are on record for some of these papers." in out
    assert "provisional" not in out


def test_claims_leave_for_programs(capsys):
    _, out, _ = told(capsys, "first", "--format", "csv")
    first, *_ = rows = list(csv.DictReader(io.StringIO(out)))
    assert list(first) == list(verb.CLAIM_KEYS)
    assert [(row["id"], row["verdict"], row["recorded"]) for row in rows] == [
        ("holds", "reproduced", "reproduced"),
        ("misses", "refuted in every reading", "refuted in every reading"),
        ("open", "reproduced", "partly"),
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert as_parquet(parquet, "first").column("id").to_pylist() == ["holds", "misses", "open"]


def test_with_a_folder_all_is_written_there(capsys, tmp_path):
    code, out, said = told(capsys, "first", "--json", "--out", str(tmp_path))
    assert code == 1
    assert asked[0].folder == tmp_path
    assert {path.name for path in tmp_path.iterdir()} == {"reproduce.json", "report.html", "claims.csv", "page.json"}
    assert json.loads((tmp_path / "reproduce.json").read_text()) == json.loads(out)
    assert "<h2 id='first'>The first</h2>" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "claims.csv").read_text().startswith(",".join(verb.CLAIM_KEYS))
    assert f"wrote {tmp_path / 'report.html'}" in said


def test_figures_are_drawn_where_they_are_asked_for(capsys, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(verb, "write_paper_figures", lambda *args: seen.append(args) or [tmp_path] * 3)
    _, _, said = told(capsys, "first", "--figures", str(tmp_path))
    ((outcomes, records, folder, command),) = seen
    assert ([each.paper.name for each in outcomes], records, folder) == (["first"], asked[0], tmp_path)
    assert command.startswith("aqumen reproduce first")
    assert f"wrote 3 files into {tmp_path}" in said


def test_verdicts_go_on_record_in_a_checkout(capsys, monkeypatch, tmp_path):
    folder = tmp_path / "experiments"
    (tmp_path / "docs").mkdir()
    (folder / "first").mkdir(parents=True)
    monkeypatch.setattr(verb._experiments, "folder", lambda: folder)
    monkeypatch.setattr(verb._experiments, "PAPERS", PAPERS)
    monkeypatch.setattr(verb._experiments, "data", lambda name: "" if name == "first/claims" else None)
    monkeypatch.setattr(verb, "load_paper", PAPERS.__getitem__)
    monkeypatch.setattr(verb, "markdown_page", lambda papers: ", ".join(each.name for each in papers))
    # That a verdict is another than before is what a record is for.
    code, _, said = told(capsys, "first", "--quick", "--record")
    assert code == 0
    record = tomllib.loads((folder / "first" / "verdicts.toml").read_text())
    assert record["run"] == {
        "command": "aqumen reproduce first --quick --seeds 3",
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "aqumen": _core.__version__,
        "seeds": 3,
    }
    # What is not judged has no verdict, but a reason.
    assert record["verdicts"] == {"holds": "reproduced", "misses": "refuted in every reading"}
    assert record["headlines"] == record["verdicts"]
    assert record["readings"] == {"holds": {"only": "holds"}, "misses": {"only": "fails"}}
    assert record["measured"]["open"] == "pie at net/slow, steady: not run"
    assert (tmp_path / "docs" / "reproduction.md").read_text() == "first"
    assert said.count("wrote ") == 2
    assert told(capsys, "first", "--record")[0] == 0
    command = tomllib.loads((folder / "first" / "verdicts.toml").read_text())["run"]["command"]
    assert command == "aqumen reproduce first --seeds 4"
    monkeypatch.setattr(verb._experiments, "folder", lambda: None)
    assert told(capsys, "first", "--record") == (
        2,
        "",
        "aqumen: --record needs a checkout of Aqumen with its folder `experiments`",
    )


def test_a_tie_is_open_with_any_number_of_seeds(capsys):
    # PIE's queue is the same with each.
    alike = {"test": "order", "of": "queue_mean_pkts", "aqm": ["A", "A"], "at": "net/quick"}
    PAPERS["tied"] = paper("tied", claim("tie", **alike), record={"seeds": 3})
    try:
        for seeds, provisional in (("2", True), ("3", False)):
            (row,) = json.loads(told(capsys, "tied", "--seeds", seeds, "--json")[1])["claims"]
            assert (row["verdict"], row["provisional"]) == ("open", provisional)
    finally:
        del PAPERS["tied"]


def test_a_stopped_run_is_no_verdict(capsys, monkeypatch, tmp_path):
    def stops(self, on_done):
        on_done("net/quick", "pie", 1, 0.25)
        raise KeyboardInterrupt

    monkeypatch.setattr(Made, "work", stops)
    code, out, said = told(capsys, "first", "--out", str(tmp_path))
    assert (code, out) == (130, "")
    assert "stopped after 1 of 8 runs; repeat the command to continue" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["first", "--target", "5ms"], "--target applies to rfc7928 only; a paper's claims name their AQMs"),
        (["rfc7928", "--figures", "x"], "--figures applies to papers only; the report of rfc7928 contains its figures"),
        (["ranking"], "a ranking over many networks is `aqumen study rank --record atlas` now"),
    ],
)
def test_options_that_mean_nothing_there_are_refused(capsys, args, why):
    assert told(capsys, *args) == (2, "", f"aqumen: {why}")
    assert asked == []


def test_a_paper_is_reproduced_from_python_as_from_the_command_line():
    seen = []
    (outcome,) = study.reproduce("first", quick=True, on_done=lambda *run: seen.append(run) or True)
    assert seen == [("net/quick", "pie", 1, 0.25)]
    assert [each.verdict for each in outcome.judgements] == ["reproduced", "refuted in every reading", None]
    assert [each.quick for each in study.reproduce("all")] == [False, False]


# RFC 7928.


class Evaluated:
    """Runs of RFC 7928's knobs and costs: whatever is turned, PIE waits 20 ms and uses 90 %."""

    def __init__(self, wanted, seeds, folder, prepare):
        self.seeds, self.resumed, self.left, self.work_left = list(seeds), 0, 1, 1.0

    def work(self, on_done):
        del on_done

    def of(self, cell, spec):
        run = {**rfc_run(0.02), "cost": {"cpu_s": 0.002 if spec == "droptail" else 0.0025, "bottleneck_packets": 1000}}
        return [(seed, run) for seed in self.seeds] if cell in (KNOB_CELL, COST_CELL) else []


def test_an_evaluation_tells_what_packets_cost_and_how_far_knobs_may_be_turned(capsys, monkeypatch):
    monkeypatch.setattr(verb, "Records", Evaluated)
    code, out, _ = told(capsys, "rfc7928", "--aqm", "pie:target=20ms", "--quick", "--format", "markdown")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in out.splitlines() if "|" in line]
    assert code == 0
    # All cells are in one folder, which is not said of each.
    measured = {row[0] for row in rows if row[1:2] == ["droptail"]}
    assert measured == {f"{cell.removeprefix('rfc7928/')}, steady" for cell in (KNOB_CELL, COST_CELL)}
    # 2 and 2.5 ms of processor time for 1000 packets.
    costs = {row[0]: row[1:] for row in rows if row[0] in ("droptail", "pie:target=20ms") and len(row) == 5}
    assert [costs[aqm][:2] for aqm in ("droptail", "pie:target=20ms")] == [["2000", "0"], ["2500", "500"]]
    # One queue each, with nothing for a flow.
    assert costs["droptail"][2:] == costs["pie:target=20ms"][2:]
    assert (float(costs["droptail"][2]) > 0, costs["droptail"][3]) == (True, "0")
    # Half and twice the target are as good, and nothing further was tried.
    (target,) = (row for row in rows if row[0] == "target")
    assert target == ["target", "s", "0.02", "0.01…", "0.04…"]
    assert "12 pie:target=20ms: each parameter varied alone" in out
    _, out, _ = told(capsys, "rfc7928", "--aqm", "pie", "--target", "5ms", "--quick")
    # At 5 ms as well, beside the reference; what names its cell is the RFC's section.
    assert {line.split()[0] for line in out.splitlines() if line.lstrip().startswith("pie")} >= {
        "pie",
        "pie:target=5ms",
    }
    assert "8.2.2 mild, medium and heavy congestion" in out


def test_an_evaluation_leaves_as_parquet(monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(verb, "Records", Evaluated)
    rows = as_parquet(parquet, "rfc7928", "--aqm", "pie", "--seeds", "2").to_pylist()
    sensitive = [row for row in rows if row["section"] == "8.3"]
    assert {row["aqm"] for row in sensitive} == {"droptail", *(f"pie:target={each}ms" for each in (5, 15, 45))}
    assert {(row["cell"], row["window"], row["goodput_bps"], row["sojourn_mean_s"]) for row in sensitive} == {
        (KNOB_CELL, "steady", 4.5e6, 0.02)
    }


def as_parquet(parquet, *args):
    """Parquet output of a command."""
    kept = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", SimpleNamespace(buffer=kept, isatty=lambda: False, flush=lambda: None))
        main(["reproduce", *args, "--format", "parquet"])
    kept.seek(0)
    return parquet.read_table(kept)
