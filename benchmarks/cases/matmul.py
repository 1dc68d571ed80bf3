"""float32 matrix products: square, skinny, batched, transposed."""

from __future__ import annotations

from . import direct
from .case import Case, jax_array, jax_work, random_array


def _matmul(name: str, left: tuple[int, ...], right: tuple[int, ...], transpose_y: bool = False) -> Case:
    def arrays():
        return random_array(*left), random_array(*right, seed=1)

    def paddle(p):
        a, b = map(p.to_tensor, arrays())
        return lambda: p.matmul(a, b, transpose_y=transpose_y)

    def torch(t):
        a, b = map(t.from_numpy, arrays())
        b = b.mT if transpose_y else b
        return lambda: t.matmul(a, b)

    def jax(j):
        a, b = (jax_array(j, v) for v in arrays())
        return jax_work(j, lambda x, y: j.numpy.matmul(x, y.swapaxes(-1, -2) if transpose_y else y), a, b)

    def onednn(library):
        return direct.matmul(library, *arrays(), transpose_y)

    columns = right[-2] if transpose_y else right[-1]
    flops = 2.0 * columns
    for size in left:
        flops *= size
    return Case(f"matmul {name}", "matmul", paddle, torch, jax, onednn, flops=flops, library_target=0.9)


CASES = (
    *(_matmul(f"{n} x {n} x {n}", (n, n), (n, n)) for n in (64, 128, 256, 512, 1024, 2048)),
    _matmul("8 x 1024 x 1024", (8, 1024), (1024, 1024)),
    _matmul("2048 x 64 x 2048", (2048, 64), (64, 2048)),
    _matmul("64 x 2048 x 64", (64, 2048), (2048, 64)),
    _matmul("batch 32, 256 x 64 x 256", (32, 256, 64), (32, 64, 256)),
    _matmul("512 x 512 x 512, y transposed", (512, 512), (512, 512), transpose_y=True),
)
