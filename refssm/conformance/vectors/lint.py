"""Validate files of vectors; if asked, compute every number again by both oracles."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from refssm.conformance.usage_error import UsageError
from refssm.conformance.vectors.document import Vector, Vectors, hexadecimal
from refssm.conformance.vectors.draw import drawn_again, planted
from refssm.conformance.vectors.making import certified
from refssm.conformance.vectors.reading import read


def sound(path: Path, thorough: bool) -> Vectors:
    """The vectors of a file; UsageError with one sentence if anything is wrong."""
    vectors = read(path)
    known = {bug.name: bug.what for bug in planted(vectors.op)}
    for i, case in enumerate(vectors.cases):
        for name, what in case.catches.items():
            if known.get(name) != what:
                wanted = f"{known[name]!r}" if name in known else f"a planted bug of {vectors.op}"
                raise UsageError(
                    f"{path}: cases[{i}].catches.{name}: wanted {wanted}, got {what!r}"
                )
        if thorough:
            _recomputed(path, vectors, i, case)
    return vectors


def _recomputed(path: Path, vectors: Vectors, i: int, case: Vector) -> None:
    """UsageError if an output differs from the oracles' or a bound from the computed one."""
    drawn = drawn_again(vectors.op, case.dtype, case.arrays, case.statics)
    if drawn is None:
        raise UsageError(f"{path}: cases[{i}]: wanted inputs that can be judged, got others")
    again = certified(drawn)
    for name, stored, wanted in zip(vectors.op.outputs, case.outputs, again.outputs, strict=True):
        pairs = {f: (stored.values[f], wanted.values[f]) for f in wanted.values}
        pairs |= {"k0": (stored.k0, wanted.k0), "k1": (stored.k1, wanted.k1)}
        for key, (came, right) in pairs.items():
            flat = [np.atleast_1d(a).ravel().view(float) for a in (came, right)]
            differ = np.flatnonzero(flat[0] != flat[1])
            if differ.size:
                j = int(differ[0])
                came, right = (hexadecimal(float(a[j])) for a in flat)
                place = f"{path}: cases[{i}].outputs.{name}.{key}[{j}]"
                raise UsageError(f"{place}: wanted {right}, got {came}")
