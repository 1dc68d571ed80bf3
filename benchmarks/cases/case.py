"""What a case is: one piece of work, written for Paddle's API (sampan and PaddlePaddle) and for each other framework."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Work = Callable[[], Any]  # one call of the measured work; what it returns is compared between the frameworks
Body = Callable[[Any], Work]  # takes the framework's module, prepares everything, gives the work


@dataclass(frozen=True)
class Case:
    """One piece of work.

    ``paddle`` is the body for sampan and PaddlePaddle; a framework without a body does not take part. ``flops`` and
    ``size_bytes`` of one call give rates. ``eager`` and ``torch_eager`` are what the peers ``sampan-eager`` and ``torch-eager``
    run, for cases that are compiled. ``target`` is the least ratio (the fastest of ``against``, over sampan) that is wanted.
    ``library_target`` is the same for oneDNN called directly. ``tolerance`` bounds the relative difference of the results between frameworks.
    """

    name: str
    group: str
    paddle: Body
    torch: Body | None = None
    jax: Body | None = None
    onednn: Body | None = None
    onnxruntime: Body | None = None
    eager: Body | None = None
    torch_eager: Body | None = None
    flops: float = 0.0
    size_bytes: float = 0.0
    target: float = 1.0
    against: tuple[str, ...] = ("torch", "paddle")
    library_target: float | None = None
    tolerance: float = 1e-3

    def body(self, peer: str) -> Body | None:
        """The peer's body; sampan takes Paddle's."""
        return getattr(self, {"sampan": "paddle", "sampan-eager": "eager", "torch-eager": "torch_eager"}.get(peer, peer))


def random_array(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """The same float32 numbers in every process."""
    return np.random.default_rng(seed).uniform(low, high, shape).astype("float32")


def jax_array(jax: Any, array: np.ndarray) -> Any:
    """A JAX array, ready on the device."""
    return jax.numpy.asarray(array).block_until_ready()


def jax_work(jax: Any, function: Callable[..., Any], *operands: Any) -> Work:
    """The compiled function over its operands, waited for."""
    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*operands))
