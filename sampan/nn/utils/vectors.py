"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ...base.errors import ShapeError, message
from ...tensor import OPS, Tensor
from ...tensor.functions import no_grad


def parameters_to_vector(parameters: Iterable[Tensor], name: str | None = None) -> Tensor:
    """All elements of the parameters, one after another, as a 1-D tensor."""
    return OPS["concat"]([OPS["reshape"](p, [-1]) for p in parameters], 0)


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor], name: str | None = None) -> None:
    """Write the vector's elements into the parameters, in order.

    Raises:
        ShapeError: the vector does not have as many elements as the parameters.
    """
    targets = list(parameters)
    count = sum(p.size for p in targets)
    if list(vec.shape) != [count]:
        raise ShapeError(
            message(f"vector_to_parameters(): vec has shape {list(vec.shape)}", f"the parameters have {count} elements")
        )
    at = 0
    for p in targets:
        p.set_value(OPS["reshape"](vec[at : at + p.size], list(p.shape)))
        at += p.size


__all__ = ["parameters_to_vector", "vector_to_parameters"]
