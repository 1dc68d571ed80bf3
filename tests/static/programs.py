"""What tests of Programs share: static mode with fresh Programs, running, and comparing with the real PaddlePaddle."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

import sampan as paddle
from sampan import static


@contextmanager
def fresh_static_mode():
    """Static mode over fresh default Programs, a fresh scope and fresh names."""
    paddle.enable_static()
    main, startup = static.Program(), static.Program()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            yield main
    finally:
        paddle.disable_static()


def run(fetches, feed=None, program=None, start=False):
    """What one run fetches; ``start``: after the startup Program."""
    exe = static.Executor()
    if start:
        exe.run(static.default_startup_program())
    return exe.run(program or static.default_main_program(), feed=feed or {}, fetch_list=fetches)


def floats(*shape, seed=0):
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def held(name):
    """The elements of a persistable Variable in the global scope."""
    return static.global_scope().find_var(name).get_tensor().numpy()


def put(name, value):
    """Overwrite a persistable Variable in the global scope."""
    static.global_scope().find_var(name).get_tensor().set_value(value)
