"""Presets of dense kernels: HiPPO's matrices after the bilinear map."""

from refssm import initial
from refssm.presets.preset import of_orders


def draw(rng, sizes):
    """Ā and B̄ of HiPPO-LegS, and a normal C."""
    system = initial.dense("legs", n=sizes["n"])
    A, B = initial.stepped(system["A"], system["B"], initial.steps(rng, ()))
    return {"A": A, "B": B, "C": initial.normal(rng, (sizes["n"],))}


PRESETS = {"krylov_kernel": of_orders("legs", "HiPPO-LegS, bilinear map", draw, (16, 64))}
