"""``paddle.sparse``: tensors that keep some of their elements, by coordinates (COO) or by rows (CSR)."""

from __future__ import annotations

import importlib
from typing import Any

from ..tensor.sparse_functions import FUNCTIONS
from ..tensor.sparse_tensor import SparseTensor, sparse_coo_tensor, sparse_csr_tensor

globals().update(FUNCTIONS)
for _function in FUNCTIONS.values():
    _function.__module__ = __name__  # by which it pickles
__all__ = ["SparseTensor", *sorted(FUNCTIONS), "sparse_coo_tensor", "sparse_csr_tensor"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name == "nn":
        return importlib.import_module(f"{__name__}.nn")
    raise AttributeError(f"module 'sampan.sparse' has no attribute {name!r}")
