"""Views and rearrangements: the same elements in another shape or order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ShapeError, message
from ..ir.program import Value
from . import primitives as p
from .arguments import dtype_name, known_shape, normalized_axes, normalized_axis
from .define import op
from .samples import real
from .scans import part


def reshaped_size(name: str, x: Value, shape: Any) -> tuple[int, ...]:
    """The sizes that ``shape`` means for x: one -1 is inferred, 0 keeps the axis at its place."""
    sizes = list(known_shape(name, shape))
    for k, n in enumerate(sizes):
        if n == 0 and x.numel:
            if k >= x.ndim:
                raise ShapeError(
                    f"{name}(): shape {list(sizes)} keeps axis {k} (a 0), which a tensor of shape {list(x.shape)} does not have"
                )
            sizes[k] = x.shape[k]
    if sizes.count(-1) > 1:
        raise ShapeError(f"{name}(): shape {list(sizes)} has more than one -1")
    known = math.prod(n for n in sizes if n != -1)
    if -1 in sizes:
        if not known or x.numel % known:
            raise ShapeError(f"{name}(): {x.numel} elements of a tensor of shape {list(x.shape)} do not fill {list(sizes)}")
        sizes[sizes.index(-1)] = x.numel // known
    if math.prod(sizes) != x.numel:
        raise ShapeError(
            message(
                f"{name}(): a tensor of shape {list(x.shape)} cannot become {list(sizes)}",
                f"it has {x.numel} elements, not {math.prod(sizes)}",
            )
        )
    return tuple(sizes)


@op(
    "reshape",
    operands=("x",),
    method=True,
    inplace=True,
    is_view=True,
    reference=lambda x, s: x.reshape([x.shape[k] if n == 0 else n for k, n in enumerate(s)]),
    samples=[(real(3, 4), [2, 6]), (real(2, 3, 4), [0, -1]), (real(6), [3, 2, 1])],
    rest="shape",
)
def reshape(x, shape):
    """x with another shape of as many elements. One size may be -1 (inferred); 0 keeps x's own size of that axis."""
    return p.reshape(x, reshaped_size("reshape", x, shape))


@op(
    "view",
    operands=("x",),
    method=True,
    is_view=True,
    rest="shape_or_dtype",
    reference=lambda x, s: x.reshape(s),
    samples=[(real(3, 4), [2, -1])],
    aliases={"shape": "shape_or_dtype", "size": "shape_or_dtype", "dtype": "shape_or_dtype"},
)
def view(x, shape_or_dtype):
    """x's memory in another shape, or its bytes as another dtype (then the last axis shrinks or grows)."""
    if isinstance(shape_or_dtype, (int, list, tuple)):
        return p.reshape(x, reshaped_size("view", x, shape_or_dtype))
    return p.view_dtype(x, dtype_name("view", shape_or_dtype))


@op(
    "view_as",
    operands=("x", "other"),
    method=True,
    is_view=True,
    reference=lambda x, o: x.reshape(o.shape),
    samples=[(real(3, 4), real(2, 6))],
)
def view_as(x, other):
    """x's memory in the shape of ``other``."""
    return p.reshape(x, reshaped_size("view_as", x, other.shape or [1])) if other.shape else p.reshape(x, ())


def _flatten_reference(x, start_axis=0, stop_axis=-1):
    if not x.ndim:
        return x.reshape(1)
    start, stop = start_axis % x.ndim, stop_axis % x.ndim
    return (
        x.reshape((*x.shape[:start], -1, *x.shape[stop + 1 :]))
        if x.size
        else x.reshape((*x.shape[:start], math.prod(x.shape[start : stop + 1]), *x.shape[stop + 1 :]))
    )


@op(
    "flatten",
    operands=("x",),
    method=True,
    inplace=True,
    is_view=True,
    reference=_flatten_reference,
    samples=[(real(2, 3, 4),), (real(2, 3, 4), 1), (real(2, 3, 4, 2), 1, -2), (real(),)],
    aliases={"start_dim": "start_axis", "end_dim": "stop_axis"},
)
def flatten(x, start_axis=0, stop_axis=-1):
    """x with the axes from start_axis to stop_axis as one; a 0-D x as one element."""
    start, stop = (normalized_axis("flatten", a, x.ndim) for a in (start_axis, stop_axis))
    if start > stop:
        raise ShapeError(f"flatten(): start_axis {start_axis} comes after stop_axis {stop_axis}")
    return p.reshape(x, (*x.shape[:start], math.prod(x.shape[start : stop + 1]), *x.shape[stop + 1 :]))


@op(
    "ravel",
    operands=("input",),
    method=True,
    is_view=True,
    reference=np.ravel,
    samples=[(real(2, 3),), (real(),)],
    aliases={"x": "input"},
)
def ravel(input):
    """x as one axis."""
    return p.reshape(input, (input.numel,))


@op(
    "unflatten",
    operands=("x",),
    method=True,
    is_view=True,
    reference=lambda x, a, s: x.reshape((*x.shape[: a % x.ndim], *s, *x.shape[a % x.ndim + 1 :])),
    samples=[(real(3, 8), 1, [2, 4]), (real(8, 3), -2, [2, -1, 2])],
    aliases={"sizes": "shape"},
    tests="noshape noempty noscalar",
)
def unflatten(x, axis, shape):
    """x with one axis split into several; one size may be -1."""
    axis = normalized_axis("unflatten", axis, x.ndim)
    row = Value(x.dtype, (x.shape[axis] if x.ndim else 1,))
    return p.reshape(x, (*x.shape[:axis], *reshaped_size("unflatten", row, shape), *x.shape[axis + 1 :]))


@op(
    ["transpose"],
    operands=("x",),
    method=True,
    inplace=True,
    is_view=True,
    reference=np.transpose,
    samples=[(real(2, 3, 4), [2, 0, 1]), (real(2, 3), [-1, 0]), (real(), [])],
    aliases={"dims": "perm"},
)
def transpose(x, perm):
    """x with its axes in the order of ``perm``, which names each once."""
    if len(perm) != x.ndim:
        raise ShapeError(
            message(f"transpose(): perm {list(perm)} has {len(perm)} axes", f"x of shape {list(x.shape)} has {x.ndim}")
        )
    return p.transpose(x, tuple(normalized_axis("transpose", a, x.ndim) for a in perm))


@op(
    "permute",
    operands=("input",),
    method=True,
    is_view=True,
    reference=np.transpose,
    samples=[(real(2, 3, 4), [2, 0, 1])],
    rest="dims",
    aliases={"x": "input", "perm": "dims"},
)
def permute(input, dims):
    """The tensor with its axes in the order of ``dims``."""
    return transpose.body(input, dims)


@op(
    "t",
    operands=("input",),
    method=True,
    inplace=True,
    is_view=True,
    reference=lambda x: x.T,
    samples=[(real(2, 3),), (real(3),), (real(),)],
    aliases={"x": "input"},
)
def t(input):
    """A matrix transposed; a vector or 0-D tensor as it is."""
    if input.ndim > 2:
        raise ShapeError(f"t(): input is {list(input.shape)}; it must have at most 2 axes; use transpose() for more")
    return p.transpose(input, tuple(reversed(range(input.ndim))))


@op(
    ["matrix_transpose", "linalg.matrix_transpose"],
    method=("matrix_transpose", "mT"),
    is_view=True,
    reference=lambda x: np.swapaxes(x, -1, -2),
    samples=[(real(2, 3, 4),)],
)
def matrix_transpose(x):
    """x with its last two axes swapped."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose(): x is {list(x.shape)}; it must have 2 axes at least")
    return p.swap_last(x)


@op(
    "moveaxis",
    operands=("x",),
    method=True,
    is_view=True,
    reference=np.moveaxis,
    samples=[(real(2, 3, 4), 0, -1), (real(2, 3, 4), [0, 1], [2, 0])],
)
def moveaxis(x, source, destination):
    """x with the axes ``source`` moved to the places ``destination``, the others in their order."""
    pairs = [a if isinstance(a, (list, tuple)) else (a,) for a in (source, destination)]
    froms, tos = ([normalized_axis("moveaxis", a, x.ndim) for a in side] for side in pairs)
    if len(froms) != len(tos) or len(set(froms)) != len(froms) or len(set(tos)) != len(tos):
        raise ShapeError(f"moveaxis(): source {source} and destination {destination} must name as many different axes")
    order = [k for k in range(x.ndim) if k not in froms]
    for to, source_axis in sorted(zip(tos, froms, strict=True)):
        order.insert(to, source_axis)
    return p.transpose(x, tuple(order[: x.ndim]))


@op(
    ["swapaxes", "swapdims"],
    operands=("x",),
    method=("swapaxes", "swapdims"),
    is_view=True,
    reference=np.swapaxes,
    samples=[(real(2, 3, 4), 0, -1), (real(2, 3), 1, 0)],
    aliases={"dim0": "axis0", "dim1": "axis1"},
)
def swapaxes(x, axis0, axis1):
    """x with two axes exchanged."""
    a, b = (normalized_axis("swapaxes", k, x.ndim) for k in (axis0, axis1))
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = order[b], order[a]
    return p.transpose(x, tuple(order))


def _squeeze_reference(x, axis=None):
    axes = range(x.ndim) if axis is None else [a % x.ndim for a in (axis if isinstance(axis, list) else [axis])] if x.ndim else []
    return np.squeeze(x, tuple(a for a in axes if x.shape[a] == 1))


@op(
    "squeeze",
    operands=("x",),
    method=True,
    inplace=True,
    is_view=True,
    reference=_squeeze_reference,
    samples=[(real(1, 3, 1),), (real(1, 3, 1), 0), (real(1, 3, 1), [0, 1, -1]), (real(3, 4),)],
)
def squeeze(x, axis=None):
    """x without its axes of length 1, or those of them that ``axis`` names; a named axis of another length stays."""
    axes = normalized_axes("squeeze", axis, x.ndim)
    return p.reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes or n != 1))


@op(
    "unsqueeze",
    operands=("x",),
    method=True,
    inplace=True,
    is_view=True,
    reference=lambda x, a: _unsqueezed(x, a),
    samples=[(real(3, 4), 0), (real(3, 4), -1), (real(3), [0, 2]), (real(), 0)],
)
def unsqueeze(x, axis):
    """x with an axis of length 1 put in at each place of ``axis``, one after another."""
    shape = list(x.shape)
    for a in axis if isinstance(axis, (list, tuple)) else [axis]:
        if not -len(shape) - 1 <= a <= len(shape):
            raise ShapeError(f"unsqueeze(): axis {a} is outside of [{-len(shape) - 1}, {len(shape)}]")
        shape.insert(a + len(shape) + 1 if a < 0 else a, 1)
    return p.reshape(x, tuple(shape))


def _unsqueezed(x, axis):
    for a in axis if isinstance(axis, list) else [axis]:
        x = np.expand_dims(x, a)
    return x


def expanded_shape(name: str, x: Value, shape: Any) -> tuple[int, ...]:
    """The sizes that ``shape`` means for expanding x: -1 keeps x's own."""
    sizes = known_shape(name, shape)
    lead = len(sizes) - x.ndim
    if lead < 0 or any(n == -1 for n in sizes[:lead]):
        raise ShapeError(f"{name}(): a tensor of shape {list(x.shape)} does not expand to {list(sizes)}")
    return tuple(x.shape[k - lead] if n == -1 else n for k, n in enumerate(sizes))


def _expand_reference(x, shape):
    lead = len(shape) - x.ndim
    return np.broadcast_to(x, [x.shape[k - lead] if n == -1 else n for k, n in enumerate(shape)])


_EXPANSIONS = [(real(3, 1), [2, 3, 4]), (real(3, 1), [-1, 4]), (real(), [2, 3])]


@op("expand", operands=("x",), method=True, is_view=True, rest="shape", reference=_expand_reference, samples=_EXPANSIONS)
def expand(x, shape):
    """x with axes of length 1, and new leading axes, repeated to ``shape``; -1 keeps a size."""
    return p.broadcast_to(x, expanded_shape("expand", x, shape))


@op("broadcast_to", operands=("x",), method=True, is_view=True, rest="shape", reference=_expand_reference, samples=_EXPANSIONS)
def broadcast_to(x, shape):
    """x with axes of length 1, and new leading axes, repeated to ``shape``; -1 keeps a size."""
    return p.broadcast_to(x, expanded_shape("broadcast_to", x, shape))


@op(
    "expand_as",
    operands=("x", "y"),
    method=True,
    is_view=True,
    reference=lambda x, y: np.broadcast_to(x, y.shape),
    samples=[(real(3, 1), real(2, 3, 4))],
)
def expand_as(x, y):
    """x repeated to the shape of y."""
    return p.broadcast_to(x, y.shape)


@op(
    "broadcast_tensors",
    lists=("input",),
    is_view=True,
    reference=lambda xs: list(np.broadcast_arrays(*xs)),
    samples=[([real(3, 1), real(1, 4), real(2, 1, 1)],)],
    aliases={"inputs": "input"},
)
def broadcast_tensors(input):
    """The tensors repeated to the one shape that they broadcast to."""
    shape = p.broadcast_shapes(*(x.shape for x in input))
    return [p.broadcast_to(x, shape) for x in input]


@op(
    "tile",
    operands=("x",),
    method=True,
    reference=np.tile,
    samples=[(real(2, 3), [2, 1]), (real(2, 3), [2, 3, 1]), (real(3), [2]), (real(2, 3), 2)],
    rest="repeat_times",
    aliases={"dims": "repeat_times"},
)
def tile(x, repeat_times):
    """x laid out repeat_times[k] times along each axis k; the shorter of shape and repeat_times is filled with leading ones."""
    repeats = known_shape("tile", repeat_times)
    if min(repeats, default=0) < 0:
        raise ArgumentError(f"tile(): repeat_times {list(repeats)} has a negative number")
    rank = max(len(repeats), x.ndim)
    repeats = (1,) * (rank - len(repeats)) + repeats
    shape = (1,) * (rank - x.ndim) + x.shape
    if all(r == 1 for r in repeats):
        return p.reshape(x, shape)
    spread = p.reshape(x, tuple(n for size in shape for n in (1, size)))
    spread = p.broadcast_to(spread, tuple(n for r, size in zip(repeats, shape, strict=True) for n in (r, size)))
    return p.reshape(spread, tuple(r * size for r, size in zip(repeats, shape, strict=True)))


def _repeat_interleave_reference(x, repeats, axis=None, output_size=None):
    return np.repeat(x, repeats, axis)


@op(
    "repeat_interleave",
    operands=("x",),
    keyword_only=("output_size",),
    method=True,
    reference=_repeat_interleave_reference,
    samples=[(real(2, 3), 2), (real(2, 3), 3, 1), (real(2, 3), [1, 0, 2], -1)],
    tests="noempty noscalar noshape",
)
def repeat_interleave(x, repeats, axis=None, output_size=None):
    """x with each slice along ``axis`` (each element by default) repeated: ``repeats`` times, or repeats[k] times the k-th."""
    if axis is None:
        x, axis = p.reshape(x, (x.numel,)), 0
    axis = normalized_axis("repeat_interleave", axis, x.ndim)
    length = x.shape[axis]
    counts = known_shape("repeat_interleave", repeats)
    if len(counts) == 1 and counts[0] >= 0:
        times = counts[0]
        spread = p.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
        spread = p.broadcast_to(spread, (*x.shape[: axis + 1], times, *x.shape[axis + 1 :]))
        result = p.reshape(spread, (*x.shape[:axis], length * times, *x.shape[axis + 1 :]))
    else:
        if len(counts) != length or min(counts) < 0:
            raise ShapeError(
                f"repeat_interleave(): repeats {list(counts)} must be {length} "
                f"numbers, not negative, for axis {axis} of {list(x.shape)}"
            )
        result = p.gather(x, p.array(np.repeat(np.arange(length), counts), "int64"), axis)
    if output_size is not None and output_size != result.shape[axis]:
        raise ArgumentError(
            f"repeat_interleave(): output_size is {output_size}, the result has {result.shape[axis]} along axis {axis}"
        )
    return result


@op(
    ["flip", "reverse"],
    operands=("x",),
    method=("flip", "reverse"),
    reference=lambda x, a: np.flip(x, tuple(a) if isinstance(a, list) else a),
    samples=[(real(2, 3, 4), [0, 2]), (real(2, 3), -1), (real(2, 3), [])],
)
def flip(x, axis):
    """x with the order along the axes reversed."""
    axes = normalized_axes("flip", axis, x.ndim) if not isinstance(axis, (list, tuple)) or axis else ()
    if not axes:
        return x
    steps = tuple(-1 if k in axes else 1 for k in range(x.ndim))
    return p.slice_(x, tuple(n - 1 if k in axes and n else 0 for k, n in enumerate(x.shape)), x.shape, steps)


@op(
    "rot90",
    operands=("x",),
    method=True,
    reference=lambda x, k=1, axes=(0, 1): np.rot90(x, k, axes),
    samples=[(real(2, 3),), (real(2, 3, 4), 2, [0, 2]), (real(2, 3), -1), (real(2, 3), 4)],
)
def rot90(x, k=1, axes=(0, 1)):
    """x turned by k quarter turns from the first of the two axes toward the second."""
    if len(axes) != 2:
        raise ShapeError(f"rot90(): axes {list(axes)} must be two axes")
    a, b = (normalized_axis("rot90", v, x.ndim) for v in axes)
    if a == b or x.ndim < 2:
        raise ShapeError(f"rot90(): axes {list(axes)} must be two different axes of a tensor of shape {list(x.shape)}")
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    turn = k % 4
    if turn == 0:
        return x
    if turn == 2:
        return flip.body(x, (a, b))
    return p.transpose(flip.body(x, b), tuple(order)) if turn == 1 else flip.body(p.transpose(x, tuple(order)), b)


@op(
    "roll",
    operands=("x",),
    method=True,
    reference=lambda x, s, a=None: np.roll(x, s, a),
    samples=[(real(3, 4), 2), (real(3, 4), -1, 1), (real(3, 4), [1, 2], [0, 1])],
)
def roll(x, shifts, axis=None):
    """x moved by ``shifts`` places along the axes (of the flattened tensor by default);
    what leaves at the end comes in at the start.
    """
    if axis is None or (isinstance(axis, (list, tuple)) and not axis):
        return p.reshape(roll.body(p.reshape(x, (x.numel,)), shifts, 0), x.shape)
    moves = shifts if isinstance(shifts, (list, tuple)) else [shifts]
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    if len(moves) != len(axes):
        raise ShapeError(f"roll(): shifts {list(moves)} and axis {list(axes)} differ in length")
    for shift, a in zip(moves, axes, strict=True):
        a = normalized_axis("roll", a, x.ndim)
        if x.ndim == 0:
            return x
        length = x.shape[a]
        cut = -shift % length if length else 0
        if cut:
            x = p.concat([part(x, a, cut, length - cut), part(x, a, 0, cut)], a)
    return x


def _at_least(rank: int, grow: Any) -> Any:
    def body(inputs):
        grown = [p.reshape(x, grow(x.shape)) if x.ndim < rank else x for x in inputs]
        return grown[0] if len(grown) == 1 else grown

    return body


def _grow_2d(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) * (2 - len(shape)) + shape


def _grow_3d(shape: tuple[int, ...]) -> tuple[int, ...]:
    return {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]


def _at_least_op(rank: int, grow: Any, function: Any) -> Any:
    body = _at_least(rank, grow)
    body.__name__, body.__doc__ = (
        f"atleast_{rank}d",
        f"Each tensor with {rank} axes at least, new ones of length 1; a list, or the one result of one tensor.",
    )
    samples = [([real(3), real(), real(2, 3)],), ([real(3)],), ([real(2, 3, 4)],)]
    return op(
        f"atleast_{rank}d",
        lists=("inputs",),
        variadic="inputs",
        method=True,
        is_view=True,
        reference=lambda xs: function(*xs),
        samples=samples,
    )(body)


atleast_1d = _at_least_op(1, lambda shape: (1,), np.atleast_1d)
atleast_2d = _at_least_op(2, _grow_2d, np.atleast_2d)
atleast_3d = _at_least_op(3, _grow_3d, np.atleast_3d)


@op("clone", method=True, reference=np.copy, samples=[(real(3, 4),)])
def clone(x):
    """x in memory of its own; gradients flow through it."""
    return x
