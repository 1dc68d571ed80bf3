"""Rows of losses and metrics."""

from __future__ import annotations

from typing import Any

from ...nn import functional
from ...tensor import OPS
from .rows import row, table, writes


@row("bce_loss(X=input, Label=label)", "bce_loss(input, label)", tensors="input label")
def bce_loss(input: Any, label: Any) -> Any:
    return OPS["binary_cross_entropy"](input, label, None, "none")


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
