"""Public autograd: backward, Python-defined operators, saved-tensor hooks, Jacobians and Hessians."""

from ..tensor.autograd import (
    PyLayer,
    PyLayerContext,
    backward,
    enable_grad,
    grad,
    is_grad_enabled,
    no_grad,
    saved_tensors_hooks,
    set_grad_enabled,
)
from .functional import Hessian, Jacobian, hessian, jacobian, jvp, vjp

Function = PyLayer  # PyTorch's name

__all__ = [
    "Function",
    "Hessian",
    "Jacobian",
    "PyLayer",
    "PyLayerContext",
    "backward",
    "enable_grad",
    "grad",
    "hessian",
    "is_grad_enabled",
    "jacobian",
    "jvp",
    "no_grad",
    "saved_tensors_hooks",
    "set_grad_enabled",
    "vjp",
]
