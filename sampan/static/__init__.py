"""``paddle.static``: Programs, built by calls on Variables and run by an Executor."""

from __future__ import annotations

import importlib
from typing import Any

from ..tensor.custom_ops import print_variable as Print
from ..tensor.custom_ops import py_func
from ..tensor.executor import Executor
from ..tensor.program import (
    Program,
    default_main_program,
    default_startup_program,
    program_guard,
    switch_main_program,
    switch_startup_program,
)
from ..tensor.scope import Scope, global_scope, scope_guard
from ..tensor.variable import Variable
from . import nn
from .averaging import ExponentialMovingAverage
from .backward import append_backward, gradients
from .compiled import BuildStrategy, CompiledProgram, ExecutionStrategy
from .input_spec import InputSpec
from .io import (
    StateReport,
    deserialize_persistables,
    deserialize_program,
    load,
    load_from_file,
    load_inference_model,
    load_program_state,
    normalize_program,
    save,
    save_inference_model,
    save_to_file,
    serialize_persistables,
    serialize_program,
    set_program_state,
)
from .ipu import IpuCompiledProgram, IpuStrategy, ipu_shard_guard, set_ipu_shard
from .metrics import accuracy, auc, ctr_metric_bundle
from .places import cpu_places, cuda_places, device_guard, name_scope, xpu_places
from .program_methods import install_program_methods
from .variables import create_global_var, create_parameter, data
from .weight_norm import WeightNormParamAttr

install_program_methods()


def __getattr__(name: str) -> Any:
    if name == "amp":  # it builds on optimizers, which build on this package
        return importlib.import_module(f"{__name__}.amp")
    raise AttributeError(f"module 'sampan.static' has no attribute {name!r}")


__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "ExponentialMovingAverage",
    "InputSpec",
    "IpuCompiledProgram",
    "IpuStrategy",
    "Print",
    "Program",
    "Scope",
    "StateReport",
    "Variable",
    "WeightNormParamAttr",
    "accuracy",
    "append_backward",
    "auc",
    "cpu_places",
    "create_global_var",
    "create_parameter",
    "ctr_metric_bundle",
    "cuda_places",
    "data",
    "default_main_program",
    "default_startup_program",
    "deserialize_persistables",
    "deserialize_program",
    "device_guard",
    "global_scope",
    "gradients",
    "ipu_shard_guard",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "name_scope",
    "nn",
    "normalize_program",
    "program_guard",
    "py_func",
    "save",
    "save_inference_model",
    "save_to_file",
    "scope_guard",
    "serialize_persistables",
    "serialize_program",
    "set_ipu_shard",
    "set_program_state",
    "switch_main_program",
    "switch_startup_program",
    "xpu_places",
]
