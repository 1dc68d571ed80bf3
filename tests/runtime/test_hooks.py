"""Hooks, the state of leaves, nodes in Python, hooks on what is saved."""

from __future__ import annotations

import gc
import weakref

import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import array, identity, tensor

from sampan import _rt

add, multiply, exp, split = ops.add.op, ops.multiply.op, ops.exp.op, ops.split.op


pytestmark = pytest.mark.usefixtures("add_op")


class TestHooks:
    def test_a_leafs_hook_replaces_what_is_accumulated(self):
        x = tensor([1.0, 2.0], grad=True)
        x.register_hook(lambda g: multiply(g, 10.0))
        multiply(x, 3.0).backward()
        assert x.grad.tolist() == [30.0, 30.0]

    def test_an_inner_tensors_hook_replaces_what_flows_on(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        y.register_hook(lambda g: multiply(g, 10.0))
        y.register_hook(lambda g: None)
        multiply(y, 3.0).backward()
        assert x.grad.tolist() == [120.0]

    def test_hooks_run_without_recording(self):
        x = tensor([1.0], grad=True)
        seen = []
        x.register_hook(lambda g: seen.append((g.stop_gradient, _rt.grad_enabled())))
        multiply(x, 3.0).backward()
        assert seen == [(True, False)]

    def test_removing(self):
        x = tensor([1.0], grad=True)
        handle = x.register_hook(lambda g: multiply(g, 10.0))
        kept = x.register_hook(lambda g: multiply(g, 2.0))
        assert handle.remove() is True
        assert handle.remove() is False
        multiply(x, 3.0).backward()
        assert x.grad.tolist() == [6.0]
        kept.remove()

    def test_a_hook_may_remove_itself(self):
        x = tensor([1.0], grad=True)
        handle = x.register_hook(lambda g: handle.remove() and None)
        multiply(x, 3.0).backward()
        multiply(x, 3.0).backward()
        assert x.grad.tolist() == [6.0]

    def test_a_tensor_without_gradient_takes_no_hook(self):
        with pytest.raises(RuntimeError, match="stop_gradient=True"):
            tensor([1.0]).register_hook(lambda g: g)

    @pytest.mark.parametrize("value", [3, "text"])
    def test_a_hook_must_return_a_tensor(self, value):
        x = tensor([1.0], grad=True)
        x.register_hook(lambda g: value)
        with pytest.raises(TypeError, match="must return a Tensor or None"):
            multiply(x, 3.0).backward()

    def test_a_hooks_gradient_must_fit(self):
        x = tensor([1.0, 2.0], grad=True)
        x.register_hook(lambda g: tensor([1.0]))
        with pytest.raises(ValueError, match=r"is float32\[1\]; it must have the shape of its tensor, float32\[2\]"):
            multiply(x, 3.0).backward()

    def test_an_error_in_a_hook_reaches_the_caller_and_the_graph_stays_usable(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)

        def fail(g):
            raise KeyError("from the hook")

        handle = y.register_hook(fail)
        with pytest.raises(KeyError, match="from the hook"):
            y.backward()
        assert _rt.grad_enabled()
        assert x.grad is None
        handle.remove()
        y.backward()
        assert x.grad.tolist() == [4.0]

    def test_a_hook_that_holds_its_tensor_is_collected(self):
        x = tensor([1.0], grad=True)
        x.register_hook(lambda g, x=x: None)
        alive = weakref.ref(x)
        del x
        gc.collect()
        assert alive() is None

    def test_retain_grads(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        y.register_hook(lambda g: multiply(g, 2.0))
        y.retain_grads()
        y.retain_grads()
        assert y.grad is None
        multiply(y, 3.0).backward()
        assert y.grad.tolist() == [6.0]
        assert x.grad.tolist() == [24.0]

    def test_the_retained_gradient_is_not_changed_later(self):
        x = tensor([2.0], grad=True)
        y = identity(x)
        y.retain_grads()
        y.backward()
        multiply(x, 5.0).backward()
        assert y.grad.tolist() == [1.0]
        assert x.grad.tolist() == [6.0]

    def test_a_tensor_with_retained_gradient_may_die(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        y.retain_grads()
        z = multiply(y, 3.0)
        del y
        z.backward()
        assert x.grad.tolist() == [12.0]

    def test_hooks_on_the_accumulated_gradient(self):
        x = tensor([2.0], grad=True)
        seen = []
        x._register_accumulated_hook(lambda g: seen.append(g.item()))
        multiply(x, x).backward()
        multiply(x, x).backward()
        assert seen == [4.0, 8.0]
        with pytest.raises(RuntimeError, match="needs a leaf"):
            multiply(x, x)._register_accumulated_hook(lambda g: None)


class TestLeafState:
    def test_setting_and_clearing(self):
        x = tensor([1.0, 2.0], grad=True)
        x.grad = tensor([3.0, 4.0])
        held = x.grad
        multiply(x, 1.0).backward()
        assert held.tolist() == [4.0, 5.0]
        x.clear_grad()
        assert x.grad is held
        assert held.tolist() == [0.0, 0.0]
        x.clear_gradient(set_to_zero=False)
        assert x.grad is None
        x.grad = None
        assert x.grad is None

    @pytest.mark.parametrize("wrong", [tensor([1.0]), tensor([1.0, 2.0], dtype="float64"), 3])
    def test_a_gradient_must_fit(self, wrong):
        with pytest.raises((TypeError, ValueError)):
            tensor([1.0, 2.0], grad=True).grad = wrong

    def test_name_and_persistable(self):
        x, y = tensor([1.0]), tensor([1.0])
        assert x.name != y.name
        assert x.name == x.name
        x.name = "weight"
        assert x.name == "weight"
        assert x.persistable is False
        x.persistable = True
        assert x.persistable is True
        with pytest.raises(TypeError, match="must be a string"):
            x.name = 3

    def test_a_given_gradient_must_fit(self):
        x = tensor([1.0, 2.0], grad=True)
        with pytest.raises(ValueError, match=r"the gradient given for output 0 is float32\[3\]"):
            multiply(x, 2.0).backward(tensor([1.0, 2.0, 3.0]))


class TestPyNode:
    def make(self, inputs, outputs, function, saved=None):
        return _rt.PyNode("custom", function, inputs, outputs, *([] if saved is None else [saved]))

    def test_backward_is_the_function(self):
        x, y = tensor([2.0], grad=True), tensor([6.0])
        node = self.make([x], [y], lambda g: multiply(g, 3.0))
        assert y.grad_fn == node
        assert y.grad_fn.name() == "custom"
        multiply(y, 2.0).backward()
        assert x.grad.tolist() == [6.0]

    def test_absent_gradients_are_none(self):
        x, a, b = tensor([2.0], grad=True), tensor([1.0]), tensor([1.0])
        seen = []
        self.make([x], [a, b], lambda ga, gb: seen.append((ga, gb)) or gb)
        b.backward()
        assert seen[0][0] is None
        assert x.grad.tolist() == [1.0]

    def test_saved_tensors_come_first_and_are_checked(self):
        x, y = tensor([2.0], grad=True), tensor([4.0])
        self.make([x], [y], lambda saved, g: multiply(g, add(saved[0], saved[1])), [x, y, None])
        y.backward(retain_graph=True)
        assert x.grad.tolist() == [6.0]
        y.backward()
        with pytest.raises(RuntimeError, match="a second time"):
            y.backward()
        x2, y2 = tensor([2.0], grad=True), tensor([4.0])
        self.make([x2], [y2], lambda saved, g: g, [y2])
        y2.detach()[0] = 1.0
        with pytest.raises(RuntimeError, match="custom: a tensor that it saved"):
            y2.backward()

    def test_saved_outputs_make_no_cycle(self):
        gc.disable()
        try:
            x, y = tensor([2.0], grad=True), tensor([4.0])
            self.make([x], [y], lambda saved, g: g, [y])
            alive = weakref.ref(y)
            del y
            assert alive() is None
        finally:
            gc.enable()

    def test_create_graph_records_the_function(self):
        x, y = tensor([3.0], grad=True), tensor([9.0])
        self.make([x], [y], lambda saved, g: multiply(g, multiply(saved[0], 2.0)), [x])
        (g,) = _rt.grad(y, x, create_graph=True)
        assert g.tolist() == [6.0]
        assert _rt.grad(g, x)[0].tolist() == [2.0]

    @pytest.mark.parametrize(("result", "error"), [((), ValueError), ([1, 2], TypeError), (3, TypeError)])
    def test_wrong_results(self, result, error):
        x, y = tensor([2.0], grad=True), tensor([6.0])
        self.make([x], [y], lambda g: result)
        with pytest.raises(error, match="custom: backward must return"):
            y.backward()

    def test_a_gradient_of_another_shape(self):
        x, y = tensor([2.0], grad=True), tensor([6.0])
        self.make([x], [y], lambda g: tensor([1.0, 2.0]))
        with pytest.raises(ValueError, match=r"that custom computes for input 0 is float32\[2\]"):
            y.backward()

    def test_none_means_no_gradient(self):
        x, y = tensor([2.0], grad=True), tensor([6.0])
        self.make([x], [y], lambda g: None)
        y.backward()
        assert x.grad is None

    def test_a_function_that_holds_its_output_is_collected(self):
        x, y = tensor([2.0], grad=True), tensor([6.0])
        self.make([x], [y], lambda g, y=y: g)
        alive = weakref.ref(y)
        del y
        gc.collect()
        assert alive() is None


class TestSavedTensorHooks:
    def test_pack_and_unpack(self):
        x, w = tensor([2.0], grad=True), tensor([3.0])
        packed = []
        _rt.push_saved_tensor_hooks(lambda t: packed.append(t) or array(t).copy(), lambda a: tensor(a * 10))
        y = multiply(x, w)
        _rt.pop_saved_tensor_hooks()
        z = multiply(x, w)
        y.backward()
        assert len(packed) == 2
        assert x.grad.tolist() == [30.0]
        z.backward()
        assert x.grad.tolist() == [33.0]

    def test_the_innermost_pair_counts(self):
        x = tensor([2.0], grad=True)
        seen = []
        _rt.push_saved_tensor_hooks(lambda t: seen.append("outer") or t, lambda t: t)
        _rt.push_saved_tensor_hooks(lambda t: seen.append("inner") or t, lambda t: t)
        exp(x)
        _rt.pop_saved_tensor_hooks()
        exp(x)
        _rt.pop_saved_tensor_hooks()
        assert seen == ["inner", "outer"]
        with pytest.raises(RuntimeError, match="none is pushed"):
            _rt.pop_saved_tensor_hooks()

    def test_unpack_must_return_a_tensor(self):
        x = tensor([2.0], grad=True)
        _rt.push_saved_tensor_hooks(lambda t: t, lambda t: 3)
        y = exp(x)
        _rt.pop_saved_tensor_hooks()
        with pytest.raises(TypeError, match="unpack hook must return a Tensor"):
            y.backward()
