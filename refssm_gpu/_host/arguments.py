"""Arguments of a launch, checked against the kernel's own signature."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, as the C++ compiler sees it."""

    type: str | None  # "float32", "any" for void, None for a struct
    bytes: int  # of one element
    pointer: bool
    constant: bool  # what the pointer points to

    def __str__(self) -> str:
        thing = self.type or f"a struct of {self.bytes} bytes"
        if not self.pointer:
            return f"the scalar numpy.{thing}" if self.type else f"one record: {thing}"
        return f"an array of {thing}" if self.type != "any" else "an array"


def pointers(name: str, parameters: tuple[Parameter, ...], arguments: tuple[Any, ...]) -> Any:
    """Pointers to the arguments' values, and what must stay alive while they are used."""
    if len(parameters) != len(arguments):
        raise TypeError(f"{name}: wanted {len(parameters)} arguments, got {len(arguments)}")
    values = []
    for i, (parameter, argument) in enumerate(zip(parameters, arguments, strict=True)):
        if wrong := _wrong(parameter, argument):
            place = f"{name}: argument {i + 1} of {len(arguments)}"
            raise TypeError(f"{place}: wanted {parameter}, got {wrong}")
        values.append(_value(parameter, argument))
    return (ctypes.c_void_p * len(values))(*(v.ctypes.data for v in values)), values


def _value(parameter: Parameter, argument: Any) -> np.ndarray:
    """The argument's value in memory: an address, a scalar or a record."""
    if not parameter.pointer:
        return np.array(argument)
    return np.array([0 if argument is None else argument.ctypes.data], np.uintp)


def _wrong(parameter: Parameter, argument: Any) -> str:
    """What came instead of what was wanted; an empty text if it is right."""
    if parameter.pointer and argument is None:
        return ""  # a null pointer
    if not isinstance(argument, np.ndarray | np.generic):
        return f"{argument!r} of type {type(argument).__name__}"
    if parameter.pointer:
        return _wrong_array(parameter, argument)
    return _wrong_value(parameter, argument)


def _wrong_array(parameter: Parameter, argument: Any) -> str:
    if not isinstance(argument, np.ndarray):
        return f"the scalar numpy.{argument.dtype}"
    if not _same_type(parameter, argument.dtype):
        return f"an array of {argument.dtype}"
    if not argument.flags.c_contiguous:
        return "an array that is not contiguous"
    if not (parameter.constant or argument.flags.writeable):
        return "a read-only array, and the kernel writes to it"
    if argument.ctypes.data % _alignment(argument.itemsize):
        return f"an array at an address that is not a multiple of {_alignment(argument.itemsize)}"
    return ""


def _wrong_value(parameter: Parameter, argument: Any) -> str:
    if parameter.type is None:
        record = isinstance(argument, np.ndarray) and argument.dtype.names is not None
        if not (record and argument.size == 1):
            return f"{argument!r}"
        fits = argument.itemsize == parameter.bytes
        return "" if fits else f"a record of {argument.itemsize} bytes"
    if isinstance(argument, np.ndarray):
        return f"an array of {argument.dtype}"
    return "" if _same_type(parameter, argument.dtype) else f"the scalar numpy.{argument.dtype}"


def _same_type(parameter: Parameter, dtype: np.dtype) -> bool:
    if parameter.type is None:
        return dtype.itemsize == parameter.bytes
    names = {"any": (str(dtype),), "uint8": ("uint8", "bool")}
    return str(dtype) in names.get(parameter.type, (parameter.type,))


def _alignment(itemsize: int) -> int:
    """What a load of one element needs: elements of 2, 4, 8 and 16 bytes are loaded at once."""
    return itemsize & -itemsize if itemsize < 16 else 16 if itemsize == 16 else 1
