"""tools/check_layers.py finds each kind of broken rule, where it stands, and nothing else."""

import subprocess
import sys
from pathlib import Path

import check_layers
import layers
import pytest

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = '[project]\ndependencies = [\n  "numpy>=1.26",\n  "llvmlite",\n]\n'


def violations(tmp_path, files):
    """``(path, line, rule)`` of everything wrong in a checkout of these files."""
    for name, text in {"pyproject.toml": PYPROJECT, "sampan/__init__.py": "", **files}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [(v.path, v.line, v.rule) for v in check_layers.check(tmp_path).violations]


BROKEN = {
    "upward": ({"sampan/ir/a.py": "from sampan.ops import x\n"}, ("sampan/ir/a.py", 1, "layer")),
    "upward relative": ({"sampan/ir/a.py": "from ..tensor.b import x\n"}, ("sampan/ir/a.py", 1, "layer")),
    "upward relative in __init__": ({"sampan/ir/__init__.py": "from ..ops import x\n"}, ("sampan/ir/__init__.py", 1, "layer")),
    "inside a function": ({"sampan/base/a.py": "def f():\n    import sampan.ir\n"}, ("sampan/base/a.py", 2, "layer")),
    "under TYPE_CHECKING": (
        {"sampan/ir/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .. import nn\n"},
        ("sampan/ir/a.py", 3, "layer"),
    ),
    "by import_module": (
        {"sampan/ir/a.py": "import importlib\nimportlib.import_module('sampan.nn.layer')\n"},
        ("sampan/ir/a.py", 2, "layer"),
    ),
    "runtime from ir": ({"sampan/ir/a.py": "from sampan import _rt\n"}, ("sampan/ir/a.py", 1, "layer")),
    "runtime from nn": ({"sampan/nn/a.py": "from sampan._rt import Tensor\n"}, ("sampan/nn/a.py", 1, "layer")),
    "passes from nn": ({"sampan/nn/a.py": "from sampan.passes import pipeline\n"}, ("sampan/nn/a.py", 1, "layer")),
    "ir from optimizer": ({"sampan/optimizer/a.py": "from ..ir import Value\n"}, ("sampan/optimizer/a.py", 1, "layer")),
    "passes from codegen": (
        {"sampan/codegen/emit.py": "from sampan.passes import fuse\n"},
        ("sampan/codegen/emit.py", 1, "layer"),
    ),
    "application to application": ({"sampan/vision/a.py": "from sampan import hapi\n"}, ("sampan/vision/a.py", 1, "layer")),
    "the face from below": ({"sampan/nn/a.py": "import sampan\n"}, ("sampan/nn/a.py", 1, "layer")),
    "ir from an example": ({"sampan/examples/a.py": "import sampan.ir\n"}, ("sampan/examples/a.py", 1, "layer")),
    "private import in an example": (
        {"sampan/examples/a.py": "from sampan.nn import _Hidden\n"},
        ("sampan/examples/a.py", 1, "layer"),
    ),
    "private use in an example": (
        {"sampan/examples/a.py": "import sampan as paddle\npaddle.nn._hidden()\n"},
        ("sampan/examples/a.py", 2, "layer"),
    ),
    "unlisted package": ({"sampan/misc/a.py": ""}, ("sampan/misc/a.py", 1, "layer")),
    "library in base": ({"sampan/base/a.py": "import scipy\n"}, ("sampan/base/a.py", 1, "layer")),
    "LLVM in passes": ({"sampan/passes/a.py": "import llvmlite.ir\n"}, ("sampan/passes/a.py", 1, "layer")),
    "optional library twice": (
        {"sampan/onnx/a.py": "import onnx\n", "sampan/onnx/b.py": "def f():\n    from onnx import x\n"},
        ("sampan/onnx/b.py", 2, "optional library"),
    ),
    "cycle": (
        {"sampan/ir/a.py": "from . import b\n", "sampan/ir/b.py": "def f():\n    from .a import x\n"},
        ("sampan/ir/a.py", 1, "import cycle"),
    ),
    "cycle through the package": (
        {"sampan/ir/__init__.py": "from .a import x\n", "sampan/ir/a.py": "from . import x\n"},
        ("sampan/ir/__init__.py", 1, "import cycle"),
    ),
    "environment": ({"sampan/nn/a.py": "import os\nx = os.environ['A']\n"}, ("sampan/nn/a.py", 2, "environment")),
    "getenv": ({"sampan/nn/a.py": "from os import getenv\n"}, ("sampan/nn/a.py", 1, "environment")),
    "assert": ({"sampan/nn/a.py": "x = 1\nassert x\n"}, ("sampan/nn/a.py", 2, "assert")),
    "bare except": ({"sampan/nn/a.py": "try:\n    x = 1\nexcept:\n    x = 2\n"}, ("sampan/nn/a.py", 3, "bare except")),
    "TODO": ({"tests/a.py": "x = 1  # TODO tidy\n"}, ("tests/a.py", 1, "todo")),
    "TODO in C++": ({"csrc/base/a.h": "int x;  // FIXME later\n"}, ("csrc/base/a.h", 1, "todo")),
    "TODO in a C++ block": ({"csrc/base/a.h": "/* one\n   XXX two */\n"}, ("csrc/base/a.h", 2, "todo")),
    "size": ({"tools/a.py": "x = 1\n" * 601}, ("tools/a.py", 601, "size")),
    "size of a header": ({"csrc/base/a.h": "\n" * 700}, ("csrc/base/a.h", 601, "size")),
    "include upward": ({"csrc/tensor/a.h": '\n#include "exec/plan.h"\n'}, ("csrc/tensor/a.h", 2, "include")),
    "eager includes kernels": ({"csrc/eager/a.cpp": '#include "kernels/a.h"\n'}, ("csrc/eager/a.cpp", 1, "include")),
    "unlisted folder": ({"csrc/misc/a.h": ""}, ("csrc/misc/a.h", 1, "include")),
    "operator name outside kernels": (
        {"csrc/kernels/m.cpp": 'RegisterNative matmul_("matmul", make);\n', "csrc/eager/a.cpp": 'call("matmul");\n'},
        ("csrc/eager/a.cpp", 1, "operator name"),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_reported_with_its_place(tmp_path, name):
    files, expected = BROKEN[name]
    assert violations(tmp_path, files) == [expected]


ALLOWED = {
    "downward": {
        "sampan/nn/a.py": "from sampan.tensor import Tensor\nfrom sampan.ops.math import add\nfrom ..base import errors\n"
    },
    "compile.py may know passes": {"sampan/codegen/compile.py": "from sampan.passes import pipeline\n"},
    "front siblings": {"sampan/jit/a.py": "from sampan.nn import Layer\n"},
    "an example with optional libraries": {
        "sampan/examples/a.py": "import sampan as paddle\nimport sklearn\n",
        "sampan/examples/b.py": "import sklearn\n",
    },
    "own attributes of an example": {
        "sampan/examples/a.py": "import sampan as paddle\nclass A:\n    def f(self):\n        self._x = 1\n"
    },
    "environment in its readers": {
        "sampan/base/flags.py": "import os\nx = os.environ\n",
        "sampan/distributed/env.py": "import os\nx = os.getenv('A')\n",
    },
    "assert in tests": {"tests/test_a.py": "assert 1\n"},
    "TODO with an issue": {"sampan/nn/a.py": "x = 1  # TODO(#12): widen\n"},
    "TODO in a string": {"sampan/nn/a.py": 'x = "TODO"\n'},
    "includes downward": {"csrc/eager/a.cpp": '#include "exec/plan.h"\n#include <vector>\n#include "local.h"\n'},
    "operator names in kernels": {"csrc/kernels/m.cpp": 'RegisterNative m("matmul", make);\nuse("matmul");\n'},
    "submodules import each other through their package": {
        "sampan/ir/__init__.py": "from .a import x\n",
        "sampan/ir/a.py": "from . import b\n",
        "sampan/ir/b.py": "",
    },
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_the_design_allows_passes(tmp_path, name):
    assert violations(tmp_path, ALLOWED[name]) == []


def test_a_cycle_of_three_is_one_component():
    graph = {"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": []}
    assert sorted(check_layers.strong_components(graph), key=len) == [["d"], ["a", "b", "c"]]


def test_rows_name_known_packages_and_point_down():
    for row in layers.LAYERS:
        for target in row.may_import:
            found = layers.layer_of(target)
            assert found is not None
            assert found.number < row.number or target == layers.FACE, (row.packages, target)


def test_this_checkout_keeps_the_rules():
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "check_layers.py")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
