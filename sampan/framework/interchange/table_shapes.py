"""Rows of shapes, joining, slicing, gathering and scattering."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.errors import UnsupportedError, message
from ...tensor import OPS
from . import kinds
from .rows import row, table, writes
from .table_creation import known
from .table_primitives import PRIMITIVE_WRITERS
from .values import Known, Mixed, as_tensor, joined, to_plain

table("""
broadcast_tensors | broadcast_tensors(X*=input) | broadcast_tensors(input*)
diag_embed | diag_embed(Input=input) {offset:i, dim1:i, dim2:i} | diag_embed(input)
diagonal | diagonal(Input=x) {offset:i, axis1:i, axis2:i}
fill_diagonal | fill_diagonal(X) {value:f, offset:i, wrap:b}
gather_nd
index_sample
index_select | index_select(X, Index) {dim:i=axis}
scatter | scatter(X, Ids=index, Updates=updates) {overwrite:b}
scatter_nd_add
shard_index | shard_index(X=input) {index_num:i, nshards:i, shard_id:i, ignore_value:i} | shard_index(input)
trace | trace(Input=x) {offset:i, axis1:i, axis2:i}
tril_indices | tril_indices() {rows:i=row, cols:i=col, offset:i, dtype:t} -> out | tril_indices() {rows=row, cols=col}
triu_indices | - | triu_indices()
unbind | unbind(X=input) {axis:i} | unbind(input)
flip | flip(X) {axis:I}
meshgrid | meshgrid(X*=inputs) | meshgrid(inputs*)
masked_fill | masked_fill(x=x, mask=mask, value=value) -> out
index_put | index_put(x=x, indices*=indices, value=value) {accumulate:b} -> out
index_add | index_add(X, Index=index, AddValue=value) {axis:i} | index_add(x, index, value)
as_strided | - | as_strided(x) {dims=shape}
""")


@row("triu_indices() -> out", tensors=" ")
def triu_indices(row: int = 0, col: int = 0, offset: int = 0, dtype: int = 3) -> Any:
    return OPS["triu_indices"](row, col, offset, kinds.dtype_name(dtype))


@writes("triu_indices")
def write_triu_indices(emit: Any, row: int, col: Any, offset: int, dtype: Any) -> Any:
    attributes = {"row:i": row, "col:i": row if col is None else col, "offset:i": offset, "dtype:t": emit.result_dtype()}
    return emit("triu_indices", {}, attributes, ("out",))


@row("shape(Input=x)", "shape(x);shape64(x)", needs_op=True)
def shape(x: Any, op: Any) -> Any:
    dtype = "int64" if op.kind == "shape64" else "int32"
    sizes = list(x.shape)
    if -1 not in sizes:
        return known(sizes, dtype)
    whole = OPS["shape"](x)
    return Mixed(
        tuple(OPS["squeeze"](OPS["slice"](whole, [0], [k], [k + 1]), 0) if n == -1 else n for k, n in enumerate(sizes)), dtype
    )


@row(
    "reshape2(X, Shape=shape:L, ShapeTensor*=shape:L) {shape:L};reshape(X, Shape=shape:L, ShapeTensor*=shape:L) {shape:L}",
    "reshape(x, shape:L);reshape_(x, shape:L)",
    tensors="x",
)
def reshape(x: Any, shape: Any = ()) -> Any:
    sizes = list(shape)
    unknown = [k for k, n in enumerate(sizes) if not isinstance(n, int)]
    if len(unknown) == 1 and all(n != -1 for n in sizes if isinstance(n, int)):
        sizes[unknown[0]] = -1  # what is left, so that nothing waits for the tensor's content
    return OPS["reshape"](x, sizes)


@writes("reshape")
def write_reshape(emit: Any, x: Any, shape: Any) -> Any:
    return emit(
        "reshape2",
        {"X": x},
        {"shape:I": [int(n) for n in (shape if isinstance(shape, (list, tuple)) else [shape])]},
        spare=("XShape",),
    )


@row("flatten_contiguous_range(X)", "flatten(x);flatten_(x)")
def flatten(x: Any, start_axis: int = 1, stop_axis: int = 1) -> Any:
    return OPS["flatten"](x, start_axis, stop_axis)


@writes("flatten")
def write_flatten(emit: Any, x: Any, start_axis: int, stop_axis: int) -> Any:
    return emit("flatten_contiguous_range", {"X": x}, {"start_axis:i": start_axis, "stop_axis:i": stop_axis})


@row("flatten2(X)")
def flatten2(x: Any, axis: int = 1) -> Any:
    rows = int(np.prod(x.shape[:axis], dtype=np.int64)) if -1 not in x.shape[:axis] else -1
    return OPS["reshape"](x, [rows, int(np.prod(x.shape[axis:], dtype=np.int64))])


@row("transpose2(X) {axis=perm};transpose(X) {axis=perm}", "transpose(x)")
def transpose(x: Any, perm: Any = ()) -> Any:
    return OPS["transpose"](x, list(perm))


@writes("transpose")
def write_transpose(emit: Any, x: Any, perm: Any) -> Any:
    return emit("transpose2", {"X": x}, {"axis:I": [int(a) % max(x.ndim, 1) for a in perm]}, spare=("XShape",))


@row("squeeze2(X) {axes:A=axis};squeeze(X) {axes:A=axis}", "squeeze(x, axis:A);squeeze_(x, axis:A)", tensors="x")
def squeeze(x: Any, axis: Any = None) -> Any:
    return OPS["squeeze"](x, axis)


@row(
    "unsqueeze2(X, AxesTensor=axis:L, AxesTensorList*=axis:L) {axes:L=axis};unsqueeze(X) {axes:L=axis}",
    "unsqueeze(x, axis:L);unsqueeze_(x, axis:L)",
    tensors="x",
)
def unsqueeze(x: Any, axis: Any = ()) -> Any:
    return OPS["unsqueeze"](x, list(axis))


def _axes(axis: Any) -> list[int]:
    return [] if axis is None else [int(a) for a in axis] if isinstance(axis, (list, tuple)) else [int(axis)]


@writes("squeeze")
def write_squeeze(emit: Any, x: Any, axis: Any) -> Any:
    return emit("squeeze2", {"X": x}, {"axes:I": _axes(axis)}, spare=("XShape",))


@writes("unsqueeze")
def write_unsqueeze(emit: Any, x: Any, axis: Any) -> Any:
    return emit("unsqueeze2", {"X": x}, {"axes:I": _axes(axis)}, spare=("XShape",))


@row("expand_v2(X, Shape=shape:L, expand_shapes_tensor*=shape:L) {shape:L}", "expand(x, shape:L)", tensors="x")
def expand(x: Any, shape: Any = ()) -> Any:
    return OPS["expand"](x, list(shape))


@writes("expand", "broadcast_to")
def write_expand(emit: Any, x: Any, shape: Any) -> Any:
    return emit("expand_v2", {"X": x}, {"shape:I": [int(n) for n in shape]})


@row("expand_as_v2(X, Y=y)", "expand_as(x, y)", tensors="x y")
def expand_as(x: Any, y: Any = None, target_shape: Any = ()) -> Any:
    return OPS["expand_as"](x, y) if y is not None else OPS["expand"](x, list(target_shape))


@writes("expand_as")
def write_expand_as(emit: Any, x: Any, y: Any) -> Any:
    return emit("expand_as_v2", {"X": x, "Y": y}, {"target_shape:I": list(y.shape)})


@row(
    "tile(X, RepeatTimes=repeat_times:L, repeat_times_tensor*=repeat_times:L) {repeat_times:L}",
    "tile(x, repeat_times:L)",
    tensors="x",
)
def tile(x: Any, repeat_times: Any = ()) -> Any:
    return OPS["tile"](x, list(repeat_times))


@writes("tile")
def write_tile(emit: Any, x: Any, repeat_times: Any) -> Any:
    return emit("tile", {"X": x}, {"repeat_times:I": _axes(repeat_times)})


@row("concat(X*:r=x, AxisTensor=axis:i)", "concat(x*:r, axis:i)", lists="x", tensors=" ")
def concat(x: Any = (), axis: int = 0) -> Any:
    return joined(x, False) or OPS["concat"]([as_tensor(v) for v in x], axis)


@writes("concat")
def write_concat(emit: Any, x: Any, axis: int) -> Any:
    return emit("concat", {"X": list(emit.promoted(*x))}, {"axis:i": int(axis)})


@row("stack(X*:r=x) -> Y", "stack(x*:r)", lists="x", tensors=" ")
def stack(x: Any = (), axis: int = 0) -> Any:
    return joined(x, True) or OPS["stack"]([as_tensor(v) for v in x], axis)


@writes("stack")
def write_stack(emit: Any, x: Any, axis: int) -> Any:
    return emit("stack", {"X": list(emit.promoted(*x))}, {"axis:i": axis}, ("Y",))


@row("unstack(X) -> Y", "unstack(x)")
def unstack(x: Any, axis: int = 0, num: int = 0) -> Any:
    return list(OPS["unstack"](x, axis, num or None))


@writes("unstack")
def write_unstack(emit: Any, x: Any, axis: int, num: Any) -> Any:
    return emit.many("unstack", {"X": x}, {"axis:i": axis, "num:i": x.shape[axis]}, "Y")


@row(
    "split(X, AxisTensor=axis:i, SectionsTensorList*=sections:L) {sections:L}",
    "split(x, sections:L, axis:i);split_with_num(x, axis:i)",
    tensors="x",
)
def split(x: Any, sections: Any = (), num: int = 0, axis: int = 0) -> Any:
    return list(OPS["split"](x, list(sections) if sections else num, axis))


@writes("split", "chunk")
def write_split(emit: Any, x: Any, axis: Any, num_or_sections: Any = None, chunks: Any = None) -> Any:
    return emit.many(
        "split", {"X": x}, {"axis:i": int(axis) % x.ndim, "num:i": 0, "sections:I": emit.result_sizes(int(axis))}, "Out"
    )


@row(
    "slice(Input=input:r, StartsTensor=starts:L, EndsTensor=ends:L, StartsTensorList*=starts:L, EndsTensorList*=ends:L)",
    "slice(input:r, starts:L, ends:L)",
    tensors=" ",
)
def slice_(input: Any = None, starts: Any = (), ends: Any = (), axes: Any = (), decrease_axis: Any = ()) -> Any:
    if isinstance(input, list):  # an array of tensors
        return input[starts[0]] if decrease_axis else input[starts[0] : ends[0]]
    if isinstance(input, Mixed):
        items = input.items[starts[0] : ends[0]]
        if not isinstance(items[0], int) or len(items) > 1 or not decrease_axis:
            return Mixed(items, input.dtype, bool(decrease_axis))
        return known(items[0], input.dtype)
    if isinstance(input, Known):
        return _sliced(input, starts, ends, axes, decrease_axis)
    result = OPS["slice"](input, list(axes), list(starts), list(ends))
    return OPS["squeeze"](result, list(decrease_axis)) if decrease_axis else result


def _sliced(input: Known, starts: Any, ends: Any, axes: Any, decrease_axis: Any) -> Known:
    """A slice of an array that is known stays known."""
    where: list[Any] = [slice(None)] * input.array.ndim
    for axis, start, end in zip(axes, starts, ends, strict=True):
        where[axis] = slice(start, end)
    result = input.array[tuple(where)]
    return Known(result.reshape([n for k, n in enumerate(result.shape) if k not in set(decrease_axis)]))


@writes("slice")
def write_slice(emit: Any, input: Any, axes: Any, starts: Any, ends: Any) -> Any:
    lists = [[int(v) for v in values] for values in (axes, starts, ends)]
    return emit(
        "slice",
        {"Input": input},
        {
            "axes:I": lists[0],
            "starts:I": lists[1],
            "ends:I": lists[2],
            "infer_flags:I": [1] * len(lists[0]),
            "decrease_axis:I": [],
        },
    )


@row(
    "strided_slice(Input=x, StartsTensor=starts:L, EndsTensor=ends:L, StridesTensor=strides:L, StartsTensorList*=starts:L, "
    "EndsTensorList*=ends:L, StridesTensorList*=strides:L)",
    "strided_slice(x, starts:L, ends:L, strides:L)",
    tensors="x",
)
def strided_slice(x: Any, starts: Any = (), ends: Any = (), strides: Any = (), axes: Any = (), decrease_axis: Any = ()) -> Any:
    result = OPS["strided_slice"](x, list(axes), list(starts), list(ends), list(strides))
    return OPS["squeeze"](result, list(decrease_axis)) if decrease_axis else result


@writes("strided_slice")
def write_strided_slice(emit: Any, x: Any, axes: Any, starts: Any, ends: Any, strides: Any) -> Any:
    lists = [[int(v) for v in values] for values in (axes, starts, ends, strides)]
    return emit(
        "strided_slice",
        {"Input": x},
        {
            "axes:I": lists[0],
            "starts:I": lists[1],
            "ends:I": lists[2],
            "strides:I": lists[3],
            "infer_flags:I": [1] * len(lists[0]),
            "decrease_axis:I": [],
        },
    )


@writes("take_slices")
def write_take_slices(emit: Any, x: Any, starts: Any, sizes: Any, steps: Any, dropped_axes: Any, new_axes: Any) -> Any:
    x = PRIMITIVE_WRITERS["slice"](emit, x, starts, sizes, steps)
    if x is NotImplemented:
        return x
    if dropped_axes:
        x = emit("squeeze2", {"X": x}, {"axes:I": list(dropped_axes)}, spare=("XShape",))
    if new_axes:
        x = emit("unsqueeze2", {"X": x}, {"axes:I": list(new_axes)}, spare=("XShape",))
    return x


@row(
    "crop_tensor(X, Shape=shape:L, ShapeTensor*=shape:L, Offsets=offsets:L, OffsetsTensor*=offsets:L)",
    "crop(x, shape:L, offsets:L)",
    tensors="x",
)
def crop(x: Any, shape: Any = (), offsets: Any = ()) -> Any:
    return OPS["crop"](x, list(shape), list(offsets))


@row("gather(X, Index=index, Axis=axis:i) {axis:i}", "gather(x, index, axis:i)", tensors="x index")
def gather(x: Any, index: Any, axis: int = 0) -> Any:
    return OPS["gather"](x, index, axis)


@writes("gather")
def write_gather(emit: Any, x: Any, index: Any, axis: Any) -> Any:
    return emit("gather", {"X": x, "Index": index}, {"axis:i": int(axis or 0)})


@row("take_along_axis(Input=arr, Index=indices) {Axis=axis} -> Result", "take_along_axis(arr, indices)", tensors="arr indices")
def take_along_axis(arr: Any, indices: Any, axis: int = 0) -> Any:
    return OPS["take_along_axis"](arr, indices, axis, False)


@writes("take_along_axis")
def write_take_along_axis(emit: Any, arr: Any, indices: Any, axis: int, broadcast: bool) -> Any:
    sizes = [n if k == axis % arr.ndim else m for k, (n, m) in enumerate(zip(indices.shape, arr.shape, strict=True))]
    if broadcast and list(indices.shape) != sizes:
        indices = emit("expand_v2", {"X": indices}, {"shape:I": sizes})
    return emit("take_along_axis", {"Input": arr, "Index": indices}, {"Axis:i": axis}, ("Result",))


@row("fill_diagonal_tensor(X, Y)", "fill_diagonal_tensor(x, y)", tensors="x y")
def fill_diagonal_tensor(x: Any, y: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    y = OPS["squeeze"](y, 0) if len(y.shape) == len(x.shape) else y  # a diagonal may come as a row
    return OPS["fill_diagonal_tensor"](x, y, offset, dim1, dim2)


@writes("fill_diagonal_tensor", "diagonal_scatter")
def write_fill_diagonal_tensor(emit: Any, x: Any, y: Any, offset: int, axis1: int, axis2: int) -> Any:
    return emit("fill_diagonal_tensor", {"X": x, "Y": y}, {"offset:l": offset, "dim1:i": axis1, "dim2:i": axis2})


@row(
    "put_along_axis(Input=arr, Index=indices, Value=values) {Axis=axis, Reduce=reduce, Include_self=include_self} -> Result",
    "put_along_axis(arr, indices, values)",
)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int = 0, reduce: str = "assign", include_self: bool = True) -> Any:
    return OPS["put_along_axis"](arr, indices, values, axis, reduce, include_self, False)


@row("roll(X, ShiftsTensor=shifts:L) {shifts:L, axis:A}", "roll(x, shifts:L) {axis:A}", tensors="x")
def roll(x: Any, shifts: Any = (), axis: Any = None) -> Any:
    return OPS["roll"](x, list(shifts), axis) if axis else OPS["roll"](x, shifts[0])


@writes("roll")
def write_roll(emit: Any, x: Any, shifts: Any, axis: Any) -> Any:
    return emit("roll", {"X": x}, {"shifts:L": _axes(shifts), "axis:L": _axes(axis)})


@row(
    "repeat_interleave(X) {Repeats=repeats, dim=axis}",
    "repeat_interleave(x);repeat_interleave_with_tensor_index(x, repeats)",
    tensors="x",
)
def repeat_interleave(x: Any, repeats: Any = 1, axis: int = 0, output_size: int = -1) -> Any:
    return OPS["repeat_interleave"](x, to_plain(repeats), axis)


@row("reverse(X)", "reverse(x)")
def reverse(x: Any, axis: Any = ()) -> Any:
    return OPS["flip"](x, list(axis))


@row("one_hot_v2(X, depth_tensor=num_classes:i) {depth=num_classes, dtype:t}", "one_hot(x, num_classes:i)", tensors="x")
def one_hot(x: Any, num_classes: int = 1, dtype: Any = None, allow_out_of_range: bool = False) -> Any:
    return OPS["one_hot"](x, num_classes)


@writes("one_hot")
def write_one_hot(emit: Any, x: Any, num_classes: int) -> Any:
    return emit("one_hot_v2", {"X": x}, {"depth:i": int(num_classes), "dtype:t": "float32", "allow_out_of_range:b": False})


@row(
    "set_value(Input=x, ValueTensor=value, StartsTensorList*=starts:L, EndsTensorList*=ends:L, StepsTensorList*=steps:L) {dtype:t}",
    "set_value(x, starts:L, ends:L, steps:L);set_value_(x, starts:L, ends:L, steps:L);set_value_with_tensor(x, value, starts:L, ends:L, steps:L);"
    "set_value_with_tensor_(x, value, starts:L, ends:L, steps:L)",
    tensors="x value",
)
def set_value(
    x: Any,
    value: Any = None,
    starts: Any = (),
    ends: Any = (),
    steps: Any = (),
    axes: Any = (),
    decrease_axes: Any = (),
    none_axes: Any = (),
    shape: Any = (),
    values: Any = (),
    dtype: Any = None,
) -> Any:
    if none_axes:
        raise UnsupportedError(message("set_value with new axes is not supported", f"its none_axes are {list(none_axes)}"))
    if value is None:
        value = OPS["reshape"](OPS["stack"]([OPS["full"]([], v, x.dtype) for v in values]), [int(n) for n in shape])
    where: list[Any] = [slice(None)] * len(x.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        last = None if step < 0 and end < -x.shape[axis] else end
        where[axis] = start if axis in decrease_axes else slice(start, last, step)
    result = OPS["clone"](x)
    result[tuple(where)] = OPS["cast"](value, x.dtype)
    return result
