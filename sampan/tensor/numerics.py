"""Counts of NaN, infinity and zero in results, and the check that ``FLAGS_check_nan_inf`` turns on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import dtypes, flags
from ..base.errors import NumericsError, message
from .dispatch import set_watch
from .location import user_layer, user_location
from .watching import Watch, register


@dataclass(frozen=True)
class Counts:
    """What an array holds: how many NaNs, infinities and zeros, and the extremes and mean of all of it."""

    numel: int
    num_nan: int
    num_inf: int
    num_zero: int
    max: float
    min: float
    mean: float

    @property
    def is_finite(self) -> bool:
        """Whether there is neither NaN nor infinity."""
        return not self.num_nan and not self.num_inf


def is_inexact(array: Any) -> bool:
    """Whether the array's type has NaN and infinity."""
    return dtypes.kind(array.dtype.name) in "fc"


def all_finite(array: Any) -> bool:
    """Whether the array holds neither NaN nor infinity."""
    return not is_inexact(array) or bool(np.isfinite(array).all())


def counted(array: Any) -> Counts:
    """The counts of an array of floating or complex numbers; of complex ones the extremes and mean are those of the magnitudes."""
    wide = np.abs(array) if dtypes.kind(array.dtype.name) == "c" else array.astype(np.float64)
    nans, infinities, zeros = (int(np.count_nonzero(f)) for f in (np.isnan(wide), np.isinf(wide), wide == 0))
    if not wide.size:
        return Counts(0, 0, 0, 0, 0.0, 0.0, 0.0)
    with np.errstate(all="ignore"):
        return Counts(wide.size, nans, infinities, zeros, float(wide.max()), float(wide.min()), float(wide.mean()))


def not_finite_error(operator: str, array: Any, operands: Sequence[Any], counts: Counts) -> NumericsError:
    """The error about a result that is not finite: where it was made, and whether by this operator."""
    bad = np.argwhere(~np.isfinite(np.atleast_1d(array)))
    positions = ", ".join(str(b.tolist()) for b in bad[:3]) + (" ..." if len(bad) > 3 else "")
    received = [k for k, v in enumerate(operands) if not all_finite(v)]
    origin = (
        f"its operand {received[0]} held some already"
        if received
        else "its operands are finite: they first appear here"
        if operands
        else "it has no operands"
    )
    where = ", ".join(text for text in (user_layer(), user_location()) if text)
    return NumericsError(
        message(
            f"{operator}: the result {array.dtype.name}{list(array.shape)} holds {counts.num_nan} NaN and {counts.num_inf} infinite elements, "
            f"at {positions}",
            origin,
            where,
        )
    )


def require_finite(operator: str, array: Any, operands: Sequence[Any]) -> None:
    """Raise NumericsError when the result holds NaN or infinity."""
    if not all_finite(array):
        raise not_finite_error(operator, array, operands, counted(array))


FLAG_WATCH = Watch("check_nan_inf")
register(FLAG_WATCH.key, require_finite)


def follow_flag(is_on: Any) -> None:
    """Check every result from now on, or no more."""
    set_watch(FLAG_WATCH if is_on else None)


flags.NAN_INF.follow(follow_flag)
