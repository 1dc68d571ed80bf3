"""Operators, comparisons, conversion and indexing of Tensor."""

from __future__ import annotations

import numpy as np
import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import X, Y, array, recording_op, tensor

from sampan import _rt


@pytest.fixture(autouse=True)
def operators():
    registered = {
        "__add__": ops.add.op,
        "__mul__": ops.multiply.op,
        "__iadd__": None,
        "__eq__": None,
        "__ne__": None,
        "__radd__": None,
    }
    before = {name: _rt.set_operator(name, op) for name, op in registered.items()}
    handlers = _rt.set_index_handlers(None, None)
    yield
    for name, op in before.items():
        _rt.set_operator(name, op)
    _rt.set_index_handlers(*handlers)


class TestOperators:
    def test_forward_and_reflected(self):
        x = tensor([1.0, 2.0])
        assert (x + tensor([10.0, 20.0])).tolist() == [11.0, 22.0]
        assert (x + 1).tolist() == [2.0, 3.0]
        assert (1.5 + x).tolist() == [2.5, 3.5]
        assert (x * np.array([2.0, 3.0], "float32")).tolist() == [2.0, 6.0]

    def test_a_reflected_op_takes_the_tensor_first(self):
        op, _ = recording_op([X, Y])
        _rt.set_operator("__radd__", op)
        x = tensor([1.0])
        assert 2 + x == (x, 2)

    @pytest.mark.parametrize("other", ["text", [1, 2], None, {}, object()])
    def test_foreign_types_are_left_to_python(self, other):
        x = tensor([1.0])
        assert x.__add__(other) is NotImplemented
        with pytest.raises(TypeError, match="unsupported operand"):
            x + other

    def test_a_foreign_type_may_take_over(self):
        class Other:
            def __radd__(self, x):
                return "mine"

        assert tensor([1.0]) + Other() == "mine"

    def test_in_place_falls_back_to_the_plain_operator(self):
        x = y = tensor([1.0])
        y += 1
        assert y is not x
        assert (x.tolist(), y.tolist()) == ([1.0], [2.0])

    def test_in_place_keeps_the_object(self):
        _rt.set_operator("__iadd__", ops.add_.op)
        x = y = tensor([1.0, 2.0])
        y += tensor([1.0, 1.0])
        assert y is x
        assert x.tolist() == [2.0, 3.0]

    def test_comparison_without_an_op_is_identity(self):
        x = tensor([1.0])
        assert x == x
        assert x != tensor([1.0])

    def test_comparison_with_an_op_is_elementwise_but_not_for_foreign_types(self):
        lay = [ops.layout([2])]
        plan = ops.host_plan([*lay, *lay], [ops.layout([2], "bool")], lambda x, y: (x == y,))
        _rt.set_operator("__eq__", _rt.Op("equal", [X, Y], lambda op, args: _rt.Entry(plan, None, [], [], None)))
        x = tensor([1.0, 2.0])
        assert (x == tensor([1.0, 3.0])).tolist() == [True, False]
        assert (x == None) is False  # noqa: E711
        assert (x == "a") is False
        assert len({x, x, tensor([1.0])}) == 2

    def test_hash_is_by_identity(self):
        x = tensor([1.0])
        assert {x: 1}[x] == 1

    @pytest.mark.parametrize(("value", "expected"), [([0.0], False), ([2.0], True), (0, False), ([[3]], True)])
    def test_truth_of_one_element(self, value, expected):
        assert bool(tensor(value)) is expected

    @pytest.mark.parametrize("value", [[], [1.0, 2.0]])
    def test_truth_of_several_elements_is_an_error(self, value):
        with pytest.raises(ValueError, match="truth"):
            bool(tensor(value))

    def test_conversions(self):
        assert (float(tensor([2.5])), int(tensor([2.5])), [1, 2, 3][tensor(1, dtype="int64")]) == (2.5, 2, 2)
        with pytest.raises(TypeError, match="cannot be an index"):
            [1, 2][tensor(1.0)]
        with pytest.raises((TypeError, ValueError), match="one element"):
            float(tensor([1.0, 2.0]))

    def test_length_and_iteration(self):
        x = tensor([[1.0, 2.0], [3.0, 4.0]])
        assert len(x) == 2
        assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
        with pytest.raises(TypeError, match="0-D"):
            len(tensor(1.0))
        with pytest.raises(TypeError, match="0-D"):
            list(tensor(1.0))

    def test_an_unknown_operator_is_an_error(self):
        with pytest.raises(ValueError, match="no operator '__nope__'"):
            _rt.set_operator("__nope__", None)


class TestIndexing:
    def reference(self):
        return np.arange(24, dtype="float32").reshape(4, 3, 2)

    @pytest.mark.parametrize(
        "index",
        [0, -1, 3, slice(None), slice(1, 3), slice(None, None, 2), slice(5, 9), slice(-2, None), slice(3, 1), slice(0, 4, 2**40)],
    )
    def test_simple_indices_are_views(self, index):
        a = self.reference()
        x = tensor(a)
        got = x[index]
        assert np.array_equal(array(got), a[index])
        assert _rt.shares_storage(got, x)

    @pytest.mark.parametrize("index", [4, -5, 2**70])
    def test_an_index_outside_is_an_error(self, index):
        with pytest.raises(IndexError, match="outside axis 0"):
            tensor(self.reference())[index]

    def test_the_rest_goes_to_the_handler(self):
        _rt.set_index_handlers(lambda x, i: ("get", i), lambda x, i, v: seen.append((i, v)))
        seen = []
        x = tensor(self.reference())
        for index in ((0, 1), True, None, slice(None, None, -1), "a", [0]):
            assert x[index] == ("get", index)
        x[0, 1] = 2.0
        x[0] = "value"
        assert seen == [((0, 1), 2.0), (0, "value")]

    def test_a_tensor_that_wants_a_gradient_goes_to_the_handler(self):
        _rt.set_index_handlers(lambda x, i: ("get", i), None)
        x = tensor(self.reference(), grad=True)
        assert x[0] == ("get", 0)
        was = _rt.set_grad_enabled(False)
        assert array(x[0]).shape == (3, 2)
        _rt.set_grad_enabled(was)

    @pytest.mark.parametrize("value", [2, 2.5, True])
    def test_simple_writes(self, value):
        a = self.reference()
        x = tensor(a)
        before = x.inplace_version
        x[1] = value
        x[2:] = tensor(np.full((2, 3, 2), 7.0))
        a[1], a[2:] = value, 7.0
        assert np.array_equal(array(x), a)
        assert x.inplace_version == before + 2

    def test_a_float_into_integers_goes_to_the_handler(self):
        seen = []
        _rt.set_index_handlers(None, lambda x, i, v: seen.append(v))
        tensor([1, 2], dtype="int64")[0] = 2.5
        assert seen == [2.5]

    def test_elements_cannot_be_deleted(self):
        with pytest.raises(TypeError, match="cannot be deleted"):
            del tensor([1.0])[0]

    def test_overlapping_copies(self):
        x = tensor([1.0, 2.0, 3.0, 4.0])
        x[1:] = x[:-1]
        assert x.tolist() == [1.0, 1.0, 2.0, 3.0]
