"""Other people's libraries as implementations of the catalog, one small file each.

Two functions of one library for the same operator stand in two files: a target holds one
implementation of each.
"""

from refssm.catalog import OPERATORS

MODULES = {"scipy": ("scipy_signal", "scipy_dlsim", "scipy_oaconvolve", "scipy_linalg")}
NAMES = ("jit", *MODULES)


def target(name: str) -> list[str]:
    """The modules to judge for a subject; `jit` is our own mirrors."""
    if name == "jit":
        mirrored = (op.family for op in OPERATORS if "jit" not in op.lacks)
        return [f"refssm.jit.{family}" for family in dict.fromkeys(mirrored)]
    return [f"{__name__}.{module}" for module in MODULES[name]]


def constant_in_time(x):
    """Every decay that of the first step: what a filter with fixed coefficients is for."""
    a = x["a"].copy()
    a[...] = a[..., :1, :]
    return {**x, "a": a}
