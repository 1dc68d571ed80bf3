"""Statements of converted functions: branches and loops become calls of helpers over functions that share the variables' cells.

``if``, ``while`` and ``for`` turn into

    def body(): nonlocal y; y = x * 2
    def orelse(): nonlocal y; y = x
    _sampan.branch(0, x.sum() > 0, body, orelse, lambda: (y,))

which runs plain Python for plain conditions, and records both functions where the condition is symbolic. A function that may ``return``, ``break`` or
``continue`` gives an ``Exit`` instead of None; what follows the statement is then a function too, and ``then`` runs it where there was no exit.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .expressions import Expressions
from .liveness import Live, Liveness
from .names import always_leaves, blocks_of, bound_names, certainly_bound, certainly_read, declared, exits, exits_of, walk_scope
from .syntax import HELPERS, assign, at, cells, constant, function, helper, later, name

_LOCAL_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})


@dataclass(frozen=True)
class Site:
    """What the helpers know of one branch or loop: its line, what is live after it, and why it cannot be recorded, if so."""

    line: int
    live: Live
    refused: str = ""
    #: Of a loop: what the statements after it read in any case, in order.
    certain: tuple[str, ...] = ()
    #: Of a loop: what its ``else`` sets in any case, before it reads it.
    replaced: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Place:
    """Where a block stands. ``is_inner``: in a made function, whose results are exits. ``pending``: the variable that takes an exit out of a ``with`` or ``try``."""

    is_inner: bool
    pending: str = ""


class FunctionRewriter:
    """Rewrites one function's body; functions inside it by rewriters of their own that share the sites."""

    def __init__(self, sites: list[Site], definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        self._sites = sites
        self._count = 0
        arguments = definition.args
        first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
        self._expressions = Expressions(None if first is None else first.arg, self._lambda)
        self._body: list[ast.stmt] = [] if isinstance(definition, ast.Lambda) else definition.body
        self._globals = declared(self._body, ast.Global)
        self._nonlocals = declared(self._body, ast.Nonlocal)
        self._plain = _reason_to_stay(definition)
        self._liveness = Liveness([])

    # ------------------------------------------------------------------ functions

    def rewrite_lambda(self, node: ast.Lambda) -> None:
        """Rewrite the lambda in place."""
        node.body = self._expressions.rewrite(node.body)

    def rewrite_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Rewrite the function's body in place."""
        if self._plain:
            node.body = [s for statement in node.body for s in self._plain_statement(statement)]
            return
        bound = bound_names(node.body)
        body = [s for s in node.body if not isinstance(s, (ast.Global, ast.Nonlocal))] or [ast.Pass()]
        body = _arranged(body)
        _drop_declarations(body)
        self._liveness = Liveness(body)
        made = [*(at(s, body[0]) for s in self._watched(bound)), *self._block(body, _Place(is_inner=False))]
        prelude = self._declarations(bound, is_outermost=True)
        node.body = [*(at(s, node.body[0]) for s in prelude), *made]

    def _watched(self, bound: set[str]) -> list[ast.stmt]:
        """What notes the variables of outer scopes that the function may change."""
        found: list[ast.stmt] = []
        if self._nonlocals & bound:
            found.append(ast.Expr(helper("watch_cells", cells(self._nonlocals & bound))))
        if self._globals & bound:
            names = ast.Tuple([constant(n) for n in sorted(self._globals & bound)], ast.Load())
            found.append(ast.Expr(helper("watch_globals", ast.Call(name("globals"), [], []), names)))
        return found

    def _nested(self, node: Any) -> Any:
        rewriter = FunctionRewriter(self._sites, node)
        if isinstance(node, ast.Lambda):
            rewriter.rewrite_lambda(node)
        else:
            rewriter.rewrite_function(node)
        return node

    def _lambda(self, node: ast.Lambda) -> ast.expr:
        return self._nested(node)  # type: ignore[no-any-return]

    def _declarations(self, names: set[str], is_outermost: bool = False) -> list[ast.stmt]:
        """The ``global`` and ``nonlocal`` statements of a made function that binds these names; the outermost one makes them its own."""
        found: list[ast.stmt] = []
        if names & self._globals:
            found.append(ast.Global(sorted(names & self._globals)))
        free = names - self._globals
        if is_outermost:
            if self._nonlocals:
                found.append(ast.Nonlocal(sorted(self._nonlocals)))
            local = sorted(free - self._nonlocals)
            if local:  # never runs: it makes the names variables of this function, unbound
                targets: list[ast.expr] = [ast.Name(n, ast.Store()) for n in local]
                found.append(ast.If(constant(False), [ast.Assign(targets, constant(None))], []))
        elif free:
            found.append(ast.Nonlocal(sorted(free)))
        return found

    def _made(
        self, kind: str, body: list[ast.stmt], place: ast.AST, bound: set[str], parameters: Sequence[str] = ()
    ) -> ast.FunctionDef:
        self._count += 1
        return at(function(f"{HELPERS}_{kind}_{self._count}", [*self._declarations(bound), *body], parameters), place)

    def _variable(self, kind: str) -> str:
        self._count += 1
        return f"{HELPERS}_{kind}_{self._count}"

    def _site(self, node: ast.stmt, bound: set[str], rest: Sequence[ast.stmt] = ()) -> ast.Constant:
        """The number of a new site for the statement; for ``rest``, which follows it, when that is given."""
        written = bound & self._globals
        refused = f"it writes the global variable {sorted(written)[0]}" if written else ""
        live = self._liveness.live[id(node)]
        if rest:
            live = dataclasses.replace(live, after=self._liveness.after_block[id(rest[-1])])
        self._sites.append(Site(node.lineno, live, refused))
        return constant(len(self._sites) - 1)

    def _cells(self, names: set[str]) -> ast.Lambda:
        return cells(names - self._globals)

    # ------------------------------------------------------------------ blocks

    def _block(self, block: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for number, statement in enumerate(block):
            rest = block[number + 1 :]
            if isinstance(statement, (ast.If, ast.While, ast.For)):
                leaves = bool(exits(statement))  # before its blocks are rewritten
                functions, call = self._control(statement, rest)
                made += functions
                if leaves:
                    return made + self._leaving(call, rest, place, statement)
                made.append(at(ast.Expr(call), statement))
            elif isinstance(statement, (ast.Return, ast.Break, ast.Continue)):
                made.append(self._exit(statement, place))
                return made  # nothing behind it is ever reached
            elif blocks_of(statement) and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if _hides_exits(statement):
                    return made + self._compound_with_exits(statement, rest, place)
                made.append(self._compound(statement, place))
            else:
                made += self._simple(statement)
        return made

    def _exit(self, node: ast.Return | ast.Break | ast.Continue, place: _Place) -> ast.stmt:
        if not isinstance(node, ast.Return):
            return at(ast.Return(ast.Attribute(name(HELPERS), type(node).__name__.upper(), ast.Load())), node)
        node.value = self._expressions.rewrite(node.value)
        if place.is_inner:
            node.value = helper("returned", node.value or constant(None))
        return at(node, node)

    def _leaving(self, call: ast.expr, rest: Sequence[ast.stmt], place: _Place, node: ast.stmt) -> list[ast.stmt]:
        """What ends a block: the exit that the call gives, or what the rest of the block gives where there was none."""
        made: list[ast.stmt] = []
        if rest:
            bound = bound_names(rest)
            site = self._site(node, bound, rest)
            following = self._made("rest", self._block(rest, _Place(is_inner=True)), rest[0], bound)
            made.append(following)
            call = helper("then", site, call, name(following.name), self._cells(bound))
        if place.pending:
            made.append(at(assign(place.pending, call), node))
            leaves = helper("leaves", name(place.pending))
            made.append(at(ast.If(leaves, [self._result(name(place.pending), place)], []), node))
        else:
            made.append(at(self._result(call, place), node))
        return made

    def _result(self, call: ast.expr, place: _Place) -> ast.Return:
        return ast.Return(call if place.is_inner else helper("value", call))

    # ------------------------------------------------------------------ control flow

    def _control(self, node: ast.If | ast.While | ast.For, rest: Sequence[ast.stmt]) -> tuple[list[ast.stmt], ast.expr]:
        bound = bound_names([node])
        site = self._site(node, bound)
        if not isinstance(node, ast.If) and not exits(node):
            self._sites[-1] = dataclasses.replace(
                self._sites[-1],
                certain=tuple(certainly_read([*node.orelse, *rest])),
                replaced=tuple(certainly_bound(node.orelse)),
            )
        inner = _Place(is_inner=True)
        functions: list[ast.stmt] = []

        def made(kind: str, block: list[ast.stmt]) -> ast.expr:
            if not block:
                return constant(None)
            names = bound_names(block)
            functions.append(self._made(kind, self._block(block, inner), block[0], names))
            return name(functions[-1].name)  # type: ignore[attr-defined]

        if isinstance(node, ast.If):
            test = self._expressions.test(node.test)
            call = helper("branch", site, test, made("body", node.body), made("orelse", node.orelse), self._cells(bound))
        elif isinstance(node, ast.While):
            names = bound_names([node.test])
            check = self._made("test", [ast.Return(self._expressions.test(node.test))], node.test, names)
            functions.append(check)
            call = helper(
                "repeat", site, name(check.name), made("body", node.body), made("orelse", node.orelse), self._cells(bound)
            )
        else:
            item = f"{HELPERS}_item"
            names = bound_names([node.target])
            put = ast.Assign([self._expressions.rewrite(node.target)], name(item))
            functions.append(self._made("target", [at(put, node.target)], node.target, names, [item]))
            setter = name(functions[-1].name)  # type: ignore[attr-defined]
            items = self._expressions.rewrite(node.iter)
            call = helper("each", site, items, setter, made("body", node.body), made("orelse", node.orelse), self._cells(bound))
        return functions, at(call, node.iter if isinstance(node, ast.For) else node.test)

    # ------------------------------------------------------------------ other statements

    def _simple(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.decorator_list = [self._expressions.rewrite(d) for d in node.decorator_list]
            node.args.defaults = [self._expressions.rewrite(d) for d in node.args.defaults]
            node.args.kw_defaults = [self._expressions.rewrite(d) for d in node.args.kw_defaults]
            return [self._nested(node)]
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.ClassDef)):
            return [node]
        if isinstance(node, ast.Assert):
            test = self._expressions.test(node.test)
            told = constant(None) if node.msg is None else later(self._expressions.rewrite(node.msg))
            return [at(ast.Expr(helper("check", test, told)), node)]
        if isinstance(node, ast.Raise) and node.exc is not None:
            node.exc = at(helper("raised", self._expressions.rewrite(node.exc)), node)
            node.cause = self._expressions.rewrite(node.cause)
            return [node]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            node.value = self._expressions.rewrite(node.value)
            return [at(ast.Expr(helper("watch", name(node.target.id), constant(""))), node), node]
        if isinstance(node, ast.AnnAssign):
            node.annotation = constant(None)
        return [self._expressions.visit(node)]

    def _compound(self, node: ast.stmt, place: _Place) -> ast.stmt:
        """``with``, ``try`` or ``match`` whose blocks leave it by statements of their own only, if at all."""
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse", "finalbody") and value:
                setattr(node, field, self._block(value, place) or [ast.Pass()])
            elif field in ("handlers", "cases"):
                for part in value:
                    part.body = self._block(part.body, place) or [ast.Pass()]
                    for inner in ("type", "guard"):
                        if getattr(part, inner, None) is not None:
                            setattr(part, inner, self._expressions.rewrite(getattr(part, inner)))
            elif field == "items":
                for item in value:
                    item.context_expr = self._expressions.rewrite(item.context_expr)
                    item.optional_vars = self._expressions.rewrite(item.optional_vars)
            elif field == "subject":
                setattr(node, field, at(helper("matched", self._expressions.rewrite(value)), value))
        if isinstance(node, ast.Try) and node.handlers:
            node.body = [at(ast.Expr(helper("begin_try")), node), *node.body]
            node.finalbody = [at(ast.Expr(helper("end_try")), node), *node.finalbody]
            for handler in node.handlers:
                handler.body = [at(ast.Expr(helper("caught")), handler), *handler.body]
        return node

    def _compound_with_exits(self, node: ast.stmt, rest: Sequence[ast.stmt], place: _Place) -> list[ast.stmt]:
        """``with``, ``try`` or ``match`` with branches or loops inside that leave it: the exit waits in a variable for the statement's end."""
        pending = self._variable("exit")
        inner = _Place(place.is_inner, pending)
        if isinstance(node, ast.Try) and node.orelse:
            bound = bound_names(node.orelse)
            site = self._site(node, bound, node.orelse)
            following = self._made("orelse", self._block(node.orelse, _Place(is_inner=True)), node.orelse[0], bound)
            call = helper("then", site, name(pending), name(following.name), self._cells(bound))
            leaves = ast.If(helper("leaves", name(pending)), [self._result(name(pending), place)], [])
            orelse = [at(s, node.orelse[0]) for s in (following, assign(pending, call), leaves)]
            node.orelse = []
            made = self._compound(node, inner)
            made.orelse = orelse  # type: ignore[attr-defined]
        else:
            made = self._compound(node, inner)
        return [at(assign(pending, constant(None)), node), made, *self._leaving(name(pending), rest, place, node)]

    # ------------------------------------------------------------------ functions that stay as they are

    def _plain_statement(self, node: ast.stmt) -> list[ast.stmt]:
        """The statement with its structure kept: conditions that turn out symbolic are refused."""
        for block in blocks_of(node) if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else []:
            block[:] = [s for statement in block for s in self._plain_statement(statement)]
        if isinstance(node, (ast.If, ast.While)):
            node.test = at(helper("plain", self._expressions.test(node.test), constant(self._plain)), node.test)
            return [node]
        if isinstance(node, ast.For):
            node.iter = at(helper("items", self._expressions.rewrite(node.iter)), node.iter)
            return [node]
        if blocks_of(node) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return [node]
        return self._simple(node)


def _reason_to_stay(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> str:
    """Why a function's branches and loops cannot be recorded; empty when they can."""
    if isinstance(definition, ast.Lambda):
        return ""
    if isinstance(definition, ast.AsyncFunctionDef):
        return f"{definition.name} is a coroutine"
    for node in walk_scope(definition.body):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return f"{definition.name} is a generator"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOCAL_READERS:
            return f"{definition.name} looks at its own variables by {node.func.id}()"
        final = getattr(node, "finalbody", [])
        if isinstance(final, list) and exits_of(final):
            return f"{definition.name} leaves a `finally` block by {sorted(exits_of(final))[0]}"
        if type(node).__name__ == "TryStar":
            return f"{definition.name} has `except*`"
    return ""


def _hides_exits(node: ast.stmt) -> bool:
    """Whether a branch or loop inside the ``with``, ``try`` or ``match`` leaves it."""
    return any(
        exits(s) and (isinstance(s, (ast.If, ast.While, ast.For)) or (_is_compound(s) and _hides_exits(s)))
        for block in blocks_of(node)
        for s in block
    )


def _is_compound(node: ast.stmt) -> bool:
    return bool(blocks_of(node)) and not isinstance(
        node, (ast.If, ast.While, ast.For, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    )


def _drop_declarations(body: list[ast.stmt]) -> None:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for block in blocks_of(statement):
            block[:] = [s for s in block if not isinstance(s, (ast.Global, ast.Nonlocal))] or [ast.Pass()]
            _drop_declarations(block)


def _arranged(block: list[ast.stmt], is_loop_end: bool = False) -> list[ast.stmt]:
    """The block with what follows an early exit moved into the branch that does not leave, which means the same and needs no exit.

    ``if a: return b`` and then ``c`` becomes ``if a: return b`` ``else: c``; a ``continue`` at the end of a loop's body goes away.
    """
    made: list[ast.stmt] = []
    for number, statement in enumerate(block):
        rest = block[number + 1 :]
        if isinstance(statement, ast.If) and rest and exits(statement):
            leaves, other_leaves = always_leaves(statement.body), always_leaves(statement.orelse)
            if leaves and other_leaves:
                rest = []
            elif leaves:
                statement.orelse, rest = [*statement.orelse, *rest], []
            elif other_leaves:
                statement.body, rest = [*statement.body, *rest], []
        is_last = not rest
        if isinstance(statement, ast.Continue) and is_loop_end and is_last:
            statement = ast.copy_location(ast.Pass(), statement)
        elif isinstance(statement, (ast.While, ast.For)):
            statement.body = _arranged(statement.body, True)
            statement.orelse = _arranged(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in blocks_of(statement):
                part[:] = _arranged(part, is_loop_end and is_last and isinstance(statement, ast.If))
        made.append(statement)
        if is_last:
            break
    return made


def rewritten(definition: Any, sites: list[Site]) -> Any:
    """A copy of the definition, rewritten; ``sites`` gets its branches and loops."""
    node = copy.deepcopy(definition)
    rewriter = FunctionRewriter(sites, node)
    if isinstance(node, ast.Lambda):
        rewriter.rewrite_lambda(node)
    else:
        rewriter.rewrite_function(node)
    return node
