"""Calls of ops: arguments, signatures, scalars, results, operators."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import weakref

import numpy as np
import pytest
from runtime import hand_made_ops as ops
from runtime.hand_made_ops import X, recording_op, tensor

from sampan import _rt


@pytest.fixture(autouse=True)
def clean_state():
    before = _rt.set_symbolic_type(None)
    context = _rt.set_context(0)
    yield
    _rt.set_symbolic_type(before)
    _rt.set_context(context)


def counting_op(kinds):
    """An Op over one tensor and attributes whose calls are cached; the second value lists the misses."""
    seen = []

    def miss(op, args):
        seen.append(args)
        result = ops.layouts_of([np.zeros(args[0].shape, args[0].dtype.name)])
        return _rt.Entry(ops.host_plan([args[0].layout], result, lambda x: (x,)), None, [], [], None)

    return _rt.Op("counter", [X, *((f"a{i}", k, None) for i, k in enumerate(kinds))], miss), seen


class TestArguments:
    def test_defaults_fill_what_is_not_given(self):
        op, _ = recording_op([X, ("axis", "attr", -1), ("keep", "attr", False)])
        x = tensor([1.0])
        assert op(x, keep=True) == (x, -1, True)

    def test_name_is_ignored(self):
        op, _ = recording_op([X])
        x = tensor([1.0])
        assert op(x, name="unused") == (x,)

    def test_a_parameter_called_name_is_a_parameter(self):
        op, _ = recording_op([X, ("name", "attr", None)])
        x = tensor([1.0])
        assert op(x, name="kept") == (x, "kept")

    def test_aliases_stand_for_their_parameters(self):
        op, _ = recording_op([X, ("axis", "attr", -1)], aliases={"input": "x", "dim": "axis"})
        x = tensor([1.0])
        assert op(input=x, dim=2) == (x, 2)

    @pytest.mark.parametrize(
        ("args", "kwargs", "text"),
        [
            ((), {}, r"softmax\(x, axis=-1\): needs a value for 'x'"),
            ((1, 2, 3), {}, "at most 2 positional arguments, and 3 were given"),
            ((1,), {"x": 2}, "more than one value for 'x'"),
            ((1,), {"axsi": 2}, "no parameter 'axsi'; did you mean 'axis'"),
            ((1,), {"zzz": 2}, "no parameter 'zzz'"),
            (("text",), {}, "x must be a Tensor, a number or an array of numbers, not a str"),
            (([1, 2],), {}, "x must be a Tensor, a number or an array of numbers, not a list"),
            ((1,), {"axis": {}}, "axis must be None, a bool, number, string, dtype, place, or a list of those, not a dict"),
        ],
    )
    def test_errors_name_the_op_and_the_parameter(self, args, kwargs, text):
        op = _rt.Op("softmax", [X, ("axis", "attr", -1)], lambda op, args: _rt.Immediate(args))
        with pytest.raises(TypeError, match=text):
            op(*args, **kwargs)

    def test_none_is_an_absent_tensor(self):
        op, _ = recording_op([X, ("bias", "tensor", None)])
        x = tensor([1.0])
        assert op(x) == (x, None)

    def test_numpy_arrays_become_tensors(self):
        op, _ = recording_op([X])
        (got,) = op(np.array([1, 2], "int32"))
        assert isinstance(got, _rt.Tensor)
        assert got.dtype.name == "int32"
        assert got.tolist() == [1, 2]

    def test_numpy_scalars_keep_their_dtype(self):
        op, _ = recording_op([X])
        (got,) = op(np.float32(2.5))
        assert (got.dtype.name, got.shape, got.item()) == ("float32", [], 2.5)

    def test_numpy_values_in_a_list_become_tensors_and_the_callers_list_stays(self):
        op, _ = recording_op([("xs", "tensors", _rt.REQUIRED)])
        given = [tensor([1.0]), np.ones(2, "float32")]
        (got,) = op(given)
        assert isinstance(got[1], _rt.Tensor)
        assert isinstance(given[1], np.ndarray)

    def test_a_list_may_be_emptied_while_the_call_runs(self):
        given = [tensor([1.0, 2.0], grad=True), tensor([3.0, 4.0], grad=True)]

        def forward(*arrays):
            given.clear()
            gc.collect()
            return (arrays[0] + arrays[1],)

        op = ops.HostOp("greedy", [("xs", "tensors", _rt.REQUIRED)], forward, lambda a, b, g: (g, g)).op
        x = given[0]
        y = op(given)
        assert y.tolist() == [4.0, 6.0]
        y.backward()
        assert x.grad.tolist() == [1.0, 1.0]

    def test_tensors_and_numpy_values_in_attributes_are_read(self):
        op, _ = recording_op([X, ("shape", "attr", None)])
        x = tensor([1.0])
        assert op(x, [2, tensor(3, dtype="int64"), np.int64(4)])[1] == [2, 3, 4]
        assert op(x, np.array([5, 6]))[1] == [5, 6]
        assert op(x, tensor(7, dtype="int32"))[1] == 7

    def test_what_miss_raises_reaches_the_caller(self):
        def miss(op, args):
            raise ZeroDivisionError("from the miss handler")

        with pytest.raises(ZeroDivisionError, match="from the miss handler"):
            _rt.Op("broken", [X], miss)(tensor([1.0]))

    def test_a_miss_handler_that_returns_something_else_is_an_error(self):
        with pytest.raises(TypeError, match="miss handler of broken must return an Entry or an Immediate, not int"):
            _rt.Op("broken", [X], lambda op, args: 3)(tensor([1.0]))

    def test_a_plan_for_other_operands_is_refused(self):
        wrong = ops.layouts_of([np.zeros(1000, "float32")])
        op = _rt.Op("broken", [X], lambda op, args: _rt.Entry(ops.host_plan(wrong, wrong, lambda x: (x,)), None, [], [], None))
        with pytest.raises(RuntimeError, match=r"made for float32\[1000\] as x, which is float32\[1\]"):
            op(tensor([1.0]))


class TestOut:
    def test_out_receives_the_result(self):
        out = tensor([0.0, 0.0])
        before = out.inplace_version
        assert ops.add.op(tensor([1.0, 2.0]), 1.0, out=out) is out
        assert out.tolist() == [2.0, 3.0]
        assert out.inplace_version == before + 1

    def test_out_receives_the_history(self):
        x, out = tensor([1.0, 2.0], grad=True), tensor([0.0, 0.0])
        ops.multiply.op(x, x, out=out)
        out.backward()
        assert x.grad.tolist() == [2.0, 4.0]

    def test_out_of_another_shape_is_an_error(self):
        with pytest.raises(ValueError, match=r"add\(\): out is float32\[3\], and the result float32\[2\]"):
            ops.add.op(tensor([1.0, 2.0]), 1.0, out=tensor([0.0] * 3))

    def test_out_must_be_a_tensor(self):
        with pytest.raises(TypeError, match="out must be shaped like the result"):
            ops.add.op(tensor([1.0]), 1.0, out=3)


class TestSignature:
    def calls(self, kinds, *variants):
        op, seen = counting_op(kinds)
        x = tensor([1.0, 2.0])
        for v in variants:
            op(x, *v)
        return len(seen)

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            (1, 1.0),
            (1, True),
            (0.0, -0.0),
            (1.0, 1 + 0j),
            ("a", "b"),
            ("", None),
            ([1, 2], [1, 3]),
            ([1, [2]], [[1], 2]),
            ([], None),
            ("ab", ["a", "b"]),
            (2**70, 2**71),
            (2**70, -(2**70)),
            (slice(1, 2), slice(1, 3)),
            (_rt.dtypes["float32"], _rt.dtypes["float64"]),
            (int, float),
            (False, None),
        ],
    )
    def test_different_attributes_differ(self, a, b):
        assert self.calls(["attr"], [a], [b], [a], [b]) == 2

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ([1, 2], (1, 2)),
            (math.nan, float("nan")),
            (2**70, 2**70 + 0),
            ("abc" * 10, "".join(["abc"] * 10)),
            ([1, np.int64(2)], [1, 2]),
            (np.dtype("float32"), np.dtype("f4")),
            (slice(None), slice(None, None)),
            (np.float64(2.0), 2.0),
        ],
    )
    def test_equal_attributes_share_an_entry(self, a, b):
        assert self.calls(["attr"], [a], [b]) == 1

    def test_neighbouring_attributes_are_kept_apart(self):
        assert self.calls(["attr", "attr"], [[1], [2, 3]], [[1, 2], [3]]) == 2

    def test_a_read_tensor_counts_as_its_values(self):
        assert self.calls(["attr"], [[2, tensor(3, dtype="int64")]], [[2, 3]], [[2, [2, 3]]]) == 2

    def test_layouts_differ_by_dtype_shape_and_strides(self):
        op, seen = counting_op([])
        x = _rt.from_numpy(np.zeros((4, 4), "float32"), copy=True)
        transposed = _rt.as_view(x, [4, 4], [1, 4])
        variants = [x, _rt.copy(x), tensor(np.zeros((4, 4)), dtype="float64"), tensor(np.zeros(16)), transposed]
        for v in variants * 2:
            op(v)
        assert len(seen) == 4

    def test_needs_grad_is_part_of_it(self):
        op, seen = counting_op([])
        x, y = tensor([1.0, 2.0]), tensor([1.0, 2.0], grad=True)
        for t in (x, y, x, y):
            op(t)
        assert len(seen) == 2
        was = _rt.set_grad_enabled(False)
        op(y)
        _rt.set_grad_enabled(was)
        assert len(seen) == 2

    def test_the_context_is_part_of_it(self):
        op, seen = counting_op([])
        x = tensor([1.0])
        op(x)
        assert _rt.set_context(7) == 0
        op(x)
        op(x)
        assert _rt.set_context(0) == 7
        op(x)
        assert len(seen) == 2

    def test_the_value_of_a_scalar_is_not(self):
        before = ops.add.misses
        x = tensor(np.zeros(11))
        got = [ops.add.op(x, v).tolist()[0] for v in (1.5, 2.5, -3.0)]
        assert got == [1.5, 2.5, -3.0]
        assert ops.add.misses == before + 1
        ops.add.op(x, 1)
        assert ops.add.misses == before + 2

    def test_the_cache_is_bounded(self):
        op, seen = counting_op(["attr"])
        x = tensor([1.0])
        _rt.set_cache_limit(64)
        try:
            for i in range(1000):
                op(x, i)
                op(x, "often")
        finally:
            _rt.set_cache_limit(4096)
        assert op.cached_calls <= 64
        assert sum(args[1] == "often" for args in seen) == 1

    def test_many_objects_as_attributes_do_not_pile_up(self):
        op, seen = counting_op(["attr"])
        x = tensor([1.0])

        class Token:
            pass

        first = Token()
        alive = weakref.ref(first)
        op(x, first)
        del first
        for _ in range(5000):
            op(x, Token())
        seen.clear()
        gc.collect()
        assert alive() is None

    def test_a_miss_handler_may_call_the_op_itself(self):
        depth = []

        def miss(op, args):
            depth.append(args)
            if len(depth) < 3:
                op(tensor(np.zeros(len(depth))))
            lay = ops.layouts_of([np.zeros(args[0].shape, "float32")])
            return _rt.Entry(ops.host_plan(lay, lay, lambda x: (x,)), None, [], [], None)

        op = _rt.Op("nested", [X], miss)
        assert op(tensor(np.zeros(9))).shape == [9]
        assert op.cached_calls == 3

    def test_clearing_the_caches_during_a_call_is_safe(self):
        lay = ops.layouts_of([np.zeros(2, "float32")])

        def forget(x):
            _rt.clear_caches()
            gc.collect()
            return (x,)

        op = _rt.Op("forgetful", [X], lambda op, args: _rt.Entry(ops.host_plan(lay, lay, forget), None, [], [], None))
        x = tensor([1.0, 2.0])
        for _ in range(3):
            assert op(x).tolist() == [1.0, 2.0]

    def test_a_dead_layout_does_not_lend_its_address(self):
        op, seen = counting_op([])
        for n in range(1, 200):
            assert op(tensor(np.zeros(n))).shape == [n]
        assert len(seen) == 199


class TestScalars:
    @pytest.mark.parametrize(
        ("value", "dtype"), [(True, "bool"), (3, "int64"), (-(2**63), "int64"), (2.5, "float64"), (1 + 2j, "complex128")]
    )
    def test_python_numbers_become_zero_d_tensors(self, value, dtype):
        got = []
        lay = [ops.layout([], dtype)]

        def run(x):
            got.append((x.dtype.name, x.shape, x.item()))
            return (x,)

        op = _rt.Op("scalar", [X], lambda op, args: _rt.Entry(ops.host_plan(lay, lay, run), None, [], [], None))
        assert op(value).item() == value
        assert got == [(dtype, (), value)]

    def test_an_int_beyond_64_bits_is_an_error(self):
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            ops.add.op(tensor(1, dtype="int64"), 2**70)


class TestResults:
    def structured(self, structure, count):
        lay = [ops.layout([2])]
        plan = ops.host_plan(lay, lay * count, lambda x: tuple(x + k for k in range(count)))
        return _rt.Op("many", [X], lambda op, args: _rt.Entry(plan, structure, [], [], None))(tensor([0.0, 0.0]))

    def values(self, result):
        if isinstance(result, (list, tuple)):
            return type(result)(self.values(r) for r in result)
        return None if result is None else result.tolist()[0]

    @pytest.mark.parametrize(
        ("structure", "count", "expected"),
        [
            (None, 2, 0.0),
            (("tuple", 2), 3, (0.0, 1.0)),
            (("list", 3), 3, [0.0, 1.0, 2.0]),
            (("tuple", 2, None, ("list", 2)), 3, (0.0, [1.0, 2.0])),
            (("list", 2, "none", None), 1, [None, 0.0]),
            (("tuple", 0), 1, ()),
        ],
    )
    def test_the_structure_says_how_outputs_are_returned(self, structure, count, expected):
        assert self.values(self.structured(structure, count)) == expected

    @pytest.mark.parametrize("structure", ["all", ("set", 2), ("tuple", -1), ("tuple", 9), ("tuple", 2, None), 3])
    def test_a_wrong_structure_is_refused(self, structure):
        with pytest.raises((ValueError, TypeError)):
            self.structured(structure, 3)


class TestSymbolic:
    def test_symbolic_values_go_to_static(self):
        class Symbol:
            pass

        _rt.set_symbolic_type(Symbol)
        op, seen = recording_op([X, ("shape", "attr", None)])
        op.static = lambda op, args: ("static", args)
        s, x = Symbol(), tensor([1.0])
        assert op(s) == ("static", (s, None))
        assert op(x, [2, s]) == ("static", (x, [2, s]))
        assert op(x) == (x, None)
        assert seen == [(x, None)]

    def test_tracing_sends_every_call_to_static(self):
        op, seen = recording_op([X])
        op.static = lambda op, args: ("static", args)
        x = tensor([1.0])
        assert _rt.set_tracing(True) is False
        try:
            assert op(x) == ("static", (x,))
        finally:
            assert _rt.set_tracing(False) is True
        assert not seen

    def test_an_op_without_a_static_form_says_so(self):
        op, _ = recording_op([X])
        _rt.set_tracing(True)
        try:
            with pytest.raises(TypeError, match="has no form for static programs"):
                op(tensor([1.0]))
        finally:
            _rt.set_tracing(False)


class TestOpObject:
    def test_it_has_the_attributes_of_a_function(self):
        op, _ = recording_op([X])
        op.__doc__ = "The docs."
        op.__wrapped__ = len
        op.__module__ = "somewhere"
        assert (op.__name__, op.__qualname__, op.__doc__, op.__module__) == ("recorder", "recorder", "The docs.", "somewhere")
        assert inspect.unwrap(op) is len
        assert "recorder(x)" in repr(op)

    def test_it_binds_like_a_method(self):
        op, _ = recording_op([X, ("axis", "attr", -1)])

        class Holder(_rt.Tensor):
            pass

        Holder.softmax = op
        h = Holder(tensor([1.0]))
        assert h.softmax(2) == (h, 2)
        bound = h.softmax
        assert bound(axis=3) == (h, 3)
        assert Holder.softmax is op

    def test_it_copies_and_pickles_by_name(self):
        op, _ = recording_op([X])
        assert copy.deepcopy(op) is op
        with pytest.raises(pickle.PicklingError):
            pickle.dumps(op)

    def test_it_can_be_collected(self):
        def make():
            op, _ = counting_op([])
            op.miss = lambda o, a, op=op: None
            return weakref.ref(op)

        alive = make()
        gc.collect()
        assert alive() is None

    @pytest.mark.parametrize(
        ("parameters", "error"),
        [([("x",)], TypeError), ([("x", "what", None)], ValueError), (3, TypeError), ([("x", "attr", None)] * 65, ValueError)],
    )
    def test_wrong_parameters_are_refused(self, parameters, error):
        with pytest.raises(error):
            _rt.Op("wrong", parameters, None)

    def test_an_alias_must_name_a_parameter(self):
        with pytest.raises(ValueError, match="which is no parameter"):
            _rt.Op("wrong", [X], None, aliases={"input": "y"})


class TestProfile:
    def test_calls_are_recorded_between_start_and_stop(self):
        x = tensor([1.0])
        ops.add.op(x, x)
        _rt.start_profile()
        ops.add.op(x, x)
        ops.multiply.op(x, x)
        calls = _rt.stop_profile()
        ops.add.op(x, x)
        assert [c[0] for c in calls] == ["add", "multiply"]
        assert all(begin <= end for _, begin, end, _ in calls)
        assert _rt.stop_profile() == []
