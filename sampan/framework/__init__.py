"""Files: ``save`` and ``load`` of tensors in PaddlePaddle's formats and safetensors, and the way between tensors and arrays."""

from ..nn.parameters import ParamAttr, create_parameter
from .files import MissingFileError, load, save
from .pickles import UnsafeFileError
from .safetensors import load_file as load_safetensors
from .safetensors import save_file as save_safetensors

__all__ = [
    "MissingFileError",
    "ParamAttr",
    "UnsafeFileError",
    "create_parameter",
    "load",
    "load_safetensors",
    "save",
    "save_safetensors",
]
