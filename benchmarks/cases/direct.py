"""oneDNN called through its C interface, with nothing in between: the speed that a framework on top of it can reach at most."""

from __future__ import annotations

import ctypes
import sysconfig
from pathlib import Path

import numpy as np

from .case import Work

# Values of oneDNN 3's C enumerations (oneapi/dnnl/dnnl_types.h).
_CPU, _IN_ORDER, _F32, _ANY, _ALLOCATE = 1, 1, 3, 1, -1
_FORWARD_TRAINING, _DIRECT = 64, 1
_QUERY = {"src": 129, "diff_src": 130, "weights": 131, "diff_weights": 132, "dst": 133, "diff_dst": 134}
_ARGUMENT = {"src": 1, "dst": 17, "weights": 33, "diff_src": 129, "diff_dst": 145, "diff_weights": 161}
_Dims = ctypes.c_int64 * 12
_Handle = ctypes.c_void_p


class _Argument(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_int), ("memory", ctypes.c_void_p))


class Library:
    """The loaded library with one engine and one stream."""

    def __init__(self) -> None:
        folder = Path(sysconfig.get_path("data")) / "lib"
        local = folder / "libdnnl.so.3"
        self.functions = ctypes.CDLL(str(local) if local.exists() else "libdnnl.so.3")
        self.engine, self.stream = _Handle(), _Handle()
        self.call("engine_create", ctypes.byref(self.engine), _CPU, ctypes.c_size_t(0))
        self.call("stream_create", ctypes.byref(self.stream), self.engine, _IN_ORDER)

    def call(self, name: str, *arguments: object) -> None:
        """Call one function and check its status."""
        status = getattr(self.functions, f"dnnl_{name}")(*arguments)
        if status:
            raise RuntimeError(f"dnnl_{name} failed with status {status}")

    def create(self, name: str, *arguments: object) -> _Handle:
        """The object that a ``dnnl_..._create`` function makes."""
        made = _Handle()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def strided(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> _Handle:
        """A float32 memory descriptor with these strides, in elements."""
        return self.create("memory_desc_create_with_strides", len(shape), _Dims(*shape), _F32, _Dims(*strides))

    def free(self, shape: tuple[int, ...]) -> _Handle:
        """A float32 memory descriptor whose layout oneDNN chooses."""
        return self.create("memory_desc_create_with_tag", len(shape), _Dims(*shape), _F32, _ANY)

    def execute(self, primitive: _Handle, arguments: list[tuple[int, _Handle]]) -> Work:
        """The work of running the primitive once, its arguments packed beforehand."""
        packed = (_Argument * len(arguments))(*[_Argument(a, m.value) for a, m in arguments])
        run, wait = self.functions.dnnl_primitive_execute, self.functions.dnnl_stream_wait
        stream, count = self.stream, len(arguments)

        def work() -> None:
            if run(primitive, stream, count, packed) or wait(stream):
                raise RuntimeError("oneDNN failed to execute")

        return work

    def prepared(self, description: _Handle, operands: dict[str, tuple[np.ndarray, _Handle]], result: str) -> Work:
        """The work of running the described primitive; each operand is reordered once to the layout that it wants."""
        query = self.functions.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        arguments, kept = [], []
        for role, (array, plain) in operands.items():
            wanted = _Handle(query(description, _QUERY[role], 0))
            memory = self.create("memory_create", wanted, self.engine, ctypes.c_void_p(_ALLOCATE))
            source = self.create("memory_create", plain, self.engine, array.ctypes.data_as(ctypes.c_void_p))
            reorder = self.create("reorder_primitive_desc_create", plain, self.engine, wanted, self.engine, None)
            self.execute(self.create("primitive_create", reorder), [(1, source), (17, memory)])()
            arguments.append((_ARGUMENT[role], memory))
            kept.append(array)
        out = self.create(
            "memory_create", _Handle(query(description, _QUERY[result], 0)), self.engine, ctypes.c_void_p(_ALLOCATE)
        )
        arguments.append((_ARGUMENT[result], out))
        return self.execute(self.create("primitive_create", description), arguments)


def _channels_last(shape: tuple[int, int, int, int]) -> tuple[int, ...]:
    _, channels, height, width = shape
    return (channels * height * width, 1, width * channels, channels)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(np.prod(shape[k + 1 :])) for k in range(len(shape)))


def matmul(library: Library, x: np.ndarray, y: np.ndarray, transpose_y: bool) -> Work:
    """``x @ y`` of plain row-major operands."""
    shape, strides = y.shape, _row_major(y.shape)
    if transpose_y:
        shape, strides = (*shape[:-2], shape[-1], shape[-2]), (*strides[:-2], strides[-1], strides[-2])
    out_shape = (*x.shape[:-1], shape[-1])
    left, right = library.strided(x.shape, _row_major(x.shape)), library.strided(shape, strides)
    out = library.strided(out_shape, _row_major(out_shape))
    description = library.create("matmul_primitive_desc_create", library.engine, left, right, None, out, None)
    return library.prepared(description, {"src": (x, left), "weights": (y, right)}, "dst")


def convolution(
    library: Library, kind: str, x: np.ndarray, weight: np.ndarray, cotangent: np.ndarray, stride: int, padding: int
) -> Work:
    """One of the three convolutions, images channels-last, weights in the layout that oneDNN chooses."""
    image, result = (
        library.strided(x.shape, _channels_last(x.shape)),
        library.strided(cotangent.shape, _channels_last(cotangent.shape)),
    )
    filters, engine = library.free(weight.shape), library.engine
    geometry = (_Dims(stride, stride), _Dims(0, 0), _Dims(padding, padding), _Dims(padding, padding))
    create = library.create
    forward = create(
        "convolution_forward_primitive_desc_create",
        *(engine, _FORWARD_TRAINING, _DIRECT, image, filters, None, result, *geometry, None),
    )
    of_x = (x, library.strided(x.shape, _row_major(x.shape)))
    of_weight = (weight, library.strided(weight.shape, _row_major(weight.shape)))
    of_cotangent = (cotangent, library.strided(cotangent.shape, _row_major(cotangent.shape)))
    if kind == "forward":
        return library.prepared(forward, {"src": of_x, "weights": of_weight}, "dst")
    if kind == "backward to data":
        data = create(
            "convolution_backward_data_primitive_desc_create",
            *(engine, _DIRECT, image, filters, result, *geometry, forward, None),
        )
        return library.prepared(data, {"weights": of_weight, "diff_dst": of_cotangent}, "diff_src")
    weights = create(
        "convolution_backward_weights_primitive_desc_create",
        *(engine, _DIRECT, image, filters, None, result, *geometry, forward, None),
    )
    return library.prepared(weights, {"src": of_x, "diff_dst": of_cotangent}, "diff_weights")
