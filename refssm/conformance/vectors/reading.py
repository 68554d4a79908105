"""Read and validate a file of vectors; an error is one sentence with the place in the file.

An error in a JSON value names the key, the wanted and the actual value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from refssm._declaration.operator import Operator
from refssm.catalog import OPERATORS
from refssm.conformance.checks.checks import types_of
from refssm.conformance.file_errors import DOCUMENT, contents
from refssm.conformance.number_types import number_type
from refssm.conformance.standard import C
from refssm.conformance.usage_error import UsageError
from refssm.conformance.vectors.document import (
    FORMAT,
    Output,
    Vector,
    Vectors,
    checksum,
    formats_of,
    hexadecimal,
)

FLOAT = re.compile(r"-?0x[01](\.[0-9a-f]+)?p[+-][0-9]{1,4}")
LONGEST = 60  # characters of a value in a message


class Malformed(Exception):
    """A value in the file is wrong; the message names its place."""


def number_of(value, at: str) -> float:
    """A finite number from its canonical hexadecimal text."""
    if not isinstance(value, str) or not FLOAT.fullmatch(value):
        raise Malformed(f"{at}: wanted a hexadecimal number like '-0x1.8p+1', got {told(value)}")
    try:
        x = float.fromhex(value)
    except OverflowError:
        raise Malformed(f"{at}: wanted a number of double precision, got {value}") from None
    if hexadecimal(x) != value:
        raise Malformed(f"{at}: wanted the spelling {hexadecimal(x)}, got {value}")
    return x


def keyed(given, at: str, keys) -> dict:
    """An object with exactly these keys."""
    if not isinstance(given, dict):
        raise Malformed(f"{at}: wanted an object, got {told(given)}")
    absent = next((key for key in keys if key not in given), None)
    if absent is not None:
        raise Malformed(f"{at}: wanted the key {absent!r}, got {told(list(given))}")
    unknown = next((key for key in given if key not in keys), None)
    if unknown is not None:
        listed = ", ".join(keys) or "no key"
        raise Malformed(f"{at}: wanted {listed}, got also the key {unknown!r}")
    return given


def listed(value, at: str) -> list:
    """A list."""
    if not isinstance(value, list):
        raise Malformed(f"{at}: wanted a list, got {told(value)}")
    return value


def text_of(value, at: str) -> str:
    """A non-empty string."""
    if not isinstance(value, str) or not value:
        raise Malformed(f"{at}: wanted a text, got {told(value)}")
    return value


def whole(value, at: str, most: int = 2**31) -> int:
    """An integer from 0 to `most` − 1."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Malformed(f"{at}: wanted a whole number from 0 to {most - 1}, got {told(value)}")
    return value


def told(value) -> str:
    """A value as short text."""
    try:
        text = json.dumps(value, ensure_ascii=True)
    except RecursionError:
        return "brackets nested too deeply"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


KEYS = ("format", "operator", "signature", "seed", "cases", "sha256")
CASE_KEYS = ("name", "dtype", "catches", "u", "allowed", "inputs", "parameters", "outputs")
AXES = 16


def files(paths: Iterable[Path]) -> list[Path]:
    """All files among the paths and the .json files of folders among them."""
    found = []
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        here = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not here:
            raise UsageError(f"{path}: a folder without a .json file in it")
        found += here
    return list(dict.fromkeys(found))


def read(path: Path) -> Vectors:
    """The vectors in a file; UsageError if it is invalid."""
    try:
        return _vectors(_document(path))
    except Malformed as wrong:
        raise UsageError(f"{path}: {wrong}") from None


def _document(path: Path) -> dict:
    try:
        text = contents(path, DOCUMENT).decode("utf-8")
        document = json.loads(text, object_pairs_hook=_once, parse_constant=_constant)
    except OSError as error:
        raise Malformed(error.strerror or "cannot be read") from None
    except UnicodeDecodeError:
        raise Malformed("wanted JSON in UTF-8, got other bytes") from None
    except RecursionError:
        raise Malformed("wanted the JSON of vectors, got brackets nested too deeply") from None
    except ValueError as error:  # JSONDecodeError, or whole numbers of thousands of digits
        raise Malformed(f"wanted JSON, got something else: {error}") from None
    return keyed(document, "the document", KEYS)


def _once(pairs):
    names = [name for name, _ in pairs]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise Malformed(f"the key {twice!r} appears twice in one object")
    return dict(pairs)


def _constant(name):
    raise Malformed(f"wanted hexadecimal numbers, got {name}")


def _vectors(document: dict) -> Vectors:
    if document["format"] != FORMAT:
        raise Malformed(f"format: wanted {FORMAT!r}, got {told(document['format'])}")
    op = next((op for op in OPERATORS if op.name == document["operator"]), None)
    if op is None:
        raise Malformed(
            f"operator: wanted a name of `refssm list`, got {told(document['operator'])}"
        )
    if document["signature"] != op.signature:
        came = told(document["signature"])
        raise Malformed(f"signature: wanted {op.signature!r} of {op}, got {came}")
    seed = whole(document["seed"], "seed", most=2**128)
    cases = listed(document["cases"], "cases")
    if not cases:
        raise Malformed("cases: wanted at least one, got none")
    read_cases = [_case(op, case, f"cases[{i}]") for i, case in enumerate(cases)]
    _different(read_cases)
    try:
        wanted = checksum(document)
    except UnicodeEncodeError:
        raise Malformed("wanted text that UTF-8 can encode, got half of a pair of \\u") from None
    if document["sha256"] != wanted:
        raise Malformed(f"sha256: wanted {wanted} for this content, got {told(document['sha256'])}")
    return Vectors(op, seed, read_cases)


def _different(cases: list[Vector]) -> None:
    """Names must differ between cases, and so must arguments."""
    names: set[str] = set()
    seen: dict[Any, int] = {}
    for i, case in enumerate(cases):
        if case.name in names:
            raise Malformed(f"cases[{i}].name: {case.name!r} appears twice")
        names.add(case.name)
        key = (case.dtype, str(dict(case.statics)), *(a.dtype.str for a in case.arrays))
        key += tuple((a.shape, a.tobytes()) for a in case.arrays)
        if key in seen:
            raise Malformed(f"cases[{i}]: the same arguments as cases[{seen[key]}]")
        seen[key] = i


def _case(op: Operator, given, at: str) -> Vector:
    case = keyed(given, at, CASE_KEYS)
    name, dtype = text_of(case["name"], f"{at}.name"), text_of(case["dtype"], f"{at}.dtype")
    if dtype not in types_of(op):
        listed = ", ".join(types_of(op))
        raise Malformed(f"{at}.dtype: wanted one of {listed}, got {told(dtype)}")
    u = hexadecimal(number_type(dtype).u)
    for key, wanted in {"u": u, "allowed": C}.items():
        if case[key] != wanted or isinstance(case[key], bool):
            raise Malformed(f"{at}.{key}: wanted {wanted!r}, got {told(case[key])}")
    catches = _catches(case["catches"], f"{at}.catches")
    arrays = _inputs(op, case["inputs"], dtype, f"{at}.inputs")
    statics = _statics(op, case["parameters"], f"{at}.parameters")
    try:
        shapes = op.output_shapes(*op.arrays(arrays, "fdFD"), **statics)
    except (TypeError, ValueError) as error:
        raise Malformed(f"{at}.inputs: {error}") from None
    kinds = op.output_types(*arrays)
    found = keyed(case["outputs"], f"{at}.outputs", op.outputs)
    outputs = [
        _output(found[name], shape, kind.kind, dtype, f"{at}.outputs.{name}")
        for name, shape, kind in zip(op.outputs, shapes, kinds, strict=True)
    ]
    return Vector(name, dtype, arrays, statics, outputs, catches)


def _catches(given, at) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(v, str) and v for v in given.values()):
        raise Malformed(f"{at}: wanted a text for each planted bug, by its name, got {told(given)}")
    return given


def _inputs(op: Operator, given, dtype: str, at: str) -> list[np.ndarray]:
    arguments = keyed(given, at, tuple(op.inputs))
    arrays = []
    for name, domain in op.inputs.items():
        here = f"{at}.{name}"
        argument = keyed(arguments[name], here, ("kind", "shape", "values"))
        usual = "complex" if np.dtype(dtype).kind == "c" else "real"
        kinds = {"flag": ("flag",), "offsets": ("integer",), "real": ("real",), "complex": (usual,)}
        kind, known = argument["kind"], kinds.get(domain.kind, tuple({"real", usual}))
        if kind not in known:
            raise Malformed(f"{here}.kind: wanted {' or '.join(known)}, got {told(kind)}")
        arrays.append(_array(argument, "values", kind, np.finfo(dtype).dtype, here))
    return arrays


def _statics(op: Operator, given, at: str) -> dict[str, int | float]:
    statics = keyed(given, at, op.static)
    return {
        name: number_of(value, f"{at}.{name}") if isinstance(value, str)
        else whole(value, f"{at}.{name}")
        for name, value in statics.items()
    }  # fmt: skip


def _output(given, shape, kind: str, dtype: str, at: str) -> Output:
    formats, name = formats_of(dtype), "complex" if kind == "c" else "real"
    output = keyed(given, at, ("kind", "shape", *formats, "k0", "k1"))
    if output["kind"] != name:
        raise Malformed(f"{at}.kind: wanted {name!r}, got {told(output['kind'])}")
    if output["shape"] != list(shape):
        wanted, came = list(shape), told(output["shape"])
        raise Malformed(f"{at}.shape: wanted {wanted} of these inputs, got {came}")
    values = {f: _array(output, f, name, np.dtype(f), at) for f in formats}
    values = {f: a.astype(np.result_type(a, np.float64)) for f, a in values.items()}
    k0, k1 = (_array(output, k, "real", np.dtype("float64"), at) for k in ("k0", "k1"))
    _same_number(values, at)
    size = np.abs(values["float64"])
    for key, k in (("k0", k0), ("k1", k1)):
        if not (k >= size).all():
            i = int(np.argmin(k >= size))
            came = f"{k.ravel()[i]:.6g} for |y| = {size.ravel()[i]:.6g}"
            raise Malformed(f"{at}.{key}[{i}]: wanted |y| or more, got {came}")
    return Output(values, k0, k1)


def _same_number(values, at) -> None:
    """float32 values must be the rounded float64 values; at a tie either neighbour is valid."""
    if "float32" not in values:
        return
    wide, narrow = (np.atleast_1d(values[f]).ravel().view(float) for f in ("float64", "float32"))
    with np.errstate(over="ignore"):
        rounded = wide.astype(np.float32).astype(float)
    wrong = (narrow != rounded) & (np.abs(narrow - wide) != np.abs(rounded - wide))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise Malformed(
            f"{at}.float32[{i}]: wanted {hexadecimal(rounded[i])}, float64[{i}] rounded, "
            f"got {hexadecimal(narrow[i])}"
        )


def _array(given: dict, key: str, kind: str, precision: np.dtype, at: str) -> np.ndarray:
    """An array from one list of numbers."""
    shape = listed(given["shape"], f"{at}.shape")
    sizes = [whole(n, f"{at}.shape") for n in shape]
    if len(sizes) > AXES:
        raise Malformed(f"{at}.shape: wanted at most {AXES} axes, got {len(sizes)}")
    values, count = listed(given[key], f"{at}.{key}"), math.prod(sizes)
    wanted = count * (2 if kind == "complex" else 1)
    if len(values) != wanted:
        parts = " parts" if kind == "complex" else ""
        raise Malformed(
            f"{at}.{key}: wanted {wanted}{parts} for the shape {sizes}, got {len(values)}"
        )
    if kind == "flag":
        wrong = next((i for i, v in enumerate(values) if not isinstance(v, bool)), None)
        if wrong is not None:
            raise Malformed(f"{at}.{key}[{wrong}]: wanted true or false, got {told(values[wrong])}")
        return np.array(values, bool).reshape(sizes)
    if kind == "integer":
        return np.array([whole(v, f"{at}.{key}[{i}]") for i, v in enumerate(values)], np.int64)
    numbers = [number_of(v, f"{at}.{key}[{i}]") for i, v in enumerate(values)]
    a = np.array(numbers, np.float64)
    with np.errstate(over="ignore"):
        held = a.astype(precision)
    if not (held == a).all():
        i = int(np.argmin(held == a))
        raise Malformed(
            f"{at}.{key}[{i}]: wanted a number of {precision.name}, got {told(values[i])}"
        )
    if kind == "complex":
        held = held.view(np.result_type(precision, 1j))
    return held.reshape(sizes)
