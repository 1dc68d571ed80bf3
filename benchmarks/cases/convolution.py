"""ResNet-50's convolutions at batch 8, 224 x 224 images: forward, backward to data, backward to weights.

PyTorch runs channels-last. Paddle's body is given NCHW tensors that come out of a 1 x 1 convolution, as inside a net, so that a
framework which keeps its own layout between convolutions starts from it.

Source: He et al., "Deep Residual Learning for Image Recognition", 2016; strides on the 3 x 3 convolutions.
"""

from __future__ import annotations

import numpy as np

from . import direct
from .case import Case, random_array

_BATCH = 8
# in channels, out channels, kernel, stride, input height and width
_SHAPES = (
    (3, 64, 7, 2, 224),
    (64, 64, 1, 1, 56),
    (64, 64, 3, 1, 56),
    (64, 256, 1, 1, 56),
    (256, 64, 1, 1, 56),
    (256, 128, 1, 1, 56),
    (128, 128, 3, 2, 56),
    (128, 512, 1, 1, 28),
    (256, 512, 1, 2, 56),
    (512, 128, 1, 1, 28),
    (128, 128, 3, 1, 28),
    (512, 256, 1, 1, 28),
    (256, 256, 3, 2, 28),
    (256, 1024, 1, 1, 14),
    (512, 1024, 1, 2, 28),
    (1024, 256, 1, 1, 14),
    (256, 256, 3, 1, 14),
    (1024, 512, 1, 1, 14),
    (512, 512, 3, 2, 14),
    (512, 2048, 1, 1, 7),
    (1024, 2048, 1, 2, 14),
    (2048, 512, 1, 1, 7),
    (512, 512, 3, 1, 7),
)
_KINDS = ("forward", "backward to data", "backward to weights")


def _case(shape: tuple[int, int, int, int, int], kind: str) -> Case:
    channels, outputs, kernel, stride, size = shape
    padding, out_size = kernel // 2, (size + 2 * (kernel // 2) - kernel) // stride + 1

    def arrays():
        x = random_array(_BATCH, channels, size, size)
        weight = random_array(outputs, channels, kernel, kernel, seed=1, low=-0.05, high=0.05)
        return x, weight, random_array(_BATCH, outputs, out_size, out_size, seed=2)

    def identity(count):
        return np.eye(count, dtype="float32")[:, :, None, None]

    def paddle(p):
        conv2d = p.nn.functional.conv2d
        x, weight, cotangent = map(p.to_tensor, arrays())
        with p.no_grad():
            x = conv2d(x, p.to_tensor(identity(channels))) if channels > 3 else x
            cotangent = conv2d(cotangent, p.to_tensor(identity(outputs)))
        if kind == "forward":
            return lambda: conv2d(x, weight, stride=stride, padding=padding)
        wanted = x if kind == "backward to data" else weight
        wanted.stop_gradient = False
        out = conv2d(x, weight, stride=stride, padding=padding)
        return lambda: p.grad(out, wanted, cotangent, retain_graph=True)

    def torch(t):
        conv2d = t.nn.functional.conv2d
        x, weight, cotangent = (t.from_numpy(a).to(memory_format=t.channels_last) for a in arrays())
        if kind == "forward":
            return lambda: conv2d(x, weight, stride=stride, padding=padding)
        wanted = (x if kind == "backward to data" else weight).requires_grad_()
        out = conv2d(x, weight, stride=stride, padding=padding)
        return lambda: t.autograd.grad(out, wanted, cotangent, retain_graph=True)

    def onednn(library):
        return direct.convolution(library, kind, *arrays(), stride, padding)

    name = f"conv {channels} to {outputs}, {kernel} x {kernel} / {stride}, {size} x {size}, {kind}"
    flops = 2.0 * _BATCH * outputs * out_size * out_size * channels * kernel * kernel
    return Case(name, "convolution", paddle, torch, onednn=onednn, flops=flops, target=1.2, library_target=0.9)


CASES = tuple(_case(shape, kind) for kind in _KINDS for shape in _SHAPES if not (kind == "backward to data" and shape[0] == 3))
