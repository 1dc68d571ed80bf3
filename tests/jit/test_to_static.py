"""``jit.to_static``: functions and layers as Programs, cached, guarded, trained and evaluated as in eager mode."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import sampan as paddle
from sampan.base.errors import ConversionError
from sampan.jit import to_static
from sampan.static import InputSpec

X = paddle.to_tensor([1.0, 2.0])


@to_static(full_graph=True)
def doubled_when_positive(x, scale=2.0):
    """Twice x, or its negative."""
    if x.sum() > 0:
        return x * scale
    return -x


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(4, 8)
        self.norm = paddle.nn.BatchNorm1D(8)
        self.dropout = paddle.nn.Dropout(0.5)
        self.second = paddle.nn.Linear(8, 2, bias_attr=False)
        self.scale = 1.0

    def forward(self, x, use_scale=True):
        h = self.norm(self.first(x))
        if h.sum() > 0:
            h = paddle.nn.functional.relu(h)
        else:
            h = h * 0.1
        h = self.dropout(h)
        if use_scale:
            h = h * self.scale
        return self.second(h)


def pair():
    """The same layer twice: eager, and as a Program."""
    paddle.seed(1)
    eager, static = Net(), Net()
    static.set_state_dict(eager.state_dict())
    return eager, to_static(static, full_graph=True)


def batches(count):
    random = np.random.default_rng(0)
    return [paddle.to_tensor(random.standard_normal((6, 4)).astype("float32")) for _ in range(count)]


# ---------------------------------------------------------------------- calling


def test_it_looks_like_the_function():
    assert doubled_when_positive.__name__ == "doubled_when_positive"
    assert doubled_when_positive.__doc__ == "Twice x, or its negative."
    assert "if_" not in doubled_when_positive.code
    assert "branch" in doubled_when_positive.code


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_calls_give_what_eager_mode_gives(sign):
    assert doubled_when_positive(X * sign).tolist() == doubled_when_positive.dygraph_function(X * sign).tolist()
    assert doubled_when_positive(x=X * sign, scale=3).tolist() == doubled_when_positive.dygraph_function(X * sign, 3).tolist()


def test_wrong_arguments_are_pythons_errors():
    with pytest.raises(TypeError, match="x"):
        doubled_when_positive()
    with pytest.raises(TypeError, match="y"):
        doubled_when_positive(X, y=1)


def test_recordings_are_kept_by_kind_of_arguments():
    @to_static(full_graph=True)
    def function(x, k=1, items=()):
        return x * k + len(items)

    for args in [
        (X,),
        (X * 2,),
        (X.astype("int64"),),
        (paddle.ones([3]),),
        (X, 2),
        (X, 2.0),
        (X, True),
        (X, 1, [X]),
        (X, 1, (X,)),
        (X, 1, {"a": 1}),
    ]:
        assert function(*args).tolist() == function.dygraph_function(*args).tolist()
    assert function.get_traced_count() == 9
    with paddle.no_grad():
        function(X)
    assert function.get_traced_count() == 10


def test_one_tensor_given_twice_is_one_tensor():
    @to_static(full_graph=True)
    def function(x, y):
        x.add_(y)
        return x + y

    a, b = paddle.ones([2]), paddle.ones([2])
    assert function(a, a).tolist() == [4.0, 4.0]
    assert a.tolist() == [2.0, 2.0]
    assert function(b, paddle.ones([2])).tolist() == [3.0, 3.0]


def test_arrays_count_as_tensors():
    assert doubled_when_positive(np.array([1.0, 2.0], "float32")).tolist() == [2.0, 4.0]


def test_methods_belong_to_their_object():
    class Counter:
        def __init__(self, by):
            self.by = by

        @to_static(full_graph=True)
        def add(self, x):
            return x + self.by

    one, two = Counter(1), Counter(2)
    assert (one.add(X).tolist(), two.add(X).tolist(), one.add(X).tolist()) == ([2.0, 3.0], [3.0, 4.0], [2.0, 3.0])
    assert one.add is one.add
    assert one.add.class_instance is one


def test_static_functions_call_each_other_and_methods_of_super():
    class Base(paddle.nn.Layer):
        def forward(self, x):
            if x.sum() > 0:
                return x * 2
            return x

    class Derived(Base):
        def forward(self, x):
            return super().forward(x) + doubled_when_positive(x)

    layer = to_static(Derived(), full_graph=True)
    assert layer(X).tolist() == [4.0, 8.0]
    assert layer.forward.get_traced_count() == 1


def test_layers_in_containers_are_converted():
    class Clip(paddle.nn.Layer):
        def forward(self, x):
            if x.max() > 1:
                x = x / x.max()
            return x

    model = to_static(paddle.nn.Sequential(Clip(), paddle.nn.Sequential(Clip())), full_graph=True)
    assert model(X).tolist() == [0.5, 1.0]


def test_hooks_run_as_in_eager_mode():
    seen = []
    layer = paddle.nn.Linear(2, 2)
    layer.register_forward_post_hook(lambda layer, inputs, outputs: seen.append(1) or outputs * 2)
    wanted = layer(X).tolist()
    to_static(layer, full_graph=True)
    assert layer(X).tolist() == wanted
    assert len(seen) == 2


# ---------------------------------------------------------------------- layers


def test_training_gives_eager_modes_losses():
    losses = []
    for net in pair():
        optimizer = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        paddle.seed(5)
        found = []
        for x in batches(5):
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            found.append(float(loss))
        losses.append((found, net.norm._mean.numpy(), net.first.weight.numpy()))
    for eager, static in zip(*losses, strict=True):
        np.testing.assert_allclose(static, eager, rtol=2e-5, atol=1e-6)


def test_modes_and_settings_are_followed():
    eager, static = pair()
    x = batches(1)[0]

    def same():
        paddle.seed(2)
        wanted = eager(x)
        paddle.seed(2)
        np.testing.assert_allclose(static(x).numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)

    same()
    for net in (eager, static):
        net.eval()
    same()
    for net in (eager, static):
        net.scale = 3.0
    same()
    for net in (eager, static):
        net.dropout.train()
        net.second = paddle.nn.Linear(8, 2)
    static.second.set_state_dict(eager.second.state_dict())
    same()
    assert static.forward.get_traced_count() == 4
    for net in (eager, static):
        net.dropout.eval()
        net.eval()
    same()


def test_mixed_precision_around_the_call_counts():
    layer = to_static(paddle.nn.Linear(4, 4), full_graph=True)
    x = paddle.ones([2, 4])
    assert layer(x).dtype == paddle.float32
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert layer(x).dtype == paddle.bfloat16
    assert layer(x).dtype == paddle.float32


def test_parameters_are_shared_and_read_at_every_call():
    layer = to_static(paddle.nn.Linear(2, 2), full_graph=True)
    layer(X)
    layer.weight.set_value(paddle.zeros([2, 2]))
    assert layer(X).tolist() == layer.bias.tolist()
    layer.weight = paddle.create_parameter([2, 2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    np.testing.assert_allclose(layer(X).numpy(), layer.bias.numpy() + 3)


def test_gradients_reach_inputs_and_parameters():
    eager, static = pair()
    eager.eval()
    static.eval()
    found = []
    for net in (eager, static):
        x = batches(1)[0]
        x.stop_gradient = False
        (net(x) ** 2).sum().backward()
        found.append([x.grad.numpy(), *(p.grad.numpy() for p in net.parameters() if not p.stop_gradient)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_buffers_that_forward_replaces():
    class Running(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", paddle.zeros([2]))
            self.last = None

        def forward(self, x):
            self.mean = self.mean * 0.5 + x
            self.last = tuple(x.shape)
            return self.mean.sum()

    eager, static = Running(), to_static(Running(), full_graph=True)
    for k in range(4):
        assert float(static(X * k)) == float(eager(X * k))
        assert static.mean.tolist() == eager.mean.tolist()
    assert static.last == (2,)
    assert static.forward.get_traced_count() <= 2


def test_closures_and_globals_are_followed():
    factor, weight = 2, paddle.ones([2])

    @to_static(full_graph=True)
    def function(x):
        return x * factor * weight

    assert function(X).tolist() == [2.0, 4.0]
    factor = 3
    assert function(X).tolist() == [3.0, 6.0]
    weight = paddle.zeros([2])
    assert function(X).tolist() == [0.0, 0.0]
    weight.set_value(X)
    assert function(X).tolist() == [3.0, 12.0]


# ---------------------------------------------------------------------- what cannot be recorded


class Counting(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.calls, self.history = 0, []

    def forward(self, x):
        self.calls += 1
        return x * self.calls


def test_a_counter_of_calls_counts():
    layer = to_static(Counting())
    assert [float(layer(paddle.ones([]))) for _ in range(20)] == list(range(1, 21))
    assert "Counting.calls changes from call to call" in layer.forward.fallback_reason
    strict = to_static(Counting(), full_graph=True)
    for _ in range(16):
        strict(X)
    with pytest.raises(ConversionError, match=r"Counting\.calls"):
        strict(X)


def test_a_list_that_grows_is_refused_or_grows():
    class Appending(Counting):
        def forward(self, x):
            self.history.append(x)
            return x

    layer = to_static(Appending())
    layer(X)
    layer(X)
    assert len(layer.history) == 2
    assert "changes a list" in layer.forward.fallback_reason
    strict = to_static(Appending(), full_graph=True)
    with pytest.raises(ConversionError, match="changes a list"):
        strict(X)
    assert strict.history == []


def test_what_cannot_be_converted_runs_eagerly_unless_a_full_graph_is_asked_for():
    def undefined(x):
        if x.sum() > 0:
            y = x
        return y

    eager = to_static(undefined)
    assert eager(X).tolist() == X.tolist()
    assert re.search(r"'y' is not set.*at test_to_static\.py:\d+, in undefined", eager.fallback_reason, re.DOTALL)
    with pytest.raises(UnboundLocalError):
        eager(-X)
    with pytest.raises(ConversionError, match="'y' is not set"):
        to_static(undefined, full_graph=True)(X)


def test_the_users_exceptions_come_through():
    @to_static
    def function(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function(X)


def test_not_to_static_stays_python(capsys):
    @paddle.jit.not_to_static
    def told(x):
        print("once")
        return x - 1

    @to_static(full_graph=True)
    def function(x):
        return told(x) if x.sum() < 0 else x + 1

    assert function(X).tolist() == [2.0, 3.0]
    assert function(-X).tolist() == [-2.0, -3.0]
    assert capsys.readouterr().out == "once\n"  # its Python runs while it is recorded


def test_ignored_modules_are_left_alone():
    paddle.jit.ignore_module([json])
    assert to_static(lambda x: json.loads("[1]")[0] * x, full_graph=True)(X).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="list of modules"):
        paddle.jit.ignore_module(json)
    with pytest.raises(TypeError, match="list of modules"):
        paddle.jit.ignore_module(["json"])


def test_enable_to_static_turns_it_off():
    @to_static(full_graph=True)
    def function(x):
        return x.numpy().sum()

    paddle.jit.enable_to_static(False)
    try:
        assert function(X) == 3.0
    finally:
        paddle.jit.enable_to_static(True)
    with pytest.raises(TypeError, match="no elements"):
        function(X)


@pytest.mark.parametrize("bad", [3, "forward", None.__class__(), [1]][:2])
def test_wrong_targets_are_refused(bad):
    with pytest.raises(TypeError, match="to_static"):
        to_static(bad)


def test_wrong_options_are_refused():
    with pytest.raises(TypeError, match="full_graph"):
        to_static(lambda x: x, full_graph=1)
    with pytest.raises(TypeError, match="unexpected argument 'graph'"):
        to_static(lambda x: x, graph=1)
    with pytest.raises(ValueError, match="input_spec has 2 items"):
        to_static(lambda x: x, input_spec=[InputSpec([1]), InputSpec([1])])
    with pytest.raises(TypeError, match="enable_to_static"):
        paddle.jit.enable_to_static(1)
    with pytest.raises(TypeError, match="set_verbosity"):
        paddle.jit.set_verbosity("1")


# ---------------------------------------------------------------------- specs


def test_unknown_sizes_take_one_recording():
    @to_static(input_spec=[InputSpec([None, 2], name="x")], full_graph=True)
    def function(x, k=1):
        n = x.shape[0]
        if n > 3:
            return x[:3].sum() * n
        return x.sum() * k + n

    for rows in (1, 2, 5, 7):
        x = paddle.arange(2 * rows).reshape([rows, 2]).astype("float32")
        assert function(x).item() == function.dygraph_function(x).item()
    assert function.get_traced_count() == 1
    assert function.inputs[0].name == "x"
    assert function.inputs[0].shape == [-1, 2]
    with pytest.raises(ValueError, match=r"x has shape \[2, 3\].*\[-1, 2\]"):
        function(paddle.ones([2, 3]))
    with pytest.raises(TypeError, match=r"x is float64.*float32"):
        function(paddle.ones([2, 2], "float64"))


def test_a_spec_is_enough_for_a_program():
    @to_static(input_spec=[InputSpec([None, 3], name="x")], full_graph=True)
    def function(x):
        return x * 2

    assert function.outputs[0].shape == [-1, 3]
    assert "data x: float32[-1, 3]" in str(function.main_program)
    with pytest.raises(ConversionError, match="input_spec"):
        to_static(lambda x: x).concrete_program


def test_input_spec_itself():
    spec = InputSpec([None, 784], "float32", "x")
    assert repr(spec) == "InputSpec(shape=(-1, 784), dtype=paddle.float32, name=x, stop_gradient=False)"
    assert spec == InputSpec([-1, 784], paddle.float32, "x")
    assert hash(spec) == hash(InputSpec([-1, 784], "float32", "x"))
    assert spec != InputSpec([-1, 784], "float64", "x")
    assert InputSpec.from_tensor(X, "t").shape == (2,)
    assert InputSpec.from_numpy(np.ones([2, 1], "int64")).dtype == paddle.int64
    assert InputSpec([3]).batch(4).shape == (4, 3)
    assert InputSpec([4, 3]).unbatch().shape == (3,)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: InputSpec(3), TypeError),
        (lambda: InputSpec(["a"]), TypeError),
        (lambda: InputSpec([-2]), ValueError),
        (lambda: InputSpec([1], "floating"), TypeError),
        (lambda: InputSpec([1], name=3), TypeError),
        (lambda: InputSpec([]).unbatch(), ValueError),
        (lambda: InputSpec([1]).batch([1, 2]), ValueError),
        (lambda: InputSpec([1]).batch("2"), TypeError),
    ],
)
def test_wrong_specs_are_refused(make, error):
    with pytest.raises(error, match="InputSpec"):
        make()


def test_rollback_gives_the_layer_back():
    layer = to_static(Net(), full_graph=True)
    layer(batches(1)[0])
    assert layer.forward.rollback() == layer.forward
    assert not isinstance(layer.forward, paddle.jit.StaticFunction)


def test_code_is_shown_when_asked_for(capsys):
    paddle.jit.set_code_level(100)
    paddle.jit.set_verbosity(1)
    try:
        to_static(lambda x: x * 2 if x.sum() > 0 else x)(X)
    finally:
        paddle.jit.set_code_level(-1)
        paddle.jit.set_verbosity(0)
    shown = capsys.readouterr().err
    assert "choose" in shown
    assert "was recorded" in shown


# ---------------------------------------------------------------------- parts of functions that run eagerly


class Block(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = paddle.nn.Linear(4, 4)
        self.drop = paddle.nn.Dropout(0.5)
        self.runs = 0

    def forward(self, x, scale=1.0):
        h = self.drop(paddle.nn.functional.relu(self.linear(x)))
        if h.sum() > 0:
            h = h * scale
        return h


class Model(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = Block(), Block(), paddle.nn.BatchNorm1D(4)

    def forward(self, x):
        h = self.first(x)
        values = h.numpy()  # cannot be recorded
        h = self.norm(h + float(values.max()))
        return self.second(h, scale=2.0).sum()


def test_layers_of_a_function_that_runs_eagerly_are_programs_of_their_own():
    paddle.seed(5)
    model = Model()
    twin = Model()
    twin.set_state_dict(model.state_dict())
    static = to_static(model.forward)
    x = paddle.rand([6, 4])
    for mode in ("train", "eval"):
        getattr(model, mode)()
        getattr(twin, mode)()
        for _ in range(3):
            found = []
            for net, function in ((model, static), (twin, twin.forward)):
                paddle.seed(9)
                loss = function(x)
                loss.backward()
                gradients = [p.grad.numpy() for p in net.parameters() if p.grad is not None]
                found.append([loss.item(), *gradients, *(b.numpy() for b in net.buffers()), paddle.rand([1]).item()])
                net.clear_gradients()
            for a, b in zip(*found, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert "has no elements yet" in static.fallback_reason
    assert {type(f.class_instance).__name__: f.get_traced_count() for f in static.parts} == {"Block": 2}
    assert all(f.fallback_reason == "" for f in static.parts)


def test_a_part_that_takes_other_objects_runs_eagerly():
    class Inner(paddle.nn.Layer):
        def forward(self, x, owner):
            owner.seen += 1
            return x * 2

    class Outer(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner, self.seen = Inner(), 0

        def forward(self, x):
            return self.inner(x, self) + float(x.numpy().sum())

    outer = Outer()
    static = to_static(outer.forward)
    for count in (1, 2, 3):
        assert static(X).tolist() == (X * 2 + float(X.sum())).tolist()
        assert outer.seen == count
    assert sum(f.get_traced_count() for f in static.parts) == 0
