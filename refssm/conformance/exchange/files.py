""".npy files of other programs: plain writing, and reading with a one-sentence error."""

import hashlib
import warnings
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from refssm.conformance.calling.adapters.numpy_arrays import Numpy, Unusable, carried
from refssm.conformance.file_errors import ARRAYS, UNREADABLE
from refssm.conformance.number_types import NumberType

READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Unreadable(Exception):
    """A file is not the expected array; the message says why."""


class FileArrays(Numpy):
    """The adapter of arrays in files: float16 as NumPy's float16, bfloat16 as float32."""

    name = "files"

    def __init__(self, device: str = ""):
        super().__init__(device)
        self.views, self.lacks = {"": lambda a: a}, {}

    def give(self, a: np.ndarray, kind: NumberType, view: str = "") -> np.ndarray:
        """The array as it is written."""
        return as_written(a, kind)

    def take(self, y, kind: NumberType) -> np.ndarray | Unusable:
        """The array that was read; float32 counts as bfloat16 if it has only bfloat16 values."""
        y = super().take(y, kind) if kind.name != "bfloat16" else y
        if kind.name != "bfloat16" or not isinstance(y, np.ndarray):
            return y
        own = y.dtype == np.float32 and np.array_equal(kind.rounded(y, True), y, equal_nan=True)
        return carried(y, kind.name if own else y.dtype.name, kind)


def as_written(a: np.ndarray, kind: NumberType) -> np.ndarray:
    """The array in the type of its file."""
    return a.astype(np.float16) if kind.name == "float16" and a.dtype.kind == "f" else a


def write(path: Path, a: np.ndarray) -> None:
    """Write one array: C order, little-endian, version 1.0."""
    with path.open("wb") as file:
        npy.write_array(file, np.array(a, a.dtype.newbyteorder("<"), order="C"), version=(1, 0))


def read(path: Path) -> np.ndarray:
    """Read one array of numbers, in this machine's byte order; Unreadable if that fails."""
    if not path.is_file():  # opening a pipe would block
        raise Unreadable(f"{path.name} is no file")
    try:
        with path.open("rb") as file:
            version = npy.read_magic(file)
            if version not in READERS:
                raise Unreadable(f"{path.name} has .npy version {version}, wanted (1, 0)")
            with warnings.catch_warnings(action="ignore"):  # a header by Python 2 is read too
                shape, columns, dtype = READERS[version](file)
            if dtype.kind not in "biufc":
                raise Unreadable(f"{path.name} is an array of {dtype}, wanted numbers")
            held = path.stat().st_size - file.tell()
            if held > ARRAYS:
                raise Unreadable(f"{path.name} has {held} bytes, wanted at most {ARRAYS}")
            wanted = dtype.itemsize * int(np.prod(shape, dtype=object))
            if held != wanted:
                what = "is truncated" if held < wanted else "is too long"
                told = f"its header says {wanted} bytes for shape {shape}"
                raise Unreadable(f"{path.name} {what}: {told}, it has {held}")
            flat = np.frombuffer(file.read(), dtype)
    except UNREADABLE as error:
        raise Unreadable(f"{path.name} is not a readable .npy file: {error}") from None
    a = flat.reshape(shape, order="F" if columns else "C")
    return np.array(a, dtype.newbyteorder("="), order="C")


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
