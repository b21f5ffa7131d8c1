"""`aqumen mmpp` and `aqumen.mmpp`: the answer, its tables, its plot, captures, and one-line errors."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snapshot import check_text

from aqumen import Scenario, ScenarioError, mmpp
from aqumen.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples" / "mmpp"
REFERENCE = EXAMPLES / "reference.toml"


@pytest.fixture
def cli(capsys):
    def run(*args):
        code = main(["mmpp", *map(str, args)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """100 s of packets: 1000/s for 0.5 s and 100/s for 0.5 s on average, times in seconds and sizes in bytes."""
    rng, path, t, rate = random.Random(1), tmp_path_factory.mktemp("mmpp") / "packets.csv", 0.0, 1000.0
    lines, change = ["time,bytes"], 0.5
    while t < 100:
        t += rng.expovariate(rate)
        if t > change:
            t, rate = change, 1100.0 - rate
            change += rng.expovariate(2.0)
            continue
        lines.append(f"{t:.9f},{rng.choice([64, 1500])}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_reference_case(cli):
    code, out, err = cli(REFERENCE, "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["schema"] == 1
    assert f"{data['total']['loss_ratio']:.8f}" == "0.01597784"
    assert f"{data['total']['delay_mean_s'] * 1e3:.6f}" == "5.361106"
    assert list(data["sources"]) == ["video", "multimedia", "www", "ftp"]
    assert [f"{source['loss_ratio']:.6f}" for source in data["sources"].values()] == [
        "0.017880",
        "0.012533",
        "0.020026",
        "0.014620",
    ]
    assert len(data["occupancy"]) == 21
    assert sum(data["occupancy"]) == pytest.approx(1, abs=1e-12)
    longer = data["delay_distribution"]["share_longer"]["total"]
    assert longer[0] == 1
    assert longer == sorted(longer, reverse=True)
    assert longer[-1] == pytest.approx(1e-4, rel=0.5)


def test_the_page_names_every_key_of_the_answer(capture):
    page = (EXAMPLES.parents[1] / "docs" / "formats" / "mmpp.md").read_text()
    queue = {"queue.buffer": '"30pkt"', "queue.link": '"5Mbit"', "simulate.duration": '"10s"', "simulate.seeds": "2"}
    data = mmpp.predict(capture, queue, simulate=True).data
    data["early"] = mmpp.solve(EXAMPLES / "marks.toml").data["early"]
    missing = set()

    def look(value):
        if isinstance(value, dict):
            for key, below in value.items():
                if key != "trace" and f"`{key}`" not in page and f".{key}`" not in page and f"`{key}." not in page:
                    missing.add(key)
                look(below)
        elif isinstance(value, list):
            for below in value:
                look(below)

    look(data)
    assert missing == set()


def test_tables_for_people(cli):
    code, out, err = cli(REFERENCE)
    assert (code, err) == (0, "")
    check_text("mmpp.txt", out)


def test_every_example_is_solved(cli):
    for path in sorted(EXAMPLES.glob("*.toml")):
        code, out, err = cli(path, "--json")
        assert (code, err) == (0, ""), path
        assert 0 < json.loads(out)["total"]["loss_ratio"] < 0.2, path


def test_the_presets_have_as_many_states_as_their_names_say():
    states = {name: mmpp.solve(EXAMPLES / f"{name}.toml").data["states"] for name in ("paper16", "paper8")}
    # M (L m + 1) with L = 100, m = 4.
    assert states == {"paper16": 16 * 401, "paper8": 8 * 401}


def test_settings_change_the_model(cli):
    code, out, _ = cli(REFERENCE, "--buffer", "40pkt", "--set", "queue.stages=1", "--json")
    assert code == 0
    data = json.loads(out)
    assert data["queue"] == {"buffer_pkts": 40, "service_pps": 975.0, "stages": 1}


def test_a_simulation_beside_the_prediction(cli):
    settings = ("--set", "simulate.duration=100s", "--set", "simulate.seeds=5")
    code, out, _ = cli(EXAMPLES / "marks.toml", "--simulate", "--json", *settings)
    assert code == 0
    simulation = json.loads(out)["simulation"]
    assert simulation["seeds"] == 5
    loss = simulation["total"]["mark_ratio"]
    assert loss["n"] == 5
    assert loss["ci95"][0] < loss["mean"] < loss["ci95"][1]
    # Five runs of 100 s: t(0.9995, 4) = 8.61 standard errors, 5^0.5 = 2.236.
    assert abs(loss["mean"] - loss["predicted"]) < 8.61 * loss["std"] / 2.236
    code, out, _ = cli(EXAMPLES / "marks.toml", "--simulate", *settings)
    assert "Packet-level simulation: 5 runs of 100 s" in out
    assert "ftp, mark_ratio" in out


def test_thresholds_that_meet_a_target():
    data = mmpp.solve(EXAMPLES / "thresholds.toml").data
    assert data["early"] == {"action": "drop", "target_loss_ratio": 0.02}
    for name, source in data["sources"].items():
        assert 10 <= source["threshold_pkts"] <= 38, name
        assert source["loss_ratio"] <= 0.02 or any(name in warning for warning in data["warnings"])


def test_from_a_capture_to_a_predicted_loss(cli, capture, tmp_path):
    saved = tmp_path / "model.toml"
    code, out, err = cli(capture, "--buffer", "30pkt", "--link", "5Mbit", "--json", "--save", saved)
    assert (code, err) == (0, f"aqumen: wrote {saved}\n")
    data = json.loads(out)
    fit = data["fits"]["trace"]
    assert fit["bytes_mean"] == pytest.approx(782, rel=0.02)
    # 64 and 1500 bytes alike: scv = (718 / 782)^2 = 0.843, one stage.
    assert fit["bytes_scv"] == pytest.approx(0.843, rel=0.02)
    assert data["queue"]["stages"] == 1
    assert data["queue"]["service_pps"] == pytest.approx(5e6 / 8 / fit["bytes_mean"])
    assert fit["dispersion"]["rms_error"] < 0.15
    assert data["total"]["loss_ratio"] == pytest.approx(fit["replay"]["loss_ratio"], rel=0.25)
    # What was saved needs no capture and is the same model.
    again = mmpp.solve(saved).data
    assert again["total"]["loss_ratio"] == pytest.approx(data["total"]["loss_ratio"], rel=1e-9)
    code, out, _ = cli(capture, "--buffer", "30pkt", "--service", "800pkt/s")
    assert "index of dispersion" in out
    assert "the capture itself replayed into this queue: loss " in out


def test_plots(capture, tmp_path, cli):
    pytest.importorskip("matplotlib")
    figure = mmpp.predict(capture, {"queue.buffer": '"30pkt"', "queue.link": '"5Mbit"'}).plot()
    assert len(figure.axes) == 4
    for name in ("answer.png", "answer.svg"):
        code, _, err = cli(REFERENCE, "--plot", tmp_path / name)
        assert (code, err) == (0, f"aqumen: wrote {tmp_path / name}\n")
        assert (tmp_path / name).stat().st_size > 1000
    code, _, err = cli(REFERENCE, "--plot", tmp_path / "answer.docx")
    assert code == 2
    assert len(err.splitlines()) == 1


def test_the_python_interface():
    answer = mmpp.solve(REFERENCE, {"queue.stages": "2"})
    assert repr(answer).startswith("QueueAnalysis('reference', loss_ratio=0.0")
    assert answer.data["queue"]["stages"] == 2
    with pytest.raises(ScenarioError, match=r"reference\.toml: queue\.stages = 0: must be 1 to 10000"):
        mmpp.solve(REFERENCE, {"queue.stages": "0"})


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_ctrl_c_stops_a_long_solution(tmp_path):
    # Some seconds of work; had it gone on to its end, the answer would be there.
    settings = ["--simulate", "--set", "simulate.duration=24h"]
    # A job in the background inherits that Ctrl-C is ignored; the one under test is to stand in the foreground.
    foreground = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{foreground}; import sys; from aqumen.cli import main; sys.exit(main())"]
    process = subprocess.Popen([*command, "mmpp", REFERENCE, *settings], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out, b"Traceback" in err) == (130, b"", False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([("stages = 4", "stagse = 4")], "m.toml:8: queue.stagse: unknown key; did you mean stages?"),
        ([("[[-2.0, 2.0], [1.0, -1.0]]", "[[-2.0, 2.0], [0.0, 0.0]]")], "state 1 cannot be reached from state 2"),
        ([("[[-2.0, 2.0], [1.0, -1.0]]", "[[-2.0, 2.0]]")], "must be 2 by 2: one row and one column per rate"),
        ([("[[-2.0, 2.0], [1.0, -1.0]]", "[[-2.0, 3.0], [1.0, -1.0]]")], "row 1 sums to 1"),
        ([('buffer = "20pkt"', 'buffer = "10000000pkt"'), ("stages = 4", "stages = 1000")], "GiB of memory"),
        ([("stages = 4", "stages = four")], "m.toml:8: not valid TOML"),
    ],
)
def test_a_bad_model_is_one_line_and_exit_code_2(cli, tmp_path, changes, message):
    path = tmp_path / "m.toml"
    text = REFERENCE.read_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    path.write_text(text)
    code, out, err = cli(path, "--json")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("absent.toml",), "absent.toml: no such file"),
        (("absent.pcap",), "absent.pcap: a capture needs a queue: give --buffer 100pkt and --link 10Mbit"),
        (("absent.pcap", "--buffer", "9pkt", "--link", "1Mbit"), "absent.pcap: no such file"),
        ((REFERENCE, "--set", "nonsense"), "write it as KEY=VALUE"),
        ((REFERENCE, "--save", "no/such/folder/m.toml"), "the folder no/such/folder does not exist"),
        ((REFERENCE, "--buffer", "many"), "queue.buffer"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(cli, monkeypatch, tmp_path, args, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_the_model_of_the_aaqm_load_offers_what_the_scenario_does():
    """UDP and RTP of 30 flows each at the rates of the scenario's cell n10, in packets of 1282 B on the wire."""
    plan = Scenario.load("aaqm/load@n10").plan(1, "droptail")
    sources = mmpp.solve(EXAMPLES / "aaqm-load.toml").data["sources"]
    udp = [group for group in plan["groups"] if group["name"].startswith("udp")]
    assert sum(last - first for first, last in (group["flows"] for group in udp)) == 30
    assert {group["traffic"]["rate"] for group in udp} == {"101892bit"}
    assert sources["udp"]["offered_pps"] == pytest.approx(30 * 0.8 * 101_892 / 8 / 1254, rel=2e-3)
    assert sources["rtp"]["offered_pps"] == pytest.approx(30 * 81_513 / 8 / 1242, rel=2e-3)


def test_at_the_load_or_threshold_that_is_answered_the_loss_is_the_bound(tmp_path):
    reference = EXAMPLES / "reference.toml"
    for bound, answer in (
        (0.01, mmpp.load_within(reference, 0.01)),
        (0.05, mmpp.load_within(reference, 0.05)),
        (0.05, mmpp.threshold_within(reference, 0.05)),
    ):
        assert max(s["loss_ratio"] for s in answer.data["sources"].values()) == pytest.approx(bound, rel=1e-9)
        # What it answers is a model by itself.
        path = tmp_path / "answered.toml"
        path.write_text(answer.toml)
        again = mmpp.solve(path).data
        assert again["load"] == pytest.approx(answer.data["load"], rel=1e-12)
        assert max(s["loss_ratio"] for s in again["sources"].values()) == pytest.approx(bound, rel=1e-9)
    assert mmpp.load_within(reference, 0.01).data["admission"]["rate_factor"] < 1.0
    with pytest.raises(ScenarioError, match=r"admit\.loss.*: without early drops a source has a loss ratio of 0\.02"):
        mmpp.threshold_within(reference, 0.01)
    for wrong in (0.0, 1.0):
        with pytest.raises(ScenarioError, match=r"admit\.loss = .*: must be above 0 and below 1"):
            mmpp.load_within(reference, wrong)
    with pytest.raises(ScenarioError, match=r"admit\.find = \"threshold\": excludes early"):
        mmpp.threshold_within(EXAMPLES / "thresholds.toml", 0.01)
    with pytest.raises(ScenarioError, match=r"admit.*: give admit or early\.adapt, not both"):
        mmpp.load_within(EXAMPLES / "thresholds.toml", 0.01)


def test_a_queue_that_no_capture_can_stand_before_is_named(capture):
    with pytest.raises(ScenarioError, match=r'queue\.buffer = "no": must be a number of packets'):
        mmpp.predict(capture, {"queue.link": '"10Mbit"', "queue.buffer": '"no"'})
