"""Kernels as data: printing and parsing, sharing of equal nodes, and the verifier's refusals."""

from __future__ import annotations

import dataclasses
import math

import pytest

from sampan.codegen.loops import Buffer, Kernel, KernelBuilder, KernelError, Node, param_offsets, parse_kernel, verify


def _sample() -> Kernel:
    k = KernelBuilder(outer=2, inner=1, reduce_lane=True, block="inner0")
    x, z = k.buffer("x", "bfloat16", lane="n"), k.buffer("z", "complex128", lane="0", inner=False)
    table, y = k.buffer("table", "float32", lane="0"), k.buffer("y", "float32", "out", "0", False)
    value = k.cast("float32", k.load(x))
    value = k.map("add", value, k.cast("float32", k.load(z)))
    value = k.map("add", value, k.load_at(table, k.index("inner0"), k.index("lane")))
    for number in (-0.0, math.inf, math.nan, 0.1, 1e-45):
        value = k.map("maximum", value, k.const(number, "float32"))
    value = k.select(k.map("lt", k.index("outer1"), k.const(-5, "int64")), value, k.const(3, "float32"))
    value = k.map(
        "add", value, k.cast("float32", k.map("add", k.const(complex(0.1, -0.0), "complex64"), k.const(2, "complex64")))
    )
    k.store(y, k.reduce("sum", value))
    return k.build()


def test_print_and_parse_are_inverses() -> None:
    kernel = _sample()
    again = parse_kernel(kernel.text)
    assert again == kernel
    assert again.text == kernel.text
    assert hash(again) == hash(kernel)


def test_constants_that_differ_in_bits_are_different_kernels() -> None:
    def text(value: float | bool, dtype: str) -> str:
        k = KernelBuilder()
        k.store(k.buffer("y", dtype, "out"), k.const(value, dtype))
        return k.build().text

    assert text(0.0, "float32") != text(-0.0, "float32")
    assert text(1, "float32") == text(1.0, "float32")
    assert text(True, "bool") != text(1, "int32")


def test_equal_nodes_are_shared_but_signed_zeros_are_not() -> None:
    k = KernelBuilder()
    x = k.buffer("x", "float32")
    assert k.load(x) == k.load(x)
    assert k.const(0.0, "float32") != k.const(-0.0, "float32")
    assert k.cast("float32", k.load(x)) == k.load(x)


def test_param_offsets_count_every_stride() -> None:
    kernel = _sample()
    # 2 outer + 1 inner + lane + block = 5; x: 2 + 1 + 1; z: the same; table: + 2 gathered axes; y: + the block's stride
    assert param_offsets(kernel) == (5, 9, 13, 19, 24)
    assert kernel.param_count == 24


_X, _Y = Buffer("x", "float32"), Buffer("y", "float32", "out")
_LOAD = Node("load", "float32", (), 0)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((_LOAD, Node("map", "float32", (0, 1), "add")), "not an earlier node"),
        ((_LOAD, Node("map", "float32", (0,), "add")), "takes 2 arguments"),
        ((_LOAD, Node("map", "bool", (0, 0), "add")), "gives float32, the node says bool"),
        ((Node("load", "int32", (), 0),), "the buffer holds float32"),
        ((Node("load", "float32", (), 1),), "which is an out buffer"),
        ((Node("load", "float32", (), 9),), "names buffer 9"),
        ((Node("index", "int64", (), "inner0"),), "index takes one axis of lane"),
        ((_LOAD, Node("reduce", "float32", (0,), "sum")), "a map kernel has no reduce"),
        ((_LOAD, Node("select", "float32", (0, 0, 0))), "select takes a bool"),
        ((Node("const", "float32", (), 1),), "is not written as a float32"),
        ((Node("frob", "float32"),), "unknown op"),
        ((_LOAD,), "stores nothing"),
    ],
)
def test_the_verifier_says_what_is_wrong(nodes: tuple[Node, ...], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        verify(Kernel(0, 0, False, "none", (_X, _Y), nodes))


def test_errors_show_the_neighbourhood() -> None:
    nodes = (_LOAD, Node("map", "float32", (0,), "exp"), Node("store", "float32", (0, 1), 1))
    with pytest.raises(KernelError) as error:
        verify(Kernel(0, 0, False, "none", (_X, _Y), nodes))
    assert "> %2 = store y %0 %1 : float32" in str(error.value)
    assert "  %1 = map exp %0 : float32" in str(error.value)


def test_stores_must_cover_what_their_value_varies_along() -> None:
    scalar = dataclasses.replace(_Y, lane="0")
    with pytest.raises(KernelError, match="differs along the lane"):
        verify(Kernel(0, 0, False, "none", (_X, scalar), (_LOAD, Node("store", "float32", (0,), 1))))
    with pytest.raises(KernelError, match="differs along the inner axes"):
        verify(
            Kernel(0, 1, False, "none", (_X, dataclasses.replace(_Y, inner=False)), (_LOAD, Node("store", "float32", (0,), 1)))
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kernel outer=x",
        "kernel outer=0 inner=0 reduce_lane=0 block=none\n  what is this",
        "kernel outer=0 inner=0 reduce_lane=0 block=none\n  buffer x float32 in lane=1 inner=1\n  %0 = load z : float32",
    ],
)
def test_text_that_is_no_kernel_is_refused(text: str) -> None:
    with pytest.raises(KernelError):
        parse_kernel(text)
