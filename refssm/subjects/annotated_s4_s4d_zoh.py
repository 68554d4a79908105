"""annotated-s4's S4D kernel as one sum; it returns Re Σ, so 2 C B is passed for C."""

from refssm.subjects.annotated_s4_s4d import clipped
from refssm.subjects.clones import module
from refssm.testing import implements

s4d = module("annotated-s4", "s4.s4d")


@implements(
    "diagonal_kernel_zoh_real",
    framework="jax",
    ftz=True,
    vjp=True,
    only=clipped,
    layout="n, n, n,  -> l",
)
def diagonal_kernel_zoh_real(w, B, C, dt, *, l):
    """s4d_kernel_zoh(C, A, L, step)."""
    return s4d.s4d_kernel_zoh(2 * C * B, w, l, dt)
