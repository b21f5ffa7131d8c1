"""Every public name is documented, each argument and each field included."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import aqumen

PACKAGE = Path(aqumen.__file__).parent
OURS = [path for path in sorted(PACKAGE.rglob("*.py")) if "ns2" not in path.relative_to(PACKAGE).parts]


def public_functions():
    for name in aqumen.__all__:
        thing = getattr(aqumen, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing) and not issubclass(thing, Exception):
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                if function.__module__.startswith("aqumen") and not method.startswith("_"):
                    yield f"{name}.{method}", function


FUNCTIONS = dict(public_functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_documented(name):
    doc = inspect.getdoc(FUNCTIONS[name]) or ""
    assert doc
    arguments = set(inspect.signature(FUNCTIONS[name]).parameters) - {"self", "cls"}
    assert {argument for argument in arguments if f"    {argument}: " not in doc} == set()


EMPTY = {"the", "a", "an", "of", "its", "this", "is", "to"}


def idle_arguments(doc):
    """The arguments of which a docstring says no more than their names."""
    for argument, said in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", doc, re.MULTILINE):
        words = set(re.findall(r"[a-z0-9]+", said.lower()))
        if not words - EMPTY - {argument, f"{argument}s", argument.removesuffix("s"), *argument.split("_")}:
            yield argument


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_said_of_an_argument_is_more_than_its_name(path):
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    idle = {node.name: list(idle_arguments(ast.get_docstring(node) or "")) for node in functions}
    assert {name: arguments for name, arguments in idle.items() if arguments} == {}


def test_what_says_nothing_is_recognised():
    doc = "Args:\n    link: The link.\n    window: Which part of the run.\n    flow_group: Its flow\n        group."
    assert list(idle_arguments(doc)) == ["link", "flow_group"]


def test_every_public_name_exists_and_is_sorted():
    assert sorted(aqumen.__all__) == aqumen.__all__
    assert all(hasattr(aqumen, name) for name in aqumen.__all__)


@pytest.mark.parametrize("path", OURS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_field_of_a_dataclass_is_documented(path):
    tree = ast.parse(path.read_text())
    bare = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        if not any("dataclass" in ast.unparse(each) for each in node.decorator_list) or node.name == "Endpoints":
            continue
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and not documented:
                bare.append(f"{node.name}.{ast.unparse(field.target)}")
    assert bare == []
