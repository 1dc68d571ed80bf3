"""``paddle.compat``: functions with PyTorch's arguments and results, where Paddle's own of the same name differ."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor import OPS, Tensor
from ..tensor.composed import unique as _unique
from ..tensor.explained import explained
from ..tensor.random import seed as _seed


class SortRetType(NamedTuple):
    """What ``sort`` gives."""

    values: Tensor
    indices: Tensor


class MinMaxRetType(NamedTuple):
    """What ``min`` and ``max`` along one axis give."""

    values: Tensor
    indices: Tensor


class MedianRetType(NamedTuple):
    """What ``median`` and ``nanmedian`` along one axis give."""

    values: Tensor
    indices: Tensor


class SlogdetResult(NamedTuple):
    """What ``slogdet`` gives."""

    sign: Tensor
    logabsdet: Tensor


def _given(name: str, result: Any, out: Any) -> Any:
    """The result, written into ``out``: a tensor for a tensor, a pair for a pair."""
    if out is None:
        return result
    if isinstance(result, Tensor):
        if not isinstance(out, Tensor):
            raise ArgumentTypeError(
                message(f"{name}(): out is a {type(out).__name__}", "the result is one tensor, so out must be one")
            )
        return OPS["assign"](result, out)
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise ArgumentTypeError(
            message(f"{name}(): out is a {type(out).__name__}", f"it must be a tuple of {len(result)} tensors")
        )
    return type(result)(*(OPS["assign"](r, o) for r, o in zip(result, out, strict=True)))


@explained
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both tensors have the same shape and elements, as a Python bool.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.equal(paddle.ones([2]), paddle.ones([2]))
        True
    """
    return bool(OPS["equal_all"](input, other))


@explained
def slogdet(x: Tensor, out: tuple[Tensor, Tensor] | None = None) -> SlogdetResult:
    """(sign, logabsdet) of square matrices [..., N, N]: of shape [...] each.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.slogdet(paddle.to_tensor([[2.0, 0.0], [0.0, -3.0]])).sign.item()
        -1.0
    """
    found = OPS["slogdet"](x)
    return _given("slogdet", SlogdetResult(found[0], found[1]), out)  # type: ignore[no-any-return]


@explained
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False, out: tuple[Tensor, Tensor] | None = None
) -> SortRetType:  # fmt: skip
    """(values, indices): the elements in order along ``dim``, and where they stood; equal ones keep their order whatever ``stable`` says.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.sort(paddle.to_tensor([3, 1, 2])).indices.tolist()
        [1, 2, 0]
    """
    places = OPS["argsort"](input, dim, descending, True)
    values = OPS["take_along_axis"](input, places, dim) if len(input.shape) else OPS["clone"](input)
    return _given("sort", SortRetType(values, places), out)  # type: ignore[no-any-return]


@explained
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in pieces of that size along ``dim``, the last one smaller where it does not divide; or of the sizes in the list.

    Example:
        >>> import sampan as paddle
        >>> [piece.tolist() for piece in paddle.compat.split(paddle.arange(5), 2)]
        [[0, 1], [2, 3], [4]]
    """
    if not isinstance(split_size_or_sections, int):
        return tuple(OPS["split"](tensor, list(split_size_or_sections), dim))
    size, rank = split_size_or_sections, len(tensor.shape)
    if not rank or not -rank <= dim < rank:
        raise ArgumentError(message(f"split(): dim is {dim}", f"tensor has the shape {list(tensor.shape)}"))
    length = tensor.shape[dim]
    if size < 0 or (size == 0 and length):
        raise ArgumentError(
            message(f"split(): split_size_or_sections is {size}", f"axis {dim} has {length} elements; the size must be positive")
        )
    sizes = [size if start + size <= length else length - start for start in range(0, length, size)] if length else [0]
    return tuple(OPS["split"](tensor, sizes, dim))


def _extreme(name: str, input: Tensor, args: tuple[Any, ...], out: Any, keywords: dict[str, Any]) -> Any:
    names = ("other",) if (args and not isinstance(args[0], int)) or "other" in keywords else ("dim", "keepdim")
    unknown = keywords.keys() - set(names)
    if unknown or len(args) > len(names) or set(names[: len(args)]) & keywords.keys():
        takes = "(input), (input, dim, keepdim=False) or (input, other)"
        wrong = (
            f"got an unexpected or repeated argument {next(iter(unknown), names[0])!r}"
            if keywords
            else f"got {1 + len(args)} arguments"
        )
        raise ArgumentTypeError(message(f"compat.{name}() {wrong}", f"it takes {takes}", f"paddle.{name}() has Paddle's own"))
    given = dict(zip(names, args, strict=False)) | keywords
    if "other" in given:
        if not isinstance(given["other"], Tensor):
            raise ArgumentTypeError(message(f"compat.{name}(): other is {given['other']!r}", "it must be a Tensor"))
        return _given(name, OPS[f"{name}imum"](input, given["other"]), out)
    if not given:
        return _given(name, OPS[f"a{name}"](input), out)
    if not isinstance(given.get("dim"), int):
        raise ArgumentTypeError(message(f"compat.{name}(): dim is {given.get('dim')!r}", "it must be an integer"))
    dim, keepdim = given["dim"], bool(given.get("keepdim", False))
    places = OPS[f"arg{name}"](input, dim, True)
    values = OPS["take_along_axis"](input, places, dim) if len(input.shape) else OPS["clone"](input)
    if not keepdim and len(input.shape):
        values, places = OPS["squeeze"](values, dim), OPS["squeeze"](places, dim)
    return _given(name, MinMaxRetType(values, places), out)


@explained
def min(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """``min(input)``: the smallest element. ``min(input, dim, keepdim=False)``: (values, indices) along one axis, where gradients go to the elements
    that the indices name. ``min(input, other)``: the smaller of each pair of elements.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.min(paddle.to_tensor([[3, 1], [2, 5]]), dim=0).values.tolist()
        [2, 1]
    """
    return _extreme("min", input, args, out, kwargs)


@explained
def max(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """``max(input)``: the largest element. ``max(input, dim, keepdim=False)``: (values, indices) along one axis, where gradients go to the elements
    that the indices name. ``max(input, other)``: the larger of each pair of elements.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.max(paddle.to_tensor([[3, 1], [2, 5]]), 1).indices.tolist()
        [0, 1]
    """
    return _extreme("max", input, args, out, kwargs)


@explained
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:  # fmt: skip
    """The distinct elements (slices along ``dim``) in ascending order whatever ``sorted`` says; with them where each element went, and the counts.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.unique(paddle.to_tensor([3, 1, 3]), return_counts=True)[1].tolist()
        [1, 2]
    """
    return _unique(input, return_inverse=return_inverse, return_counts=return_counts, axis=dim)


def _median(name: str, input: Tensor, dim: int | None, keepdim: bool, out: Any) -> Any:
    found = OPS[name](input, axis=dim, keepdim=keepdim, mode="min")
    return _given(name, found if dim is None else MedianRetType(*found), out)


@explained
def median(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower of the middle two elements, NaN where there is one; with ``dim``, (values, indices) along that axis.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.median(paddle.to_tensor([4.0, 1.0, 3.0, 2.0])).item()
        2.0
    """
    return _median("median", input, dim, keepdim, out)


@explained
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
    """The lower of the middle two elements that are not NaN; with ``dim``, (values, indices) along that axis.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.nanmedian(paddle.to_tensor([float("nan"), 1.0, 3.0])).item()
        1.0
    """
    return _median("nanmedian", input, dim, keepdim, out)


def seed() -> int:
    """Seed the random functions with a number that nobody knows before; gives the number.

    Example:
        >>> import sampan as paddle
        >>> paddle.compat.seed() == paddle.random.initial_seed()
        True
    """
    number = secrets.randbits(63)
    _seed(number)
    return number


__all__ = ["equal", "max", "median", "min", "nanmedian", "seed", "slogdet", "sort", "split", "unique"]


def __getattr__(name: str) -> Any:
    if name == "nn":
        return importlib.import_module(f"{__name__}.nn")
    raise AttributeError(f"module 'sampan.compat' has no attribute {name!r}")
