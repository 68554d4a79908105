"""The file format: JSON with hexadecimal floats and a checksum; equal vectors give equal bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from refssm._declaration.operator import Operator
from refssm.conformance.gauges.gauge import Gauge
from refssm.conformance.number_types import number_type
from refssm.conformance.record_lines import record_lines
from refssm.conformance.standard import C
from refssm.conformance.usage_error import UsageError

FORMAT = "refssm-vectors/1"
LISTS = ("cases", "catches", "inputs", "outputs")  # each item on a line of its own
K_BITS = 8  # bits of K0 and K1, rounded up, so that library versions give the same file


@dataclass(frozen=True)
class Output:
    """One output, correctly rounded in each format, and its bounds in units of u."""

    values: Mapping[str, np.ndarray]  # by format; float64 is always there
    k0: np.ndarray
    k1: np.ndarray

    @property
    def gauge(self) -> Gauge:
        """The value in double precision with K0 and K1 for each entry."""
        return Gauge(self.values["float64"], self.k0, self.k1, peak=0.0)


@dataclass(frozen=True)
class Vector:
    """One case: arguments, outputs, and the planted bugs that it shows and no earlier case does."""

    name: str
    dtype: str
    arrays: list[np.ndarray]
    statics: Mapping[str, int | float]
    outputs: list[Output]
    catches: Mapping[str, str] = field(default_factory=dict)  # names of bugs and their descriptions

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """The gauge of every output."""
        return tuple(y.gauge for y in self.outputs)


@dataclass(frozen=True)
class Vectors:
    """The contents of a file: cases of one operator."""

    op: Operator
    seed: int
    cases: list[Vector]


def formats_of(dtype: str) -> list[str]:
    """The formats that outputs are rounded to: that of the arguments, and double precision."""
    own = np.finfo(dtype).dtype.name
    return list(dict.fromkeys([own, "float64"]))


def text_of(vectors: Vectors) -> str:
    """The text of the file, one array a line; the checksum comes last."""
    document = tree(vectors)
    lists = (*LISTS, *vectors.op.outputs)
    return record_lines(document | {"sha256": checksum(document)}, lists)


def save(path: Path, text: str) -> None:
    """Write the whole file or nothing; UsageError if that fails."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        try:
            partial.write_text(text, encoding="utf-8", newline="\n")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None


def checksum(document: Mapping) -> str:
    """SHA-256 of the document without its checksum: keys sorted, no spaces, UTF-8."""
    bare = {key: value for key, value in document.items() if key != "sha256"}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def tree(vectors: Vectors) -> dict:
    """The document without its checksum, as JSON data."""
    op = vectors.op
    return {
        "format": FORMAT,
        "operator": op.name,
        "signature": op.signature,
        "seed": vectors.seed,
        "cases": [_case(op, vector) for vector in vectors.cases],
    }


def _case(op: Operator, vector: Vector) -> dict:
    arguments = zip(op.inputs, vector.arrays, strict=True)
    outputs = zip(op.outputs, vector.outputs, strict=True)
    return {
        "name": vector.name,
        "dtype": vector.dtype,
        "catches": dict(vector.catches),
        "u": hexadecimal(number_type(vector.dtype).u),
        "allowed": C,
        "inputs": {name: {**_shaped(a), "values": numbers(a)} for name, a in arguments},
        "parameters": {name: static(value) for name, value in vector.statics.items()},
        "outputs": {name: _output(y) for name, y in outputs},
    }


def _output(y: Output) -> dict:
    values = {name: numbers(a) for name, a in y.values.items()}
    bounds = {"k0": numbers(y.k0), "k1": numbers(y.k1)}
    return {**_shaped(y.values["float64"]), **values, **bounds}


def _shaped(a: np.ndarray) -> dict:
    kind = {"b": "flag", "i": "integer", "c": "complex", "f": "real"}[a.dtype.kind]
    return {"kind": kind, "shape": list(a.shape)}


def numbers(a: np.ndarray) -> list:
    """Entries in C order as JSON data; real and imaginary parts alternate."""
    flat = np.ascontiguousarray(a).ravel()
    if a.dtype.kind in "bi":
        return flat.tolist()
    if a.dtype.kind == "c":
        flat = flat.view(np.finfo(a.dtype).dtype)
    return [hexadecimal(x) for x in flat.tolist()]


def hexadecimal(x: float) -> str:
    """x as C's %a prints it, without zeros at the end: `-0x1.8p+1` is −3."""
    mantissa, _, exponent = x.hex().partition("p")
    return f"{mantissa.rstrip('0').removesuffix('.') if '.' in mantissa else mantissa}p{exponent}"


def static(value) -> int | str:
    """An integer as it is, any other number hexadecimal."""
    return int(value) if isinstance(value, int | np.integer) else hexadecimal(float(value))


def few_bits(k: np.ndarray, least: np.ndarray) -> np.ndarray:
    """max(k, least), rounded up to `K_BITS` bits."""
    m, e = np.frexp(np.maximum(k, least).astype(float))
    return np.ldexp(np.ceil(np.ldexp(m, K_BITS)), e - K_BITS)


def renamed(cases: list[Vector]) -> list[Vector]:
    """Cases with names such as "float32-1"."""
    count: dict[str, int] = {}
    named = []
    for case in cases:
        count[case.dtype] = count.get(case.dtype, 0) + 1
        named.append(replace(case, name=f"{case.dtype}-{count[case.dtype]}"))
    return named
