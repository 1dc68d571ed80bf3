"""Which statements of a Program compute in 16 bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tensor.autocast import Precision
from .lists import precision_of


class AutoMixedPrecisionLists:
    """The operators that compute in 16 bits and in float32: those of ``amp.auto_cast``, with further names.

    Args:
        custom_white_list: names of further operators that compute in ``dtype``.
        custom_black_list: names of further operators that compute in float32.
        custom_black_varnames: statements that take or make a Variable of these names compute in float32.
        dtype: float16 or bfloat16.

    Raises:
        ArgumentError: a name in both lists, or an unknown dtype.

    Example:
        >>> import sampan as paddle
        >>> lists = paddle.static.amp.CustomOpLists(custom_white_list=["exp"])
        >>> "exp" in lists.white_list, "exp" in lists.black_list
        (True, False)
    """

    def __init__(
        self,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        custom_black_varnames: Iterable[str] | None = None,
        dtype: Any = "float16",
    ) -> None:
        self._custom = tuple(custom_white_list or ()), tuple(custom_black_list or ())
        found = self.precision("O1", dtype)
        self.amp_dtype = found.dtype
        self.white_list, self.black_list = set(found.white), set(found.black)
        self.black_varnames = None if custom_black_varnames is None else list(custom_black_varnames)

    def precision(self, level: str, dtype: Any, what: str | None = None) -> Precision:
        """What statements compute under at this level; ``what`` asks, in messages."""
        return precision_of(what or type(self).__name__, level, dtype, *self._custom)


CustomOpLists = AutoMixedPrecisionLists


class AutoMixedPrecisionListsBF16(AutoMixedPrecisionLists):
    """The operators that compute in bfloat16 and in float32: those of ``amp.auto_cast``, with further names.

    Args:
        custom_bf16_list: names of further operators that compute in bfloat16.
        custom_fp32_list: names of further operators that compute in float32.
        custom_fp32_varnames: statements that take or make a Variable of these names compute in float32.

    Raises:
        ArgumentError: a name in both lists.
    """

    def __init__(
        self,
        custom_bf16_list: Iterable[str] | None = None,
        custom_fp32_list: Iterable[str] | None = None,
        custom_fp32_varnames: Iterable[str] | None = None,
    ) -> None:
        super().__init__(custom_bf16_list, custom_fp32_list, custom_fp32_varnames, "bfloat16")
        self.bf16_list, self.fp32_list, self.fp32_varnames = self.white_list, self.black_list, self.black_varnames
