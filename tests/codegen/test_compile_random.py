"""Random small Programs: compiled equals interpreted."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.compiling import check

from sampan.base.dtypes import numpy_dtype
from sampan.ops import primitives as p

SIZES = (1, 1, 2, 3, 5, 17)


class Case:
    """Draws a Program; the same for the same seed."""

    def __init__(self, seed: int, dtype: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = dtype
        self.is_float = dtype in ("float32", "float64", "float16", "bfloat16")

    def array(self):
        """An operand, often with odd strides."""
        shape = tuple(
            int(self.rng.choice((*SIZES, 0) if self.rng.random() < 0.1 else SIZES)) for _ in range(self.rng.integers(0, 4))
        )
        values = (
            self.rng.uniform(-2, 2, shape) if self.is_float else self.rng.integers(-5 if self.dtype[0] == "i" else 0, 6, shape)
        )
        x = values.astype(numpy_dtype(self.dtype))
        if x.ndim and self.rng.random() < 0.3:
            x = x.transpose(self.rng.permutation(x.ndim))
        if x.ndim and x.shape[0] > 1 and self.rng.random() < 0.2:
            x = x[::-1] if self.rng.random() < 0.5 else x[1:]
        return x

    def body(self, *arguments):
        """The results of some random steps."""
        values = list(arguments)
        for _ in range(self.rng.integers(2, 9)):
            x = values[self.rng.integers(len(values))]
            made = self.steps[self.rng.integers(len(self.steps))](self, x, values)
            if made is not None and made.numel <= 20000:
                values.append(made)
        made = values[len(arguments) :] or values
        count = min(len(made), int(self.rng.integers(1, 4)))
        return tuple(made[k] for k in self.rng.choice(len(made), count, replace=False))

    def tame(self, x):
        return p.tanh(x) if self.is_float else p.maximum(p.minimum(x, 5), 0)

    def unary(self, x, _):
        names = ["neg", "tanh", "sigmoid", "erf", "exp"] if self.is_float else ["neg"]
        return self.tame(getattr(p, names[self.rng.integers(len(names))])(x))

    def binary(self, x, values):
        y = values[self.rng.integers(len(values))]
        try:
            shape = p.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return None
        x, y = p.broadcast_to(x, shape), p.broadcast_to(y, shape)
        name = ("add", "sub", "mul", "maximum", "minimum")[self.rng.integers(5)]
        return self.tame(getattr(p, name)(x, y))

    def constant(self, x, _):
        return self.tame(p.add(p.mul(x, 3 if not self.is_float else 0.5), (0, 1)[self.rng.integers(2)]))

    def choose(self, x, _):
        return p.select(p.gt(x, 0), x, p.mul(x, 2))

    def transpose(self, x, _):
        return p.transpose(x, tuple(int(k) for k in self.rng.permutation(x.ndim)))

    def reshape(self, x, _):
        if self.rng.random() < 0.5:
            at = int(self.rng.integers(x.ndim + 1))
            return p.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))
        return p.reshape(x, (x.numel,))

    def expand(self, x, _):
        if x.ndim > 3:
            return None
        lead = (3,) if self.rng.random() < 0.5 else ()
        return p.broadcast_to(x, (*lead, *(n if n != 1 else int(self.rng.integers(1, 4)) for n in x.shape)))

    def slice(self, x, _):
        starts, sizes, steps = [], [], []
        for n in x.shape:
            if n < 2 or self.rng.random() < 0.5:
                choice = (0, n, 1)
            elif self.rng.random() < 0.5:
                choice = (n - 1, n, -1)
            else:
                choice = (1, n // 2, 1 if n < 4 else 2)
                choice = (1, min(choice[1], (n - 2) // choice[2] + 1), choice[2])
            for items, value in zip((starts, sizes, steps), choice, strict=True):
                items.append(value)
        return p.slice_(x, tuple(starts), tuple(sizes), tuple(steps))

    def reduce(self, x, _):
        if not x.ndim or 0 in x.shape:
            return None
        axes = tuple(k for k in range(x.ndim) if self.rng.random() < 0.5) or (x.ndim - 1,)
        name = ("reduce_sum", "reduce_max", "reduce_min")[self.rng.integers(3)]
        y = getattr(p, name)(x, axes)
        return p.reshape(y, tuple(n for k, n in enumerate(y.shape) if k not in axes)) if self.rng.random() < 0.3 else self.tame(y)

    def softmax(self, x, _):
        if not x.ndim or not self.is_float or 0 in x.shape:
            return None
        axis = int(self.rng.integers(x.ndim))
        e = p.exp(p.sub(x, p.broadcast_to(p.reduce_max(x, (axis,)), x.shape)))
        return p.div(e, p.broadcast_to(p.reduce_sum(e, (axis,)), x.shape))

    def position(self, x, _):
        if not x.ndim:
            return None
        return self.tame(p.add(p.cast(p.iota(x.shape, int(self.rng.integers(x.ndim)), "int32"), self.dtype), x))

    def pad(self, x, _):
        low = tuple(int(k) for k in self.rng.integers(0, 3, x.ndim))
        return p.pad(x, low, low[::-1], 1)

    def concat(self, x, _):
        return p.concat([x, self.tame(x)], int(self.rng.integers(x.ndim))) if x.ndim else None

    def insert(self, x, _):
        if not x.ndim or x.shape[0] < 2:
            return None
        part = p.slice_(x, (0,) * x.ndim, (x.shape[0] - 1, *x.shape[1:]), (1,) * x.ndim)
        return p.insert_slice(x, p.neg(part), (1, *(0,) * (x.ndim - 1)), (1,) * x.ndim)

    def gram(self, x, _):
        return self.tame(p.matmul(x, p.swap_last(x))) if x.ndim in (2, 3) else None

    steps = (
        unary,
        binary,
        binary,
        constant,
        choose,
        transpose,
        reshape,
        expand,
        slice,
        reduce,
        reduce,
        softmax,
        position,
        pad,
        concat,
        insert,
        gram,
    )


class Square(Case):
    """Programs whose values have the same sizes along axes of different meaning: kernels that are joined must not confuse them."""

    size = 5

    def array(self):
        n = self.size
        shapes = ((n, n), (n, 1, n), (n,), (n, n, n), (1, n), (n, 1))
        x = self.rng.uniform(-2, 2, shapes[self.rng.integers(len(shapes))]).astype(self.dtype)
        return x.transpose(self.rng.permutation(x.ndim)) if self.rng.random() < 0.3 else x

    def body(self, *arguments):
        values = list(arguments)
        for _ in range(self.rng.integers(4, 14)):
            x = values[-1 - int(min(self.rng.exponential(1.5), len(values) - 1))]
            made = self.steps[self.rng.integers(len(self.steps))](self, x, values)
            if made is not None and made.numel <= 2000:
                values.append(made)
        return tuple(values[-2:])

    def paired(self, x, values):
        same = [v for v in values if v.numel == x.numel and v is not x]
        if not same or self.rng.random() < 0.2:
            return self.binary(x, values)
        y = p.reshape(same[self.rng.integers(len(same))], x.shape)
        return self.tame(getattr(p, ("add", "sub", "mul", "maximum")[self.rng.integers(4)])(x, y))

    def centred(self, x, _):
        if not x.ndim:
            return None
        axes = tuple(k for k in range(x.ndim) if self.rng.random() < 0.4) or (int(self.rng.integers(x.ndim)),)
        y = getattr(p, ("reduce_sum", "reduce_max")[self.rng.integers(2)])(x, axes)
        if self.rng.random() < 0.3:
            return p.reshape(y, tuple(n for k, n in enumerate(y.shape) if k not in axes))
        return self.tame(p.sub(x, p.broadcast_to(y, x.shape)))

    def squeezed(self, x, _):
        return p.reshape(x, tuple(n for n in x.shape if n != 1))

    def window(self, x, _):
        if not x.ndim or x.shape[-1] != self.size:
            return None
        wide = p.concat([x, self.tame(x)], x.ndim - 1)
        start = int(self.rng.integers(self.size + 1))
        return p.slice_(wide, (*(0 for _ in x.shape[1:]), start), x.shape, (1,) * x.ndim)

    steps = (
        *(Case.unary, Case.constant, Case.transpose, Case.transpose, Case.reshape, Case.softmax, Case.expand),
        *(paired, paired, paired, centred, centred, centred, squeezed, window),
    )


#: Seeds whose Programs were computed wrongly once, and some more.
SQUARE_SEEDS = (552, 772, 807, 1058, 1489, 1519, 1842, 2067, 2530, 2968, 3055, 3065, 3103, 3122, 3432, *range(25))


@pytest.mark.parametrize("seed", SQUARE_SEEDS)
def test_joined_kernels_do_not_confuse_axes_of_the_same_size(seed):
    case = Square(seed, "float32")
    check(case.body, *(case.array() for _ in range(case.rng.integers(1, 4))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("seed", range(30))
def test_random_programs_compile_to_what_the_interpreter_gives(seed, dtype):
    case = Case(seed * 7 + len(dtype), dtype)
    arrays = [case.array() for _ in range(case.rng.integers(1, 4))]
    check(case.body, *arrays)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_of_half_types_stay_within_their_rounding(seed, dtype):
    case = Case(1000 + seed, dtype)
    arrays = [case.array() for _ in range(case.rng.integers(1, 3))]
    check(case.body, *arrays, scale=4)
