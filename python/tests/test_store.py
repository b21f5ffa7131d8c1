"""Finished runs on disk: what is damaged is told and run again, what another program made is not taken."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import aqumen
from aqumen import _core, _store
from aqumen._files import json_text, laid_out, write_text


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def link(path, to):
    path.unlink()
    path.symlink_to(to)


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at % len(data)] ^= 1
    path.write_bytes(data)


def pickle(metrics, arrays):
    """Whoever hands over runs can make sums that are right, and pickles run code when they are read."""
    before = _store._sum(arrays.read_bytes())
    np.savez(arrays, **{name: np.array([print], dtype=object) for name in np.load(arrays).files})
    metrics.write_text(metrics.read_text().replace(before, _store._sum(arrays.read_bytes())))


DAMAGES = {
    "empty metrics": lambda metrics, _: metrics.write_bytes(b""),
    "empty arrays": lambda _, arrays: arrays.write_bytes(b""),
    "cut metrics": lambda metrics, _: metrics.write_bytes(metrics.read_bytes()[:-40]),
    "cut arrays": lambda _, arrays: arrays.write_bytes(arrays.read_bytes()[:-40]),
    "no arrays": lambda _, arrays: arrays.unlink(),
    "a list": lambda metrics, _: metrics.write_text("[1]"),
    "a number": lambda metrics, _: metrics.write_text("3"),
    "no digest": lambda metrics, _: metrics.write_text("{}"),
    "digests of another kind": lambda metrics, _: metrics.write_text('{"digest": {"run": 3}}'),
    "deeply nested": lambda metrics, _: metrics.write_text("[" * 100_000),
    "deeply nested object": lambda metrics, _: metrics.write_text('{"a":' * 100_000),
    "a pipe for metrics": lambda metrics, _: pipe(metrics),
    "a pipe for arrays": lambda _, arrays: pipe(arrays),
    "a device without end": lambda metrics, _: link(metrics, "/dev/zero"),
    "a link to itself": lambda metrics, _: link(metrics, metrics.name),
    "larger than memory": lambda metrics, _: os.truncate(metrics, 1 << 42),
    "arrays larger than memory": lambda _, arrays: os.truncate(arrays, 1 << 42),
    "not text": lambda metrics, _: metrics.write_bytes(b"\xff\xfe\x00"),
    "arrays of another run": lambda _, arrays: shutil.copy(arrays.with_name("pi-2.npz"), arrays),
    "arrays that are pickles": pickle,
    "no archive": lambda _, arrays: arrays.write_text("PK"),
    "a figure changed": lambda metrics, _: metrics.write_text(metrics.read_text().replace('"seed": 1', '"seed": 7')),
    **{f"byte {at} of the metrics": lambda metrics, _, at=at: flip(metrics, at) for at in (0, 37, 500, 1999, -1, -2)},
    **{f"byte {at} of the arrays": lambda _, arrays, at=at: flip(arrays, at) for at in (0, 11, 999, -1)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_told_in_one_line_and_run_again(aqumen_cli, scenario_file, tmp_path, damage):
    args = ("compare", scenario_file, "--aqm", "pi", "--seeds", 2, "--out", tmp_path / "out", "--json")
    _, first, _ = aqumen_cli(*args)
    metrics = tmp_path / "out" / "runs" / "pi-1.json"
    arrays = metrics.with_suffix(".npz")
    before = metrics.read_bytes(), arrays.read_bytes()
    DAMAGES[damage](metrics, arrays)
    code, again, err = aqumen_cli(*args)
    assert (code, again) == (0, first)
    damaged, resumed, *_ = err.splitlines()
    assert damaged.startswith(f"aqumen: {metrics.parent}/pi-1.")
    assert damaged.endswith("; this run is repeated")
    assert resumed.startswith("aqumen: 1 of 2 runs are already in")
    assert (metrics.read_bytes(), np.load(arrays).files) == (before[0], np.load(arrays).files)


def test_the_metrics_of_another_run_are_not_taken(aqumen_cli, scenario_file, tmp_path):
    args = ("compare", scenario_file, "--aqm", "pi", "--seeds", 2, "--out", tmp_path / "out", "--json")
    _, first, _ = aqumen_cli(*args)
    runs = tmp_path / "out" / "runs"
    for kind in ("json", "npz"):
        shutil.copy(runs / f"pi-2.{kind}", runs / f"pi-1.{kind}")
    code, again, err = aqumen_cli(*args)
    assert (code, again) == (0, first)
    assert err.splitlines()[0] == f"aqumen: {runs}/pi-1.json: holds the run of pi-2.json; this run is repeated"
    assert "1 of 2 runs are already in" in err


def test_a_run_may_be_as_large_as_a_file_of_a_run_may_be(fake_core, scenario_file, tmp_path, monkeypatch):
    scenario = aqumen.Scenario.load(scenario_file)
    aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path)
    largest = max(path.stat().st_size for path in (tmp_path / "runs").iterdir())
    for most, taken in ((largest, 1), (largest - 1, 0)):
        monkeypatch.setattr(_store, "BYTES_MAX", most)
        assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == taken


def test_what_another_build_made_is_run_again(fake_core, scenario_file, tmp_path, monkeypatch):
    scenario = aqumen.Scenario.load(scenario_file)
    assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 0
    assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 1
    # The same version, one byte of the engine different.
    other = tmp_path / "core.so"
    other.write_bytes(Path(_core.__file__).read_bytes() + b"\0")
    monkeypatch.setattr(_core, "__file__", str(other))
    _store.built.cache_clear()
    try:
        assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 0
    finally:
        _store.built.cache_clear()


@pytest.mark.parametrize(
    ("rate", "traffic", "contents"),
    [
        ('{ csv = "own.file" }', '{ kind = "bulk" }', ("0,8000000\n", "0,9000000\n")),
        ('{ mahimahi = "own.file" }', '{ kind = "bulk" }', ("1\n2\n", "1\n3\n")),
        (
            '"8Mbit"',
            '{ kind = "web", main = { law = "empirical", file = "own.file" } }',
            ("1000 0\n2000 1\n", "1000 0\n3000 1\n"),
        ),
        ('"8Mbit"', '{ kind = "video", file = "own.file", fps = 25 }', ("1000\n2000\n", "1000\n3000\n")),
    ],
)
def test_what_stands_in_a_file_that_the_scenario_names_decides(tmp_path, rate, traffic, contents):
    path = tmp_path / "own.toml"
    path.write_text(f"""
name = "files"
duration = "2s"
[topology]
preset = "dumbbell"
bottleneck = {{ rate = {rate}, delay = "10ms", buffer = "50pkt" }}
access = {{ rate = "100Mbit", delay = "1ms", buffer = "1000pkt" }}
[[flows]]
name = "own"
count = 1
transport = "modern"
traffic = {traffic}
""")
    digests = set()
    for content in contents:
        (tmp_path / "own.file").write_text(content)
        digests.add(_store.Digests(aqumen.Scenario.load(path), "packet").of(("pi", 1)))
    assert len(digests) == 2


def test_every_run_has_a_digest_of_its_own():
    one, longer = aqumen.Scenario.load("arm-pfc/exp1"), aqumen.Scenario.load("arm-pfc/exp1").set("duration", "99s")
    jobs = [("pi", 1), ("pi", 2), ("red", 1), (None, 1)]
    digests = [
        _store.Digests(scenario, engine).of(job)
        for scenario in (one, longer)
        for engine in ("packet", "fluid")
        for job in jobs
    ]
    assert len(set(digests)) == len(digests)


def test_a_run_is_kept_where_an_event_fits_the_aqm_under_test_alone(tmp_path):
    # An event changes gamma, which AVQ has; DropTail, which the file names, has not.
    scenario = aqumen.Scenario.parse("""
name = "retuned"
duration = "2s"
aqm = "droptail"
flows = [{ name = "ftp", count = 2, transport = "ns2" }]
[topology]
preset = "dumbbell"
bottleneck = { rate = "4Mbit", delay = "10ms", buffer = "50pkt" }
access = { rate = "100Mbit", delay = "1ms" }
[[events]]
at = "1s"
link = "bottleneck"
aqm = { gamma = 0.9 }
""")
    first = aqumen.compare(scenario, ["avq"], seeds=2, out=tmp_path / "out")
    again = aqumen.compare(scenario, ["avq"], seeds=2, out=tmp_path / "out")
    assert [run.data for run in again.results] == [run.data for run in first.results]


def test_bytes_are_on_the_disk_before_they_have_their_name(tmp_path, monkeypatch):
    order = []
    sync, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (order.append("sync"), sync(fd)))
    monkeypatch.setattr(Path, "replace", lambda self, to: (order.append("rename"), rename(self, to)))
    write_text(tmp_path / "a.txt", "whole")
    assert order == ["sync", "rename"]
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_json_has_no_infinity_and_no_nan():
    nan, inf = float("nan"), float("inf")
    assert json.loads(json_text({"a": [nan, (inf, 1.5)], "b": {"c": -inf, "d": "NaN"}})) == {
        "a": [None, [None, 1.5]],
        "b": {"c": None, "d": "NaN"},
    }


def test_json_for_people_has_a_line_for_each_thing():
    assert laid_out({"a": [1, None], "b": {}}) == '{\n  "a": [\n    1,\n    null\n  ],\n  "b": {}\n}\n'


def test_what_a_killed_run_left_half_written_is_cleared(fake_core, scenario_file, tmp_path):
    gone = subprocess.Popen(["true"])
    gone.wait()
    runs = tmp_path / "runs"
    runs.mkdir()
    left = [runs / f".pi-1.npz.{gone.pid}.part", tmp_path / f".compare.json.{gone.pid}.part"]
    # That of a process which is there, and files of other names.
    kept = [runs / f".pi-1.json.{os.getppid()}.part", runs / "own.part", runs / ".own.part"]
    for path in (*left, *kept):
        path.write_text("half")
    aqumen.compare(aqumen.Scenario.load(scenario_file), ["pi"], seeds=1, out=tmp_path)
    assert not any(path.exists() for path in left)
    assert all(path.exists() for path in kept)
