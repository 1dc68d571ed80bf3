"""InputSpec: what a tensor argument looks like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, ArgumentTypeError, message
from ..tensor.functions import dtype_name, dtype_named


class InputSpec:
    """The shape, dtype and name of a tensor argument.

    Args:
        shape: its sizes, None or -1 for those that differ from call to call.
        dtype: of its elements.
        name: of its Variable.
        stop_gradient: no gradient flows to it.

    Example:
        >>> import sampan as paddle
        >>> paddle.static.InputSpec([None, 784], "float32", "x")
        InputSpec(shape=(-1, 784), dtype=paddle.float32, name=x, stop_gradient=False)
    """

    def __init__(
        self, shape: Sequence[int | None], dtype: Any = "float32", name: str | None = None, stop_gradient: bool = False
    ) -> None:
        self.shape = _sizes(shape)
        self.dtype = dtype_named(dtype_name("InputSpec", dtype))
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(message(f"InputSpec(): name={name!r}", "it must be a string"))
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> InputSpec:
        """The spec of tensors like this one."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name or None)

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray, name: str | None = None) -> InputSpec:
        """The spec of tensors like this array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int | Sequence[int]) -> InputSpec:
        """Put a size before the others; gives the spec itself."""
        if isinstance(batch_size, (list, tuple)):
            if len(batch_size) != 1:
                raise ArgumentError(message(f"InputSpec.batch(): batch_size={batch_size}", "it must be one size"))
            batch_size = batch_size[0]
        if isinstance(batch_size, bool) or not isinstance(batch_size, int):
            raise ArgumentTypeError(message(f"InputSpec.batch(): batch_size={batch_size!r}", "it must be an integer"))
        self.shape = (*_sizes([batch_size]), *self.shape)
        return self

    def unbatch(self) -> InputSpec:
        """Take the first size away; gives the spec itself."""
        if not self.shape:
            raise ArgumentError(message("InputSpec.unbatch(): the shape is ()", "there is no size to take away"))
        self.shape = self.shape[1:]
        return self

    def __repr__(self) -> str:
        return (
            f"InputSpec(shape={self.shape}, dtype=paddle.{self.dtype.name}, name={self.name}, stop_gradient={self.stop_gradient})"
        )

    def _key(self) -> tuple[Any, ...]:
        return self.shape, self.dtype.name, self.name, self.stop_gradient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def _sizes(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (list, tuple)):
        raise ArgumentTypeError(
            message(
                f"InputSpec(): shape is a {type(shape).__name__}", "it must be a list or tuple of sizes, None for unknown ones"
            )
        )
    found = []
    for size in shape:
        if size is not None and (isinstance(size, bool) or not isinstance(size, (int, np.integer))):
            raise ArgumentTypeError(
                message(f"InputSpec(): shape holds {size!r}", "sizes are integers, None or -1 for unknown ones")
            )
        if size is not None and size < -1:
            raise ArgumentError(
                message(f"InputSpec(): shape holds {size}", "sizes are not negative; None or -1 stands for unknown ones")
            )
        found.append(-1 if size is None else int(size))
    return tuple(found)
