"""A saved model on disk: which of its files are there, and its content, checked."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ...base.errors import message
from ..arrays import to_tensor
from ..files import MissingFileError
from . import combined, pir_json, program_desc
from .model import Model, ModelFileError
from .run import Runner

PROGRAM_SUFFIXES = (".pdmodel", ".json")
PARAMETER_SUFFIX = ".pdiparams"


@dataclass
class SavedModel:
    """A model and the arrays of its parameters; ``what`` names it in errors."""

    model: Model
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    what: str = "the model"

    def runner(self, tensors: dict[str, Any] | None = None) -> Runner:
        """The model over these tensors or Variables by name; over new tensors by default."""
        values = {name: to_tensor(array) for name, array in self.arrays.items()} if tensors is None else tensors
        return Runner(self.model, values, self.what)


def parse_model(content: bytes, what: str = "the model") -> Model:
    """The model in the bytes of a ``.pdmodel`` or of a ``.json`` file.

    Raises:
        ModelFileError: the bytes are neither.
    """
    is_json = content[:64].lstrip()[:1] == b"{"
    return pir_json.read_model(content, what) if is_json else program_desc.read_model(content, what)


def parse_parameters(content: bytes | BinaryIO, model: Model, what: str = "the parameter file") -> dict[str, np.ndarray]:
    """The arrays of a model's parameter file, by name, of the dtypes and shapes that the model declares.

    Raises:
        ModelFileError: the bytes are damaged, or belong to another model.
    """
    declared = model.parameters()
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    arrays = combined.read_parameters(file, declared, what)
    combined.check_shapes(arrays, declared, what)
    return arrays


def read_saved(path_prefix: str, program_path: str | None = None, parameters_path: str | None = None) -> SavedModel:
    """The model saved under this prefix: ``.pdmodel``, or else ``.json``, with ``.pdiparams``.

    Args:
        path_prefix: the files' path without what follows the last point.
        program_path: the program's file, where it is called otherwise.
        parameters_path: the parameters' file, where it is called otherwise.

    Raises:
        MissingFileError: a file is not there.
        ModelFileError: a file is damaged, or the two do not belong together.
    """
    program = program_path or _existing(path_prefix, [path_prefix + suffix for suffix in PROGRAM_SUFFIXES])
    with open(program, "rb") as file:
        model = parse_model(file.read(), repr(program))
    arrays = {}
    if model.parameters():
        path = parameters_path or _existing(path_prefix, [path_prefix + PARAMETER_SUFFIX])
        with open(path, "rb") as parameters:
            arrays = parse_parameters(parameters, model, repr(path))
    return SavedModel(model, arrays, repr(program))


def _existing(prefix: str, paths: Iterable[str]) -> str:
    candidates = list(paths)
    for path in candidates:
        if os.path.isfile(path):
            return path
    raise MissingFileError(
        message(
            f"no model is saved as {prefix!r}",
            f"none of {', '.join(map(repr, candidates))} is there",
            f"the working folder is {os.getcwd()}",
        )
    )


__all__ = ["ModelFileError", "SavedModel", "parse_model", "parse_parameters", "read_saved"]
