"""Gradients of decompositions, through functions that do not depend on the freedom of a decomposition (signs, phases, one triangle)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.test_definitions import build, check_gradients, evaluate

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


def by_lu(x: Any) -> Any:
    return p.lu(x)[0]


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "eigh": (by_eigenvectors, definite(2, 3, 3)),
    "eigenvalues": (lambda x: p.eigh(hermitian(x))[0], definite(3, 3)),
    "cholesky": (lambda x: p.cholesky(hermitian(x)), definite(2, 3, 3)),
    "svd tall": (by_singular_vectors, real(4, 3)),
    "svd wide": (by_singular_vectors, real(2, 2, 4)),
    "eig": (by_general_eigenvectors, matrix(3, 3)),
    "lu": (by_lu, matrix(2, 3, 3)),
    "qr tall": (lambda x: p.qr(x), real(4, 3)),
    "qr wide": (lambda x: p.qr(x), real(2, 3, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_decompositions_match_finite_differences(name: str) -> None:
    function, sample = FUNCTIONS[name]
    check_gradients(
        OpDef(
            name.replace(" ", "_"), function, (Parameter("x", "tensor"),), ("linalg.test",), samples=((sample,),), tolerance=100.0
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
