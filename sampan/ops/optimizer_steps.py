"""Optimizer updates: one call updates the parameters of a bucket in place, each by one fused kernel.

The operands are lists of equal length; a list of states that the chosen form of the method does not keep, and ``masters`` (float32 copies of 16-bit
parameters), may be empty. Step sizes and corrections are run-time scalars, so that a schedule makes no new signature.
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


def _mean(old, new, rate):
    """The running mean ``rate * old + (1 - rate) * new``."""
    return p.add(p.mul(old, rate), p.mul(new, 1 - rate))


def _update_each(rule, params, grads, masters, *states):
    """The new parameters, states and masters, in the order of ``updates``.

    ``rule(weight, gradient, *states)`` gives the new weight and states of one parameter in the dtype of the computation; a state is None where its list
    is empty.
    """
    weights, kept = [], [[] for _ in states]
    for k, (param, grad) in enumerate(zip(params, grads, strict=True)):
        weight = masters[k] if masters else param
        new, *new_states = rule(weight, p.cast(grad, weight.dtype), *(s[k] if s else None for s in states))
        weights.append(new)
        for old, target, state in zip(states, kept, new_states, strict=True):
            if old:
                target.append(state)
    return ([p.cast(w, q.dtype) for w, q in zip(weights, params, strict=True)], *kept, weights if masters else [])


@op(
    operands=("params", "grads", "masters", "lr"),
    lists=("params", "grads", "masters"),
    updates=("params", "masters"),
    tests="nograd noempty",
)
def sgd_step(params, grads, masters, lr, l2=0.0, l1=0.0):
    """w - lr * g."""
    return _update_each(lambda w, g: (p.sub(w, p.mul(_scalar(lr, w), _regularized(g, w, l2, l1))),), params, grads, masters)


@op(
    operands=("params", "grads", "velocities", "masters", "lr"),
    lists=("params", "grads", "velocities", "masters"),
    updates=("params", "velocities", "masters"),
    tests="nograd noempty",
)
def momentum_step(params, grads, velocities, masters, lr, momentum=0.9, use_nesterov=False, rescale_grad=1.0, l2=0.0, l1=0.0):
    """v' = momentum * v + g; w - lr * v', or with Nesterov w - lr * (g + momentum * v')."""

    def rule(w, g, v):
        g = _regularized(g if rescale_grad == 1.0 else p.mul(g, rescale_grad), w, l2, l1)
        v = p.add(p.mul(v, momentum), g)
        step = p.add(g, p.mul(v, momentum)) if use_nesterov else v
        return p.sub(w, p.mul(_scalar(lr, w), step)), v

    return _update_each(rule, params, grads, masters, velocities)


@op(
    operands=("params", "grads", "totals", "oldest", "masters", "lr", "used"),
    lists=("params", "grads", "totals", "oldest", "masters"),
    updates=("params", "totals", "oldest", "masters"),
    tests="nograd noempty",
)
def average_step(params, grads, totals, oldest, masters, lr, used, l2=0.0, l1=0.0):
    """The sum of the last n gradients without the oldest and with this one, which takes its place; w - lr * (sum / used)."""

    def rule(w, g, total, old):
        g = _regularized(g, w, l2, l1)
        total = p.add(p.sub(total, old), g)
        return p.sub(w, p.mul(_scalar(lr, w), p.div(total, _scalar(used, w)))), total, g

    return _update_each(rule, params, grads, masters, totals, oldest)


@op(
    operands=("params", "grads", "previous", "rates", "masters"),
    lists=("params", "grads", "previous", "rates", "masters"),
    updates=("params", "previous", "rates", "masters"),
    tests="nograd noempty",
)
def rprop_step(params, grads, previous, rates, masters, smallest=1e-5, largest=50.0, shrink=0.5, grow=1.2):
    """A rate of its own for each element: grown while the gradient keeps its sign, shrunk, and the step left out, where it turned."""

    def rule(w, g, before, rate):
        product = p.mul(g, before)
        factor = p.select(p.gt(product, 0), grow, p.select(p.lt(product, 0), shrink, p.add(p.mul(product, 0), 1.0)))
        rate = p.minimum(p.maximum(p.mul(rate, factor), smallest), largest)
        g = p.select(p.lt(product, 0), 0.0, g)
        return p.sub(w, p.mul(p.sign(g), rate)), g, rate

    return _update_each(rule, params, grads, masters, previous, rates)


# ------------------------------------------------------------------ clipping


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


@op(operands=("grads", "inverse"), lists=("grads",), updates=("grads",), tests="nograd noempty")
def unscale_step(grads, inverse):
    """Each tensor times ``inverse``; and whether all their elements are finite, before that and after."""
    is_finite = None
    scaled = [p.mul(g, _scalar(inverse, g)) for g in grads]
    for g in scaled:
        part = p.reshape(p.reduce_all(p.isfinite(g), tuple(range(g.ndim))), ())
        is_finite = part if is_finite is None else p.bitwise_and(is_finite, part)
    return scaled, is_finite
