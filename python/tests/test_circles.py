"""No circle of files in a crate or in the Python package: of two files at most one uses the other, even indirectly."""

from pathlib import Path

import pytest
from circles import circles, imports, rooms, uses

ROOT = Path(__file__).parents[2]
CRATES = sorted(path.parent.parent for path in (ROOT / "crates").glob("*/src/lib.rs"))
PACKAGE = ROOT / "python" / "aqumen"


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_of_files(crate):
    assert [sorted(circle) for circle in circles(uses(crate))] == []


def test_no_circle_of_python_files():
    assert [sorted(circle) for circle in circles(imports(PACKAGE))] == []


def test_no_circle_of_rooms():
    assert [sorted(circle) for circle in circles(rooms(imports(PACKAGE)))] == []


def users(part):
    """The files outside of `part`, a file or a folder, that import it."""
    inside = (lambda file: file.startswith(part)) if part.endswith("/") else (lambda file: file == part)
    graph = imports(PACKAGE)
    return {file for file, targets in graph.items() if not inside(file) and any(map(inside, targets))}


def test_engines_know_no_results_and_views_no_classes_of_the_user():
    graph = imports(PACKAGE)
    engines = {target for file in graph if file.startswith("engines/") for target in graph[file]}
    assert not {"_run.py", "_run_set.py", "result.py", "comparison.py"} & engines
    views = {target for file in graph if file.startswith("view/") for target in graph[file]}
    assert not {"result.py", "comparison.py"} & views


def test_papers_are_known_to_the_verb_alone():
    assert users("papers/") == {"cli/reproduce.py"}


def lay(tmp_path, files):
    """A crate of `files`, by name."""
    for name, text in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "drawn"),
    [
        # Through a re-export, a folder and an inline path.
        (
            {
                "lib.rs": "mod a; mod b;\npub use b::deep::Thing;",
                "a.rs": "use crate::Thing; pub struct Row;",
                "b.rs": "pub mod deep;",
                "b/deep.rs": "pub struct Thing(super::super::a::Row);",
            },
            [["a.rs", "b/deep.rs"]],
        ),
        # A parent that calls its child, which uses the parent's items.
        (
            {"lib.rs": "mod a;", "a.rs": "mod b; pub const N: u8 = b::f();", "a/b.rs": "use super::N; fn f() {}"},
            [["a.rs", "a/b.rs"]],
        ),
        # Re-exports, tests, comments and texts are no use.
        (
            {
                "lib.rs": "mod a; mod b; pub use {a::A, b::B};",
                "a.rs": "// crate::b::B\nstruct A; #[cfg(test)] mod t { use crate::B; }\n#[cfg(test)] use crate::B;",
                "b.rs": 'use crate::A; pub struct B; const TEXT: &str = "crate::a::A";',
            },
            [],
        ),
    ],
)
def test_circles_are_drawn(tmp_path, files, drawn):
    assert [sorted(circle) for circle in circles(uses(lay(tmp_path, files)))] == drawn


@pytest.mark.parametrize(
    ("files", "drawn"),
    [
        # Within functions, for type checkers, relative, and through a package.
        (
            {
                "__init__.py": "",
                "a.py": "def f():\n    from aqumen import b",
                "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .room.c import C",
                "room/__init__.py": "",
                "room/c.py": "import aqumen.a",
            },
            [["a.py", "b.py", "room/c.py"]],
        ),
        # A room that re-exports is used by others, and other packages do not count.
        (
            {
                "__init__.py": "from aqumen.room import C",
                "a.py": "from aqumen.room import C\nimport json.decoder",
                "room/__init__.py": "from aqumen.room.c import C",
                "room/c.py": "from aqumen import _core\nclass C: ...",
                "_core.pyi": "",
            },
            [],
        ),
        # An item of the top level.
        (
            {"__init__.py": "from aqumen.a import run", "a.py": "from aqumen import run as again"},
            [["__init__.py", "a.py"]],
        ),
    ],
)
def test_python_circles_are_drawn(tmp_path, files, drawn):
    package = tmp_path / "aqumen"
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert [sorted(circle) for circle in circles(imports(package))] == drawn


def test_rooms_are_drawn():
    graph = {"a/one.py": {"b.py"}, "b.py": {"a/two.py"}, "a/two.py": set()}
    assert circles(graph) == []
    assert circles(rooms(graph)) == [{"a", "b.py"}]
