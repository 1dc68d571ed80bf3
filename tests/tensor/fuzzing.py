"""Calls of public functions with arguments that no one should pass."""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from children import ALLOWED, Fault, Report, faults_of

import sampan as paddle
from sampan.ops.samples import Random


def tensors() -> list[Any]:
    """Tensors of many kinds: empty, 0-D, of every type, strided, special values, wrong ranks, wanting gradients."""
    rng = np.random.default_rng(0)
    made = [
        paddle.to_tensor(rng.standard_normal([3, 4]).astype("float32")),
        paddle.to_tensor(rng.standard_normal([2, 3, 4]), stop_gradient=False),
        paddle.to_tensor([[float("nan"), float("inf")], [-float("inf"), 0.0]]),
        paddle.to_tensor(np.zeros([0], "float32")),
        paddle.to_tensor(np.zeros([2, 0, 3], "float32")),
        paddle.to_tensor(1.5),
        paddle.to_tensor([5, -7, 2**62]),
        paddle.to_tensor([0, 1, 2]),
        paddle.to_tensor([[True, False], [False, True]]),
        paddle.to_tensor([200, 0, 255], dtype="uint8"),
        paddle.to_tensor([-(2**31), 2**31 - 1], dtype="int32"),
        paddle.to_tensor([1.0, -2.0], dtype="float16"),
        paddle.to_tensor([[1.0, -2.0]], dtype="bfloat16"),
        paddle.to_tensor([1 + 2j, float("nan")]),
        paddle.to_tensor(rng.standard_normal([4, 3]).astype("float32")).T[::2],
        paddle.to_tensor(rng.standard_normal([1, 2, 5, 5]).astype("float32")),
        paddle.to_tensor(rng.standard_normal([3, 3]), stop_gradient=False),
    ]
    return made


SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, -5, 7, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**70, 0.0, 0.5, -1.5, 1e30, float("nan"), float("inf"),
    -float("inf"), 1j, "", "a", "float32", "int64", "bfloat16", "sum", "mean", "NCHW", "NHWC", "SAME", "ij,jk->ik", "\udcff", b"x",
    [], [0], [-1], [1, 1], [0, 0], [1, -1], [2, 3], [3, 3], [2**40], [2**32, 2**32], [2**62, 4], [-7], [None], ["a"], [1.5], [[1, 2], [3]], (), (1, 2),
    {}, {1}, object(), int, slice(0, 2), Ellipsis, np.float32(1.5), np.int64(-3), np.zeros([2, 2]), np.array(["a"]), np.array([None]), lambda x: x,
]  # fmt: skip


def public_functions() -> list[tuple[str, Callable[..., Any]]]:
    """Public operators by their path: of the root, nn.functional, linalg, fft, signal, and methods of Tensor."""
    found: dict[str, Callable[..., Any]] = {}
    for module in ("", "nn.functional", "linalg", "fft", "signal", "geometric", "incubate.nn.functional"):
        for name, function in paddle.tensor.public_names(module).items():
            found[f"{module}.{name}".lstrip(".")] = function
    for name in paddle.nn.functional.__all__:
        function = getattr(paddle.nn.functional, name)
        if callable(function) and not isinstance(function, type):
            found.setdefault(f"nn.functional.{name}", function)
    for name in paddle.geometric.__all__:
        found[f"geometric.{name}"] = getattr(paddle.geometric, name)
    taken = {id(f) for f in found.values()}
    for name in dir(paddle.Tensor):
        method = getattr(paddle.Tensor, name)
        if not name.startswith("__") and callable(method) and id(method) not in taken and name not in SKIPPED_METHODS:
            found[f"Tensor.{name}"] = method
    return sorted(found.items())


#: They print, or call what they are given.
SKIPPED_METHODS = {"register_hook", "_register_accumulated_hook", "apply", "apply_"}


def arguments(rng: random.Random, made: list[Any], count: int) -> list[Any]:
    """Arguments for a function of ``count`` parameters."""
    chosen = []
    for k in range(rng.randint(max(0, min(1, count)), count) if count else 0):
        pick = rng.random()
        if k == 0 and pick < 0.85:
            chosen.append(rng.choice(made) if rng.random() < 0.9 else [rng.choice(made) for _ in range(rng.randint(0, 3))])
        elif pick < 0.35:
            chosen.append(rng.choice(made))
        elif pick < 0.42:
            chosen.append([rng.choice(made) for _ in range(rng.randint(0, 3))])
        else:
            chosen.append(rng.choice(SCALARS))
    return chosen


def sample_of(rng: random.Random, function: Callable[..., Any]) -> list[Any] | None:
    """Valid arguments from the operator's own samples, in one of several dtypes; None when it has none, and now and then."""
    samples = getattr(getattr(function, "definition", None), "samples", ())
    if not samples or rng.random() < 0.2:
        return None
    dtype = rng.choice(["float32", "float32", "float64", "int64", "int32", "bool", "float16", "complex64", "uint8"])

    def made(value: Any) -> Any:
        if isinstance(value, Random):
            tensor = paddle.to_tensor(value.make(dtype, rng.randint(0, 99)))
            tensor.stop_gradient = rng.random() < 0.5
            return tensor
        return [made(v) for v in value] if isinstance(value, list) else value

    return [made(v) for v in rng.choice(samples)]


def mutated(rng: random.Random, args: list[Any], others: list[Any]) -> list[Any]:
    """The arguments with one or two replaced."""
    for _ in range(rng.randint(1, 2)):
        k = rng.randrange(len(args) + 1)
        new = rng.choice(others) if rng.random() < 0.3 else rng.choice(SCALARS)
        args[k : k + 1] = [new]
    return args


def shown(value: Any) -> str:
    """A short text of an argument."""
    if isinstance(value, paddle.Tensor):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return ascii(value)[:60]


def count_of(function: Callable[..., Any]) -> int:
    """How many parameters the function takes, at most 8."""
    code = getattr(function, "definition", None)
    if code is not None:
        return len(code.parameters)
    found = getattr(inspect.unwrap(function), "__code__", None)
    return min(found.co_argcount if found else 3, 8)


def run_calls(name: str, function: Callable[..., Any], calls: int, seed: int, report: Report) -> None:
    """Make the calls; ``report(kind, text)`` each before it is made, and each that raised what it must not."""
    rng = random.Random(f"{name}{seed}")
    count = count_of(function)
    for _ in range(calls):
        made = tensors()
        sample = sample_of(rng, function)
        args = arguments(rng, made, count) if sample is None else mutated(rng, sample, made)
        if name.startswith("Tensor."):
            args[:1] = [rng.choice(made)]
        text = f"{name}({', '.join(map(shown, args))})"
        report("call", text)
        try:
            result = function(*args)
            for item in result if isinstance(result, (list, tuple)) else [result]:
                if isinstance(item, paddle.Tensor):
                    item.numpy()
                    if not item.stop_gradient and item.size < 10_000:
                        item.sum().backward()
        except ALLOWED:
            pass
        except BaseException as error:
            report("fault", f"{type(error).__name__}: {error}")


def fuzz(names: list[tuple[str, Callable[..., Any]]], calls: int = 30, seed: int = 0, limit_s: int = 20) -> list[Fault]:
    """The faults that the functions show in ``calls`` calls each."""
    return faults_of(names, lambda name, function, report: run_calls(name, function, calls, seed, report), limit_s)


if __name__ == "__main__":
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    every = [(n, f) for n, f in public_functions() if wanted in n]
    for fault in fuzz(every, int(sys.argv[1]), int(sys.argv[2])):
        print(f"{fault.call}\n    {fault.what[:300]}")
    print(len(every), "functions")
