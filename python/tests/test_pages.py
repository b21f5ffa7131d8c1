"""Commands in README and the pages work: each is parsed, and the journeys are run."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

import aqumen
from aqumen.cli import main
from aqumen.cli.examples import EXAMPLES
from aqumen.cli.options import spec_list
from aqumen.cli.verbs import VERBS, app
from aqumen.engines.external.crosscheck import select
from aqumen.engines.external.ns2.crosscheck import CELLS
from aqumen.study import Study

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    *sorted(set((ROOT / "docs").rglob("*.md")) - {*NOTEBOOKS}),
    ROOT / "experiments" / "README.md",
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page):
    """The lines of a page that call `aqumen`, continuation lines joined, comments cut."""
    for kind, body in FENCE.findall(page.read_text()):
        if kind not in ("sh", "bash"):
            continue
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith("aqumen "):
                yield line.partition("#")[0].strip()


def typed(page):
    """Every line of a page that a reader types, without the prompt."""
    for kind, body in FENCE.findall(page.read_text()):
        prompt = re.compile(r"[$#] " if kind == "console" else "")
        if kind in ("sh", "bash", "console"):
            lines = body.replace("\\\n", " ").splitlines()
            yield from (
                line[found.end() :].partition("  #")[0].strip() for line in lines if (found := prompt.match(line))
            )


EVERY = [
    *((str(page.relative_to(ROOT)), line) for page in PAGES if page.is_file() for line in commands(page)),
    *((f"aqumen {verb} --help", line) for verb, lines in EXAMPLES.items() for line in lines),
]


def words_of(line):
    words = shlex.split(line)[1:]
    # What the shell would do with the output.
    end = next((i for i, word in enumerate(words) if word in (">", "|")), len(words))
    return words[:end]


def test_there_are_commands_to_look_at():
    assert len(EVERY) > 30
    assert {page for page, _ in EVERY} >= {"README.md", "docs/everyday.md", "docs/tutorial.md"}


@pytest.mark.parametrize(("page", "line"), EVERY, ids=[f"{page}:{line[:60]}" for page, line in EVERY])
def test_a_command_is_one_that_there_is(page, line, monkeypatch):
    """Its verb, options and values are taken, its scenarios and AQMs are there. It is not run."""
    monkeypatch.chdir(ROOT)
    verb, *rest = words_of(line)
    assert verb in VERBS
    context = click.Context(app, info_name="aqumen")
    command = app.get_command(context, verb)
    try:
        given = command.make_context(verb, list(rest), parent=context).params
    except click.exceptions.Exit:
        return
    scenario = str(given.get("scenario") or "")
    file = scenario.partition("@")[0]
    # A file of the reader's own, or AQMs of their own: not here to be looked at.
    own = (
        not scenario or "SCENARIO" in scenario or given.get("aqm_from") or ("/" not in file and file.endswith(".toml"))
    )
    loaded = None if own else aqumen.Scenario.load(scenario)
    specs = given.get("aqm") or ()
    for spec in spec_list([specs] if isinstance(specs, str) else specs):
        if loaded is not None:
            loaded.check_aqm(spec)


# What shortens a command that is run here, by how it begins: the first that fits.
SHORTER = (
    ("aqumen uplink", ["--seeds", "1", "--duration", "15s", "--senders", "cubic", "--aqm", "fq-codel-linux"]),
    ("aqumen office", ["--seeds", "1", "--duration", "4s", "--senders", "cubic", "--aqm", "fq-codel-linux"]),
    ("aqumen cell", ["--seeds", "1", "--duration", "15s", "--senders", "cubic", "--aqm", "fq-codel-linux"]),
    ("aqumen backbone", ["--seeds", "1", "--duration", "4s", "--senders", "cubic", "--aqm", "droptail"]),
    ("aqumen datacenter", ["--seeds", "1", "--duration", "20ms"]),
    ("aqumen run self-tuning", ["--until", "1s"]),
    ("aqumen run aqm-mo", ["--until", "2s"]),
    ("aqumen run aaqm", ["--until", "30s"]),
    ("aqumen run", ["--until", "10s"]),
    ("aqumen compare", ["--seeds", "2", "--until", "12s"]),
    ("aqumen break", ["--runs", "60"]),
    ("aqumen reproduce rfc7928", ["--quick", "--seeds", "2"]),
    ("aqumen reproduce", ["--seeds", "2"]),
    ("aqumen validate ns2", ["--seeds", "2", "--cell", "arm_exp1/PIx1000"]),
)
LONG = ("aqumen reproduce", "aqumen validate", "aqumen tune", "aqumen study rank --record atlas --aqm-from")
"""Minutes, however short: they are run by `make test-full`."""
BESIDES = ("docs/tutorial.md", "docs/everyday.md")
"""Pages that are done from top to bottom below."""
OTHERS = {
    r"pip install ": "installs; test_journeys.py and scripts/wheels do so in empty environments",
    r"make |cargo build |podman |packaging/debian/build$": "builds for minutes",
    r"sudo ": "needs root; test_link.py, test_live.py and crates/live/tests make such links and runs",
    r"python examples/rl/": "takes ten minutes; test_agent.py trains and compares for seconds",
    r"pytest wave/$": "test_custom.py runs the test that `aqumen new` writes",
    r"cd mine$|cargo (test$|run )": "builds for minutes; test_rust_aqm.py does so",
    r"(DEVICE=\w+ )?\./fq-codel-linux\.sh": "needs root; test_shaping.py runs such scripts in namespaces",
    r"(apt|cp|systemctl|tc) |echo .src-link|\./scripts/feeds ": "changes Debian, OpenWrt or a shaper",
    r"aqumend ": "needs root; its options are checked below, and crates/live/tests attach to shapers",
    r"aqumen studio": "serves until it is stopped; test_studio.py asks it for pages",
    r"aqumen run SCENARIO": "names a file of the reader's",
    r"jq |python examples/captures/make\.py ": "",
}
"""Lines that are not typed here as they stand, and why; without a reason a test below runs them."""


def in_tables(page):
    """Whole commands in the first column but one of a table: what a reader may copy too."""
    for row in re.findall(r"^\|.*\|$", page.read_text(), re.MULTILINE):
        for cell in row.split("|"):
            found = re.fullmatch(r" `(aqumen [^`]+)` ", cell)
            if found and not re.search(r"[A-Z]{3}|\[", found[1]):
                yield found[1]


RUN = sorted(
    {
        line
        for page in PAGES
        if page.is_file() and str(page.relative_to(ROOT)) not in BESIDES
        for line in (*commands(page), *in_tables(page))
        if not re.match("|".join(OTHERS), line)
    }
)
QUICK = [line for line in RUN if not line.startswith(LONG)]


def test_a_cell_that_shortens_a_command_is_one_that_there_is():
    cells = [more[more.index("--cell") + 1] for _, more in SHORTER if "--cell" in more]
    assert [cell.name for cell in select(CELLS, cells)] == cells


def shortened(line):
    more = next((more for begin, more in SHORTER if line.startswith(begin)), [])
    if line.startswith("aqumen compare") and "/" not in line.split()[2].removesuffix(".toml"):
        more = more[:2]
    return [*words_of(line), *more]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty folder from which the checkout's experiments and examples are seen."""
    for name in ("experiments", "examples", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    # Captures that a reader would have.
    for name in ("office.pcapng", "big.pcap", "capture.pcapng"):
        (tmp_path / name).symlink_to(ROOT / "examples" / "captures" / "home.pcap")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "line", [*QUICK, *(pytest.param(line, marks=pytest.mark.slow) for line in sorted(set(RUN) - set(QUICK)))]
)
def test_a_command_does_run(line, checkout, capsys):
    if line.startswith("aqumen validate ns2") and shutil.which("ns") is None:
        pytest.skip("missing: ns")
    if line.startswith(("aqumen study", "aqumen report")) and " run " not in line:
        # The page's commands before it made the folder.
        Study(scenarios=["arm-pfc/exp1"], aqms=["pi", "codel"], until="2s", seeds=20).run("s")
    if "wave/wave.py" in line:
        main(["new", "aqm", "wave"])
        capsys.readouterr()
    if folder := re.match("aqumen study rank (nets|wrong) ", line + " "):
        main(["study", "draw", "--seed", "7", "--count", "2", "--family", "access", "--out", folder[1]])
        capsys.readouterr()
    code = main(shortened(line))
    told = capsys.readouterr()
    # A comparison with others may find a difference; that is an answer.
    assert code in ((0, 1) if line.startswith(LONG) else (0,)), told.err
    # A page goes into the folder.
    printed = told.err if line.startswith(("aqumen report", "aqumen new")) else told.out
    assert len(printed) > (20 if line.startswith(("aqumen study", "aqumen report")) else 100)
    assert "Traceback" not in told.err
    if (out := re.search(r"--out (\S+)", line)) is not None:
        assert (checkout / out[1]).exists()


TYPED = sorted({line for page in PAGES if page.is_file() for line in typed(page) if line})


@pytest.mark.parametrize("line", [line for line in TYPED if not line.startswith("aqumen ")])
def test_another_program_is_called_with_what_there_is(line):
    """Its targets, profiles, extras and files exist. `OTHERS` says why the line is not run."""
    assert re.match("|".join(OTHERS), line), f"{line}: run it in a test, or say in OTHERS why not"
    words = shlex.split(line.removeprefix("sudo "))
    if words[0] == "make" and not words[1].startswith("package/"):
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    if "--profile" in words:
        assert words[words.index("--profile") + 1] in tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    if words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        assert {name for each in re.findall(r"\[(.*)\]", line) for name in each.split(",")} <= set(extras)
    if words[0] == "python" or words[0].startswith("packaging/"):
        assert (ROOT / words[words[0] == "python"]).is_file()


@pytest.mark.needs("aqumend")
@pytest.mark.parametrize("line", [line for line in TYPED if re.match(r"(sudo )?aqumend ", line)])
def test_aqumend_has_the_verb_and_the_options(line):
    verb, *words = shlex.split(line.removeprefix("sudo "))[1:]
    told = subprocess.run(["aqumend", verb, "--help"], capture_output=True, text=True, check=True).stdout
    assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", told))


def test_a_capture_of_the_reader_s_size_is_made(checkout):
    (line,) = (line for line in TYPED if line.startswith("python examples/captures/make.py"))
    command = [sys.executable, *line.replace("1000000", "1000").split()[1:]]
    # The link leads to the checkout.
    (checkout / "big.pcap").unlink()
    subprocess.run(command, check=True, capture_output=True)
    assert main(["replay", "big.pcap", "--rate", "1.5Mbit", "--aqm", "droptail"]) == 0


def test_the_page_of_replays_shows_what_is_printed(checkout, capsys):
    page = ROOT / "docs" / "replay.md"
    (shown,) = (body for kind, body in FENCE.findall(page.read_text()) if kind == "text")
    assert main(words_of(next(commands(page)))) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in shown.splitlines() if line not in ("", "...") and line not in printed] == []


@pytest.mark.needs("jq")
def test_jq_reads_the_rows_of_runs(checkout, capsys):
    (line,) = (line for line in TYPED if line.startswith("jq "))
    assert main(["compare", "arm-pfc/exp1", "--aqm", "pi", "--seeds", "2", "--until", "12s", "--out", "out"]) == 0
    printed = subprocess.run(["bash", "-c", line], check=True, capture_output=True, text=True).stdout
    assert sorted(json.loads(row)[:2] for row in printed.splitlines()) == [["pi", 1], ["pi", 2]]


SNIPPETS = {
    "README.md": 1,
    "docs/index.md": 1,
    "docs/python.md": 3,
    "docs/replay.md": 1,
    "docs/engines/theory.md": 1,
    "docs/own-aqm.md": 1,
    "docs/controllers.md": 2,
    "docs/gym.md": 2,
    "docs/identify.md": 2,
    "docs/session.md": 2,
    "docs/studies.md": 1,
    "docs/searches.md": 1,
    "docs/traffic.md": 1,
}
"""Pages with Python that are not done from top to bottom below, and how many snippets each has."""


def test_all_python_of_the_pages_is_run_somewhere():
    found = {}
    for page in PAGES:
        number = sum(kind == "python" for kind, _ in FENCE.findall(page.read_text())) if page.is_file() else 0
        if number:
            found[str(page.relative_to(ROOT))] = number
    assert found == {**SNIPPETS, "docs/tutorial.md": 1, "docs/theory/design.md": 1}


@pytest.mark.parametrize("page", SNIPPETS)
def test_the_python_of_a_page_runs(page, checkout):
    for module in ("matplotlib", "control", "gymnasium"):
        pytest.importorskip(module)
    names = {"__name__": "page"}
    for kind, body in FENCE.findall((ROOT / page).read_text()):
        if kind == "python":
            # Twenty seeds say no more about the snippet than two.
            exec(compile(body.replace("seeds=20", "seeds=2"), page, "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(notebook, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    cells = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```", notebook.read_text(), re.DOTALL | re.MULTILINE)
    assert len(cells) >= 3
    names = {"__name__": "notebook"}
    for cell in cells:
        exec(compile(cell, notebook.name, "exec"), names)


def run_page(name, folder, monkeypatch, capsys, shorten):
    """Do what a page says, in an empty folder: its files written, its commands and snippets run in order."""
    monkeypatch.chdir(folder)
    text = (ROOT / "docs" / name).read_text()
    for file, body in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        (folder / file).write_text(body)
    outputs = []
    for kind, body in FENCE.findall(text):
        if kind == "sh":
            for line in body.splitlines():
                assert main([*words_of(line.partition("#")[0]), *shorten(line)]) == 0, line
                outputs.append(capsys.readouterr().out)
        elif kind == "python":
            exec(compile(body, name, "exec"), {"__name__": "page"})
            outputs.append(capsys.readouterr().out)
    return outputs


def test_the_researchers_tutorial_does_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")

    def shorten(line):
        return ["--seeds", "2", "--until", "12s"] if "--seeds 5" in line else []

    ran, compared, latex, *_, python = run_page("tutorial.md", tmp_path, monkeypatch, capsys, shorten)
    assert "pie on bottleneck" in ran
    assert "Ranked by delay at utilisation" in compared
    assert latex.count("\\begin{tabular}") >= 2
    assert python.count(" ms, 95 % between ") == 2
    assert (tmp_path / "out" / "report.html").is_file()
    assert (tmp_path / "figures" / "queue.pdf").is_file()


def test_the_operators_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    quick = ["--seeds", "1", "--duration", "15s"]

    def shorten(line):
        if "office" in line:
            return [*quick[:2], "--duration", "4s", "--senders", "cubic"]
        return [*quick[:2], "--duration", "20ms"] if "datacenter" in line else [*quick, "--senders", "cubic"]

    outputs = run_page("everyday.md", tmp_path, monkeypatch, capsys, shorten)
    assert len(outputs) == 6
    assert all("Ranked by a score" in output for output in outputs)
    assert (tmp_path / "home" / "report.html").is_file()


def test_the_answer_at_the_top_names_the_best_of_each_table():
    text = (ROOT / "docs" / "everyday.md").read_text()
    answer, _, below = text.partition("For your own numbers")
    tables = re.findall(r"^\| AQM \| score.*\n\|[-|]+\|\n((?:\|.*\n)+)", below, re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        scores = {row[1]: float(row[2]) for row in re.finditer(r"^\| `?([^`|]+?)`? \| ([\d.]+) ±", table, re.MULTILINE)}
        best = max(scores, key=scores.get)
        assert f"`{best.removesuffix('-linux').replace('-', '_')}`" in answer


def test_the_control_engineers_page_does_what_it_says(tmp_path, monkeypatch):
    pytest.importorskip("control")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "theory" / "design.md").read_text()
    (snippet,) = (body for kind, body in FENCE.findall(text) if kind == "python")
    exec(compile("import control\n" + snippet, "design.md", "exec"), {"__name__": "page"})
    assert "InputDelay" in (tmp_path / "loop.m").read_text()


def test_the_manual_page_holds_every_verb_and_option(capsys):
    assert main(["man"]) == 0
    text, err = capsys.readouterr()
    assert err == ""
    for verb in VERBS:
        assert f"\n.SH {verb.upper()}\n" in text
    assert "\\-\\-down RATE" in text
    # No line is taken for a command by mistake.
    assert {line.split()[0] for line in text.splitlines() if line.startswith(".")} == {".TH", ".SH", ".B", ".PP", ".TP"}
    assert not any(line.startswith("'") for line in text.splitlines())
