"""Evaluation by RFC 7928: packet sizes, scheduling, margins, few losses, and the table of requirements."""

import re

import pytest

from aqumen import Scenario
from aqumen.rfc7928 import evaluation, page, requirements
from aqumen.rfc7928.margins import margins

CELL = "rfc7928/aggressive"


class Kept:
    """Finished runs of one cell, by AQM."""

    def __init__(self, by_aqm, cell=CELL):
        self.by_aqm, self.cell = by_aqm, cell

    def of(self, cell, aqm):
        return list(enumerate(self.by_aqm.get(aqm, []))) if cell == self.cell else []


def run(interval, losses, transfers=(), early=0.001):
    link = {
        "utilization": 0.9,
        "sojourn_mean_s": 0.02,
        "sojourn_p95_s": 0.04,
        "early_drop_ratio": early,
        "overflow_drop_ratio": 0.0,
        "mark_ratio": None,
        "sync_index": None,
        "loss_interval_mean_s": interval,
        "loss_sync_ratio": None,
        "early_dropped_pkts": losses,
        "overflow_dropped_pkts": 0,
        "departures_pkts": 50_000,
    }
    group = {"goodput_bps": 5e6, "loss_ratio": 0.0}
    for size, mean, count in transfers:
        group |= {f"fct_{size}_mean_s": mean, f"fct_{size}_count": count}
    return {"windows": {"steady": [6, 60]}, "links": {"l": {"steady": link}}, "flows": {"g": {"steady": group}}}


def measured(*runs):
    (row,) = evaluation.rows(Kept({"pie": runs}), ["pie"])[:1]
    return row["measured"]


def test_an_aqm_has_a_counterpart_with_or_without_flow_queueing():
    assert evaluation.scheduled("codel:target=7ms") == "fq-codel:target=7ms"
    assert evaluation.scheduled("fq-pie") == "pie"
    assert evaluation.scheduled("fq-codel-linux") == "codel-linux"
    # Parameters that the counterpart does not have are left out.
    assert evaluation.scheduled("fq-codel:queues=16") == "codel"
    assert evaluation.scheduled("red") is None
    section = next(each for each in evaluation.sections() if each.number == "4.6")
    assert section.specs(["codel", "red"]) == ["droptail", "codel", "fq-codel"]
    assert section.specs(["red"]) == []
    told = page.page([], ["codel", "red"], 1, "c")
    assert "Without a counterpart" not in told
    row = evaluation.rows(Kept({"codel": [run(0.1, 500)]}), ["codel", "red"])[0]
    assert row["section"] == "4.6"
    assert "Without a counterpart here: red." in page.page([row], ["codel", "red"], 1, "c")


def test_means_over_all_sections_leave_out_those_with_aqms_of_their_own():
    runs = {name: [run(0.1, 500)] for name in ("droptail", "codel", "fq-codel")}
    table = evaluation.rows(Kept(runs), ["codel"])
    assert {row["aqm"] for row in table if row["section"] == "4.6"} == {"droptail", "codel", "fq-codel"}
    assert set(evaluation.standing(table)["tradeoff"]) == {"droptail", "codel"}


def test_packets_of_500_bytes_run_with_a_network_that_knows_their_size():
    for size in (500, 1500):
        plan = Scenario.load(f"rfc7928/packet-size@{size}B").plan(aqm="pie")
        assert plan["nominal"]["packet_bytes"] == size
        assert plan["nominal"]["flows"] == 7


def test_a_mean_of_a_handful_of_losses_has_no_interval_and_a_mark():
    few = measured(run(40.0, 2, early=1e-5), run(5.0, 3, early=1e-5))
    assert few["loss_interval_mean_s"] == {
        "mean": 22.5,
        "std": pytest.approx(24.75, abs=0.01),
        "ci95": None,
        "n": 2,
        "events": 5,
    }
    assert few["loss_ratio"]["ci95"] is None
    # Utilisation and delay are means of all packets.
    assert few["utilization"]["ci95"] is not None
    assert few["sojourn_mean_s"]["ci95"] is not None
    many = measured(run(0.1, 500), run(0.2, 400))
    assert many["loss_interval_mean_s"]["ci95"] is not None
    assert many["loss_ratio"]["events"] == 900
    table = evaluation.rows(Kept({"pie": [run(40.0, 2), run(5.0, 3)]}), ["pie"])
    told = page.page(table, ["pie"], 2, "c")
    assert '<td class="n">22500†</td>' in told
    assert "Such means have no interval." in told
    assert "†" not in page.page(evaluation.rows(Kept({"pie": [run(0.1, 500)]}), ["pie"]), ["pie"], 1, "c")


def test_completion_times_are_shown_by_size():
    sizes = (("under_10kB", 0.2, 50), ("10kB_100kB", 0.5, 40), ("100kB_1MB", 2.0, 30), ("over_1MB", 9.0, 4))
    told = measured(run(0.1, 500, sizes), run(0.1, 500, sizes))
    means = {size: told[f"fct_{size}_mean_s"]["mean"] for size, _, _ in sizes}
    assert means == {size: mean for size, mean, _ in sizes}
    # Eight transfers in all are few.
    assert told["fct_over_1MB_mean_s"]["ci95"] is None
    assert told["fct_under_10kB_mean_s"]["events"] == 100
    table = evaluation.rows(Kept({"pie": [run(0.1, 500, sizes)]}), ["pie"])
    heads = re.findall(r'<th class="n">(transfer .*?)<br>ms</th>', page.page(table, ["pie"], 1, "c"))
    assert set(heads) == {
        "transfer below 10 kB",
        "transfer of 10 to 100 kB",
        "transfer of 100 kB to 1 MB",
        "transfer above 1 MB",
    }


def test_margins_are_those_of_the_design_at_each_level():
    found = margins(["pi", "codel", "stpi"])
    assert [(row["aqm"], row["level"]) for row in found[:3]] == [("pi", level) for level in ("mild", "medium", "heavy")]
    pi, codel = found[:3], found[3:6]
    assert [row["flows"] for row in pi] == [3, 7, 10]
    assert all(row["stable"] == (row["gain_margin"] > 1) for row in pi)
    assert all((row["delay_margin_s"] is None) == (not row["stable"]) for row in pi)
    assert all(row["stable"] is None and "no linear law" in row["remark"] for row in codel)
    # Without a linear law at one level alone there are no margins there alone.
    assert [row["stable"] for row in found[6:]] == [None, True, True]
    section = next(each for each in evaluation.sections() if each.number == "8.3")
    runs = {spec: [run(0.1, 500)] for spec in section.specs(["pi"])}
    table = evaluation.rows(Kept(runs, evaluation.KNOB_CELL), ["pi"])
    told = page.page(table, ["pi"], 1, "c", stability=found)
    assert "<h3>Stability margins</h3>" in told
    assert f'<td class="n">{pi[2]["phase_margin_deg"]:.1f}</td>' in told
    # A page of one AQM has its margins alone.
    assert "codel" not in told


def test_the_table_of_requirements_links_to_the_sections_that_are_there():
    assert {one.number for one in requirements.REQUIREMENTS} >= {
        "4.6",
        "5.1",
        "6",
        "7",
        "8.2.5",
        "8.3",
        "10",
        "11",
        "12",
    }
    known = {each.number for each in evaluation.sections()} | {"11", "12"}
    assert {number for one in requirements.REQUIREMENTS for number in one.sections} <= known
    table = evaluation.rows(Kept({"pie": [run(0.1, 500)]}), ["pie"])
    told = page.page(table, ["pie"], 1, "c")
    links = re.findall(r'<a href="#s([\d.]+)">', told)
    assert {"4.6", "5.2", "12"} == set(links)
    assert all(f'<h2 id="s{number}">' in told for number in links)
    row = next(line for line in told.split("<tr>") if line.startswith('<th scope="row">Burst absorption'))
    assert row.strip().endswith("<td>MUST be considered</td><td>not shown</td></tr>")
