"""No circle of files in a crate: of two files at most one names the other, directly or through more files."""

from pathlib import Path

import pytest
from circles import circles

CRATES = sorted(path.parent.parent for path in (Path(__file__).parents[2] / "crates").glob("*/src/lib.rs"))

# Circles not yet opened, by crate, and why they are there. A file may leave a list; none may join one.
OPEN = {
    # The engine's parts work on the whole of its state.
    "sim": [
        "engine.rs engine/agents.rs engine/applications.rs engine/hosts.rs engine/log.rs engine/lone.rs "
        "engine/partition.rs engine/post.rs engine/ways.rs lib.rs report.rs",
        "replay/mod.rs replay/run.rs replay/writer.rs",
        "measure/mod.rs measure/share.rs",
    ],
    # Congestion controls implement the trait that stands beside the list of them.
    "transport": [
        "tcp/config.rs tcp/congestion/bbr.rs tcp/congestion/cubic.rs tcp/congestion/cubic21.rs "
        "tcp/congestion/dctcp.rs tcp/congestion/hystart.rs tcp/congestion/ledbat.rs tcp/congestion/mod.rs "
        "tcp/congestion/pacing.rs tcp/congestion/prague.rs tcp/congestion/vegas.rs tcp/reduction.rs tcp/rto.rs",
        "tcp/sender.rs tcp/sender/probe.rs tcp/sender/tracked.rs",
    ],
}


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_circle_of_files(crate):
    known = [set(names.split()) for names in OPEN.get(crate.name, [])]
    assert [sorted(circle) for circle in circles(crate) if not any(circle <= one for one in known)] == []


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
