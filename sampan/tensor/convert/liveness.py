"""Which variables may still be read after each statement: what a branch or loop has to hand on, and what it may forget."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from .names import BREAK, CONTINUE, RETURN, blocks_of, bound_names, captured_names, declared, read_names


@dataclass(frozen=True)
class Live:
    """The names that may be read after a statement: where it completes, and where it leaves by ``break``, ``continue`` or ``return``."""

    after: frozenset[str]
    on_break: frozenset[str] = frozenset()
    on_continue: frozenset[str] = frozenset()
    on_return: frozenset[str] = frozenset()
    #: Of a loop: what the next iteration may read.
    next_round: frozenset[str] = frozenset()
    #: Of a loop: what its rounds may read of what is there before them, as opposed to what follows the loop.
    in_round: frozenset[str] = frozenset()

    def on(self, exit: str) -> frozenset[str]:
        """The names that may be read after leaving this way; an empty text: after completing."""
        return {BREAK: self.on_break, CONTINUE: self.on_continue, RETURN: self.on_return}.get(exit, self.after)


class Liveness:
    """Walks a function's statements from the end; ``live`` holds the result for every compound statement, by the node's id."""

    def __init__(self, body: Sequence[ast.stmt]) -> None:
        self.live: dict[int, Live] = {}
        #: What may be read after a block, by the id of its last statement.
        self.after_block: dict[int, frozenset[str]] = {}
        #: Read by functions that may be called at any time, or belonging to a scope outside.
        self._always = frozenset(captured_names(body) | declared(body, ast.Nonlocal) | declared(body, ast.Global))
        self._break = self._continue = self._return = self._always
        self._block(body, self._always)

    def _block(self, block: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        if block:
            self.after_block[id(block[-1])] = after
        for statement in reversed(block):
            after = self._statement(statement, after)
        return after

    def _statement(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        if isinstance(node, ast.Return):
            return self._return | read_names([node])
        if isinstance(node, ast.Break):
            return self._break
        if isinstance(node, ast.Continue):
            return self._continue
        if isinstance(node, ast.Raise):
            return self._always | read_names([node])
        if isinstance(node, ast.If):
            self._note(node, after)
            return self._block(node.body, after) | self._block(node.orelse, after) | read_names([node.test])
        if isinstance(node, (ast.While, ast.For, ast.AsyncFor)):
            return self._loop(node, after)
        if isinstance(node, ast.With):
            self._note(node, after)
            inner = self._block(node.body, after)
            names = bound_names(i.optional_vars for i in node.items if i.optional_vars is not None)
            return (inner - names) | self._always | read_names([*node.items])
        if isinstance(node, ast.Match):
            self._note(node, after)
            cases = frozenset().union(*(self._block(c.body, after) for c in node.cases))
            return (
                after
                | cases
                | read_names([node.subject, *(c.pattern for c in node.cases), *(c.guard for c in node.cases if c.guard)])
            )
        if blocks_of(node) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self._guarded(node, after)
        bound = frozenset() if isinstance(node, (ast.AugAssign, ast.Delete)) else bound_names([node])
        return (after - bound) | self._always | read_names([node])

    def _loop(self, node: ast.While | ast.For | ast.AsyncFor, after: frozenset[str]) -> frozenset[str]:
        outside = self._break, self._continue
        finished = self._block(node.orelse, after) if node.orelse else after
        if isinstance(node, ast.While):
            repeated, targets = frozenset(read_names([node.test])), frozenset[str]()
        else:
            repeated, targets = frozenset(), frozenset(bound_names([node.target]))
        in_round = self._rounds(node.body, repeated, targets, frozenset())
        head = self._rounds(node.body, finished | repeated, targets, after)
        self._break, self._continue = outside
        self._note(node, after, head, in_round)
        return head | (frozenset() if isinstance(node, ast.While) else read_names([node.iter]))

    def _rounds(
        self, body: Sequence[ast.stmt], head: frozenset[str], targets: frozenset[str], after: frozenset[str]
    ) -> frozenset[str]:
        """What may be read where a round begins, or none does. ``head``: what its condition and what follows the loop read."""
        while True:
            self._break, self._continue = after, head
            found = head | (self._block(body, head) - targets)
            if found == head:
                return head
            head = found

    def _guarded(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        """``try``: an exception may lead from anywhere inside to any handler, so that whatever is read inside counts as read everywhere inside."""
        self._note(node, after)
        inside = read_names([node])
        outside = self._break, self._continue, self._return
        self._break, self._continue, self._return = (live | inside for live in outside)
        for block in blocks_of(node):
            self._block(block, after | inside)
        self._break, self._continue, self._return = outside
        return after | inside

    def _note(
        self,
        node: ast.stmt,
        after: frozenset[str],
        next_round: frozenset[str] = frozenset(),
        in_round: frozenset[str] = frozenset(),
    ) -> None:
        self.live[id(node)] = Live(after, self._break, self._continue, self._return, next_round, in_round)
