"""refssm: numerical truth for state-space sequence models.

The reference operators are NumPy functions named as in the literature; `refssm verify` judges
anybody's implementation of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from refssm.cauchy import cauchy_kernel, cauchy_kernel_vjp
    from refssm.convolution import (
        causal_convolution,
        causal_convolution_direct,
        causal_convolution_direct_vjp,
        causal_convolution_vjp,
    )
    from refssm.discretize import (
        discretize_bilinear,
        discretize_bilinear_vjp,
        discretize_diagonal_bilinear,
        discretize_diagonal_bilinear_vjp,
        discretize_diagonal_zoh,
        discretize_diagonal_zoh_vjp,
        discretize_zoh,
        discretize_zoh_vjp,
    )
    from refssm.scan import linear_scan, linear_scan_from, linear_scan_from_vjp, linear_scan_vjp
    from refssm.vandermonde import (
        vandermonde_kernel,
        vandermonde_kernel_real,
        vandermonde_kernel_real_vjp,
        vandermonde_kernel_vjp,
    )

__version__ = "0.1.0"

_FAMILIES = {
    "cauchy": ("cauchy_kernel", "cauchy_kernel_vjp"),
    "convolution": (
        "causal_convolution",
        "causal_convolution_direct",
        "causal_convolution_direct_vjp",
        "causal_convolution_vjp",
    ),
    "discretize": (
        "discretize_bilinear",
        "discretize_bilinear_vjp",
        "discretize_diagonal_bilinear",
        "discretize_diagonal_bilinear_vjp",
        "discretize_diagonal_zoh",
        "discretize_diagonal_zoh_vjp",
        "discretize_zoh",
        "discretize_zoh_vjp",
    ),
    "scan": ("linear_scan", "linear_scan_from", "linear_scan_from_vjp", "linear_scan_vjp"),
    "vandermonde": (
        "vandermonde_kernel",
        "vandermonde_kernel_real",
        "vandermonde_kernel_real_vjp",
        "vandermonde_kernel_vjp",
    ),
}
_FAMILY_OF = {name: family for family, names in _FAMILIES.items() for name in names}

__all__ = [
    "cauchy_kernel",
    "cauchy_kernel_vjp",
    "causal_convolution",
    "causal_convolution_direct",
    "causal_convolution_direct_vjp",
    "causal_convolution_vjp",
    "discretize_bilinear",
    "discretize_bilinear_vjp",
    "discretize_diagonal_bilinear",
    "discretize_diagonal_bilinear_vjp",
    "discretize_diagonal_zoh",
    "discretize_diagonal_zoh_vjp",
    "discretize_zoh",
    "discretize_zoh_vjp",
    "linear_scan",
    "linear_scan_from",
    "linear_scan_from_vjp",
    "linear_scan_vjp",
    "vandermonde_kernel",
    "vandermonde_kernel_real",
    "vandermonde_kernel_real_vjp",
    "vandermonde_kernel_vjp",
]


def __getattr__(name: str):
    if name not in _FAMILY_OF:
        raise AttributeError(f"module 'refssm' has no attribute {name!r}")
    return getattr(import_module(f"refssm.{_FAMILY_OF[name]}"), name)


def __dir__():
    return [*__all__, "__version__"]
