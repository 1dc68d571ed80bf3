"""The optimizers in NumPy and float64, written from their papers: ``ORACLES[name](weights, gradients, **options)`` gives the weights after all steps."""

from __future__ import annotations

import numpy as np


def with_decay(rule):
    """The rule with weight_decay as L2: coefficient * w on top of the gradient."""

    def run(w, grads, learning_rate, weight_decay=0.0, **options):
        w, state = w.astype(np.float64), {}
        for t, g in enumerate(grads, 1):
            w = rule(w, g + weight_decay * w, learning_rate, t, state, **options)
        return w

    return run


def sgd(w, g, lr, t, state):
    return w - lr * g


def momentum(w, g, lr, t, state, momentum=0.9, use_nesterov=False):
    v = state["v"] = momentum * state.get("v", 0) + g
    return w - lr * (g + momentum * v if use_nesterov else v)


def moments(g, state, beta1, beta2):
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    return state["m"], state["v"]


def adam(w, g, lr, t, state, beta1=0.9, beta2=0.999, epsilon=1e-8, amsgrad=False):
    m, v = moments(g, state, beta1, beta2)
    if amsgrad:
        v = state["top"] = np.maximum(state.get("top", 0), v)
    return w - lr * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)


def adamw(w, grads, learning_rate, weight_decay=0.01, **options):
    w, state = w.astype(np.float64), {}
    for t, g in enumerate(grads, 1):
        w = adam(w * (1 - learning_rate * weight_decay), g, learning_rate, t, state, **options)
    return w


def adamax(w, g, lr, t, state, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m = state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    u = state["u"] = np.maximum(beta2 * state.get("u", 0) + epsilon, np.abs(g))
    return w - lr / (1 - beta1**t) * m / u


def nadam(w, g, lr, t, state, beta1=0.9, beta2=0.999, epsilon=1e-8, momentum_decay=0.004):
    m, v = moments(g, state, beta1, beta2)
    now, following = (beta1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
    product = state["product"] = state.get("product", 1.0) * now
    mean = following * m / (1 - product * following) + (1 - now) * g / (1 - product)
    return w - lr * mean / (np.sqrt(v / (1 - beta2**t)) + epsilon)


def radam(w, g, lr, t, state, beta1=0.9, beta2=0.999, epsilon=1e-8):
    m, v = moments(g, state, beta1, beta2)
    limit = 2 / (1 - beta2) - 1
    length = limit - 2 * t * beta2**t / (1 - beta2**t)
    mean = m / (1 - beta1**t)
    if length <= 5:
        return w - lr * mean
    rectifier = np.sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length))
    return w - lr * mean * rectifier * np.sqrt(1 - beta2**t) / (np.sqrt(v) + epsilon)


def lamb(w, g, lr, t, state, beta1=0.9, beta2=0.999, epsilon=1e-6, lamb_weight_decay=0.01, always_adapt=False):
    m, v = moments(g, state, beta1, beta2)
    step = (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon) + lamb_weight_decay * w
    trust = np.linalg.norm(w) / np.linalg.norm(step) if lamb_weight_decay or always_adapt else 1.0
    return w - lr * trust * step


def adagrad(w, g, lr, t, state, epsilon=1e-6, initial_accumulator_value=0.0):
    state["s"] = state.get("s", initial_accumulator_value) + g * g
    return w - lr * g / (np.sqrt(state["s"]) + epsilon)


def adadelta(w, g, lr, t, state, rho=0.95, epsilon=1e-6):
    state["s"] = rho * state.get("s", 0) + (1 - rho) * g * g
    step = np.sqrt(state.get("u", 0) + epsilon) / np.sqrt(state["s"] + epsilon) * g
    state["u"] = rho * state.get("u", 0) + (1 - rho) * step * step
    return w - lr * step


def rmsprop(w, g, lr, t, state, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False):
    state["s"] = rho * state.get("s", 0) + (1 - rho) * g * g
    state["m"] = rho * state.get("m", 0) + (1 - rho) * g
    spread = state["s"] - (state["m"] ** 2 if centered else 0)
    state["v"] = momentum * state.get("v", 0) + lr * g / np.sqrt(spread + epsilon)
    return w - state["v"]


def asgd(w, g, lr, t, state, batch_num=1):
    seen = state.setdefault("seen", {})
    seen[(t - 1) % batch_num] = g
    return w - lr * sum(seen.values()) / len(seen)


def rprop(w, g, lr, t, state, learning_rate_range=(1e-5, 50.0), etas=(0.5, 1.2)):
    product = g * state.get("before", 0)
    factor = np.where(product > 0, etas[1], np.where(product < 0, etas[0], 1.0))
    state["rate"] = np.clip(state.get("rate", lr) * factor, *learning_rate_range)
    state["before"] = np.where(product < 0, 0, g)
    return w - np.sign(state["before"]) * state["rate"]


ORACLES = {
    "SGD": with_decay(sgd), "Momentum": with_decay(momentum), "Adam": with_decay(adam), "AdamW": adamw, "Adamax": with_decay(adamax),
    "NAdam": with_decay(nadam), "RAdam": with_decay(radam), "Lamb": with_decay(lamb), "Adagrad": with_decay(adagrad),
    "Adadelta": with_decay(adadelta), "RMSProp": with_decay(rmsprop), "ASGD": with_decay(asgd), "Rprop": with_decay(rprop),
}  # fmt: skip
