"""The layer table as data: what each package of ``sampan/`` and each folder of ``csrc/`` may import.

A new package gets a row here first; ``check_layers.py`` holds the code to these rows.
"""

from __future__ import annotations

from dataclasses import dataclass

FACE = "(root)"  # sampan/__init__.py and __main__.py: the public face, above everything but the command line


@dataclass(frozen=True)
class Layer:
    """One row: the packages of a layer, and the packages they may import. ``siblings``: they may import each other."""

    number: int
    packages: tuple[str, ...]
    may_import: tuple[str, ...]
    siblings: bool = False


_FRONT = ("nn", "optimizer", "amp", "metric", "io", "sparse", "static", "jit")
_FRONT_NAMESPACES = (
    "autograd",
    "linalg",
    "fft",
    "signal",
    "distribution",
    "regularizer",
    "device",
    "framework",
    "utils",
    "geometric",
    "compat",
    "incubate",
)
_APPLICATIONS = ("distributed", "inference", "profiler", "vision", "text", "audio", "hapi", "onnx")
_LOWER = ("base", "ir", "ops", "autodiff", "passes", "codegen", "_rt", "version")

LAYERS = (
    Layer(0, ("base",), ()),
    Layer(0, ("_rt", "version"), ()),
    Layer(1, ("ir",), ("base",)),
    Layer(2, ("ops",), ("base", "ir")),
    Layer(3, ("autodiff", "passes"), ("base", "ir", "ops")),
    Layer(4, ("codegen",), ("base", "ir", "ops", "_rt", "version")),
    Layer(5, ("tensor",), _LOWER),
    Layer(6, (*_FRONT, *_FRONT_NAMESPACES), ("tensor", "ops", "base", "version"), siblings=True),
    Layer(7, _APPLICATIONS, (*_LOWER, "tensor", *_FRONT, *_FRONT_NAMESPACES)),
    Layer(8, ("paddle_alias", "examples"), (FACE, "tensor", *_FRONT, *_FRONT_NAMESPACES, *_APPLICATIONS, "version")),
)
FACE_LAYER = Layer(
    9, (FACE, "cli"), (*_LOWER, "tensor", *_FRONT, *_FRONT_NAMESPACES, *_APPLICATIONS, "paddle_alias", "examples"), siblings=True
)

# One file of a package that may import more than its row says.
FILE_EXTRAS = {"sampan/codegen/compile.py": ("passes",)}

# Libraries that only some packages may know; NumPy's ml_dtypes is the one third-party companion of layer 0.
LIBRARY_OWNERS = {"llvmlite": ("codegen",)}
BASE_LIBRARIES = ("numpy", "ml_dtypes")

COMPILED = "sampan._rt"  # a module without Python source

ENVIRONMENT_READERS = ("sampan/base/flags.py", "sampan/distributed/env.py")

# csrc/: folder -> the folders whose headers it may include.
NATIVE_LAYERS: dict[str, tuple[str, ...]] = {
    "base": (),
    "tensor": ("base",),
    "exec": ("base", "tensor"),
    "sparse": ("base", "tensor"),
    "comm": ("base", "tensor"),
    "kernels": ("base", "tensor", "exec"),
    "eager": ("base", "tensor", "exec", "sparse", "comm"),
    "bind": ("base", "tensor", "exec", "sparse", "comm", "kernels", "eager"),
}
NAMES_OPERATORS = ("kernels", "bind")  # bind attaches Python's number slots, whose operators have names

MOST_LINES = 600
HINT_LINES = 400


def layer_of(package: str) -> Layer | None:
    """The row that lists the package; None when no row does."""
    return next((row for row in (*LAYERS, FACE_LAYER) if package in row.packages), None)


def may_import(path: str, package: str, target: str) -> bool:
    """Whether the file at ``path``, of ``package``, may import from the package ``target``."""
    row = layer_of(package)
    if row is None or package == target:
        return row is not None
    return target in row.may_import or (row.siblings and target in row.packages) or target in FILE_EXTRAS.get(path, ())
