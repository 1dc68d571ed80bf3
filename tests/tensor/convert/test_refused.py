"""What cannot be recorded is refused with the user's line, and says how to change it."""

from __future__ import annotations

import linecache
import re

import pytest
from processes import run_python

import sampan as paddle
from sampan.base.errors import ConversionError
from sampan.tensor.convert import convert

from .checks import recorded

X = paddle.to_tensor([1.0, 2.0])
N = paddle.to_tensor(3)
_written = 0


def undefined(x):
    if x.sum() > 0:
        y = x
    return y


def differing_types(x):
    if x.sum() > 0:
        y = x
    else:
        y = "s"
    return y


def differing_dtypes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.astype("int64")
    return y


def differing_ranks(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum()
    return y


def tensor_or_text(x):
    m = "none"
    if x.sum() > 0:
        m = x
    return m


def returns_differ(x):
    if x.sum() > 0:
        return x, x
    return x


def writes_a_global(x):
    global _written
    if x.sum() > 0:
        _written = 1
    return x


def first_set_in_a_loop(n):
    for i in range(n):
        y = i
    if n > 5:
        return y
    return n


def generator(x):
    if x.sum() > 0:
        yield x


def runs_a_generator(x):
    return list(generator(x))


def symbolic_index(n):
    names = ["a", "b", "c"]
    for i in range(n):
        print(names[i])


def comprehension(n):
    return {i: i * 2 for i in range(n)}


def conditional_comprehension(x):
    return {k: v for k, v in enumerate(x) if v > 0}


def reads_elements(x):
    return x * X.numpy().sum()


def int_or_float(x):
    k = 1 if x.sum() > 0 else 0.5
    return k


def assert_in_try(x):
    try:
        assert x.sum() > 0
    except AssertionError:
        pass
    return x


def raise_in_try(x):
    try:
        if x.sum() > 0:
            raise ValueError("no")
    except ValueError:
        x = -x
    return x


def mixed_ands(x):
    return x.sum() > 0 and x


def reads_what_a_view_wrote(x):
    y = x * 2
    first = y[:1]
    first.add_(x[:1])
    return y


def reads_a_reshape_of_what_was_written(x):
    y = x * 2
    v = y.reshape([2, 1])
    y.add_(x)
    return v * 1


def writes_a_view_of_an_argument(x):
    x[:1].add_(x[1:])
    return x


SHARING = [
    (reads_what_a_view_wrote, "read after"),
    (reads_a_reshape_of_what_was_written, "read after"),
    (writes_a_view_of_an_argument, "is a view of"),
]


@pytest.mark.parametrize("case", SHARING, ids=lambda c: c[0].__name__)
def test_shared_memory_that_a_program_does_not_have_is_refused(case):
    with pytest.raises(NotImplementedError, match=case[1]):
        recorded(case[0], X)


def test_in_place_forms_keep_shape_and_dtype():
    for function in (lambda x: x.equal_(x), lambda x: x[:1].clone().add_(x)):
        for run in (function, lambda x: recorded(function, x)):  # noqa: B023
            with pytest.raises((TypeError, ValueError), match="an in-place operator cannot change"):
                run(X)


REFUSED = [
    (undefined, X, "'y' is not set", "set 'y' before"), (differing_types, X, "'y' differs", "same type"), (differing_dtypes, X, "'y' differs", "astype"),
    (differing_ranks, X, r"shape is \[2\].*\[\]", "axes"), (tensor_or_text, X, "'m' differs.*'none'", "same type"),
    (returns_differ, X, "tuple", "same type"), (writes_a_global, X, "_written", "return"),
    (first_set_in_a_loop, N, "'y' is first set inside", "before the loop"), (runs_a_generator, X, "generator", "function of its own"),
    (symbolic_index, N, "only a run knows", "Python numbers"), (comprehension, N, "length", "for"),
    (conditional_comprehension, X, "comprehension", "function"), (reads_elements, X, r"numpy\(\)", "not_to_static"),
    (int_or_float, X, "int 1.*float 0.5", "Python type"), (assert_in_try, X, "inside `try`", "out of"), (raise_in_try, X, "ValueError: no", "assert"),
    (mixed_ands, X, "sides of `and`", "."),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda c: c[0].__name__)
def test_what_cannot_be_recorded_is_refused(case):
    function, argument, what, fix = case
    with pytest.raises(ConversionError, match=re.compile(what, re.DOTALL)) as caught:
        recorded(function, argument)
    text = str(caught.value)
    assert re.search(fix, text)
    line = int(re.search(r"at test_refused\.py:(\d+), in", text).group(1))
    body = generator if function is runs_a_generator else function
    first = body.__code__.co_firstlineno
    assert first < line < first + 12
    assert _written == 0


def test_a_refused_function_leaves_objects_as_they_were():
    seen = []

    def changes(x):
        seen.append(1)
        if x.sum() > 0:
            y = x
        return y

    with pytest.raises(ConversionError):
        recorded(changes, X)
    assert seen == []


def test_a_function_without_source_is_refused_by_name():
    space = {}
    exec("def made(x):\n    return x\n", space)
    with pytest.raises(ConversionError, match=r"made cannot be converted.*cannot be read"):
        convert(space["made"])


def test_a_function_made_by_exec_is_not_taken_for_the_text_of_python_c(monkeypatch):
    """Python 3.13 keeps that text under the name that exec gives too: the same line, name and parameters are another function."""
    kept = "def made(x):\n    return x + 1\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(kept), None, kept.splitlines(keepends=True), "<string>"))
    space = {}
    exec("def made(x):\n    return x * 3 if x.sum() > 0 else x\n", space)
    with pytest.raises(ConversionError, match=r"made cannot be converted.*cannot be read"):
        convert(space["made"])
    exec(compile(kept, "<string>", "exec", dont_inherit=True), space)
    assert convert(space["made"])(4) == 5
    monkeypatch.setitem(linecache.cache, "<string>", (4, None, ["def \n"], "<string>"))
    exec("def other(x):\n    return x\n", space)
    with pytest.raises(ConversionError, match=r"other cannot be converted.*cannot be read"):
        convert(space["other"])


def test_a_function_without_source_is_recorded_as_far_as_it_is_plain():
    space = {}
    exec("def made(x):\n    return x * 2\ndef branching(x):\n    return 1 if x.sum() > 0 else 2\n", space)
    assert recorded(space["made"], X).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="truth value"):
        recorded(space["branching"], X)


def test_exceptions_of_plain_code_are_the_users_own():
    def broken(x):
        if x.ndim == 1:
            raise KeyError("plain")
        return x

    with pytest.raises(KeyError, match="plain"):
        recorded(broken, X)


_SEVERAL = """
import sampan as paddle
from sampan.tensor.convert import convert
k = 5
uses = {"more": lambda v: v + k if v > 0 else v, "less": lambda v: v - k if v > 0 else v, "size": lambda v: [v, k] if v else []}
def outer(k):
    return (lambda v: v * k if v > 0 else v), (lambda v: v / k if v > 0 else v), (lambda v: (lambda: v * 2 if v else k)())
print([convert(f)(4) for f in (*uses.values(), *outer(8))])
"""


@pytest.mark.parametrize("options", [[], ["-X", "no_debug_ranges"]])
def test_functions_on_one_line_are_told_apart_with_and_without_columns(options, tmp_path):
    """Python 3.10 keeps no columns, and later ones none with -X no_debug_ranges."""
    (tmp_path / "several.py").write_text(_SEVERAL)
    done = run_python(*options, str(tmp_path / "several.py"))
    assert done.stdout == "[9, -1, [4, 5], 32, 0.5, 8]\n", done.stderr
