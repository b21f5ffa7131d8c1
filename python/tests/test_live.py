"""The engine `live`: real runs of the kernel's TCP, as root on Linux; without it, one line of refusal."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import machine
import pytest

import aqumen
from aqumen.engines import run_one
from aqumen.engines.external import live
from aqumen.engines.external.live import crosscheck
from aqumen.scenario import Scenario

pytestmark = pytest.mark.alone

VALIDATION = Path(__file__).parents[2] / "validation"

can_run = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or not os.path.exists("/dev/net/tun"),
    reason="the engine live needs Linux, root and /dev/net/tun",
)


def short(seconds=4):
    scenario = Scenario.load(VALIDATION / "live" / "queue.toml")
    return scenario.set_all([("duration", f"{seconds}s"), ("windows.steady", "2s")])


@pytest.fixture
def instead(tmp_path, monkeypatch):
    """Puts a shell script in the place of aqumend."""

    def put(*lines):
        program = tmp_path / "aqumend"
        program.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        program.chmod(0o755)
        monkeypatch.setattr("shutil.which", lambda *_args, **_kwargs: str(program))

    return put


def answered(valid):
    """Last line of a script."""
    told = f'{{"links": {{}}, "flows": {{}}, "host": {{"valid": {valid}}}}}'
    return f"""echo '{{"result": {told}, "curves": {{"series": {{}}, "sojourn": {{}}, "queue": {{}}}}}}'"""


@can_run
def test_a_live_run_has_what_every_run_has_and_its_host():
    heard = []
    answer = run_one(short(), ("codel", 2), "live", progress=lambda share: heard.append(share) is None)
    result = aqumen.Result(answer)
    packet = aqumen.run(short(), "codel", 2)
    assert result.engine == "live"
    assert result.seed == 2
    assert {*packet.data, "host"} == {*result.data}
    assert set(packet.link()) == set(result.link())
    assert set(packet.flow_group("ftp")) == set(result.flow_group("ftp"))
    assert result.data["host"]["congestion"] == {"ftp": "reno"}
    assert result.data["host"]["valid"] == (not result.data["host"].get("invalid_because"))
    assert 0.5 < result.link()["utilization"] <= 1.0
    assert len(result.series().t_s) == len(packet.series().t_s)
    assert result.queue_cdf().share[-1] == pytest.approx(1.0)
    assert result.sojourn_cdf().share[-1] == pytest.approx(1.0)
    assert heard == sorted(heard)
    assert len(heard) > 10


@can_run
def test_one_report_lays_four_engines_over_one_another(tmp_path):
    engines = ["packet", "fluid", "theory", "live"]
    comparison = aqumen.compare(short(), ["pi"], seeds=1, engine=engines)
    assert {run.engine for run in comparison.results} == set(engines)
    # Each of the others against the packet engine: how far apart their mean queues and their curves are.
    comparison.write_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    overlay = text[text.index("Comparison of engines") :]
    for engine in engines:
        assert f"pi ({engine})" in overlay


@can_run
def test_films_that_adapt_are_watched_as_in_the_packet_engine():
    """Two viewers with 3 Mbit/s each: the film's steps of 0.5 and 1 Mbit/s are well within .8 of that, 8 is beyond."""
    text = """
        name = "films"
        duration = "10s"
        aqm = "fq-codel"
        [windows]
        steady = "4s"
        [topology]
        preset = "dumbbell"
        bottleneck = { rate = "6Mbit", delay = "10ms", buffer = "200pkt" }
        access = { rate = "1Gbit", delay = "5ms" }
        [[flows]]
        name = "film"
        count = 2
        transport = "linux"
        [flows.traffic]
        kind = "adaptive-video"
        ladder = ["500kbit", "1Mbit", "8Mbit"]
        segment = "1s"
        play_at = "2s"
        buffer = "4s"
    """
    scenario = Scenario.parse(text, "films")
    packet = json.loads(run_one(scenario, (None, 1), "packet").json)
    live_run = machine.counted(lambda: json.loads(run_one(scenario, (None, 1), "live").json), lambda run: run["host"])
    ours, kernel = (result["flows"]["film"] for result in (packet, live_run))
    assert ours["all"].keys() == kernel["all"].keys()
    for key in ("video_began", "video_stalls", "video_switches"):
        assert (key, kernel["all"][key]) == (key, ours["all"][key])
    assert kernel["all"]["video_startup_mean_s"] == pytest.approx(ours["all"]["video_startup_mean_s"], rel=0.25)
    assert kernel["steady"]["video_bitrate_mean_bps"] == ours["steady"]["video_bitrate_mean_bps"] == 1e6
    assert kernel["steady"]["goodput_bps"] == pytest.approx(ours["steady"]["goodput_bps"], rel=0.2)


@can_run
def test_media_over_rtp_fare_as_in_the_packet_engine():
    """Three senders that follow TCP's equation share 2 Mbit/s: rate, delay and loss are a loop of RTCP and queue."""
    text = """
        name = "media"
        duration = "10s"
        aqm = "droptail"
        [windows]
        steady = "4s"
        [topology]
        preset = "dumbbell"
        bottleneck = { rate = "2Mbit", delay = "20ms", buffer = "60pkt" }
        access = { rate = "100Mbit", delay = "2ms" }
        [[flows]]
        name = "media"
        count = 3
        start = ["0s", "300ms"]
        transport = "rtp-tfrc"
    """
    scenario = Scenario.parse(text, "media")
    packet = json.loads(run_one(scenario, (None, 1), "packet").json)
    live_run = machine.counted(lambda: json.loads(run_one(scenario, (None, 1), "live").json), lambda run: run["host"])
    ours, kernel = (run["flows"]["media"]["steady"] for run in (packet, live_run))
    assert kernel["goodput_bps"] == pytest.approx(ours["goodput_bps"], rel=0.05)
    assert kernel["delay_mean_s"] == pytest.approx(ours["delay_mean_s"], rel=0.1)
    assert kernel["rtt_mean_s"] == pytest.approx(ours["rtt_mean_s"], rel=0.1)
    assert kernel["loss_ratio"] == pytest.approx(ours["loss_ratio"], abs=0.015)
    assert ours["loss_ratio"] > 0.02


@can_run
def test_a_live_run_stops_when_nobody_wants_it():
    with pytest.raises(aqumen.Cancelled):
        run_one(short(60), (None, 1), "live", progress=lambda share: False)


def test_what_the_kernel_cannot_do_is_refused_in_one_line():
    scenario = short().set("flows.ftp.transport", "sctp")
    with pytest.raises(aqumen.EngineError, match=r"^[^\n]+$"):
        run_one(scenario, (None, 1), "live")


@pytest.mark.parametrize("late", [1, 2])
def test_a_run_that_was_late_is_repeated_once(tmp_path, instead, late):
    """A program whose first `late` runs do not count."""
    calls = tmp_path / "calls"
    instead(
        f"cat >/dev/null; echo run >>{calls}; for share in 0.5 1; do echo progress $share >&2; done",
        f"if [ $(wc -l <{calls}) -le {late} ]; then {answered('false')}; else {answered('true')}; fi",
    )
    heard = []
    result = live.run(short(), (None, 1), lambda share: heard.append(share) is None)
    assert json.loads(result.json)["host"]["valid"] == (late == 1)
    assert calls.read_text().count("run") == 2
    assert heard == sorted(heard)


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (
            "echo 'aqumend: this machine sleeps' >&2; echo 'aqumend: may not make a namespace' >&2",
            "may not make a namespace",
        ),
        ("", "aqumend ended with code 3"),
    ],
)
def test_a_program_that_fails_has_the_last_word(instead, says, told):
    instead("cat >/dev/null", says, "exit 3")
    with pytest.raises(live.LiveError) as failed:
        live.run(short(), (None, 1))
    assert str(failed.value) == told


def test_a_program_that_ends_before_it_has_read_all_is_heard(instead):
    instead("echo 'aqumend: needs root' >&2", "exit 1")
    # More than a pipe holds.
    scenario = short().set("title", f'"{"x" * 1_000_000}"')
    with pytest.raises(live.LiveError, match=r"^needs root$"):
        live.run(scenario, (None, 1))


def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(live.LiveError, match="aqumend"):
        live.find_program()


def test_every_cell_of_the_comparison_is_a_scenario_that_runs():
    for cell in crosscheck.CELLS:
        scenario = Scenario.load(VALIDATION / cell.scenario).set_all(list(cell.settings))
        scenario.check_aqm(cell.aqm)


def test_a_window_is_what_is_under_way_per_flow():
    cell = next(cell for cell in crosscheck.CELLS if cell.experiment == "window")
    # 48 Mbit/s and 100 ms are 400 packets of 12 000 bits, 10 for each of 40 flows.
    result = {"flows": {"ftp": {"steady": {"throughput_bps": 48e6, "goodput_bps": 46e6, "rtt_mean_s": 0.1}}}}
    assert crosscheck.figures(cell, result)["window_pkts"] == pytest.approx(10.0)


def test_a_run_that_is_repeated_has_the_machine_to_itself(tmp_path, instead):
    """A program that counts only where no other of its kind runs; two are begun at once."""
    here = tmp_path / "here"
    here.mkdir()
    instead(
        f"cat >/dev/null; touch {here}/$$ {tmp_path}/began.$$",
        # The first two wait for each other.
        f"until [ $(ls {tmp_path}/began.* | wc -l) -ge 2 ]; do sleep .01; done; valid=true",
        f"for i in 1 2 3 4 5; do [ $(ls {here} | wc -l) = 1 ] || valid=false; sleep .02; done; rm {here}/$$",
        f"if [ $valid = true ]; then {answered('true')}; else {answered('false')}; fi",
    )
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda seed: live.run(short(), (None, seed)), (1, 2)))
    assert [json.loads(result.json)["host"]["valid"] for result in results] == [True, True]
    assert len(list(tmp_path.glob("began.*"))) == 4
