"""Rules of the repository, as tests: its layout, what may depend on what, what may be in a file."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_BYTES_MAX = 2 * 1024 * 1024

# Which crates of the workspace each one may know, itself apart; docs of each crate are in ARCHITECTURE.md.
# `sim`, `replay`, `queueing`, `theory` and `live` are engines: they never see each other.
ARROWS = {
    "units": set(),
    "aqm": {"units"},
    "capture": {"units"},
    "transport": {"units"},
    "scenario": {"units", "aqm", "transport"},
    "result": {"units"},
    "traffic": {"units", "scenario", "result"},
    "network": {"units", "aqm", "capture", "transport", "scenario", "result"},
    "sim": {"units", "aqm", "capture", "transport", "scenario", "result", "traffic", "network"},
    "replay": {"units", "aqm", "capture", "scenario", "result", "network"},
    "queueing": {"units", "aqm", "capture", "scenario", "result"},
    "theory": {"units", "aqm", "scenario", "result"},
    "live": {"units", "aqm", "capture", "transport", "scenario", "result", "traffic", "network"},
    "python": {
        "units",
        "aqm",
        "capture",
        "transport",
        "scenario",
        "result",
        "traffic",
        "sim",
        "replay",
        "queueing",
        "theory",
    },
    "web": {"units", "aqm", "scenario", "result", "sim"},
    "web-theory": {"scenario", "theory"},
}
# What the tests of any crate may use beside: `result` holds the statistics.
TESTS_TOO = {"result"}
UNSAFE_ALLOWED = {"python", "live"}
UNSAFE = re.compile(
    r"\bunsafe\s*(\{|fn\b|impl\b|trait\b|extern\b)|(allow|expect|warn)\([^)]*\bunsafe_code\b|#\[unsafe\("
)


# The width of code, which rustfmt holds, and of comments, which it leaves as they are.
COLUMNS_MAX = 120


def tracked_files():
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    # A file removed but not yet committed is still listed.
    return [path for name in listing.decode().split("\0") if name and (path := ROOT / name).is_file()]


def text_of(path):
    """The file's text; None for a binary file."""
    data = path.read_bytes()
    return None if b"\0" in data else data.decode(errors="replace")


def local_paths(root, home):
    """A pattern for absolute paths that exist only on the machine at hand: this checkout, its owner's home."""
    shared = {Path(p) for p in ("/", "/home", "/opt", "/srv", "/tmp", "/usr", "/usr/src", "/var", "/var/tmp", "/mnt")}
    own = [folder for folder in (root, root.parent, home) if folder not in shared]
    names = "|".join(re.escape(str(folder)) for folder in own)
    return re.compile(rf"(?<![\w.~}}/-])(?:(?:{names})(?=[/\s\"'`),:;]|$)|/(?:home|Users)/\w)", re.MULTILINE)


def without_comments(rust):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", rust, flags=re.DOTALL)


@pytest.fixture(scope="module")
def files():
    return tracked_files()


@pytest.fixture(scope="module")
def packages():
    """The crates of the workspace by folder name, as `cargo metadata` describes them."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    return {Path(package["manifest_path"]).parent.name: package for package in metadata["packages"]}


def test_files_are_small(files):
    assert [str(path.relative_to(ROOT)) for path in files if path.stat().st_size > FILE_BYTES_MAX] == []


def test_no_file_names_a_path_of_this_machine(files):
    pattern = local_paths(ROOT, Path.home())
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in files
        if path != Path(__file__) and (text := text_of(path)) is not None
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_links_between_pages_lead_somewhere(files):
    pages = [path for path in files if path.suffix == ".md"]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.DOTALL))
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        ("see /data/ann/aqumen/src/x.rs", True),
        ('include "/data/ann/other"', True),
        ("/data/anna/aqumen", False),
        ("/home/bob/aqumen", True),
        ("crates/home/src", False),
        ("/usr/share/doc", False),
        ("/data/owner/.cargo", True),
    ],
)
def test_local_paths_are_recognised(text, caught):
    pattern = local_paths(Path("/data/ann/aqumen"), Path("/data/owner"))
    assert bool(pattern.search(text)) == caught


def test_every_crate_has_a_place_in_the_layout(packages):
    assert set(packages) <= set(ARROWS)
    assert {package["name"] for package in packages.values()} == {f"aqumen-{folder}" for folder in packages}


def test_dependencies_follow_the_arrows(packages):
    against = {
        f"{folder} -> {dependency['name']}"
        for folder, package in packages.items()
        for dependency in package["dependencies"]
        if dependency["name"].startswith("aqumen-")
        and dependency["name"].removeprefix("aqumen-")
        not in ARROWS[folder] | {folder} | (TESTS_TOO if dependency["kind"] == "dev" else set())
    }
    assert against == set()


def test_only_the_python_crate_knows_python(packages):
    bindings = {"pyo3", "pyo3-ffi", "pyo3-build-config", "numpy", "pythonize"}
    knowing = {
        folder
        for folder, package in packages.items()
        if bindings & {dependency["name"] for dependency in package["dependencies"]}
    }
    assert knowing == {"python"}


def test_units_depend_on_nothing(packages):
    # Tests may use other crates: their dependencies are of the kind "dev".
    assert [d["name"] for d in packages["units"]["dependencies"] if d["kind"] != "dev"] == []


def test_every_crate_takes_the_lints_of_the_workspace(packages):
    for folder, package in packages.items():
        manifest = tomllib.loads(Path(package["manifest_path"]).read_text())
        assert manifest.get("lints") == {"workspace": True}, folder


def test_unsafe_stays_in_its_crates(files):
    found = [
        str(path.relative_to(ROOT))
        for path in files
        if path.suffix == ".rs"
        and not any(path.is_relative_to(ROOT / "crates" / crate) for crate in UNSAFE_ALLOWED)
        and UNSAFE.search(without_comments(path.read_text()))
    ]
    assert found == []


def too_wide(rust):
    """The lines of comments that are wider than code may be, by number."""
    return [
        number
        for number, line in enumerate(rust.splitlines(), 1)
        if line.lstrip().startswith("//") and len(line) > COLUMNS_MAX
    ]


def test_comments_are_no_wider_than_code(files):
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        if path.suffix == ".rs"
        for number in too_wide(path.read_text())
    ]
    assert found == []


def test_wide_comments_are_recognised():
    wide = "x" * COLUMNS_MAX
    assert too_wide(f'// {wide}\n    /// {wide}\n// fits\nlet text = "{wide}";\n') == [1, 2]


@pytest.mark.parametrize(
    ("rust", "caught"),
    [
        ("unsafe { *p }", True),
        ("unsafe fn f() {}", True),
        ("#![allow(unsafe_code)]", True),
        ("#![forbid(unsafe_code)]", False),
        ("// unsafe { } would be faster", False),
        ("let unsafe_rate = 1;", False),
    ],
)
def test_unsafe_is_recognised(rust, caught):
    assert bool(UNSAFE.search(without_comments(rust))) == caught


@pytest.mark.parametrize("manifest", ["examples/own-aqm/Cargo.toml", "fuzz/Cargo.toml"])
def test_a_crate_outside_the_workspace_is_built_as_those_in_it(manifest):
    """Its profiles decide whether what `make test` has built serves it, or is built once more."""
    inside = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    outside = tomllib.loads((ROOT / manifest).read_text())["profile"]
    assert "dev" in outside
    assert outside == {name: inside[name] for name in outside}
