"""Profiles of Plans' instructions."""

import numpy as np

import sampan as paddle
from sampan import _rt


def test_instructions_are_named_after_what_they_compute():
    x = paddle.to_tensor(np.ones((3, 4), "float32"))
    paddle.nn.functional.softmax(x @ x.T)
    _rt.start_profile(True)
    paddle.nn.functional.softmax(x @ x.T)
    calls = _rt.stop_profile()
    names = [name for name, *_ in calls]
    assert {"matmul", "softmax", "native matmul"} <= set(names)
    assert any(name.startswith("kernel ") and "exp" in name for name in names)
    spans = {name: (begin, end) for name, begin, end, _ in calls}
    assert spans["matmul"][0] <= spans["native matmul"][0] <= spans["native matmul"][1] <= spans["matmul"][1]


def test_instructions_are_recorded_on_request_only():
    x = paddle.ones([3])
    _rt.start_profile()
    x.exp()
    assert [name for name, *_ in _rt.stop_profile()] == ["exp"]
    x.exp()
    assert _rt.stop_profile() == []
