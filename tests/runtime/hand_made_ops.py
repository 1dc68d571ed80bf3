"""Ops whose Plans call NumPy, so that dispatch and the tape are tested without a compiler."""

from __future__ import annotations

import numpy as np

from sampan import _rt

DTYPES = _rt.dtypes


def tensor(values, *, grad=False, dtype="float32"):
    made = _rt.from_numpy(np.asarray(values, dtype), copy=True)
    made.stop_gradient = not grad
    return made


def array(t):
    return t.numpy_view()


def layout(shape, dtype="float32"):
    return _rt.Layout(DTYPES[str(dtype)], list(shape))


def host_plan(input_layouts, output_layouts, function):
    """A Plan of one host call: function(*arrays) returns the outputs as arrays."""

    def run(inputs, outputs):
        results = function(*map(array, inputs))
        for out, result in zip(outputs, results, strict=True):
            array(out)[...] = result

    count = len(input_layouts)
    slots = [(max(math_prod(o.shape), 1) * o.dtype.itemsize, -1) for o in output_layouts]
    operands = [(i, 0) for i in range(count + len(output_layouts))]
    instruction = ("host", run, operands, [*input_layouts, *output_layouts], count)
    return _rt.Plan.build(input_layouts, [], slots, 0, [instruction], [(count + k, 0, o) for k, o in enumerate(output_layouts)])


def math_prod(shape):
    return int(np.prod(shape, dtype=np.int64))


def layouts_of(results):
    return [layout(np.shape(r), np.asarray(r).dtype) for r in results]


def operand_arrays(args):
    """Arrays like the operands of a call, to find out result shapes with."""
    flat = []
    for a in args:
        if isinstance(a, (list, tuple)):
            flat += operand_arrays(a)
        elif isinstance(a, _rt.Tensor):
            flat.append(np.zeros(a.shape, a.dtype.name))
        elif isinstance(a, (bool, int, float, complex)):
            flat.append(np.asarray(a))
    return flat


class HostOp:
    """An Op from forward(*arrays) -> tuple of arrays and vjp(*inputs, *grads) -> tuple of gradients.

    vjp saves every input; `recorded` is an Op of (inputs, grads) for create_graph.
    """

    def __init__(self, name, parameters, forward, vjp=None, *, recorded=None, structure=None, saved="input", inplace=()):
        self.forward, self.vjp, self.recorded, self.structure, self.inplace = forward, vjp, recorded, structure, inplace
        self.saved = saved
        self.misses = 0
        self.backward_builds = 0
        self.op = _rt.Op(name, parameters, self.miss)

    def miss(self, op, args):
        self.misses += 1
        inputs = operand_arrays(args)
        input_layouts = layouts_of(inputs)
        with np.errstate(all="ignore"):
            outputs = layouts_of(self.forward(*inputs))
        if self.inplace:
            plan = inplace_plan(input_layouts, self.forward)
        else:
            plan = host_plan(input_layouts, outputs, self.forward)
        saved = {"input": [("input", i) for i in range(len(inputs))], "output": [("output", 0)], "none": []}[self.saved]
        saved_layouts = {"input": input_layouts, "output": outputs[:1], "none": []}[self.saved]
        kinds = [o.dtype.kind for o in outputs]
        floating = [i for i, lay in enumerate(input_layouts) if lay.dtype.kind in "fc"]

        def make_backward(mask, grad_layouts):
            self.backward_builds += 1

            def run(*arrays):
                kept, grads = arrays[: len(saved_layouts)], list(arrays[len(saved_layouts) :])
                zeros = [np.zeros(o.shape, o.dtype.name) for o in outputs]
                every = [grads.pop(0) if mask >> j & 1 else zero for j, zero in enumerate(zeros)]
                gradients = tuple(self.vjp(*kept, *every))
                return [gradients[i] for i in floating]

            plan = host_plan([*saved_layouts, *grad_layouts], [input_layouts[i] for i in floating], run)
            return _rt.BackwardPlan(plan, floating)

        differentiable = [j for j, k in enumerate(kinds) if k in "fc"]
        entry = _rt.Entry(plan, self.structure, saved, differentiable, make_backward if self.vjp else None, self.inplace)
        if self.recorded:
            entry.backward_op = lambda mask: (self.recorded, floating)
        return entry


def inplace_plan(input_layouts, function):
    """Writes the result over operand 0."""

    def run(inputs, outputs):
        (result,) = function(*map(array, inputs))
        array(outputs[0])[...] = result

    count = len(input_layouts)
    instruction = ("host", run, [*((i, 0) for i in range(count)), (0, 0)], [*input_layouts, input_layouts[0]], count)
    return _rt.Plan.build(input_layouts, [], [], 0, [instruction], [(0, 0, input_layouts[0])])


def unbroadcast(grad, like):
    extra = np.ndim(grad) - np.ndim(like)
    grad = np.sum(grad, axis=tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(np.shape(like)) if n == 1 and np.shape(grad)[i] != 1)
    return np.sum(grad, axis=axes, keepdims=True).astype(np.asarray(like).dtype)


X = ("x", "tensor", _rt.REQUIRED)
Y = ("y", "tensor", _rt.REQUIRED)


def float32(*results):
    """Results as float32 where they are floating, as a framework with weak Python scalars gives them."""
    return tuple(np.asarray(r, np.float32) if np.asarray(r).dtype.kind == "f" else np.asarray(r) for r in results)


multiply_backward = HostOp(
    "multiply_backward",
    [X, Y, ("grad", "tensor", _rt.REQUIRED)],
    lambda x, y, g: float32(unbroadcast(g * y, x), unbroadcast(g * x, y)),
    lambda x, y, g, a, b: float32(unbroadcast(b * g, x), unbroadcast(a * g, y), a * y + b * x),
    structure=("tuple", 2),
)
multiply = HostOp(
    "multiply",
    [X, Y],
    lambda x, y: float32(x * y),
    lambda x, y, g: (unbroadcast(g * y, x), unbroadcast(g * x, y)),
    recorded=multiply_backward.op,
)
add_backward = HostOp(
    "add_backward",
    [X, Y, ("grad", "tensor", _rt.REQUIRED)],
    lambda x, y, g: float32(unbroadcast(g, x), unbroadcast(g, y)),
    lambda x, y, g, a, b: float32(np.zeros_like(x), np.zeros_like(y), a + b),
    structure=("tuple", 2),
)
add = HostOp(
    "add",
    [X, Y],
    lambda x, y: float32(x + y),
    lambda x, y, g: (unbroadcast(g, x), unbroadcast(g, y)),
    recorded=add_backward.op,
)
exp = HostOp("exp", [X], lambda x: (np.exp(x),), lambda y, g: (g * y,), saved="output")
add_ = HostOp("add_", [X, Y], lambda x, y: float32(x + y), lambda g: (g, g), saved="none", inplace=((0, 0),))
split = HostOp(
    "split",
    [X],
    lambda x: (x[: len(x) // 2], x[len(x) // 2 :]),
    lambda x, a, b: (np.concatenate([a, b]),),
    structure=("list", 2),
)
add_n = HostOp(
    "add_n",
    [("inputs", "tensors", _rt.REQUIRED)],
    lambda *xs: float32(sum(xs)),
    lambda *a: tuple(a[-1] for _ in a[:-1]),
)


def identity_op(name="identity"):
    """Its backward hands the gradient on without a copy."""

    def miss(op, args):
        lay = args[0].layout

        def make_backward(mask, layouts):
            return _rt.BackwardPlan(_rt.Plan.build(layouts, [], [], 0, [], [(0, 0, layouts[0])]), [0])

        plan = _rt.Plan.build([lay], [], [], 0, [], [(0, 0, lay)])
        return _rt.Entry(plan, None, [], [0], make_backward)

    return _rt.Op(name, [X], miss)


identity = identity_op()


def narrow(x, start, stop):
    """x[start:stop] as a recorded view of a 1-D tensor."""
    whole, part, shape = x.layout, layout([stop - start]), list(x.shape)

    def make_backward(mask, layouts):
        def run(g):
            out = np.zeros(shape, "float32")
            out[start:stop] = g
            return (out,)

        return _rt.BackwardPlan(host_plan(layouts, [whole], run), [0])

    plan = _rt.Plan.build([whole], [], [], 0, [], [(0, 4 * start, part)])
    return _rt.Op("narrow", [X], lambda op, args: _rt.Entry(plan, None, [], [0], make_backward))(x)


def recording_op(parameters, **options):
    """An Op that returns its normalised arguments, and the list of its misses."""
    seen = []

    def miss(op, args):
        seen.append(args)
        return _rt.Immediate(args)

    return _rt.Op("recorder", parameters, miss, **options), seen
