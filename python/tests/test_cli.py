"""The command line: what each verb prints, where it prints it, and its exit code."""

import json
import os
import re
import signal

import pytest
from snapshot import check_json, check_text

import aqumen
from aqumen.engines import ENGINES


def test_version(aqumen_cli):
    assert aqumen_cli("--version") == (0, f"aqumen {aqumen.__version__}\n", "")


def test_help_of_run_names_every_engine(aqumen_cli):
    _, out, _ = aqumen_cli("run", "--help")
    named = re.search(r"--engine ENGINE(.*?)\[default", out, re.DOTALL)[1]
    assert [engine for engine in ENGINES if not re.search(rf"\b{engine}\b", named)] == []


def test_run_prints_tables(aqumen_cli, scenario_file):
    code, out, err = aqumen_cli("run", scenario_file, "--aqm", "pi")
    assert (code, err) == (0, "")
    check_text("run.txt", out)


def test_run_prints_json(aqumen_cli, scenario_file):
    code, out, err = aqumen_cli("run", scenario_file, "--aqm", "pi", "--seed", "3", "--json")
    assert (code, err) == (0, "")
    check_json("run.json", out)


def test_run_tells_of_calls_and_transfers_where_there_are_any(aqumen_cli, scenario_file, fake_core, monkeypatch):
    group = fake_core.RunResult.group

    def with_calls(self, window):
        return {**group(self, window), "delay_mean_s": 0.0312, "loss_ratio": 0.25, "mos": 4.155}

    monkeypatch.setattr(fake_core.RunResult, "group", with_calls)
    code, out, _ = aqumen_cli("run", scenario_file, "--aqm", "pi")
    assert code == 0
    assert re.search(r"^ftp, steady +31\.2 +4\.1[56] +25\.00$", out, re.MULTILINE)
    assert "Frames lost" not in out
    assert re.search(r"^ftp, steady +10 to 100 kB +40 +0\.500 ", out, re.MULTILINE)


def test_compare_prints_a_ranking(aqumen_cli, scenario_file):
    code, out, err = aqumen_cli("compare", scenario_file, "--aqm", "droptail", "--aqm", "pi", "--seeds", 5)
    assert (code, err) == (0, "")
    check_text("compare.txt", out)


def test_of_one_seed_a_comparison_says_how_little_it_is(aqumen_cli, scenario_file):
    alone, several = (
        aqumen_cli("compare", scenario_file, "--aqm", "droptail", "--aqm", "pi", "--seeds", n)[1] for n in (1, 2)
    )
    little, much = "One seed gives no confidence intervals", "Means over the seeds and 95 % intervals"
    assert (little in alone, much in alone, "±" in alone) == (True, False, False)
    assert (little in several, much in several) == (False, True)
    # Nobody is told apart from nobody by a single seed, so nobody is marked.
    assert not re.search(r"^\d=", alone, re.MULTILINE)


def test_compare_prints_json(aqumen_cli, scenario_file):
    code, out, err = aqumen_cli("compare", scenario_file, "--aqm", "droptail", "--aqm", "pi", "--seeds", 3, "--json")
    assert (code, err) == (0, "")
    check_json("compare.json", out)


@pytest.mark.parametrize("kind", ["aqms", "transports", "traffic", "papers"])
def test_list(aqumen_cli, kind):
    code, out, _ = aqumen_cli("list", kind)
    assert code == 0
    check_text(f"list-{kind}.txt", out)
    code, out, _ = aqumen_cli("list", kind, "--json")
    assert code == 0
    check_json(f"list-{kind}.json", out)


def test_list_scenarios_says_what_there_is(aqumen_cli, scenario_file, tmp_path, monkeypatch):
    folder = tmp_path / "experiments" / "paper"
    folder.mkdir(parents=True)
    scenario_file.rename(folder / "one.toml")
    (folder / "bad.toml").write_text("durration = 1\n")
    monkeypatch.chdir(tmp_path)
    code, out, err = aqumen_cli("list", "scenarios", "--json")
    assert code == 0
    (row,) = json.loads(out)["scenarios"]
    assert row == {
        "name": "paper/one",
        "title": "Twelve endless transfers over one congested link",
        "paper": "paper",
        "file": "experiments/paper/one.toml",
        "duration": "100s",
        "aqm": "droptail",
        "cells": [],
        "variants": [],
        "formerly": {},
    }
    assert "skipped: experiments/paper/bad.toml:1: unknown key `durration`" in err


def test_an_empty_folder_of_experiments_is_told(aqumen_cli, tmp_path, monkeypatch):
    (tmp_path / "experiments").mkdir()
    monkeypatch.chdir(tmp_path)
    assert aqumen_cli("list", "scenarios") == (0, "", "aqumen: no scenarios found\n")


def test_a_reader_that_has_gone_is_no_failure(aqumen_cli, monkeypatch):
    # As `head` does.
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        code, _, err = aqumen_cli("list", "aqms", "--json")
    assert (code, err) == (0, "")


def test_list_says_what_else_there_is_to_know(aqumen_cli):
    said = {kind: " ".join(aqumen_cli("list", kind)[2].split()) for kind in ("aqms", "transports", "traffic", "papers")}
    for kind in ("aqms", "transports", "traffic"):
        assert f"descriptions of the parameters: aqumen list {kind} --json" in said[kind]
    assert "every single-queue AQM also takes: " in said["aqms"]
    assert "also takes" not in said["transports"] + said["traffic"]
    # Papers have no parameters, and only scenarios are run by their name.
    assert said["papers"] == ""
    assert not any("run a scenario" in each for each in said.values())
    _, out, err = aqumen_cli("list", "scenarios")
    said = " ".join(err.split())
    assert "run a scenario: aqumen run arm-pfc/exp1" in said
    assert "former names that still work: " in said
    assert "also takes" not in said
    assert "Parameters" not in out


@pytest.mark.parametrize("name", ["paper/shipped", "paper/shipped.toml", "experiments/paper/shipped.toml"])
def test_what_is_no_file_is_looked_up_among_the_experiments_of_the_package(aqumen_cli, tmp_path, monkeypatch, name):
    # An installed package has no folder of experiments beside it.
    monkeypatch.setattr("aqumen._experiments.folder", lambda: None)
    code, out, _ = aqumen_cli("run", name, "--json")
    assert code == 0
    assert json.loads(out)["scenario"] == "mock"
    code, _, err = aqumen_cli("run", "paper/shiped")
    assert code == 2
    assert "paper/shiped: no such file or experiment; did you mean paper/shipped?" in err


@pytest.mark.parametrize(
    ("args", "expect"),
    [
        (["run", "absent.toml"], "absent.toml: no such file"),
        (["run", "{binary}"], "not a text file"),
        (["run", "{misspelt}"], "unknown key `durration`; did you mean `duration`?"),
        (["run", "{good}", "--aqm", "px"], "unknown AQM `px`; did you mean `pi`?"),
        (["run", "{good}", "--set", "duration"], "--set duration: write it as KEY=VALUE"),
        (["run", "{good}", "--set", "duratoin=3s"], "unknown key; did you mean `duration`?"),
        (["run", "{good}", "--seed", "-1"], "seed -1: must be 0 to"),
        (["run", "{good}", "--seed", "one"], "--seed"),
        (
            ["run", "{good}", "--engine", "pakcet"],
            "unknown engine `pakcet`; did you mean packet? choose from: packet, fluid, theory, live",
        ),
        (["run", "{good}", "--engine", "fluid:tcp"], "unknown fluid model `tcp`; choose from: hollot, ecn, reno, drop"),
        (["run", "{good}", "--engine", "fluid", "--pcap", "x.pcapng"], "engine `fluid` knows no packets"),
        (["run", "{good}", "--out", "{good}"], "must be a folder"),
        (["run", "{good}", "--pcap", "{good}.d/x.pcapng"], "does not exist"),
        (["run"], "SCENARIO"),
        (["compare", "{good}"], "no AQM to compare"),
        (["compare", "{good}", "--aqm", "pi", "--aqm", "pi"], "AQM `pi` is named twice"),
        (["compare", "{good}", "--aqm", "pi", "--seeds", "0"], "seeds = 0: must be 1 to 100000"),
        (["compare", "{good}", "--aqm", "pi", "--seeds", "1000000"], "seeds = 1000000"),
        (["list", "aqm"], "aqm"),
        (["validate", "ns4"], 'invalid value "ns4"; did you mean ns3? choose from: ns2, ns3, vectors'),
        (["validate", "ns2", "--seeds", "1"], "must be at least 2"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_what_cannot_run_says_why_in_one_line(aqumen_cli, scenario_file, tmp_path, args, expect):
    binary, misspelt = tmp_path / "binary.toml", tmp_path / "misspelt.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    misspelt.write_text("durration = 3\n")
    places = {"good": scenario_file, "binary": binary, "misspelt": misspelt}
    code, out, err = aqumen_cli(*(arg.format(**places) for arg in args))
    assert (code, out) == (2, "")
    assert err.startswith("aqumen: ")
    assert expect in err
    assert err.count("\n") == 1


def test_no_ns2_on_this_machine(aqumen_cli, scenario_file, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("AQUMEN_NS2", raising=False)
    code, out, err = aqumen_cli("run", scenario_file, "--engine", "ns2")
    assert (code, out) == (2, "")
    assert "ns-2 is not installed" in err
    assert err.count("\n") == 1


def test_too_little_memory(aqumen_cli, scenario_file, fake_core, monkeypatch):
    monkeypatch.setattr(fake_core.Scenario, "memory_floor", lambda self: 1 << 60)
    code, _, err = aqumen_cli("run", scenario_file)
    assert code == 2
    assert "MiB of memory and 1024 MiB are free" in err


def test_run_writes_its_result(aqumen_cli, scenario_file, tmp_path):
    out = tmp_path / "out"
    code, printed, err = aqumen_cli("run", scenario_file, "--aqm", "pi", "--out", out, "--json")
    assert code == 0
    assert str(out / "runs") in err
    (line,) = next((out / "runs").iterdir()).read_text().splitlines()
    assert json.loads(line)["data"]["run"] == json.loads(printed)
    assert (out / "scenario.toml").read_text() == scenario_file.read_text()


def test_run_writes_packets(aqumen_cli, scenario_file, tmp_path):
    code, _, _ = aqumen_cli("run", scenario_file, "--pcap", tmp_path / "trace.pcapng")
    assert code == 0
    # The first four bytes of any pcapng file.
    assert (tmp_path / "trace.pcapng").read_bytes() == bytes.fromhex("0a0d0d0a")


def test_compare_writes_report_and_all_runs(aqumen_cli, scenario_file, tmp_path):
    out = tmp_path / "out"
    code, printed, err = aqumen_cli(
        "compare", scenario_file, "--aqm", "pi", "--aqm", "red", "--seeds", 2, "--out", out, "--json"
    )
    assert code == 0
    assert f"wrote {out / 'report.html'}" in err
    (runs,) = (out / "runs").iterdir()
    stored = [json.loads(line)["data"]["run"] for line in runs.read_text().splitlines()]
    assert {(run["aqm"]["name"], run["seed"]) for run in stored} == {(a, s) for a in ("pi", "red") for s in (1, 2)}
    assert (out / "compare.json").read_text() == printed
    command = f"aqumen compare {scenario_file} --aqm pi --aqm red --seeds 2 --out {out} --json"
    assert command in (out / "report.html").read_text()


def test_a_second_compare_repeats_nothing(aqumen_cli, scenario_file, tmp_path, fake_core, monkeypatch):
    args = ("compare", scenario_file, "--aqm", "pi", "--seeds", 3, "--out", tmp_path / "out", "--json")
    _, first, _ = aqumen_cli(*args)
    from aqumen import _core

    monkeypatch.setattr(_core, "run_many", lambda *_: pytest.fail("nothing was left to run"))
    code, second, err = aqumen_cli(*args)
    assert code == 0
    assert "3 of 3 runs are already in" in err
    assert second == first


def test_interrupt_keeps_what_is_finished(aqumen_cli, scenario_file, tmp_path, fake_core, monkeypatch):
    from aqumen import _core

    def run_many(scenario, jobs, threads, on_done):
        for index, job in enumerate(jobs):
            if index == 3:
                signal.raise_signal(signal.SIGINT)
            assert on_done(index, fake_core.RunResult(scenario, *job))

    monkeypatch.setattr(_core, "run_many", run_many)
    out = tmp_path / "out"
    args = ("compare", scenario_file, "--aqm", "pi", "--aqm", "red", "--seeds", 4, "--out", out, "--json")
    code, printed, err = aqumen_cli(*args)
    assert code == 130
    assert "stopped: 3 of 8 runs are finished; repeat the command to continue" in err
    comparison = json.loads(printed)
    assert comparison["runs"] == {"wanted": 8, "finished": 3}
    # Seed by seed: pi 1, red 1, pi 2.
    assert comparison["aqms"]["pi"]["seeds"] == [1, 2]
    assert comparison["aqms"]["red"]["seeds"] == [1]
    assert "3 of 8 runs, stopped early" in (out / "report.html").read_text()
    assert not list(out.rglob("*.part"))

    monkeypatch.setattr(_core, "run_many", fake_core.run_many)
    code, printed, err = aqumen_cli(*args)
    assert code == 0
    assert "3 of 8 runs are already in" in err
    assert json.loads(printed)["runs"] == {"wanted": 8, "finished": 8}


def test_interrupt_before_the_first_run_prints_nothing(aqumen_cli, scenario_file, monkeypatch):
    from aqumen import _core

    monkeypatch.setattr(_core, "run_many", lambda *_: signal.raise_signal(signal.SIGINT))
    code, out, err = aqumen_cli("compare", scenario_file, "--aqm", "pi")
    assert (code, out) == (130, "")
    assert "stopped: 0 of 20 runs are finished" in err


def test_interrupt_handler_is_put_back(aqumen_cli, scenario_file):
    before = signal.getsignal(signal.SIGINT)
    aqumen_cli("compare", scenario_file, "--aqm", "pi", "--seeds", 1)
    assert signal.getsignal(signal.SIGINT) is before
