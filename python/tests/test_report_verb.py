"""`aqumen report`: pages of kept runs are made again from their folder alone, and gaps are named."""

import json
import shutil
from pathlib import Path

import pytest

import aqumen
from aqumen.cli import main

ROOT = Path(__file__).parents[2]


def compared(folder, *more):
    args = ["compare", "arm-pfc/exp1", "--aqm", "pi,codel", "--seeds", "2", "--until", "12s", "--out", str(folder)]
    assert main([*args, *more]) == 0
    return folder / "report.html"


def test_the_page_of_a_comparison_is_the_same_page(tmp_path, capsys, monkeypatch):
    page = compared(tmp_path / "o", "--rank-by", "delay", "--target", "30pkt", "--theory")
    before = page.read_bytes()
    page.unlink()
    # Elsewhere, without what it was made of.
    shutil.move(tmp_path / "o", tmp_path / "moved")
    (tmp_path / "moved" / "scenario.toml").unlink()
    monkeypatch.setattr(aqumen.engines, "run_many", lambda *_: pytest.fail("something ran"))
    assert main(["report", str(tmp_path / "moved")]) == 0
    assert (tmp_path / "moved" / "report.html").read_bytes() == before
    assert main(["report", str(tmp_path / "moved"), "--page", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "other.html").read_bytes() == before
    capsys.readouterr()


def test_engines_keep_their_names(tmp_path, capsys):
    page = compared(tmp_path / "o", "--engine", "packet", "--engine", "fluid")
    before = page.read_bytes()
    assert main(["report", str(tmp_path / "o")]) == 0
    assert page.read_bytes() == before
    assert b"pi (fluid)" in before


def test_runs_gather_on_one_page_while_their_scenario_is_one(tmp_path, capsys):
    def run(*more):
        assert main(["run", "arm-pfc/exp1", "--until", "12s", "--out", str(tmp_path), *more]) == 0

    def aqms():
        return [(spec, engine) for _, spec, engine in json.loads((tmp_path / "page.json").read_text())["runs"]]

    run("--aqm", "pi")
    run("--aqm", "codel", "--seed", "2")
    run("--aqm", "pi", "--seed", "2")
    run("--aqm", "pi", "--seed", "2")
    assert aqms() == [("pi", "packet"), ("pi", "packet"), ("codel", "packet")]
    run("--aqm", "pi", "--engine", "fluid")
    assert main(["report", str(tmp_path)]) == 0
    text = (tmp_path / "report.html").read_text()
    assert all(name in text for name in ("pi (packet)", "codel (packet)", "pi (fluid)"))
    # The scenario's own AQM, in another scenario.
    run("--set", "flows.ftp.count=5")
    assert aqms() == [(tomllib_aqm(), "packet")]


def tomllib_aqm():
    import tomllib

    return tomllib.loads(aqumen.Scenario.load("arm-pfc/exp1").to_toml()).get("aqm", "droptail")


def test_custom_classes_and_named_files_are_in_the_folder(tmp_path, capsys):
    (tmp_path / "mine.py").write_text(
        "import aqumen\n\n\nclass Mine(aqumen.PacketAqm):\n"
        "    def on_arrival(self, packet, queue):\n        return 'pass'\n"
    )
    (tmp_path / "rates.csv").write_text("0,10000000\n1,5000000\n")
    args = ["run", "arm-pfc/exp1", "--aqm-from", f"{tmp_path / 'mine.py'}:Mine", "--until", "3s"]
    assert main([*args, "--out", str(tmp_path / "o")]) == 0
    (tmp_path / "mine.py").unlink()
    assert main(["report", str(tmp_path / "o")]) == 0
    assert "mine" in (tmp_path / "o" / "report.html").read_text()


def test_missing_runs_are_counted(tmp_path, capsys):
    page = compared(tmp_path / "o")
    (rows,) = (tmp_path / "o" / "runs").iterdir()
    lines = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(lines[1:]))
    capsys.readouterr()
    assert main(["report", str(tmp_path / "o")]) == 0
    assert capsys.readouterr().err.startswith(
        "aqumen: 1 of 4 runs are not kept, or damaged; the page is without them\n"
    )
    assert "3 of 4 runs" in page.read_text()
    rows.unlink()
    assert main(["report", str(tmp_path / "o")]) == 2
    assert "its runs are no longer kept, or damaged" in capsys.readouterr().err


def test_a_page_needs_series(tmp_path, capsys):
    page = compared(tmp_path / "o", "--series", "none")
    assert not page.exists()
    assert main(["report", str(tmp_path / "o")]) == 2
    assert "kept with --series none; a page needs sampled or all" in capsys.readouterr().err
    compared(tmp_path / "o", "--series", "sampled")
    assert main(["report", str(tmp_path / "o")]) == 0


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "holds no page.json; run, compare or reproduce with --out writes it"),
        ("[]", "page.json: not the description of a page"),
        ("{", "page.json: not the description of a page"),
        ('{"schema": 9}', "has schema 9; this version reads 1"),
        ('{"schema": 1, "kind": "runs", "command": "x"}', "page.json: not the description of a page (KeyError)"),
        ('{"schema": 1, "kind": "poem", "command": "x"}', "unknown kind of page `poem`; another version wrote it"),
        ('{"schema": 1, "kind": "papers", "command": "x"}', "its page.json is incomplete"),
    ],
)
def test_a_folder_without_a_page_is_told_in_one_line(tmp_path, content, told, capsys):
    if content is not None:
        (tmp_path / "page.json").write_text(content)
    assert main(["report", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not (tmp_path / "report.html").exists()


def test_folders_in_a_folder_are_named(tmp_path, capsys):
    for name in ("bbr", "cubic"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert "name one of bbr, cubic in it" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "no such folder" in capsys.readouterr().err


@pytest.mark.slow
def test_the_pages_of_papers_and_of_rfc_7928_are_the_same_pages(tmp_path, capsys):
    for paper, lost in (("aaqm", "the page is without them"), ("rfc7928", "the command of the page makes them")):
        out = tmp_path / paper
        assert main(["reproduce", paper, "--quick", "--seeds", "2", "--out", str(out)]) in (0, 1)
        before = (out / "report.html").read_bytes()
        assert main(["report", str(out)]) == 0
        assert (out / "report.html").read_bytes() == before
        (rows,) = (out / "runs").iterdir()
        rows.write_bytes(b"".join(rows.read_bytes().splitlines(keepends=True)[5:]))
        capsys.readouterr()
        main(["report", str(out)])
        assert lost in capsys.readouterr().err
