"""Messages along edges, segments, renumbering, sampling: against NumPy loops and hand-made graphs."""

from __future__ import annotations

import numpy as np
import pytest

import sampan as paddle
from sampan import geometric
from sampan.base.errors import ArgumentError, ArgumentTypeError, ShapeError

X = np.array([[0.0, 2.0, 3.0], [1.0, 4.0, 5.0], [2.0, 6.0, 7.0]], np.float32)
SRC, DST = [0, 1, 2, 0], [1, 2, 1, 0]
REDUCE = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}
COMBINE = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def reduced(rows, index, count, how):
    index = np.array(index)
    return np.stack(
        [REDUCE[how](rows[index == k], axis=0) if (index == k).any() else np.zeros(rows.shape[1:]) for k in range(count)]
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("how", REDUCE)
def test_messages_are_reduced_at_their_destination(how, dtype):
    src, dst = paddle.to_tensor(SRC, dtype), paddle.to_tensor(DST, dtype)
    for size in (None, 5):
        found = geometric.send_u_recv(paddle.to_tensor(X), src, dst, how, out_size=size)
        np.testing.assert_allclose(found.numpy(), reduced(X[SRC], DST, size or 3, how), rtol=1e-6)


@pytest.mark.parametrize("how", REDUCE)
@pytest.mark.parametrize("combine", COMBINE)
def test_messages_combine_with_the_edges_own(combine, how):
    edges = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    src, dst = paddle.to_tensor(SRC), paddle.to_tensor(DST)
    found = geometric.send_ue_recv(paddle.to_tensor(X), paddle.to_tensor(edges), src, dst, combine, how)
    expected = reduced(COMBINE[combine](X[SRC], edges[:, None]), DST, 3, how)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    both = geometric.send_uv(paddle.to_tensor(X), paddle.to_tensor(X + 1), src, dst, combine)
    np.testing.assert_allclose(both.numpy(), COMBINE[combine](X[SRC], X[DST] + 1), rtol=1e-6)


@pytest.mark.parametrize("how", REDUCE)
def test_segments_are_reduced_and_empty_ones_are_zeros(how):
    found = getattr(geometric, f"segment_{how}")(paddle.to_tensor(X), paddle.to_tensor([0, 0, 2]))
    np.testing.assert_allclose(found.numpy(), reduced(X, [0, 0, 2], 3, how), rtol=1e-6)
    counted = getattr(geometric, f"segment_{how}")(paddle.to_tensor([[3], [4]]), paddle.to_tensor([0, 0]))
    assert counted.dtype.name == "int64"


def test_gradients_flow_back_along_the_edges():
    x = paddle.to_tensor(X, stop_gradient=False)
    geometric.send_u_recv(x, paddle.to_tensor(SRC), paddle.to_tensor(DST), "mean").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[1.5] * 3, [1.0] * 3, [0.5] * 3])


def test_nodes_are_renumbered_in_the_order_they_come():
    x, near, count = (paddle.to_tensor(v) for v in ([0, 1, 2], [8, 9, 0, 4, 7, 6, 7], [2, 3, 2]))
    found = [t.tolist() for t in geometric.reindex_graph(x, near, count)]
    assert found == [[3, 4, 0, 5, 6, 7, 6], [0, 0, 1, 1, 1, 2, 2], [0, 1, 2, 8, 9, 4, 7, 6]]
    more, counts = paddle.to_tensor([0, 2, 3, 5, 1]), paddle.to_tensor([1, 3, 1])
    both = [t.tolist() for t in geometric.reindex_heter_graph(x, [near, more], [count, counts])]
    assert both[0][7:] == [0, 2, 8, 9, 1]
    assert both[2] == [0, 1, 2, 8, 9, 4, 7, 6, 3, 5]
    with pytest.raises(ArgumentError, match="twice"):
        geometric.reindex_graph(paddle.to_tensor([1, 1]), near, count)


ROW = [3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]
ENDS = [0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]


def test_sampled_neighbours_are_distinct_neighbours():
    paddle.seed(1)
    row, ends, nodes, numbers = (paddle.to_tensor(v) for v in (ROW, ENDS, [0, 8, 1, 2], list(range(100, 113))))
    near, count, edges = geometric.sample_neighbors(row, ends, nodes, eids=numbers, return_eids=True)
    assert near.tolist() == [3, 7, 9, 7, 0, 9, 1]
    assert (count.tolist(), edges.tolist()) == ([2, 2, 2, 1], [100, 101, 111, 112, 102, 103, 104])
    seen = set()
    for _ in range(20):
        near, count = geometric.sample_neighbors(row, ends, nodes, sample_size=1)
        assert count.tolist() == [1, 1, 1, 1]
        seen.add(near.tolist()[0])
    assert seen == {3, 7}


def test_heavy_edges_are_drawn_more_often_and_weightless_ones_never():
    paddle.seed(1)
    row, ends, weights = paddle.to_tensor([1, 2, 3]), paddle.to_tensor([0, 3]), paddle.to_tensor([1.0, 9.0, 0.0])
    drawn = [geometric.weighted_sample_neighbors(row, ends, weights, paddle.to_tensor([0]), 1)[0].item() for _ in range(400)]
    assert 3 not in drawn
    assert abs(drawn.count(2) / 400 - 0.9) < 0.06


def test_hops_make_one_renumbered_graph():
    row, ends, nodes = (paddle.to_tensor(v) for v in (ROW, ENDS, [0, 8]))
    source, target, known, start = paddle.incubate.graph_khop_sampler(row, ends, nodes, [-1, -1])
    old = known.numpy()
    edges = set(zip(old[source.numpy().ravel()].tolist(), old[target.numpy().ravel()].tolist()))
    assert {(3, 0), (7, 0), (9, 8), (7, 8)} < edges
    assert all(s in ROW[ENDS[t] : ENDS[t + 1]] for s, t in edges)
    assert old[start.numpy()].tolist() == [0, 8]


def test_wrong_arguments_are_refused():
    x, index = paddle.to_tensor(X), paddle.to_tensor([0, 1])
    with pytest.raises(ArgumentError, match="reduce_op='median'"):
        geometric.send_u_recv(x, index, index, "median")
    with pytest.raises(ArgumentError, match="message_op='pow'"):
        geometric.send_uv(x, x, index, index, "pow")
    with pytest.raises(ArgumentTypeError, match="x is None"):
        geometric.send_u_recv(None, index, index)
    with pytest.raises(IndexError, match="dst_index holds 7"):
        geometric.send_u_recv(x, index, paddle.to_tensor([0, 7]))
    with pytest.raises(ShapeError, match="dst_index has 1 elements"):
        geometric.send_u_recv(x, index, paddle.to_tensor([0]))
    with pytest.raises(ArgumentError, match="colptr does not divide row"):
        geometric.sample_neighbors(index, paddle.to_tensor([0, 9]), paddle.to_tensor([0]))
    with pytest.raises(IndexError):
        geometric.send_u_recv(x, paddle.to_tensor([7]), paddle.to_tensor([0]))
    with pytest.raises(ArgumentError, match="negative"):
        geometric.send_u_recv(x, paddle.to_tensor([-1]), paddle.to_tensor([0]))
    with pytest.raises(ShapeError, match="there are 2 edges"):
        geometric.send_ue_recv(x, paddle.ones([3]), index, index)
    with pytest.raises(ShapeError, match="data has 3 rows"):
        geometric.segment_sum(x, index)
    with pytest.raises(ArgumentError, match="outside of the graph"):
        geometric.sample_neighbors(paddle.to_tensor([0]), paddle.to_tensor([0, 1]), paddle.to_tensor([5]))


IN_PROGRAMS = {
    "send_u_recv": lambda x, src, dst: geometric.send_u_recv(x, src, dst, "mean"),
    "send_u_recv of a size": lambda x, src, dst: geometric.send_u_recv(x, src, dst, out_size=5),
    "send_u_recv of a size that is computed": lambda x, src, dst: geometric.send_u_recv(x, src, dst, out_size=dst.max() + 2),
    "send_ue_recv": lambda x, src, dst: geometric.send_ue_recv(x, x[src] * 2, src, dst, "mul", "sum"),
    "send_ue_recv of numbers": lambda x, src, dst: geometric.send_ue_recv(x, x[src, 0], src, dst, "add", "max"),
    "send_uv": lambda x, src, dst: geometric.send_uv(x, x[:, :1], src, dst, "sub"),
    "segment_sum": lambda x, src, dst: geometric.segment_sum(x, dst[:3].sort()),
    "segment_max": lambda x, src, dst: geometric.segment_max(x * x, dst[:3].sort()),
}


@pytest.mark.parametrize("name", IN_PROGRAMS)
def test_messages_in_programs_have_eager_modes_values_and_gradients(name):
    def function(x, src, dst):
        made = IN_PROGRAMS[name](x + 1, src, dst)
        return made, (made * made).sum()

    src, dst = paddle.to_tensor(SRC), paddle.to_tensor(DST)
    found = []
    for call in (function, paddle.jit.to_static(function, full_graph=True)):
        x = paddle.to_tensor(X, stop_gradient=False)
        made, loss = call(x, src, dst)
        loss.backward()
        found.append((made.numpy(), x.grad.numpy()))
    for eager, converted in zip(*found, strict=True):
        np.testing.assert_allclose(converted, eager, rtol=1e-6)
    paddle.enable_static()
    try:
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x, *ends = paddle.static.data("x", [3, 3]), *(paddle.static.data(n, [4], "int64") for n in ("src", "dst"))
            x.stop_gradient = False
            made, loss = function(x, *ends)
            assert made.dtype == "float32"
            assert all(m in (-1, n) for m, n in zip(made.shape, found[0][0].shape, strict=True))
            fetches = [made, *paddle.static.gradients([loss], [x])]
        feed = {"x": X, "src": np.array(SRC), "dst": np.array(DST)}
        results = paddle.static.Executor().run(main, feed=feed, fetch_list=fetches)
    finally:
        paddle.disable_static()
    for eager, static in zip(found[0], results, strict=True):
        np.testing.assert_allclose(static, eager, rtol=1e-6)


def test_sampling_and_renumbering_in_programs():
    row, colptr = paddle.to_tensor([1, 2, 3, 0, 0, 1]), paddle.to_tensor([0, 3, 4, 5, 6])

    def function(nodes):
        near, count = geometric.sample_neighbors(row, colptr, nodes, 2)
        weighted = geometric.weighted_sample_neighbors(row, colptr, paddle.ones([6]), nodes, 1, row, True)
        return near, count, *geometric.reindex_graph(nodes, near, count), *weighted

    nodes = paddle.to_tensor([0, 2])
    converted = paddle.jit.to_static(function, full_graph=True)
    found = []
    for call in (function, converted):
        paddle.seed(4)
        found.append([[t.tolist() for t in call(nodes)] for _ in range(4)])
    assert found[0] == found[1]
    assert len({str(f) for f in found[1]}) > 1
