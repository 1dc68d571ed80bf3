"""Reductions: accumulators, how a vector joins one, how two are merged, and the tree that folds lanes into one result."""

from __future__ import annotations

import math

from sampan.codegen import mathlib_complex
from sampan.codegen.dtypes import DTYPES
from sampan.codegen.emit_memory import Register, register_type
from sampan.codegen.llvm_text import I64, Value, Writer, make_type
from sampan.codegen.mathlib_complex import Complex

State = list[Value]


class Reduction:
    """One reduce node. A state is a list of vectors of equal lane count, carried by the loops."""

    def __init__(self, writer: Writer, kind: str, dtype: str, mask_bits: int) -> None:
        self.writer, self.kind, self.dtype, self.mask_bits = writer, kind, dtype, mask_bits
        self.is_complex = DTYPES[dtype].kind == "c"
        self.is_position = kind in ("argmax", "argmin")

    def start(self, lanes: int, position: Value, along_lanes: bool = True) -> State:
        """The state before anything joined. position is the reduced space's first; with along_lanes, lane k is k further on."""
        writer = self.writer
        type_ = register_type(self.dtype, lanes)
        if self.kind in ("any", "all"):
            return [writer.constant(0 if self.kind == "any" else -1, make_type("i", self.mask_bits, lanes))]
        if self.is_complex:
            return [writer.constant(1.0 if self.kind == "prod" else 0.0, type_), writer.constant(0.0, type_)]
        first = writer.constant(self._identity(), type_)
        if not self.is_position:
            return [first]
        return [first, self._positions(position, lanes, along_lanes)]

    def _positions(self, position: Value, lanes: int, along_lanes: bool) -> Value:
        everywhere = position.splat(lanes)
        return everywhere + self.writer.iota(I64.with_lanes(lanes)) if along_lanes else everywhere

    def _identity(self) -> int | float:
        d = DTYPES[self.dtype]
        if self.kind in ("sum", "prod"):
            value = 1 if self.kind == "prod" else 0
            return float(value) if d.kind == "f" else value
        largest_wins = self.kind in ("max", "argmax")
        if d.kind == "f":
            return -math.inf if largest_wins else math.inf
        low, high = (0, 2**d.bits - 1) if d.kind == "u" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)
        return low if largest_wins else high

    def join(self, state: State, value: Register, mask: Value | None, position: Value, along_lanes: bool) -> State:
        """The state after a vector of values; lanes outside mask change nothing. position and along_lanes are as for start."""
        if self.kind in ("any", "all"):
            bits = value.convert("sext", state[0].type)  # type: ignore[union-attr]
            if mask is not None:
                bits = mask.where(bits, 0 if self.kind == "any" else -1)
            return [state[0] | bits if self.kind == "any" else state[0] & bits]
        if isinstance(value, Complex):
            if mask is not None:
                value = Complex(mask.where(value.re, 1.0 if self.kind == "prod" else 0.0), mask.where(value.im, 0.0))
            return self.merge(state, [value.re, value.im])
        if not self.is_position:
            if mask is not None:
                value = mask.where(value, self._identity())
            return self.merge(state, [value])
        where = self._positions(position, value.type.lanes, along_lanes)
        better = self._beats(value, state[0])
        if mask is not None:
            better = better & mask
        return [better.where(value, state[0]), better.where(where, state[1])]

    def _beats(self, a: Value, b: Value) -> Value:
        """Whether a wins over b that came earlier: it is beyond b, or NaN where b is not."""
        relation = "gt" if self.kind == "argmax" else "lt"
        if a.type.kind != "f":
            return a.compare(relation, b)
        return a.compare("u" + relation, b) & b.compare("ord", b)

    def merge(self, a: State, b: State) -> State:
        """Two states joined; the order of arguments matters only to rounding."""
        if self.is_complex:
            operation = mathlib_complex.add if self.kind == "sum" else mathlib_complex.mul
            joined = operation(Complex(a[0], a[1]), Complex(b[0], b[1]))
            return [joined.re, joined.im]
        x, y = a[0], b[0]
        if self.is_position:
            ties = x.equals(y) if x.type.kind != "f" else x.equals(y) | (x.is_nan() & y.is_nan())
            take = self._beats(y, x) | (ties & (b[1] < a[1]))
            return [take.where(y, x), take.where(b[1], a[1])]
        if self.kind == "sum":
            with self.writer.exact():  # what is added may be a product here, and come from memory elsewhere
                return [x + y]
        if self.kind == "prod":
            return [x * y]
        if self.kind in ("any", "all"):
            return [x | y if self.kind == "any" else x & y]
        extreme = x.compare("gt" if self.kind == "max" else "lt", y).where(x, y)
        return [x.is_nan().where(x, extreme) if x.type.kind == "f" else extreme]

    def result(self, state: State) -> Register:
        """The reduce node's value, lane for lane."""
        if self.is_complex:
            return Complex(state[0], state[1])
        if self.kind in ("any", "all"):
            return state[0].compare("ne", 0)
        return state[1] if self.is_position else state[0]

    def fold(self, state: State) -> Register:
        """The reduce node's value over all lanes: halves are merged until one lane is left."""
        lanes = state[0].type.lanes
        while lanes > 1:
            lanes //= 2
            low = [self.writer.shuffle(s, s, list(range(lanes))) for s in state]
            high = [self.writer.shuffle(s, s, list(range(lanes, 2 * lanes))) for s in state]
            state = self.merge(low, high)
        return self.result([s.lane(0) for s in state])
