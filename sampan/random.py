"""``paddle.random``: the default generator's seed."""

from .tensor.random import initial_seed, seed

__all__ = ["initial_seed", "seed"]
