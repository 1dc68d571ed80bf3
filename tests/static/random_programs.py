"""Random computations over public functions, with control flow, nested blocks and writes in place: the same code runs eagerly and builds a Program."""

from __future__ import annotations

from random import Random
from typing import Any

import sampan as paddle

FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLES = ("int32", "int64")
WIDTH = 3


F = paddle.nn.functional


def _square(x: Any) -> Any:
    return paddle.matmul(paddle.transpose(x, [1, 0]), x)


def _written(x: Any, value: Any, *index: Any) -> Any:
    y = x * 1
    y[index if len(index) > 1 else index[0]] = value
    return y


def _in_array(x: Any) -> Any:
    array = paddle.tensor.create_array(str(getattr(x.dtype, "name", x.dtype)))
    for k, value in enumerate((x, x * 2, x - 1)):
        array = paddle.tensor.array_write(value, paddle.full([], k, "int64"), array)
    array = paddle.tensor.array_write(x * 3, paddle.full([], 1, "int64"), array)
    picked = paddle.tensor.array_read(array, paddle.full([], 1, "int64"))
    return picked + paddle.tensor.array_read(array, paddle.full([], 2, "int64"))


#: Elementwise functions of floats, for any shape; all are smooth enough for a rounded operand to give a rounded result.
SMOOTH = {
    "exp": lambda x: paddle.exp(bounded(x)), "expm1": lambda x: paddle.expm1(bounded(x)), "sin": paddle.sin, "cos": paddle.cos,
    "atan": paddle.atan, "sinh": lambda x: paddle.sinh(bounded(x)), "asinh": paddle.asinh, "erf": paddle.erf, "sigmoid": F.sigmoid,
    "log_sigmoid": F.log_sigmoid, "softplus": F.softplus, "silu": F.silu, "gelu": F.gelu, "mish": F.mish, "elu": F.elu, "celu": F.celu,
    "softsign": F.softsign, "leaky_relu": F.leaky_relu, "hardtanh": F.hardtanh, "relu6": F.relu6, "swish": F.swish, "selu": F.selu,
    "sqrt": lambda x: paddle.sqrt(paddle.abs(x) + 0.5), "rsqrt": lambda x: paddle.rsqrt(paddle.abs(x) + 0.5),
    "log": lambda x: paddle.log(paddle.abs(x) + 0.5), "log1p": lambda x: paddle.log1p(paddle.abs(x)), "reciprocal": lambda x: 1 / (paddle.abs(x) + 1),
    "pow": lambda x: paddle.pow(paddle.abs(x) + 0.5, 1.5), "cube": lambda x: paddle.pow(bounded(x), 3), "scale": lambda x: paddle.scale(x, 0.5, 1.0),
    "clip": lambda x: paddle.clip(x, -1.0, 1.5), "lerp": lambda x: paddle.lerp(x, x * 0.5, 0.25), "logit": lambda x: paddle.logit(F.sigmoid(x)),
    "nan_to_num": paddle.nan_to_num, "stanh": paddle.stanh, "lgamma": lambda x: paddle.lgamma(paddle.abs(x) + 1.0),
    "detach": lambda x: x.detach() * 0.5 + x,
}  # fmt: skip
#: Functions of rows [N, 3] of any dtype that give rows of it.
MOVING = {
    "roll": lambda x: paddle.roll(x, 1, 0), "roll1": lambda x: paddle.roll(x, -1, 1), "flip1": lambda x: x.flip([1]), "even": lambda x: x[:, [0, 2, 0]],
    "back": lambda x: x[:, ::-1], "from_last": lambda x: paddle.concat([x[-1:], x[:-1]], 0), "parts": lambda x: paddle.concat(paddle.split(x, 3, 1)[::-1], 1),
    "stacked": lambda x: paddle.stack(paddle.unbind(x, 1), 1), "unsqueezed": lambda x: paddle.squeeze(x.unsqueeze(1) * 2, 1),
    "tiled": lambda x: paddle.tile(x[:, :1], [1, 3]), "expanded": lambda x: paddle.expand(x[:1], x.shape if -1 not in x.shape else [-1, 3]) + x,
    "padded": lambda x: F.pad(x.unsqueeze(0).unsqueeze(0), [1, 0, 0, 0])[0, 0][:, :3], "gathered": lambda x: paddle.gather(x, paddle.to_tensor([2, 0, 0]), 1),
    "selected": lambda x: paddle.index_select(x, paddle.to_tensor([1, 1, 2]), axis=1), "taken": lambda x: paddle.take_along_axis(x, paddle.argsort(x, 1, stable=True), 1),
    "largest": lambda x: paddle.topk(x, 3, axis=1)[0], "descending": lambda x: paddle.sort(x, 0, True), "running": lambda x: bounded(paddle.cumsum(x, 1)),
    "running_max": lambda x: paddle.cummax(x, 1)[0], "lower": lambda x: paddle.tril(x), "upper": lambda x: paddle.triu(x, 1), "where": lambda x: paddle.where(x > 0, x, x * 2),
    "filled": lambda x: paddle.masked_fill(x, x > 1, 1), "added": lambda x: paddle.index_add(x, paddle.to_tensor([0, 2]), 1, x[:, :2] * 2),
    "put": lambda x: paddle.put_along_axis(x, paddle.argmin(x, 1, keepdim=True), 1, 1), "written": lambda x: _written(x, 1, slice(None), 1),
    "written_rows": lambda x: _written(x, x[:1] * 2, slice(1, None)), "written_places": lambda x: _written(x, 2, slice(None), [0, 2]),
    "reshaped": lambda x: paddle.reshape(paddle.reshape(x, [-1]), [-1, 3]), "flattened": lambda x: paddle.flatten(x.unsqueeze(1), 0, 1) * 1,
    "array": _in_array, "counted": lambda x: x + paddle.count_nonzero(x).astype(x.dtype), "found": lambda x: x * paddle.nonzero(x > 0).shape[0]
    if -1 not in x.shape else x * paddle.shape(paddle.nonzero(x > 0))[0].astype(x.dtype), "shaped": lambda x: x + paddle.shape(x)[0].astype(x.dtype),
    "meshed": lambda x: x + paddle.arange(3).astype(x.dtype), "differences": lambda x: paddle.diff(x, axis=1, prepend=x[:, :1]),
    "minimum": lambda x: paddle.minimum(x, x.min(1, keepdim=True) + 1), "modes": lambda x: x - x.amax(0, keepdim=True),
}  # fmt: skip
#: Functions of rows of floats that give rows of the same dtype.
DENSE = {
    "softmax": lambda x: F.softmax(x, 1), "log_softmax": lambda x: F.log_softmax(x, 1), "layer_norm": lambda x: F.layer_norm(x + paddle.arange(3).astype(x.dtype), [3]),
    "normalize": lambda x: F.normalize(x + 0.5, axis=1), "matmul": lambda x: bounded(paddle.matmul(x, _square(x * 0.2))), "linear": lambda x: F.linear(x, _square(x * 0.2)),
    "outer": lambda x: x * paddle.einsum("ij,ij->i", x, x).unsqueeze(1) * 0.1, "logsumexp": lambda x: x - paddle.logsumexp(x, 1, keepdim=True),
    "var": lambda x: x * paddle.var(x, 1, keepdim=True) * 0.1,
    "norm": lambda x: x / (paddle.norm(x, 2, 1, keepdim=True) + 1), "prod": lambda x: bounded(paddle.prod(x, 1, keepdim=True)) + x,
    "running_product": lambda x: paddle.cumprod(bounded(x) * 0.3, 1), "mean": lambda x: x - x.mean(), "std": lambda x: x * paddle.std(x.astype("float64")).astype(x.dtype) * 0.1,
    "entropy": lambda x: x + F.cross_entropy(x, paddle.argmax(x, 1)),
    "loss": lambda x: x * F.smooth_l1_loss(x, x * 0.5), "median": lambda x: x - paddle.median(x, axis=1, keepdim=True),
    "cross": lambda x: bounded(paddle.cross(x, x + paddle.arange(3).astype(x.dtype), axis=1)), "kron": lambda x: paddle.kron(x, paddle.ones([1, 1], x.dtype)),
    "pooled": lambda x: F.avg_pool1d(F.pad(x.unsqueeze(1), [1, 1], data_format="NCL"), 3, 1).squeeze(1), "glu": lambda x: F.glu(paddle.concat([x, x], 1), 1),
}  # fmt: skip
#: Random functions of rows of floats: outside of blocks, where Programs and eager mode draw the same numbers.
RANDOM = {
    "dropout": lambda x: F.dropout(x, 0.3), "noise": lambda x: x + paddle.rand([3]).astype(x.dtype), "normal": lambda x: x * paddle.randn([1]).astype(x.dtype),
    "coins": lambda x: x * paddle.bernoulli(F.sigmoid(x.astype("float32").detach())).astype(x.dtype), "whole": lambda x: x + paddle.randint(0, 3, [3]).astype(x.dtype),
    "order": lambda x: x[:, paddle.randperm(3)] * 1,
}  # fmt: skip


TABLES: dict[str, dict[str, Any]] = {"SMOOTH": SMOOTH, "MOVING": MOVING, "DENSE": DENSE, "RANDOM": RANDOM}


class Writer:
    """Makes one computation: a tree of steps over handles, which are numbered as they are made.

    Handles are rows [N, 3], columns [N, 1], vectors [3] or single numbers, of a dtype each; a step names handles that are there.
    """

    def __init__(self, seed: int, size: int, is_wide: bool = True) -> None:
        self.random = Random(seed)
        self.left = size
        self.is_wide = is_wide
        #: Whether 16-bit floats take part, of which a rounding may decide a condition: such programs only have to run.
        self.has_narrow = self.random.randrange(4) == 0

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

    def wide(self, kinds: list[tuple[str, str]], depth: int, a: int) -> Any:
        """A step of the larger set of functions."""
        if kinds[a][1] in FLOATS and self.random.randrange(3) == 0:
            kinds.append(kinds[a])
            return "table", a, "SMOOTH", self.pick(list(SMOOTH))
        a = self.operand(kinds, ("rows",))
        kinds.append(kinds[a])
        if kinds[a][1] in FLOATS:
            table = self.pick(["MOVING", "DENSE", "DENSE", "RANDOM"] if depth == 0 else ["MOVING", "DENSE"])
        else:
            table = "MOVING"
        return "table", a, table, self.pick(list(TABLES[table]))

    def step(self, kinds: list[tuple[str, str]], depth: int) -> Any:
        choice = self.random.randrange(20 if depth < 3 else 16)
        a = self.operand(kinds)
        shape, dtype = kinds[a]
        if choice < 6 and self.is_wide:
            return self.wide(kinds, depth, a)
        choice = max(choice - 6, 0)
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
            target = self.pick([d for d in (*FLOATS[: 3 if self.has_narrow else 2], *WHOLES) if d != dtype])
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
    if name == "table":
        handles.append(TABLES[rest[1]][rest[2]](x).astype(x.dtype))
    elif name == "unary":
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
        ("rows", random.choice([*FLOATS[:2], *FLOATS, *WHOLES])),
        ("vector", "float32"),
        ("one", random.choice(WHOLES)),
    ]
