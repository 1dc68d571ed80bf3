"""``paddle.nn.utils``: gradients clipped in place, parameters as one vector, weights reparameterised."""

from ...tensor.explained import explain
from .gradients import clip_grad_norm_, clip_grad_value_
from .vectors import parameters_to_vector, vector_to_parameters
from .weights import remove_weight_norm, spectral_norm, weight_norm

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "parameters_to_vector",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

explain(globals(), __all__)
