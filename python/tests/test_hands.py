"""Help while typing: completion, suggestions, `aqumen doctor`, compressed captures."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from aqumen.cli import main
from aqumen.cli.verbs import VERBS

CAPTURE = Path(__file__).parents[2] / "examples" / "captures" / "home.pcap"


def offered(*words):
    """Completions that bash gets for these words, the last one incomplete."""
    environment = {
        **os.environ,
        "_AQUMEN_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["aqumen", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "aqumen"], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_the_tab_key_offers_verbs():
    assert offered("re") == [verb for verb in VERBS if verb.startswith("re")] != []


@pytest.mark.parametrize(
    ("words", "expect"),
    [
        (["run", "arm-pfc/exp6"], "arm-pfc/exp6-large"),
        (["run", "arm-pfc/exp1", "--aqm", "fq-"], "fq-codel"),
        (["compare", "arm-pfc/exp1", "--aqm", "codel,fq-"], "codel,fq-codel"),
        (["run", "arm-pfc/exp1", "--aqm", "pie:tar"], "pie:target="),
        (["run", "arm-pfc/exp1", "--aqm", "codel,pie:target=5ms,int"], "codel,pie:target=5ms,interval="),
        (["compare", "x.toml", "--rank-by", "pa"], "page-load"),
        (["run", "arm-pfc/exp1", "--set", "topology.bottleneck.ra"], "topology.bottleneck.rate="),
        (["run", "arm-pfc/exp1", "--engine", "fluid:h"], "fluid:hollot"),
        (["uplink", "--weigh", "pa"], "pages="),
        (["office", "--weigh", "vi"], "video="),
        (["datacenter", "--weigh", "b"], "bulk="),
        (["backbone", "--weigh", "f"], "fairness="),
        (["cell", "--senders", "cubic,bb"], "cubic,bbr"),
        (["list", "tr"], "transports"),
        (["run", "--the"], "--theory"),
    ],
)
def test_the_tab_key_offers_what_fits_there(words, expect):
    assert expect in offered(*words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(aqumen_cli, shell):
    code, out, err = aqumen_cli("completion", shell)
    assert (code, err) == (0, "")
    assert f"_AQUMEN_COMPLETE={shell}_complete" in out


def told(capsys, *args):
    """The one line that says why a command could not run."""
    assert main([str(arg) for arg in args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err.removeprefix("aqumen: ").rstrip()


def test_a_mistyped_file_suggests_the_near_one(capsys, tmp_path):
    for name in ("uplink.toml", "office.pcapng"):
        (tmp_path / name).write_text("")
    missing = tmp_path / "uplnk.toml"
    assert told(capsys, "run", missing) == f"{missing}: no such file; did you mean {tmp_path / 'uplink.toml'}?"
    capture = tmp_path / "ofice.pcapng"
    expect = f"{capture}: no such file; did you mean {tmp_path / 'office.pcapng'}?"
    assert told(capsys, "replay", capture, "--rate", "1Mbit", "--aqm", "codel") == expect
    assert told(capsys, "mmpp", capture, "--buffer", "9pkt", "--link", "1Mbit") == expect
    far = tmp_path / "sub" / "x.toml"
    assert told(capsys, "run", far) == f"{far}: no such file"
    assert told(capsys, "run", tmp_path) == f"{tmp_path}: is a folder, not a file"


def test_files_that_share_an_ending_are_not_near(capsys, tmp_path):
    for name in ("deny.toml", "aqms"):
        (tmp_path / name).mkdir() if name == "aqms" else (tmp_path / name).write_text("")
    for missing in ("demo.toml", "aqm"):
        said = told(capsys, "replay", tmp_path / missing, "--rate", "1Mbit", "--aqm", "codel")
        assert said == f"{tmp_path / missing}: no such file"
    # An ending alone may be wrong.
    assert told(capsys, "mmpp", tmp_path / "deny.tml", "--buffer", "9pkt", "--link", "1Mbit").endswith("deny.toml?")


def test_a_missing_model_is_told_as_any_missing_file(capsys, tmp_path):
    (tmp_path / "model.toml").write_text("")
    missing = tmp_path / "modle.toml"
    assert told(capsys, "mmpp", missing) == f"{missing}: no such file; did you mean {tmp_path / 'model.toml'}?"
    assert told(capsys, "mmpp", tmp_path / "far" / "x.toml") == f"{tmp_path / 'far' / 'x.toml'}: no such file"


@pytest.mark.parametrize(
    ("line", "expect"),
    [
        ("comapre x.toml --aqm pi", "comapre: no such command; did you mean compare? `aqumen --help` lists all"),
        ("frobnicate", "frobnicate: no such command; `aqumen --help` lists all"),
        ("list aqm", 'invalid value "aqm"; did you mean aqms? choose from: aqms, transports, traffic'),
        ("validate ns4", 'invalid value "ns4"; did you mean ns3? choose from: ns2, ns3, vectors, live'),
        (
            "compare arm-pfc/exp1 --aqm pi --rank-by dellay",
            '--rank-by: invalid value "dellay"; did you mean delay?',
        ),
        (
            "run arm-pfc/exp1 --engine pakcet",
            "unknown engine `pakcet`; did you mean packet? choose from: packet, fluid",
        ),
        ("reproduce arm-pcf", "no claims of a paper `arm-pcf`; did you mean arm-pfc? choose from: arm-pfc, paqm"),
        ("run arm-pfc/exp1 --aqm codel,pie", "--aqm codel,pie: run takes one AQM; `aqumen compare` takes several"),
        ("run arm-pfc/exp99", "arm-pfc/exp99: no such file or experiment; did you mean arm-pfc/exp8? `aqumen list"),
        ("run nothing/like-it", "nothing/like-it: no such file or experiment; `aqumen list scenarios` lists"),
    ],
)
def test_a_slip_of_the_hand_is_told_with_the_near_word(capsys, line, expect):
    assert told(capsys, *line.split()).startswith(expect)


def test_a_key_without_its_table_suggests_the_whole(capsys):
    expect = "--set rate=4Mbit: no such key; did you mean topology.bottleneck.rate or topology.access.rate?"
    assert told(capsys, "run", "arm-pfc/exp1", "--set", "rate=4Mbit") == expect
    # A value that does not fit is told as it was.
    assert "must be a rate" in told(capsys, "run", "arm-pfc/exp1", "--set", "bottleneck.rate=1e300bit")


@pytest.mark.parametrize(
    ("line", "expect"),
    [
        ("uplink", "missing: --down RATE --up RATE; `aqumen uplink --help` says what each is"),
        ("uplink --down 20Mbit", "missing: --up RATE; `aqumen uplink --help` says what each is"),
        ("list", "missing: aqms|transports|traffic|papers|scenarios; `aqumen list --help` says what each is"),
        ("design pi --flows 5", "missing: --capacity RATE; `aqumen design --help` says what each is"),
    ],
)
def test_all_that_a_verb_lacks_is_told_at_once(capsys, line, expect):
    assert told(capsys, *line.split()) == expect


def test_a_comparison_of_which_nobody_said_what_is_of_the_scenarios_own_aqm(capsys):
    short = ["compare", "arm-pfc/exp1", "--until", "3s", "--json"]
    assert main([*short, "--seeds", "2"]) == 0
    said = capsys.readouterr()
    assert list(json.loads(said.out)["aqms"]) == ["arm-pfc-repaired", "droptail"]
    assert said.err == "aqumen: no --aqm given: comparing arm-pfc-repaired (the scenario's) with droptail\n"
    # Engines are held against one another on that AQM alone.
    assert main([*short, "--seeds", "1", "--engine", "packet", "--engine", "fluid"]) == 0
    said = capsys.readouterr()
    assert list(json.loads(said.out)["aqms"]) == ["arm-pfc-repaired (packet)", "arm-pfc-repaired (fluid)"]
    assert told(capsys, "compare", "arm-pfc/exp1", "--set", "aqm=droptail").startswith(
        "no AQM to compare: the scenario"
    )


def test_a_duration_without_a_unit_is_offered_seconds_too(capsys):
    expect = 'duration = 20: needs a unit, such as "20ms" or "20s"'
    assert told(capsys, "run", "arm-pfc/exp1", "--set", "duration=20").endswith(expect)


def test_a_time_without_a_unit_names_the_flag(capsys):
    expect = "--until 10: needs a unit: 10s for seconds, or 10ms"
    assert told(capsys, "run", "arm-pfc/exp1", "--until", "10") == expect


def test_doctor_says_what_is_here_and_how_to_get_the_rest(capsys, monkeypatch):
    monkeypatch.setattr("aqumen.cli.doctor.find_spec", lambda name: None if name == "pandas" else True)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("AQUMEN_NS2", raising=False)
    assert main(["doctor"]) == 0
    rows = {line.split("  ")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "pip install 'aqumen[pandas]'" in rows["pandas"]
    assert "missing" in rows["engine ns2"]
    assert "apt-get install ns2" in rows["engine ns2"]
    assert "https://rustup.rs" in rows["cargo"]
    assert rows["polars"].split() == ["polars", "installed"]


@pytest.mark.parametrize("columns", ["60", "80", ""])
def test_doctor_cuts_no_path(capsys, monkeypatch, columns):
    program = "/opt/somebody/with/a/long/name/.cache/aqumen/ns3/dumbbell-4ce1bee3486fc650"
    monkeypatch.setattr("aqumen.engines.external_program", lambda peer: program)
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.count(program) == 3
    assert "…" not in out
    if columns:
        assert all(len(line) <= int(columns) for line in out.splitlines() if program not in line)


def test_a_capture_may_be_compressed(capsys, tmp_path, monkeypatch):
    # Wide enough that paths of different lengths do not change line breaks.
    monkeypatch.setenv("COLUMNS", "400")
    packed = tmp_path / "home.pcap.gz"
    packed.write_bytes(gzip.compress(CAPTURE.read_bytes()))
    shown = []
    for file in (CAPTURE, packed):
        assert main(["replay", str(file), "--rate", "1.5Mbit", "--aqm", "codel"]) == 0
        shown.append(capsys.readouterr().out.replace(str(file), "FILE"))
    assert shown[0] == shown[1]
    expect = f"{packed}: is compressed; unpack it first: gunzip -k {packed}"
    assert told(capsys, "mmpp", packed, "--buffer", "50pkt", "--link", "2Mbit") == expect
    packed.write_bytes(packed.read_bytes()[:500])
    assert "cannot be unpacked" in told(capsys, "replay", packed, "--rate", "1.5Mbit", "--aqm", "codel")


def test_of_a_scenario_that_is_not_there_no_keys_are_offered():
    assert offered("run", "nosuch.toml", "--set", "topology.bott") == [""]
