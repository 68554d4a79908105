"""Arrays that stand for CuPy's: NumPy's functions take them, but not beside an array of NumPy.

An `Apart` holds an array of NumPy. Universal functions, functions that NumPy dispatches, operators
and methods give `Apart`s. An array of NumPy with axes beside one is a TypeError, as with CuPy, and
so is every silent copy to NumPy. What runs on them needs only what CuPy takes from NumPy by its
protocols (NEP 13, 18 and 35); whether CuPy has each of these functions, they do not show.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

METHODS = {"__call__", "at"}  # of universal functions, with CuPy
MADE = {np.arange, np.asarray, np.eye, np.ones, np.zeros}
# names that layers and the optimizer use, all of which CuPy has: asked of its source, 15.0.0a1
# (commit 6b6d9563c), in cupy/__init__.py, cupy/_core/core.pyx and cupyx/scipy/special
CUPY_TEXT = """
    T absolute add all any arange argmax asarray astype at bitwise_and bitwise_or broadcast_to clip
    concatenate conj conjugate copy cumsum diag divide dtype empty_like equal erf exp eye flags
    flip greater greater_equal imag iscomplexobj isfinite item itemsize less less_equal log
    log1p logical_and matmul max maximum mean min minimum moveaxis multiply nbytes ndim negative
    not_equal ones ones_like power ravel real reshape result_type roll shape size split sqrt stack
    subtract sum swapaxes take_along_axis tanh transpose vdot view where zeros zeros_like
"""
CUPY = frozenset(CUPY_TEXT.split())
called: set[str] = set()  # names of functions and methods so far


def held(x: Any) -> Any:
    """The array of NumPy in it; TypeError for an array of NumPy itself."""
    if isinstance(x, Apart):
        return x.array
    if isinstance(x, np.ndarray):
        raise TypeError(f"an array of NumPy with shape {x.shape} beside one of the card")
    if isinstance(x, list | tuple):
        return type(x)(held(part) for part in x)
    return x


def apart(x: Any) -> Any:
    """Arrays as `Apart`s."""
    if isinstance(x, np.ndarray | np.generic):
        return Apart(np.asarray(x))
    if isinstance(x, list | tuple):
        return type(x)(apart(part) for part in x)
    return x


class Apart(NDArrayOperatorsMixin):
    """An array of its own kind."""

    __array_priority__ = 1000

    def __init__(self, array: np.ndarray):
        self.array = array

    def __array__(self, *_, **__):
        raise TypeError("a silent copy from the card")

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        if method not in METHODS:
            return NotImplemented
        called.add(ufunc.__name__)
        into = keywords.pop("out", ())
        outs = {"out": tuple(held(x) for x in into)} if into else {}
        found = getattr(ufunc, method)(*held(inputs), **held_in(keywords), **outs)
        return into[0] if into else apart(found)

    def __array_function__(self, function, types, args, keywords):
        if not function.__module__.startswith("numpy"):
            return NotImplemented
        called.add(function.__name__)
        if function in MADE:  # with `like`, from numbers or an array of NumPy
            return apart(function(*args, **keywords))
        return apart(function(*held(args), **held_in(keywords)))

    def __getattr__(self, name):
        if name.startswith("__"):  # the protocols by which NumPy would take its memory
            raise AttributeError(name)
        found = getattr(self.array, name)
        called.add(name)
        if name in ("item", "tolist"):
            return found
        if callable(found) and not isinstance(found, np.ndarray) and name != "dtype":
            return lambda *args, **keywords: apart(found(*held(args), **held_in(keywords)))
        return apart(found) if isinstance(found, np.ndarray) else found

    def __getitem__(self, key):
        return apart(self.array[held(key)])

    def __setitem__(self, key, value):
        self.array[held(key)] = held(value)

    def __len__(self):
        return len(self.array)

    def __iter__(self):
        return map(apart, self.array)

    def __bool__(self):
        return bool(self.array)

    def __float__(self):
        return float(self.array)


def held_in(keywords):
    """Keywords with arrays of NumPy."""
    return {name: held(x) for name, x in keywords.items()}


def operators_apart(given: Any) -> SimpleNamespace:
    """Operators on `Apart`s, with the two functions that bring arrays to them and back."""
    space = {
        name: _on(function) for name, function in vars(given).items() if name != "each_on_one_core"
    }
    return SimpleNamespace(**{**space, "placed": apart, "fetched": held})


def _on(function):
    return lambda *args, **keywords: apart(function(*held(args), **held_in(keywords)))
