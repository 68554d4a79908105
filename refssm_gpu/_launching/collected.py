"""Every kernel of the package, for those who compile, test or count them all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

import refssm_gpu
from refssm_gpu._launching.kernel import Kernel

APART = ("refssm_gpu._launching.card", "refssm_gpu._host", "refssm_gpu._numba", "refssm_gpu._gate")


def kernels() -> tuple[Kernel, ...]:
    """All instances of Kernel in modules of refssm_gpu, by source and name."""
    found: dict[Kernel, None] = {}
    for module in walk_packages(refssm_gpu.__path__, f"{refssm_gpu.__name__}."):
        if not module.name.startswith(APART):  # no kernels there, and CuPy or Numba wanted
            held = vars(import_module(module.name)).values()
            found |= dict.fromkeys(x for x in held if isinstance(x, Kernel))
    return tuple(sorted(found, key=lambda kernel: (kernel.source, kernel.name)))
