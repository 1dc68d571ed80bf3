"""``jit.save`` and ``jit.load``: what is loaded computes, trains and evaluates as what was saved, without its Python."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ArgumentError, ConversionError
from sampan.framework.interchange.combined import write_parameters
from sampan.jit import saving
from sampan.static import InputSpec

X = paddle.to_tensor([[1.0, 2.0, 3.0, 4.0], [0.5, -1.0, 2.0, 0.0]])


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(4, 8)
        self.norm = paddle.nn.BatchNorm1D(8)
        self.dropout = paddle.nn.Dropout(0.5)
        self.second = paddle.nn.Linear(8, 2)
        self.register_buffer("calls", paddle.zeros([]))

    def forward(self, x, factor=2.0):
        self.calls = self.calls + 1
        h = self.dropout(self.norm(self.first(x)))
        steps = 0
        while h.abs().max() > 1:
            h = h / 2
            steps += 1
        for row in h:
            if row.sum() > 3:
                h = h - 1
        if self.training:
            h = h + 0.25
        return {"out": self.second(h) * factor, "steps": steps, "rows": [h.shape[0]]}, "text"

    @paddle.jit.to_static(input_spec=[InputSpec([None, 4], name="x")])
    def features(self, x):
        return self.first(x)


@pytest.fixture
def saved(tmp_path):
    paddle.seed(1)
    net = Net()
    path = str(tmp_path / "models" / "net")
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 4], "float32", "x")])
    return net, path


def same(a, b):
    (first, text), (second, other) = a, b
    np.testing.assert_allclose(second["out"].numpy(), first["out"].numpy(), rtol=1e-5, atol=1e-6)
    assert (first["steps"], first["rows"], text) == (second["steps"], second["rows"], other)


def test_the_loaded_layer_evaluates_as_the_saved_one(saved):
    net, path = saved
    assert net.training
    loaded = paddle.jit.load(path)
    assert not loaded.training
    net.eval()
    for x in (X, X[:1], paddle.concat([X, X * 3])):
        same(net(x), loaded(x))
    assert loaded.calls.item() == net.calls.item() == 3
    np.testing.assert_allclose(loaded.features(X).numpy(), net.features(X).numpy(), rtol=1e-6)
    assert "while" in str(loaded.program())


def test_the_loaded_layer_trains_as_the_saved_one(saved):
    net, path = saved
    loaded = paddle.jit.load(path)
    loaded.train()
    results = []
    for layer in (net, loaded):
        assert [p.stop_gradient for p in layer.parameters()] == [p.stop_gradient for p in net.parameters()]
        optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters())
        paddle.seed(4)
        losses = []
        for _ in range(3):
            loss = (layer(X)[0]["out"] ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
        results.append(losses)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)
    state = loaded.state_dict()
    for name, tensor in net.state_dict().items():
        np.testing.assert_allclose(state[name].numpy(), tensor.numpy(), rtol=1e-4, atol=1e-6)


def test_names_come_back(saved):
    net, path = saved
    loaded = paddle.jit.load(path)
    assert set(loaded.state_dict()) == set(net.state_dict())
    assert [p.name for p in loaded.parameters()] == [p.name for p in net.parameters()]
    other = Net()
    other.set_state_dict(loaded.state_dict())
    np.testing.assert_array_equal(other.first.weight.numpy(), net.first.weight.numpy())


def test_another_process_runs_it_without_the_class(saved):
    net, path = saved
    net.eval()
    wanted = net(X)[0]["out"].numpy()
    script = "import sys, numpy as np, sampan as paddle\nprint(paddle.jit.load(sys.argv[1])(paddle.to_tensor(np.load(sys.argv[2])))[0]['out'].tolist())"
    np.save(path + ".npy", X.numpy())
    out = subprocess.run([sys.executable, "-c", script, path, path + ".npy"], capture_output=True, text=True, check=True)
    np.testing.assert_allclose(json.loads(out.stdout), wanted, rtol=1e-5)


def test_functions_are_saved(tmp_path):
    weight = paddle.to_tensor([2.0, 3.0])

    def function(x):
        assert x.sum() > 0, f"sum {x.sum()}"
        if x.max() > 10:
            raise ValueError("too large")
        return x * weight + np.float32(1.5), [1, (None, True)]

    path = str(tmp_path / "function")
    paddle.jit.save(function, path, input_spec=[InputSpec([2])])
    loaded = paddle.jit.load(path)
    out, rest = loaded(paddle.ones([2]))
    assert out.tolist() == [3.5, 4.5]
    assert rest == [1, (None, True)]
    with pytest.raises(ValueError, match="too large"):
        loaded(paddle.full([2], 11.0))
    with pytest.raises(AssertionError, match=r"sum -2"):
        loaded(-paddle.ones([2]))


def test_what_was_called_needs_no_spec(tmp_path):
    net = paddle.jit.to_static(paddle.nn.Linear(2, 2), full_graph=True)
    path = str(tmp_path / "net")
    with pytest.raises(ConversionError, match="input_spec"):
        paddle.jit.save(net, path)
    wanted = net(paddle.ones([3, 2]))
    paddle.jit.save(net, path)
    assert paddle.jit.load(path)(paddle.ones([3, 2])).tolist() == wanted.tolist()


def test_wrong_inputs_are_refused(saved):
    loaded = paddle.jit.load(saved[1])
    with pytest.raises(ValueError, match=r"x is float32\[2, 3\].*\[-1, 4\]"):
        loaded(paddle.ones([2, 3]))
    with pytest.raises(ValueError, match="x is float64"):
        loaded(X.astype("float64"))
    with pytest.raises(ValueError, match="takes 1 tensors, got 2"):
        loaded(X, X)
    with pytest.raises(ValueError, match="no method 'other'"):
        loaded.program("other")


def test_wrong_files_are_refused(saved, tmp_path):
    _, path = saved
    with pytest.raises(FileNotFoundError, match="nothing"):
        paddle.jit.load(str(tmp_path / "nothing"))
    with pytest.raises(ValueError, match="path"):
        paddle.jit.save(Net(), str(tmp_path) + "/")
    with pytest.raises(TypeError, match="path"):
        paddle.jit.load(3)
    with pytest.raises(TypeError, match="Layer or a function"):
        paddle.jit.save(3, path)
    with pytest.raises(TypeError, match="unexpected argument 'format'"):
        paddle.jit.save(Net(), path, format="x")
    with open(path + ".sampan.json") as file:
        content = json.load(file)
    for name, damage in {
        "version": lambda c: c.update(version=99),
        "tensors": lambda c: c.pop("tensors"),
        "block": lambda c: c["functions"]["forward"]["eval"].pop("block"),
        "dtype": lambda c: c["functions"]["forward"]["eval"]["block"]["arguments"][0].__setitem__(2, "float7"),
    }.items():
        broken = json.loads(json.dumps(content))
        damage(broken)
        with open(path + ".sampan.json", "w") as file:
            json.dump(broken, file)
        with pytest.raises(ValueError, match=r"damaged|version"):
            paddle.jit.load(path)
        assert name


def test_python_objects_are_not_saved(tmp_path):
    class Holding(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", paddle.zeros([1]))

        def forward(self, x):
            self.last = x.sum()
            self.kind = "seen"
            self.calls = self.calls + 1
            return x * self.calls

    path = str(tmp_path / "net")
    with pytest.warns(UserWarning, match=r"changes Holding\.last, Holding\.kind; the file leaves that out") as told:
        paddle.jit.save(Holding(), path, input_spec=[InputSpec([2])])
    assert len(told) == 1
    assert told[0].filename == __file__
    loaded = paddle.jit.load(path)
    x = paddle.to_tensor([1.0, 2.0])
    assert [loaded(x).tolist(), loaded(x).tolist()] == [[1.0, 2.0], [2.0, 4.0]]


class Counted(paddle.nn.Layer):
    """A branch, sizes of any number, dropout, running statistics, and a buffer whose name sorts before the others."""

    def __init__(self):
        super().__init__()
        self.convolution = paddle.nn.Conv2D(3, 4, 3, padding=1)
        self.norm = paddle.nn.BatchNorm2D(4)
        self.dropout = paddle.nn.Dropout(0.5)
        self.register_buffer("a_scale", paddle.to_tensor([2.0]))
        self.unused = paddle.nn.Linear(2, 2)

    def forward(self, x):
        x = paddle.nn.functional.relu(self.norm(self.convolution(x))).mean([2, 3])
        if x.sum() > 0:
            x = x * self.a_scale
        return {"all": self.dropout(x), "first": [x[:, 0]]}


def test_paddles_files_are_written_beside(tmp_path):
    net = Counted()
    net(paddle.rand([4, 3, 5, 5]))
    net.eval()
    path = str(tmp_path / "net")
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 3, None, None], "float32", "x")])
    assert sorted(f.name for f in tmp_path.iterdir()) == ["net.pdiparams", "net.pdmodel", "net.sampan.json"]
    x = paddle.rand([2, 3, 6, 4])
    wanted = net(x)
    found = paddle.jit.load(path)(x)
    np.testing.assert_array_equal(found["all"].numpy(), wanted["all"].numpy())
    for files in ((path,), (f"{path}.pdmodel", f"{path}.pdiparams"), (f"{path}.json", f"{path}.pdiparams")):
        results = paddle.inference.create_predictor(paddle.inference.Config(*files)).run([x])
        for a, b in zip(results, (wanted["all"], wanted["first"][0]), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)
    (tmp_path / "net.sampan.json").unlink()  # what PaddlePaddle would see
    for a, b in zip(paddle.jit.load(path)(x), (wanted["all"], wanted["first"][0]), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_paddles_file_is_missing_where_its_format_cannot_say_the_forward(tmp_path):
    path = str(tmp_path / "net")
    spec = [InputSpec([None, 2], "float32", "x")]
    paddle.jit.save(paddle.nn.Linear(2, 1), path, input_spec=spec)
    assert (tmp_path / "net.pdmodel").exists()

    class Rows(paddle.nn.Layer):
        def forward(self, x):
            return [row for row in x if row.sum() > 0]

    class Texts(paddle.nn.Layer):
        def forward(self, x):
            return f"{x.sum():.1f}"

    for layer in (Rows(), Texts()):
        paddle.jit.save(layer, path, input_spec=spec)
        assert not (tmp_path / "net.pdmodel").exists()
    assert paddle.jit.load(path)(paddle.ones([1, 2])) == "2.0"


def test_tensors_of_files_of_the_first_version_are_in_the_layers_order(tmp_path):
    net = Counted().eval()
    path = tmp_path / "net"
    paddle.jit.save(net, str(path), input_spec=[InputSpec([1, 3, 4, 4], "float32", "x")])
    (tmp_path / "net.pdmodel").unlink()
    file = tmp_path / "net.sampan.json"
    saved = json.loads(file.read_text())
    saved["version"] = 1
    file.write_text(json.dumps(saved))
    state = {**dict(net.named_parameters()), **dict(net.named_buffers())}
    (tmp_path / "net.pdiparams").write_bytes(write_parameters({name: state[name].numpy() for name in saved["tensors"]}))
    x = paddle.rand([1, 3, 4, 4])
    np.testing.assert_array_equal(paddle.jit.load(str(path))(x)["all"].numpy(), net(x)["all"].numpy())


def test_tables_of_unknown_sizes_leave_paddles_file_out(tmp_path):
    class Windows(paddle.nn.Layer):
        def forward(self, x):
            n, c, h, w = x.shape
            return paddle.nn.functional.unfold(x, 3, 1, 1, 1).reshape([n, c, 9, h, w]).sum(2)

    path, net, x = str(tmp_path / "net"), Windows(), paddle.rand([2, 4, 6, 5])
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 4, None, None])])
    np.testing.assert_array_equal(paddle.jit.load(path)(x).numpy(), net(x).numpy())


def test_an_input_spec_describes_further_positional_arguments(tmp_path):
    class Sum(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.linear = paddle.nn.Linear(2, 3)

        def forward(self, first, *others):
            total = self.linear(first)
            for other in others:
                total = total + self.linear(other)
            return total

    layer = Sum()
    layer.eval()
    spec = InputSpec([None, 2])
    for count in (1, 3):
        values = [paddle.rand([4, 2]) for _ in range(count)]
        wanted = layer(*values).numpy()
        paddle.jit.save(layer, str(tmp_path / "sum"), input_spec=[spec] * count)
        np.testing.assert_allclose(paddle.jit.load(str(tmp_path / "sum"))(*values).numpy(), wanted, rtol=1e-6)
    converted = paddle.jit.to_static(layer, input_spec=[spec] * 3, full_graph=True)
    np.testing.assert_allclose(converted(*values).numpy(), wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="others has 3 items"):
        converted(*values, values[0])
    with pytest.raises(ValueError, match=r"others_1 has shape \[4, 3\]"):
        converted(*values[:2], paddle.rand([4, 3]))


def test_numbers_of_known_sizes_are_written_for_paddle(tmp_path):
    class Net(paddle.nn.Layer):
        def forward(self, x):
            height, width = paddle.shape(x)[2], paddle.shape(x)[3]
            x = paddle.nn.functional.pad(x, [0, 3 - width % 3])
            x = paddle.nn.functional.interpolate(x, size=[height * 2, 6])
            return x.reshape([paddle.shape(x)[0], -1, (width + 2) // 2, 3])

    net = Net()
    path = str(tmp_path / "net")
    paddle.jit.save(net, path, input_spec=[InputSpec([2, 3, 4, 7])])
    assert (tmp_path / "net.pdmodel").exists()
    x = paddle.rand([2, 3, 4, 7])
    paddle.enable_static()
    try:
        executor = paddle.static.Executor()
        program, feeds, fetches = paddle.static.load_inference_model(path, executor)
        (found,) = executor.run(program, feed={feeds[0]: x.numpy()}, fetch_list=fetches)
    finally:
        paddle.disable_static()
    np.testing.assert_allclose(found, net(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(paddle.jit.load(path)(x).numpy(), net(x).numpy(), rtol=1e-6)


def test_nothing_is_written_when_something_is_refused(tmp_path, monkeypatch):
    path = str(tmp_path / "net")
    paddle.jit.save(paddle.nn.Linear(4, 3), path, input_spec=[InputSpec([None, 4], "float32", "x")])
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def fails(*_):
        raise ValueError("cannot be said")

    monkeypatch.setattr(saving, "write_model", fails)
    with pytest.raises(ValueError, match="cannot be said"):
        paddle.jit.save(paddle.nn.Linear(4, 3), path, input_spec=[InputSpec([None, 4], "float32", "x")])
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(version="x"),
        lambda d: d.update(functions=[]),
        lambda d: d.update(tensors=[[[]]]),
        lambda d: d["functions"].update(forward=True),
        lambda d: d["functions"]["forward"]["eval"].update(structure=5),
        lambda d: d["functions"]["forward"]["eval"]["block"]["ops"][0].__setitem__(2, []),
    ],
)
def test_damaged_documents_say_so(tmp_path, damage):
    path = str(tmp_path / "net")
    paddle.jit.save(paddle.nn.Linear(4, 3), path, input_spec=[InputSpec([None, 4], "float32", "x")])
    document = json.loads((tmp_path / "net.sampan.json").read_text())
    damage(document)
    (tmp_path / "net.sampan.json").write_text(json.dumps(document))
    with pytest.raises(ArgumentError, match="damaged"):
        paddle.jit.load(path)


def test_a_copy_of_a_loaded_layer_has_weights_of_its_own(tmp_path):
    path = str(tmp_path / "net")
    net = Scaled()
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 2], "float32", "x")])
    loaded = paddle.jit.load(path)
    twin = copy.deepcopy(loaded)
    x = paddle.ones([1, 2])
    expected = loaded(x).numpy()
    for p in twin.parameters():
        p.set_value(paddle.zeros(p.shape))
    assert np.array_equal(loaded(x).numpy(), expected)
    assert not twin(x).numpy().any()
    assert not twin.twice(x).numpy().any()
    twin.train()
    (twin(x) + 1).sum().backward()
    assert all(p.grad is not None for p in twin.parameters())
    assert all(p.grad is None for p in loaded.parameters())


class Scaled(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(2, 2, bias_attr=False)

    def forward(self, x):
        return self.linear(x)

    @paddle.jit.to_static(input_spec=[InputSpec([None, 2], "float32", "x")])
    def twice(self, x):
        return 2 * self.linear(x)
