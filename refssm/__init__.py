"""refssm: numerical truth for state-space sequence models.

The reference operators are NumPy functions with the names that the literature uses.
`refssm verify` judges any implementation of them.
"""

import sys
from importlib import import_module
from types import ModuleType

from refssm._declaration.names import FAMILY_OF as _FAMILY_OF
from refssm._declaration.names import did_you_mean as _did_you_mean

__version__ = "0.1.0"

_ALIKE = 0.8  # a name that is asked for may be of no operator: `hasattr`
__all__ = sorted(_FAMILY_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _FAMILY_OF:
        hint = "" if name.startswith("_") else _did_you_mean(name, _FAMILY_OF, _ALIKE).strip()
        raise AttributeError(f"module 'refssm' has no attribute {name!r}{'; ' * bool(hint)}{hint}")
    family = import_module(f"refssm.{_FAMILY_OF[name]}")
    if name not in vars(family):
        msg = f"refssm/__init__.pyi lists {name!r}, which {family.__name__} does not define"
        raise AttributeError(msg)
    return vars(family)[name]


def __dir__():
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """Keep the operator where its family has the same name: `refssm.selective_scan` is both."""

    def __setattr__(self, name, value):
        if not (name in _FAMILY_OF and isinstance(value, ModuleType)):  # set by its import
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
