"""Elementwise mathematics from the size of a cache to that of main memory."""

from __future__ import annotations

from .case import Case, jax_array, jax_work, random_array

_SIZES = {"64 Ki": 1 << 16, "1 Mi": 1 << 20, "16 Mi": 1 << 24}


def _chain(tanh, exp):
    return lambda x: exp(tanh(x * 1.5 + 0.5) * x) - x


_FUNCTIONS = {
    "exp": (lambda p: p.exp, lambda t: t.exp, lambda j: j.numpy.exp),
    "tanh": (lambda p: p.tanh, lambda t: t.tanh, lambda j: j.numpy.tanh),
    "gelu": (
        lambda p: p.nn.functional.gelu,
        lambda t: t.nn.functional.gelu,
        lambda j: lambda x: j.nn.gelu(x, approximate=False),
    ),
    "chain of 6": (
        lambda p: _chain(p.tanh, p.exp),
        lambda t: _chain(t.tanh, t.exp),
        lambda j: _chain(j.numpy.tanh, j.numpy.exp),
    ),
}


def _case(name: str, label: str, size: int) -> Case:
    of_paddle, of_torch, of_jax = _FUNCTIONS[name]

    def paddle(p):
        function, x = of_paddle(p), p.to_tensor(random_array(size, low=-4.0, high=4.0))
        return lambda: function(x)

    def torch(t):
        function, x = of_torch(t), t.from_numpy(random_array(size, low=-4.0, high=4.0))
        return lambda: function(x)

    def jax(j):
        return jax_work(j, of_jax(j), jax_array(j, random_array(size, low=-4.0, high=4.0)))

    return Case(f"{name}, {label}", "elementwise", paddle, torch, jax, size_bytes=8.0 * size, target=2.0)


CASES = tuple(_case(name, label, size) for name in _FUNCTIONS for label, size in _SIZES.items())
