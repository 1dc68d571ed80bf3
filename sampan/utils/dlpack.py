"""``paddle.utils.dlpack``: memory shared with other libraries."""

from ..tensor.functions import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
