"""Random computations over public functions, with control flow, nested blocks and writes in place: the same code runs eagerly and builds a Program."""

from __future__ import annotations

from random import Random
from typing import Any

import sampan as paddle

FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLES = ("int32", "int64")
WIDTH = 3


class Writer:
    """Makes one computation: a tree of steps over handles, which are numbered as they are made.

    Handles are rows [N, 3], columns [N, 1], vectors [3] or single numbers, of a dtype each; a step names handles that are there.
    """

    def __init__(self, seed: int, size: int) -> None:
        self.random = Random(seed)
        self.left = size

    def pick(self, items: Any) -> Any:
        return items[self.random.randrange(len(items))]

    def block(self, kinds: list[tuple[str, str]], depth: int) -> list[Any]:
        """Steps after which the handles of these kinds (shape, dtype) are there; ``kinds`` grows with them."""
        steps = []
        for _ in range(1 + self.random.randrange(4)):
            if self.left <= 0:
                break
            self.left -= 1
            steps.append(self.step(kinds, depth))
        return steps

    def operand(self, kinds: list[tuple[str, str]], shapes: tuple[str, ...] = (), dtypes: tuple[str, ...] = ()) -> int:
        fitting = [k for k, (s, d) in enumerate(kinds) if (not shapes or s in shapes) and (not dtypes or d in dtypes)]
        return self.pick(fitting or [0])

    def step(self, kinds: list[tuple[str, str]], depth: int) -> Any:
        choice = self.random.randrange(14 if depth < 3 else 10)
        a = self.operand(kinds)
        shape, dtype = kinds[a]
        if choice < 2:
            kinds.append((shape, dtype))
            return "unary", a, self.pick(["tanh", "relu", "neg", "abs", "square"] if dtype in FLOATS else ["neg", "abs", "sign"])
        if choice < 4:
            b = self.operand(kinds, dtypes=(dtype,))
            both = {shape, kinds[b][0]}
            joined = "rows" if len(both - {"one"}) > 1 or "rows" in both else next(iter(both - {"one"}), "one")
            kinds.append((joined, dtype))
            return "binary", a, b, self.pick(["add", "subtract", "maximum", "multiply"])
        if choice == 4:
            a = self.operand(kinds, ("rows",))
            kinds.append((self.pick(["columns"]), kinds[a][1]))
            return "reduce", a, self.pick(["sum", "max", "mean"] if kinds[a][1] in FLOATS else ["sum", "max"])
        if choice == 5:
            target = self.pick([d for d in (*FLOATS[:3], *WHOLES) if d != dtype])
            kinds.append((shape, target))
            return "cast", a, target
        if choice == 6:
            a = self.operand(kinds, ("rows",))
            kinds.append(kinds[a])
            return self.pick(["flip", "turn", "sort", "joined"]), a
        if choice == 7:
            a = self.operand(kinds, ("rows",))
            kinds.append(("one", kinds[a][1]))
            return "total", a
        if choice < 10:
            b = self.operand(kinds, (shape, "one"), (dtype,))
            return self.pick(["add_", "assign", "fill_row" if shape == "rows" else "add_"]), a, b
        if choice < 12:
            condition = self.operand(kinds)
            results = [self.operand(kinds) for _ in range(1 + self.random.randrange(2))]
            sides = []
            for _ in range(2):
                inner = list(kinds)
                steps = self.block(inner, depth + 1)
                sides.append((steps, [self.pick([k for k, kind in enumerate(inner) if kind == kinds[r]]) for r in results]))
            kinds += [kinds[r] for r in results]
            return "cond", condition, sides
        carried = [self.operand(kinds) for _ in range(1 + self.random.randrange(2))]
        inner = [*kinds, *(kinds[c] for c in carried)]
        steps = self.block(inner, depth + 1)
        ends = [self.pick([k for k, kind in enumerate(inner) if kind == kinds[c]]) for c in carried]
        kinds += [kinds[c] for c in carried]
        return "while", carried, self.random.randrange(4), steps, ends


def bounded(x: Any) -> Any:
    """The same dtype, within [-3, 3]: nothing overflows or amplifies rounding."""
    if x.dtype in (paddle.int32, paddle.int64):
        return paddle.remainder(x, paddle.full([], 7, x.dtype))
    return paddle.tanh(x) * 3


def perform(steps: Any, handles: list[Any]) -> None:
    """Run the steps; ``handles`` grows."""
    for name, *rest in steps:
        if name == "cond":
            condition, sides = rest

            def run(side: Any) -> Any:
                def body() -> Any:
                    inner = list(handles)  # noqa: B023 - it runs at once
                    perform(side[0], inner)
                    return [inner[k] * 1 for k in side[1]]

                return body

            held = paddle.cast(handles[condition], "float32").sum() > 0.25
            handles += paddle.static.nn.cond(held, run(sides[0]), run(sides[1]))
        elif name == "while":
            carried, count, body_steps, ends = rest

            def step(i: Any, *values: Any, body_steps: Any = body_steps, ends: Any = ends) -> Any:
                inner = [*handles, *values]  # noqa: B023 - it runs at once
                perform(body_steps, inner)
                return [i + 1, *(bounded(inner[k]) for k in ends)]

            start = [paddle.zeros([], "int64"), *(handles[c] * 1 for c in carried)]
            limit = paddle.full([], count, "int64") + (paddle.cast(handles[0], "float32").sum() > 0).astype("int64")
            _, *results = paddle.static.nn.while_loop(lambda i, *_, limit=limit: i < limit, step, start)
            handles += results
        else:
            simple(name, rest, handles)


def simple(name: str, rest: list[Any], handles: list[Any]) -> None:
    """Run one step without blocks."""
    x = handles[rest[0]]
    if name == "unary":
        handles.append(getattr(paddle.nn.functional if rest[1] == "relu" else paddle, rest[1])(x))
    elif name == "binary":
        handles.append(bounded(getattr(paddle, rest[2])(x, handles[rest[1]])))
    elif name == "reduce":
        handles.append(bounded(getattr(paddle, rest[1])(x, axis=1, keepdim=True)))
    elif name == "total":
        handles.append(bounded(x.sum()).astype(x.dtype))
    elif name == "cast":
        handles.append(paddle.cast(x, rest[1]))
    elif name == "flip":
        handles.append(paddle.flip(x, [0]))
    elif name == "turn":
        handles.append(paddle.transpose(paddle.transpose(x, [1, 0]) * 2, [1, 0]))
    elif name == "sort":
        handles.append(paddle.sort(x, axis=1))
    elif name == "joined":
        handles.append(paddle.concat([x[:, 1:], x[:, :1]], axis=1))
    elif name == "add_":
        x.add_(handles[rest[1]] * 1)
    elif name == "assign":
        x[...] = handles[rest[1]] * 1
    elif name == "fill_row":
        x[0] = paddle.cast(handles[rest[1]].sum(), "float32").astype(x.dtype) * 0 + 2


def inputs_of(random: Random) -> list[tuple[str, str]]:
    """The kinds of the inputs: rows of two dtypes at least, a vector and a number."""
    return [
        ("rows", random.choice(FLOATS[:2])),
        ("rows", random.choice([*FLOATS, *WHOLES])),
        ("vector", "float32"),
        ("one", random.choice(WHOLES)),
    ]
