"""``import paddle`` gives sampan: every ``paddle`` module is the very same object as sampan's module of that name.

Nothing changes until ``install()`` is called (``sampan run`` calls it), so a real PaddlePaddle is never shadowed by accident.

Example:
    import sampan.paddle_alias

    sampan.paddle_alias.install()
    import paddle.nn.functional as F  # sampan.nn.functional
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["install", "is_installed", "uninstall"]

_ALIAS = "paddle"
_TARGET = "sampan"


class _AliasLoader(Loader):
    """Puts sampan's module into ``sys.modules`` under the alias; the import system returns what it finds there."""

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(_target_of(module.__name__))


class _AliasFinder(MetaPathFinder):
    """Finds ``paddle`` and its submodules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != _ALIAS and not fullname.startswith(_ALIAS + "."):
            return None
        if importlib.util.find_spec(_target_of(fullname)) is None:
            return None
        return ModuleSpec(fullname, _AliasLoader())


_finder = _AliasFinder()


def _target_of(name: str) -> str:
    return _TARGET + name[len(_ALIAS) :]


def is_installed() -> bool:
    """Whether ``import paddle`` gives sampan now."""
    return _finder in sys.meta_path


def install() -> None:
    """Let ``import paddle`` give sampan in this process; raises ImportError when another ``paddle`` was imported before."""
    loaded = sys.modules.get(_ALIAS)
    if loaded is not None and loaded is not sys.modules.get(_TARGET):
        place = getattr(loaded, "__file__", None) or "an unknown place"
        raise ImportError(
            f"paddle is already imported from {place}\n  call sampan.paddle_alias.install() before the first `import paddle`"
        )
    if not is_installed():
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Take the alias away; modules that were imported through it stay valid."""
    if is_installed():
        sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == _ALIAS or n.startswith(_ALIAS + ".")]:
        if sys.modules[name] is sys.modules.get(_target_of(name)):
            del sys.modules[name]
