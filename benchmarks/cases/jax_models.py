"""The models of the groups ``models`` and ``programs`` for JAX: plain functions over a list of arrays, one jitted step with Adam.

Arrays come in the order and layout of Paddle's parameters; images go channels-last, which XLA's convolutions on the CPU are made for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .case import Body

#: A parameter: its shape in Paddle's layout, and whether it is the scale of a normalisation.
Spec = tuple[tuple[int, ...], bool]
#: Takes JAX, gives the specs and a loss over (an iterator of) the parameters and the data.
Net = Callable[[Any], tuple[list[Spec], Callable[..., Any]]]


def training(
    net: Net, data: Callable[[], tuple[np.ndarray, ...]], weight: Callable[[int, tuple[int, ...], bool], np.ndarray], rate: float
) -> Body:
    """Forward, backward and Adam as one jitted function that gives its arguments' memory to its results."""

    def body(jax: Any):
        jnp = jax.numpy
        specs, loss_of = net(jax)
        arrays = [weight(k, shape, is_scale) for k, (shape, is_scale) in enumerate(specs)]
        parameters = [jnp.asarray(a.transpose(2, 3, 1, 0) if a.ndim == 4 else a) for a in arrays]
        operands = [jnp.asarray(a) for a in data()]

        def update(parameters, first, second, count):
            loss, gradients = jax.value_and_grad(lambda given: loss_of(iter(given), *operands))(parameters)
            count += 1
            first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients, strict=True)]
            second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients, strict=True)]
            scale = rate / (1 - 0.9**count)
            parameters = [
                p - scale * m / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)
                for p, m, v in zip(parameters, first, second, strict=True)
            ]
            return loss, (parameters, first, second, count)

        step = jax.jit(update, donate_argnums=(0, 1, 2, 3))
        state = (parameters, [jnp.zeros_like(p) for p in parameters], [jnp.zeros_like(p) for p in parameters], jnp.float32(0))

        def run():
            nonlocal state
            loss, state = step(*state)
            return jax.block_until_ready(loss)

        return run

    return body


def _cross_entropy(jax: Any, scores: Any, labels: Any) -> Any:
    logs = jax.nn.log_softmax(scores)
    return -jax.numpy.take_along_axis(logs, labels[:, None], 1).mean()


def _linear(p: Iterator[Any], x: Any) -> Any:
    weight, bias = next(p), next(p)
    return x @ weight + bias


def _linear_specs(*sizes: int) -> list[Spec]:
    return [spec for a, b in pairwise(sizes) for spec in (((a, b), False), ((b,), False))]


def perceptron(jax: Any) -> tuple[list[Spec], Callable[..., Any]]:
    """Three linear layers."""

    def loss(p, x, y):
        x = jax.nn.relu(_linear(p, x))
        x = jax.nn.relu(_linear(p, x))
        return _cross_entropy(jax, _linear(p, x), y)

    return _linear_specs(784, 512, 512, 10), loss


def _conv(jax: Any, x: Any, weight: Any, stride: int, padding: int) -> Any:
    pads = [(padding, padding)] * 2
    return jax.lax.conv_general_dilated(x, weight, (stride, stride), pads, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _max_pool(jax: Any, x: Any, kernel: int, stride: int, padding: int) -> Any:
    pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, kernel, kernel, 1), (1, stride, stride, 1), pads)


def lenet(jax: Any) -> tuple[list[Spec], Callable[..., Any]]:
    """Two convolutions and three linear layers; images come as [N, C, H, W]."""

    def loss(p, x, y):
        x = x.transpose(0, 2, 3, 1)
        for padding in (1, 0):
            weight, bias = next(p), next(p)
            x = _max_pool(jax, jax.nn.relu(_conv(jax, x, weight, 1, padding) + bias), 2, 2, 0)
        x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)
        for _ in range(3):
            x = _linear(p, x)
        return _cross_entropy(jax, x, y)

    convolutions: list[Spec] = [((6, 1, 3, 3), False), ((6,), False), ((16, 6, 5, 5), False), ((16,), False)]
    return convolutions + _linear_specs(400, 120, 84, 10), loss


def _resnet_blocks() -> Iterator[tuple[int, int, int]]:
    width = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        yield width, after, stride
        yield after, after, 1
        width = after


def resnet(jax: Any) -> tuple[list[Spec], Callable[..., Any]]:
    """ResNet-18 in training, without running statistics."""
    jnp = jax.numpy

    def conv_norm(p, x, stride, padding):
        x = _conv(jax, x, next(p), stride, padding)
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * next(p)) + next(p)

    def loss(p, x, y):
        x = jax.nn.relu(conv_norm(p, x.transpose(0, 2, 3, 1), 2, 3))
        x = _max_pool(jax, x, 3, 2, 1)
        for before, after, stride in _resnet_blocks():
            out = jax.nn.relu(conv_norm(p, x, stride, 1))
            out = conv_norm(p, out, 1, 1)
            x = jax.nn.relu(out + (conv_norm(p, x, stride, 0) if stride != 1 or before != after else x))
        return _cross_entropy(jax, _linear(p, jnp.mean(x, (1, 2))), y)

    def norm(n: int) -> list[Spec]:
        return [((n,), True), ((n,), False)]

    specs = [((64, 3, 7, 7), False), *norm(64)]
    for before, after, stride in _resnet_blocks():
        specs += [((after, before, 3, 3), False), *norm(after), ((after, after, 3, 3), False), *norm(after)]
        if stride != 1 or before != after:
            specs += [((after, before, 1, 1), False), *norm(after)]
    return specs + _linear_specs(512, 1000), loss


def recurrent(inputs: int, hidden: int, classes: int) -> Net:
    """An LSTM of two layers, each a scan over its steps after one product for all inputs, and a linear layer over the last state."""

    def net(jax: Any):
        jnp = jax.numpy

        def layer(p, x):
            of_input, of_state, bias = next(p), next(p), next(p) + next(p)
            gates = x @ of_input.T + bias
            turned = of_state.T

            def step(state, gate):
                h, c = state
                i, f, g, o = jnp.split(gate + h @ turned, 4, axis=-1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zeros = jnp.zeros((x.shape[1], hidden), x.dtype)
            return jax.lax.scan(step, (zeros, zeros), gates)[1]

        def loss(p, x, y):
            x = x.transpose(1, 0, 2)
            for _ in range(2):
                x = layer(p, x)
            return _cross_entropy(jax, _linear(p, x[-1]), y)

        specs: list[Spec] = []
        for width in (inputs, hidden):
            specs += [((4 * hidden, width), False), ((4 * hidden, hidden), False), ((4 * hidden,), False), ((4 * hidden,), False)]
        return specs + _linear_specs(hidden, classes), loss

    return net


def transformer(vocabulary: int, width: int, layers: int, heads: int, hidden: int) -> Net:
    """Encoder layers, normalised after each sum, over an embedding, and a linear layer to the vocabulary."""

    def net(jax: Any):
        def norm(p, x):
            mean = x.mean(-1, keepdims=True)
            return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * next(p) + next(p)

        def layer(p, x):
            n, length, _ = x.shape
            q, k, v = (_linear(p, x).reshape(n, length, heads, -1).transpose(0, 2, 1, 3) for _ in range(3))
            weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5)
            attended = _linear(p, (weights @ v).transpose(0, 2, 1, 3).reshape(n, length, width))
            grown = (next(p), next(p), next(p), next(p))
            x = norm(p, x + attended)
            return norm(p, x + jax.nn.gelu(x @ grown[0] + grown[1], approximate=False) @ grown[2] + grown[3])

        def loss(p, tokens, following):
            x = next(p)[tokens]
            for _ in range(layers):
                x = layer(p, x)
            scores = _linear(p, x).reshape(-1, vocabulary)
            return _cross_entropy(jax, scores, following.reshape(-1))

        specs: list[Spec] = [((vocabulary, width), False)]
        for _ in range(layers):
            for _ in range(4):
                specs += _linear_specs(width, width)
            specs += _linear_specs(width, hidden, width)
            specs += [((width,), True), ((width,), False)] * 2
        return specs + _linear_specs(width, vocabulary), loss

    return net


def deep_fm(fields: int, rows: int, factors: int, dense: int, deep: tuple[int, ...]) -> Net:
    """DeepFM; https://arxiv.org/abs/1703.04247."""

    def net(jax: Any):
        jnp = jax.numpy

        def loss(p, ids, values, labels):
            first, vectors = next(p)[ids], next(p)[ids]
            linear = _linear(p, values)
            summed = vectors.sum(1)
            pairs = 0.5 * (summed * summed - (vectors * vectors).sum(1)).sum(1, keepdims=True)
            x = jnp.concatenate([vectors.reshape(ids.shape[0], -1), values], 1)
            for _ in deep:
                x = jax.nn.relu(_linear(p, x))
            scores = first.sum(1) + linear + pairs + _linear(p, x)
            return jnp.mean(jnp.maximum(scores, 0) - scores * labels + jnp.log1p(jnp.exp(-jnp.abs(scores))))

        tables: list[Spec] = [((fields * rows, 1), False), ((fields * rows, factors), False)]
        widths = (fields * factors + dense, *deep, 1)
        return tables + _linear_specs(dense, 1) + _linear_specs(*widths), loss

    return net
