"""Judge on the author's own arrays: `refssm verify … --inputs batch.npz`."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from refssm._operator import COMPILED_TYPES
from refssm.conformance import special
from refssm.conformance.candidate import Broken, Candidate
from refssm.conformance.certify import certify
from refssm.conformance.checks import Check
from refssm.conformance.judge import Verdict, wrong
from refssm.conformance.plugin import UsageError, operator_named
from refssm.conformance.session import Result, Session
from refssm.conformance.sweep import Declined

UNREADABLE = (OSError, ValueError, EOFError, BadZipFile, zlib.error, MemoryError)


def judge_inputs(session: Session, path: Path) -> Iterator[Result]:
    """Judge the value on the author's own arrays, saved by argument name."""
    try:
        stored = np.load(path, allow_pickle=False)
        given = dict(stored) if isinstance(stored, NpzFile) else {}
    except UNREADABLE as error:
        raise UsageError(f"{path}: not a readable .npz file: {error}") from None
    if not given:
        raise UsageError(f"{path}: not an .npz file with arrays in it")
    found = [(operator_named(o.name), o) for o in session.worker.found if o.judged]
    fitting = [(op, o) for op, o in found if {*op.inputs, *op.static} <= set(given)]
    if not fitting:
        op = found[0][0]
        absent = next(name for name in (*op.inputs, *op.static) if name not in given)
        raise UsageError(f"{path} has no array {absent!r}; {op} takes {', '.join(op.inputs)}")
    for op, offer in fitting:
        statics = {name: int(given[name]) for name in op.static}
        try:
            arrays = op.arrays([given[name] for name in op.inputs], COMPILED_TYPES)
            op.sizes(*arrays, **statics)
        except (TypeError, ValueError) as error:
            raise UsageError(f"{path}: {error}") from None
        candidate = Candidate(op, session.worker, offer)
        check = Check("value", op, np.result_type(*arrays).name, 1, lambda *_: wrong(""))
        started, doubt = time.perf_counter(), certify(op)
        try:
            verdict = _given(candidate, arrays, statics)
        except np.linalg.LinAlgError as error:  # our reference has no answer to compare with
            raise UsageError(f"{path}: {error}") from None
        if doubt:
            verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
        details = {"examples": 1, "hint": f"inputs: {path}"}
        yield session.told(check, candidate, verdict, started, details)


def _given(candidate: Candidate, arrays, statics) -> Verdict:
    op = candidate.op
    for a, domain in zip(arrays, op.inputs.values(), strict=True):
        if domain.span and not op.name.endswith("_from") and not np.isfinite(a[..., :1, :]).all():
            return Verdict("-", notes=("a_0 is not finite: both readings of 0·a_0 are in use",))
    try:
        return special.at(candidate, candidate.narrowed(arrays), statics)
    except Declined:
        return Verdict("-", notes=("the implementation declined these inputs",))
    except Broken as broken:
        return broken.verdict
