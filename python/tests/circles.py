"""Uses among the source files of a crate or a Python package, and the circles among them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = re.compile(r"::|[A-Za-z_][A-Za-z0-9_]*|[{}();,*=#!\[\]&<>]|[^\s]")
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#+)".*?"\1|\bb?r"[^"]*"|b?"(?:\\.|[^"\\])*"|b?\'(?:\\[^u]|\\u\{[^}]*\}|[^\'\\])\'',
    re.DOTALL,
)


@dataclass
class Module:
    """One file of a crate, or a block `mod name { }` in it."""

    path: tuple[str, ...]
    file: Path
    tokens: list[str]
    children: dict[str, Module] = field(default_factory=dict)
    uses: list[tuple[bool, tuple[str, ...], str]] = field(default_factory=list)
    """Each `use`: whether it is public, the path, the name it gets here."""


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Circles of a graph, each a set of nodes; largest first."""
    return sorted((c for c in components(graph) if len(c) > 1), key=lambda c: (-len(c), sorted(c)))


def uses(crate: Path) -> dict[str, set[str]]:
    """For each file of a crate the other files whose items it names, tests apart."""
    source = crate / "src"
    root = read(source / "lib.rs", ())
    graph: dict[str, set[str]] = {}
    for module in every(root):
        name = module.file.relative_to(source).as_posix()
        targets = graph.setdefault(name, set())
        for path in paths(module):
            for target in resolve(root, module, path):
                if target.file != module.file:
                    targets.add(target.file.relative_to(source).as_posix())
    return graph


def read(file: Path, path: tuple[str, ...]) -> Module:
    """The module in `file` with all below it."""
    text = NOISE.sub(lambda match: " " if match[0].startswith("/") else ' "" ', file.read_text())
    module = Module(path, file, TOKEN.findall(text))
    folder = file.parent if file.stem in ("lib", "mod") else file.parent / file.stem
    split(module, folder)
    return module


def split(module: Module, folder: Path) -> None:
    """Takes modules, uses and tests out of a module's tokens."""
    tokens, rest, i = module.tokens, [], 0
    testing = False
    while i < len(tokens):
        if tokens[i : i + 6] == ["#", "[", "cfg", "(", "test", ")"]:
            testing, i = True, i + 7
            continue
        if tokens[i] == "#" and testing:  # another attribute of the same item
            i = closing(tokens, i + 1) + 1
            continue
        if tokens[i] == "mod" and i + 2 < len(tokens) and tokens[i + 2] in (";", "{"):
            name = tokens[i + 1]
            if tokens[i + 2] == ";":
                end = i + 2
                found = [f for f in (folder / f"{name}.rs", folder / name / "mod.rs") if f.exists()]
                if found and not testing:
                    module.children[name] = read(found[0], (*module.path, name))
            else:
                end = closing(tokens, i + 2)
                if not testing:
                    child = Module((*module.path, name), module.file, tokens[i + 3 : end])
                    split(child, folder / name)
                    module.children[name] = child
            i, testing = end + 1, False
            continue
        if tokens[i] == "use":
            end = tokens.index(";", i)
            if not testing:
                public = "pub" in rest[-4:]
                for path, name in tree(tokens[i + 1 : end]):
                    module.uses.append((public, path, name))
            i, testing = end + 1, False
            continue
        if testing:  # an item for tests alone: to its end
            while tokens[i] not in ("{", ";"):
                i += 1
            i = (closing(tokens, i) if tokens[i] == "{" else i) + 1
            testing = False
            continue
        rest.append(tokens[i])
        i += 1
    module.tokens = rest


def closing(tokens: list[str], start: int) -> int:
    """Where the bracket that opens at `start` closes."""
    pairs = {"{": "}", "(": ")", "[": "]"}
    opened, closed, depth = tokens[start], pairs[tokens[start]], 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == opened) - (tokens[i] == closed)
        if depth == 0:
            return i
    return len(tokens) - 1


def tree(tokens: list[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths in a `use`, each with the name it gets."""

    def walk(i: int, prefix: tuple[str, ...]) -> tuple[int, list[tuple[tuple[str, ...], str]]]:
        found, path = [], prefix
        while i < len(tokens):
            token = tokens[i]
            if token == "{":
                i += 1
                while tokens[i] != "}":
                    i, inner = walk(i, path)
                    found += inner
                    if tokens[i] == ",":
                        i += 1
                return i + 1, found
            if token == "as":
                found.append((path, tokens[i + 1]))
                return i + 2, found
            if token in (",", "}"):
                break
            if token != "::":
                path = path if token == "self" and path else (*path, token)
            i += 1
        found.append((path, path[-1]))
        return i, found

    yield from walk(0, ())[1]


def paths(module: Module) -> Iterator[tuple[str, ...]]:
    """Every path that a module names: its private uses, and the paths in its code."""
    tokens = module.tokens
    named = set(tokens)
    for public, path, name in module.uses:
        if not public or name in named:
            yield path
    for i, token in enumerate(tokens):
        if i + 2 < len(tokens) and tokens[i + 1] == "::" and (i == 0 or tokens[i - 1] != "::"):
            path, j = [token], i + 1
            while j + 1 < len(tokens) and tokens[j] == "::" and tokens[j + 1].isidentifier():
                path.append(tokens[j + 1])
                j += 2
            if token in ("crate", "super", "self") or token in module.children:
                yield tuple(path)


def resolve(root: Module, module: Module, path: tuple[str, ...], depth: int = 0) -> list[Module]:
    """The modules in which the item behind `path` is written; none for what other crates hold."""
    at, rest = module, list(path)
    if not rest or depth > 20:
        return []
    if rest[0] == "crate":
        at, rest = root, rest[1:]
    elif rest[0] == "self":
        rest = rest[1:]
    elif rest[0] == "super":
        while rest and rest[0] == "super":
            at, rest = find(root, at.path[:-1]), rest[1:]
    elif rest[0] not in at.children:
        return []
    while rest:
        if rest[0] in at.children:
            at, rest = at.children[rest[0]], rest[1:]
            continue
        if rest[0] == "*":
            return [at]
        for _, target, name in at.uses:
            if name == rest[0]:
                return resolve(root, at, (*target, *rest[1:]), depth + 1) if target != path else []
        for _, target, name in at.uses:
            if name == "*":
                through = resolve(root, at, target[:-1], depth + 1)
                if through and defines(through[0], rest[0]):
                    return through
        return [at]
    return [at]


def defines(module: Module, name: str) -> bool:
    kinds = ("struct", "enum", "trait", "fn", "const", "static", "type", "mod", "macro_rules")
    return any(t in kinds and n == name for t, n in zip(module.tokens, module.tokens[1:], strict=False))


def find(root: Module, path: tuple[str, ...]) -> Module:
    for name in path:
        root = root.children[name]
    return root


def every(module: Module) -> Iterator[Module]:
    yield module
    for child in module.children.values():
        yield from every(child)


def components(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected parts of a graph (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part: set[str] = set()
            while node not in part:
                part.add(stack.pop())
            found.append(part)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def imports(package: Path) -> dict[str, set[str]]:
    """For each file of a Python package the other files that it imports, at any nesting, for type checkers too."""
    files = {}
    for file in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        parts = [package.name, *file.relative_to(package).with_suffix("").parts]
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    graph = {}
    for module, file in files.items():
        within = module if file.stem == "__init__" else module.rpartition(".")[0]
        targets = {
            target
            for name in imported(ast.parse(file.read_text()), within)
            if (target := known(name, files)) is not None
        }
        graph[file.relative_to(package).as_posix()] = {
            files[target].relative_to(package).as_posix() for target in targets - {module}
        }
    return graph


def imported(tree: ast.Module, within: str) -> Iterator[str]:
    """Dotted names that a file in the package `within` imports, an imported item as `module.item`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(within.split(".")[: len(within.split(".")) - node.level + 1]) if node.level else ""
            yield from (
                f"{base}.{node.module or ''}.{alias.name}".replace("..", ".").strip(".") for alias in node.names
            )


def known(name: str, files: dict[str, Path]) -> str | None:
    """The module that a dotted name is, or in which its last part is an item; `None` outside the package."""
    return next((part for part in (name, name.rpartition(".")[0]) if part in files), None)


def rooms(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph of the folders at the top of a package; a file there is a room by itself."""
    joined: dict[str, set[str]] = {}
    for file, targets in graph.items():
        room = file.partition("/")[0]
        joined.setdefault(room, set()).update(target.partition("/")[0] for target in targets)
    return {room: targets - {room} for room, targets in joined.items()}
