"""What is dropped goes at once, and nothing grows."""

import copy
import gc
import os
import resource
import weakref

import numpy as np
import pytest
from processes import is_sanitized

import sampan as paddle


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.fixture(autouse=True)
def without_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Double(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def leaf():
    return paddle.to_tensor([1.0, 2.0], stop_gradient=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x * 2,
        lambda x: (x * x).sum(),
        lambda x: x[0],
        lambda x: x.reshape([2, 1]),
        lambda x: Double.apply(x),
        lambda x: paddle.grad((x * x * x).sum(), x, create_graph=True)[0],
        lambda x: paddle.split(x, 2)[0],
        lambda x: (x * 1).add_(x),
        lambda x: copy.deepcopy(x),
        lambda x: paddle.nonzero(x),
    ],
)
@pytest.mark.parametrize("goes_backward", [False, True])
def test_results_and_their_graphs_die_with_the_last_reference(make, goes_backward):
    x = leaf()
    y = make(x)
    dead = weakref.ref(y)
    if goes_backward and not y.stop_gradient:
        y.sum().backward()
    del y
    assert dead() is None
    dead = weakref.ref(x)
    del x
    assert dead() is None


def test_a_hook_that_refers_to_its_own_tensor_can_be_collected():
    x = leaf()
    y = x * 2
    y.register_hook(lambda g, me=y: None)
    dead = weakref.ref(y)
    del y
    gc.collect()
    assert dead() is None


def test_a_pylayer_that_saves_its_output_makes_no_cycle():
    x = leaf()
    y = Double.apply(x)
    dead = weakref.ref(y)
    del y
    assert dead() is None


def test_tensors_in_a_container_die_with_it():
    held = {"a": paddle.to_tensor([1.0]), "b": [paddle.to_tensor([2.0])]}
    dead = [weakref.ref(held["a"]), weakref.ref(held["b"][0])]
    copied = copy.deepcopy(held)
    del held
    assert [d() for d in dead] == [None, None]
    assert copied["a"].item() == 1.0


def step(x, weight):
    y = paddle.tanh(paddle.matmul(x, weight)) * 2 + 1
    loss = (y * y).mean()
    loss.backward()
    weight.clear_gradient()
    return loss.item()


@pytest.mark.skipif(is_sanitized(), reason="the sanitizer holds what is freed")
@pytest.mark.parametrize("kind", ["training", "recording without backward", "errors", "indexing"])
def test_memory_is_flat_over_many_steps(kind):
    x = paddle.to_tensor(np.ones([16, 32], "float32"))
    weight = paddle.to_tensor(np.ones([32, 64], "float32") / 32, stop_gradient=False)

    def once():
        if kind == "training":
            step(x, weight)
        elif kind == "errors":
            with pytest.raises(ValueError, match="broadcast"):
                paddle.add(x, weight)
        elif kind == "indexing":
            y = weight * 1
            y[::2] = y[1::2]
            y[[0, 1], [2, 3]].sum().backward()
            weight.clear_gradient()
        else:
            (paddle.matmul(x, weight) * 2).sum()

    for _ in range(300):
        once()
    gc.collect()
    before = resident_bytes()
    for _ in range(1000):
        once()
    gc.collect()
    assert resident_bytes() - before < 2 << 20


def test_allocated_bytes_return_to_where_they_were():
    paddle.to_tensor(np.ones([100, 100], "float32")) + 1  # what the first call keeps is not counted
    before = paddle.device.memory_allocated()
    x = paddle.to_tensor(np.ones([100, 100], "float32"))
    y = [x + k for k in range(10)]
    assert paddle.device.memory_allocated() >= before + 11 * 40000
    del x, y
    assert paddle.device.memory_allocated() == before


def test_a_child_process_computes_after_fork():
    x = paddle.to_tensor(np.ones([300, 300], "float32"), stop_gradient=False)
    (paddle.matmul(x, x) + paddle.exp(x)).sum().backward()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            x.clear_gradient()
            y = paddle.matmul(x, x).sum() + paddle.cumsum(paddle.to_tensor([1.0, 2.0], dtype="float64")).sum().astype("float32")
            y.backward()
            status = 0 if x.grad[0, 0].item() == 600.0 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert paddle.matmul(x, x)[0, 0].item() == 300.0


@pytest.mark.parametrize(
    "write",
    [
        lambda table, rows, values: table.index_add_(rows, 0, values),
        lambda table, rows, values: table.scatter_(rows, values),
        lambda table, rows, values: table.__setitem__(rows, values),
    ],
    ids=["index_add_", "scatter_", "setitem"],
)
def test_writing_rows_in_place_copies_no_table(write):
    table, rows, values = paddle.zeros([100_000, 8]), paddle.arange(0, 100_000, 1000), paddle.ones([100, 8])
    write(table, rows, values)
    before = paddle.device.memory_allocated()
    paddle.device.reset_peak_memory_stats()
    write(table, rows, values)
    assert paddle.device.max_memory_allocated() - before < 100_000
    assert float(table.sum()) in (800, 1600)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_rows_written_in_place_from_the_tensor_itself(dtype):
    start = paddle.to_tensor(np.arange(12).reshape(4, 3)).astype(dtype)
    rows = paddle.to_tensor([3, 2, 1, 0])
    for source in (lambda t: t, lambda t: t.flip([0])):
        x = start.clone()
        x.index_add_(rows, 0, source(x))
        assert bool((x == start.index_add(rows, 0, source(start))).all())
    part, x = paddle.to_tensor([0, 1]), start.clone()
    x.index_add_(part, 0, x[2:])
    assert bool((x == start.index_add(part, 0, start[2:])).all())


def test_a_bad_row_leaves_the_tensor_as_it_was():
    x = paddle.ones([4, 3])
    with pytest.raises(IndexError, match="7"):
        x.index_add_(paddle.to_tensor([0, 7]), 0, paddle.ones([2, 3]))
    assert bool((x == 1).all())
