"""``.pdmodel`` files: a ProgramDesc in protobuf's wire format, to and from a Model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.errors import ArgumentError, message
from . import kinds, wire
from .model import Attribute, Block, Model, Operation, Variable, damaged

#: What PaddlePaddle 2.x and 3.x write as the version of a program.
VERSION = 0
_SCALAR_FIELDS = {1: "b", 2: "i", 3: "r"}


def read_model(content: bytes, what: str = "the model") -> Model:
    """The model in a ``.pdmodel`` file's bytes; ``what`` names it in errors.

    Raises:
        ModelFileError: the bytes are no ProgramDesc, or it refers to blocks that are not there.
    """
    program = wire.parse(content, what)
    if not program.blocks:
        raise damaged(what, "it has no block")
    numbers = [block.idx for block in program.blocks]
    if numbers != list(range(len(numbers))):
        raise damaged(what, f"its blocks are numbered {numbers[:8]}, not in order")
    model = Model("program", [_read_block(block, what) for block in program.blocks], int(program.version.version))
    model.operator_versions = {pair.op_name: pair.op_version.version for pair in program.op_version_map.pair}
    model.check(what)
    return model


def _read_block(block: Any, what: str) -> Block:
    made = Block(block.parent_idx)
    for variable in block.vars:
        made.variables[_name(variable.name, what)] = _read_variable(variable)
    for op in block.ops:
        if not op.type:
            raise damaged(what, "an operation has no name")
        inputs, outputs = (
            {_name(slot.parameter, what): [_name(n, what) for n in slot.arguments] for slot in slots}
            for slots in (op.inputs, op.outputs)
        )
        attributes = {_name(a.name, what): _read_attribute(a, op.type, what) for a in op.attrs}
        made.operations.append(Operation(_name(op.type, what), inputs, outputs, attributes))
    return made


def _name(value: str | bytes, what: str) -> str:
    """A name; protobuf gives bytes where they are no UTF-8."""
    if isinstance(value, bytes):
        raise damaged(what, f"a name is {value!r}, which is no text")
    return value


def _read_variable(variable: Any) -> Variable:
    kind = kinds.VARIABLE_NAMES.get(variable.type.type, f"type {variable.type.type}")
    described = {
        "tensor": variable.type.lod_tensor.tensor,
        "array": variable.type.tensor_array.tensor,
        "rows": variable.type.selected_rows,
    }.get(kind)
    return Variable(
        variable.name,
        kind,
        kinds.dtype_name(described.data_type) if described is not None else "",
        tuple(described.dims) if described is not None else (),
        variable.persistable,
        variable.is_parameter,
        variable.stop_gradient,
    )


def _read_attribute(attribute: Any, op: str, what: str) -> Attribute:
    if not 0 <= attribute.type < len(kinds.ATTRIBUTE_KINDS):
        raise damaged(what, f"attribute {attribute.name} of {op} has the unknown type {attribute.type}")
    kind = kinds.ATTRIBUTE_KINDS[attribute.type]
    value = getattr(attribute, kinds.ATTRIBUTE_FIELDS[kind])
    if kind == "scalar":
        return Attribute(kind, _read_scalar(value))
    if kind == "scalars":
        return Attribute(kind, [_read_scalar(v) for v in value])
    if kind == "string":
        return Attribute(kind, _text(value))
    if kind == "strings":
        return Attribute(kind, [_text(v) for v in value])
    return Attribute(kind, list(value) if kind in _LISTS else value)


_LISTS = ("ints", "floats", "bools", "blocks", "longs", "float64s", "vars")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")  # call stacks hold paths of any encoding


def _read_scalar(scalar: Any) -> Any:
    if scalar.type == 4:
        return complex(scalar.c.r, scalar.c.i)
    return getattr(scalar, _SCALAR_FIELDS.get(scalar.type, "r"))


def write_model(model: Model) -> bytes:
    """The bytes of a ``.pdmodel`` file that holds the model.

    Raises:
        ArgumentError: the model is of another dialect, or an attribute is of a kind that the format does not have.
    """
    if model.dialect != "program":
        raise ArgumentError(message(f"a model of the dialect {model.dialect!r} is no ProgramDesc"))
    program = wire.ProgramDesc()
    program.version.version = model.version
    for name, version in sorted(model.operator_versions.items()):
        program.op_version_map.pair.add(op_name=name).op_version.version = version
    for number, block in enumerate(model.blocks):
        described = program.blocks.add(idx=number, parent_idx=block.parent, forward_block_idx=-1)
        for variable in block.variables.values():
            _write_variable(variable, described.vars.add())
        for op in block.operations:
            _write_operation(op, described.ops.add())
    return bytes(program.SerializeToString(deterministic=True))


def _write_variable(variable: Variable, described: Any) -> None:
    described.name = variable.name
    described.persistable = variable.is_persistable
    described.is_parameter = variable.is_parameter
    described.stop_gradient = variable.stops_gradient
    described.type.type = kinds.VARIABLE_KINDS[variable.kind]
    if variable.kind in ("tensor", "array"):
        holder = described.type.lod_tensor if variable.kind == "tensor" else described.type.tensor_array
        holder.lod_level = 0
        holder.tensor.data_type = kinds.dtype_number(variable.dtype)
        holder.tensor.dims.extend(variable.shape)


def _write_operation(op: Operation, described: Any) -> None:
    described.type = op.kind
    for slots, target in ((op.inputs, described.inputs), (op.outputs, described.outputs)):
        for slot, names in slots.items():
            target.add(parameter=slot).arguments.extend(names)
    for name, attribute in op.attributes.items():
        made = described.attrs.add(name=name, type=kinds.ATTRIBUTE_KINDS.index(attribute.kind))
        _write_value(attribute, made)


def _write_value(attribute: Attribute, made: Any) -> None:
    field = kinds.ATTRIBUTE_FIELDS[attribute.kind]
    if attribute.kind == "scalar":
        _write_scalar(attribute.value, made.scalar)
    elif attribute.kind == "scalars":
        for value in attribute.value:
            _write_scalar(value, made.scalars.add())
    elif attribute.kind == "string":
        made.s = attribute.value.encode("utf-8", "surrogateescape")
    elif attribute.kind == "strings":
        made.strings.extend(v.encode("utf-8", "surrogateescape") for v in attribute.value)
    elif isinstance(attribute.value, Sequence) and not isinstance(attribute.value, str):
        getattr(made, field).extend(attribute.value)
    else:
        setattr(made, field, attribute.value)


def _write_scalar(value: Any, made: Any) -> None:
    if isinstance(value, complex):
        made.type, made.c.r, made.c.i = 4, value.real, value.imag
        return
    made.type = 1 if isinstance(value, bool) else 2 if isinstance(value, int) else 3
    setattr(made, _SCALAR_FIELDS[made.type], value)
