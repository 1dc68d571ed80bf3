"""Whole training steps with Adam: the same weights and data in every framework, so that the losses can be compared.

A model is written twice, layer by layer in the same order; weights are drawn by position and shape, and laid out as each framework wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import jax_models
from .case import Body, Case, random_array

RATE = 1e-4  # small: Adam's first steps go by the sign of a gradient, so rounding turns those of almost zero
_VOCABULARY, _WIDTH, _LAYERS, _HEADS, _HIDDEN = 8000, 256, 4, 8, 1024
_RNN_INPUT, _RNN_HIDDEN, _RNN_STEPS, _RNN_BATCH, _RNN_CLASSES = 128, 256, 64, 32, 10


def weight(index: int, shape: tuple[int, ...], is_scale: bool) -> np.ndarray:
    """Uniform in +-1/sqrt(fan in) for weights in Paddle's layout; ones for scales and zeros for other vectors."""
    if len(shape) == 1:
        return np.full(shape, 1.0 if is_scale else 0.0, "float32")
    bound = 1.0 / np.sqrt(np.prod(shape[1:]) if len(shape) == 4 else max(shape[0], 64))
    return random_array(*shape, seed=40 + index, low=-bound, high=bound)


def _is_scale(name: str) -> bool:
    return name.endswith("weight")  # of one axis: that of a normalisation


def fill_paddle(p: Any, model: Any) -> None:
    """Give the model's parameters their weights; running statistics, which Paddle counts among them, keep their start."""
    trained = [(n, q) for n, q in model.named_parameters() if not q.stop_gradient]
    for index, (name, parameter) in enumerate(trained):
        parameter.set_value(p.to_tensor(weight(index, tuple(parameter.shape), _is_scale(name))))


def fill_torch(t: Any, model: Any, keeps: tuple[str, ...] = ()) -> None:
    """The same for PyTorch, whose linear weights lie the other way round; ``keeps``: parts of names whose weights do not."""
    with t.no_grad():
        for index, (name, parameter) in enumerate(model.named_parameters()):
            shape = tuple(parameter.shape)
            turned = len(shape) == 2 and not any(k in name for k in keeps)
            array = weight(index, shape[::-1] if turned else shape, _is_scale(name))
            parameter.copy_(t.from_numpy((array.T if turned else array).copy()))


#: Takes the framework's module, gives a model and a function that computes its loss.
Build = Callable[[Any], tuple[Any, Callable[[], Any]]]


def training_step(loss_of: Callable[[], Any], optimizer: Any) -> Callable[[], Any]:
    """Forward, backward and update, by an optimizer of either API; gives the loss."""
    clear = getattr(optimizer, "clear_grad", None) or optimizer.zero_grad

    def step():
        loss = loss_of()
        loss.backward()
        optimizer.step()
        clear()
        return loss

    return step


def paddle_body(build: Build) -> Body:
    """The training step in eager mode, of either framework with Paddle's API."""

    def body(p: Any):
        model, loss_of = build(p)
        fill_paddle(p, model)
        optimizer = p.optimizer.Adam(learning_rate=RATE, parameters=model.parameters())
        return training_step(loss_of, optimizer)

    return body


def torch_body(build: Build, keeps: tuple[str, ...] = ()) -> Body:
    """The training step in PyTorch's eager mode."""

    def body(t: Any):
        model, loss_of = build(t)
        fill_torch(t, model, keeps)
        return training_step(loss_of, t.optim.Adam(model.parameters(), lr=RATE))

    return body


def _labels(*shape: int, classes: int = 10) -> np.ndarray:
    return np.random.default_rng(3).integers(0, classes, shape)


# ------------------------------------------------------------------ a perceptron


def perceptron(nn: Any) -> Any:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def _classifier_paddle(model_of: Callable[[Any], Any], image: tuple[int, ...]) -> Build:
    def build(p: Any):
        model = model_of(p)
        x, y = p.to_tensor(random_array(*image)), p.to_tensor(_labels(image[0]))
        return model, lambda: p.nn.functional.cross_entropy(model(x), y)

    return build


def _classifier_torch(model_of: Callable[[Any], Any], image: tuple[int, ...]) -> Build:
    def build(t: Any):
        model = model_of(t)
        x, y = t.from_numpy(random_array(*image)), t.from_numpy(_labels(image[0]))
        if len(image) == 4:
            model, x = model.to(memory_format=t.channels_last), x.to(memory_format=t.channels_last)
        return model, lambda: t.nn.functional.cross_entropy(model(x), y)

    return build


# ------------------------------------------------------------------ LeNet


def lenet_torch(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Linear(120, 84),
        nn.Linear(84, 10),
    )


# ------------------------------------------------------------------ ResNet-18


def resnet_torch(t: Any) -> Any:
    nn = t.nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.downsample = None
            if stride != 1 or before != after:
                self.downsample = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            shortcut = x if self.downsample is None else self.downsample(x)
            out = self.bn1(self.conv1(x)).relu_()
            return (self.bn2(self.conv2(out)) + shortcut).relu_()

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for after, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Block(width, after, stride), Block(after, after, 1)]
        width = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


# ------------------------------------------------------------------ a recurrent net


def _recurrent_arrays() -> tuple[np.ndarray, np.ndarray]:
    return random_array(_RNN_BATCH, _RNN_STEPS, _RNN_INPUT), _labels(_RNN_BATCH, classes=_RNN_CLASSES)


def _recurrent_paddle(p: Any):
    class Net(p.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = p.nn.LSTM(_RNN_INPUT, _RNN_HIDDEN, num_layers=2)
            self.fc = p.nn.Linear(_RNN_HIDDEN, _RNN_CLASSES)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    model = Net()
    x, y = map(p.to_tensor, _recurrent_arrays())
    return model, lambda: p.nn.functional.cross_entropy(model(x), y)


def _recurrent_torch(t: Any):
    class Net(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = t.nn.LSTM(_RNN_INPUT, _RNN_HIDDEN, num_layers=2, batch_first=True)
            self.fc = t.nn.Linear(_RNN_HIDDEN, _RNN_CLASSES)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    model = Net()
    x, y = map(t.from_numpy, _recurrent_arrays())
    return model, lambda: t.nn.functional.cross_entropy(model(x), y)


# ------------------------------------------------------------------ a Transformer


def _tokens() -> tuple[np.ndarray, np.ndarray]:
    tokens = np.random.default_rng(5).integers(0, _VOCABULARY, (8, 129))
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def _transformer_paddle(p: Any):
    nn = p.nn

    class Net(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(_VOCABULARY, _WIDTH)
            layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, _HIDDEN, dropout=0.0, activation="gelu")
            self.encoder = nn.TransformerEncoder(layer, _LAYERS)
            self.head = nn.Linear(_WIDTH, _VOCABULARY)

        def forward(self, tokens):
            return self.head(self.encoder(self.embedding(tokens)))

    model = Net()
    tokens, following = map(p.to_tensor, _tokens())
    return model, lambda: nn.functional.cross_entropy(model(tokens).reshape([-1, _VOCABULARY]), following.reshape([-1]))


def _transformer_torch(t: Any):
    nn, functional = t.nn, t.nn.functional

    class Layer(nn.Module):
        """An encoder layer with separate projections, as Paddle has them, over the framework's fastest attention."""

        def __init__(self) -> None:
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(_WIDTH, _WIDTH) for _ in range(4))
            self.linear1, self.linear2 = nn.Linear(_WIDTH, _HIDDEN), nn.Linear(_HIDDEN, _WIDTH)
            self.norm1, self.norm2 = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = (
                f(x).view(n, length, _HEADS, _WIDTH // _HEADS).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj)
            )
            attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, _WIDTH)
            x = self.norm1(x + self.out_proj(attended))
            return self.norm2(x + self.linear2(functional.gelu(self.linear1(x))))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(_VOCABULARY, _WIDTH)
            self.encoder = nn.Sequential(*(Layer() for _ in range(_LAYERS)))
            self.head = nn.Linear(_WIDTH, _VOCABULARY)

        def forward(self, tokens):
            return self.head(self.encoder(self.embedding(tokens)))

    model = Net()
    tokens, following = map(t.from_numpy, _tokens())
    return model, lambda: functional.cross_entropy(model(tokens).reshape(-1, _VOCABULARY), following.reshape(-1))


_LENET_IMAGES, _RESNET_IMAGES = (64, 1, 28, 28), (8, 3, 224, 224)
#: Each model: its name, how Paddle's API and PyTorch build it and its loss, the parts of names of weights that lie alike in both, and JAX's net and data.
BUILDS: tuple[tuple[str, Build, Build, tuple[str, ...], jax_models.Net, Callable[[], tuple[np.ndarray, ...]]], ...] = (
    (
        "MLP 784-512-512-10, batch 64",
        _classifier_paddle(lambda p: perceptron(p.nn), (64, 784)),
        _classifier_torch(lambda t: perceptron(t.nn), (64, 784)),
        (),
        jax_models.perceptron,
        lambda: (random_array(64, 784), _labels(64)),
    ),
    (
        "LeNet, batch 64",
        _classifier_paddle(lambda p: p.vision.models.LeNet(), _LENET_IMAGES),
        _classifier_torch(lenet_torch, _LENET_IMAGES),
        (),
        jax_models.lenet,
        lambda: (random_array(*_LENET_IMAGES), _labels(_LENET_IMAGES[0])),
    ),
    (
        "LSTM of 2 layers 128 to 256, batch 32, length 64",
        _recurrent_paddle,
        _recurrent_torch,
        ("lstm",),
        jax_models.recurrent(_RNN_INPUT, _RNN_HIDDEN, _RNN_CLASSES),
        _recurrent_arrays,
    ),
    (
        "Transformer of 4 layers, batch 8, length 128, width 256",
        _transformer_paddle,
        _transformer_torch,
        ("embedding",),
        jax_models.transformer(_VOCABULARY, _WIDTH, _LAYERS, _HEADS, _HIDDEN),
        _tokens,
    ),
    (
        "ResNet-18, batch 8, 224 x 224",
        _classifier_paddle(lambda p: p.vision.models.resnet18(), _RESNET_IMAGES),
        _classifier_torch(resnet_torch, _RESNET_IMAGES),
        (),
        jax_models.resnet,
        lambda: (random_array(*_RESNET_IMAGES), _labels(_RESNET_IMAGES[0])),
    ),
)
CASES = tuple(
    Case(name, "models", paddle_body(ours), torch_body(theirs, keeps), tolerance=1e-4) for name, ours, theirs, keeps, *_ in BUILDS
)
