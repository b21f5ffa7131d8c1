"""`scripts/instructions`: counts of instructions beside those kept, without counting any."""

import importlib.util
import shutil
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "scripts" / "instructions")
KEPT = "rustc 1.0\nexp1 codel   1000\nmix   2000\n"


@pytest.fixture
def script(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader("instructions", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("instructions", loader))
    loader.exec_module(module)
    (tmp_path / "kept.txt").write_text(KEPT)
    monkeypatch.setattr(module, "KEPT", tmp_path / "kept.txt")
    monkeypatch.setattr(module, "build", lambda: "answers")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(module, "compiler", lambda: "rustc 1.0")
    return module


@pytest.fixture
def cost(script, monkeypatch):
    """Sets the instructions per packet that each run takes after its set-up of 5000 instructions."""

    def set_cost(cost):
        def count(_program, _name, end, _file, _options):
            packets = 100 * int(end.removesuffix("s"))
            return 5000 + cost * packets, packets

        monkeypatch.setattr(script, "count", count)

    return set_cost


def test_rows_are_marginal_costs_beside_those_kept(script, cost, capsys):
    cost(1020)
    script.main(["exp1 codel"])
    assert capsys.readouterr().out.split() == ["exp1", "codel", "1020", "kept", "1000", "+2.0", "%"]


def test_more_than_three_percent_is_an_error_of_the_same_compiler_alone(script, cost, monkeypatch, capsys):
    cost(1040)
    with pytest.raises(SystemExit, match=r"over 3% more instructions than in kept\.txt: exp1 codel$"):
        script.main(["exp1 codel", "mix"])
    monkeypatch.setattr(script, "compiler", lambda: "rustc 2.0")
    script.main(["exp1 codel", "mix"])
    assert "no difference is an error" in capsys.readouterr().out


def test_keep_replaces_the_rows_counted_and_leaves_the_others(script, cost):
    cost(1500)
    script.main(["--keep", "codel"])
    kept = dict(row.rsplit(maxsplit=1) for row in script.KEPT.read_text().splitlines()[1:])
    assert {name.strip(): int(cost) for name, cost in kept.items()} == {
        **{name: 1500 for name in script.RUNS if "codel" in name},
        "mix": 2000,
    }


def test_the_kept_file_has_every_row(script):
    lines = (ROOT / "benchmarks" / "instructions.txt").read_text().splitlines()
    assert lines[0].startswith("rustc ")
    assert [line.rsplit(maxsplit=1)[0] for line in lines[1:]] == list(script.RUNS)


@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["exp1", "nonsense"]])
def test_bad_arguments_are_refused(arguments):
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)
    assert done.returncode == 2
    assert "nonsense" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_valgrind_one_line_says_what_is_skipped(script, monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    script.main([])
    assert capsys.readouterr().out == (
        "Missing: valgrind (Debian package valgrind). Skipped for it: the count of instructions.\n"
    )
