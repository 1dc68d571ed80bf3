"""The tape: what is recorded, how gradients flow and add up, what goes wrong and how it is said."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import X, array, tensor

from sampan import _rt

add, multiply, exp, split = ops.add.op, ops.multiply.op, ops.exp.op, ops.split.op


@pytest.fixture(autouse=True)
def add_op():
    _rt.set_add_op(add)
    yield
    _rt.set_record_call_sites(False)
    assert _rt.grad_enabled()


def identity_op(name="identity"):
    """Its backward hands the gradient on without a copy."""

    def miss(op, args):
        lay = args[0].layout

        def make_backward(mask, layouts):
            return _rt.BackwardPlan(_rt.Plan.build(layouts, [], [], 0, [], [(0, 0, layouts[0])]), [0])

        plan = _rt.Plan.build([lay], [], [], 0, [], [(0, 0, lay)])
        return _rt.Entry(plan, None, [], [0], make_backward)

    return _rt.Op(name, [X], miss)


identity = identity_op()


class TestRecording:
    def test_a_result_wants_a_gradient_when_an_operand_does(self):
        x, y = tensor([1.0], grad=True), tensor([2.0])
        assert not add(x, y).stop_gradient
        assert add(y, y).stop_gradient
        assert not add(y, x).is_leaf
        assert add(y, y).is_leaf

    def test_nothing_is_recorded_without_grad_mode(self):
        x = tensor([1.0], grad=True)
        was = _rt.set_grad_enabled(False)
        try:
            assert was is True
            assert add(x, x).stop_gradient
        finally:
            _rt.set_grad_enabled(was)

    def test_grad_mode_belongs_to_the_thread(self):
        seen = []
        was = _rt.set_grad_enabled(False)
        thread = threading.Thread(target=lambda: seen.append(_rt.grad_enabled()))
        thread.start()
        thread.join()
        _rt.set_grad_enabled(was)
        assert seen == [True]

    def test_grad_fn_names_the_graph(self):
        x = tensor([1.0], grad=True)
        y = multiply(x, x)
        z = add(y, x)
        assert x.grad_fn is None
        assert z.grad_fn.name() == "add_grad"
        assert [n.name() for n in z.grad_fn.next_functions] == ["multiply_grad", "accumulate_grad"]
        assert z.grad_fn.next_functions[0] == y.grad_fn
        assert len({z.grad_fn, z.grad_fn, y.grad_fn}) == 2

    def test_integer_operands_are_never_recorded(self):
        x = tensor([1, 2], dtype="int64")
        x.stop_gradient = False
        assert add(x, x).stop_gradient

    def test_detach_shares_memory_and_forgets(self):
        x = tensor([1.0, 2.0], grad=True)
        y = multiply(x, x)
        d = y.detach()
        assert d.stop_gradient
        assert d.is_leaf
        assert _rt.shares_storage(d, y)
        assert y.detach_() is y
        assert y.stop_gradient
        assert y.grad_fn is None


class TestBackward:
    def test_gradients_reach_the_leaves(self):
        x, y = tensor([1.0, 2.0], grad=True), tensor([3.0, 4.0], grad=True)
        add(multiply(x, y), x).backward()
        assert x.grad.tolist() == [4.0, 5.0]
        assert y.grad.tolist() == [1.0, 2.0]
        assert x.grad.stop_gradient

    def test_one_tensor_as_both_operands(self):
        x = tensor([3.0, -2.0], grad=True)
        multiply(x, x).backward()
        assert x.grad.tolist() == [6.0, -4.0]

    def test_a_given_gradient_starts_it(self):
        x = tensor([1.0, 2.0], grad=True)
        multiply(x, 3.0).backward(tensor([10.0, 100.0]))
        assert x.grad.tolist() == [30.0, 300.0]

    def test_gradients_accumulate_in_place(self):
        x = tensor([1.0, 2.0], grad=True)
        multiply(x, 3.0).backward()
        first, version = x.grad, x.grad.inplace_version
        multiply(x, 4.0).backward()
        assert x.grad is first
        assert first.tolist() == [7.0, 7.0]
        assert first.inplace_version == version + 1

    def test_leaves_never_share_a_gradients_memory(self):
        x, y = tensor([1.0], grad=True), tensor([1.0], grad=True)
        g = tensor([5.0])
        add(identity(x), identity(y)).backward(g)
        assert not _rt.shares_storage(x.grad, y.grad)
        assert not _rt.shares_storage(x.grad, g)
        x2 = tensor([1.0], grad=True)
        identity(x2).backward(g)
        assert not _rt.shares_storage(x2.grad, g)

    def test_roots_that_depend_on_each_other(self):
        a, b = tensor(np.ones(2), grad=True), tensor(np.ones(2), grad=True)
        c = add(a, b)
        d = add(c, c)
        e = add(d, d)
        _rt.backward([e, c, d])
        assert a.grad.tolist() == [7.0, 7.0]
        assert b.grad.tolist() == [7.0, 7.0]

    def test_one_root_twice_counts_twice(self):
        x = tensor([1.0], grad=True)
        y = multiply(x, 3.0)
        _rt.backward([y, y], [None, tensor([10.0])])
        assert x.grad.tolist() == [33.0]

    def test_a_leaf_as_root_gets_ones(self):
        x = tensor([1.0, 2.0], grad=True)
        x.backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_a_root_without_gradient_is_passed_over(self):
        x = tensor([1.0], grad=True)
        _rt.backward([tensor([1.0]), multiply(x, 2.0)])
        assert x.grad.tolist() == [2.0]
        tensor([1.0]).backward()

    def test_a_diamond_runs_each_node_once(self):
        runs = []
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        y.register_hook(lambda g: runs.append(g.item()))
        add(multiply(y, 3.0), multiply(y, y)).backward()
        assert runs == [3.0 + 2 * 4.0]
        assert x.grad.tolist() == [11.0 * 4.0]

    def test_one_of_several_outputs(self):
        x = tensor([1.0, 2.0, 3.0, 4.0], grad=True)
        first, second = split(x)
        multiply(second, 2.0).backward()
        assert x.grad.tolist() == [0.0, 0.0, 2.0, 2.0]
        builds = ops.split.backward_builds
        first, second = split(x)
        add(first, second).backward()
        assert x.grad.tolist() == [1.0, 1.0, 3.0, 3.0]
        assert ops.split.backward_builds == builds + 1

    def test_a_list_of_operands(self):
        xs = [tensor([float(i)], grad=i != 1) for i in range(3)]
        multiply(ops.add_n.op(xs), 2.0).backward()
        assert [None if x.grad is None else x.grad.item() for x in xs] == [2.0, None, 2.0]

    def test_backward_plans_are_built_once(self):
        before = ops.exp.backward_builds
        x = tensor(np.zeros(13), grad=True)
        for _ in range(5):
            exp(x).backward()
        assert ops.exp.backward_builds == before + 1
        assert array(x.grad).tolist() == [5.0] * 13

    def test_many_layouts_of_one_gradient(self):
        x = _rt.from_numpy(np.zeros((30, 2), "float32"), copy=True)
        x.stop_gradient = False
        for k in range(1, 25):
            g = _rt.as_view(tensor(np.ones(2000)), [30, 2], [2 * k, 1])
            exp(x).backward(g)
        assert np.all(array(x.grad) == 24)

    @pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
    def test_native_sums(self, dtype):
        x = tensor(np.arange(100000), grad=True, dtype=dtype)
        total = identity(x)
        _rt.backward([total, total, identity(x)])
        assert np.all(array(x.grad) == 3)

    def test_sums_without_a_native_loop_use_the_add_op(self):
        calls = []

        def miss(op, args):
            calls.append(args)
            lay = args[0].layout
            return _rt.Entry(ops.host_plan([lay, lay], [lay], lambda a, b: (a + b,)), None, [], [], None)

        _rt.set_add_op(_rt.Op("half_add", [X, ops.Y], miss))
        x = tensor([1.0, 2.0], grad=True, dtype="float16")
        _rt.backward([identity(x), identity(x)])
        assert array(x.grad).tolist() == [2.0, 2.0]
        assert len(calls) == 1

    def test_without_an_add_op_the_error_says_so(self):
        _rt.set_add_op(None)
        x = tensor([1.0, 2.0], grad=True, dtype="float16")
        with pytest.raises(RuntimeError, match="no add op is registered"):
            _rt.backward([identity(x), identity(x)])


class TestGraphLife:
    def test_a_second_backward_is_an_error_that_says_what_to_do(self):
        x = tensor([1.0], grad=True)
        y = multiply(x, x)
        y.backward()
        with pytest.raises(RuntimeError, match=r"backward through multiply_grad a second time.*\n.*retain_graph=True"):
            y.backward()

    def test_retain_graph_keeps_it(self):
        x = tensor([3.0], grad=True)
        y = multiply(x, x)
        y.backward(retain_graph=True)
        y.backward()
        assert x.grad.tolist() == [12.0]

    def test_nodes_that_save_nothing_can_run_again(self):
        x = tensor([3.0], grad=True)
        y = identity(x)
        y.backward()
        y.backward()
        assert x.grad.tolist() == [2.0]

    def test_saved_memory_is_freed_by_backward(self):
        x = tensor(np.zeros(1 << 20), grad=True)
        before = _rt.memory_stats()["allocated_bytes"]
        y = exp(exp(x))
        held = _rt.memory_stats()["allocated_bytes"]
        y.backward()
        x.clear_grad(False)
        assert held - before > 7 << 20
        assert _rt.memory_stats()["allocated_bytes"] - before < 5 << 20

    def test_the_graph_dies_with_its_outputs(self):
        gc.disable()
        try:
            x = tensor([1.0], grad=True)
            y = exp(multiply(x, x))
            node = y.grad_fn
            z = multiply(y, y)
            before = _rt.memory_stats()["allocated_bytes"]
            del y, z, node
            assert _rt.memory_stats()["allocated_bytes"] < before
        finally:
            gc.enable()

    def test_a_leaf_may_die_before_backward(self):
        x, y = tensor([1.0], grad=True), tensor([2.0], grad=True)
        z = multiply(x, y)
        del x
        gc.collect()
        z.backward()
        assert y.grad.tolist() == [1.0]

    @pytest.mark.parametrize("how", ["backward", "destroy", "reverse"])
    def test_deep_graphs(self, how):
        x = y = tensor([1.0], grad=True)
        steps = []
        for _ in range(100_000):
            y = identity(y)
            if how == "reverse":
                steps.append(y)
        if how == "backward":
            y.backward()
            assert x.grad.tolist() == [1.0]
        del steps
        del y

    def test_deep_graphs_of_python_nodes(self):
        def step(x):
            was = _rt.set_grad_enabled(False)
            y = multiply(x, 1.0)
            _rt.set_grad_enabled(was)
            _rt.PyNode("step", lambda g, x=x: g, [x], [y])
            return y

        x = y = tensor([1.0], grad=True)
        for _ in range(20_000):
            y = step(y)
        y.backward()
        assert x.grad.tolist() == [1.0]
        del y

    def test_stale_marks_of_another_run_do_not_confuse(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        for _ in range(3):
            y.backward(retain_graph=True)
        assert x.grad.tolist() == [12.0]

    def test_backward_in_threads(self):
        w = tensor(np.ones(1000), grad=True)
        errors = []

        def work():
            try:
                for _ in range(50):
                    x = tensor(np.ones(1000), grad=True)
                    multiply(x, multiply(x, w)).backward()
                    assert np.all(array(x.grad) == 2)
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors
        assert np.all(array(w.grad) == 200)


class TestGrad:
    def test_gradients_come_back_and_leaves_stay(self):
        x, y = tensor([2.0], grad=True), tensor([3.0], grad=True)
        z = multiply(multiply(x, y), x)
        got = _rt.grad(z, [x, y])
        assert [g.item() for g in got] == [12.0, 4.0]
        assert x.grad is None
        assert y.grad is None

    def test_of_an_inner_tensor(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        z = multiply(y, 5.0)
        gy, gx = _rt.grad(z, [y, x])
        assert (gy.item(), gx.item()) == (5.0, 20.0)

    def test_of_the_output_itself(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        assert _rt.grad(y, y, tensor([7.0]))[0].item() == 7.0

    def test_nodes_behind_the_inputs_do_not_run(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        ran = []
        x.register_hook(lambda g: ran.append(g))
        z = multiply(y, 5.0)
        _rt.grad(z, y)
        assert not ran
        y.backward()
        assert x.grad.item() == 4.0

    def test_an_unused_input_is_an_error_or_none(self):
        x, other = tensor([2.0], grad=True), tensor([2.0], grad=True)
        y = multiply(x, x)
        with pytest.raises(ValueError, match=r"input 1 \(float32\[1\]\) does not take part in the outputs"):
            _rt.grad(y, [x, other], retain_graph=True)
        got = _rt.grad(y, [other, x], allow_unused=True)
        assert got[0] is None
        assert got[1].item() == 4.0

    def test_an_input_without_gradient_says_why(self):
        x = tensor([2.0], grad=True)
        with pytest.raises(ValueError, match="stop_gradient=True"):
            _rt.grad(multiply(x, 2.0), tensor([1.0]))

    def test_no_grad_vars_block(self):
        x = tensor([2.0], grad=True)
        y = multiply(x, x)
        z = add(multiply(y, 3.0), x)
        assert _rt.grad(z, x, no_grad_vars=[y], retain_graph=True)[0].item() == 1.0
        assert _rt.grad(z, x)[0].item() == 13.0

    def test_create_graph_gives_second_derivatives(self):
        x = tensor([2.0, 3.0], grad=True)
        y = multiply(multiply(x, x), x)
        (g,) = _rt.grad(y, x, create_graph=True)
        assert g.tolist() == [12.0, 27.0]
        assert not g.stop_gradient
        (h,) = _rt.grad(g, x)
        assert h.tolist() == [12.0, 18.0]

    def test_create_graph_in_backward_accumulates_a_new_tensor(self):
        x = tensor([2.0], grad=True)
        _rt.backward(multiply(x, x), create_graph=True)
        first = x.grad
        _rt.backward(multiply(x, x), create_graph=True)
        assert x.grad is not first
        assert (first.item(), x.grad.item()) == (4.0, 8.0)
        assert not x.grad.stop_gradient

    def test_create_graph_without_cycles(self):
        gc.disable()
        try:
            x = tensor([2.0], grad=True)
            _rt.backward(multiply(x, x), create_graph=True)
            alive = weakref.ref(x)
            del x
            assert alive() is None
        finally:
            gc.enable()

    def test_an_op_without_second_derivative_says_so(self):
        x = tensor([2.0], grad=True)
        with pytest.raises(NotImplementedError, match="exp has no second derivative"):
            _rt.grad(exp(x), x, create_graph=True)

    def test_grad_inside_a_hook(self):
        x = tensor([2.0], grad=True)
        inner = multiply(x, x)
        got = []
        y = multiply(x, inner)
        y.register_hook(lambda g: got.append(_rt.grad(inner, x, retain_graph=True)[0].item()))
        y.backward()
        assert got == [4.0]
        assert x.grad.item() == 12.0


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
        with pytest.raises(ValueError, match=r"add_: x, a leaf tensor that wants a gradient.*cannot be changed in place"):
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
        with pytest.raises(RuntimeError, match=r"recorded at .*test_tape\.py:\d+"):
            y.backward()
        file, line = y.grad_fn.call_site
        assert file.endswith("test_tape.py")
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


def narrow(x, start, stop):
    """x[start:stop] as a recorded view of a 1-D tensor."""
    whole, part, shape = x.layout, ops.layout([stop - start]), list(x.shape)

    def make_backward(mask, layouts):
        def run(g):
            out = np.zeros(shape, "float32")
            out[start:stop] = g
            return (out,)

        return _rt.BackwardPlan(ops.host_plan(layouts, [whole], run), [0])

    plan = _rt.Plan.build([whole], [], [], 0, [], [(0, 4 * start, part)])
    return _rt.Op("narrow", [X], lambda op, args: _rt.Entry(plan, None, [], [0], make_backward))(x)


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
        with pytest.raises(ValueError, match=r"add_: x, a view of a leaf tensor that wants a gradient"):
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


def test_a_process_ends_quietly_with_living_graphs():
    code = """
import numpy as np
from runtime import hand_made_ops as ops
x = ops.tensor([1.0], grad=True)
x.register_hook(lambda g: None)
y = ops.multiply.op(x, x)
"""
    paths = ":".join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": paths}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
