"""Studies: their file, what they run, when they stop, what they keep, and where they run."""

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import aqumen
from aqumen.cli import main
from aqumen.errors import OutputError, ScenarioError
from aqumen.study import Rows, Study
from aqumen.study.checked import check
from aqumen.study.compared import compare_aqms, compared, holm
from aqumen.study.definition import seeds_of
from aqumen.study.factors import Design, Factor, points
from aqumen.study.on_dask import Dask, run_batch, version
from aqumen.study.stopping import StoppingRule
from aqumen.study.study import merge, status
from aqumen.study.warm_up import mser5

ROOT = Path(__file__).parents[2]

SMALL = """
scenarios = ["arm-pfc/exp1"]
aqms = ["pi", "codel"]
until = "3s"
seeds = 4
[factors]
"flows.ftp.count" = [5, 10]
"pi:target" = ["20pkt", "50pkt"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(SMALL)
    return path


def kept(folder):
    """Rows without what they cost."""
    return {key: data.partition(b',"cost"')[0] for key, data in Rows(folder).store.items()}


# The file.


def test_switches_vary():
    factors = {"pi:ecn": [True, False], "flows.ftp.transport.ecn": [True, False]}
    study = Study(scenarios=["arm-pfc/exp1"], aqms=["pi"], until="1s", seeds=1, factors=factors)
    assert [case.spec for case in study.cases] == ["pi:ecn=true", "pi:ecn=true", "pi:ecn=false", "pi:ecn=false"]
    assert [case.changes[0][1] for case in study.cases] == ["true", "false"] * 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("seeds = 4", "seed = 4"), r"study.toml:5: seed: unknown key; did you mean seeds\?"),
        (("seeds = 4", "seeds = 0"), r"study.toml:5: seeds: 0: must be 1 to 100000"),
        (("seeds = 4", 'seeds = "4-"'), r"study.toml:5: seeds: 4-: must be a number of seeds"),
        (("scenarios", "scenes"), r"study.toml:2: scenes: unknown key"),
        (('["pi", "codel"]', "[]"), r"study.toml:3: aqms: missing"),
        (('["pi", "codel"]', '["pi", "pi"]'), r"study.toml:3: aqms: a name stands there twice"),
        (('["pi", "codel"]', '["pi", "codle"]'), r"study.toml: .*codle.*did you mean"),
        (("[5, 10]", "[5, -10]"), r"study.toml: flows.ftp.count = -10: .*count = -10: "),
        (("[5, 10]", "[]"), r"study.toml:7: factors.flows.ftp.count: has no value"),
        (
            ("[5, 10]", "{ from = 5, to = 2 }"),
            r"study.toml:7: .*count: from = 5: must be below `to`, 2",
        ),
        (("[5, 10]", "{ from = 5, to = 9 }"), r"a grid needs levels"),
        (("[5, 10]", "{ from = 5, to = 9, steps = 2 }"), r"study.toml:7: .*unknown key `steps`; did you mean step"),
        (("pi:target", "pie:target"), r"factors.pie:target: the study runs no AQM `pie`; it runs codel, pi"),
        (("20pkt", "-20pkt"), r"pi:target = -20pkt: .*target"),
        (("[factors]", "[stop]\nrelative = 0.1\n[factors]"), r"study.toml:6: stop.metric: missing"),
        (("[factors]", '[stop]\nmetric = "x"\n[factors]'), r"study.toml:6: stop: needs one width"),
        (
            ("[factors]", '[design]\nkind = "grit"\n[factors]'),
            r'study.toml:7: design.kind: "grit": choose from',
        ),
        (("[factors]", '[design]\nkind = "random"\n[factors]'), r"design.points: 0: must be 1 to"),
        (("until", "engine = 3\nuntil"), r"study.toml:4: engine: 3: must be a text in quotes"),
        (("until", 'engine = "pocket"\nuntil'), r"study.toml:4: engine: unknown engine"),
        (('"3s"', "3"), r"study.toml:4: until: 3: must be a text in quotes"),
        (("arm-pfc/exp1", "arm-pfc/exp2@*"), r"the scenario has no sweep"),
        (("arm-pfc/exp1", "no/such"), r"study.toml: no/such"),
        (("[factors]", "[factors"), r"study.toml: .*line 6"),
    ],
)
def test_a_faulty_study_is_told_with_file_line_and_what_is_accepted(file, change, told, capsys, tmp_path):
    file.write_text(SMALL.replace(*change))
    assert main(["study", "run", str(file), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    with pytest.raises(ScenarioError, match=told):
        Study.load(file)
    assert not (tmp_path / "out").exists()


def test_cells_and_several_scenarios(tmp_path):
    study = Study(scenarios=["aqm-mo/rtt@*", "arm-pfc/exp3@n50"], aqms=["pi"], until="2s", seeds=1)
    names = [case.labels["scenario"] for case in study.cases]
    assert names == [*(f"aqm-mo/rtt@{cell}" for cell in aqumen.Scenario.load("aqm-mo/rtt").cells), "arm-pfc/exp3@n50"]


def test_aqm_parameters_vary_for_their_aqm_alone(file):
    study = Study.load(file)
    assert [(case.labels["flows.ftp.count"], case.spec) for case in study.cases] == [
        (5, "pi:target=20pkt"), (5, "codel"), (5, "pi:target=50pkt"),
        (10, "pi:target=20pkt"), (10, "codel"), (10, "pi:target=50pkt"),
    ]  # fmt: skip
    assert len(study.runs()) == 24


@pytest.mark.parametrize(
    ("given", "seeds"),
    [(3, [1, 2, 3]), ("3", [1, 2, 3]), ("11-13", [11, 12, 13]), ("7, 1-2", [1, 2, 7]), ([4, 2], [2, 4]), ("0", None),
     ("", None), ("3-1", None), ("1,1", None), ("a", None), (-1, None), (1.5, None), (None, None), ("1-999999", None)],
)  # fmt: skip
def test_seeds_are_a_number_a_range_or_a_list(given, seeds):
    if seeds is not None:
        assert seeds_of(given) == seeds
    else:
        with pytest.raises(ScenarioError):
            seeds_of(given)


def test_ranges_and_laws():
    assert Factor.read("x", {"from": 10, "to": 40, "points": 4}).levels == (10, 20, 30, 40)
    assert Factor.read("x", {"from": "1Mbit", "to": "100Mbit", "points": 3, "log": True}).levels == (
        "1Mbit",
        "10Mbit",
        "100Mbit",
    )
    assert Factor.read("x", {"from": "10ms", "to": "30ms", "step": "10ms"}).levels == ("10ms", "20ms", "30ms")
    assert Factor.read("x", {"from": 0.5, "to": 1.5}).quantile(0.25) == 0.75
    normal = Factor.read("x", {"law": "normal", "mean": "100ms", "std": "10ms"})
    assert (normal.quantile(0.5), normal.quantile(0.8413447)) == ("100ms", "110ms")
    choice = Factor.read("x", ["a", "b", "c"])
    assert [choice.quantile(u) for u in (0.0, 0.34, 0.99, 1.0)] == ["a", "b", "c", "c"]


@pytest.mark.parametrize("kind", ["random", "latin-hypercube", "sobol"])
def test_designs_fill_the_ranges_and_repeat(kind):
    factors = [Factor.read("a", {"from": 0.0, "to": 1.0}), Factor.read("b", {"from": 1.0, "to": 1000.0, "log": True})]
    found = points(factors, Design(kind=kind, points=64, seed=3))
    assert found == points(factors, Design(kind=kind, points=64, seed=3))
    assert found != points(factors, Design(kind=kind, points=64, seed=4))
    a = np.array([point["a"] for point in found])
    b = np.log10([point["b"] for point in found]) / 3
    for values in (a, b):
        assert ((values >= 0) & (values <= 1)).all()
        counts = np.histogram(values, 16, (0, 1))[0]
        # A Latin hypercube and a Sobol sequence have four of 64 points in each sixteenth.
        assert (counts == 4).all() if kind != "random" else counts.sum() == 64


def test_a_sobol_design_has_a_power_of_two_points():
    with pytest.raises(ScenarioError, match="points = 60: must be a power of 2"):
        points([Factor.read("a", {"from": 0, "to": 9})], Design(kind="sobol", points=60))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_a_grid_has_each_combination_once(sizes):
    factors = [Factor.read(f"f{i}", list(range(size))) for i, size in enumerate(sizes)]
    found = [tuple(point.values()) for point in points(factors, Design())]
    assert len(set(found)) == len(found) == np.prod(sizes)


# The stopping rule.

LAWS = {
    "normal, 5 %": (lambda r: r.gauss(100, 5), 100.0, {"relative": 0.02}),
    "normal, 10 %": (lambda r: r.gauss(100, 10), 100.0, {"relative": 0.02, "most": 1000}),
    "uniform": (lambda r: r.random(), 0.5, {"absolute": 0.1}),
    "exponential": (lambda r: r.expovariate(1.0), 1.0, {"relative": 0.2, "most": 1000}),
}


@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_the_stopping_rule_cover_the_mean(law):
    """By 1000 studies each: of nominally 95 % at least 92 %, since what stops early underestimates its deviation."""
    draw, mean, width = LAWS[law]
    rule, source = StoppingRule(metric="unbounded_x", **width), random.Random(5)
    covered = 0
    for _ in range(1000):
        values = []
        while (wanted := rule.wanted(values)) > len(values):
            values += [draw(source) for _ in range(wanted - len(values))]
        assert rule.reached(values)
        middle, half = rule.half_width(values)
        assert half <= rule.absolute if rule.absolute else half <= rule.relative * abs(middle)
        covered += abs(middle - mean) <= half
    # 0.935 has a standard error of 0.008.
    assert 920 <= covered <= 975


def test_the_rule_gives_up_and_says_so(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(
        'scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\nuntil = "3s"\n'
        '[stop]\nmetric = "queue_mean_pkts"\nrelative = "0.01%"\nmost = 7\n'
    )
    assert main(["study", "run", str(path), "--out", str(tmp_path / "o")]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Not reached: the 95 % interval of queue_mean_pkts within 0.01 % of the mean" in out
    (state,) = status(Rows(tmp_path / "o"))
    assert (state.seeds, state.wanted, state.reached, state.closed) == (7, 7, False, True)


def test_each_case_runs_as_many_seeds_as_it_needs(tmp_path):
    stop = {"metric": "queue_mean_pkts", "relative": "10%", "most": 100}
    study = Study(scenarios=["arm-pfc/exp1"], aqms=["pi", "codel"], until="5s", stop=stop)
    rows = study.run(tmp_path)
    for state in status(rows):
        assert state.reached
        assert state.half_width <= 0.1 * state.mean
        assert state.seeds in study.definition.stop.looks()
    # Narrower later: what is there counts.
    before = kept(tmp_path)
    stop["relative"] = "5%"
    Study(scenarios=["arm-pfc/exp1"], aqms=["pi", "codel"], until="5s", stop=stop).run(tmp_path)
    assert before.items() < kept(tmp_path).items()


def test_a_rule_about_a_metric_that_does_not_exist_is_refused(tmp_path):
    study = Study(
        scenarios=["arm-pfc/exp1"], aqms=["pi"], until="2s", stop={"metric": "queue_men_pkts", "relative": 0.1}
    )
    with pytest.raises(
        ScenarioError, match=r"stop.metric = queue_men_pkts: no such metric; did you mean queue_mean_pkts"
    ):
        study.run(tmp_path)


# Rows.


def test_a_study_resumes_extends_and_repeats_nothing(file, tmp_path):
    study, seen = Study.load(file), []
    rows = study.run(tmp_path / "o", on_progress=lambda now: seen.append(now) or len(seen) < 9)
    assert len(rows) >= 9
    first = kept(tmp_path / "o")
    full = study.run(tmp_path / "o")
    assert (len(full), first.items() <= kept(tmp_path / "o").items()) == (24, True)
    assert study.run(tmp_path / "o", on_progress=lambda _: pytest.fail("nothing was left")) is not None
    file.write_text(SMALL.replace("seeds = 4", "seeds = 5").replace("[5, 10]", "[5, 10, 15]"))
    more, done = Study.load(file), []
    assert len(more.run(tmp_path / "o", on_progress=lambda now: done.append(now) or True)) == 45
    assert len(done) == 45 - 24
    # Runs of points that the study no longer has stay, and are not shown.
    file.write_text(SMALL.replace("[5, 10]", "[5]"))
    assert len(Study.load(file).run(tmp_path / "o")) == 15


def test_a_row_has_the_figures_of_its_run(file, tmp_path):
    columns = Study.load(file).run(tmp_path / "o").columns()
    labels = ("aqm", "flows.ftp.count", "pi:target", "seed")
    k = list(zip(*(columns[name] for name in labels), strict=True)).index(("pi", 10, "50pkt", 3))
    scenario = aqumen.Scenario.load("arm-pfc/exp1").until("3s").set("flows.ftp.count", "10")
    result = aqumen.run(scenario, "pi:target=50pkt", seed=3)
    assert columns["queue_mean_pkts"][k] == pytest.approx(result.link()["queue_mean_pkts"], rel=1e-11)
    assert columns["ftp.goodput_bps@all"][k] == pytest.approx(result.flow_group("ftp", "all")["goodput_bps"], rel=1e-11)
    assert columns["events"][k] == result.data["cost"]["events"]
    # Not a parameter of CoDel.
    assert columns["pi:target"][list(columns["aqm"]).index("codel")] is None


def test_sql_csv_parquet_and_tables_say_the_same(file, tmp_path, capsys):
    rows = Study.load(file).run(tmp_path / "o")
    names, found = rows.query("select aqm, count(*) as n, avg(queue_mean_pkts) from runs group by 1 order by 1")
    mean = {aqm: rows.columns()["queue_mean_pkts"][rows.columns()["aqm"] == aqm].mean() for aqm in ("pi", "codel")}
    assert names == ["aqm", "n", "avg(queue_mean_pkts)"]
    assert [(aqm, n) for aqm, n, _ in found] == [("codel", 8), ("pi", 16)]
    assert {aqm: value for aqm, _, value in found} == pytest.approx(mean)
    # Undefined is NULL, not NaN: CoDel has no target of PI.
    assert rows.query('select count("pi:target"), sum(convergence_s) from runs')[1][0][0] == 16
    rows.write_parquet(tmp_path / "r.parquet")
    rows.write_csv(tmp_path / "r.csv")
    polars = pytest.importorskip("polars")
    for frame in (
        polars.read_parquet(tmp_path / "r.parquet"),
        polars.read_csv(tmp_path / "r.csv"),
        rows.to_polars().collect(),
    ):
        assert frame["queue_mean_pkts"].to_list() == rows.columns()["queue_mean_pkts"].tolist()
    with pytest.raises(ScenarioError, match=r"^query: .*walks"):
        rows.query("select x from walks")
    assert main(["study", "query", str(tmp_path / "o"), "select nonsense from runs"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["study", "compact", str(tmp_path / "o")]) == 0
    parts = sorted(path.parent.name for path in (tmp_path / "o" / "parquet").rglob("*.parquet"))
    assert parts == ["aqm=codel", "aqm=pi"]
    assert main(["study", "export", str(tmp_path / "o"), "latex"]) == 0
    assert "\\toprule" in capsys.readouterr().out


@pytest.mark.parametrize("names", [False, True])
def test_a_damaged_line_is_made_again(names, file, tmp_path):
    study = Study.load(file)
    study.run(tmp_path / "o")
    before = kept(tmp_path / "o")
    (path,) = (tmp_path / "o" / "runs").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    # The last line that names columns, or the last row.
    at = max(i for i, line in enumerate(lines) if line.startswith(b'{"key":"columns-') == names)
    shape = lines[at].split(b'"')[3].removeprefix(b"columns-")
    rows = sum(b'"h":"%b"' % shape in line for line in lines) if names else 1
    lines[at] = lines[at].replace(b"1", b"2", 40)
    path.write_bytes(b"".join(lines))
    again = []
    study.run(tmp_path / "o", on_progress=lambda now: again.append(now) or True)
    assert len(again) == rows > 0
    assert kept(tmp_path / "o") == before


def test_a_folder_without_a_study_is_told(tmp_path, capsys):
    assert main(["study", "status", str(tmp_path)]) == 2
    assert "holds no study" in capsys.readouterr().err
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(OutputError, match="not the manifest of a study"):
        aqumen.open(tmp_path)


def test_a_sample_is_repeated_bit_for_bit(file, tmp_path, capsys):
    Study.load(file).run(tmp_path / "o")
    # The folder is enough: the study file is gone, and this is another process's view.
    file.unlink()
    assert {each.fault for each in check(Rows(tmp_path / "o"), 24, 1)} == {""}
    assert main(["study", "check", str(tmp_path / "o"), "--sample", "5"]) == 0
    assert capsys.readouterr().out == "5 of 5 repeated runs are equal, bit for bit\n"
    rows = Rows(tmp_path / "o")
    from aqumen._store import Store

    with Store(tmp_path / "o") as store:
        key = next(key for key in store if not key.startswith("columns-"))
        row = json.loads(store.get(key))
        row["bits"] = "0" * 16
        store.put(key, json.dumps(row))
    assert [each.fault for each in check(Rows(tmp_path / "o"), 24) if each.fault] == ["its results differ"]
    assert main(["study", "check", str(tmp_path / "o"), "--sample", "24"]) == 1
    assert len(rows) == 24


def test_a_large_study_needs_force(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text('scenarios = ["arm-pfc/exp1"]\naqms = ["pi"]\nseeds = 60000\n')
    assert main(["study", "run", str(path), "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert "60000 runs" in said
    assert "--force" in said
    assert not (tmp_path / "o").exists()


# Where they run.


def test_shards_merge_to_the_whole_and_scripts_are_made(file, tmp_path, capsys):
    Study.load(file).run(tmp_path / "whole")
    for k in (1, 2, 3):
        assert main(["study", "shard", str(file), f"{k}/3", "--out", str(tmp_path / f"s{k}")]) == 0
    parts = [set(kept(tmp_path / f"s{k}")) for k in (1, 2, 3)]
    assert [len({key for key in part if not key.startswith("columns-")}) for part in parts] == [8, 8, 8]
    merge(tmp_path / "m", [tmp_path / f"s{k}" for k in (1, 2, 3)])
    assert merge(tmp_path / "m", [tmp_path / "s1"]) == 0
    assert kept(tmp_path / "m") == kept(tmp_path / "whole")
    assert len(Rows(tmp_path / "m")) == 24
    for part in ("0/3", "4/3", "x", "1"):
        assert main(["study", "shard", str(file), part, "--out", str(tmp_path / "x")]) == 2
    capsys.readouterr()
    assert main(["study", "sbatch", str(file), "3", "--out", str(tmp_path / "c")]) == 0
    script = capsys.readouterr().out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert "#SBATCH --array=1-3\n" in script
    assert f'study shard {file} "$SLURM_ARRAY_TASK_ID/3"' in script


def start(file, out, *more):
    """A study in a process of its own."""
    command = [sys.executable, "-m", "aqumen", "study", "run", str(file), "--out", str(out), *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def rows_in(folder):
    return sum(len(path.read_bytes().splitlines()) for path in (folder / "runs").glob("*.jsonl"))


LONG = SMALL.replace('"3s"', '"60s"').replace("seeds = 4", "seeds = 40")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_is_stopped_goes_on(tmp_path, how):
    file, out = tmp_path / "study.toml", tmp_path / "o"
    file.write_text(LONG)
    running = start(file, out)
    wait_for(lambda: rows_in(out) > 10)
    running.send_signal(how)
    err = running.communicate()[1]
    assert running.returncode == (-9 if how == signal.SIGKILL else 130), err
    before = kept(out)
    assert 10 <= len(before) < 240
    study, done = Study.load(file), []
    study.run(out, on_progress=lambda now: done.append(now) or len(done) < 5)
    assert before.items() < kept(out).items()
    assert done[0].runs == sum(not key.startswith("columns-") for key in before) + 1


def test_two_writers_do_not_harm_each_other(tmp_path):
    file, out = tmp_path / "study.toml", tmp_path / "o"
    file.write_text(SMALL.replace("seeds = 4", "seeds = 20"))
    running = [start(file, out) for _ in range(2)]
    for each in running:
        assert each.wait(120) == 0, each.stderr.read()
        each.stderr.close()
    rows = Rows(out)
    assert (len(rows), rows.store.damaged) == (120, {})


OWN = """
import aqumen

class Mine(aqumen.SampledLaw):
    period = 0.01
    gain = aqumen.Param(1e-4)

    def step(self, seen):
        return min(max(self.gain * seen.queue_pkts, 0.0), 1.0)
"""


def test_dask_gives_the_rows_of_threads_also_of_ones_own_aqm(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    file = tmp_path / "study.toml"
    file.write_text(SMALL.replace("until", 'aqm-from = ["mine.py:Mine"]\nuntil').replace("[5, 10]", "[5]"))
    study = Study.load(file)
    study.run(tmp_path / "threads")
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        study.run(tmp_path / "dask", on=Dask(cluster))
    assert kept(tmp_path / "dask") == kept(tmp_path / "threads")
    assert {each.fault for each in check(Rows(tmp_path / "dask"), 100)} == {""}


def test_what_a_cluster_lacks_is_told_in_one_line(file, tmp_path, capsys):
    assert main(["study", "run", str(file), "--out", str(tmp_path / "o"), "--on", "dask:tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err.startswith("aqumen: no scheduler of Dask answers at tcp://127.0.0.1:9")
    # Something else answers there.
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            while True:
                try:
                    with server.accept()[0] as connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        url = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        code = main(["study", "run", str(file), "--out", str(tmp_path / "o"), "--on", f"dask:{url}"])
        server.shutdown(socket.SHUT_RDWR)
    assert code == 2
    assert f"no scheduler of Dask answers at {url}" in capsys.readouterr().err
    for where in ("dask", "moon", "dask:"):
        assert main(["study", "run", str(file), "--out", str(tmp_path / "o"), "--on", where]) == 2
    study = Study.load(file)
    answer = run_batch(json.dumps({"version": "0.0.1 (old)", "engine": "packet"}).encode())
    assert json.loads(answer) == {
        "error": f"a worker has Aqumen {version('packet')}, the driver 0.0.1 (old); install the same on both"
    }
    assert study.cases


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers on loopback, each a process."""
    started = []

    def dask(*args):
        command = [sys.executable, "-m", "distributed.cli." + args[0], *args[1:]]
        started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path))
        return started[-1]

    address = tmp_path / "scheduler.json"
    scheduler = dask(
        "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(address)
    )
    wait_for(address.exists)
    url = json.loads(address.read_text())["address"]

    def worker():
        return dask("dask_worker", url, "--nthreads", "1", "--no-nanny", "--no-dashboard")

    yield url, scheduler, [worker(), worker()], worker
    for each in started:
        each.kill()
        each.wait()


@pytest.mark.slow
def test_killed_workers_drivers_and_schedulers_lose_and_repeat_nothing(cluster, tmp_path):
    url, scheduler, workers, worker = cluster
    file = tmp_path / "study.toml"
    file.write_text(LONG.replace('"60s"', '"99s"').replace("seeds = 40", "seeds = 400"))
    out = tmp_path / "o"
    # A worker in the middle.
    driver = start(file, out, "--on", f"dask:{url}")
    wait_for(lambda: driver.poll() is not None or rows_in(out) > 5)
    assert driver.poll() is None, driver.communicate()
    workers[0].kill()
    there = rows_in(out)
    wait_for(lambda: rows_in(out) > there)
    # The driver, which starts again.
    driver.kill()
    driver.communicate()
    before = kept(out)
    worker()
    driver = start(file, out, "--on", f"dask:{url}")
    wait_for(lambda: driver.poll() is not None or rows_in(out) > len(before) + 20)
    # The scheduler.
    scheduler.kill()
    err = driver.communicate(timeout=120)[1]
    assert driver.returncode == 2, err
    assert "finished runs are kept" in err
    again = kept(out)
    assert before.items() < again.items()
    # What is left runs here, and all is as if it had run here.
    done = []
    rows = Study.load(file).run(out, on_progress=lambda now: done.append(now) or True)
    columns = sum(key.startswith("columns-") for key in again)
    assert len(done) == 2400 - (len(again) - columns)
    assert len(rows) == 2400
    lines = [line for path in (out / "runs").iterdir() for line in path.read_bytes().splitlines()]
    keys = [json.loads(line)["key"] for line in lines]
    assert len(keys) == len(set(keys))
    Study.load(file).run(tmp_path / "here")
    assert kept(out) == kept(tmp_path / "here")


def test_the_command_line_sweeps(tmp_path, capsys):
    args = ["compare", "arm-pfc/exp1", "--aqm", "pi,codel", "--until", "2s", "--seeds", "11-12"]
    sweeps = ["--sweep", "flows.ftp.count=5,10", "--sweep", "pi:target=20pkt,50pkt", "--out", str(tmp_path / "o")]
    assert main([*args, *sweeps]) == 0
    assert "12 runs, means and 95 % intervals" in capsys.readouterr().out
    columns = aqumen.open(tmp_path / "o").columns()
    assert set(columns["seed"]) == {11, 12}
    assert main([*args, "--sweep", "flows.ftp.count"]) == 2
    assert "write it as KEY=VALUE" in capsys.readouterr().err
    assert main([*args, "--sweep", "flows.ftp.count=0"]) == 2
    assert main([*args, "--sweep", "x=1", "--theory"]) == 2
    assert main([*args[:-1], "12-11"]) == 2
    assert "--seeds 12-11: must be a number of seeds" in capsys.readouterr().err.splitlines()[-1]


# Statistics.


def test_tests_are_those_of_scipy():
    source = random.Random(2)
    shared = [source.gauss(0, 3) for _ in range(12)]
    one = {seed: 10 + x + source.gauss(0, 1) for seed, x in enumerate(shared)}
    two = {seed: 11 + x + source.gauss(0, 1) for seed, x in enumerate(shared)}
    three = {seed: source.gauss(12, 5) for seed in range(9)}
    test, r, p, effect = compared(one, two)
    a, b, c = (list(each.values()) for each in (one, two, three))
    assert test == "paired"
    assert r == pytest.approx(stats.pearsonr(a, b).statistic)
    assert p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    pooled = np.sqrt((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2)
    assert effect == pytest.approx((np.mean(a) - np.mean(b)) / pooled * (1 - 3 / (4 * 22 - 1)))
    test, _, p, _ = compared(one, three)
    assert test == "welch"
    assert p == pytest.approx(stats.ttest_ind(a, c, equal_var=False).pvalue)
    assert compared({1: 2.0, 2: 2.0}, {1: 2.0, 2: 2.0}) == ("welch", None, 1.0, None)
    assert compared({1: 2.0, 2: 2.0}, {1: 3.0, 2: 3.0})[2] == 0.0


def test_holm_by_hand():
    # Sorted .01, .02, .03, .04: times 4, 3, 2, 1 are .04, .06, .06, .04; none falls below the one before.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_aqms_are_compared_at_each_point(file, tmp_path, capsys):
    rows = Study.load(file).run(tmp_path / "o")
    found = compare_aqms(rows, "queue_mean_pkts")
    assert [point.labels["flows.ftp.count"] for point in found] == [5, 10]
    for point in found:
        assert set(point.aqms) == {"pi:target=20pkt", "pi:target=50pkt", "codel"}
        assert list(point.means) == sorted(point.means)
        assert len(point.comparisons) == 3
        for each in point.comparisons:
            i, j = (point.groups[point.aqms.index(aqm)] for aqm in (each.first, each.second))
            assert each.differs is not bool(set(i) & set(j))
            assert each.p_holm >= each.p
    assert main(["study", "compare", str(tmp_path / "o"), "--metric", "queue_men_pkts"]) == 2
    assert "did you mean queue_mean_pkts?" in capsys.readouterr().err


def test_mser_5_leaves_out_the_transient():
    source = np.random.Generator(np.random.PCG64(1))
    noise = source.normal(0, 1, 1000)
    ramp = np.where(np.arange(1000) < 120, 20 * (1 - np.arange(1000) / 120), 0)
    assert 80 <= mser5(noise + ramp) <= 135
    assert mser5(np.ones(1000)) == 0
    assert mser5(noise) <= 500
    assert mser5(np.ones(3)) == 0


def test_a_study_may_begin_steady_where_a_pilot_has_settled(tmp_path):
    study = Study(scenarios=["arm-pfc/exp1"], aqms=["pi"], until="30s", seeds=1, warm_up="mser-5")
    (case,) = study.cases
    ((key, value),) = case.changes
    assert key == "windows.steady"
    begin, end = json.loads(value)
    assert 0 <= float(begin[:-1]) <= 15
    assert end == "30.0s"
    assert len(study.run(tmp_path)) == 1
    with pytest.raises(ScenarioError, match="warm-up"):
        Study(scenarios=["arm-pfc/exp1"], aqms=["pi"], warm_up="long")


def test_the_shipped_study_is_valid():
    study = Study.load(ROOT / "examples" / "studies" / "load-rtt.toml")
    assert len(study.runs()) == 2000


def test_points_are_counted_while_they_are_checked(file):
    seen = []
    Study.load(file, lambda done, total: seen.append((done, total)))
    assert seen == [(i, 4) for i in range(4)]


def test_an_address_is_no_folder(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "run", str(file), "--out", "s3://bucket/s"]) == 2
    assert "s3:/bucket/s: is an address; name a folder of a file system" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [file]
