"""Reductions, normalisations, losses and movement of data; forward alone and with backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .case import Body, Case, random_array


def _indices(count: int, bound: int) -> np.ndarray:
    return np.random.default_rng(7).integers(0, bound, count)


def _paddle_body(make: Callable[[Any], Any], arrays: Callable[[], list[np.ndarray]], with_grad: bool) -> Body:
    """Runs ``make(paddle)`` over the arrays; with ``with_grad``, also the gradients to every float operand."""

    def body(p):
        function, operands = make(p), [p.to_tensor(a) for a in arrays()]
        if not with_grad:
            return lambda: function(*operands)
        wanted = [o for o, a in zip(operands, arrays(), strict=True) if a.dtype == np.float32]
        for operand in wanted:
            operand.stop_gradient = False
        cotangent = p.to_tensor(random_array(*function(*operands).shape, seed=9))
        return lambda: p.grad(function(*operands), wanted, cotangent)

    return body


def _torch_body(make: Callable[[Any], Any], arrays: Callable[[], list[np.ndarray]], with_grad: bool) -> Body:
    """As ``_paddle_body``."""

    def body(t):
        function, operands = make(t), [t.from_numpy(a) for a in arrays()]
        if not with_grad:
            return lambda: function(*operands)
        wanted = [o.requires_grad_() for o in operands if o.dtype == t.float32]
        cotangent = t.from_numpy(random_array(*function(*operands).shape, seed=9))
        return lambda: t.autograd.grad(function(*operands), wanted, cotangent)

    return body


def _pair(name: str, arrays: Callable[[], list[np.ndarray]], paddle: Any, torch: Any) -> list[Case]:
    """The case forward, and forward with backward."""
    return [
        Case(f"{name}{suffix}", "rows", _paddle_body(paddle, arrays, grad), _torch_body(torch, arrays, grad))
        for suffix, grad in ((", forward", False), (", forward + backward", True))
    ]


def _batch_norm_paddle(p):
    mean, variance = p.zeros([64]), p.ones([64])
    return lambda x, w, b: p.nn.functional.batch_norm(x, mean, variance, w, b, training=True)


def _batch_norm_torch(t):
    mean, variance = t.zeros(64), t.ones(64)
    return lambda x, w, b: t.nn.functional.batch_norm(x, mean, variance, w, b, training=True)


def _sum(axis: int | None) -> list[Case]:
    return _pair(
        f"sum of 64 x 512 x 512, {'all axes' if axis is None else f'axis {axis}'}",
        lambda: [random_array(64, 512, 512)],
        lambda p: lambda x: p.sum(x, axis=axis),
        lambda t: lambda x: t.sum(x) if axis is None else t.sum(x, dim=axis),
    )


CASES = (
    *_pair(
        "softmax 1024 x 1024",
        lambda: [random_array(1024, 1024)],
        lambda p: lambda x: p.nn.functional.softmax(x, axis=-1),
        lambda t: lambda x: t.nn.functional.softmax(x, dim=-1),
    ),
    *_pair(
        "layer_norm 1024 x 1024",
        lambda: [random_array(1024, 1024), random_array(1024, seed=1), random_array(1024, seed=2)],
        lambda p: lambda x, w, b: p.nn.functional.layer_norm(x, [1024], w, b),
        lambda t: lambda x, w, b: t.nn.functional.layer_norm(x, (1024,), w, b),
    ),
    *_pair(
        "batch_norm training 32 x 64 x 56 x 56",
        lambda: [random_array(32, 64, 56, 56), random_array(64, seed=1), random_array(64, seed=2)],
        _batch_norm_paddle,
        _batch_norm_torch,
    ),
    *_pair(
        "cross entropy 512 x 1000",
        lambda: [random_array(512, 1000), _indices(512, 1000)],
        lambda p: lambda x, label: p.nn.functional.cross_entropy(x, label),
        lambda t: lambda x, label: t.nn.functional.cross_entropy(x, label),
    ),
    *(case for axis in (None, 0, 1, 2) for case in _sum(axis)),
    *_pair(
        "transpose 2048 x 2048, copied",
        lambda: [random_array(2048, 2048)],
        lambda p: lambda x: p.transpose(x, [1, 0]).contiguous(),
        lambda t: lambda x: t.permute(x, (1, 0)).contiguous(),
    ),
    *_pair(
        "transpose 32 x 64 x 56 x 56 to channels last, copied",
        lambda: [random_array(32, 64, 56, 56)],
        lambda p: lambda x: p.transpose(x, [0, 2, 3, 1]).contiguous(),
        lambda t: lambda x: t.permute(x, (0, 2, 3, 1)).contiguous(),
    ),
    *_pair(
        "concat of two 2048 x 512, axis 1",
        lambda: [random_array(2048, 512), random_array(2048, 512, seed=1)],
        lambda p: lambda x, y: p.concat([x, y], axis=1),
        lambda t: lambda x, y: t.cat([x, y], dim=1),
    ),
    *_pair(
        "gather 8192 rows of 65536 x 64",
        lambda: [random_array(65536, 64), _indices(8192, 65536)],
        lambda p: lambda x, index: p.gather(x, index, axis=0),
        lambda t: lambda x, index: t.index_select(x, 0, index),
    ),
    *_pair(
        "index_add 8192 rows into 65536 x 64",
        lambda: [random_array(65536, 64), _indices(8192, 65536), random_array(8192, 64, seed=1)],
        lambda p: lambda x, index, value: p.index_add(x, index, 0, value),
        lambda t: lambda x, index, value: t.index_add(x, 0, index, value),
    ),
)
