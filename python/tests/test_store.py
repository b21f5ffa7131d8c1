"""Finished runs on disk: what is damaged is told and run again, what another program made is not taken."""

import json
import os
import pickle
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import aqumen
from aqumen import _core, _store
from aqumen._files import json_text, laid_out, write_text
from aqumen._store import Store


def short():
    return aqumen.Scenario.load("arm-pfc/exp1").until("3s")


def flip(line, at):
    data = bytearray(line)
    data[at % (len(data) - 1)] ^= 1
    return bytes(data)


DAMAGES = {
    "cut": lambda line: line[:-40] + b"\n",
    "a list": lambda _: b"[1]\n",
    "no object": lambda _: b"{}\n",
    "deeply nested": lambda _: b"[" * 100_000 + b"\n",
    "not text": lambda _: b"\xff\xfe\x00\n",
    "a figure changed": lambda line: line.replace(b'"seed":1', b'"seed":7').replace(b'"seed": 1', b'"seed": 7'),
    "the key of another run": lambda line: line.replace(b'-1","sum"', b'-7","sum"'),
    **{f"byte {at}": lambda line, at=at: flip(line, at) for at in (0, 5, 9, 37, 45, 60, 500, 1999, -1, -2)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_told_in_one_line_and_run_again(aqumen_cli, scenario_file, tmp_path, damage):
    args = ("compare", scenario_file, "--aqm", "pi", "--seeds", 2, "--out", tmp_path / "out", "--json")
    _, first, _ = aqumen_cli(*args)
    (path,) = (tmp_path / "out" / "runs").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    number = next(i for i, line in enumerate(lines) if b'-1","sum"' in line)
    path.write_bytes(b"".join(DAMAGES[damage](line) if i == number else line for i, line in enumerate(lines)))
    code, again, err = aqumen_cli(*args)
    assert (code, again) == (0, first)
    assert "aqumen: 1 of 2 runs are already in" in err
    # One whose key is damaged too is not known to have been there.
    if DAMAGES[damage](lines[number])[:40] == lines[number][:40]:
        assert err.startswith(f"aqumen: {path}:{number + 1}: changed since it was written; this run is repeated\n")
    # The damaged line stays, and is told no more.
    code, again, err = aqumen_cli(*args)
    assert (code, again) == (0, first)
    assert err.startswith("aqumen: 2 of 2 runs are already in")


def test_a_line_that_a_killed_writer_left_half_written_is_run_again(aqumen_cli, scenario_file, tmp_path):
    args = ("compare", scenario_file, "--aqm", "pi", "--seeds", 3, "--out", tmp_path / "out", "--json")
    _, first, _ = aqumen_cli(*args)
    (path,) = (tmp_path / "out" / "runs").iterdir()
    path.write_bytes(path.read_bytes()[:-100])
    code, again, err = aqumen_cli(*args)
    assert (code, again) == (0, first)
    assert err.startswith("aqumen: 2 of 3 runs are already in")
    assert len(Store(tmp_path / "out")) == 3


@pytest.mark.parametrize("what", ["a pipe", "a folder", "a device without end", "a link to itself"])
def test_what_is_no_file_is_not_read(tmp_path, what):
    with Store(tmp_path) as store:
        store.put("a-1", "1")
    odd = tmp_path / "runs" / "odd.jsonl"
    if what == "a pipe":
        os.mkfifo(odd)
    elif what == "a folder":
        odd.mkdir()
    else:
        odd.symlink_to("/dev/zero" if what == "a device without end" else odd.name)
    store = Store(tmp_path)
    assert list(store) == ["a-1"]
    assert list(store.damaged) == [str(odd)]


def test_what_another_build_made_is_run_again_and_what_the_same_sources_made_is_not(
    scenario_file, tmp_path, monkeypatch
):
    scenario = aqumen.Scenario.load(scenario_file)
    assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 0
    # Another wheel of the same sources.
    other = tmp_path / "core.so"
    other.write_bytes(Path(_core.__file__).read_bytes()[:1000])
    monkeypatch.setattr(_core, "__file__", str(other))
    monkeypatch.setattr(_core, "__version__", "9.9.9")
    _store.built.cache_clear()
    assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 1
    monkeypatch.setattr(_core, "ENGINES", [(name, source[::-1]) for name, source in _core.ENGINES])
    _store.built.cache_clear()
    try:
        assert aqumen.compare(scenario, ["pi"], seeds=1, out=tmp_path).resumed == 0
    finally:
        _store.built.cache_clear()


def test_the_digests_of_the_engines_are_those_of_their_sources():
    """By the table of dependencies and the files that stand in this checkout, worked out here in another way."""
    root = Path(__file__).parents[2]
    lock = tomllib.loads((root / "Cargo.lock").read_text())["package"]
    for engine, top in (("packet", "sim"), ("fluid", "theory"), ("theory", "theory")):
        ours, others, left = set(), set(), [top]
        while left:
            name = left.pop()
            ours.add(name)
            for needed in tomllib.loads((root / "crates" / name / "Cargo.toml").read_text()).get("dependencies", {}):
                if needed.startswith("aqumen-"):
                    left.append(needed.removeprefix("aqumen-"))
                else:
                    others.add(needed)
        parts = [(root / "crates/python/src/custom.rs").read_text()]
        for name in sorted(ours):
            files = (path for path in (root / "crates" / name / "src").rglob("*") if path.is_file())
            for path in sorted(files, key=lambda path: path.parts):
                parts += [path.relative_to(root).as_posix(), path.read_text()]
        parts += [f"{each['name']} {each['version']}" for each in lock if each["name"] in others]
        digest = 0x6C62272E07BB014262B821756295C58D
        for byte in "\0".join(parts).replace("\r", "").encode():
            digest = ((digest ^ byte) * 0x1000000000000000000013B) % 2**128
        assert dict(_core.ENGINES)[engine] == f"{digest:032x}"


def test_records_come_back_and_a_later_one_replaces_an_earlier_one(tmp_path):
    with Store(tmp_path) as store:
        store.put("a-1", '{"x":1}')
        store.put("a-2", '{"x":"ü"}')
        # Before anything is on the disk.
        assert store.get("a-1") == b'{"x":1}'
        store.put("a-1", '{"x":3}')
    again = Store(tmp_path, write=False)
    assert dict(again.items()) == {"a-1": b'{"x":3}', "a-2": '{"x":"ü"}'.encode()}
    assert (len(again), "a-1" in again, "a-3" in again, again.get("a-3")) == (2, True, False, None)
    # Any program reads them.
    (path,) = (tmp_path / "runs").iterdir()
    assert [json.loads(line)["data"] for line in path.read_text().splitlines()] == [{"x": 1}, {"x": "ü"}, {"x": 3}]


def test_two_writers_have_files_of_their_own_and_the_next_takes_the_first(tmp_path):
    first, second = Store(tmp_path), Store(tmp_path)
    for store, key in ((first, "a-1"), (second, "b-1")):
        store.put(key, "1")
        store.flush()
    assert len(list((tmp_path / "runs").iterdir())) == 2
    first.close()
    second.close()
    with Store(tmp_path) as third:
        third.put("c-1", "1")
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert set(Store(tmp_path)) == {"a-1", "b-1", "c-1"}


def test_writers_that_are_killed_lose_nothing_that_was_written(tmp_path):
    code = (
        "import sys; from aqumen._store import Store; s = Store(sys.argv[1]);"
        "[(s.put(f'{sys.argv[2]}-{i}', '7' * 1000), s.flush(), print(i, flush=True)) for i in range(10**6)]"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], stdout=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    try:
        told = [[each.stdout.readline() for _ in range(20)] for each in running]
    finally:
        for each in running:
            each.kill()
            each.communicate()
    keys = set(Store(tmp_path))
    assert {f"{name}-{line.strip()}" for name, lines in zip("ab", told, strict=True) for line in lines} <= keys


def test_a_full_disk_leaves_what_was_written(tmp_path):
    code = (
        "import resource, sys; from aqumen._store import Store; from aqumen.errors import OutputError\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "s = Store(sys.argv[1])\n"
        "try:\n"
        "    for i in range(1000): s.put(f'a-{i}', '1' * 7000); s.flush()\n"
        "except OutputError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    (path,) = (tmp_path / "runs").iterdir()
    assert done.stdout == f"cannot write {path}: File too large\n"
    store = Store(tmp_path)
    assert (set(store), store.damaged) == ({f"a-{i}" for i in range(7)}, {})
    assert path.read_bytes().endswith(b"}\n")


def test_stores_merge_without_repetition(tmp_path):
    for name, keys in (("a", ("x-1", "x-2")), ("b", ("x-2", "y-1"))):
        with Store(tmp_path / name) as store:
            for key in keys:
                store.put(key, f'"{name}"')
    with Store(tmp_path / "a") as into:
        assert into.merge(Store(tmp_path / "b", write=False)) == 1
        assert into.merge(Store(tmp_path / "b", write=False)) == 0
    assert dict(Store(tmp_path / "a").items()) == {"x-1": b'"a"', "x-2": b'"a"', "y-1": b'"b"'}


@given(
    st.text("abc0123456789:.-", min_size=1), st.recursive(st.none() | st.floats(allow_nan=False) | st.text(), st.lists)
)
def test_any_record_is_parsed_and_no_changed_one_is(key, data):
    text = json.dumps(data).encode()
    line = _store.record(key, text)
    found = _store.parsed(line[:-1])
    assert found[:2] == (key, text)
    assert line[found[2] :].startswith(text)
    assert json.loads(line)["data"] == data
    for at in range(0, len(line) - 1, 7):
        assert _store.parsed(flip(line, at)[:-1]) is None


def test_series_are_kept_whole_sampled_or_not_at_all(tmp_path):
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("30s")
    sizes, whole = [], aqumen.compare(scenario, ["pi"], seeds=2).results[0]
    for series in ("none", "sampled", "all"):
        first = aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path, series=series)
        # What has less is made again, what has more is taken.
        assert first.resumed == 0
        again = aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path, series=series)
        assert (again.resumed, again.to_json()) == (2, first.to_json())
        assert again.results[0].data["links"] == whole.data["links"]
        for each in (first, again):
            sizes.append(len(each.results[0].sojourn_cdf().share))
            assert len(each.results[0].series().t_s) <= (
                0 if series == "none" else 500 if series == "sampled" else 10**6
            )
    assert sizes[0] == sizes[1] == 0 < sizes[2] == sizes[3] <= 500 < sizes[4] == sizes[5]
    less = aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path, series="sampled")
    assert (less.resumed, len(less.results[0].sojourn_cdf().share)) == (2, sizes[2])
    assert less.results[0].sojourn_cdf().share[-1] == 1.0
    with pytest.raises(aqumen.ScenarioError, match="series: invalid value"):
        aqumen.compare(scenario, ["pi"], seeds=2, out=tmp_path, series="some")


def test_scenarios_and_results_travel_between_processes(tmp_path):
    (tmp_path / "rates.csv").write_text("0,8000000\n1,4000000\n")
    (tmp_path / "own.toml").write_text(
        aqumen.Scenario.load("arm-pfc/exp1").until("3s").set("bottleneck.rate", "8Mbit").to_toml()
        .replace('rate = "8Mbit"', 'rate = { csv = "rates.csv" }', 1)
    )  # fmt: skip
    scenario = aqumen.Scenario.load(tmp_path / "own.toml")
    assert dict(scenario.core.files()) == {"rates.csv": b"0,8000000\n1,4000000\n"}
    there = pickle.dumps(scenario)
    (tmp_path / "rates.csv").unlink()
    back = pickle.loads(there)
    assert back.to_toml() == scenario.to_toml()
    assert dict(back.core.files()) == dict(scenario.core.files())
    result = aqumen.run(back, "pi")
    assert len(result.windows) > 1
    again = pickle.loads(pickle.dumps(result))
    assert (type(again), again.json, again.spec, again.label) == (type(result), result.json, "pi", "pi")
    assert (again.series().queue_pkts == result.series().queue_pkts).all()
    assert (again.queue_cdf().share == result.queue_cdf().share).all()
    # A changed scenario names no file any more.
    assert back.set("bottleneck.rate", "8Mbit").core.files() == []


def test_a_row_has_the_metrics_of_a_run():
    result = aqumen.run(short(), "pi")
    shape, text = result.answer.row()
    stored = json.loads(text)
    row = dict(zip(result.answer.columns(), stored["v"], strict=True))
    assert (stored["h"], len(shape), len(stored["bits"])) == (shape, 16, 16)
    assert stored["cost"][2:] == [result.data["cost"][key] for key in ("events", "bottleneck_packets")]
    link, group = result.links[0], result.flows[0]
    for window, at in (("steady", ""), ("all", "@all")):
        known = {key: value for key, value in result.link(link, window).items() if value is not None}
        assert {key: row[f"{key}{at}"] for key in known} == pytest.approx(known, rel=1e-11)
        flows = {key: value for key, value in result.flow_group(group, window).items() if value is not None}
        assert {key: row[f"{group}.{key}{at}"] for key in flows} == pytest.approx(flows, rel=1e-11)
    assert None not in row.values()
    again, other = (json.loads(aqumen.run(short(), "pi", seed=seed).answer.row()[1]) for seed in (1, 2))
    assert {**again, "cost": 0} == {**stored, "cost": 0}
    assert other["bits"] != stored["bits"]
    # With the key and what is around it, a row of one link and one group in two windows takes at most 1500 bytes.
    assert len(_store.record("0" * 24 + "-1000", text.encode())) < 1500


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
