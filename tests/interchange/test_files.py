"""Model and parameter files: round trips, and refusal of what is damaged, cut off, hostile or of another format."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from sampan.base.errors import ArgumentError
from sampan.framework import MissingFileError
from sampan.framework.interchange import combined, pir_json, program_desc
from sampan.framework.interchange.model import Attribute, Block, Model, ModelFileError, Operation, Variable
from sampan.framework.interchange.run import Runner
from sampan.framework.interchange.saved import parse_model, read_saved
from sampan.tensor import to_tensor

EVERY_KIND = {
    "int": -3, "float": 0.5, "string": "ü", "ints": [1, -2], "floats": [0.25], "strings": ["a", ""], "bool": True, "bools": [True, False],
    "block": 1, "long": -(2**62), "blocks": [1], "longs": [2**40], "float64s": [1e300], "var": "x", "vars": ["x", "y"], "float64": 1e-300,
    "scalar": 2**40, "scalars": [True, 3, 1.5, 2 - 3j],
}  # fmt: skip


def small_model():
    variables = {
        "x": Variable("x", "tensor", "float32", (-1, 4)),
        "w": Variable("w", "tensor", "bfloat16", (4, 2), is_persistable=True, is_parameter=True),
        "a": Variable("a", "array", "int64", (2,), stops_gradient=True),
        "feed": Variable("feed", "feed", is_persistable=True),
        "scopes": Variable("scopes", "scopes"),
    }
    op = Operation(
        "made_up", {"X": ["x"], "None": [], "W": ["w", "x"]}, {"Out": ["x"]}, {k: Attribute(k, v) for k, v in EVERY_KIND.items()}
    )
    return Model("program", [Block(-1, variables, [op]), Block(0)], 3003001, {"made_up": 2})


def test_a_program_round_trips_with_attributes_of_every_kind():
    model = small_model()
    content = program_desc.write_model(model)
    assert program_desc.read_model(content) == model
    assert program_desc.write_model(program_desc.read_model(content)) == content


def test_a_program_cut_off_anywhere_is_refused_or_shorter():
    content = program_desc.write_model(small_model())
    whole = program_desc.read_model(content)
    refused = 0
    for length in range(len(content)):
        try:
            assert program_desc.read_model(content[:length]) != whole
        except ModelFileError:
            refused += 1
    assert refused > len(content) // 2


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, b"PK\x03\x04 a zip", bytes(range(256)) * 4, b"\xff" * 100])
def test_other_bytes_are_no_program(content):
    with pytest.raises(ModelFileError):
        program_desc.read_model(content)


@pytest.mark.parametrize(("edit", "says"), [
    (lambda m: m.blocks[0].operations[0].attributes.update(block=Attribute("block", 0)), "runs block 0"),
    (lambda m: m.blocks[0].operations[0].attributes.update(block=Attribute("block", 9)), "runs block 9"),
    (lambda m: setattr(m.blocks[1], "parent", 1), "has the parent 1"),
])  # fmt: skip
def test_blocks_that_do_not_exist_or_hold_themselves_are_refused(edit, says):
    model = small_model()
    edit(model)
    with pytest.raises(ModelFileError, match=says):
        program_desc.read_model(program_desc.write_model(model))


def test_a_pir_model_is_no_program_desc():
    with pytest.raises(ArgumentError, match="pir"):
        program_desc.write_model(Model("pir"))


ARRAYS = {
    "b": np.arange(6, dtype="float32").reshape(2, 3),
    "a": np.array(3, "int64"),
    "c": np.zeros((0, 4), "bool"),
    "d": np.arange(4).astype(ml_dtypes.bfloat16),
}


def test_parameters_round_trip_in_the_order_of_their_names():
    content = combined.write_parameters(ARRAYS)
    found = combined.read_parameters(io.BytesIO(content), ["d", "c", "b", "a"])
    assert list(found) == ["a", "b", "c", "d"]
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
        assert found[name].shape == array.shape


@pytest.mark.parametrize(("names", "says"), [("abcde", "e is the first that is missing"), ("abc", "bytes follow")])
def test_parameters_of_another_model_are_refused(names, says):
    content = combined.write_parameters(ARRAYS)
    with pytest.raises(ModelFileError, match=says):
        combined.read_parameters(io.BytesIO(content), names)


def test_parameters_cut_off_anywhere_are_refused():
    content = combined.write_parameters(ARRAYS)
    for length in range(len(content)):
        with pytest.raises(ModelFileError):
            combined.read_parameters(io.BytesIO(content[:length]), ARRAYS)


def test_a_tensor_that_claims_to_be_huge_costs_no_memory():
    described = b"\x08\x05" + b"\x10\xff\xff\xff\xff\x7f" * 2
    content = struct.pack("<IQIi", 0, 0, 0, len(described)) + described + bytes(64)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="cut off"):
        combined.read_parameters(io.BytesIO(content), ["w"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_an_array_of_another_shape_or_dtype_than_declared_is_named():
    declared = {"w": Variable("w", "tensor", "float32", (-1, 3)), "v": Variable("v", "tensor", "int64", (2,))}
    combined.check_shapes({"w": np.zeros((2, 3), "float32"), "v": np.zeros(2, "int64")}, declared, "the file")
    with pytest.raises(ModelFileError, match=r"w is float32\[2, 4\], the model says float32\[-1, 3\]"):
        combined.check_shapes({"w": np.zeros((2, 4), "float32")}, declared, "the file")
    with pytest.raises(ModelFileError, match=r"v is int32\[2\]"):
        combined.check_shapes({"v": np.zeros(2, "int32")}, declared, "the file")


def tensor_type(dtype, shape):
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{dtype}"}, shape, "NCHW", [], 0]}


def pir_document():
    """A program of PaddlePaddle 3: the matrix product of what is fed and a parameter, plus infinity."""
    attribute = {"name": ("0.a_str", "x"), "shape": ("1.a_intarray", [-1, 2]), "dtype": ("1.a_dtype", "float32")}
    ops = [
        {"#": "p", "A": [0, 1, 1, "w"], "DA": [], "O": {"%": 1, "TT": tensor_type("f32", [2, 2])}, "OA": [1, 0, 1], "QA": []},
        {
            "#": "1.data", "A": [{"AT": {"#": k, "D": v}, "N": n} for n, (k, v) in attribute.items()], "I": [],
            "O": [{"%": 2, "TT": tensor_type("f32", [-1, 2])}],
        },
        {
            "#": "1.matmul", "A": [{"AT": {"#": "0.a_bool", "D": False}, "N": n} for n in ("transpose_x", "transpose_y")],
            "I": [{"%": 2}, {"%": 1}], "O": [{"%": 3, "TT": tensor_type("f32", [-1, 2])}],
        },
        {
            "#": "1.full",
            "A": [
                {"AT": {"#": "1.a_intarray", "D": [1]}, "N": "shape"}, {"AT": {"#": "0.a_f64", "VD": "INF"}, "N": "value"},
                {"AT": {"#": "1.a_dtype", "D": "float32"}, "N": "dtype"},
            ],
            "I": [], "O": [{"%": 4, "TT": tensor_type("f32", [1])}],
        },
        {"#": "1.add", "A": [], "I": [{"%": 3}, {"%": 4}], "O": [{"%": 5, "TT": tensor_type("f32", [-1, 2])}]},
        {"#": "1.fetch", "A": [{"AT": {"#": "0.a_i32", "D": 0}, "N": "col"}], "I": [{"%": 5}], "O": [{"%": 6, "TT": tensor_type("f32", [-1, 2])}]},
    ]  # fmt: skip
    return {
        "base_code": {"magic": "pir", "version": 1, "trainable": True},
        "program": {"regions": [{"#": "region_0", "blocks": [{"#": "block_0", "args": [], "ops": ops}]}]},
    }


def test_a_json_program_is_read():
    model = pir_json.read_model(json.dumps(pir_document()).encode())
    assert model.dialect == "pir"
    assert model.feeds() == ["x"]
    assert model.fetches() == ["%5"]
    assert model.parameters()["w"].shape == (2, 2)
    assert [op.kind for op in model.operations()] == ["data", "matmul", "full", "add", "fetch"]
    assert model.blocks[0].operations[2].value("value") == float("inf")


def damaged_documents():
    yield "no JSON", b'{"base_code": '
    yield "deeply nested", b"[" * 100_000
    yield "a list", b"[]"
    yield "a number of a million digits", b'{"base_code": ' + b"1" * 1_000_000 + b"}"
    for what, edit in {
        "another magic word": lambda d: d["base_code"].update(magic="onnx"),
        "no regions": lambda d: d["program"].update(regions=[]),
        "two blocks": lambda d: d["program"]["regions"][0]["blocks"].append({"args": [], "ops": []}),
        "ops that are text": lambda d: d["program"]["regions"][0]["blocks"][0].update(ops="ops"),
        "an op without a kind": lambda d: d["program"]["regions"][0]["blocks"][0]["ops"][2].pop("#"),
        "a parameter whose name is a number": lambda d: d["program"]["regions"][0]["blocks"][0]["ops"][0].update(A=[0, 1, 1, 5]),
        "a type without sizes": lambda d: d["program"]["regions"][0]["blocks"][0]["ops"][0]["O"]["TT"].update(D=[]),
        "an attribute without a value": lambda d: d["program"]["regions"][0]["blocks"][0]["ops"][1]["A"][0].update(
            AT={"#": "0.a_str"}
        ),
    }.items():
        document = pir_document()
        edit(document)
        yield what, json.dumps(document).encode()
    deep = pir_document()
    inner = deep["program"]["regions"][0]
    for _ in range(80):
        inner = {"#": "r", "blocks": [{"args": [], "ops": [{"#": "1.if", "A": [], "I": [], "O": [], "regions": [inner]}]}]}
    deep["program"]["regions"][0] = inner
    yield "regions in regions", json.dumps(deep).encode()


@pytest.mark.parametrize(("what", "content"), list(damaged_documents()), ids=lambda v: v if isinstance(v, str) else "")
def test_a_damaged_json_program_is_refused(what, content):
    with pytest.raises(ModelFileError):
        pir_json.read_model(content)


def test_the_format_is_told_by_the_content():
    assert parse_model(json.dumps(pir_document()).encode()).dialect == "pir"
    assert parse_model(program_desc.write_model(small_model())).dialect == "program"


def test_a_saved_model_that_is_not_there_is_named(tmp_path):
    with pytest.raises(MissingFileError, match=r"none of .*model.pdmodel.*model.json"):
        read_saved(str(tmp_path / "model"))
    (tmp_path / "model.json").write_text(json.dumps(pir_document()))
    with pytest.raises(MissingFileError, match=r"model.pdiparams"):
        read_saved(str(tmp_path / "model"))


def test_a_saved_model_runs(tmp_path):
    from sampan.tensor import to_tensor

    (tmp_path / "model.json").write_text(json.dumps(pir_document()))
    (tmp_path / "model.pdiparams").write_bytes(combined.write_parameters({"w": np.eye(2, dtype="float32") * 2}))
    (result,) = read_saved(str(tmp_path / "model")).runner()(to_tensor(np.ones((3, 2), "float32")))
    assert result.shape == [3, 2]
    assert np.isposinf(result.numpy()).all()


def test_names_that_are_no_text_are_refused():
    content = program_desc.write_model(Model("program", [Block(variables={"weights": Variable("weights", dtype="float32")})]))
    with pytest.raises(ModelFileError, match="which is no text"):
        program_desc.read_model(content.replace(b"weights", b"weight\xff"))


def test_a_feed_that_goes_nowhere_is_refused():
    model = Model("program", [Block(operations=[Operation("feed", {"X": ["feed"]}, {})])])
    with pytest.raises(ModelFileError, match="feed of block 0 has no output"):
        program_desc.read_model(program_desc.write_model(model))


def test_numbers_out_of_range_are_refused(tmp_path):
    document = {"base_code": {"magic": "pir", "version": float("inf")}, "program": {"regions": [{"blocks": [{"ops": []}]}]}}
    with pytest.raises(ModelFileError, match="OverflowError"):
        pir_json.read_model(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("op", "says"),
    [
        (Operation("conditional_block", {"Cond": []}, {}, {}), "conditional_block lacks"),
        (Operation("while", {}, {}, {}), "while lacks"),
        (Operation("lod_array_length", {}, {}, {}), "lod_array_length lacks"),
    ],
)
def test_operations_that_lack_something_are_named(op, says):
    with pytest.raises((ModelFileError, ArgumentError), match=says):
        Runner(Model("program", [Block(operations=[op])]), {})()


def test_an_array_is_not_written_at_any_place():
    op = Operation("write_to_array", {"X": ["x"], "I": ["i"]}, {"Out": ["out"]})
    block = Block(
        operations=[op], variables={n: Variable(n, is_persistable=True) for n in ("x", "i")} | {"out": Variable("out", "array")}
    )
    for place in (-1, 1 << 40):
        with pytest.raises(ArgumentError, match=f"the place is {place}"):
            Runner(Model("program", [block]), {"x": to_tensor([1.0]), "i": to_tensor([place])})()
