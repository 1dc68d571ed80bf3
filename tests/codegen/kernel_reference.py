"""An oracle for kernels: the loop IR's meaning written over whole NumPy arrays, one statement for each node."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import scipy.special

from sampan.codegen.loops import Kernel, param_offsets


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def computed(array: np.ndarray) -> np.ndarray:
    """Halves as the float32 in which they are computed."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else array


def _shift(a: np.ndarray, b: np.ndarray, left: bool) -> np.ndarray:
    bits = a.dtype.itemsize * 8
    large = (b < 0) | (b >= bits)
    count = np.where(large, 0, b).astype(a.dtype)
    if left:
        return np.where(large, 0, a << count).astype(a.dtype)
    fill = np.where(a < 0, -1, 0) if a.dtype.kind == "i" else np.zeros_like(a)
    return np.where(large, fill, a >> count).astype(a.dtype)


def _truncated_division(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f" or a.dtype.kind == "c":
        return a / b
    safe = np.where(b == 0, 1, b)
    quotient = np.floor_divide(a, safe)
    inexact = np.mod(a, safe) != 0
    return np.where(b == 0, 0, np.where(inexact & ((a < 0) != (b < 0)), quotient + 1, quotient)).astype(a.dtype)


def _integer_or(function, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind == "f":
        return function(a, b)
    return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _wrapping_pow(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind in "fc":
        return np.power(a, b)
    bits = a.dtype.itemsize * 8

    def one(x: int, e: int) -> int:
        value = pow(x, e, 1 << bits) if e >= 0 else (1 if x == 1 else (1 if e % 2 == 0 else -1) if x == -1 else 0)
        return value - (1 << bits) if a.dtype.kind == "i" and value >= 1 << (bits - 1) else value

    return np.array([one(int(x), int(e)) for x, e in zip(a.ravel(), b.ravel())], a.dtype).reshape(a.shape)


def _make_complex(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.empty(a.shape, np.result_type(a, np.complex64))
    result.real, result.imag = a, b
    return result


OPS = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
    "gelu": lambda x: np.where(x == -np.inf, 0, x) * scipy.special.ndtr(x),
    "gelu_slope": lambda x: scipy.special.ndtr(x) + np.where(np.abs(x) > 40, 0, x * np.exp(x * x * -0.5) / np.sqrt(2 * np.pi)),
    "erfinv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.digamma,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": lambda x: np.rint(x) if x.dtype.kind == "f" else x,
    "trunc": np.trunc,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _truncated_division,
    "floordiv": lambda a, b: _integer_or(np.floor_divide, a, b),
    "mod": lambda a, b: _integer_or(np.mod, a, b),
    "pow": _wrapping_pow,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "atan2": np.arctan2,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": lambda a, b: _shift(a, b, True),
    "shift_right": lambda a, b: _shift(a, b, False),
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "nextafter": np.nextafter,
    "copysign": np.copysign,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "make_complex": _make_complex,
    "angle": np.angle,
}


def cast(value: np.ndarray, dtype: str) -> np.ndarray:
    """A cast as the loop IR defines it: saturating from float to integer, NaN as 0."""
    target = numpy_dtype(dtype)
    if value.dtype.kind == "c" and target.kind not in "cb":
        value = value.real
    if value.dtype.kind == "f" and target.kind in "iu":
        info = np.iinfo(target)
        whole = np.trunc(np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        return np.array(
            [
                int(min(max(v, info.min), info.max)) if np.isfinite(v) else (info.max if v > 0 else info.min)
                for v in whole.ravel()
            ],
            target,
        ).reshape(value.shape)
    return computed(value.astype(target))


def run_reference(
    kernel: Kernel, arrays: Sequence[np.ndarray], params: Sequence[int], offsets: Sequence[int] | None = None
) -> None:
    """Runs the kernel over its whole index space, writing its out arrays."""
    outer, inner, lane = (
        params[: kernel.outer],
        params[kernel.outer : kernel.outer + kernel.inner],
        params[kernel.outer + kernel.inner],
    )
    length = params[kernel.outer + kernel.inner + 1]
    extent = {"none": 1, "lane": lane, "inner0": inner[0] if inner else 1}[kernel.block]
    blocks = [(0, extent)] if kernel.block == "none" else [(s, min(s + length, extent)) for s in range(0, max(extent, 1), length)]
    for block, (low, high) in enumerate(blocks):
        for index in itertools.product(*(range(n) for n in outer)):
            _run_row(kernel, arrays, params, index, block, low, high, offsets or [0] * len(arrays))


def _run_row(kernel, arrays, params, index, block, low, high, offsets):
    inner = list(params[kernel.outer : kernel.outer + kernel.inner])
    lane = params[kernel.outer + kernel.inner]
    starts = [0] * (kernel.inner + 1)
    sizes = [*inner, lane]
    blocked = {"none": None, "lane": kernel.inner, "inner0": 0}[kernel.block]
    if blocked is not None:
        starts[blocked], sizes[blocked] = low, high - low
    grid = np.indices(sizes, np.int64) + np.array(starts).reshape(-1, *([1] * len(sizes)))
    strides_at = param_offsets(kernel)

    def addresses(buffer: int, direction_out: bool) -> np.ndarray:
        b, at = kernel.buffers[buffer], strides_at[buffer]
        position = offsets[buffer] + sum(i * params[at + a] for a, i in enumerate(index))
        at += kernel.outer
        if kernel.is_split and direction_out:
            position += block * params[at]
            at += 1
        result = np.full(sizes, position, np.int64)
        if b.inner:
            for a in range(kernel.inner):
                result += grid[a] * params[at + a]
        step = {"0": 0, "1": 1, "s": 1, "n": params[at + kernel.inner]}[b.lane]
        return result + grid[-1] * step

    values: list = []
    for node in kernel.nodes:
        args = [values[a] for a in node.args]
        values.append(_node(kernel, node, args, arrays, addresses, params, strides_at, index, grid, sizes))


def _node(kernel, node, args, arrays, addresses, params, strides_at, index, grid, sizes):
    if node.op == "const":
        return np.full(sizes, node.attr, computed(np.zeros(0, numpy_dtype(node.dtype))).dtype)
    if node.op == "load":
        return computed(arrays[node.attr].reshape(-1)[addresses(node.attr, False)])
    if node.op == "load_at":
        at = strides_at[node.attr] + kernel.outer + kernel.inner + 1
        return computed(
            arrays[node.attr].reshape(-1)[addresses(node.attr, False) + sum(a * params[at + k] for k, a in enumerate(args))]
        )
    if node.op == "store":
        if args[0].size:
            arrays[node.attr].reshape(-1)[addresses(node.attr, True)] = args[0].astype(arrays[node.attr].dtype)
        return None
    if node.op == "index":
        if node.attr.startswith("outer"):
            return np.full(sizes, index[int(node.attr[5:])], np.int64)
        return grid[-1] if node.attr == "lane" else grid[int(node.attr[5:])]
    if node.op == "map":
        with np.errstate(all="ignore"):
            return OPS[node.attr](*args)
    if node.op == "cast":
        with np.errstate(all="ignore"):
            return cast(args[0], node.dtype)
    if node.op == "select":
        return np.where(args[0], args[1], args[2])
    return _reduce(kernel, node, args[0], grid, params, sizes)


def _reduce(kernel, node, value, grid, params, sizes):
    axes = tuple(range(kernel.inner + kernel.reduce_lane))
    if node.attr in ("argmax", "argmin"):
        flat = value.reshape(-1) if kernel.reduce_lane else value.reshape(-1, sizes[-1])
        where = (np.argmax if node.attr == "argmax" else np.argmin)(flat, axis=0)
        full = [*params[kernel.outer : kernel.outer + kernel.inner], params[kernel.outer + kernel.inner]]
        linear = np.zeros(sizes, np.int64)
        for a in axes:
            linear = linear * full[a] + grid[a]
        if kernel.reduce_lane:
            return np.full(sizes, linear.reshape(-1)[where])
        return np.broadcast_to(
            np.take_along_axis(linear.reshape(-1, sizes[-1]), where[None], 0).reshape([1] * kernel.inner + [-1]), sizes
        )
    function = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all}[node.attr]
    wide = value.astype(np.float64) if node.attr in ("sum", "prod") and value.dtype.kind == "f" else value
    options = {"dtype": wide.dtype} if node.attr in ("sum", "prod") else {}
    return np.broadcast_to(function(wide, axis=axes, keepdims=True, **options).astype(value.dtype), sizes)
