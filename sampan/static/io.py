"""Saving and loading of Programs and what they hold: inference models, checkpoints, and both as bytes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base import dtypes
from ..base.errors import ArgumentError, ArgumentTypeError, ShapeError, message
from ..framework import files
from ..framework.arrays import bits, from_bits, to_array, to_tensor
from ..framework.atomic import replacing
from ..framework.interchange import combined, program_desc
from ..framework.interchange.build import build_program, fill_scope
from ..framework.interchange.export import export_program, inference_form, persistable_variables
from ..framework.interchange.model import Model
from ..framework.interchange.saved import PARAMETER_SUFFIX, parse_model, parse_parameters, read_saved
from ..framework.interchange.write import UnwritableError
from ..tensor.program import ParameterVariable, Program
from ..tensor.scope import global_scope
from ..tensor.variable import Variable

_CHECKPOINT_SUFFIXES = (".pdparams", ".pdopt")


# ---------------------------------------------------------------------- inference models


def normalize_program(program: Program, feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> Program:
    """A copy of the Program that computes the fetched Variables from the fed ones, outside of training.

    Args:
        program: a Program.
        feed_vars: a Variable or a list of them: what each run feeds.
        fetch_vars: a Variable or a list of them: the results.
        **kwargs: ``skip_prune_program`` and ``clip_extra`` are accepted for compatibility.

    Raises:
        ArgumentError: the results need a Variable that is neither fed nor persistable.

    Example:
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main, paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 2])
        ...     y = paddle.nn.functional.dropout(x, 0.5)
        >>> print(paddle.static.normalize_program(main, [x], [y]).feed_names)
        ['x']
        >>> paddle.disable_static()
    """
    if not isinstance(program, Program):
        raise ArgumentTypeError(message(f"normalize_program(): program is a {type(program).__name__}", "it must be a Program"))
    feeds, fetches = _variables("feed_vars", feed_vars), _variables("fetch_vars", fetch_vars)
    return inference_form(program, feeds, fetches)


def serialize_program(feed_vars: Any, fetch_vars: Any, **kwargs: Any) -> bytes:
    """The bytes of a ``.pdmodel`` file: what computes the fetched Variables from the fed ones.

    Args:
        feed_vars: a Variable or a list of them.
        fetch_vars: a Variable or a list of them.
        **kwargs: ``program``: theirs by default; ``legacy_format`` is accepted for compatibility.

    Raises:
        UnwritableError: operators have no form in the format; all of them are named.
    """
    return program_desc.write_model(_exported(feed_vars, fetch_vars, kwargs)[0])


def serialize_persistables(feed_vars: Any, fetch_vars: Any, executor: Any = None, **kwargs: Any) -> bytes:
    """The bytes of a ``.pdiparams`` file: the parameters that ``serialize_program`` of the same arguments names."""
    return combined.write_parameters(_exported(feed_vars, fetch_vars, kwargs)[1])


def deserialize_program(data: bytes) -> Program:
    """The Program in the bytes of a ``.pdmodel`` or ``.json`` file. Its ``feed_names`` and ``fetch_variables`` say what it is fed and gives.

    Raises:
        ModelFileError: the bytes are no model.
        UnknownOperatorsError: operators are not known here; all of them are named.
    """
    return _program_of(parse_model(_checked_bytes("deserialize_program", data)), "the program")


def deserialize_persistables(program: Program, data: bytes, executor: Any = None) -> Program:
    """Give the Program's persistable Variables the values in the bytes of a ``.pdiparams`` file; gives the Program.

    Raises:
        ModelFileError: the bytes are damaged, or belong to another model.
    """
    model = getattr(program, "model", None)
    if model is None:
        raise ArgumentError(
            message(
                "deserialize_persistables(): the Program was not made by deserialize_program()",
                "the bytes hold no names; they are in the order of the names of a saved program",
            )
        )
    fill_scope(global_scope(), parse_parameters(_checked_bytes("deserialize_persistables", data), model))
    return program


def save_to_file(path: str, content: bytes) -> None:
    """Write bytes to a file, which appears whole or not at all; folders are made as needed."""
    with replacing(_checked_path("save_to_file", path)) as file:
        file.write(_checked_bytes("save_to_file", content))


def load_from_file(path: str) -> bytes:
    """The bytes of a file."""
    with open(_checked_path("load_from_file", path), "rb") as file:
        return file.read()


def save_inference_model(path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any = None, **kwargs: Any) -> None:
    """Write ``path_prefix.pdmodel`` and ``path_prefix.pdiparams``, which PaddlePaddle runs too.

    Args:
        path_prefix: the files' path without the suffixes.
        feed_vars: a Variable or a list of them: what each run feeds.
        fetch_vars: a Variable or a list of them: the results. Fewer or earlier ones than the Program's give a part of the model.
        executor: accepted for compatibility; values are taken from the global scope.
        **kwargs: ``program``: theirs by default; ``clip_extra``, ``legacy_format`` and ``skip_prune_program`` are accepted for compatibility.

    Raises:
        UnwritableError: operators have no form in the format; all of them are named, and nothing is written.
        ArgumentError: a parameter has no value, or the results need a Variable that is not fed.
    """
    prefix = _checked_path("save_inference_model", path_prefix)
    model, arrays = _exported(feed_vars, fetch_vars, kwargs)
    save_to_file(f"{prefix}.pdmodel", program_desc.write_model(model))
    if arrays:
        save_to_file(f"{prefix}{PARAMETER_SUFFIX}", combined.write_parameters(arrays))


def load_inference_model(path_prefix: str | None, executor: Any = None, **kwargs: Any) -> list[Any]:
    """[the Program, the names that it is fed by, the Variables that it gives] of a saved model of ours or PaddlePaddle's.

    Args:
        path_prefix: the files' path without suffixes: ``.pdmodel`` or, of PaddlePaddle 3, ``.json``, and ``.pdiparams``.
            None: the model is given as bytes.
        executor: accepted for compatibility; parameters go into the global scope.
        **kwargs: ``model_filename`` and ``params_filename``: the files' names where they differ, or the bytes.

    Raises:
        MissingFileError: a file is not there.
        ModelFileError: a file is damaged, or the files do not belong together.
        UnknownOperatorsError: operators are not known here; all of them are named.
    """
    program_file, parameter_file = kwargs.get("model_filename"), kwargs.get("params_filename")
    if path_prefix is None:
        model = parse_model(_checked_bytes("load_inference_model", program_file))
        arrays = parse_parameters(_checked_bytes("load_inference_model", parameter_file or b""), model)
        what = "the model"
    else:
        prefix = _checked_path("load_inference_model", path_prefix)
        found = read_saved(prefix, _beside(prefix, program_file), _beside(prefix, parameter_file))
        model, arrays, what = found.model, found.arrays, found.what
    program = _program_of(model, what)
    fill_scope(global_scope(), arrays)
    return [program, list(program.feed_names), list(program.fetch_variables)]


def _beside(prefix: str, name: str | None) -> str | None:
    """A file's path, in the model's folder when only its name is given."""
    if name is None:
        return None
    folder = prefix if os.path.isdir(prefix) else os.path.dirname(prefix)
    return name if os.path.isabs(name) else os.path.join(folder, name)


def _program_of(model: Model, what: str) -> Program:
    program, feeds, fetches = build_program(model, what)
    program.feed_names, program.fetch_variables, program.model = feeds, fetches, model
    return program


def _exported(feed_vars: Any, fetch_vars: Any, kwargs: Mapping[str, Any]) -> tuple[Model, dict[str, np.ndarray]]:
    fetches = _variables("fetch_vars", fetch_vars)
    feeds = _variables("feed_vars", feed_vars) if feed_vars is not None else []
    program = kwargs.get("program") or fetches[0].recorder.root.program
    if not isinstance(program, Program):
        raise ArgumentTypeError(message("the fetched Variables belong to no Program", "", "pass program="))
    return export_program(inference_form(program, feeds, fetches), global_scope())


def _variables(name: str, given: Any) -> list[Variable]:
    found = list(given) if isinstance(given, (list, tuple)) else [given]
    for value in found:
        if not isinstance(value, Variable):
            raise ArgumentTypeError(message(f"{name} holds a {type(value).__name__}", "it must hold Variables of a Program"))
    if name == "fetch_vars" and not found:
        raise ArgumentError(message("fetch_vars is empty", "a model without results computes nothing"))
    return found


def _checked_bytes(function: str, data: Any) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(message(f"{function}(): got a {type(data).__name__}", "it takes bytes"))
    return bytes(data)


def _checked_path(function: str, path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ArgumentTypeError(message(f"{function}(): the path is {path!r}", "it must be a path that is not empty"))
    return str(os.fspath(path))


# ---------------------------------------------------------------------- checkpoints


@dataclass
class StateReport:
    """What became of the entries of a state: names; ``mismatched``: with both shapes and dtypes."""

    loaded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{len(self.loaded)} loaded"]
        for what, names in (("missing", self.missing), ("not in the Program", self.unexpected)):
            if names:
                parts.append(f"{len(names)} {what}: {', '.join(names)}")
        if self.mismatched:
            parts.append(
                f"{len(self.mismatched)} of another shape: {', '.join(f'{n} {why}' for n, why in self.mismatched.items())}"
            )
        return "; ".join(parts)


def save(program: Program, model_path: str, protocol: int = 4, **configs: Any) -> None:
    """Write ``model_path.pdparams`` (parameters), ``.pdopt`` (everything else that persists) and, where it can be written, ``.pdmodel``.

    Args:
        program: a Program.
        model_path: the files' path without the suffixes.
        protocol: the pickle protocol, 2 to 4.
        **configs: as of ``paddle.save``.

    Raises:
        ArgumentError: the path ends in a slash or is empty.
    """
    prefix = _checked_path("save", model_path)
    if not os.path.basename(prefix):
        raise ArgumentError(message(f"static.save(): model_path={prefix!r}", "it must end in a file name without a suffix"))
    scope = global_scope()
    parameters: dict[str, np.ndarray] = {}
    others: dict[str, np.ndarray] = {}
    for variable in persistable_variables(program):
        tensor = program.tensor_of(variable, scope)
        if tensor is not None:
            is_trained = isinstance(variable, ParameterVariable) or hasattr(tensor, "trainable")
            (parameters if is_trained else others)[variable.name] = bits(np.array(to_array(tensor)))
    files.save(parameters, f"{prefix}.pdparams", protocol, **configs)
    files.save(others, f"{prefix}.pdopt", protocol, **configs)
    content = _forward_content(program)
    if content is not None:
        save_to_file(f"{prefix}.pdmodel", content)


def _forward_content(program: Program) -> bytes | None:
    """The bytes of the Program's forward part; None, with a warning, where it has no form in the format."""
    ops = [op for op in program.recorder.block.ops if not op.role]
    if not ops:
        return None
    read = {id(v) for op in ops for v in op.inputs}
    ends = [v for op in ops for v in op.outputs if id(v) not in read]
    feeds = [v for v in program.variables.values() if not v.persistable and v.op is None]
    try:
        return program_desc.write_model(export_program(inference_form(program, feeds, ends), global_scope())[0])  # type: ignore[arg-type]
    except (UnwritableError, ArgumentError) as error:
        warnings.warn(f"static.save(): no .pdmodel is written, the parameters are; {error}", stacklevel=3)
        return None


def load(program: Program, model_path: str, executor: Any = None, var_list: Sequence[Variable] | None = None) -> None:
    """Give the Program's persistable Variables the values that ``save`` wrote, or PaddlePaddle's.

    Args:
        program: a Program with Variables of the same names.
        model_path: the files' path without the suffixes.
        executor: accepted for compatibility.
        var_list: only these Variables.

    Raises:
        MissingFileError: there are no such files.
        ArgumentError: a parameter has no value in the files; all such are named.
        ShapeError: shapes differ; all such are named, and nothing is loaded.
    """
    state = load_program_state(model_path)
    names = {v.name for v in (_variables("var_list", var_list) if var_list is not None else persistable_variables(program))}
    needed = names if var_list is not None else {v.name for v in program.all_parameters()}
    report = set_program_state(program, {n: a for n, a in state.items() if n in names})
    absent = sorted(needed & set(report.missing))
    if absent:
        raise ArgumentError(
            message(
                f"static.load({model_path!r}): the files have no value for {', '.join(absent[:8])}",
                f"{len(absent)} of the Program's Variables are missing; what the files have was loaded",
                "load what is there with load_program_state() and set_program_state(), which report and do not raise",
            )
        )


def load_program_state(model_path: str, var_list: Sequence[Any] | None = None) -> dict[str, np.ndarray]:
    """The arrays of saved files, by name.

    Args:
        model_path: what ``save`` was given, or the prefix of a saved inference model, or a folder with a file for each tensor.
        var_list: only these: Variables or names.

    Raises:
        MissingFileError: there is none of these.
    """
    prefix = _checked_path("load_program_state", model_path)
    for suffix in (*_CHECKPOINT_SUFFIXES, ".pdmodel"):
        prefix = prefix.removesuffix(suffix)
    state: dict[str, np.ndarray] = {}
    if any(os.path.isfile(prefix + suffix) for suffix in _CHECKPOINT_SUFFIXES):
        for suffix in _CHECKPOINT_SUFFIXES:
            if os.path.isfile(prefix + suffix):
                found = files.load(prefix + suffix, return_numpy=True)
                state |= {n: from_bits(np.asarray(a)) for n, a in found.items() if isinstance(a, np.ndarray)}
    elif os.path.isdir(prefix):
        for name in sorted(os.listdir(prefix)):
            path = os.path.join(prefix, name)
            if os.path.isfile(path) and (var_list is None or name in _names(var_list)):
                with open(path, "rb") as file:
                    state |= combined.read_parameters(file, [name], repr(path))
    else:
        state = read_saved(prefix).arrays
    return state if var_list is None else {n: a for n, a in state.items() if n in _names(var_list)}


def _names(var_list: Sequence[Any]) -> set[str]:
    return {v if isinstance(v, str) else v.name for v in var_list}


def set_program_state(
    program: Program,
    state_dict: Mapping[str, Any],
    *,
    prefix: str = "",
    select: Callable[[str], bool] | None = None,
    skip_mismatch: bool = False,
) -> StateReport:
    """Give the Program's persistable Variables values by name; what does not fit is reported.

    Args:
        program: a Program.
        state_dict: arrays or tensors by name.
        prefix: only entries whose name begins so, and without it: a model inside a larger one.
        select: only entries for whose Variable's name this holds.
        skip_mismatch: leave out entries of another shape, as a new last layer has, in place of raising.

    Returns:
        The report: loaded, missing, unexpected and mismatched names.

    Raises:
        ShapeError: shapes differ; all such are named, and nothing is loaded.

    Example:
        >>> import numpy as np
        >>> import sampan as paddle
        >>> paddle.enable_static()
        >>> main = paddle.static.Program()
        >>> with paddle.static.program_guard(main, paddle.static.Program()):
        ...     w = paddle.static.create_parameter([2], "float32", name="w")
        >>> print(paddle.static.set_program_state(main, {"old.w": np.ones(2, "float32"), "old.v": np.ones(3)}, prefix="old."))
        1 loaded; 1 not in the Program: v
        >>> paddle.disable_static()
    """
    variables = {v.name: v for v in persistable_variables(program)}
    given = {n.removeprefix(prefix): a for n, a in state_dict.items() if n.startswith(prefix)}
    given = {n: np.asarray(to_array(a)) for n, a in given.items() if select is None or select(n)}
    report = StateReport(
        missing=sorted(n for n in variables if n not in given and (select is None or select(n))),
        unexpected=sorted(n for n in given if n not in variables),
    )
    fitting = {}
    for name, array in given.items():
        variable = variables.get(name)
        if variable is not None:
            if list(array.shape) != list(variable.sizes):
                report.mismatched[name] = f"{list(array.shape)} in place of {list(variable.sizes)}"
            else:
                fitting[name] = to_tensor(np.array(array).astype(_numpy_dtype(variable)))
    if report.mismatched and not skip_mismatch:
        raise ShapeError(
            message(
                f"set_program_state(): {'; '.join(f'{n} is {why}' for n, why in report.mismatched.items())}",
                "nothing was loaded",
                "pass skip_mismatch=True to load the others, as for a new last layer",
            )
        )
    program.set_state_dict(fitting)
    report.loaded = sorted(fitting)
    return report


def _numpy_dtype(variable: Variable) -> np.dtype:
    return dtypes.numpy_dtype(str(variable.dtype))


__all__ = [
    "StateReport",
    "deserialize_persistables",
    "deserialize_program",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "normalize_program",
    "save",
    "save_inference_model",
    "save_to_file",
    "serialize_persistables",
    "serialize_program",
    "set_program_state",
]
