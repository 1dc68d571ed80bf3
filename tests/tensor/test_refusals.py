"""What is refused is refused with the function's and the argument's names, what it was and what it must be."""

import importlib
import inspect
import re

import pytest

import sampan as paddle
import sampan.nn.functional as F
from sampan.base.errors import ArgumentError, ArgumentTypeError, DTypeError, SampanError, ShapeError
from sampan.ops import OPERATORS, attributes
from sampan.tensor.explained import explained

X = paddle.ones([2, 4])
IMAGES = paddle.ones([1, 4, 4, 4])

#: call, class, what the message holds
KINDS = {
    "a list for an integer": (lambda: F.pixel_shuffle(IMAGES, [1, 2]), TypeError, r"pixel_shuffle\(\): upscale_factor is \[1, 2\]; it must be an integer"),
    "text for an integer": (lambda: paddle.diagonal(X, "a"), TypeError, r"diagonal\(\): offset is 'a'; it must be an integer"),
    "a fraction for an integer": (lambda: paddle.topk(X, 1.5), TypeError, r"topk\(\): k is 1.5; it must be an integer"),
    "a flag for an integer": (lambda: paddle.tril(X, True), TypeError, r"tril\(\): diagonal is True; it must be an integer"),
    "a list for a number": (lambda: F.softplus(X, [1.0, 2.0]), TypeError, r"softplus\(\): beta is \[1.0, 2.0\]; it must be a number"),
    "text for a number": (lambda: F.hinge_embedding_loss(X, X, "a"), TypeError, r"hinge_embedding_loss\(\): margin is 'a'; it must be a number"),
    "text for a flag": (lambda: paddle.sum(X, keepdim="yes"), TypeError, r"sum\(\): keepdim is 'yes'; it must be True or False"),
    "a number for text": (lambda: F.mse_loss(X, X, 3), TypeError, r"mse_loss\(\): reduction is 3; it must be a string"),
    "a number for a list": (lambda: paddle.transpose(X, 3), TypeError, r"transpose\(\): perm is 3; it must be a list of integers, or two axes to swap"),
    "None in a list": (lambda: paddle.roll(X, [None]), TypeError, r"roll\(\): shifts is \[None\]; it must be an integer or a list"),
    "text in a list": (lambda: paddle.tile(X, ["a"]), TypeError, r"tile\(\): repeat_times is \['a'\]"),
    "a list in a list": (lambda: paddle.unsqueeze(X, [[0]]), TypeError, r"unsqueeze\(\): axis is \[\[0\]\]"),
    "text for a window": (lambda: F.adaptive_avg_pool2d(IMAGES, "sum"), TypeError, r"adaptive_avg_pool2d\(\): output_size is 'sum'"),
    "an equation that is no text": (lambda: paddle.einsum(X, X), TypeError, r"einsum\(\): equation is \[\[1.0, .*; it must be a string"),
    "None in a list of tensors": (lambda: paddle.concat([X, None]), TypeError, r"concat\(\): x\[1\] is None; it takes a Tensor"),
    "an empty list of tensors": (lambda: paddle.einsum("i->i", []), ValueError, r"einsum\(\): operands is an empty list"),
    "an array of text": (lambda: paddle.abs(["a"]), TypeError, r"abs\(.*x must be a Tensor"),
    "an integer beyond 64 bits": (lambda: paddle.add(X, 2**70), ValueError, r"add\(\): y is 1180591620717411303424, which does not fit in 64 bits"),
    "text that cannot be encoded": (lambda: F.mse_loss(X, X, "\udcff"), TypeError, r"mse_loss\(.*reduction must be text"),
    "sizes beyond 64 bits": (lambda: paddle.tile(paddle.ones([3]), 2**62), ValueError, r"tile\(\): the result would have shape"),
    "too few axes: pixel_shuffle": (lambda: F.pixel_shuffle(X, 2), ShapeError, r"pixel_shuffle\(\): x has shape \[2, 4\]; it must be \[N, C, H, W\]"),
    "too few axes, channels last": (lambda: F.pixel_unshuffle(X, 2, "NHWC"), ShapeError, r"pixel_unshuffle\(\): x has shape \[2, 4\]; it must be \[N, H, W, C\]"),
    "too few axes: channel_shuffle": (lambda: F.channel_shuffle(paddle.ones([4]), 2), ShapeError, r"channel_shuffle\(\): x has shape \[4\]"),
    "too few axes: glu": (lambda: F.glu(paddle.to_tensor(1.0)), ShapeError, r"glu\(\): x has shape \[\]"),
    "too few axes: maxout": (lambda: F.maxout(paddle.to_tensor(1.0), 2), ShapeError, r"maxout\(\): x has shape \[\]"),
    "too few axes: group_norm": (lambda: F.group_norm(paddle.ones([4]), 2), ShapeError, r"group_norm\(\): x has shape \[4\]; it must be \[N, C, \.\.\.\]"),
    "too few axes: local_response_norm": (lambda: F.local_response_norm(X, 3), ShapeError, r"local_response_norm\(\): x has shape \[2, 4\]"),
    "too few axes: cross_entropy": (lambda: F.cross_entropy(paddle.to_tensor(1.0), paddle.to_tensor(0)), ShapeError, r"cross_entropy\(\): input has shape \[\]"),
    "too few axes: nll_loss": (lambda: F.nll_loss(paddle.to_tensor(1.0), paddle.to_tensor(0)), ShapeError, r"nll_loss\(\): input has shape \[\]"),
    "too few axes: label_smooth": (lambda: F.label_smooth(paddle.to_tensor(1.0)), ShapeError, r"label_smooth\(\): label has shape \[\]"),
    "too few axes: dice_loss": (lambda: F.dice_loss(paddle.to_tensor(1.0), paddle.to_tensor(0)), ShapeError, r"dice_loss\(\): input is \[\]"),
    "labels of another shape": (lambda: F.nll_loss(X, paddle.to_tensor([0, 1, 2])), ShapeError, r"nll_loss\(\): label is \[3\] and input \[2, 4\]; label must be \[2\]"),
    "weights of another length": (lambda: F.cross_entropy(X, paddle.to_tensor([0, 1]), paddle.ones([3])), ShapeError, r"cross_entropy\(\): weight is \[3\]; there are 4 classes"),
    "slopes of another length": (lambda: F.prelu(X, paddle.ones([3])), ShapeError, r"prelu\(\): weight has 3 elements; it must have 1"),
    "no groups": (lambda: F.channel_shuffle(IMAGES, 3), ShapeError, r"groups=3"),
    "no axes": (lambda: paddle.fft.fftn(X, axes=[]), ShapeError, r"fftn\(\): axes is empty"),
    "a plain function: no tensor": (lambda: F.batch_norm([1.0], X, X), TypeError, r"batch_norm\(\): x is \[1.0\]; it must be a Tensor"),
    "a plain function: no number": (lambda: F.lp_pool2d(IMAGES, [0, 0], 2), TypeError, r"lp_pool2d\(\): norm_type is \[0, 0\]"),
    "a plain function: a tensor of several elements": (lambda: paddle.bernoulli(X, X), TypeError, r"bernoulli\(\): p is float32\[2, 4\]; it must be a number or None"),
    "a method": (lambda: X.resize_("a"), TypeError, r"resize_\(\): shape"),
    "an operator by the name of the user's": (lambda: F.unfold("a", 2), TypeError, r"unfold\(x, kernel_sizes, .*x must be a Tensor"),
    "more parts than elements": (lambda: paddle.chunk(X, 5, 1), ArgumentError, r"chunk\(\): chunks is 5; axis 1 of x of shape \[2, 4\] has 4 elements only"),
    "an axis without channels": (lambda: F.maxout(IMAGES, 2, -2), ArgumentError, r"maxout\(\): axis is -2, of x of shape \[1, 4, 4, 4\]"),
    "channels that do not divide": (lambda: F.maxout(IMAGES, 3), ShapeError, r"maxout\(\): axis 1 of \[1, 4, 4, 4\] is no multiple of groups=3"),
    "no function to differentiate": (lambda: paddle.autograd.vjp(3, X), TypeError, r"vjp\(\): an argument has a type or value.*'int' object is not callable"),
    "no tensor to differentiate at": (lambda: paddle.autograd.jvp(paddle.exp, 3), TypeError, r"jvp\(\): an argument has a type or value(.|\n)*xs = 3"),
    "no tensor to differentiate": (lambda: paddle.autograd.hessian(3, X), TypeError, r"hessian\(\): ys is 3; it must be a Tensor"),
    "no function to minimize": (lambda: paddle.incubate.optimizer.functional.minimize_bfgs(3, X), TypeError, r"minimize_bfgs\(\): an argument has a type or value"),
    "the argument of an operator of the same name": (lambda: paddle.sparse.pow(X.to_sparse_coo(), "a"), TypeError, r"pow\(\): factor is 'a'; it must be a number"),
    "a sparse matrix times what is no tensor": (lambda: paddle.sparse.mv(X.to_sparse_coo(), 3), TypeError, r"mv\(\): vec is 3; it must be a dense vector"),
    "a sparse matrix times a vector of another length": (lambda: paddle.sparse.mv(X.to_sparse_coo(), paddle.ones([3])), ShapeError, r"mv\(\): x is \[2, 4\] and vec \[3\]"),
    "a function of the root": (lambda: paddle.get_device(1.5), TypeError, r"get_device\(\): input is 1.5; it must be a Tensor or None"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_message_names_the_function_the_argument_and_what_it_must_be(kind):
    call, error, text = KINDS[kind]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "name", ["leaky_relu", "softshrink", "hardsigmoid", "hardswish", "softsign", "elu", "gelu", "silu", "mish", "softplus"]
)
def test_an_activation_of_integers_is_never_cut_to_integers(name):
    x = paddle.to_tensor([-2, -1, 0, 1, 2])
    function = getattr(F, name)
    if name in ("hardswish", "softsign"):
        assert function(x).dtype.name == "float32"
        assert function(x).tolist() == function(x.astype("float32")).tolist()
    else:
        with pytest.raises(DTypeError, match=rf"^{name}\(\).*int64"):
            function(x)


def test_one_element_tensors_stand_for_numbers():
    x = paddle.to_tensor([3.0, 1.0, 2.0])
    assert paddle.topk(x, paddle.to_tensor([2]))[0].tolist() == [3.0, 2.0]
    assert F.leaky_relu(-x, paddle.to_tensor(0.5)).tolist() == [-1.5, -0.5, -1.0]


def test_every_checked_attribute_takes_its_own_default():
    for definition in OPERATORS.values():
        for p in definition.parameters:
            if p.check:
                assert attributes.checked(definition.name, p.name, p.check, p.default, p.default) is p.default


def test_a_failure_of_the_function_itself_is_left_alone():
    @explained
    def divide(x: int, y: int) -> float:
        return x / y

    with pytest.raises(ZeroDivisionError):
        divide(1, 0)
    with pytest.raises(ArgumentTypeError, match=r"divide\(\): y is 'a'; it must be an integer"):
        divide(1, "a")
    with pytest.raises(ArgumentTypeError, match="missing a required argument: 'y'"):
        divide(1)


class Stranger:
    """What no function takes."""


@pytest.mark.parametrize(
    "module",
    "nn.functional sparse sparse.nn.functional linalg fft signal compat autograd vision.ops geometric metric incubate.autograd".split(),
)
def test_messages_about_a_first_argument_of_no_kind_begin_with_the_function_that_was_called(module):
    public = importlib.import_module(f"sampan.{module}")
    functions = {name: getattr(public, name) for name in public.__all__}
    wrong = []
    for name, function in functions.items():
        if not callable(function) or inspect.isclass(function):
            continue
        needed = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
        ]
        if not needed:
            continue
        try:
            function(Stranger(), *[X] * (len(needed) - 1))
        except Exception as error:
            if not re.match(rf"({name}|{function.__name__})\b", str(error)):  # of two names, either
                wrong.append(f"{name}: {error!r}")
    assert not wrong, "\n".join(wrong)


def test_errors_that_name_the_argument_already_are_left_alone():
    with pytest.raises(ArgumentError, match=r"dropout\(\): p=2"):
        F.dropout(X, 2)
    with pytest.raises(SampanError, match="outside of a tensor of rank 2"):
        F.dropout(X, 0.5, axis=7)
