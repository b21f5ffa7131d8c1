"""Runs as files of Flent: what stands in them, and that Debian's Flent opens them."""

import gzip
import json
import subprocess

import pytest

import aqumen
from aqumen.cli import main
from aqumen.view import flent


def data():
    """Two points of a second; nobody crossed the link in the second one."""
    windows = {"all": [0.0, 2.0], "flent-0": [0.0, 1.0], "flent-1": [1.0, 2.0]}

    def flows(a, b):
        return {"all": {}, "flent-0": {"goodput_bps": a}, "flent-1": {"goodput_bps": b}}

    link = {"all": {}, "flent-0": {"sojourn_mean_s": 0.005}, "flent-1": {"sojourn_mean_s": None}}
    return {
        "scenario": "s",
        "seed": 7,
        "aqm": {"name": "pie", "nominal": {"base_rtt_s": 0.1}},
        "windows": windows,
        "links": {"bottleneck": link, "other": {}},
        "flows": {"ftp": flows(3e6, 4e6), "web": flows(1e6, 0.0)},
    }


def test_a_file_has_an_upload_for_each_group_and_a_ping():
    made = flent.document(data(), 1.0, "pie:target=5ms", "x.flent.gz")
    assert made["version"] == 4
    assert made["x_values"] == [0.0, 1.0]
    assert made["results"] == {
        "TCP upload avg": [2.0, 2.0],
        "TCP upload sum": [4.0, 4.0],
        # 100 ms there and back, and 5 ms in the queue.
        "Ping (ms) ICMP": [105.0, None],
        "TCP upload::1": [3.0, 4.0],
        "TCP upload::2": [1.0, 0.0],
    }
    assert made["raw_values"]["Ping (ms) ICMP"] == [{"t": 0.0, "val": 105.0}]
    told = made["metadata"]
    assert (told["NAME"], told["TITLE"], told["LENGTH"], told["STEP_SIZE"]) == ("tcp_nup", "pie:target=5ms", 2, 1.0)
    assert told["TEST_PARAMETERS"] == {"upload_streams": "2"}
    assert told["NOTE"].endswith("seed 7; TCP upload::1 is ftp, TCP upload::2 is web")


COMMAND = ["compare", "rfc7928/congestion@mild", "--aqm", "codel", "--aqm", "pie:target=5ms", "--seeds", "2"]


def test_a_comparison_writes_a_file_for_each_run_and_the_same_one_again(tmp_path, capsys):
    short = [*COMMAND, "--until", "7s", "--format", "csv", "--flent"]
    assert main([*short, str(tmp_path / "a")]) == 0
    out, err = capsys.readouterr()
    # What is printed knows nothing of the windows.
    assert "flent-" not in out
    assert f"wrote 4 files for Flent into {tmp_path / 'a'}" in " ".join(err.split())
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == [
        f"rfc7928-congestion-mild-{aqm}-{seed}.flent.gz" for aqm in ("codel", "pie_target=5ms") for seed in (1, 2)
    ]
    assert main([*short, str(tmp_path / "b")]) == 0
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)
    kept = json.loads(gzip.decompress((tmp_path / "a" / names[0]).read_bytes()))
    # 7 s in steps of 70 ms.
    assert len(kept["x_values"]) == 100
    assert kept["metadata"]["STEP_SIZE"] == pytest.approx(0.07)
    assert all(len(values) == 100 for values in kept["results"].values())


def test_a_run_writes_its_own(tmp_path, capsys):
    assert main(["run", "rfc7928/aggressive", "--until", "7s", "--seed", "3", "--json", "--flent", str(tmp_path)]) == 0
    capsys.readouterr()
    assert [path.name for path in tmp_path.iterdir()] == ["rfc7928-aggressive-droptail-3.flent.gz"]


def test_other_engines_and_places_that_are_no_folder_are_refused(tmp_path, capsys):
    assert main([*COMMAND, "--engine", "fluid", "--flent", str(tmp_path)]) == 2
    assert "--flent needs the engine `packet`" in capsys.readouterr().err
    file = tmp_path / "file"
    file.write_text("")
    assert main(["run", "rfc7928/aggressive", "--until", "1s", "--flent", str(file)]) == 2
    assert f"cannot write {file}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.needs("flent")
def test_flent_opens_it(tmp_path, capsys):
    assert main([*COMMAND[:-1], "1", "--until", "20s", "--format", "csv", "--flent", str(tmp_path)]) == 0
    capsys.readouterr()
    files = sorted(str(path) for path in tmp_path.iterdir())
    told = subprocess.run(["flent", "-f", "csv", *files], capture_output=True, text=True, check=True, timeout=60).stdout
    lines = told[told.index("tcp_nup,") :].splitlines()
    assert {"Ping (ms) ICMP - codel", "TCP upload sum - pie:target=5ms"} <= set(lines[0].split(","))
    assert len([line for line in lines[1:] if line]) == 100


@pytest.mark.parametrize(("duration", "points", "step_s"), [("7s", 100, 0.07), ("100s", 100, 1), ("250s", 250, 1)])
def test_a_run_has_a_hundred_points_or_one_each_second(duration, points, step_s):
    scenario = aqumen.Scenario.load("rfc7928/aggressive").set_all([("duration", duration), ("windows.steady", "2s")])
    cut, length_s = flent._sampled(scenario)
    windows = cut.plan(1, "pie")["windows"]
    each = [windows[f"flent-{k}"] for k in range(points)]
    assert length_s == pytest.approx(step_s)
    assert f"flent-{points}" not in windows
    # One after the other, from the beginning to the end.
    assert [start for start, _ in each] == pytest.approx([k * step_s for k in range(points)])
    assert [end for _, end in each] == pytest.approx([(k + 1) * step_s for k in range(points)])
