"""What a call on the GPU needs, and the sentence that says what is missing."""

# pyright: reportMissingImports=false
from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

OLDEST = (8, 0)  # compute capability that the kernels are compiled and checked for: Ampere
INSTALL = "pip install 'cupy-cuda13x[ctk]', or 'cupy-cuda12x[ctk]' for a driver of CUDA 12"


class NoCard(RuntimeError):
    """A GPU, its driver, or CuPy is missing; the message says which, and what to do."""


def require_card(operator: str) -> None:
    """Raise `NoCard` with one sentence, unless a call of `operator` can run here."""
    if lack := _lack():
        raise NoCard(f"{operator} runs on a CUDA GPU, and {lack}")


def require_new(operator: str, device: Any) -> None:
    """Raise `NoCard` with one sentence if this card is too old for the kernels."""
    capability = divmod(int(device.compute_capability), 10)
    if capability < OLDEST:
        wanted, came = (f"{major}.{minor}" for major, minor in (OLDEST, capability))
        message = f"cuda:{device.id} has compute capability {came}; wanted {wanted} (A100) or newer"
        raise NoCard(f"{operator} runs on a CUDA GPU, and {message}")


@cache  # a driver does not come and go
def _lack() -> str:
    """What is missing, or an empty text."""
    if find_spec("cupy") is None:
        return f"CuPy is not installed: {INSTALL}"
    import cupy

    if not cupy.cuda.runtime.driverGetVersion():
        return "no NVIDIA driver is loaded here (nvidia-smi would list the cards)"
    if not cupy.cuda.is_available():
        return f"CuPy {cupy.__version__} finds no card, or the driver is older than its CUDA"
    if not _finds_compiler():
        return f"CUDA's compiler NVRTC is not found; what brings it: {INSTALL}"
    return ""


def _finds_compiler() -> bool:
    """Whether CuPy can load NVRTC."""
    from cupy.cuda import nvrtc

    try:
        nvrtc.getVersion()
    except Exception:  # CuPy's loader has errors of its own for each way to fail
        return False
    return True
