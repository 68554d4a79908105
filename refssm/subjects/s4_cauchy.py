# pyright: reportMissingImports=false
"""s4's cauchy_naive, which it uses without its CUDA extension and without PyKeOps."""

from refssm.subjects.clones import module
from refssm.testing import implements

cauchy_naive = module("s4", "models.s4.s4").cauchy_naive


@implements(
    "cauchy_kernel_pairs",
    framework="torch",
    vjp=True,
    dtypes=("complex64", "complex128"),
    kinds="complex",
    layout="d n, d n, l -> d l",
)
def cauchy_kernel_pairs(v, w, z):
    """cauchy_naive(v, z, w)."""
    return cauchy_naive(v, z, w)
