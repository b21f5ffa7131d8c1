"""Runs of hours are refused before they begin, in one line with the accepted value; long runs are announced."""

import struct

import pytest

import aqumen
from aqumen import engines
from aqumen.cli import main

FAST = ("--set", "duration=24h", "--set", "bottleneck.rate=10Gbit", "--set", "access.rate=10Gbit")
SHORT = ("--set", "bottleneck.delay=10ns", "--set", "access.delay=10ns", "--set", "bottleneck.rate=100Gbit")


@pytest.fixture
def told(capsys, tmp_path, monkeypatch):
    """The one line that says why a command could not run."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        assert main(list(args)) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err.count("\n")) == ("", 1)
        return captured.err

    return run


@pytest.mark.parametrize(
    ("args", "expect"),
    [
        (("run", "--aqm", "fq-pie:interval=1us"), ('aqm = "fq-pie:interval=1us"', "interval = 10us is accepted")),
        (("compare", "--aqm", "pi,fq-pie:interval=1us"), ("interval = 10us is accepted",)),
        (("run", *FAST), ('duration = "24h"', "packets", "is accepted")),
        (("run", "--aqm", "pi", "--engine", "fluid", *SHORT), ("duration", "steps", "is accepted")),
        (("compare", "--aqm", "pi", "--engine", "fluid", *SHORT), ("duration", "steps")),
    ],
)
def test_what_takes_hours_is_refused_with_what_is_accepted(told, args, expect):
    line = told(args[0], "arm-pfc/exp1", *args[1:])
    assert all(part in line for part in (*expect, "--force runs it")), line


def test_other_simulators_are_foreseen_by_how_slow_they_are():
    scenario = aqumen.Scenario.load("arm-pfc/exp1")
    estimate_time = engines.estimate_time
    assert estimate_time(scenario, ["pi"], "ns2") is None
    # 100 s of 1000 packets/s: ours takes milliseconds, ns-3 seconds.
    assert estimate_time(scenario, ["pi"], "packet", 20) is None
    assert estimate_time(scenario, ["pi"], "ns3", 20).startswith("this takes about ")
    assert estimate_time(scenario.set("duration", "1000s"), ["pi"], "ns2", 100).startswith("this takes about ")
    with pytest.raises(aqumen.ScenarioError, match=r"duration.*is accepted.*--force runs it"):
        estimate_time(scenario.set("duration", "80000s").set("bottleneck.rate", "50Mbit"), ["pi"], "ns3")


def test_a_model_that_takes_long_says_so(tmp_path, capsys, monkeypatch):
    from aqumen.cli import mmpp

    (tmp_path / "small.toml").write_text(
        'name = "small"\n[queue]\nbuffer = "20pkt"\nservice = "100pkt/s"\n[[sources]]\nname = "calls"\n'
        'minisources = { count = 20, on = "400ms", off = "600ms", rate = "0.2pkt/s" }\n'
    )
    assert main(["mmpp", str(tmp_path / "small.toml")]) == 0
    assert "takes about" not in capsys.readouterr().err
    monkeypatch.setattr(mmpp, "LONG_S", 0.0)
    assert main(["mmpp", str(tmp_path / "small.toml")]) == 0
    assert "this takes about 1 s and 1 MB of memory" in capsys.readouterr().err


def test_a_map_has_so_many_points():
    from aqumen.theory import design, stability_map

    found = design("red", capacity="10Mbit", flows=100, rtt="200ms", target="100pkt")
    with pytest.raises(aqumen.ScenarioError, match="2000 by 1000 points: must have at most 1000000"):
        stability_map(found, "flows", [1.0] * 2000, "rtt", [0.1] * 1000)


def test_who_wants_it_gets_it():
    scenario = aqumen.Scenario.load("arm-pfc/exp1")
    with pytest.raises(aqumen.ScenarioError, match="interval = 10us is accepted"):
        aqumen.run(scenario, "fq-pie:interval=1us")
    with pytest.raises(aqumen.Cancelled):
        aqumen.run(scenario, "fq-pie:interval=1us", on_progress=lambda _: False, force=True)
    with pytest.raises(aqumen.ScenarioError, match="--force runs it"):
        engines.run_one(scenario, ("fq-pie:interval=1us", 1), "packet")
    assert "about 4 minutes" in engines.estimate_time(scenario, ["fq-pie:interval=1us"], "packet", force=True)


def test_what_takes_long_is_said():
    scenario = aqumen.Scenario.load("arm-pfc/exp1")
    assert engines.estimate_time(scenario, ["pi"], "packet") is None
    said = engines.estimate_time(scenario, ["pi", "red"], "packet", 10_000)
    assert said.startswith("this takes about ")
    assert said.endswith("packets")
    assert "for 20000 runs" in said


def test_updates_over_a_long_capture(told, tmp_path):
    frame = bytes(12) + b"\x08\x00" + bytes.fromhex("4500001c0000000040110000 0a000001 0a000002 00010002 00080000")
    packets = b"".join(struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame for at in (0, 300))
    (tmp_path / "two.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + packets)
    line = told("replay", "two.pcap", "--rate", "1Mbit", "--aqm", "fq-pie:interval=1us")
    assert "interval = 1ms is accepted" in line or "interval = 10us is accepted" in line, line


def test_a_model_of_too_many_states(told, tmp_path):
    (tmp_path / "large.toml").write_text(
        'name = "large"\n[queue]\nbuffer = "900000pkt"\nservice = "100pkt/s"\nstages = 2\n[[sources]]\nname = "calls"\n'
        'minisources = { count = 2000, on = "400ms", off = "600ms", rate = "0.2pkt/s" }\n'
    )
    line = told("mmpp", "large.toml")
    assert "hours" in line or "GiB" in line, line
