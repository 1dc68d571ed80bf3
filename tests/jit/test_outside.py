"""What reaches past the program in converted functions happens in every call, once, and in its order, as in eager mode."""

from __future__ import annotations

import collections
import datetime
import io
import itertools
import logging
import os
import pathlib
import queue
import time

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ConversionError
from sampan.jit import to_static

X = paddle.to_tensor([1.0, 2.0])
OUT = io.StringIO()
QUEUE: queue.Queue[int] = queue.Queue()
LOG = logging.getLogger("test_outside")
COUNTER: collections.Counter[str] = collections.Counter()


def writes(x):
    OUT.write("a")
    return x * 2


def puts(x):
    QUEUE.put(1)
    return x * QUEUE.qsize()


def logs(x):
    LOG.warning("called")
    return x + 1


def counts(x):
    COUNTER.update("a")
    return x * COUNTER["a"]


def writes_and_reads_elements(x):
    OUT.write("a")
    return x * float(x.numpy().sum())


def in_a_branch(x):
    if x.sum() > 0:
        OUT.write("b")
        x = x + 1
    return x


def in_a_called_function(x):
    return writes(x) + 1


def state():
    return OUT.getvalue(), QUEUE.qsize(), dict(COUNTER)


@pytest.fixture(autouse=True)
def clear():
    """Nothing was written, queued or counted yet."""

    def now():
        OUT.seek(0)
        OUT.truncate()
        while not QUEUE.empty():
            QUEUE.get()
        COUNTER.clear()

    now()
    return now


ACTING = [writes, puts, logs, counts, writes_and_reads_elements, in_a_branch, in_a_called_function]
each = pytest.mark.parametrize("function", ACTING, ids=[f.__name__ for f in ACTING])


@each
def test_acts_happen_once_in_every_call(function, caplog, clear):
    wanted = [function(X).numpy() for _ in range(3)]
    after, said = state(), list(caplog.messages)
    clear()
    caplog.clear()
    converted = to_static(function)
    found = [converted(X).numpy() for _ in range(3)]
    np.testing.assert_array_equal(found, wanted)
    assert state() == after
    assert caplog.messages == said


@pytest.mark.parametrize("function", [writes, puts, logs, in_a_branch, in_a_called_function], ids=lambda f: f.__name__)
def test_one_graph_refuses_the_act_before_it_happens_and_names_its_line(function, caplog):
    before = state()
    with pytest.raises(ConversionError, match=r"reaches past the program(.|\n)*at test_outside\.py:\d+, in \w+"):
        to_static(function, full_graph=True)(X)
    assert state() == before
    assert not caplog.messages


REFUSED = {
    "time.time": lambda x: x * (time.time() > 0),
    "time.sleep": lambda x: x * (time.sleep(0) is None),
    "perf_counter": lambda x: x * (time.perf_counter() > 0),
    "datetime.now": lambda x: x * datetime.datetime.now().year,
    "date.today": lambda x: x * datetime.date.today().year,
    "open": lambda x: x * (open(__file__) is not None),
    "Path.read_text": lambda x: x * len(pathlib.Path(__file__).read_text()),
    "Path.exists": lambda x: x * pathlib.Path(__file__).exists(),
    "os.path.exists": lambda x: x * os.path.exists(__file__),
    "os.getpid": lambda x: x * os.getpid(),
    "environ.get": lambda x: x * len(os.environ.get("HOME", "")),
    "np.load": lambda x: x * np.load("nothing.npy"),
    "tofile": lambda x: x * (np.zeros(2).tofile("nothing") is None),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_clocks_files_and_processes_are_refused(name):
    with pytest.raises(ConversionError, match="reaches past the program"):
        to_static(REFUSED[name], full_graph=True)(X)


def test_what_only_looks_like_it_is_converted():
    def plain(x):
        path = pathlib.Path("a") / "b"
        text = io.StringIO()
        text.write(os.path.join("a", "b"))
        day = datetime.date(2020, 1, 2)
        return x * len(path.parts) + len(text.getvalue()) + day.year

    converted = to_static(plain, full_graph=True)
    np.testing.assert_array_equal(converted(X).numpy(), plain(X).numpy())


ITEMS = itertools.count(1)
TENSORS = iter([paddle.full([1], k + 1.0) for k in range(100)])


def next_item(x):
    return x * next(ITEMS)


def next_tensor(x):
    return x * next(TENSORS)


def for_over_an_iterator(x):
    for k in ITEMS:
        return x * k


def nested_reader(x):
    return x * sum(next(ITEMS) for _ in range(2))


@pytest.mark.parametrize("function", [next_item, next_tensor, for_over_an_iterator, nested_reader], ids=lambda f: f.__name__)
def test_iterators_of_outside_move_on_in_every_call(function):
    with pytest.raises(ConversionError, match="holds an iterator"):
        to_static(function, full_graph=True)(X)
    converted = to_static(function)
    found = [float(converted(X)[0]) for _ in range(3)]
    steps = np.diff(found)
    assert steps[0] > 0
    assert steps[0] == steps[1]  # no item was lost in between


def test_an_iterator_of_an_enclosing_function_moves_on():
    given = iter(range(10))

    @to_static
    def converted(x):
        return x * next(given)

    assert [float(converted(X)[0]) for _ in range(3)] == [0, 1, 2]


def test_iterators_made_inside_are_converted():
    def own(x):
        pairs = iter([1.0, 2.0])

        def more():
            return next(pairs)

        first = more()
        return x * first + more() + next(iter(range(5, 9)))

    np.testing.assert_array_equal(to_static(own, full_graph=True)(X).numpy(), own(X).numpy())


def swallows(x):
    try:
        found = x.numpy()
    except Exception:
        return x * 3
    return x * 4 + float(found[0])


def swallows_types(x):
    try:
        return x * [1, 2, 3][x[0].astype("int64")]
    except (TypeError, ValueError):
        return x * 3


def swallows_refusals(x):
    try:
        OUT.write("a")
    except Exception:
        return x * 3
    return x * 4


@pytest.mark.parametrize("function", [swallows, swallows_types, swallows_refusals], ids=lambda f: f.__name__)
def test_handlers_do_not_see_what_recording_cannot_do(function):
    wanted = function(X).numpy()
    np.testing.assert_array_equal(to_static(function)(X).numpy(), wanted)
    if function is not swallows_types:
        with pytest.raises((ConversionError, TypeError), match=r"numpy|elements|reaches past"):
            to_static(function, full_graph=True)(X)


def test_handlers_see_the_users_own_errors():
    def own(x, k):
        try:
            y = x * [1, 2][k]
        except IndexError:
            y = x * 9
        try:
            raise KeyError("a")
        except (KeyError, TypeError) as error:
            return y + len(error.args)

    converted = to_static(own, full_graph=True)
    for k in (0, 5):
        np.testing.assert_array_equal(converted(X, k).numpy(), own(X, k).numpy())
