"""In-place operations on the tape, through views too; entries that do not fit."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import X, narrow, tensor

from sampan import _rt

add, multiply, exp, split = ops.add.op, ops.multiply.op, ops.exp.op, ops.split.op


pytestmark = pytest.mark.usefixtures("add_op")


class TestInplace:
    def test_history_is_rebased(self):
        x = tensor([1.0, 2.0], grad=True)
        y = multiply(x, 3.0)
        assert ops.add_.op(y, x) is y
        assert y.grad_fn.name() == "add__grad"
        multiply(y, 10.0).backward()
        assert x.grad.tolist() == [40.0, 40.0]

    def test_a_constant_joins_the_graph(self):
        x, y = tensor([1.0, 2.0], grad=True), tensor([5.0, 5.0])
        ops.add_.op(y, x)
        assert not y.stop_gradient
        y.backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_a_leaf_that_wants_a_gradient_is_an_error(self):
        x = tensor([1.0], grad=True)
        with pytest.raises(ValueError, match=r"add_\(\): x, a leaf tensor that wants a gradient.*cannot be changed in place"):
            ops.add_.op(x, tensor([1.0]))
        assert x.tolist() == [1.0]
        was = _rt.set_grad_enabled(False)
        ops.add_.op(x, tensor([1.0]))
        _rt.set_grad_enabled(was)
        assert x.tolist() == [2.0]
        assert x.is_leaf

    def test_a_changed_saved_value_is_an_error_that_names_it(self):
        x, w = tensor([1.0, 2.0], grad=True), tensor([3.0, 4.0])
        y = multiply(x, w)
        w[0] = 9.0
        text = r"multiply: its operand y \(float32\[2\]\) was changed in place .* at version 1, and backward needs version 0"
        with pytest.raises(RuntimeError, match=text):
            y.backward()

    def test_a_changed_saved_output_is_an_error(self):
        x = tensor([0.0, 0.0], grad=True)
        y = exp(x)
        ops.add_.op(y, tensor([1.0, 1.0]))
        with pytest.raises(RuntimeError, match="exp: its output 0"):
            y.backward()

    def test_the_error_names_the_line_of_the_call(self):
        _rt.set_record_call_sites(True)
        x, w = tensor([1.0], grad=True), tensor([3.0])
        y = multiply(x, w)
        w[0] = 9.0
        with pytest.raises(RuntimeError, match=r"recorded at .*test_inplace\.py:\d+"):
            y.backward()
        _rt.set_record_call_sites(False)
        file, line = y.grad_fn.call_site
        assert file.endswith("test_inplace.py")
        assert line > 0

    def test_writes_under_another_name_count(self):
        x, w = tensor([1.0, 2.0], grad=True), tensor([3.0, 4.0])
        y = multiply(x, w)
        w.detach()[0:1] = tensor([9.0])
        with pytest.raises(RuntimeError, match="changed in place"):
            y.backward()

    def test_overlapping_operands_are_separated(self):
        x = tensor([1.0, 2.0, 3.0, 4.0])
        ops.add_.op(x[1:], x[:-1])
        assert x.tolist() == [1.0, 3.0, 5.0, 7.0]

    def test_the_same_tensor_twice(self):
        x = tensor([1.0, 2.0])
        ops.add_.op(x, x)
        assert x.tolist() == [2.0, 4.0]

    def test_a_number_cannot_be_changed_in_place(self):
        with pytest.raises(TypeError, match="x is changed in place and must be a Tensor"):
            ops.HostOp("add_", [X, ops.Y], lambda x, y: (x + y,), inplace=((0, 0),)).op(1.0, 2.0)

    def test_no_cycle_through_a_changed_operand(self):
        gc.disable()
        try:
            a = tensor([1.0], grad=True)
            x = multiply(a, 1.0)
            y = exp(x)
            ops.add_.op(x, y)
            alive = weakref.ref(x)
            node = weakref.ref(y)
            del x, y
            assert alive() is None
            assert node() is None
            assert a.grad_fn is None
        finally:
            gc.enable()

    def test_an_in_place_op_without_gradient_cuts_the_history(self):
        lay = ops.layout([1])
        plan = ops.inplace_plan([lay], lambda x: (np.floor(x),))
        floor_ = _rt.Op("floor_", [X], lambda op, args: _rt.Entry(plan, None, [], [], None, [(0, 0)]))
        x = tensor([1.5], grad=True)
        y = multiply(x, 1.0)
        floor_(y)
        assert y.tolist() == [1.0]
        assert y.stop_gradient

    def test_retained_gradients_follow_the_tensor(self):
        x = tensor([1.0], grad=True)
        y = multiply(x, 2.0)
        y.retain_grads()
        ops.add_.op(y, tensor([1.0]))
        multiply(y, 3.0).backward()
        assert y.grad.tolist() == [3.0]

    def test_a_new_layout_over_the_same_memory(self):
        old, new = ops.layout([2, 3]), ops.layout([6])
        plan = _rt.Plan.build([old], [], [], 0, [], [(0, 0, new)])

        def make_backward(mask, layouts):
            return _rt.BackwardPlan(_rt.Plan.build([new], [], [], 0, [], [(0, 0, old)]), [0])

        flatten_ = _rt.Op("flatten_", [X], lambda op, args: _rt.Entry(plan, None, [], [0], make_backward, [(0, 0)]))
        x = tensor(np.arange(6).reshape(2, 3), grad=True)
        y = multiply(x, 1.0)
        before = y.inplace_version
        assert flatten_(y) is y
        assert list(y.shape) == [6]
        assert y.inplace_version == before
        y.backward()
        assert list(x.grad.shape) == [2, 3]


class TestInplaceOnViews:
    def test_the_write_joins_the_history_of_the_tensor_behind(self):
        x, c = tensor([1.0, 2.0, 3.0], grad=True), tensor([5.0], grad=True)
        b = multiply(x, 2.0)
        v = narrow(b, 1, 2)
        ops.add_.op(v, multiply(c, 3.0))
        assert b.tolist() == [2.0, 19.0, 6.0]
        multiply(b, tensor([1.0, 10.0, 100.0])).backward()
        assert x.grad.tolist() == [2.0, 20.0, 200.0]
        assert c.grad.tolist() == [30.0]

    def test_both_uses_add_up(self):
        x, c = tensor([1.0, 2.0], grad=True), tensor([5.0], grad=True)
        b = multiply(x, 1.0)
        v = narrow(b, 1, 2)
        ops.add_.op(v, c)
        _rt.backward([b, multiply(v, 10.0)])
        assert x.grad.tolist() == [1.0, 11.0]
        assert c.grad.tolist() == [11.0]

    def test_a_view_sees_a_later_write_to_the_tensor_behind(self):
        x, c = tensor([1.0, 2.0], grad=True), tensor([5.0, 6.0], grad=True)
        b = multiply(x, 1.0)
        v = narrow(b, 1, 2)
        ops.add_.op(b, c)
        assert v.tolist() == [8.0]
        multiply(v, 10.0).backward()
        assert x.grad.tolist() == [0.0, 10.0]
        assert c.grad.tolist() == [0.0, 10.0]

    def test_a_view_sees_a_write_through_another_view(self):
        x, c = tensor([1.0, 2.0, 3.0], grad=True), tensor([5.0, 6.0], grad=True)
        b = multiply(x, 1.0)
        v, w = narrow(b, 0, 2), narrow(narrow(b, 0, 3), 1, 3)
        ops.add_.op(v, c)
        assert w.tolist() == [8.0, 3.0]
        multiply(w, tensor([10.0, 100.0])).backward()
        assert x.grad.tolist() == [0.0, 10.0, 100.0]
        assert c.grad.tolist() == [0.0, 10.0]

    def test_a_constant_write_stops_the_gradient_there(self):
        lay = ops.layout([1])
        plan = ops.inplace_plan([lay], lambda x: (np.floor(x),))
        floor_ = _rt.Op("floor_", [X], lambda op, args: _rt.Entry(plan, None, [], [], None, [(0, 0)]))
        x = tensor([1.5, 2.5], grad=True)
        b = multiply(x, 1.0)
        floor_(narrow(b, 1, 2))
        assert b.tolist() == [1.5, 2.0]
        b.backward()
        assert x.grad.tolist() == [1.0, 0.0]

    def test_a_view_of_a_leaf_is_an_error(self):
        x = tensor([1.0, 2.0], grad=True)
        with pytest.raises(ValueError, match=r"add_\(\): x, a view of a leaf tensor that wants a gradient"):
            ops.add_.op(narrow(x, 0, 1), tensor([1.0]))

    def test_elements_that_share_memory_are_an_error(self):
        x = _rt.as_view(tensor([1.0]), [3], [0])
        with pytest.raises(ValueError, match="elements along axis 0 share memory"):
            ops.add_.op(x, tensor([1.0, 2.0, 3.0]))

    def test_no_cycles(self):
        gc.disable()
        try:
            x = tensor([1.0, 2.0], grad=True)
            b = multiply(x, 1.0)
            v = narrow(b, 1, 2)
            ops.add_.op(v, tensor([1.0]))
            alive = weakref.ref(b)
            node = weakref.ref(v)
            del b, v
            assert alive() is None
            assert node() is None
        finally:
            gc.enable()


class TestWrongEntries:
    def test_a_backward_plan_must_fit(self):
        lay = ops.layout([2])
        forward = ops.host_plan([lay], [lay], lambda x: (x,))
        other = ops.layout([5])
        for plan, targets, text in [
            (ops.host_plan([other], [lay], lambda g: (g[:2],)), [0], "takes float32\\[5\\] as its input 0"),
            (ops.host_plan([lay, lay], [lay], lambda a, b: (a,)), [0], "has 2 inputs"),
            (ops.host_plan([lay], [lay], lambda g: (g,)), [1], "names operand 1"),
            (ops.host_plan([lay], [lay], lambda g: (g,)), [], "one target for each output"),
        ]:
            made = _rt.BackwardPlan(plan, targets)
            op = _rt.Op("odd", [X], lambda op, args, made=made: _rt.Entry(forward, None, [], [0], lambda m, g: made))
            x = tensor([1.0, 2.0], grad=True)
            with pytest.raises(RuntimeError, match=text):
                op(x).backward()

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"saved": [("input", 1)]}, "saved input 1 does not exist"),
            ({"saved": [("both", 0)]}, "saved is a list"),
            ({"differentiable": [3]}, "differentiable output 3"),
            ({"inplace": [(0, 2)]}, "in-place operand 2"),
        ],
    )
    def test_an_entry_checks_its_indices(self, options, text):
        lay = ops.layout([2])
        plan = ops.host_plan([lay], [lay], lambda x: (x,))
        arguments = {"saved": [], "differentiable": [], "make_backward": None, "inplace": [], **options}
        with pytest.raises(ValueError, match=text):
            _rt.Entry(plan, None, **arguments)
