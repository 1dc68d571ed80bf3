"""Calls of native primitives with operands and attributes that no compiler would pass."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from children import ALLOWED, Report, faults_of

from sampan import _rt

DTYPES = list(_rt.dtypes)


@dataclass(frozen=True)
class Operand:
    """Memory of some elements and a layout over it, which starts at the memory's middle when a stride is negative."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    low: int = 0  # values lie in [low, high)
    high: int = 5

    def layout(self) -> Any:
        return _rt.Layout(self.dtype, self.shape, self.strides)

    def tensor(self, rng: np.random.Generator) -> Any:
        layout = self.layout()
        reach = [(size - 1) * stride for size, stride in zip(layout.shape, layout.strides, strict=True)] if layout.numel else []
        below, above = -sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        values = rng.integers(self.low, self.high, below + above + 1)
        memory = _rt.copy(_rt.from_numpy(np.asarray(values, np.int64)), self.dtype)
        if self.dtype.startswith("float") and rng.random() < 0.2:
            _rt.fill(memory, float(rng.choice([float("nan"), float("inf"), -float("inf"), 1e30])))
        return _rt.as_view(memory, list(layout.shape), list(layout.strides), below)


@dataclass(frozen=True)
class Call:
    """A native's name, operands and attributes."""

    name: str
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    attributes: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        def shown(operands: tuple[Operand, ...]) -> str:
            return ", ".join(
                f"{o.dtype}{list(o.shape)}{list(o.strides) if o.strides else ''}<{o.low}..{o.high}>" for o in operands
            )

        return f"{self.name}({shown(self.inputs)} -> {shown(self.outputs)}, {self.attributes})"


def f(*shape: int, dtype: str = "float32") -> Operand:
    return Operand(dtype, shape, None, -3, 4)


def i(*shape: int, low: int = 0, high: int = 3, dtype: str = "int64") -> Operand:
    return Operand(dtype, shape, None, low, high)


#: Calls that are right, of every native.
RIGHT = [
    Call("matmul", (f(3, 4), f(4, 5)), (f(3, 5),)),
    Call("matmul", (f(2, 3, 4), f(4, 5), f(5), f(2, 3, 5)), (f(2, 3, 5),), {"has_bias": 1, "epilogue": "relu;add"}),
    Call("matmul", (f(3, 4, dtype="int32"), f(4, 5, dtype="int32")), (f(3, 5, dtype="int32"),)),
    Call("matmul", (f(3, 4, dtype="bfloat16"), f(4, 5, dtype="bfloat16")), (f(3, 5),), {"accumulate": 1}),
    Call("matmul", (f(64, 64), f(64, 64)), (f(64, 64),), {"epilogue": "relu"}),
    Call("matmul_packed_size", (f(64, 64),), (i(1),), {"a_shape": [64, 64]}),
    Call("matmul_pack_weights", (f(64, 64),), (Operand("uint8", (16384,)),), {"a_shape": [64, 64]}),
    Call("conv_forward", (f(2, 3, 6, 6), f(4, 3, 3, 3)), (f(2, 4, 4, 4),), {"strides": [1, 1]}),
    Call("conv_forward", (f(1, 4, 9), f(6, 2, 3), f(6)), (f(1, 6, 5),), {"groups": 2, "dilations": [2], "has_bias": 1, "epilogue": "relu"}),
    Call("conv_forward", (f(1, 2, 5, 5, dtype="float64"), f(3, 2, 3, 3, dtype="float64")), (f(1, 3, 5, 5, dtype="float64"),),
         {"padding_low": [1, 1], "padding_high": [1, 1]}),
    Call("conv_backward_data", (f(2, 4, 4, 4), f(4, 3, 3, 3)), (f(2, 3, 6, 6),)),
    Call("conv_backward_weights", (f(2, 3, 6, 6), f(2, 4, 4, 4)), (f(4, 3, 3, 3), f(4)), {"has_bias": 1}),
    Call("conv_packed_size", (f(16, 16, 3, 3),), (i(1),),
         {"x_shape": [1, 16, 8, 8], "x_strides": [1024, 64, 8, 1], "out_shape": [1, 16, 6, 6], "out_strides": [576, 36, 6, 1], "direction": "forward"}),
    Call("conv_pack_weights", (f(16, 16, 3, 3),), (Operand("uint8", (9216,)),),
         {"x_shape": [1, 16, 8, 8], "x_strides": [1024, 64, 8, 1], "out_shape": [1, 16, 6, 6], "out_strides": [576, 36, 6, 1], "direction": "forward"}),
    Call("pool_forward", (f(2, 3, 6, 6),), (f(2, 3, 3, 3),), {"kernel": [2, 2]}),
    Call("pool_forward", (f(2, 3, 7),), (f(2, 3, 3), i(2, 3, 3)), {"kernel": [3], "strides": [2], "with_indices": 1}),
    Call("pool_forward", (f(1, 2, 4, 4),), (f(1, 2, 4, 4),),
         {"kind": "avg", "kernel": [3, 3], "strides": [1, 1], "padding_low": [1, 1], "padding_high": [1, 1], "count_include_pad": 0}),
    Call("pool_backward", (f(2, 3, 3, 3), i(2, 3, 3, 3, high=36)), (f(2, 3, 6, 6),), {"kernel": [2, 2]}),
    Call("pool_backward", (f(2, 3, 3, 3),), (f(2, 3, 6, 6),), {"kind": "avg", "kernel": [2, 2]}),
    Call("adaptive_pool_forward", (f(2, 3, 7, 5),), (f(2, 3, 3, 2), i(2, 3, 3, 2)), {"kind": "max", "with_indices": 1}),
    Call("adaptive_pool_backward", (f(2, 3, 3, 2),), (f(2, 3, 7, 5),), {"kind": "avg"}),
    Call("sort", (f(3, 5),), (f(3, 5), i(3, 5)), {"with_values": 1, "with_indices": 1, "axis": 0}),
    Call("topk", (f(3, 5),), (f(3, 2), i(3, 2)), {"k": 2}),
    Call("scan", (f(3, 5),), (f(3, 5),), {"kind": "sum"}),
    Call("scan", (f(3, 5),), (f(3, 5), i(3, 5)), {"kind": "max", "axis": 0}),
    Call("searchsorted", (f(6), f(2, 3)), (i(2, 3),)),
    Call("unique", (f(6),), (i(6), i(6), i(6), i(1))),
    Call("unique", (f(6, 2),), (i(6), i(6), i(6), i(1)), {"consecutive": 1}),
    Call("nonzero_count", (f(3, 4),), (i(1),)),
    Call("nonzero_fill", (Operand("bool", (3, 4), None, 1, 2),), (i(12, 2),)),
    Call("masked_select", (f(3, 4), Operand("bool", (3, 4), None, 1, 2)), (f(12),)),
    Call("masked_scatter", (f(3, 4), Operand("bool", (3, 4), None, 0, 2), f(12)), (f(3, 4),)),
    Call("bincount", (i(7),), (i(4),)),
    Call("bincount", (i(7), f(7)), (f(4),), {"has_weights": 1}),
    Call("gather", (f(3, 4), i(2, 2)), (f(2, 2, 4),)),
    Call("gather_elements", (f(3, 4), i(2, 4)), (f(2, 4),)),
    Call("gather_nd", (f(3, 4), i(5, 2)), (f(5),)),
    Call("scatter", (f(3, 4), i(2), f(2, 4)), (f(3, 4),), {"mode": "add"}),
    Call("scatter", (i(2), f(2, 4)), (f(3, 4),), {"mode": "add", "has_x": 0}),
    Call("scatter_elements", (f(3, 4), i(2, 4), f(2, 4)), (f(3, 4),), {"mode": "max", "include_self": 0}),
    Call("scatter_nd", (f(3, 4), i(5, 2), f(5)), (f(3, 4),), {"mode": "mul"}),
    Call("check_index", (i(5),), (i(5),), {"size": 4}),
    Call("copy", (f(3, 4),), (f(3, 4),)),
    Call("fill", (), (f(3, 4),), {"value": 1.5}),
]  # fmt: skip

NUMBERS = [0, 1, -1, 2, 3, 7, 127, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
STRINGS = [
    "",
    "max",
    "avg",
    "sum",
    "relu",
    "add",
    "add;add",
    "linear:1:2",
    "linear:nan:1",
    "x" * 3000,
    ";;;",
    "linear:1",
    "linear:1e999:0",
]
SIZES = [0, 1, 2, 3, 17, 2**20, 2**31, 2**40, 2**61]


def hostile_attribute(rng: random.Random, old: Any) -> Any:
    """A value in place of an attribute's, mostly of its type."""
    if isinstance(old, list) and rng.random() < 0.8:
        new = [rng.choice(NUMBERS) if rng.random() < 0.5 else v for v in old]
        return new if rng.random() < 0.8 else new[: rng.randint(0, len(new))] + [1] * rng.randint(0, 3)
    if isinstance(old, str) and rng.random() < 0.8:
        return rng.choice(STRINGS)
    if rng.random() < 0.7:
        return rng.choice(NUMBERS)
    return rng.choice([1.5, float("nan"), float("inf"), "a", [], [1], [2**63 - 1] * 4, [0] * 20])


def hostile_operand(rng: random.Random, old: Operand) -> Operand:
    """An operand with another dtype, shape, strides or range of values."""
    shape, strides = list(old.shape), old.strides
    kind = rng.randrange(8)
    if kind == 0:
        return replace(old, dtype=rng.choice(DTYPES))
    if kind == 1 and shape:
        shape[rng.randrange(len(shape))] = rng.choice(SIZES[:6])
        return replace(old, shape=tuple(shape), strides=None)
    if kind == 2:
        where = rng.randint(0, len(shape))
        shape[where : where + rng.randint(0, 1)] = [rng.choice([0, 1, 2])]
        return replace(old, shape=tuple(shape), strides=None)
    if kind == 3:  # huge, in little memory
        shape = [rng.choice(SIZES) if rng.random() < 0.5 else n for n in shape]
        return replace(old, shape=tuple(shape), strides=tuple(0 for _ in shape))
    if kind in (4, 5) and shape:
        strides = tuple(rng.choice([-5, -2, -1, 0, 1, 2, 3, 7, 40]) for _ in shape)
        return replace(old, strides=strides)
    low, high = rng.choice(
        [(-1, 0), (-9, 9), (5, 6), (2**31, 2**31 + 2), (-(2**63), -(2**63) + 2), (2**63 - 3, 2**63 - 1), (0, 1)]
    )
    return replace(old, low=low, high=high)


def hostile(rng: random.Random, call: Call) -> Call:
    """The call with one to three things changed."""
    inputs, outputs, attributes = list(call.inputs), list(call.outputs), dict(call.attributes)
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        if kind < 0.35 and attributes:
            name = rng.choice(list(attributes))
            attributes[name] = hostile_attribute(rng, attributes[name])
        elif kind < 0.45:
            attributes[rng.choice(MORE_ATTRIBUTES)] = rng.choice([*NUMBERS, *STRINGS, [1], [0, 0], [2**62, 2**62]])
        elif kind < 0.75 and inputs:
            k = rng.randrange(len(inputs))
            inputs[k] = hostile_operand(rng, inputs[k])
        elif kind < 0.93 and outputs:
            k = rng.randrange(len(outputs))
            outputs[k] = hostile_operand(rng, outputs[k])
        elif inputs and rng.random() < 0.5:
            del inputs[rng.randrange(len(inputs))]
        else:
            inputs.append(rng.choice([f(2), f(3, 5), i(1), f(0)]))
    return Call(call.name, tuple(inputs), tuple(outputs), attributes)


MORE_ATTRIBUTES = [
    "axis", "mode", "has_x", "allow_negative", "groups", "strides", "dilations", "padding_low", "padding_high", "kernel", "kind", "with_indices",
    "packed", "b_shape", "weight_shape", "epilogue", "accumulate", "has_bias", "k", "reverse", "exclusive", "right", "divisor_override", "unknown",
]  # fmt: skip

#: A plan over more elements is built and not run: an honest one takes as long.
RUNNABLE = 1 << 22


def make(call: Call, seed: int) -> None:
    """Build the call's Plan, and run it where that takes no time."""
    layouts = [o.layout() for o in call.inputs]
    outs = [o.layout() for o in call.outputs]
    plan = _rt.Plan.build(
        input_layouts=layouts,
        constants=[],
        slots=[(_bytes(layout), -1) for layout in outs],
        arena_bytes=0,
        instructions=[
            (
                "native",
                call.name,
                [(s, _start(o) if s >= len(layouts) else 0) for s, o in enumerate([*layouts, *outs])],
                layouts,
                outs,
                call.attributes,
            )
        ],
        outputs=[(len(layouts) + k, _start(layout), layout) for k, layout in enumerate(outs)],
    )
    if all(layout.numel <= RUNNABLE for layout in [*layouts, *outs]):
        rng = np.random.default_rng(seed)
        for made in plan.run([o.tensor(rng) for o in call.inputs]):
            _rt.copy(made)


def _start(layout: Any) -> int:
    if not layout.numel:
        return 0
    return -sum(min((n - 1) * s, 0) for n, s in zip(layout.shape, layout.strides, strict=True)) * layout.dtype.itemsize


def _bytes(layout: Any) -> int:
    if not layout.numel:
        return 0
    return (1 + sum(abs((n - 1) * s) for n, s in zip(layout.shape, layout.strides, strict=True))) * layout.dtype.itemsize


def faults(calls: list[Call], rounds: int, seed: int = 0) -> list[Any]:
    """What goes wrong in ``rounds`` changes of each call."""

    def run(name: str, call: Call, report: Report) -> None:
        rng = random.Random(f"{name}{seed}")
        for k in range(rounds):
            changed = hostile(rng, call)
            report("call", changed.text())
            try:
                make(changed, k)
            except ALLOWED:
                pass
            except BaseException as error:
                report("fault", f"{type(error).__name__}: {error}")

    return faults_of([(f"{k}{c.name}", c) for k, c in enumerate(calls)], run)


if __name__ == "__main__":
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    for fault in faults([c for c in RIGHT if wanted in c.name], int(sys.argv[1]), int(sys.argv[2])):
        print(f"{fault.call}\n    {fault.what[:2500]}")
