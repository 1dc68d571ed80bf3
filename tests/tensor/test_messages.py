"""What operators say about operands and attributes that they cannot take: by the function's name, in words, with what was received."""

from __future__ import annotations

import re

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import SampanError
from sampan.ops import OPERATORS
from sampan.tensor import OPS

PARTS = 4
CALLED = sorted(
    name for name, d in OPERATORS.items() if d.is_public and d.samples and not any(p.name == "key" for p in d.parameters)
)

#: Texts of Python's and NumPy's own errors, which say nothing about the user's arguments.
PYTHONS_OWN = re.compile(
    r"object has no attribute|NoneType|unsupported operand|not subscriptable|not iterable|has no len|tuple index|cannot unpack|not enough values"
    r"|too many values|unhashable|required positional|not supported between|be interpreted as|_rt\.|operands could not|zip\(\)"
)

WRONG_TENSORS = {
    "None": None,
    "text": "text",
    "complex": paddle.to_tensor(np.array([1 + 2j])),
    "five axes": paddle.ones([1, 2, 1, 2, 3]),
    "a vector": paddle.ones([7]),
    "bools": paddle.to_tensor([[True, False]]),
}
WRONG_ATTRIBUTES = {"None": None, "text": "text", "negative": -7, "large": 99, "half": 1.5, "object": object()}


def _made(sample, seed):
    if hasattr(sample, "make"):
        return paddle.to_tensor(sample.make("float32", seed))
    if isinstance(sample, (list, tuple)) and any(hasattr(s, "make") for s in sample):
        return [_made(s, seed + k) for k, s in enumerate(sample)]
    return sample


def _calls(name):
    """The function, and argument dicts that are right but for one parameter."""
    definition = OPERATORS[name]
    sample = list(definition.samples[0])
    right = dict(sample.pop()) if sample and isinstance(sample[-1], dict) else {}
    right |= {p.name: _made(s, k) for k, (p, s) in enumerate(zip(definition.parameters, sample, strict=False))}
    for parameter in definition.parameters:
        for what, wrong in (WRONG_ATTRIBUTES if parameter.kind == "attr" else WRONG_TENSORS).items():
            yield parameter, what, right | {parameter.name: wrong}


@pytest.mark.parametrize("part", range(PARTS))
def test_refusals_name_the_function_and_what_it_received(part):
    poor = []
    for name in CALLED[part::PARTS]:
        tensors = [p.name for p in OPERATORS[name].parameters if p.kind != "attr"]
        names = {name, *(path.rpartition(".")[2] for path in OPERATORS[name].api)}
        for parameter, what, arguments in _calls(name):
            try:
                OPS[name](**arguments)
            except (SampanError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
                text = str(error)
                is_named = any(re.match(rf"{n}_?\(", text) for n in names)
                is_shown = not tensors or any(re.search(rf"\b{t}\b", text) for t in [*tensors, parameter.name, "index"])
                if not is_named or not is_shown or PYTHONS_OWN.search(text):
                    poor.append(f"{name}, {parameter.name} is {what}: {text}")
    assert not poor, "\n".join(poor)


def test_what_was_received_stands_below_a_text_that_names_no_operand():
    x = paddle.ones([7])
    with pytest.raises(
        ValueError, match=r"softmax\(\): axis 1 .*\n  received: x = float32\[7\], axis = 1\n  at test_messages.py"
    ):
        paddle.nn.functional.softmax(x, 1)
    with pytest.raises(ValueError, match=r"add\(\): shapes .*\n.*\n  received: x = float32\[7\], y = float32\[2, 3\]"):
        x + paddle.ones([2, 3])
    with pytest.raises(ValueError, match=r"concat\(\): axis 1 .*\n  received: x = \[float32\[7\], float32\[2\]\], axis = 1"):
        paddle.concat([x, paddle.ones([2])], 1)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: paddle.linalg.lu_unpack(x[0], paddle.to_tensor([1])), r"lu_unpack\(\): x is \[3\] and y \[1\].*lu\(\) gives"),
        (lambda x: paddle.linalg.lu_unpack(x, x[:, 0]), r"lu_unpack\(\): y is float32; row exchanges are integers"),
        (lambda x: paddle.linalg.lu_solve(x, x, paddle.to_tensor([[1]])), r"lu_solve\(\): lu is \[3, 3\] and pivots \[1, 1\]"),
        (lambda x: paddle.linalg.ormqr(x, x[0], x[:2]), r"ormqr\(\): x is \[3, 3\], tau \[3\] and y \[2, 3\]"),
        (lambda x: paddle.linalg.householder_product(x, paddle.to_tensor(1.0)), r"householder_product\(\): x is .* tau \[\]"),
        (lambda x: paddle.tensordot(x, x, None), r"tensordot\(\): axes is None; it must be a number of axes"),
        (lambda x: paddle.tensordot(x, x, 1.5), r"tensordot\(\): axes is 1.5"),
        (lambda x: paddle.diff(x, prepend=paddle.ones([2])), r"diff\(\): prepend is \[2\] and x \[3, 3\]"),
        (lambda x: paddle.linalg.matrix_norm(x, axis=1), r"matrix_norm\(\): axis is 1; it must be a list"),
        (lambda x: x.narrow(0, 1.5, 1), r"narrow\(\): start is 1.5; it must be an integer"),
        (lambda x: paddle.multigammaln(x, 1.5), r"multigammaln\(\): p is 1.5; it must be an integer"),
        (lambda x: paddle.scale(x, None), r"scale\(\): scale is None"),
        (
            lambda x: paddle.concat(x),
            r"concat\(x, axis=0\): x must be a list or tuple of Tensors, not the tensor float32\[3, 3\]",
        ),
        (lambda x: paddle.einsum(None, x), r"einsum\(\): equation is None; it must be a string"),
        (lambda x: paddle.nn.functional.mse_loss(x, x, reduction=None), r"mse_loss\(\): reduction is None"),
        (lambda x: x.item("a"), r"item\(\): the index is 'a'; it must be an integer"),
        (lambda x: x.item(), r"item\(\): the tensor is float32\[3, 3\]; without an index it must have one element"),
    ],
)
def test_messages_of_single_operators(call, text):
    with pytest.raises((TypeError, ValueError), match=re.compile(text, re.DOTALL)):
        call(paddle.eye(3))


@pytest.mark.parametrize(("name", "default"), [("descending", False), ("stable", False)])
def test_none_for_a_flag_is_its_default(name, default):
    x = paddle.to_tensor([2.0, 1.0])
    assert paddle.sort(x, **{name: None}).tolist() == paddle.sort(x, **{name: default}).tolist()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: paddle.nn.Linear("text", 2), r"Linear\(\): in_features is 'text'; it must be an integer"),
        (lambda: paddle.nn.Linear(-7, 2), r"Linear\(\): in_features is -7; it must be an integer of at least 0"),
        (
            lambda: paddle.nn.Linear(2),
            r"Linear\(\): missing a required argument: 'out_features'; it takes \(in_features, out_features",
        ),
        (
            lambda: paddle.nn.BatchNorm2D("text"),
            r"BatchNorm2D\(\): num_features is 'text'; it must be an integer",
        ),
        (lambda: paddle.nn.LSTM(2, None), r"LSTM\(\): hidden_size is None; it must be an integer"),
        (lambda: paddle.nn.MultiHeadAttention(4, "2"), r"MultiHeadAttention\(\): num_heads is '2'; it must be an integer"),
        (lambda: paddle.nn.LayerList(3), r"LayerList\(\): .*received: sublayers = 3"),
        (lambda: paddle.optimizer.SGD(0.1, parameters=3), r"SGD\(\): .*received: learning_rate = 0.1, parameters = 3"),
        (lambda: paddle.optimizer.lr.LambdaDecay(0.1, 3), r"LambdaDecay.*lr_lambda"),
        (lambda: paddle.nn.ClipGradByValue("text"), r"ClipGradByValue\(\): max is 'text'; it must be a number"),
    ],
)
def test_messages_of_classes_name_the_class_and_the_argument(call, text):
    with pytest.raises((TypeError, ValueError), match=re.compile(text, re.DOTALL)):
        call()


def test_a_layer_of_ones_own_is_explained_where_it_calls_the_frameworks():
    class Mine(paddle.nn.Linear):
        def __init__(self, size):
            super().__init__(size, size)

    with pytest.raises(TypeError, match=r"Linear\(\): in_features is 'text'; it must be an integer"):
        Mine("text")

    class Broken(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.size = [1, 2][len(self.parameters()) + 5]

    with pytest.raises(IndexError, match="list index out of range"):
        Broken()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: x.__setitem__(0, paddle.ones([5])),
            r"tensor\[\.\.\.\] = value: .*received: x = float32\[3, 3\], value = float32\[5\]\n",
        ),
        (lambda x: x.__setitem__(([0, 1], [0, 1]), paddle.ones([5])), r"tensor\[\.\.\.\] = value: .*value = float32\[5\]\n"),
        (lambda x: x.__setitem__(0, "a"), r"the data holds text"),
        (lambda x: x.copy_(paddle.ones([7])), r"copy_\(\): other has shape \[7\] and the tensor \[3, 3\]"),
        (lambda x: x.convert_("text"), r"convert_\(\): 'text' is no dtype"),
        (lambda x: paddle.nn.LSTM(4, 2)(x), r"RNN: inputs|recurrent layer: "),
        (
            lambda x: paddle.nn.LSTM(4, 2)(paddle.ones([2, 3, 5])),
            r"recurrent layer: the input is \[3, 2, 5\] and its weight \[8, 4\]",
        ),
        (lambda x: paddle.nn.LSTMCell(4, 2)(x), r"recurrent cell: the input is \[3, 3\] and its weight \[8, 4\]"),
        (
            lambda x: paddle.amp.GradScaler(init_loss_scaling="a"),
            r"GradScaler\(\): init_loss_scaling is 'a'; it must be a number",
        ),
        (lambda x: paddle.metric.Accuracy().update("a"), r"Accuracy.update\(\): correct is 'a'"),
    ],
)
def test_messages_where_no_operator_is_called_by_name(call, text):
    with pytest.raises((TypeError, ValueError), match=re.compile(text, re.DOTALL)):
        call(paddle.eye(3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        # an operator inside of another
        (lambda x: paddle.nn.functional.silu(x.astype("int64")), TypeError, r"silu\(\) does not take int64; it takes floating"),
        (lambda x: paddle.lcm(x, x), TypeError, r"lcm\(\) does not take float32"),
        (lambda x: paddle.linalg.pinv(x[0]), ValueError, r"pinv\(\): x is \[3\]; it must hold matrices"),
        (lambda x: paddle.linalg.corrcoef(x.reshape([1, 3, 3])), ValueError, r"corrcoef\(\): x is \[1, 3, 3\]"),
        (lambda x: paddle.histogram_bin_edges(x, 4, 5.0, 1.0), ValueError, r"histogram_bin_edges\(\): max \(1.0\) is below min"),
        (lambda x: paddle.full_like(x, x), ValueError, r"full_like\(\): \[3, 3\] has 9 elements and cannot become \[\]"),
        (lambda x: paddle.clip_(x > 0, 0, 1), TypeError, r"^clip_?\(\) does not take bool"),
        # operators that only plain functions call
        (lambda x: paddle.nn.functional.pad(x, [-2, -2, 0, 0]), ValueError, r"^pad\(\): axis 0 of \[3, 3\] cannot be cut"),
        (lambda x: paddle.normal([0.0], 1.0), TypeError, r"^normal\(\): mean must be a Tensor"),
        (lambda x: paddle.nn.functional.scaled_dot_product_attention(x, x, x), ValueError, r"^scaled_dot_product_attention\(\): query"),
        (lambda x: paddle.nn.functional.rrelu(x.astype("complex64")), TypeError, r"^rrelu\(\) does not take complex64"),
        (lambda x: paddle.nn.functional.margin_cross_entropy(x[0], x), ValueError, r"^margin_cross_entropy\(\): "),
        (lambda x: paddle.nn.functional.sequence_mask(x.astype("complex64")), TypeError, r"^sequence_mask\(\) does not take complex64"),
        # Python's and NumPy's errors
        (lambda x: paddle.binomial(x, paddle.ones([2])), ValueError, r"^binomial\(\): shapes \[3, 3\] and \[2\] do not broadcast"),
        (lambda x: paddle.poisson(x.astype("complex64")), TypeError, r"^poisson\(\): the tensor is complex64"),
        (lambda x: paddle.nn.functional.sparse_attention(x, x, x, x, x), ValueError, r"^sparse_attention\(\): .*received: query = float32\[3, 3\]"),
        (lambda x: paddle.nn.functional.fractional_max_pool2d(x.reshape([1, 1, 3, 3]), [1, 2, 3]), ValueError, r"^fractional_max_pool2d\(\): output_size"),
        (lambda x: paddle.nn.utils.clip_grad_norm_(3, 1.0), TypeError, r"^clip_grad_norm_\(\): "),
        (lambda x: paddle.nn.utils.weight_norm(x), TypeError, r"^weight_norm\(\): "),
        (lambda x: paddle.incubate.softmax_mask_fuse_upper_triangle([1.0]), TypeError, r"^softmax_mask_fuse_upper_triangle\(\): x is \[1.0\]"),
        (lambda x: paddle.get_flags(3), TypeError, r"^get_flags\(\)"),
    ],
)  # fmt: skip
def test_messages_begin_with_the_function_that_was_called(call, error, text):
    with pytest.raises(error, match=re.compile(text, re.DOTALL)):
        call(paddle.eye(3))


def test_an_error_inside_of_a_function_of_ones_own_stays_as_it_is():
    def distance(a, b):
        return paddle.concat([a, b[:, :1]], 0).sum(1)

    with pytest.raises(ValueError, match=re.compile(r"^concat\(\): .*in distance", re.DOTALL)):
        paddle.nn.functional.triplet_margin_with_distance_loss(*[paddle.ones([2, 3])] * 3, distance_function=distance)

    def fails(a, b):
        raise KeyError("mine")

    with pytest.raises(KeyError, match=r"^'mine'$"):
        paddle.nn.functional.triplet_margin_with_distance_loss(*[paddle.ones([2, 3])] * 3, distance_function=fails)
