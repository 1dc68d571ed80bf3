"""identity_loss, and softmax with a mask."""

from __future__ import annotations

from ..base.errors import ArgumentError, ShapeError, message
from ..tensor import OPS, Tensor


def identity_loss(x: Tensor, reduction: str | int = "none") -> Tensor:
    """x itself, reduced: ``sum`` (0), ``mean`` (1) or ``none`` (2).

    Raises:
        ArgumentError: another reduction.
    """
    if reduction in ("sum", 0):
        return OPS["sum"](x)
    if reduction in ("mean", 1):
        return OPS["mean"](x)
    if reduction in ("none", 2):
        return x
    raise ArgumentError(message(f"identity_loss(): reduction={reduction!r}", "it must be 'sum', 'mean' or 'none'"))


def softmax_mask_fuse(x: Tensor, mask: Tensor, name: str | None = None) -> Tensor:
    """softmax(x + mask) over the last axis.

    Args:
        x: scores [N, heads, queries, keys].
        mask: what is added, [N, 1, queries, keys]: 0 where a key is seen, a very negative number where not.
    """
    return OPS["softmax"](OPS["add"](x, mask), -1)


def softmax_mask_fuse_upper_triangle(x: Tensor) -> Tensor:
    """softmax over the last axis, each query seeing the keys up to its own position.

    Args:
        x: scores [N, heads, length, length].

    Raises:
        ShapeError: the last two axes differ.

    Example:
        >>> import sampan as paddle
        >>> paddle.incubate.softmax_mask_fuse_upper_triangle(paddle.zeros([1, 1, 2, 2])).tolist()
        [[[[1.0, 0.0], [0.5, 0.5]]]]
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            message(f"softmax_mask_fuse_upper_triangle(): x has shape {list(x.shape)}", "the last two axes must be equal")
        )
    hidden = OPS["triu"](OPS["full"]([x.shape[-1], x.shape[-1]], 1.0, "float32"), 1).astype("bool")
    return OPS["softmax"](OPS["where"](hidden, OPS["full"]([], float("-inf"), x.dtype), x), -1)
