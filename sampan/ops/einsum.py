"""einsum: sums of products by an equation over axis letters."""

from __future__ import annotations

import math

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import promoted
from .define import op
from .diagonals import diagonal_of
from .samples import real


def _labels(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The axis names of each operand and of the result; axes under an ellipsis are named by numbers from the last."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(f"einsum(): the equation {equation!r} names {len(terms)} operands, {len(ranks)} are given")
    wide = 0
    inputs = []
    for term, rank in zip(terms, ranks, strict=True):
        before, dots, after = term.partition("...")
        named = before + after
        if not all(c.isalpha() for c in named):
            raise ArgumentError(f"einsum(): {term!r} in {equation!r} has something other than letters and one '...'")
        free = rank - len(named)
        if free < 0 or (free and not dots):
            raise ShapeError(f"einsum(): {term!r} in {equation!r} names {len(named)} axes of an operand that has {rank}")
        wide = max(wide, free)
        inputs.append([*before, *(str(k) for k in range(free, 0, -1)), *after])
    dotted = [str(k) for k in range(wide, 0, -1)]
    if not arrow:
        every = [c for labels in inputs for c in labels if c.isalpha()]
        return inputs, dotted + sorted(c for c in set(every) if every.count(c) == 1)
    before, dots, after = right.partition("...")
    output = [*before, *(dotted if dots else []), *after]
    known = {c for labels in inputs for c in labels}
    if len(set(output)) != len(output) or not set(output) <= known:
        raise ArgumentError(f"einsum(): the result {right!r} of {equation!r} repeats an axis or names an unknown one")
    return inputs, output


def _without_repeats(x: Value, labels: list[str]) -> tuple[Value, list[str]]:
    """A label that occurs twice in one operand takes the diagonal."""
    for label in list(dict.fromkeys(labels)):
        while labels.count(label) > 1:
            a = labels.index(label)
            b = labels.index(label, a + 1)
            if x.shape[a] != x.shape[b]:
                raise ShapeError(f"einsum(): axes {label!r} of one operand have sizes {x.shape[a]} and {x.shape[b]}")
            x = diagonal_of("einsum", x, 0, a, b)
            labels = [c for k, c in enumerate(labels) if k not in (a, b)] + [label]
    return x, labels


def _summed(x: Value, labels: list[str], keep: set[str]) -> tuple[Value, list[str]]:
    axes = tuple(k for k, c in enumerate(labels) if c not in keep)
    if not axes:
        return x, labels
    kept = [c for c in labels if c in keep]
    return p.reshape(p.reduce_sum(x, axes), tuple(n for k, n in enumerate(x.shape) if k not in axes)), kept


def _ordered(x: Value, labels: list[str], order: list[str]) -> Value:
    """x with its axes in the order of these labels; a missing one has length 1."""
    present = [c for c in order if c in labels]
    x = p.transpose(x, tuple(labels.index(c) for c in present))
    sizes = iter(x.shape)
    return p.reshape(x, tuple(next(sizes) if c in labels else 1 for c in order))


def _contracted(
    a: Value, la: list[str], b: Value, lb: list[str], keep: set[str], sizes: dict[str, int]
) -> tuple[Value, list[str]]:
    """Two operands as one batched matrix product: shared kept axes are the batch, shared others are summed."""
    a, la = _summed(a, la, keep | set(lb))
    b, lb = _summed(b, lb, keep | set(la))
    batch = [c for c in la if c in lb and c in keep]
    inner = [c for c in la if c in lb and c not in keep]
    rows, columns = [c for c in la if c not in lb], [c for c in lb if c not in la]

    def full(x: Value, labels: list[str], order: list[str]) -> Value:
        shape = tuple(sizes[c] for c in order)
        return p.broadcast_to(_ordered(x, labels, order), shape)

    def size(labels: list[str]) -> int:
        return math.prod(sizes[c] for c in labels)

    lead = tuple(sizes[c] for c in batch)
    left = p.reshape(full(a, la, [*batch, *rows, *inner]), (*lead, size(rows), size(inner)))
    right = p.reshape(full(b, lb, [*batch, *inner, *columns]), (*lead, size(inner), size(columns)))
    result = [*batch, *rows, *columns]
    return p.reshape(p.matmul(left, right), tuple(sizes[c] for c in result)), result


@op(
    "einsum",
    operands=("operands",),
    lists=("operands",),
    variadic="operands",
    reference=lambda equation, xs: np.asarray(np.einsum(equation, *xs)),
    samples=[
        ("ij,jk->ik", [real(3, 4), real(4, 2)]),
        ("ij,jk", [real(3, 4), real(4, 2)]),
        ("ii->i", [real(3, 3)]),
        ("ii", [real(3, 3)]),
        ("...ij,...jk->...ik", [real(2, 3, 4), real(4, 2)]),
        ("bij,bj->b", [real(2, 3, 4), real(2, 4)]),
        ("i,j->ji", [real(3), real(4)]),
        ("ij,kl,jk->il", [real(2, 3), real(4, 2), real(3, 4)]),
        ("ij->", [real(2, 3)]),
        ("ijk->kji", [real(2, 3, 4)]),
        ("ij,ij->ij", [real(2, 3), real(2, 3)]),
        ("i...->...", [real(2, 3, 4)]),
    ],
    tests="noscalar noshape noempty",
    tolerance=3,
)
def einsum(equation, operands):
    """Sums of products of the operands: axes of one letter are multiplied together, those that the result does not name are summed.

    ``"ij,jk->ik"`` is a matrix product; ``...`` stands for axes that are broadcast; without ``->`` the result has the letters
    that occur once, in alphabetical order. Operands are contracted from left to right.
    """
    xs = list(promoted(*operands))
    if not xs:
        raise ArgumentError("einsum(): there are no operands")
    inputs, output = _labels(equation, [x.ndim for x in xs])
    sizes: dict[str, int] = {}
    for x, labels in zip(xs, inputs, strict=True):
        for label, n in zip(labels, x.shape, strict=True):
            known = sizes.get(label, 1)
            if n != known and n != 1 and known != 1:
                raise ShapeError(
                    message(f"einsum(): axis {label!r} of {equation!r} has sizes {known} and {n}", "they must be equal")
                )
            sizes[label] = n if known == 1 else known
    terms = [_without_repeats(x, labels) for x, labels in zip(xs, inputs, strict=True)]
    value, labels = terms[0]
    for k in range(1, len(terms)):
        later = {c for _, others in terms[k + 1 :] for c in others} | set(output)
        value, labels = _contracted(value, labels, *terms[k], later, sizes)
    value, labels = _summed(value, labels, set(output))
    return p.transpose(value, tuple(labels.index(c) for c in output))
