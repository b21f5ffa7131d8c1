"""The report as a whole, section by section, against the ones on file."""

import re

import pytest
from fake_core import VERSION
from snapshot import check_text

import aqumen


def body(page):
    """Visible content: without styles, scripts and what differs from machine to machine; a line for each element."""
    text = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r"(<dt>(?:Aqumen|Python|System|CPU time)</dt><dd>)[^<]*", r"\1…", text)
    for version in (aqumen.__version__, VERSION):
        text = text.replace(version, "…")
    return re.sub(r"(?<=>)(?=<(?:tr|section|table|figure|svg|g|text|rect|path|h2|h3|p|dt|div|ul|li)\b)", "\n", text)


@pytest.fixture
def report(fake_core, tmp_path):
    def write(specs, seeds, **more):
        comparison = aqumen.compare(aqumen.Scenario.parse(fake_core.TOML), specs, seeds=seeds, **more)
        path = tmp_path / "report.html"
        comparison.write_report(path, "aqumen compare mock.toml")
        return body(path)

    return write


def test_four_aqms_over_six_seeds(report):
    check_text("report.html", report(["arm-pfc", "pi", "red", "droptail"], 6))


def test_one_aqm_with_one_seed(report):
    check_text("report-one.html", report(["pi"], 1))


def test_seeds_that_do_not_follow_one_another_are_listed(report):
    assert "<dt>Seeds</dt><dd>2, 5</dd>" in report(["pi", "red"], [2, 5])
    assert "<dt>Seeds</dt><dd>3 to 4</dd>" in report(["pi", "red"], [3, 4])
