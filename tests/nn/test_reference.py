"""The same calls on sampan and on the real PaddlePaddle, values and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from front.reference import ask_paddle, needs_paddle

import sampan
from nn.cases import CASES, LAYERS, PROGRAM

#: How many operands' gradients are compared where Paddle's own are not the derivative: it stops them at labels and at the returned probabilities.
GRADIENTS = {"sigmoid_focal": 1, "softmax_with_cross_entropy": 0, "cross_entropy soft": 1}

pytestmark = needs_paddle


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    """What the real PaddlePaddle gives for all cases, in one run."""
    script = f"import json, paddle\nCASES, LAYERS = {CASES!r}, {LAYERS!r}\n{PROGRAM}\nprint(json.dumps(results))"
    return ask_paddle(script)


@pytest.fixture(scope="module")
def outcome() -> Any:
    """The function that runs one case on sampan."""
    space: dict[str, Any] = {"paddle": sampan, "CASES": {}, "LAYERS": {}}
    exec(PROGRAM, space)
    return space["outcome"]


def compare(name: str, want: Any, got: Any) -> None:
    assert not isinstance(want, str), f"the reference failed: {want}"
    for kind, a, b in zip(("value", "gradient"), want, got, strict=True):
        assert len(a) == len(b), f"{len(a)} and {len(b)} {kind}s"
        count = GRADIENTS.get(name, len(a)) if kind == "gradient" else len(a)
        for k, (x, y) in enumerate(zip(a[:count], b[:count], strict=True)):
            if x is not None and y is not None:
                np.testing.assert_allclose(np.array(y), np.array(x), rtol=2e-4, atol=2e-5, err_msg=f"{name}: {kind} {k}")


@pytest.mark.parametrize("name", CASES)
def test_function(name, reference, outcome):
    compare(name, reference[name], outcome(*CASES[name]))


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, reference, outcome):
    specs, build, expression = LAYERS[name]
    compare(name, reference[name], outcome(specs, expression, eval(build, {"nn": sampan.nn})))
