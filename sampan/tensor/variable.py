"""Variable: a symbolic tensor of a Program that is being recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import UnknownValueError, message
from ..ir.program import Value
from .location import user_location
from .size import Size
from .sizes import DERIVED

#: The two sizes that unknown dimensions are tried with: what comes out different depends on them. Both divide by 1 to 6, 8, 9, 10, 12, 16 and 32.
PROBES = (1440, 2880)
UNKNOWN = -1

_own_shape: Any = vars(Value)["shape"]  # the slot's descriptor


class Variable(Value):
    """A tensor of a recorded Program: of known dtype and rank, with -1 for sizes that are known when the Program runs.

    Attributes:
        stop_gradient: no gradient flows through it.
        persistable: its value outlives a run (parameters, running statistics).
        probes: its shape under either size in ``PROBES``; None when all sizes are known.
    """

    #: Whether it is a tensor array.
    is_array = False

    def __init__(
        self,
        dtype: str,
        shape: Sequence[int],
        name: str = "",
        *,
        stop_gradient: bool = True,
        persistable: bool = False,
        weak: bool = False,
        probes: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> None:
        super().__init__(dtype, tuple(shape), None, name, weak)
        self.stop_gradient = stop_gradient
        self.persistable = persistable
        #: No gradient flows through it because none flowed to its operands, and for no other reason.
        self.was_constant = False
        #: It was computed where no gradients are recorded: none flows from it to what it was computed from, even where it is made to want one.
        self.is_severed = False
        self.latest: Variable = self
        #: An in-place form gave it another layout: its memory cannot be written in the middle of a run.
        self.is_rebound = False
        self.recorder: Any = None
        #: Its elements under either probe, where they follow from the sizes of tensors alone.
        self.known: tuple[Any, Any] | None = None
        #: Whether they follow from known sizes only, so that every run has them.
        self.is_fixed = False
        if probes is None and UNKNOWN in self.sizes:
            first, second = (tuple(p if n == UNKNOWN else n for n in self.sizes) for p in PROBES)
            probes = first, second
        self.probes = probes

    @property
    def is_derived(self) -> bool:
        """Whether its elements follow from sizes alone, and are computed in its own block, so that a piece of it can compute them."""
        return self.op is not None and DERIVED in self.op.attributes

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its own sizes, whatever was written into it since."""
        return _own_shape.__get__(self)

    @property
    def shape(self) -> Any:  # type: ignore[override]
        """The sizes of its axes, after writes in place; -1 for unknown ones."""
        return Size(self.latest.sizes)

    @shape.setter
    def shape(self, sizes: Any) -> None:
        _own_shape.__set__(self, tuple(sizes))

    def probe(self, number: int) -> tuple[int, ...]:
        """Its sizes when unknown ones are ``PROBES[number]``."""
        return self.sizes if self.probes is None else self.probes[number]

    def like(self, name: str = "") -> Variable:
        """A new Variable of its type."""
        made = Variable(
            self.dtype, self.sizes, name or self.name, stop_gradient=self.stop_gradient, weak=self.weak, probes=self.probes
        )
        made.was_constant = self.was_constant
        return made

    def merged(self, other: Any) -> Variable:
        """A Variable of both types, of equal dtypes and ranks: sizes that differ are unknown."""
        sizes = tuple(m if m == n else UNKNOWN for m, n in zip(self.sizes, other.sizes, strict=True))
        probes = self.probes if self.probes == other.probes and sizes == self.sizes else None
        return Variable(self.dtype, sizes, stop_gradient=self.stop_gradient and other.stop_gradient, probes=probes)

    @property
    def loop_kind(self) -> Any:
        """What must stay from pass to pass of a loop."""
        return self.stop_gradient, self.sizes

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.latest.sizes)

    def __repr__(self) -> str:
        return f"Variable({self.name}: {self.dtype}{list(self.shape)}, stop_gradient={self.stop_gradient})"

    def __bool__(self) -> bool:
        raise self.unknown("has no truth value", "use paddle.where(), or jit.to_static for `if` and `while`")

    def unknown(self, what: str, hint: str) -> UnknownValueError:
        """The error for asking a Variable for what only a run can know."""
        where = user_location()
        text = message(
            f"the Variable {self.name} ({self.dtype}{list(self.shape)}) {what}",
            "its elements are known when the Program runs",
            hint,
        )
        return UnknownValueError(f"{text}\n  {where}" if where else text)

    def __len__(self) -> int:
        if not self.ndim or self.shape[0] == UNKNOWN:
            raise self.unknown("has no length", "use paddle.shape(x)[0]")
        return int(self.shape[0])

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self))])  # type: ignore[index]

    def __float__(self) -> float:
        raise self.unknown("cannot become a float", "cast it with .astype('float32')")

    def __int__(self) -> int:
        raise self.unknown("cannot become an int", "cast it with .astype('int64')")

    __index__ = __int__

    def _no_elements(self, *args: Any, **kwargs: Any) -> Any:
        raise self.unknown("has no elements yet", "fetch it from Executor.run(), or return it from the function")

    numpy = __array__ = _no_elements

    def item(self, *args: int) -> Any:
        """Refused: only converted code has a number for it."""
        return self._no_elements()

    def tolist(self) -> Any:
        """Refused: only converted code has numbers for it."""
        return self._no_elements()

    __hash__ = Value.__hash__
