"""Control flow on tensors: plain Python when tensors have values, blocks of their own in a Program that is being recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _rt
from ..base import dtypes, nest
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, message
from ..ir.program import Op
from ..ops.define import OPERATORS
from .location import add_user_location, user_location
from .program_gradients import CARRIED
from .recording import Recorder, current_recorder
from .variable import UNKNOWN, Variable

#: How often a loop is recorded again because sizes that it carries turned out to change.
_MOST_TRIES = 4


def _is_tensor(value: Any) -> bool:
    return isinstance(value, (_rt.Tensor, Variable))


def checked_condition(name: str, pred: Any) -> Any:
    """The condition, if it can be one."""
    if isinstance(pred, (bool, int)):
        return bool(pred)
    if not _is_tensor(pred):
        raise ArgumentTypeError(
            message(f"{name}(): the condition is a {type(pred).__name__}", "it must be a bool tensor of one element")
        )
    if any(n not in (1, UNKNOWN) for n in pred.shape):
        raise ShapeError(
            message(f"{name}(): the condition has shape {list(pred.shape)}", "it must have one element", "use .any() or .all()")
        )
    return pred


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Sequence[str] | None = None,
) -> Any:
    """What ``true_fn()`` gives where the condition holds, else what ``false_fn()`` gives.

    In a Program both are recorded, each into a block of its own, and only one runs. They must return the same structure of tensors, of equal dtypes.

    Args:
        pred: a bool tensor of one element, or a Python bool.
        true_fn, false_fn: functions without arguments; None does nothing.
        name: accepted for compatibility.
        return_names: how error messages call the results.

    Raises:
        ArgumentError: the branches return different structures.
        DTypeError: the branches return different dtypes.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor(3.0)
        >>> paddle.static.nn.cond(x > 2, lambda: x * 2, lambda: x - 1).item()
        6.0
    """
    for what, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if function is not None and not callable(function):
            raise ArgumentTypeError(message(f"cond(): {what} is a {type(function).__name__}", "it must be callable"))
    pred = checked_condition("cond", pred)
    recorder = current_recorder()
    if recorder is None or not _is_tensor(pred):
        chosen = true_fn if bool(pred) else false_fn
        return None if chosen is None else chosen()
    condition = recorder.operand(pred)
    branches = [_Branch(recorder, function, what) for function, what in ((true_fn, "true_fn"), (false_fn, "false_fn"))]
    return _Joined(recorder, branches, return_names).finish(condition)


class _Branch:
    """One function of ``cond``, recorded."""

    def __init__(self, recorder: Recorder, function: Callable[[], Any] | None, what: str) -> None:
        self.what = what
        self.inner = Recorder(what, recorder)
        with self.inner.active():
            self.result = None if function is None else function()
            self.leaves = nest.flatten(self.result)
            self.operands = [
                self.inner.operand(v) if _is_tensor(v) or isinstance(v, (bool, int, float, complex)) else v for v in self.leaves
            ]


def join_blocks(
    recorder: Recorder, condition: Variable, inners: tuple[Recorder, Recorder], pairs: Sequence[tuple[Variable, Variable]]
) -> list[Variable]:
    """End a branch whose sides were recorded: pairs of results of equal types, then what either side wrote. Gives the results."""
    first, second = inners
    written = {**first.written, **second.written}
    ends = [*pairs, *(_written(inners, handle) for handle in written.values())]
    outer = {k: v for inner in inners for k, (v, _) in inner.captured.items()}
    for n, inner in enumerate(inners):
        inner.block.arguments = [inner.argument_for(v) for v in outer.values()]
        inner.block.results = tuple(pair[n] for pair in ends)
    kinds = [a.merged(b) for a, b in ends]
    inputs, blocks = (condition, *outer.values()), (first.block, second.block)
    outputs = recorder.append_results(Op("cond", inputs, {}, (), blocks, user_location(), recorder.role), kinds)
    for handle, new in zip(written.values(), outputs[len(pairs) :], strict=True):
        recorder.set_version(handle, new)
    return outputs[: len(pairs)]


def _written(inners: tuple[Recorder, Recorder], handle: Variable) -> tuple[Variable, Variable]:
    """What a Variable that is written in place is at the end of either side."""
    first, second = [inner.resolve(handle) for inner in inners]
    if (first.dtype, first.ndim) != (second.dtype, second.ndim):
        error: Any = (DTypeError if first.dtype != second.dtype else ShapeError)(
            message(
                f"{handle.name} becomes {first.dtype}{list(first.sizes)} where the condition holds, else {second.dtype}{list(second.sizes)}",
                "dtype and rank must be equal, for what follows does not know which one runs",
                "cast or reshape what is written",
            )
        )
        add_user_location(error)
        raise error
    return first, second


class _Joined:
    """Two recorded branches made alike: the same results, the same writes, the same captures."""

    def __init__(self, recorder: Recorder, branches: list[_Branch], names: Sequence[str] | None) -> None:
        self.recorder, self.branches, self.names = recorder, branches, names
        first, second = branches
        if _shape_of(first.result) != _shape_of(second.result):
            raise self._error(
                ArgumentError,
                f"cond(): true_fn returns {_described(first.result)} and false_fn {_described(second.result)}",
                "both must return the same structure, for what follows does not know which one runs",
                "return as many tensors, in the same containers, from both",
            )

    @staticmethod
    def _error(kind: Any, what: str, why: str, how: str) -> Any:
        error = kind(message(what, why, how))
        add_user_location(error)
        return error

    def finish(self, condition: Variable) -> Any:
        first, second = self.branches
        fixed: list[Any] = []
        pairs: list[tuple[Variable, Variable]] = []
        for k, (a, b) in enumerate(zip(first.operands, second.operands, strict=True)):
            if isinstance(a, Variable) != isinstance(b, Variable) or (not isinstance(a, Variable) and a is not b and a != b):
                raise self._error(
                    ArgumentError,
                    f"cond(): result {self._name(k)} is {_described(first.leaves[k])} in true_fn and {_described(second.leaves[k])} in false_fn",
                    "both must be tensors, or the same value",
                    "make it a tensor in both",
                )
            if isinstance(a, Variable):
                pairs.append(self._alike(self._name(k), a, b))
                fixed.append(None)
            else:
                fixed.append(a)
        outputs = join_blocks(self.recorder, condition, (first.inner, second.inner), pairs)
        results = iter(outputs)
        leaves = [next(results) if isinstance(a, Variable) else f for a, f in zip(first.operands, fixed, strict=True)]
        return nest.pack_like(first.result, leaves)

    def _name(self, number: int) -> str:
        return repr(self.names[number]) if self.names is not None and number < len(self.names) else str(number)

    def _alike(self, name: str, a: Variable, b: Variable) -> tuple[Variable, Variable]:
        """The pair in one dtype; numbers take that of a tensor on the other side."""
        strong = [v.dtype for v in (a, b) if not v.weak]
        target = strong[0] if strong else _strong_dtype(dtypes.promote(a.dtype, b.dtype) if a.dtype != b.dtype else a.dtype)
        if len(strong) == 2 and strong[0] != strong[1]:
            raise self._error(
                DTypeError,
                f"cond(): result {name} is {a.dtype} in true_fn and {b.dtype} in false_fn",
                "both must be equal",
                "cast one of them",
            )
        if a.ndim != b.ndim:
            raise self._error(
                ShapeError,
                f"cond(): result {name} has shape {list(a.sizes)} in true_fn and {list(b.sizes)} in false_fn",
                "both must have as many axes",
                "reshape one of them",
            )
        return cast_to(self.branches[0].inner, a, target), cast_to(self.branches[1].inner, b, target)


def cast_to(recorder: Recorder, value: Variable, dtype: str) -> Variable:
    """The value in this dtype, not weak."""
    if value.dtype == dtype and not value.weak:
        return value
    with recorder.active():
        made: Variable = recorder.call(OPERATORS["cast"], [value, dtype])
        made.weak = False
        return made


def _strong_dtype(dtype: str) -> str:
    """The dtype of a tensor of a Python number of this kind."""
    return {"float64": dtypes.default_float(), "complex128": dtypes.complex_of(dtypes.default_float())}.get(dtype, dtype)


def _shape_of(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {k: _shape_of(v) for k, v in tree.items()}
    return [_shape_of(v) for v in tree] if isinstance(tree, (list, tuple)) else None


def _described(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a tensor {value.dtype}{list(value.shape)}" if _is_tensor(value) else "nothing" if value is None else repr(value)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any], is_test: bool = False, name: str | None = None
) -> list[Any]:
    """``loop_vars = body(*loop_vars)`` as long as ``cond(*loop_vars)`` holds.

    In a Program condition and body are recorded once, each into a block of its own; how often they run is known at run time only.

    Args:
        cond: gives a bool tensor of one element.
        body: gives as many values as it takes, of equal dtypes and ranks. Sizes may change from pass to pass.
        loop_vars: a list or tuple of tensors, or of containers of tensors.
        is_test, name: accepted for compatibility.

    Returns:
        The last loop_vars, as a list.

    Example:
        >>> import sampan as paddle
        >>> i, total = paddle.static.nn.while_loop(
        ...     lambda i, s: i < 4, lambda i, s: [i + 1, s + i], [paddle.to_tensor(0), paddle.to_tensor(0)]
        ... )
        >>> total.item()
        6
    """
    for what, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise ArgumentTypeError(message(f"while_loop(): {what} is a {type(function).__name__}", "it must be callable"))
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ArgumentTypeError(
            message(f"while_loop(): loop_vars is {loop_vars!r}", "it must be a list or tuple with at least one tensor")
        )
    values: list[Any] = list(loop_vars)
    recorder = current_recorder()
    if recorder is None:
        while bool(checked_condition("while_loop", cond(*values))):
            result = body(*values)
            found = list(result) if isinstance(result, (list, tuple)) else [result]
            if len(found) != len(values):
                raise ArgumentError(message(f"while_loop(): body returns {len(found)} values", f"it takes {len(values)}"))
            values = found
        return values
    return _Loop(recorder, cond, body, values).record()


class _Loop:
    """A ``while_loop`` that is being recorded."""

    def __init__(self, recorder: Recorder, condition: Callable[..., Any], body: Callable[..., Any], values: list[Any]) -> None:
        self.recorder, self.condition, self.body, self.values = recorder, condition, body, values
        self.starts = [self._start(v) for v in nest.flatten(values)]

    def _start(self, value: Any) -> Variable:
        if not _is_tensor(value) and not isinstance(value, (bool, int, float, complex)):
            raise ArgumentTypeError(message(f"while_loop(): loop_vars holds a {type(value).__name__}", "it must hold tensors"))
        found = self.recorder.operand(value)
        return cast_to(self.recorder, found, _strong_dtype(found.dtype)) if found.weak else found

    def record(self) -> list[Any]:
        kinds = [v.like() for v in self.starts]
        before = len(self.recorder.block.ops)
        for _ in range(_MOST_TRIES):
            del self.recorder.block.ops[before:]
            test, step, changed = self._recorded(kinds)
            if changed is None:
                return self._finish(test, step, kinds)
            kinds = changed
        raise ShapeError(message("while_loop(): the sizes of loop_vars change without end", "their ranks must stay"))

    def _recorded(self, kinds: list[Variable]) -> tuple[Recorder, Recorder, list[Variable] | None]:
        test, step = Recorder("condition", self.recorder), Recorder("body", self.recorder)
        with test.active():
            carried = carried_arguments(test, kinds)
            held = test.operand(checked_condition("while_loop", self.condition(*nest.pack_like(self.values, carried))))
            test.block.results = (cast_to(test, held, "bool"),)
        if test.written:
            names = ", ".join(v.name for v in test.written.values())
            raise ArgumentError(message(f"while_loop(): the condition writes {names}", "it may only read", "write in the body"))
        with step.active():
            carried = carried_arguments(step, kinds)
            result = self.body(*nest.pack_like(self.values, carried))
            found = nest.flatten(list(result) if isinstance(result, (list, tuple)) else [result])
            if len(found) != len(kinds):
                raise ArgumentError(message(f"while_loop(): body returns {len(found)} values", f"it takes {len(kinds)}"))
            ends = [self._end(step, k, v, kind) for k, (v, kind) in enumerate(zip(found, kinds, strict=True))]
            draw_anew(step)
            step.block.results = tuple(ends)
        merged = [kind.merged(end) for kind, end in zip(kinds, ends, strict=True)]
        is_stable = all(m.loop_kind == k.loop_kind for m, k in zip(merged, kinds, strict=True)) and not self._learns(step)
        return test, step, None if is_stable else merged

    def _learns(self, step: Recorder) -> bool:
        """Whether the body shows what elements of outer arrays are like, which it must be recorded with."""
        learned = False
        for handle in step.written.values():
            before: Any = self.recorder.resolve(handle)
            if before.is_array:
                after: Any = before.merged(step.resolve(handle))
                if after.loop_kind[1] != before.loop_kind[1]:
                    before.element, learned = after.element, True
        return learned

    @staticmethod
    def _end(step: Recorder, number: int, value: Any, kind: Variable) -> Variable:
        found = step.operand(value)
        if found.weak:
            found = cast_to(step, found, kind.dtype)
        if found.dtype != kind.dtype or found.ndim != kind.ndim:
            error: Any = (DTypeError if found.dtype != kind.dtype else ShapeError)(
                message(
                    f"while_loop(): body gives {found.dtype}{list(found.sizes)} for loop variable {number}, which began as "
                    f"{kind.dtype}{list(kind.sizes)}",
                    "dtype and rank must stay from pass to pass",
                    "cast or reshape it",
                )
            )
            add_user_location(error)
            raise error
        return found

    def _finish(self, test: Recorder, step: Recorder, kinds: list[Variable]) -> list[Any]:
        outputs = finish_loop(self.recorder, test, step, self.starts, kinds)
        result: list[Any] = nest.pack_like(self.values, outputs)
        return result


def carried_arguments(inner: Recorder, kinds: Sequence[Variable]) -> list[Variable]:
    """New arguments of a block for what a loop carries."""
    made = [inner.adopt(kind.like(inner.root.fresh_name("carried"))) for kind in kinds]
    inner.block.arguments += made
    return made


def draw_anew(body: Recorder) -> None:
    """Give every pass of a loop's body another stream of random numbers."""
    if body.key_base is not None:
        body.write(body.key_base, body.call(OPERATORS["fold_key"], [body.key_base, 0]))


def finish_loop(
    recorder: Recorder, test: Recorder, step: Recorder, starts: Sequence[Variable], kinds: Sequence[Variable]
) -> list[Variable]:
    """End a loop whose condition and body were recorded. Gives what it carries, after the last round."""
    count = len(kinds)
    written = list(step.written.values())
    befores = [recorder.resolve(handle) for handle in written]
    outer = {k: v for inner in (test, step) for k, (v, _) in inner.captured.items()}
    more = [v for v in outer.values() if all(v is not b for b in befores)]
    for inner in (test, step):
        inner.block.arguments = [*inner.block.arguments[:count], *(inner.argument_for(v) for v in (*befores, *more))]
    with step.active():
        step.block.results = (*step.block.results, *(step.resolve(handle) for handle in written))
    all_kinds = [*kinds, *(b.merged(r) for b, r in zip(befores, step.block.results[count:], strict=True))]
    inputs, blocks = (*starts, *befores, *more), (test.block, step.block)
    outputs = recorder.append_results(
        Op("while", inputs, {CARRIED: len(all_kinds)}, (), blocks, user_location(), recorder.role), all_kinds
    )
    for handle, new in zip(written, outputs[count:], strict=True):
        recorder.set_version(handle, new)
    return outputs[:count]


def case(pred_fn_pairs: Any, default: Callable[[], Any] | None = None, name: str | None = None) -> Any:
    """What the function of the first condition that holds gives; ``default()``, by default the last function, where none does.

    Example:
        >>> import sampan as paddle
        >>> x = paddle.to_tensor(0.3)
        >>> paddle.static.nn.case([(x < 0.1, lambda: x + 1), (x < 0.5, lambda: x + 2)], default=lambda: x).item() > 2
        True
    """
    if not isinstance(pred_fn_pairs, (list, tuple)) or not pred_fn_pairs:
        raise ArgumentTypeError(
            message(f"case(): pred_fn_pairs is {pred_fn_pairs!r}", "it must be a list of (condition, function) pairs")
        )
    pairs = []
    for pair in pred_fn_pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise ArgumentTypeError(message(f"case(): pred_fn_pairs holds {pair!r}", "it must hold tuples (condition, function)"))
        pairs.append(pair)
    if default is None:
        default = pairs[-1][1]
        pairs = pairs[:-1]
    elif not callable(default):
        raise ArgumentTypeError(message(f"case(): default is a {type(default).__name__}", "it must be callable"))
    function = default
    for condition, chosen in reversed(pairs):
        function = _either(condition, chosen, function)
    return function()


def _either(condition: Any, chosen: Callable[[], Any], other: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: cond(condition, chosen, other)


def switch_case(branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str | None = None) -> Any:
    """What the function of this number gives; ``default()``, by default the function of the largest number, for other numbers.

    Args:
        branch_index: an integer tensor of one element.
        branch_fns: a dict {number: function}, a list of (number, function), or a list of functions.
        default: for other numbers.

    Example:
        >>> import sampan as paddle
        >>> k = paddle.to_tensor(1)
        >>> paddle.static.nn.switch_case(k, [lambda: paddle.zeros([1]), lambda: paddle.ones([1])]).item()
        1.0
    """
    if isinstance(branch_fns, dict):
        items = list(branch_fns.items())
    elif isinstance(branch_fns, (list, tuple)) and branch_fns:
        items = [f if isinstance(f, tuple) else (k, f) for k, f in enumerate(branch_fns)]
    else:
        raise ArgumentTypeError(message(f"switch_case(): branch_fns is {branch_fns!r}", "it must be a dict or list of functions"))
    for number, function in items:
        if isinstance(number, bool) or not isinstance(number, int) or not callable(function):
            raise ArgumentTypeError(
                message(f"switch_case(): branch_fns holds ({number!r}, {function!r})", "it must hold numbers and functions")
            )
    if len({number for number, _ in items}) != len(items):
        raise ArgumentError("switch_case(): branch_fns names a number twice")
    items.sort(key=lambda item: item[0])
    chosen = default or items.pop()[1]
    for number, function in reversed(items):
        chosen = _either(branch_index == number, function, chosen)
    return chosen()
