"""What all Python tests share: Hypothesis profiles, and the marker for tests that need another program."""

import os
import shutil

import pytest
from hypothesis import settings

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
