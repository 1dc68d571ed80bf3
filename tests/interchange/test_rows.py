"""The table of operators and its use: forms, unknown operators and attributes, sizes from tensors, control flow, arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sampan.base.errors import ArgumentError, UnsupportedError
from sampan.framework.interchange.model import Attribute, Block, Model, Operation, Variable
from sampan.framework.interchange.rows import READERS, WRITERS, Binding, parse_form
from sampan.framework.interchange.run import Runner, UnknownOperatorsError
from sampan.ops import OPERATORS
from sampan.tensor import to_tensor


def test_a_form_says_slots_attributes_results_and_fixed_values():
    form = parse_form("kind(X*=x, Axis:i=axis) {a:f=b, mode:s='max', c} -> Out, Mask", "ours", (), True)
    assert form.kind == "kind"
    assert form.operands == (Binding("X", "x", "", True), Binding("Axis", "axis", "i", False))
    assert form.attributes == (Binding("a", "b", "f"), Binding("c", "c"))
    assert form.results == ("Out", "Mask")
    assert form.fixed == {"mode": "max"}


def test_what_a_form_leaves_out_is_as_in_ours():
    assert parse_form("=", "exp", (Binding("X", "x"),), True).kind == "exp"
    assert parse_form("log10", "log", (Binding("X", "x"),), True).operands == (Binding("X", "x"),)


def test_a_form_that_cannot_be_read_is_a_fault():
    with pytest.raises(ValueError, match="cannot be read"):
        parse_form("kind(X -> Y", "ours", (), True)


def test_writers_are_of_operators_that_exist():
    assert set(WRITERS) <= set(OPERATORS)


def model_of(*operations, blocks=(), parameters=(), arrays=(), dialect="program"):
    """A model that is fed in0, in1 ... and whose last operation's first result is fetched."""
    variables = {name: Variable(name, "tensor", "float32", (2,), is_persistable=True) for name in parameters}
    variables |= {name: Variable(name, "array", "float32") for name in arrays}
    variables |= {
        n: Variable(n, "tensor", "float32")
        for op in operations
        for names in op.outputs.values()
        for n in names
        if n not in variables
    }
    fed = sorted({n for op in operations for names in op.inputs.values() for n in names if n.startswith("in")})
    feeds = [Operation("feed", {"X": ["feed"]}, {"Out": [n]}, {"col": Attribute("int", k)}) for k, n in enumerate(fed)]
    result = next(iter(operations[-1].outputs.values()))[0]
    fetch = Operation("fetch", {"X": [result]}, {"Out": ["fetch"]}, {"col": Attribute("int", 0)})
    return Model(dialect, [Block(-1, variables, [*feeds, *operations, fetch]), *blocks])


def op(kind, inputs, outputs, **attributes):
    def of(value):
        sample = value[0] if isinstance(value, list) and value else value
        kind = {bool: "bool", int: "int", float: "float", str: "string", list: "int"}[type(sample)]
        return Attribute(f"{kind}s" if isinstance(value, list) else kind, value)

    made = {n: v if isinstance(v, Attribute) else of(v) for n, v in attributes.items()}
    return Operation(kind, {s: v.split() for s, v in inputs.items()}, {s: v.split() for s, v in outputs.items()}, made)


def run(model, *arrays, **parameters):
    return Runner(model, {k: to_tensor(v) for k, v in parameters.items()})(*[to_tensor(np.asarray(a)) for a in arrays])[0].numpy()


def test_all_unknown_operators_are_named_in_one_error():
    model = model_of(
        op("relu", {"X": "in0"}, {"Out": "a"}), op("zebra", {"X": "a"}, {"Out": "b"}), op("apple", {"X": "b"}, {"Out": "c"})
    )
    with pytest.raises(UnknownOperatorsError, match=r"2 operators that are not known: apple, zebra") as caught:
        Runner(model, {})
    assert caught.value.names == ["apple", "zebra"]


def test_an_attribute_without_a_meaning_here_is_named_and_never_ignored():
    model = model_of(op("relu", {"X": "in0"}, {"Out": "a"}, slope=0.5))
    with pytest.raises(UnsupportedError, match=r"relu.*\n?.*slope=0.5"):
        run(model, np.ones(2, "float32"))


def test_an_input_without_a_meaning_here_is_named():
    model = model_of(op("relu", {"X": "in0", "Y": "in1"}, {"Out": "a"}))
    with pytest.raises(UnsupportedError, match="input Y"):
        run(model, np.ones(2, "float32"), np.ones(2, "float32"))


def test_bookkeeping_attributes_are_ignored():
    model = model_of(op("relu", {"X": "in0"}, {"Out": "a"}, op_role=1, op_callstack=["here"], use_mkldnn=True, op_device="cpu"))
    assert run(model, np.array([-1.0, 2.0], "float32")).tolist() == [0, 2]


def test_missing_parameters_are_named():
    model = model_of(op("elementwise_add", {"X": "in0", "Y": "w"}, {"Out": "a"}, axis=-1), parameters=["w"])
    with pytest.raises(ArgumentError, match="no value for w"):
        Runner(model, {})


def test_the_number_of_inputs_is_checked():
    model = model_of(op("relu", {"X": "in0"}, {"Out": "a"}))
    with pytest.raises(ArgumentError, match="takes 1 inputs, got 2"):
        run(model, np.ones(2, "float32"), np.ones(2, "float32"))


def test_an_operand_is_placed_at_the_axis_that_the_older_format_names():
    x, y = np.arange(24, dtype="float32").reshape(2, 3, 4), np.array([10.0, 20.0, 30.0], "float32")
    model = model_of(op("elementwise_add", {"X": "in0", "Y": "in1"}, {"Out": "a"}, axis=1))
    assert (run(model, x, y) == x + y[:, None]).all()


def test_sizes_may_come_from_a_tensor():
    model = model_of(
        op("shape", {"Input": "in0"}, {"Out": "s"}),
        op("slice", {"Input": "s"}, {"Out": "n"}, axes=[0], starts=[1], ends=[2], decrease_axis=[0]),
        op("fill_constant", {}, {"Out": "m"}, shape=[1], value=-1.0, dtype=2),
        op("reshape2", {"X": "in0", "ShapeTensor": "n m"}, {"Out": "r"}, shape=[1, 2]),
    )
    assert run(model, np.zeros((4, 6), "float32")).shape == (6, 4)


def test_a_slice_drops_axes_and_takes_large_ends():
    model = model_of(
        op("slice", {"Input": "in0"}, {"Out": "a"}, axes=[0, 1], starts=[1, -2], ends=[2, 2**31 - 1], decrease_axis=[0])
    )
    x = np.arange(12, dtype="float32").reshape(3, 4)
    assert (run(model, x) == x[1, -2:]).all()


def test_a_while_loop_writes_the_variables_of_its_parent():
    body = Block(0, {"step": Variable("step")}, [
        op("elementwise_add", {"X": "total", "Y": "in0"}, {"Out": "total"}, axis=-1),
        op("increment", {"X": "i"}, {"Out": "i"}, step=1.0),
        op("less_than", {"X": "i", "Y": "in1"}, {"Out": "go"}),
    ])  # fmt: skip
    model = model_of(
        op("fill_constant", {}, {"Out": "i"}, shape=[1], value=0.0, dtype=3),
        op("assign", {"X": "in0"}, {"Out": "total"}),
        op("less_than", {"X": "i", "Y": "in1"}, {"Out": "go"}),
        Operation(
            "while", {"X": ["in0", "i"], "Condition": ["go"]}, {"Out": ["total", "i"]}, {"sub_block": Attribute("block", 1)}
        ),
        blocks=[body],
    )
    model.blocks[0].variables["go"] = Variable("go")
    assert run(model, np.array([1.0, 2.0], "float32"), np.array([3], "int64")).tolist() == [4, 8]


def test_arrays_are_written_read_and_joined():
    index = [op("fill_constant", {}, {"Out": f"i{k}"}, shape=[1], value=float(k), dtype=3) for k in (0, 1)]
    model = model_of(
        *index,
        op("write_to_array", {"X": "in0", "I": "i0"}, {"Out": "list"}),
        op("write_to_array", {"X": "in1", "I": "i1"}, {"Out": "list"}),
        op("tensor_array_to_tensor", {"X": "list"}, {"Out": "a"}, axis=0, use_stack=True),
        arrays=["list"],
    )
    assert run(model, np.array([1.0], "float32"), np.array([2.0], "float32")).tolist() == [[1], [2]]


def test_a_name_that_nothing_has_set_is_named():
    with pytest.raises(ArgumentError, match="ghost is read before"):
        run(model_of(op("elementwise_add", {"X": "in0", "Y": "ghost"}, {"Out": "a"}, axis=-1)), np.ones(2, "float32"))


@pytest.mark.parametrize("dialect", ["program", "pir"])
def test_every_row_takes_its_operands_as_parameters(dialect):
    for (found, kind), rows in READERS.items():
        for row in rows if found == dialect else ():
            form = row.forms[dialect]
            strangers = {b.parameter for b in (*form.operands, *form.attributes)} - set(row.parameters)
            assert not strangers, (kind, strangers)
