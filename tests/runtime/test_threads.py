"""Results do not depend on the number of threads, to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from runtime.native_call import channels_last, plan_of

from sampan import _rt

COUNTS = (1, 2, 3)


@pytest.fixture
def on_threads() -> Iterator[Callable[[Callable[[], list[np.ndarray]]], None]]:
    """Runs a function on each number of threads and compares what it returns."""
    before = _rt.num_threads()

    def compare(run: Callable[[], list[np.ndarray]]) -> None:
        results = []
        for count in COUNTS:
            _rt.set_num_threads(count)
            results.append([np.array(a) for a in run()])
        for count, other in zip(COUNTS[1:], results[1:], strict=True):
            for k, (one, many) in enumerate(zip(results[0], other, strict=True)):
                np.testing.assert_array_equal(one, many, err_msg=f"output {k} on {count} threads")

    yield compare
    _rt.set_num_threads(before)


def values(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Numbers whose sums depend on their order."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def native(
    name: str, inputs: list[np.ndarray], outputs: list[np.ndarray], **attributes: object
) -> Callable[[], list[np.ndarray]]:
    """What runs the native once; its Plan is made anew, with the threads of that moment."""

    def run() -> list[np.ndarray]:
        plan = plan_of(name, inputs, outputs, **attributes)
        return [t.numpy_view() for t in plan.run([_rt.from_numpy(a) for a in inputs])]

    return run


# batch, in, out, kernel, stride, padding, image, groups
CONVOLUTIONS = [
    (8, 1, 6, 5, 1, 2, 28, 1),
    (8, 6, 16, 5, 1, 0, 14, 1),
    (1, 16, 32, 3, 2, 1, 32, 1),
    (8, 16, 32, 1, 1, 0, 14, 1),
    (3, 5, 7, 3, 1, 1, 9, 1),
    (8, 8, 8, 3, 1, 1, 14, 8),
    (10, 32, 48, 3, 1, 1, 14, 4),
    (1, 64, 256, 1, 1, 0, 28, 1),
    (2, 128, 128, 3, 1, 1, 14, 1),
    (2, 256, 192, 1, 2, 0, 15, 1),
    (8, 3, 64, 7, 2, 3, 56, 1),
    (4, 64, 64, 3, 1, 1, 40, 1),
]


@pytest.mark.parametrize(
    ("case", "dtype"), [*((case, "float32") for case in CONVOLUTIONS), *((case, "float64") for case in CONVOLUTIONS[:7])], ids=str
)
class TestConvolution:
    @pytest.fixture
    def operands(self, case, dtype):
        n, i, o, k, s, p, size, groups = case
        out = (size + 2 * p - k) // s + 1
        x = channels_last(values((n, i, size, size), dtype))
        weight, grad = values((o, i // groups, k, k), dtype, 1), channels_last(values((n, o, out, out), dtype, 2))
        attributes = {"strides": [s, s], "padding_low": [p, p], "padding_high": [p, p], "groups": groups}
        return x, weight, grad, values((o,), dtype, 3), attributes

    def test_forward(self, operands, on_threads):
        x, weight, grad, bias, attributes = operands
        on_threads(native("conv_forward", [x, weight, bias], [grad], has_bias=1, epilogue="relu", **attributes))

    def test_backward_to_data(self, operands, on_threads):
        x, weight, grad, _, attributes = operands
        on_threads(native("conv_backward_data", [grad, weight], [x], **attributes))

    @pytest.mark.parametrize("has_bias", [0, 1])
    def test_backward_to_weights(self, operands, has_bias, on_threads):
        x, weight, grad, bias, attributes = operands
        on_threads(native("conv_backward_weights", [x, grad], [weight, bias][: 1 + has_bias], has_bias=has_bias, **attributes))


# batch, rows, depth, columns
PRODUCTS = [
    ((), 100, 8192, 10),
    ((), 64, 3000, 64),
    ((), 512, 2048, 7),
    ((), 1000, 512, 16),
    ((), 250, 64, 1000),
    ((), 8, 1024, 1024),
    ((), 1, 4000, 300),
    ((), 300, 4000, 1),
    ((3,), 100, 512, 250),
    ((24,), 64, 100, 64),
]


def product(case: tuple, dtype: str, transposed: bool = False, epilogue: str = "") -> Callable[[], list[np.ndarray]]:
    batch, m, k, n = case
    a = values((*batch, m, k), dtype)
    b = values((*batch, n, k), dtype, 1).swapaxes(-1, -2) if transposed else values((*batch, k, n), dtype, 1)
    extra = [values((*batch, m, n), dtype, 2)] if "add" in epilogue else []
    return native("matmul", [a, b, *extra], [np.empty((*batch, m, n), dtype)], epilogue=epilogue)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_matmul(case, dtype, transposed, on_threads):
    on_threads(product(case, dtype, transposed))


@pytest.mark.parametrize("epilogue", ["relu;add", "sqrt", "square;add"])
@pytest.mark.parametrize("case", PRODUCTS, ids=str)
def test_matmul_with_an_epilogue(case, epilogue, on_threads):
    on_threads(product(case, "float32", epilogue=epilogue))


POOLED, WINDOWED = (4, 24, 33, 35), (4, 24, 16, 17)


@pytest.mark.parametrize("arrange", [np.ascontiguousarray, channels_last])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_pooling(kind, arrange, on_threads):
    x, out = arrange(values(POOLED)), arrange(np.empty(WINDOWED, "float32"))
    grad, indices = arrange(values(WINDOWED, seed=1)), arrange(np.empty(WINDOWED, "int64"))
    attributes = {"kind": kind, "kernel": [3, 3], "strides": [2, 2]}
    if kind == "avg":
        on_threads(native("pool_forward", [x], [out], **attributes))
        on_threads(native("pool_backward", [grad], [x], **attributes))
        on_threads(native("adaptive_pool_forward", [x], [arrange(np.empty((4, 24, 1, 1), "float32"))], kind=kind))
        return
    forward = native("pool_forward", [x], [out, indices], with_indices=1, **attributes)
    on_threads(forward)
    on_threads(native("pool_backward", [grad, arrange(forward()[1])], [x], **attributes))


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "logaddexp"])
@pytest.mark.parametrize(("shape", "axis"), [((300000,), 0), ((40, 5000), 1), ((5000, 40), 0), ((7, 300, 50), 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scan(shape, axis, kind, dtype, on_threads):
    x = values(shape, dtype) * (1e-3 if kind == "prod" else 1) + (1 if kind == "prod" else 0)
    outputs = [np.empty(shape, dtype), np.empty(shape, "int64")][: 2 if kind == "max" else 1]
    on_threads(native("scan", [x.astype(dtype)], outputs, kind=kind, axis=axis))


@pytest.mark.parametrize("mode", ["add", "mul", "max"])
@pytest.mark.parametrize("width", [(), (1,), (64,)], ids=str)
def test_scatter(mode, width, on_threads):
    index = values((20000,), "int64", 1)
    x, updates = values((100, *width)), values((20000, *width), seed=2) * np.float32(0.01) + np.float32(1)
    on_threads(native("scatter", [x, index, updates], [x], mode=mode))
    on_threads(native("scatter_nd", [x, index[:, None], updates], [x], mode=mode))


@pytest.mark.parametrize("axis", [0, 1])
def test_moves_along_an_axis(axis, on_threads):
    index = values((100, 3000), "int64", 1) % 100
    x, updates = values((100, 3000)), values((100, 3000), seed=2)
    on_threads(native("gather_elements", [x, index], [updates], axis=axis))
    on_threads(native("scatter_elements", [x, index, updates], [x], axis=axis, mode="add"))


def test_bincount_with_weights(on_threads):
    x, weights = values((300000,), "int64"), values((300000,), seed=1)
    on_threads(native("bincount", [x, weights], [np.empty(100, "float32")], has_weights=1))
