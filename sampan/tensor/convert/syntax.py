"""Small pieces of syntax trees that converted functions are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

Node = TypeVar("Node", bound=ast.AST)

#: The variable that gives converted code its helpers.
HELPERS = "_sampan"


def name(text: str) -> ast.Name:
    """A read of the variable."""
    return ast.Name(text, ast.Load())


def helper(method: str, *args: ast.expr) -> ast.Call:
    """A call of one of the helpers."""
    return ast.Call(ast.Attribute(name(HELPERS), method, ast.Load()), list(args), [])


def constant(value: Any) -> ast.Constant:
    """A number, a text or None."""
    return ast.Constant(value)


def no_arguments() -> ast.arguments:
    """An empty parameter list."""
    return ast.arguments([], [], None, [], [], None, [])


#: The parameter that tells functions made of expressions from the user's own lambdas.
LATER = f"{HELPERS}_later"


def later(expression: ast.expr) -> ast.Lambda:
    """A function that gives the expression when it is called without arguments."""
    arguments = no_arguments()
    arguments.kwonlyargs, arguments.kw_defaults = [ast.arg(LATER)], [constant(None)]
    return ast.Lambda(arguments, expression)


def cells(names: Iterable[str]) -> ast.Lambda:
    """A function that holds the cells of the variables."""
    return ast.Lambda(no_arguments(), ast.Tuple([name(n) for n in sorted(names)], ast.Load()))


def assign(target: str, value: ast.expr) -> ast.Assign:
    """``target = value``."""
    return ast.Assign([ast.Name(target, ast.Store())], value)


def function(text: str, body: Sequence[ast.stmt], parameters: Sequence[str] = ()) -> ast.FunctionDef:
    """A nested function."""
    arguments = no_arguments()
    arguments.args = [ast.arg(p) for p in parameters]
    made = ast.FunctionDef(text, arguments, list(body) or [ast.Pass()], [])
    if hasattr(made, "type_params") or "type_params" in ast.FunctionDef._fields:
        made.type_params = []
    return made


def at(node: Node, place: ast.AST) -> Node:
    """The node, its new parts at the place's line."""
    return ast.fix_missing_locations(ast.copy_location(node, place))


class Mangler(ast.NodeTransformer):
    """Writes private names (``__x`` inside a class) out as the compiler would."""

    def __init__(self, class_name: str) -> None:
        self._prefix = f"_{class_name.lstrip('_')}"

    def visit(self, node: ast.AST) -> ast.AST:
        """The node with its names written out; a class inside has private names of its own."""
        if isinstance(node, ast.ClassDef):
            return node
        for field in ("id", "attr", "arg", "name", "asname"):
            text = getattr(node, field, None)
            if isinstance(text, str):
                setattr(node, field, self._mangled(text))
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            node.names = [self._mangled(n) for n in node.names]
        return self.generic_visit(node)

    def _mangled(self, text: str) -> str:
        return self._prefix + text if text.startswith("__") and not text.endswith("__") and "." not in text else text
