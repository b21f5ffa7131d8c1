"""Many mutants of a crate in one build: each beside what it replaces, and one is chosen as a test program starts.

`a + b` becomes `(if on(7) { a - b } else { a + b })`, a body begins with `if on(8) { return true; }`, an arm gets the
guard `if !on(9)`. One build in place of one for each mutant; and a program that only says which mutants it passes
tells, test by test, which of them a test could notice at all.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

WORKERS = os.cpu_count() or 1
QUICK_S = 0.3
"""Tests that take less go into one process together."""

CHOICE = """
#[doc(hidden)]
pub mod mutants {
    extern crate std;
    use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    use std::io::Write;

    const UNKNOWN: u32 = u32::MAX;
    const NOTE: u32 = u32::MAX - 1;
    static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
    static PASSED: [AtomicBool; LENGTH] = [const { AtomicBool::new(false) }; LENGTH];

    #[inline]
    pub fn on(mutant: u32) -> bool {
        let chosen = CHOSEN.load(Relaxed);
        if chosen < NOTE { chosen == mutant } else { notes(mutant) }
    }

    #[inline(never)]
    fn notes(mutant: u32) -> bool {
        if CHOSEN.load(Relaxed) == UNKNOWN {
            CHOSEN.store(std::env::var("MUTANT").map_or(NOTE, |number| number.parse().unwrap()), Relaxed);
            return on(mutant);
        }
        if !PASSED[mutant as usize].load(Relaxed) && !PASSED[mutant as usize].swap(true, Relaxed) {
            if let Ok(path) = std::env::var("MUTANTS_PASSED") {
                // A program without rights that a test starts notes nothing.
                if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) {
                    std::writeln!(file, "{mutant}").unwrap();
                }
            }
        }
        false
    }
}
"""


class Edit(NamedTuple):
    """Text put in at a place, and the whole stretch (of the text before) that belongs to the mutant."""

    at: int
    text: str
    mutant: int
    start: int
    end: int
    closes: bool


@dataclass
class Test:
    """A test, how long it takes, and the mutants that it passes."""

    program: str
    name: str
    took_s: float = 0.0
    passes: set[int] = field(default_factory=set)


class Schemata:
    """Mutants of the files of a crate: what each puts where."""

    def __init__(self, tree: Path, package: str) -> None:
        import tree_sitter_rust
        from tree_sitter import Language, Parser

        self.tree, self.package = tree, package
        self.library = tree / "crates" / package.removeprefix("aqumen-") / "src" / "lib.rs"
        self.parser = Parser(Language(tree_sitter_rust.language()))
        self.sources: dict[str, bytes] = {}
        self.times: dict[str, tuple[int, int]] = {}
        self.roots: dict[str, Any] = {}

    def edits(self, number: int, mutant: dict[str, Any]) -> list[Edit]:
        """Replacement and its place; nothing where no mutant can stand beside the original: constants, macros."""
        file = mutant["file"]
        source = self.source(file)
        if file not in self.roots:
            self.roots[file] = self.parser.parse(source).root_node
        start, end = (offset(source, mutant["span"][side]) for side in ("start", "end"))
        node = self.roots[file].descendant_for_byte_range(start, end)
        if constant(node):
            return []

        def text(first: int, last: int) -> str:
            return source[first:last].decode()

        def instead(node: Any, other: str) -> list[Edit]:
            first, last = node.start_byte, node.end_byte
            return around(number, first, last, f"(if {on} {{ {other} }} else {{ ", " })")

        on, other = f"crate::mutants::on({number})", mutant["replacement"]
        match mutant["genre"]:
            case "FnValue":
                return [Edit(start, f"if {on} {{ return {other}; }} ", number, start, start, False)]
            case "BinaryOperator" | "UnaryOperator":
                whole = node.parent
                if whole.type not in ("binary_expression", "compound_assignment_expr", "unary_expression"):
                    return []
                return instead(whole, text(whole.start_byte, start) + other + text(end, whole.end_byte))
            case "MatchArmGuard":
                if node.type in ("let_condition", "let_chain"):
                    return []
                opening = f"({on} || (" if other == "true" else f"(!{on} && ("
                return around(number, start, end, opening, "))")
            case "MatchArm":
                pattern = node.child_by_field_name("pattern") if node.type == "match_arm" else None
                if pattern is None:
                    return []
                guard = pattern.child_by_field_name("condition")
                if guard is None:
                    return around(number, pattern.end_byte, pattern.end_byte, f" if !{on}", "")
                if guard.type in ("let_condition", "let_chain"):
                    return around(number, guard.start_byte, guard.start_byte, f"!{on} && ", "")
                return around(number, guard.start_byte, guard.end_byte, f"(!{on} && (", "))")
            case "StructField":
                while node.parent is not None and "field_initializer" not in node.type:
                    node = node.parent
                whole = node
                while whole is not None and whole.type != "struct_expression":
                    whole = whole.parent
                if whole is None:
                    return []
                last = node.end_byte + re.match(rb"\s*,?", source[node.end_byte :]).end()  # type: ignore[union-attr]
                return instead(whole, text(whole.start_byte, node.start_byte) + text(last, whole.end_byte))
        return []

    def source(self, file: str) -> bytes:
        """Text without mutants."""
        if file not in self.sources:
            path = self.tree / file
            self.sources[file] = path.read_bytes()
            self.times[file] = path.stat().st_atime_ns, path.stat().st_mtime_ns
        return self.sources[file]

    def write(self, edits: dict[int, tuple[str, list[Edit]]]) -> dict[str, list[tuple[int, int, int]]]:
        """Writes the files, and says where in them each mutant stands: (start, end, mutant)."""
        places: dict[str, list[tuple[int, int, int]]] = {}
        library = str(self.library.relative_to(self.tree))
        self.source(library)
        for file, source in self.sources.items():
            of_file = [edit for name, own in edits.values() if name == file for edit in own]
            parts, at, length = [], 0, 0
            found: list[tuple[int, int, int]] = []
            for edit in sorted(of_file, key=order):
                before, text = source[at : edit.at], edit.text.encode()
                parts += [before, text]
                length += len(before)
                found.append((length, length + len(text), edit.mutant))
                length += len(text)
                at = edit.at
            parts.append(source[at:])
            if file == library:
                parts.append(CHOICE.replace("LENGTH", str(max(edits, default=0) + 1)).encode())
            (self.tree / file).write_bytes(b"".join(parts))
            places[file] = found
        return places

    def restore(self) -> None:
        """Puts the files back, as old as they were: what was built of them without mutants is still that."""
        for file, source in self.sources.items():
            (self.tree / file).write_bytes(source)
            os.utime(self.tree / file, ns=self.times[file])


def around(number: int, first: int, last: int, before: str, after: str) -> list[Edit]:
    """Text before and behind a stretch."""
    opening = Edit(first, before, number, first, last, False)
    return [opening, Edit(last, after, number, first, last, True)] if after else [opening]


def order(edit: Edit) -> tuple[int, ...]:
    """By place; what closes there before what opens there; of two that open the wider first, and its end last."""
    if edit.closes:
        return (edit.at, 0, -edit.start, -edit.mutant)
    return (edit.at, 1, -edit.end, edit.mutant)


def offset(source: bytes, place: dict[str, int]) -> int:
    """Lines and columns count from 1, columns in characters."""
    lines = source.split(b"\n", place["line"])
    before = sum(len(line) + 1 for line in lines[: place["line"] - 1])
    return before + len(lines[place["line"] - 1].decode()[: place["column"] - 1].encode())


def constant(node: Any) -> bool:
    """Whether it is worked out by the compiler, or text of a macro."""
    while node is not None:
        if node.type in ("const_item", "static_item", "array_type", "token_tree", "const_block", "enum_variant"):
            return True
        if node.type == "function_item":
            modifiers = [child for child in node.children if child.type == "function_modifiers"]
            return any(b"const" in modifier.text for modifier in modifiers)
        node = node.parent
    return False


def build(schemata: Schemata, mutants: dict[int, dict[str, Any]], env: dict[str, str]) -> tuple[list[str], set[int]]:
    """The test programs, and the mutants in them; the others the compiler refused, or they cannot stand beside."""
    edits: dict[int, tuple[str, list[Edit]]] = {}
    for number, mutant in mutants.items():
        if found := schemata.edits(number, mutant):
            edits[number] = (mutant["file"], found)
    command = ["cargo", "test", "-p", schemata.package, "--tests", "--no-run", "--message-format=json"]
    # The compiler's own number, but said: cargo keeps what it builds so apart from the crate that others are built on.
    command += ["--config", f'profile.test.package."{schemata.package}".codegen-units=16']
    while True:
        places = schemata.write(edits)
        done = subprocess.run(command, cwd=schemata.tree, env=env, capture_output=True, text=True)
        said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode == 0:
            programs = [each["executable"] for each in said if each.get("executable")]
            return programs, set(edits)
        refused = set()
        for each in said:
            message = each.get("message") or {}
            if each["reason"] == "compiler-message" and message["level"] == "error":
                spans = [span for child in [message, *message["children"]] for span in child["spans"]]
                for span in [span for span in spans if span["is_primary"]] or spans:
                    refused |= blamed(span, places)
        if not refused:
            raise SystemExit(f"{schemata.package}: the tests do not build\n{done.stderr[-3000:]}{errors(said)}")
        for number in refused:
            del edits[number]


def blamed(span: dict[str, Any], places: dict[str, list[tuple[int, int, int]]]) -> set[int]:
    """The mutants in whose text an error stands, else those that begin or end near it."""
    found = places.get(span["file_name"], [])
    start, end = span["byte_start"], span["byte_end"]
    inside = {number for first, last, number in found if first < end and start < last}
    return inside or {min(found, key=lambda each: min(abs(each[0] - end), abs(each[1] - start)))[2]} if found else set()


def errors(said: list[dict[str, Any]]) -> str:
    """Errors of the compiler."""
    return "".join(each["message"].get("rendered") or "" for each in said if each.get("message"))[:3000]


def tests_of(programs: list[str], folder: Path, where: Path) -> list[Test]:
    """Every test, how long it takes, and which mutants it passes."""
    tests = []
    for program in programs:
        ignored = set(listed_by(program, folder, "--ignored"))
        names = [line for line in listed_by(program, folder) if line.endswith(": test") and line not in ignored]
        tests += [Test(program, line.removesuffix(": test")) for line in names]

    left_out: list[int] = []

    def trace(numbered: tuple[int, Test]) -> None:
        number, test = numbered
        passed = where / f"passed-{number}"
        passed.unlink(missing_ok=True)
        began = os.times()
        if runs([test], folder, {"MUTANTS_PASSED": str(passed)}, None) is not None:
            # As what counts allocations, of which the notes make some. It says nothing of a mutant.
            print(f"left out, since it fails without any mutant: {test.name}", flush=True)
            left_out.append(number)
            passed.unlink(missing_ok=True)
            return
        test.took_s = os.times().elapsed - began.elapsed
        if passed.exists():
            test.passes = {int(line) for line in passed.read_text().split()}
            passed.unlink()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(trace, enumerate(tests)))
    return [test for number, test in enumerate(tests) if number not in left_out]


def listed_by(program: str, folder: Path, *more: str) -> list[str]:
    """The tests of a program."""
    command = [program, "--list", "--format=terse", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.splitlines()


def runs(tests: list[Test], folder: Path, env: dict[str, str], limit_s: int | None) -> str | None:
    """Runs tests of one program; the first that fails, or None.

    The limit is one of processor time: how busy the machine is says nothing of a mutant.
    """
    command = [tests[0].program, "--exact", "--test-threads=1", *(test.name for test in tests)]
    limit_s = limit_s or 600
    with subprocess.Popen(
        ["prlimit", f"--cpu={limit_s}", "timeout", "-s", "KILL", str(30 * limit_s), *command],
        cwd=folder,
        env={**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "RUST_BACKTRACE": "0", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        last = tests[0].name
        for line in running.stdout:
            if found := re.match(r"test (\S+).* \.\.\. FAILED", line):
                os.killpg(running.pid, signal.SIGKILL)
                return found[1]
        return f"{last} ... (no end)" if running.wait() else None


def killer(number: int, tests: list[Test], late: list[str], folder: Path) -> str | None:
    """The test that notices a mutant; those whose names contain a word of `late` are asked last."""
    able = [test for test in tests if number in test.passes]
    able.sort(key=lambda test: (any(word in test.name for word in late), test.took_s))
    groups: list[list[Test]] = []
    for test in able:
        joins = groups and groups[-1][0].program == test.program
        if joins and sum(each.took_s for each in groups[-1]) + test.took_s < QUICK_S:
            groups[-1].append(test)
        else:
            groups.append([test])
    for group in groups:
        limit = int(10 + 5 * sum(test.took_s for test in group))
        if (name := runs(group, folder, {"MUTANT": str(number)}, limit)) is not None:
            return name
    return None
