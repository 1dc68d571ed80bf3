"""Pictures: what they show of Programs, models and Plans, that nothing overlaps, and that their files are whole."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sampan as paddle
from sampan import profiler
from sampan.codegen.compile import compile_program
from sampan.ir.text import parse_program
from sampan.profiler.pictures.draw import _add_times, _graph
from sampan.profiler.pictures.from_ir import graph_of_plan, graph_of_program
from sampan.profiler.pictures.graph import Box, Graph, Node
from sampan.profiler.pictures.layout import place
from sampan.profiler.pictures.svg import html_of, svg_of
from sampan.profiler.pictures.times import kernel_times


def layer_graph(net, *inputs, is_timed=False):
    return _graph(net, inputs, "recorded", is_timed)


def titles(graph):
    return [n.title for n in graph.root.nodes()]


def arrows(graph):
    return {(e.source.title, e.target.title) for e in graph.edges}


def overlap(a, b):
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def assert_readable(graph):
    """No two items of a box overlap, everything lies in its box, and edges go down and through no other node."""
    layout = place(graph)
    boxes = [graph.root, *graph.root.boxes()]
    for box in boxes:
        for k, a in enumerate(box.items):
            for b in box.items[k + 1 :]:
                assert not overlap(layout.places[a], layout.places[b]), (a, b)
            p = layout.places[a]
            if box is not graph.root:
                o = layout.places[box]
                assert o.x <= p.x <= p.x + p.width <= o.x + o.width
                assert o.y + 15 <= p.y <= p.y + p.height <= o.y + o.height
            assert -0.01 <= p.x <= p.x + p.width <= layout.width + 0.01
            assert -0.01 <= p.y <= p.y + p.height <= layout.height + 0.01
    nodes = list(graph.root.nodes())
    assert len(layout.routes) == len(graph.edges)
    for edge, points in layout.routes:
        ys = [y for _, y in points]
        assert ys == sorted(ys), edge
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            for node in nodes:
                p = layout.places[node]
                is_beside = max(x0, x1) <= p.x + 0.01 or min(x0, x1) >= p.x + p.width - 0.01
                assert is_beside or y1 <= p.y + 0.01 or y0 >= p.y + p.height - 0.01, (edge, node)


class TestLayout:
    def test_an_edge_over_several_layers_passes_beside_what_is_between(self):
        graph = Graph("skip")
        a, b, c = (Node(name) for name in "abc")
        for node in (a, b, c):
            graph.root.add(node)
        for source, target in ((a, b), (b, c), (a, c)):
            graph.connect(source, target, id(source))
        assert_readable(graph)
        layout = place(graph)
        long = next(points for edge, points in layout.routes if edge.source is a and edge.target is c)
        middle = layout.places[b]
        assert all(not middle.x < x < middle.x + middle.width for x, y in long if middle.y < y < middle.y + middle.height)

    def test_crossings_are_undone(self):
        graph = Graph("crossed")
        above = [Node(f"above {k}") for k in range(4)]
        below = [Node(f"below {k}") for k in range(4)]
        for node in (*above, *below):
            graph.root.add(node)
        for k, node in enumerate(above):
            graph.connect(node, below[3 - k], k)
        places = place(graph).places
        upper = sorted(range(4), key=lambda k: places[above[k]].x)
        lower = sorted(range(4), key=lambda k: places[below[3 - k]].x)
        assert upper == lower

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_nothing_overlaps_in_any_nested_graph(self, data):
        graph = Graph("random")
        nodes = [
            Node("n" * data.draw(st.integers(1, 12)), ["line"] * data.draw(st.integers(0, 3)))
            for _ in range(data.draw(st.integers(1, 14)))
        ]
        stack = [graph.root]
        for node in nodes:
            move = data.draw(st.sampled_from(["stay", "open", "close"]))
            if move == "open":
                stack[-1].add(box := Box(f"box {len(stack)}"))
                stack.append(box)
            elif move == "close" and len(stack) > 1:
                stack.pop()
            stack[-1].add(node)
        for k, node in enumerate(nodes[1:], 1):
            for source in data.draw(st.sets(st.integers(0, k - 1), max_size=3)):
                graph.connect(nodes[source], node, source)
        graph.root.simplify()
        assert_readable(graph)

    def test_an_empty_picture_is_a_picture(self):
        ElementTree.fromstring(svg_of(Graph("nothing")))


class TestModels:
    def test_layers_are_frames_and_operators_nodes(self):
        inner = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.ReLU())
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), inner, paddle.nn.Softmax())
        graph = layer_graph(net, paddle.ones([2, 4]))
        assert titles(graph) == ["input_0", "linear", "linear", "relu", "softmax", "output"]
        assert [b.title for b in graph.root.boxes()] == ["1: Sequential"]
        linear = next(n for n in graph.root.nodes() if n.title == "linear")
        assert linear.lines == [
            "0: Linear",
            f"{net[0].weight.name} float32[4, 8]",
            f"{net[0].bias.name} float32[8]",
            "→ float32[2, 8]",
        ]
        assert arrows(graph) == {
            ("input_0", "linear"),
            ("linear", "linear"),
            ("linear", "relu"),
            ("relu", "softmax"),
            ("softmax", "output"),
        }

    def test_what_is_fused_has_one_number(self):
        net = paddle.nn.Sequential(paddle.nn.ReLU(), paddle.nn.Sigmoid(), paddle.nn.Softmax())
        graph = layer_graph(net, paddle.ones([8, 16]))
        ((number, nodes),) = graph.fused().items()
        assert {n.title for n in nodes} == {"relu", "sigmoid", "softmax"}
        assert graph.kernels[number][0].startswith("kernel ")
        assert svg_of(graph).count("class='fused'") == 3

    def test_drawing_runs_nothing_and_changes_nothing(self):
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.BatchNorm1D(4), paddle.nn.Dropout(0.5))
        before = {k: v.numpy().copy() for k, v in net.state_dict().items()}
        paddle.seed(3)
        wanted = paddle.rand([3]).tolist()
        paddle.seed(3)
        profiler.draw(net, inputs=paddle.ones([2, 4]))
        assert paddle.rand([3]).tolist() == wanted
        assert all((v.numpy() == before[k]).all() for k, v in net.state_dict().items())
        assert net.training

    def test_times_are_on_the_nodes_and_frames_when_it_is_run(self):
        net = paddle.nn.Sequential(paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU()), paddle.nn.Softmax())
        graph = layer_graph(net, paddle.ones([2, 4]), is_timed=True)
        assert all(n.time_ns > 0 for n in graph.root.nodes() if n.role == "op")
        (frame,) = graph.root.boxes()
        assert frame.time_ns >= max(n.time_ns for n in frame.nodes())

    def test_a_residual_network_is_readable(self):
        net = paddle.vision.models.resnet18()
        net.eval()
        graph = layer_graph(net, paddle.zeros([1, 3, 32, 32]))
        assert titles(graph).count("conv2d") == 20
        assert titles(graph).count("add") == 8
        assert "layer1.0: BasicBlock" in [b.title for b in graph.root.boxes()]
        fused = [sorted({n.title for n in nodes}) for nodes in graph.fused().values()]
        assert ["add", "batch_norm", "relu"] in fused
        assert_readable(graph)

    def test_a_model_without_inputs_is_refused(self):
        with pytest.raises(ValueError, match="Linear and no inputs"):
            profiler.draw(paddle.nn.Linear(2, 2))


@pytest.fixture
def static():
    paddle.enable_static()
    yield
    paddle.disable_static()


class TestPrograms:
    def test_control_flow_is_nested_and_joined(self, static):
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [None, 4], "float32")
            y = paddle.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: paddle.exp(x))
            paddle.tanh(y)
        graph = _graph(main, (), "recorded", False)
        boxes = [b.title for b in graph.root.boxes()]
        assert boxes[0] == "cond"
        assert {"if true", "else"} <= set(boxes)
        branches = {n.title: n.box.title for n in graph.root.nodes()}
        assert branches["exp"] == "else"
        assert {("exp", "tanh"), ("x", "exp")} <= arrows(graph)
        assert sum(target == "tanh" for _, target in arrows(graph)) == 2
        assert_readable(graph)

    def test_loops_are_nested(self, static):
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            i = paddle.full([], 0, "int64")
            x = paddle.static.data("x", [2], "float32")
            _, total = paddle.static.nn.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * 2), [i, x])
            paddle.tanh(total)
        graph = _graph(main, (), "recorded", False)
        assert [b.title for b in graph.root.boxes()] == ["while", "while", "do"]
        tanh = next(e for e in graph.edges if e.target.title == "tanh")
        assert tanh.source.box.title == "do"
        assert_readable(graph)

    def test_a_static_training_program_with_a_loop_and_a_branch_is_readable(self, static):
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 4], "float32")
            hidden = paddle.static.nn.fc(x, 8, activation="relu")
            count = paddle.full([], 0, "int64")
            _, hidden = paddle.static.nn.while_loop(
                lambda i, h: i < 3, lambda i, h: (i + 1, paddle.tanh(h) * 0.5), [count, hidden]
            )
            out = paddle.static.nn.cond(hidden.mean() > 0, lambda: hidden * 2, lambda: paddle.exp(hidden))
            paddle.nonzero(x)
            paddle.optimizer.Adam(0.1).minimize(out.mean())
        graph = _graph(main, (), "recorded", False)
        titles_of_boxes = [b.title for b in graph.root.boxes()]
        assert {"while", "cond", "backward", "while_grad", "gradient", "optimize"} <= set(titles_of_boxes)
        assert [n.box.title for n in graph.root.nodes() if n.title == "tanh_grad"] == ["backward"]
        assert_readable(graph)

    def test_a_training_step_shows_its_phases_and_the_kernels_times(self):
        net = paddle.nn.Linear(4, 2)
        optimizer = paddle.optimizer.Adam(parameters=net.parameters())
        step = paddle.jit.TrainStep(lambda x: (net(x) ** 2).mean(), optimizer)
        x = paddle.ones([3, 4])
        step(x)
        with profiler.Profiler(on_trace_ready=lambda p: None) as prof:
            step(x)
        graph = _graph(step, (x,), "recorded", False)
        _add_times(graph, prof.profiler_result)
        assert [b.title for b in graph.root.boxes()] == ["backward", "optimize"]
        assert {n.box.title for n in graph.root.nodes() if n.title == "adam_step"} == {"optimize"}
        known = [time_ns for _, time_ns in graph.kernels.values() if time_ns is not None]
        assert len(known) >= 2
        assert all(time_ns > 0 for time_ns in known)
        assert all(n.kernels for n in graph.root.nodes() if n.title == "adam_step")
        assert_readable(graph)

    def test_a_program_of_the_compiler_shows_its_kernels_framed(self):
        program = parse_program(PROGRAM)
        plain = graph_of_program(program, with_kernels=False)
        assert list(plain.root.boxes()) == []
        framed = graph_of_program(program, with_kernels=True)
        (frame,) = (b for b in framed.root.boxes() if b.kind == "kernel")
        assert re.fullmatch(r"\d+: kernel exp\+neg\[\d+\]", frame.title)
        assert [n.title for n in frame.nodes()] == ["exp", "neg"]
        assert_readable(framed)

    def test_a_plan_shows_its_instructions(self):
        program = parse_program(PROGRAM)
        from sampan import _rt

        plan = compile_program(program, [_rt.Layout("float32", (4, 8), (8, 1)), _rt.Layout("float32", (8, 8), (8, 1))])
        graph = graph_of_plan(plan, "plan")
        assert titles(graph) == ["input 0", "input 1", "kernel exp+neg[32]", "native matmul", "output 0"]
        assert ("kernel exp+neg[32]", "native matmul") in arrows(graph)
        assert ("input 1", "native matmul") in arrows(graph)
        assert ("native matmul", "output 0") in arrows(graph)
        assert profiler.draw(plan).startswith("<svg")

    def test_pieces_between_control_flow_have_no_kernel_picture(self, static):
        main = paddle.static.Program()
        with paddle.static.program_guard(main):
            x = paddle.static.data("x", [4], "float32")
            y = paddle.static.nn.cond(x.sum() > 0, lambda: x * 2, lambda: paddle.exp(x))
            paddle.tanh(y)
        with pytest.raises(NotImplementedError, match="compiles into 2 pieces"):
            profiler.draw(main, stage="kernels")


PROGRAM = """
program example(%x: float32[4, 8], %w: float32[8, 8]) {
  %0: float32[4, 8] = exp(%x)
  %1: float32[4, 8] = neg(%0)
  %2: float32[4, 8] = matmul(%1, %w)
  return %2
}
"""


class TestTimes:
    def test_a_call_of_the_same_kernels_gives_each_its_own(self):
        kind = profiler.TracerEventType
        event = profiler.utils.ProfilerResult
        events = []
        for start in (0, 1000):
            spans = [
                ("step", kind.Operator, 0, 900),
                ("native matmul", kind.Kernel, 10, 110),
                ("native matmul", kind.Kernel, 200, 500),
            ]
            events += [profiler.events.Event(n, k, start + a, start + b, 1) for n, k, a, b in spans]
        result = event(events)
        assert kernel_times(result, ["native matmul", "native matmul"]) == [100.0, 300.0]
        assert kernel_times(result, ["native matmul"]) == [200.0]
        assert kernel_times(result, ["kernel exp[3]"]) == [None]


class TestFiles:
    def test_files_are_whole_and_need_nothing_else(self, tmp_path):
        net = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.ReLU())
        text = profiler.draw(net, tmp_path / "deep" / "net.html", paddle.ones([1, 4]), title="A <net>")
        assert (tmp_path / "deep" / "net.html").read_text() == text
        assert "A &lt;net&gt;" in text
        assert set(re.findall(r"https?://[^'\"\s<]+", text)) == {"http://www.w3.org/2000/svg"}
        assert "src=" not in text
        profiler.draw(net, tmp_path / "net.svg", paddle.ones([1, 4]))
        root = ElementTree.parse(tmp_path / "net.svg").getroot()
        shown = {t.text for t in root.iter("{http://www.w3.org/2000/svg}text")}
        assert {"linear", "relu", "output"} <= shown

    def test_text_is_escaped(self):
        graph = Graph("a & b")
        graph.root.add(Node("x < y", ["'quoted' & \"so\""], tip="<script>"))
        root = ElementTree.fromstring(svg_of(graph))
        shown = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        assert shown == ["x < y", "'quoted' & \"so\""]
        assert "<script>" not in html_of(graph).partition("<script>")[0]

    @pytest.mark.parametrize(
        ("arguments", "error", "text"),
        [
            ({"thing": 3}, TypeError, "thing is 3"),
            ({"path": "net.png"}, ValueError, r"an \.svg or an \.html file"),
            ({"stage": "loops"}, ValueError, "stage is 'loops'"),
            ({"profile": "x"}, TypeError, "profile is 'x'"),
            ({"profile": profiler.Profiler(on_trace_ready=print)}, ValueError, "no recording"),
        ],
    )
    def test_arguments_are_checked(self, arguments, error, text):
        with pytest.raises(error, match=text):
            profiler.draw(**{"thing": paddle.nn.ReLU(), "inputs": paddle.ones([2]), **arguments})


def test_pictures_use_what_every_viewer_of_svg_knows():
    """Colours as numbers, texts that the viewer centres, plates in the place of halos: CSS colours are black in some, and fonts differ."""
    net = paddle.nn.Sequential(paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.ReLU()), paddle.nn.Linear(8, 2))
    picture = paddle.profiler.draw(net, inputs=paddle.ones([2, 4]), profile=True)
    colours = re.findall(r"(?:fill|stroke)='([^']*)'", picture)
    assert colours
    assert all(re.fullmatch(r"none|#[0-9a-f]{3}|#[0-9a-f]{6}", c) for c in colours)
    assert "paint-order" not in picture
    lines = re.findall(r"<g class='node'.*?</g>", picture)
    assert lines
    for line in lines:
        left, width = map(float, re.search(r"<rect x='([\d.]+)' y='[\d.]+' width='([\d.]+)'", line).groups())
        for x, anchor in re.findall(r"<text x='([\d.]+)' y='[\d.]+' (text-anchor='middle')", line):
            assert anchor
            assert abs(float(x) - left - width / 2) < 0.11
        assert line.count("<text") == line.count("text-anchor='middle'")
