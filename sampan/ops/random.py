"""Random operators. ``key`` makes each call's numbers; a result depends on it and on the element's position only, never on threads."""

from __future__ import annotations

import math

from ..base import dtypes
from ..base.errors import ArgumentError, DTypeError, message
from . import primitives as p
from .arguments import dtype_name, matched
from .common import uniform_bits
from .creation import sizes
from .define import op


def _floating(name, dtype):
    found = dtype_name(name, dtype) if dtype is not None else dtypes.default_float()
    if not dtypes.is_differentiable(found):
        raise DTypeError(message(f"{name}(): dtype={found}", "it must be a floating type"))
    return found


def uniform_numbers(key, shape, dtype):
    """Uniform in [0, 1), in the type; 16-bit ones are rounded from float32 and kept below 1."""
    wide = uniform_bits(key, shape, "float64" if dtype == "float64" else "float32")
    if dtypes.itemsize(dtype) == 2:
        return p.cast(p.minimum(wide, 1 - 2.0**-8 if dtype == "bfloat16" else 1 - 2.0**-11), dtype)
    return wide


def normal_numbers(key, shape, dtype):
    """Standard normal, by Box and Muller's transform of two uniform streams."""
    wide = "float64" if dtype == "float64" else "float32"
    count = 4 if wide == "float64" else 2
    if wide == "float64":
        u = p.mul(
            p.add(
                p.cast(p.random_bits(key, shape, 0, count), wide),
                p.mul(p.add(p.cast(p.random_bits(key, shape, 1, count), wide), 1.0), 2.0**-32),
            ),
            2.0**-32,
        )
        v = p.mul(p.cast(p.random_bits(key, shape, 2, count), wide), 2.0**-32)
    else:
        u = p.mul(p.add(p.cast(p.shift_right(p.random_bits(key, shape, 0, count), 8), wide), 1.0), 2.0**-24)
        v = p.mul(p.cast(p.shift_right(p.random_bits(key, shape, 1, count), 8), wide), 2.0**-24)
    radius = p.sqrt(p.mul(p.log(u), -2.0))
    return p.cast(p.mul(radius, p.cos(p.mul(v, 2 * math.pi))), dtype)


def integers_below(key, shape, bound):
    """Uniform int64 in [0, bound): 62 random bits modulo the bound, the bias below 2^-30 for bounds to 2^32."""
    high = p.shift_left(p.shift_right(p.random_bits(key, shape, 0, 2), 2), 32)
    return p.mod(p.add(high, p.random_bits(key, shape, 1, 2)), bound)


@op(operands=("base",), tests="nograd noempty")
def fold_key(base, number):
    """The key of stream ``number`` of those that belong to a key: for random operators in blocks that run many times.

    Mixed by SplitMix64's finalizer.
    """
    z = p.add(base, (number * 0x9E3779B97F4A7C15 + (1 << 63)) % (1 << 64) - (1 << 63))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = p.mul(p.bitwise_xor(z, p.shift_right(z, shift)), factor - (1 << 64))
    return p.bitwise_xor(z, p.shift_right(z, 31))


@op("uniform", operands=("key",), creates=True, tests="nograd noempty")
def uniform(shape, dtype=None, min=0, max=1.0, seed=0, key=None):
    """Uniform numbers in [min, max)."""
    dtype = _floating("uniform", dtype)
    u = uniform_numbers(key, sizes("uniform", shape), dtype)
    return p.add(p.mul(u, float(max) - float(min)), float(min))


@op("rand", operands=("key",), creates=True, tests="nograd noempty", aliases={"size": "shape"})
def rand(shape, dtype=None, key=None):
    """Uniform numbers in [0, 1)."""
    return uniform_numbers(key, sizes("rand", shape), _floating("rand", dtype))


@op(("randn", "standard_normal"), operands=("key",), creates=True, tests="nograd noempty", aliases={"size": "shape"})
def randn(shape, dtype=None, key=None):
    """Standard normal numbers; complex ones have variance 1 over both parts."""
    return _normal(key, sizes("randn", shape), _floating("randn", dtype))


def _normal(key, shape, dtype):
    if not dtypes.is_complex(dtype):
        return normal_numbers(key, shape, dtype)
    parts = normal_numbers(key, (2, *shape), dtypes.real_of(dtype))
    halves = [p.reshape(p.slice_(parts, (k, *(0,) * len(shape)), (1, *shape), (1,) * (len(shape) + 1)), shape) for k in range(2)]
    return p.make_complex(p.mul(halves[0], math.sqrt(0.5)), p.mul(halves[1], math.sqrt(0.5)))


@op("rand_like", operands=("input", "key"), keyword_only=("dtype",), creates=True, tests="nograd noempty")
def rand_like(input, dtype=None, key=None):
    """Uniform numbers in [0, 1), shaped like input."""
    return uniform_numbers(key, input.shape, dtype_name("rand_like", dtype) if dtype is not None else input.dtype)


@op("randn_like", operands=("x", "key"), creates=True, tests="nograd noempty")
def randn_like(x, dtype=None, key=None):
    """Standard normal numbers, shaped like x."""
    return _normal(key, x.shape, dtype_name("randn_like", dtype) if dtype is not None else x.dtype)


def _bounds(name, low, high):
    if high is None:
        low, high = 0, low
    if not high > low:
        raise ArgumentError(message(f"{name}(): low={low}, high={high}", "high must be above low"))
    return int(low), int(high)


@op("randint", operands=("key",), tests="nograd noempty")
def randint(low=0, high=None, shape=(1,), dtype=None, key=None):
    """Uniform integers in [low, high), or in [0, low) when high is None; int64 by default."""
    low, high = _bounds("randint", low, high)
    drawn = p.add(integers_below(key, sizes("randint", shape), high - low), low)
    return p.cast(drawn, "int64" if dtype is None else dtype_name("randint", dtype))


@op("randint_like", operands=("x", "key"), tests="nograd noempty")
def randint_like(x, low=0, high=None, dtype=None, key=None):
    """Uniform integers in [low, high), shaped like x, in its dtype by default."""
    low, high = _bounds("randint_like", low, high)
    drawn = p.add(integers_below(key, x.shape, high - low), low)
    return p.cast(drawn, x.dtype if dtype is None else dtype_name("randint_like", dtype))


@op(operands=("mean", "std", "key"), tests="nograd noempty")
def normal_draw(mean, std, shape, key):
    """mean + std * standard normal numbers, of the operands' broadcast shape or of ``shape``."""
    mean, std = matched(mean, std)
    if not dtypes.is_differentiable(mean.dtype):
        mean, std = p.cast(mean, dtypes.default_float()), p.cast(std, dtypes.default_float())
    target = mean.shape if shape is None else sizes("normal", shape)
    drawn = _normal(key, target, mean.dtype)
    return p.add(p.broadcast_to(mean, target), p.mul(drawn, p.broadcast_to(std, target)))


@op(operands=("x", "key"), tests="nograd noempty")
def bernoulli_draw(x, probability, key=None):
    """1 with probability x (or ``probability``, where it is no None), else 0; shaped like x, in its dtype."""
    wide = "float64" if x.dtype == "float64" else "float32"
    chance = p.cast(x, wide) if probability is None else p.full(x.shape, float(probability), wide)
    return p.cast(p.lt(uniform_numbers(key, x.shape, wide), chance), x.dtype)
