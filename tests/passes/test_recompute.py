"""recompute: values that wait for late readers are computed again, from what stays, and have the same elements."""

from __future__ import annotations

import numpy as np
import pytest

from sampan.ir import Builder, interpreter, parse_program, print_program, verify
from sampan.ops import primitives as p
from sampan.ops.catalog import TABLE
from sampan.passes.recompute import memory_target, recompute, within_memory


def chain(length=6, size=64):
    """A step in small: products and functions forwards, and backwards a product with each function's result."""
    builder = Builder(TABLE, "step")
    with builder.active():
        x = builder.argument("float32", (size, size))
        weights = [builder.argument("float32", (size, size)) for _ in range(length)]
        kept, value = [], x
        for w in weights:
            value = p.append("tanh", p.append("matmul", value, w))
            kept.append(value)
        for w, early in zip(reversed(weights), reversed(kept), strict=True):
            value = p.append("mul", p.append("matmul", value, w), p.append("matmul", early, early))
    return builder.finish(value)


def run(program):
    rng = np.random.default_rng(0)
    return interpreter.run(program, [(rng.standard_normal(v.shape) / 8).astype(v.dtype) for v in program.inputs], TABLE)[0]


def recomputed(program, target):
    with within_memory(target):
        return recompute(program)


def names(program):
    return [op.name for op in program.ops]


def test_without_a_target_nothing_changes():
    program = chain()
    assert memory_target() is None
    assert recompute(program) is program


def test_a_target_that_is_met_changes_nothing():
    program = chain()
    assert recomputed(program, 1 << 30) is program


@pytest.mark.parametrize("target", [80_000, 40_000, 1])
def test_the_elements_stay_and_the_given_program_does_not_change(target):
    program = chain()
    text = print_program(program)
    result = recomputed(program, target)
    verify(result, TABLE)
    assert names(result).count("tanh") > 6
    np.testing.assert_array_equal(run(result), run(program))
    assert print_program(program) == text


def test_what_costs_least_for_its_size_comes_first():
    """Functions of products are cheaper than the products, and products of inputs alone are taken where functions do not suffice."""
    products = names(chain()).count("matmul")
    few, many = recomputed(chain(), 16384 * 5), recomputed(chain(), 1)
    assert names(few).count("tanh") > 6
    assert names(few).count("matmul") - products < names(many).count("matmul") - products


def test_a_smaller_target_computes_more_again():
    counts = [len(recomputed(chain(8), target).ops) for target in (120_000, 60_000, 1)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_what_is_computed_again_waits_for_its_reader():
    result = recomputed(chain(), 1)
    position = {id(v): k for k, op in enumerate(result.ops) for v in op.outputs}
    tied = [op for op in result.ops if op.name == "after"]
    assert tied
    first_late = min(position[id(op.inputs[1])] for op in tied)
    assert all(position[id(op.inputs[1])] >= first_late for op in tied)
    assert all(position[id(op.outputs[0])] > position[id(op.inputs[1])] for op in tied)


def test_host_calls_run_once():
    builder = Builder(TABLE, "step")
    with builder.active():
        x = builder.argument("float32", (64, 64))
        early = p.append("inverse", x)
        value = early
        for _ in range(4):
            value = p.append("matmul", value, value)
        result = p.append("matmul", value, p.append("exp", early))
    changed = recomputed(builder.finish(result), 1)
    verify(changed, TABLE)
    assert names(changed).count("inverse") == 1


def test_the_printed_program_reads_back():
    result = recomputed(chain(), 1)
    assert print_program(parse_program(print_program(result))) == print_program(result)
