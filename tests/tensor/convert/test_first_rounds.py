"""Variables that only the rounds of a recorded loop set, and numbers that a tensor becomes."""

from __future__ import annotations

from collections import defaultdict

import pytest

import sampan as paddle
from sampan.base.errors import ConversionError

from .checks import check, recorded

ROWS = paddle.to_tensor([[1.0, 2.0], [-3.0, 1.0], [4.0, 5.0]])
N = paddle.to_tensor(3)


def last_of_while(x, n):
    i = 0
    while i < n:
        last = x[i] * 2
        k = i
        i += 1
    y = last + 1
    return y, k


def containers(x, n):
    for i in range(n):
        pair = [x[i], i]
        table = {"row": x[i] * 3, "fixed": "text"}
    return pair, i, table


def left_early(x, n):
    for i in range(n):
        row = x[i]
        if row.sum() < 0:
            break
    return row * 2


def list_of_a_round(x, n):
    for i in range(n):
        rows = []
        for j in range(i):
            rows.append(x[j])
    return rows


def plain_values(x, n):
    for _ in range(n):
        flag, factor = True, 3
    return x * factor, flag


def read_by_a_condition(x, n):
    for i in range(n):
        best = x[i].max()
    if best > 4:
        return x + best
    return x - best


def row_by_row(x, n):
    total = x[0] * 0
    for i in range(n):
        for row in x[:i]:
            total = total + row
    for row in x:
        total = total + [row * 2 for row in (row, row)][1]
    return total


@pytest.mark.parametrize("count", [3, 1])
@pytest.mark.parametrize(
    "function",
    [last_of_while, containers, left_early, list_of_a_round, plain_values, read_by_a_condition, row_by_row],
    ids=lambda f: f.__name__,
)
def test_what_the_rounds_set_is_there_after_them(function, count):
    check(function, ROWS, paddle.to_tensor(count))


@pytest.mark.parametrize("function", [last_of_while, containers, left_early, read_by_a_condition], ids=lambda f: f.__name__)
def test_without_a_round_the_run_raises_what_eager_mode_raises(function):
    with pytest.raises(UnboundLocalError) as eager:
        function(ROWS, N * 0)
    with pytest.raises(UnboundLocalError) as static:
        recorded(function, ROWS, N * 0)
    assert str(static.value) == str(eager.value)


def read_on_one_path(x, n):
    for i in range(n):
        row = x[i]
    if n > 0:
        return row
    return x[0]


def read_by_the_next_round(x, n):
    i = 0
    while i < n:
        if i > 0:
            x = x + before  # noqa: F821
        before = x[i]
        i += 1
    return before


def read_by_another_function(x, n):
    def told():
        return row

    for i in range(n):
        row = x[i]
    row = row * 2
    return told()


@pytest.mark.parametrize(
    "function", [read_on_one_path, read_by_the_next_round, read_by_another_function], ids=lambda f: f.__name__
)
def test_what_may_be_read_or_not_is_refused(function):
    with pytest.raises(ConversionError, match="is first set inside the loop") as caught:
        recorded(function, ROWS, N)
    assert f"in {function.__name__}" in str(caught.value)
    assert [v.tolist() for v in paddle.jit.to_static(function)(ROWS, N)] == [v.tolist() for v in function(ROWS, N)]


def factor(x, n):
    return x * float(x.sum()) + x.max().item()


def factor_of_rounds(x, n):
    total = 0.0
    for i in range(n):
        total = total + float(x[i].sum())
        x = x * total
    return x * total


def factor_of_a_branch(x, n):
    scale = float(x.max()) if x.sum() > 0 else 2.0
    return x * scale


@pytest.mark.parametrize("function", [factor, factor_of_rounds, factor_of_a_branch], ids=lambda f: f.__name__)
def test_no_gradient_flows_through_python_numbers(function):
    check(function, ROWS, N)


def test_items_that_are_no_single_number_are_refused():
    for function, match in (
        (lambda x: x.item(), "single number"),
        (lambda x: x.numpy().sum(), "no elements"),
        (lambda x: paddle.zeros([100]).tolist(), "no elements"),
        (lambda x: (x * 1j).sum().item(), "no elements"),
    ):
        with pytest.raises((TypeError, ValueError), match=match):
            recorded(function, ROWS)


def grouped(x, n):
    groups = defaultdict(list)
    counts = defaultdict(int)
    for i, row in enumerate(x):
        groups[i % 2].append(row)
        counts["all"] += 1
    return groups, {k: len(v) for k, v in groups.items()}, counts["all"], paddle.stack(groups[0])


def test_dicts_that_make_their_values():
    check(grouped, ROWS, N)
    found = paddle.jit.to_static(grouped, full_graph=True)(ROWS, N)[0]
    assert isinstance(found, defaultdict)
    assert type(found[0]) is list


def _ended_by_break(x, n):
    for i in range(n):
        if x.sum() + i > 4:
            break
    else:
        i = -1
    return x * i


def _replaced(x, n):
    for i in range(n):
        y = x + i
    else:
        y = x * 100
        z = y + 1
    return y, z


def _read_by_else(x, n):
    for i in range(n):
        if x.sum() + i > 4:
            break
    else:
        i = i + 10
    return x * i


@pytest.mark.parametrize("function", [_ended_by_break, _replaced, _read_by_else])
def test_what_else_sets_needs_no_round(function):
    static = paddle.jit.to_static(function, full_graph=True)
    for count in (3, 1, 0):
        results = []
        for run in (function, static):
            try:
                found = run(paddle.to_tensor([1.0, 2.0]), paddle.to_tensor(count))
                results.append([v.tolist() for v in (found if isinstance(found, tuple) else [found])])
            except UnboundLocalError:
                results.append(UnboundLocalError)
        assert results[0] == results[1]
    assert (results[1] is UnboundLocalError) == (function is _read_by_else)
