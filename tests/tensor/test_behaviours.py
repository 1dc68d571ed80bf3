"""Known faults of the field, each as its kind: special values, gradients at edges, integers, empty and 0-D tensors, indices, long sums."""

import numpy as np
import pytest
from scipy import special

import sampan as paddle

F = paddle.nn.functional
NAN, INF = float("nan"), float("inf")
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-40, 1e38]

UNARY = {
    "sinc": np.sinc, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "erf": special.erf, "erfinv": special.erfinv,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "abs": np.abs, "sign": np.sign, "square": np.square, "reciprocal": np.reciprocal,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_special_values_of_functions_of_one_argument(name, dtype):
    x = np.asarray(EDGES, dtype)
    if name == "reciprocal" and dtype == "float32":
        x = x[np.abs(x) != np.float32(1e-40)]
    with np.errstate(all="ignore"):
        expected = UNARY[name](x)
    found = getattr(paddle, name)(paddle.to_tensor(x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-44)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum, "minimum": np.minimum,
    "fmax": np.fmax, "fmin": np.fmin, "pow": np.power, "atan2": np.arctan2, "logaddexp": np.logaddexp, "hypot": np.hypot,
    "copysign": np.copysign, "nextafter": np.nextafter, "heaviside": np.heaviside, "equal": np.equal, "less_than": np.less,
    "greater_equal": np.greater_equal, "not_equal": np.not_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_special_values_of_functions_of_two_arguments_in_both_orders(name):
    x, y = (a.ravel() for a in np.meshgrid(np.asarray(EDGES), np.asarray(EDGES)))
    with np.errstate(all="ignore"):
        expected = BINARY[name](x, y)
    found = getattr(paddle, name)(paddle.to_tensor(x), paddle.to_tensor(y)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize(
    "name",
    """relu relu6 sigmoid silu gelu elu selu celu softplus leaky_relu hardtanh mish tanh hardshrink softshrink tanhshrink thresholded_relu hardswish
    hardsigmoid softsign swish log_sigmoid""".split(),
)
def test_activations_pass_nan_on(name):
    found = getattr(F, name)(paddle.to_tensor([NAN, 1.0])).numpy()
    assert np.isnan(found[0])
    assert np.isfinite(found[1])


def test_relu_of_infinities():
    np.testing.assert_array_equal(F.relu(paddle.to_tensor([INF, -INF, -2.0, 3.0])).numpy(), [INF, 0.0, 0.0, 3.0])


PARTS = [INF, -INF, NAN, 0.0, -0.0, 1.0, -2.0, 3e5]
COMPLEX = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "expm1": np.expm1,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_of_infinities_and_nan_follow_annex_g(name, dtype):
    """C99 leaves the sign open of an infinity beside NaN, and of a zero beside NaN."""
    x = np.asarray([complex(a, b) for a in PARTS for b in PARTS], dtype)
    with np.errstate(all="ignore"):
        expected = COMPLEX[name](x)
    found = getattr(paddle, name)(paddle.to_tensor(x)).numpy()
    for of, other in (("real", "imag"), ("imag", "real")):
        one, reference = getattr(found, of), getattr(expected, of)
        is_open = np.isnan(getattr(expected, other))
        np.testing.assert_allclose(
            np.where(is_open, np.abs(one), one),
            np.where(is_open, np.abs(reference), reference),
            rtol=2e-5 if dtype == "complex64" else 1e-11,
            atol=1e-30,
        )


def test_the_lower_median_points_at_the_first_nan():
    values, places = paddle.median(
        paddle.to_tensor([[1.0, NAN, 3.0, NAN], [4.0, 1.0, 2.0, 3.0], [NAN, NAN, NAN, NAN]]), axis=1, mode="min"
    )
    np.testing.assert_array_equal(values.numpy(), [NAN, 2.0, NAN])
    assert places.tolist() == [1, 2, 0]


def test_the_gradient_of_a_count_of_elements_is_zero():
    x = paddle.to_tensor([0.0, 2.0, INF], stop_gradient=False)
    count = paddle.linalg.norm(x, p=0)
    count.backward()
    assert count.item() == 2.0
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_integers_between_floating_bounds_become_floating():
    x = paddle.to_tensor([0, 1, 2, 3])
    assert x.clip(0.5, 2.5).tolist() == [0.5, 1.0, 2.0, 2.5]
    assert x.clip(min=paddle.to_tensor(1.5)).dtype == paddle.float32
    assert x.clip(1, 2).dtype == paddle.int64


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2), np.int32(2), np.float16(2)])
def test_numbers_of_numpy_are_numbers(number):
    x = paddle.to_tensor([1.0, 3.0])
    for found in (x * number, number * x, paddle.multiply(x, number), x**number / x, paddle.where(x > 0, number, x) * x):
        assert found.dtype == paddle.float32
        assert found.tolist() == [2.0, 6.0] or found.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "sum", "mean", "prod"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_keep_nan(name, axis):
    x = np.asarray([[NAN, 1, 2], [3, 4, 5]], "float32")
    expected = getattr(np, name.replace("amax", "max").replace("amin", "min"))(x, axis=axis)
    np.testing.assert_allclose(getattr(paddle, name)(paddle.to_tensor(x), axis=axis).numpy(), expected, rtol=1e-6)


def test_unique_keeps_nan_and_its_counts():
    values, counts = paddle.unique(paddle.to_tensor([1.0, 1.0, NAN, NAN]), return_counts=True)
    np.testing.assert_array_equal(values.numpy(), [1.0, NAN])
    assert counts.tolist() == [2, 2]


def test_softmax_of_minus_infinity():
    np.testing.assert_allclose(F.softmax(paddle.to_tensor([1.0, -INF, 2.0])).numpy(), [0.26894143, 0.0, 0.7310586], rtol=1e-6)
    np.testing.assert_allclose(
        F.log_softmax(paddle.to_tensor([1.0, -INF, 2.0])).numpy(), [-1.3132616, -INF, -0.3132617], rtol=1e-6
    )


@pytest.mark.parametrize("data", [[114.23], [-1000.0, -1000.0], [1000.0, 0.0], [-INF, -INF], [INF, 1.0], [NAN, 1.0]])
def test_logsumexp_never_overflows(data):
    with np.errstate(all="ignore"):
        expected = special.logsumexp(np.asarray(data, "float64"))
    np.testing.assert_allclose(paddle.logsumexp(paddle.to_tensor(data)).numpy(), expected, rtol=1e-6)


def test_sorting_puts_nan_last_and_first_when_descending():
    x = paddle.to_tensor([1.0, NAN, 3.0, 2.0])
    assert paddle.argsort(x).tolist() == [0, 3, 2, 1]
    assert paddle.argsort(x, descending=True).tolist() == [1, 2, 3, 0]
    np.testing.assert_array_equal(paddle.sort(x).numpy(), [1.0, 2.0, 3.0, NAN])


@pytest.mark.parametrize("p", [1, 2, 3, INF, "fro"])
def test_the_gradient_of_a_norm_at_zero_is_finite(p):
    x = paddle.to_tensor(np.zeros(3, "float32"), stop_gradient=False)
    paddle.linalg.norm(x, p=p).backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_scatter_stops_the_gradient_of_rows_that_it_overwrites():
    x = paddle.to_tensor(np.ones([3, 2], "float32"), stop_gradient=False)
    updates = paddle.to_tensor([[5.0, 5.0]], stop_gradient=False)
    paddle.scatter(x, paddle.to_tensor([1]), updates, overwrite=True).sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert updates.grad.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize(("overwrite", "expected"), [(False, [[5.0], [10.0], [8.0]]), (True, [[5.0], [10.0], [7.0]])])
def test_scatter_with_duplicate_indices(overwrite, expected):
    x = paddle.to_tensor(np.full([3, 1], 10.0, "float32"))
    found = paddle.scatter(x, paddle.to_tensor([2, 0, 2]), paddle.to_tensor([[1.0], [5.0], [7.0]]), overwrite=overwrite)
    assert found.tolist() == expected


@pytest.mark.parametrize(("accumulate", "value", "gradient"), [(True, 7.0, [1.0, 1.0]), (False, 4.0, [0.0, 1.0])])
def test_index_put_with_duplicate_indices(accumulate, value, gradient):
    values = paddle.to_tensor([3.0, 4.0], stop_gradient=False)
    found = paddle.index_put(paddle.zeros([2]), [paddle.to_tensor([1, 1])], values, accumulate=accumulate)
    assert found.tolist() == [0.0, value]
    found.sum().backward()
    assert values.grad.tolist() == gradient


def test_layer_norm_of_nearly_equal_inputs_has_a_small_gradient():
    x = paddle.to_tensor([[-1.83965693, -1.82964566]], stop_gradient=False)
    F.layer_norm(x, [2], epsilon=1e-5).sum().backward()
    assert np.abs(x.grad.numpy()).max() < 1e-2


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "float32", "float64"])
def test_remainders_take_the_sign_of_the_divisor(dtype):
    x, y = np.asarray([-3, 3, -3, 3, 7, -7], dtype), np.asarray([2, -2, -2, 2, 3, 3], dtype)
    for name, reference in (("remainder", np.mod), ("mod", np.mod), ("floor_divide", np.floor_divide)):
        found = getattr(paddle, name)(paddle.to_tensor(x), paddle.to_tensor(y))
        np.testing.assert_array_equal(found.numpy(), reference(x, y))
    assert paddle.remainder(paddle.to_tensor(-3.5), paddle.to_tensor(2.0)).item() == 0.5


def test_the_length_of_a_range_is_counted_in_float64():
    assert paddle.arange(0, 9.86, 1.3, dtype="int64").shape == [8]
    assert paddle.arange(16777214, 16777220).tolist() == list(range(16777214, 16777220))
    assert paddle.arange(16777214, 16777220).dtype == paddle.int64


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16"])
def test_sums_of_narrow_integers_are_wide(dtype):
    x = paddle.ones([300], dtype)
    assert paddle.sum(x).item() == 300
    assert paddle.cumsum(x)[-1].item() == 300


def test_the_dtype_of_an_int32_cumulative_sum_is_kept_and_wraps_or_is_wide():
    found = paddle.cumsum(paddle.to_tensor([2147483647, 1], dtype="int32"))
    assert found[1].item() == {"int32": -(2**31), "int64": 2**31}[found.dtype.name]


@pytest.mark.parametrize("name", ["max", "min", "amax", "amin", "argmax", "argmin"])
def test_extremes_along_a_non_empty_axis_of_an_empty_tensor(name):
    x = paddle.zeros([0, 2, 3])
    assert getattr(paddle, name)(x, axis=1).shape == [0, 3]
    with pytest.raises(ValueError, match=r"empty|no elements|size 0"):
        getattr(paddle, name)(x, axis=0)


def test_matmul_of_empty_tensors():
    assert paddle.matmul(paddle.zeros([0, 100, 1]), paddle.zeros([0, 1, 40])).shape == [0, 100, 40]
    assert paddle.matmul(paddle.zeros([3, 0]), paddle.zeros([0, 4])).tolist() == [[0.0] * 4] * 3


@pytest.mark.parametrize("perm", [[0, 1], [0, 0, 1], [0, 1, 3], [], [0, 1, 2, 3]])
def test_transpose_needs_every_axis_once(perm):
    with pytest.raises(ValueError, match="transpose"):
        paddle.transpose(paddle.zeros([2, 3, 4]), perm)


def test_put_along_axis_checks_shapes():
    with pytest.raises((ValueError, IndexError)):
        paddle.put_along_axis(paddle.zeros([2, 3]), paddle.zeros([3, 4], "int64"), paddle.ones([3, 4]), 1, broadcast=False)


def test_diff_takes_tensors_only():
    with pytest.raises(TypeError):
        paddle.diff(paddle.ones([2, 2, 2]), append="a")


def test_probabilities_lie_between_0_and_1():
    for bad in (18587.0, -0.1, NAN):
        with pytest.raises(ValueError, match="probability"):
            paddle.bernoulli(paddle.to_tensor([bad]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_of_long_vectors_do_not_stall(dtype):
    count = 2**25
    x = paddle.ones([count], dtype)
    assert x.sum().item() == count
    assert x.mean().item() == 1.0
    np.testing.assert_allclose(paddle.linalg.norm(x).item(), count**0.5, rtol=1e-6)


def test_a_view_sees_writes_to_its_base():
    x = paddle.to_tensor([[True, True], [False, True]])
    view = paddle.transpose(x, [1, 0])
    x[0, :] = False
    assert paddle.nonzero(view).tolist() == [[1, 1]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_squares_are_products_to_the_last_bit(dtype):
    x = paddle.to_tensor(np.array([-3.7, -0.0, 0.0, 1.1, 1e-30, 2.25, np.inf, -np.inf, np.nan] * 5)).astype(dtype)
    np.testing.assert_array_equal((x**2).numpy(), (x * x).numpy())
    np.testing.assert_array_equal((x**1).numpy(), x.numpy())
    assert np.signbit((x**1).numpy()[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_many_exponents_at_once(dtype):
    x = paddle.to_tensor(np.linspace(-2, 2, 45)).astype(dtype)
    y = paddle.to_tensor(np.array([1, 2, 3, 5, 2, 1, 2, 2, -1] * 5)).astype(dtype)
    with np.errstate(divide="ignore"):
        want = x.numpy().astype("float64") ** y.numpy()
    np.testing.assert_allclose((x**y).numpy(), want, rtol=3e-7)


TRANSFORMS = ["fft", "ifft", "fft2", "ifft2", "fftn", "ifftn"]


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_transform_of_real_numbers_has_conjugate_pairs_to_the_last_bit(name, dtype):
    x = np.random.default_rng(3).standard_normal((5, 6, 7)).astype(dtype)
    found = getattr(paddle.fft, name)(paddle.to_tensor(x)).numpy()
    axes = {"t": (2,), "2": (1, 2), "n": (0, 1, 2)}[name[-1]]
    mirrored = found
    for axis in axes:
        mirrored = np.roll(np.flip(mirrored, axis), 1, axis)
    np.testing.assert_array_equal(found[..., 1:], mirrored.conj()[..., 1:])  # only terms off the last axis' zero are filled in
    np.testing.assert_allclose(found, getattr(np.fft, name)(x.astype("float64")), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "ihfft"])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_terms_that_stand_alone_keep_an_imaginary_part_of_plain_zero(name, norm):
    found = getattr(paddle.fft, name)(paddle.to_tensor([10.0, -5.0, 0.0, -1.0, 0.0, -5.0]), norm=norm).numpy()
    assert not np.signbit(found[[0, 3]].imag).any()
    assert not found.imag[[0, 3]].any()


def test_normalising_a_transform_keeps_infinite_terms():
    found = paddle.fft.ifft(paddle.to_tensor([INF, 0.0, 0.0, 0.0]), norm="ortho").numpy()
    assert np.isposinf(found[0].real)
    assert found[0].imag == 0


@pytest.mark.parametrize("name", ["fft2", "ifftn", "ihfft"])
def test_gradients_of_transforms_of_real_numbers_are_real(name):
    x = paddle.to_tensor(np.random.default_rng(4).standard_normal((3, 4)), stop_gradient=False)
    weight = np.random.default_rng(5).standard_normal(getattr(np.fft, name)(x.numpy()).shape)
    weighted = getattr(paddle.fft, name)(x) * paddle.to_tensor(weight * (1 + 2j))
    weighted.real().sum().backward()
    assert x.grad.dtype == paddle.float64
    step = 1e-6
    for place in [(0, 0), (1, 2), (2, 3)]:
        moved = x.numpy().copy()
        moved[place] += step
        there = (getattr(np.fft, name)(moved) * weight * (1 + 2j)).real.sum()
        moved[place] -= 2 * step
        back = (getattr(np.fft, name)(moved) * weight * (1 + 2j)).real.sum()
        assert abs((there - back) / (2 * step) - x.grad.numpy()[place]) < 1e-6
