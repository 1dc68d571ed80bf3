"""``@op``: an operator defined once, as mathematics.

A definition is a Python function over Values. From it come the argument checks, the shape and dtype rule, the fused kernel, the gradient, the
public function and method, the documentation and the tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base import nest
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message
from ..ir.builder import Builder, OperatorTable, current_builder
from ..ir.program import Op, Value
from . import attributes
from .primitives.core import PRIMITIVES, constant

REQUIRED = inspect.Parameter.empty

#: Python's number types -> the dtype of a weak Value of theirs; bool first, since it is an int too.
SCALAR_DTYPES: dict[type, str] = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def scalar_dtype(value: Any) -> str | None:
    """The dtype of a weak Value for a Python number, one of a subclass (``numpy.float64``) too; None for anything else."""
    return SCALAR_DTYPES.get(type(value)) or next((d for kind, d in SCALAR_DTYPES.items() if isinstance(value, kind)), None)


@dataclass(frozen=True)
class Parameter:
    """One parameter: ``tensor`` (a Value, a Python number or None), ``tensors`` (a list of them) or ``attr``.

    A variadic one takes a list, or the positional arguments that are left; so does an attr that takes the rest, where more than one is left.
    """

    name: str
    kind: str
    default: Any = REQUIRED
    is_keyword_only: bool = False
    is_variadic: bool = False
    takes_rest: bool = False
    check: str = ""  # what the value of an attribute must be, of attributes.kind_of


@dataclass(eq=False)
class OpDef:
    """An operator's definition; calling it on Values expands it, or appends it as one Op where the builder keeps it."""

    name: str
    body: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    api: tuple[str, ...]
    methods: tuple[str, ...] = ()
    inplace: tuple[str, ...] = ()
    inplace_target: str = ""
    reference: Callable[..., Any] | None = None
    samples: tuple[Any, ...] = ()
    gradient: Callable[..., Sequence[Value | None]] | None = None
    is_view: bool = False
    updates: tuple[str, ...] = ()
    creates: bool = False
    takes_positional_out: bool = False
    title: str = ""
    aliases: dict[str, str] = field(default_factory=dict)
    tolerance: float = 1.0
    tests: str = "all"
    #: A recorded Program in the place of an operator: precision rules reach the operators inside it.
    is_program: bool = False

    @property
    def ir_name(self) -> str:
        """The name of an Op of this definition in a Program, where a primitive or control flow may have the operator's own."""
        is_taken = self.name in PRIMITIVES or self.name in CONTROL_STATEMENTS
        return f"{_OPERATOR_PREFIX}{self.name}" if is_taken else self.name

    @property
    def inplace_parameter(self) -> int:
        """The number of the parameter that in-place forms write into."""
        names = [p.name for p in self.parameters]
        return names.index(self.inplace_target) if self.inplace_target else 0

    @property
    def is_public(self) -> bool:
        """Whether users call it by a name of their own."""
        return bool(self.api or self.methods)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        builder = current_builder()
        if builder is None:
            raise RuntimeError(f"{self.name} was called on Values outside of a Program being built")
        bound = self.bind(args, kwargs)
        if builder.keep is not None and builder.keep(self):
            return self.append(builder, bound)
        return self.body(*bound)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Positional arguments in order, with defaults, and Python numbers of tensor parameters as weak constants."""
        positional = [p for p in self.parameters if not p.is_keyword_only]
        if len(args) > len(positional) and (args[-1] is None or isinstance(args[-1], str)):
            args = args[:-1]  # every public function takes name after its positional parameters
        if positional and positional[-1].is_variadic and len(args) >= len(positional):
            first, rest = args[: len(positional) - 1], args[len(positional) - 1 :]
            args = (*first, rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest)
        if positional and positional[-1].takes_rest and len(args) > len(positional):
            args = (*args[: len(positional) - 1], args[len(positional) - 1 :])
        if len(args) > len(positional):
            raise ArgumentTypeError(f"{self.name}() takes {len(positional)} positional arguments, got {len(args)}")
        kwargs = {self.aliases.get(k, k): v for k, v in kwargs.items()}
        for unknown in kwargs.keys() - {p.name for p in self.parameters[len(args) :]}:
            raise ArgumentTypeError(
                message(
                    f"{self.name}() got an unexpected or repeated argument '{unknown}'",
                    f"it takes {', '.join(p.name for p in self.parameters)}",
                )
            )
        bound = []
        for k, parameter in enumerate(self.parameters):
            if k < len(args):
                value = args[k]
            elif parameter.name in kwargs:
                value = kwargs[parameter.name]
            elif parameter.default is not REQUIRED:
                value = parameter.default
            else:
                raise ArgumentTypeError(f"{self.name}() is missing its argument '{parameter.name}'")
            if parameter.kind == "tensor":
                value = lift_operand(self.name, parameter.name, value)
            elif parameter.kind == "tensors":
                if not isinstance(value, (list, tuple)):
                    raise ArgumentTypeError(
                        message(
                            f"{self.name}(): {parameter.name} is a {type(value).__name__}", "it takes a list or tuple of tensors"
                        )
                    )
                if not value and self.is_public:
                    raise ArgumentError(
                        message(f"{self.name}(): {parameter.name} is an empty list", "it must hold one tensor at least")
                    )
                value = [lift_operand(self.name, f"{parameter.name}[{k}]", v, self.is_public) for k, v in enumerate(value)]
            elif parameter.check:
                value = attributes.checked(self.name, parameter.name, parameter.check, parameter.default, value)
            bound.append(value)
        return bound

    def expand(self, values: Sequence[Any]) -> Any:
        """The call with these values of all parameters, in order."""
        return self(**{p.name: v for p, v in zip(self.parameters, values, strict=True)})

    def append(self, builder: Builder, bound: list[Any]) -> Any:
        """One Op of this name; its outputs in the structure that the definition returns."""
        inputs, attributes = self.split(bound)
        op = builder.append(self.ir_name, tuple(inputs), attributes)
        return nest.pack_like(self.structure(op, builder.table), list(op.outputs))

    def split(self, bound: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """The operands of a call in order, and its attributes."""
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for parameter, value in zip(self.parameters, bound, strict=True):
            if parameter.kind == "attr":
                attributes[parameter.name] = freeze(value)
            elif parameter.kind == "tensors":
                attributes[f"{parameter.name}_count"] = len(value)
                inputs += value
            elif value is None:
                attributes[f"{parameter.name}_count"] = 0
            else:
                inputs.append(value)
        return inputs, attributes

    def arguments(self, op: Op, inputs: Sequence[Any]) -> list[Any]:
        """The bound arguments of an Op of this definition, with these inputs."""
        remaining = list(inputs)
        bound: list[Any] = []
        for parameter in self.parameters:
            if parameter.kind == "attr":
                bound.append(op.attributes[parameter.name])
                continue
            count = op.attributes.get(f"{parameter.name}_count", -1)
            if count == 0 and parameter.kind == "tensor":
                bound.append(None)
            elif parameter.kind == "tensors":
                bound.append(remaining[:count])
                del remaining[:count]
            else:
                bound.append(remaining.pop(0))
        return bound

    def updated(self, args: Sequence[Any]) -> list[Any]:
        """The arguments that a call updates, in the order of the outputs that are written back into them."""
        given = {p.name: a if p.kind == "tensors" else [a] for p, a in zip(self.parameters, args, strict=True)}
        return [v for name in self.updates for v in given[name]]

    def structure(self, op: Op, table: OperatorTable) -> Any:
        """What the definition returns for this Op, on scratch Values that carry dtypes and shapes."""
        builder = Builder(table, self.name)
        with builder.active():
            inputs = [builder.argument(v.dtype, v.shape, weak=v.weak) for v in op.inputs]
            return self.body(*self.arguments(op, inputs))


def freeze(value: Any) -> Any:
    """Lists as tuples, so that attributes compare and hash."""
    return tuple(map(freeze, value)) if isinstance(value, (list, tuple)) else value


def lift_operand(op_name: str, name: str, value: Any, is_required: bool = False) -> Any:
    """A Value, or None unless it is required, as it is; a Python number as a weak constant."""
    if isinstance(value, Value) or (value is None and not is_required):
        return value
    dtype = scalar_dtype(value)
    if dtype is not None:
        return constant(value, dtype, weak=True)
    raise ArgumentTypeError(
        message(
            f"{op_name}(): {name} is {describe(value)}",
            "it takes a Tensor or a Python number",
            "convert it with to_tensor() first",
        )
    )


def defaults_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters of a definition, in order, and their defaults: as inspect.signature gives them, at a tenth of the time."""
    code = function.__code__
    given = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    required = len(names) - len(given)
    by_name = function.__kwdefaults__ or {}
    return dict(zip(names, (REQUIRED,) * required + given)) | {n: by_name.get(n, REQUIRED) for n in keywords}


OPERATORS: dict[str, OpDef] = {}

#: Statements of recorded Programs that are no operators: they run between compiled pieces.
CONTROL_STATEMENTS = ("cond", "while", "while_grad", "random_key", "initialize", "python_layer")

#: Before the name of an operator in a Program when a primitive or a statement is called the same.
_OPERATOR_PREFIX = "op."


def operator_named(ir_name: str) -> OpDef | None:
    """The definition whose Ops have this name; None when there is none."""
    return OPERATORS.get(ir_name.removeprefix(_OPERATOR_PREFIX))


#: Keyword names that Paddle accepts everywhere beside the parameters' own.
SPELLINGS = {
    "input": "x", "other": "y", "dim": "axis", "dims": "axis", "size": "shape", "eps": "epsilon", "target": "label", "dim1": "axis1", "dim2": "axis2",
}  # fmt: skip


def op(
    api: str | Sequence[str] = "",
    *,
    operands: Sequence[str] | None = None,
    lists: Sequence[str] = (),
    variadic: str = "",
    rest: str = "",
    keyword_only: Sequence[str] = (),
    method: bool | str | Sequence[str] = False,
    inplace: bool | str | Sequence[str] = False,
    inplace_target: str = "",
    reference: Callable[..., Any] | None = None,
    samples: Sequence[Any] = (),
    gradient: Callable[..., Sequence[Value | None]] | None = None,
    is_view: bool = False,
    updates: Sequence[str] = (),
    creates: bool = False,
    takes_positional_out: bool = False,
    title: str = "",
    aliases: dict[str, str] | None = None,
    tolerance: float = 1.0,
    tests: str = "all",
) -> Callable[[Callable[..., Any]], OpDef]:
    """Define an operator by the decorated function.

    Args:
        api: its public names, dotted below ``sampan``; empty: an internal operator.
        operands: the parameters that are tensors; by default those without a default value.
        lists: those of them that are lists of tensors.
        variadic: the one of those that may also be given as separate arguments.
        rest: the parameter, the last one, whose list may also be given as separate arguments: ``reshape(x, 2, 3)``.
        keyword_only: the parameters, last ones, that are given by name only.
        method: also a method of Tensor, under its own or these names.
        inplace: also in-place forms: ``name_``, or these names; each a function beside ``api`` and a method.
        inplace_target: the operand that they write into; the first one by default.
        reference: the same by NumPy or SciPy, on arrays, for the tests.
        samples: argument tuples of ``ops.samples`` specifications (the last item may be a dict of keywords).
        gradient: ``rule(op, *output_gradients)``; derived from the definition when not given.
        is_view: the result shares memory with the first operand where strides can express it.
        creates: the public form also takes ``device``, ``requires_grad`` and ``pin_memory``, and a shape as separate integers.
        updates: the operands that the outputs, in order, are written back into (an optimizer's step).
        takes_positional_out: ``out`` may also be given by position, after the parameters, as Paddle has it.
        title: what messages call an operator that users do not call by name, such as ``tensor[...] = value``.
        aliases: other accepted keyword names, to the parameters' own; those of ``SPELLINGS`` stand without being named.
        tolerance: how much wider than usual the tests' tolerance is.
        tests: ``all``, or words of what to leave out: ``nograd`` (no gradient check), ``noempty``, ``noscalar``.
    """

    def decorate(function: Callable[..., Any]) -> OpDef:
        name = function.__name__.removesuffix("_op")
        defaults = defaults_of(function)
        if not function.__doc__:
            raise ValueError(
                f"{function.__code__.co_filename}: {name}() has no docstring; it is the operator's page in the manual"
            )
        is_public = bool(api or method)
        chosen = [p for p, default in defaults.items() if default is REQUIRED] if operands is None else operands
        parameters = tuple(
            Parameter(
                p,
                "tensors" if p in lists else "tensor" if p in chosen else "attr",
                default,
                p in keyword_only or p == "key",
                p == variadic,
                p == rest,
                attributes.kind_of(p, default, function.__annotations__.get(p))
                if is_public and p not in lists and p not in chosen
                else "",
            )
            for p, default in defaults.items()
        )
        names = (api,) if isinstance(api, str) else tuple(api)
        methods = (
            () if method is False else (name,) if method is True else (method,) if isinstance(method, str) else tuple(method)
        )
        given = f"{name}_" if inplace is True else inplace
        in_place = () if given is False else (given,) if isinstance(given, str) else tuple(given)
        spellings = {k: own for k, own in SPELLINGS.items() if own in defaults and k not in defaults}
        definition = OpDef(
            name,
            function,
            parameters,
            tuple(n for n in names if n),
            methods,
            in_place,
            inplace_target,
            reference,
            tuple(samples),
            gradient,
            is_view,
            tuple(updates),
            creates,
            takes_positional_out,
            title,
            spellings | (aliases or {}),
            tolerance,
            tests,
        )
        if name in OPERATORS:
            raise ValueError(f"operator {name} is defined twice")
        OPERATORS[name] = definition
        return definition

    return decorate
