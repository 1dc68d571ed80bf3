"""Orders of arguments that Paddle takes beside its own: ``x.gather(dim, index)``, ``x.sum(0, True)``, ``x.transpose(0, 1)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _rt
from ..base.errors import ArgumentError, ArgumentTypeError, message
from .build import OPS

Tensor = _rt.Tensor

_REDUCTIONS = {"add": "add", "multiply": "mul"}


def _select_along(op: Any, x: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    return op(x, index, dim, out=out)


def _add_along(op: Any, x: Any, dim: int, index: Any, source: Any, alpha: Any = 1, **keywords: Any) -> Any:
    return op(x, index, dim, source, alpha, **keywords)


def _fill_along(op: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    return op(x, index, dim, value)


def _gather_along(op: Any, x: Any = None, *order: Any, **keywords: Any) -> Any:
    """``gather(x, dim, index)``: one element for each of an index of as many axes as x; of a 1-D index, slices as Paddle's own form gives them."""
    names = ("dim", "index") if order and isinstance(order[0], int) else ("index", "dim")
    given = dict(zip(names, order, strict=False)) | keywords
    x = given.pop("input", given.pop("x", x))
    if "index" not in given or given["index"] is None or len(given["index"].shape) != len(x.shape) or len(x.shape) < 2:
        given["axis"] = given.pop("dim", given.pop("axis", None))
        return op(x, given.pop("index", None), **given)
    return OPS["take_along_axis"](x, given["index"], given["dim"], False, out=given.get("out"))


def _scatter_along(op: Any, x: Any, *order: Any, **keywords: Any) -> Any:
    """``scatter(x, dim, index, src, reduce=None)``: each element of src, or the number ``value``, to its place along ``dim``."""
    given = dict(zip(("dim", "index", "src", "reduce"), order, strict=False)) | keywords
    reduce = given.pop("reduce", None)
    source = given.pop("src", given.pop("value", None))
    missing = next((name for name in ("dim", "index") if given.get(name) is None), "src" if source is None else "")
    if missing:
        raise ArgumentError(message(f"{op.__name__}(x, dim, index, src): {missing} is missing", "it has no default"))
    if reduce is not None and reduce not in _REDUCTIONS:
        raise ArgumentError(f"{op.__name__}(): reduce is {reduce!r}; it must be None, 'add' or 'multiply'")
    put = OPS["put_along_axis_" if op.__name__.endswith("_") else "put_along_axis"]
    out = {"out": given["out"]} if given.get("out") is not None else {}
    return put(x, given["index"], source, given["dim"], _REDUCTIONS.get(reduce or "", "assign"), True, False, **out)


def _sum_keeping(op: Any, x: Any, dim: Any, keepdim: bool, dtype: Any = None, **keywords: Any) -> Any:
    return op(x, dim, dtype, keepdim, **keywords)


def _swap(op: Any, x: Any, *order: Any, **keywords: Any) -> Any:
    """``transpose(x, dim0, dim1)`` swaps two axes; three integers and more are their order."""
    given = (*order, *(keywords.pop(name) for name in ("dim0", "dim1") if name in keywords))
    if len(given) < 2:
        raise ArgumentTypeError(
            message(f"{op.__name__}(): perm is {given[0]}", "it must be a list of integers, or two axes to swap")
        )
    if len(given) > 2:
        return op(x, list(given), **keywords)
    rank = len(x.shape)
    for name, axis in zip(("dim0", "dim1"), given, strict=True):
        if not -rank <= axis < max(rank, 1):
            raise ArgumentError(message(f"{op.__name__}(): {name} is {axis}", f"x has the shape {list(x.shape)}"))
    perm = list(range(rank))
    if rank:
        first, second = (axis % rank for axis in given)
        perm[first], perm[second] = second, first
    return op(x, perm, **keywords)


def _median_of(op: Any, x: Any, dim: int | None = None, keepdim: bool = False, **keywords: Any) -> Any:
    """``median(x, dim=…)``: the lower of the middle two, and its position."""
    return op(x, dim, keepdim, mode="min", **keywords)


#: Operator -> the position of an integer (or bool) that tells the form, keywords that tell it, and what serves it.
_FORMS: dict[str, tuple[int, frozenset[str], Callable[..., Any]]] = {
    "index_select": (1, frozenset(), _select_along),
    "index_add": (1, frozenset(), _add_along),
    "index_fill": (1, frozenset(), _fill_along),
    "gather": (1, frozenset({"dim"}), _gather_along),
    "scatter": (1, frozenset({"dim", "src"}), _scatter_along),
    "sum": (2, frozenset(), _sum_keeping),
    "nansum": (2, frozenset(), _sum_keeping),
    "transpose": (1, frozenset({"dim0", "dim1"}), _swap),
    "median": (99, frozenset({"dim"}), _median_of),
}


def install_other_forms() -> None:
    """Let the operators take them, and their in-place forms."""
    for name, form in _FORMS.items():
        for op in (OPS[name], OPS.get(f"{name}_")):
            if op is not None:
                op.other_form = form
