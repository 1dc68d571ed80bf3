"""What every distribution gives for fixed parameters; run as a script where ``import paddle`` is the real one, it prints Paddle's answers."""

# ruff: noqa: B023 (what closes over a loop variable here is called in the same round)
from __future__ import annotations

import json

import numpy as np

#: The values at which densities are taken, by what a distribution takes.
VALUES = {
    "real": [0.3, -1.2],
    "positive": [0.4, 2.5],
    "unit": [0.2, 0.7],
    "count": [0.0, 3.0],
    "binary": [0.0, 1.0],
    "simplex": [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],
    "counts": [1.0, 2.0, 1.0],
    "factor": [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.1, 0.2, 0.9747]],
}

#: Name -> (the distribution, what values it takes, another for the divergence), as text over ``D`` and ``f``, which makes a float32 tensor.
CASES = {
    "Normal": ("D.Normal(f([0.5, -1.0]), f([1.0, 2.0]))", "real", "D.Normal(f([0.0, 1.0]), f([2.0, 0.5]))"),
    "Normal of floats": ("D.Normal(0.0, 2.0)", "real", "D.Normal(1.0, 3.0)"),
    "Normal of lists": ("D.Normal([0.0, 1.0], [2.0, 3.0])", "real", None),
    "LogNormal": ("D.LogNormal(f([0.5, -1.0]), f([1.0, 0.5]))", "positive", "D.LogNormal(f([0.0, 1.0]), f([2.0, 0.5]))"),
    "Uniform": ("D.Uniform(f([-1.0, -2.0]), f([1.0, 3.0]))", "real", "D.Uniform(f([-2.0, -3.0]), f([1.5, 4.0]))"),
    "Laplace": ("D.Laplace(f([0.5, -1.0]), f([1.0, 2.0]))", "real", "D.Laplace(f([0.0, 1.0]), f([2.0, 0.5]))"),
    "Gumbel": ("D.Gumbel(f([0.5, -1.0]), f([1.0, 2.0]))", "real", None),
    "Cauchy": ("D.Cauchy(f([0.5, -1.0]), f([1.0, 2.0]))", "real", "D.Cauchy(f([0.0, 1.0]), f([2.0, 0.5]))"),
    "StudentT": ("D.StudentT(f([3.0, 1.5]), f([0.5, -1.0]), f([1.0, 2.0]))", "real", None),
    "Exponential": ("D.Exponential(f([0.5, 2.0]))", "positive", "D.Exponential(f([1.0, 3.0]))"),
    "Gamma": ("D.Gamma(f([0.5, 2.0]), f([1.0, 3.0]))", "positive", "D.Gamma(f([1.0, 3.0]), f([2.0, 0.7]))"),
    "Chi2": ("D.Chi2(f([0.5, 2.0]))", "positive", None),
    "Beta": ("D.Beta(f([0.5, 2.0]), f([1.0, 3.0]))", "unit", "D.Beta(f([1.0, 3.0]), f([2.0, 0.7]))"),
    "Dirichlet": ("D.Dirichlet(f([[0.5, 2.0, 1.0], [1.0, 1.0, 3.0]]))", "simplex", "D.Dirichlet(f([[1.0, 2.0, 1.0], [2.0, 1.0, 0.3]]))"),
    "Bernoulli": ("D.Bernoulli(f([0.3, 0.8]))", "binary", "D.Bernoulli(f([0.5, 0.6]))"),
    "Geometric": ("D.Geometric(f([0.3, 0.8]))", "count", None),
    "Poisson": ("D.Poisson(f([0.3, 4.0]))", "count", "D.Poisson(f([0.5, 0.6]))"),
    "Binomial": ("D.Binomial(paddle.to_tensor(5), f([0.3, 0.8]))", "count", "D.Binomial(paddle.to_tensor(5), f([0.5, 0.6]))"),
    "Multinomial": ("D.Multinomial(4, f([0.3, 0.2, 0.5]))", "counts", None),
    "Categorical": ("D.Categorical(f([0.3, 0.2, 0.7]))", [2, 0, 1], "D.Categorical(f([0.5, 0.6, 0.1]))"),
    "Categorical of rows": ("D.Categorical(f([[0.3, 0.2, 0.7], [1.0, 2.0, 3.0]]))", [2, 0], "D.Categorical(f([[0.5, 0.6, 0.1], [1.0, 1.0, 1.0]]))"),
    "ContinuousBernoulli": ("D.ContinuousBernoulli(f([0.3, 0.8]))", "unit", "D.ContinuousBernoulli(f([0.5, 0.6]))"),
    "ContinuousBernoulli near 1/2": ("D.ContinuousBernoulli(f([0.4995, 0.5]))", "unit", None),
    "MultivariateNormal": (
        "D.MultivariateNormal(f([0.3, 0.8]), covariance_matrix=f([[2.0, 0.5], [0.5, 1.0]]))", "real",
        "D.MultivariateNormal(f([0.0, 1.0]), scale_tril=f([[1.0, 0.0], [0.5, 1.0]]))",
    ),
    "MultivariateNormal by precision": ("D.MultivariateNormal(f([0.3, 0.8]), precision_matrix=f([[2.0, 0.5], [0.5, 1.0]]))", "real", None),
    "LKJCholesky": ("D.LKJCholesky(3, 2.0)", "factor", None),
    "Independent": ("D.Independent(D.Normal(f([[0.5, -1.0]]), f([[1.0, 2.0]])), 1)", "real", None),
    "TransformedDistribution": (
        "D.TransformedDistribution(D.Normal(f([0.5, -1.0]), f([1.0, 2.0])), [D.AffineTransform(f([1.0]), f([2.0])), D.ExpTransform()])", "positive", None,
    ),
}  # fmt: skip


def made(paddle, text):
    """The distribution that the text describes."""
    names = {"D": paddle.distribution, "paddle": paddle, "f": lambda x: paddle.to_tensor(np.array(x, "float32"))}
    return eval(text, names)


def value_of(paddle, kind):
    """The tensor at which densities are taken."""
    return paddle.to_tensor(np.array(VALUES[kind], "float32") if isinstance(kind, str) else np.array(kind))


def answers(paddle):
    """Everything as lists, by "name.what"; None where there is no such thing."""
    found = {}

    def record(key, ask):
        try:
            answer = ask()
        except (NotImplementedError, AttributeError, TypeError, ValueError):
            answer = None
        if hasattr(answer, "numpy"):
            answer = [list(answer.shape), np.asarray(answer.numpy(), "float64").reshape(-1).tolist()]
        found[key] = answer

    for name, (text, kind, other) in CASES.items():
        law, value = made(paddle, text), value_of(paddle, kind)
        for what in ("mean", "variance"):
            record(f"{name}.{what}", lambda: getattr(law, what))
        for what in ("entropy", "log_prob", "prob", "cdf", "pmf", "log_pmf"):
            record(f"{name}.{what}", lambda: getattr(law, what)(*([] if what == "entropy" else [value])))
        record(f"{name}.icdf", lambda: law.icdf(value_of(paddle, "unit")))
        for shape in ([], [4], [2, 3]):
            record(f"{name}.sample{shape}", lambda: list(law.sample(shape).shape))
        if other is not None:
            record(f"{name}.kl", lambda: paddle.distribution.kl_divergence(law, made(paddle, other)))
    return found


if __name__ == "__main__":
    import paddle

    print(json.dumps(answers(paddle)))
