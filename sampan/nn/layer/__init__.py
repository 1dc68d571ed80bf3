"""The layers, one file a family."""

from .activation import *  # noqa: F403
from .cells import *  # noqa: F403
from .common import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .layers import Layer
from .loss import *  # noqa: F403
from .norm import *  # noqa: F403
from .padding import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403
from .vision import *  # noqa: F403

__all__ = ["Layer"]
__all__ += [name for name, value in globals().items() if isinstance(value, type) and issubclass(value, Layer)]
