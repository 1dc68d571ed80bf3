"""What ends other programs: deep chains, cycles, errors inside callbacks, interrupts, forks, threads that write what others read, and exit."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from processes import run_python

import sampan as paddle
from sampan import _rt
from sampan.base.locks import new_lock


def leaf(values):
    return paddle.to_tensor(values, dtype="float64", stop_gradient=False)


class Identity(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad


# -- depth ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "length"),
    [
        (lambda y: y + 1.0, 100_000),
        (lambda y: y.reshape([-1]), 100_000),
        (lambda y: y.add_(1.0), 100_000),
        (Identity.apply, 10_000),
    ],
    ids=["operators", "views", "in-place writes", "PyLayers"],
)
@pytest.mark.parametrize("goes_backward", [False, True])
def test_chains_of_any_length_are_differentiated_and_freed(step, length, goes_backward):
    x = leaf([1.0])
    y = x * 1.0
    for _ in range(length):
        y = step(y)
    if goes_backward:
        y.backward()
        assert x.grad.tolist() == [1.0]
    del y


def test_writes_through_views_make_chains_of_any_length():
    x = leaf([1.0, 2.0])
    b = x * 1.0
    for _ in range(10_000):
        b[0:1].add_(x[1:])
    b.sum().backward()
    assert x.grad.tolist() == [1.0, 10_001.0]
    del b


def test_hooks_that_hold_the_next_tensor_make_chains_of_any_length():
    y = leaf([1.0])
    for _ in range(50_000):
        nxt = y * 1.0
        nxt.register_hook(lambda grad, kept=y: None)
        y = nxt
    del y, nxt


def test_attributes_that_hold_the_next_tensor_make_chains_of_any_length():
    y = paddle.ones([1])
    for _ in range(100_000):
        nxt = paddle.ones([1])
        nxt.kept = y
        y = nxt
    del y, nxt


# -- containers -----------------------------------------------------------------------------------------------------------------


def nested(depth):
    value = [1.0]
    for _ in range(depth):
        value = [value]
    return value


def cyclic():
    value = [1.0]
    value.append(value)
    return value


CONTAINER_CALLS = {
    "to_tensor": paddle.to_tensor,
    "concat": paddle.concat,
    "stack": paddle.stack,
    "add_n": paddle.add_n,
    "zeros": paddle.zeros,
    "reshape": lambda v: paddle.ones([4]).reshape(v),
    "getitem": lambda v: paddle.ones([4])[v],
    "getitem in a tuple": lambda v: paddle.ones([4])[(v,)],
    "setitem": lambda v: paddle.ones([4]).__setitem__(0, v),
    "setitem by": lambda v: paddle.ones([4]).__setitem__(v, 1.0),
    "sum": lambda v: paddle.ones([4]).sum(axis=v),
    "add": lambda v: paddle.ones([4]) + v,
    "set_value": lambda v: paddle.ones([4]).set_value(v),
    "PyLayer": Identity.apply,
    "grad": lambda v: paddle.grad(v, paddle.ones([1])),
    "backward": paddle.autograd.backward,
    "PyNode": lambda v: _rt.PyNode("node", len, v, v, v),
    "einsum": lambda v: paddle.einsum("i,i->i", v),
    "where": lambda v: paddle.where(paddle.ones([1]) > 0, v, v),
}


@pytest.mark.parametrize("value", [nested(5000), nested(200_000), cyclic()], ids=["nested", "nested deeply", "cyclic"])
@pytest.mark.parametrize("name", CONTAINER_CALLS)
def test_deep_and_cyclic_lists_raise(name, value):
    with pytest.raises((TypeError, ValueError, IndexError, RuntimeError)):
        CONTAINER_CALLS[name](value)


class Clears:
    """An index that empties the list it stands in."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 1

    def __array__(self, *args, **kwargs):
        self.items.clear()
        return np.ones([1], np.float32)

    def __float__(self):
        self.items.clear()
        return 1.0


@pytest.mark.parametrize("name", CONTAINER_CALLS)
@pytest.mark.parametrize("where", [0, 1])
def test_lists_that_change_while_they_are_read_are_read_safely(name, where):
    items: list = []
    items.extend([Clears(items), *[2**40 + k for k in range(200)]] if where == 0 else [1, Clears(items), *range(200)])
    try:
        CONTAINER_CALLS[name](items)
    except (TypeError, ValueError, IndexError, RuntimeError, MemoryError, AttributeError):
        pass
    assert paddle.zeros([2]).tolist() == [0.0, 0.0]


# -- errors inside callbacks ----------------------------------------------------------------------------------------------------


class Wanted(Exception):
    pass


def fails(*args):
    raise Wanted


class FailingForward(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx, x):
        raise Wanted

    @staticmethod
    def backward(ctx, grad):
        return grad


class FailingBackward(Identity):
    @staticmethod
    def backward(ctx, grad):
        raise Wanted


def failing_pack(x):
    with paddle.autograd.saved_tensors_hooks(fails, lambda packed: packed):
        return x * x


def failing_unpack(x):
    with paddle.autograd.saved_tensors_hooks(lambda t: t, fails):
        return x * x


def hooked(x):
    y = x * 2
    y.register_hook(fails)
    return y


@pytest.mark.parametrize("make", [FailingForward.apply, FailingBackward.apply, failing_pack, failing_unpack, hooked])
def test_an_error_in_a_callback_arrives_and_leaves_everything_usable(make):
    x = leaf([3.0])
    for _ in range(3):
        with pytest.raises(Wanted):
            make(x).sum().backward()
        assert paddle.is_grad_enabled()
        x.clear_gradient(False)
        (x * x).backward()
        assert x.grad.tolist() == [6.0]


def test_backward_inside_a_hook_of_the_same_graph():
    x = leaf([3.0])
    y = x * x
    z = y * 2

    calls = []

    def hook(grad):
        calls.append(grad.item())
        if len(calls) == 1:
            y.backward(retain_graph=True)

    y.register_hook(hook)
    z.backward()
    assert x.grad.tolist() == [18.0]
    assert calls == [2.0, 1.0]


# -- interrupts, forks, exit ----------------------------------------------------------------------------------------------------

INTERRUPTED = """
import _thread, threading, time
import sampan as paddle
x = paddle.rand([1500, 1500])
x.stop_gradient = False
paddle.matmul(x, x).sum().backward()
caught = 0
for _ in range(3):
    threading.Timer(0.2, _thread.interrupt_main).start()
    try:
        while True:
            paddle.sort(paddle.exp(paddle.matmul(x, x)), axis=0).sum().backward()
    except KeyboardInterrupt:
        caught += 1
x.clear_gradient(False)
(x * 2).sum().backward()
print(caught, x.grad[0, 0].item())
"""


def test_an_interrupt_during_kernels_and_backward_is_a_keyboard_interrupt():
    done = run_python("-c", INTERRUPTED)
    assert done.stdout.split() == ["3", "2.0"], done.stderr


WORKERS = """
import threading, time, sys
import sampan as paddle
def work():
    y, z = paddle.rand([500, 500]), paddle.rand([3000])
    w = paddle.rand([200, 200])
    w.stop_gradient = False
    k = 0
    while True:
        k += 1
        paddle.matmul(y, y); paddle.exp(y); paddle.sort(y.flatten()); paddle.unique(z); y.clone(); y.numpy().copy()
        paddle.rand([k % 50 + 1]) + 1
        w.register_hook(lambda g: g * 2).remove()
        paddle.matmul(w, w).sum().backward()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(SECONDS)
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.5])
@pytest.mark.parametrize(
    "how",
    [
        "",
        "sys.exit(0)",
        "import atexit; atexit.register(lambda: paddle.matmul(paddle.ones([300, 300]), paddle.ones([300, 300])))",
    ],
)
def test_a_process_ends_in_order_while_its_threads_compute(seconds, how):
    done = run_python("-c", WORKERS.replace("SECONDS", str(seconds)) + how, timeout_s=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_uncaught_error_ends_a_process_with_threads_in_order():
    done = run_python("-c", WORKERS.replace("SECONDS", "0.5") + "raise ValueError('wanted')", timeout_s=120)
    assert done.returncode == 1
    assert "ValueError: wanted" in done.stderr
    assert "FATAL" not in done.stderr
    assert "terminate" not in done.stderr


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_forked_while_threads_compute_compute_too():
    stop = threading.Event()
    y = paddle.rand([300, 300])

    def work():
        while not stop.is_set():
            paddle.matmul(y, y)
            paddle.sort(y, axis=0)
            paddle.rand([100]).sum()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        statuses = []
        for _ in range(10):
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(60)
                status = 1
                try:
                    x = leaf(np.ones([40, 40]))
                    paddle.matmul(x, x).sum().backward()
                    status = 0 if x.grad[0, 0].item() == 80.0 else 2
                finally:
                    os._exit(status)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert statuses == [0] * 10


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_fork_gives_way_to_a_thread_that_takes_one_lock_inside_another(is_reversed):
    inner, outer = sorted([new_lock(), new_lock()], key=id, reverse=is_reversed)
    stop, was_refused = threading.Event(), threading.Event()

    def work():
        while not stop.is_set():
            with outer:
                if not inner.acquire(timeout=5):
                    return was_refused.set()
                inner.release()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(50):
            pid = os.fork()
            if pid == 0:
                is_free = inner.acquire(blocking=False) and outer.acquire(blocking=False)
                os._exit(0 if is_free else 1)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    assert not was_refused.is_set()


# -- one tensor, many threads ---------------------------------------------------------------------------------------------------

READERS = {
    "masked_select": lambda x, i: paddle.masked_select(x, x > 0),
    "mask": lambda x, i: x[i % 2 == 0],
    "nonzero": lambda x, i: paddle.nonzero(i),
    "gather": lambda x, i: paddle.gather(x, i),
    "take_along_axis": lambda x, i: paddle.take_along_axis(x, i, 0),
    "index": lambda x, i: x[i],
    "scatter": lambda x, i: paddle.scatter(x, i, x),
    "bincount": lambda x, i: paddle.bincount(i),
    "bincount with weights": lambda x, i: paddle.bincount(i, x),
    "sort": lambda x, i: paddle.sort(x),
    "topk": lambda x, i: paddle.topk(x, 100),
    "unique": lambda x, i: paddle.unique(i.reshape([-1, 2]), axis=0),
    "searchsorted": lambda x, i: paddle.searchsorted(x, x),
    "cumsum": lambda x, i: paddle.cumsum(x),
    "embedding": lambda x, i: paddle.nn.functional.embedding(i, x.reshape([-1, 1])),
    "one_hot": lambda x, i: paddle.nn.functional.one_hot(i % 8, 8),
    "median": lambda x, i: paddle.median(x),
    "tolist": lambda x, i: x.tolist(),
    "numpy": lambda x, i: x.numpy().sum(),
    "repeat_interleave": lambda x, i: paddle.repeat_interleave(x[:100], i[:100] % 3),
}


@pytest.mark.parametrize("name", READERS)
def test_reading_a_tensor_that_another_thread_writes_is_safe(name):
    n = 20_000
    x, i = paddle.zeros([n]), paddle.zeros([n], dtype="int64")
    stop = threading.Event()
    wild = np.random.default_rng(0).integers(-(2**62), 2**62, n)
    wanted = np.random.default_rng(1).integers(0, n, n)

    def write():
        while not stop.is_set():
            for indices in (wanted, wild, wanted * 0):
                i.set_value(indices)
                x.set_value((indices % 7 - 3).astype("float32"))

    # Both sides without Python's lock: a NumPy view is written while kernels read.
    def write_directly():
        view, xs = i.numpy_view(), x.numpy_view()
        while not stop.is_set():
            np.copyto(view, wanted)
            np.copyto(view, wild)
            np.copyto(xs, (wild % 7 - 3).astype("float32"))

    threads = [threading.Thread(target=write), threading.Thread(target=write_directly)]
    for t in threads:
        t.start()
    end = time.monotonic() + 0.5
    try:
        while time.monotonic() < end:
            try:
                READERS[name](x, i)
            except (IndexError, ValueError, RuntimeError):
                pass  # wild indices were seen, or values that change
    finally:
        stop.set()
        for t in threads:
            t.join()


def test_tensors_that_change_memory_while_other_threads_use_them():
    x = paddle.rand([400, 400])
    stop = threading.Event()
    errors = []

    def use():
        while not stop.is_set():
            try:
                paddle.matmul(x, x)
                paddle.exp(x).sum()
                x.clone()
            except (ValueError, RuntimeError, TypeError):
                pass
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(3)]
    for t in threads:
        t.start()
    end = time.monotonic() + 1.0
    try:
        while time.monotonic() < end:
            x.set_(paddle.rand([400, 400]))
            x.resize_([200, 800])
            x.cast_("float64")
            x.cast_("float32")
            x.set_(paddle.rand([30, 30]))
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not errors


def test_backward_of_one_graph_from_several_threads_at_once():
    w = leaf(np.ones([100, 100]))
    y = paddle.matmul(w, w).sum()
    problems = []

    def work():
        try:
            y.backward(retain_graph=True)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not problems
    assert w.grad[0, 0].item() == 6 * 200.0
