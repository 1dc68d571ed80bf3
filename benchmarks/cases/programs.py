"""Compiled training steps: the models of the group ``models`` and DeepFM, forward, backward and Adam in one Program.

sampan: ``jit.TrainStep``. PaddlePaddle: ``jit.to_static`` and its optimizer. PyTorch: ``torch.compile`` of forward and loss, and its fused Adam.
JAX: one jitted function. The peers ``sampan-eager`` and ``torch-eager`` run the same models uncompiled.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from . import jax_models, models
from .case import Body, Case, random_array

_FIELDS, _DENSE, _ROWS, _FACTORS, _DEEP, _BATCH = 26, 13, 2000, 16, (400, 400), 512


def _compiled_paddle(build: models.Build) -> Body:
    def body(p: Any):
        model, loss_of = build(p)
        models.fill_paddle(p, model)
        optimizer = p.optimizer.Adam(learning_rate=models.RATE, parameters=model.parameters())
        if hasattr(p.jit, "TrainStep"):
            return p.jit.TrainStep(loss_of, optimizer)
        model.forward = p.jit.to_static(model.forward)
        return models.training_step(loss_of, optimizer)

    return body


def _compiled_torch(build: models.Build, keeps: tuple[str, ...] = ()) -> Body:
    def body(t: Any):
        model, loss_of = build(t)
        models.fill_torch(t, model, keeps)
        optimizer = t.optim.Adam(model.parameters(), lr=models.RATE, fused=True)
        return models.training_step(t.compile(loss_of), optimizer)

    return body


def _click_arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    ids = rng.integers(0, _ROWS, (_BATCH, _FIELDS)) + np.arange(_FIELDS) * _ROWS
    return ids, random_array(_BATCH, _DENSE), rng.integers(0, 2, (_BATCH, 1)).astype("float32")


def _deep_fm(nn: Any, base: Any, concatenate: Callable[..., Any], flat: Callable[[Any], Any]) -> Any:
    """DeepFM over fields of ids and dense features; https://arxiv.org/abs/1703.04247."""

    class Net(base):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Embedding(_FIELDS * _ROWS, 1)
            self.factors = nn.Embedding(_FIELDS * _ROWS, _FACTORS)
            self.dense = nn.Linear(_DENSE, 1)
            sizes = (_FIELDS * _FACTORS + _DENSE, *_DEEP)
            layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
            self.deep = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))

        def forward(self, ids, values):
            vectors = self.factors(ids)
            summed = vectors.sum(1)
            pairs = 0.5 * (summed * summed - (vectors * vectors).sum(1)).sum(1).reshape([-1, 1])
            return self.first(ids).sum(1) + self.dense(values) + pairs + self.deep(concatenate([flat(vectors), values], 1))

    return Net()


def _deep_fm_paddle(p: Any):
    model = _deep_fm(p.nn, p.nn.Layer, p.concat, lambda v: v.reshape([-1, _FIELDS * _FACTORS]))
    ids, values, labels = map(p.to_tensor, _click_arrays())
    return model, lambda: p.nn.functional.binary_cross_entropy_with_logits(model(ids, values), labels)


def _deep_fm_torch(t: Any):
    model = _deep_fm(t.nn, t.nn.Module, t.cat, lambda v: v.reshape([-1, _FIELDS * _FACTORS]))
    ids, values, labels = map(t.from_numpy, _click_arrays())
    return model, lambda: t.nn.functional.binary_cross_entropy_with_logits(model(ids, values), labels)


_EMBEDDINGS = ("embedding", "first", "factors")
_DEEP_FM = (
    "DeepFM, 26 fields of 2,000 ids, batch 512",
    _deep_fm_paddle,
    _deep_fm_torch,
    _EMBEDDINGS,
    jax_models.deep_fm(_FIELDS, _ROWS, _FACTORS, _DENSE, _DEEP),
    _click_arrays,
)
CASES = tuple(
    Case(
        f"compiled {name}",
        "programs",
        _compiled_paddle(ours),
        _compiled_torch(theirs, keeps),
        jax_models.training(net, data, models.weight, models.RATE),
        eager=models.paddle_body(ours),
        torch_eager=models.torch_body(theirs, keeps),
        tolerance=1e-4,
        target=1.5,
        against=("torch", "torch-eager", "paddle", "jax"),
    )
    for name, ours, theirs, keeps, net, data in (*models.BUILDS, _DEEP_FM)
)
