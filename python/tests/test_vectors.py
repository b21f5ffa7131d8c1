"""`aqumen validate vectors`: what the replay of the known answers says, as table and as JSON."""

from pathlib import Path

from aqumen.vectors import COMMAND, Replay, report, table

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
