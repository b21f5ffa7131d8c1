"""Wheels get `aqumend` as a command beside the Python package (scripts/wheels)."""

import base64
import csv
import hashlib
import importlib.util
import io
import zipfile
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "wheels"


@pytest.fixture
def wheels():
    loader = SourceFileLoader("wheels", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheels", loader))
    loader.exec_module(module)
    return module


def test_a_program_in_a_wheel_is_executable_and_on_record(wheels, tmp_path):
    wheel, program = tmp_path / "x-1.0-py3-none-any.whl", tmp_path / "aqumend"
    program.write_bytes(b"\x7fELF of a test")
    with zipfile.ZipFile(wheel, "w") as new:
        new.writestr("x/__init__.py", "")
        new.writestr("x-1.0.dist-info/RECORD", "x/__init__.py,,\nx-1.0.dist-info/RECORD,,\n")
    wheels.add_script(wheel, program)
    name = "x-1.0.data/scripts/aqumend"
    with zipfile.ZipFile(wheel) as changed:
        assert changed.read(name) == program.read_bytes()
        assert changed.getinfo(name).external_attr >> 16 & 0o111 == 0o111
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(changed.read("x-1.0.dist-info/RECORD").decode()))}
    digest = base64.urlsafe_b64encode(hashlib.sha256(program.read_bytes()).digest()).rstrip(b"=").decode()
    assert rows[name] == [f"sha256={digest}", str(program.stat().st_size)]
    assert set(rows) == {"x/__init__.py", "x-1.0.dist-info/RECORD", name}


def test_an_unknown_target_is_refused_before_anything_is_removed(wheels):
    with pytest.raises(SystemExit) as refused:
        wheels.main(["x86_64-windows"])
    assert "unknown target x86_64-windows; choose from: x86_64-unknown-linux-gnu" in str(refused.value)
