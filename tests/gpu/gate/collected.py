"""Every kernel of the package, for those who compile, test or count them all."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import refssm_gpu
from refssm_gpu._launching.kernel import Kernel

# no kernels there, and CuPy wanted
APART = ("refssm_gpu._launching.card", "refssm_gpu._host")


def kernels() -> tuple[Kernel, ...]:
    """All instances of Kernel in modules of refssm_gpu, by source and name."""
    found: dict[Kernel, None] = {}
    for module in _modules(refssm_gpu):
        held = vars(module).values()
        found |= dict.fromkeys(x for x in held if isinstance(x, Kernel))
    return tuple(sorted(found, key=lambda kernel: (kernel.source, kernel.name)))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for info in iter_modules(package.__path__, f"{package.__name__}."):
        if info.name not in APART:
            module = import_module(info.name)
            yield module
            if info.ispkg:
                yield from _modules(module)
