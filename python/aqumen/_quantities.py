"""Quantities of finished runs: arithmetic expressions in the metrics of a link, or of flow groups, in a window."""

from __future__ import annotations

import ast
import fnmatch
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from aqumen import _core
from aqumen.errors import ScenarioError, listed

__all__ = ["Run", "evaluate", "names_in", "range_of"]

Run = Mapping[str, Any]
"""A finished run: `windows`, `links` and `flows` as in `run --json`, with the metrics of `_records`."""

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
CENSORED = {"settling_s", "settling_own_s", "convergence_s"}
"""Times that are replaced by the length of the window if the event did not occur in it."""


def evaluate(run: Run, term: Mapping[str, Any]) -> float | None:
    """Evaluate a term in one run; `None` if undefined.

    Args:
        run: A finished run that records the link and window of the term.
        term: Keys `of` and `window`, and `link` or `flows` (a pattern of group names, with `combine`).
    """
    window = str(term["window"])
    if window not in run["windows"]:
        raise ScenarioError(f"{run['scenario']} has no window {window}; choose from: {listed(run['windows'])}")
    length = run["windows"][window][1] - run["windows"][window][0]
    if "flows" not in term:
        link = term.get("link") or next(iter(run["links"]))
        if link not in run["links"]:
            raise ScenarioError(f"{run['scenario']} records no link {link}; choose from: {listed(run['links'])}")
        return _value(str(term["of"]), run["links"][link][window], length)
    groups = [name for name in run["flows"] if fnmatch.fnmatchcase(name, str(term["flows"]))]
    if not groups:
        raise ScenarioError(f"{run['scenario']} has no flow group {term['flows']}")
    values = [_value(str(term["of"]), run["flows"][name][window], length) for name in groups]
    known = [value for value in values if value is not None]
    if not known:
        return None
    total = sum(known)
    return total if term.get("combine", "sum") == "sum" else total / len(known)


def names_in(expression: str) -> list[str]:
    """Return the metrics in an expression.

    Args:
        expression: Such as `early_drop_ratio + overflow_drop_ratio`.
    """
    return [node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)]


def range_of(expression: str, where: Mapping[str, Any]) -> tuple[float, float]:
    """Return the range of a quantity: that of its metric; unbounded for other expressions.

    Args:
        expression: Such as `utilization`.
        where: The link, or the flow groups and how they are combined.
    """
    summed = "flows" in where and where.get("combine", "sum") == "sum"
    if not expression.isidentifier():
        return (-math.inf, math.inf)
    low, high = _core.range_of(expression)
    return (low, math.inf) if summed else (low, high)


def _parsed(expression: str) -> ast.expr:
    try:
        return ast.parse(expression, mode="eval").body
    except SyntaxError:
        raise ScenarioError(f"`{expression}` is not a valid expression") from None


def _value(expression: str, metrics: Mapping[str, float | None], length_s: float) -> float | None:
    def walk(node: ast.expr) -> float | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            if node.id not in metrics:
                raise ScenarioError(f"`{expression}`: no metric {node.id}")
            value = metrics[node.id]
            if value is None:
                return length_s if node.id in CENSORED else None
            return float(value)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = walk(node.left), walk(node.right)
            if left is None or right is None or (isinstance(node.op, ast.Div) and right == 0.0):
                return None
            return OPERATORS[type(node.op)](left, right)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs":
            inner = walk(node.args[0])
            return None if inner is None else abs(inner)
        raise ScenarioError(f"`{expression}` is not a valid expression")

    return walk(_parsed(expression))
