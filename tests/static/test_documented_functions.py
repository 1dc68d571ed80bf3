"""Every documented Python function does in a recorded Program what it does eagerly: the calls of its own examples, with known and unknown sizes."""

from __future__ import annotations

import contextlib
import doctest
import functools
import inspect
import io
from typing import Any

import numpy as np
import pytest

import sampan as paddle
from sampan.base import nest
from sampan.base.errors import SampanError
from sampan.tensor.replay import FUNCTIONS
from sampan.tensor.traced import Traced, typed

MODULES = {
    "": paddle,
    "nn.functional.": paddle.nn.functional,
    "linalg.": paddle.linalg,
    "signal.": paddle.signal,
    "fft.": paddle.fft,
}


def tensors(*sizes: int, dtype: str = "float32", low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Numbers of an even distribution."""
    return paddle.to_tensor(np.random.default_rng(seed).uniform(low, high, sizes).astype(dtype))


def kept(value: Any) -> Any:
    """What a function writes, such as running statistics."""
    value.persistable = True
    return value


def whole(*values: Any, dtype: str = "int64") -> Any:
    """These whole numbers."""
    return paddle.to_tensor(values[0] if len(values) == 1 else list(values), dtype=dtype)


X, IMAGES, POSITIVE = tensors(4, 6), tensors(2, 3, 6, 6), tensors(4, 3, low=0.1, high=0.9)
_POOLED, _PLACES = paddle.nn.functional.max_pool1d(tensors(2, 3, 8), 2, return_mask=True)
_POOLED2, _PLACES2 = paddle.nn.functional.max_pool2d(IMAGES, 2, return_mask=True)
_POOLED3, _PLACES3 = paddle.nn.functional.max_pool3d(tensors(1, 2, 4, 4, 4), 2, return_mask=True)
QUERY = tensors(2, 5, 2, 4)

#: Calls of functions of Python, by name; those of the functions' own examples come beside.
CALLS: dict[str, list[Any]] = {
    "nn.functional.adaptive_log_softmax_with_loss": [
        (X, whole(0, 4, 2, 1), tensors(6, 4), [[tensors(6, 2), tensors(2, 2)], [tensors(6, 1), tensors(1, 4)]], [2, 4, 8]),
    ],
    "nn.functional.affine_grid": [(tensors(2, 2, 3), [2, 3, 4, 5]), (tensors(1, 3, 4), [1, 1, 2, 3, 2], False)],
    "nn.functional.batch_norm": [
        (IMAGES, kept(tensors(3)), kept(tensors(3, low=0.5)), tensors(3), tensors(3), True), (X, kept(tensors(6)), kept(tensors(6, low=0.5))),
        (tensors(4, 5, 3), kept(tensors(3)), kept(tensors(3, low=0.5)), None, None, True, 0.5, 1e-3, "NLC"),
    ],
    "nn.functional.bilinear": [(tensors(4, 2), tensors(4, 3), tensors(5, 2, 3), tensors(1, 5))],
    "nn.functional.class_center_sample": [(whole(3, 1, 3, 7), 10, 4)],
    "nn.functional.dropout": [(X, 0.5), (X, 0.5, 1), (X, 0.3, None, False), (X, 0.3, None, True, "downscale_in_infer")],
    "nn.functional.dropout1d": [(tensors(2, 3, 5), 0.5)], "nn.functional.dropout2d": [(IMAGES, 0.5), (IMAGES, 0.5, False)],
    "nn.functional.dropout3d": [(tensors(2, 3, 2, 2, 2), 0.5)], "nn.functional.alpha_dropout": [(X, 0.4)],
    "nn.functional.feature_alpha_dropout": [(IMAGES, 0.4)], "nn.functional.rrelu": [(X,), (X, 0.1, 0.3, False)],
    "nn.functional.embedding": [(whole([[1, 3], [0, 2]]), tensors(5, 4)), (whole(1, 3), tensors(5, 4), 3)],
    "nn.functional.flash_attn_qkvpacked": [(tensors(2, 5, 3, 2, 4),), (tensors(2, 5, 3, 2, 4), 0.0, True)],
    "nn.functional.flashmask_attention": [(QUERY, tensors(2, 5, 2, 4, seed=1), tensors(2, 5, 2, 4, seed=2))],
    "nn.functional.scaled_dot_product_attention": [(QUERY, QUERY, QUERY), (QUERY, QUERY, QUERY, tensors(2, 2, 5, 5)), (QUERY, QUERY, QUERY, None, 0.5, True)],
    "nn.functional.fractional_max_pool2d": [(IMAGES, 3, None, 0.3)], "nn.functional.fractional_max_pool3d": [(tensors(1, 2, 5, 5, 5), 2, None, 0.3)],
    "nn.functional.gather_tree": [(whole([[[2, 2]], [[3, 4]], [[5, 6]]]), whole([[[0, 0]], [[1, 1]], [[0, 1]]]))],
    "nn.functional.gumbel_softmax": [(X,), (X, 0.5, True)],
    "nn.functional.instance_norm": [(IMAGES,), (IMAGES, kept(tensors(3)), kept(tensors(3, low=0.5)), tensors(3), tensors(3), False)],
    "nn.functional.interpolate": [(IMAGES, [4, 9]), (IMAGES, None, 2, "bilinear"), (IMAGES, None, [0.5, 2], "nearest"), (IMAGES, [3, 3], None, "area")],
    "nn.functional.upsample": [(IMAGES, None, 2, "bicubic")], "nn.functional.pad": [(X, [1, 2]), (IMAGES, [1, 0, 2, 1], "reflect"), (X, [1, 2], "constant", 3.0)],
    "nn.functional.zeropad2d": [(IMAGES, [1, 2, 0, 1])], "nn.functional.lp_pool1d": [(tensors(2, 3, 8), 2.0, 2)], "nn.functional.lp_pool2d": [(IMAGES, 3.0, 2)],
    "nn.functional.margin_cross_entropy": [(tensors(4, 6, low=-0.9, high=0.9), whole(0, 5, 2, 2)), (tensors(4, 6, low=-0.9, high=0.9), whole(0, 5, 2, 2), 1.0, 0.2, 0.1, 8.0)],
    "nn.functional.max_unpool1d": [(_POOLED, _PLACES, 2)], "nn.functional.max_unpool2d": [(_POOLED2, _PLACES2, 2)], "nn.functional.max_unpool3d": [(_POOLED3, _PLACES3, 2)],
    "nn.functional.one_hot": [(whole([[1, 3], [0, 2]]), 5), (whole([[1, 3], [0, 2]]),)],
    "nn.functional.sequence_mask": [(whole(1, 3), 4), (whole(1, 3),), (whole(1, 3), 4, "float32")],
    "nn.functional.sparse_attention": [
        (tensors(1, 1, 3, 2), tensors(1, 1, 3, 2, seed=1), tensors(1, 1, 3, 2, seed=2), whole([[[0, 1, 3, 4]]], dtype="int32"), whole([[[0, 0, 2, 1]]], dtype="int32")),
    ],
    "nn.functional.triplet_margin_with_distance_loss": [(X, tensors(4, 6, seed=1), tensors(4, 6, seed=2)), (X, X + 1, X - 0.5, None, 2.0, True, "none")],
    "bernoulli": [(POSITIVE,)], "binomial": [(whole(3, 9), tensors(2, low=0.1, high=0.9))], "multinomial": [(POSITIVE, 2), (POSITIVE, 5, True)], "poisson": [(POSITIVE,)],
    "standard_gamma": [(POSITIVE,)], "rand_like": [(X,)], "randn_like": [(X,)], "randint_like": [(X, 3, 9)], "normal": [(X, 2.0), (0.5, POSITIVE)],
    "log_normal": [(X, 0.5)], "empty_like": [], "full_like": [(X, 3.5), (whole(1, 2), 7)], "ones_like": [(X,)], "zeros_like": [(X, "int32")],
    "argwhere": [(whole([[0, 1], [2, 0]]),)], "nonzero": [(whole([[0, 1], [2, 0]]),), (whole([[0, 1], [2, 0]]), True)], "bincount": [(whole(1, 3, 1),)],
    "masked_select": [(X, X > 0)], "unique": [(whole(3, 1, 3, 2),), (whole(3, 1, 3, 2), True, True, True)], "unique_consecutive": [(whole(3, 3, 1),)],
    "is_tensor": [(X,)], "is_complex": [(X,)], "is_floating_point": [(X,)], "is_integer": [(X,)], "bernoulli_": [(kept(X * 1), 0.5)], "cauchy_": [(kept(X * 1),)],
    "geometric_": [(kept(X * 1), 0.4)], "log_normal_": [(kept(X * 1),)], "normal_": [(kept(X * 1), 1.0, 2.0)],
}  # fmt: skip


def documented() -> dict[str, tuple[Any, str]]:
    """The public Python functions of the modules, each once, with the module and the name."""
    found, seen = {}, set()
    for path, module in MODULES.items():
        for name in sorted(getattr(module, "__all__", None) or (n for n in dir(module) if not n.startswith("_"))):
            function = getattr(module, name)
            if (
                inspect.isfunction(function)
                and id(function) not in seen
                and (path + name in CALLS or ">>>" in (function.__doc__ or ""))
            ):
                seen.add(id(function))
                found[path + name] = (module, name)
    return found


#: They are about modes, devices, files, the process or printing, or give no tensors.
OTHERS = {
    "seed", "save", "load", "set_device", "get_device", "enable_static", "disable_static", "grad", "no_grad", "set_grad_enabled", "summary", "flops",
    "set_printoptions", "set_default_dtype", "get_default_dtype", "set_flags", "get_flags", "batch", "in_dynamic_mode", "create_parameter", "get_rng_state",
    "set_rng_state", "to_tensor", "from_dlpack", "to_dlpack", "autocast", "is_grad_enabled",
}  # fmt: skip


def calls_of(module: Any, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments of every call that the function's examples make, copied before the call."""
    original, found = getattr(module, name), []
    if ">>>" not in (original.__doc__ or ""):
        return []

    @functools.wraps(original)
    def spy(*args: Any, **kwargs: Any) -> Any:
        found.append(nest.map_structure(_copied, (args, kwargs)))
        return original(*args, **kwargs)

    setattr(module, name, spy)
    try:
        space: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for example in doctest.DocTestParser().get_examples(original.__doc__):
                exec(compile(example.source, name, "single"), space)
    finally:
        setattr(module, name, original)
    return found


def _copied(value: Any) -> Any:
    if not isinstance(value, paddle.Tensor):
        return value
    made = value.detach().clone()
    made.persistable = value.persistable
    made.stop_gradient = value.persistable or not paddle.is_floating_point(made)
    return made


def _outcome(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The results, what became of the arguments and the gradients; the copies are the call's own."""
    args, kwargs = nest.map_structure(_copied, (args, kwargs))
    given = [v for v in nest.flatten([list(args), kwargs]) if isinstance(v, paddle.Tensor)]
    paddle.seed(7)
    result = function(*args, **kwargs)
    leaves = [v for v in nest.flatten(result) if isinstance(v, paddle.Tensor)]
    roots = [v for v in leaves if paddle.is_floating_point(v) and not v.stop_gradient]
    wanting = [v for v in given if not v.stop_gradient]
    gradients = [None] * len(wanting)
    if roots and wanting:
        gradients = paddle.grad(sum((v * (k + 1)).sum() for k, v in enumerate(roots)), wanting, allow_unused=True)
    return result, [*given, *(g if g is not None else paddle.zeros_like(v) for g, v in zip(gradients, wanting, strict=True))]


def _recorded(function: Any, is_known: bool) -> Any:
    """The function as a recorded Program of its tensors."""

    def run(*args: Any, **kwargs: Any) -> Any:
        def kind(value: Any) -> Any:
            made = typed(value)
            if made is not value and not is_known:
                made = type(made)(made.dtype, (-1,) * len(made.shape), made.stop_gradient)
            return made

        traced = Traced(function, nest.map_structure(kind, list(args)), nest.map_structure(kind, kwargs))
        return traced.run([v for v in nest.flatten([list(args), kwargs]) if isinstance(v, paddle.Tensor)])

    return run


def _assert_alike(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, paddle.Tensor):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        a, b = (v.astype("float32").numpy() if v.dtype in (paddle.bfloat16,) else v.numpy() for v in (found, wanted))
        exact = a.dtype.kind not in "fc"
        tolerance = 0 if exact else 2e-2 if a.dtype.itemsize == 2 else 2e-5
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            _assert_alike(found[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            _assert_alike(a, b)
    elif isinstance(wanted, np.ndarray):
        np.testing.assert_allclose(found, wanted)
    else:
        assert found == wanted or found is wanted or wanted != wanted


FOUND = {name: place for name, place in documented().items() if name not in OTHERS}


def test_every_recorded_function_is_here():
    own = {name for name in FUNCTIONS if name.startswith("nn.functional.")}
    helpers = {"nn.functional.channel_axis", "nn.functional.integers", "nn.functional.adaptive_log_probabilities"}
    refused = {n for n in own if n.rpartition(".")[2].startswith("moe_") or "varlen" in n}
    assert own - helpers - refused <= set(FOUND)
    assert set(CALLS) <= set(FOUND) | {"empty_like"}


@pytest.mark.parametrize("name", FOUND)
def test_a_recorded_call_is_an_eager_one(name):
    module, own = FOUND[name]
    function = getattr(module, own)
    count = 0
    for args, kwargs in [*((args, {}) for args in CALLS.get(name, ())), *calls_of(module, own)]:
        if not any(isinstance(v, paddle.Tensor) for v in nest.flatten([list(args), kwargs])):
            continue
        try:
            wanted = _outcome(function, args, kwargs)
        except SampanError:
            assert args not in CALLS.get(name, ())
            continue  # an example of what is refused
        for is_known in (True, False):
            try:
                found = _outcome(_recorded(function, is_known), args, kwargs)
            except SampanError:
                if is_known:
                    raise
                continue  # it needs to know a size, and says so
            _assert_alike(found, wanted)
            count += 1
    assert count or not CALLS.get(name)
