"""Other people's libraries as implementations of the catalog, one small file each."""

NAMES = ("jit", "scipy")


def target(name: str) -> list[str]:
    """The modules to judge for a subject."""
    if name == "jit":
        return ["refssm.jit.cauchy", "refssm.jit.scan"]
    return [f"{__name__}.{name}"]
