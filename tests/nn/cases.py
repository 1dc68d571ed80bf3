"""Calls that are made on sampan and on the real PaddlePaddle alike: a name, the shapes of x0, x1 …, and an expression of them.

A shape may be a pair (shape, kind): ``ids`` in [0, 4), ``ones`` of 1 and -1, ``unit`` in (0.1, 0.9), ``order`` a permutation without ties.
"""

from __future__ import annotations

from typing import Any

IMAGE, LINE, CUBE = [2, 4, 6, 5], [2, 4, 7], [1, 2, 4, 3, 5]

CASES: dict[str, tuple[list[Any], str]] = {
    "conv2d": ([IMAGE, [6, 2, 3, 2], [6]], "F.conv2d(x0, x1, x2, stride=2, padding=[1, 0, 2, 1], dilation=1, groups=2)"),
    "conv2d same": ([IMAGE, [3, 4, 3, 2]], "F.conv2d(x0, x1, padding='SAME', stride=2)"),
    "conv1d_transpose": ([LINE, [4, 3, 3]], "F.conv1d_transpose(x0, x1, stride=2, padding=1, output_padding=1)"),
    "conv2d_transpose": (
        [IMAGE, [4, 3, 3, 3]],
        "F.conv2d_transpose(x0, x1, stride=2, padding=1, groups=2, output_size=[12, 10])",
    ),
    "conv3d": ([CUBE, [3, 2, 2, 2, 2]], "F.conv3d(x0, x1, padding=1)"),
    "max_pool2d": ([(IMAGE, "order")], "F.max_pool2d(x0, 3, 2, 1, return_mask=True)"),
    "max_pool2d ceil": ([(IMAGE, "order")], "F.max_pool2d(x0, 2, 2, ceil_mode=True)"),
    "avg_pool2d": ([IMAGE], "F.avg_pool2d(x0, 3, 2, 1)"),
    "avg_pool2d inclusive": ([IMAGE], "F.avg_pool2d(x0, 3, 2, 1, exclusive=False)"),
    "avg_pool1d": ([LINE], "F.avg_pool1d(x0, 3, 2, 1, ceil_mode=True)"),
    "adaptive_avg_pool2d": ([IMAGE], "F.adaptive_avg_pool2d(x0, [4, None])"),
    "adaptive_max_pool3d": ([(CUBE, "order")], "F.adaptive_max_pool3d(x0, 2, return_mask=True)"),
    "max_unpool2d": ([(IMAGE, "order")], "F.max_unpool2d(*F.max_pool2d(x0, 2, return_mask=True), 2, output_size=[6, 5])"),
    "lp_pool2d": ([IMAGE], "F.lp_pool2d(x0, 2.0, 3, 2, 1)"),
    "fractional": ([([1, 1, 7, 7], "order")], "F.fractional_max_pool2d(x0, [3, 4], random_u=0.3, return_mask=True)"),
    "fractional kernel": (
        [([1, 1, 7, 7], "order")],
        "F.fractional_max_pool2d(x0, [3, 4], kernel_size=2, random_u=0.77, return_mask=True)",
    ),
    "fractional 3d": ([([1, 1, 5, 7, 6], "order")], "F.fractional_max_pool3d(x0, 3, random_u=0.6, return_mask=True)"),
    "pad reflect": ([IMAGE], "F.pad(x0, [1, 2, 3, 0], mode='reflect')"),
    "pad replicate": ([IMAGE], "F.pad(x0, [1, 2, 3, 0], mode='replicate')"),
    "pad all axes": ([IMAGE], "F.pad(x0, [1, 0, 0, 2, 1, 1, 0, 3], value=2.0)"),
    "pad last axes": ([IMAGE], "F.pad(x0, [1, 2, 3, 4, 5, 6])"),
    "pad from the right": ([[2, 3]], "F.pad(x0, [1, 2, 3, 4], pad_from_left_axis=False)"),
    "pad channels last": ([IMAGE], "F.pad(x0, [1, 2, 3, 4], data_format='NHWC')"),
    "nearest": ([IMAGE], "F.interpolate(x0, [9, 3])"),
    "bilinear": ([IMAGE], "F.interpolate(x0, [9, 3], mode='bilinear')"),
    "bilinear corners": ([IMAGE], "F.interpolate(x0, [9, 3], mode='bilinear', align_corners=True)"),
    "bilinear points": ([IMAGE], "F.interpolate(x0, [9, 3], mode='bilinear', align_mode=1)"),
    "bilinear scale": ([IMAGE], "F.interpolate(x0, scale_factor=[1.5, 2.3], mode='bilinear')"),
    "bilinear channels last": ([IMAGE], "F.interpolate(x0, [3, 8], mode='bilinear', data_format='NHWC')"),
    "bicubic": ([IMAGE], "F.interpolate(x0, [9, 3], mode='bicubic')"),
    "bicubic corners": ([IMAGE], "F.interpolate(x0, [9, 3], mode='bicubic', align_corners=True)"),
    "linear": ([LINE], "F.interpolate(x0, [11], mode='linear')"),
    "trilinear": ([CUBE], "F.interpolate(x0, [3, 5, 7], mode='trilinear')"),
    "area": ([IMAGE], "F.interpolate(x0, [3, 2], mode='area')"),
    "unfold": ([IMAGE], "F.unfold(x0, [3, 2], 2, [1, 0, 2, 1], 1)"),
    "fold": ([[2, 12, 12]], "F.fold(x0, [5, 4], 2)"),
    "fold strided": ([[1, 12, 6]], "F.fold(x0, [4, 5], [3, 2], [2, 2], [1, 1, 0, 1])"),
    "affine_grid": ([[2, 2, 3]], "F.affine_grid(x0, [2, 3, 4, 5], align_corners=False)"),
    "affine_grid 3d": ([[1, 3, 4]], "F.affine_grid(x0, [1, 2, 2, 3, 4])"),
    "grid_sample": ([IMAGE, [2, 3, 4, 2]], "F.grid_sample(x0, x1 * 1.3)"),
    "grid_sample border": ([IMAGE, [2, 3, 4, 2]], "F.grid_sample(x0, x1 * 1.3, padding_mode='border', align_corners=False)"),
    "grid_sample reflection": (
        [IMAGE, [2, 3, 4, 2]],
        "F.grid_sample(x0, x1 * 2.3, padding_mode='reflection', align_corners=False)",
    ),
    "grid_sample reflection corners": ([IMAGE, [2, 3, 4, 2]], "F.grid_sample(x0, x1 * 2.3, padding_mode='reflection')"),
    "grid_sample nearest": ([IMAGE, [2, 3, 4, 2]], "F.grid_sample(x0, x1, mode='nearest')"),
    "grid_sample 3d": ([CUBE, [1, 2, 3, 2, 3]], "F.grid_sample(x0, x1)"),
    "pixel_shuffle": ([IMAGE], "F.pixel_shuffle(x0, 2)"),
    "temporal_shift": ([[6, 5, 2, 3]], "F.temporal_shift(x0, 3, 0.4)"),
    "batch_norm": ([IMAGE, [4], [4]], "F.batch_norm(x0, paddle.zeros([4]), paddle.ones([4]), x1, x2, training=True)"),
    "instance_norm": ([IMAGE, [4], [4]], "F.instance_norm(x0, weight=x1, bias=x2)"),
    "group_norm": ([IMAGE, [4], [4]], "F.group_norm(x0, 2, 1e-5, x1, x2)"),
    "layer_norm": ([IMAGE, [30], [30]], "F.layer_norm(x0, [6, 5], x1, x2)"),
    "local_response_norm": ([IMAGE], "F.local_response_norm(x0, 3)"),
    "normalize": ([[3, 4]], "F.normalize(x0, p=3, axis=1)"),
    "cross_entropy": ([[5, 4], ([5], "ids"), ([4], "unit")], "F.cross_entropy(x0, x1, x2, ignore_index=2)"),
    "cross_entropy smooth": ([[5, 4], ([5], "ids"), ([4], "unit")], "F.cross_entropy(x0, x1, x2, label_smoothing=0.2)"),
    "cross_entropy axis": ([[2, 4, 3], ([2, 3], "ids")], "F.cross_entropy(x0, x1, axis=1, reduction='none')"),
    "cross_entropy soft": ([[5, 4], ([5, 4], "unit")], "F.cross_entropy(x0, F.softmax(x1), soft_label=True)"),
    "softmax_with_cross_entropy": ([[5, 4], ([5, 1], "ids")], "F.softmax_with_cross_entropy(x0, x1, return_softmax=True)"),
    "nll_loss": ([[2, 4, 3, 2], ([2, 3, 2], "ids"), ([4], "unit")], "F.nll_loss(x0, x1, x2)"),
    "binary_cross_entropy": ([([3, 4], "unit"), ([3, 4], "unit")], "F.binary_cross_entropy(x0, x1)"),
    "bce with logits": ([[3, 4], ([3, 4], "unit"), ([4], "unit")], "F.binary_cross_entropy_with_logits(x0, x1, pos_weight=x2)"),
    "kl_div": ([[3, 4], ([3, 4], "unit")], "F.kl_div(x0, x1, 'batchmean')"),
    "smooth_l1": ([[3, 4], [3, 4]], "F.smooth_l1_loss(x0, x1, delta=0.3)"),
    "ctc": ([[6, 2, 4]], "F.ctc_loss(x0, I([[1, 2, 2], [3, 1, 0]], 'int32'), I([6, 5]), I([3, 2]))"),
    "rnnt": (
        [[2, 4, 3, 5]],
        "F.rnnt_loss(x0, I([[1, 2], [3, 1]], 'int32'), I([4, 3], 'int32'), I([2, 1], 'int32'), fastemit_lambda=0.2)",
    ),
    "hinge_embedding": ([[3, 4], ([3, 4], "ones")], "F.hinge_embedding_loss(x0, x1, 0.5)"),
    "cosine_embedding": ([[4, 3], [4, 3]], "F.cosine_embedding_loss(x0, x1, I([1, -1, 1, -1]), margin=0.1)"),
    "margin_ranking": ([[3, 4], [3, 4], ([3, 4], "ones")], "F.margin_ranking_loss(x0, x1, x2, margin=0.3)"),
    "triplet": ([[3, 4], [3, 4], [3, 4]], "F.triplet_margin_loss(x0, x1, x2, swap=True)"),
    "triplet with distance": ([[3, 4], [3, 4], [3, 4]], "F.triplet_margin_with_distance_loss(x0, x1, x2)"),
    "multi_margin": ([[3, 4], ([3], "ids"), ([4], "unit")], "F.multi_margin_loss(x0, x1, 1, 0.7, x2)"),
    "multi_label_margin": ([[3, 4]], "F.multi_label_margin_loss(x0, I([[1, 2, -1, 0], [0, -1, 1, 1], [-1, 0, 0, 0]]))"),
    "multi_label_soft_margin": ([[3, 4], ([3, 4], "unit"), ([4], "unit")], "F.multi_label_soft_margin_loss(x0, x1, x2)"),
    "soft_margin": ([[3, 4], ([3, 4], "ones")], "F.soft_margin_loss(x0, x1)"),
    "poisson_nll": ([[3, 4], ([3, 4], "unit")], "F.poisson_nll_loss(x0, x1 * 4, full=True)"),
    "gaussian_nll": ([[3, 4], [3, 4], ([3, 1], "unit")], "F.gaussian_nll_loss(x0, x1, x2, full=True)"),
    "sigmoid_focal": ([[3, 4], ([3, 4], "unit")], "F.sigmoid_focal_loss(x0, x1, I([2], 'float32'))"),
    "dice": ([([3, 4, 2], "unit")], "F.dice_loss(x0, I([[[0], [1], [1], [0]]] * 3))"),
    "npair": ([[4, 5], [4, 5]], "F.npair_loss(x0, x1, I([0, 1, 0, 2]))"),
    "hsigmoid": ([[4, 5], [7, 5], [7, 1]], "F.hsigmoid_loss(x0, I([0, 3, 7, 5]), 8, x1, x2)"),
    "pairwise_distance": ([[3, 4], [3, 4]], "F.pairwise_distance(x0, x1, 3.0, keepdim=True)"),
    "cosine_similarity": ([[3, 4], [3, 4]], "F.cosine_similarity(x0, x1)"),
    "bilinear form": ([[3, 2], [3, 4], [5, 2, 4], [1, 5]], "F.bilinear(x0, x1, x2, x3)"),
    "attention": ([[2, 3, 4, 8], [2, 5, 2, 8], [2, 5, 2, 8], [2, 1, 3, 5]], "F.scaled_dot_product_attention(x0, x1, x2, x3)"),
    "attention causal": ([[2, 5, 4, 8], [2, 5, 4, 8]], "F.scaled_dot_product_attention(x0, x1, x1, is_causal=True)"),
    "glu": ([IMAGE], "F.glu(x0, 1)"),
    "maxout": ([(IMAGE, "order")], "F.maxout(x0, 2)"),
    "swiglu": ([[3, 4]], "F.swiglu(x0)"),
    "label_smooth": ([[3, 4]], "F.label_smooth(x0, epsilon=0.2)"),
}

#: Layers whose weights are filled with fixed numbers before they are called.
LAYERS: dict[str, tuple[list[Any], str, str]] = {
    "SimpleRNN": ([[2, 5, 3]], "nn.SimpleRNN(3, 4, 2, activation='relu')", "net(x0)"),
    "LSTM": ([[2, 5, 3]], "nn.LSTM(3, 4, 2, direction='bidirect')", "net(x0, sequence_length=I([5, 3]))"),
    "LSTM projected": ([[2, 5, 3]], "nn.LSTM(3, 4, proj_size=2)", "net(x0)"),
    "GRU": ([[5, 2, 3], [1, 2, 4]], "nn.GRU(3, 4, time_major=True)", "net(x0, x1)"),
    "BiRNN": ([[2, 5, 3]], "nn.BiRNN(nn.GRUCell(3, 4), nn.SimpleRNNCell(3, 4))", "net(x0)"),
    "MultiHeadAttention": ([[2, 3, 8], [2, 5, 8], [2, 2, 3, 5]], "nn.MultiHeadAttention(8, 2)", "net(x0, x1, x1, x2)"),
    "TransformerEncoderLayer": ([[2, 3, 8]], "nn.TransformerEncoderLayer(8, 2, 16, 0.0, 'gelu')", "net(x0)"),
    "Transformer": (
        [[2, 3, 8], [2, 4, 8]],
        "nn.Transformer(8, 2, 1, 1, 16, 0.0, normalize_before=True)",
        "net(x0, x1, tgt_mask=net.generate_square_subsequent_mask(4))",
    ),
    "Conv2D circular": ([IMAGE], "nn.Conv2D(4, 3, 3, padding=2, padding_mode='circular')", "net(x0)"),
    "Conv2D reflect": ([IMAGE], "nn.Conv2D(4, 3, (3, 2), padding=1, padding_mode='reflect')", "net(x0)"),
}

#: Run on both sides with ``paddle`` bound to one of them; sets ``results`` to name -> (values, gradients) as nested lists.
PROGRAM = """
import numpy as np
nn, F = paddle.nn, paddle.nn.functional

def array(spec, seed):
    shape, kind = spec if len(spec) == 2 and isinstance(spec[1], str) else (spec, "any")
    rng = np.random.default_rng(seed)
    if kind == "ids":
        return rng.integers(0, 4, shape)
    if kind == "ones":
        return np.sign(rng.uniform(-1, 1, shape)).astype("float32")
    if kind == "unit":
        return rng.uniform(0.1, 0.9, shape).astype("float32")
    if kind == "order":
        return (rng.permutation(int(np.prod(shape))).reshape(shape) / 10).astype("float32")
    return rng.uniform(-1, 1, shape).astype("float32")

def I(values, dtype="int64"):
    return paddle.to_tensor(np.array(values).astype(dtype))

def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]

def outcome(specs, expression, net=None):
    space = {"paddle": paddle, "nn": nn, "F": F, "I": I, "net": net}
    xs = [paddle.to_tensor(array(s, k + 1)) for k, s in enumerate(specs)]
    trained = []
    if net is not None:
        for k, p in enumerate(net.parameters()):
            p.set_value(np.random.default_rng(100 + k).uniform(-0.5, 0.5, p.shape).astype("float32"))
        trained = [p for p in net.parameters() if not p.stop_gradient]
    for k, x in enumerate(xs):
        x.stop_gradient = "float" not in str(x.dtype)
        space["x%d" % k] = x
    outs = [o for o in leaves(eval(expression, space)) if o is not None]
    values = [np.asarray(o.numpy(), "float64").tolist() for o in outs]
    total = None
    for o in outs:
        if "float" in str(o.dtype) and not o.stop_gradient:
            part = (o * paddle.to_tensor(np.cos(np.arange(o.size)).reshape(o.shape).astype("float32"))).sum()
            total = part if total is None else total + part
    gradients = []
    if total is not None:
        total.backward()
        gradients = [None if t.grad is None else np.asarray(t.grad.numpy(), "float64").tolist() for t in xs + trained]
    return values, gradients

results = {}
for name, (specs, expression) in CASES.items():
    try:
        results[name] = outcome(specs, expression)
    except Exception as error:
        results[name] = "%s: %s" % (type(error).__name__, str(error)[-300:])
for name, (specs, build, expression) in LAYERS.items():
    try:
        results[name] = outcome(specs, expression, eval(build, {"nn": nn}))
    except Exception as error:
        results[name] = "%s: %s" % (type(error).__name__, str(error)[-300:])
"""
