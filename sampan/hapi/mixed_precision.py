"""What ``Model.prepare`` is told about mixed precision."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from .. import amp
from ..base.errors import ArgumentError, ArgumentTypeError, describe, message

_CAST_KEYS = frozenset({"custom_white_list", "custom_black_list", "dtype", "use_promote"})
_SCALER_KEYS = frozenset(
    {"init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf", "use_dynamic_loss_scaling"}
)
#: Keys of Paddle's that say what happens here in any case.
_IGNORED_KEYS = frozenset({"use_pure_fp16", "use_fp16_guard"})


@dataclass
class MixedPrecision:
    """The level, the arguments of ``auto_cast``, and the scaler: one that is off in full precision and for bfloat16, which has float32's range."""

    level: str = "O0"
    cast_options: dict[str, Any] = field(default_factory=dict)
    scaler: amp.GradScaler = field(default_factory=lambda: amp.GradScaler(enable=False))

    @property
    def dtype(self) -> str:
        """The 16-bit type."""
        return str(self.cast_options.get("dtype", "float16"))

    @staticmethod
    def of(configs: Any) -> MixedPrecision:
        """What ``amp_configs`` asks for.

        Raises:
            ArgumentTypeError: neither a level nor a dict.
            ArgumentError: an unknown level or key.
        """
        if configs is None:
            return MixedPrecision()
        given = {"level": configs} if isinstance(configs, str) else configs
        if not isinstance(given, Mapping):
            raise ArgumentTypeError(
                message(f"Model.prepare(): amp_configs is {describe(configs)}", "it must be a level or a dict")
            )
        level = given.get("level", "O1")
        if level not in ("O0", "O1", "O2"):
            raise ArgumentError(message(f"Model.prepare(): amp_configs names level {level!r}", "it must be 'O0', 'O1' or 'O2'"))
        known = _CAST_KEYS | _SCALER_KEYS | _IGNORED_KEYS | {"level"}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ArgumentError(message(f"Model.prepare(): amp_configs holds {unknown}", "", f"it takes {sorted(known)}"))
        found = MixedPrecision(level, {k: v for k, v in given.items() if k in _CAST_KEYS})
        options: Any = {k: v for k, v in given.items() if k in _SCALER_KEYS}
        found.scaler = amp.GradScaler(enable=level != "O0" and found.dtype == "float16", **options)
        return found

    def cast(self) -> AbstractContextManager[None]:
        """The block that forward runs in."""
        return nullcontext() if self.level == "O0" else amp.auto_cast(level=self.level, **self.cast_options)
