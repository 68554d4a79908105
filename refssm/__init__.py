"""refssm: numerical truth for state-space sequence models.

The reference operators are NumPy functions named as in the literature; `refssm verify` judges
anybody's implementation of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refssm.cauchy import cauchy_kernel, cauchy_kernel_vjp
    from refssm.scan import linear_scan, linear_scan_from, linear_scan_from_vjp, linear_scan_vjp

__version__ = "0.1.0"

_FAMILIES = {
    "cauchy": ("cauchy_kernel", "cauchy_kernel_vjp"),
    "scan": ("linear_scan", "linear_scan_from", "linear_scan_from_vjp", "linear_scan_vjp"),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}

__all__ = [
    "cauchy_kernel",
    "cauchy_kernel_vjp",
    "linear_scan",
    "linear_scan_from",
    "linear_scan_from_vjp",
    "linear_scan_vjp",
]


def __getattr__(name: str):
    if name not in _FAMILY_OF:
        raise AttributeError(f"module 'refssm' has no attribute {name!r}")
    return getattr(import_module(f"refssm.{_FAMILY_OF[name]}"), name)


def __dir__():
    return [*__all__, "__version__"]
