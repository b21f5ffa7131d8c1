"""How the command line talks: lines at once, tables no wider than the terminal, a bar where somebody looks."""

import io
import threading

import pytest

from aqumen.cli import talk


class Screen(io.StringIO):
    """A stream that counts how often it was told to let go of what it holds, and says whether it is a terminal."""

    def __init__(self, terminal=False):
        super().__init__()
        self.flushed, self.terminal = 0, terminal

    def flush(self):
        self.flushed += 1

    def isatty(self):
        return self.terminal


def test_what_is_said_is_there_at_once(monkeypatch):
    # In a pipe lines would wait for each other.
    monkeypatch.setattr("sys.stderr", screen := Screen())
    talk.say("one")
    assert (screen.getvalue(), screen.flushed) == ("aqumen: one\n", 1)
    assert talk.failed("two\n  lines") == talk.COULD_NOT_RUN == 2
    assert screen.getvalue().splitlines()[1:] == ["aqumen: two lines"]
    try:
        raise ValueError("mine")
    except ValueError as error:
        before = screen.flushed
        talk.traceback_of(error)
    assert screen.flushed > before
    assert screen.getvalue().endswith("ValueError: mine\n")


def test_the_command_is_kept_as_it_would_be_typed():
    kept = list(talk._command)
    talk.remember_command(["run", "a file.toml", "--set", "x='y'"])
    assert talk.command() == "aqumen run 'a file.toml' --set 'x='\"'\"'y'\"'\"''"
    talk._command[:] = kept


ROWS = [["pie", "1.25", "100.0", "7"], ["fq-codel", "22.5", "3.0", "8888"]]
HEADS = ["AQM", "delay\nms", "used\n%", "lost"]


def shown(capsys, monkeypatch, columns, *items, wide=False):
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(columns))
    talk.show(*items, wide=wide)
    return capsys.readouterr().out.splitlines()


def test_a_table_loses_columns_at_its_right_and_says_so(capsys, monkeypatch):
    table = talk.filled("", HEADS, ROWS)
    # Widths of 8, 5, 5 and 4, with two blanks between them: 28.
    whole = shown(capsys, monkeypatch, None, table)
    assert whole == [
        "          delay   used",
        "AQM          ms      %  lost",
        "pie        1.25  100.0     7",
        "fq-codel   22.5    3.0  8888",
    ]
    assert shown(capsys, monkeypatch, 28, table) == whole
    told = "Tables are cut to 27 columns; --wide prints them whole."
    cut = shown(capsys, monkeypatch, 27, table)
    assert cut == [
        *("          delay   used", "AQM          ms      %", "pie        1.25  100.0", "fq-codel   22.5    3.0"),
        *("", told),
    ]
    assert shown(capsys, monkeypatch, 27, table, wide=True) == whole
    # 8, 5 and 5 are 22; one figure stays, however narrow it is.
    assert shown(capsys, monkeypatch, 22, table)[0] == cut[0]
    for narrow in (21, 15, 9):
        assert shown(capsys, monkeypatch, narrow, table)[0] == "          delay"
    # A width that is none is no width.
    for odd in ("0", "wide", "-5"):
        assert shown(capsys, monkeypatch, odd, table) == whole


def test_a_piped_table_has_120_columns_at_most(capsys, monkeypatch):
    heads = ["AQM", *(f"metric {i:02}" for i in range(30))]
    table = talk.filled("", heads, [["pie", *(str(i) for i in range(30))]])
    piped = shown(capsys, monkeypatch, None, table)
    # A name of 3 columns and 10 metrics of 9, each after two blanks; an eleventh would end in column 124.
    assert max(map(len, piped[:2])) == 3 + 10 * 11
    assert piped[-1] == "Tables are cut to 120 columns; --wide prints them whole."
    assert max(map(len, shown(capsys, monkeypatch, None, table, wide=True))) == 3 + 30 * 11


def test_names_are_never_lost(capsys, monkeypatch):
    table = talk.filled("", ["cell", *HEADS], [["mild", *ROWS[0]]], names=2)
    assert shown(capsys, monkeypatch, 10, table)[-3].split() == ["mild", "pie", "1.25"]


def test_words_are_broken_but_what_is_to_be_copied_is_not(capsys, monkeypatch):
    text = "one two three four\n  tc qdisc add dev eth0 root"
    assert shown(capsys, monkeypatch, 9, text) == ["one two", "three", "four", "  tc qdisc add dev eth0 root"]
    assert shown(capsys, monkeypatch, None, text) == text.split("\n")
    # A table of words is broken within its cells.
    words = talk.table("", ["name", "what"], figures=False)
    words.add_row("pie", "one two three four")
    assert shown(capsys, monkeypatch, 14, words) == ["name  what", "pie   one two", "      three", "      four"]
    # Names are not.
    words.add_row("pie of mine", "five")
    told = shown(capsys, monkeypatch, 18, words)
    assert [line[:11].rstrip() for line in told] == ["name", "pie", "", "", "", "pie of mine"]


def test_columns_without_a_figure_are_left_out():
    table = talk.filled("T", HEADS, [["pie", "–", "1", "–"], ["–", "–", "2", "3"]])
    assert [column.header for column in table.columns] == ["AQM", "used\n%", "lost"]
    assert [column.justify for column in table.columns] == ["left", "right", "right"]
    assert table.title == "T"
    alone = talk.filled("", ["AQM", "x"], [["–", "–"]])
    assert [column.header for column in alone.columns] == ["AQM"]


def test_names_and_what_is_said_of_them_stand_in_two_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "16")
    talk.entries({"a": "one two three", "long": "x"})
    assert capsys.readouterr().out.splitlines() == ["a     one two", "      three", "long  x"]
    monkeypatch.delenv("COLUMNS")
    talk.entries({"a": "one two three", "long": "x"})
    assert capsys.readouterr().out.splitlines() == ["a     one two three", "long  x"]


@pytest.mark.parametrize(
    ("terminal", "term", "seen"), [(True, "xterm", True), (True, "dumb", False), (False, "xterm", False)]
)
def test_a_bar_is_for_who_looks_at_a_terminal(monkeypatch, terminal, term, seen):
    monkeypatch.setattr("sys.stderr", screen := Screen(terminal))
    monkeypatch.setenv("TERM", term)
    with talk.progress() as bar:
        task = bar.add_task("running", total=2, done="0 of 2")
        bar.update(task, advance=1, done="1 of 2")
        if seen:
            bar.refresh()
    assert ("1 of 2" in screen.getvalue()) == seen
    # It goes away behind itself: the cursor is back where the bar began, the line cleared.
    assert ("\x1b[2K" in screen.getvalue()) == seen


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(talk.time, "monotonic", lambda: clock[0])
    with talk.progress() as bar:
        task = bar.add_task("running", total=10, completed=2, done="2 of 10")
        assert bar._line() == "running: 2 of 10"
        # Two runs in a minute, six are left.
        clock[0] = 60.0
        bar.update(task, completed=4, done="4 of 10")
        assert bar._line() == "running: 4 of 10; about 3 min left"
        bar.reset(task, description="pie", total=1.0, done="")
        clock[0] = 70.0
        bar.update(task, completed=0.25)
        assert bar._line() == "pie: 25 %; about 30 s left"
        bar.advance(task, 0.25)
        assert bar._line() == "pie: 50 %; about 10 s left"
    # All of it took less than the time between two lines.
    assert capsys.readouterr().err == ""


def test_the_lines_come_while_nothing_happens(capsys, monkeypatch):
    monkeypatch.setattr(talk, "SAY_EACH_S", 0.001)
    said = threading.Event()
    monkeypatch.setattr(talk, "say", lambda line: said.set() if line == "running: 0 of 3" else None)
    with talk.progress() as bar:
        bar.add_task("running", total=3, done="0 of 3")
        assert said.wait(60)
