"""Passes on Programs as text: before and expected."""

from __future__ import annotations

import numpy as np
import pytest

from sampan.ir import Builder, parse_program, print_program, verify
from sampan.ops import primitives as p
from sampan.ops.catalog import TABLE
from sampan.passes.drop_dead import drop_dead
from sampan.passes.expand_definitions import expand_definitions
from sampan.passes.fold_constants import fold_constants
from sampan.passes.fold_literals import fold_literals
from sampan.passes.fold_scales import fold_scales
from sampan.passes.merge_common import merge_common
from sampan.passes.narrow_broadcasts import narrow_broadcasts
from sampan.passes.pipeline import PIPELINE, run_passes
from sampan.passes.simplify_algebra import simplify_algebra

X = "%x: float32[2, 3]"


def program(body: str, arguments: str = X) -> str:
    return f"program case({arguments}) {{\n  {body.strip()}\n}}\n"


def assert_becomes(function, before: str, expected: str, arguments: str = X) -> None:
    """The pass, and dropping what it left unused, gives the expected Program; the given one does not change."""
    given = parse_program(program(before, arguments))
    text = print_program(given)
    result = drop_dead(function(given))
    verify(result, TABLE)
    assert print_program(result) == print_program(parse_program(program(expected, arguments)))
    assert print_program(given) == text


def full(number: str, dtype: str = "float32", shape: str = "(2, 3)") -> str:
    size = shape.strip("()").rstrip(",")
    return f"%c: {dtype}[] = constant() {{value={number}, dtype='{dtype}'}}\n  %f: {dtype}[{size}] = broadcast_to(%c) {{shape={shape}}}\n  "


@pytest.mark.parametrize(
    ("number", "op"),
    [
        ("1.0", "mul(%x, %f)"),
        ("1.0", "mul(%f, %x)"),
        ("1.0", "div(%x, %f)"),
        ("0.0", "sub(%x, %f)"),
        ("-0.0", "add(%x, %f)"),
        ("1.0", "pow(%x, %f)"),
    ],
)
def test_arithmetic_that_changes_nothing_is_dropped(number, op):
    assert_becomes(simplify_algebra, f"{full(number)}%y: float32[2, 3] = {op}\n  return %y", "return %x")


@pytest.mark.parametrize(
    ("number", "op"), [("0.0", "add(%x, %f)"), ("0.0", "mul(%x, %f)"), ("-0.0", "sub(%x, %f)"), ("1.0", "div(%f, %x)")]
)
def test_arithmetic_that_may_change_a_float_stays(number, op):
    body = f"{full(number)}%y: float32[2, 3] = {op}\n  return %y"
    assert_becomes(simplify_algebra, body, body)


def test_an_integer_times_zero_is_zero():
    body = f"{full('0', 'int32')}%y: int32[2, 3] = mul(%x, %f)\n  return %y"
    expected = (
        "%c: int32[] = constant() {value=0, dtype='int32'}\n  %0: int32[2, 3] = broadcast_to(%c) {shape=(2, 3)}\n  return %0"
    )
    result = drop_dead(simplify_algebra(parse_program(program(body, "%x: int32[2, 3]"))))
    assert [op.name for op in result.ops] == [op.name for op in parse_program(program(expected, "%x: int32[2, 3]")).ops]


def test_widening_and_back_is_no_cast():
    assert_becomes(
        simplify_algebra,
        "%0: float64[2, 3] = cast(%x) {dtype='float64'}\n  %1: float32[2, 3] = cast(%0) {dtype='float32'}\n  return %1",
        "return %x",
    )


def test_narrowing_and_back_rounds_and_stays():
    body = "%0: float16[2, 3] = cast(%x) {dtype='float16'}\n  %1: float32[2, 3] = cast(%0) {dtype='float32'}\n  return %1"
    assert_becomes(simplify_algebra, body, body)


def test_two_transposes_become_one():
    assert_becomes(
        simplify_algebra,
        "%0: float32[4, 2, 3] = transpose(%x) {order=(2, 0, 1)}\n  %1: float32[3, 4, 2] = transpose(%0) {order=(2, 0, 1)}\n  return %1",
        "%0: float32[3, 4, 2] = transpose(%x) {order=(1, 2, 0)}\n  return %0",
        "%x: float32[2, 3, 4]",
    )


def test_a_transpose_and_its_inverse_are_nothing():
    assert_becomes(
        simplify_algebra,
        "%0: float32[3, 2] = transpose(%x) {order=(1, 0)}\n  %1: float32[2, 3] = transpose(%0) {order=(1, 0)}\n  return %1",
        "return %x",
    )


def test_reshapes_become_one():
    assert_becomes(
        simplify_algebra,
        "%0: float32[6] = reshape(%x) {shape=(6,)}\n  %1: float32[3, 2] = reshape(%0) {shape=(3, 2)}\n  return %1",
        "%0: float32[3, 2] = reshape(%x) {shape=(3, 2)}\n  return %0",
    )


def test_broadcasts_become_one():
    assert_becomes(
        simplify_algebra,
        "%0: float32[1, 3] = broadcast_to(%x) {shape=(1, 3)}\n  %1: float32[2, 3] = broadcast_to(%0) {shape=(2, 3)}\n  return %1",
        "%0: float32[2, 3] = broadcast_to(%x) {shape=(2, 3)}\n  return %0",
        "%x: float32[3]",
    )


def test_select_of_a_known_condition_is_its_branch():
    body = f"{full('True', 'bool')}%y: float32[2, 3] = neg(%x)\n  %z: float32[2, 3] = select(%f, %y, %x)\n  return %z"
    assert_becomes(simplify_algebra, body, "%y: float32[2, 3] = neg(%x)\n  return %y")


def test_reducing_axes_of_length_one_is_nothing():
    assert_becomes(
        simplify_algebra, "%0: float32[2, 1] = reduce_sum(%x) {axes=(1,)}\n  return %0", "return %x", "%x: float32[2, 1]"
    )


def test_maps_of_constants_are_constants():
    result = drop_dead(
        fold_constants(
            parse_program(
                program(f"{full('2.0')}%y: float32[2, 3] = mul(%f, %f)\n  %z: float32[2, 3] = add(%x, %y)\n  return %z")
            )
        )
    )
    verify(result, TABLE)
    assert [op.name for op in result.ops] == ["constant", "broadcast_to", "add"]
    assert result.ops[0].attributes["value"] == 4.0


def test_equal_ops_are_merged_along_chains():
    assert_becomes(
        merge_common,
        "%0: float32[2, 3] = exp(%x)\n  %1: float32[2, 3] = exp(%x)\n  %2: float32[2, 3] = neg(%0)\n  %3: float32[2, 3] = neg(%1)\n"
        "  %4: float32[2, 3] = mul(%2, %3)\n  return %4",
        "%0: float32[2, 3] = exp(%x)\n  %1: float32[2, 3] = neg(%0)\n  %2: float32[2, 3] = mul(%1, %1)\n  return %2",
    )


def test_constants_that_differ_in_the_sign_of_zero_are_not_merged():
    body = (
        "%0: float32[] = constant() {value=0.0, dtype='float32'}\n  %1: float32[] = constant() {value=-0.0, dtype='float32'}\n"
        "  %2: float32[] = div(%0, %1)\n  return %2"
    )
    assert_becomes(merge_common, body, body)


def test_maps_of_repeated_values_are_computed_once():
    assert_becomes(
        narrow_broadcasts,
        "%0: float32[2, 3] = broadcast_to(%a) {shape=(2, 3)}\n  %1: float32[2, 3] = broadcast_to(%b) {shape=(2, 3)}\n"
        "  %2: float32[2, 3] = add(%0, %1)\n  %3: float32[2, 3] = exp(%2)\n  return %3",
        "%0: float32[3] = broadcast_to(%b) {shape=(3,)}\n  %1: float32[3] = add(%a, %0)\n  %2: float32[3] = exp(%1)\n"
        "  %3: float32[2, 3] = broadcast_to(%2) {shape=(2, 3)}\n  return %3",
        "%a: float32[3], %b: float32[]",
    )


def test_a_map_with_an_operand_of_full_size_stays():
    body = "%0: float32[2, 3] = broadcast_to(%a) {shape=(2, 3)}\n  %1: float32[2, 3] = add(%0, %x)\n  return %1"
    assert_becomes(narrow_broadcasts, body, body, f"{X}, %a: float32[3]")


_CONV = "strides=(1, 1), padding_low=(0, 0), padding_high=(0, 0), dilations=(1, 1), groups=1"


def scaled_convolution(size: int, more: str = "") -> tuple[str, str]:
    """The body of ``conv(x, w) * s``, and its arguments."""
    out = f"float32[1, 4, {size}, {size}]"
    body = f"""%y: {out} = conv(%x, %w) {{{_CONV}}}
  %b: {out} = broadcast_to(%s) {{shape=(1, 4, {size}, {size})}}
  %z: {out} = mul(%y, %b)
  {more}return %z"""
    return body, f"%x: float32[1, 2, {size}, {size}], %w: float32[4, 2, 1, 1], %s: float32[1, 4, 1, 1]"


def test_factors_of_channels_go_into_a_smaller_weight():
    before, arguments = scaled_convolution(8)
    expected = f"""%3: float32[4, 1, 1, 1] = reshape(%s) {{shape=(4, 1, 1, 1)}}
  %4: float32[4, 2, 1, 1] = broadcast_to(%3) {{shape=(4, 2, 1, 1)}}
  %5: float32[4, 2, 1, 1] = mul(%w, %4)
  %y: float32[1, 4, 8, 8] = conv(%x, %5) {{{_CONV}}}
  return %y"""
    assert_becomes(fold_scales, before, expected, arguments)


def test_a_weight_is_not_scaled_in_place_of_a_smaller_or_shared_result():
    small, arguments = scaled_convolution(1)
    assert_becomes(fold_scales, small, small, arguments)
    shared, arguments = scaled_convolution(8, "%u: float32[1, 4, 8, 8] = exp(%y)\n  ")
    shared = shared.replace("return %z", "return %z, %u")
    assert_becomes(fold_scales, shared, shared, arguments)


def test_what_literals_give_is_known():
    builder = Builder(TABLE)
    with builder.active():
        x = builder.argument("float32", (2, 3))
        weight = p.literal(np.arange(3, dtype="float32"))
        factor = p.add(p.mul(weight, 2.0), p.broadcast_to(p.constant(1.0, "float32"), (3,)))
        y = p.mul(x, p.broadcast_to(factor, (2, 3)))
    result = drop_dead(fold_literals(builder.finish(y)))
    verify(result, TABLE)
    assert [op.name for op in result.ops] == ["literal", "broadcast_to", "mul"]
    assert result.ops[0].attributes["value"].array.tolist() == [1, 3, 5]


def test_literals_do_not_grow_large():
    builder = Builder(TABLE)
    with builder.active():
        row = p.literal(np.ones((1, 100), "float32"))
        y = p.add(p.broadcast_to(row, (100, 100)), p.broadcast_to(p.reshape(row, (100, 1)), (100, 100)))
    result = fold_literals(builder.finish(y))
    assert result.ops[-1].name == "add"


def test_what_nothing_depends_on_is_dropped():
    assert_becomes(
        drop_dead,
        "%0: float32[2, 3] = exp(%x)\n  %1: float32[2, 3] = neg(%x)\n  return %1",
        "%0: float32[2, 3] = neg(%x)\n  return %0",
    )


def test_composites_are_expanded_to_primitives():
    assert_becomes(
        expand_definitions,
        "%0: float32[2, 3] = multiply(%x, %x)\n  return %0",
        "%0: float32[2, 3] = mul(%x, %x)\n  return %0",
    )


def test_a_pass_that_changes_nothing_gives_the_program_itself():
    given = parse_program(program("%0: float32[2, 3] = exp(%x)\n  return %0"))
    for function, phrase in PIPELINE:
        assert function(given) is given, phrase


def test_passes_can_be_skipped_by_name():
    given = parse_program(program("%0: float32[2, 3] = exp(%x)\n  %1: float32[2, 3] = neg(%x)\n  return %1"))
    assert len(run_passes(given, skip=("drop_dead",)).ops) == 2
    assert len(run_passes(given).ops) == 1
