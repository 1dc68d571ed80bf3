"""Random functions over the generator: those that check or sample on the host, and the in-place forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _rt
from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, message
from ..ir.program import Value
from ..ops.arguments import dtype_name
from ..ops.primitives import broadcast_shapes
from .build import OPS, composed
from .composed import from_array, require_rank, require_tensor
from .random import default_generator
from .storage_methods import set_value

Tensor = _rt.Tensor


def host_generator() -> np.random.Generator:
    """A NumPy generator on the next key of the stream."""
    return np.random.Generator(np.random.Philox(key=default_generator.next_key() & (1 << 64) - 1))


def _array(x: Tensor) -> np.ndarray[Any, Any]:
    if dtypes.is_complex(x.dtype.name):
        raise DTypeError(message(f"the tensor is {x.dtype.name}", "it must hold real numbers"))
    array = x.numpy_view()
    return array.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else array


def _like(values: np.ndarray[Any, Any], dtype: str) -> Tensor:
    return from_array(np.asarray(values).astype(dtypes.numpy_dtype(dtype)))


def _outside(name: str, parameter: str, array: np.ndarray[Any, Any], is_bad: np.ndarray[Any, Any], wanted: str) -> None:
    if is_bad.any():
        raise ArgumentError(message(f"{name}(): {parameter} holds {array[is_bad].flat[0]}", f"it must be {wanted}"))


def _require_probabilities(name: str, argument: str, values: Any) -> None:
    _outside(name, argument, values, ~((values >= 0) & (values <= 1)), "a probability in [0, 1]")


@composed("bernoulli", method=True, rule=lambda x, p, name: (x.dtype, tuple(x.shape)))
def bernoulli(x: Tensor, p: float | None = None, name: str | None = None) -> Tensor:
    """1 with probability x, else 0; shaped like x, in its dtype.

    Args:
        x: probabilities in [0, 1].
        p: one probability for all elements, in place of x's values.

    Raises:
        ArgumentError: a probability outside of [0, 1].
    """
    require_tensor("bernoulli", "x", x)
    if p is None:
        _require_probabilities("bernoulli", "x", _array(x))
    elif not 0 <= p <= 1:
        raise ArgumentError(message(f"bernoulli(): p={p}", "it must be in [0, 1]"))
    return OPS["bernoulli_draw"](x, p)


@composed("normal")
def normal(mean: Any = 0.0, std: Any = 1.0, shape: Any = None, name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """mean + std * standard normal numbers.

    Args:
        mean: a number or a tensor.
        std: a number or a tensor.
        shape: of the result when both are numbers; one element by default.
    """
    is_plain = not isinstance(mean, (Tensor, Value)) and not isinstance(std, (Tensor, Value))
    drawn = OPS["normal_draw"](mean, std, ([1] if shape is None else shape) if is_plain else None)
    return drawn if out is None else _written(out, drawn)


def _written(target: Tensor, source: Tensor) -> Tensor:
    set_value(target, source)
    return target


@composed("log_normal")
def log_normal(mean: Any = 1.0, std: Any = 2.0, shape: Any = None, name: str | None = None) -> Tensor:
    """exp of normal numbers of this mean and standard deviation."""
    return OPS["exp"](normal(mean, std, shape))


@composed("randperm", rule=lambda n, dtype, *_, **__: (dtype_name("randperm", dtype), (n if isinstance(n, int) else -1,)))
def randperm(
    n: int,
    dtype: Any = "int64",
    name: str | None = None,
    *,
    out: Tensor | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The integers 0 to n - 1 in random order."""
    if isinstance(n, Tensor) and n.size == 1:
        n = n.item()
    if isinstance(n, bool) or not isinstance(n, int):
        raise ArgumentTypeError(message(f"randperm(): n={n!r}", "it must be an integer"))
    if n < 0:
        raise ArgumentError(message(f"randperm(): n={n}", "it must be 0 or more"))
    made = _like(host_generator().permutation(n), dtype_name("randperm", dtype))
    made.stop_gradient = not requires_grad
    return made if out is None else _written(out, made)


@composed("multinomial", method=True, rule=lambda x, num_samples, *_, **__: ("int64", (*x.shape[:-1], num_samples)))
def multinomial(
    x: Tensor, num_samples: int = 1, replacement: bool = False, name: str | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Indices drawn with the weights of each row of x.

    Args:
        x: weights [n] or [rows, n], not negative, with a positive sum in each row.
        num_samples: how many to draw from each row.
        replacement: whether an index may be drawn again.

    Returns:
        int64 [num_samples] or [rows, num_samples].
    """
    require_tensor("multinomial", "x", x)
    weights = np.asarray(_array(x), np.float64)
    if weights.ndim not in (1, 2):
        raise ArgumentError(message(f"multinomial(): x has shape {list(x.shape)}", "it must have one or two axes"))
    _outside("multinomial", "x", weights, ~(weights >= 0) | np.isinf(weights), "finite and not negative")
    rows = weights.reshape(-1, weights.shape[-1])
    if (rows.sum(1) <= 0).any():
        raise ArgumentError("multinomial(): a row of x sums to 0; each needs a positive weight")
    if num_samples < 1 or (not replacement and (rows > 0).sum(1).min(initial=num_samples) < num_samples):
        raise ArgumentError(
            message(
                f"multinomial(): num_samples={num_samples} without replacement",
                "each row needs that many positive weights",
                "pass replacement=True",
            )
        )
    generator = host_generator()
    if replacement:
        cumulative = np.cumsum(rows, 1)
        drawn = generator.random((len(rows), num_samples)) * cumulative[:, -1:]
        picked = np.stack([np.searchsorted(c, d, side="right") for c, d in zip(cumulative, drawn, strict=True)])
        picked = np.minimum(picked, [[np.flatnonzero(r)[-1]] for r in rows])
    else:  # the largest of log-weights with Gumbel noise
        with np.errstate(divide="ignore"):
            noisy = np.log(rows) - np.log(-np.log(generator.random(rows.shape)))
        picked = np.argsort(-noisy, axis=1, kind="stable")[:, :num_samples]
    made = _like(picked.reshape(*weights.shape[:-1], num_samples), "int64")
    return made if out is None else _written(out, made)


@composed(method=True)
def top_p_sampling(
    x: Tensor,
    ps: Tensor,
    threshold: Tensor | None = None,
    topp_seed: Tensor | None = None,
    seed: int = -1,
    k: int = 0,
    mode: str = "truncated",
    return_top: bool = False,
    name: str | None = None,
) -> Any:
    """An index of each row drawn among its most probable ones, as many as together reach the probability ``ps``.

    Args:
        x: probabilities [rows, n].
        ps: the probability to reach, [rows] or [rows, 1].
        threshold: probabilities below it are not drawn, [rows] or [rows, 1].
        topp_seed: a seed for each row; by default the stream of ``paddle.seed``.
        seed: one seed for all rows; -1: the stream of ``paddle.seed``.
        k: how many of the most probable to return with ``return_top``.
        mode: ``truncated``, or ``non-truncated``: ``ps`` does not cut.
        return_top: also give the ``k`` highest probabilities and their indices.

    Returns:
        The drawn probabilities [rows, 1] and their int64 indices [rows, 1]; with ``return_top`` also those of the highest, [rows, k].

    Raises:
        ShapeError: x is not [rows, n], or ps has not one element for each row.

    Source: A. Holtzman et al., https://arxiv.org/abs/1904.09751
    """
    require_tensor("top_p_sampling", "x", x)
    if mode not in ("truncated", "non-truncated"):
        raise ArgumentError(message(f"top_p_sampling(): mode={mode!r}", "it must be 'truncated' or 'non-truncated'"))
    require_rank("top_p_sampling", "x", x, 2)
    probabilities = np.asarray(_array(x), np.float64)
    for parameter, value in {"ps": ps, "threshold": threshold, "topp_seed": topp_seed}.items():
        if value is not None and require_tensor("top_p_sampling", parameter, value).size != len(probabilities):
            raise ShapeError(
                message(f"top_p_sampling(): {parameter} has {value.size} elements", f"x has {len(probabilities)} rows")
            )
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ordered = np.take_along_axis(probabilities, order, 1)
    before = np.cumsum(ordered, 1) - ordered
    kept = np.ones(ordered.shape, bool) if mode == "non-truncated" else before < _array(ps).reshape(-1, 1)
    if threshold is not None:
        kept &= ordered >= _array(threshold).reshape(-1, 1)
    kept[:, 0] = True
    if topp_seed is not None:
        seeds = [int(s) & (1 << 63) - 1 for s in topp_seed.numpy_view().reshape(-1)]
        drawn = np.array([[np.random.default_rng(s).random()] for s in seeds])
    else:
        generator = host_generator() if seed == -1 else np.random.default_rng(seed & (1 << 63) - 1)
        drawn = generator.random((len(ordered), 1))
    cumulative = np.cumsum(np.where(kept, ordered, 0), 1)
    place = np.minimum((cumulative <= drawn * cumulative[:, -1:]).sum(1, keepdims=True), kept.sum(1, keepdims=True) - 1)
    index = np.take_along_axis(order, place, 1)
    result = (_like(np.take_along_axis(probabilities, index, 1), x.dtype.name), from_array(index))
    if not return_top:
        return result
    return (*result, _like(ordered[:, :k], x.dtype.name), from_array(order[:, :k]))


@composed("poisson", rule=lambda x, name: (x.dtype, tuple(x.shape)))
def poisson(x: Tensor, name: str | None = None) -> Tensor:
    """Poisson numbers of the rates x, shaped like x, in its dtype."""
    rates = _array(require_tensor("poisson", "x", x))
    _outside("poisson", "x", rates, ~(rates >= 0), "0 or more")
    return _like(host_generator().poisson(rates), x.dtype.name)


@composed("binomial", rule=lambda count, prob, name: ("int64", tuple(broadcast_shapes(tuple(count.shape), tuple(prob.shape)))))
def binomial(count: Tensor, prob: Tensor, name: str | None = None) -> Tensor:
    """How many of ``count`` trials of probability ``prob`` succeed; int64, of the operands' broadcast shape."""
    n, p = _array(require_tensor("binomial", "count", count)), _array(require_tensor("binomial", "prob", prob))
    broadcast_shapes(n.shape, p.shape)
    _outside("binomial", "count", n, n < 0, "0 or more")
    _outside("binomial", "prob", p, ~((p >= 0) & (p <= 1)), "in [0, 1]")
    return _like(host_generator().binomial(n.astype(np.int64), p), "int64")


@composed("standard_gamma", rule=lambda x, name: (x.dtype, tuple(x.shape)))
def standard_gamma(x: Tensor, name: str | None = None) -> Tensor:
    """Gamma numbers of the shape parameters x and scale 1, shaped like x, in its dtype."""
    shape = _array(require_tensor("standard_gamma", "x", x))
    _outside("standard_gamma", "x", shape, ~(shape > 0), "positive")
    return _like(host_generator().standard_gamma(shape), x.dtype.name)


def _fill(x: Tensor, values: Tensor) -> Tensor:
    if isinstance(x, Value):  # a Variable of a Program: from here on it is these
        return x.copy_(values)  # type: ignore[attr-defined, no-any-return]
    _rt.copy_into(x, values)
    return x


def _sizes(name: str, x: Tensor) -> list[int]:
    return list(require_tensor(name, "x", x).shape)


@composed(method=True)
def uniform_(x: Tensor, min: float = 0, max: float = 1.0, seed: int = 0, name: str | None = None) -> Tensor:
    """Fill x with uniform numbers in [min, max); gives x."""
    return _fill(x, OPS["uniform"](_sizes("uniform_", x), x.dtype, min, max))


@composed("normal_", method=True)
def normal_(x: Tensor, mean: Any = 0.0, std: Any = 1.0, name: str | None = None) -> Tensor:
    """Fill x with normal numbers; gives x."""
    return _fill(x, OPS["normal_draw"](mean, std, _sizes("normal_", x)))


@composed("log_normal_", method=True)
def log_normal_(x: Tensor, mean: float = 1.0, std: float = 2.0, name: str | None = None) -> Tensor:
    """Fill x with exp of normal numbers; gives x."""
    return _fill(x, log_normal(mean, std, _sizes("log_normal_", x)))


@composed("bernoulli_", method=True)
def bernoulli_(x: Tensor, p: Any = 0.5, name: str | None = None) -> Tensor:
    """Fill x with 1 at probability p, a number or a tensor that broadcasts to x, else 0; gives x, whose old elements do not count."""
    sizes = _sizes("bernoulli_", x)
    if not isinstance(p, Value):
        _require_probabilities("bernoulli_", "p", _array(p) if isinstance(p, Tensor) else np.asarray(p, "float64"))
    probabilities = OPS["broadcast_to"](p, sizes) if isinstance(p, (Tensor, Value)) else OPS["full"](sizes, p, "float32")
    return _fill(x, bernoulli(probabilities))


def _uniform(name: str, x: Tensor) -> Tensor:
    return OPS["rand"](_sizes(name, x), "float64")


@composed(method=True)
def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Fill x with exponential numbers of rate lam; gives x."""
    if not lam > 0:
        raise ArgumentError(message(f"exponential_(): lam={lam}", "it must be positive"))
    return _fill(x, OPS["divide"](OPS["log1p"](OPS["neg"](_uniform("exponential_", x))), -lam))


@composed("cauchy_", method=True)
def cauchy_(x: Tensor, loc: float = 0, scale: float = 1, name: str | None = None) -> Tensor:
    """Fill x with Cauchy numbers; gives x."""
    return _fill(
        x,
        OPS["add"](OPS["multiply"](OPS["tan"](OPS["multiply"](OPS["subtract"](_uniform("cauchy_", x), 0.5), np.pi)), scale), loc),
    )


@composed("geometric_", method=True)
def geometric_(x: Tensor, probs: Any, name: str | None = None) -> Tensor:
    """Fill x with log(u) / log1p(-probs) of uniform u, the continuous form of geometric numbers; gives x."""
    return _fill(x, OPS["divide"](OPS["log1p"](OPS["neg"](_uniform("geometric_", x))), float(np.log1p(-float(probs)))))


@composed(method=True)
def random_(x: Tensor, from_: int = 0, to: int | None = None, *, generator: None = None) -> Tensor:
    """Fill x with uniform integers in [from_, to); gives x. ``generator`` is accepted for compatibility, and has no other value than None."""
    limit = 2**24 if x.dtype.kind == "f" else min(2 ** (8 * x.element_size() - 1) - 1, 2**31 - 1)
    return _fill(x, OPS["randint"](from_, limit if to is None else to, _sizes("random_", x)))
