"""What callers pass, as arrays: lists converted, types checked, precision and kind told apart."""

from collections.abc import Callable
from typing import Any

import numpy as np


def native(op: str, names, args, types: str, flags, real) -> list[np.ndarray]:
    """`args` as native arrays of accepted types, or an error that says why not.

    Integers become float64; all take the precision of the widest, Python scalars that of the
    arrays beside them. Each keeps its kind, real or complex; those in `real` must be real. `flags`
    become true and false.
    """
    arrays: list[Any] = []
    for name, arg in zip(names, args, strict=True):
        try:
            array = np.asarray(arg)
        except ValueError as error:  # ragged lists
            raise ValueError(f"{op}: `{name}` is not an array: {error}") from None
        if name in flags:
            array = flag(f"{op}: `{name}`", array)
        elif array.dtype.kind == "c" and name in real:
            raise TypeError(f"{op}: `{name}` has dtype {array.dtype}, wanted a real dtype")
        elif array.dtype.kind in "biu":
            array = array.astype(np.float64)
        elif array.dtype.char not in types:
            wanted = ", ".join(np.dtype(t).name for t in types)
            raise TypeError(f"{op}: `{name}` has dtype {array.dtype}, wanted one of {wanted}")
        arrays.append(array.astype(array.dtype.newbyteorder("="), copy=False))
    pairs = zip(arrays, args, strict=True)
    strong = [a.dtype for a, x in pairs if not (_weak(x) or a.dtype.kind == "b")]
    precision = np.finfo(np.result_type(*strong)).dtype if strong else np.dtype(np.float64)
    kinds = {"f": precision, "c": np.result_type(precision, np.complex64), "b": np.dtype(bool)}
    return [a.astype(kinds[a.dtype.kind], copy=False) for a in arrays]


def flag(what: str, array: np.ndarray) -> np.ndarray:
    """True and false of an array of them, or of integers; TypeError that names `what` otherwise."""
    if array.dtype.kind not in "biu" and array.size:
        wanted = "true or false, or integers, where 0 means false"
        raise TypeError(f"{what} has dtype {array.dtype}, wanted {wanted}")
    return array != 0


def as_arrays(y) -> Any:
    """Scalars, which NumPy makes of arrays without axes, as arrays again; None stays."""
    if isinstance(y, tuple):
        return tuple(a if a is None else np.asarray(a) for a in y)
    return np.asarray(y)


def several(y) -> tuple:
    """The outputs of a call as a tuple, also where there is one alone."""
    return y if isinstance(y, tuple) else (y,)


def each(y, change: Callable) -> Any:
    """`change` of every output of a call; a tuple where there are several."""
    return tuple(map(change, y)) if isinstance(y, tuple) else change(y)


def _weak(x) -> bool:
    """Whether NumPy lets `x` take the precision of what it meets."""
    return type(x) in (bool, int, float, complex)
