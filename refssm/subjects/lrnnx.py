# pyright: reportMissingImports=false
"""lrnnx.core.discretization: the part of lrnnx that can be imported without CUDA extensions."""

from lrnnx.core.discretization import bilinear, zoh

from refssm.testing import implements


def _scaled(discretized, B):
    """Ā and B̄ = γ̄ B from Ā and γ̄."""
    A_bar, gamma_bar = discretized
    return A_bar, gamma_bar[:, None] * B


@implements("discretize_diagonal_zoh", framework="torch", vjp=True, layout="n, n m, n -> n, n m")
def discretize_diagonal_zoh(w, B, dt):
    """γ̄ = (1/A)(e^{ΔA} − 1)."""
    return _scaled(zoh(w, dt), B)


@implements(
    "discretize_diagonal_bilinear", framework="torch", vjp=True, layout="n, n m, n -> n, n m"
)
def discretize_diagonal_bilinear(w, B, dt):
    """γ̄ = Δ/(1 + ½ΔA), Ā = (1 − ½ΔA)/(1 + ½ΔA)."""
    return _scaled(bilinear(w, dt), B)
