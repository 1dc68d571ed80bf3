"""What classes refuse when they are made: every parameter that declares a kind refuses what is not of it, by its own name and value."""

from __future__ import annotations

import inspect
import math
import re

import pytest

import sampan as paddle
from sampan.base.errors import ArgumentError, ArgumentTypeError
from sampan.base.kinds import KINDS
from sampan.tensor.explained import Explained, _checks

nn, F, initializer = paddle.nn, paddle.nn.functional, paddle.nn.initializer

#: Values for parameters without a default, by their names.
REQUIRED = {
    "in_channels": 4, "out_channels": 4, "kernel_size": 3, "kernel_sizes": 2, "output_sizes": [4, 4], "output_size": 2, "num_features": 4, "num_channels": 4,
    "num_groups": 2, "normalized_shape": 4, "size": 3, "weight_shape": [4, 3], "in_features": 4, "out_features": 3, "in1_features": 4, "in2_features": 3,
    "num_embeddings": 7, "embedding_dim": 3, "groups": 2, "upscale_factor": 2, "downscale_factor": 2, "axis": 1, "shape": [2, 2], "input_size": 4,
    "hidden_size": 3, "embed_dim": 4, "num_heads": 2, "d_model": 4, "nhead": 2, "dim_feedforward": 8, "padding": 1, "norm_type": 2.0, "feature_size": 4,
    "num_classes": 5, "n_classes": 10, "cutoffs": [3, 6], "value": 0.0, "clip_norm": 1.0, "max": 1.0, "num_layers": 2, "learning_rate": 0.1,
    "encoder_layer": nn.TransformerEncoderLayer(4, 2, 8), "decoder_layer": nn.TransformerDecoderLayer(4, 2, 8), "cell": nn.GRUCell(4, 4),
    "start_token": 0, "end_token": 1, "beam_size": 2, "parameters": [paddle.ones([2])],
}  # fmt: skip
WRONG = [-1, 0, 1, 1.5, -0.5, math.nan, math.inf, "no such word", [], [1, -1], [0, 0], object()]


def _classes():
    for module in (nn, initializer, paddle.optimizer, paddle.amp, paddle.metric):
        for name in sorted(module.__all__):
            made = getattr(module, name)
            if inspect.isclass(made) and issubclass(made, Explained) and made.__init__ is not object.__init__:
                yield made


def _ranged():
    """(class, check) of every parameter whose kind does not take all values of its type."""
    found = []
    for made in dict.fromkeys(_classes()):
        for check in _checks(made.__init__):
            if any(k.is_allowed for k in check.kinds):
                found.append((made, check))
    return found


RANGED = _ranged()


def _arguments(made):
    parameters = list(inspect.signature(made.__init__).parameters.values())[1:]
    given = {p.name: REQUIRED[p.name] for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    return given | ({"parameters": REQUIRED["parameters"]} if issubclass(made, paddle.optimizer.Optimizer) else {})


def test_the_declared_parameters_are_most_of_those_there_are():
    assert len(RANGED) > 250
    assert {"Conv2D", "MaxPool3D", "BatchNorm1D", "Dropout", "LSTM", "Transformer", "CTCLoss", "LBFGS", "Accuracy"} <= {
        made.__name__ for made, _ in RANGED
    }


@pytest.mark.parametrize(("made", "check"), RANGED, ids=[f"{made.__name__}.{check.name}" for made, check in RANGED])
def test_what_is_not_of_the_kind_is_refused_by_class_name_and_value(made, check):
    arguments, refused = _arguments(made), 0
    for wrong in WRONG:
        if any(k.fits(wrong) for k in check.kinds) or wrong is check.default:
            continue
        has_type = any(k.is_type(wrong) for k in check.kinds)
        wanted = re.escape(f"{made.__name__}(): {check.name} is ") + r".*; it must be "
        with pytest.raises(ArgumentError if has_type else ArgumentTypeError, match=wanted):
            made(**arguments | {check.name: wrong})
        refused += 1
    assert refused > 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: nn.Dropout(p=1.5), r"Dropout\(\): p is 1.5; it must be a number in \[0, 1\]"),
        (lambda: nn.Dropout(p=math.nan), r"Dropout\(\): p is nan"),
        (lambda: nn.Conv2D(4, 4, 3, stride=0), r"Conv2D\(\): stride is 0; it must be an integer of at least 1"),
        (lambda: nn.Conv2D(4, 4, [3, -1]), r"Conv2D\(\): kernel_size is \[3, -1\]"),
        (lambda: nn.Conv2D(4, 4, 3, groups=0), r"Conv2D\(\): groups is 0"),
        (lambda: nn.Conv2D(4, 4, 3, padding="sane"), r"Conv2D\(\): padding is 'sane'; .*'same' or 'valid'"),
        (lambda: nn.Conv1D(4, 4, 3, data_format="NCHW"), r"Conv1D\(\): data_format is 'NCHW'; it must be 'NCL' or 'NLC'"),
        (lambda: nn.Conv3DTranspose(4, 4, 3, dilation=0), r"Conv3DTranspose\(\): dilation is 0"),
        (lambda: nn.BatchNorm2D(4, momentum=2.0), r"BatchNorm2D\(\): momentum is 2.0"),
        (lambda: nn.LayerNorm(4, epsilon=-1e-5), r"LayerNorm\(\): epsilon is -1e-05; it must be a number of at least 0"),
        (lambda: nn.LSTM(4, 3, num_layers=0), r"LSTM\(\): num_layers is 0"),
        (lambda: nn.GRU(4, 3, direction="backward"), r"GRU\(\): direction is 'backward'; it must be 'forward', 'bidirect'"),
        (lambda: nn.Embedding(0, 3), r"Embedding\(\): num_embeddings is 0"),
        (lambda: nn.Linear(4, 2.5), r"Linear\(\): out_features is 2.5; it must be an integer of at least 0"),
        (lambda: nn.MSELoss("average"), r"MSELoss\(\): reduction is 'average'; it must be 'none', 'mean' or 'sum'"),
        (lambda: nn.CosineEmbeddingLoss(margin=2), r"CosineEmbeddingLoss\(\): margin is 2; it must be a number in \[-1, 1\]"),
        (lambda: nn.PixelShuffle(2, "NCL"), r"PixelShuffle\(\): data_format is 'NCL'"),
        (lambda: initializer.Normal(0.0, -1.0), r"Normal\(\): std is -1.0"),
        (lambda: initializer.Uniform(math.nan, 1.0), r"Uniform\(\): low is nan; it must be a finite number"),
        (lambda: paddle.optimizer.Momentum(0.1, math.nan, [paddle.ones([1])]), r"Momentum\(\): momentum is nan"),
        (lambda: paddle.optimizer.Adam(math.nan, parameters=[paddle.ones([1])]), r"Adam\(\): the learning rate is nan"),
        (lambda: paddle.optimizer.Adam(0.1, 1.0, parameters=[paddle.ones([1])]), r"Adam\(\): beta1=1.0; it must be in \[0, 1\)"),
        (lambda: paddle.optimizer.SGD(0.1, [paddle.ones([1])], math.nan), r"SGD\(\): weight_decay is nan"),
        (lambda: paddle.optimizer.NAdam(-0.1, parameters=[paddle.ones([1])]), r"NAdam\(\): learning_rate=-0.1"),
        (lambda: paddle.optimizer.lr.LinearWarmup(math.inf, 5, 0.0, 0.1), r"LinearWarmup: learning_rate is inf"),
        (lambda: paddle.optimizer.lr.LinearWarmup(0.1, 0, 0.0, 0.1), r"LinearWarmup: warmup_steps is 0; it must be at least 1"),
        (lambda: nn.Maxout(2, axis=2), r"Maxout\(\): axis is 2; it must be 1, 3 or -1"),
        (lambda: nn.RReLU(0.5, 0.1), r"RReLU\(\): lower=0.5, upper=0.1"),
        (lambda: nn.Upsample([4, 4], mode="cubic"), r"Upsample\(\): mode is 'cubic'; it must be one of nearest, "),
        (lambda: nn.Upsample(), r"Upsample\(\): size=None, scale_factor=None; exactly one"),
        (lambda: nn.Upsample([4, 4], 2), r"Upsample\(\): size=\[4, 4\], scale_factor=2; exactly one"),
        (lambda: nn.Upsample([4, 4], align_corners=True), r"Upsample\(\): align_corners=True with mode='nearest'"),
        (lambda: nn.Upsample([4, 4], mode="bilinear", data_format="NWC"), r"Upsample\(\): data_format='NWC' .*NCHW, NHWC"),
        (lambda: nn.UpsamplingBilinear2D(), r"UpsamplingBilinear2D\(\): size=None, scale_factor=None"),
        (lambda: paddle.regularizer.L2Decay(math.inf), r"L2Decay: coeff is inf"),
        (lambda: paddle.amp.GradScaler(init_loss_scaling=0.0), r"GradScaler\(\): init_loss_scaling is 0.0"),
        (lambda: paddle.create_parameter([2, 2.5]), r"create_parameter\(\): shape is \[2, 2.5\]; it must be a list of integers"),
    ],
)
def test_senseless_settings_are_refused_when_the_object_is_made(call, text):
    with pytest.raises((ArgumentError, ArgumentTypeError), match=text):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.Linear(4, 0),
        lambda: nn.Dropout(1),
        lambda: nn.Dropout(paddle.to_tensor(0.25)),
        lambda: nn.Conv2D(paddle.to_tensor(4), 4, [paddle.to_tensor(3), 3], padding=[[0, 0], [0, 0], [1, 2], [0, 1]]),
        lambda: nn.Conv2D(4, 4, 3, padding="Same"),
        lambda: nn.AdaptiveAvgPool2D([None, 3]),
        lambda: nn.Transformer(4, 2, 0, 0, 8),
        lambda: nn.Pad2D([-1, 0, 0, -1]),
        lambda: nn.KLDivLoss("batchmean"),
        lambda: nn.TripletMarginWithDistanceLoss(margin=0.0),
        lambda: nn.ClipGradByNorm(math.inf),
        lambda: initializer.Constant(math.nan),
        lambda: paddle.optimizer.SGD(-0.1, [paddle.ones([1])]),
        lambda: paddle.optimizer.Momentum(0.1, 1.5, [paddle.ones([1])]),
    ],
)
def test_what_is_unusual_but_has_a_meaning_is_taken(call):
    call()


def test_initializers_take_a_deviation_of_zero_and_a_negative_gain():
    assert (paddle.create_parameter([5], default_initializer=initializer.TruncatedNormal(3.0, 0.0)).numpy() == 2.0).all()
    for make in (initializer.XavierNormal, initializer.XavierUniform):
        paddle.seed(7)
        one = paddle.create_parameter([4, 3], default_initializer=make(gain=2.0)).numpy()
        paddle.seed(7)
        assert (paddle.create_parameter([4, 3], default_initializer=make(gain=-2.0)).numpy() == one).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: F.conv2d(x, paddle.ones([2, 4, 3, 3]), stride=0),
            r"conv2d\(\): stride is 0; it must be an integer of at least 1",
        ),
        (lambda x: F.conv2d(x, paddle.ones([2, 4, 3, 3]), padding=-1), r"conv2d\(\): padding is -1"),
        (lambda x: F.conv2d_transpose(x, paddle.ones([4, 2, 3, 3]), dilation=0), r"conv2d_transpose\(\): dilation is 0"),
        (lambda x: F.conv2d_transpose(x, paddle.ones([4, 2, 3, 3]), stride=0), r"conv2d_transpose\(\): stride is 0"),
        (lambda x: F.avg_pool2d(x, 2, padding=-1), r"avg_pool2d\(\): padding is -1"),
        (lambda x: F.lp_pool2d(x, 2.0, 0), r"lp_pool2d\(\): kernel_size is 0"),
        (lambda x: F.adaptive_avg_pool2d(x, 0), r"adaptive_avg_pool2d\(\): output_size is 0"),
        (lambda x: F.pixel_shuffle(x, 2, "NCL"), r"pixel_shuffle\(\): data_format is 'NCL'; it must be 'NCHW' or 'NHWC'"),
        (lambda x: F.channel_shuffle(x, 0), r"channel_shuffle\(\): groups is 0"),
        (lambda x: F.group_norm(x, 2, data_format="bogus"), r"group_norm\(\): data_format is 'bogus'"),
        (lambda x: F.local_response_norm(x, 3, data_format="bogus"), r"local_response_norm\(\): data_format is 'bogus'"),
        (lambda x: F.prelu(x, paddle.ones([4]), data_format="bogus"), r"prelu\(\): data_format is 'bogus'"),
        (lambda x: F.label_smooth(x, epsilon=1.5), r"label_smooth\(\): epsilon is 1.5; it must be a number in \[0, 1\]"),
        (lambda x: F.celu(x, 0.0), r"celu\(\): alpha is 0.0; it must be a number other than 0"),
        (lambda x: F.selu(x, 1.0), r"selu\(\): scale is 1.0; it must be a number above 1"),
        (lambda x: F.softshrink(x, -0.5), r"softshrink\(\): threshold is -0.5"),
        (lambda x: F.layer_norm(x, 4, epsilon=math.nan), r"layer_norm\(\): epsilon is nan"),
        (lambda x: paddle.cdist(x, x, compute_mode="bogus"), r"cdist\(\): compute_mode is 'bogus'"),
        (lambda x: paddle.median(x, []), r"median\(\): axis is \[\]"),
        (lambda x: paddle.histogram(x, 4, 0.0, math.nan), r"histogram\(\): max is nan; it must be a finite number"),
        (lambda x: paddle.linalg.svd_lowrank(x[0, 0], niter=-1), r"svd_lowrank\(\): niter is -1"),
        (lambda x: paddle.chunk(x, 0), r"chunk\(\): chunks is 0"),
    ],
)
def test_functions_refuse_the_same(call, text):
    with pytest.raises(ArgumentError, match=text):
        call(paddle.ones([1, 4, 4, 4]))


def test_every_kind_has_words_and_takes_something():
    samples = [*WRONG, None, True, 2, 0.5, [2, 3], "same", "none", "NCL", "NCHW", "NCDHW", "constant", "use_mm_for_euclid_dist"]
    for name, kind in KINDS.items():
        assert kind.wanted.startswith(("a ", "an ", "'", "True", "None")), name
        assert any(kind.fits(s) for s in samples), name
        assert not all(kind.fits(s) for s in samples), name
