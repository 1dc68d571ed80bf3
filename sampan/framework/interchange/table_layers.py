"""Rows of what layers compute: normalisation, dropout, embedding, resizing, padding, recurrent networks."""

from __future__ import annotations

from typing import Any

from ...base.errors import UnsupportedError, message
from ...nn import functional
from ...tensor import OPS
from .projected import ProjectedSteps
from .rows import row, table, writes
from .table_computed import size_of
from .table_windows import layout_of, with_bias


@row(
    "batch_norm(X, Scale=scale, Bias=bias, Mean=mean, Variance=variance) {data_layout=data_format} -> Y, MeanOut, VarianceOut, SavedMean, SavedVariance;"
    "sync_batch_norm(X, Scale=scale, Bias=bias, Mean=mean, Variance=variance) {data_layout=data_format} -> Y, MeanOut, VarianceOut",
    "batch_norm(x, mean, variance, scale, bias);batch_norm_(x, mean, variance, scale, bias)",
    tensors="x mean variance scale bias",
)
def batch_norm(
    x: Any,
    mean: Any,
    variance: Any,
    scale: Any = None,
    bias: Any = None,
    is_test: bool = True,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    data_format: str = "NCHW",
    use_global_stats: bool = False,
    trainable_statistics: bool = False,
) -> Any:
    layout = "NC" if len(x.shape) == 2 else data_format
    training = not is_test or trainable_statistics
    y = functional.batch_norm(
        x,
        mean,
        variance,
        scale,
        bias,
        training=training and not use_global_stats,
        momentum=momentum,
        epsilon=epsilon,
        data_format=layout,
    )
    return y, mean, variance, mean, variance


@writes("batch_norm_infer")
def write_batch_norm(
    emit: Any, x: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, epsilon: float, channel: int
) -> Any:
    if channel not in (1, x.ndim - 1):
        return NotImplemented
    inputs = {
        "X": x,
        "Scale": emit.filled(running_mean, 1.0) if weight is None else weight,
        "Bias": emit.filled(running_mean, 0.0) if bias is None else bias,
        "Mean": running_mean,
        "Variance": running_var,
    }
    attributes = {
        "is_test:b": True,
        "momentum:f": 0.9,
        "epsilon:f": epsilon,
        "data_layout:s": "NCHW" if channel == 1 else "NHWC",
        "use_global_stats:b": True,
        "trainable_statistics:b": False,
    }
    same = {"MeanOut": running_mean, "VarianceOut": running_var}
    return emit("batch_norm", inputs, attributes, ("Y",), spare=("SavedMean", "SavedVariance"), into=same)


@row("layer_norm(X, Scale=scale, Bias=bias) -> Y, Mean, Variance", "layer_norm(x, scale, bias)", tensors="x scale bias")
def layer_norm(x: Any, scale: Any = None, bias: Any = None, epsilon: float = 1e-5, begin_norm_axis: int = 1) -> Any:
    shape = [int(n) for n in x.shape[begin_norm_axis:]]
    scale, bias = (None if v is None else OPS["reshape"](v, shape) for v in (scale, bias))
    return OPS["layer_norm"](x, shape, scale, bias, epsilon)


@writes("layer_norm")
def write_layer_norm(emit: Any, x: Any, normalized_shape: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    count = len(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else 1
    inputs = {"X": x}
    for slot, value in (("Scale", weight), ("Bias", bias)):
        if value is not None:
            inputs[slot] = value if value.ndim == 1 else emit("reshape2", {"X": value}, {"shape:I": [-1]}, spare=("XShape",))
    attributes = {"epsilon:f": epsilon, "begin_norm_axis:i": x.ndim - count}
    return emit("layer_norm", inputs, attributes, ("Y",), spare=("Mean", "Variance"))


@row("group_norm(X, Scale=scale, Bias=bias) {data_layout=data_format} -> Y", "group_norm(x, scale, bias)", tensors="x scale bias")
def group_norm(
    x: Any, scale: Any = None, bias: Any = None, epsilon: float = 1e-5, groups: int = 1, data_format: str = "NCHW"
) -> Any:
    return OPS["group_norm"](x, groups, epsilon, scale, bias, data_format)


@writes("group_norm")
def write_group_norm(emit: Any, x: Any, num_groups: int, epsilon: float, weight: Any, bias: Any, data_format: str) -> Any:
    inputs = {"X": x} | ({} if weight is None else {"Scale": weight}) | ({} if bias is None else {"Bias": bias})
    attributes = {"epsilon:f": epsilon, "groups:i": num_groups, "data_layout:s": "NHWC" if data_format[-1] == "C" else "NCHW"}
    return emit("group_norm", inputs, attributes, ("Y",), spare=("Mean", "Variance"))


@row("instance_norm(X, Scale=scale, Bias=bias) -> Y", "instance_norm(x, scale, bias)", tensors="x scale bias")
def instance_norm(x: Any, scale: Any = None, bias: Any = None, epsilon: float = 1e-5) -> Any:
    return functional.instance_norm(x, None, None, scale, bias, eps=epsilon)


@writes("instance_norm")
def write_instance_norm(emit: Any, x: Any, weight: Any, bias: Any, epsilon: float, channel: int) -> Any:
    if channel != 1:
        return NotImplemented
    inputs = {"X": x} | ({} if weight is None else {"Scale": weight}) | ({} if bias is None else {"Bias": bias})
    return emit("instance_norm", inputs, {"epsilon:f": epsilon}, ("Y",), spare=("SavedMean", "SavedVariance"))


@row("rms_norm(x=x, scale=scale) -> y", "rms_norm(x, scale)", tensors="x scale")
def rms_norm(x: Any, scale: Any = None, normalized_shape: Any = (), epsilon: float = 1e-5) -> Any:
    return OPS["rms_norm"](x, [int(n) for n in normalized_shape], scale, epsilon)


@row("lrn(X)")
def lrn(x: Any, n: int = 5, k: float = 1.0, alpha: float = 1e-4, beta: float = 0.75, data_format: str = "NCHW") -> Any:
    return OPS["local_response_norm"](x, n, alpha * n, beta, k, layout_of(data_format, len(x.shape) - 2))


@row("dropout(X, Seed=seed_tensor) {dropout_prob:f=p, dropout_implementation=mode}", "dropout(x, seed_tensor, p:f)", tensors="x")
def dropout(
    x: Any,
    seed_tensor: Any = None,
    p: Any = 0.5,
    is_test: bool = True,
    mode: str = "downgrade_in_infer",
    seed: int = 0,
    fix_seed: bool = False,
) -> Any:
    how = "downscale_in_infer" if mode == "downgrade_in_infer" else mode
    return functional.dropout(x, float(p), training=not is_test, mode=how)


@row(
    "lookup_table_v2(Ids=x, W=weight);lookup_table(Ids=x, W=weight)",
    "embedding(x, weight);lookup_table(weight, x)",
    tensors="x weight",
    needs_op=True,
)
def embedding(x: Any, weight: Any, padding_idx: int = -1, sparse: bool = False, op: Any = None) -> Any:
    if op.kind == "lookup_table" and x.shape[-1] == 1:
        x = OPS["squeeze"](x, -1)
    return functional.embedding(x, weight, None if padding_idx == -1 else padding_idx)


@writes("embedding")
def write_embedding(emit: Any, x: Any, weight: Any, padding_idx: Any, scale_grad_by_freq: bool) -> Any:
    index = -1 if padding_idx is None else padding_idx if padding_idx >= 0 else padding_idx + weight.shape[0]
    return emit("lookup_table_v2", {"Ids": x, "W": weight}, {"padding_idx:l": index})


@writes("linear", "gate_inputs")
def write_linear(emit: Any, x: Any, weight: Any, bias: Any) -> Any:
    y = emit("matmul_v2", {"X": x, "Y": weight}, {"trans_x:b": False, "trans_y:b": emit.name == "gate_inputs"})
    return with_bias(emit, y, bias, -1)


@row("fc(Input=input, W=w, Bias=bias)", "fc(input, w, bias);gemm_epilogue(input, w, bias)", tensors="input w bias")
def fc(
    input: Any, w: Any, bias: Any = None, in_num_col_dims: int = 1, activation_type: str = "", padding_weights: bool = False
) -> Any:
    lead = list(input.shape[:in_num_col_dims])
    rows = OPS["reshape"](input, [*lead, -1]) if len(input.shape) != in_num_col_dims + 1 else input
    y = OPS["matmul"](rows, w)
    y = y if bias is None else OPS["add"](y, OPS["reshape"](bias, [-1]))
    return OPS[activation_type](y) if activation_type else y


@row("linear_v2(input=input, weight=weight, bias=bias) -> out", "linear_v2(input, weight, bias)", tensors="input weight bias")
def linear_v2(input: Any, weight: Any, bias: Any = None, transpose_weight: bool = False) -> Any:
    y = OPS["matmul"](input, weight, False, transpose_weight)
    return y if bias is None else OPS["add"](y, bias)


table("""
channel_shuffle | shuffle_channel(X) {group:i=groups} | channel_shuffle(x)
channel_shuffle | channel_shuffle(X) {groups:i, data_format:s}
pixel_shuffle | pixel_shuffle(X) {upscale_factor:i, data_format:s}
pixel_unshuffle | pixel_unshuffle(X) {downscale_factor:i, data_format:s}
temporal_shift | temporal_shift(X) {seg_num:i, shift_ratio:f, data_format:s}
grid_sample | grid_sampler(X, Grid=grid) {mode:s, padding_mode:s, align_corners:b} -> Output
unfold_windows | - | unfold(x)
fold | - | fold(x)
""")


@row("unfold(X) -> Y", tensors="x")
def unfold(x: Any, kernel_sizes: Any = (), strides: Any = (), paddings: Any = (), dilations: Any = ()) -> Any:
    return OPS["unfold_windows"](x, list(kernel_sizes), list(strides), list(paddings), list(dilations))


@row("fold(X) -> Y", tensors="x")
def fold(
    x: Any, output_sizes: Any = (), kernel_sizes: Any = (), strides: Any = (), paddings: Any = (), dilations: Any = ()
) -> Any:
    return OPS["fold"](x, list(output_sizes), list(kernel_sizes), list(strides), list(paddings), list(dilations))


def _pair(value: Any) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value, value]


@writes("unfold_windows", "fold")
def write_windows(
    emit: Any, x: Any, kernel_sizes: Any, strides: Any, paddings: Any, dilations: Any, output_sizes: Any = None
) -> Any:
    edges = _pair(paddings)
    attributes = {
        "kernel_sizes:I": _pair(kernel_sizes),
        "strides:I": _pair(strides),
        "paddings:I": edges * 2 if len(edges) == 2 else edges,
        "dilations:I": _pair(dilations),
    }
    if output_sizes is not None:
        attributes["output_sizes:I"] = _pair(output_sizes)
    return emit("unfold" if output_sizes is None else "fold", {"X": x}, attributes, ("Y",))


@row("affine_grid(Theta=input, OutputShape=output_shape:L) -> Output", "affine_grid(input, output_shape:L)", tensors="input")
def affine_grid(input: Any, output_shape: Any = (), align_corners: bool = True) -> Any:
    return functional.affine_grid(input, [int(n) for n in output_shape], align_corners)


_INTERPOLATIONS = ("nearest", "linear", "bilinear", "bicubic", "trilinear")


@row(
    ";".join(
        f"{mode}_interp{version}(X, OutSize=out_size:L, SizeTensor*=size_tensor:L, Scale=scale_tensor:F) {{data_layout=data_format}}"
        for mode in _INTERPOLATIONS
        for version in ("_v2", "")
    ),
    ";".join(f"{mode}_interp(x, out_size:L, size_tensor:L, scale_tensor:F)" for mode in _INTERPOLATIONS),
    tensors="x",
)
def interpolate(
    x: Any,
    out_size: Any = (),
    size_tensor: Any = (),
    scale_tensor: Any = (),
    data_format: str = "NCHW",
    out_d: int = -1,
    out_h: int = -1,
    out_w: int = -1,
    scale: Any = (),
    interp_method: str = "bilinear",
    align_corners: bool = True,
    align_mode: int = 1,
) -> Any:
    rank = len(x.shape) - 2
    layout = layout_of(data_format, rank)
    size = list(size_tensor) or list(out_size)
    factors = list(scale_tensor) or (list(scale) if isinstance(scale, (list, tuple)) else [scale] if scale else [])
    if not size and not factors:
        size = [out_d, out_h, out_w][3 - rank :]
    options: dict[str, Any] = {"size": size} if size else {"scale_factor": factors}
    if interp_method != "nearest":
        options |= {"align_corners": align_corners, "align_mode": align_mode}
    return functional.interpolate(x, mode=interp_method, data_format=layout, **options)


@writes("resize")
def write_resize(emit: Any, x: Any, sizes: Any, ratios: Any, mode: str, align_corners: bool, align_mode: int) -> Any:
    rank = x.ndim - 2
    method = {"nearest": "nearest", "cubic": "bicubic"}.get(mode, {1: "linear", 2: "bilinear", 3: "trilinear"}[rank])
    if (mode == "nearest" and rank != 2) or (mode == "cubic" and rank != 2):
        return NotImplemented
    if not align_corners and any(abs(r - n / m) > 1e-6 * r for r, n, m in zip(ratios, x.shape[2:], sizes, strict=True)):
        return NotImplemented
    named = dict(zip(("out_d:i", "out_h:i", "out_w:i"), [*[-1] * (3 - rank), *sizes], strict=True))
    attributes = {"data_layout:s": "NCHW" if rank < 3 else "NCDHW", **named, "scale:F": [], "interp_method:s": method}
    return emit(f"{method}_interp_v2", {"X": x}, {**attributes, "align_corners:b": align_corners, "align_mode:i": align_mode})


@row("pad3d(X, Paddings=paddings:L) {value=pad_value}", "pad3d(x, paddings:L)", tensors="x")
def pad3d(x: Any, paddings: Any = (), mode: str = "constant", pad_value: float = 0.0, data_format: str = "NCDHW") -> Any:
    widths = [int(n) for n in paddings]
    low, high = [0] * 5, [0] * 5
    axes = (3, 2, 1) if data_format == "NDHWC" else (4, 3, 2)
    for k, axis in enumerate(axes):
        low[axis], high[axis] = widths[2 * k], widths[2 * k + 1]
    return OPS["pad_axes"](x, tuple(low), tuple(high), mode, pad_value)


@row("pad(X)", "pad(x, pad_value:f)", tensors="x")
def pad(x: Any, pad_value: float = 0.0, paddings: Any = ()) -> Any:
    widths = [int(n) for n in paddings]
    return OPS["pad_axes"](x, tuple(widths[::2]), tuple(widths[1::2]), "constant", float(pad_value))


@row("pad2d(X)")
def pad2d(x: Any, paddings: Any = (), mode: str = "constant", pad_value: float = 0.0, data_format: str = "NCHW") -> Any:
    top, bottom, left, right = (int(n) for n in paddings)
    return functional.pad(x, [left, right, top, bottom], "replicate" if mode == "edge" else mode, pad_value, data_format)


@writes("pad_axes")
def write_pad(emit: Any, x: Any, low: Any, high: Any, mode: str, value: Any) -> Any:
    number = emit.number(value)
    if mode == "constant" and number is not None:
        return emit(
            "pad", {"X": x}, {"paddings:I": [n for pair in zip(low, high, strict=True) for n in pair], "pad_value:f": number}
        )
    extra = 5 - x.ndim
    if number is None or extra < 0 or any([*low[:2], *high[:2]]):
        return NotImplemented
    if extra:
        x = emit("unsqueeze2", {"X": x}, {"axes:I": [2 + k for k in range(extra)]}, spare=("XShape",))
    widths = [n for k in range(len(low) - 1, 1, -1) for n in (low[k], high[k])] + [0, 0] * extra
    y = emit("pad3d", {"X": x}, {"paddings:I": widths, "mode:s": mode, "value:f": number, "data_format:s": "NCDHW"})
    return emit("squeeze2", {"X": y}, {"axes:I": [2 + k for k in range(extra)]}, spare=("XShape",)) if extra else y


@row("sequence_mask(X, MaxLenTensor=max_len:i) {maxlen=max_len, out_dtype:t} -> Y", "sequence_mask(x, max_len:i)", tensors="x")
def sequence_mask(x: Any, max_len: int = -1, out_dtype: Any = "int64") -> Any:
    return functional.sequence_mask(x, None if max_len < 0 else int(max_len), out_dtype)


_RNN_KINDS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "tanh", "RNN_RELU": "relu"}


@row(
    "rnn(Input=x, PreState*=pre_state, WeightList*=weight_list, SequenceLength=sequence_length) -> Out, DropoutState, State",
    "rnn(x, pre_state*, weight_list*, sequence_length, dropout_state_in)",
    tensors="x sequence_length dropout_state_in",
    lists="pre_state weight_list",
)
def rnn(
    x: Any,
    pre_state: Any = (),
    weight_list: Any = (),
    sequence_length: Any = None,
    dropout_state_in: Any = None,
    dropout_prob: float = 0.0,
    is_bidirec: bool = False,
    input_size: int = 0,
    hidden_size: int = 0,
    num_layers: int = 1,
    mode: str = "LSTM",
    seed: int = 0,
    is_test: bool = True,
) -> Any:
    if mode not in _RNN_KINDS:
        raise UnsupportedError(message(f"rnn: mode={mode!r}", f"it must be one of {', '.join(_RNN_KINDS)}"))
    directions = 2 if is_bidirec else 1
    weights, biases = weight_list[: len(weight_list) // 2], weight_list[len(weight_list) // 2 :]
    starts = [OPS["unbind"](state, 0) for state in pre_state]
    outputs, finals = x, []
    for layer in range(num_layers):
        if layer and dropout_prob and not is_test:
            outputs = functional.dropout(outputs, dropout_prob)
        parts = []
        for direction in range(directions):
            k = layer * directions + direction
            pieces = (*weights[2 * k : 2 * k + 2], *biases[2 * k : 2 * k + 2])
            out, state = _swept(_RNN_KINDS[mode], outputs, [s[k] for s in starts], pieces, sequence_length, direction == 1)
            parts.append(out)
            finals.append(state)
        outputs = parts[0] if directions == 1 else OPS["concat"](parts, -1)
    return outputs, None, [OPS["stack"](list(parts), 0) for parts in zip(*finals, strict=True)]


def _swept(kind: str, x: Any, states: list[Any], parameters: Any, lengths: Any, is_reverse: bool) -> tuple[Any, list[Any]]:
    """(outputs [T, N, H], final states) of one layer in one direction."""
    h, c = states if kind == "lstm" else (states[0], None)
    found = OPS["recurrent_layer"](x, h, c, *parameters, None, lengths, kind, is_reverse)
    all_states = list(found) if kind == "lstm" else [found]
    outputs = all_states[0][:-1] if is_reverse else all_states[0][1:]
    if lengths is not None:
        outputs = OPS["steps_within"](outputs, lengths)
    return outputs, [s[0 if is_reverse else -1] for s in all_states]


def _inside(emit: Any, x: Any, lengths: Any, dtype: str) -> Any:
    """[T, N, 1 ...]: 1 at the steps of x [T, N, ...] within the lengths, 0 beyond."""
    limits = {"X": emit.of(lengths), "MaxLenTensor": size_of(emit, x, 0)}
    rows = emit("sequence_mask", limits, {"maxlen:i": -1, "out_dtype:t": dtype}, ("Y",), dtype=dtype)
    columns = emit("transpose2", {"X": rows}, {"axis:I": [1, 0]}, spare=("XShape",))
    axes = list(range(2, x.ndim))
    return emit("unsqueeze2", {"X": columns}, {"axes:I": axes}, spare=("XShape",)) if axes else columns


def _kept(emit: Any, x: Any, lengths: Any, state: Any) -> Any:
    """[T, N, H]: the state [1, N, H] at steps beyond the lengths, zeros before."""
    inside = _inside(emit, x, lengths, state.dtype)
    beyond = emit("scale", {"X": inside}, {"scale:f": -1.0, "bias:f": 1.0, "bias_after_scale:b": True})
    return emit("elementwise_mul", {"X": beyond, "Y": state}, {"axis:i": -1})


@writes("steps_within")
def write_steps_within(emit: Any, x: Any, lengths: Any) -> Any:
    inside = _inside(emit, x, lengths, "float32")
    whole = emit(
        "elementwise_add",
        {"X": emit("fill_any_like", {"X": x}, {"value:f": 0.0, "dtype:t": "float32"}, dtype="float32"), "Y": inside},
        {"axis:i": -1},
    )
    return emit("where", {"Condition": emit.cast(whole, "bool"), "X": x, "Y": emit.filled(x, 0.0)}, {}, dtype=x.dtype)


@writes("recurrent_layer")
def write_recurrent_layer(
    emit: Any,
    x: Any,
    h: Any,
    c: Any,
    weight_ih: Any,
    weight_hh: Any,
    bias_ih: Any,
    bias_hh: Any,
    weight_ho: Any,
    lengths: Any,
    kind: str,
    reverse: bool,
) -> Any:
    """The format gives c after the last step only: the steps before it, which layers do not read, are NaN."""
    if weight_ho is not None and (lengths is not None or x.shape[0] < 0):
        return NotImplemented
    if weight_ho is not None:
        given = [b for b in (bias_ih, bias_hh) if b is not None]
        return ProjectedSteps(emit, weight_hh, weight_ho).write(x, h, c, weight_ih, given, reverse)
    width = weight_hh.shape[1]
    is_doubled = reverse and lengths is not None  # only its two-way form goes backwards from each instance's own end
    x = emit("flip", {"X": x}, {"axis:I": [0]}, shape=x.shape) if reverse and not is_doubled else x
    biases = [emit.constant(0.0, weight_hh.dtype, [weight_hh.shape[0]]) if b is None else b for b in (bias_ih, bias_hh)]
    starts = [emit("unsqueeze2", {"X": s}, {"axes:I": [0]}, spare=("XShape",)) for s in ((h, c) if kind == "lstm" else (h,))]
    pieces = [weight_ih, weight_hh] * (1 + is_doubled) + biases * (1 + is_doubled)
    inputs = {
        "Input": x,
        "PreState": [emit("concat", {"X": [s, s]}, {"axis:i": 0}) for s in starts] if is_doubled else starts,
        "WeightList": pieces,
    }
    if lengths is not None:
        inputs["SequenceLength"] = emit.cast(emit.of(lengths), "int32")
    outputs, finals = emit.recurrent(
        inputs,
        {
            "mode:s": {ours: theirs for theirs, ours in _RNN_KINDS.items()}[kind],
            "is_bidirec:b": is_doubled,
            "input_size:i": weight_ih.shape[1],
            "hidden_size:i": width,
            "num_layers:i": 1,
            "dropout_prob:f": 0.0,
            "seed:i": 0,
            "is_test:b": True,
        },
    )
    if is_doubled:

        def last(value: Any, axis: int, start: int, end: int) -> Any:
            picked = {"axes:I": [axis], "starts:I": [start], "ends:I": [end], "infer_flags:I": [1], "decrease_axis:I": []}
            return emit("slice", {"Input": value}, picked)

        outputs, finals = last(outputs, 2, width, 2 * width), [last(s, 0, 1, 2) for s in finals]
    elif reverse:
        outputs = emit("flip", {"X": outputs}, {"axis:I": [0]})
    if lengths is not None:  # the operation gives zeros beyond an instance's length, where its state stays as it is
        outputs = emit(
            "elementwise_add", {"X": outputs, "Y": _kept(emit, x, lengths, starts[0] if reverse else finals[0])}, {"axis:i": -1}
        )

    def joined(first: Any, second: Any) -> Any:
        return emit("concat", {"X": [second, first] if reverse else [first, second]}, {"axis:i": 0})

    all_h = joined(starts[0], outputs)
    if kind != "lstm":
        return all_h
    unread = emit("scale", {"X": outputs}, {"scale:f": 0.0, "bias:f": float("nan"), "bias_after_scale:b": True})
    return all_h, joined(unread, finals[1])


@row(
    "flash_attn(q=q, k=k, v=v, fixed_seed_offset=fixed_seed_offset, attn_mask=attn_mask) -> out",
    "flash_attn(q, k, v, fixed_seed_offset, attn_mask);memory_efficient_attention(q, k, v, attn_mask)",
    tensors="q k v fixed_seed_offset attn_mask",
)
def flash_attn(
    q: Any,
    k: Any,
    v: Any,
    fixed_seed_offset: Any = None,
    attn_mask: Any = None,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    is_test: bool = True,
    rng_name: str = "",
) -> Any:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask, 0.0 if is_test else dropout, causal, not is_test)
