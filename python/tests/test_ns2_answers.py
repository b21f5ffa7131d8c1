"""Metrics from ns-2's output, and RFC 7928's tables on the command line: from hand-written lines and runs."""

import csv
import io
import json
from types import SimpleNamespace

import pytest
from test_claims_findings import rfc_run

from aqumen.cli import main
from aqumen.cli import reproduce as verb
from aqumen.engines.external.ns2 import bench, runner
from aqumen.engines.external.ns2.plan import Transport

PRINTED = """S 10.0
L 0 25.5
F 0 10400 12 2 1
F 1 5200 5 0 0
W 0 3
U 2 40 10 5
S 20.0
L 0 75.5
F 0 31200 32 4 3
F 1 26000 25 1 0
W 0 9
U 2 100 20 7
T 4 1.5 10000 0.25
T 4 2.5 20000 0.5
G 5 3.0 1.25
R 4 4.5
P 0 0.1 7 0.05
P 0 0.2 9 -
M 1000
M 5000
C 0 77
"""


@pytest.fixture
def output():
    return runner._parse(PRINTED.splitlines())


def test_each_line_is_read(output):
    assert output.times_s == [10, 20]
    assert output.queue_integrals == [{0: 25.5}, {0: 75.5}]
    assert output.flows == [{0: (10400, 12, 2, 1), 1: (5200, 5, 0, 0)}, {0: (31200, 32, 4, 3), 1: (26000, 25, 1, 0)}]
    assert output.wire_lost == [{0: 3}, {0: 9}]
    assert output.datagrams == [{2: (40, 10, 5)}, {2: (100, 20, 7)}]
    assert output.served.transfers == {4: [(1.5, 10000, 0.25), (2.5, 20000, 0.5)]}
    assert output.served.pages == {5: [(3.0, 1.25)]}
    assert output.served.refused == {4: [4.5]}
    assert output.samples == {0: [(0.1, 7, 0.05), (0.2, 9, None)]}
    assert (output.metered_ns, output.counts) == ([1000, 5000], {0: 77})


def test_figures_of_a_window_are_differences_of_counters(output):
    # From the start everything is zero; snapshots are found by the nearest time.
    assert runner._integral(output, 0, 0.0, 10.0) == 25.5
    assert runner._integral(output, 0, 10.0, 20.0) == 50
    assert runner._integral(output, 0, 0.0, 19.999) == 75.5
    assert runner._wire_metrics(output, 0, 0.0, 20.0) == {"wire_lost_pkts": 9}
    assert runner._wire_metrics(output, 0, 10.0, 20.0) == {"wire_lost_pkts": 6}
    assert runner._wire_metrics(output, 1, 0.0, 20.0) == {}
    # 60 arrived, 10 missing in 2 runs; in all 100, 20 and 7.
    assert runner._datagram_metrics(output, range(2, 3), 10.0, 20.0) == {
        "loss_ratio": pytest.approx(10 / 70),
        "loss_burst_mean_pkts": 5,
    }
    assert runner._datagram_metrics(output, range(2, 3), 0.0, 20.0)["loss_ratio"] == pytest.approx(20 / 120)
    assert runner._datagram_metrics(output, range(1), 0.0, 20.0) == {}


def plan_of(*transports, flows):
    groups = [SimpleNamespace(transport=transport) for transport in transports]
    return SimpleNamespace(groups=groups, flows=[SimpleNamespace(group=group) for group in flows])


def test_goodput_counts_the_payload_of_whole_packets(output):
    plan = plan_of(Transport(packet_bytes=1040, header_bytes=40), flows=[0, 0])
    # 20 packets of 1000 bytes each in 10 s, both of them: 16 kbit/s.
    found = runner._group_metrics(plan, output, range(2), 10.0, 20.0)
    assert found == {
        "goodput_bps": 32_000,
        "jain_fairness": 1,
        "rtt_mean_s": None,
        # Two and one of twenty each sent again.
        "retransmitted_ratio": pytest.approx(3 / 40),
        "timeouts": 2,
    }
    # 10 and 5 packets from the start on: 8 and 4 kbit/s, 144 over 2 (64 + 16).
    first = runner._group_metrics(plan, output, range(2), 0.0, 10.0)
    assert (first["goodput_bps"], first["jain_fairness"]) == (12_000, pytest.approx(0.9))
    assert (first["retransmitted_ratio"], first["timeouts"]) == (pytest.approx(2 / 17), 1)
    nothing = runner._parse(["S 5.0", "F 0 0 0 0 0"])
    idle = runner._group_metrics(plan, nothing, range(1), 0.0, 5.0)
    assert (idle["goodput_bps"], idle["jain_fairness"], idle["retransmitted_ratio"], idle["timeouts"]) == (
        0,
        None,
        None,
        0,
    )
    # Counters of 32 bits begin again; a SYN's header is no packet.
    wrapped = runner._parse(["S 5.0", f"F 0 {2**32 - 1040} 9 0 0", "S 10.0", "F 0 1060 11 0 0"])
    assert runner._group_metrics(plan, wrapped, range(1), 5.0, 10.0)["goodput_bps"] == 2 * 1000 * 8 / 5


# RFC 7928 on the command line.


@pytest.fixture
def made_up(monkeypatch):
    """Runs of one cell, finished at once; PIE's queue is a tenth of DropTail's."""
    cell = "rfc7928/bidirectional"
    asked = []

    class Made:
        def __init__(self, wanted, seeds, folder, prepare):
            del prepare
            asked.append((wanted, list(seeds), folder))
            self.seeds, self.resumed, self.left, self.work_left = list(seeds), 2, 3, 1.0

        def work(self, on_progress):
            assert on_progress(cell, "pie", 1, 1.0)

        def of(self, name, spec):
            delay = 0.02 if spec == "pie" else 0.2
            return [(seed, rfc_run(delay)) for seed in self.seeds] if name == cell else []

    monkeypatch.setattr(verb, "Records", Made)
    return asked


def test_an_evaluation_is_told_by_section(capsys, made_up, tmp_path):
    assert main(["reproduce", "rfc7928", "--aqm", "pie", "--seeds", "2", "--format", "csv"]) == 0
    out, _ = capsys.readouterr()
    rows = [row for row in csv.reader(io.StringIO(out)) if row]
    heads = next(row for row in rows if "AQM" in row and len(row) > 2)
    told = {row[1]: dict(zip(heads, row, strict=True)) for row in rows if len(row) == len(heads) and row[1] != "AQM"}
    assert set(told) == {"droptail", "pie"}
    figures = list(told["pie"].values())[2:]
    # Goodput, utilisation, delay, p95, lost, marked, second over first group, losses of each.
    assert figures == ["4.50", "90.0", "20.0", "40.0", "3.00", "25.00", "0.50", "0.00", "0.00"]
    assert made_up[0][1] == [1, 2]
    assert next(iter(made_up[0][0].values())) == ["droptail", "pie"]
    assert main(["reproduce", "rfc7928", "--quick", "--json", "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert f"2 of 5 runs are already in {tmp_path} and are not repeated" in " ".join(err.split())
    assert (data["schema"], data["seeds"], data["aqms"], data["reference"]) == (1, 3, ["codel", "pie"], "droptail")
    assert [row["aqm"] for row in data["rows"]] == ["droptail", "codel", "pie"]
    assert made_up[1][2] == tmp_path
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"rfc7928.json", "report.html", "codel.html", "pie.html", "page.json"}
    assert json.loads((tmp_path / "rfc7928.json").read_text()) == data
    # Each AQM's page has its own rows and the reference's.
    assert "codel" not in (tmp_path / "pie.html").read_text().partition("Made by")[0]
    assert f"wrote {tmp_path / 'report.html'} and a page for each AQM" in " ".join(err.split())


def test_a_sender_that_ns2_lacks_is_refused_in_one_line(capsys):
    assert main(["run", "rfc7928/aggressive", "--engine", "ns2", "--until", "3s"]) == 2
    told = capsys.readouterr().err
    assert "group 'reno': ns-2 has ecn_backoff = True built in, not False" in " ".join(told.split())
    assert "Traceback" not in told


def test_an_evaluation_that_is_stopped_says_how_far_it_came(capsys, made_up, monkeypatch, tmp_path):
    def stops(self, on_progress):
        on_progress("x", "y", 1, 0.5)
        raise KeyboardInterrupt

    monkeypatch.setattr(verb.Records, "work", stops)
    assert main(["reproduce", "rfc7928", "--out", str(tmp_path)]) == 130
    assert "stopped after 1 of 3 runs; repeat the command to continue" in " ".join(capsys.readouterr().err.split())
    assert main(["reproduce", "rfc7928"]) == 130
    assert "the same command" not in capsys.readouterr().err
    assert made_up
    for args, told in ((["arm-pfc", "--aqm", "pie"], "--aqm applies to rfc7928"),):
        assert main(["reproduce", *args]) == 2
        assert told in capsys.readouterr().err


def test_what_ns2_costs_is_told_in_seconds(monkeypatch):
    # Processor time at time 0 and at the end, nanoseconds.
    monkeypatch.setattr(bench, "script", lambda plan, timing: "timed" if timing else "")
    monkeypatch.setattr(bench, "_plan", lambda plan: plan)
    monkeypatch.setattr(bench, "_execute", lambda text: SimpleNamespace(metered_ns=[1_250_000_000, 4_000_000_000]))
    assert bench.ns2_cost({}) == bench.Ns2Cost(setup_s=1.25, run_s=2.75)
