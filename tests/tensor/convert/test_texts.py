# ruff: noqa: UP031
"""Texts made of tensors inside recorded functions: what eager mode makes, or a refusal; never the text of a Variable."""

from __future__ import annotations

import string

import pytest

import sampan as paddle
from sampan.base.errors import ConversionError

from .checks import check, recorded, unknown_sizes

X = paddle.to_tensor([1.5, 2.0])


def percent(x):
    return (
        "%s and %.2f, %d%%, %r" % (x, x[0], 3, x.sum()),
        "%(k)s %(n)05.1f" % {"k": x, "n": x[1]},
        "%d rows" % len(x),
        "%s" % [x, 1],
    )


def format_method(x):
    return "{} {:.2f} {k!r:>90}".format(x, x[0], k=x), "{0} {1} {0!r}".format(x, "{}")  # noqa: UP032


def builtins(x):
    return str(x), repr(x), ascii(x), format(x[0], ".1f"), str([x, {"a": x[0]}]), str(x[0]), str(3), repr("a")


def f_strings(x):
    width = 9
    return f"{x!r:>{width}} {x[0]:.3f} {[x, 1]} {x[0]} {x=}", f"{x.shape} {x.shape[0]} {len(x)} {x.dtype}", f"{3:>{width}}{'a'!r}"


def joined(x):
    text = ", ".join([str(v) for v in x])
    text += "!" + f"{x.sum()}"
    return text, "a" + text, {"k": text}, (text + "b",)


def plain_remainders(x):
    return 7 % 4, x % 1, 7.5 % x, "a%sb" % 3, "%%" % ()


def in_a_loop(x):
    n = 0
    while x.sum() < 50:
        x = x * 2
        n += 1
        print(f"round {n}: {x}")
    return n, f"{n} {n:03d} {x.sum():.1f} {n / 2}"


@pytest.mark.parametrize("function", [percent, format_method, builtins, f_strings, joined, plain_remainders, in_a_loop])
@pytest.mark.parametrize("known", [True, False])
def test_texts_are_those_of_eager_mode(function, known, capsys):
    if function is joined and not known:
        return  # a comprehension over rows needs their number
    check(function if known else unknown_sizes(lambda x: function(x)), X)
    printed = capsys.readouterr().out
    assert printed == printed[: len(printed) // 2] * 2


def test_an_exception_that_is_always_raised_is_raised_by_the_run():
    def fails(x):
        raise KeyError(f"bad {x.sum():.1f}")

    with pytest.raises(KeyError, match=r"bad 3\.5"):
        recorded(fails, X)


def used_as_a_key(x):
    return {f"{x}": 1}


def measured(x):
    return len(str(x))


def compared(x):
    return 1 if f"{x.sum()}" == "3.5" else 2


def split(x):
    return str(x).split(",")


def searched(x):
    return "5" in str(x)


def of_one_branch(x):
    text = "none"
    if x.sum() > 0:
        text = f"{x}"
    return text


def kept(x):
    LAYER.note = f"{x}"
    return x


class LAYER:
    note = ""


@pytest.mark.parametrize("function", [used_as_a_key, measured, compared, split, searched, of_one_branch])
def test_what_looks_into_such_a_text_is_refused_with_the_users_line(function):
    with pytest.raises(ConversionError, match=r"text.* tensor") as caught:
        recorded(function, X)
    assert f"in {function.__name__}" in str(caught.value)


def test_such_a_text_is_not_kept_by_objects():
    with pytest.raises(ConversionError, match=r"LAYER\.note"):
        paddle.jit.to_static(kept, full_graph=True)(X)
    assert LAYER.note == ""


def test_library_code_does_not_get_the_text_of_a_variable():
    template = string.Template("x is $x")

    def fills(x):
        return template.substitute(x=x), x

    with pytest.raises(TypeError, match="made into text"):
        paddle.jit.to_static(fills, full_graph=True)(X)
    assert paddle.jit.to_static(fills)(X)[0] == f"x is {X}"


def test_a_dtype_is_that_of_a_tensor():
    def chosen(x):
        return {paddle.float32: 1, paddle.int64: 2}[x.dtype], x.dtype is paddle.float32, str(x.dtype), x.astype(x.dtype)

    check(chosen, X)
