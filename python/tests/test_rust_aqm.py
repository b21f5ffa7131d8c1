"""AQMs of one's own in Rust: the crate that `aqumen new aqm --rust` writes, and the core that AQUMEN_CORE names."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from aqumen import Scenario, _core, _store
from aqumen._store import Digests
from aqumen.cli import main
from aqumen.study.frozen import freeze

ROOT = Path(__file__).parents[2]
FILES = {".cargo", ".gitignore", "Cargo.lock", "Cargo.toml", "README.md", "src"}


def aqumen(*words, **variables):
    """A process of its own with these words and environment variables."""
    command = [sys.executable, "-m", "aqumen", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


def test_a_new_crate_has_its_name_everywhere_and_the_versions_of_the_checkout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "aqm", "--rust", "slow-wave"]) == 0
    folder = tmp_path / "slow-wave"
    assert {path.name for path in folder.iterdir()} == FILES
    assert {path.name for path in tmp_path.iterdir()} == {"slow-wave"}
    text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert not any(left in text for left in ("my-law", "MyLaw", "CHECKOUT"))
    assert 'name: "slow-wave"' in (folder / "src/law.rs").read_text()
    assert "cargo run --release -- compare arm-pfc/exp1 --aqm slow-wave --aqm pi" in capsys.readouterr().err
    # What cargo makes of it: a library for Python and a program, on the crates and versions of this checkout.
    ask = ["cargo", "metadata", "--offline", "--format-version", "1", "--manifest-path", str(folder / "Cargo.toml")]
    packages = json.loads(subprocess.run(ask, capture_output=True, check=True).stdout)["packages"]
    targets = {each["name"]: [target["kind"] for target in each["targets"]] for each in packages}
    assert targets["slow-wave"] == [["cdylib"], ["bin"]]
    assert ["cdylib", "rlib"] in targets["aqumen-python"]
    locked = {(each["name"], each["version"]) for each in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    assert {(each["name"], each["version"]) for each in packages} - locked == {("slow-wave", "0.1.0")}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rust", "../x"], "a name consists of words of a-z"),
        (["--rust", "Wave"], "a name consists of words of a-z"),
        (["--rust", "pi"], "is built in"),
        (["--rust", "match"], "a crate cannot have this name"),
        (["--rust", "aqumen-aqm"], "a crate cannot have this name"),
        (["--rust", "there"], "there already exists"),
        (["--rust", "wave", "--checkout", "there"], "--checkout there: not a folder with Aqumen's sources"),
        (["wave", "--checkout", str(ROOT)], "--checkout: belongs to --rust"),
    ],
)
def test_what_is_typed_wrong_is_one_line_and_leaves_nothing(words, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["new", "aqm", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_without_cargo_nothing_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["new", "aqm", "--rust", "wave"]) == 2
    assert capsys.readouterr().err == "aqumen: --rust needs cargo: install Rust (https://rustup.rs)\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_core_is_one_line(tmp_path):
    (tmp_path / "text.so").write_text("no library")
    for name, told in ((tmp_path / "none.so", "no such file"), (tmp_path / "text.so", ""), (_core.__file__, "_own")):
        done = aqumen("list", "aqms", AQUMEN_CORE=str(name))
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"aqumen: AQUMEN_CORE={name}: ")
        assert told in line


def test_runs_of_a_compiled_aqm_are_known_by_its_library(tmp_path, monkeypatch):
    def keys(contents):
        """Digests of a run of `wave`, of `pi`, of a scenario that names `wave`; the freeze of both AQMs."""
        (tmp_path / "core.so").write_text(contents)
        with monkeypatch.context() as patch:
            patch.setattr(_core, "compiled_aqms", lambda: ["wave"])
            patch.setattr(_core, "__file__", str(tmp_path / "core.so"))
            _store._compiled.cache_clear()
            digests = [Digests(scenario, "packet") for scenario in (plain, naming)]
            found = digests[0].case("wave:gain=1"), digests[0].case("pi"), digests[1].case("pi")
            frozen = freeze(["wave", "pi"], ()).aqms
        _store._compiled.cache_clear()
        return [*found, frozen["wave"], frozen["pi"]]

    plain = Scenario.load("arm-pfc/exp1")
    # The name may stand anywhere in the text; a longer word is another.
    naming = plain.set("title", "with wave:gain=1")
    first, second = keys("one build"), keys("another build")
    assert [a == b for a, b in zip(first, second, strict=True)] == [False, True, False, False, True]
    assert first[1] == Digests(plain, "packet").case("pi")
    assert keys("one build") == first


@pytest.mark.slow
def test_a_new_crate_compares_and_ranks_with_its_aqm_compiled_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "aqm", "--rust", "mine"]) == 0
    release = tmp_path / "mine/target/release"
    quick = {**os.environ, "CARGO_TARGET_DIR": str(release.parent), "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}
    for words in (["test", "--offline"], ["build", "--release", "--offline"]):
        done = subprocess.run(["cargo", *words], cwd="mine", env=quick, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    # The folder of `python -m aqumen`, as an activated environment has it.
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def mine(*words, code=0):
        done = subprocess.run([release / "mine", *words], env=path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    listed = json.loads(mine("list", "aqms", "--json").stdout)["aqms"]
    assert next(row["kind"] for row in listed if row["name"] == "mine") == "single-queue"
    compare = ["compare", "arm-pfc/exp1", "--aqm", "mine", "--aqm", "pie", "--seeds", "2", "--until", "12s"]
    data = json.loads(mine(*compare, "--out", "out", "--json").stdout)
    assert {row["aqm"] for row in data["ranking"]["order"]} == {"mine", "pie"}
    assert "mine" in (tmp_path / "out/report.html").read_text()
    # The law of Python's template is the same law: the same bits.
    links = [json.loads(each)["links"] for each in (
        mine("run", "arm-pfc/exp1", "--aqm", "mine", "--until", "12s", "--json").stdout,
        _of_python_template(),
    )]  # fmt: skip
    assert links[0] == links[1]
    # A wrong parameter, and the AQM without its library.
    (line,) = mine("run", "arm-pfc/exp1", "--aqm", "mine:gain=0", code=2).stderr.splitlines()
    assert "gain = 0: must be a number above 0" in line
    assert "mine" in aqumen("run", "arm-pfc/exp1", "--aqm", "mine").stderr
    # A record of others, which the newcomer joins.
    assert main(["study", "draw", "--seed", "7", "--count", "2", "--family", "access", "--out", "nets"]) == 0
    assert main(["study", "rank", "nets", "--aqm", "droptail,pie", "--seeds", "1", "--keep", "r.jsonl.gz"]) == 0
    words = ["study", "rank", "--record", "r.jsonl.gz", "--aqm", "droptail,pie,mine", "--out", "new", "--json"]
    ranked = json.loads(mine(*words).stdout)
    assert {place["aqm"] for place in ranked["figures"][0]["places"]} == {"droptail", "pie", "mine"}
    assert (tmp_path / "new/ranking.html").is_file()
    mine("report", "out")


def _of_python_template():
    assert main(["new", "aqm", "wave"]) == 0
    run = aqumen("run", "arm-pfc/exp1", "--aqm-from", "wave/wave.py:Wave", "--until", "12s", "--json")
    return run.stdout
