"""What a Tensor and the root module have beside operators."""

import copy
import pickle

import numpy as np
import pytest

import sampan as paddle

CONVERSIONS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "int": "int32", "long": "int64", "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128", "int8": "int8", "float64": "float64",
}  # fmt: skip


@pytest.mark.parametrize("method", CONVERSIONS)
def test_dtype_methods_convert_and_give_the_tensor_itself_where_nothing_changes(method):
    x = paddle.to_tensor([[0.0, 1.5], [2.0, 3.0]])
    y = getattr(x, method)()
    assert y.dtype.name == CONVERSIONS[method]
    assert getattr(y, method)() is y


def test_conversions_carry_gradients():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype.name == "float32"
    assert x.grad.tolist() == [3.0, 3.0]


def test_type_as_and_to_take_the_others_dtype():
    x = paddle.to_tensor([1.9, -1.9])
    other = paddle.to_tensor([1])
    assert x.type_as(other).tolist() == [1, -1]
    assert x.to(other).dtype == other.dtype
    assert x.to("float64").dtype == x.to(dtype="float64").dtype == x.to("cpu", "float64").dtype == paddle.float64
    assert x.to("cpu") is x


@pytest.mark.parametrize("call", [lambda x: x.cuda(), lambda x: x.pin_memory(), lambda x: x.to("gpu:0"), lambda x: x.to("cuda")])
def test_devices_that_are_not_there_raise_an_error_that_says_so(call):
    with pytest.raises(NotImplementedError, match=r"no .* support"):
        call(paddle.to_tensor([1.0]))


def test_strides_and_offsets_describe_a_view():
    x = paddle.to_tensor(np.arange(12, dtype="float32").reshape(3, 4))
    view = x[1:, ::2]
    assert view.strides == view.stride() == view.get_strides() == [4, 2]
    assert view.stride(1) == view.stride(-1) == 2
    assert view.offset == 16
    assert not view.is_contiguous()
    assert view.contiguous().strides == [2, 1]
    assert view.contiguous().tolist() == [[4.0, 6.0], [8.0, 10.0]]
    assert x.contiguous() is x
    assert (x.element_size(), x.itemsize, x.nbytes, x.size, x.ndim, x.dim(), x.ndimension()) == (4, 4, 48, 12, 2, 2, 2)


def test_flags_say_what_a_dense_tensor_is():
    x = paddle.to_tensor([1.0])
    assert x.is_dense()
    assert not any([x.is_sparse(), x.is_sparse_coo(), x.is_sparse_csr(), x.is_selected_rows(), x.is_dist()])
    assert x.is_same_shape(paddle.to_tensor([2]))
    assert not x.is_same_shape(paddle.to_tensor([[2]]))
    assert (x.device, x.device.type, x.device.index, x.get_device(), str(x.place)) == ("cpu", "cpu", None, -1, "Place(cpu)")
    assert x.is_floating_point()
    assert not x.is_complex()
    assert not x.is_integer()
    assert x.is_tensor()
    assert repr(x.type) == "<VarType.DENSE_TENSOR: 7>"


@pytest.mark.parametrize("method", ["coalesce", "is_coalesced", "indices", "values", "crows", "cols", "nnz", "rows"])
def test_methods_of_sparse_tensors_say_that_the_tensor_is_dense(method):
    with pytest.raises(NotImplementedError, match=rf"{method}\(\): the tensor is dense"):
        getattr(paddle.to_tensor([1.0]), method)()


def test_new_tensors_take_dtype_from_the_old_one_unless_given():
    x = paddle.to_tensor([1.0], dtype="float64")
    assert x.new_zeros([2, 3]).tolist() == [[0.0] * 3] * 2
    assert x.new_ones(2, 3).dtype == paddle.float64
    assert x.new_full([2], 7, dtype="int32").tolist() == [7, 7]
    assert x.new_empty(3, requires_grad=True).stop_gradient is False
    assert x.new_zeros(()).shape == []
    with pytest.raises(ValueError, match="negative"):
        x.new_zeros([-1])


def test_fill_and_zero_write_in_place_through_views():
    x = paddle.to_tensor(np.ones([2, 3], "float32"))
    view = x[0]
    version = x.inplace_version
    assert view.fill_(5.0) is view
    x[:, 2].zero_()
    assert x.tolist() == [[5.0, 5.0, 0.0], [1.0, 1.0, 0.0]]
    assert x.inplace_version > version


def test_fill_stops_the_gradient_of_what_it_overwrites():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 3
    y.fill_(7.0)
    (y * x).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_apply_calls_a_function_unless_a_gradient_is_wanted():
    x = paddle.to_tensor([1.0, 2.0])
    assert x.apply(lambda t: t * 2).tolist() == [2.0, 4.0]
    assert x.apply_(lambda t: t * 3) is x
    assert x.tolist() == [3.0, 6.0]
    x.stop_gradient = False
    for name in ("apply", "apply_"):
        with pytest.raises(RuntimeError, match="wants a gradient"):
            getattr(x, name)(lambda t: t)


def test_set_looks_at_the_memory_of_another_tensor():
    source = paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3))
    x = paddle.to_tensor([9.0])
    assert x.set_(source) is x
    x[0, 0] = 100.0
    assert source[0, 0].item() == 100.0
    assert paddle.to_tensor([0.0]).set_(source, [3], [2], 4).tolist() == [1.0, 3.0, 5.0]
    assert paddle.to_tensor([0.0]).set_().shape == [0]
    with pytest.raises(IndexError):
        x.set_(source, [100])


def test_resize_keeps_the_first_elements():
    x = paddle.to_tensor([1.0, 2.0, 3.0, 4.0])
    assert x.resize_([2, 3], fill_zero=True) is x
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]
    assert x.resize_([2]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda y: y.reshape_([3, 2]), [3, 2]),
        (lambda y: y.unsqueeze_(0), [1, 2, 3]),
        (lambda y: y.unsqueeze_(0).squeeze_(0), [2, 3]),
        (lambda y: y.flatten_(), [6]),
        (lambda y: y.t_(), [3, 2]),
        (lambda y: y.transpose_([1, 0]), [3, 2]),
        (lambda y: y.cast_("float64"), [2, 3]),
    ],
)
def test_in_place_views_change_the_tensor_itself_and_keep_its_history(call, shape):
    x = paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3), stop_gradient=False)
    y = x * 2
    same = call(y)
    assert same is y
    assert y.shape == shape
    weight = np.arange(6, dtype=y.dtype.name).reshape(shape)
    (y * paddle.to_tensor(weight)).sum().backward()
    order = weight.T if same.shape == [3, 2] and not y.is_contiguous() else weight.reshape(2, 3)
    np.testing.assert_array_equal(x.grad.numpy(), 2 * order)


def test_in_place_views_share_memory_and_do_not_count_as_writes():
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    alias = x.detach()
    version = x.inplace_version
    x.reshape_([4])
    assert x.inplace_version == version
    x[0] = 9.0
    assert alias[0, 0].item() == 9.0


def test_in_place_operators_that_would_change_the_dtype_raise():
    x = paddle.to_tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="cannot change the dtype"):
        x.equal_(x)


def test_data_gives_and_takes_the_elements():
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    assert x.data.stop_gradient
    x.data = paddle.to_tensor([5.0, 6.0, 7.0])
    assert x.tolist() == [5.0, 6.0, 7.0]
    assert not x.stop_gradient


def test_transposed_properties():
    x = paddle.to_tensor(np.arange(6).reshape(1, 2, 3))
    assert x.T.shape == [3, 2, 1]
    assert x.mT.shape == [1, 3, 2]
    with pytest.raises(ValueError, match="at least two axes"):
        _ = paddle.to_tensor([1]).mT


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex64"])
def test_copies_and_pickles_are_equal_and_independent(dtype):
    x = paddle.to_tensor([[0, 1], [2, 3]]).astype(dtype)
    x.stop_gradient = dtype != "float32"
    x.name = "my_tensor"
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.dtype == x.dtype
        assert other.stop_gradient == x.stop_gradient
        np.testing.assert_array_equal(other.numpy(), x.numpy())
        with paddle.no_grad():
            other[0, 0] = 1
        assert not x[0, 0].item()
    assert copy.copy(x) is not x


def test_deepcopy_keeps_sharing_inside_a_container():
    x = paddle.to_tensor([1.0])
    first, second = copy.deepcopy([x, x])
    assert first is second


def test_deepcopy_of_a_recorded_result_says_what_to_do():
    x = paddle.to_tensor([1.0], stop_gradient=False)
    with pytest.raises(RuntimeError, match="detach"):
        copy.deepcopy(x * 2)


def test_parameters_keep_their_class_and_attributes_when_copied():
    weight = paddle.tensor.Parameter(paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
    weight.optimize_attr["learning_rate"] = 0.5
    for other in (copy.deepcopy(weight), pickle.loads(pickle.dumps(weight))):
        assert type(other) is type(weight)
        assert other.trainable
        assert other.optimize_attr == {"learning_rate": 0.5}


def test_limits_of_types():
    assert (paddle.iinfo("int8").min, paddle.iinfo(paddle.uint8).max, paddle.iinfo("int64").bits) == (-128, 255, 64)
    assert repr(paddle.iinfo("int8")) == "paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)"
    assert paddle.finfo("float32").eps == np.finfo("float32").eps
    assert repr(paddle.finfo("bfloat16")).startswith(
        "paddle.finfo(min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, resolution=0.01"
    )
    assert paddle.finfo("complex64").max == np.finfo("float32").max
    with pytest.raises(TypeError, match="no integer type"):
        paddle.iinfo("float32")
    with pytest.raises(TypeError, match="no floating type"):
        paddle.finfo("int32")
    with pytest.raises(TypeError, match="no dtype"):
        paddle.iinfo("nothing")


def test_typed_constructors_take_data_or_sizes():
    assert paddle.FloatTensor([1, 2]).dtype == paddle.float32
    assert paddle.LongTensor(2, 3).shape == [2, 3]
    assert paddle.IntTensor().shape == [0]
    assert isinstance(paddle.to_tensor([1.0]), paddle.FloatTensor)
    assert not isinstance(paddle.to_tensor([1]), paddle.FloatTensor)


def test_broadcast_shapes_follow_numpy():
    assert paddle.broadcast_shapes([2, 1, 3], [1, 3, 1], [4, 1, 1, 1]) == [4, 2, 3, 3]
    assert paddle.broadcast_shape([2, 1], [0]) == [2, 0]
    assert paddle.broadcast_shapes() == []
    with pytest.raises(ValueError, match=r"\[2, 3\].*\[4\]|broadcast"):
        paddle.broadcast_shape([2, 3], [4])
    with pytest.raises(TypeError, match="x_shape is 'ab'; it must be a list of integers"):
        paddle.broadcast_shape("ab", [1])


def test_arrays_are_shared_where_asked():
    array = np.zeros(2, "float32")
    paddle.from_numpy(array)[0] = 1.0
    paddle.asarray(array)[1] = 2.0
    assert array.tolist() == [1.0, 2.0]
    paddle.as_tensor(array)[0] = 9.0
    paddle.asarray(array, copy=True)[0] = 9.0
    assert array.tolist() == [1.0, 2.0]
    x = paddle.to_tensor([1.0])
    assert paddle.as_tensor(x) is x
    assert paddle.as_tensor(x, dtype="int64").dtype == paddle.int64
    with pytest.raises(ValueError, match="cannot be shared"):
        paddle.asarray([1.0], copy=False)
    with pytest.raises(TypeError, match="NumPy array"):
        paddle.from_numpy([1.0])


def test_dlpack_shares_memory_both_ways():
    x = paddle.to_tensor([1.0, 2.0])
    y = paddle.from_dlpack(paddle.to_dlpack(x))
    y[0] = 5.0
    assert x.tolist() == [5.0, 2.0]
    assert np.from_dlpack(x).tolist() == [5.0, 2.0]


def test_default_dtype_decides_what_python_floats_become():
    assert paddle.get_default_dtype() == "float32"
    try:
        paddle.set_default_dtype("float64")
        assert paddle.to_tensor([1.5]).dtype == paddle.float64
        assert (paddle.to_tensor([1]) * 1.5).dtype == paddle.float64
    finally:
        paddle.set_default_dtype("float32")
    assert (paddle.to_tensor([1]) * 1.5).dtype == paddle.float32
    with pytest.raises(TypeError, match="float16, bfloat16, float32 or float64"):
        paddle.set_default_dtype("int32")


def test_static_mode_is_a_switch():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    try:
        assert not paddle.in_dynamic_mode()
    finally:
        paddle.disable_static()
    assert paddle.in_dynamic_mode()


def test_random_states_return_to_where_they_were():
    paddle.seed(5)
    state = paddle.get_rng_state()
    first = paddle.Generator().manual_seed(3).random()
    assert first == paddle.Generator().manual_seed(3).random()
    paddle.set_rng_state(state)
    assert paddle.random.initial_seed() == 5
    assert paddle.get_cuda_rng_state() == []
    paddle.set_cuda_rng_state([])
    for wrong in (None, [], [1], "x"):
        with pytest.raises(TypeError):
            paddle.set_rng_state(wrong)


def test_devices_of_a_cpu_build():
    device = paddle.device
    assert device.get_device() == paddle.get_device() == "cpu"
    assert paddle.get_device(paddle.to_tensor(1)) == -1
    assert device.device_count() == device.cuda.device_count() == 0
    assert not paddle.is_compiled_with_cuda()
    assert device.get_available_device() == ["cpu"]
    assert device.get_cudnn_version() is None
    kept = paddle.to_tensor(np.zeros(1000, "float32"))
    assert device.max_memory_allocated() >= device.memory_allocated() >= kept.nbytes
    device.empty_cache()
    device.synchronize()
    with device.device_guard("cpu"), device.stream_guard(None):
        pass
    for call in (
        device.Stream,
        device.current_stream,
        device.get_device_properties,
        device.cuda.memory_allocated,
        device.cuda.Event,
    ):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(NotImplementedError, match="no gpu support"):
        paddle.set_device("gpu")
    with pytest.raises(ValueError, match="no device"):
        paddle.set_device("abacus")


def test_utilities(capsys):
    utils = paddle.utils
    utils.run_check()
    assert "sampan is installed" in capsys.readouterr().out
    assert utils.try_import("math").pi > 3
    with pytest.raises(ImportError, match="pip install nothing_like_it"):
        utils.try_import("nothing_like_it")
    utils.require_version("0.0.1")
    with pytest.raises(Exception, match="needs at least 99"):
        utils.require_version("99.0")
    with pytest.raises(ValueError, match=r"1\.2\.3"):
        utils.require_version("new")

    @utils.deprecated(update_to="paddle.new", since="2.0", reason="it is old")
    def old(x):
        return x + 1

    with pytest.warns(DeprecationWarning, match=r"old is deprecated since 2\.0; use paddle\.new"):
        assert old(1) == 2
    with utils.unique_name.guard():
        assert [utils.unique_name.generate("fc") for _ in range(2)] == ["fc_0", "fc_1"]
    assert paddle.version.full_version == paddle.__version__
    assert paddle.version.cuda() == "False"


def test_batch_groups_a_readers_items():
    reader = paddle.batch(lambda: iter(range(5)), 2, drop_last=True)
    assert list(reader()) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="positive"):
        paddle.batch(list, 0)


def test_narrow_is_a_view_of_a_range():
    x = paddle.to_tensor([[1, 2, 3], [4, 5, 6]])
    view = x.narrow(1, -2, 2)
    assert view.tolist() == [[2, 3], [5, 6]]
    assert view._is_shared_buffer_with(x)
    assert not view._is_shared_buffer_with(view.clone())
    for arguments in ((1, 2, 2), (1, -4, 1), (1, 0, -1), (2, 0, 1)):
        with pytest.raises((IndexError, ValueError)):
            x.narrow(*arguments)


def test_attributes_may_be_tensors():
    x = paddle.to_tensor(np.arange(6).reshape(2, 3))
    axis = paddle.to_tensor([1])
    assert paddle.concat([x, x], axis=axis).shape == [2, 6]
    assert paddle.reshape(x, paddle.to_tensor([3, 2])).shape == [3, 2]
    assert paddle.reshape(x, [paddle.to_tensor([3]), paddle.to_tensor(2)]).shape == [3, 2]
    assert paddle.sum(x, axis=paddle.to_tensor(0)).tolist() == [3, 5, 7]


def test_the_device_module_makes_devices():
    assert paddle.device("cpu") == "cpu"
    with pytest.raises(NotImplementedError):
        paddle.device("gpu:0")
