"""No circle of files in a crate: of two files at most one names the other, directly or through more files."""

from pathlib import Path

import pytest
from circles import circles

CRATES = sorted(path.parent.parent for path in (Path(__file__).parents[2] / "crates").glob("*/src/lib.rs"))


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_of_files(crate):
    assert [sorted(circle) for circle in circles(crate)] == []


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
    assert [sorted(circle) for circle in circles(lay(tmp_path, files))] == drawn
