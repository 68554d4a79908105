"""How arrays get into a framework and out again: one file each, imported where it is asked for.

Arrays enter as contiguous native copies, never by DLPack from the host (PyTorch ends the
interpreter on negative strides). Sixteen-bit types are cast inside the framework; on this side
float32 carries their values.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

MODULES = {
    "numpy": "numpy_arrays",
    "torch": "torch_tensors",
    "jax": "jax_arrays",
    "cupy": "cupy_arrays",
}


def adapter(framework: str, device: str = ""):
    """The adapter of a framework on a device; ImportError where the framework is not installed."""
    if find_spec(framework) is None:
        raise ImportError(f"{framework} is not installed")
    return import_module(f"{__name__}.{MODULES[framework]}").ADAPTER(device)
