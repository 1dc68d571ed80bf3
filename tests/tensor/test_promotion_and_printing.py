"""Which dtype results have, what to_tensor makes of its data, and how tensors print, against Paddle's rules."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import sampan as paddle
from sampan.base import dtypes

INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
ALL = ["bool", *INTEGERS, *FLOATS, *COMPLEX]


def test_the_list_of_dtypes_is_the_runtimes():
    assert tuple(paddle._rt.dtypes) == dtypes.NAMES


def tensor(dtype):
    return paddle.to_tensor(np.ones([2]), dtype=dtype)


@pytest.mark.parametrize("a", ALL)
@pytest.mark.parametrize("b", ALL)
def test_two_tensors_promote_to_what_holds_both_and_in_either_order(a, b):
    found = (tensor(a) + tensor(b)).dtype.name
    assert found == (tensor(b) + tensor(a)).dtype.name
    if a in FLOATS + COMPLEX and b in FLOATS + COMPLEX and not {a, b} >= {"float16", "bfloat16"}:
        wide = np.promote_types(*(np.float32 if n == "bfloat16" else np.float32 if n == "float16" else n for n in (a, b)))
        assert found == (a if a == b else "bfloat16" if {a, b} == {"bfloat16"} else wide.name)
    elif a in FLOATS + COMPLEX or b in FLOATS + COMPLEX:
        assert found == ("float32" if {a, b} == {"float16", "bfloat16"} else a if a in FLOATS + COMPLEX else b)
    else:
        assert found == np.promote_types(a, b).name


@pytest.mark.parametrize("dtype", ALL)
def test_python_scalars_lift_the_kind_and_never_the_width(dtype):
    x = tensor(dtype)
    is_exact = dtype in ["bool", *INTEGERS]
    assert (x + 2).dtype.name == (2 + x).dtype.name == ("int64" if dtype == "bool" else dtype)
    assert (x + 2.5).dtype.name == ("float32" if is_exact else dtype)
    assert (x + 1j).dtype.name == ("complex128" if dtype in ("float64", "complex128") else "complex64")
    assert (x + True).dtype.name == dtype
    assert (x / 2).dtype.name == ("float32" if is_exact else dtype)


@settings(max_examples=60, deadline=None)
@given(arrays.mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=3))
def test_broadcasting_follows_numpy(shapes):
    given_arrays = [np.arange(np.prod(s), dtype="float64").reshape(s) + 1 for s in shapes.input_shapes]
    x, y, z = (paddle.to_tensor(a, stop_gradient=False) for a in given_arrays)
    found = x * y + z
    np.testing.assert_array_equal(found.numpy(), given_arrays[0] * given_arrays[1] + given_arrays[2])
    assert paddle.broadcast_shapes(*shapes.input_shapes) == list(shapes.result_shape)
    found.sum().backward()
    assert [t.grad.shape for t in (x, y, z)] == [list(s) for s in shapes.input_shapes]
    np.testing.assert_array_equal(z.grad.numpy(), np.full(z.shape, found.size // max(z.size, 1)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.integers(0, 3), max_size=3))
def test_shapes_that_do_not_broadcast_raise(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match=r"broadcast|fit|equal"):
            paddle.to_tensor(np.zeros(a, "float32")) + paddle.to_tensor(np.zeros(b, "float32"))


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int64"), (1.5, "float32"), (True, "bool"), (1j, "complex64"), ([1, 2.5], "float32"), ([True, 2], "int64"), ([1, 2j], "complex64"),
        ([], "float32"), ([[], []], "float32"), (np.float64(2), "float64"), (np.int32(2), "int32"), (np.array([1j]), "complex128"),
        (np.zeros(2, "int16"), "int16"), (np.float16(1), "float16"), (np.zeros(2, ml_dtypes.bfloat16), "bfloat16"),
        (np.zeros(2, "uint16"), "bfloat16"), (range(3), "int64"), ((1, 2), "int64"), ([np.array([1.5, 2.5])], "float32"),
    ],
)  # fmt: skip
def test_the_dtype_of_data(data, dtype):
    found = paddle.to_tensor(data)
    assert found.dtype.name == dtype
    assert found.shape == list(np.shape(data))
    assert found.stop_gradient


def test_lists_of_tensors_and_numbers():
    a, b = paddle.to_tensor([1]), paddle.to_tensor([2.1]).astype("int64")
    assert paddle.to_tensor([a, b, [1]], dtype="float32").tolist() == [[1.0], [2.0], [1.0]]
    assert paddle.to_tensor([paddle.to_tensor(1), 2]).tolist() == [1, 2]
    assert paddle.to_tensor([paddle.to_tensor([1.0, 2.0]), paddle.to_tensor([3.0, 4.0])]).shape == [2, 2]


def test_to_tensor_copies_arrays_and_tensors():
    array = np.zeros(2, "float32")
    for source in (array, paddle.to_tensor(array)):
        made = paddle.to_tensor(source)
        made[0] = 1.0
        assert source[0].item() == 0.0


@pytest.mark.parametrize("order", ["C", "F"])
def test_to_tensor_reads_arrays_of_any_layout(order):
    array = np.asarray(np.arange(24, dtype="int32").reshape(2, 3, 4), order=order)
    for view in (
        array,
        array[:, ::-1],
        array.transpose(2, 0, 1),
        array[..., 1],
        np.broadcast_to(array[0], [2, 3, 4]),
        array.astype(">i4"),
    ):
        np.testing.assert_array_equal(paddle.to_tensor(view).numpy(), view)


def test_bits_of_bfloat16_round_trip_through_numpy():
    x = paddle.to_tensor([1.0, -2.5, 3.140625], dtype="bfloat16")
    assert x.numpy().dtype == np.uint16
    assert paddle.to_tensor(x.numpy()).astype("float32").tolist() == [1.0, -2.5, 3.140625]


def test_float64_rounds_once_on_its_way_to_bfloat16():
    data = [1 + 2**-8, 1 + 2**-8 + 2**-20, 1 + 3 * 2**-8]
    assert paddle.to_tensor(data, dtype="bfloat16").astype("float64").tolist() == [1.0, 1.0078125, 1.015625]
    assert paddle.to_tensor(np.asarray(data)).astype("bfloat16").astype("float64").tolist() == [1.0, 1.0078125, 1.015625]


@pytest.mark.parametrize(
    "data",
    [
        None,
        "abc",
        {},
        {1},
        object(),
        b"x",
        ["a"],
        [None],
        [[1], [1, 2]],
        np.array(["a"]),
        np.array([None]),
        (i for i in [1]),
        2**64,
        [2**70],
    ],
)
def test_what_is_no_data_raises(data):
    with pytest.raises(TypeError):
        paddle.to_tensor(data)


@pytest.mark.parametrize(
    "dtype", [float, int, bool, complex, "float", "int", np.float32, np.dtype("int8"), "f4", paddle.half, paddle.double, "uint16"]
)
def test_dtypes_by_every_name(dtype):
    names = {float: "float64", int: "int64", bool: "bool", complex: "complex128", "float": "float64", "int": "int64", np.float32: "float32",
             np.dtype("int8"): "int8", "f4": "float32", paddle.half: "float16", paddle.double: "float64", "uint16": "bfloat16"}  # fmt: skip
    assert paddle.to_tensor([1]).astype(dtype).dtype.name == names[dtype]


@pytest.mark.parametrize(
    "dtype", ["", "float3", "object", "S", "a", "datetime64", object, 3, None, [], "longdouble", np.datetime64]
)
def test_what_is_no_dtype_raises(dtype):
    with pytest.raises(TypeError, match=r"dtype|missing"):
        paddle.to_tensor([1]).astype(dtype)


def test_casts_of_values_without_an_equal_are_fixed():
    x = paddle.to_tensor([float("nan"), float("inf"), -float("inf"), 1.9, -1.9])
    limits = np.iinfo("int32")
    assert x.astype("int32").tolist() == [0, limits.max, limits.min, 1, -1]
    assert x.astype("bool").tolist() == [True] * 5


HEAD = "Tensor(shape={}, dtype={}, place=Place(cpu), stop_gradient=True,\n       {})"


@pytest.mark.parametrize(
    ("data", "dtype", "text"),
    [
        ([], "float32", "[]"),
        (3, "float32", "3."),
        (2.5, "float32", "2.50000000"),
        ([1, -2, 300], "float32", "[ 1. , -2. , 300.]"),
        ([1e-8, 1e8], "float32", "[0.00000001, 100000000.]"),
        ([float("nan"), 1, float("inf")], "float32", "[nan , 1.  , inf.]"),
        ([-float("inf"), 2.5], "float32", "[-inf.     , 2.50000000]"),
        ([-0.0, 1.5], "float32", "[-0.       , 1.50000000]"),
        ([1, -2, 300], "int64", "[ 1 , -2 , 300]"),
        ([255, 0], "uint8", "[255, 0  ]"),
        ([True, False], "bool", "[True , False]"),
        ([0.1, 1000.5], "float16", "[0.09997559   , 1000.50000000]"),
        ([1.5, 100000.25], "bfloat16", "[1.50000000, 99840.    ]"),
        ([1.5 - 2j, 0], "complex64", "[(1.50000000-2.00000000j), (0.00000000+0.00000000j)]"),
        (
            [1, -2, 300],
            "complex64",
            "[ (1.00000000+0.00000000j) , (-2.00000000+0.00000000j) ,\n        (300.00000000+0.00000000j)]",
        ),
        ([[[1, 2]], [[3, 4]]], "int64", "[[[1, 2]],\n\n        [[3, 4]]]"),
        (np.zeros([2, 0]), "float32", "[[],\n        []]"),
        (np.arange(1001), "float32", "[0.   , 1.   , 2.   , ..., 998. , 999. , 1000.]"),
    ],
)
def test_tensors_print_as_paddle_prints_them(data, dtype, text):
    x = paddle.to_tensor(data, dtype=dtype)
    assert repr(x) == str(x) == HEAD.format(list(x.shape), dtype, text)


def test_long_rows_break_and_large_tensors_are_summarised():
    lines = str(paddle.to_tensor(np.arange(100))).splitlines()
    assert lines[1] == "       [0 , 1 , 2 , 3 , 4 , 5 , 6 , 7 , 8 , 9 , 10, 11, 12, 13, 14, 15, 16, 17,"
    assert lines[-1] == "        90, 91, 92, 93, 94, 95, 96, 97, 98, 99])"
    text = str(paddle.to_tensor(np.arange(8000).reshape(20, 20, 20)))
    assert text.count("...") == 36 + 6 + 1
    assert "stop_gradient=False" in repr(paddle.to_tensor([1.0], stop_gradient=False))


def test_print_options():
    try:
        paddle.set_printoptions(precision=3)
        assert "[0.333, 20.  ]" in str(paddle.to_tensor([1 / 3, 20.0]))
        paddle.set_printoptions(sci_mode=True)
        assert "[3.333e-01, 2.000e+01, 0.000e+00]" in str(paddle.to_tensor([1 / 3, 20.0, 0.0]))
        paddle.set_printoptions(sci_mode=False, threshold=5, edgeitems=1)
        assert "[0., ..., 9.]" in str(paddle.to_tensor(np.arange(10.0)))
        paddle.set_printoptions(linewidth=40, threshold=1000, edgeitems=3)
        assert "[0.   , 0.333, 0.667, 1.   ,\n" in str(paddle.to_tensor(np.arange(20.0) / 3))
    finally:
        paddle.set_printoptions(precision=8, threshold=1000, edgeitems=3, sci_mode=False, linewidth=80)
    for wrong in ({"precision": "a"}, {"threshold": 1.5}, {"sci_mode": 1}):
        with pytest.raises(TypeError, match="set_printoptions"):
            paddle.set_printoptions(**wrong)


def test_numbers_format_and_convert():
    x = paddle.to_tensor(1.5)
    assert f"{x:.3f}" == "1.500"
    assert (int(x), float(x), bool(x), complex(x)) == (1, 1.5, True, 1.5 + 0j)
    assert [10, 20, 30][paddle.to_tensor(1)] == 20
    assert np.asarray(paddle.to_tensor([1.0])).dtype == np.float32
    for call in (int, float, bool, complex):
        with pytest.raises((TypeError, ValueError)):
            call(paddle.to_tensor([1.0, 2.0]))
    with pytest.raises(TypeError):
        [1, 2][paddle.to_tensor(1.0)]


def test_shapes_are_lists_that_print_as_sizes():
    shape = paddle.to_tensor([[1, 2]]).shape
    assert repr(shape) == "paddle.Size([1, 2])"
    assert shape == [1, 2]
    assert shape == (1, 2)
    assert [*shape, 3] == [1, 2, 3]
    assert repr(shape[:1]) == "paddle.Size([1])"
    assert shape.numel() == 2


def test_the_class_makes_a_tensor_of_arrays_and_lists():
    values = np.array([[1.5, 2.5]])
    made = paddle.Tensor(values)
    assert made.dtype == paddle.float64
    values[0, 0] = 9
    assert made.tolist() == [[1.5, 2.5]]
    assert made.stop_gradient
    assert paddle.Tensor([1, 2]).dtype == paddle.float32
    assert paddle.Tensor(value=np.array([1], "int32")).dtype == paddle.int32
    other = paddle.Tensor(values, place=paddle.CPUPlace(), persistable=True, name="mine", stop_gradient=False)
    assert (other.persistable, other.name, other.stop_gradient) == (True, "mine", False)
    assert paddle.Tensor().shape == [0]
    assert paddle.Tensor(paddle.ones([2])).tolist() == [1, 1]
    for wrong in ("a", 3.0, {}):
        with pytest.raises(TypeError, match=r"(?s)Tensor\(\): value is .*to_tensor"):
            paddle.Tensor(wrong)
    with pytest.raises(TypeError, match="dtyp"):
        paddle.Tensor(values, dtyp="float32")
