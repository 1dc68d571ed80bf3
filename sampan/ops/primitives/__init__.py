"""The primitives: everything that a definition may be built from. Each knows its types, its NumPy meaning and its gradient."""

from . import recurrent_second  # noqa: F401
from .alignment import *  # noqa: F403
from .checks import *  # noqa: F403
from .convolution import *  # noqa: F403
from .core import PRIMITIVES, Primitive, append, broadcast_shapes, constant, gradient_of, primitive, register
from .decompositions import *  # noqa: F403
from .fourier import *  # noqa: F403
from .host import *  # noqa: F403
from .linalg import *  # noqa: F403
from .linear import *  # noqa: F403
from .maps import *  # noqa: F403
from .moves import *  # noqa: F403
from .ordering import *  # noqa: F403
from .pooling import *  # noqa: F403
from .recurrent import *  # noqa: F403
from .reductions import *  # noqa: F403
from .views import *  # noqa: F403

__all__ = ["PRIMITIVES", "Primitive", "append", "broadcast_shapes", "constant", "gradient_of", "primitive", "register"]
