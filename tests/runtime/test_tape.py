"""What is recorded, how gradients flow and add up, and how long a graph lives."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import X, array, identity, tensor

from sampan import _rt

add, multiply, exp, split = ops.add.op, ops.multiply.op, ops.exp.op, ops.split.op


pytestmark = pytest.mark.usefixtures("add_op")


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
        assert not x.grad.stop_gradient

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


def test_a_process_ends_quietly_with_living_graphs():
    code = """
import numpy as np
from runtime import hand_made_ops as ops
x = ops.tensor([1.0], grad=True)
x.register_hook(lambda g: None)
y = ops.multiply.op(x, x)
"""
    paths = ":".join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
