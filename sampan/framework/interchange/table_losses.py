"""Rows of losses and metrics."""

from __future__ import annotations

from typing import Any

from ...nn import functional
from ...tensor import OPS
from .rows import row, table, writes


@row("bce_loss(X=input, Label=label)", "bce_loss(input, label)", tensors="input label")
def bce_loss(input: Any, label: Any) -> Any:
    return OPS["binary_cross_entropy"](input, label, None, "none")


def _reduced(emit: Any, loss: Any, reduction: str, rank: int) -> Any:
    """The loss's mean or sum, or the loss itself."""
    if reduction == "none":
        return loss
    kind = "reduce_mean" if reduction == "mean" else "reduce_sum"
    return emit(kind, {"X": loss}, {"dim:I": list(range(rank)) or [0], "keep_dim:b": False, "reduce_all:b": True})


@writes("mse_loss", "l1_loss", "square_error_cost")
def write_difference_loss(emit: Any, input: Any, label: Any, reduction: str = "none") -> Any:
    input, label = emit.promoted(input, label)
    difference = emit("elementwise_sub", {"X": input, "Y": label}, {"axis:i": -1})
    loss = emit("abs" if emit.name == "l1_loss" else "square", {"X": difference}, {})
    return _reduced(emit, loss, reduction, max(input.ndim, label.ndim))


@writes("binary_cross_entropy")
def write_binary_cross_entropy(emit: Any, input: Any, label: Any, weight: Any, reduction: str) -> Any:
    loss = emit("bce_loss", {"X": input, "Label": label}, {})
    if weight is not None:
        loss = emit("elementwise_mul", {"X": loss, "Y": weight}, {"axis:i": -1})
    return _reduced(emit, loss, reduction, input.ndim)


@writes("binary_cross_entropy_with_logits")
def write_binary_cross_entropy_with_logits(
    emit: Any, logit: Any, label: Any, weight: Any, reduction: str, pos_weight: Any
) -> Any:
    if pos_weight is not None:
        return NotImplemented
    attributes = {"normalize:b": False, "ignore_index:i": -100}
    loss = emit("sigmoid_cross_entropy_with_logits", {"X": logit, "Label": emit.cast(label, logit.dtype)}, attributes)
    if weight is not None:
        loss = emit("elementwise_mul", {"X": loss, "Y": weight}, {"axis:i": -1})
    return _reduced(emit, loss, reduction, logit.ndim)


@writes("cross_entropy")
def write_cross_entropy(
    emit: Any,
    input: Any,
    label: Any,
    weight: Any,
    ignore_index: int,
    reduction: str,
    soft_label: bool,
    axis: int,
    use_softmax: bool,
    label_smoothing: float,
) -> Any:
    if weight is not None or label_smoothing or (not soft_label and ignore_index >= 0):
        return NotImplemented
    is_short = label.ndim < input.ndim
    targets = emit("unsqueeze2", {"X": label}, {"axes:I": [axis]}, spare=("XShape",)) if is_short else label
    attributes = {
        "soft_label:b": soft_label,
        "use_softmax:b": use_softmax,
        "numeric_stable_mode:b": True,
        "ignore_index:i": ignore_index,
        "axis:i": axis,
    }
    loss = emit("softmax_with_cross_entropy", {"Logits": input, "Label": targets}, attributes, ("Loss",), spare=("Softmax",))
    if reduction == "mean" and not soft_label:  # over the labels that count
        mark = emit.constant(ignore_index, targets.dtype, [1])
        valid = emit.cast(emit("not_equal", {"X": targets, "Y": mark}, {"axis:i": -1}, dtype="bool"), input.dtype)
        sums = [_reduced(emit, v, "sum", input.ndim) for v in (loss, valid)]
        count = emit("elementwise_max", {"X": sums[1], "Y": emit.constant(1, input.dtype, [])}, {"axis:i": -1})
        return emit("elementwise_div", {"X": sums[0], "Y": count}, {"axis:i": -1})
    if reduction != "none":
        return _reduced(emit, loss, reduction, input.ndim)
    wanted = emit.result_rank()
    return emit("squeeze2", {"X": loss}, {"axes:I": [axis]}, spare=("XShape",)) if wanted < input.ndim else loss


@row("kldiv_loss(X=x, Target=label) -> Loss", "kldiv_loss(x, label)", tensors="x label")
def kldiv_loss(x: Any, label: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    return OPS["kl_div"](x, label, reduction, log_target)


@writes("kl_div")
def write_kl_div(emit: Any, input: Any, label: Any, reduction: str, log_target: bool) -> Any:
    return emit("kldiv_loss", {"X": input, "Target": label}, {"reduction:s": reduction, "log_target:b": log_target}, ("Loss",))


table("""
log_loss | log_loss(Predicted=input, Labels=label) {epsilon:f} -> Loss | log_loss(input, label)
""")


@row("huber_loss(X=input, Y=label) -> Out, Residual", "huber_loss(input, label)", tensors="input label")
def huber_loss(input: Any, label: Any, delta: float = 1.0) -> Any:
    return OPS["smooth_l1_loss"](input, label, "none", delta), OPS["subtract"](label, input)


@row(
    "nll_loss(X=input, Label=label, Weight=weight) -> Out, Total_weight",
    "nll_loss(input, label, weight)",
    tensors="input label weight",
)
def nll_loss(input: Any, label: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Any:
    return OPS["nll_loss"](input, label, weight, ignore_index, reduction)


@writes("nll_loss")
def write_nll_loss(emit: Any, input: Any, label: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    if input.ndim not in (2, 4):
        return NotImplemented
    inputs = {"X": input, "Label": label} | ({} if weight is None else {"Weight": weight})
    return emit("nll_loss", inputs, {"ignore_index:l": ignore_index, "reduction:s": reduction}, ("Out",), spare=("Total_weight",))


@row(
    "sigmoid_cross_entropy_with_logits(X=x, Label=label, pos_weight=pos_weight)",
    "sigmoid_cross_entropy_with_logits(x, label, pos_weight)",
    tensors="x label pos_weight",
)
def sigmoid_cross_entropy_with_logits(
    x: Any, label: Any, pos_weight: Any = None, normalize: bool = False, ignore_index: int = -100
) -> Any:
    loss = OPS["binary_cross_entropy_with_logits"](x, label, None, "none", pos_weight)
    counts = OPS["cast"](OPS["not_equal"](label, ignore_index), x.dtype)
    loss = OPS["multiply"](loss, counts)
    if not normalize:
        return loss
    return OPS["divide"](loss, OPS["maximum"](OPS["sum"](counts), 1.0))


@row(
    "softmax_with_cross_entropy(Logits=logits, Label=label) -> Softmax, Loss",
    "cross_entropy_with_softmax(logits, label)",
    tensors="logits label",
)
def cross_entropy_with_softmax(
    logits: Any,
    label: Any,
    soft_label: bool = False,
    use_softmax: bool = True,
    numeric_stable_mode: bool = True,
    ignore_index: int = -100,
    axis: int = -1,
) -> Any:
    probabilities = OPS["softmax"](logits, axis) if use_softmax else logits
    loss = OPS["cross_entropy"](logits, label, None, ignore_index, "none", soft_label, axis, use_softmax)
    if len(loss.shape) < len(logits.shape):
        loss = OPS["unsqueeze"](loss, axis)
    return probabilities, loss


@writes("softmax_with_cross_entropy")
def write_softmax_with_cross_entropy(
    emit: Any,
    logits: Any,
    label: Any,
    soft_label: bool,
    ignore_index: int,
    numeric_stable_mode: bool,
    return_softmax: bool,
    axis: int,
) -> Any:
    attributes = {
        "soft_label:b": soft_label,
        "use_softmax:b": True,
        "numeric_stable_mode:b": True,
        "ignore_index:i": ignore_index,
        "axis:i": axis,
    }
    results = ("Loss", "Softmax") if return_softmax else ("Loss",)
    return emit(
        "softmax_with_cross_entropy",
        {"Logits": logits, "Label": label},
        attributes,
        results,
        spare=() if return_softmax else ("Softmax",),
    )


@row("cross_entropy(X, Label=label) -> Y")
def cross_entropy(x: Any, label: Any, soft_label: bool = False, ignore_index: int = -100) -> Any:
    loss = OPS["cross_entropy"](x, label, None, ignore_index, "none", soft_label, -1, False)
    return OPS["unsqueeze"](loss, -1) if len(loss.shape) < len(x.shape) else loss


@row(
    "hierarchical_sigmoid(X=x, W=w, Label=label, PathTable=path, PathCode=code, Bias=bias)",
    "hsigmoid_loss(x, label, w, bias, path, code)",
    tensors="x w label bias path code",
)
def hsigmoid_loss(
    x: Any,
    label: Any,
    w: Any,
    bias: Any = None,
    path: Any = None,
    code: Any = None,
    num_classes: int = 2,
    is_sparse: bool = False,
) -> Any:
    return OPS["hsigmoid_loss"](x, label, num_classes, w, bias, path, code)


@row(
    "warpctc(Logits=logits, Label=label, LogitsLength=logits_length, LabelLength=labels_length) -> Loss",
    "warpctc(logits, label, logits_length, labels_length)",
)
def warpctc(logits: Any, label: Any, logits_length: Any, labels_length: Any, blank: int = 0, norm_by_times: bool = False) -> Any:
    loss = OPS["ctc_loss"](logits, label, logits_length, labels_length, blank, "none", norm_by_times)
    return OPS["unsqueeze"](loss, -1)


@row("squared_error(X, Y)", "square_error_cost(x, y)", tensors="x y")
def square_error_cost(x: Any, y: Any) -> Any:
    return OPS["square_error_cost"](x, y)


@row(
    "margin_cross_entropy(Logits=logits, Label=label) -> Softmax, Loss",
    "margin_cross_entropy(logits, label)",
    tensors="logits label",
)
def margin_cross_entropy(
    logits: Any,
    label: Any,
    return_softmax: bool = False,
    ring_id: int = 0,
    rank: int = 0,
    nranks: int = 1,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
) -> Any:
    loss, probabilities = functional.margin_cross_entropy(logits, label, margin1, margin2, margin3, scale, None, True, None)
    return probabilities, loss


@row(
    "accuracy(Out=x, Indices=indices, Label=label) -> Accuracy, Correct, Total",
    "accuracy(x, indices, label)",
    tensors="x indices label",
)
def accuracy(x: Any, indices: Any, label: Any) -> Any:
    hits = OPS["any"](OPS["equal"](indices, OPS["reshape"](label, [-1, 1])), -1)
    correct = OPS["sum"](OPS["cast"](hits, "int32"))
    total = OPS["numel"](hits)
    share = OPS["divide"](OPS["cast"](correct, "float32"), OPS["cast"](total, "float32"))
    return share, OPS["cast"](correct, "int32"), OPS["cast"](total, "int32")
