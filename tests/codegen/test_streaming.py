"""Results larger than the caches are written past them: the same numbers, wherever the arrays start."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.kernel_checks import check_kernel, random_array

import sampan as sp
from sampan.codegen import jit
from sampan.codegen.jit import host_target, last_level_cache_bytes, llvm_text
from sampan.codegen.loops import KernelBuilder, KernelError, parse_kernel


def kernel(dtype="float32", lane="s", outs=1, outer=0, block="none", name="exp"):
    k = KernelBuilder(outer=outer, block=block)
    value = k.map(name, k.load(k.buffer("x", dtype)))
    for number in range(outs):
        k.store(k.buffer(f"y{number}", dtype, "out", lane), value)
    return k.build()


@pytest.mark.parametrize("without", [(), ("avx",), ("avx512f",)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64"])
def test_every_start_and_length_gives_the_numbers_of_plain_stores(dtype, without):
    made = kernel(dtype, outs=2, name="exp" if dtype.startswith("float") else "neg")
    for size in (0, 1, 31, 64, 1000):
        for start in (0, 1, 4, 16):
            arrays = [random_array(dtype, size + 32, seed) for seed in range(3)]
            check_kernel(made, arrays, [[1]] * 3, lane=size, offsets=[3, start, 16], without=without)


def test_rows_and_blocks_of_any_length():
    for length in (64, 67):
        arrays = [random_array("float32", 9 * length + 32, seed) for seed in range(2)]
        check_kernel(kernel(outer=1), arrays, [[length, 1]] * 2, outer=[9], lane=length)
    arrays = [random_array("float32", 1000, seed) for seed in range(2)]
    check_kernel(kernel(block="lane"), arrays, [[1]] * 2, lane=1000, block=96)


def test_long_bodies_and_branches_inside():
    k = KernelBuilder()
    x = k.load(k.buffer("x", "float32"))
    value = k.map("pow", k.map("abs", x), k.map("sin", x))
    k.store(k.buffer("y", "float32", "out", "s"), value)
    check_kernel(k.build(), [random_array("float32", 500, seed) * 1e4 for seed in range(2)], [[1]] * 2, lane=500, tolerance=1e-4)


def test_the_text_reads_back_and_streams():
    made = kernel()
    assert parse_kernel(made.text) == made
    assert "!nontemporal" in llvm_text(made, host_target())[0]
    assert "!nontemporal" not in llvm_text(kernel(lane="1"), host_target())[0]
    if host_target().triple.startswith("x86_64"):
        assert "movnt" in jit.compiler_for().assembly(made)


@pytest.mark.parametrize(("dtype", "lane", "direction"), [("float16", "s", "out"), ("bool", "s", "out"), ("float32", "s", "in")])
def test_what_cannot_stream_is_refused(dtype, lane, direction):
    k = KernelBuilder()
    value = k.load(k.buffer("x", dtype, "in", lane if direction == "in" else "1"))
    k.store(k.buffer("y", dtype, "out", lane if direction == "out" else "1"), value)
    with pytest.raises(KernelError, match=r"only a map kernel has lane='s', for outs of numbers of 32 or 64 bits"):
        k.build()


def test_only_results_beyond_the_caches_stream(monkeypatch):
    texts = []
    build = jit.Compiler.compile

    def compile(self, kernel):
        texts.append(kernel.text)
        return build(self, kernel)

    monkeypatch.setattr(jit.Compiler, "compile", compile)
    bound = 2 * last_level_cache_bytes() // 8
    for size, streams in ((bound + 7, True), (bound - 1, False)):
        x = np.arange(size, dtype="float64")
        texts.clear()
        got = sp.to_tensor(x) * 3.25 + 0.125 * size  # constants that no other test compiles
        np.testing.assert_array_equal(got.numpy(), x * 3.25 + 0.125 * size)
        assert all("lane=s" in text for text in texts) if streams else not any("lane=s" in text for text in texts)
    x = sp.to_tensor(np.ones(bound + 7))
    x.add_(x)  # reads what it writes
    assert float(x.sum()) == 2.0 * (bound + 7)
