"""Lists that change their length in loops and branches of recorded functions: what they hold is known when the Program runs."""

from __future__ import annotations

import os
import tempfile

import pytest

import sampan as paddle
from sampan.base.errors import ConversionError, IndexRangeError

from .checks import check, recorded, unknown_sizes

UP, DOWN = paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([-1.0, -2.0])
ROWS = paddle.to_tensor([[1.0, 2.0], [-3.0, 1.0], [4.0, 5.0], [0.5, -0.25]])
N = paddle.to_tensor(4)


@unknown_sizes
def stacked(x):
    out = []
    for row in x:
        out.append(row * 2)
    return paddle.stack(out), paddle.stack(out, axis=1), paddle.concat(out)


def counted(n):
    out = []
    for i in range(n):
        out.append(i)
    return out, len(out)


@unknown_sizes
def some_rows(x):
    out = []
    for row in x:
        if row.sum() > 0:
            out.append(row)
    total = x.sum() * 0
    for row in out:
        total = total + row.sum()
    return out, len(out), total


def in_one_branch(x):
    out = []
    if x.sum() > 0:
        out.append(x)
    out.append(x * 2)
    return out


def structures(x):
    out = [{"x": x, "n": (0, 1.5)}]
    while x.sum() < 50:
        x = x * 2
        out.append({"x": x, "n": (len(out), 0.5)})
    return out, out[-1]["n"]


@unknown_sizes
def in_a_dict(x):
    d = {"items": []}
    found = x[0]
    for i, row in enumerate(x):
        if i > 1:
            found = d["items"][-2]
        d["items"].append(row)
    return found


def one_list_under_two_names(x):
    out = [x]
    alias = out
    held = {"a": out}
    while x.sum() < 50:
        x = x * 2
        alias.append(x)
        out[0] = x
    out.append(x)
    return held["a"], alias


def another_list_in_the_loop(x):
    out = [x]
    alias = out
    i = 0
    while x.sum() < 50:
        x = x * 2
        out = out + [x]  # noqa: RUF005
        i += 1
        alias.append(i * x)
    return len(out), out, alias, i


def rounds_of_their_own(x):
    while x.sum() < 50:
        inner = []
        table = {}
        inner.append(x)
        table["x"] = x
        pairs = {k: v for k, v in table.items()}  # noqa: C416
        pairs["y"] = inner[0]
        x = x + inner[0] + pairs["y"]
    return x


def stack_of_work(n):
    todo = [n]
    count = 0
    while todo:
        v = todo.pop()
        count += 1
        if v > 0:
            todo.append(v - 1)
            if v > 2:
                todo.extend([v - 3, v - 4])
    return count


def set_and_popped(n):
    out = [i for i in range(3)]  # noqa: C416
    k = 0
    while n > 0:
        n = n - 1
        out.append(k)
        k += 1
    last = out.pop()
    out[0] = 7
    out[-1] = 9
    return out, last, out[k], len(out)


def cleared(x):
    out = [x]
    while x.sum() < 50:
        if x.sum() > 20:
            out.clear()
        x = x * 2
        out.append(x)
    return out


def nested_loops(n):
    out = []
    for i in range(n):
        inner = []
        for j in range(i):
            inner.append(j)
        out.append(len(inner))
    return out


def early_exit(n):
    out = []
    for i in range(n):
        if i > 2:
            break
        out.append(i)
    return out


@unknown_sizes
def recurrent(x):
    h = x[0] * 0
    states = []
    for row in x:
        h = paddle.tanh(row + h)
        states.append(h)
    return paddle.stack(states)


def like_a_list(x):
    s = [1, 2]
    t = s.copy()
    t += [x]
    return (
        type(s) is list,
        isinstance(s, list),
        s * 2,
        s + t[:1],
        s[1:],
        s == [1, 2],
        sorted(s),
        [*s, x],
        t,
        list(s),
        2 in s,
        s.index(2),
        s or 0,
    )


def slices(n):
    out = []
    for i in range(n):
        out.append(i * 10)
    return out[1:], out[:-1], out[-2:], out[::-1], out[::2], out[1:n], out[n:], out[:], out[3:1], out[-100:100]


def slices_by_numbers(n):
    known = [i * 1.5 for i in range(5)]
    return known[n - 1 :], known[n - 2], known[: n // 2], known[-n], [][n:]


@unknown_sizes
def slices_joined(x):
    out = [x[0]]
    for row in x:
        out.append(row * 2)
    return paddle.stack(out[1:]), paddle.concat(out[:-1] + [x[-1]] + out[::-1])  # noqa: RUF005


def taken_out(n):
    out = []
    for i in range(n + 2):
        out.append(i * i)
    first, last, third = out.pop(0), out.pop(), out.pop(n - 3)
    del out[0]
    held = out[:]
    del held[1:]
    return first, last, third, out, held


def put_in(n):
    out = []
    for i in range(n):
        out.insert(0, i)
        out.insert(i // 2, -i)
    out.insert(-1, 100)
    out.reverse()
    return out, len(out)


def put_behind(n):
    some, others = [1], []
    for i in range(n):
        some.append(i)
        others.insert(0, i + 10)
    both = some + others
    some.extend(others)
    some += [5, 6]
    return both, some, [7, 8] + others + [9], others.copy() + []  # noqa: RUF005


@unknown_sizes
def sums(x):
    out = [x[0]]
    for i, row in enumerate(x):
        if row.sum() > -1:
            out.append(row * i)
    return sum(out), sum(out, x[0]), paddle.add_n(out), sum(out[:1], 0), sum(x), sum(row.sum() for row in x)


def sums_of_numbers(n):
    out, halves = [], []
    for i in range(n):
        out.append(i)
        halves.append(i / 2)
    return sum(out), sum(out, 0.5), sum(halves, 1.0), sum([i for i in out if i > 1]), sum(i * i for i in out)


@unknown_sizes
def kept(x):
    rows = [row * 2 for row in x if row.sum() > 0]
    numbers = [i for i, row in enumerate(x) if row[0] < row[1] if i != 2]
    pairs = [(i, a) for i, (a, b) in enumerate(zip(x, x * 2)) if a.sum() < b.sum()]
    return rows, numbers, pairs, [r + k for r in rows for k in range(2)], list(x), [len(rows)] * 2


@unknown_sizes
def made_of_lists(x):
    rows = []
    for row in x:
        rows.append(row)
    doubled = [row * 2 for row in rows]
    total = x[0] * 0
    for a, b in zip(rows, reversed(doubled)):
        total = total + a * b
    return doubled, total, [f(1) for f in [lambda k, j=j: k + j for j in range(3)]]


def numbers_of_tensors(x):
    big = x.max().item()
    places = [int(v) for v in x.abs().tolist()]
    total = 0
    for v in x.tolist():
        total += v
    return x * big, places, total, x[places[0] - 1], x.item(1), x.astype("bool").tolist()


CASES = [
    (slices, N), (slices, N * 0), (slices, N // 4), (slices_by_numbers, N), (slices_by_numbers, N - 1), (slices_joined, ROWS), (slices_joined, ROWS[:1]),
    (taken_out, N), (taken_out, N - 1), (put_in, N), (put_behind, N), (put_behind, N * 0), (sums, ROWS), (sums, ROWS[3:]), (sums_of_numbers, N),
    (kept, ROWS), (kept, -ROWS), (made_of_lists, ROWS), (numbers_of_tensors, UP), (numbers_of_tensors, DOWN),
    (stacked, ROWS), (stacked, ROWS[:1]), (counted, N), (counted, N * 0), (some_rows, ROWS), (some_rows, -ROWS[:1]), (in_one_branch, UP),
    (in_one_branch, DOWN), (structures, UP), (structures, UP * 50), (in_a_dict, ROWS), (in_a_dict, ROWS[:1]), (one_list_under_two_names, UP),
    (another_list_in_the_loop, UP), (rounds_of_their_own, UP), (stack_of_work, N), (set_and_popped, N), (set_and_popped, N * 0), (cleared, UP),
    (nested_loops, N), (early_exit, N), (early_exit, N * 5), (recurrent, ROWS), (like_a_list, UP),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_a_program_gives_the_list_that_eager_mode_gives(case):
    check(*case)


def test_what_is_returned_is_a_plain_list():
    found = recorded(like_a_list, UP)
    assert {type(v) for v in found[2:5]} == {list}
    assert type(recorded(counted, N)[0]) is list


def test_an_item_that_is_not_there_is_an_error_of_the_run():
    def third(n):
        out = []
        for i in range(n):
            out.append(i)
        return out[2]

    assert recorded(third, N) == 2
    with pytest.raises(IndexError):
        third(N * 0)
    with pytest.raises(IndexRangeError):
        recorded(third, N * 0)


def test_a_sum_of_nothing_is_an_error_of_the_run_where_eager_mode_gives_a_number():
    def total(x, n):
        out = []
        for i in range(n):
            out.append(x * i)
        return sum(out)

    assert recorded(total, UP, N).tolist() == total(UP, N).tolist()
    assert total(UP, N * 0) == 0
    with pytest.raises(IndexRangeError, match="empty in this run"):
        recorded(total, UP, N * 0)


def test_an_index_error_of_a_branch_is_raised_when_the_run_comes_there():
    def first(x, items=()):
        held = list(items)
        if x.sum() > 0:
            held = [held[0]]
        return x

    assert recorded(first, DOWN).tolist() == first(DOWN).tolist()
    with pytest.raises(IndexError):
        recorded(first, UP)


def mixed(n):
    out = []
    for i in range(n):
        out.append(i)
        out.append((i, i))
    return out


def texts(n):
    out = []
    for _ in range(n):
        out.append("a")
    return out


def sorted_items(n):
    out = []
    for i in range(n):
        out.append(-i)
    out.sort()
    return out


def sliced_assignment(n):
    out = []
    for i in range(n):
        out.append(i)
    out[:2] = [7]
    return out


def sum_of_pairs(n):
    out = []
    for i in range(n):
        out.append((i, i))
    return sum(out)


def lengthened_outside(x, items):
    for row in x:
        if row.sum() > 0:
            items.append(row)
    return x


@pytest.mark.parametrize(
    "case",
    [(mixed, N, "structure"), (texts, N, "tensors and numbers only"), (sorted_items, N, "sort"), (sliced_assignment, N, "assignment to a slice"),
     (sum_of_pairs, N, "sum.. of containers")],
    ids=lambda c: c[0].__name__,
)  # fmt: skip
def test_what_needs_the_whole_list_is_refused_with_the_users_line(case):
    function, argument, what = case
    with pytest.raises(ConversionError, match=what) as caught:
        recorded(function, argument)
    assert f"in {function.__name__}" in str(caught.value)


def test_a_list_of_the_caller_that_would_grow_is_refused_or_runs_eagerly():
    with pytest.raises(ConversionError):
        paddle.jit.to_static(lengthened_outside, full_graph=True)(ROWS, [])
    items = []
    paddle.jit.to_static(lengthened_outside)(ROWS, items)
    assert len(items) == 3


def test_lists_of_unknown_length_are_saved_and_loaded():
    path = os.path.join(tempfile.mkdtemp(), "net")

    class Net(paddle.nn.Layer):
        def forward(self, x):
            out = []
            for row in x:
                if row.sum() > 0:
                    out.append((row, len(out)))
            return out

    paddle.jit.save(Net(), path, input_spec=[paddle.static.InputSpec([None, 2], "float32", "x")])
    loaded = paddle.jit.load(path)
    for rows in (ROWS, ROWS[:1]):
        wanted, found = Net()(rows), loaded(rows)
        assert [(v.tolist(), n) for v, n in found] == [(v.tolist(), n) for v, n in wanted]


def _grown(x):
    out = []
    while x.sum() < 10:
        out.append(x)
        x = x * 2
    return out


def _sets(x):
    out = _grown(x)
    out[2] = x
    return out


def _sets_last(x):
    out = _grown(x)
    out[-1] = x
    return out


def _deletes(x):
    out = _grown(x)
    del out[-1]
    return out


def _pops(x):
    out = _grown(x)
    out.pop(1)
    return len(out)


def _deletes_in_a_branch(x):
    out = _grown(x)
    if x.sum() > -1:
        del out[1]
    return out


@pytest.mark.parametrize("function", [_sets, _sets_last, _deletes, _pops, _deletes_in_a_branch])
def test_an_item_that_is_written_or_taken_out_must_be_there(function):
    """Nothing depends on what was there before, so that the look at it went with the dead code."""
    static = paddle.jit.to_static(function, full_graph=True)
    for start in ([1.0, 0.0], [4.0, 4.0], [20.0, 0.0]):
        results = []
        for run in (function, static):
            try:
                found = run(paddle.to_tensor(start))
                results.append([v.tolist() for v in found] if isinstance(found, list) else found)
            except IndexError:
                results.append(IndexError)
        assert results[0] == results[1]
    assert results[1] is IndexError


def test_divmod_of_numbers_that_only_a_run_knows():
    def function(x):
        n = int(x.sum())
        return divmod(n, 3), divmod(10, n)

    static = paddle.jit.to_static(function, full_graph=True)
    for start in ([5.0, 2.0], [-5.0, 1.0]):
        assert static(paddle.to_tensor(start)) == function(paddle.to_tensor(start))
