"""Transforms: inverses, and determinants against Jacobians."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import distribution as D
from sampan.base.errors import ArgumentTypeError, ShapeError


def affine():
    return D.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor([-2.0, 3.0, 0.5]))


ONE_TO_ONE = {
    "affine": affine,
    "exp": D.ExpTransform,
    "power": lambda: D.PowerTransform(paddle.to_tensor(2.0)),
    "sigmoid": D.SigmoidTransform,
    "tanh": D.TanhTransform,
    "chain": lambda: D.ChainTransform([D.SigmoidTransform(), affine()]),
    "independent": lambda: D.IndependentTransform(affine(), 1),
    "reshape": lambda: D.ReshapeTransform([3], [3, 1]),
    "stack": lambda: D.StackTransform([D.ExpTransform(), D.TanhTransform(), affine_scalar()], -1),
    "stick breaking": D.StickBreakingTransform,
}


def affine_scalar():
    return D.AffineTransform(paddle.to_tensor(1.0), paddle.to_tensor(-4.0))


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_the_inverse_undoes_and_the_determinant_is_the_jacobians(name):
    transform = ONE_TO_ONE[name]()
    x = paddle.to_tensor([0.3, 0.9, 0.2])
    y = transform.forward(x)
    np.testing.assert_allclose(transform.inverse(y).numpy(), x.numpy(), rtol=1e-5, atol=1e-6)
    assert list(y.shape) == list(transform.forward_shape(x.shape))
    assert list(x.shape) == list(transform.inverse_shape(y.shape))
    log_det = transform.forward_log_det_jacobian(x)
    np.testing.assert_allclose(transform.inverse_log_det_jacobian(y).numpy(), -log_det.numpy(), rtol=1e-4, atol=1e-5)
    # the determinant by central differences, of the first three results: the last share of a stick follows from the others
    step, columns = 1e-3, []
    for k in range(3):
        shift = paddle.to_tensor(np.eye(3, dtype="float32")[k] * step)
        columns.append((transform.forward(x + shift).numpy() - transform.forward(x - shift).numpy()).reshape(-1)[:3] / (2 * step))
    expected = np.linalg.slogdet(np.stack(columns))[1]
    np.testing.assert_allclose(np.sum(log_det.numpy()), expected, rtol=5e-3, atol=5e-3)


def test_a_tanhs_determinant_stays_finite_where_tanh_is_one():
    assert abs(D.TanhTransform().forward_log_det_jacobian(paddle.to_tensor(50.0)).item() + 98.6137) < 1e-3


def test_abs_and_softmax_are_not_one_to_one():
    low, high = D.AbsTransform().inverse(paddle.to_tensor([2.0]))
    assert (low.tolist(), high.tolist()) == ([-2.0], [2.0])
    with pytest.raises(NotImplementedError, match="not one-to-one"):
        D.SoftmaxTransform().forward_log_det_jacobian(paddle.ones([2]))
    np.testing.assert_allclose(D.SoftmaxTransform().forward(paddle.to_tensor([100.0, 100.0])).numpy(), [0.5, 0.5])


def test_calling_a_transform_follows_the_kind_of_value():
    exp = D.ExpTransform()
    assert exp(paddle.to_tensor(0.0)).item() == 1.0
    law = exp(D.Normal(0.0, 1.0))
    assert isinstance(law, D.TransformedDistribution)
    assert isinstance(exp(D.TanhTransform()), D.ChainTransform)
    np.testing.assert_allclose(
        law.log_prob(paddle.to_tensor(2.0)).item(), D.LogNormal(0.0, 1.0).log_prob(paddle.to_tensor(2.0)).item(), rtol=1e-6
    )


def test_a_transformed_event_sums_the_determinants_of_its_elements():
    base = D.Independent(D.Normal(paddle.zeros([3]), paddle.ones([3])), 1)
    law = D.TransformedDistribution(base, [D.AffineTransform(paddle.to_tensor(0.0), paddle.to_tensor(2.0))])
    expected = D.Normal(paddle.zeros([3]), paddle.full([3], 2.0)).log_prob(paddle.ones([3])).sum().item()
    np.testing.assert_allclose(law.log_prob(paddle.ones([3])).item(), expected, rtol=1e-6)


def test_values_of_a_wrong_kind_or_shape_are_refused():
    with pytest.raises(ArgumentTypeError, match="takes a Tensor"):
        D.ExpTransform().forward(1.0)
    with pytest.raises(ShapeError, match="at least 1 axes"):
        D.SoftmaxTransform().forward(paddle.to_tensor(1.0))
    with pytest.raises(ShapeError, match="number of elements"):
        D.ReshapeTransform([2], [3])
    with pytest.raises(ShapeError, match="must have length 1"):
        D.StackTransform([D.ExpTransform()]).forward(paddle.ones([2]))
