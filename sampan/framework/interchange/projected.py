"""A projected LSTM in PaddlePaddle's format, whose recurrent operation has no projection: step by step."""

from __future__ import annotations

from typing import Any


class ProjectedSteps:
    """Writes the steps of an LSTM whose state is projected, from handles of its operands."""

    def __init__(self, emit: Any, weight_hh: Any, weight_ho: Any) -> None:
        self.emit = emit
        self.weight_hh, self.weight_ho = weight_hh, weight_ho
        self.width = weight_ho.shape[0]

    def write(self, x: Any, h: Any, c: Any, weight_ih: Any, biases: list[Any], reverse: bool) -> tuple[Any, Any]:
        """The states and the cells before and after every step of x [T, N, I]."""
        gates = self._product(x, weight_ih, True)
        for bias in biases:
            gates = self._map("elementwise_add", gates, bias)
        steps = x.shape[0]
        states, cells = [h], [c]
        for t in range(steps - 1, -1, -1) if reverse else range(steps):
            row = self._part(gates, 0, t, t + 1, is_dropped=True)
            h, c = self._step(row, states[-1], cells[-1])
            states.append(h)
            cells.append(c)
        return tuple(self.emit("stack", {"X": v[::-1] if reverse else v}, {"axis:i": 0}, ("Y",)) for v in (states, cells))

    def _step(self, gates: Any, h: Any, c: Any) -> tuple[Any, Any]:
        total = self._map("elementwise_add", gates, self._product(h, self.weight_hh, True))
        i, f, a, o = (self._part(total, 1, k * self.width, (k + 1) * self.width) for k in range(4))
        i, f, o = (self.emit("sigmoid", {"X": v}, {}) for v in (i, f, o))
        a = self.emit("tanh", {"X": a}, {})
        c = self._map("elementwise_add", self._map("elementwise_mul", f, c), self._map("elementwise_mul", i, a))
        hidden = self._map("elementwise_mul", o, self.emit("tanh", {"X": c}, {}))
        return self._product(hidden, self.weight_ho, False), c

    def _product(self, x: Any, y: Any, transpose: bool) -> Any:
        return self.emit("matmul_v2", {"X": x, "Y": y}, {"trans_x:b": False, "trans_y:b": transpose})

    def _map(self, kind: str, x: Any, y: Any) -> Any:
        return self.emit(kind, {"X": x, "Y": y}, {"axis:i": -1})

    def _part(self, x: Any, axis: int, start: int, end: int, is_dropped: bool = False) -> Any:
        picked = {"axes:I": [axis], "starts:I": [start], "ends:I": [end], "infer_flags:I": [1]}
        return self.emit("slice", {"Input": x}, picked | {"decrease_axis:I": [axis] if is_dropped else []})
