"""The caller's arguments as arrays: convert lists, check dtypes, unify precision, keep the kind."""

from collections.abc import Callable
from typing import Any

import numpy as np

NONE: frozenset[str] = frozenset()


def native(
    op: str, names, args, types: str, flags=NONE, offsets=NONE, real=NONE
) -> list[np.ndarray]:
    """`args` as native arrays of accepted types; TypeError or ValueError says why not.

    Integers become float64. All arrays get the precision of the widest array; Python scalars adopt
    it too. Each stays real or complex; those in `real` must be real. `flags` become boolean,
    `offsets` integers.
    """
    arrays: list[Any] = []
    for name, arg in zip(names, args, strict=True):
        try:
            array = np.asarray(arg)
        except ValueError as error:  # ragged lists
            raise ValueError(f"{op}: `{name}` is not an array: {error}") from None
        if name in flags:
            array = flag(f"{op}: `{name}`", array)
        elif name in offsets:
            array = whole(f"{op}: `{name}`", array)
        elif array.dtype.kind == "c" and name in real:
            raise TypeError(f"{op}: `{name}` has dtype {array.dtype}, wanted a real dtype")
        elif array.dtype.kind in "biu":
            array = array.astype(np.float64)
        elif array.dtype.char not in types:
            wanted = ", ".join(np.dtype(t).name for t in types)
            raise TypeError(f"{op}: `{name}` has dtype {array.dtype}, wanted one of {wanted}")
        arrays.append(array.astype(array.dtype.newbyteorder("="), copy=False))
    pairs = zip(arrays, args, strict=True)
    strong = [a.dtype for a, x in pairs if not (_weak(x) or a.dtype.kind in "bi")]
    precision = np.finfo(np.result_type(*strong)).dtype if strong else np.dtype(np.float64)
    kinds = {"f": precision, "c": np.result_type(precision, np.complex64), "b": np.dtype(bool)}
    kinds["i"] = np.dtype(np.int64)
    return [a.astype(kinds[a.dtype.kind], copy=False) for a in arrays]


def flag(what: str, array: np.ndarray) -> np.ndarray:
    """`array` of booleans or integers as booleans; else a TypeError that begins with `what`."""
    if array.dtype.kind not in "biu" and array.size:
        wanted = "true or false, or integers, where 0 means false"
        raise TypeError(f"{what} has dtype {array.dtype}, wanted {wanted}")
    return array != 0


def whole(what: str, array: np.ndarray) -> np.ndarray:
    """`array` of integers as int64; else a TypeError that begins with `what`."""
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} has dtype {array.dtype}, wanted integers")
    return array.astype(np.int64)


def as_arrays(y) -> Any:
    """Each output as an array: NumPy turns 0-d results into scalars. None stays."""
    if isinstance(y, tuple):
        return tuple(a if a is None else np.asarray(a) for a in y)
    return np.asarray(y)


def several(y) -> tuple:
    """The outputs of a call as a tuple, even if there is only one."""
    return y if isinstance(y, tuple) else (y,)


def each(y, change: Callable) -> Any:
    """Apply `change` to every output of a call; a tuple if there are several."""
    return tuple(map(change, y)) if isinstance(y, tuple) else change(y)


def _weak(x) -> bool:
    """True for Python scalars, whose precision does not count (NumPy's rule for weak scalars)."""
    return type(x) in (bool, int, float, complex)
