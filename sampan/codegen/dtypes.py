"""The element types of the loop IR and how each is held in registers and in memory."""

from __future__ import annotations

import dataclasses


class KernelError(ValueError):
    """A kernel breaks a rule of the loop IR."""


@dataclasses.dataclass(frozen=True)
class DType:
    """kind is b(ool), i(nt), u(nsigned), f(loat) or c(omplex); bits are an element's in memory, compute_bits in a register."""

    name: str
    kind: str
    bits: int
    compute_bits: int

    @property
    def size_bytes(self) -> int:
        return self.bits // 8


DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        DType("bool", "b", 8, 8),
        *(DType(f"int{b}", "i", b, b) for b in (8, 16, 32, 64)),
        *(DType(f"uint{b}", "u", b, b) for b in (8, 16, 32, 64)),
        DType("float16", "f", 16, 32),
        DType("bfloat16", "f", 16, 32),
        DType("float32", "f", 32, 32),
        DType("float64", "f", 64, 64),
        DType("complex64", "c", 64, 32),
        DType("complex128", "c", 128, 64),
    )
}
