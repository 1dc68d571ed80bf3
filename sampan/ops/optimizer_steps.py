"""Optimizer updates: one call updates all parameters of a group in place, each by one fused kernel.

The operands are lists of equal length; ``masters`` (float32 copies of 16-bit parameters) may be empty. The step size and the powers of the decay rates
are run-time scalars, so that a schedule makes no new signature.
"""

from __future__ import annotations

from . import primitives as p
from .define import op


def _scalar(x, like):
    """A run-time scalar in the dtype of the computation, broadcast."""
    return p.broadcast_to(p.cast(x, like.dtype), like.shape)


def _regularized(g, w, l2, l1):
    if l2:
        g = p.add(g, p.mul(w, l2))
    if l1:
        g = p.add(g, p.mul(p.sign(w), l1))
    return g


def _each(params, grads, masters):
    """(weight, gradient) of each parameter, in the dtype of the computation."""
    for k, (param, grad) in enumerate(zip(params, grads, strict=True)):
        weight = masters[k] if masters else param
        yield weight, p.cast(grad, weight.dtype)


def _results(params, masters, weights, *states):
    """The new parameters, states and masters, in the order of ``updates``."""
    new = [p.cast(w, q.dtype) for w, q in zip(weights, params, strict=True)]
    return (new, *states, list(weights) if masters else [])


@op(
    operands=("params", "grads", "masters", "lr"),
    lists=("params", "grads", "masters"),
    updates=("params", "masters"),
    tests="nograd noempty",
)
def sgd_step(params, grads, masters, lr, l2=0.0, l1=0.0):
    """w - lr * g."""
    weights = [p.sub(w, p.mul(_scalar(lr, w), _regularized(g, w, l2, l1))) for w, g in _each(params, grads, masters)]
    return _results(params, masters, weights)


@op(
    operands=("params", "grads", "velocities", "masters", "lr"),
    lists=("params", "grads", "velocities", "masters"),
    updates=("params", "velocities", "masters"),
    tests="nograd noempty",
)
def momentum_step(params, grads, velocities, masters, lr, momentum=0.9, use_nesterov=False, rescale_grad=1.0, l2=0.0, l1=0.0):
    """v' = momentum * v + g; w - lr * v', or with Nesterov w - lr * (g + momentum * v')."""
    weights, states = [], []
    for (w, g), v in zip(_each(params, grads, masters), velocities, strict=True):
        if rescale_grad != 1.0:
            g = p.mul(g, rescale_grad)
        g = _regularized(g, w, l2, l1)
        v = p.add(p.mul(v, momentum), g)
        step = p.add(g, p.mul(v, momentum)) if use_nesterov else v
        weights.append(p.sub(w, p.mul(_scalar(lr, w), step)))
        states.append(v)
    return _results(params, masters, weights, states)


@op(
    operands=("params", "grads", "moment1", "moment2", "moment2_max", "masters", "lr", "beta1_pow", "beta2_pow"),
    lists=("params", "grads", "moment1", "moment2", "moment2_max", "masters"),
    updates=("params", "moment1", "moment2", "moment2_max", "masters"),
    tests="nograd noempty",
)
def adam_step(
    params,
    grads,
    moment1,
    moment2,
    moment2_max,
    masters,
    lr,
    beta1_pow,
    beta2_pow,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    decay=0.0,
    l2=0.0,
    l1=0.0,
):
    """Adam and, with ``decay`` (decoupled), AdamW; with ``moment2_max``, AMSGrad. https://arxiv.org/abs/1412.6980, https://arxiv.org/abs/1711.05101"""
    weights, firsts, seconds, maxima = [], [], [], []
    for k, (w, g) in enumerate(_each(params, grads, masters)):
        step = _scalar(lr, w)
        g = _regularized(g, w, l2, l1)
        if decay:
            w = p.mul(w, p.sub(1.0, p.mul(step, decay)))
        m = p.add(p.mul(moment1[k], beta1), p.mul(g, 1 - beta1))
        v = p.add(p.mul(moment2[k], beta2), p.mul(p.mul(g, g), 1 - beta2))
        top = v
        if moment2_max:
            top = p.maximum(moment2_max[k], v)
            maxima.append(top)
        correction1 = p.sub(1.0, _scalar(beta1_pow, w))
        correction2 = p.sqrt(p.sub(1.0, _scalar(beta2_pow, w)))
        denominator = p.add(p.div(p.sqrt(top), correction2), epsilon)
        weights.append(p.sub(w, p.mul(p.div(step, correction1), p.div(m, denominator))))
        firsts.append(m)
        seconds.append(v)
    return _results(params, masters, weights, firsts, seconds, maxima)


@op(operands=("grads",), lists=("grads",), tests="nograd noempty")
def squared_norm(grads):
    """The sum of squares over all tensors, in float32 at least."""
    total = None
    for g in grads:
        g = p.cast(g, "float32") if g.dtype in ("float16", "bfloat16") else g
        part = p.reshape(p.reduce_sum(p.mul(g, g), tuple(range(g.ndim))), ())
        total = part if total is None else p.add(p.cast(total, part.dtype), part)
    return total


@op(operands=("grads", "total"), lists=("grads",), tests="nograd noempty")
def scaled_to_norm(grads, total, clip_norm):
    """Each tensor times clip_norm / max(sqrt(total), clip_norm); as they are where that is 0 / 0."""
    norm = p.sqrt(total)
    largest = p.maximum(norm, clip_norm)
    factor = p.select(
        p.eq(largest, 0), 1, p.div(p.mul(p.add(p.mul(norm, 0), 1), clip_norm), p.select(p.eq(largest, 0), 1, largest))
    )
    return [p.mul(g, p.broadcast_to(p.cast(factor, g.dtype), g.shape)) for g in grads]
