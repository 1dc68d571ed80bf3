"""Training gives the same losses, to the last bit, on one and on two threads and in a second run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import sampan as paddle
from sampan import nn
from sampan.nn import functional as F

Step = Callable[[], paddle.Tensor]


@pytest.fixture
def keep_threads() -> Iterator[None]:
    """The test may change the number of threads."""
    yield
    paddle.set_flags({"FLAGS_num_threads": 0})


def convolution_net() -> tuple[nn.Layer, Step]:
    """One channel in, few filters, batch norm, pooling of both kinds, groups, strides."""
    model = nn.Sequential(
        nn.Conv2D(1, 6, 5, padding=2), nn.BatchNorm2D(6), nn.ReLU(), nn.MaxPool2D(2),
        nn.Conv2D(6, 16, 5), nn.BatchNorm2D(16), nn.ReLU(), nn.AvgPool2D(2),
        nn.Conv2D(16, 16, 3, padding=1, groups=16), nn.Conv2D(16, 32, 1), nn.GELU(), nn.Conv2D(32, 32, 3, stride=2),
        nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    x, y = paddle.rand([64, 1, 28, 28]), paddle.randint(0, 10, [64])
    return model, lambda: F.cross_entropy(model(x), y)


def recurrent_net() -> tuple[nn.Layer, Step]:
    """Embedding, two layers of LSTM, a classifier."""
    embedding, lstm, head = nn.Embedding(50, 64), nn.LSTM(64, 96, num_layers=2, direction="bidirect"), nn.Linear(192, 50)
    model = nn.LayerList([embedding, lstm, head])
    x = paddle.randint(0, 50, [32, 20])
    return model, lambda: F.cross_entropy(head(lstm(embedding(x))[0]).reshape([-1, 50]), x.reshape([-1]))


def transformer() -> tuple[nn.Layer, Step]:
    """Embedding, two encoder layers with dropout, a classifier of many classes."""
    embedding, head = nn.Embedding(2000, 64), nn.Linear(64, 2000)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, activation="gelu"), 2)
    model = nn.LayerList([embedding, encoder, head])
    x = paddle.randint(0, 2000, [8, 64])
    return model, lambda: F.cross_entropy(head(encoder(embedding(x))).reshape([-1, 2000]), x.reshape([-1]))


def losses(make: Callable[[], tuple[nn.Layer, Step]], threads: int) -> list[float]:
    """Of six steps with Adam."""
    paddle.set_flags({"FLAGS_num_threads": threads})
    paddle.seed(7)
    model, step = make()
    optimizer = paddle.optimizer.Adam(1e-2, parameters=model.parameters())
    found = []
    for _ in range(6):
        loss = step()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("make", [convolution_net, recurrent_net, transformer])
def test_losses_do_not_depend_on_threads_or_runs(make, keep_threads):
    two = losses(make, 2)
    assert two[-1] < two[0]
    assert losses(make, 1) == two
    assert losses(make, 2) == two
