"""Exports of a comparison: tables, figures, and how to cite it."""

import csv
import io
import re
import subprocess
from pathlib import Path

import pytest

import aqumen
from aqumen.cli import main
from aqumen.view.export import YEAR, bibtex, written

ROOT = Path(__file__).parents[2]
COMPARE = ["compare", "arm-pfc/exp1", "--aqm", "pi,codel", "--seeds", "2", "--until", "3s"]


def out_of(capsys, *args):
    assert main([*COMPARE, *map(str, args)]) == 0
    return capsys.readouterr().out


def test_csv_has_every_figure_with_its_interval(capsys):
    rows = list(csv.DictReader(io.StringIO(out_of(capsys, "--format", "csv"))))
    comparison = aqumen.compare(aqumen.Scenario.load("arm-pfc/exp1").until("3s"), ["pi", "codel"], seeds=2)
    (row,) = (
        r
        for r in rows
        if (r["aqm"], r["name"], r["window"], r["metric"]) == ("codel", "bottleneck", "steady", "utilization")
    )
    summary = comparison.summary("codel", "utilization")
    assert (float(row["mean"]), float(row["ci95_low"]), int(row["n"])) == (summary["mean"], summary["ci95"][0], 2)
    assert {r["kind"] for r in rows} == {"link", "flow group"}
    # What is not defined is empty, not 0.
    assert next(r for r in rows if r["metric"] == "mos")["mean"] == ""


def test_markdown_is_a_table_of_the_same_cells(capsys):
    text = out_of(capsys, "--format", "markdown")
    head = next(line for line in text.splitlines() if line.startswith("| place"))
    assert text.splitlines()[text.splitlines().index(head) + 1] == "|---|---|---|" + "--:|" * (head.count("|") - 4)
    for row in (line for line in text.splitlines() if line.startswith("| 1")):
        assert row.count("|") == head.count("|")
        assert "±" in row


def test_latex_is_a_table_with_caption_and_escapes(capsys):
    text = out_of(capsys, "--format", "latex")
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == text.count("\\caption{") >= 3
    for line in (line for line in text.splitlines() if line.endswith("\\\\")):
        assert "±" not in line
        assert not re.search(r"(?<!\\)[%_#]", line)
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text).group(1)
    row = next(line for line in text.splitlines() if line.startswith("1"))
    assert row.count("&") == len(columns) - 1
    assert "$\\pm$" in row


def test_tables_of_latex_have_labels_of_their_own():
    from aqumen.cli import talk

    one, two = (talk.filled(title, ["AQM", "x"], [["pi", "3"]]) for title in ("One", "Two"))
    text = written(["before", one, "between", two, "after"], "latex")
    assert re.findall(r"\\label\{(.*?)\}", text) == ["tab:aqumen-1", "tab:aqumen-2"]
    assert re.findall(r"\\caption\{(.*?)\}", text) == ["One", "Two"]
    # Words stand where they stood.
    lines = text.splitlines()
    assert [line for line in lines if line.startswith("%")][1:] == ["% before", "% between", "% after"]
    assert lines[-1] == "% after"


def test_names_with_signs_of_the_form_cannot_break_it():
    from aqumen.cli import talk

    table = talk.filled("a & b", ["AQM", "x\n%"], [["pi|_{1}*", "3"]])
    assert "| pi\\|_{1}\\* | 3 |" in written([table], "markdown")
    assert "pi|\\_\\{1\\}* & 3 \\\\" in written([table], "latex")
    assert written([table], "csv") == "AQM,x %\npi|_{1}*,3\n"


def test_parquet_has_each_run(capsysbinary):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main([*COMPARE, "--format", "parquet"]) == 0
    table = parquet.read_table(io.BytesIO(capsysbinary.readouterr().out))
    assert set(table.column("seed").to_pylist()) == {1, 2}
    assert "metric" in table.column_names


def test_figures_for_print_are_the_same_each_time(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        out_of(capsys, "--figures", folder)
    names = {path.name for path in folders[0].iterdir()}
    figures = ("ranking", "queue", "delay-throughput", "sojourn-cdf")
    assert names == {f"{name}.{kind}" for name in figures for kind in ("svg", "pdf", "png")} | {"remake.sh"}
    for name in sorted(names - {"remake.sh"}):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name
    svg = (folders[0] / "queue.svg").read_text()
    # The width of a column, letters as letters.
    assert 'width="252pt"' in svg
    assert "Queue, packets</text>" in svg
    assert "aqumen compare arm-pfc/exp1 --aqm pi,codel" in (folders[0] / "remake.sh").read_text()
    assert subprocess.run(["sh", "-n", folders[0] / "remake.sh"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--format", "yaml"], '--format: invalid value "yaml"; choose from: text, csv, latex'),
        (["--figures", "/dev/null/x"], "cannot write /dev/null/x: Not a dir"),
    ],
)
def test_a_slip_is_told_in_one_line(capsys, args, told):
    assert main([*COMPARE, *args]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_how_to_cite_it_is_said_once():
    said = (ROOT / "CITATION.cff").read_text()
    version = aqumen.__version__
    assert f"\nversion: {version}\n" in said
    assert f'\ndate-released: "{YEAR}-' in said
    assert f"version = {{{version}}},\n  year = {{{YEAR}}}" in bibtex(version)
    assert "title = {Aqumen: a workbench for active queue management}" in bibtex(version)
