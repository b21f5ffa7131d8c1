"""`aqumen validate vectors`: what the replay of the known answers says, as table and as JSON."""

import shutil
import subprocess
from pathlib import Path

import pytest

from aqumen._vectors import COMMAND, Replay, replay, report, table
from aqumen.errors import EngineError

REPLAYS = [Replay("pi_classic", "pi", 60, 3.5e-9, "equal"), Replay("red_bytes", "red", 2400, 2.0, "different")]


def test_the_table_has_a_line_for_each_vector_with_its_error_and_verdict() -> None:
    lines = table(REPLAYS).splitlines()
    assert lines[1].split() == ["pi", "pi_classic", "60", "3.5e-09", "equal"]
    assert lines[2].split()[-1] == "different"


def test_the_json_is_versioned_and_carries_the_same() -> None:
    answer = report(REPLAYS)
    assert answer["schema"] == 1
    assert answer["vectors"][1]["worst"] == 2.0


def test_the_command_names_a_test_program_and_tests_that_are_there() -> None:
    # A program or a filter that is gone would make it run all tests, or none.
    crate = Path(__file__).parents[2] / "crates" / COMMAND[COMMAND.index("--package") + 1].removeprefix("aqumen-")
    program = crate / "tests" / COMMAND[COMMAND.index("--test") + 1] / "main.rs"
    assert f"mod {COMMAND[COMMAND.index('--') + 1]};" in program.read_text(encoding="utf-8")


def replayed(monkeypatch: pytest.MonkeyPatch, out: str, code: int = 0, err: str = "") -> list[Replay]:
    """Result for a program that prints this."""
    done = subprocess.CompletedProcess(COMMAND, code, out, err)
    monkeypatch.setattr(shutil, "which", lambda _: "/bin/cargo")
    monkeypatch.setattr(subprocess, "run", lambda *_args, **_kwargs: done)
    return replay()


LINES = (
    "running 2 tests\n.vector\tred_bytes\tred\t2400\t2.0\tdifferent\n"
    "vector\tpi_classic\tpi\t60\t3.5e-9\tequal\nvector\tared\tred\t7\t0\tequal\n\ntest result: ok\n"
)


def test_what_the_tests_of_the_algorithms_print_is_read_and_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = replayed(monkeypatch, LINES, code=101)
    assert found == [REPLAYS[0], Replay("ared", "red", 7, 0.0, "equal"), REPLAYS[1]]


@pytest.mark.parametrize(
    ("out", "code", "err"),
    [
        # It does not build; nothing was replayed though all is well; all are equal and yet something failed.
        ("", 101, "error: x\nerror: could not compile"),
        ("running 0 tests\nerror: could not compile", 0, ""),
        (LINES.replace("different", "equal"), 101, "error: could not compile\n"),
    ],
)
def test_a_replay_that_failed_is_no_answer(monkeypatch: pytest.MonkeyPatch, out: str, code: int, err: str) -> None:
    with pytest.raises(EngineError, match=r"^cargo test failed: error: could not compile$"):
        replayed(monkeypatch, out, code, err)


def test_a_replay_needs_cargo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(EngineError, match="need a checkout of Aqumen and cargo"):
        replay()
