"""Branches and loops of converted code as Ops of the Program that is being recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ... import _rt
from ...base.errors import ConversionError
from ...ir.program import Value
from ..control_flow import draw_anew, finish_loop, join_blocks
from ..recording import Recorder, current_recorder
from ..replay import Operand, map_attribute
from ..variable import Variable
from .blocks import recording
from .merging import has_token
from .texts import Texts, attributes


def _recorder() -> Recorder:
    recorder = current_recorder()
    if recorder is None:
        raise ConversionError("a converted function records outside of the Program that it belongs to")
    return recorder


class RecordedBranches:
    """A ``cond`` whose two blocks can be entered until it is finished."""

    def __init__(self, condition: Value) -> None:
        self.outer = _recorder()
        self.condition = self.outer.operand(getattr(condition, "strong", condition))
        self.inners = Recorder("true_fn", self.outer), Recorder("false_fn", self.outer)

    @contextmanager
    def side(self, holds: bool) -> Iterator[None]:
        """Record into one of the blocks."""
        with self.inners[0 if holds else 1].active():
            yield

    def finish(self, when_true: Sequence[Value], when_false: Sequence[Value]) -> list[Value]:
        """End the blocks with these results."""
        first, second = self.inners
        pairs = [(first.operand(a), second.operand(b)) for a, b in zip(when_true, when_false, strict=True)]
        return list(join_blocks(self.outer, self.condition, self.inners, pairs))


class RecordedLoop:
    """A ``while`` whose body can be entered until it is finished. Its first carried value is its condition."""

    def __init__(self, initial: Sequence[Value], kinds: Sequence[Any]) -> None:
        self.outer = _recorder()
        self.starts = [self.outer.operand(v) for v in initial]
        self.test, self.step = Recorder("condition", self.outer), Recorder("body", self.outer)
        self.kinds = [
            kind.variable()
            if kind.is_column
            else Variable(start.dtype, kind.shape or start.sizes, stop_gradient=not kind.is_tracked and start.stop_gradient)
            for start, kind in zip(self.starts, kinds, strict=True)
        ]
        self.arguments = self._arguments(self.step)
        self.test.block.results = (self._arguments(self.test)[0],)

    def _arguments(self, inner: Recorder) -> list[Any]:
        made = [inner.adopt(kind.like(inner.root.fresh_name("carried"))) for kind in self.kinds]
        inner.block.arguments += made
        return made

    @contextmanager
    def body(self) -> Iterator[None]:
        """Record into the body."""
        with self.step.active():
            yield

    def finish(self, results: Sequence[Value]) -> list[Value]:
        """End the body with these values for the next round."""
        with self.step.active():
            ends = [self.step.operand(v) for v in results]
            draw_anew(self.step)
            self.step.block.results = tuple(ends)
        return list(finish_loop(self.outer, self.test, self.step, self.starts, self.kinds))


class RecordedBlocks:
    """The Program that this thread records."""

    def __init__(self) -> None:
        self.texts = Texts()
        self.has_optionals = False

    def branches(self, condition: Value) -> RecordedBranches:
        """A new branch at this place."""
        return RecordedBranches(condition)

    def loop(self, initial: Sequence[Value], kinds: Sequence[Any]) -> RecordedLoop:
        """A new loop at this place."""
        return RecordedLoop(initial, kinds)

    def value(self, tensor: Any) -> Value:
        """The Variable for a tensor, as it is now."""
        return _recorder().variable_of(tensor)

    def print(self, args: Sequence[Any], options: dict[str, Any]) -> None:
        """Print when the Program runs."""
        options = {"sep": " ", **{k: v for k, v in options.items() if v is not None}}
        text = str.join(str(options.pop("sep")), [self.texts.text(v) for v in args])
        operands, pieces = self.texts.resolved(text)
        self._act("print", operands, pieces=pieces, **options)

    def check(self, condition: Value, told: Any) -> None:
        """Raise AssertionError when the Program runs and the condition does not hold."""
        operands, pieces = self.texts.resolved(self.texts.text(told)) if told is not None else ([], None)
        moved = None if pieces is None else map_attribute(pieces, lambda v: Operand(v.index + 1) if isinstance(v, Operand) else v)
        self._act("assert", [condition, *operands], condition=Operand(0), pieces=moved)

    def text(self, text: str) -> tuple[list[Any], tuple[Any, ...]]:
        """The Variables that a text's tokens stand for, and its pieces."""
        operands, pieces = self.texts.resolved(text)
        return [_recorder().operand(v) for v in operands], pieces

    def fail(self, error: BaseException) -> None:
        """Raise the exception when the Program comes to this place."""
        text: Any = error.args[0] if len(error.args) == 1 else None
        operands, pieces = self.texts.resolved(text) if has_token(text) else ([], None)
        self._act("raise", operands, kind=error, pieces=pieces)

    @staticmethod
    def _act(name: str, operands: Sequence[Any], **own: Any) -> None:
        recorder = _recorder()
        recorder.append(name, tuple(recorder.operand(v) for v in operands), attributes(**own))


@contextmanager
def tracing(recorder: Recorder) -> Iterator[None]:
    """Record every operator that this thread calls, of eager tensors too."""
    was_tracing = _rt.set_tracing(True)
    try:
        with recorder.active(), recording(RecordedBlocks()):
            yield
    finally:
        _rt.set_tracing(was_tracing)
