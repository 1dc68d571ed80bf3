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


IMAGE = paddle.arange(1600.0).reshape([1, 1, 40, 40])

OWN = {
    "randperm": lambda x: x * 0 + paddle.randperm(10)[:2],
    "randperm of rows": lambda x: IMAGE[0, 0][paddle.randperm(IMAGE.shape[2])] + 0 * x.sum(),
    "fractional_max_pool2d": lambda x: paddle.nn.functional.fractional_max_pool2d(IMAGE * x[0], 7),
    "fractional_max_pool3d": lambda x: paddle.nn.functional.fractional_max_pool3d(
        IMAGE.unsqueeze(2) * x[0], [1, 7, 7], return_mask=True
    )[1],
    "randint": lambda x: x * 0 + paddle.randint(0, 1000, [2]),
    "multinomial": lambda x: paddle.multinomial(paddle.ones([40]) * x[0], 10),
    "normal_": lambda x: (x + 0).normal_(),
    "dropout of a constant": lambda x: paddle.nn.functional.dropout(paddle.ones([50]), 0.5) * x[0],
}


@pytest.mark.parametrize("name", OWN)
def test_the_frameworks_own_numbers_are_drawn_anew_as_in_eager_mode(name):
    function = OWN[name]
    converted = to_static(function, full_graph=True)
    found = []
    for call in (function, converted):
        paddle.seed(7)
        found.append([call(X).numpy() for _ in range(3)])
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[1][0], found[1][1])


def test_a_permutation_of_unknown_length_is_drawn_for_every_run():
    def shuffled(x):
        return x[paddle.randperm(x.shape[0])] * 1

    converted = to_static(shuffled, full_graph=True, input_spec=[paddle.static.InputSpec([None, 3])])
    for rows in (4, 30):
        x = paddle.arange(3.0 * rows).reshape([rows, 3])
        first, second = (converted(x).numpy() for _ in range(2))
        np.testing.assert_array_equal(np.sort(first, 0), x.numpy())
        assert rows < 30 or not np.array_equal(first, second)


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
