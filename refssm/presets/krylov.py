"""Presets of dense kernels: HiPPO's matrices after the bilinear map."""

from refssm import initial
from refssm.presets.preset import of_orders


def draw(rng, sizes):
    """Ā and B̄ of HiPPO-LegS, and a normal C."""
    system = initial.dense("legs", n=sizes["n"])
    A, B = initial.stepped(system["A"], system["B"], initial.steps(rng, ()))
    return {"A": A, "B": B, "C": initial.normal(rng, (sizes["n"],))}


def slowly(rng, sizes):
    """The same with dt = 1/l: the slowest mode is still there after the last step."""
    system, n = initial.dense("legs", n=sizes["n"]), sizes["n"]
    A, B = initial.stepped(system["A"], system["B"], 1 / max(1, sizes["l"]))
    return {"A": A, "B": B, "C": initial.normal(rng, (n,))}


# each long length draws from every second preset: one of them always sees the kernel to its end
PRESETS = {
    "krylov_kernel": (
        *of_orders("legs", "HiPPO-LegS, bilinear map", draw, (16,)),
        *of_orders("legs-slow", "HiPPO-LegS, bilinear map, dt = 1/l", slowly, (64,)),
        *of_orders("legs", "HiPPO-LegS, bilinear map", draw, (64,)),
    )
}
