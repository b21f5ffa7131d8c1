"""Runs one file of Python tests and says of each test how long it takes, whether it fails, and which lines it runs.

    python scripts/watched.py TESTS ANSWER

ANSWER becomes JSON. Python programs that a test starts are watched too. What only the first test runs of those that use
it counts as run by every test that runs anything of the same module, if it is a fixture of the whole file; it is left
out if it is the answer of a function that is kept, or a module as it is loaded: who needs it cannot be told.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import coverage
import pytest

ONCE = {"cache", "lru_cache"}
"""Decorators of functions whose answers are kept."""


class Watch:
    """Tells coverage whose turn it is, and keeps what pytest tells of each test; the runs of one test are one."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.took_s: dict[str, float] = {}
        self.fails: set[str] = set()
        self.now = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """From the first fixture to the last all is the test's."""
        self.now = test_of(item.nodeid)
        self.measured.switch_context(self.now)
        try:
            return (yield)
        finally:
            self.measured.switch_context("")

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """But a fixture that is made once is no single test's."""
        if fixturedef.scope == "function":
            return (yield)
        self.measured.switch_context("")
        try:
            return (yield)
        finally:
            self.measured.switch_context(self.now)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One for each of set up, call and tear down."""
        test = test_of(report.nodeid)
        if report.when == "call" and not report.skipped:
            self.took_s[test] = self.took_s.get(test, 0.0) + report.duration
        if report.failed:
            self.fails.add(test)


def test_of(node: str) -> str:
    """`file.py::test[of this]` without what it is run with."""
    return node.partition("[")[0]


def once(text: str) -> set[int]:
    """The lines of a module that run once, whoever needs them: those outside of functions, and of kept answers."""
    tree = ast.parse(text)
    lines = set(range(1, len(text.splitlines()) + 1))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    kept = [node for node in functions if any(word in ast.unparse(node.decorator_list) for word in ONCE)]
    for node in functions:
        lines -= body(node)
    return lines.union(*map(body, kept))


def body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[int]:
    """The lines of a function without its head."""
    return set(range(node.body[0].lineno, (node.end_lineno or 0) + 1))


def watch_programs(folder: Path) -> None:
    """Has each Python program that is started from now on leave its lines in a folder, under the name of the test."""
    settings = folder / "coveragerc"
    settings.write_text(
        f"[run]\nsource = aqumen\nparallel = true\ndata_file = {folder}/lines\ncontext = ${{PYTEST_CURRENT_TEST-}}\n"
    )
    (folder / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
    os.environ["COVERAGE_PROCESS_START"] = str(settings)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])


def lines_of(data: list[coverage.CoverageData]) -> dict[str, dict[int, set[str]]]:
    """File -> line -> the tests that run it, none for what runs outside of tests."""
    found: dict[str, dict[int, set[str]]] = {}
    for each in data:
        for file in each.measured_files():
            for line, contexts in each.contexts_by_lineno(file).items():
                tests = {test_of(context.partition(" (")[0]) for context in contexts}
                found.setdefault(file, {}).setdefault(line, set()).update(tests - {""})
    return found


def main(tests: str, answer: str) -> int:
    """Run, then write."""
    measured = coverage.Coverage(source=["aqumen"], data_file=None, config_file=False)
    watch = Watch(measured)
    with tempfile.TemporaryDirectory() as name:
        watch_programs(Path(name))
        measured.start()
        code = pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", tests], plugins=[watch])
        measured.stop()
        data = [measured.get_data(), *(coverage.CoverageData(str(part)) for part in Path(name).glob("lines.*"))]
        for part in data[1:]:
            part.read()
        found = lines_of(data)
    lines: dict[str, dict[int, list[str]]] = {}
    for file, of_file in found.items():
        anyone = set().union(*of_file.values())
        shared = once(Path(file).read_text("utf-8"))
        lines[file] = {line: sorted(by or anyone) for line, by in of_file.items() if anyone and line not in shared}
    told = {"took_s": watch.took_s, "fails": sorted(watch.fails), "lines": lines}
    Path(answer).write_text(json.dumps(told), "utf-8")
    # 1: some fail; 5: every test of the file is a long one.
    return 0 if code in (0, 1, 5) else int(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
