"""Flags that calls depend on take effect on the next call, cached or not."""

from __future__ import annotations

import pytest

import sampan as paddle
from sampan import _rt


@pytest.fixture
def flag():
    """Sets a flag for one test."""
    before = {}

    def put(name, value):
        before.setdefault(name, paddle.get_flags(name)[name])
        paddle.set_flags({name: value})

    yield put
    paddle.set_flags(before)


def test_a_cached_call_is_compiled_again_under_another_flag_of_the_key(flag):
    x = paddle.ones([2, 5])
    paddle.nn.functional.gelu(x)
    calls = paddle.nn.functional.gelu.cached_calls
    flag("FLAGS_interpret", True)
    paddle.nn.functional.gelu(x)
    assert paddle.nn.functional.gelu.cached_calls == calls + 1
    flag("FLAGS_interpret", False)
    paddle.nn.functional.gelu(x)
    assert paddle.nn.functional.gelu.cached_calls == calls + 1


def test_the_limit_of_signatures_bounds_every_operator(flag):
    flag("FLAGS_signature_cache_limit", 3)
    for size in range(1, 9):
        paddle.ones([size]).logit(0.25)
    assert paddle.logit.cached_calls <= 3


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="at least one call"):
        paddle.set_flags({"FLAGS_signature_cache_limit": 0})
    paddle.set_flags({"FLAGS_signature_cache_limit": 4096})


def test_zero_threads_mean_the_default(flag):
    default = _rt.num_threads()
    flag("FLAGS_num_threads", 3)
    assert _rt.num_threads() == 3
    flag("FLAGS_num_threads", 0)
    assert _rt.num_threads() == default
