"""s4's krylov_sequential: one product with A after another."""

from refssm.subjects.clones import module
from refssm.subjects.s4_krylov import some
from refssm.testing import implements

krylov_sequential = module("s4", "src.models.functional.krylov").krylov_sequential


@implements(
    "krylov_kernel", framework="torch", vjp=True, only=some, layout="d n n, d n, d n -> d l"
)
def krylov_kernel(A, B, C, *, l):
    """krylov_sequential(L, A, b, c), in one type."""
    kind = (A[:1] * B[:1, None] * C[:1, None]).dtype
    return krylov_sequential(l, A.to(kind), B.to(kind), C.to(kind))
