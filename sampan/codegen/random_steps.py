"""random_bits as integer steps: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

A counter names word ``counter % 4`` of block ``counter // 4``, as the primitive's NumPy meaning has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = 0xFFFFFFFF
_ROUNDS = 10

AddStep = Callable[[str, str, tuple[int, ...], Any], int]


class _Words:
    """Arithmetic on unsigned 64-bit steps."""

    def __init__(self, add_step: AddStep) -> None:
        self._add_step = add_step

    def number(self, value: int, dtype: str = "uint64") -> int:
        return self._add_step("const", dtype, (), value)

    def map(self, name: str, a: int, b: int, dtype: str = "uint64") -> int:
        return self._add_step("map", dtype, (a, b), name)

    def cast(self, a: int, dtype: str) -> int:
        return self._add_step("cast", dtype, (a,), "")

    def low(self, a: int) -> int:
        return self.map("bitwise_and", a, self.number(_MASK))

    def high(self, a: int) -> int:
        return self.map("shift_right", a, self.number(32))

    def xor(self, a: int, b: int) -> int:
        return self.map("bitwise_xor", a, b)


def random_steps(add_step: AddStep, key: int, counter: int) -> int:
    """The step that gives the counter's 32 random bits as an int64, from int64 steps."""
    w = _Words(add_step)
    counter, key = w.cast(counter, "uint64"), w.cast(key, "uint64")
    block = w.map("shift_right", counter, w.number(2))
    words = [w.low(block), w.high(block), w.number(0), w.number(0)]
    keys = [w.low(key), w.high(key)]
    for _ in range(_ROUNDS):
        first, second = (w.map("mul", words[2 * k], w.number(_MULTIPLIERS[k])) for k in range(2))
        words = [
            w.xor(w.xor(w.high(second), words[1]), keys[0]),
            w.low(second),
            w.xor(w.xor(w.high(first), words[3]), keys[1]),
            w.low(first),
        ]
        keys = [w.low(w.map("add", k, w.number(step))) for k, step in zip(keys, _WEYL, strict=True)]
    which = w.map("bitwise_and", counter, w.number(3))
    chosen = words[3]
    for k in (2, 1, 0):
        is_this = w.map("eq", which, w.number(k), "bool")
        chosen = add_step("select", "uint64", (is_this, words[k], chosen), "")
    return w.cast(chosen, "int64")
