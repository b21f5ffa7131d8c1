"""Compare an output with the one on file; `AQUMEN_UPDATE_SNAPSHOTS=1 pytest` writes the files anew."""

import json
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def check_text(name, text):
    """Compare text, blanks at line ends apart."""
    _check(name, "\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def check_json(name, text):
    """Compare JSON; numbers to six digits, since the last ones differ from one machine's mathematics to the next's."""
    _check(name, json.dumps(_rounded(json.loads(text)), indent=1) + "\n")


def _rounded(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


def _check(name, text):
    path = FOLDER / name
    if os.environ.get("AQUMEN_UPDATE_SNAPSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
