"""Gradients of decompositions, through functions that do not depend on the freedom of a decomposition (signs, phases, one triangle)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.test_definitions import build, check_gradients, evaluate

import sampan as paddle
from sampan.base.errors import ArgumentError
from sampan.ops import OpDef
from sampan.ops import primitives as p
from sampan.ops.define import Parameter
from sampan.ops.samples import definite, matrix, real


def hermitian(x: Any) -> Any:
    return p.mul(p.add(x, p.adjoint(x)), 0.5)


def columns(x: Any, scale: Any) -> Any:
    return p.mul(x, p.broadcast_to(p.reshape(p.cast(scale, x.dtype), (*scale.shape[:-1], 1, scale.shape[-1])), x.shape))


def by_eigenvectors(x: Any) -> Any:
    w, v = p.eigh(hermitian(x))
    return p.matmul(columns(v, p.exp(w)), p.adjoint(v))


def by_singular_vectors(x: Any) -> Any:
    u, s, vh = p.svd(x)
    return p.matmul(columns(u, p.mul(s, s)), vh)


def by_general_eigenvectors(x: Any) -> Any:
    w, v = p.eig(x)
    return p.matmul(columns(v, p.mul(w, w)), p.inverse(v))


def first(x: Any, count: int) -> Any:
    """The first columns."""
    return p.slice_(x, (0,) * x.ndim, (*x.shape[:-1], count), (1,) * x.ndim)


def by_square_singular_vectors(x: Any) -> Any:
    u, s, vh = p.svd(x, True)
    k = s.shape[-1]
    return p.matmul(columns(first(u, k), p.mul(s, s)), p.adjoint(first(p.adjoint(vh), k)))


def by_lu(x: Any) -> Any:
    return p.lu(x)[0]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "eigh": (by_eigenvectors, definite(2, 3, 3)),
    "eigenvalues": (lambda x: p.eigh(hermitian(x))[0], definite(3, 3)),
    "cholesky": (lambda x: p.cholesky(hermitian(x)), definite(2, 3, 3)),
    "svd tall": (by_singular_vectors, real(4, 3)),
    "svd wide": (by_singular_vectors, real(2, 2, 4)),
    "svd tall, square vectors": (by_square_singular_vectors, real(2, 4, 3)),
    "svd wide, square vectors": (by_square_singular_vectors, real(2, 4)),
    "eig": (by_general_eigenvectors, matrix(3, 3)),
    "lu": (by_lu, matrix(2, 3, 3)),
    "lu tall": (by_lu, real(2, 5, 3)),
    "lu wide": (by_lu, real(3, 5)),
    "qr tall": (lambda x: p.qr(x), real(4, 3)),
    "qr tall, square q": (lambda x: (first(p.qr(x, True)[0], 3), p.qr(x, True)[1]), real(2, 4, 3)),
    "qr wide": (lambda x: p.qr(x), real(2, 3, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_decompositions_match_finite_differences(name: str) -> None:
    function, sample = FUNCTIONS[name]
    check_gradients(
        OpDef(
            name.replace(" ", "_").replace(",", ""),
            function,
            (Parameter("x", "tensor"),),
            ("linalg.test",),
            samples=((sample,),),
            tolerance=100.0,
        )
    )


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_decompositions_multiply_back(dtype: str) -> None:
    rng = np.random.default_rng(1)

    def random(*shape: int) -> Any:
        values = rng.normal(size=shape)
        return (values + 1j * rng.normal(size=shape) if dtype == "complex128" else values).astype(dtype)

    def run(function: Callable[..., Any], *arrays: Any) -> Any:
        parameters = tuple(Parameter(f"x{k}", "tensor") for k in range(len(arrays)))
        return evaluate(build(OpDef("test", function, parameters, ()), list(arrays), {}), list(arrays))

    a = random(2, 4, 3)
    u, s, vh = run(lambda x: p.svd(x), a)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, a, atol=1e-10)
    q, r = run(lambda x: p.qr(x), a)
    np.testing.assert_allclose(q @ r, a, atol=1e-10)
    b = random(2, 3, 3)
    w, v = run(lambda x: p.eig(x), b)
    np.testing.assert_allclose(b @ v, v * w[..., None, :], atol=1e-10)
    packed, pivots, info = run(lambda x: p.lu(x), b)
    lower, upper = np.tril(packed, -1) + np.eye(3), np.triu(packed)
    (exchange,) = run(lambda x: p.pivot_matrix(x, 3, "float64"), pivots)
    np.testing.assert_allclose(exchange @ lower @ upper, b, atol=1e-10)
    assert not info.any()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("svd", lambda x: paddle.linalg.svd(x, full_matrices=True)[0]),
        ("svd", lambda x: paddle.linalg.svd(x.t(), full_matrices=True)[2]),
        ("qr", lambda x: paddle.linalg.qr(x, mode="complete")[0]),
    ],
)
def test_columns_that_only_complete_a_basis_have_no_gradient_and_the_others_have_one(name: str, call: Any) -> None:
    x = paddle.to_tensor(np.random.default_rng(2).normal(size=(4, 3)), stop_gradient=False)
    vectors = call(x)
    assert vectors.shape == [4, 4]
    with pytest.raises(ArgumentError, match=rf"{name}\(.*columns after the first 3 only complete a basis"):
        (vectors**2).sum(-1).cumsum().sum().backward()
    x.clear_grad()
    call(x).abs().sum().detach()  # forward alone is no matter
    paddle.linalg.svd(x, full_matrices=True)[1].sum().backward()
    want = x.grad.numpy()
    x.clear_grad()
    paddle.linalg.svdvals(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-10)


def test_lu_of_what_is_not_square_runs_with_gradients_recorded() -> None:
    for shape in [(3, 5), (2, 5, 3)]:
        x = paddle.to_tensor(np.random.default_rng(3).normal(size=shape), stop_gradient=False)
        packed, pivots = paddle.linalg.lu(x)
        exchange, left, right = paddle.linalg.lu_unpack(packed, pivots)
        (exchange @ left @ right).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.ones(shape), atol=1e-10)


def test_integers_keep_their_documented_types() -> None:
    small = paddle.to_tensor([-3, 4, 0], dtype="int32")
    angle = paddle.atan2(small, paddle.to_tensor([2, -1, -5], dtype="int32"))
    assert angle.dtype == paddle.float64
    np.testing.assert_allclose(angle.numpy(), np.arctan2([-3, 4, 0], [2, -1, -5]), rtol=1e-15)
    signed = paddle.copysign(small, paddle.to_tensor([1, -1, -1], dtype="int32"))
    assert signed.dtype == paddle.int32
    assert signed.tolist() == [3, -4, 0]
    assert paddle.copysign(small, -2).tolist() == [-3, -4, 0]
    assert paddle.copysign(small, -0.0).dtype == paddle.float32
    dot = paddle.linalg.vecdot(paddle.to_tensor([2**30, 2**30], dtype="int32"), paddle.to_tensor([4, 4], dtype="int32"))
    assert dot.dtype == paddle.int64
    assert dot.item() == 2**33
