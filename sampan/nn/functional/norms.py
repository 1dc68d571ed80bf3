"""Batch and instance normalisation with running statistics."""

from __future__ import annotations

from ...base.errors import ArgumentError, ShapeError, message
from ...tensor import OPS, Tensor

_LAYOUTS = ("NC", "NCL", "NCHW", "NCDHW", "NLC", "NHWC", "NDHWC")


def channel_axis(name: str, x: Tensor, data_format: str) -> int:
    """The axis of x that holds channels. Raises for an unknown format or a tensor without channels."""
    if data_format not in _LAYOUTS:
        raise ArgumentError(message(f"{name}(): data_format={data_format!r}", f"it must be one of {', '.join(_LAYOUTS)}"))
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(
            message(f"{name}(): x has shape {list(x.shape)}", "it must have at least 2 axes, of instances and channels")
        )
    return rank - 1 if data_format != "NC" and data_format[-1] == "C" else 1


def batch_norm(
    x: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    data_format: str = "NCHW",
    use_global_stats: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """x normalised over everything but channels, then weight * x + bias.

    Args:
        x: [N, C, ...], or [N, ..., C] by ``data_format``.
        running_mean: [C]; in training it becomes momentum * running_mean + (1 - momentum) * mean, in place.
        running_var: [C]; likewise, of the biased variance.
        weight: [C] or None.
        bias: [C] or None.
        training: normalise by x's own statistics and update the running ones; else by the running ones.
        momentum: how much of the running statistics stays.
        epsilon: added to the variance.
        use_global_stats: True: by the running statistics also in training; False: by x's own also in evaluation.

    Raises:
        ShapeError: a statistic, weight or bias is not [C].

    Source: S. Ioffe, C. Szegedy, "Batch normalization", https://arxiv.org/abs/1502.03167
    """
    channel = channel_axis("batch_norm", x, data_format)
    channels = x.shape[channel]
    for what, value in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        if value is not None and list(value.shape) != [channels]:
            raise ShapeError(
                message(
                    f"batch_norm(): {what} is {list(value.shape)} and x {list(x.shape)}",
                    f"it must be [{channels}], one number for each channel",
                    "check num_features, and data_format if x is channels-last",
                )
            )
    uses_own = training if use_global_stats is None else not use_global_stats
    if uses_own:
        return OPS["batch_norm_train"](x, running_mean, running_var, weight, bias, float(momentum), float(epsilon), channel)[2]
    return OPS["batch_norm_infer"](x, running_mean, running_var, weight, bias, float(epsilon), channel)


def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.9,
    eps: float = 1e-05,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Tensor:
    """x normalised over the positions of every channel of every instance, then weight * x + bias.

    Args:
        x: [N, C, ...] with at least 3 axes, or [N, ..., C] by ``data_format``.
        running_mean: used, with ``running_var``, when ``use_input_stats`` is False.
        use_input_stats: normalise by x's own statistics.
        eps: added to the variance.

    Source: D. Ulyanov et al., "Instance normalization", https://arxiv.org/abs/1607.08022
    """
    channel = channel_axis("instance_norm", x, data_format)
    if use_input_stats:
        return OPS["instance_norm"](x, weight, bias, float(eps), channel)
    if running_mean is None or running_var is None:
        raise ArgumentError(message("instance_norm(): use_input_stats is False", "running_mean and running_var must be given"))
    return OPS["batch_norm_infer"](x, running_mean, running_var, weight, bias, float(eps), channel)


__all__ = ["batch_norm", "channel_axis", "instance_norm"]
