"""Rows of convolution and pooling."""

from __future__ import annotations

from typing import Any

from ...base.errors import UnsupportedError
from ...tensor import OPS
from .rows import row, writes


def _padding(paddings: Any, algorithm: str) -> Any:
    return algorithm.lower() if algorithm in ("SAME", "VALID") else list(paddings)


def _dilation(dilations: Any, algorithm: str) -> list[int]:
    """PaddlePaddle ignores dilation where it computes the padding for "SAME"; so does a model of its."""
    return [1] * len(dilations) if algorithm == "SAME" else list(dilations)


def layout_of(data_format: str, rank: int) -> str:
    """The name that functions here give to a layout; the format has "AnyLayout" and, for 1-d and 3-d, several names."""
    is_last = data_format in ("NHWC", "NDHWC", "NLC")
    return {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank][is_last]


@row(
    "conv2d(Input=input, Filter=filter, Bias=bias) -> Output;depthwise_conv2d(Input=input, Filter=filter, Bias=bias) -> Output;"
    "conv3d(Input=input, Filter=filter, Bias=bias) -> Output",
    "conv2d(input, filter);depthwise_conv2d(input, filter);conv3d(input, filter)",
    tensors="input filter bias",
)
def conv(
    input: Any,
    filter: Any,
    bias: Any = None,
    strides: Any = (1, 1),
    paddings: Any = (0, 0),
    padding_algorithm: str = "EXPLICIT",
    dilations: Any = (1, 1),
    groups: int = 1,
    data_format: str = "NCHW",
) -> Any:
    rank = len(filter.shape) - 2
    function = OPS[f"conv{rank}d"]
    return function(
        input,
        filter,
        bias,
        list(strides),
        _padding(paddings, padding_algorithm),
        _dilation(dilations, padding_algorithm),
        groups,
        layout_of(data_format, rank),
    )


@row(
    "conv2d_transpose(Input=input, Filter=filter, Bias=bias) -> Output;depthwise_conv2d_transpose(Input=input, Filter=filter, Bias=bias) -> Output;"
    "conv3d_transpose(Input=input, Filter=filter, Bias=bias) -> Output",
    "conv2d_transpose(input, filter, output_size:A);depthwise_conv2d_transpose(input, filter, output_size:A);conv3d_transpose(input, filter)",
    tensors="input filter bias",
)
def conv_transpose(
    input: Any,
    filter: Any,
    bias: Any = None,
    output_size: Any = None,
    strides: Any = (1, 1),
    paddings: Any = (0, 0),
    output_padding: Any = (),
    padding_algorithm: str = "EXPLICIT",
    dilations: Any = (1, 1),
    groups: int = 1,
    data_format: str = "NCHW",
) -> Any:
    rank = len(filter.shape) - 2
    return OPS[f"conv{rank}d_transpose"](
        input,
        filter,
        bias,
        list(strides),
        _padding(paddings, padding_algorithm),
        output_padding=0 if output_size else list(output_padding) or 0,
        dilation=_dilation(dilations, padding_algorithm),
        groups=groups,
        output_size=list(output_size) if output_size else None,
        data_format=layout_of(data_format, rank),
    )


def _per_axis(value: Any, rank: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return values * rank if len(values) == 1 else values


def _window(padding: Any, rank: int, is_last: bool) -> dict[str, Any]:
    """The attributes of a padding in any of its forms."""
    if isinstance(padding, str):
        return {"paddings:I": [0] * rank, "padding_algorithm:s": padding.upper()}
    values = list(padding) if isinstance(padding, (list, tuple)) else [padding]
    if values and isinstance(values[0], (list, tuple)):
        pairs = values if len(values) == rank else values[1:-1] if is_last else values[2:]
        values = [n for pair in pairs for n in pair]
    return {"paddings:I": _per_axis(values, rank), "padding_algorithm:s": "EXPLICIT"}


def with_bias(emit: Any, y: Any, bias: Any, axis: int) -> Any:
    if bias is None:
        return y
    if axis != -1:  # PaddlePaddle 3 places the bias by the number of axes that is declared
        emit.writer.block.variables[y.name].shape = (-1,) * emit.result_rank()
    return emit("elementwise_add", {"X": y, "Y": bias}, {"axis:i": axis})


def _line(x: Any, is_last: bool) -> int:
    """The axis that turns a 1-d layout into a 2-d one."""
    return 1 if is_last else 2


@writes("conv1d", "conv2d", "conv3d")
def write_conv(
    emit: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, data_format: str
) -> Any:
    rank, is_last = weight.ndim - 2, data_format[-1] == "C"
    window = _window(padding, rank, is_last)
    strides, dilations = _per_axis(stride, rank), _per_axis(dilation, rank)
    if window["padding_algorithm:s"] == "SAME" and max(dilations) > 1:
        return NotImplemented  # the format's "SAME" forgets dilation
    axis = _line(x, is_last)
    if rank == 1:
        x = emit("unsqueeze2", {"X": x}, {"axes:I": [axis]}, spare=("XShape",))
        weight = emit("unsqueeze2", {"X": weight}, {"axes:I": [2]}, spare=("XShape",))
        window["paddings:I"] = [0] * len(window["paddings:I"]) + window["paddings:I"]
        strides, dilations = [1, *strides], [1, *dilations]
    attributes = {
        **window,
        "strides:I": strides,
        "dilations:I": dilations,
        "groups:i": groups,
        "data_format:s": {2: "NCHW", 3: "NCDHW"}[max(rank, 2)] if not is_last else {2: "NHWC", 3: "NDHWC"}[max(rank, 2)],
    }
    y = emit("conv3d" if rank == 3 else "conv2d", {"Input": x, "Filter": weight}, attributes, ("Output",))
    if rank == 1:
        y = emit("squeeze2", {"X": y}, {"axes:I": [axis]}, spare=("XShape",))
    return with_bias(emit, y, bias, -1 if is_last else 1)


@writes("conv1d_transpose", "conv2d_transpose", "conv3d_transpose")
def write_conv_transpose(
    emit: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    dilation: Any,
    groups: int,
    output_size: Any,
    data_format: str,
) -> Any:
    rank, is_last = weight.ndim - 2, data_format[-1] == "C"
    window = _window(padding, rank, is_last)
    strides, dilations, extra = _per_axis(stride, rank), _per_axis(dilation, rank), _per_axis(output_padding, rank)
    sizes = [] if output_size is None else _per_axis(output_size, rank)
    axis = _line(x, is_last)
    if rank == 1:
        x = emit("unsqueeze2", {"X": x}, {"axes:I": [axis]}, spare=("XShape",))
        weight = emit("unsqueeze2", {"X": weight}, {"axes:I": [2]}, spare=("XShape",))
        window["paddings:I"] = [0] * len(window["paddings:I"]) + window["paddings:I"]
        strides, dilations, extra, sizes = [1, *strides], [1, *dilations], [0, *extra], [1, *sizes] if sizes else []
    attributes = {
        **window,
        "strides:I": strides,
        "dilations:I": dilations,
        "output_padding:I": extra if any(extra) else [],
        "output_size:I": sizes,
        "groups:i": groups,
        "data_format:s": ("NDHWC" if is_last else "NCDHW") if rank == 3 else ("NHWC" if is_last else "NCHW"),
    }
    y = emit("conv3d_transpose" if rank == 3 else "conv2d_transpose", {"Input": x, "Filter": weight}, attributes, ("Output",))
    if rank == 1:
        y = emit("squeeze2", {"X": y}, {"axes:I": [axis]}, spare=("XShape",))
    return with_bias(emit, y, bias, -1 if is_last else 1)


@row(
    "deformable_conv(Input=input, Offset=offset, Filter=filter, Mask=mask) -> Output;"
    "deformable_conv_v1(Input=input, Offset=offset, Filter=filter) -> Output",
    "deformable_conv(input, offset, filter, mask)",
    tensors="input offset filter mask",
)
def deformable_conv(
    input: Any,
    offset: Any,
    filter: Any,
    mask: Any = None,
    strides: Any = (1, 1),
    paddings: Any = (0, 0),
    dilations: Any = (1, 1),
    deformable_groups: int = 1,
    groups: int = 1,
    im2col_step: int = 1,  # how many images PaddlePaddle takes at once: it changes no result
) -> Any:
    function = OPS["deform_conv2d"]
    return function(input, offset, filter, None, list(strides), list(paddings), list(dilations), deformable_groups, groups, mask)


@writes("deform_conv2d")
def write_deform_conv(
    emit: Any,
    x: Any,
    offset: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    deformable_groups: int,
    groups: int,
    mask: Any,
) -> Any:
    attributes = {
        "strides:I": _per_axis(stride, 2), "paddings:I": _per_axis(padding, 2), "dilations:I": _per_axis(dilation, 2),
        "deformable_groups:i": deformable_groups, "groups:i": groups, "im2col_step:i": 1,
    }  # fmt: skip
    operands = {"Input": x, "Offset": offset, "Filter": weight} | ({} if mask is None else {"Mask": mask})
    y = emit("deformable_conv_v1" if mask is None else "deformable_conv", operands, attributes, ("Output",))
    return with_bias(emit, y, bias, 1)


@row(
    "pool2d(X) {ksize=kernel_size};pool3d(X) {ksize=kernel_size}",
    "pool2d(x, kernel_size:I);pool3d(x)",
    tensors="x",
)
def pool(
    x: Any,
    kernel_size: Any = (),
    strides: Any = (1, 1),
    paddings: Any = (0, 0),
    ceil_mode: bool = False,
    exclusive: bool = True,
    data_format: str = "NCHW",
    pooling_type: str = "max",
    global_pooling: bool = False,
    adaptive: bool = False,
    padding_algorithm: str = "EXPLICIT",
) -> Any:
    rank = len(x.shape) - 2
    layout = layout_of(data_format, rank)
    if global_pooling:
        adaptive, kernel_size = True, [1] * rank
    kernel = [int(n) for n in kernel_size]
    if adaptive:
        sizes = [None if n < 0 else n for n in kernel]
        if pooling_type == "avg":
            return OPS[f"adaptive_avg_pool{rank}d"](x, sizes, layout)
        if layout[-1] == "C":
            raise UnsupportedError("adaptive max pooling of channels-last tensors is not supported")
        return OPS[f"adaptive_max_pool{rank}d"](x, sizes)
    padding = _padding(paddings, padding_algorithm)
    if pooling_type == "avg":
        return OPS[f"avg_pool{rank}d"](
            x, kernel, list(strides), padding, ceil_mode=ceil_mode, exclusive=exclusive, data_format=layout
        )
    return OPS[f"max_pool{rank}d"](x, kernel, list(strides), padding, ceil_mode=ceil_mode, data_format=layout)


@row(
    "max_pool2d_with_index(X) {ksize=kernel_size} -> Out, Mask;max_pool3d_with_index(X) {ksize=kernel_size} -> Out, Mask",
    "max_pool2d_with_index(x);max_pool3d_with_index(x)",
)
def max_pool_with_index(
    x: Any,
    kernel_size: Any = (),
    strides: Any = (1, 1),
    paddings: Any = (0, 0),
    global_pooling: bool = False,
    adaptive: bool = False,
    ceil_mode: bool = False,
) -> Any:
    rank = len(x.shape) - 2
    if adaptive or global_pooling:
        return OPS[f"adaptive_max_pool{rank}d"](x, [1] * rank if global_pooling else list(kernel_size), True)
    return OPS[f"max_pool{rank}d"](x, list(kernel_size), list(strides), list(paddings), True, ceil_mode)


def _write_pool(emit: Any, x: Any, kind: str, rank: int, attributes: dict[str, Any], data_format: str) -> Any:
    is_last = data_format[-1] == "C"
    axis = _line(x, is_last)
    whole = {
        "pooling_type:s": kind,
        "global_pooling:b": False,
        "adaptive:b": False,
        "exclusive:b": True,
        "ceil_mode:b": False,
        "strides:I": [1] * rank,
        "paddings:I": [0] * rank,
        "padding_algorithm:s": "EXPLICIT",
        **attributes,
        "data_format:s": ("NDHWC" if is_last else "NCDHW") if rank == 3 else ("NHWC" if is_last else "NCHW"),
    }
    if rank == 1:
        x = emit("unsqueeze2", {"X": x}, {"axes:I": [axis]}, spare=("XShape",))
        for name, one in (("ksize:I", 1), ("strides:I", 1)):
            whole[name] = [one, *whole[name]]
        whole["paddings:I"] = [0] * len(whole["paddings:I"]) + whole["paddings:I"]
    y = emit("pool3d" if rank == 3 else "pool2d", {"X": x}, whole)
    return emit("squeeze2", {"X": y}, {"axes:I": [axis]}, spare=("XShape",)) if rank == 1 else y


@writes("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d")
def write_pool(
    emit: Any,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    return_mask: bool = False,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: Any = None,
    data_format: str = "NCL",
) -> Any:
    rank = x.ndim - 2
    if divisor_override:
        return NotImplemented
    kernel = _per_axis(kernel_size, rank)
    attributes = {
        "ksize:I": kernel,
        "strides:I": kernel if stride is None else _per_axis(stride, rank),
        **_window(padding, rank, data_format[-1] == "C"),
        "ceil_mode:b": ceil_mode,
        "exclusive:b": exclusive,
    }
    if return_mask:
        if rank == 1 or data_format[-1] == "C" or attributes["padding_algorithm:s"] != "EXPLICIT":
            return NotImplemented
        kept = {k: v for k, v in attributes.items() if k in ("ksize:I", "strides:I", "paddings:I", "ceil_mode:b")}
        return emit(
            f"max_pool{rank}d_with_index", {"X": x}, {**kept, "global_pooling:b": False, "adaptive:b": False}, ("Out", "Mask")
        )
    return _write_pool(emit, x, "max" if emit.name.startswith("max") else "avg", rank, attributes, data_format)


@writes(
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
)
def write_adaptive_pool(emit: Any, x: Any, output_size: Any, return_mask: bool = False, data_format: str = "NCL") -> Any:
    rank = x.ndim - 2
    spatial = x.shape[1:-1] if data_format[-1] == "C" else x.shape[2:]
    sizes = [n if s is None else s for s, n in zip(_per_axis(output_size, rank), spatial, strict=True)]
    if "max" in emit.name:
        return _write_adaptive_max(emit, x, sizes, return_mask)
    return _write_pool(emit, x, "avg", rank, {"ksize:I": sizes, "adaptive:b": True}, data_format)


def _write_adaptive_max(emit: Any, x: Any, sizes: list[int], return_mask: bool) -> Any:
    rank = len(sizes)
    if rank == 1:
        x, sizes = emit("unsqueeze2", {"X": x}, {"axes:I": [2]}, spare=("XShape",)), [1, *sizes]
    attributes = {"ksize:I": sizes, "strides:I": [1] * len(sizes), "paddings:I": [0] * len(sizes)}
    found = emit(
        f"max_pool{len(sizes)}d_with_index",
        {"X": x},
        {**attributes, "adaptive:b": True, "global_pooling:b": False},
        ("Out", "Mask") if return_mask else ("Out",),
        spare=() if return_mask else ("Mask",),
    )
    if rank > 1:
        return found
    lines = [emit("squeeze2", {"X": v}, {"axes:I": [2]}, spare=("XShape",)) for v in (found if return_mask else [found])]
    return tuple(lines) if return_mask else lines[0]
