"""Recorded Programs as text: declarations, then one statement on a line, nested blocks indented."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.program import Block, Op, Value
from .replay import Operand


def print_recorded(block: Block, declared: Iterable[Any], with_details: bool = False) -> str:
    """The Program as text.

    ::

        program {
          param fc_0.w_0: float32[784, 10]
          data x: float32[-1, 784]
          matmul_0.tmp_0: float32[-1, 10] = matmul(x, fc_0.w_0)
        }
    """
    lines = ["program {"]
    arguments = {id(v): v for v in block.arguments} | {id(v): v for v in declared}
    for v in arguments.values():
        kind = "param" if hasattr(v, "trainable") else "state" if getattr(v, "persistable", False) else "data"
        lines.append(f"  {kind} {_typed(v)}{' (frozen)' if kind == 'param' and v.stop_gradient else ''}")
    lines += _statements(block, "  ", with_details)
    return "\n".join([*lines, "}"]) + "\n"


def _typed(v: Value) -> str:
    sizes = getattr(v, "sizes", v.shape)
    return f"{v.name}: {v.dtype}[{', '.join(map(str, sizes))}]"


def _statements(block: Block, indent: str, with_details: bool) -> list[str]:
    lines: list[str] = []
    role = ""
    for op in block.ops:
        if op.role != role:
            role = op.role
            lines.append(f"{indent}# {role or 'forward'}")
        lines += _statement(op, indent, with_details)
    return lines


def statement_text(op: Op) -> str:
    """One statement, with where it was written."""
    return "\n".join(_statement(op, "", True))


def _statement(op: Op, indent: str, with_details: bool) -> list[str]:
    left = ", ".join(map(_typed, op.outputs))
    name = op.name.removeprefix("op.")
    where = f"  # {op.location}" if with_details and op.location else ""
    head = f"{indent}{left}{' = ' if left else ''}"
    if not op.blocks:
        return [f"{head}{name}({', '.join(_arguments(op))}){where}"]
    lines = []
    words = {"cond": ("if", "else"), "while": ("while", "do"), "while_grad": ("while_grad", "do", "gradient")}.get(
        op.name, ("backward",)
    )
    inputs = op.inputs[1:] if op.name == "cond" else op.inputs
    for k, (word, block) in enumerate(zip(words, op.blocks, strict=True)):
        renamed = ", ".join(f"{inner.name} = {outer.name}" for inner, outer in zip(block.arguments, inputs, strict=False))
        test = f" ({op.inputs[0].name})" if op.name == "cond" and k == 0 else ""
        start = head if k == 0 else f"{indent}}} "
        lines.append(f"{start}{word}{test} [{renamed}] {{{where if k == 0 else ''}")
        lines += _statements(block, indent + "  ", with_details)
        lines.append(f"{indent}  yield {', '.join(v.name for v in block.results)}")
    return [*lines, f"{indent}}}"]


def _arguments(op: Op) -> list[str]:
    shown = [(k, v) for k, v in op.attributes.items() if not k.startswith("@") and v is not None and not k.endswith("_count")]
    used: set[int] = set()

    def text(value: Any) -> str:
        if isinstance(value, Operand):
            used.add(value.index)
            return op.inputs[value.index].name if value.index < len(op.inputs) else "?"
        if isinstance(value, tuple):
            return f"[{', '.join(map(text, value))}]"
        if isinstance(value, slice):
            return ":".join("" if v is None else text(v) for v in (value.start, value.stop, value.step))
        return "..." if value is Ellipsis else repr(value)

    named = [f"{k}={text(v)}" for k, v in shown]
    return [v.name for k, v in enumerate(op.inputs) if k not in used] + named
