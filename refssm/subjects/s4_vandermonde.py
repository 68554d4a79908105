"""s4's log_vandermonde_naive, which it uses without its CUDA extension and without PyKeOps."""

from refssm.subjects.clones import module
from refssm.testing import implements

log_vandermonde_naive = module("s4", "models.s4.s4").log_vandermonde_naive


@implements(
    "vandermonde_kernel_real",
    framework="torch",
    vjp=True,
    dtypes=("complex64", "complex128"),
    layout="d n, d n -> d l",
)
def vandermonde_kernel_real(v, x, *, l):
    """log_vandermonde_naive(v, x, L)."""
    return log_vandermonde_naive(v, x, l)
