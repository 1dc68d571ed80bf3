"""Views among the Variables of a Program: what a write in place means for tensors that share memory in eager mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..base.errors import UnsupportedError, message
from ..ir.program import Op
from ..ops.define import operator_named
from .variable import Variable

#: View operators that copy where strides cannot express the result: whether they share memory is known when the Program runs.
_MAY_COPY = frozenset(
    {"reshape", "view_as", "flatten", "ravel", "unflatten", "as_strided", "take_slices", "meshgrid", "broadcast_tensors"}
)


@dataclass(frozen=True)
class _View:
    base: Variable
    view: Variable
    op: Op
    is_base_reshaped: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it shares memory for sure, and follows from the base alone."""
        return not self.is_base_reshaped and len(self.op.inputs) == 1 and self.op.name.removeprefix("op.") not in _MAY_COPY


class Aliases:
    """The views of one Program.

    A write to a Variable is seen by its views: those that share memory for sure are computed again from the new version, others must not be read any
    more. A write to a view would change its base: that must not be read any more, nor the base's other views.
    """

    def __init__(self) -> None:
        self._of_base: dict[int, list[_View]] = {}
        self._of_view: dict[int, _View] = {}
        self._stale: dict[int, tuple[Variable, Variable]] = {}

    def note(self, base: Variable, op: Op) -> None:
        """The Op made a view of the base: its first output, as in eager mode."""
        view: Any = op.outputs[0]
        made = self._of_view[id(view)] = _View(base, view, op)
        self._of_base.setdefault(id(base), []).append(made)

    def reshaped(self, target: Variable) -> None:
        """The target got another layout in place: what its views are of it is no longer known."""
        found = self._of_base.get(id(target), [])
        found[:] = [replace(v, is_base_reshaped=True) for v in found]

    def written(
        self,
        target: Variable,
        new: Variable,
        again: Callable[[Op, Variable], Op],
        write: Callable[[Variable, Variable], None],
        is_seen: Callable[[Variable], bool],
    ) -> None:
        """The target became another version: ``again(op, operand)`` repeats an Op on it, ``write`` makes a view another version, ``is_seen`` says whether
        a view can be used where the write is."""
        self._stale.pop(id(target), None)
        own = self._of_view.get(id(target))
        if own is not None:
            self._forget_family(own, target)
        self._follow(target, new, again, write, is_seen)

    def _follow(
        self,
        base: Variable,
        new: Variable,
        again: Callable[[Op, Variable], Op],
        write: Callable[[Variable, Variable], None],
        is_seen: Callable[[Variable], bool],
    ) -> None:
        for view in list(self._of_base.get(id(base), ())):
            if not is_seen(view.view):
                continue  # of a block that is closed, or another one
            if not view.is_certain:
                self._stale.update((id(member), (member, base)) for member in self._family(view.view))
                continue
            made: Any = again(view.op, new).outputs[0]
            write(view.view, made)
            self._follow(view.view, made, again, write, is_seen)

    def _forget_family(self, own: _View, target: Variable) -> None:
        root = own.base
        while id(root) in self._of_view:
            root = self._of_view[id(root)].base
        if root.op is None:
            raise UnsupportedError(
                message(
                    f"{target!r} is a view of {root.name} and is written in place",
                    "a Program has no shared memory, so the other would not change",
                    "write into the Variable itself, as in x[...] = value, or clone() the view first",
                )
            )
        kept = {id(v) for v in self._family(target)}
        for variable in self._family(root):
            if id(variable) not in kept:
                self._stale[id(variable)] = (variable, target)

    def _family(self, root: Variable) -> Iterator[Variable]:
        yield root
        for view in self._of_base.get(id(root), ()):
            yield from self._family(view.view)

    def require_fresh(self, variable: Variable) -> None:
        """Raise where the Variable shares memory, or may share it, with one that was written since."""
        found = self._stale.get(id(variable))
        if found is not None:
            raise UnsupportedError(
                message(
                    f"{variable!r} is read after {found[1].name}, which it may share memory with, was written in place",
                    "a Program has no shared memory, so it would not see the write",
                    "read it before the write, or clone() one of them",
                )
            )


def is_view(op: Op) -> bool:
    """Whether the Op's results share memory with its first operand in eager mode, or may."""
    if op.name == "getitem":
        return len(op.inputs) == 1
    definition = operator_named(op.name)
    return definition is not None and definition.is_view
