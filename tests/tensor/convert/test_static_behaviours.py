"""Behaviours that other frameworks' static modes got wrong: recorded functions and built Programs do what eager mode does, for the whole kind of each."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import UnsupportedError
from sampan.ops.define import OPERATORS

from .checks import check, fresh, plain, recorded, unknown_sizes

INPLACE = sorted(n for n in dir(paddle.Tensor) if n.endswith("_") and not n.startswith("_") and n[:-1] in OPERATORS)
#: They draw numbers, or give the tensor other memory on purpose.
OF_ANOTHER_KIND = {
    "normal_",
    "uniform_",
    "exponential_",
    "bernoulli_",
    "cauchy_",
    "geometric_",
    "log_normal_",
    "random_",
    "resize_",
}


def attempt(function, *args):
    """What a call gives and leaves behind; None where it is refused."""
    try:
        result = function(*args)
    except (TypeError, ValueError, NotImplementedError, AttributeError, OverflowError, RuntimeError):
        return None
    return plain([result, *(a for a in args if isinstance(a, paddle.Tensor))])


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "float16"])
@pytest.mark.parametrize("name", [n for n in INPLACE if n not in OF_ANOTHER_KIND])
def test_in_place_methods_are_accepted_and_write_as_in_eager_mode(name, dtype):
    """UP035, UP116: a change of dtype or shape is refused in both, and anything else is seen by the tensor itself."""

    def run(*args):
        getattr(args[0], name)(*args[1:])
        return args[0] * 1

    values = np.array([[1, 2, 0], [0, 1, 1]])
    x = paddle.to_tensor(values.astype(dtype))
    y = paddle.to_tensor(np.array([[2, 1, 1], [1, 0, 2]]).astype("float32"))
    for others in ((), (x,), (y,), (y.astype("int64"),), (paddle.to_tensor([True, False, True]),), (2,), (0.5,), (y[:1],)):
        wanted = attempt(run, fresh(x), *others)
        assert attempt(lambda *args: recorded(run, *args), fresh(x), *others) == wanted, others


LOOPS = [
    lambda x, i: (x + i, i + 1),
    lambda x, i: (x * i, i + 1),
    lambda x, i: (x * x + i * i, i + x / x),
    lambda x, i: (i, i + 1),
    lambda x, i: (x + 1, i + x * 0 + 1),
    lambda x, i: (paddle.sin(x) * i, i * 1.5),
]


@pytest.mark.parametrize("step", LOOPS)
@pytest.mark.parametrize("start", [0.5, 1.0, 3.5])
def test_the_gradient_of_a_loop_counts_every_way_through_what_it_carries(step, start):
    """UP110, as a while_loop of a Program and as a converted loop."""

    def unrolled(x, i):
        while float(i) < 3:
            x, i = step(x, i)
        return (x + i * 0).sum()

    def converted(x, i):
        while i < 3:
            x, i = step(x, i)
        return (x + i * 0).sum()

    def leaves():
        return paddle.to_tensor(1.25, stop_gradient=False), paddle.to_tensor(start, stop_gradient=False)

    x, i = leaves()
    loss = unrolled(x, i)
    wanted = [loss.item(), *(0.0 if g is None else g.item() for g in paddle.grad(loss, [x, i], allow_unused=True))]
    x, i = leaves()
    loss = paddle.jit.to_static(converted, full_graph=True)(x, i)
    np.testing.assert_allclose(
        [loss.item(), *(0.0 if g is None else g.item() for g in paddle.grad(loss, [x, i], allow_unused=True))], wanted, rtol=1e-6
    )
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x, i = (paddle.static.data(n, [], "float32") for n in "xi")
            x.stop_gradient = i.stop_gradient = False
            last, count = paddle.static.nn.while_loop(lambda x, i: i < 3, lambda x, i: list(step(x, i)), [x, i])
            loss = last + count * 0
            found = [loss, *paddle.static.gradients(loss, [x, i])]
        feed = {"x": np.array(1.25, "float32"), "i": np.array(start, "float32")}
        results = paddle.static.Executor().run(main, feed=feed, fetch_list=found)
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(results, wanted, rtol=1e-6)


@pytest.mark.parametrize("number", [2, 2.5, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("runs", [True, False])
def test_a_loop_may_rebind_a_tensor_to_a_number(number, dtype, runs):
    """UP112: where the tensor's dtype holds the number; elsewhere it is refused, never cut."""
    if (dtype == "bool") != (number is True) or (dtype == "int64" and number == 2.5):
        return

    def loop(y, x):
        while y:
            x = number
            y = y & False
        return x

    x = paddle.to_tensor(1, dtype=dtype)
    found = recorded(loop, paddle.to_tensor(runs), x)
    assert found.dtype == x.dtype
    assert found.item() == (number if runs else 1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("index", [-1, -2, -3, 0, 1])
def test_lists_in_containers_are_appended_to_and_indexed_in_loops(index, known):
    """UP114, for rows whose number is known and unknown."""

    def rows(x):
        held = {"of": ([],)}
        found = x[0]
        for i, row in enumerate(x):
            if i > 2:
                found = held["of"][0][index]
            held["of"][0].append(row)
        return found

    check(rows if known else unknown_sizes(rows), paddle.arange(10))


VIEWS = {
    "transpose": lambda x: paddle.transpose(x, [1, 0]), "T": lambda x: x.T, "unsqueeze": lambda x: x.unsqueeze(0), "slice": lambda x: x[:, 1:],
    "row": lambda x: x[1], "split": lambda x: paddle.split(x, 2, axis=1)[0], "squeeze": lambda x: x.unsqueeze(1).squeeze(1),
    "diagonal": lambda x: paddle.diagonal(x), "strided": lambda x: x[::2, ::-1], "of a view": lambda x: x.T[1:].T,
}  # fmt: skip
READS = {
    "nonzero": paddle.nonzero, "unique": paddle.unique, "masked_select": lambda v: paddle.masked_select(v, v > 0), "sum": paddle.sum,
    "cast": lambda v: v.astype("float32") * 2, "boolean": lambda v: v[v > 0],
}  # fmt: skip
WRITES = {
    "a row": lambda x: x.__setitem__((0, slice(None)), 0), "all": lambda x: x.fill_(3), "a mask": lambda x: x.__setitem__(x > 2, 1),
    "in place": lambda x: x.add_(x),
}  # fmt: skip


@pytest.mark.parametrize("case", [*itertools.product(VIEWS, READS, WRITES)], ids=" ".join)
def test_views_see_what_is_written_into_their_tensor(case):
    """UP118: what depends on the elements too; where a Program cannot know, it refuses."""
    view, read, write = VIEWS[case[0]], READS[case[1]], WRITES[case[2]]

    def function(x):
        seen = view(x)
        write(x)
        return read(seen)

    x = paddle.to_tensor([[1, 2, 0, 3], [0, 5, 1, 2], [2, 2, 4, 0]])
    wanted = function(x.clone())
    try:
        found = recorded(function, x.clone())
    except UnsupportedError:
        found = None
    if case[0] not in ("split", "squeeze") or found is not None:  # others share memory for sure
        assert plain(found) == plain(wanted)


DYNAMIC = {
    "unique": paddle.unique, "nonzero": paddle.nonzero, "masked_select": lambda x: paddle.masked_select(x, x > 1), "mask": lambda x: x[x > 1],
    "unique_consecutive": paddle.unique_consecutive, "repeat_interleave": lambda x: paddle.repeat_interleave(x, x),
    "where": lambda x: paddle.where(x > 2)[0], "counts": lambda x: paddle.unique(x, return_counts=True)[1], "bincount": paddle.bincount,
}  # fmt: skip
USES = {
    "cast": lambda v: v.astype("float32") + 0.5, "sum": lambda v: v.sum(), "index": lambda v: v[0], "reshape": lambda v: v.reshape([-1]),
    "concat": lambda v: paddle.concat([v, v]), "size": lambda v: paddle.ones([v.shape[0], 2]), "write": lambda v: v.add_(v),
}  # fmt: skip


@pytest.mark.parametrize("case", [*itertools.product(DYNAMIC, USES)], ids=" ".join)
def test_results_of_sizes_that_data_decides_are_used_like_others(case):
    """UP120."""
    make, use = DYNAMIC[case[0]], USES[case[1]]
    check(lambda x: use(make(x)), paddle.to_tensor([3, 1, 3, 2, 1, 4, 4, 4]))


@pytest.mark.parametrize("dtype", ["float32", "int64", "float64", None])
def test_tensors_are_made_of_tensors_and_numbers(dtype):
    """UP122."""

    def made(a):
        b = paddle.to_tensor([2.1], dtype="int64")
        nested = paddle.to_tensor([[a[0], 1], [b[0], 2]], dtype=dtype)
        return (
            paddle.to_tensor([a, b, [1]], dtype=dtype),
            nested,
            paddle.to_tensor([a * 2, [3.0]], dtype="float32"),
            paddle.to_tensor((a[0], 2)),
        )

    check(made, paddle.to_tensor([1]))


SHAPED = {
    "broadcast_to": lambda x, sizes: x.sum().broadcast_to(sizes), "expand": lambda x, sizes: x.sum().expand(sizes), "zeros": lambda x, sizes: paddle.zeros(sizes),
    "full": lambda x, sizes: paddle.full(sizes, 2.5), "reshape": lambda x, sizes: x.sum().expand(sizes).reshape([sizes[0] * sizes[1] * 2]).reshape(sizes),
    "ones": lambda x, sizes: paddle.ones(shape=sizes), "tile": lambda x, sizes: x.tile(sizes[1:]), "eye": lambda x, sizes: paddle.eye(sizes[0], sizes[1]),
    "arange": lambda x, sizes: paddle.arange(sizes[0]) + sizes[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPED)
def test_sizes_computed_from_shapes_follow_each_run(name):
    """UP123, by sizes from paddle.shape and from .shape."""

    @unknown_sizes
    def by_tensor(x):
        sizes = paddle.shape(x)
        return SHAPED[name](x, [sizes[0] * sizes[1], sizes[1], 2])

    @unknown_sizes
    def by_attribute(x):
        return SHAPED[name](x, [x.shape[0] * x.shape[1], x.shape[1], 2])

    for function in (by_tensor, by_attribute):
        for sizes in ([2, 3], [4, 1]):
            check(function, paddle.rand(sizes))
