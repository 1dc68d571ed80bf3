"""Objects whose methods are under ``to_static``: they end with what was recorded of them, and their copies run over their own weights."""

from __future__ import annotations

import copy
import gc
import weakref

import numpy as np
import pytest

import sampan as paddle
from sampan.jit.static_function import StaticFunction


class Doubling(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(2, 2)

    @paddle.jit.to_static
    def forward(self, x):
        return self.linear(x)

    @paddle.jit.to_static
    def other(self, x):
        return self.linear(x) * 2


class Plain:
    @paddle.jit.to_static
    def double(self, x):
        return x * 2


def test_objects_end_with_what_was_recorded_of_them():
    """Recordings hold the object, and were kept by the class."""
    held, x = [], paddle.ones([1, 2])
    for made in (Doubling(), Plain(), paddle.jit.to_static(paddle.nn.Linear(2, 2))):
        for name in ("forward", "other", "double"):
            if isinstance(getattr(made, name, None), StaticFunction):
                getattr(made, name)(x)
        held.append(weakref.ref(made))
    del made
    gc.collect()
    assert [r() for r in held] == [None] * 3


def test_parts_end_with_their_layers():
    @paddle.jit.to_static
    def runs_in_parts(layer, x):
        return layer(x), np.random.rand()

    layer = paddle.nn.Sequential(paddle.nn.Linear(2, 2), paddle.nn.ReLU())
    runs_in_parts(layer, paddle.ones([1, 2]))
    assert runs_in_parts.fallback_reason
    held = weakref.ref(layer)
    del layer
    gc.collect()
    assert held() is None


@pytest.mark.parametrize("make", [Doubling, lambda: paddle.jit.to_static(paddle.nn.Linear(2, 2))])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_run_over_their_own_weights(make, copied):
    net, x = make(), paddle.ones([1, 2])
    expected = net(x).numpy()
    twin = copied(net)
    if copied is copy.copy:
        assert np.array_equal(twin(x).numpy(), expected)
        return
    for p in twin.parameters():
        p.set_value(paddle.zeros(p.shape))
    assert not twin(x).numpy().any()
    assert np.array_equal(net(x).numpy(), expected)
    assert twin.forward.class_instance is twin


def test_methods_of_objects_without_a_dict_are_refused():
    class Slotted:
        __slots__ = ("a",)

        @paddle.jit.to_static
        def double(self, x):
            return x * 2

    with pytest.raises(TypeError, match="Slotted has __slots__"):
        Slotted().double(paddle.ones([1]))
