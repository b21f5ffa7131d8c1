"""`aqumen studio`: results that it reads, and the server."""

import threading
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

import aqumen
from aqumen import studio
from aqumen.cli.verbs import app
from aqumen.errors import Error, ScenarioError

SMALL = """
name = "small"
duration = "3s"
[topology]
preset = "dumbbell"
bottleneck = { rate = "4Mbit", delay = "10ms", buffer = "50pkt" }
access = { rate = "100Mbit", delay = "5ms" }
[[flows]]
name = "bulk"
count = 4
transport = "modern"
"""


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studio")
    (folder / "small.toml").write_text(SMALL)
    line = ["compare", str(folder / "small.toml"), "--aqm", "pi:target=20pkt", "--aqm", "codel", "--seeds", "2"]
    told = CliRunner().invoke(app, [*line, "--out", str(folder / "out")], standalone_mode=False)
    assert told.exit_code == 0, told.output
    return folder / "out"


@pytest.fixture
def page(tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "engine.wasm").write_bytes(b"\0asm")
    monkeypatch.setattr(studio, "page_folder", lambda: tmp_path)


def served(server, path):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=10) as answer:
            return answer.headers["Content-Type"], answer.read()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_runs_of_a_comparison_are_read_with_their_specs_seeds_and_metrics(comparison):
    results = studio.read_results(comparison)
    assert [(run["aqm"], run["seed"]) for run in results["runs"]] == [
        ("pi:target=20pkt", 1),
        ("pi:target=20pkt", 2),
        ("codel", 1),
        ("codel", 2),
    ]
    run = aqumen.run(aqumen.Scenario.parse(results["scenario"]), "codel", seed=2)
    assert results["runs"][3]["metrics"]["queue_mean_pkts"] == run.link("bottleneck", "steady")["queue_mean_pkts"]
    assert aqumen.Scenario.parse(results["scenario"]).name == results["name"] == "small"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "small.toml").write_text(SMALL)
    (folder / "study.toml").write_text(
        'title = "two rates"\nscenarios = ["small.toml"]\naqms = ["pi:target=20pkt", "codel"]\nseeds = 2\n'
        '[factors]\n"bottleneck.rate" = ["4Mbit", "2Mbit"]\n'
    )
    line = ["study", "run", str(folder / "study.toml"), "--out", str(folder / "out")]
    told = CliRunner().invoke(app, line, standalone_mode=False)
    assert told.exit_code == 0, told.output
    return folder / "out"


def test_runs_of_a_study_are_read_with_factors_and_each_case_gives_its_scenario(study):
    results, scenario_of = studio.open_folder(study)
    assert results["name"] == "two rates"
    assert len(results["runs"]) == 8
    chosen = [run for run in results["runs"] if run["aqm"] == "codel" and run["labels"]["bottleneck.rate"] == "2Mbit"]
    assert [run["seed"] for run in chosen] == [1, 2]
    again = aqumen.run(aqumen.Scenario.parse(scenario_of(chosen[1]["case"])), "codel", seed=2)
    expected = again.link("bottleneck", "steady")["queue_mean_pkts"]
    assert chosen[1]["metrics"]["queue_mean_pkts"] == pytest.approx(expected, rel=1e-11)


def test_reports_of_a_comparison_and_of_a_study_name_the_studio(comparison, study):
    assert "aqumen studio DIR" in (comparison / "report.html").read_text()
    told = CliRunner().invoke(app, ["report", str(study)], standalone_mode=False)
    assert told.exit_code == 0, told.output
    assert "aqumen studio DIR" in (study / "report.html").read_text()


@pytest.mark.usefixtures("page")
def test_the_server_answers_with_the_scenario_of_a_case(study):
    results, scenario_of = studio.open_folder(study)
    kind, content = served(studio.server(0, results, scenario_of), "/scenario.toml?case=3")
    assert (kind, content.decode()) == ("text/plain; charset=utf-8", scenario_of(3))


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("query", ["", "?case=", "?case=one", "?case=-1", "?case=4"])
def test_a_case_that_a_study_does_not_have_is_refused(study, query):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        served(studio.server(0, *studio.open_folder(study)), f"/scenario.toml{query}")


def test_a_study_of_another_engine_and_one_without_runs_are_refused(study, tmp_path):
    text = (study / "study.json").read_text()
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(ScenarioError, match="no run is finished"):
        studio.open_folder(tmp_path)
    (tmp_path / "study.json").write_text(text.replace('"engine": "packet"', '"engine": "fluid"'))
    with pytest.raises(ScenarioError, match="runs of the engine fluid"):
        studio.open_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (None, "", r"no compare\.json; name a folder that aqumen compare --out wrote"),
        ("compare.json", "{", "cannot be read"),
        ("compare.json", '{"aqms": {"pi": {}}, "engine": "fluid", "scenario": "x"}', "runs of the engine fluid"),
        ("compare.json", '{"aqms": {"pi": {}}, "engine": "packet", "scenario": "x"}', "no finished run"),
    ],
)
def test_a_folder_without_a_comparison_is_refused_in_one_line(tmp_path, name, text, message):
    (tmp_path / "scenario.toml").write_text(SMALL)
    if name:
        (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError, match=message) as error:
        studio.read_results(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("path", "kind", "content"),
    [
        ("/", "text/html", b"the page"),
        ("/engine.wasm", "application/wasm", b"\0asm"),
        ("/studio.json", "application/json", b'{"runs": []}'),
    ],
)
def test_the_server_answers_with_page_engines_and_results(path, kind, content):
    assert served(studio.server(0, {"runs": []}), path) == (kind, content)


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize("path", ["/studio.json", "/missing", "/../../etc/hostname"])
def test_the_server_has_nothing_else(path):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        served(studio.server(0), path)


@pytest.mark.usefixtures("page")
def test_a_port_that_is_taken_is_refused():
    first = studio.server(0)
    with first, pytest.raises(Error, match=f"--port {first.server_port}: "):
        studio.server(first.server_port)


def test_a_page_that_is_not_built_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(studio, "__file__", str(tmp_path / "aqumen" / "studio.py"))
    with pytest.raises(Error, match="make playground"):
        studio.page_folder()


def test_a_port_out_of_range_is_refused():
    told = CliRunner().invoke(app, ["studio", "--port", "70000"])
    assert told.exit_code == 2
    assert "70000" in told.stderr
