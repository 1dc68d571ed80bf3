"""Every public name of the front has Paddle's parameters: names, order, kinds and defaults, of functions, classes and their methods."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

import sampan
from front.reference import ask_paddle, needs_paddle

MODULES = [
    "paddle", "paddle.Tensor", "paddle.nn", "paddle.nn.functional", "paddle.nn.initializer", "paddle.nn.utils", "paddle.optimizer",
    "paddle.optimizer.lr", "paddle.io", "paddle.metric", "paddle.amp", "paddle.amp.debugging", "paddle.autograd", "paddle.callbacks",
    "paddle.regularizer", "paddle.linalg", "paddle.fft", "paddle.signal", "paddle.static", "paddle.static.nn", "paddle.jit", "paddle.inference",
    "paddle.profiler",
]  # fmt: skip

#: What is not as in Paddle on purpose.
EXCEPTIONS = {
    "swapaxes": "Paddle's signature is that of transpose, and its documentation has axis0 and axis1, as here",
    "swapdims": "Paddle's signature is that of transpose, and its documentation has axis0 and axis1, as here",
    "temporal_shift": "data_format comes after name in Paddle; here it is given by name only",
    "Variable": "data, create_var and statements make it",
    **{f"Variable.{name}": "an attribute of every Variable" for name in ("stop_gradient", "persistable")},
    **{f"Variable.{name}": "an attribute, as tensors have it" for name in ("size", "place")},
    **{f"Variable.{name}": "as of a tensor" for name in ("swapaxes", "swapdims")},
    "TranslatedLayer": "jit.load makes it, of what it read",
    **{
        f"{kind}Type.{name}": "of a member of the enumeration, not of the class"
        for kind in ("Data", "Place", "Precision")
        for name in ("name", "value")
    },
    "_get_phi_kernel_name": "private",
    "Bilinear.forward": "Paddle calls the parameter var here and param in all other initializers",
}

#: Understood by every operator after its own parameters, in any order.
TRAILING = {"name", "out"}

DESCRIBE = """
import importlib, inspect, json, sys
import paddle

def plain(v):
    if v is None or isinstance(v, (bool, int, float, str)): return repr(v)
    return [plain(i) for i in v] if isinstance(v, (list, tuple)) else "?"

def parameters(f):
    try: found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError): return None
    return [[p.name, p.kind.name, None if p.default is p.empty else plain(p.default)] for p in found]

def described(o, inside=True):
    found = {"is_class": inspect.isclass(o), "parameters": parameters(o) if callable(o) else None}
    if inspect.isclass(o) and inside and o is not paddle.Tensor:
        found["members"] = {k: described(getattr(o, k), False) for k in vars(o) if not k.startswith("_")}
    return found

name = sys.argv[1]
owner = paddle.Tensor if name == "paddle.Tensor" else importlib.import_module(name)
names = [n for n in dir(owner) if not n.startswith("_")] if name == "paddle.Tensor" else owner.__all__
print(json.dumps({n: described(getattr(owner, n)) for n in names if hasattr(owner, n)}))
"""


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else "?"


def _equal(theirs: Any, ours: Any) -> bool:
    if "?" in (theirs, ours) or theirs == ours:
        return True
    if isinstance(theirs, list):
        return set(theirs) == {"?"} or (isinstance(ours, list) and len(theirs) == len(ours) and all(map(_equal, theirs, ours)))
    try:
        return float(theirs) == float(ours)
    except (TypeError, ValueError):
        return False


def differences(theirs: list[list[Any]], function: Any, is_method: bool = False) -> list[str]:
    """What of Paddle's parameters the function does not have. It may have more."""
    if {"VAR_POSITIONAL", "VAR_KEYWORD"} <= {kind for _, kind, _ in theirs}:
        return []  # Paddle's own signature says nothing
    ours = inspect.signature(function).parameters
    kinds = {p.kind.name for p in ours.values()}
    aliases = getattr(getattr(function, "definition", None), "aliases", {})
    places = [p for p in ours.values() if p.kind.name.startswith("POSITIONAL") and p.name not in TRAILING][is_method:]
    wanted = [t for t in theirs if t[1].startswith("POSITIONAL") and t[0] not in TRAILING][is_method:]
    found = []
    for k, (name, _, default) in enumerate(wanted):
        if k >= len(places):
            if "VAR_POSITIONAL" not in kinds:
                found.append(f"{name} is missing")
        elif name not in (places[k].name, *(a for a, of in aliases.items() if of == places[k].name)):
            found.append(f"{places[k].name} stands where {name} does")
        elif default is not None and places[k].default is places[k].empty:
            found.append(f"{name} has no default")
        elif default is not None and not _equal(default, _plain(places[k].default)):
            found.append(f"{name} is {places[k].default!r} by default, in Paddle {default}")
    found += [f"{p.name} must be given" for p in places[len(wanted) :] if p.default is p.empty]
    for name, kind, default in theirs:
        if kind != "KEYWORD_ONLY" and name not in TRAILING:
            continue
        if name not in ours:
            is_inplace = name == "out" and function.__name__.endswith("_")
            found += [] if "VAR_KEYWORD" in kinds or is_inplace else [f"{name} is missing"]
        elif default is not None and not _equal(default, _plain(ours[name].default)):
            found.append(f"{name} is {ours[name].default!r} by default, in Paddle {default}")
    return found


def test_differences_are_found():
    def ours(x, axis=0, *, keepdim=False):
        """Compared below."""

    kinds = ["POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"]
    same = [["x", kinds[0], None], ["axis", kinds[0], "0"], ["name", kinds[0], "None"], ["keepdim", kinds[1], "False"]]
    assert differences([same[0], same[1], same[3]], ours) == []
    assert differences(same, ours) == ["name is missing"]
    assert differences([same[0], ["axis", kinds[0], "1"]], ours) == ["axis is 0 by default, in Paddle 1"]
    assert differences([same[1], same[0]], ours) == ["x stands where axis does", "axis stands where x does"]
    assert differences([*same[:2], ["p", kinds[0], "2"]], ours) == ["p is missing"]
    assert differences([], ours) == ["x must be given"]
    assert differences([same[0], ["dtype", kinds[1], "None"]], ours) == ["dtype is missing"]


@needs_paddle
@pytest.mark.parametrize("module", MODULES)
def test_names_and_parameters_are_those_of_paddle(module):
    owner = sampan.Tensor if module == "paddle.Tensor" else importlib.import_module("sampan" + module.removeprefix("paddle"))
    found = []
    for name, theirs in ask_paddle(DESCRIBE, module).items():
        if name in EXCEPTIONS and not hasattr(owner, name):
            continue
        if not hasattr(owner, name):
            found.append(f"{name} is missing")
            continue
        ours = getattr(owner, name)
        if theirs["is_class"] and not inspect.isclass(ours):
            found.append(f"{name} is no class")
        members = [(f"{name}.{k}", m, _member(ours, k), True) for k, m in theirs.get("members", {}).items()]
        for path, wanted, value, is_method in [(name, theirs, ours, module == "paddle.Tensor"), *members]:
            if path in EXCEPTIONS:
                continue
            if value is _MISSING:
                found.append(f"{path} is missing")
            elif wanted["parameters"] is not None and not callable(value):
                found.append(f"{path} is not callable")
            elif wanted["parameters"] is not None:
                found += [f"{path}: {text}" for text in differences(wanted["parameters"], value, is_method)]
    assert not found, "\n".join(found)


_MISSING = object()


def _member(owner: Any, name: str) -> Any:
    """A member of the class; of an attribute that its instances have, and it declares, None."""
    declared = {k for c in owner.__mro__ for k in vars(c).get("__annotations__", {})}
    return getattr(owner, name, None if name in declared else _MISSING)
