"""refssm: numerical truth for state-space sequence models.

The reference operators are NumPy functions with the names that the literature uses.
`refssm verify` judges any implementation of them.
"""

import sys
from importlib import import_module

from refssm._declaration.names import FAMILY_OF as _FAMILY_OF
from refssm._declaration.on_demand import Package as _Package
from refssm._declaration.on_demand import lacking as _lacking

__version__ = "0.2.0"

__all__ = sorted(_FAMILY_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _FAMILY_OF:
        raise _lacking("refssm", name)
    family = import_module(f"refssm.{_FAMILY_OF[name]}")
    if name not in vars(family):
        msg = f"refssm/__init__.pyi lists {name!r}, which {family.__name__} does not define"
        raise AttributeError(msg)
    return vars(family)[name]


def __dir__():
    return [*__all__, "__version__"]


sys.modules[__name__].__class__ = _Package
