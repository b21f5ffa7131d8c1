"""`aqumen validate`: which runs it asks of whom, what it says of them, how it ends; engines here answer at once."""

import json
from types import SimpleNamespace

import pytest

from aqumen import _vectors, engines
from aqumen.cli import main
from aqumen.cli import validate as verb
from aqumen.engines.external import crosscheck
from aqumen.engines.external.live import crosscheck as live
from aqumen.engines.external.ns2 import crosscheck as with_ns2
from aqumen.engines.external.ns3 import crosscheck as with_ns3


def metrics(queue, **more):
    return {
        "utilization": 0.99,
        "queue_mean_pkts": queue,
        "queue_std_pkts": 10.0,
        "mark_ratio": 0.1,
        "early_drop_ratio": 0.01,
        "overflow_drop_ratio": 0.02,
        "departures_pkts": 1000,
        **more,
    }


@pytest.fixture
def asked(monkeypatch):
    """Engines whose queues are 100 and, of the packet engine, `shift` more; notes what was asked of them."""
    noted = SimpleNamespace(jobs=[], shift=0.0, threads=[])

    def run_many(scenario, jobs, engine, threads, done):
        noted.jobs.append((scenario.name, engine, [seed for _, seed in jobs], {aqm for aqm, _ in jobs}))
        noted.threads.append(threads)
        # Finished in another order than asked for.
        for index in reversed(range(len(jobs))):
            one = metrics(100.0 + noted.shift * (engine == "packet"))
            group = {"goodput_bps": 1e6, "jain_fairness": 0.9, "timeouts": 2}
            result = {
                "links": {"bottleneck": {"all": one, "steady": one}},
                "flows": {"ftp": {"all": group, "steady": group}},
            }
            assert done(index, SimpleNamespace(json=json.dumps(result)))

    monkeypatch.setattr(engines, "run_many", run_many)

    def check(name, scenario=None):
        if scenario is None:
            noted.jobs.append(("check", name))

    monkeypatch.setattr(engines, "check_engine", check)
    return noted


def test_cells_run_in_both_engines_with_as_many_seeds(asked, capsys):
    assert main(["validate", "ns2", "--cell", "arm_exp1/PIpaper", "--seeds", "3"]) == 0
    out, err = capsys.readouterr()
    assert asked.jobs[0] == ("check", "ns2")
    assert [(engine, seeds, specs) for _, engine, seeds, specs in asked.jobs[1:]] == [
        ("packet", [1, 2, 3], {"pi-printed"}),
        ("ns2", [1, 2, 3], {"pi-printed"}),
    ]
    assert err == "aqumen: arm_exp1/PIpaper, 3 seeds: equivalent (1/1)\n"
    lines = out.splitlines()
    assert lines[0].split() == [
        *("experiment", "aqm", "window", "metric", "ours", "ns-2", "difference,", "95", "%", "bound", "verdict"),
    ]
    assert len(lines) == 1 + 5 + 4 + 1
    assert lines[-1] == "9 equivalent, 0 unclear, 0 different"
    assert all(threads >= 1 for threads in asked.threads)


def test_runs_that_are_kept_are_not_run_again(monkeypatch, tmp_path, capsys):
    asked = []
    run_many = engines.run_many

    def counted(scenario, jobs, engine, threads, done):
        asked.append((engine, [seed for _, seed in jobs]))
        # The packet engine stands for the other one, too: what is tested is who is asked, and for what.
        run_many(scenario, jobs, "packet", threads, done)

    monkeypatch.setattr(engines, "run_many", counted)
    monkeypatch.setattr(engines, "check_engine", lambda name, scenario=None: None)
    command = ["validate", "ns3", "--drawn", "3", "1", "--out", str(tmp_path / "kept")]
    main([*command, "--seeds", "2"])
    first = capsys.readouterr().out
    assert [engine for engine, _ in asked][:2] == ["packet", "ns3"]
    most = max(seed for engine, seeds in asked for seed in seeds if engine == "ns3")
    asked.clear()
    main([*command, "--seeds", "2"])
    assert (asked, capsys.readouterr().out) == ([], first)
    # Only what is missing.
    main([*command, "--seeds", str(most + 1)])
    assert ("ns3", [most + 1]) in asked


def test_the_kernel_and_the_vectors_keep_nothing(capsys):
    assert main(["validate", "vectors", "--out", "kept"]) == 2
    assert capsys.readouterr().err == "aqumen: --out kept: only ns2 and ns3 keep runs\n"


def test_a_figure_outside_its_bound_fails(asked, capsys):
    asked.shift = 3.0
    assert main(["validate", "ns2", "--cell", "arm_exp1/PIpaper", "--seeds", "2", "--json"]) == 1
    out, err = capsys.readouterr()
    assert err == "aqumen: arm_exp1/PIpaper, 2 seeds: different, different (1/1)\n"
    told = json.loads(out)
    assert told["engine"] == "ns2"
    assert told["verdicts"] == {"equivalent": 7, "unclear": 0, "different": 2}
    assert set(told["bounds"]) == set(crosscheck.METRICS)
    different = [row for row in told["rows"] if row["verdict"] == "different"]
    assert {(row["metric"], row["window"], row["difference"]) for row in different} == {
        ("queue_mean_pkts", "all", 3.0),
        ("queue_mean_pkts", "steady", 3.0),
    }


def test_against_ns3_ours_has_four_times_the_seeds(asked, capsys):
    assert main(["validate", "ns3", "--cell", "BBR", "--seeds", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(engine, seeds) for _, engine, seeds, _ in asked.jobs[1:]] == [
        ("packet", list(range(1, 9))),
        ("ns3", [1, 2]),
    ]
    assert told["engine"] == "ns3"
    assert {row["window"] for row in told["rows"]} == {"steady"}
    assert set(told["bounds"]) == set(with_ns3.METRICS)
    assert {(row["ours_n"], row["theirs_n"]) for row in told["rows"]} == {(8, 2)}
    assert main(["validate", "ns3", "--cell", "BBR", "--seeds", "2"]) == 0
    assert "  ns-3  " in capsys.readouterr().out


@pytest.mark.parametrize(("peer", "cells"), [("ns2", ["arm_exp1/PIpaper", "sctp/RED30"]), ("ns3", ["BBR"])])
def test_the_bar_is_full_when_all_runs_are_finished(asked, monkeypatch, peer, cells):
    bar = SimpleNamespace(total=None, done=0)

    class Bar:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def add_task(self, _, *, total, done):
            bar.total = total

        def update(self, _, *, description):
            pass

        def advance(self, _):
            bar.done += 1

    monkeypatch.setattr(verb.talk, "progress", Bar)
    assert main(["validate", peer, "--seeds", "2", *(word for cell in cells for word in ("--cell", cell))]) == 0
    assert bar.total == bar.done > 0


def test_twenty_seeds_unless_it_is_said(asked, capsys):
    assert main(["validate", "ns2", "--cell", "arm_exp1/AVQ", "--cell", "sctp/RED30"]) == 0
    assert [len(seeds) for _, _, seeds, _ in asked.jobs[1:]] == [20, 20, 20, 20]


def test_drawn_cells_stand_in_the_place_of_the_listed(asked, capsys):
    assert main(["validate", "ns3", "--drawn", "7", "2", "--seeds", "2"]) == 0
    _, err = capsys.readouterr()
    labels = [cell.name for cell in with_ns3.drawn(7, 2)]
    assert err.splitlines() == [f"aqumen: {name}, 2 seeds: equivalent ({k}/2)" for k, name in enumerate(labels, 1)]
    # One of them again.
    asked.jobs.clear()
    assert main(["validate", "ns3", "--drawn", "7", "2", "--seeds", "2", "--cell", "drawn 7.2"]) == 0
    assert len(asked.jobs) == 1 + 2


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["ns2", "--seeds", "1"], "--seeds 1: must be at least 2"),
        (["live", "--seeds", "0"], "--seeds 0: must be at least 2"),
        (["ns3", "--drawn", "7", "0"], "--drawn 7 0: needs ns3, a seed from 0 and at least 1 cell"),
        (["ns3", "--drawn", "-1", "2"], "--drawn -1 2: needs ns3, a seed from 0 and at least 1 cell"),
        (["ns2", "--drawn", "1", "1"], "--drawn 1 1: needs ns3, a seed from 0 and at least 1 cell"),
        (["ns3", "--cell", "nosuch"], "no cell `nosuch`; choose from: small windows/DropTail, "),
        (["live", "--cell", "nosuch"], "no cell `nosuch`; choose from: queue/PI, "),
    ],
)
def test_a_slip_is_one_line(asked, capsys, args, told):
    assert main(["validate", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"aqumen: {told}")
    assert err.count("\n") == 1


def test_a_seed_of_zero_and_one_cell_may_be_drawn(asked):
    assert main(["validate", "ns3", "--drawn", "0", "1", "--seeds", "2"]) == 0


def test_millions_of_seeds_are_a_slip_of_the_hand(asked, capsys):
    assert main(["validate", "ns2", "--seeds", "100000000"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert asked.jobs == []


def test_an_installed_package_has_no_networks_to_compare_on(asked, capsys, monkeypatch):
    monkeypatch.setattr(verb, "folder", lambda: None)
    assert main(["validate", "ns3"]) == 2
    assert capsys.readouterr().err == (
        "aqumen: validate ns3: needs a checkout of Aqumen, since an installed package lacks the networks; a "
        "single scenario runs with --engine ns3\n"
    )


@pytest.mark.parametrize(("yardstick", "cells"), [("ns2", with_ns2), ("ns3", with_ns3), ("live", live)])
def test_cells_are_listed(capsys, yardstick, cells):
    assert main(["validate", yardstick, "--list"]) == 0
    names = [cell.name for cell in cells.CELLS]
    assert capsys.readouterr().out.splitlines() == names
    assert main(["validate", yardstick, "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == names


# The kernel.


@pytest.fixture
def kernel(monkeypatch, asked):
    """Rows in the place of the kernel's runs: `rows[cell name]`, equivalent unless it is said."""
    noted = SimpleNamespace(rows={}, asked=[], stop=None)

    def row(verdict, metric="window_pkts"):
        return crosscheck.Row("window", "x", "steady", metric, 1, 0, 9, 1, 0, 3, 0, -0.01, 0.01, 0.05, verdict)

    def validate(cells, base, repeats, say):
        noted.asked.append(([cell.name for cell in cells], base.name, repeats))
        for cell in cells:
            if cell.name == noted.stop:
                raise KeyboardInterrupt
            yield cell, noted.rows.get(cell.name, [row("equivalent"), row("-", "rtt_s")])

    noted.row = row
    monkeypatch.setattr(live, "validate", validate)
    return noted


def test_the_kernel_runs_three_times(kernel, capsys):
    assert main(["validate", "live", "--cell", "queue"]) == 0
    names = [cell.name for cell in live.CELLS if cell.experiment == "queue"]
    assert kernel.asked == [(names, "validation", 3)]
    out, err = capsys.readouterr()
    assert err.splitlines() == [f"aqumen: {name}: equivalent ({k}/7)" for k, name in enumerate(names, 1)]
    assert "  kernel  " in out.splitlines()[0]
    assert len(out.splitlines()) == 1 + 2 * 7 + 1
    assert main(["validate", "live", "--cell", "queue/PI", "--seeds", "5", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert kernel.asked[-1][2] == 5
    assert (told["engine"], set(told["bounds"])) == ("live", set(live.BOUNDS))
    assert told["verdicts"] == {"equivalent": 1, "unclear": 0, "different": 0}


def test_a_kernel_that_differs_or_does_not_count_fails(kernel, capsys):
    kernel.rows["queue/PI"] = [kernel.row("different"), kernel.row("unclear"), kernel.row("-")]
    assert main(["validate", "live", "--cell", "queue/PI", "--cell", "queue/STPI"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "aqumen: queue/PI: different, unclear (1/2)",
        "aqumen: queue/STPI: equivalent (2/2)",
    ]
    # Nothing that counts is no agreement.
    kernel.rows["queue/PI"] = []
    assert main(["validate", "live", "--cell", "queue/PI", "--cell", "queue/STPI"]) == 1
    assert capsys.readouterr().err.splitlines()[0] == "aqumen: queue/PI: no valid runs (1/2)"


def test_a_kernel_that_is_stopped_tells_what_is_finished(kernel, capsys):
    kernel.stop = "queue/STPI"
    assert main(["validate", "live", "--cell", "queue"]) == 130
    out, err = capsys.readouterr()
    assert err.splitlines() == ["aqumen: queue/PI: equivalent (1/7)"]
    assert len(out.splitlines()) == 1 + 2 + 1


# Vectors.


def test_a_vector_that_is_not_met_fails(capsys, monkeypatch):
    equal = _vectors.Replay("one", "pi", 7, 0.25, "equal")
    monkeypatch.setattr(_vectors, "replay", lambda: [equal])
    assert main(["validate", "vectors"]) == 0
    assert capsys.readouterr().out == _vectors.table([equal])
    assert main(["validate", "vectors", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == _vectors.report([equal])
    different = _vectors.Replay("two", "red", 3, 8.0, "different")
    monkeypatch.setattr(_vectors, "replay", lambda: [equal, different])
    assert main(["validate", "vectors"]) == 1
    assert capsys.readouterr().out == _vectors.table([equal, different])
