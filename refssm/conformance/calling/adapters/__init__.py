"""Adapters convert NumPy arrays to a framework's arrays and back; each imports its framework.

Arrays are passed as contiguous copies in native byte order, never by DLPack from the host: PyTorch
aborts the interpreter on negative strides. The framework casts to 16-bit types, NumPy with
ml_dtypes to bfloat16; in the judge, float32 arrays hold their values.
"""

from importlib import import_module
from importlib.util import find_spec

from refssm_gpu._launching.missing import INSTALL

INSTALLS = {"torch": "pip install torch", "jax": "pip install jax", "cupy": INSTALL}
MODULES = {
    "numpy": "numpy_arrays",
    "torch": "torch_tensors",
    "jax": "jax_arrays",
    "cupy": "cupy_arrays",
}


def adapter(framework: str, device: str = ""):
    """The adapter of a framework on a device; ImportError if the framework is not installed."""
    if find_spec(framework) is None:
        raise ImportError(f"{framework} is not installed: {INSTALLS[framework]}")
    return import_module(f"{__name__}.{MODULES[framework]}").ADAPTER(device)
