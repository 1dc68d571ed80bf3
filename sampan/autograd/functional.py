"""Jacobians and Hessians of computed tensors, and Jacobian products of functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import tensor
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..tensor import Tensor
from ..tensor.autograd import grad
from ..tensor.explained import explained
from ..tensor.variable import Variable


class Jacobian:
    """The matrix d(ys)/d(xs), a row of which is computed when it is first read.

    ``J[i, j]`` and slices read it as a tensor of shape [M, N], or [B, M, N] with a batch axis.
    """

    def __init__(self, ys: Tensor, xs: Tensor, is_batched: bool = False) -> None:
        limit = 2 if is_batched else 1
        for name, t in (("ys", ys), ("xs", xs)):
            if not isinstance(t, (Tensor, Variable)):
                raise ArgumentTypeError(message(f"jacobian(): {name} is a {type(t).__name__}", "it must be a Tensor"))
            if t.ndim > limit:
                kind = "[batch, n]" if is_batched else "[] or [n]"
                raise ShapeError(
                    message(f"jacobian(): {name} has shape {list(t.shape)}", f"it must be {kind}", "reshape it first")
                )
        self._ys, self._xs, self._is_batched = ys, xs, is_batched
        self._rows: dict[int, Tensor] = {}
        self._whole: Tensor | None = None

    @property
    def shape(self) -> list[int]:
        """[M, N], or [B, M, N]; an axis is left out for a 0-D tensor."""
        ys, xs = list(self._ys.shape), list(self._xs.shape)
        return [ys[0], *ys[1:], *xs[1:]] if self._is_batched else [*ys, *xs]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def _row(self, index: int) -> Tensor:
        found = self._rows.get(index)
        if found is None:
            if self._is_batched:
                root = self._ys[:, index] if self._ys.ndim > 1 else self._ys
            else:
                root = self._ys[index] if self._ys.ndim else self._ys
            (found,) = grad(root, self._xs, retain_graph=True, create_graph=True, allow_unused=True)
            if found is None:
                found = tensor.zeros_like(self._xs)
            self._rows[index] = found
        return found

    def evaluate(self) -> Tensor:
        """The whole matrix."""
        if self._whole is None:
            axis = 1 if self._is_batched else 0
            has_rows = self._ys.ndim > axis
            self._whole = (
                tensor.stack([self._row(k) for k in range(self._ys.shape[axis])], axis=axis) if has_rows else self._row(0)
            )
        return self._whole

    def __getitem__(self, index: Any) -> Tensor:
        first = index[0] if isinstance(index, tuple) and index else index
        if not self._is_batched and isinstance(first, int) and self._ys.ndim:
            size = self._ys.shape[0]
            row = self._row(first % size if -size <= first < size else self._out_of_range(first, size))
            rest = index[1:] if isinstance(index, tuple) else ()
            return row[rest] if rest else row
        return self.evaluate()[index]

    @staticmethod
    def _out_of_range(index: int, size: int) -> int:
        raise IndexError(f"row {index} of a Jacobian with {size} rows")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.evaluate(), name)

    def __repr__(self) -> str:
        return repr(self.evaluate())


class Hessian(Jacobian):
    """The matrix of second derivatives of a scalar (one for each batch entry with a batch axis)."""


def _is_batched(name: str, batch_axis: int | None) -> bool:
    if batch_axis not in (None, 0):
        raise ArgumentError(message(f"{name}(): batch_axis={batch_axis!r}", "it must be None or 0"))
    return batch_axis == 0


@explained
def jacobian(ys: Any, xs: Any, batch_axis: int | None = None) -> Any:
    """d(ys)/d(xs), lazily.

    Args:
        ys: a Tensor of at most one axis (two with a batch axis), or a tuple of them.
        xs: the same.
        batch_axis: 0 when the first axis counts independent examples; None otherwise.

    Returns:
        A Jacobian; tuples of them, nested like ys and then xs, for tuples.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> paddle.autograd.jacobian(x * x, x)[:].tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    is_batched = _is_batched("jacobian", batch_axis)

    def of(y: Any) -> Any:
        return tuple(Jacobian(y, x, is_batched) for x in xs) if isinstance(xs, (list, tuple)) else Jacobian(y, xs, is_batched)

    return tuple(of(y) for y in ys) if isinstance(ys, (list, tuple)) else of(ys)


@explained
def hessian(ys: Tensor, xs: Any, batch_axis: int | None = None) -> Any:
    """The second derivatives of a one-element ys (of each batch entry, with a batch axis), lazily.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
        >>> paddle.autograd.hessian((x * x * x).sum(), x)[:].tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    is_batched = _is_batched("hessian", batch_axis)
    wanted = [ys.shape[0]] if is_batched and ys.ndim else []
    if ys.size != (wanted[0] if wanted else 1):
        raise ShapeError(
            message(f"hessian(): ys has shape {list(ys.shape)}", "it must have one element, or one for each batch entry")
        )
    many = isinstance(xs, (list, tuple))
    firsts = grad(ys, list(xs) if many else xs, create_graph=True, retain_graph=True, allow_unused=True)
    targets = list(xs) if many else [xs]
    rows = []
    for first, target in zip(firsts, targets, strict=True):
        slope = tensor.zeros_like(target) if first is None else first
        rows.append(tuple(Hessian(slope, x, is_batched) for x in targets))
    return tuple(rows) if many else rows[0][0]


def _values(xs: Any) -> list[Tensor]:
    found = []
    for x in xs if isinstance(xs, (list, tuple)) else [xs]:
        copy = x.detach()
        copy.stop_gradient = False
        found.append(copy)
    return found


def _as_given(values: Sequence[Any], like: Any) -> Any:
    return tuple(values) if isinstance(like, (list, tuple)) else values[0]


@explained
def vjp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """(func(xs), v times its Jacobian). v: shaped like the outputs; ones by default."""
    inputs = _values(xs)
    ys = func(*inputs)
    outputs = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    given = None if v is None else list(v) if isinstance(v, (list, tuple)) else [v]
    found = grad(outputs, inputs, given, create_graph=True, allow_unused=True)
    filled = [tensor.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]
    return ys, _as_given(filled, xs)


@explained
def jvp(func: Callable[..., Any], xs: Any, v: Any = None) -> tuple[Any, Any]:
    """(func(xs), its Jacobian times v), by differentiating the reverse product. v: shaped like xs; ones by default."""
    inputs = _values(xs)
    ys = func(*inputs)
    outputs = list(ys) if isinstance(ys, (list, tuple)) else [ys]
    weights = []
    for y in outputs:
        w = tensor.zeros_like(y)
        w.stop_gradient = False
        weights.append(w)
    slopes = grad(outputs, inputs, weights, create_graph=True, allow_unused=True)
    given = [tensor.ones_like(x) for x in inputs] if v is None else list(v) if isinstance(v, (list, tuple)) else [v]
    pairs = [(s, g) for s, g in zip(slopes, given, strict=True) if s is not None and not s.stop_gradient]
    if pairs:
        found = grad([s for s, _ in pairs], weights, [g for _, g in pairs], create_graph=True, allow_unused=True)
    else:
        found = [None] * len(weights)
    return ys, _as_given([tensor.zeros_like(y) if g is None else g for g, y in zip(found, outputs, strict=True)], ys)
