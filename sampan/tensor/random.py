"""The random generator: every random operator takes the next key of a counter-based stream, so that results depend on the seed alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ..base.errors import ArgumentTypeError, UnsupportedError, message
from ..base.locks import new_lock
from ..base.places import parse_place
from ..ir.builder import current_builder

_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class GeneratorState:
    """What ``get_rng_state`` gives: the seed, and how many keys were drawn."""

    seed: int
    offset: int


class Generator:
    """Hands out one key a call, in program order. Thread safe.

    Args:
        device: the CPU, or a device's number, which makes no difference.
    """

    def __init__(self, device: Any = None) -> None:
        if not isinstance(device, int):
            parse_place("Generator", device)
        self._lock = new_lock()
        self._seed = int.from_bytes(os.urandom(7), "little")
        self._offset = 0

    def __repr__(self) -> str:
        # what paddle.seed() shows at a prompt
        return f"<paddle.base.libpaddle.Generator object at {id(self):#x}>"

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of this seed; gives the generator."""
        with self._lock:
            self._seed, self._offset = seed & _MASK, 0
        return self

    def initial_seed(self) -> int:
        """The seed in use."""
        return self._seed

    seed = initial_seed

    def random(self) -> int:
        """A number from [0, 2^32), drawn from the stream."""
        return self.next_key() & 0xFFFFFFFF

    def get_state(self) -> GeneratorState:
        """A state that ``set_state`` returns to."""
        with self._lock:
            return GeneratorState(self._seed, self._offset)

    def set_state(self, state: GeneratorState) -> None:
        """Go to a state that ``get_state`` gave."""
        if not isinstance(state, GeneratorState):
            raise ArgumentTypeError(message(f"set_state(): got a {type(state).__name__}", "it takes what get_state() gave"))
        with self._lock:
            self._seed, self._offset = state.seed, state.offset

    def next_key(self) -> int:
        """The key of the next random operator: an int64, mixed from seed and position by SplitMix64."""
        with self._lock:
            self._offset += 1
            z = (self._seed * 0xD1342543DE82EF95 + self._offset * 0x9E3779B97F4A7C15) & _MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        z ^= z >> 31
        return z - (1 << 64) if z >> 63 else z


default_generator = Generator()


def next_key() -> Any:
    """The key of the next random operator; inside a Program being built a Value, which each run gives the next key."""
    draw = getattr(current_builder(), "random_key", None)
    return default_generator.next_key() if draw is None else draw()


def seed(seed: int) -> Generator:
    """Seed the default generator; the same seed gives the same numbers on any number of threads.

    Example:
        >>> import sampan as paddle
        >>> _ = paddle.seed(7)
        >>> a = paddle.rand([2])
        >>> _ = paddle.seed(7)
        >>> bool((a == paddle.rand([2])).all())
        True
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ArgumentTypeError(message(f"seed(): got {seed!r}", "it takes an integer"))
    return default_generator.manual_seed(seed)


def get_rng_state(device: str | None = None) -> list[GeneratorState]:
    """The default generator's state, as a list with one entry."""
    return [default_generator.get_state()]


def set_rng_state(state_list: list[GeneratorState], device: str | None = None) -> None:
    """Go to the state that ``get_rng_state`` gave."""
    if not isinstance(state_list, (list, tuple)) or len(state_list) != 1:
        raise ArgumentTypeError("set_rng_state() takes the list of one state that get_rng_state() gave")
    default_generator.set_state(state_list[0])


def get_cuda_rng_state() -> list[GeneratorState]:
    """The states of the GPUs' generators: none."""
    return []


def set_cuda_rng_state(state_list: list[GeneratorState]) -> None:
    """Go to what ``get_cuda_rng_state`` gave: nothing to do without a GPU."""
    if state_list:
        raise UnsupportedError(
            message("set_cuda_rng_state(): got states", "this build of sampan has no GPU", "pass an empty list")
        )


def initial_seed() -> int:
    """The default generator's seed."""
    return default_generator.initial_seed()
