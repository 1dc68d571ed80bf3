"""Plans: what they check, what they run, and that a wrong one raises instead of writing outside its buffers."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest

from sampan import _rt

KERNEL = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


def floats(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


@KERNEL
def add_kernel(buffers, params, begin, end, scratch):
    """params: elements for each unit of the parallel space; buffers: a, b, out."""
    a, b, out = (floats(buffers[k], params[0] * end) for k in range(3))
    out[params[0] * begin :] = a[params[0] * begin :] + b[params[0] * begin :]


@KERNEL
def scratch_kernel(buffers, params, begin, end, scratch):
    floats(scratch, params[0])[:] = floats(buffers[0], params[0]) * 2
    floats(buffers[1], params[0])[:] = floats(scratch, params[0]) + 1


def address_of(kernel) -> int:
    return ctypes.cast(kernel, ctypes.c_void_p).value


ADD, SCRATCH = address_of(add_kernel), address_of(scratch_kernel)
ROW = _rt.Layout("float32", [4])


def tensor(*values: float) -> _rt.Tensor:
    return _rt.from_numpy(np.array(values, np.float32))


def add(operands, parallel_size: int = 1, cost_ns: float = 1.0):
    return ("kernel", ADD, operands, [4 // parallel_size], parallel_size, cost_ns, 0)


def simple(**changes):
    parts = {
        "input_layouts": [ROW, ROW],
        "constants": [],
        "slots": [(16, -1)],
        "arena_bytes": 0,
        "instructions": [add([(0, 0), (1, 0), (2, 0)])],
        "outputs": [(2, 0, ROW)],
        "text": "",
    }
    parts.update(changes)
    return _rt.Plan.build(**parts)


class TestRuns:
    def test_a_kernel_writes_a_fresh_output(self):
        plan = simple()
        x = tensor(1, 2, 3, 4)
        (first,) = plan.run([x, tensor(10, 20, 30, 40)])
        (second,) = plan.run([x, x])
        assert first.tolist() == [11, 22, 33, 44]
        assert second.tolist() == [2, 4, 6, 8]
        assert first.layout == ROW

    def test_temporaries_live_in_the_arena(self):
        plan = simple(
            slots=[(16, 64), (16, -1)],
            arena_bytes=80,
            instructions=[add([(0, 0), (1, 0), (2, 0)]), add([(2, 0), (2, 0), (3, 0)])],
            outputs=[(3, 0, ROW)],
        )
        assert plan.run([tensor(1, 2, 3, 4), tensor(1, 1, 1, 1)])[0].tolist() == [4, 6, 8, 10]

    def test_a_fresh_buffer_that_is_no_output_becomes_a_temporary(self):
        plan = simple(
            slots=[(16, -1), (16, -1)],
            instructions=[add([(0, 0), (1, 0), (2, 0)]), add([(2, 0), (2, 0), (3, 0)])],
            outputs=[(3, 0, ROW)],
        )
        assert plan.arena_bytes >= 16
        assert plan.run([tensor(1, 2, 3, 4), tensor(1, 1, 1, 1)])[0].tolist() == [4, 6, 8, 10]

    def test_constants_come_after_the_inputs(self):
        plan = simple(input_layouts=[ROW], constants=[tensor(5, 6, 7, 8)])
        assert plan.run([tensor(1, 1, 1, 1)])[0].tolist() == [6, 7, 8, 9]

    def test_operand_offsets_are_views(self):
        pair = _rt.Layout("float32", [2])
        plan = _rt.Plan.build(
            input_layouts=[ROW],
            constants=[],
            slots=[(16, -1)],
            arena_bytes=0,
            instructions=[
                ("kernel", ADD, [(0, 8), (0, 0), (1, 0)], [2], 1, 1.0, 0),
                ("kernel", ADD, [(0, 0), (0, 0), (1, 8)], [2], 1, 1.0, 0),
            ],
            outputs=[(1, 8, pair), (1, 0, pair), (0, 4, pair)],
        )
        x = tensor(1, 2, 3, 4)
        doubled, added, view = plan.run([x])
        assert added.tolist() == [4, 6]
        assert doubled.tolist() == [2, 4]
        assert _rt.shares_storage(added, doubled)
        assert view.tolist() == [2, 3]
        assert _rt.shares_storage(view, x)

    def test_inputs_may_start_anywhere_in_their_storage(self):
        x = _rt.as_view(_rt.from_numpy(np.arange(10, dtype=np.float32)), [4], [1], 3)
        assert simple().run([x, x])[0].tolist() == [6, 8, 10, 12]

    def test_an_output_may_be_an_input_that_was_written(self):
        plan = simple(slots=[], instructions=[add([(0, 0), (1, 0), (0, 0)])], outputs=[(0, 0, ROW)])
        x = tensor(1, 2, 3, 4)
        (y,) = plan.run([x, tensor(1, 1, 1, 1)])
        assert x.tolist() == [2, 3, 4, 5]
        assert y.data_ptr() == x.data_ptr()

    def test_the_parallel_space_is_covered_once(self):
        n = 1000
        layout = _rt.Layout("float32", [n])
        plan = _rt.Plan.build(
            [layout, layout], [], [(4 * n, -1)], 0, [("kernel", ADD, [(0, 0), (1, 0), (2, 0)], [1], n, 1e6, 0)], [(2, 0, layout)]
        )
        x = _rt.from_numpy(np.arange(n, dtype=np.float32))
        assert np.array_equal(plan.run([x, x])[0].numpy_view(), np.arange(n) * 2)

    def test_kernels_get_scratch(self):
        plan = _rt.Plan.build(
            [ROW], [], [(16, -1)], 0, [("kernel", SCRATCH, [(0, 0), (1, 0)], [4], 1, 1.0, 100_000)], [(1, 0, ROW)]
        )
        assert plan.run([tensor(1, 2, 3, 4)])[0].tolist() == [3, 5, 7, 9]

    def test_empty_plans_and_empty_tensors(self):
        nothing = _rt.Layout("float32", [0, 3])
        assert _rt.Plan.build([], [], [], 0, [], []).run([]) == []
        plan = _rt.Plan.build(
            [nothing], [], [(0, -1)], 0, [("kernel", ADD, [(0, 0), (0, 0), (1, 0)], [4], 0, 1.0, 0)], [(1, 0, nothing)]
        )
        assert plan.run([_rt.empty([0, 3], "float32")])[0].shape == [0, 3]

    def test_many_slots_and_threads(self):
        count = 100
        instructions = [add([(0, 0), (1 + k, 0), (2 + k, 0)]) for k in range(count - 1)]
        slots = [(16, 64 * k) for k in range(count - 1)] + [(16, -1)]
        instructions.append(add([(0, 0), (count - 1, 0), (count + 1, 0)]))
        plan = _rt.Plan.build(
            [ROW],
            [tensor(0, 0, 0, 0)],
            slots,
            64 * count,
            [*instructions[:-1], add([(0, 0), (count, 0), (count + 1, 0)])],
            [(count + 1, 0, ROW)],
        )
        wrong = []

        def work(value: float) -> None:
            x = tensor(*[value] * 4)
            for _ in range(20):
                if plan.run([x])[0].tolist() != [value * count] * 4:
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong


class TestNatives:
    def test_copy_casts_and_permutes(self):
        source, target = _rt.Layout("float32", [3, 4], [1, 3]), _rt.Layout("int32", [3, 4])
        plan = _rt.Plan.build(
            [source], [], [(48, -1)], 0, [("native", "copy", [(0, 0), (1, 0)], [source], [target], {})], [(1, 0, target)]
        )
        x = _rt.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3).T)
        assert plan.run([x])[0].tolist() == x.tolist()

    @pytest.mark.parametrize(
        ("dtype", "attributes", "expected"),
        [
            ("int64", {"value": 2**62 + 1}, 2**62 + 1),
            ("float32", {"value": 1.5}, 1.5),
            ("complex64", {"value": 1, "imaginary": 2.0}, 1 + 2j),
        ],
    )
    def test_fill(self, dtype, attributes, expected):
        layout = _rt.Layout(dtype, [3])
        plan = _rt.Plan.build(
            [], [], [(layout.size_bytes, -1)], 0, [("native", "fill", [(0, 0)], [], [layout], attributes)], [(0, 0, layout)]
        )
        assert plan.run([])[0].tolist() == [expected] * 3

    def test_names_are_listed_and_unknown_ones_raise(self):
        assert {"copy", "fill"} <= set(_rt.native_names())
        with pytest.raises(NotImplementedError, match="nonsense"):
            simple(instructions=[("native", "nonsense", [], [], [], {})])

    def test_unknown_attributes_and_wrong_shapes_raise(self):
        with pytest.raises(ValueError, match="colour"):
            simple(instructions=[("native", "fill", [(2, 0)], [], [ROW], {"value": 1, "colour": 2})])
        with pytest.raises(ValueError, match="shapes"):
            simple(instructions=[("native", "copy", [(0, 0), (2, 0)], [ROW], [_rt.Layout("float32", [2, 2])], {})])
        with pytest.raises(ValueError, match="attribute"):
            simple(instructions=[("native", "fill", [(2, 0)], [], [ROW], {"value": object()})])


class TestHostFunctions:
    def test_a_function_reads_inputs_and_writes_outputs(self):
        def reverse(inputs, outputs):
            outputs[0].numpy_view()[...] = inputs[0].numpy_view()[::-1]

        plan = simple(instructions=[("host", reverse, [(0, 0), (2, 0)], [ROW, ROW], 1)])
        assert plan.run([tensor(1, 2, 3, 4), tensor(0, 0, 0, 0)])[0].tolist() == [4, 3, 2, 1]

    def test_exceptions_propagate_and_free_the_outputs(self):
        class Stop(Exception):
            pass

        def fail(inputs, outputs):
            raise Stop("here")

        gc.collect()
        before = _rt.memory_stats()["allocated_bytes"]
        for lock_released in (False, True):
            fill = [("native", "fill", [(2, 0)], [], [ROW], {"value": 1})] if lock_released else []
            plan = simple(instructions=[*fill, ("host", fail, [(0, 0), (2, 0)], [ROW, ROW], 1)])
            with pytest.raises(Stop, match="here"):
                plan.run([tensor(1, 2, 3, 4), tensor(0, 0, 0, 0)])
        del plan
        gc.collect()
        assert _rt.memory_stats()["allocated_bytes"] == before

    def test_a_tensor_of_the_arena_may_outlive_the_run(self):
        kept = []
        plan = simple(
            slots=[(16, 0), (16, -1)],
            arena_bytes=16,
            instructions=[
                add([(0, 0), (1, 0), (2, 0)]),
                ("host", lambda i, o: kept.extend(i), [(2, 0)], [ROW], 1),
                add([(0, 0), (1, 0), (3, 0)]),
            ],
            outputs=[(3, 0, ROW)],
        )
        plan.run([tensor(1, 2, 3, 4), tensor(1, 1, 1, 1)])
        filler = [_rt.empty([16], "uint8") for _ in range(100)]
        for t in filler:
            _rt.fill(t, 255)
        assert kept[0].tolist() == [2, 3, 4, 5]

    def test_a_host_function_may_run_plans(self):
        inner = simple()

        def nested(inputs, outputs):
            _rt.copy_into(outputs[0], inner.run([inputs[0], inputs[0]])[0])

        plan = simple(instructions=[("host", nested, [(0, 0), (2, 0)], [ROW, ROW], 1), add([(2, 0), (1, 0), (2, 0)])])
        assert plan.run([tensor(1, 2, 3, 4), tensor(1, 1, 1, 1)])[0].tolist() == [3, 5, 7, 9]

    def test_the_function_is_released_with_the_plan(self):
        class Function:
            def __call__(self, inputs, outputs):
                pass

        function = Function()
        reference = weakref.ref(function)
        plan = simple(instructions=[("host", function, [], [], 0)])
        del function
        assert reference() is not None
        del plan
        assert reference() is None


class TestChecks:
    @pytest.mark.parametrize(
        "changes",
        [
            {"instructions": [add([(0, 0), (1, 0), (3, 0)])]},
            {"instructions": [add([(-1, 0), (1, 0), (2, 0)])]},
            {"instructions": [add([(2**31, 0), (1, 0), (2, 0)])]},
            {"instructions": [add([(0, 17), (1, 0), (2, 0)])]},
            {"instructions": [add([(0, -1), (1, 0), (2, 0)])]},
            {"instructions": [add([(0, 0, 0)])]},
            {"instructions": [("kernel", 0, [], [], 1, 1.0, 0)]},
            {"instructions": [("kernel", ADD, [], [], -1, 1.0, 0)]},
            {"instructions": [("kernel", ADD, [], [], 1, float("nan"), 0)]},
            {"instructions": [("kernel", ADD, [], [], 1, 1.0, -5)]},
            {"instructions": [("kernel", ADD)]},
            {"instructions": [("dance",)]},
            {"instructions": [("native", "copy", [(0, 0), (2, 4)], [ROW], [ROW], {})]},
            {"instructions": [("native", "copy", [(0, 0)], [ROW], [ROW], {})]},
            {"instructions": [("host", print, [(0, 4)], [ROW], 1)]},
            {"instructions": [("host", print, [(0, 0)], [ROW], 2)]},
            {"instructions": [("host", print, [(0, 0)], [], 0)]},
            {"instructions": [("host", 3, [], [], 0)]},
            {"outputs": [(2, 4, ROW)]},
            {"outputs": [(5, 0, ROW)]},
            {"outputs": [(0, 0, _rt.Layout("float64", [4]))]},
            {"outputs": [(0, 0, _rt.Layout("float32", [2], [-1]))]},
            {"slots": [(16, 0)], "arena_bytes": 15},
            {"slots": [(16, 8)], "arena_bytes": 64},
            {"slots": [(16, 0)], "arena_bytes": 64},
            {"slots": [(-1, -1)]},
            {"slots": [(2**62, -1), (2**62, -1), (2**62 + 1, -1)]},
            {"arena_bytes": -1},
        ],
    )
    def test_a_wrong_plan_is_refused(self, changes):
        with pytest.raises((ValueError, OverflowError), match=r"Plan|too large|int"):
            simple(**changes)

    @pytest.mark.parametrize(
        "changes",
        [{"input_layouts": [3]}, {"constants": [3]}, {"outputs": [(2, 0, "float32")]}, {"instructions": [3]}, {"slots": 3}],
    )
    def test_wrong_types_are_refused(self, changes):
        with pytest.raises(TypeError):
            simple(**changes)

    def test_runs_check_their_inputs(self):
        plan = simple()
        with pytest.raises(ValueError, match="2 inputs"):
            plan.run([tensor(1, 2, 3, 4)])
        with pytest.raises(ValueError, match="input 1"):
            plan.run([tensor(1, 2, 3, 4), tensor(1, 2, 3)])
        with pytest.raises(TypeError):
            plan.run([1, 2])

    def test_a_size_that_memory_cannot_hold_raises_when_it_is_built(self):
        huge = _rt.Layout("float32", [2**50])
        with pytest.raises(MemoryError):
            _rt.Plan.build([], [], [(2**52, -1)], 0, [], [(0, 0, huge)])

    def test_properties(self):
        plan = simple(text="add")
        assert plan.text == "add"
        assert plan.input_layouts == [ROW, ROW]
        assert plan.output_layouts == [ROW]
        assert plan.instruction_count == 1
