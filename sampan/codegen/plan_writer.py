"""Writing a Plan: buffers, instructions and outputs in order, then the memory plan, then the runtime's own object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _rt
from ..base import dtypes
from .host import HostFunction
from .places import Buffer, Place, row_major
from .plan_arena import place_in_arena

_ALIGNMENT = 64


class PlanWriter:
    """Collects a Plan. A temporary lives in the arena from its first instruction to its last;
    a result is a fresh storage of each run.
    """

    def __init__(self, input_layouts: Sequence[Any]) -> None:
        self.input_layouts = list(input_layouts)
        self.inputs = [Buffer("input", k) for k in range(len(self.input_layouts))]
        self._constants: list[Any] = []
        self._buffers: list[Buffer] = []
        self._instructions: list[tuple[Any, ...]] = []
        self._operands: list[list[Place]] = []
        self._outputs: list[Place] = []
        self._labels: list[str] = []
        self._origins: list[str] = []
        #: What kernels from here on compute, for profiles.
        self.label = ""
        #: The statement that what is called from here on comes from, for errors.
        self.origin = ""

    def input_place(self, number: int) -> Place:
        """Where an input lies."""
        layout = self.input_layouts[number]
        return Place(self.inputs[number], layout.dtype.name, tuple(layout.shape), tuple(layout.strides))

    def constant(self, array: Any) -> Place:
        """An array that is part of the Plan."""
        return self.constant_tensor(_rt.from_numpy(array))

    def constant_tensor(self, tensor: Any) -> Place:
        """A tensor, row-major, that is part of the Plan."""
        shape = tuple(tensor.layout.shape)
        self._constants.append(tensor)
        return Place(Buffer("constant", len(self._constants) - 1), tensor.dtype.name, shape, row_major(shape))

    def allocate(self, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Place:
        """A buffer without gaps for a value; row-major unless strides say otherwise."""
        size = dtypes.itemsize(dtype)
        for n in shape:
            size *= n
        buffer = Buffer("temporary", len(self._buffers), size)
        self._buffers.append(buffer)
        return Place(buffer, dtype, shape, row_major(shape) if strides is None else strides)

    def kernel(
        self, address: int, operands: list[Place], params: list[int], parallel_size: int, cost_ns: float, scratch_bytes: int
    ) -> None:
        """Run a compiled kernel; operands' own strides do not matter, params hold them."""
        self._add(("kernel", address), operands, (params, parallel_size, cost_ns, scratch_bytes))

    def native(self, name: str, inputs: Sequence[Place], outputs: Sequence[Place], attributes: Mapping[str, Any]) -> None:
        """Run a native primitive."""
        self._add(
            ("native", name), [*inputs, *outputs], ([_layout(p) for p in inputs], [_layout(p) for p in outputs], dict(attributes))
        )

    def host(self, function: HostFunction, inputs: Sequence[Place], outputs: Sequence[Place]) -> None:
        """Call a Python function with the inputs and outputs as tensors."""
        operands = [*inputs, *outputs]
        self._add(("host", function), operands, ([_layout(p) for p in operands], len(inputs)))

    def output(self, place: Place) -> None:
        """The next output of the Plan; a temporary's buffer becomes a result's."""
        if place.buffer.kind == "temporary":
            place.buffer.kind = "result"
        self._outputs.append(place)

    def finish(self, should_describe: bool = False) -> Any:
        """The runtime's Plan; with a text that says what it does, when asked to."""
        spans: dict[int, list[int]] = {}
        for at, operands in enumerate(self._operands):
            for p in operands:
                if p.buffer.kind == "temporary":
                    spans.setdefault(p.buffer.number, [at, at])[1] = at
        sizes = {number: -(-max(self._buffers[number].size_bytes, 1) // _ALIGNMENT) * _ALIGNMENT for number in spans}
        offsets, arena_bytes = place_in_arena({number: (first, last, sizes[number]) for number, (first, last) in spans.items()})
        slots = [(b.size_bytes, offsets.get(b.number, -1 if b.kind == "result" else 0)) for b in self._buffers]
        instructions = [
            (*head, [self._operand(p) for p in operands], *rest)
            for (head, rest), operands in zip(self._instructions, self._operands, strict=True)
        ]
        outputs = [(*self._operand(p), _layout(p)) for p in self._outputs]
        return _rt.Plan.build(
            self.input_layouts,
            self._constants,
            slots,
            arena_bytes,
            instructions,
            outputs,
            self._text(offsets) if should_describe else "",
            self._labels,
            self._origins if any(self._origins) else [],
        )

    def _text(self, offsets: Mapping[int, int]) -> str:
        lines = []
        for (head, rest), operands in zip(self._instructions, self._operands, strict=True):
            name = head[1] if head[0] == "native" else getattr(head[1], "__name__", "")
            more = f" params {rest[0]} x {rest[1]}" if head[0] == "kernel" else f" {rest[2]}" if head[0] == "native" else ""
            lines.append(f"{head[0]} {name}({', '.join(self._described(p, offsets) for p in operands)}){more}".replace(" (", "("))
        lines.append(f"return {', '.join(self._described(p, offsets) for p in self._outputs)}")
        return "\n".join(lines) + "\n"

    @staticmethod
    def _described(place: Place, offsets: Mapping[int, int]) -> str:
        where = f"@{offsets[place.buffer.number]}" if place.buffer.kind == "temporary" and place.buffer.number in offsets else ""
        start = f"+{place.offset}" if place.offset else ""
        return (
            f"{place.buffer.kind}{place.buffer.number}{where}{start}: {place.dtype}{list(place.shape)} by {list(place.strides)}"
        )

    def _add(self, head: tuple[Any, ...], operands: list[Place], rest: tuple[Any, ...]) -> None:
        self._instructions.append((head, rest))
        self._operands.append(operands)
        name = head[1] if head[0] == "native" else getattr(head[1], "__name__", "") if head[0] == "host" else self.label
        self._labels.append(f"{head[0]} {name}")
        self._origins.append("" if head[0] == "kernel" else self.origin)  # kernels check nothing

    def _operand(self, place: Place) -> tuple[int, int]:
        buffer = place.buffer
        base = {"input": 0, "constant": len(self.inputs)}.get(buffer.kind, len(self.inputs) + len(self._constants))
        return base + buffer.number, place.offset * dtypes.itemsize(place.dtype)


def _layout(place: Place) -> Any:
    return _rt.Layout(place.dtype, place.shape, place.strides)
