"""``.pdiparams`` files: tensors one after another, without names, in the sorted order of the names that the model gives them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import BinaryIO

import numpy as np

from ...base.errors import ArgumentError
from .. import dense_tensor
from ..arrays import bits, from_bits
from .model import Variable, damaged


def read_parameters(file: BinaryIO, names: Iterable[str], what: str = "the parameter file") -> dict[str, np.ndarray]:
    """The arrays of a parameter file, by name; bfloat16 as ``ml_dtypes``'s.

    Args:
        file: open for reading bytes, at its beginning.
        names: of all variables that it holds, in any order.
        what: names the file in errors.

    Raises:
        ModelFileError: the bytes are damaged, or hold more or fewer tensors than there are names.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    arrays: dict[str, np.ndarray] = {}
    wanted = sorted(names)
    for name in wanted:
        if file.tell() == size:
            raise damaged(
                what, f"it holds {len(arrays)} tensors and the model names {len(wanted)}; {name} is the first that is missing"
            )
        try:
            arrays[name] = from_bits(dense_tensor.read(file))
        except ArgumentError as error:
            raise damaged(what, f"at {name}: {str(error).splitlines()[0]}") from error
    left = size - file.tell()
    if left:
        raise damaged(what, f"{left} bytes follow after the {len(wanted)} tensors that the model names")
    return arrays


def write_parameters(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a parameter file that holds the arrays."""
    file = io.BytesIO()
    for name in sorted(arrays):
        dense_tensor.write(bits(arrays[name]), file)
    return file.getvalue()


def check_shapes(arrays: Mapping[str, np.ndarray], variables: Mapping[str, Variable], what: str) -> None:
    """Raise ModelFileError where an array is not what the model declares: the file belongs to another model."""
    wrong = [
        f"{name} is {array.dtype.name}{list(array.shape)}, the model says {variables[name].dtype}{list(variables[name].shape)}"
        for name, array in arrays.items()
        if variables[name].kind == "tensor" and not _fits(array, variables[name])
    ]
    if wrong:
        raise damaged(what, "; ".join(wrong[:8]) + (f"; and {len(wrong) - 8} more" if len(wrong) > 8 else ""))


def _fits(array: np.ndarray, variable: Variable) -> bool:
    sizes = variable.shape
    return (
        array.dtype.name == variable.dtype
        and len(array.shape) == len(sizes)
        and all(n in (-1, m) for n, m in zip(sizes, array.shape, strict=True))
    )
