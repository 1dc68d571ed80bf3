"""What Programs and their blocks can do with PaddlePaddle's operator names and files: statements by name, Programs from bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, UnsupportedError, message
from ..framework.interchange.model import Attribute, Model, Operation
from ..framework.interchange.run import Runner, Scope
from ..tensor.program import Program, program_guard
from ..tensor.program_block import Operator, ProgramBlock
from ..tensor.variable import Variable
from ..tensor.variable_methods import replace
from .io import deserialize_program
from .variables import create_parameter


def append_op(
    self: ProgramBlock, type: str, inputs: Any = None, outputs: Any = None, attrs: Mapping[str, Any] | None = None, **_: Any
) -> Operator:
    """Append a statement by the name that the operator has in PaddlePaddle's model files.

    Args:
        type: such as ``"elementwise_add"`` or ``"relu"``.
        inputs: Variables, or lists of them, by PaddlePaddle's names, such as ``{"X": x, "Y": y}``.
        outputs: the Variables that take the results, such as ``{"Out": out}``.
        attrs: attributes by PaddlePaddle's names.

    Returns:
        The last statement that was appended.

    Raises:
        UnknownOperatorsError: no operator is called that.
        UnsupportedError: the block is not the outermost one, or the operator is used in a way that is not known.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main):
        ...     x = paddle.static.data("x", [2])
        >>> block = main.global_block()
        >>> y = block.create_var(name="y", shape=[2], dtype="float32")
        >>> _ = block.append_op("leaky_relu", inputs={"X": x}, outputs={"Out": y}, attrs={"alpha": 0.5})
        >>> paddle.static.Executor().run(main, feed={"x": np.array([-2, 3], "float32")}, fetch_list=[y])
        [array([-1.,  3.], dtype=float32)]
        >>> paddle.disable_static()
    """
    if self.idx:
        raise UnsupportedError(
            message(
                f"append_op() to block {self.idx}",
                "nested blocks are closed when they were built",
                "use static.nn.cond or while_loop",
            )
        )
    given, results = _named("inputs", inputs), _named("outputs", outputs)
    kinds = {name: Attribute("", getattr(value, "name", value)) for name, value in (attrs or {}).items()}
    operation = Operation(
        type,
        {slot: [v.name for v in held] for slot, held in given.items()},
        {slot: [v.name for v in held] for slot, held in results.items()},
        kinds,
    )
    model = Model("program")
    model.blocks[0].operations.append(operation)
    scope = Scope(Runner(model, {}, "append_op()"), 0, None)
    scope.values.update({v.name: v for held in given.values() for v in held})
    with program_guard(self.program):
        scope.call(operation)
        for held in results.values():
            for target in held:
                made = scope.values.get(target.name)
                if made is None or made is target:
                    raise ArgumentError(
                        message(f"append_op({type!r}): it gives nothing for {target.name!r}", "check the names in outputs")
                    )
                replace(target, made)
    return self.ops[-1]


def _named(what: str, given: Any) -> dict[str, list[Any]]:
    """Lists of Variables by name."""
    found = {}
    for slot, held in (given or {}).items():
        found[slot] = list(held) if isinstance(held, (list, tuple)) else [held]
        wrong = next((v for v in found[slot] if not isinstance(v, Variable)), None)
        if wrong is not None:
            raise ArgumentTypeError(
                message(f"append_op(): {what}[{slot!r}] holds a {wrong.__class__.__name__}", "it must hold Variables")
            )
    return found


def _create_parameter(self: ProgramBlock, shape: Sequence[int], dtype: Any, **options: Any) -> Any:
    """A new trained Variable; ``static.create_parameter`` says what the options are."""
    with program_guard(self.program):
        return create_parameter(shape, dtype, **options)


def install_program_methods() -> None:
    """Attach them."""
    block: Any = ProgramBlock
    block.append_op, block.create_parameter = append_op, _create_parameter
    program: Any = Program
    program.parse_from_string = staticmethod(deserialize_program)
