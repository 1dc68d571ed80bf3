"""Executor: runs Programs over the tensors of a Scope."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, UnsupportedError, message
from ..base.places import parse_place
from ..ir.builder import current_builder, no_builder
from ..ir.program import Block
from .creation import Tensor, to_array
from .program import Program, Schedule, default_main_program
from .runner import Runner, explain_failure, live_ops
from .scope import Scope, global_scope, scope_guard
from .variable import UNKNOWN, Variable

#: How many ways of running a Program (what is fed, what is fetched) are kept.
_MOST_RUNNERS = 64


class Prepared:
    """A Program made ready for one way of running it: what is fed, what is fetched, what is written.

    is_frozen: persistable Variables that are not written keep the values that they have now.
    """

    def __init__(self, program: Program, feeds: Sequence[str], fetches: Sequence[Variable], is_frozen: bool = False) -> None:
        block = program.recorder.block
        fed = {name: program.var(name) for name in feeds}
        held = {id(v): t for t, v in program.recorder.tensors.values()}
        wanted = [program.current(v) for v in fetches]
        updates = program.updates()
        ops = live_ops(block.ops, [*wanted, *(new for _, new in updates)], {id(v) for v in fed.values()})
        produced = {id(v) for op in ops for v in op.outputs}
        used = {id(v): v for op in ops for v in op.inputs} | {id(v): v for v in wanted}
        arguments = [v for v in used.values() if id(v) not in produced]
        known = {id(v) for v in arguments}
        self.writes = [v for v, new in updates if id(new) in produced or id(new) in known]
        arguments += [v for v in self.writes if id(v) not in known and program.tensor_of(v, global_scope()) is not None]
        known = {id(v) for v in arguments}
        numbers = {id(v): (s, k) for s in program.schedules for k, v in enumerate(s.variables)}
        self.schedules: list[Schedule] = []
        self.sources: list[tuple[str, Any, Variable]] = []
        for v in arguments:
            name = v.name
            if name in fed:
                self.sources.append(("feed", name, v))  # type: ignore[arg-type]
            elif id(v) in held:
                self.sources.append(("tensor", held[id(v)], v))  # type: ignore[arg-type]
            elif id(v) in numbers:
                schedule, k = numbers[id(v)]
                if schedule not in self.schedules:
                    self.schedules.append(schedule)
                self.sources.append(("number", (self.schedules.index(schedule), k), v))  # type: ignore[arg-type]
            else:
                self.sources.append(("scope", name, v))  # type: ignore[arg-type]
        in_place = [(k, program.current(v)) for k, v in enumerate(arguments) if any(v is w for w in self.writes)]  # type: ignore[arg-type]
        fresh = [v for v in self.writes if id(v) not in known]  # persistable Variables without a tensor yet
        self.fresh = [v.name for v in fresh]
        results = (*wanted, *(program.current(v) for v in fresh))
        frozen = self._frozen_values() if is_frozen else {}
        #: Where fed tensors go in the inputs, when nothing but them differs from run to run.
        self._fed = {k: source for k, (kind, source, _) in enumerate(self.sources) if kind == "feed"}
        self._is_constant = is_frozen and len(frozen) + len(self._fed) == len(self.sources) and not self.fresh
        self._constants = [frozen.get(k) for k in range(len(self.sources))]
        self.runner = Runner(Block(arguments, ops, results), in_place, "program", frozen)
        self.fetch_count = len(wanted)

    def _frozen_values(self) -> dict[int, Any]:
        """The tensors of persistable Variables that are not written, by the number of their argument."""
        scope = global_scope()
        found = {
            k: source if kind == "tensor" else scope.get(source)
            for k, (kind, source, _) in enumerate(self.sources)
            if kind in ("tensor", "scope")
        }
        written = {id(v) for v in self.writes}
        return {k: t for k, t in found.items() if t is not None and id(self.sources[k][2]) not in written}

    def run(self, feed: Mapping[str, Any], scope: Scope) -> list[Any]:
        """The fetched tensors."""
        if self._is_constant:
            whole = self.runner.whole
            if whole is not None and not _rt.tracing() and current_builder() is None:
                call, numbers = whole
                try:
                    return list(call([], [feed[self._fed[k]] for k in numbers]))
                except Exception as error:
                    explain_failure(error)
                    raise
            values = self._constants.copy()
            for k, name in self._fed.items():
                values[k] = feed[name]
            return self.runner(values)
        return self.finish(self.runner(self.gather(feed, scope)), scope)

    def gather(self, feed: Mapping[str, Any], scope: Scope) -> list[Any]:
        """What the runner takes."""
        numbers = [s.advance(scope) for s in self.schedules]
        inputs = []
        for kind, source, variable in self.sources:
            if kind == "feed":
                inputs.append(feed[source])
            elif kind == "tensor":
                inputs.append(source)
            elif kind == "number":
                inputs.append(numbers[source[0]][source[1]])
            else:
                tensor = scope.get(source)
                if tensor is None:
                    raise _missing(variable)
                inputs.append(tensor)
        return inputs

    def finish(self, results: list[Any], scope: Scope) -> list[Any]:
        """What is fetched of the runner's results; the others go to the scope."""
        for name, tensor in zip(self.fresh, results[self.fetch_count :], strict=True):
            scope.put(name, tensor)
        for schedule in self.schedules:
            if schedule.settle is not None:
                schedule.settle(scope)
        return results[: self.fetch_count]


def _missing(variable: Variable) -> ArgumentError:
    if variable.persistable:
        return ArgumentError(
            message(
                f"the Variable {variable.name!r} has no value in the scope",
                "persistable Variables get one from the startup program or a checkpoint",
                "run exe.run(paddle.static.default_startup_program()) first",
            )
        )
    return ArgumentError(
        message(
            f"the Variable {variable.name!r} ({variable.dtype}{list(variable.sizes)}) was not fed",
            "what is fetched or updated depends on it",
            f"pass feed={{{variable.name!r}: ...}}",
        )
    )


class Executor:
    """Runs Programs.

    Args:
        place: the CPU.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [None, 2], "float32")
        ...     y = x * 2
        >>> exe = paddle.static.Executor(paddle.CPUPlace())
        >>> exe.run(main, feed={"x": np.ones([1, 2], "float32")}, fetch_list=[y])
        [array([[2., 2.]], dtype=float32)]
        >>> paddle.disable_static()
    """

    def __init__(self, place: Any = None) -> None:
        self.place = parse_place("Executor", place)

    def run(
        self,
        program: Any = None,
        feed: Any = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run the Program once: what is fetched, and every persistable Variable that it writes.

        Args:
            program: a Program or CompiledProgram; the default main program when None.
            feed: a dict of arrays or tensors by Variable name. Sizes may differ from run to run where the Variable's are unknown.
            fetch_list: Variables, or their names.
            feed_var_name, fetch_var_name, use_program_cache: accepted for compatibility; Programs are always cached.
            scope: where persistable Variables are; the global scope by default.
            return_numpy: give arrays, else tensors.
            use_prune: accepted for compatibility; only what is fetched or written is computed.

        Raises:
            ArgumentError: a name that the Program does not have; a Variable that was not fed or not initialised.
            DTypeError, ShapeError: what is fed does not fit its Variable.
        """
        chosen = default_main_program() if program is None else program
        runs = getattr(chosen, "run_with", None)
        if runs is not None:  # a CompiledProgram
            return runs(self, feed, fetch_list, scope, return_numpy)  # type: ignore[no-any-return]
        if not isinstance(chosen, Program):
            raise ArgumentTypeError(message(f"Executor.run(): program is a {type(program).__name__}", "it must be a Program"))
        results = run_program(chosen, checked_feed(chosen, feed), checked_fetches(chosen, fetch_list), scope or global_scope())
        return [t.numpy() for t in results] if return_numpy else results

    def close(self) -> None:
        """Nothing to do: an Executor holds no resources of its own."""

    def flush(self) -> None:
        """Nothing to do: a run is complete when it returns."""

    def train_from_dataset(
        self,
        program: Any = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Any = None,
        fetch_info: Any = None,
        print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:
        """Run the Program once for every feed that the dataset, an iterable of dicts, gives; what is fetched is printed every ``print_period`` runs."""
        if dataset is None or not hasattr(dataset, "__iter__"):
            raise ArgumentTypeError(
                message(
                    f"train_from_dataset(): dataset is a {type(dataset).__name__}", "it must give feeds: dicts of arrays by name"
                )
            )
        for number, feed in enumerate(dataset):
            results = self.run(program, feed, fetch_list, scope=scope)
            if fetch_list and number % print_period == 0:
                names = fetch_info or [v if isinstance(v, str) else v.name for v in fetch_list]
                print(", ".join(f"{name}: {value}" for name, value in zip(names, results, strict=False)))

    infer_from_dataset = train_from_dataset

    def start_heter_trainer(self, program: Any = None, scope: Scope | None = None, debug: bool = False, fetch_list: Any = None,
                            fetch_info: Any = None, print_period: int = 100, fetch_handler: Any = None) -> None:  # fmt: skip
        """Raises UnsupportedError: a Program runs on the devices of one kind."""
        raise UnsupportedError(
            message(
                "Executor.start_heter_trainer()",
                "a Program runs on the devices of one kind",
                "use run(), or distributed training",
            )
        )

    def split_program_by_device(self, program: Any) -> None:
        """Raises UnsupportedError: a Program runs on the devices of one kind."""
        raise UnsupportedError(
            message(
                "Executor.split_program_by_device()", "a Program runs on the devices of one kind", "build a Program for each part"
            )
        )


def prepared(
    program: Program,
    feeds: tuple[str, ...],
    fetches: Sequence[Variable],
    scope: Scope,
    make: Callable[..., Prepared] = Prepared,
    runners: dict[Any, Any] | None = None,
) -> Prepared:
    """The Program made ready for this way of running it, from the cache when it is there."""
    runners = program.runners if runners is None else runners
    key = (len(program.recorder.block.ops), feeds, tuple(map(id, fetches)), id(scope))
    found = runners.get(key)
    if found is None or any(scope.get(name) is not None for name in found.fresh):
        with scope_guard(scope):
            found = make(program, feeds, fetches)
        if len(runners) >= _MOST_RUNNERS:
            runners.pop(next(iter(runners)))
        runners[key] = found
    return found  # type: ignore[no-any-return]


def run_program(
    program: Program,
    feed: Mapping[str, Any],
    fetches: Sequence[Variable],
    scope: Scope,
    make: Callable[..., Prepared] = Prepared,
    runners: dict[Any, Any] | None = None,
) -> list[Any]:
    """The fetched tensors; ``feed`` and ``fetches`` were checked. ``make`` makes it ready in other ways, which ``runners`` keeps."""
    was_tracing = _rt.set_tracing(False)
    was_recording = _rt.set_grad_enabled(False)
    try:
        with no_builder():
            return prepared(program, tuple(feed), fetches, scope, make, runners).run(feed, scope)
    finally:
        _rt.set_grad_enabled(was_recording)
        _rt.set_tracing(was_tracing)


def checked_fetches(program: Program, fetch_list: Any) -> list[Variable]:
    """The Program's own Variables for a fetch list."""
    if fetch_list is None:
        return []
    if isinstance(fetch_list, (str, Variable)):
        fetch_list = [fetch_list]
    if not isinstance(fetch_list, (list, tuple)):
        raise ArgumentTypeError(
            message(f"fetch_list is a {type(fetch_list).__name__}", "it must be a list of Variables or names")
        )
    found = []
    for item in fetch_list:
        if not isinstance(item, (str, Variable)):
            raise ArgumentTypeError(message(f"fetch_list holds a {type(item).__name__}", "it must hold Variables or their names"))
        name = item if isinstance(item, str) else item.name
        variable = item if isinstance(item, Variable) and item.recorder is program.recorder else program.find(name)
        if variable is None:
            raise _unknown("fetch_list", name, [v.name for v in program.list_vars()])
        found.append(variable)
    return found


def _unknown(what: str, name: str, names: list[str]) -> ArgumentError:
    close = difflib.get_close_matches(name, names, 3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "print(program) shows its Variables"
    return ArgumentError(message(f"{what} names {name!r}, and the Program has no such Variable", hint))


def checked_feed(program: Program, feed: Any) -> dict[str, Any]:
    """The fed tensors by name, each of its Variable's dtype and fitting its shape."""
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)) and len(feed) == 1:
        (feed,) = feed
    if not isinstance(feed, Mapping):
        raise ArgumentTypeError(message(f"feed is a {type(feed).__name__}", "it must be a dict of arrays by Variable name"))
    found = {}
    for name, value in feed.items():
        variable = program.find(name) if isinstance(name, str) else None
        if variable is None:
            raise _unknown("feed", str(name), [v.name for v in program.recorder.block.arguments])
        found[name] = _fed(variable, value)
    return found


def _declared_shape(sizes: Sequence[int], tensor: Any) -> list[int] | None:
    """The declared shape of a tensor that differs from it in axes of length 1 alone; None: it differs in more."""
    count = math.prod(n for n in sizes if n != UNKNOWN)
    unknown = sizes.count(UNKNOWN)
    if unknown > 1 or count == 0 or tensor.size % count or (not unknown and tensor.size != count):
        return None
    shape = [tensor.size // count if n == UNKNOWN else n for n in sizes]
    return shape if [n for n in shape if n != 1] == [n for n in tensor.shape if n != 1] else None


def _fed(variable: Variable, value: Any) -> Any:
    if isinstance(value, Tensor):
        tensor = value
    else:
        array = np.asarray(value)
        if array.dtype.name != variable.dtype and not isinstance(value, np.ndarray):
            array = to_array(value, variable.dtype)
        tensor = _rt.from_numpy(to_array(array, None), False)
    if tensor.dtype.name != variable.dtype:
        raise DTypeError(
            message(
                f"feed[{variable.name!r}] is {tensor.dtype.name} and the Variable {variable.dtype}",
                "they must be equal",
                f"convert it with .astype({dtypes.numpy_dtype(variable.dtype).name!r})",
            )
        )
    sizes = variable.sizes
    if len(sizes) != tensor.ndim or any(n not in (UNKNOWN, m) for n, m in zip(sizes, tensor.shape, strict=True)):
        if (shape := _declared_shape(sizes, tensor)) is not None:
            return _rt.from_numpy(tensor.numpy_view().reshape(shape), False)
        raise ShapeError(
            message(
                f"feed[{variable.name!r}] has shape {list(tensor.shape)} and the Variable {list(sizes)}",
                "sizes must be equal, save where the Variable's are -1",
                "feed data of that shape, or declare the Variable with None for sizes that vary",
            )
        )
    return tensor
