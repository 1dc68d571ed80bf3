"""Random numbers of Python's and NumPy's in converted functions: eager mode draws new ones in every call, and so must what is converted."""

from __future__ import annotations

import random

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ConversionError
from sampan.jit import to_static

X = paddle.to_tensor([1.0, 2.0])
GENERATOR = np.random.default_rng(3)
STATE = np.random.RandomState(3)


def of_numpy(x):
    return x * np.random.rand()


def of_python(x):
    return x + random.random()


def of_a_range(x):
    return x * random.uniform(1, 2)


def of_a_generator(x):
    return x + float(GENERATOR.normal())


def of_a_state(x):
    return x + paddle.to_tensor(STATE.randn(2).astype("float32"))


def without_a_seed(x):
    return x * float(np.random.default_rng().random())


@pytest.mark.parametrize(
    "function", [of_numpy, of_python, of_a_range, of_a_generator, of_a_state, without_a_seed], ids=lambda f: f.__name__
)
def test_they_are_refused_or_drawn_anew(function):
    with pytest.raises(ConversionError, match=rf"(?s)random numbers.*in {function.__name__}"):
        to_static(function, full_graph=True)(X)
    static = to_static(function)
    assert len({static(X).tolist()[0] for _ in range(4)}) == 4
    assert "every run would use the same" in static.fallback_reason


def test_numbers_of_a_seed_given_inside_are_the_same_in_every_call():
    def seeded(x):
        noise = np.random.RandomState(5).randn(2) + np.random.default_rng(7).random(2) + random.Random(1).random()
        return x + paddle.to_tensor(noise.astype("float32"))

    static = to_static(seeded, full_graph=True)
    for _ in range(2):
        np.testing.assert_allclose(static(X).numpy(), seeded(X).numpy(), rtol=1e-6)
