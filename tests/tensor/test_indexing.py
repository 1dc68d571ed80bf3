"""``x[...]`` and ``x[...] = v`` in every NumPy form: values, views and gradients against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sampan as paddle

EXAMPLES = settings(max_examples=120, deadline=None)


@st.composite
def basic_items(draw, size):
    """An int or a slice for an axis of this size."""
    if size and draw(st.booleans()):
        return draw(st.integers(-size, size - 1))
    bound = st.none() | st.integers(-size - 2, size + 2)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@st.composite
def integer_arrays(draw, size, shape):
    return (
        np.asarray(draw(st.lists(st.integers(-size, size - 1), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
        .reshape(shape)
        .astype(np.int64)
    )


@st.composite
def shapes_with_indices(draw):
    """A shape, and an index for it that mixes ints, slices, None, an ellipsis, integer arrays and bool masks."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    index_shape = draw(st.sampled_from([(), (1,), (3,), (2, 1)]))
    items = []
    axis = 0
    has_mask = False
    while axis < len(shape) and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(["basic", "basic", "none", "array", "list", "mask"]))
        if kind == "none":
            items.append(None)
            continue
        if kind == "mask" and not has_mask:
            width = draw(st.integers(1, min(2, len(shape) - axis)))
            bits = draw(
                st.lists(
                    st.booleans(),
                    min_size=int(np.prod(shape[axis : axis + width])),
                    max_size=int(np.prod(shape[axis : axis + width])),
                )
            )
            mask = np.asarray(bits, bool).reshape(shape[axis : axis + width])
            if index_shape in ((), (1,)) or mask.sum() == 1:
                items.append(mask)
                has_mask = True
                axis += width
                continue
        if kind == "array":
            items.append(draw(integer_arrays(shape[axis], index_shape)))
        elif kind == "list":
            items.append(draw(integer_arrays(shape[axis], (1,))).tolist())
        else:
            items.append(draw(basic_items(shape[axis])))
        axis += 1
    if draw(st.booleans()) and not any(isinstance(i, np.ndarray) and i.ndim == 0 for i in items):
        items.insert(draw(st.integers(0, len(items))), Ellipsis) if axis == len(items) else items.append(Ellipsis)
    return shape, tuple(items)


def as_tensors(index):
    """The index with its arrays as tensors."""
    return tuple(paddle.to_tensor(i) if isinstance(i, np.ndarray) else i for i in index)


def numbers(shape):
    return (np.arange(np.prod(shape), dtype="float32") + 1).reshape(shape)


@EXAMPLES
@given(shapes_with_indices(), st.booleans())
def test_reading_equals_numpy(case, uses_tensors):
    shape, index = case
    array = numbers(shape)
    try:
        expected = array[index]
    except IndexError:
        with pytest.raises(IndexError):
            paddle.to_tensor(array)[index]
        return
    found = paddle.to_tensor(array)[as_tensors(index) if uses_tensors else index]
    assert found.shape == list(expected.shape)
    np.testing.assert_array_equal(found.numpy(), expected)


@EXAMPLES
@given(shapes_with_indices())
def test_the_gradient_of_reading_counts_how_often_each_element_was_read(case):
    shape, index = case
    array = numbers(shape)
    try:
        picked = array[index]
    except IndexError:
        return
    weight = numbers(picked.shape) if picked.size else np.zeros(picked.shape, "float32")
    expected = np.zeros_like(array)
    np.add.at(expected, index, weight)
    x = paddle.to_tensor(array, stop_gradient=False)
    (x[index] * paddle.to_tensor(weight)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)


def unique_writers(array, index):
    """Whether no element is written twice."""
    counts = np.zeros(array.shape)
    np.add.at(counts, index, 1)
    return counts.max(initial=0) <= 1


@EXAMPLES
@given(shapes_with_indices(), st.sampled_from(["scalar", "full", "broadcast"]))
def test_writing_equals_numpy_and_its_gradients_are_cut_where_it_wrote(case, kind):
    shape, index = case
    array = numbers(shape)
    try:
        picked = array[index]
    except IndexError:
        return
    value = np.float32(-7) if kind == "scalar" else -numbers(picked.shape if kind == "full" else picked.shape[-1:])
    expected = array.copy()
    expected[index] = value
    if not unique_writers(array, index) and kind != "scalar":
        return
    plain = paddle.to_tensor(array)
    plain[index] = float(value) if kind == "scalar" else paddle.to_tensor(value)
    np.testing.assert_array_equal(plain.numpy(), expected)

    x = paddle.to_tensor(array, stop_gradient=False)
    v = paddle.to_tensor(value, stop_gradient=False)
    y = x * 1.0
    y[index] = v
    np.testing.assert_array_equal(y.numpy(), expected)
    weight = numbers(shape)
    (y * paddle.to_tensor(weight)).sum().backward()
    kept = weight.copy()
    kept[index] = 0
    np.testing.assert_array_equal(x.grad.numpy(), kept)
    if picked.size and unique_writers(array, index):
        given_weight = weight[index]
        while given_weight.ndim > np.ndim(value):
            given_weight = given_weight.sum(axis=0)
        narrow = [k for k, n in enumerate(np.shape(value)) if n == 1 and given_weight.shape[k] != 1]
        np.testing.assert_allclose(v.grad.numpy(), given_weight.sum(axis=tuple(narrow), keepdims=True), rtol=1e-6)


@EXAMPLES
@given(st.data())
def test_slices_are_views_of_the_same_memory(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    index = tuple(data.draw(basic_items(n)) for n in shape[: data.draw(st.integers(0, len(shape)))])
    array = numbers(shape)
    x = paddle.to_tensor(array)
    view, expected = x[index], array[index]
    version = x.inplace_version
    view.fill_(-1.0)
    if expected.ndim or not index:
        expected[...] = -1
    else:
        array[index] = -1
    np.testing.assert_array_equal(x.numpy(), array)
    assert not array[index].size or x.inplace_version > version


def test_a_mask_over_leading_axes_selects_rows():
    x = paddle.to_tensor([0, 8, 9])
    assert x[[False, True, True]].tolist() == [8, 9]
    assert x[paddle.to_tensor([False, True, True])].tolist() == [8, 9]
    assert x[np.asarray([True, False, False])].tolist() == [0]
    grid = paddle.to_tensor(np.arange(6).reshape(2, 3))
    assert grid[grid > 2].tolist() == [3, 4, 5]
    assert grid[paddle.to_tensor([False, True])].tolist() == [[3, 4, 5]]
    assert grid[True].shape == [1, 2, 3]
    assert grid[False].shape == [0, 2, 3]


def test_of_two_writers_of_one_place_the_last_wins():
    x = paddle.to_tensor([0.0, 0.0])
    x[[1, 1]] = paddle.to_tensor([3.0, 4.0])
    assert x.tolist() == [0.0, 4.0]
    v = paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    y = paddle.to_tensor([0.0, 0.0], stop_gradient=False) * 1
    y[[1, 1]] = v
    y.sum().backward()
    assert v.grad.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_every_dtype_can_be_read_and_written(dtype):
    x = paddle.to_tensor([[0, 1], [1, 0]]).astype(dtype)
    x[0, 1] = 0
    x[[1], [0]] = False
    x[x.astype("bool")] = 0
    assert not x.astype("bool").any()
    assert x[1:, [1, 0]].dtype.name == dtype


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
def test_index_tensors_of_every_integer_type(dtype):
    x = paddle.to_tensor([10, 20, 30])
    assert x[paddle.to_tensor([2, 0], dtype=dtype)].tolist() == [30, 10]
    assert x[paddle.to_tensor(1, dtype=dtype)].item() == 20


@pytest.mark.parametrize(
    "index",
    [3, -4, (0, 0, 0), [3], [-4], np.asarray([0, 3]), (slice(None), 2), (0, [5]), ([0], [[1], [2]])],
)
def test_indices_out_of_range_raise_for_reading_and_writing(index):
    x = paddle.to_tensor(np.zeros([3, 2], "float32"))
    for i in (
        index,
        as_tensors(index) if isinstance(index, tuple) else paddle.to_tensor(index) if not isinstance(index, int) else index,
    ):
        with pytest.raises(IndexError, match=r"out of range|too many|index"):
            x[i].numpy()
        with pytest.raises(IndexError, match=r"out of range|too many|index"):
            x[i] = 1.0
    assert x.numpy().tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(
    ("index", "error"),
    [
        ("a", TypeError),
        (1.5, TypeError),
        ([1.5], TypeError),
        (paddle.to_tensor([1.5]), TypeError),
        (slice("a", None), TypeError),
        (slice(None, None, 0), ValueError),
        ((..., ...), IndexError),
        (object(), TypeError),
        ({}, TypeError),
        ([[0], [0, 1]], (TypeError, ValueError)),
        (2**70, IndexError),
        ([2**70], (IndexError, TypeError)),
        (np.zeros([2, 2], bool), IndexError),
        ([True, False], IndexError),
    ],
)
def test_what_is_no_index_raises(index, error):
    x = paddle.to_tensor(np.zeros([3, 2], "float32"))
    with pytest.raises(error):
        x[index]
    with pytest.raises(error):
        x[index] = 0.0


@pytest.mark.parametrize("value", [np.zeros(3), [1, 2, 3], "a", None, object()])
def test_values_that_do_not_fit_raise_and_leave_the_tensor_as_it_was(value):
    x = paddle.to_tensor(np.ones([2, 2], "float32"))
    version = x.inplace_version
    with pytest.raises((TypeError, ValueError)):
        x[0] = value
    assert x.tolist() == [[1.0, 1.0]] * 2
    assert x.inplace_version == version


def test_empty_indices_and_tensors():
    x = paddle.to_tensor(np.zeros([2, 0, 3], "float32"))
    assert x[0].shape == [0, 3]
    assert x[:, [], 1].shape == [2, 0]
    assert x[1:1].shape == [0, 0, 3]
    y = paddle.to_tensor([1.0, 2.0])
    assert y[[]].shape == [0]
    y[[]] = 5.0
    y[2:] = 5.0
    assert y.tolist() == [1.0, 2.0]
    assert paddle.to_tensor(3.0)[...].item() == paddle.to_tensor(3.0)[()].item() == paddle.to_tensor(3.0)[None].item() == 3.0


def test_a_leaf_that_wants_a_gradient_cannot_be_written():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    with pytest.raises(ValueError, match="leaf"):
        x[0] = 3.0
    with paddle.no_grad():
        x[0] = 3.0
    assert x.tolist() == [3.0, 2.0]


def test_a_value_that_is_a_view_of_the_tensor_is_read_before_it_is_written():
    x = paddle.to_tensor(np.arange(5, dtype="float32"))
    x[1:] = x[:-1]
    assert x.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    x[::-1] = x
    assert x.tolist() == [3.0, 2.0, 1.0, 0.0, 0.0]
    y = paddle.to_tensor(np.arange(4, dtype="float32"))
    y[[1, 2, 3]] = y[:3]
    assert y.tolist() == [0.0, 0.0, 1.0, 2.0]


def test_iterating_gives_the_rows_as_views():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    for row in x:
        row.zero_()
    assert not x.any()
    with pytest.raises(TypeError, match="0-D"):
        iter(paddle.to_tensor(1.0))


def test_second_derivatives_through_indexing():
    x = paddle.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    y = (x[[0, 2, 2]] ** 3).sum()
    (first,) = paddle.grad(y, x, create_graph=True)
    (second,) = paddle.grad(first.sum(), x)
    assert second.tolist() == [6.0, 0.0, 36.0]
