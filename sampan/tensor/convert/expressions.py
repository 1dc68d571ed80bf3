"""Expressions of converted functions: calls, boolean operators, ternaries, chained comparisons, and what changes Python objects."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from .names import walk_scope
from .syntax import HELPERS, at, constant, helper, later

#: Calls that look at the caller's own frame: they stay as they are.
FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec", "globals", "breakpoint"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Expressions(ast.NodeTransformer):
    """Rewrites the expressions of one function. ``nested`` converts a lambda inside it."""

    def __init__(self, first_parameter: str | None, nested: Callable[[ast.Lambda], ast.expr]) -> None:
        self._first_parameter = first_parameter
        self._nested = nested

    def rewrite(self, node: Any) -> Any:
        """The expression (or None) rewritten."""
        return None if node is None else self.visit(node)

    def test(self, node: ast.expr) -> ast.expr:
        """An expression of which only the truth matters, rewritten."""
        if isinstance(node, ast.BoolOp):
            return self._boolean(node, is_test=True)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return at(helper("negate", self.test(node.operand)), node)
        return self.rewrite(node)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------ operators

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        return self._boolean(node, is_test=False)

    def _boolean(self, node: ast.BoolOp, is_test: bool) -> ast.expr:
        parts = [self.test(v) if is_test else self.rewrite(v) for v in node.values]
        if not can_move(node):
            last = parts.pop()
            node.values = [
                at(helper("plain", p, constant("an operand of `and` or `or` binds a name or yields")), node) for p in parts
            ]
            node.values.append(last)
            return node
        method = "both" if isinstance(node.op, ast.And) else "either"
        return at(helper(method, constant(is_test), parts[0], *(later(p) for p in parts[1:])), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return self.test(node)
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test, body, orelse = self.test(node.test), self.rewrite(node.body), self.rewrite(node.orelse)
        if can_move(node.body) and can_move(node.orelse):
            return at(helper("choose", test, later(body), later(orelse)), node)
        test = at(helper("plain", test, constant("a part of `a if test else b` binds a name or yields")), node)
        return at(ast.IfExp(test, body, orelse), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) == 1:
            if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                name = "identical" if isinstance(node.ops[0], ast.Is) else "different"
                return at(helper(name, self.rewrite(node.left), self.rewrite(node.comparators[0])), node)
            return self.generic_visit(node)  # type: ignore[return-value]
        left, others = self.rewrite(node.left), [self.rewrite(c) for c in node.comparators]
        if not all(map(can_move, node.comparators)):
            node.left, node.comparators = left, others
            return node
        signs = constant(" ".join(type(op).__name__ for op in node.ops))
        return at(helper("compare", signs, left, *(later(c) for c in others)), node)

    # ------------------------------------------------------------------ calls

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id == "super" and not node.args and not node.keywords and self._first_parameter:
                node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first_parameter, ast.Load())]
                return at(node, node)
            if function.id in FRAME_READERS:
                return self.generic_visit(node)  # type: ignore[return-value]
            if function.id in ("sum", "list") and len(node.args) == 1 and not node.keywords and _is_separable(node.args[0]):
                listed: Any = ast.ListComp(copy.deepcopy(node.args[0].elt), copy.deepcopy(node.args[0].generators))
                listed = later(self.rewrite(at(listed, node.args[0])))
                return at(helper("drawn", self.rewrite(function), listed, later(self.rewrite(node.args[0]))), node)
        converted = at(helper("call", self.rewrite(function)), function)
        args = [self._argument(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self._argument(k.value)) for k in node.keywords]
        return at(ast.Call(converted, args, keywords), node)

    def _argument(self, node: ast.expr) -> ast.expr:
        """A call's argument: a list with items in it is taken to be data, as shapes and axes are."""
        if isinstance(node, ast.List) and node.elts:
            return self.generic_visit(node)  # type: ignore[return-value]
        return self.rewrite(node)  # type: ignore[no-any-return]

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        spec = constant("") if node.format_spec is None else self.rewrite(node.format_spec)
        conversion = constant("" if node.conversion == -1 else chr(node.conversion))
        text = helper("text", self.rewrite(node.value), conversion, spec)
        return at(ast.FormattedValue(text, -1, None), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        return at(helper("texted", node), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and not (isinstance(node.left, ast.Constant) and not isinstance(node.left.value, str)):
            return at(helper("percent", node.left, node.right), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        node.args.defaults = [self.rewrite(d) for d in node.args.defaults]
        node.args.kw_defaults = [self.rewrite(d) for d in node.args.kw_defaults]
        return self._nested(node)

    # ------------------------------------------------------------------ objects

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return at(helper("listed", node), node) if isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.rewrite(node.value)
        if isinstance(node.ctx, ast.Load):
            return at(helper(node.attr, node.value), node) if node.attr in ("shape", "dtype") else node
        node.value = at(helper("watch", node.value, constant(node.attr)), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value, node.slice = self.rewrite(node.value), self.rewrite(node.slice)
        if not isinstance(node.ctx, ast.Load):
            node.value = at(helper("watch", node.value, constant("")), node)
        return node

    # ------------------------------------------------------------------ comprehensions

    def _comprehension(self, node: Any) -> ast.expr:
        for generator in node.generators:
            generator.target = self.rewrite(generator.target)
            generator.ifs = [self._filter(test) for test in generator.ifs]
            generator.iter = self.rewrite(generator.iter)
            if not generator.is_async:
                generator.iter = at(helper("items", generator.iter), generator.iter)
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                setattr(node, field, self.rewrite(getattr(node, field)))
        return node  # type: ignore[no-any-return]

    def _filter(self, test: ast.expr) -> ast.expr:
        return at(
            helper(
                "plain", self.test(test), constant("it is the condition of a comprehension, which gives a list of known length")
            ),
            test,
        )

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        if _is_separable(node):
            return at(self._collecting(node.generators, node.elt), node)
        return at(helper("listed", self._comprehension(node)), node)

    def _collecting(self, generators: list[ast.comprehension], element: ast.expr) -> ast.expr:
        """A list comprehension as a call that can be recorded as a loop."""
        first, *others = generators
        kept = first.ifs[0] if len(first.ifs) == 1 else ast.BoolOp(ast.And(), first.ifs) if first.ifs else constant(True)
        made = self._collecting(others, element) if others else self.rewrite(element)
        keep, make = (_of_item(first.target, v) for v in (self.test(kept), made))
        return helper("collect", self.rewrite(first.iter), keep, make, constant(bool(others)))

    def _made(self, node: Any) -> ast.expr:
        """A dict or set of its own."""
        made: Any = self._comprehension(node) if isinstance(node, _COMPREHENSIONS) else self.generic_visit(node)
        return at(helper("born", made), node)

    visit_Dict = visit_Set = visit_DictComp = visit_SetComp = _made
    visit_GeneratorExp = _comprehension


def can_move(node: ast.expr) -> bool:
    """Whether the expression can be evaluated inside a function of its own: it binds no name of this scope and does not yield."""
    return not any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for n in walk_scope([node]))


def _is_separable(node: ast.expr) -> bool:
    """Whether a comprehension's parts can be functions of one item: none of them holds the item for later, or binds other names."""
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or any(g.is_async for g in node.generators):
        return False
    inner = [n for n in ast.walk(node) if n is not node]
    return not any(
        isinstance(n, (ast.Lambda, ast.GeneratorExp, ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for n in inner
    )


def _of_item(target: ast.expr, value: ast.expr) -> ast.Lambda:
    """A function that gives the value for an item, which it binds as the comprehension does."""
    item = f"{HELPERS}_item"
    made = later(
        ast.Subscript(
            ast.ListComp(
                value, [ast.comprehension(copy.deepcopy(target), ast.Tuple([ast.Name(item, ast.Load())], ast.Load()), [], 0)]
            ),
            constant(0),
            ast.Load(),
        )
    )
    made.args.args = [ast.arg(item)]
    return made
