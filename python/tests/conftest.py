"""Shared parts of all Python tests: Hypothesis profiles, and the marker for tests that need another program."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Tests import what stands beside them, whichever way pytest imports the tests themselves.
sys.path.insert(0, str(Path(__file__).parent))

# Nobody has said how wide to print: readline, where whoever starts the tests has it, leaves the terminal's width here.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# The quick profile draws the same examples each time: a failure has a cause in the change at hand.
settings.register_profile("quick", deadline=None, derandomize=True)
settings.register_profile("full", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_runtest_setup(item):
    for marker in item.iter_markers("needs"):
        missing = [program for program in marker.args if shutil.which(program) is None]
        if missing:
            reason = f"missing: {', '.join(missing)}"
            if os.environ.get("CI") == "true":
                pytest.fail(f"{reason}; with CI=true nothing may be skipped", pytrace=False)
            pytest.skip(reason)


@pytest.fixture
def fake_core(monkeypatch):
    """The compiled core with instant answers: `fake_core.py`, put in its place name by name."""
    import fake_core

    from aqumen import _core

    for name in ("Cancelled", "RunResult", "Scenario", "ScenarioError", "__version__"):
        monkeypatch.setattr(_core, name, getattr(fake_core, name), raising=False)
    lists = ("list_aqms", "list_traffic", "list_transports")
    for name in ("experiments", *lists, "predict", "run", "run_fluid_many", "run_many"):
        monkeypatch.setattr(_core, name, getattr(fake_core, name), raising=False)
    return fake_core


@pytest.fixture
def scenario_file(fake_core, tmp_path):
    """A scenario file that the fake core reads."""
    path = tmp_path / "mock.toml"
    path.write_text(fake_core.TOML)
    return path


@pytest.fixture
def aqumen_cli(fake_core, capsys):
    """Run the command line: `code, stdout, stderr = aqumen_cli("list", "aqms")`."""
    from aqumen.cli import main

    def run(*args):
        code = main([str(arg) for arg in args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
