"""Functions recorded as Programs give what they give eagerly, with gradients."""

from __future__ import annotations

import collections

import numpy as np
import pytest

import sampan as paddle
from sampan.base import nest

from .checks import check, plain, recorded, unknown_sizes


def tensor(*values, dtype="float32"):
    return paddle.to_tensor(values[0] if len(values) == 1 else list(values), dtype=dtype)


UP, DOWN = tensor(1.0, 2.0), tensor(-1.0, -2.0)
ROWS = tensor([[1.0, 2.0], [-3.0, 1.0], [4.0, 5.0]])


def both_assign(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def elif_chain(x):
    if x.sum() > 10:
        y = x * 10
    elif x.sum() > 0:
        y = x + 1
        if x.max() > 1.5:
            y = y * x
    else:
        y = -x
    return y


def early_return(x):
    if x.sum() > 0:
        return x * 2
    y = x + 1
    if y.sum() < -1:
        return y * 3
    return y


def while_with_counter(x, n):
    i = 0
    s = x
    while i < n:
        s = s + i * x
        i += 1
        if s.sum() > 20:
            break
    return s, i


def while_true(x):
    n = 0
    while True:
        x = x * 2
        n += 1
        if x.sum() > 50:
            break
    return x, n


def rows_with_continue_and_return(x):
    out = 0
    for row in x:
        if row.sum() < 0:
            continue
        if row.sum() > 8.5:
            return row * 100, out
        out = out + row.sum()
    return row, out


def range_of_a_tensor(n):
    t = 0.5
    for i in range(n):
        t = t * 2 + i
    else:
        t += 1
    return t, (n > 2 and 3 < n < 9), int(n) / 2, range(1, n, 2) is not None


def negative_steps(n):
    s = 0
    for i in range(n, -3, -2):
        s = s * 3 + i
    return s


def nested_loops(n):
    s = 0
    for i in range(n):
        for j in range(i):
            if j == 2:
                continue
            s = s + i * j
    return s


def booleans(x):
    return (x.sum() > 0 and x.max() < 3) or x.min() > -1, not x.sum() > 0, 0 < x.max() < 5


def indexed_layers(x):
    factors = [1.0, 2.0, 3.0]
    for i in range(3):
        x = x + factors[i]
        if x.sum() > 6:
            break
    return x


def loop_else(x):
    for i in range(3):
        if x[0] > i + 5:
            break
    else:
        x = -x
    return x, i


def list_appended(x):
    out = []
    for i, v in enumerate(x):
        if i > 1:
            r = out[-2]
        out.append(v)
    return r, out


def list_appended_on_both_sides(x):
    d = {"a": []}
    for v in x:
        if v.sum() > 0:
            d["a"].append(v)
        else:
            d["a"].append(-v)
    return d["a"]


class Holder:
    pass


def attributes(x):
    c = Holder()
    c.n = 0
    if x.sum() > 0:
        c.n = x * 2
    else:
        c.n = x * 3
    return c.n


def writes_in_place(x):
    y = x * 1
    if x.sum() > 0:
        y.add_(x)
    else:
        y[0] = 7.0
    return y


def writes_in_a_loop(x, n):
    y = x * 0
    for i in range(n):
        y[i] = x[i] * i
        y.add_(x)
    return y


def inner_functions(x):
    def h(v):
        if v.sum() > 0:
            return v * 2
        return v * 3

    return h(x) + h(-x), (lambda q: q if q.sum() > 0 else -q)(x)


def closure(x):
    t = x[0] * 0

    def add(v):
        nonlocal t
        t = t + v

    for row in x:
        if row.sum() > 2:
            add(row)
    return t


def numbers(x):
    k = 1 if x.sum() > 0 else 2
    return x * k, k, k / 2, k**2, -k, k % 2, k // 2, k > 1, abs(-k), 3 - k


def number_keeps_dtype(x):
    k = 0.5 if x.sum() > 0 else 0.25
    return x * k, k * 2


def with_statement(x):
    with paddle.no_grad():
        if x.sum() > 0:
            return x * 2
        y = x - 1
    return y


def try_finally(x):
    try:
        if x.sum() > 0:
            return x * 5
    finally:
        x = x + 1
    return x


def python_functions(x):
    return max(x[0], x[1]), min(x[0], 3.0), any([x[0] > 0, x[1] > 5]), all(v > 0 for v in x), abs(x[0]), sum(x)


def is_instance(x):
    return x * 2 if isinstance(x, paddle.Tensor) and not isinstance(x, (int, float)) else 0


def plain_loop(x):
    i = 0
    while i < 5:
        i += 1
        if x[i % 2] > i:
            continue
        x = x + i
    return x, i


def zipped(x, y):
    o = 0
    for a, b in zip(x, y):
        o = o + a * b
    for k, (a, b) in enumerate(zip(x, reversed(y))):
        o = o + k * a * b
    return o


def casts(x):
    n, f, b = int(x.sum()), float(x[0]), bool(x[1])
    s = 0
    for i in range(n):
        s += i
    return n, f, b, s, round(f), len(x)


def number_in_place_of_a_tensor(y, x):
    while y:
        x = 2
    return x


def state_in_containers(x, n):
    state = (x, [x * 0, {"k": x}])
    i = 0
    while i < n:
        h, (c, d) = state
        state = (h + c, [c + d["k"], {"k": h}])
        i = i + 1
    return state


def recursive(x, depth=3):
    if depth == 0 or x.sum() > 100:
        return x
    return recursive(x * 3, depth - 1)


def match_statement(x, k=2):
    match k:
        case 1:
            return x
        case 2 if x.ndim == 1:
            if x.sum() > 0:
                return x * 2
        case _:
            pass
    return x * 5


def generator(x):
    def items():
        for i in range(3):
            yield i * x

    return sum(items())


def starred(x, *others, scale=2, **more):
    a, *rest = x
    if a > 0:
        a = a * scale + len(others) + len(more)
    return a, rest


def conditional_expression_is_lazy(x):
    return x / x.sum() if x.sum() != 0 else x


def unbinds(x):
    y = x * 2
    z = y + 1
    del y
    if z.sum() > 0:
        y = z
    else:
        y = -z
    return y


def newton(x):
    guess = x / 2
    for _ in range(40):
        following = (guess + x / guess) / 2
        if (following - guess).abs().max() < 1e-6:
            break
        guess = following
    return guess


def view_of_what_is_written(x):
    x = x * 1
    v = x.transpose([1, 0])
    first = v[0]
    x[0] = 5.0
    return v, v.sum(), first


def write_in_a_branch_is_seen_by_a_view(x):
    y = x * 1
    v = y.unsqueeze(0)
    if y.sum() > 0:
        y.add_(paddle.ones([]))
    return v * 1, y


def only_the_written_view_is_read(x):
    h = (x * 2).flatten()
    h = paddle.nn.functional.relu_(h)
    return h


def parts_are_copies(x):
    parts = (x * 1).split(2, axis=0)
    return parts[1] * 2


def tensors_of_tensors(x):
    n = paddle.to_tensor([x.sum(), 2.0])
    return n, paddle.to_tensor([[x[0], 1], [2, x[1]]], dtype="float64"), paddle.to_tensor(x)


CASES = [
    (both_assign, UP), (both_assign, DOWN), (elif_chain, UP), (elif_chain, DOWN), (elif_chain, UP * 10), (elif_chain, UP / 2),
    (early_return, UP), (early_return, DOWN), (early_return, DOWN / 4), (while_with_counter, UP, tensor(3, dtype="int64")),
    (while_with_counter, UP, tensor(0, dtype="int64")), (while_with_counter, UP * 5, tensor(10, dtype="int64")), (while_true, UP),
    (rows_with_continue_and_return, ROWS), (rows_with_continue_and_return, ROWS / 2), (range_of_a_tensor, tensor(3, dtype="int64")),
    (range_of_a_tensor, tensor(0, dtype="int32")), (negative_steps, tensor(6, dtype="int64")), (nested_loops, tensor(5, dtype="int64")),
    (booleans, UP), (booleans, DOWN), (indexed_layers, UP), (indexed_layers, UP * 10), (loop_else, UP), (loop_else, UP * 6), (list_appended, ROWS),
    (list_appended_on_both_sides, ROWS), (attributes, UP), (attributes, DOWN), (writes_in_place, UP), (writes_in_place, DOWN),
    (writes_in_a_loop, tensor(1.0, 2.0, 3.0), tensor(3, dtype="int64")), (inner_functions, UP), (closure, ROWS), (numbers, UP), (numbers, DOWN),
    (number_keeps_dtype, UP), (number_keeps_dtype, UP.astype("float16")), (number_keeps_dtype, UP.astype("int32")), (with_statement, UP),
    (with_statement, DOWN), (try_finally, UP), (try_finally, DOWN), (python_functions, UP), (python_functions, DOWN), (is_instance, UP),
    (plain_loop, UP), (zipped, UP, UP + 1), (casts, tensor(2.5, 3.0)), (number_in_place_of_a_tensor, tensor(False, dtype="bool"), tensor(1.0)),
    (state_in_containers, UP, tensor(4, dtype="int64")), (recursive, UP), (recursive, UP * 5), (match_statement, UP), (match_statement, DOWN),
    (generator, UP), (starred, UP), (starred, DOWN), (conditional_expression_is_lazy, UP), (conditional_expression_is_lazy, UP * 0),
    (unbinds, UP), (unbinds, DOWN), (view_of_what_is_written, ROWS[:2]), (write_in_a_branch_is_seen_by_a_view, UP), (write_in_a_branch_is_seen_by_a_view, DOWN),
    (only_the_written_view_is_read, ROWS), (parts_are_copies, ROWS[:2]), (tensors_of_tensors, UP), (newton, tensor(2.0, 9.0)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_a_program_gives_what_eager_mode_gives(case):
    check(*case)


@unknown_sizes
def over_rows(x):
    total = x[0] * 0
    for row in x:
        if row.sum() < 0:
            continue
        total = total + row
    return total, x.shape[0], len(x), x.shape[0] * 2 + 1


@unknown_sizes
def by_shape(x):
    n = x.shape[0]
    if n > 3:
        return x[:3].sum() * n
    return x.sum() + n


@unknown_sizes
def enumerated(x):
    out = x.sum() * 0
    for k, row in enumerate(x):
        out = out + row.sum() * k
    for a, b in zip(x, x):
        out = out + (a * b).sum()
    return out


@pytest.mark.parametrize("function", [over_rows, by_shape, enumerated])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_sizes_may_be_unknown(function, count):
    x = tensor(np.arange(2.0 * count).reshape(count, 2) - 3)
    assert plain(recorded(function, x)) == plain(function(x))


def checked(x):
    if (x < 0).any():
        raise ValueError(f"negative: {x.min():.2f} at {[k + 1 for k in range(2)]}")
    assert x.sum() < 10, f"sum {x.sum().astype('int64')!s}"
    return x.sqrt()


def test_exceptions_are_raised_when_the_program_runs():
    check(checked, UP)
    for value in (DOWN, UP * 4):
        with pytest.raises((ValueError, AssertionError)) as eager:
            checked(value)
        with pytest.raises((ValueError, AssertionError)) as static:
            recorded(checked, value)
        lines = [
            str(error.value).partition("\nassert")[0].split() for error in (static, eager)
        ]  # pytest adds to the text of assert
        assert type(static.value) is type(eager.value)
        assert lines[0] == lines[1]


def test_print_prints_at_every_run(capsys):
    def told(x):
        print("x is", x, f"{x.sum():.2f}|{x.shape}", [x[0], 1], sep=";", end="!\n")
        for i in range(int(x[0])):
            print(i, str(i))
        return x

    told(UP)
    wanted = capsys.readouterr().out
    recorded(told, UP)
    assert capsys.readouterr().out == wanted


def test_random_numbers_are_eager_modes():
    def noisy(x):
        x = x + paddle.rand([2])
        if x.sum() > 0:
            x = x * 2
        return x + paddle.nn.functional.dropout(x, 0.5)

    paddle.seed(3)
    wanted = noisy(UP)
    paddle.seed(3)
    assert plain(recorded(noisy, UP)) == plain(wanted)


def drawn_in_a_branch(x):
    if x.sum() > 0:
        x = x + paddle.rand([2])
    return x * paddle.rand([2])


def drawn_in_a_loop(x):
    n = 0
    while x.sum() < 20:
        x = x + paddle.nn.functional.dropout(x, 0.5)
        if x.max() > 8:
            x = x + paddle.normal(shape=[2]).abs()
        n += 1
    return x, n, paddle.rand([2])


def drawn_for_nothing(x):
    paddle.rand([3])
    if x.sum() > 0:
        paddle.randn([2])
    return paddle.rand([2])


@pytest.mark.parametrize("function", [drawn_in_a_branch, drawn_in_a_loop, drawn_for_nothing])
@pytest.mark.parametrize("x", [UP, DOWN + 4, DOWN])
def test_branches_and_loops_draw_the_random_numbers_of_eager_mode(function, x):
    if function is drawn_in_a_loop and x is DOWN:
        return  # it would not end
    static = paddle.jit.to_static(function, full_graph=True)
    found = []
    for run in (function, static, static):
        given = x.detach()
        given.stop_gradient = False
        paddle.seed(11)
        results = [run(given), run(given)]
        sum(r.sum() for r in nest.flatten(results) if isinstance(r, paddle.Tensor)).backward()
        found.append([plain(results), plain(given.grad), paddle.rand([1]).item()])
    assert found[0] == found[1] == found[2]


def test_containers_of_the_same_type_come_back():
    Point = collections.namedtuple("Point", "x y")

    def make(x):
        p = Point(x, 1) if x.sum() > 0 else Point(-x, 1)
        return p, {"k": [p.x]}, (x,), None, "text"

    result = recorded(make, UP)
    assert isinstance(result[0], Point)
    assert plain(result) == plain(make(UP))
