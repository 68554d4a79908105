"""A module that stands for CuPy: arrays of NumPy with a device, and what asks for cards.

It shows which sentences a user gets; what differs on a card it cannot show.
"""

import importlib.machinery
import types
from contextlib import contextmanager

import numpy as np


class Device:
    """A device as CuPy's: a context, and facts."""

    compute_capability = "90"

    def __init__(self, number=0):
        self.id = number

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return False


class Array(np.ndarray):
    """Stands for cupy.ndarray."""

    place = 0

    @property
    def device(self):
        return Device(self.place)


def array(values, place=0):
    """An array on the card of this number."""
    made = np.array(values, float).view(Array)
    made.place = place
    return made


class OutOfMemoryError(MemoryError):
    """As CuPy's: its text gives the bytes wanted."""


class Error(Exception):
    """What CuPy's loaders raise."""


def double(driver=13000, available=True, compiler=True):
    """The fake module `cupy`, with these answers about the machine."""
    cupy = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    cupy.__version__ = "0.0 of the double"
    cupy.ndarray = Array

    def version():
        if not compiler:
            raise Error("no libnvrtc")
        return 13, 0

    runtime = types.SimpleNamespace(
        driverGetVersion=lambda: driver, memGetInfo=lambda: (3 * 10**9, 80 * 10**9)
    )
    cupy.cuda = types.ModuleType("cupy.cuda")
    cupy.cuda.nvrtc = types.SimpleNamespace(getVersion=version)
    cupy.cuda.runtime, cupy.cuda.Device = runtime, Device
    cupy.cuda.is_available = lambda: available
    cupy.cuda.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    return cupy


@contextmanager
def installed(monkeypatch, **answers):
    """The fake in place of CuPy, with calls meant for the card."""
    from refssm_gpu._launching import missing

    cupy = double(**answers)
    with monkeypatch.context() as m:
        m.setitem(__import__("sys").modules, "cupy", cupy)
        m.setitem(__import__("sys").modules, "cupy.cuda", cupy.cuda)
        m.setenv("REFSSM_GPU", "")
        missing._lack.cache_clear()
        yield cupy
    missing._lack.cache_clear()
