"""Names that programs may use and that cannot do what they do in Paddle say why; others that are rarely used work."""

import copy
import pickle
import types

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import UnsupportedError
from sampan.nn import functional as F

X = paddle.ones([2, 3])


@pytest.mark.parametrize("name", ["uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "pstring", "raw"])
def test_a_dtype_that_tensors_do_not_have_is_refused_where_it_is_used(name):
    dtype = getattr(paddle, name)
    assert repr(dtype) == f"paddle.{name}"
    for call in (lambda: paddle.zeros([2], dtype), lambda: X.astype(dtype), lambda: paddle.to_tensor([1], dtype)):
        with pytest.raises(UnsupportedError, match=f"{name} is no dtype of this build"):
            call()


def test_uint16_names_bfloat16_as_its_bits_in_numpy_do():
    assert paddle.uint16 == paddle.bfloat16


@pytest.mark.parametrize(
    "call",
    [
        lambda: paddle.XPUPinnedPlace(),
        lambda: paddle.device.IPUPlace(),
        lambda: paddle.nn.Linear(2, 2).cuda(),
        lambda: paddle.nn.Linear(2, 2).xpu(),
        lambda: paddle.linalg.fp8_fp8_half_gemm_fused(X, X),
        lambda: paddle.enable_compat(),
        lambda: X.set_tensor(X),
        lambda: X.set_string_list(["a"]),
        lambda: X.create_parameter([2], "float32"),
        lambda: X.block(),
    ],
)
def test_what_cannot_work_says_why(call):
    with pytest.raises(UnsupportedError, match=r"\w+ \w+ \w+"):
        call()


def test_the_module_tensor_makes_tensors():
    made = paddle.tensor([[1, 2]], dtype="float32", requires_grad=True)
    assert made.tolist() == [[1.0, 2.0]]
    assert not made.stop_gradient
    assert not paddle.as_tensor([1.0], requires_grad=True).stop_gradient


def test_a_dense_tensor_has_dense_axes_only():
    assert (X.sparse_dim(), X.dense_dim()) == (0, 2)


def test_flags_of_paddle_are_kept_and_given_back():
    paddle.set_flags({"FLAGS_cudnn_deterministic": True, "FLAGS_use_stride_kernel": 1})
    assert paddle.get_flags(["FLAGS_cudnn_deterministic", "FLAGS_use_stride_kernel"]) == {
        "FLAGS_cudnn_deterministic": True,
        "FLAGS_use_stride_kernel": 1,
    }
    with pytest.raises(ValueError, match="unknown flag"):
        paddle.set_flags({"FLAGS_no_such_flag": 1})


def test_a_lazy_guard_gives_parameters_with_values():
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 2)
    layer.weight.initialize()
    assert np.isfinite(layer(paddle.ones([1, 2])).numpy()).all()


def test_slices_of_a_mapped_file(tmp_path):
    path = tmp_path / "numbers.bin"
    np.arange(6, dtype="int32").tofile(path)
    storage = paddle.MmapStorage(str(path), 24)
    assert storage.get_slice("int32").tolist() == [0, 1, 2, 3, 4, 5]
    assert storage.get_slice("int32", 1, 5, 2).tolist() == [1, 3]
    storage.get_slice("int32").fill_(7)
    assert np.fromfile(path, "int32").tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="has 24 bytes"):
        paddle.MmapStorage(str(path), 25)
    with pytest.raises(ValueError, match="no whole number of int32"):
        paddle.MmapStorage(str(path), 7).get_slice("int32")


def test_top_p_draws_among_the_most_probable_alone():
    paddle.seed(0)
    x = paddle.to_tensor([[0.5, 0.3, 0.15, 0.05], [0.05, 0.05, 0.1, 0.8]])
    drawn = [x.top_p_sampling(paddle.to_tensor([0.6, 0.5]))[1].tolist() for _ in range(200)]
    assert {a[0] for a, _ in drawn} == {0, 1}
    assert {b[0] for _, b in drawn} == {3}
    share = np.mean([a[0] == 0 for a, _ in drawn])
    assert abs(share - 0.625) < 0.12
    values, index, _, top_index = x.top_p_sampling(paddle.to_tensor([0.0, 0.0]), k=2, return_top=True)
    assert (values.tolist(), index.tolist()) == ([[0.5], [pytest.approx(0.8)]], [[0], [3]])
    assert top_index.tolist() == [[0, 1], [3, 2]]
    with pytest.raises(ValueError, match="ps has 1 elements"):
        x.top_p_sampling(paddle.to_tensor([0.5]))
    with pytest.raises(ValueError, match="mode='all'"):
        x.top_p_sampling(paddle.to_tensor([0.5, 0.5]), mode="all")


def test_autocast_dtypes_by_device_and_pylayer_by_its_other_name():
    assert paddle.get_autocast_cpu_dtype() == paddle.get_autocast_gpu_dtype() == paddle.get_autocast_dtype()
    assert paddle.autograd.Function is paddle.autograd.PyLayer


def test_summary_passes_a_dict_as_the_one_argument_it_is(capsys):
    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = paddle.nn.Linear(3, 2)

        def forward(self, inputs):
            return self.fc(inputs["a"]) + inputs["b"]

    found = paddle.summary(Net(), input={"a": paddle.ones([1, 3]), "b": paddle.ones([1, 2])})
    assert found == {"total_params": 8, "trainable_params": 8}
    assert "Linear-" in capsys.readouterr().out


@pytest.mark.parametrize(
    "module",
    [
        paddle,
        F,
        paddle.linalg,
        paddle.fft,
        paddle.signal,
        paddle.sparse,
        paddle.sparse.nn.functional,
        paddle.geometric,
        paddle.incubate,
        paddle.nn.utils,
    ],
    ids=lambda module: module.__name__,
)
def test_public_functions_pickle(module):
    """As transforms of data sets, collate functions and activations of layers do on their way to other processes."""
    kinds = (types.FunctionType, type(paddle.add))
    public = {n: f for n, f in vars(module).items() if isinstance(f, kinds) and not n.startswith("_")}
    assert [n for n, f in public.items() if pickle.loads(pickle.dumps(f)) is not f] == []
    assert [n for n, f in public.items() if copy.deepcopy(f) is not f] == []


def test_layers_that_hold_functions_pickle():
    layer = paddle.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="gelu")
    x = paddle.ones([1, 3, 8])
    assert pickle.loads(pickle.dumps(layer))(x).tolist() == layer(x).tolist()
