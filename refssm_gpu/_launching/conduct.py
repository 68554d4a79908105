"""The device on which a call runs, and its error when the card's memory is too small."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import Array
from refssm_gpu._launching.target import on_host


def on_device_of(x: Array) -> AbstractContextManager:
    """A context in which the device of `x` is the current one; on the host NumPy stays silent."""
    return np.errstate(all="ignore") if on_host() else x.device


def within_memory(op: str, x: Array, call: Callable[[], Any]) -> Any:
    """The result of `call`; MemoryError with one sentence if the card has too little memory.

    The error is raised after CuPy's own one is gone: that one keeps the frames of the call alive,
    and with them the arrays that it had made.
    """
    if on_host():
        return call()
    import cupy

    try:
        return call()
    except cupy.cuda.memory.OutOfMemoryError as error:
        message = str(error).partition("(")[0].strip().rstrip(".")
    except Exception as error:  # cuFFT and cuBLAS have classes of their own for it
        if "ALLOC_FAILED" not in str(error):
            raise
        message = str(error)
    free, total = (f"{size / 1e9:.1f} GB" for size in cupy.cuda.runtime.memGetInfo())
    raise MemoryError(f"{op}: {message}; cuda:{x.device.id} has {free} free of {total}")
