"""kl_divergence, and what it does for which pair of distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import tensor as T
from ..base.errors import UnsupportedError, message
from ..tensor import Tensor
from .continuous_bernoulli import ContinuousBernoulli
from .discrete import Bernoulli, Binomial, Categorical, Geometric, Poisson
from .distribution import Distribution, log_beta
from .gamma_family import Beta, Dirichlet, Gamma
from .location_scale import Cauchy, Exponential, Laplace, Uniform
from .normal import LogNormal, MultivariateNormal, Normal

F = TypeVar("F", bound=Callable[..., Tensor])

_rules: dict[tuple[type, type], Callable[..., Tensor]] = {}


def register_kl(cls_p: type[Distribution], cls_q: type[Distribution]) -> Callable[[F], F]:
    """A decorator that makes ``rule(p, q)`` the divergence of these classes, and of their subclasses.

    Example:
        >>> import sampan as paddle
        >>> class Mine(paddle.distribution.Normal):
        ...     pass
        >>> @paddle.distribution.register_kl(Mine, Mine)
        ... def rule(p, q):
        ...     return paddle.zeros([])
        >>> paddle.distribution.kl_divergence(Mine(0.0, 1.0), Mine(5.0, 1.0)).item()
        0.0
    """
    for cls in (cls_p, cls_q):
        if not (isinstance(cls, type) and issubclass(cls, Distribution)):
            raise TypeError(message(f"register_kl(): {cls!r} is no class of distributions"))

    def decorate(rule: F) -> F:
        _rules[cls_p, cls_q] = rule
        return rule

    return decorate


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence of q from p, in nats: the mean under p of log p(x) - log q(x).

    Args:
        p: the distribution whose values are weighed.
        q: the other.

    Raises:
        UnsupportedError: no rule is registered for such a pair.

    Example:
        >>> import sampan as paddle
        >>> from sampan.distribution import Normal, kl_divergence
        >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
        0.5
    """
    for cls_p in type(p).__mro__:
        for cls_q in type(q).__mro__:
            rule = _rules.get((cls_p, cls_q))
            if rule is not None:
                return rule(p, q)
    raise UnsupportedError(
        message(
            f"kl_divergence(): no rule for ({type(p).__name__}, {type(q).__name__})",
            "",
            "write one and register it with register_kl()",
        )
    )


for _own in (
    Bernoulli, Binomial, Categorical, Cauchy, ContinuousBernoulli, Exponential, Gamma, Geometric, Laplace, LogNormal, MultivariateNormal, Normal, Poisson,
):  # fmt: skip
    register_kl(_own, _own)(lambda p, q: p.kl_divergence(q))


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    total = p.alpha + p.beta
    drift = (p.alpha - q.alpha) * T.digamma(p.alpha) + (p.beta - q.beta) * T.digamma(p.beta)
    return log_beta(q.alpha, q.beta) - log_beta(p.alpha, p.beta) + drift + (q.alpha + q.beta - total) * T.digamma(total)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1, keepdim=True)
    return q._log_norm() - p._log_norm() + ((a - b) * (T.digamma(a) - T.digamma(total))).sum(-1)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    inside = T.logical_and(q.low <= p.low, p.high <= q.high)
    ratio = T.log((q.high - q.low) / (p.high - p.low))
    return T.where(inside, ratio, T.full_like(ratio, float("inf")))
