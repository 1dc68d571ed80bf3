"""oneDNN's library, where the loader does not find it beside the runtime."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import re

from .errors import message

_PACKAGE = "onednn-cpu-gomp"


def load_missing_library(error: ImportError) -> None:
    """Loads the library that an import of the runtime lacked, so that the next import finds it in the process.

    The runtime looks in the ``lib`` folder of its own environment. The package that brings the library may lie in another one: below
    an environment with ``--system-site-packages``, or in the system's when sampan is in the user's.

    Raises:
        ImportError: the import failed for another reason (it is raised again as it was), or no installed package has the library.
    """
    missing = re.match(r"(libdnnl\.so[.\d]*): cannot open shared object file", str(error))
    if missing is None:
        raise error
    name = missing.group(1)
    for distribution in importlib.metadata.distributions(name=_PACKAGE):
        for file in distribution.files or ():
            if file.name == name:
                with contextlib.suppress(OSError):  # a record may name a file that is not there
                    ctypes.CDLL(str(file.locate()))
                    return
    raise ImportError(
        message(
            f"sampan's runtime needs oneDNN's library {name}, which was not found",
            f"it comes with the package {_PACKAGE}, in the lib folder of an environment (pip install --target leaves it out)",
            f"pip install {_PACKAGE} for the Python that runs, or name the library's folder in LD_LIBRARY_PATH",
        )
    ) from error
