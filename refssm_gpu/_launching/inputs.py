"""The caller's arguments as arrays on one device, their types checked, in one precision."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from refssm_gpu._launching.arrays import HALVES, Array, namespace, real_type
from refssm_gpu._launching.target import on_host


def typed(what: str, arg: Any) -> Array | Number:
    """`arg` if it is an array of the GPU, or a number; else a TypeError that begins with `what`."""
    if isinstance(arg, Number | np.generic) and not isinstance(arg, str):
        return arg.item() if isinstance(arg, np.generic) else arg
    if on_host():
        if isinstance(arg, np.ndarray):
            return arg
        raise TypeError(f"{what} is a {_kind(arg)}, wanted a NumPy array (REFSSM_GPU=host)")
    import cupy

    if isinstance(arg, cupy.ndarray):
        return arg
    advice = "; cupy.asarray copies it to the GPU"
    if not isinstance(arg, np.ndarray | list | tuple):
        advice = "; cupy.from_dlpack takes it without a copy" if hasattr(arg, "__dlpack__") else ""
    raise TypeError(f"{what} is a {_kind(arg)}, wanted a CuPy array{advice}")


def _kind(arg: Any) -> str:
    """The type of an argument, with its library."""
    kind = type(arg)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def one_device(op: str, names: Sequence[str], args: Sequence[Any]) -> Array | None:
    """The first array, None if all are numbers; ValueError if two are on different devices."""
    pairs = zip(names, args, strict=True)
    arrays = [(name, arg) for name, arg in pairs if not isinstance(arg, Number)]
    if not arrays:
        return None
    where, first = arrays[0]
    if on_host():  # one memory, and NumPy's `device` is a word
        return first
    for name, arg in arrays[1:]:
        if arg.device.id != first.device.id:
            here, there = arg.device.id, first.device.id
            raise ValueError(f"{op}: `{name}` is on cuda:{here}, but `{where}` is on cuda:{there}")
    return first


def converted(
    op: str,
    names: Sequence[str],
    args: Sequence[Any],
    types: Sequence[str],
    flags,
    real,
    like: Array,
) -> list[Array]:
    """All as arrays beside `like`, in the precision of the widest; each stays real or complex.

    Integers become float64; Python numbers adopt the others' precision, as in NumPy; `flags` become
    boolean. TypeError for other types, or for complex numbers where `real` wants real ones.
    """
    xp = namespace(like)
    strong = [_precise(op, n, x, types, flags, real) for n, x in zip(names, args, strict=True)]
    kinds = [kind for kind in strong if kind is not None]
    if {kind.name for kind in kinds} == set(HALVES):
        kinds = [np.dtype(np.float32)]
    wide = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    single = np.result_type(wide, np.complex64)
    arrays = []
    for name, arg in zip(names, args, strict=True):
        if name in flags:
            arrays.append(xp.asarray(arg) != 0)
            continue
        compound = _is_complex(arg)
        dtype = single if compound else real_type(wide)
        arrays.append(
            xp.asarray(arg, dtype=dtype)
            if isinstance(arg, Number)
            else arg.astype(dtype, copy=False)
        )
    return arrays


def _is_complex(arg: Any) -> bool:
    return isinstance(arg, complex) if isinstance(arg, Number) else arg.dtype.kind == "c"


def _precise(op, name, arg, types, flags, real) -> np.dtype | None:
    """The real type of an argument that decides the precision; None for numbers and flags."""
    what = f"{op}: `{name}`"
    if name in flags:
        if not isinstance(arg, Number) and arg.dtype.kind not in "biu" and arg.size:
            wanted = "true or false, or integers, where 0 means false"
            raise TypeError(f"{what} has dtype {arg.dtype}, wanted {wanted}")
        return None
    if _is_complex(arg) and name in real:
        dtype = "complex128" if isinstance(arg, Number) else arg.dtype
        raise TypeError(f"{what} has dtype {dtype}, wanted a real dtype")
    if isinstance(arg, Number):
        return None
    if arg.dtype.kind in "biu":
        return np.dtype(np.float64)
    if arg.dtype.name not in types:
        raise TypeError(f"{what} has dtype {arg.dtype}, wanted one of {', '.join(types)}")
    return real_type(arg.dtype)
