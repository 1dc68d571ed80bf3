"""``paddle.static``: Programs, built by calls on Variables and run by an Executor."""

from __future__ import annotations

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
from .input_spec import InputSpec
from .ipu import IpuCompiledProgram, IpuStrategy, ipu_shard_guard, set_ipu_shard
from .metrics import accuracy, auc, ctr_metric_bundle
from .places import cpu_places, cuda_places, device_guard, name_scope, xpu_places
from .variables import create_global_var, create_parameter, data
from .weight_norm import WeightNormParamAttr

__all__ = [
    "Executor",
    "ExponentialMovingAverage",
    "InputSpec",
    "IpuCompiledProgram",
    "IpuStrategy",
    "Print",
    "Program",
    "Scope",
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
    "device_guard",
    "global_scope",
    "gradients",
    "ipu_shard_guard",
    "name_scope",
    "nn",
    "program_guard",
    "py_func",
    "scope_guard",
    "set_ipu_shard",
    "switch_main_program",
    "switch_startup_program",
    "xpu_places",
]
