"""Every layer through the harness."""

from __future__ import annotations

import pytest

from nn.checks import check_layer
from sampan import nn

IDS = "int64"
IMAGE, LINE, CUBE = [2, 4, 6, 5], [2, 4, 7], [1, 4, 4, 3, 5]

ACTIVATIONS = (
    "ReLU ReLU6 ELU CELU SELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU Sigmoid LogSigmoid Softplus Softshrink Softsign Swish Silu SiLU Mish "
    "Tanh Tanhshrink ThresholdedReLU Softmax LogSoftmax Softmax2D Identity"
).split()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_keeps_the_shape(name):
    check_layer(getattr(nn, name), [IMAGE], [IMAGE])


LAYERS = {
    "Linear": (lambda: nn.Linear(5, 3), [[2, 4, 5]], [[2, 4, 3]], {"weight": [5, 3], "bias": [3]}),
    "Bilinear": (lambda: nn.Bilinear(3, 4, 2), [[5, 3], [5, 4]], [[5, 2]], {"weight": [2, 3, 4], "bias": [1, 2]}),
    "Embedding": (lambda: nn.Embedding(6, 3, padding_idx=-1), [([2, 5], IDS)], [[2, 5, 3]], {"weight": [6, 3]}),
    "PReLU": (lambda: nn.PReLU(4), [IMAGE], [IMAGE], {"_weight": [4]}),
    "Maxout": (lambda: nn.Maxout(2), [IMAGE], [[2, 2, 6, 5]], {}),
    "GLU": (lambda: nn.GLU(1), [IMAGE], [[2, 2, 6, 5]], {}),
    "Conv1D": (lambda: nn.Conv1D(4, 6, 3, 2, 1), [LINE], [[2, 6, 4]], {"weight": [6, 4, 3], "bias": [6]}),
    "Conv2D": (lambda: nn.Conv2D(4, 6, (3, 2), padding="same", groups=2), [IMAGE], [[2, 6, 6, 5]], {"weight": [6, 2, 3, 2], "bias": [6]}),
    "Conv2D circular": (lambda: nn.Conv2D(4, 3, 3, padding=[1, 2], padding_mode="circular"), [IMAGE], [[2, 3, 6, 7]], None),
    "Conv2D channels last": (lambda: nn.Conv2D(5, 3, 3, data_format="NHWC", bias_attr=False), [IMAGE], [[2, 2, 4, 3]], {"weight": [3, 5, 3, 3]}),
    "Conv3D": (lambda: nn.Conv3D(4, 2, 2), [CUBE], [[1, 2, 3, 2, 4]], {"weight": [2, 4, 2, 2, 2], "bias": [2]}),
    "Conv1DTranspose": (lambda: nn.Conv1DTranspose(4, 2, 3, 2), [LINE], [[2, 2, 15]], {"weight": [4, 2, 3], "bias": [2]}),
    "Conv2DTranspose": (lambda: nn.Conv2DTranspose(4, 6, 3, 2, 1, 1, groups=2), [IMAGE], [[2, 6, 12, 10]], {"weight": [4, 3, 3, 3], "bias": [6]}),
    "Conv3DTranspose": (lambda: nn.Conv3DTranspose(4, 2, 2), [CUBE], [[1, 2, 5, 4, 6]], {"weight": [4, 2, 2, 2, 2], "bias": [2]}),
    "BatchNorm1D": (lambda: nn.BatchNorm1D(4), [LINE], [LINE], {"weight": [4], "bias": [4], "_mean": [4], "_variance": [4]}),
    "BatchNorm2D": (lambda: nn.BatchNorm2D(5, data_format="NHWC"), [IMAGE], [IMAGE], None),
    "BatchNorm3D": (lambda: nn.BatchNorm3D(4), [CUBE], [CUBE], None),
    "BatchNorm": (lambda: nn.BatchNorm(4, act="relu"), [IMAGE], [IMAGE], None),
    "SyncBatchNorm": (lambda: nn.SyncBatchNorm(4), [IMAGE], [IMAGE], None),
    "LayerNorm": (lambda: nn.LayerNorm([6, 5]), [IMAGE], [IMAGE], {"weight": [30], "bias": [30]}),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), [IMAGE], [IMAGE], {"weight": [4], "bias": [4]}),
    "InstanceNorm1D": (lambda: nn.InstanceNorm1D(4), [LINE], [LINE], {"scale": [4], "bias": [4]}),
    "InstanceNorm2D": (lambda: nn.InstanceNorm2D(4, weight_attr=False), [IMAGE], [IMAGE], {}),
    "InstanceNorm3D": (lambda: nn.InstanceNorm3D(4), [CUBE], [CUBE], None),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), [IMAGE], [IMAGE], {}),
    "SpectralNorm": (lambda: nn.SpectralNorm([3, 4, 2], 1, 2), [[3, 4, 2]], [[3, 4, 2]], {"weight_u": [4], "weight_v": [6]}),
    "MaxPool1D": (lambda: nn.MaxPool1D(3, 2, 1), [LINE], [[2, 4, 4]], {}),
    "MaxPool2D": (lambda: nn.MaxPool2D(2, return_mask=True), [IMAGE], [[2, 4, 3, 2], [2, 4, 3, 2]], {}),
    "MaxPool3D": (lambda: nn.MaxPool3D(2, ceil_mode=True), [CUBE], [[1, 4, 2, 2, 3]], {}),
    "AvgPool1D": (lambda: nn.AvgPool1D(3), [LINE], [[2, 4, 2]], {}),
    "AvgPool2D": (lambda: nn.AvgPool2D(2, 1, exclusive=False), [IMAGE], [[2, 4, 5, 4]], {}),
    "AvgPool3D": (lambda: nn.AvgPool3D(2), [CUBE], [[1, 4, 2, 1, 2]], {}),
    "AdaptiveAvgPool1D": (lambda: nn.AdaptiveAvgPool1D(3), [LINE], [[2, 4, 3]], {}),
    "AdaptiveAvgPool2D": (lambda: nn.AdaptiveAvgPool2D([None, 2]), [IMAGE], [[2, 4, 6, 2]], {}),
    "AdaptiveAvgPool3D": (lambda: nn.AdaptiveAvgPool3D(2), [CUBE], [[1, 4, 2, 2, 2]], {}),
    "AdaptiveMaxPool1D": (lambda: nn.AdaptiveMaxPool1D(3), [LINE], [[2, 4, 3]], {}),
    "AdaptiveMaxPool2D": (lambda: nn.AdaptiveMaxPool2D(3, True), [IMAGE], [[2, 4, 3, 3], [2, 4, 3, 3]], {}),
    "AdaptiveMaxPool3D": (lambda: nn.AdaptiveMaxPool3D(2), [CUBE], [[1, 4, 2, 2, 2]], {}),
    "LPPool1D": (lambda: nn.LPPool1D(2, 3), [LINE], [[2, 4, 2]], {}),
    "LPPool2D": (lambda: nn.LPPool2D(2, 3, 1), [IMAGE], [[2, 4, 4, 3]], {}),
    "FractionalMaxPool2D": (lambda: nn.FractionalMaxPool2D(3, random_u=0.4), [IMAGE], [[2, 4, 3, 3]], {}),
    "FractionalMaxPool3D": (lambda: nn.FractionalMaxPool3D(2, random_u=0.4), [CUBE], [[1, 4, 2, 2, 2]], {}),
    "Flatten": (nn.Flatten, [IMAGE], [[2, 120]], {}),
    "Unflatten": (lambda: nn.Unflatten(1, [2, -1]), [IMAGE], [[2, 2, 2, 6, 5]], {}),
    "Pad1D": (lambda: nn.Pad1D(2, "reflect"), [LINE], [[2, 4, 11]], {}),
    "Pad2D": (lambda: nn.Pad2D([1, 2, 3, 0], "replicate"), [IMAGE], [[2, 4, 9, 8]], {}),
    "Pad3D": (lambda: nn.Pad3D(1, "circular"), [CUBE], [[1, 4, 6, 5, 7]], {}),
    "ZeroPad2D": (lambda: nn.ZeroPad2D([1, 0, 0, 2]), [IMAGE], [[2, 4, 8, 6]], {}),
    "ConstantPad1D": (lambda: nn.ConstantPad1D(1, 3.0), [LINE], [[2, 4, 9]], {}),
    "Upsample": (lambda: nn.Upsample(scale_factor=2, mode="bicubic"), [IMAGE], [[2, 4, 12, 10]], {}),
    "UpsamplingNearest2D": (lambda: nn.UpsamplingNearest2D([3, 9]), [IMAGE], [[2, 4, 3, 9]], {}),
    "UpsamplingBilinear2D": (lambda: nn.UpsamplingBilinear2D(scale_factor=2), [IMAGE], [[2, 4, 12, 10]], {}),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), [IMAGE], [[2, 1, 12, 10]], {}),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), [[2, 1, 4, 6]], [[2, 4, 2, 3]], {}),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), [IMAGE], [IMAGE], {}),
    "Unfold": (lambda: nn.Unfold(2), [IMAGE], [[2, 16, 20]], {}),
    "Fold": (lambda: nn.Fold([4, 5], 2), [[2, 12, 12]], [[2, 3, 4, 5]], {}),
    "CosineSimilarity": (nn.CosineSimilarity, [[3, 4], [3, 4]], [[3]], {}),
    "PairwiseDistance": (lambda: nn.PairwiseDistance(keepdim=True), [[3, 4], [3, 4]], [[3, 1]], {}),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2, need_weights=True), [[2, 5, 8]], [[2, 5, 8], [2, 2, 5, 5]], None),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2), [[2, 5, 8]], [[2, 5, 8]], None),
    "Transformer": (lambda: nn.Transformer(8, 2, 1, 1, 16, 0.0, normalize_before=True), [[2, 5, 8], [2, 3, 8]], [[2, 3, 8]], None),
    "SimpleRNN": (lambda: nn.SimpleRNN(4, 3), [[2, 5, 4]], [[2, 5, 3], [1, 2, 3]], None),
    "LSTM": (lambda: nn.LSTM(4, 3, 2, "bidirect"), [[2, 5, 4]], [[2, 5, 6], [4, 2, 3], [4, 2, 3]], None),
    "LSTM projected": (lambda: nn.LSTM(4, 3, proj_size=2), [[2, 5, 4]], [[2, 5, 2], [1, 2, 2], [1, 2, 3]], None),
    "GRU": (lambda: nn.GRU(4, 3, time_major=True), [[5, 2, 4]], [[5, 2, 3], [1, 2, 3]], None),
    "HSigmoidLoss": (lambda: nn.HSigmoidLoss(3, 5), [[4, 3], ([4], IDS)], [[4, 1]], {"weight": [4, 3], "bias": [4, 1]}),
    "AdaptiveLogSoftmaxWithLoss": (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 6, [2, 4], div_value=2.0), [[5, 8], ([5], IDS)], [[5], []], None),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    make, inputs, expected, parameters = LAYERS[name]
    check_layer(make, inputs, expected, parameters)


@pytest.mark.parametrize("name", ["Dropout", "Dropout2D", "AlphaDropout", "FeatureAlphaDropout", "RReLU"])
def test_a_random_layer_is_deterministic_in_evaluation(name):
    check_layer(getattr(nn, name), [IMAGE], [IMAGE], {})


LOSSES = {
    "CrossEntropyLoss": ([5, 4], ([5], IDS)),
    "NLLLoss": ([5, 4], ([5], IDS)),
    "MSELoss": ([5, 4], [5, 4]),
    "L1Loss": ([5, 4], [5, 4]),
    "SmoothL1Loss": ([5, 4], [5, 4]),
    "BCEWithLogitsLoss": ([5, 4], [5, 4]),
    "KLDivLoss": ([5, 4], [5, 4]),
    "MarginRankingLoss": ([5], [5], [5]),
    "HingeEmbeddingLoss": ([5, 4], [5, 4]),
    "CosineEmbeddingLoss": ([5, 4], [5, 4], ([5], IDS)),
    "TripletMarginLoss": ([5, 4], [5, 4], [5, 4]),
    "TripletMarginWithDistanceLoss": ([5, 4], [5, 4], [5, 4]),
    "MultiLabelSoftMarginLoss": ([5, 4], [5, 4]),
    "MultiLabelMarginLoss": ([5, 4], ([5, 4], IDS)),
    "MultiMarginLoss": ([5, 4], ([5], IDS)),
    "SoftMarginLoss": ([5, 4], [5, 4]),
    "PoissonNLLLoss": ([5, 4], [5, 4]),
    "GaussianNLLLoss": ([5, 4], [5, 4], [5, 4]),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_a_scalar(name):
    check_layer(getattr(nn, name), LOSSES[name], [[]], {})
