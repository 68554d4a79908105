# pyright: reportMissingImports=false
"""S5's initial systems: make_HiPPO and make_DPLR_HiPPO."""

from refssm.subjects.clones import module
from refssm.testing import implements

init = module("S5", "s5.ssm_init")


@implements("hippo_legs", framework="jax", ftz=True)
def hippo_legs(*, n):
    """make_NPLR_HiPPO: its matrix, and B."""
    A, _, B = init.make_NPLR_HiPPO(n)
    return A, B


@implements("nplr_legs", framework="jax", ftz=True)
def nplr_legs(*, n):
    """make_DPLR_HiPPO."""
    w, P, B, V, _ = init.make_DPLR_HiPPO(n)
    return w, P[:, None], B, V
