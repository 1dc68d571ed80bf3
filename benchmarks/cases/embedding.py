"""A training step of a sparse embedding: its cost must not depend on the table's height."""

from __future__ import annotations

import numpy as np

from .case import Body, Case

_WIDTH, _IDS = 64, 4096


def _table(height: int) -> np.ndarray:
    return (np.arange(height * _WIDTH, dtype="int64") % 1009).reshape(height, _WIDTH).astype("float32") / 1009


def _ids(height: int) -> np.ndarray:
    return np.random.default_rng(2).zipf(1.2, _IDS) % height


def _paddle(height: int, is_adam: bool) -> Body:
    def body(p):
        layer = p.nn.Embedding(height, _WIDTH, sparse=True)
        layer.weight.set_value(p.to_tensor(_table(height)))
        ids = p.to_tensor(_ids(height))
        parameters = layer.parameters()
        optimizer = (
            p.optimizer.Adam(1e-3, parameters=parameters, lazy_mode=True)
            if is_adam
            else p.optimizer.SGD(1e-2, parameters=parameters)
        )

        def step():
            loss = (layer(ids) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step

    return body


def _torch(height: int, is_adam: bool) -> Body:
    def body(t):
        layer = t.nn.Embedding(height, _WIDTH, sparse=True)
        with t.no_grad():
            layer.weight.copy_(t.from_numpy(_table(height)))
        ids = t.from_numpy(_ids(height))
        parameters = list(layer.parameters())
        optimizer = t.optim.SparseAdam(parameters, lr=1e-3) if is_adam else t.optim.SGD(parameters, lr=1e-2)

        def step():
            loss = (layer(ids) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return step

    return body


CASES = tuple(
    Case(
        f"sparse embedding {height:,} x {_WIDTH}, {_IDS} ids, {'lazy Adam' if is_adam else 'SGD'}",
        "embedding",
        _paddle(height, is_adam),
        _torch(height, is_adam),
    )
    for is_adam in (False, True)
    for height in (10_000, 1_000_000)
)
