"""``paddle.static``: Programs, built by calls on Variables and run by an Executor."""

from __future__ import annotations

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
from .backward import append_backward, gradients
from .variables import create_global_var, create_parameter, data

__all__ = [
    "Executor",
    "Program",
    "Scope",
    "Variable",
    "append_backward",
    "create_global_var",
    "create_parameter",
    "data",
    "default_main_program",
    "default_startup_program",
    "global_scope",
    "gradients",
    "nn",
    "program_guard",
    "scope_guard",
    "switch_main_program",
    "switch_startup_program",
]
