"""``jit.save`` and ``jit.load``: layers and functions as files that run without the Python they were written in.

``PATH.sampan.json`` holds the recorded functions, ``PATH.pdiparams`` the tensors, in PaddlePaddle's format, and ``PATH.pdmodel`` the evaluation's forward
for PaddlePaddle itself, where its format can say it. PaddlePaddle's own ``.pdmodel`` and ``.json`` files are read too.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from typing import Any

from ..base.errors import ArgumentError, ArgumentTypeError, ConversionError, SampanError, UnsupportedError, message
from ..framework.arrays import to_array, to_tensor
from ..framework.atomic import replacing
from ..framework.interchange.combined import read_parameters, write_parameters
from ..framework.interchange.export import export_traced
from ..framework.interchange.program_desc import write_model
from ..framework.interchange.saved import read_saved
from ..nn import Layer
from ..tensor.functions import enable_grad
from ..tensor.location import located
from ..tensor.program_data import VERSION, damaged
from ..tensor.saved_function import SavedFunction
from .settings import tell
from .static_function import StaticFunction
from .translated_layer import TranslatedLayer

FUNCTIONS_SUFFIX = ".sampan.json"
TENSORS_SUFFIX = ".pdiparams"
PROGRAM_SUFFIX = ".pdmodel"
_IGNORED_OPTIONS = frozenset(
    {"clip_extra", "combine_params", "with_hook", "skip_forward", "output_spec", "use_prim", "model_filename", "params_filename"}
)


def save(layer: Any, path: str, input_spec: Any = None, **configs: Any) -> None:
    """Write a layer, or a function, so that ``jit.load`` gives it back without its Python code.

    Of a layer both its evaluation and its training are recorded, and its other methods under ``to_static`` that have an ``input_spec`` or were called.
    ``PATH.pdmodel`` and ``PATH.pdiparams`` are what PaddlePaddle's ``jit.load`` and ``inference.Config`` read; the first is missing where the forward does
    what that format cannot say (``jit.set_verbosity(1)`` tells why).

    Args:
        layer: a Layer, or a function under ``to_static`` or not.
        path: of the files, without their suffixes; folders are made as needed.
        input_spec: a list of ``InputSpec`` or tensors: what ``forward`` takes. By default what ``to_static`` was given, or the last call's.
        **configs: PaddlePaddle's options; they change nothing here.

    Raises:
        ConversionError: the code cannot become a Program, or nothing says what it takes.
        ArgumentError: the path is empty or a folder.

    Example:
        >>> import os, tempfile
        >>> import sampan as paddle
        >>> path = os.path.join(tempfile.mkdtemp(), "linear")
        >>> net = paddle.nn.Linear(2, 1)
        >>> paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 2], "float32", "x")])
        >>> loaded = paddle.jit.load(path)
        >>> bool((loaded(paddle.ones([3, 2])) == net(paddle.ones([3, 2]))).all())
        True
    """
    unknown = set(configs) - _IGNORED_OPTIONS
    if unknown:
        raise ArgumentTypeError(message(f"save() got an unexpected argument '{sorted(unknown)[0]}'"))
    path = _checked("save", path)
    if isinstance(layer, Layer):
        with enable_grad():  # what is loaded can be trained further, wherever it was saved
            functions = _functions_of(layer, input_spec)
        state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    elif callable(layer):
        static = layer if isinstance(layer, StaticFunction) else StaticFunction(layer, None, full_graph=True)
        functions, state = {"forward": {"eval": static.concrete_program_specify_input_spec(input_spec)}}, {}
    else:
        raise ArgumentTypeError(message(f"save(): got a {type(layer).__name__}", "it takes a Layer or a function"))
    names = {id(t): name for name, t in state.items()}
    tensors = dict(state)
    for traced in (t for modes in functions.values() for t in modes.values()):
        for tensor in traced.tensors:
            if id(tensor) not in names:
                names[id(tensor)] = name = f"constant_{len(tensors)}"
                tensors[name] = tensor
    recordings = {name: {mode: SavedFunction.of(t, names) for mode, t in modes.items()} for name, modes in functions.items()}
    if left_out := {place: None for modes in recordings.values() for f in modes.values() for place in f.left_out}:
        warnings.warn(
            f"jit.save(): the function changes {', '.join(left_out)}; the file leaves that out, and computes what the function computed when it was "
            "recorded\n  keep state that it needs in a buffer",
            stacklevel=2,
        )
    described = {name: [t.name, bool(getattr(t, "trainable", False)), hasattr(t, "trainable")] for name, t in tensors.items()}
    saved = {
        "version": VERSION,
        "tensors": described,
        "functions": {name: {mode: f.data() for mode, f in modes.items()} for name, modes in recordings.items()},
    }
    # Everything that can be refused comes before the first file.
    contents = {
        TENSORS_SUFFIX: write_parameters({name: to_array(tensors[name]) for name in sorted(tensors)}),
        PROGRAM_SUFFIX: _for_paddle(path + PROGRAM_SUFFIX, functions["forward"]["eval"], tensors),
        FUNCTIONS_SUFFIX: json.dumps(saved, separators=(",", ":")).encode(),
    }
    for suffix, content in contents.items():
        if content is not None:
            with replacing(path + suffix) as file:
                file.write(content)
        elif os.path.exists(path + suffix):
            os.remove(path + suffix)  # of an earlier save: it would not belong to the parameters


def _for_paddle(path: str, traced: Any, tensors: Mapping[str, Any]) -> bytes | None:
    """The evaluation's forward as PaddlePaddle's ``.pdmodel``; None where its format cannot say it."""
    try:
        return write_model(export_traced(traced, tensors))  # type: ignore[no-any-return]
    except UnsupportedError as error:
        tell(f"no {path} was written: {error}")
        return None


def _functions_of(layer: Layer, input_spec: Any) -> dict[str, dict[str, Any]]:
    forward = layer.forward if isinstance(layer.forward, StaticFunction) else StaticFunction(layer.forward, None, full_graph=True)
    methods = {
        name: getattr(layer, name) for name in dir(type(layer)) if isinstance(getattr(type(layer), name, None), StaticFunction)
    }
    found: dict[str, dict[str, Any]] = {}
    modes = [(part, part.training) for part in layer.sublayers(include_self=True)]
    try:
        for name, method in {"forward": forward, **methods}.items():
            spec = input_spec if name == "forward" else None
            if name != "forward" and not method.input_spec and not method.get_traced_count():
                continue
            found[name] = {}
            for mode, is_training in (("train", True), ("eval", False)):
                layer.train(is_training)
                try:
                    found[name][mode] = method.concrete_program_specify_input_spec(spec)
                except ConversionError:
                    if mode == "eval":
                        raise
    finally:
        for part, was_training in modes:
            part.training = was_training
    return found


def load(path: str, **configs: Any) -> TranslatedLayer:
    """The layer that ``jit.save`` wrote, or a model that PaddlePaddle wrote.

    Args:
        path: of the files, without their suffixes.
        **configs: ``model_filename`` and ``params_filename``: names of PaddlePaddle's files that differ from the path.

    Raises:
        MissingFileError: no such files.
        ArgumentError: they are damaged, or of a later version.
    """
    unknown = set(configs) - _IGNORED_OPTIONS
    if unknown:
        raise ArgumentTypeError(message(f"load() got an unexpected argument '{sorted(unknown)[0]}'"))
    path = _checked("load", path)
    if not os.path.exists(path + FUNCTIONS_SUFFIX):
        return _foreign(path, configs)
    with open(path + FUNCTIONS_SUFFIX, "rb") as file:
        content = file.read()
    try:
        return _made(path, json.loads(content))
    except SampanError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise damaged(f"{path + FUNCTIONS_SUFFIX}: {type(error).__name__}: {error}") from error


def _made(path: str, saved: Any) -> TranslatedLayer:
    """The layer of a document of ``save``."""
    version, described, functions = saved["version"], saved["tensors"], saved["functions"]
    if version > VERSION:
        raise damaged(f"{path + FUNCTIONS_SUFFIX} is of version {version}, and this is version {VERSION}")
    with open(path + TENSORS_SUFFIX, "rb") as file:
        names = sorted(described) if version > 1 else list(described)
        arrays = read_parameters(file, names, repr(path + TENSORS_SUFFIX))
    tensors = {name: to_tensor(arrays[name]) for name in described}
    with located(f"in the model {path!r}"):
        made = {name: {mode: SavedFunction.from_data(d) for mode, d in modes.items()} for name, modes in functions.items()}
    return TranslatedLayer(made, tensors, described)


def _foreign(path: str, configs: Mapping[str, Any]) -> TranslatedLayer:
    """A model of PaddlePaddle's: run operation by operation."""
    folder = os.path.dirname(path)
    given = [None if configs.get(k) is None else os.path.join(folder, configs[k]) for k in ("model_filename", "params_filename")]
    saved = read_saved(path, *given)
    described = {
        name: [name, v.is_parameter and not v.stops_gradient, v.is_parameter] for name, v in saved.model.parameters().items()
    }
    layer = TranslatedLayer({}, {name: to_tensor(a) for name, a in saved.arrays.items()}, described)
    layer.run_model(saved)
    return layer


def _checked(function: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(message(f"{function}(): path is a {type(path).__name__}", "it must be a string"))
    text = os.fspath(path)
    if not os.path.basename(text):
        raise ArgumentError(message(f"{function}(): path={text!r}", "it must end with the files' name, such as 'folder/model'"))
    return text
