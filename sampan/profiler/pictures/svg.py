"""Pictures as SVG, and as an HTML page of one file: moved and zoomed with the mouse, with a table of the kernels beside."""

from __future__ import annotations

import colorsys
import itertools
from collections.abc import Sequence
from html import escape

from .graph import Box, Graph, Node
from .layout import CHARACTER, LINE, Layout, box_title, format_time, place, text_lines

_MARGIN = 16
_FONT = "font-family='ui-monospace,Menlo,Consolas,monospace' font-size='11'"
_FILLS = {
    "op": "#ffffff",
    "input": "#e3f2e1",
    "output": "#fbe9d7",
    "control": "#fff6cc",
    "backward": "#f3eaf8",
    "optimize": "#e8eefb",
}
_FRAMES = {"layer": "#f6f7f9", "block": "#fffbea", "kernel": "#eef6ff"}


def svg_of(graph: Graph) -> str:
    """The picture as an SVG document."""
    layout = place(graph)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    body = [_frame(box, layout) for box in graph.root.boxes()]
    body += [_arrow(points, edge.label) for edge, points in layout.routes]
    body += [_frame_title(box, layout) for box in graph.root.boxes()]
    slowest = max((n.time_ns for n in graph.root.nodes() if n.time_ns is not None), default=0.0)
    fused = set(graph.fused())
    body += [_node(node, layout, slowest, fused) for node in graph.root.nodes()]
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}'>"
    marker = (
        "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        "<path d='M0,0.5 L7.5,4 L0,7.5 z' fill='#667'/></marker></defs>"
    )
    return "\n".join(
        [
            head,
            f"<title>{escape(graph.title)}</title>",
            marker,
            "<rect width='100%' height='100%' fill='#ffffff'/>",
            f"<g transform='translate({_MARGIN},{_MARGIN})' {_FONT}>",
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def kernel_colour(number: int) -> str:
    """A colour for the kernel; neighbours differ by the golden angle."""
    return _colour(number * 137.508 % 360, 0.65, 0.45)


def _colour(degrees: float, saturation: float, lightness: float) -> str:
    """A colour as every viewer of SVG reads it; ``hsl()`` is CSS, and black in some."""
    channels = colorsys.hls_to_rgb(degrees / 360, lightness, saturation)
    return "#" + "".join(f"{round(255 * c):02x}" for c in channels)


def _frame(box: Box, layout: Layout) -> str:
    p = layout.places[box]
    stroke = "#7aa7d9" if box.kind == "kernel" else "#c9ccd3"
    return (
        f"<rect x='{p.x:.1f}' y='{p.y:.1f}' width='{p.width:.1f}' height='{p.height:.1f}' rx='6' fill='{_FRAMES[box.kind]}' "
        f"stroke='{stroke}' class='{box.kind}'/>"
    )


def _frame_title(box: Box, layout: Layout) -> str:
    p, title = layout.places[box], box_title(box)
    # edges pass behind it: a plate, for not every viewer strokes a text before it fills it
    plate = (
        f"<rect x='{p.x + 6:.1f}' y='{p.y + 4:.1f}' width='{len(title) * CHARACTER + 4:.1f}' height='{LINE}' fill='{_FRAMES[box.kind]}'/>"
        if title
        else ""
    )
    return f"{plate}<text x='{p.x + 8:.1f}' y='{p.y + 15:.1f}' fill='#556'>{escape(title)}</text>"


def _arrow(points: Sequence[tuple[float, float]], label: str) -> str:
    """A curve through the points that leaves and enters each vertically."""
    path = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if abs(x0 - x1) < 0.5:
            path.append(f"L{x1:.1f},{y1:.1f}")
        else:
            middle = (y0 + y1) / 2
            path.append(f"C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}")
    tip = f"<title>{escape(label)}</title>" if label else ""
    return f"<path d='{' '.join(path)}' fill='none' stroke='#99a' marker-end='url(#tip)'>{tip}</path>"


def _node(node: Node, layout: Layout, slowest: float, fused: set[int]) -> str:
    p = layout.places[node]
    fill = _FILLS.get(node.role, _FILLS["op"])
    if node.time_ns is not None and slowest:
        fill = _colour(14, 0.9, 0.98 - 0.3 * node.time_ns / slowest)
    marks = [k for k in node.kernels if k in fused]
    parts = [
        f"<g class='node' data-kernels='{' '.join(map(str, node.kernels))}'>",
        f"<title>{escape(node.tip or node.title)}</title>",
        f"<rect x='{p.x:.1f}' y='{p.y:.1f}' width='{p.width:.1f}' height='{p.height:.1f}' rx='4' fill='{fill}' stroke='#889'/>",
    ]
    for k, mark in enumerate(marks):
        tall = p.height / len(marks)
        parts.append(
            f"<rect x='{p.x:.1f}' y='{p.y + k * tall:.1f}' width='5' height='{tall:.1f}' fill='{kernel_colour(mark)}' class='fused'/>"
        )
    for k, line in enumerate(text_lines(node)):
        weight = " font-weight='bold'" if k == 0 else " fill='#556'"
        x, y = p.x + p.width / 2, p.y + 14 + k * LINE
        parts.append(f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='middle'{weight}>{escape(line)}</text>")
    return "".join([*parts, "</g>"])


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
  html, body {{ margin: 0; height: 100%; font: 13px system-ui, sans-serif; }}
  body {{ display: flex; }}
  #picture {{ flex: 1; overflow: hidden; cursor: grab; background: #fff; }}
  #side {{ width: 22em; overflow: auto; padding: 0.8em; border-left: 1px solid #ccd; }}
  table {{ border-collapse: collapse; width: 100%; }}
  td {{ padding: 2px 6px; vertical-align: top; overflow-wrap: anywhere; }}
  tr[data-kernel] {{ cursor: pointer; }}
  .swatch {{ width: 0.8em; }}
  .dim .node {{ opacity: 0.25; }}
  .dim .node.on {{ opacity: 1; }}
</style>
</head>
<body>
<div id="picture">{svg}</div>
<div id="side"><h3>{title}</h3>{table}<p>Drag to move, turn the wheel to zoom, point at a node for its statement.</p></div>
<script>
  const holder = document.getElementById("picture"), svg = holder.querySelector("svg");
  const whole = svg.viewBox.baseVal, view = [whole.x, whole.y, whole.width, whole.height];
  svg.setAttribute("width", "100%");
  svg.setAttribute("height", "100%");
  svg.setAttribute("preserveAspectRatio", "xMidYMin meet");
  view[3] = Math.min(view[3], Math.max(view[2], 600) * holder.clientHeight / Math.max(holder.clientWidth, 1));
  show();
  function show() {{ svg.setAttribute("viewBox", view.join(" ")); }}
  function scale() {{ return Math.max(view[2] / holder.clientWidth, view[3] / holder.clientHeight); }}
  holder.addEventListener("wheel", event => {{
    event.preventDefault();
    const factor = event.deltaY < 0 ? 1 / 1.2 : 1.2, box = holder.getBoundingClientRect();
    const u = (event.clientX - box.left) / box.width, v = (event.clientY - box.top) / box.height;
    view[0] += view[2] * u * (1 - factor);
    view[1] += view[3] * v * (1 - factor);
    view[2] *= factor;
    view[3] *= factor;
    show();
  }}, {{ passive: false }});
  let last = null;
  holder.addEventListener("pointerdown", event => {{ last = [event.clientX, event.clientY]; }});
  window.addEventListener("pointerup", () => {{ last = null; }});
  window.addEventListener("pointermove", event => {{
    if (!last) return;
    const s = scale();
    view[0] -= (event.clientX - last[0]) * s;
    view[1] -= (event.clientY - last[1]) * s;
    last = [event.clientX, event.clientY];
    show();
  }});
  document.querySelectorAll("tr[data-kernel]").forEach(row => row.addEventListener("click", () => {{
    const was = row.classList.contains("on");
    document.querySelectorAll(".on").forEach(node => node.classList.remove("on"));
    svg.classList.toggle("dim", !was);
    if (was) return;
    row.classList.add("on");
    svg.querySelectorAll(".node").forEach(node => {{
      if (node.dataset.kernels.split(" ").includes(row.dataset.kernel)) node.classList.add("on");
    }});
  }}));
</script>
</body>
</html>
"""


def html_of(graph: Graph) -> str:
    """The picture as an HTML page that needs nothing else."""
    fused = graph.fused()
    rows = []
    for number, (label, time_ns) in graph.kernels.items():
        count = len(fused.get(number, ()))
        colour = kernel_colour(number) if count else "transparent"
        rows.append(
            f"<tr data-kernel='{number}'><td class='swatch' style='background:{colour}'></td><td>{number}</td><td>{escape(label)}</td>"
            f"<td>{f'{count} fused' if count else ''}</td><td>{format_time(time_ns) if time_ns is not None else ''}</td></tr>"
        )
    table = f"<p>Kernels, in order:</p><table>{''.join(rows)}</table>" if rows else ""
    return _PAGE.format(title=escape(graph.title), svg=svg_of(graph), table=table)
