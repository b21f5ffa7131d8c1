"""Files, output and Rust code in README and the pages are right: every TOML, JSON and Rust block is tried.

Commands and Python are in `test_pages.py`. A TOML block is a scenario or a model; a comment `<!-- part: of ... -->`
before it says that it is a part, and it is tried where it belongs.
"""

import json
import re
import tomllib

import pytest
from test_pages import PAGES, ROOT

import aqumen
from aqumen.cli import main

BLOCK = re.compile(r"(?:^<!-- part: ([^>]+) -->\n)?^```(\S*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
EVERY = [
    (f"{page.relative_to(ROOT)}-{i}", *found)
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md")
    if page.is_file()
    for i, found in enumerate(BLOCK.findall(page.read_text()))
]


def blocks(kind):
    return [pytest.param(part, body, id=name) for name, part, of, body in EVERY if of == kind]


def test_no_block_is_of_a_kind_that_nobody_tries():
    # `console` shows prompts and more than is typed; `bash` calls generated scripts; `text` is output.
    assert {kind for _, _, kind, _ in EVERY} <= {
        "sh",
        "bash",
        "python",
        "toml",
        "json",
        "rust",
        "console",
        "text",
        "ini",
        "markdown",
        "{toctree}",
        "{eval-rst}",
    }
    assert len(blocks("toml")) >= 8
    assert len(blocks("json")) >= 2


FLOWS = """
[[flows]]
name = "ftp"
count = 30
transport = { preset = "modern", ecn = true }
"""
AROUND = """
name = "around"
duration = "100s"
aqm = "droptail"

[topology]
preset = "dumbbell"
bottleneck = { rate = "10Mbit", delay = "5ms", buffer = "250pkt" }
access = { rate = "1Gbit" }
"""


@pytest.mark.parametrize(("part", "body"), blocks("toml"))
def test_a_file_that_is_shown_is_one_that_loads(part, body, tmp_path, capsys):
    file = tmp_path / "shown.toml"
    if part == "of flows, one line each":
        texts = [AROUND + FLOWS + line for line in body.splitlines()]
    elif part == "of a scenario":
        texts = [AROUND + FLOWS + 'rtt = "100ms"\n' + body]
    else:
        assert part == ""
        texts = [body]
    for text in texts:
        file.write_text(text)
        if "scenarios" in tomllib.loads(text):
            assert aqumen.Study.load(file).cases
            continue
        if "sources" in tomllib.loads(text):
            assert main(["mmpp", str(file)]) == 0
            assert "utilisation" in capsys.readouterr().out
            continue
        scenario = aqumen.Scenario.load(file)
        for cell in scenario.cells or [None]:
            plan = (scenario if cell is None else scenario.cell(cell)).plan()
            assert plan["flows"] or plan["groups"]


SOME = {"windows", "params", "given", "links/*", "links/*/*", "flows", "flows/*", "flows/*/*"}
"""Where a page shows some of many names: windows, parameters, metrics."""


def missing(shown, printed, path=""):
    """Lines of a page that the command does not print; and the reverse, unless the page shows an excerpt."""
    if isinstance(shown, list):
        return missing(shown[0], printed[0], path) if shown and isinstance(shown[0], dict) else []
    if not isinstance(shown, dict) or not shown:
        return []
    extra = set(shown) - set(printed)
    pattern = re.sub(r"^(aqms/[^/]+/)?(links|flows)/[^/]+", r"\2/*", path)
    pattern = re.sub(r"^(links|flows)/\*/[^/]+$", r"\1/*/*", pattern).rpartition("aqm/")[2]
    lacking = set() if pattern in SOME else set(printed) - set(shown)
    wrong = [f"{path}: {sorted(extra)} is not printed"] * bool(extra)
    wrong += [f"{path}: {sorted(lacking)} is not shown"] * bool(lacking)
    for key in set(shown) & set(printed):
        wrong += missing(shown[key], printed[key], f"{path}/{key}".lstrip("/"))
    return wrong


@pytest.mark.parametrize(("part", "body"), blocks("json"))
def test_json_that_is_shown_has_the_keys_that_are_printed(part, body, capsys):
    shown = json.loads(body)
    if "seed" in shown:
        assert main(["run", "arm-pfc/exp1", "--aqm", "pi:target_delay=80ms", "--until", "12s", "--json"]) == 0
    else:
        assert main(["compare", "arm-pfc/exp1", "--aqm", "pi", "--seeds", "2", "--until", "12s", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert missing(shown, printed) == []
    assert shown["schema"] == printed["schema"]


@pytest.mark.parametrize(("part", "body"), blocks("rust"))
def test_rust_that_is_shown_is_compiled(part, body):
    """Rust blocks are literal excerpts of the crate `examples/own-aqm`, which `make test` builds and runs."""
    sources = [path.read_text() for path in (ROOT / "examples" / "own-aqm" / "src").glob("*.rs")]
    words = " ".join(body.split())
    assert any(words in " ".join(source.split()) for source in sources)
