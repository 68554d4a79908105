"""s4's krylov: powers of A by squaring."""

from refssm.subjects.clones import module
from refssm.testing import implements

krylov = module("s4", "src.models.functional.krylov").krylov


def some(x):
    """The case if it has a step."""
    return x if x["l"] else None


@implements(
    "krylov_kernel", framework="torch", vjp=True, only=some, layout="d n n, d n, d n -> d l"
)
def krylov_kernel(A, B, C, *, l):
    """krylov(L, A, b, c), in one type."""
    kind = (A[:1] * B[:1, None] * C[:1, None]).dtype
    return krylov(l, A.to(kind), B.to(kind), C.to(kind))
