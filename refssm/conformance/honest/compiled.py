"""The compiled mirrors among the honest implementations, imported when they are first called."""

from refssm._operator import Operator
from refssm.conformance.honest import Honest


def compiled(op: Operator, name: str = "numba") -> Honest:
    """The mirror of an operator and of its VJP, called after the library it is written with."""
    return Honest(
        op.name,
        name,
        lambda *args, **statics: op.implementation("jit")(*args, **statics),
        lambda *args, **statics: op.vjp("jit")(*args, **statics),
    )
