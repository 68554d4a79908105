"""Other people's libraries as implementations of the catalog, one small file each."""

from refssm.catalog import OPERATORS

NAMES = ("jit", "scipy")


def target(name: str) -> list[str]:
    """The modules to judge for a subject; `jit` is our own mirrors."""
    if name == "jit":
        mirrored = (op.family for op in OPERATORS if "jit" not in op.lacks)
        return [f"refssm.jit.{family}" for family in dict.fromkeys(mirrored)]
    return [f"{__name__}.{name}"]
