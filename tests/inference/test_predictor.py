"""Predictors: saved models run as they did in eager mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import sampan as paddle
from sampan import inference

nn = paddle.nn


@pytest.fixture(autouse=True)
def seeded():
    """The same weights in every run: a result that happens to be almost zero has no relative precision."""
    paddle.seed(0)


def saved(tmp_path, net, shape, dtype="float32"):
    net.eval()
    path = str(tmp_path / "net")
    paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec(shape, dtype, "x")])
    return path


def exported(tmp_path, net, shape):
    """The path of the model in PaddlePaddle's format."""
    path = saved(tmp_path, net, shape)
    layer = paddle.jit.load(path)
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", shape)
            paddle.static.save_inference_model(path, [x], [layer(x)], paddle.static.Executor())
    finally:
        paddle.disable_static()
    (tmp_path / "net.sampan.json").unlink()
    return path


def predictor_of(path):
    return inference.create_predictor(inference.Config(f"{path}.pdmodel", f"{path}.pdiparams"))


MODELS = {
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2D(3, 8, 3), nn.BatchNorm2D(8), nn.ReLU(), nn.MaxPool2D(2), nn.Flatten(), nn.Linear(72, 4)), (None, 3, 8, 8)
    ),
    "perceptron": (lambda: nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.5), nn.Linear(16, 3)), (None, 6)),
    "encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 1), (None, 5, 16)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "save"), [*((kind, saved) for kind in MODELS), ("convolutions", exported), ("perceptron", exported)]
)
def test_predictors_compute_what_the_model_computed(tmp_path, kind, save):
    build, shape = MODELS[kind]
    net = build()
    predictor = predictor_of(save(tmp_path, net, shape))
    (name,) = predictor.get_input_names()
    for batch in (1, 4):
        x = np.random.default_rng(batch).standard_normal((batch, *shape[1:])).astype("float32")
        expected = net(paddle.to_tensor(x)).numpy()
        handle = predictor.get_input_handle(name)
        handle.reshape(x.shape)
        handle.copy_from_cpu(x)
        assert predictor.run() is True
        out = predictor.get_output_handle(predictor.get_output_names()[0])
        np.testing.assert_allclose(out.copy_to_cpu(), expected, rtol=1e-4, atol=1e-5)
        assert out.shape() == list(expected.shape)
        assert out.type() is inference.DataType.FLOAT32
        np.testing.assert_allclose(predictor.run([x])[0].numpy(), expected, rtol=1e-4, atol=1e-5)


def test_models_given_as_bytes_or_by_their_folder(tmp_path):
    net = MODELS["perceptron"][0]()
    path = exported(tmp_path, net, (None, 6))
    program, parameters = (Path(f"{path}.{suffix}").read_bytes() for suffix in ("pdmodel", "pdiparams"))
    config = inference.Config()
    config.set_model_buffer(program, len(program), parameters, len(parameters))
    assert config.model_from_memory()
    x = np.ones((2, 6), "float32")
    expected = net(paddle.to_tensor(x)).numpy()
    np.testing.assert_allclose(inference.create_predictor(config).run([x])[0].numpy(), expected, rtol=1e-5)
    folder = tmp_path / "folder"
    folder.mkdir()
    for suffix in ("pdmodel", "pdiparams"):
        (folder / f"model.{suffix}").write_bytes(Path(f"{path}.{suffix}").read_bytes())
    np.testing.assert_allclose(inference.create_predictor(inference.Config(str(folder))).run([x])[0].numpy(), expected, rtol=1e-5)


def test_pools_and_clones_serve_threads(tmp_path):
    net = MODELS["perceptron"][0]()
    path = saved(tmp_path, net, (None, 6))
    pool = inference.PredictorPool(inference.Config(f"{path}.pdmodel", f"{path}.pdiparams"), 3)
    inputs = [np.full((k % 4 + 1, 6), k, "float32") for k in range(24)]
    expected = [net(paddle.to_tensor(x)).numpy() for x in inputs]
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda item: pool.retrieve(item[0] % 3).run([item[1]])[0].numpy(), enumerate(inputs)))
    for a, b, x in zip(found, expected, inputs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
        np.testing.assert_array_equal(a, pool.retrieve(0).run([x])[0].numpy())
    np.testing.assert_allclose(pool.retrieve(0).clone().run([inputs[1]])[0].numpy(), expected[1], rtol=1e-5)


def test_two_models_keep_their_weights_apart(tmp_path):
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)
    for k, net in enumerate((first, second)):
        (tmp_path / str(k)).mkdir()
        net.weight.set_value(paddle.full([2, 2], float(k + 1)))
    predictors = [predictor_of(saved(tmp_path / str(k), net, (None, 2))) for k, net in enumerate((first, second))]
    x = np.ones((1, 2), "float32")
    for predictor, net in zip(predictors, (first, second), strict=True):
        np.testing.assert_allclose(predictor.run([x])[0].numpy(), net(paddle.to_tensor(x)).numpy())


def test_a_loaded_layer_becomes_part_of_what_is_recorded(tmp_path):
    net = MODELS["convolutions"][0]()
    layer = paddle.jit.load(saved(tmp_path, net, (None, 3, 8, 8)))
    step = paddle.jit.TrainStep(lambda x: layer(x).mean(), paddle.optimizer.SGD(0.1, parameters=layer.parameters()))
    x = paddle.rand([2, 3, 8, 8])
    layer.eval()
    before = layer(x).mean().item()
    np.testing.assert_allclose(step(x).item(), before, rtol=1e-5)
    assert layer(x).mean().item() < before


def test_bad_input_is_explained(tmp_path):
    predictor = predictor_of(saved(tmp_path, MODELS["perceptron"][0](), (None, 6)))
    with pytest.raises(ValueError, match="no value for"):
        predictor.run()
    with pytest.raises(ValueError, match=r"\[2, 5\]"):
        predictor.run([np.ones((2, 5), "float32")])
    with pytest.raises(TypeError, match="float64"):
        predictor.run([np.ones((2, 6))])
    with pytest.raises(ValueError, match="2 inputs"):
        predictor.run([1, 2])
    with pytest.raises(TypeError, match="inputs is a int"):
        predictor.run(5)
    with pytest.raises(ValueError, match="no input 'y'"):
        predictor.get_input_handle("y")
    with pytest.raises(ValueError, match="no output 'y'"):
        predictor.get_output_handle("y")
    with pytest.raises(ValueError, match="run\\(\\) first"):
        predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.reshape([1, 6])
    with pytest.raises(ValueError, match="reshape"):
        handle.copy_from_cpu(np.ones((2, 6), "float32"))
    with pytest.raises(ValueError, match="names no model"):
        inference.create_predictor(inference.Config())
    with pytest.raises(ValueError, match="holds no model"):
        inference.Config(str(tmp_path / "nothing_here") if (tmp_path / "nothing_here").mkdir() is None else "")
    with pytest.raises(FileNotFoundError):
        inference.create_predictor(inference.Config(str(tmp_path / "missing.pdmodel"), str(tmp_path / "missing.pdiparams")))
    with pytest.raises(NotImplementedError, match="TensorRT"):
        inference.Config().enable_tensorrt_engine()
    inference.Config().enable_memory_optim()


def test_threads_are_set(tmp_path):
    config = inference.Config(f"{saved(tmp_path, nn.Linear(2, 2), (None, 2))}.pdmodel")
    config.set_cpu_math_library_num_threads(1)
    assert config.cpu_math_library_num_threads() == 1
    assert "threads: 1" in config.summary()
    with pytest.raises(ValueError, match="1 or more"):
        config.set_cpu_math_library_num_threads(0)
