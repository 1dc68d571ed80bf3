"""Saved models run by predictors, for ``--threads 1``: sampan's and Paddle Inference's through one API, ONNX Runtime on what PyTorch exports, PyTorch itself."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from . import models
from .case import Body, Case, random_array


def _encoder_paddle(p: Any) -> Any:
    return p.nn.TransformerEncoder(p.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0), 4)


def _encoder_torch(t: Any) -> Any:
    layer = t.nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True)
    return t.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


def _mobilenet_torch(t: Any) -> Any:
    nn = t.nn

    def block(before: int, after: int, kernel: int, stride: int, groups: int = 1) -> list[Any]:
        return [
            nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]

    layers, width = block(3, 32, 3, 2), 32
    for after, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1)):
        layers += [*block(width, width, 3, stride, width), *block(width, after, 1, 1)]
        width = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def _predictor(build: Callable[[Any], Any], shape: tuple[int, ...]) -> Body:
    def body(p: Any):
        net = build(p)
        net.eval()
        path = os.path.join(tempfile.mkdtemp(), "net")
        p.jit.save(net, path, input_spec=[p.static.InputSpec([None, *shape[1:]], "float32", "x")])
        model = next(f for f in (f"{path}.pdmodel", f"{path}.json", f"{path}.sampan.json") if os.path.exists(f))
        config = p.inference.Config(model, f"{path}.pdiparams")
        config.disable_glog_info()
        config.enable_mkldnn()
        config.set_cpu_math_library_num_threads(len(os.sched_getaffinity(0)))
        predictor = p.inference.create_predictor(config)
        feed = predictor.get_input_handle(predictor.get_input_names()[0])
        fetch = predictor.get_output_handle(predictor.get_output_names()[0])
        data = random_array(*shape)

        def run():
            feed.copy_from_cpu(data)
            predictor.run()
            fetch.copy_to_cpu()

        return run

    return body


def _torch(build: Callable[[Any], Any], shape: tuple[int, ...]) -> Body:
    def body(t: Any):
        net, data = build(t).eval(), t.from_numpy(random_array(*shape))
        if len(shape) == 4:
            net, data = net.to(memory_format=t.channels_last), data.to(memory_format=t.channels_last)

        def run():
            with t.inference_mode():
                net(data)

        return run

    return body


def _onnxruntime(build: Callable[[Any], Any], shape: tuple[int, ...]) -> Body:
    def body(runtime: Any):
        import torch

        file = io.BytesIO()
        torch.onnx.export(build(torch).eval(), (torch.zeros(shape),), file, dynamo=False)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0))
        session = runtime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
        name, data = session.get_inputs()[0].name, np.ascontiguousarray(random_array(*shape))

        def run():
            session.run(None, {name: data})

        return run

    return body


_MODELS = (
    ("MLP 784-512-512-10", lambda p: models.perceptron(p.nn), lambda t: models.perceptron(t.nn), (784,)),
    ("LeNet", lambda p: p.vision.models.LeNet(), models.lenet_torch, (1, 28, 28)),
    ("encoder of 4 layers, width 256, length 128", _encoder_paddle, _encoder_torch, (128, 256)),
    ("MobileNetV1, 224 x 224", lambda p: p.vision.models.mobilenet_v1(), _mobilenet_torch, (3, 224, 224)),
    ("ResNet-18, 224 x 224", lambda p: p.vision.models.resnet18(), models.resnet_torch, (3, 224, 224)),
)
CASES = tuple(
    Case(
        f"inference of {name}, batch {batch}",
        "inference",
        _predictor(ours, (batch, *shape)),
        _torch(theirs, (batch, *shape)),
        onnxruntime=_onnxruntime(theirs, (batch, *shape)),
        against=("onnxruntime", "paddle"),
    )
    for name, ours, theirs, shape in _MODELS
    for batch in (1, 8)
)
