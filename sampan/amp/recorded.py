"""Scaling of the loss as statements of a recorded step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..tensor import OPS
from ..tensor.program import Program, Schedule
from ..tensor.runs import unscale
from ..tensor.variable import Variable
from .grad_scaler import GradScaler


class Scaling:
    """What a GradScaler does around backward, recorded: every run is given its scale, and tells it whether the gradients were finite."""

    def __init__(self, program: Program, scaler: GradScaler) -> None:
        self.scaler = scaler
        recorder = program.recorder
        self._scale, self._inverse = (
            recorder.input(recorder.fresh_name(name), "float64", (), weak=True) for name in ("loss_scale", "inverse_scale")
        )
        program.schedules.append(Schedule([self._scale, self._inverse], lambda scope: [scaler._scale, 1.0 / scaler._scale]))

    def scaled(self, loss: Variable) -> Any:
        """The loss times the scale."""
        return OPS["multiply"](loss, self._scale)

    def unscaled(self, gradients: Sequence[Variable]) -> Any:
        """Divide the gradients by the scale in place; whether all are finite."""
        return unscale(gradients, self._inverse)

    def tell(self, was_finite: bool) -> None:
        """Let the scaler adapt to how a run went."""
        self.scaler._unscaled[id(self)] = was_finite
        self.scaler.update()
