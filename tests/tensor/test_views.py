"""Views and in-place writes under autograd: one memory, one history."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sampan as paddle
from sampan import _rt


def leaf(values, dtype="float64"):
    return paddle.to_tensor(values, dtype=dtype, stop_gradient=False)


# -- random programs against NumPy, whose views and writes are the plain meaning of the same steps ----------------------------


class Arrays:
    """The steps on NumPy arrays; complex ones carry a derivative in their imaginary parts."""

    def zeros(self, shape):
        return np.zeros(shape, complex)

    def unrecorded(self, write):
        write()

    def expand(self, x):
        return np.broadcast_to(x, (2, *x.shape))

    def add(self, x, value):
        x += value

    def scale(self, x, value):
        x *= value

    def transpose(self, x):
        return x.transpose(tuple(reversed(range(x.ndim))))

    def new_axis(self, x):
        return x[:, None] if x.ndim else x[None]


class Tensors:
    """The same steps on tensors."""

    def zeros(self, shape):
        return paddle.zeros(list(shape), dtype="float64")

    def unrecorded(self, write):
        with paddle.no_grad():
            write()

    def expand(self, x):
        return x.expand([2, *x.shape])

    def add(self, x, value):
        x.add_(value if isinstance(value, paddle.Tensor) else paddle.to_tensor(value, dtype="float64"))

    def scale(self, x, value):
        x.scale_(value)

    def transpose(self, x):
        return x.transpose(list(reversed(range(x.ndim))))

    def new_axis(self, x):
        return x.unsqueeze(1) if x.ndim else x.unsqueeze(0)


VIEWS = ["first", "last", "tail", "steps", "reversed", "transpose", "new_axis", "expand"]
STEPS = [*VIEWS, *VIEWS, "zeros", "compute", "add", "add", "add_constant", "scale", "set", "set_constant", "unrecorded", "use"]


def run(program, at, x, c):
    """The tensors of a program; ``at`` does the steps that the two spell differently."""
    made = [x * 2.0, at.zeros((3, 4)), c * 1.0]
    written = [True, True, True]  # may be rewritten: not an expanded view

    def put(k, view, writable):
        made.append(view)
        written.append(writable and written[k])

    for kind, first, second in program:
        k, j = first % len(made), second % len(made)
        t = made[k]
        if kind in ("first", "last", "tail", "steps", "reversed") and t.ndim == 0:
            continue
        if kind in ("add", "add_constant", "scale", "set", "set_constant", "unrecorded") and not written[k]:
            continue
        value = made[j].sum() * 0.25 + 1.0
        if kind == "first":
            put(k, t[0, ...], True)
        elif kind == "last":
            put(k, t[-1, ...], True)
        elif kind == "tail":
            put(k, t[1:] if t.shape[0] > 1 else t[:], True)
        elif kind == "steps":
            put(k, t[::2], True)
        elif kind == "reversed":
            put(k, t[::-1], True)
        elif kind == "transpose":
            put(k, at.transpose(t), True)
        elif kind == "new_axis":
            put(k, at.new_axis(t), True)
        elif kind == "expand":
            put(k, at.expand(t), False)
        elif kind == "zeros":
            put(k, at.zeros((2, 3)), True)
            written[-1] = True
        elif kind in ("compute", "use"):
            put(k, t * 0.5 + value, True)
            written[-1] = True
        elif kind == "add":
            at.add(t, value)
        elif kind == "add_constant":
            at.add(t, 0.5)
        elif kind == "scale":
            at.scale(t, -0.5)
        elif kind == "unrecorded":
            at.unrecorded(lambda t=t: at.add(t, 0.25))
        elif kind == "set":
            t[...] = value
        else:
            t[...] = 1.5
    return made


def loss_of(made):
    total = 0.0
    for k, t in enumerate(made):
        total = total + (t * t * t).sum() * (0.01 / (k + 1)) + t.sum() * (k + 1.0)
    return total


def gradient_by_arrays(program, point):
    """By complex steps: exact to rounding."""
    found = np.empty(16)
    for k in range(16):
        p = point.astype(complex)
        p[k] += 1e-30j
        found[k] = loss_of(run(program, Arrays(), p[:12].reshape(3, 4), p[12:])).imag / 1e-30
    return found


steps = st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 30))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(steps, min_size=1, max_size=9))
def test_programs_of_views_and_writes_have_the_values_and_gradients_of_their_plain_meaning(program):
    point = np.random.default_rng(1).uniform(0.5, 1.5, 16)
    direction = np.random.default_rng(2).uniform(-1, 1, 16)
    x, c = leaf(point[:12].reshape(3, 4)), leaf(point[12:])
    made = run(program, Tensors(), x, c)
    plain = run(program, Arrays(), point[:12].reshape(3, 4).astype(complex), point[12:].astype(complex))
    for t, p in zip(made, plain, strict=True):
        np.testing.assert_allclose(t.numpy(), p.real, rtol=1e-12, atol=1e-12)
    loss = loss_of(made)
    gx, gc = paddle.grad(loss, [x, c], create_graph=True)
    found = np.concatenate([gx.numpy().ravel(), gc.numpy()])
    np.testing.assert_allclose(found, gradient_by_arrays(program, point), rtol=1e-9, atol=1e-9)
    # The loss is a cubic of the leaves, so the central difference of its gradient is exact for any step.
    second = (gradient_by_arrays(program, point + direction) - gradient_by_arrays(program, point - direction)) / 2
    along = (gx * direction[:12].reshape(3, 4)).sum() + (gc * direction[12:]).sum()
    hx, hc = paddle.grad(along, [x, c], retain_graph=True, allow_unused=True)
    for h, part in ((hx, second[:12].reshape(3, 4)), (hc, second[12:])):
        np.testing.assert_allclose(0.0 if h is None else h.numpy(), part, rtol=1e-8, atol=1e-8)
    loss.backward()
    np.testing.assert_array_equal(x.grad.numpy(), gx.numpy())


# -- single meanings ------------------------------------------------------------------------------------------------------------


def test_a_write_through_a_view_of_a_constant_makes_the_constant_part_of_the_graph():
    c = leaf([5.0, 6.0])
    b = paddle.zeros([3], dtype="float64")
    v, w = b[0:2], b[1:]
    v.add_(c)
    assert [b.stop_gradient, w.stop_gradient, w.is_leaf] == [False, False, False]
    (b.sum() + 10 * w.sum()).backward()
    assert c.grad.tolist() == [1.0, 11.0]


def test_rows_written_one_by_one_carry_their_gradients():
    c = leaf([1.0, 2.0])
    out = paddle.zeros([3, 2], dtype="float64")
    for k, row in enumerate(out):
        row.add_(c * float(k))
    out.sum().backward()
    assert c.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda b: b.reshape([3, 2]),
        lambda b: b.transpose([1, 0]),
        lambda b: b.T,
        lambda b: b.squeeze(),
        lambda b: b.unsqueeze(0),
        lambda b: b.flatten(),
        lambda b: b[1],
        lambda b: b[:, 1:],
        lambda b: b[..., None],
        lambda b: paddle.diagonal(b),
        lambda b: b.view([6]),
        lambda b: b[::-1],
    ],
)
def test_every_kind_of_view_joins_the_history(view):
    x, b = leaf(np.arange(6.0).reshape(2, 3)), paddle.zeros([2, 3], dtype="float64")
    v = view(b)
    assert _rt.shares_storage(v, b)
    v.add_(view(x))
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    (b * paddle.to_tensor(weights)).sum().backward()
    reached = paddle.zeros([2, 3], dtype="float64")
    view(reached)[...] = 1.0
    np.testing.assert_array_equal(x.grad.numpy(), weights * reached.numpy())


def test_a_view_made_under_no_grad_follows_its_constant_base():
    c = leaf([5.0, 6.0, 7.0])
    b = paddle.zeros([3], dtype="float64")
    with paddle.no_grad():
        v = b[0:2]
    b.add_(c)
    assert not v.stop_gradient
    v.sum().backward()
    assert c.grad.tolist() == [1.0, 1.0, 0.0]


def test_a_view_made_under_no_grad_of_a_tensor_in_the_graph_cannot_be_rewritten_while_recording():
    b, c = leaf([1.0, 2.0, 3.0]) * 2, leaf([5.0, 6.0])
    with paddle.no_grad():
        v = b[0:2]
        w = v[:1]
    for t in (v, w):
        with pytest.raises(ValueError, match=r"made under no_grad\(\).*\n.*outside of no_grad"):
            t.add_(c[:1])
    with paddle.no_grad():
        v.add_(c)
    assert b.tolist() == [7.0, 10.0, 6.0]


def test_a_detached_tensor_shares_memory_and_no_history():
    c = leaf([5.0, 6.0, 7.0])
    b = paddle.zeros([3], dtype="float64")
    d = b.detach()
    d.add_(c)
    assert [d.stop_gradient, b.stop_gradient, b.tolist()] == [False, True, [5.0, 6.0, 7.0]]
    e = b.detach()
    b.add_(c)
    assert [e.stop_gradient, b.stop_gradient] == [True, False]


def test_a_view_of_a_leaf_cannot_be_rewritten_while_recording():
    b = paddle.zeros([3], dtype="float64")
    v = b[0:2]
    b.stop_gradient = False
    with pytest.raises(ValueError, match="a view of a leaf tensor that wants a gradient"):
        v.add_(leaf([1.0, 2.0]))
    assert b.tolist() == [0.0, 0.0, 0.0]


def test_a_view_that_the_user_made_a_leaf_stays_one():
    b, c = paddle.zeros([3], dtype="float64"), leaf([1.0, 1.0, 1.0])
    v = b.reshape([3, 1])
    v.stop_gradient = False
    b.add_(c)
    assert v.is_leaf
    (v * 2).sum().backward()
    assert v.grad.flatten().tolist() == [2.0, 2.0, 2.0]
    assert c.grad is None


def test_a_view_that_the_user_made_a_constant_stays_one():
    b, c = paddle.zeros([3], dtype="float64"), leaf([1.0, 1.0, 1.0])
    v = b[0:2]
    v.stop_gradient = True
    b.add_(c)
    assert v.stop_gradient


def test_constants_written_into_a_view_stop_the_gradient_there_and_nowhere_else():
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b[0:2]
    v.zero_()
    (b.sum() + 10 * v.sum()).backward(retain_graph=True)
    assert x.grad.tolist() == [0.0, 0.0, 1.0]
    v.add_(x[1:])
    x.clear_gradient(False)
    b.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 2.0]


def test_a_base_overwritten_by_constants_takes_its_views_along():
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b[0:2]
    b.zero_()
    v.sum().backward()
    assert x.grad is None or x.grad.tolist() == [0.0, 0.0, 0.0]


def test_an_expanded_view_of_a_rewritten_base_sums_its_gradients():
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b.expand([2, 3])
    b.multiply_(paddle.to_tensor([2.0, 3.0, 4.0], dtype="float64"))
    v.sum().backward()
    assert x.grad.tolist() == [4.0, 6.0, 8.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_a_repeated_view_of_a_rewritten_base_in_every_dtype(dtype):
    x = leaf([1.0, 2.0, 3.0], dtype)
    b = x * 1
    v = b[1:].expand([3, 2])
    b.add_(x)
    v.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 6.0]


def test_many_half_precision_gradients_in_one_place_are_summed_in_single_precision():
    x = leaf([1.0], "float16")
    b = x * 1
    v = b.expand([4096])
    b.add_(x)
    v.sum().backward()
    assert x.grad.item() == 8192.0


def test_the_base_may_be_strided():
    x = leaf([1.0, 2.0])
    memory = paddle.zeros([3, 4], dtype="float64")
    b = memory.detach()[:, 1:3].detach()
    v = b[1]
    v.add_(x)
    (b * paddle.to_tensor(np.arange(6.0).reshape(3, 2))).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_a_base_that_gets_other_memory_leaves_its_views_to_each_other():
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v, w = b[0:2], b[1:]
    b.cast_("float32")
    v.add_(x[:2])
    assert [b.tolist(), w.tolist()] == [[1.0, 2.0, 3.0], [4.0, 3.0]]
    w.sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 1.0]


def test_a_view_that_gets_other_memory_is_no_view_any_more():
    x = leaf([1.0, 2.0, 3.0])
    b = x * 1
    v = b[0:2]
    v.cast_("float32")
    v.add_(leaf([1.0, 1.0], "float32"))
    b.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_reshaped_view_still_writes_through():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    b = paddle.zeros([2, 4], dtype="float64")
    v = b[1]
    v.reshape_([2, 2])
    v.add_(x.reshape([2, 2]))
    (b * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0, 3.0]


def test_out_writes_through_a_view():
    x = leaf([1.0, 2.0])
    b = paddle.zeros([3], dtype="float64")
    v = b[1:]
    paddle.add(x, x, out=v)
    b.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_write_makes_values_saved_from_another_view_stale():
    x, c = leaf([1.0, 2.0]), leaf([3.0])
    b = x * 1
    y = b[0:1] * c
    b[0:1].add_(c)
    with pytest.raises(RuntimeError, match="changed in place"):
        y.backward()


def test_views_do_not_outlive_each_other_and_bases_die_with_their_last_view():
    def once():
        b = paddle.zeros([1000], dtype="float64")
        views = [b[k:] for k in range(50)]
        del b
        views[10].add_(leaf([1.0]))
        assert not views[49].stop_gradient

    once()  # what the first call keeps is not counted
    before = paddle.device.memory_allocated()
    once()
    assert paddle.device.memory_allocated() == before


def test_chains_of_gradients_of_gradients_end_without_recursion():
    first = last = paddle.zeros([1])
    for _ in range(200_000):
        nxt = paddle.zeros([1])
        last.grad = nxt
        last = nxt
    del last, nxt
    del first
