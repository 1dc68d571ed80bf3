"""Normalisation as functions that make their own parameters."""

from __future__ import annotations

import math
from typing import Any

from ...base.errors import ArgumentError, ShapeError, message
from ...nn import functional as F
from ...nn.initializer import Constant, Normal
from ...nn.layer.norm import spectrally_normalized
from ...tensor import OPS
from ...tensor.replay import recordable
from .parameters import Owner

_LAYOUTS = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")


def _channels(owner: Owner, input: Any, data_layout: str) -> int:
    owner.choice("data_layout", data_layout, _LAYOUTS)
    owner.require("input", input, (2, 3, 4, 5))
    return owner.known("input", input, -1 if data_layout != "NC" and data_layout[-1] == "C" else 1)


def batch_norm(
    input: Any,
    act: str | None = None,
    is_test: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Any:
    """act(input normalised over everything but channels, times a new weight, plus a new bias).

    Args:
        input: [N, C, ...] or [N, ..., C] by ``data_layout``.
        is_test: normalise by the running statistics, which stay; ``Program.clone(for_test=True)`` does so too.
        momentum: how much of the running statistics stays in each step.
        epsilon: added to the variance.
        param_attr, bias_attr: ParamAttr, initializer or name.
        moving_mean_name, moving_variance_name: names of the running statistics.
        use_global_stats: normalise by the running statistics in training too.
        in_place, do_model_average_for_mean_and_var: accepted for compatibility.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        ...     paddle.static.nn.batch_norm(paddle.static.data("x", [None, 3, 8, 8]), act="relu").shape
        paddle.Size([-1, 3, 8, 8])
        >>> paddle.disable_static()
    """
    owner = Owner("batch_norm", "batch_norm", name, "nn.BatchNorm2D")
    shape = [_channels(owner, input, data_layout)]
    weight = owner.parameter(shape, param_attr, input.dtype, initializer=Constant(1.0))
    bias = owner.parameter(shape, bias_attr, input.dtype, is_bias=True)
    mean = owner.state(shape, moving_mean_name, input.dtype, Constant(0.0))
    variance = owner.state(shape, moving_variance_name, input.dtype, Constant(1.0))
    made = F.batch_norm(
        input,
        mean,
        variance,
        weight,
        bias,
        training=not is_test,
        momentum=momentum,
        epsilon=epsilon,
        data_format=data_layout,
        use_global_stats=True if use_global_stats else None,
    )
    return owner.activated(made, act)


def layer_norm(
    input: Any,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Any:
    """act(input normalised over its axes from ``begin_norm_axis`` on, times a new weight, plus a new bias).

    Args:
        input: its sizes from ``begin_norm_axis`` on must be known.
        scale, shift: whether there is a weight, a bias; they hold one number for each normalised element.
        epsilon: added to the variance.
    """
    owner = Owner("layer_norm", "layer_norm", name, "nn.LayerNorm")
    owner.require("input", input)
    if not 0 < begin_norm_axis < input.ndim:
        raise ArgumentError(
            message(
                f"layer_norm(): begin_norm_axis={begin_norm_axis} and input has shape {list(input.shape)}",
                f"it must be from 1 to {input.ndim - 1}",
            )
        )
    shape = [owner.known("input", input, k) for k in range(begin_norm_axis, input.ndim)]
    count = [math.prod(shape)]
    weight = owner.parameter(count, param_attr, input.dtype, initializer=Constant(1.0)) if scale else None
    bias = owner.parameter(count, bias_attr, input.dtype, is_bias=True) if shift else None
    shaped = [None if v is None else v if len(shape) == 1 else OPS["reshape"](v, shape) for v in (weight, bias)]
    return owner.activated(F.layer_norm(input, shape, *shaped, epsilon), act)


def group_norm(
    input: Any,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Any:
    """act(input normalised over groups of channels, times a new weight [C], plus a new bias [C]).

    Args:
        input: [N, C, ...] or [N, ..., C] by ``data_layout``.
        groups: how many groups channels are divided into.
        param_attr, bias_attr: ParamAttr, initializer or name; False: none.
    """
    owner = Owner("group_norm", "group_norm", name, "nn.GroupNorm")
    channels = _channels(owner, input, data_layout)
    if channels % owner.count("groups", groups):
        raise ArgumentError(message(f"group_norm(): {channels} channels and groups={groups}", "they must be a multiple"))
    weight = owner.parameter([channels], param_attr, input.dtype, initializer=Constant(1.0))
    bias = owner.parameter([channels], bias_attr, input.dtype, is_bias=True)
    return owner.activated(F.group_norm(input, groups, epsilon, weight, bias, data_layout), act)


def instance_norm(
    input: Any, epsilon: float = 1e-05, param_attr: Any = None, bias_attr: Any = None, name: str | None = None
) -> Any:
    """Each channel of each sample of [N, C, ...] normalised, times a new weight [C], plus a new bias [C].

    Args:
        param_attr, bias_attr: ParamAttr, initializer or name; False in both: neither.

    Raises:
        ArgumentError: only one of them is False.
    """
    owner = Owner("instance_norm", "instance_norm", name, "nn.InstanceNorm2D")
    channels = _channels(owner, input, "NCHW")
    if (param_attr is False) != (bias_attr is False):
        raise ArgumentError(message("instance_norm(): one of param_attr and bias_attr is False", "it must be both or neither"))
    weight = owner.parameter([channels], param_attr, input.dtype, initializer=Constant(1.0))
    bias = owner.parameter([channels], bias_attr, input.dtype, is_bias=True)
    return F.instance_norm(input, weight=weight, bias=bias, eps=epsilon)


def data_norm(
    input: Any,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Any:
    """act((input - mean) * scale) of features [N, C], by counts, sums and sums of squares of everything seen so far.

    Args:
        epsilon: added to each sum of squares.
        param_attr: a dict with the first values ``batch_size``, ``batch_sum`` and ``batch_square`` (10000, 0 and 10000 by default), and with
            ``scale_w`` and ``bias`` under ``enable_scale_and_shift``.
        summary_decay_rate: how much of the summaries stays in each step.
        enable_scale_and_shift: then times a new weight, plus a new bias.
        data_layout, in_place, moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var, sync_stats: accepted for compatibility.
        slot_dim: must be -1.

    Raises:
        ShapeError: the input is not [N, C].
    """
    owner = Owner("data_norm", "data_norm", name, "nn.BatchNorm1D")
    owner.require("input", input, (2,))
    owner.choice("slot_dim", slot_dim, (-1, 0, 1))
    shape = [owner.known("input", input, 1)]
    first = param_attr if isinstance(param_attr, dict) else {}
    starts = [float(first.get(key, value)) for key, value in (("batch_size", 1e4), ("batch_sum", 0.0), ("batch_square", 1e4))]
    summaries = [
        owner.state(shape, f"{owner.name}.{what}", input.dtype, Constant(start))
        for what, start in zip(("batch_size", "batch_sum", "batch_square_sum"), starts, strict=True)
    ]
    made = summarized_norm(input, *summaries, epsilon=epsilon, decay=summary_decay_rate, training=True)
    if enable_scale_and_shift:
        weight = owner.parameter(shape, None, input.dtype, initializer=Constant(float(first.get("scale_w", 1.0))))
        bias = owner.parameter(shape, None, input.dtype, is_bias=True, initializer=Constant(float(first.get("bias", 0.0))))
        made = made * weight + bias
    return owner.activated(made, act)


@recordable("static.nn.data_norm")
def summarized_norm(
    x: Any, size: Any, total: Any, square: Any, epsilon: float = 1e-05, decay: float = 0.9999999, training: bool = True
) -> Any:
    """(x - total / size) * sqrt(size / square); in training the summaries then count x too, in place."""
    mean = (total / size).detach()
    made = (x - mean) * OPS["sqrt"](size / square).detach()
    if training:
        rows = x.detach()
        off = OPS["sum"](OPS["square"](rows - mean), 0)
        for summary, more in (
            (size, OPS["sum"](OPS["ones_like"](rows), 0)),
            (total, OPS["sum"](rows, 0)),
            (square, off + OPS["sum"](OPS["ones_like"](rows), 0) * epsilon),
        ):
            OPS["multiply_"](summary, decay)
            OPS["add_"](summary, more)
    return made


def spectral_norm(weight: Any, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None) -> Any:
    """The weight divided by its largest singular value, as ``power_iters`` iterations from two fixed random vectors find it.

    Args:
        weight: a Variable of at least two axes and known sizes.
        dim: the axis that becomes the matrix's rows: 0, or 1 for transposed convolutions.
        eps: the smallest norm to divide by.

    Source: T. Miyato et al., https://arxiv.org/abs/1802.05957
    """
    owner = Owner("spectral_norm", "spectral_norm", name, "nn.SpectralNorm")
    owner.require("weight", weight)
    if weight.ndim < 2 or not -weight.ndim <= dim < weight.ndim:
        raise ShapeError(message(f"spectral_norm(): weight has shape {list(weight.shape)} and dim={dim}", "dim must be an axis"))
    sizes = [owner.known("weight", weight, k) for k in range(weight.ndim)]
    rows = sizes[dim]
    left, right = (owner.state([n], None, weight.dtype, Normal(0.0, 1.0)) for n in (rows, math.prod(sizes) // rows))
    return spectrally_normalized(weight, left, right, dim, owner.count("power_iters", power_iters), eps, is_kept=False)
