"""Recurrent layers: the operator over whole sequences against the cells step by step, its shapes, its errors, its threads."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import nn
from sampan.base.errors import AutogradError, ShapeError

CELLS = {
    "LSTM": nn.LSTMCell,
    "GRU": nn.GRUCell,
    "SimpleRNN": nn.SimpleRNNCell,
    "relu": lambda i, h: nn.SimpleRNNCell(i, h, activation="relu"),
    "projected LSTM": lambda i, h: nn.LSTMCell(i, h, proj_size=max(h // 3, 1)),
}
LAYERS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "SimpleRNN": nn.SimpleRNN}
STATE_COUNT = {"LSTM": 2, "GRU": 1, "SimpleRNN": 1}


class Stepwise(nn.RNNCellBase):
    """A cell of one's own around a built-in one, which a layer can only run step by step."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, inputs, states):
        return self.cell(inputs, states)

    @property
    def state_shape(self):
        return self.cell.state_shape


def outcome(run, x, parameters):
    """Outputs, final states and all gradients of a loss over them."""
    x = paddle.to_tensor(x, stop_gradient=False)
    outputs, states = run(x)
    states = states if isinstance(states, tuple) else (states,)
    loss = (outputs * outputs).sum() + sum((s**3).sum() for s in states)
    loss.backward()
    found = [outputs, *states, x.grad, *(p.grad for p in parameters)]
    found = [f.numpy() for f in found]
    for p in parameters:
        p.clear_gradient(False)
    return found


@pytest.mark.parametrize("lengths", [None, [7, 0, 3]])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CELLS)
def test_a_layer_equals_its_cell_step_by_step(name, dtype, is_reverse, lengths):
    paddle.seed(3)
    cell = CELLS[name](5, 19)
    cell.to(dtype=dtype)
    lengths = None if lengths is None else paddle.to_tensor(lengths)
    x = np.random.RandomState(0).randn(3, 7, 5).astype(dtype)
    fast, slow = nn.RNN(cell, is_reverse), nn.RNN(Stepwise(cell), is_reverse)
    got = outcome(lambda t: fast(t, None, lengths), x, cell.parameters())
    want = outcome(lambda t: slow(t, None, lengths), x, cell.parameters())
    tolerance = 5e-5 if dtype == "float32" else 1e-11
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CELLS)
def test_large_widths_and_batches_are_split_right(name):
    """More rows than a block of the batch, a depth beyond one panel, a last strip of one column."""
    paddle.seed(5)
    cell = CELLS[name](3, 273)
    x = np.random.RandomState(0).randn(101, 3, 3).astype("float32")
    got = outcome(nn.RNN(cell), x, cell.parameters())
    want = outcome(nn.RNN(Stepwise(cell)), x, cell.parameters())
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-3, atol=2e-4 * np.abs(w).max())


@pytest.mark.parametrize("name", LAYERS)
def test_two_directions_of_two_layers_from_given_states(name):
    paddle.seed(4)
    layer = LAYERS[name](3, 4, num_layers=2, direction="bidirect", time_major=True)
    x = paddle.randn([5, 2, 3])
    given = [paddle.randn([4, 2, 4]) for _ in range(STATE_COUNT[name])]
    outputs, finals = layer(x, tuple(given) if len(given) > 1 else given[0])
    h = finals[0] if isinstance(finals, tuple) else finals
    assert list(outputs.shape) == [5, 2, 8]
    # the last layer's final states stand at the ends of its outputs
    np.testing.assert_array_equal(h[2].numpy(), outputs[-1, :, :4].numpy())
    np.testing.assert_array_equal(h[3].numpy(), outputs[0, :, 4:].numpy())


def test_relu_is_kept_by_the_layer():
    layer = nn.SimpleRNN(2, 3, activation="relu")
    outputs, _ = layer(paddle.randn([4, 6, 2]) * 10)
    assert float(outputs.min()) == 0
    assert float(outputs.max()) > 1


def test_layers_without_biases():
    layer = nn.GRU(2, 3, bias_ih_attr=False, bias_hh_attr=False)
    outputs, _ = layer(paddle.zeros([2, 4, 2]))
    assert float(outputs.abs().max()) == 0


def test_half_precision_inputs_give_their_own_dtype():
    layer = nn.LSTM(3, 4)
    x = paddle.randn([2, 5, 3])
    want, _ = layer(x)
    layer.to(dtype="bfloat16")
    got, (h, _) = layer(x.astype("bfloat16"))
    assert got.dtype == h.dtype == paddle.bfloat16
    np.testing.assert_allclose(got.astype("float32").numpy(), want.numpy(), atol=0.03)


def test_no_steps_give_the_first_states():
    layer = nn.GRU(2, 3)
    first = paddle.randn([1, 4, 3])
    outputs, final = layer(paddle.zeros([4, 0, 2]), first)
    assert list(outputs.shape) == [4, 0, 3]
    np.testing.assert_array_equal(final.numpy(), first.numpy())


def test_a_projected_lstm_has_narrow_states_and_wide_cells_in_both_directions():
    layer = nn.LSTM(3, 6, num_layers=2, direction="bidirect", proj_size=2)
    outputs, (h, c) = layer(paddle.randn([2, 5, 3]))
    assert list(outputs.shape) == [2, 5, 4]
    assert list(h.shape) == [4, 2, 2]
    assert list(c.shape) == [4, 2, 6]
    np.testing.assert_array_equal(h[3].numpy(), outputs[:, 0, 2:].numpy())
    with pytest.raises(ShapeError, match=r"weight_hh is \[24, 2\]; it must be \[24, 3\]|h is"):
        layer(paddle.randn([2, 5, 3]), (paddle.zeros([4, 2, 3]), c))


def second_derivatives(run, x, parameters):
    """Gradients of the squared gradients, by everything, and of a loss beside them."""
    x = paddle.to_tensor(x, stop_gradient=False)
    outputs, states = run(x)
    states = states if isinstance(states, tuple) else (states,)
    loss = (outputs**3).sum() + sum((s**2).sum() for s in states)
    first = paddle.grad(loss, [x, *parameters], create_graph=True)
    total = sum((g * g).sum() for g in first) + (outputs * outputs).sum()
    return [g.numpy() for g in paddle.grad(total, [x, *parameters])]


@pytest.mark.parametrize("lengths", [None, [4, 0, 3]])
@pytest.mark.parametrize("is_reverse", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_second_derivatives_are_those_of_the_cell_step_by_step(name, is_reverse, lengths):
    paddle.seed(3)
    cell = CELLS[name](2, 4)
    cell.to(dtype="float64")
    lengths = None if lengths is None else paddle.to_tensor(lengths)
    x = np.random.RandomState(0).randn(3, 4, 2)
    fast, slow = nn.RNN(cell, is_reverse), nn.RNN(Stepwise(cell), is_reverse)
    got = second_derivatives(lambda t: fast(t, None, lengths), x, cell.parameters())
    want = second_derivatives(lambda t: slow(t, None, lengths), x, cell.parameters())
    assert max(np.abs(w).max() for w in want) > 1e-3
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_a_gradient_penalty_trains_through_two_layers_in_both_directions(name):
    paddle.seed(1)
    layer = LAYERS[name](3, 5, num_layers=2, direction="bidirect")
    optimizer = paddle.optimizer.Adam(0.02, parameters=layer.parameters())
    x = paddle.randn([4, 6, 3])
    x.stop_gradient = False
    penalties = []
    for _ in range(12):
        (grad,) = paddle.grad(layer(x)[0].sum(), x, create_graph=True)
        penalty = ((grad * grad).sum() - 1.0) ** 2
        penalty.backward()
        optimizer.step()
        optimizer.clear_grad()
        penalties.append(float(penalty))
    assert penalties[-1] < 0.3 * penalties[0]


def test_third_derivatives_are_refused_with_the_way_to_have_them():
    x = paddle.ones([1, 2, 2])
    x.stop_gradient = False
    (first,) = paddle.grad(nn.GRU(2, 2)(x)[0].sum(), x, create_graph=True)
    with pytest.raises(AutogradError, match="no third derivatives"):
        paddle.grad(first.sum(), x, create_graph=True)


@pytest.mark.parametrize("name", LAYERS)
def test_threads_do_not_change_a_bit(name):
    paddle.seed(6)
    layer = LAYERS[name](8, 70, direction="bidirect")
    x = np.random.RandomState(0).randn(60, 6, 8).astype("float32")
    runs = []
    before = paddle._rt.num_threads()
    try:
        for threads in (1, 2):
            paddle._rt.set_num_threads(threads)
            runs.append(outcome(layer, x, []))
    finally:
        paddle._rt.set_num_threads(before)
    for a, b in zip(*runs, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_wrong_width_is_an_error_with_both_shapes():
    with pytest.raises(ShapeError, match=r"\[5, 2, 4\].*\[16, 3\]"):
        nn.LSTM(3, 4)(paddle.zeros([2, 5, 4]))


def test_states_of_another_batch_are_an_error():
    with pytest.raises(ShapeError, match="batch"):
        nn.GRU(3, 4)(paddle.zeros([2, 5, 3]), paddle.zeros([1, 3, 4]))
