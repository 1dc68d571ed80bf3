"""Half of a training run, saved and resumed: run with ``paddle`` the real one as a script, and in the tests with sampan.

pdopt_script.py FOLDER SAVE_AS [LOAD_FROM]
"""

from __future__ import annotations

import sys

import numpy as np

# RAdam with beta2 0.999 asks at step 5 whether 4.996 is above 5, which float32 sums, as Paddle keeps them, cannot tell
OPTIMIZERS = {
    "Momentum": {}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adamax": {}, "NAdam": {}, "RAdam": {"beta2": 0.99}, "Lamb": {}, "Adagrad": {},
    "Adadelta": {}, "RMSProp": {"centered": True, "momentum": 0.5}, "ASGD": {"batch_num": 3}, "Rprop": {},
}  # fmt: skip


def train(paddle, folder, save_as, load_from=None):
    """Four steps of every optimizer from the saved states, or from the start; saves parameters and states."""
    for name, options in OPTIMIZERS.items():
        first = paddle.ParamAttr(name=f"{name}.w", initializer=paddle.nn.initializer.Constant(1.0))
        w = paddle.create_parameter([2, 3], "float32", attr=first)
        schedule = paddle.optimizer.lr.StepDecay(0.05, step_size=3, gamma=0.5)
        rate = 0.05 if name == "Rprop" else schedule
        optimizer = getattr(paddle.optimizer, name)(rate, parameters=[w], **options)
        start = 0
        if load_from is not None:
            w.set_value(paddle.load(f"{folder}/{load_from}_{name}.pdparams")["w"])
            optimizer.set_state_dict(paddle.load(f"{folder}/{load_from}_{name}.pdopt"))
            start = 4
        for step in range(start, start + 4):
            w.grad = paddle.to_tensor(np.sin(np.arange(6) + step).reshape(2, 3).astype("float32"))
            optimizer.step()
            schedule.step()
        paddle.save({"w": w}, f"{folder}/{save_as}_{name}.pdparams")
        paddle.save(optimizer.state_dict(), f"{folder}/{save_as}_{name}.pdopt")


if __name__ == "__main__":
    import paddle

    train(paddle, *sys.argv[1:])
