"""Nothing that a user passes ends the process, hangs, or raises an error of another kind than a caller expects."""

import subprocess
import sys

import numpy as np
import pytest
from tensor.fuzzing import fuzz, public_functions

import sampan as paddle

PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_public_functions_take_or_refuse_whatever_they_are_given(part):
    functions = public_functions()[part::PARTS]
    assert len(functions) > 50
    faults = fuzz(functions, calls=6, seed=part)
    assert not faults, "\n".join(f"{f.call}: {f.what}" for f in faults)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "mod", "floor_mod"])
def test_integer_division_by_zero_raises(name, dtype):
    x = paddle.to_tensor([1, 2, 3], dtype=dtype)
    with pytest.raises(ValueError, match="divisor"):
        getattr(paddle, name)(x, paddle.to_tensor([1, 0, 2], dtype=dtype))


def test_the_one_integer_quotient_that_overflows_wraps():
    for dtype in ("int8", "int16", "int32", "int64"):
        low = np.iinfo(dtype).min
        x, y = paddle.to_tensor([low], dtype=dtype), paddle.to_tensor([-1], dtype=dtype)
        assert (x // y).item() == low
        assert (x % y).item() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: paddle.zeros([2**62, 4]),
        lambda: paddle.zeros([2**40]),
        lambda: paddle.ones([2**31, 2**31, 2**31]),
        lambda: paddle.full([2**70], 1.0),
        lambda: paddle.arange(0, 2**62),
        lambda: paddle.arange(0.0, 1e30, 1e-10),
        lambda: paddle.linspace(0, 1, 2**45),
        lambda: paddle.eye(2**33),
        lambda: paddle.to_tensor([1.0]).tile([2**45]),
        lambda: paddle.to_tensor([1.0]).expand([2**62, 2**20]),
        lambda: paddle.to_tensor([1.0]).repeat_interleave(2**45),
        lambda: paddle.tril_indices(2**33, 2**33, 0),
        lambda: paddle.rand([2**45]),
        lambda: paddle.randperm(2**45),
        lambda: paddle.nn.functional.pad(paddle.to_tensor([[1.0]]), [2**45, 0]),
        lambda: paddle.nn.functional.one_hot(paddle.to_tensor([0]), 2**45),
        lambda: paddle.to_tensor([1.0]).new_zeros([2**45]),
        lambda: paddle.to_tensor([1.0]).resize_([2**45]),
        lambda: paddle.as_strided(paddle.to_tensor([1.0]), [2**31, 2**31], [1, 1]),
    ],
)
def test_sizes_beyond_memory_or_beyond_64_bits_raise(call):
    with pytest.raises((MemoryError, ValueError, OverflowError, IndexError, TypeError)):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: paddle.gather(x, i),
        lambda x, i: paddle.index_select(x, i),
        lambda x, i: paddle.take(x, i),
        lambda x, i: paddle.index_sample(paddle.stack([x]), paddle.stack([i])),
        lambda x, i: paddle.gather_nd(x, i.unsqueeze(1)),
        lambda x, i: paddle.scatter(x, i, paddle.ones_like(x)[: i.shape[0]]),
        lambda x, i: paddle.scatter_nd_add(x, i.unsqueeze(1), paddle.ones([i.shape[0]])),
        lambda x, i: paddle.index_add(x, i, 0, paddle.ones([i.shape[0]])),
        lambda x, i: paddle.index_fill(x, i, 0, 1.0),
        lambda x, i: paddle.index_put(x, [i], paddle.ones([i.shape[0]])),
        lambda x, i: paddle.take_along_axis(x, i, 0),
        lambda x, i: paddle.put_along_axis(x, i, 1.0, 0),
        lambda x, i: paddle.nn.functional.embedding(i, paddle.ones([3, 2])),
        lambda x, i: paddle.nn.functional.embedding(i, paddle.ones([3, 2]), padding_idx=0),
        lambda x, i: paddle.nn.functional.cross_entropy(paddle.ones([i.shape[0], 3]), i),
        lambda x, i: paddle.nn.functional.nll_loss(paddle.ones([i.shape[0], 3]), i),
        lambda x, i: x[i],
        lambda x, i: x.__setitem__(i, 1.0),
    ],
)
@pytest.mark.parametrize("bad", [3, -4, 2**31, -(2**62), 2**63 - 1])
def test_indices_out_of_range_raise(call, bad):
    x = paddle.to_tensor([1.0, 2.0, 3.0])
    with pytest.raises((IndexError, ValueError)):
        call(x, paddle.to_tensor([0, bad]))


@pytest.mark.parametrize(
    "name", ["sum", "max", "argmax", "softmax", "cumsum", "sort", "flip", "squeeze", "unsqueeze", "mean", "topk", "split"]
)
@pytest.mark.parametrize("axis", [2, -3, 2**31, -(2**63), 2**70, 1.5, "a"])
def test_axes_out_of_range_raise(name, axis):
    x = paddle.to_tensor(np.ones([2, 2], "float32"))
    function = getattr(paddle.nn.functional, name) if name == "softmax" else getattr(paddle, name)
    args = {"topk": (x, 1), "split": (x, 2)}.get(name, (x,))
    if name == "unsqueeze" and axis in (2, -3):
        assert function(x, axis).ndim == 3
        return
    with pytest.raises((ValueError, IndexError, TypeError, OverflowError)):
        function(*args, axis=axis)


def test_deeply_nested_data_raises():
    nested = [1.0]
    for _ in range(5000):
        nested = [nested]
    with pytest.raises((TypeError, ValueError, RecursionError)):
        paddle.to_tensor(nested)


def modules_after(statement: str) -> set[str]:
    """The modules that a new process has loaded after the statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120).stdout.split()
    )


def test_importing_loads_no_more_than_it_needs():
    """Modules of the package's lower layers, NumPy with the types it lacks, and of the rest only what comes at next to no cost."""
    more = modules_after("import sampan") - modules_after(
        "import numpy, ml_dtypes, dataclasses, threading, atexit, gc, __future__"
    )
    assert {m for m in more if m.partition(".")[0] != "sampan"} == set()
    own = {m.split(".")[1] for m in more if m.startswith("sampan.")}
    assert own <= {"_rt", "autodiff", "autograd", "base", "ir", "ops", "tensor", "version"}


def test_importing_leaves_the_collector_as_it_was():
    for setting in ("enable", "disable"):
        code = f"import gc; gc.{setting}(); import sampan; print(gc.isenabled())"
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
        assert found.stdout.split() == [str(setting == "enable")]
