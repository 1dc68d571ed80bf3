"""What statements do with names: which they bind, which they read, and where control flow leaves early."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: What a statement may do beside completing.
RETURN, BREAK, CONTINUE, RAISE = "return", "break", "continue", "raise"


def walk_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a scope; of a function or class inside it the statement itself, its decorators and defaults, but not its body."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _FUNCTIONS):
            stack += [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
            stack += [] if isinstance(node, ast.Lambda) else node.decorator_list
        elif isinstance(node, ast.ClassDef):
            stack += [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
        else:
            stack += list(ast.iter_child_nodes(node))[::-1]


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that the nodes bind or delete in their own scope; a comprehension's own names are not among them."""
    found: set[str] = set()
    nodes = list(nodes)
    own = {id(n) for c in walk_scope(nodes) if isinstance(c, _COMPREHENSIONS) for g in c.generators for n in ast.walk(g.target)}
    for node in walk_scope(nodes):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load) and id(node) not in own:
                found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found.add(node.rest)
    return found


def read_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names of this scope that the nodes may read, in scopes inside them too."""
    return {name for node in nodes for name in _read(node)}


def _read(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Store) else {node.id}
    if isinstance(node, _COMPREHENSIONS):
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        return _read(node.generators[0].iter) | (read_names(ast.iter_child_nodes(node)) - own)
    if isinstance(node, _FUNCTIONS):
        given = node.args
        own = {a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a is not None}
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        if not isinstance(node, ast.Lambda):
            own |= bound_names(body) - declared(body, ast.Nonlocal) - declared(body, ast.Global)
        around = [given, *([] if isinstance(node, ast.Lambda) else node.decorator_list)]
        return read_names(around) | (read_names(body) - own)
    found = read_names(ast.iter_child_nodes(node))
    return found | {node.target.id} if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) else found


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def certainly_read(block: Sequence[ast.stmt]) -> list[str]:
    """The names that a block reads whatever happens in it, before it binds them, in order: as far as its first branch or loop."""
    found: dict[str, None] = {}
    bound: set[str] = set()
    for statement in block:
        simple = isinstance(statement, _SIMPLE)
        parts = (
            [statement]
            if simple
            else [p for p in (getattr(statement, n, None) for n in ("test", "iter", "subject")) if p is not None]
        )
        found |= {name: None for part in parts for name in _unconditionally(part) if name not in bound}
        if not simple or isinstance(statement, ast.Return):
            break
        bound |= bound_names([statement])
    return list(found)


def certainly_bound(block: Sequence[ast.stmt]) -> list[str]:
    """The names that a block binds whatever happens in it, before it reads them: as far as its first branch, loop or end."""
    read: set[str] = set()
    bound: dict[str, None] = {}
    for statement in block:
        if not isinstance(statement, _SIMPLE):
            break
        read |= read_names([statement]) - set(bound)
        bound |= dict.fromkeys(bound_names([statement]) - read)
    return list(bound)


def _unconditionally(node: ast.AST) -> Iterator[str]:
    """The names that an expression or a simple statement reads in any case."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        parts = ()
    elif isinstance(node, _COMPREHENSIONS):
        parts = () if isinstance(node, ast.GeneratorExp) else [node.generators[0].iter]
    elif isinstance(node, ast.BoolOp):
        parts = node.values[:1]
    elif isinstance(node, ast.IfExp):
        parts = [node.test]
    elif isinstance(node, ast.Compare):
        parts = [node.left, node.comparators[0]]
    for part in parts:
        yield from _unconditionally(part)


def captured_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that functions, classes and generator expressions inside the nodes read, now or later."""
    inner = [n for n in walk_scope(nodes) if isinstance(n, (*_FUNCTIONS, ast.ClassDef, ast.GeneratorExp))]
    return read_names(inner) | {name for n in inner for m in ast.walk(n) if isinstance(m, ast.Nonlocal) for name in m.names}


def declared(nodes: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names that ``global`` or ``nonlocal`` statements of this scope declare."""
    return {name for n in walk_scope(nodes) if isinstance(n, kind) for name in n.names}


def exits(statement: ast.AST) -> set[str]:
    """How control may leave the statement early: ``return``, and ``break`` and ``continue`` of a loop around it."""
    if isinstance(statement, ast.Return):
        return {RETURN}
    if isinstance(statement, ast.Break):
        return {BREAK}
    if isinstance(statement, ast.Continue):
        return {CONTINUE}
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        return set()
    if isinstance(statement, (ast.While, ast.For, ast.AsyncFor)):
        return exits_of(statement.body) & {RETURN} | exits_of(statement.orelse)
    return {kind for block in blocks_of(statement) for kind in exits_of(block)}


def exits_of(block: Sequence[ast.stmt]) -> set[str]:
    """How control may leave the block early."""
    return {kind for statement in block for kind in exits(statement)}


def blocks_of(statement: ast.AST) -> list[list[ast.stmt]]:
    """The blocks of statements directly inside a statement."""
    found: list[list[ast.stmt]] = [
        block
        for name in ("body", "orelse", "finalbody")
        for block in [getattr(statement, name, None)]
        if isinstance(block, list) and block
    ]
    inner = [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]
    return found + [h.body for h in inner]


def always_leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether the end of the block is never reached (as far as its form shows)."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return True
    if isinstance(last, ast.If):
        return always_leaves(last.body) and always_leaves(last.orelse)
    return isinstance(last, ast.With) and isinstance(last.body[-1], (ast.Return, ast.Break, ast.Continue))
