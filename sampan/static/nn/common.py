"""Layers as functions that make their own parameters: fully connected, embeddings, convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, ShapeError, UnsupportedError, message
from ...nn import functional as F
from ...nn.initializer import Constant, Normal, XavierUniform
from ...tensor import OPS
from ...tensor.functions import dtype_name
from ...tensor.recording import current_recorder
from .parameters import Owner


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Any:
    """activation(x W + b) with a new weight W [features, size] and bias b [size]; of several x, each with its own weight, the sum.

    Args:
        x: a Variable, or a list of them, whose axes from ``num_flatten_dims`` on are features of known sizes.
        size: how many numbers come out for each row.
        num_flatten_dims: how many axes of x are rows; -1: all but the last.
        weight_attr, bias_attr: ParamAttr, initializer or name; ``bias_attr=False``: no bias.
        activation: the name of a function of ``nn.functional``.
        name: the prefix of the parameters' names.

    Returns:
        A Variable of shape [*x.shape[:num_flatten_dims], size].

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 4, 3])
        ...     paddle.static.nn.fc(x, 5, num_flatten_dims=2, activation="relu").shape
        paddle.Size([-1, 4, 5])
        >>> paddle.disable_static()
    """
    owner = Owner("fc", "fc", name, "nn.Linear")
    size = owner.count("size", size)
    parts = list(x) if isinstance(x, (list, tuple)) else [x]
    if not parts:
        raise ArgumentError(message("fc(): x is an empty list", "it must hold at least one Variable"))
    attrs = list(weight_attr) if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(parts)
    if len(attrs) != len(parts):
        raise ArgumentError(message(f"fc(): {len(attrs)} weight_attr for {len(parts)} x", "there must be one for each"))
    total, dtype = None, owner.require("x", parts[0]).dtype
    for part, attr in zip(parts, attrs, strict=True):
        owner.require("x", part)
        rows = part.ndim - 1 if num_flatten_dims == -1 else num_flatten_dims
        if not 1 <= rows < part.ndim:
            raise ShapeError(
                message(
                    f"fc(): num_flatten_dims={num_flatten_dims} and x has shape {list(part.shape)}",
                    f"it must be from 1 to {part.ndim - 1}, or -1",
                )
            )
        features = math.prod(owner.known("x", part, k) for k in range(rows, part.ndim))
        weight = owner.parameter([features, size], attr, dtype)
        flat = OPS["flatten"](part, rows, -1) if part.ndim > rows + 1 else part
        product = OPS["matmul"](flat, weight)
        total = product if total is None else total + product
    bias = owner.parameter([size], bias_attr, dtype, is_bias=True)
    return owner.activated(total if bias is None else total + bias, activation)


def embedding(
    input: Any,
    size: Sequence[int],
    is_sparse: bool = False,
    is_distributed: bool = False,
    padding_idx: int | None = None,
    param_attr: Any = None,
    dtype: Any = "float32",
) -> Any:
    """The rows of a new table [size[0], size[1]] at the ids: [*input.shape, size[1]].

    Args:
        input: int32 or int64 ids.
        size: [rows, width].
        is_sparse, is_distributed: accepted for compatibility; the values are the same.
        padding_idx: the id whose row reads as zeros and gets no gradient; negative ones count from the end.
        param_attr: the table's ParamAttr, initializer or name.
        dtype: the table's.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     paddle.static.nn.embedding(paddle.static.data("ids", [None, 2], "int64"), [10, 3]).shape
        paddle.Size([-1, 2, 3])
        >>> paddle.disable_static()
    """
    return _embedding(Owner("embedding", "embedding", None, "nn.Embedding"), input, size, padding_idx, param_attr, dtype)


def _embedding(owner: Owner, input: Any, size: Sequence[int], padding_idx: int | None, attr: Any, dtype: Any) -> Any:
    owner.require("input", input)
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise ShapeError(message(f"{owner.function}(): size={size!r}", "it must be [rows, width]"))
    shape = [owner.count("size", n) for n in size]
    if padding_idx is not None and not -shape[0] <= padding_idx < shape[0]:
        raise ArgumentError(message(f"{owner.function}(): padding_idx={padding_idx}", f"the table has {shape[0]} rows"))
    table = owner.parameter(shape, attr, dtype_name(owner.function, dtype), initializer=XavierUniform())
    return F.embedding(input, table, padding_idx)


def sparse_embedding(
    input: Any,
    size: Sequence[int],
    padding_idx: int | None = None,
    is_test: bool = False,
    entry: Any = None,
    table_class: str = "MemorySparseTable",
    param_attr: Any = None,
    dtype: Any = "float32",
    slot: int | None = None,
) -> Any:
    """The rows of a table at the ids. Without parameter servers the table is an ordinary parameter of the Program.

    Args:
        input: int64 ids.
        size: [rows, width].
        padding_idx: the id whose row reads as zeros and gets no gradient.
        is_test: accepted for compatibility; it decides what parameter servers do with unknown ids.
        entry: when parameter servers admit a new id; without them every row is there.
        table_class: ``MemorySparseTable``, ``MemoryDenseTable`` or ``SSDSparseTable``.
        param_attr: the table's ParamAttr, initializer or name.
        dtype: the table's.
        slot: the number of the feature; accepted for compatibility.
    """
    owner = Owner("sparse_embedding", "embedding", None, "nn.Embedding")
    owner.choice("table_class", table_class, ("MemorySparseTable", "MemoryDenseTable", "SSDSparseTable"))
    return _embedding(owner, input, size, padding_idx, param_attr, dtype)


Convolve = Callable[..., Any]


def _convolution(
    owner: Owner,
    convolve: Convolve,
    rank: int,
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int | None,
    param_attr: Any,
    bias_attr: Any,
    act: str | None,
    data_format: str,
) -> Any:
    channels = _channels(owner, rank, input, data_format)
    filters, groups = owner.count("num_filters", num_filters), owner.count("groups", groups or 1)
    if channels % groups or filters % groups:
        raise ArgumentError(
            message(
                f"{owner.function}(): {channels} channels, num_filters={filters} and groups={groups}",
                "both must be multiples of groups",
            )
        )
    sizes = _per_axis(owner, "filter_size", filter_size, rank)
    start = Normal(0.0, math.sqrt(2.0 / (math.prod(sizes) * channels)))
    weight = owner.parameter([filters, channels // groups, *sizes], param_attr, input.dtype, initializer=start)
    bias = owner.parameter([filters], bias_attr, input.dtype, is_bias=True)
    made = convolve(
        input,
        weight,
        bias,
        stride=stride,
        padding=_padding(padding),
        dilation=dilation,
        groups=groups,
        data_format=data_format,
    )
    return owner.activated(made, act)


def _transposed(
    owner: Owner,
    convolve: Convolve,
    rank: int,
    input: Any,
    num_filters: int,
    output_size: Any,
    filter_size: Any,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int | None,
    param_attr: Any,
    bias_attr: Any,
    act: str | None,
    data_format: str,
) -> Any:
    channels = _channels(owner, rank, input, data_format)
    filters, groups = owner.count("num_filters", num_filters), owner.count("groups", groups or 1)
    if channels % groups:
        raise ArgumentError(message(f"{owner.function}(): {channels} channels and groups={groups}", "they must be a multiple"))
    if filter_size is None:
        if output_size is None:
            raise ArgumentError(message(f"{owner.function}(): filter_size and output_size are None", "one must be given"))
        if isinstance(padding, str):
            raise ArgumentError(message(f"{owner.function}(): padding={padding!r} without filter_size", "give filter_size"))
        first = 1 if data_format[-1] == "C" else 2
        outs, steps, spread, edges = (
            _per_axis(owner, what, value, rank)
            for what, value in (("output_size", output_size), ("stride", stride), ("dilation", dilation), ("padding", padding))
        )
        sizes = [
            (outs[k] - (owner.known("input", input, first + k) - 1) * steps[k] + 2 * edges[k] - 1) // spread[k] + 1
            for k in range(rank)
        ]
        if min(sizes) < 1:
            raise ShapeError(message(f"{owner.function}(): output_size={output_size}", "no filter makes so small an output"))
    else:
        sizes = _per_axis(owner, "filter_size", filter_size, rank)
    weight = owner.parameter([channels, filters // groups, *sizes], param_attr, input.dtype, initializer=XavierUniform())
    bias = owner.parameter([filters], bias_attr, input.dtype, is_bias=True)
    made = convolve(
        input,
        weight,
        bias,
        stride=stride,
        padding=_padding(padding),
        dilation=dilation,
        groups=groups,
        output_size=None if output_size is None else _per_axis(owner, "output_size", output_size, rank),
        data_format=data_format,
    )
    return owner.activated(made, act)


def _channels(owner: Owner, rank: int, input: Any, data_format: str) -> int:
    owner.choice("data_format", data_format, {2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[rank])
    owner.require("input", input, (rank + 2,))
    return owner.known("input", input, -1 if data_format[-1] == "C" else 1)


def _per_axis(owner: Owner, name: str, value: Any, rank: int) -> list[int]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * rank
    if len(values) != rank or any(isinstance(v, bool) or not hasattr(v, "__index__") for v in values):
        raise ArgumentError(message(f"{owner.function}(): {name}={value!r}", f"it must be an integer or {rank} of them"))
    return [int(v) for v in values]


def _padding(padding: Any) -> Any:
    return padding.upper() if isinstance(padding, str) else padding


def conv2d(
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Any:
    """act(the convolution of [N, C, H, W] by a new weight [num_filters, C / groups, *filter_size] + a new bias).

    Args:
        input: its channels must be known.
        num_filters: channels of the result.
        filter_size, stride, dilation: an integer, or two.
        padding: an integer, two, four, pairs, 'SAME' or 'VALID'.
        groups: into how many groups channels are divided.
        param_attr, bias_attr: ParamAttr, initializer or name; ``bias_attr=False``: no bias.
        use_cudnn: accepted for compatibility.
        act: the name of a function of ``nn.functional``.
        name: the prefix of the parameters' names.
        data_format: NCHW or NHWC.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     paddle.static.nn.conv2d(paddle.static.data("x", [None, 3, 8, 8]), 4, 3, act="relu").shape
        paddle.Size([-1, 4, 6, 6])
        >>> paddle.disable_static()
    """
    owner = Owner("conv2d", "conv2d", name, "nn.Conv2D")
    return _convolution(
        owner, F.conv2d, 2, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr, act,
        data_format,
    )  # fmt: skip


def conv3d(
    input: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Any:
    """As ``conv2d``, of [N, C, D, H, W]."""
    owner = Owner("conv3d", "conv3d", name, "nn.Conv3D")
    return _convolution(
        owner, F.conv3d, 3, input, num_filters, filter_size, stride, padding, dilation, groups, param_attr, bias_attr, act,
        data_format,
    )  # fmt: skip


def conv2d_transpose(
    input: Any,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Any:
    """act(the transposed convolution of [N, C, H, W] by a new weight [C, num_filters / groups, *filter_size] + a new bias).

    Args:
        output_size: the result's spatial sizes; needed where a stride leaves several possible.
        filter_size: by default what makes ``output_size`` of the input's sizes, which must be known then.

    The other arguments are those of ``conv2d``.
    """
    owner = Owner("conv2d_transpose", "conv2d_transpose", name, "nn.Conv2DTranspose")
    return _transposed(
        owner, F.conv2d_transpose, 2, input, num_filters, output_size, filter_size, padding, stride, dilation, groups, param_attr,
        bias_attr, act, data_format,
    )  # fmt: skip


def conv3d_transpose(
    input: Any,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Any:
    """As ``conv2d_transpose``, of [N, C, D, H, W]."""
    owner = Owner("conv3d_transpose", "conv3d_transpose", name, "nn.Conv3DTranspose")
    return _transposed(
        owner, F.conv3d_transpose, 3, input, num_filters, output_size, filter_size, padding, stride, dilation, groups, param_attr,
        bias_attr, act, data_format,
    )  # fmt: skip


def deform_conv2d(
    x: Any,
    offset: Any,
    mask: Any,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    deformable_groups: int = 1,
    im2col_step: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Any:
    """The convolution of x [N, C, H, W] that reads each place shifted by ``offset`` and weighed by ``mask``, with a new weight and bias.

    Args:
        offset: [N, 2 * deformable_groups * kh * kw, H', W'], for each place of the filter how far down and how far right.
        mask: [N, deformable_groups * kh * kw, H', W'], or None (version 1).
        im2col_step: accepted for compatibility.

    The other arguments are those of ``conv2d``.
    """
    owner = Owner("deform_conv2d", "deformable_conv", name, "vision.ops.DeformConv2D")
    channels = _channels(owner, 2, x, "NCHW")
    filters, sizes = owner.count("num_filters", num_filters), _per_axis(owner, "filter_size", filter_size, 2)
    groups = owner.count("groups", groups)
    if channels % groups:
        raise ArgumentError(message(f"deform_conv2d(): {channels} channels and groups={groups}", "they must be a multiple"))
    start = Normal(0.0, math.sqrt(2.0 / (math.prod(sizes) * channels)))
    weight = owner.parameter([filters, channels // groups, *sizes], weight_attr, x.dtype, initializer=start)
    bias = owner.parameter([filters], bias_attr, x.dtype, is_bias=True)
    return OPS["deform_conv2d"](x, offset, weight, bias, stride, padding, dilation, deformable_groups, groups, mask)


def bilinear_tensor_product(
    x: Any,
    y: Any,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
) -> Any:
    """act(x W_k y + b_k for k below ``size``), [N, size], of x [N, M] and y [N, K], with a new weight [size, M, K] and bias [1, size]."""
    owner = Owner("bilinear_tensor_product", "bilinear_tensor_product", name, "nn.Bilinear")
    owner.require("x", x, (2,))
    owner.require("y", y, (2,))
    size = owner.count("size", size)
    weight = owner.parameter([size, owner.known("x", x, 1), owner.known("y", y, 1)], param_attr, x.dtype)
    bias = owner.parameter([1, size], bias_attr, x.dtype, is_bias=True)
    return owner.activated(F.bilinear(x, y, weight, bias), act)


def prelu(x: Any, mode: str, param_attr: Any = None, data_format: str = "NCHW", name: str | None = None) -> Any:
    """max(0, x) + a * min(0, x) with a new trained slope a, which starts at 0.25.

    Args:
        x: [N, ...].
        mode: ``all``: one slope; ``channel``: one for each channel; ``element``: one for each element of a sample.
        data_format: where channels are: NCHW (axis 1) or NHWC (the last axis).
    """
    owner = Owner("prelu", "prelu", name, "nn.PReLU")
    owner.require("x", x)
    owner.choice("mode", mode, ("all", "channel", "element"))
    owner.choice("data_format", data_format, ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC"))
    shape = [1]
    if mode == "element":
        shape = [1, *(owner.known("x", x, k) for k in range(1, x.ndim))]
    elif mode == "channel":
        axis = x.ndim - 1 if data_format != "NC" and data_format[-1] == "C" else 1
        if x.ndim < 2:
            raise ShapeError(message(f"prelu(): x has shape {list(x.shape)} and mode='channel'", "it has no channels"))
        shape = [owner.known("x", x, axis) if k == axis else 1 for k in range(x.ndim)]
    slope = owner.parameter(shape, param_attr, x.dtype, initializer=Constant(0.25))
    return OPS["where"](x > 0, x, slope * x)


def row_conv(input: Any, future_context_size: int, param_attr: Any = None, act: str | None = None) -> Any:
    """act(out) with out[:, t] = the sum over k of w[k] * input[:, t + k]: each step looks ``future_context_size`` steps ahead.

    Args:
        input: [N, T, D].
        future_context_size: how many steps.
        param_attr: of the new weight w [future_context_size + 1, D].

    Source: D. Amodei et al., "Deep Speech 2", https://arxiv.org/abs/1512.02595
    """
    owner = Owner("row_conv", "row_conv", None, "nn.Conv1D")
    owner.require("input", input, (3,))
    ahead = owner.count("future_context_size", future_context_size)
    weight = owner.parameter([ahead + 1, owner.known("input", input, 2)], param_attr, input.dtype)
    padded = F.pad(input, [0, 0, 0, ahead, 0, 0])
    total = None
    for k in range(ahead + 1):
        part = padded[:, k : k - ahead or None] * weight[k]
        total = part if total is None else total + part
    return owner.activated(total, act)


def nce(
    input: Any,
    label: Any,
    num_total_classes: int,
    sample_weight: Any = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    num_neg_samples: int | None = None,
    name: str | None = None,
    sampler: str = "uniform",
    custom_dist: Sequence[float] | None = None,
    seed: int = 0,
    is_sparse: bool = False,
) -> Any:
    """The noise-contrastive cost [N, 1] of a classifier with a new weight [num_total_classes, D] and bias [num_total_classes, 1].

    Args:
        input: [N, D].
        label: int64 class numbers, [N, 1] or [N, true classes].
        num_total_classes: how many classes there are.
        sample_weight: [N, 1], the weight of each sample.
        num_neg_samples: noise classes drawn for each sample; 10 by default.
        sampler: where noise comes from: ``uniform``, ``log_uniform`` or ``custom_dist``.
        custom_dist: the probability of each class, for ``custom_dist``.
        seed: of the draws; must be 0: draws follow ``paddle.seed``.
        is_sparse: accepted for compatibility.

    Source: M. Gutmann, A. Hyvarinen, "Noise-contrastive estimation", AISTATS 2010.
    """
    owner = Owner("nce", "nce", name, "nn.HSigmoidLoss")
    owner.require("input", input, (2,))
    owner.require("label", label, (2,))
    owner.choice("sampler", sampler, ("uniform", "log_uniform", "custom_dist"))
    classes, count = owner.count("num_total_classes", num_total_classes), owner.count("num_neg_samples", num_neg_samples or 10)
    if seed:
        raise UnsupportedError(message(f"nce(): seed={seed}", "draws follow the Program's generator", "use paddle.seed()"))
    if (sampler == "custom_dist") != (custom_dist is not None):
        raise ArgumentError(message(f"nce(): sampler={sampler!r} and custom_dist is {custom_dist!r}", "they go together"))
    weight = owner.parameter([classes, owner.known("input", input, 1)], param_attr, input.dtype)
    bias = owner.parameter([classes, 1], bias_attr, input.dtype, is_bias=True)
    shares = _noise_shares(sampler, classes, custom_dist)
    table = _constant(shares.astype(input.dtype))
    spread = OPS["rand_like"](OPS["expand"](input[:, :1], [-1, count]))
    noise = OPS["searchsorted"](_constant(np.cumsum(shares)[:-1].astype(input.dtype)), spread, right=True)
    wanted = OPS["concat"]([OPS["cast"](label, "int64"), OPS["cast"](noise, "int64")], 1)
    logits = OPS["sum"](F.embedding(wanted, weight) * OPS["unsqueeze"](input, 1), -1)
    if bias is not None:
        logits = logits + OPS["squeeze"](F.embedding(wanted, bias), -1)
    model = F.sigmoid(logits)
    expected = F.embedding(wanted, OPS["unsqueeze"](table, 1))
    expected = OPS["squeeze"](expected, -1) * float(count)
    true_classes = owner.known("label", label, 1)
    hit = -OPS["log"](model / (model + expected))
    miss = -OPS["log"](expected / (model + expected))
    cost = OPS["sum"](hit[:, :true_classes], 1, keepdim=True) + OPS["sum"](miss[:, true_classes:], 1, keepdim=True)
    return cost if sample_weight is None else cost * OPS["reshape"](sample_weight, [-1, 1])


def _noise_shares(sampler: str, classes: int, custom_dist: Sequence[float] | None) -> np.ndarray[Any, Any]:
    """The probability of each class as noise."""
    if sampler == "uniform":
        return np.full(classes, 1.0 / classes)
    if sampler == "log_uniform":
        k = np.arange(classes)
        return np.asarray(np.log((k + 2.0) / (k + 1.0)) / np.log(classes + 1.0))
    shares = np.asarray(custom_dist, "float64")
    if shares.shape != (classes,) or (shares < 0).any() or not np.isclose(shares.sum(), 1, atol=1e-4):
        raise ArgumentError(message("nce(): custom_dist is no distribution", f"it must hold {classes} probabilities of sum 1"))
    return shares


def _constant(values: np.ndarray[Any, Any]) -> Any:
    recorder = current_recorder()
    return values if recorder is None else recorder.operand(values)
