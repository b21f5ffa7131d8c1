"""Rules of language, as tests: how a doc comment begins, and what a type may be called."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A doc comment begins with a noun phrase or a verb: these words say nothing yet.
RIDDLE = re.compile(r"(What|So many|So much|Of|Who|Whose|The same|Those|These|It|They)\b")

# Types are nouns: a participle or a pronoun names nothing. Some AQMs are called so.
NO_NOUN = re.compile(
    "[A-Z][a-z]+ed|Alone|Always|Among|Around|Aside|At|Beside|Beyond|Both|Brought|Chosen|Each|Even|Every|Felt|Found|Given|"
    "Heard|Held|Here|Kept|Known|Left|Lost|Made|Many|Never|Next|Outside|Own|Past|Place|Said|Seen|Sent|Share|Shown|Spent|"
    "Taken|Together|Told|Written"
)
NOUNS = {"Ared", "Cancelled", "Dred", "Fixed", "Sred", "Stred", "Seed", "Speed"}


def rust_openings(text):
    """The first line of each paragraph of the doc comments of a Rust file, with its number."""
    inside, line_before = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*(//[/!])(?!/)\s?(.*)", line)
        kind = comment[1] if comment else ""
        if comment and (kind != inside or not line_before):
            yield number, comment[2]
        inside, line_before = kind, comment[2].strip() if comment else ""


def python_openings(text):
    """The first line of each docstring of a Python file, with its number; those of attributes too."""
    for node in ast.walk(ast.parse(text)):
        for statement in getattr(node, "body", None) if isinstance(getattr(node, "body", None), list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                value = statement.value.value
                if isinstance(value, str):
                    yield statement.lineno, value.strip().splitlines()[0] if value.strip() else ""


def type_names(text):
    """The names of the types that a Rust or Python file defines, with the line of each."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*(?:pub(?:\([a-z: ]+\))?\s+)?(?:struct|enum|trait|type|class) ([A-Z]\w*)", line):
            yield number, found[1]


def no_noun(name):
    return bool(NO_NOUN.fullmatch(name)) and name not in NOUNS


def sources(area):
    return sorted(path for suffix in ("*.rs", "*.py") for path in (ROOT / area).rglob(suffix))


AREAS = [
    *sorted(f"crates/{path.name}" for path in (ROOT / "crates").iterdir()),
    "python/aqumen",
    "python/tests",
    "examples",
    "fuzz",
    "benchmarks",
    "validation",
    "scripts",
]


@pytest.mark.parametrize("area", AREAS)
def test_doc_comments_begin_with_a_noun_or_a_verb(area):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {opening}"
        for path in sources(area)
        for number, opening in (rust_openings if path.suffix == ".rs" else python_openings)(path.read_text())
        if RIDDLE.match(opening)
    ]
    assert found == []


@pytest.mark.parametrize("area", AREAS)
def test_types_are_nouns(area):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in sources(area)
        if "tests" not in path.parts
        for number, name in type_names(path.read_text())
        if no_noun(name)
    ]
    assert found == []


def test_openings_are_found():
    rust = "//! What it is.\n\n/// Of two, the second.\n/// What is no opening.\n///\n/// It is one.\n//// no doc\n"
    assert [n for n, text in rust_openings(rust) if RIDDLE.match(text)] == [1, 3, 6]
    python = '"""Those."""\nclass A:\n    """A letter."""\n    x = 1\n    """It is one."""\n'
    assert sorted((n, bool(RIDDLE.match(text))) for n, text in python_openings(python)) == [
        (1, True),
        (3, False),
        (5, True),
    ]


@pytest.mark.parametrize(("name", "bad"), [("Told", True), ("Averaged", True), ("SampledLaw", False), ("Seed", False)])
def test_nouns_are_told_from_participles(name, bad):
    assert no_noun(name) == bad
