"""The table of scalar primitives: each name has one emission for each kind of dtype, with its result dtype and its cost."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from sampan.codegen.dtypes import DTYPES, KernelError

Emission = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class ScalarOp:
    """result is 'same' (the first argument's dtype), 'component' (a complex dtype's float), 'complex' (the reverse), or a dtype.

    cost counts vector instructions for float32, roughly; emit takes and returns llvm_text Values (Complex for complex dtypes).
    dtypes lists the only dtypes allowed, where the kind alone does not say it. usual, where there is one, is a pair: which lanes
    hold the arguments that almost all are, and a shorter emission that gives those lanes the bits that emit gives.
    """

    name: str
    arity: int
    result: str
    cost: float
    emit: Emission
    dtypes: tuple[str, ...] = ()
    usual: tuple[Emission, Emission] | None = None


OPS: dict[str, dict[str, ScalarOp]] = {}


def scalar_op(
    name: str,
    kinds: str,
    arity: int = 1,
    result: str = "same",
    cost: float = 1,
    dtypes: tuple[str, ...] = (),
    usual: tuple[Emission, Emission] | None = None,
) -> Callable[[Emission], Emission]:
    """Registers a function as the emission of a primitive for the given dtype kinds (letters of 'biufc')."""

    def register(emit: Emission) -> Emission:
        for kind in kinds:
            if kind in OPS.setdefault(name, {}):
                raise KernelError(f"primitive {name} is defined twice for kind {kind!r}.")
            OPS[name][kind] = ScalarOp(name, arity, result, cost, emit, dtypes, usual)
        return emit

    return register


def find_op(name: str, dtypes: list[str]) -> ScalarOp:
    """The primitive's entry for these argument dtypes; KernelError when there is none."""
    if name not in OPS:
        raise KernelError(f"map {name}: no such primitive; the list is sampan.codegen.mathlib.OPS.")
    by_kind = OPS[name]
    op = by_kind.get(DTYPES[dtypes[0]].kind) if dtypes else None
    if op is None:
        raise KernelError(f"map {name} is not defined for {dtypes}; it takes dtypes of kind {', '.join(sorted(by_kind))}.")
    if len(dtypes) != op.arity or any(d != dtypes[0] for d in dtypes):
        raise KernelError(f"map {name} takes {op.arity} arguments of one dtype, got {dtypes}; cast them first.")
    if op.dtypes and dtypes[0] not in op.dtypes:
        raise KernelError(f"map {name} is defined for {', '.join(op.dtypes)}, got {dtypes[0]}.")
    return op


def result_dtype(name: str, dtypes: list[str]) -> str:
    """The dtype that a primitive gives for arguments of these dtypes."""
    op = find_op(name, dtypes)
    if op.result == "same":
        return dtypes[0]
    if op.result == "component":
        return {"complex64": "float32", "complex128": "float64"}[dtypes[0]]
    if op.result == "complex":
        return {"float32": "complex64", "float64": "complex128"}[dtypes[0]]
    return op.result
