"""Ten steps of every optimizer on given gradients; run as a script where ``import paddle`` is the real one, it prints Paddle's results."""

from __future__ import annotations

import json

import numpy as np

RATE = {"learning_rate": 0.1}
CASES = {
    "sgd": ("SGD", RATE),
    "sgd_decay": ("SGD", {**RATE, "weight_decay": 0.05}),
    "momentum_decay": ("Momentum", {**RATE, "weight_decay": 0.05}),
    "momentum_nesterov": ("Momentum", {**RATE, "use_nesterov": True, "momentum": 0.7}),
    "adam": ("Adam", RATE),
    "adam_decay": ("Adam", {**RATE, "weight_decay": 0.05, "beta1": 0.5, "beta2": 0.7, "epsilon": 0.1}),
    "adam_amsgrad": ("Adam", {**RATE, "amsgrad": True, "beta2": 0.5}),
    "adamw": ("AdamW", RATE),
    "adamw_decay": ("AdamW", {**RATE, "weight_decay": 0.3, "amsgrad": True}),
    "adamax": ("Adamax", RATE),
    "adamax_decay": ("Adamax", {**RATE, "weight_decay": 0.05, "beta2": 0.5, "epsilon": 0.1}),
    "nadam": ("NAdam", RATE),
    "nadam_decay": ("NAdam", {**RATE, "weight_decay": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.1, "momentum_decay": 0.5}),
    "radam": ("RAdam", RATE),
    "radam_decay": ("RAdam", {**RATE, "weight_decay": 0.05, "beta1": 0.8, "beta2": 0.9, "epsilon": 0.1}),
    "radam_never_rectified": ("RAdam", {**RATE, "beta2": 0.5}),
    "lamb": ("Lamb", RATE),
    "lamb_options": ("Lamb", {**RATE, "lamb_weight_decay": 0.3, "beta1": 0.5, "beta2": 0.6, "epsilon": 0.1}),
    "lamb_without_decay": ("Lamb", {**RATE, "lamb_weight_decay": 0.0}),
    "lamb_always_adapt": ("Lamb", {**RATE, "lamb_weight_decay": 0.0, "always_adapt": True}),
    "adagrad": ("Adagrad", RATE),
    "adagrad_options": ("Adagrad", {**RATE, "initial_accumulator_value": 0.5, "epsilon": 0.1, "weight_decay": 0.05}),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "adadelta_options": ("Adadelta", {"learning_rate": 1.0, "epsilon": 0.1, "rho": 0.8, "weight_decay": 0.05}),
    "rmsprop": ("RMSProp", RATE),
    "rmsprop_centered": ("RMSProp", {**RATE, "centered": True, "momentum": 0.9, "epsilon": 0.1, "rho": 0.9, "weight_decay": 0.05}),
    "asgd": ("ASGD", {**RATE, "weight_decay": 0.05}),
    "asgd_batches": ("ASGD", {**RATE, "batch_num": 3}),
    "rprop": ("Rprop", RATE),
    "rprop_options": ("Rprop", {**RATE, "learning_rate_range": (0.05, 0.12), "etas": (0.7, 1.3)}),
}  # fmt: skip
SHAPES = ((2, 3), (3,))


def data():
    """The first weights, and ten gradients of each."""
    rng = np.random.default_rng(7)
    weights = [rng.normal(size=s).astype(np.float32) for s in SHAPES]
    return weights, [[rng.normal(size=s).astype(np.float32) for _ in range(10)] for s in SHAPES]


def parameter(paddle, start, name):
    """A parameter of this name with these values."""
    attr = paddle.ParamAttr(name=name, initializer=paddle.nn.initializer.Assign(start))
    return paddle.create_parameter(list(start.shape), "float32", attr=attr)


def run(paddle, case):
    """The weights after ten steps, and the optimizer."""
    name, options = CASES[case]
    weights, grads = data()
    params = [parameter(paddle, w, f"{case}_{k}") for k, w in enumerate(weights)]
    optimizer = getattr(paddle.optimizer, name)(parameters=params, **options)
    for step in range(10):
        for p, g in zip(params, grads):
            p.grad = paddle.to_tensor(g[step])
        optimizer.step()
    return params, optimizer


def results(paddle, case):
    """Weights and states as lists."""
    params, optimizer = run(paddle, case)
    state = {k: np.asarray(v.numpy()).tolist() for k, v in optimizer.state_dict().items()}
    return {"weights": [p.numpy().tolist() for p in params], "state": state}


if __name__ == "__main__":
    import paddle

    print(json.dumps({case: results(paddle, case) for case in CASES}))
