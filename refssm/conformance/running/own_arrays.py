"""Judge on the author's own arrays: `refssm verify … --inputs batch.npz`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from refssm._layout import canonical, parse
from refssm._operator import COMPILED_TYPES
from refssm.catalog import from_state
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.calling.recorded import Recorded, in_order, stored
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks import special_values
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.checks import VALUE, Check, types_of
from refssm.conformance.diagnosis.failure import CANONICAL
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.expected import judged_type
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.number_types import number_type
from refssm.conformance.running.session import trials_of
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError


def judge_inputs(session: Session, path: Path) -> Iterator[Result]:
    """Judge the value on the author's arrays, saved under the names of arguments."""
    given = stored(path)
    found = [trial for trial in trials_of(session) if not trial.offer.absent]
    fitting = [t for t in found if {*t.op.inputs, *t.op.static} <= set(given)]
    if found and not fitting:
        arguments(found[0].op, given, path, ())  # raises: an argument is missing
    for trial in fitting:
        op = trial.op
        usual = _canonical(op, given, trial.offer.layout, path)
        arrays, statics, dtype = arguments(op, usual, path, session.settings.types)
        if lacking := trial.offer.lacks.get(dtype):
            raise UsageError(lacking)
        # saved outputs have the batch axes that the inputs have in the file
        if not isinstance(session.worker, Recorded):
            arrays = [_with_all_axes(op, i, a, path) for i, a in enumerate(arrays)]
        check = Check(VALUE, op, dtype, 1, lambda *_: wrong(""))
        started, doubt = time.perf_counter(), certify(op)
        # find out whether calls are batched or slice by slice
        trial.candidate.probe({dtype: ordinary_case(op, dtype)})
        candidate = trial.candidate.judged_in(dtype)
        try:
            verdict = _given(candidate, arrays, statics)
        except np.linalg.LinAlgError as error:  # the reference fails
            raise UsageError(f"{path}: {error}") from None
        if doubt:
            verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
        details = {"examples": 1, "hint": f"inputs: {path}"}
        if verdict.grade == "-" and not verdict.error:
            yield trial.wording.not_judged(check, verdict, started, details)
            continue
        if session.settings.evidence and not verdict.ok:
            details["evidence"] = gathered(op, verdict, arrays, statics)
        yield trial.wording.judged(check, verdict, started, details)


def _canonical(op, given, layout: str, path) -> dict[str, np.ndarray]:
    """The arrays in the catalog's layout, from the declared layout."""
    if not layout or CANONICAL in given:
        return given
    told, usual, back = parse(op, layout), canonical(op), dict(given)
    for name, axes, wanted in zip(op.inputs, told.inputs, usual.inputs, strict=True):
        back[name] = in_order(given[name], axes, wanted, told.omitted, f"{path}: `{name}`")
    return back


def _type_of(op, arrays) -> str:
    """The name of the type to judge in; double precision if there are no array inputs."""
    return types_of(op)[-1] if op.constructor else judged_type(arrays).name


def arguments(op, given, path, types) -> tuple[list[np.ndarray], dict[str, int | float], str]:
    """The arrays, the keyword arguments, and the type to judge in; UsageError if they misfit."""
    if absent := [name for name in (*op.inputs, *op.static) if name not in given]:
        takes = ", ".join([*op.inputs, *op.static])
        raise UsageError(f"{path} has no array {absent[0]!r}; {op} needs {takes}")
    statics = {name: _static(given[name]) for name in op.static}
    half = next((number_type(t) for t in types if number_type(t).half), None)
    try:
        arrays = [given[name] for name in op.inputs]
        if half is None:
            arrays = op.arrays(arrays, COMPILED_TYPES)
        else:
            if any(a.dtype.kind == "c" for a in arrays):
                raise ValueError(f"its numbers are complex, wanted {half.name}")
            pairs = list(zip(op.inputs, arrays, strict=True))
            arrays = [a != 0 if n in op.flags else a.astype(np.float32) for n, a in pairs]
            numbers = [a for a in arrays if a.dtype.kind != "b"]
            if any(not np.array_equal(half.rounded(a, True), a, equal_nan=True) for a in numbers):
                raise ValueError(f"its numbers are not {half.name} numbers")
        op.sizes(*arrays, **statics)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return arrays, statics, half.name if half else _type_of(op, arrays)


def _with_all_axes(op, i, a, path) -> np.ndarray:
    """An argument with all batch axes; those that the file lacks get length 1."""
    axes, core, name = canonical(op).inputs[i], len(op.input_dims[i]), list(op.inputs)[i]
    if not core <= a.ndim <= len(axes):
        wanted = f"the axes {' '.join(axes)}" if axes else "one number"
        raise UsageError(f"{path}: {op}: `{name}` has shape {a.shape}, wanted {wanted}")
    return a.reshape((1,) * (len(axes) - a.ndim) + a.shape)


def _static(n: np.ndarray):
    """The value of a 0-d array; the operator refuses other shapes."""
    return n.tolist()


def _given(candidate: Candidate, arrays, statics) -> Verdict:
    op = candidate.op
    for a, domain in zip(arrays, op.inputs.values(), strict=True):
        first = a[..., :1, :] if domain.span else a[..., :1]
        if domain.decay and not from_state(op) and not np.isfinite(first).all():
            return Verdict(
                "-", notes=("not judged: a_0 is not finite, and right programs differ in 0·a_0",)
            )
    try:
        return special_values.at(candidate, *candidate.narrowed(arrays, statics))
    except Declined:
        return Verdict("-", notes=("the implementation declined these inputs",))
    except Broken as broken:
        return broken.verdict
