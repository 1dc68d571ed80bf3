"""Layered layout of nested boxes.

Each box is laid out by itself, inner boxes first: its items stand in layers by the longest path to them (an edge always goes down), layers are ordered by
the barycenters of neighbours, and x positions are the least squares fit to neighbours that keeps everything apart. An edge over several layers, or across
a box's border, runs over waypoints that have places like items, so that it passes between them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from .graph import Box, Edge, Graph, Node

Point = tuple[float, float]
CHARACTER, LINE = 6.7, 15  # of the pictures' font, in pixels
_PADDING, _TITLE = 8, 20
_GAP_X, _GAP_Y, _WAY_GAP = 22.0, 30.0, 10.0
_BORDER_GAP = 16.0  # between a frame's border and its items
_SWEEPS = 8


@dataclass(eq=False)
class Place:
    """Where an item lies: its left upper corner, relative to its box until ``place`` has finished, and its size."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0


@dataclass
class Layout:
    """A picture's geometry: places of nodes and boxes, and each edge as points from top to bottom."""

    width: float
    height: float
    places: dict[Node | Box, Place]
    routes: list[tuple[Edge, list[Point]]]


@dataclass(eq=False)
class _Way:
    """A waypoint: of a long edge, or where edges of one value enter or leave a box."""

    kind: str  # "way", "in" or "out"


_Item = Node | Box | _Way


@dataclass(eq=False)
class _Inside:
    """A box laid out by itself. ``ins`` and ``outs``: its waypoints on the border by value; ``paths``: from an item to an item below, by value."""

    ins: dict[int, _Way] = field(default_factory=dict)
    outs: dict[tuple[int, int], _Way] = field(default_factory=dict)
    paths: dict[tuple[int, int, int], list[_Way]] = field(default_factory=dict)
    places: dict[_Item, Place] = field(default_factory=dict)
    bands: dict[_Item, Point] = field(default_factory=dict)  # where each item's layer begins and ends


def node_size(node: Node) -> tuple[float, float]:
    """Width and height that the node's text needs."""
    lines = text_lines(node)
    return max(len(line) for line in lines) * CHARACTER + 2 * _PADDING + 6, len(lines) * LINE + 2 * _PADDING - 4


def text_lines(node: Node) -> list[str]:
    """What stands in the node."""
    time = [format_time(node.time_ns)] if node.time_ns is not None else []
    return [node.title, *node.lines, *time]


def format_time(ns: float) -> str:
    """A time with three digits and its unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def box_title(box: Box) -> str:
    """What stands over the box."""
    return f"{box.title}  {format_time(box.time_ns)}" if box.time_ns is not None else box.title


def place(graph: Graph) -> Layout:
    """The geometry of the picture."""
    insides: dict[Box, _Inside] = {}
    crossing = _Crossing(graph)
    root = _lay_out(graph.root, crossing, insides)
    places: dict[Node | Box, Place] = {}
    ways: dict[_Way, list[Point]] = {}
    _make_absolute(graph.root, insides, 0.0, 0.0, places, ways)
    routes = [(edge, _route(edge, insides, places, ways)) for edge in crossing.edges]
    return Layout(root.width, root.height, places, routes)


class _Crossing:
    """What enters, leaves and connects inside each box."""

    def __init__(self, graph: Graph) -> None:
        self.edges = [e for e in graph.edges if e.source.box is not None and e.target.box is not None]
        self.links: dict[Box, dict[tuple[int, int, int], tuple[_Item, _Item, int]]] = {}
        self.insides: dict[Box, _Inside] = {}
        for edge in self.edges:
            up, down = chain(edge.source), chain(edge.target)
            common = next(k for k, (a, b) in enumerate(zip([*up, None], [*down, None], strict=False)) if a is not b) - 1
            box = up[common]
            self._link(box, up[common + 1], down[common + 1], edge)
            for k in range(common + 1, len(up) - 1):
                key = (edge.value, id(edge.source))
                out = self._inside(up[k]).outs.setdefault(key, _Way("out"))
                self._link(up[k], up[k + 1], out, edge)
            for k in range(common + 1, len(down) - 1):
                way = self._inside(down[k]).ins.setdefault(edge.value, _Way("in"))
                self._link(down[k], way, down[k + 1], edge)

    def _inside(self, box: _Item) -> _Inside:
        return self.insides.setdefault(box, _Inside())  # type: ignore[arg-type]

    def _link(self, box: _Item, a: _Item, b: _Item, edge: Edge) -> None:
        links = self.links.setdefault(box, {})  # type: ignore[arg-type]
        links[id(a), id(b), edge.value] = (a, b, edge.value)


def chain(node: Node) -> list[_Item]:
    """The boxes around the node, the outermost first, and the node."""
    found: list[_Item] = [node]
    box = node.box
    while box is not None:
        found.append(box)
        box = box.box
    return found[::-1]


# ---------------------------------------------------------------------- one box


def _lay_out(box: Box, crossing: _Crossing, insides: dict[Box, _Inside]) -> Place:
    inside = insides[box] = crossing.insides.get(box) or _Inside()
    for item in box.items:
        if isinstance(item, Box):
            inside.places[item] = _lay_out(item, crossing, insides)
        else:
            inside.places[item] = Place(*node_size(item))
    for way in (*inside.ins.values(), *inside.outs.values()):
        inside.places[way] = Place(0, 0)
    links = list(crossing.links.get(box, {}).values())
    layers, segments = _layers(inside, [*inside.ins.values(), *box.items, *inside.outs.values()], links)
    _order(layers, segments)
    _assign_x(inside, layers, segments, insides)
    return _finish_box(box, inside, layers)


_Segments = list[tuple[_Item, _Item, int]]


def _layers(inside: _Inside, items: list[_Item], links: _Segments) -> tuple[list[list[_Item]], _Segments]:
    """The items by layer, with waypoints for long edges, and the links between neighbouring layers."""
    below: dict[int, list[_Item]] = {}
    waits = {id(i): 0 for i in items}
    for a, b, _ in links:
        below.setdefault(id(a), []).append(b)
        waits[id(b)] += 1
    rank = {id(i): 0 if isinstance(i, _Way) and i.kind == "in" else int(bool(inside.ins)) for i in items}
    ready = [i for i in items if not waits[id(i)]]
    for item in ready:
        for b in below.get(id(item), ()):
            rank[id(b)] = max(rank[id(b)], rank[id(item)] + 1)
            waits[id(b)] -= 1
            if not waits[id(b)]:
                ready.append(b)
    last = max((rank[id(i)] for i in items if not (isinstance(i, _Way) and i.kind == "out")), default=0)
    # inputs stand right above what uses them first; what leaves does so at the bottom
    for item in items:
        if isinstance(item, _Way) and item.kind == "out":
            rank[id(item)] = last + 1
        elif isinstance(item, Node) and item.role == "input" and id(item) in below:
            rank[id(item)] = max(min(rank[id(b)] for b in below[id(item)]) - 1, 0)
    layers: list[list[_Item]] = [[] for _ in range(last + 2)]
    for item in items:
        layers[rank[id(item)]].append(item)
    segments: _Segments = []
    shared: dict[tuple[int, int, int], _Way] = {}
    for a, b, value in links:
        above, path = a, []
        for k in range(rank[id(a)] + 1, rank[id(b)]):
            way = shared.get((id(a), value, k))
            if way is None:
                way = shared[id(a), value, k] = _Way("way")
                inside.places[way] = Place(0, 0)
                layers[k].append(way)
            path.append(way)
            segments.append((above, way, value))
            above = way
        segments.append((above, b, value))
        inside.paths[id(a), id(b), value] = path
    return [layer for layer in layers if layer], list({(id(a), id(b), v): (a, b, v) for a, b, v in segments}.values())


def _order(layers: list[list[_Item]], segments: _Segments) -> None:
    """Order each layer by the mean position of neighbours, down and up in turn; the order with the fewest crossings stays."""
    up: dict[int, list[int]] = {}
    down: dict[int, list[int]] = {}
    for a, b, _ in segments:
        up.setdefault(id(b), []).append(id(a))
        down.setdefault(id(a), []).append(id(b))
    best, fewest = [list(layer) for layer in layers], _crossings(layers, down)
    for sweep in range(_SWEEPS if fewest else 0):
        neighbours, order = (up, layers[1:]) if sweep % 2 == 0 else (down, layers[-2::-1])
        for layer in order:
            position = {id(i): k for other in layers for k, i in enumerate(other)}
            means = {}
            for k, item in enumerate(layer):
                found = [position[n] for n in neighbours.get(id(item), ())]
                means[id(item)] = sum(found) / len(found) if found else float(k)
            layer.sort(key=lambda i: means[id(i)])
        count = _crossings(layers, down)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    for layer, chosen in zip(layers, best, strict=True):
        layer[:] = chosen


def _crossings(layers: list[list[_Item]], down: dict[int, list[int]]) -> int:
    total = 0
    for above, below in itertools.pairwise(layers):
        position = {id(i): k for k, i in enumerate(below)}
        ends = [
            position[n] for i in above for n in sorted(down.get(id(i), ()), key=lambda n: position.get(n, -1)) if n in position
        ]
        total += sum(a > b for k, a in enumerate(ends) for b in ends[k + 1 :])
    return total


def _assign_x(inside: _Inside, layers: list[list[_Item]], segments: _Segments, insides: dict[Box, _Inside]) -> None:
    """x positions: near the mean of neighbours, and apart."""
    ends: list[tuple[_Item, float, _Item, float]] = []
    for a, b, value in segments:
        ends.append((a, _attach(a, value, False, inside, insides), b, _attach(b, value, True, inside, insides)))
    for layer in layers:
        _spread(layer, inside, {})
    for sweep in range(2 * _SWEEPS):
        is_down = sweep % 2 == 0
        pulls: dict[int, list[float]] = {}
        for layer in layers if is_down else layers[::-1]:
            here = {id(i) for i in layer}
            pulls.clear()
            for a, at_a, b, at_b in ends:
                if is_down and id(b) in here:
                    pulls.setdefault(id(b), []).append(inside.places[a].x + at_a - at_b)
                elif not is_down and id(a) in here:
                    pulls.setdefault(id(a), []).append(inside.places[b].x + at_b - at_a)
            _spread(layer, inside, {k: sum(v) / len(v) for k, v in pulls.items()})


def _attach(item: _Item, value: int, is_top: bool, inside: _Inside, insides: dict[Box, _Inside]) -> float:
    """Where an edge of the value meets the item, from its left side."""
    if not isinstance(item, Box):
        return inside.places[item].width / 2
    inner = insides[item]
    way = inner.ins.get(value) if is_top else next((w for (v, _), w in inner.outs.items() if v == value), None)
    return inner.places[way].x if way is not None else inside.places[item].width / 2


def _gap(a: _Item, b: _Item) -> float:
    return _WAY_GAP if isinstance(a, _Way) or isinstance(b, _Way) else _GAP_X


def _spread(layer: list[_Item], inside: _Inside, wanted: dict[int, float]) -> None:
    """Place the layer's items as near as can be (least squares) to where they are wanted, in order and apart: pool adjacent violators."""
    starts, shift = [], 0.0
    for k, item in enumerate(layer):
        if k:
            shift += inside.places[layer[k - 1]].width + _gap(layer[k - 1], item)
        starts.append(shift)
    pools: list[tuple[float, int]] = []  # (mean, count)
    for item, start in zip(layer, starts, strict=True):
        mean, count = wanted.get(id(item), inside.places[item].x) - start, 1
        while pools and pools[-1][0] > mean:
            other, n = pools.pop()
            mean, count = (mean * count + other * n) / (count + n), count + n
        pools.append((mean, count))
    values = [mean for mean, count in pools for _ in range(count)]
    for item, start, value in zip(layer, starts, values, strict=True):
        inside.places[item].x = start + value


def _finish_box(box: Box, inside: _Inside, layers: list[list[_Item]]) -> Place:
    """y positions and the box's size; everything moved to stand inside its frame."""
    frame = 0 if box.box is None else _PADDING + 4
    title = _TITLE if box.title else 0
    y = float(frame + title)
    for k, layer in enumerate(layers):
        height = max(inside.places[i].height for i in layer)
        for item in layer:
            p = inside.places[item]
            inside.bands[item] = (y, y + height)
            if isinstance(item, _Way):  # an edge crosses a layer straight down
                p.y, p.height = y, height
            else:
                p.y = y + (height - p.height) / 2
        is_border = not height or (k + 1 < len(layers) and not any(inside.places[i].height for i in layers[k + 1]))
        y += height + (0 if k == len(layers) - 1 else _BORDER_GAP if is_border else _GAP_Y)
    left = min((inside.places[i].x for layer in layers for i in layer), default=0.0)
    right = max((inside.places[i].x + inside.places[i].width for layer in layers for i in layer), default=0.0)
    needed = len(box_title(box)) * CHARACTER if box.title else 0.0
    margin = frame + max(needed - (right - left), 0.0) / 2
    for p in inside.places.values():
        p.x += margin - left
    bottom = y + frame
    for way in inside.ins.values():
        inside.places[way].y = 0
    for way in inside.outs.values():
        inside.places[way].y = bottom
    return Place(right - left + 2 * margin, bottom)


# ---------------------------------------------------------------------- the whole picture


def _make_absolute(
    box: Box,
    insides: dict[Box, _Inside],
    x: float,
    y: float,
    places: dict[Node | Box, Place],
    ways: dict[_Way, list[Point]],
) -> None:
    insides[box].bands = {item: (top + y, bottom + y) for item, (top, bottom) in insides[box].bands.items()}
    for item, p in insides[box].places.items():
        p.x, p.y = p.x + x, p.y + y
        if isinstance(item, _Way):
            ways[item] = [(p.x, p.y), (p.x, p.y + p.height)] if p.height else [(p.x, p.y)]
            continue
        places[item] = p
        if isinstance(item, Box):
            _make_absolute(item, insides, p.x, p.y, places, ways)


def _route(
    edge: Edge, insides: dict[Box, _Inside], places: dict[Node | Box, Place], ways: dict[_Way, list[Point]]
) -> list[Point]:
    """The edge's points: from the source's bottom, out of its boxes, across, into the target's boxes, to the target's top."""
    up, down = chain(edge.source), chain(edge.target)
    common = next(k for k, (a, b) in enumerate(zip([*up, None], [*down, None], strict=False)) if a is not b) - 1
    source, target = places[edge.source], places[edge.target]
    points = [(source.x + source.width / 2, source.y + source.height)]

    def walk(box: _Item, a: _Item, b: _Item) -> None:
        inside = insides[box]  # type: ignore[index]
        points.append((points[-1][0], inside.bands[a][1]))  # curves lie between layers only
        points.extend(point for w in inside.paths[id(a), id(b), edge.value] for point in ways[w])
        inner = ways[insides[b].ins[edge.value]][0] if isinstance(b, Box) else None
        x = inner[0] if inner is not None else ways[b][0][0] if isinstance(b, _Way) else places[b].x + places[b].width / 2
        points.append((x, inside.bands[b][0]))

    for k in range(len(up) - 2, common, -1):
        out = insides[up[k]].outs[edge.value, id(edge.source)]  # type: ignore[index]
        walk(up[k], up[k + 1], out)
        points.extend(ways[out])
    walk(up[common], up[common + 1], down[common + 1])
    for k in range(common + 1, len(down) - 1):
        way = insides[down[k]].ins[edge.value]  # type: ignore[index]
        points.extend(ways[way])
        walk(down[k], way, down[k + 1])
    points.append((target.x + target.width / 2, target.y))
    return [p for k, p in enumerate(points) if k == 0 or p != points[k - 1]]
