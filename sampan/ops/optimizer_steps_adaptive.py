"""Updates of the adaptive methods: each element's step is divided by a running measure of its gradients; see ``optimizer_steps`` for the operands."""

from __future__ import annotations

from . import primitives as p
from .define import op
from .optimizer_steps import _mean, _regularized, _scalar, _update_each


@op(
    operands=("params", "grads", "moment1", "moment2", "moment2_max", "masters", "step_size", "floor", "kept"),
    lists=("params", "grads", "moment1", "moment2", "moment2_max", "masters"),
    updates=("params", "moment1", "moment2", "moment2_max", "masters"),
    tests="nograd noempty",
)
def adam_step(
    params, grads, moment1, moment2, moment2_max, masters, step_size, floor, kept=None, beta1=0.9, beta2=0.999, l2=0.0, l1=0.0
):  # fmt: skip
    """Adam in the order of section 2 of https://arxiv.org/abs/1412.6980, which saves a division; with ``moment2_max``, AMSGrad.

    With root for sqrt(1 - beta2^t), ``step_size`` is lr * root / (1 - beta1^t), and ``floor`` epsilon * root.
    AdamW multiplies the weights by ``kept``, 1 - lr * decay, before. https://arxiv.org/abs/1711.05101
    """

    def rule(w, g, m, v, top):
        g = _regularized(g, w, l2, l1)
        if kept is not None:
            w = p.mul(w, _scalar(kept, w))
        m, v = _mean(m, g, beta1), _mean(v, p.mul(g, g), beta2)
        top = v if top is None else p.maximum(top, v)
        denominator = p.add(p.sqrt(top), _scalar(floor, w))
        return p.sub(w, p.mul(_scalar(step_size, w), p.div(m, denominator))), m, v, top

    return _update_each(rule, params, grads, masters, moment1, moment2, moment2_max)


@op(
    operands=("params", "grads", "moment", "norm", "masters", "step_size"),
    lists=("params", "grads", "moment", "norm", "masters"),
    updates=("params", "moment", "norm", "masters"),
    tests="nograd noempty",
)
def adamax_step(params, grads, moment, norm, masters, step_size, beta1=0.9, beta2=0.999, epsilon=1e-8, l2=0.0, l1=0.0):
    """Adam by the infinity norm: w - step_size * m' / max(beta2 * norm + epsilon, |g|). https://arxiv.org/abs/1412.6980, section 7"""

    def rule(w, g, m, n):
        g = _regularized(g, w, l2, l1)
        m, n = _mean(m, g, beta1), p.maximum(p.add(p.mul(n, beta2), epsilon), p.abs(g))
        return p.sub(w, p.mul(_scalar(step_size, w), p.div(m, n))), m, n

    return _update_each(rule, params, grads, masters, moment, norm)


@op(
    operands=("params", "grads", "moment1", "moment2", "masters", "momentum_size", "gradient_size", "root"),
    lists=("params", "grads", "moment1", "moment2", "masters"),
    updates=("params", "moment1", "moment2", "masters"),
    tests="nograd noempty",
)
def nadam_step(
    params, grads, moment1, moment2, masters, momentum_size, gradient_size, root, beta1=0.9, beta2=0.999, epsilon=1e-8, l2=0.0, l1=0.0
):  # fmt: skip
    """Adam with Nesterov's momentum: w - (momentum_size * m' + gradient_size * g) / (sqrt(v') / root + epsilon).

    https://openreview.net/forum?id=OM0jvwB8jIp57ZJjtNEZ
    """

    def rule(w, g, m, v):
        g = _regularized(g, w, l2, l1)
        m, v = _mean(m, g, beta1), _mean(v, p.mul(g, g), beta2)
        step = p.add(p.mul(m, _scalar(momentum_size, w)), p.mul(g, _scalar(gradient_size, w)))
        return p.sub(w, p.div(step, p.add(p.div(p.sqrt(v), _scalar(root, w)), epsilon))), m, v

    return _update_each(rule, params, grads, masters, moment1, moment2)


@op(
    operands=("params", "grads", "moment1", "moment2", "masters", "step_size", "adaptive_size", "is_rectified"),
    lists=("params", "grads", "moment1", "moment2", "masters"),
    updates=("params", "moment1", "moment2", "masters"),
    tests="nograd noempty",
)
def radam_step(
    params, grads, moment1, moment2, masters, step_size, adaptive_size, is_rectified, beta1=0.9, beta2=0.999, epsilon=1e-8, l2=0.0, l1=0.0
):  # fmt: skip
    """Adam whose adaptive part is left out until its variance is known: w - adaptive_size * m' / (sqrt(v') + epsilon), or w - step_size * m' where
    is_rectified is 0.

    https://arxiv.org/abs/1908.03265
    """

    def rule(w, g, m, v):
        g = _regularized(g, w, l2, l1)
        m, v = _mean(m, g, beta1), _mean(v, p.mul(g, g), beta2)
        adaptive = p.mul(_scalar(adaptive_size, w), p.div(m, p.add(p.sqrt(v), epsilon)))
        return p.sub(w, p.select(p.gt(_scalar(is_rectified, w), 0), adaptive, p.mul(_scalar(step_size, w), m))), m, v

    return _update_each(rule, params, grads, masters, moment1, moment2)


@op(
    operands=("params", "grads", "moment1", "moment2", "masters", "lr", "correction1", "correction2"),
    lists=("params", "grads", "moment1", "moment2", "masters"),
    updates=("params", "moment1", "moment2", "masters"),
    tests="nograd noempty",
)
def lamb_step(
    params, grads, moment1, moment2, masters, lr, correction1, correction2, decay=0.01, is_adapted=True, beta1=0.9, beta2=0.999, epsilon=1e-6, l2=0.0, l1=0.0
):  # fmt: skip
    """Adam's step with weight decay, scaled for each tensor to the norm of its weights. https://arxiv.org/abs/1904.00962"""

    def rule(w, g, m, v):
        g = _regularized(g, w, l2, l1)
        m, v = _mean(m, g, beta1), _mean(v, p.mul(g, g), beta2)
        adaptive = p.div(p.div(m, _scalar(correction1, w)), p.add(p.sqrt(p.div(v, _scalar(correction2, w))), epsilon))
        step = p.add(adaptive, p.mul(w, decay)) if decay else adaptive
        size = _scalar(lr, w)
        if is_adapted:
            weight_norm, step_norm = _norm(w), _norm(step)
            is_known = p.mul(p.cast(p.gt(weight_norm, 0), "int32"), p.cast(p.gt(step_norm, 0), "int32"))
            trust = p.select(p.ne(is_known, 0), p.div(weight_norm, step_norm), 1.0)
            size = p.mul(size, p.broadcast_to(trust, w.shape))
        return p.sub(w, p.mul(size, step)), m, v

    return _update_each(rule, params, grads, masters, moment1, moment2)


def _norm(x):
    """The Euclidean norm over all elements, with axes of length 1."""
    return p.sqrt(p.reduce_sum(p.mul(x, x), tuple(range(x.ndim))))


@op(
    operands=("params", "grads", "moment", "masters", "lr"),
    lists=("params", "grads", "moment", "masters"),
    updates=("params", "moment", "masters"),
    tests="nograd noempty",
)
def adagrad_step(params, grads, moment, masters, lr, epsilon=1e-6, l2=0.0, l1=0.0):
    """w - lr * g / (sqrt(the sum of all squared gradients) + epsilon). https://jmlr.org/papers/v12/duchi11a.html"""

    def rule(w, g, m):
        g = _regularized(g, w, l2, l1)
        m = p.add(m, p.mul(g, g))
        return p.sub(w, p.div(p.mul(_scalar(lr, w), g), p.add(p.sqrt(m), epsilon))), m

    return _update_each(rule, params, grads, masters, moment)


@op(
    operands=("params", "grads", "squared_grad", "squared_update", "masters", "lr"),
    lists=("params", "grads", "squared_grad", "squared_update", "masters"),
    updates=("params", "squared_grad", "squared_update", "masters"),
    tests="nograd noempty",
)
def adadelta_step(params, grads, squared_grad, squared_update, masters, lr, rho=0.95, epsilon=1e-6, l2=0.0, l1=0.0):
    """Steps in the units of the weights: g * sqrt(mean squared step + epsilon) / sqrt(mean squared gradient + epsilon). https://arxiv.org/abs/1212.5701"""

    def rule(w, g, s, u):
        g = _regularized(g, w, l2, l1)
        s = _mean(s, p.mul(g, g), rho)
        step = p.mul(g, p.sqrt(p.div(p.add(u, epsilon), p.add(s, epsilon))))
        return p.sub(w, p.mul(_scalar(lr, w), step)), s, _mean(u, p.mul(step, step), rho)

    return _update_each(rule, params, grads, masters, squared_grad, squared_update)


@op(
    operands=("params", "grads", "velocities", "mean_square", "mean_grad", "masters", "lr"),
    lists=("params", "grads", "velocities", "mean_square", "mean_grad", "masters"),
    updates=("params", "velocities", "mean_square", "mean_grad", "masters"),
    tests="nograd noempty",
)
def rmsprop_step(
    params, grads, velocities, mean_square, mean_grad, masters, lr, rho=0.95, epsilon=1e-6, momentum=0.0, is_centered=False, l2=0.0, l1=0.0
):  # fmt: skip
    """v' = momentum * v + lr * g / sqrt(the mean squared gradient + epsilon); w - v'. Centred: the variance in place of the mean square."""

    def rule(w, g, v, s, m):
        g = _regularized(g, w, l2, l1)
        s = _mean(s, p.mul(g, g), rho)
        measure = s
        if is_centered:
            m = _mean(m, g, rho)
            measure = p.sub(s, p.mul(m, m))
        v = p.add(p.mul(v, momentum), p.div(p.mul(_scalar(lr, w), g), p.sqrt(p.add(measure, epsilon))))
        return p.sub(w, v), v, s, m

    return _update_each(rule, params, grads, masters, velocities, mean_square, mean_grad)
