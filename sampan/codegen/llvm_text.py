"""LLVM IR written as text: typed values with operators, and a writer that appends instructions to the current block.

Text with opaque pointers is several times quicker to produce than llvmlite's instruction objects, and a kernel's text is short.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import struct
from collections.abc import Callable, Iterator, Sequence

from sampan.codegen.dtypes import KernelError


@dataclasses.dataclass(frozen=True)
class Type:
    """An LLVM value type: kind is f(loat), i(nt), u(nsigned), b(ool as i1) or p(ointer); lanes is 0 for a scalar."""

    kind: str
    bits: int
    lanes: int = 0

    @functools.cached_property
    def element(self) -> str:
        if self.kind == "p":
            return "ptr"
        if self.kind == "f":
            return {16: "half", 32: "float", 64: "double"}[self.bits]
        return f"i{self.bits}"

    @functools.cached_property
    def text(self) -> str:
        return f"<{self.lanes} x {self.element}>" if self.lanes else self.element

    @functools.cached_property
    def suffix(self) -> str:
        """The mangling of an intrinsic's name, such as v8f32."""
        element = f"f{self.bits}" if self.kind == "f" else f"i{self.bits}"
        return f"v{self.lanes}{element}" if self.lanes else element

    def with_lanes(self, lanes: int) -> Type:
        return self if lanes == self.lanes else make_type(self.kind, self.bits, lanes)

    def bool(self) -> Type:
        return make_type("b", 1, self.lanes)

    def signed(self) -> Type:
        """The signed integer type of the same width, for bit manipulation."""
        return make_type("i", self.bits, self.lanes)

    def unsigned(self) -> Type:
        return make_type("u", self.bits, self.lanes)


@functools.cache
def make_type(kind: str, bits: int, lanes: int = 0) -> Type:
    """The one Type with these fields."""
    return Type(kind, bits, lanes)


F32, F64 = make_type("f", 32), make_type("f", 64)
I1, I8, I32, I64, U32, U64 = (
    make_type("b", 1),
    make_type("i", 8),
    make_type("i", 32),
    make_type("i", 64),
    make_type("u", 32),
    make_type("u", 64),
)
PTR = make_type("p", 64)

Number = int | float


@functools.lru_cache(maxsize=4096)
def _constant_text(value: Number, kind: str, bits: int, lanes: int) -> str:
    type_ = make_type(kind, bits, lanes)
    if kind == "f":
        number = float(value)
        if bits == 32:
            number = _round_to_float32(number)
        scalar = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
        if math.isnan(number):
            scalar = "0x7FF8000000000000"
    elif kind == "b":
        scalar = "true" if value else "false"
    else:
        wrapped = int(value) & ((1 << bits) - 1)
        scalar = str(wrapped - (1 << bits) if wrapped >> (bits - 1) else wrapped)
    return f"splat ({type_.element} {scalar})" if lanes else scalar


def _round_to_float32(number: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


class Value:
    """An SSA value or constant; operators append instructions to its writer. Plain numbers become constants of the same type."""

    __slots__ = ("name", "type", "writer")

    def __init__(self, writer: Writer, type_: Type, name: str) -> None:
        self.writer, self.type, self.name = writer, type_, name

    def _other(self, other: Operand) -> Value:
        return other if isinstance(other, Value) else self.writer.constant(other, self.type)

    def _binary(self, float_op: str, int_op: str, a: Value, b: Value) -> Value:
        writer = self.writer
        if self.type.kind == "f":
            return writer.instruction(f"{float_op}{writer.flags} {a.type.text} {a.name}, {b.name}", a.type)
        return writer.instruction(f"{int_op} {a.type.text} {a.name}, {b.name}", a.type)

    def __add__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", self, self._other(other))

    def __radd__(self, other: Operand) -> Value:
        return self._binary("fadd", "add", self._other(other), self)

    def __sub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", self, self._other(other))

    def __rsub__(self, other: Operand) -> Value:
        return self._binary("fsub", "sub", self._other(other), self)

    def __mul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", self, self._other(other))

    def __rmul__(self, other: Operand) -> Value:
        return self._binary("fmul", "mul", self._other(other), self)

    def __truediv__(self, other: Operand) -> Value:
        return self._binary("fdiv", "udiv" if self.type.kind == "u" else "sdiv", self, self._other(other))

    def __rtruediv__(self, other: Operand) -> Value:
        return self._other(other) / self

    def __mod__(self, other: Operand) -> Value:
        """C's remainder (the sign of the dividend)."""
        return self._binary("frem", "urem" if self.type.kind == "u" else "srem", self, self._other(other))

    def __neg__(self) -> Value:
        if self.type.kind == "f":
            return self.writer.instruction(f"fneg {self.type.text} {self.name}", self.type)
        return 0 - self

    def __and__(self, other: Operand) -> Value:
        return self._binary("and", "and", self, self._other(other))

    def __or__(self, other: Operand) -> Value:
        return self._binary("or", "or", self, self._other(other))

    def __xor__(self, other: Operand) -> Value:
        return self._binary("xor", "xor", self, self._other(other))

    def __invert__(self) -> Value:
        return self ^ (1 if self.type.kind == "b" else -1)

    def __lshift__(self, other: Operand) -> Value:
        return self._binary("shl", "shl", self, self._other(other))

    def __rshift__(self, other: Operand) -> Value:
        """An arithmetic shift of a signed value, a logical shift of an unsigned one."""
        return self._binary("shr", "lshr" if self.type.kind == "u" else "ashr", self, self._other(other))

    def compare(self, relation: str, other: Operand) -> Value:
        """A boolean value; relation is eq ne lt le gt ge (ordered, except ne), or a float predicate such as ugt, uno, ord."""
        other = self._other(other)
        if self.type.kind == "f":
            predicate = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}.get(relation, relation)
            text = f"fcmp {predicate} {self.type.text} {self.name}, {other.name}"
        else:
            prefix = "" if relation in ("eq", "ne") else "s" if self.type.kind == "i" else "u"
            text = f"icmp {prefix}{relation} {self.type.text} {self.name}, {other.name}"
        return self.writer.instruction(text, self.type.bool())

    def __lt__(self, other: Operand) -> Value:
        return self.compare("lt", other)

    def __le__(self, other: Operand) -> Value:
        return self.compare("le", other)

    def __gt__(self, other: Operand) -> Value:
        return self.compare("gt", other)

    def __ge__(self, other: Operand) -> Value:
        return self.compare("ge", other)

    def equals(self, other: Operand) -> Value:
        return self.compare("eq", other)

    def is_nan(self) -> Value:
        return self.compare("uno", self)

    def where(self, yes: Operand, no: Operand) -> Value:
        """self (boolean) chooses yes or no, of which at least one is a Value."""
        if not isinstance(yes, Value):
            if not isinstance(no, Value):
                raise KernelError("where(yes, no) needs a Value for its type; make one of the numbers a constant.")
            yes = no._other(yes)
        no = yes._other(no)
        return self.writer.instruction(
            f"select {self.type.text} {self.name}, {yes.type.text} {yes.name}, {no.type.text} {no.name}", yes.type
        )

    def bits_as(self, type_: Type) -> Value:
        """The same bits seen as a type of equal size."""
        if type_.text == self.type.text:
            return Value(self.writer, type_, self.name)
        return self.writer.instruction(f"bitcast {self.type.text} {self.name} to {type_.text}", type_)

    def integer_bits(self) -> Value:
        return self.bits_as(self.type.signed())

    def convert(self, operation: str, type_: Type) -> Value:
        """One LLVM conversion instruction (trunc, zext, fptosi, ...)."""
        return self.writer.instruction(f"{operation} {self.type.text} {self.name} to {type_.text}", type_)

    def resize(self, bits: int) -> Value:
        """An integer of another width: truncated, or extended by its own signedness."""
        if bits == self.type.bits:
            return self
        type_ = make_type("u" if self.type.kind == "b" else self.type.kind, bits, self.type.lanes)
        return self.convert("trunc" if bits < self.type.bits else "sext" if self.type.kind == "i" else "zext", type_)

    def lane(self, index: int) -> Value:
        if not self.type.lanes:
            return self
        return self.writer.instruction(f"extractelement {self.type.text} {self.name}, i32 {index}", self.type.with_lanes(0))

    def splat(self, lanes: int) -> Value:
        """A vector with this scalar in every lane."""
        if self.type.lanes or not lanes:
            return self
        type_ = self.type.with_lanes(lanes)
        first = self.writer.instruction(f"insertelement {type_.text} poison, {self.type.text} {self.name}, i32 0", type_)
        return self.writer.shuffle(first, first, [0] * lanes)


Operand = Value | int | float


class Writer:
    """Builds one function: instructions go to the current block; declarations and helper functions gather for the module."""

    def __init__(
        self, features: frozenset[str], declarations: set[str] | None = None, helpers: dict[str, str] | None = None
    ) -> None:
        self.features = features
        self.declarations: set[str] = set() if declarations is None else declarations
        self.helpers: dict[str, str] = {} if helpers is None else helpers
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block = "entry"
        self.flags = " contract"
        self._count = 0

    def fresh(self, prefix: str = "v") -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def instruction(self, text: str, type_: Type) -> Value:
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return Value(self, type_, name)

    def constant(self, value: Number, type_: Type) -> Value:
        return Value(self, type_, _constant_text(value, type_.kind, type_.bits, type_.lanes))

    def vector(self, values: Sequence[Number], type_: Type) -> Value:
        """A constant vector, or the scalar itself when type_ has no lanes."""
        scalar = type_.with_lanes(0)
        texts = [f"{scalar.text} {_constant_text(v, scalar.kind, scalar.bits, 0)}" for v in values]
        return Value(self, type_, f"<{', '.join(texts)}>") if type_.lanes else self.constant(values[0], type_)

    def iota(self, type_: Type) -> Value:
        return self.vector(range(max(type_.lanes, 1)), type_)

    @contextlib.contextmanager
    def exact(self) -> Iterator[None]:
        """Float operations inside keep their own rounding: nothing is contracted into a fused multiply-add."""
        saved, self.flags = self.flags, ""
        try:
            yield
        finally:
            self.flags = saved

    def call(self, name: str, result: Type, args: Sequence[Value]) -> Value:
        types = ", ".join(a.type.text for a in args)
        if name not in self.helpers:
            self.declarations.add(f"declare {result.text} @{name}({types})")
        return self.instruction(f"call {result.text} @{name}({', '.join(f'{a.type.text} {a.name}' for a in args)})", result)

    def intrinsic(self, name: str, *args: Value) -> Value:
        """An overloaded intrinsic whose result and arguments have one type, such as sqrt or umin."""
        return self.call(f"llvm.{name}.{args[0].type.suffix}", args[0].type, args)

    def fma(self, a: Value, b: Operand, c: Operand) -> Value:
        """a * b + c, rounded once where the target can."""
        b, c = a._other(b), a._other(c)
        if "fma" in self.features:
            return self.intrinsic("fma", a, b, c)
        return a * b + c

    def polynomial(self, x: Value, coefficients: Sequence[Number], square: Value | None = None) -> Value:
        """The polynomial at x, lowest power first, as two chains in x**2: half of Horner's latency for one more instruction."""
        if len(coefficients) < 4:
            return self.horner(x, coefficients)
        square = x * x if square is None else square
        return self.fma(self.horner(square, coefficients[1::2]), x, self.horner(square, coefficients[0::2]))

    def horner(self, x: Value, coefficients: Sequence[Number]) -> Value:
        """The polynomial at x, lowest power first, as one chain."""
        value = self.constant(coefficients[-1], x.type)
        for c in reversed(coefficients[:-1]):
            value = self.fma(value, x, self._coefficient(c, x.type))
        return value

    def _coefficient(self, value: Number, type_: Type) -> Value:
        """A constant as a whole vector in memory, which is an operand of the addition. A plain one would be broadcast to a
        register first, an instruction more, as polynomials have more coefficients than there are registers.
        """
        if not type_.lanes:
            return self.constant(value, type_)
        text = _constant_text(value, type_.kind, type_.bits, type_.lanes)
        name = f"@coefficient_{type_.suffix}_{text.rpartition('0x')[2].rstrip(')')}"
        self.helpers[name] = f"{name} = internal constant {type_.text} {text}, align {type_.bits * type_.lanes // 8}"
        return self.instruction(f"load {type_.text}, ptr {name}, align {type_.bits * type_.lanes // 8}", type_)

    def shuffle(self, a: Value, b: Value, picks: Sequence[int]) -> Value:
        mask = ", ".join(f"i32 {p}" for p in picks)
        return self.instruction(
            f"shufflevector {a.type.text} {a.name}, {b.type.text} {b.name}, <{len(picks)} x i32> <{mask}>",
            a.type.with_lanes(len(picks)),
        )

    def join_lanes(self, lanes: Sequence[Value]) -> Value:
        """The vector with the given scalars as its lanes."""
        type_ = lanes[0].type.with_lanes(len(lanes))
        value = Value(self, type_, "poison")
        for k, lane in enumerate(lanes):
            value = self.instruction(f"insertelement {type_.text} {value.name}, {lane.type.text} {lane.name}, i32 {k}", type_)
        return value

    def map_lanes(self, function: Callable[..., Value], *args: Value) -> Value:
        """function applied to each lane's scalars."""
        if not args[0].type.lanes:
            return function(*args)
        return self.join_lanes([function(*(a.lane(k) for a in args)) for k in range(args[0].type.lanes)])

    # Memory. Alignment is the element's: rows of a tensor start anywhere.

    def address(self, base: Value, index: Value, element: str) -> Value:
        return self.instruction(f"getelementptr {element}, ptr {base.name}, i64 {index.name}", PTR)

    def load(self, pointer: Value, type_: Type, align: int) -> Value:
        return self.instruction(f"load {type_.text}, ptr {pointer.name}, align {align}", type_)

    def store(self, value: Value, pointer: Value, align: int) -> None:
        self.lines.append(f"  store {value.type.text} {value.name}, ptr {pointer.name}, align {align}")

    def stream(self, value: Value, pointer: Value) -> None:
        """A store of a vector past the caches; the pointer is aligned to the vector."""
        self.helpers["!0"] = "!0 = !{i32 1}"
        align = value.type.bits * value.type.lanes // 8
        self.lines.append(f"  store {value.type.text} {value.name}, ptr {pointer.name}, align {align}, !nontemporal !0")

    def prefetch(self, pointer: Value) -> None:
        """Asks for the line at an address, which need not exist, to be read into every cache."""
        self.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {pointer.name}, i32 0, i32 3, i32 1)")

    def stack(self, type_: Type) -> Value:
        """A stack slot of the function's frame."""
        name = "%" + self.fresh("slot")
        self.allocas.append(f"  {name} = alloca {type_.text}, align 64")
        return Value(self, PTR, name)

    def copy_bytes(self, target: Value, source: Value, count: Value) -> None:
        self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target.name}, ptr {source.name}, i64 {count.name}, i1 false)")

    # Control flow.

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch_if(self, condition: Value, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition.name}, label %{yes}, label %{no}")

    def phi(self, pairs: Sequence[tuple[Value, str]]) -> Value:
        type_ = pairs[0][0].type
        return self.instruction(f"phi {type_.text} {', '.join(f'[ {v.name}, %{label} ]' for v, label in pairs)}", type_)

    def choose(self, condition: Value, yes: Callable[[], list[Value]], no: Callable[[], list[Value]]) -> list[Value]:
        """The values of the branch taken; only that branch runs."""
        yes_label, no_label, end = self.fresh("yes"), self.fresh("no"), self.fresh("end")
        self.branch_if(condition, yes_label, no_label)
        self.start_block(yes_label)
        yes_values = yes()
        yes_from = self.block
        self.branch(end)
        self.start_block(no_label)
        no_values = no()
        no_from = self.block
        self.branch(end)
        self.start_block(end)
        return [self.phi([(a, yes_from), (b, no_from)]) for a, b in zip(yes_values, no_values)]

    def loop(
        self,
        start: Value,
        stop: Value,
        step: Operand,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Runs body for start, start + step, ... below stop; body takes and returns the carried values; so does the loop."""
        before, top, after = self.block, self.fresh("loop"), self.fresh("after")
        self.branch_if(start < stop, top, after)
        before_block = before
        self.start_block(top)
        patch = len(self.lines)
        names = ["%" + self.fresh() for _ in range(len(carried) + 1)]
        self.lines.extend([""] * len(names))
        inside = [Value(self, c.type, n) for c, n in zip(carried, names[1:])]
        index = Value(self, I64, names[0])
        results = list(body(index, inside))
        following = self.instruction(f"add nsw i64 {index.name}, {index._other(step).name}", I64)
        latch = self.block
        self.branch_if(following < stop, top, after)
        for k, (first, update) in enumerate(zip([start, *carried], [following, *results])):
            self.lines[patch + k] = (
                f"  {names[k]} = phi {first.type.text} [ {first.name}, %{before_block} ], [ {update.name}, %{latch} ]"
            )
        self.start_block(after)
        return [self.phi([(c, before_block), (r, latch)]) for c, r in zip(carried, results)]

    def any_lane(self, condition: Value) -> Value:
        """Whether some lane of a boolean vector is set."""
        return self._lane_bits(condition).compare("ne", 0) if condition.type.lanes else condition

    def all_lanes(self, condition: Value) -> Value:
        """Whether every lane of a boolean vector is set."""
        return self._lane_bits(condition).compare("eq", -1) if condition.type.lanes else condition

    def _lane_bits(self, condition: Value) -> Value:
        lanes = condition.type.lanes
        return self.instruction(f"bitcast {condition.type.text} {condition.name} to i{lanes}", make_type("i", lanes))

    def out_of_line(self, name: str, function: Callable[..., Value], args: Sequence[Value]) -> Value:
        """function(*args) by a call of a function of its own: for what almost never runs. One for each name and types."""
        name = f"{name}_{args[0].type.suffix}"
        if name not in self.helpers:
            inner = Writer(self.features, self.declarations, self.helpers)
            result = function(*(Value(inner, a.type, f"%a{k}") for k, a in enumerate(args)))
            head = ", ".join(f"{a.type.text} %a{k}" for k, a in enumerate(args))
            body = "\n".join(["entry:", *inner.allocas, *inner.lines, f"  ret {result.type.text} {result.name}"])
            self.helpers[name] = f"define internal {result.type.text} @{name}({head}) noinline cold nounwind {{\n{body}\n}}"
        return self.call(name, args[0].type, args)
