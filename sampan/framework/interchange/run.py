"""Running a Model operation by operation through public functions: on tensors at once, on static Variables into the Program being built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.errors import ArgumentError, SampanError, UnsupportedError, message
from . import tables
from .model import Model, Operation, damaged
from .rows import READERS, REQUIRED, Form, Row
from .values import as_tensor, plain

#: Attributes that say nothing about the result: bookkeeping, devices, scheduling.
_SILENT = frozenset(
    "op_role op_role_var op_namescope op_callstack op_device with_quant_attr place stop_gradient persistable struct_name is_test use_cudnn use_mkldnn "
    "use_onednn mkldnn_data_type use_quantizer force_cpu infer_flags numeric_stable_mode use_default_tol in_dtype str_value place_type __inputs_type__ "
    "trainable_statistics momentum exhaustive_search workspace_size_MB is_sparse is_distributed remote_prefetch sub_block regions "
    "Scale_in Scale_out Scale_x Scale_y Scale_data Scale_weights Out_scale Input_scale out_threshold col op_version force_fp32_output shape_rank".split()
)


class UnknownOperatorsError(UnsupportedError):
    """A model has operators that are not known here; ``names`` lists them all."""

    def __init__(self, what: str, names: list[str]) -> None:
        self.names = names
        super().__init__(
            message(
                f"{what} has {len(names)} operators that are not known: {', '.join(names)}",
                "",
                "export the model without them, or for the same operators in the other format (.pdmodel or .json)",
            )
        )


def unknown_operators(model: Model) -> list[str]:
    """The kinds of operations that no row reads, sorted."""
    return sorted(
        {op.kind for op in model.operations() if (model.dialect, op.kind) not in READERS and op.kind not in tables.STRUCTURE}
    )


class Runner:
    """A model with its parameters, ready to be run any number of times."""

    def __init__(self, model: Model, parameters: Mapping[str, Any], what: str = "the model") -> None:
        """parameters: a tensor or Variable for every persistable variable.

        Raises:
            UnknownOperatorsError: operators are not known; all of them are named.
        """
        unknown = unknown_operators(model)
        if unknown:
            raise UnknownOperatorsError(what, unknown)
        missing = sorted(set(model.parameters()) - set(parameters))
        if missing:
            raise ArgumentError(
                message(f"{what} has no value for {', '.join(missing[:8])}", f"{len(missing)} parameters are missing")
            )
        self.model = model
        self.parameters = dict(parameters)
        self.what = what

    def __call__(self, *inputs: Any) -> list[Any]:
        """The fetched results for the inputs, in the order of ``model.feeds()``."""
        feeds = self.model.feeds()
        if len(inputs) != len(feeds):
            raise ArgumentError(
                message(f"{self.what} takes {len(feeds)} inputs, got {len(inputs)}", f"they are {', '.join(feeds)}")
            )
        scope = Scope(self, 0, None)
        scope.values.update(dict.fromkeys(name for name, v in scope.block.variables.items() if v.is_parameter))
        scope.values.update(self.parameters)
        scope.values.update(zip(feeds, inputs, strict=True))
        scope.run()
        return [as_tensor(scope[name]) for name in self.model.fetches()]


class Scope:
    """The values of one block while it runs; names that are not here are the parent's."""

    def __init__(self, runner: Runner, number: int, parent: Scope | None) -> None:
        self.runner = runner
        self.number = number
        self.parent = parent
        self.values: dict[str, Any] = {}
        self.is_closed = False  # what it sets stays in it

    @property
    def block(self) -> Any:
        """The block's content."""
        return self.runner.model.blocks[self.number]

    def __getitem__(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise ArgumentError(
            message(
                f"{self.runner.what}: {name} is read before anything gives it a value",
                "a model's operations must stand in their order",
            )
        )

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default where nothing has set it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        return default

    def set(self, name: str, value: Any) -> None:
        """Set the value where the name is declared; here by default."""
        scope: Scope | None = self
        while scope is not None:
            if scope.is_closed or name in scope.block.variables:
                scope.values[name] = value
                return
            scope = scope.parent
        self.values[name] = value

    def run(self) -> None:
        """Run the block's operations in order."""
        for op in self.block.operations:
            structure = tables.STRUCTURE.get(op.kind)
            if structure is None:
                self.call(op)
                continue
            try:
                structure(self, op)
            except (LookupError, ValueError, StopIteration) as error:
                if isinstance(error, SampanError):
                    raise
                why = f"its operation {op.kind} lacks an input, an output or an element that it needs ({error})"
                raise damaged(self.runner.what, why) from error

    def call(self, op: Operation) -> None:
        """Run one operation by its row."""
        dialect = self.runner.model.dialect
        failed = ""
        for row in READERS[dialect, op.kind]:
            form = row.forms[dialect]
            if not all(_equal(op.value(n), v) for n, v in form.fixed.items()):
                continue
            arguments, failed = self._bind(row, form, op)
            if failed:
                continue
            extra = {"op": op} if row.needs_op else {}
            self._store(op, form, row.function(**arguments, **extra))
            return
        raise UnsupportedError(
            message(
                f"{self.runner.what}: the operator {op.kind} is used in a way that is not known here",
                failed or f"its attributes are { {n: a.value for n, a in op.attributes.items() if n not in _SILENT} }",
            )
        )

    def _bind(self, row: Row, form: Form, op: Operation) -> tuple[dict[str, Any], str]:
        """(the row's arguments, what the row does not know about the operation)."""
        arguments: dict[str, Any] = {}
        binding: Any
        for name, attribute in op.attributes.items():
            binding = form.attribute(name)
            if binding.parameter in row.parameters:
                if attribute.value is not None or attribute.kind == "dtype":
                    arguments[binding.parameter] = plain(attribute.value, binding.kind)
            elif name not in _SILENT and name not in form.fixed and attribute.value not in (None, False, 0, "", []):
                return {}, f"its attribute {name}={attribute.value!r} has no meaning here"
        bindings = {b.name: b for b in form.operands}
        for k, (slot, names) in enumerate(op.inputs.items()):
            binding = form.operands[k] if slot.isdigit() and k < len(form.operands) else bindings.get(slot)
            if not names:
                continue
            if binding is None:
                return {}, f"its input {slot} ({', '.join(names)}) has no meaning here"
            values = [self[name] for name in names]
            if binding.kind == "r" and not binding.is_list:
                arguments[binding.parameter] = values[0]
                continue
            if len(values) == 1 and isinstance(values[0], list):
                values = values[0]
            if binding.kind == "r":
                arguments[binding.parameter] = list(values)
                continue
            if binding.parameter in row.lists:
                arguments[binding.parameter] = [as_tensor(v) for v in values]
            elif binding.parameter in row.tensors:
                arguments[binding.parameter] = as_tensor(values[0])
            else:
                arguments[binding.parameter] = plain(values if len(values) > 1 or binding.is_list else values[0], binding.kind)
        missing = [n for n, default in row.parameters.items() if default is REQUIRED and n not in arguments]
        return arguments, f"it has no {', '.join(missing)}" if missing else ""

    def _store(self, op: Operation, form: Form, result: Any) -> None:
        """Give the results to the operation's outputs: one to a name, a list to a slot of several names."""
        results = result if isinstance(result, tuple) else (result,)
        is_positional = next(iter(op.outputs), "").isdigit()
        slots = list(op.outputs.values()) if is_positional else [op.outputs.get(slot, []) for slot in form.results]
        for names, value in zip(slots, results, strict=False):
            if is_positional or not isinstance(value, list):
                value = [value]
            for name, each in zip(names, value, strict=False):
                self.set(name, each)


def _equal(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) or (value is None and wanted in (False, 0, ""))
