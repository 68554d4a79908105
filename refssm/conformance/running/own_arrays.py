"""Judge on the author's own arrays: `refssm verify … --inputs batch.npz`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from refssm._layout import canonical, parse, restored
from refssm._operator import COMPILED_TYPES
from refssm.catalog import from_state
from refssm.conformance.calling.adapters.numpy_arrays import carried
from refssm.conformance.calling.finding import UsageError, operator_named, short
from refssm.conformance.calling.implementation import Offer
from refssm.conformance.calling.one_call import Outcome
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.checks import special_values as special
from refssm.conformance.checks.candidate import Broken, Candidate
from refssm.conformance.checks.checks import Check, types_of
from refssm.conformance.checks.sweep import Declined
from refssm.conformance.diagnosis.failure import CANONICAL
from refssm.conformance.file_errors import UNREADABLE
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.expected import judged_type
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.running.session import Session
from refssm.conformance.standard import number_type


def judge_inputs(session: Session, path: Path) -> Iterator[Result]:
    """Judge the value on the author's own arrays, saved by argument name."""
    given = stored(path)
    found = [trial for trial in session.trials() if not trial.offer.absent]
    fitting = [t for t in found if {*t.op.inputs, *t.op.static} <= set(given)]
    if found and not fitting:
        arguments(found[0].op, given, path, ())  # says which is absent
    for trial in fitting:
        op = trial.op
        usual = _canonical(op, given, trial.offer.layout, path)
        arrays, statics, dtype = arguments(op, usual, path, session.types)
        if not isinstance(session.worker, Recorded):  # whose results have the axes of the inputs
            arrays = [_with_all_axes(op, i, a, path) for i, a in enumerate(arrays)]
        check = Check("value", op, dtype, 1, lambda *_: wrong(""))
        started, doubt = time.perf_counter(), certify(op)
        trial.candidate.probe({dtype: ordinary_case(op, dtype)})  # batched or slice by slice
        candidate = trial.candidate.judged_in(dtype)
        try:
            verdict = _given(candidate, arrays, statics)
        except np.linalg.LinAlgError as error:  # our reference has no answer to compare with
            raise UsageError(f"{path}: {error}") from None
        if doubt:
            verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
        details = {"examples": 1, "hint": f"inputs: {path}"}
        if verdict.grade == "-" and not verdict.error:
            yield trial.unjudged(check, verdict, started, details)
            continue
        if session.evidence and not verdict.ok:
            details["evidence"] = gathered(op, verdict, arrays, statics)
        yield trial.told(check, verdict, started, details)


def stored(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or of an .npy file under the name ""."""
    try:
        if path.is_fifo():  # would be waited for
            raise OSError("a pipe")
        with path.open("rb") as file:  # a file that NumPy opens it leaves open if it is none
            loaded = np.load(file, allow_pickle=False)
            given = dict(loaded) if isinstance(loaded, NpzFile) else {"": np.asarray(loaded)}
    except UNREADABLE as error:
        raise UsageError(f"{path}: not a readable .npz file: {short(f'{error}')}") from None
    if not given or ("" in given and path.suffix != ".npy"):
        raise UsageError(f"{path}: not an .npz file with arrays in it")
    return given


def _canonical(op, given, layout: str, path) -> dict[str, np.ndarray]:
    """The arrays in the catalog's layout: their author's are in the layout that was declared."""
    if not layout or CANONICAL in given:
        return given
    told, usual, back = parse(op, layout), canonical(op), dict(given)
    for name, axes, wanted in zip(op.inputs, told.inputs, usual.inputs, strict=True):
        back[name] = _restored(given[name], axes, wanted, told.omitted, f"{path}: `{name}`")
    return back


def _restored(a, axes, wanted, omitted, what) -> np.ndarray:
    """One array with its axes in the catalog's order; batch axes left out have length one."""
    kept = tuple(axis for axis in wanted if axis not in omitted)
    try:
        a = restored(a, axes, kept)
    except ValueError as error:
        raise UsageError(f"{what} has {error}") from None
    return np.expand_dims(a, tuple(i for i, axis in enumerate(wanted) if axis in omitted))


def _type_of(op, arrays) -> str:
    """The type that arguments are judged in; where there are none, double precision."""
    return types_of(op)[-1] if op.constructor else judged_type(arrays).name


def arguments(op, given, path, types) -> tuple[list[np.ndarray], dict[str, int | float], str]:
    """The arguments, and the type they are judged in."""
    if absent := [name for name in (*op.inputs, *op.static) if name not in given]:
        takes = ", ".join([*op.inputs, *op.static])
        raise UsageError(f"{path} has no array {absent[0]!r}; {op} takes {takes}")
    statics = {name: _static(given[name]) for name in op.static}
    half = next((number_type(t) for t in types if number_type(t).half), None)
    try:
        arrays = [given[name] for name in op.inputs]
        if half is None:
            arrays = op.arrays(arrays, COMPILED_TYPES)
        else:
            if any(a.dtype.kind == "c" for a in arrays):
                raise ValueError(f"complex numbers in it are not {half.name}")
            pairs = list(zip(op.inputs, arrays, strict=True))
            arrays = [a != 0 if n in op.flags else a.astype(np.float32) for n, a in pairs]
            numbers = [a for a in arrays if a.dtype.kind != "b"]
            if any(not np.array_equal(half.rounded(a, True), a, equal_nan=True) for a in numbers):
                raise ValueError(f"numbers in it are not {half.name}")
        op.sizes(*arrays, **statics)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None
    return arrays, statics, half.name if half else _type_of(op, arrays)


def _with_all_axes(op, i, a, path) -> np.ndarray:
    """An argument with its batch axes; those that its author left out have length one."""
    axes, core, name = canonical(op).inputs[i], len(op.input_dims[i]), list(op.inputs)[i]
    if not core <= a.ndim <= len(axes):
        wanted = f"the axes {' '.join(axes)}" if axes else "one number"
        raise UsageError(f"{path}: {op}: `{name}` has shape {a.shape}, wanted {wanted}")
    return a.reshape((1,) * (len(axes) - a.ndim) + a.shape)


def _static(n: np.ndarray):
    """A single number as Python's; the operator refuses everything else."""
    return n.tolist()


def _given(candidate: Candidate, arrays, statics) -> Verdict:
    op = candidate.op
    for a, domain in zip(arrays, op.inputs.values(), strict=True):
        first = a[..., :1, :] if domain.span else a[..., :1]
        if domain.decay and not from_state(op) and not np.isfinite(first).all():
            return Verdict("-", notes=("a_0 is not finite: both readings of 0·a_0 are in use",))
    try:
        return special.at(candidate, *candidate.narrowed(arrays, statics))
    except Declined:
        return Verdict("-", notes=("the implementation declined these inputs",))
    except Broken as broken:
        return broken.verdict


class Recorded:
    """Stands for an implementation by a result it gave earlier: `--output out.npy`."""

    def __init__(self, name: str, path: Path, layout: str = ""):
        op, given = operator_named(name), stored(path)
        wanted: list[str] = [*op.outputs] if "" not in given else [""]
        absent = [y for y in wanted if y not in given]
        if absent or len(wanted) != len(op.outputs):
            needs = f".npz with {', '.join(op.outputs)}"
            needs += ", or .npy" if len(op.outputs) == 1 else ""
            raise UsageError(f"{path} has not the outputs of {op}: {needs}")
        outputs = [given[y] for y in wanted]
        if layout:
            try:
                told, usual = parse(op, layout), canonical(op)
            except ValueError as error:
                raise UsageError(str(error)) from None
            pairs = zip(outputs, told.outputs, usual.outputs, strict=True)
            outputs = [_restored(y, a, w, told.omitted, f"{path}") for y, a, w in pairs]
        self.outputs = tuple(outputs)
        self.found = [Offer(op.name, layout=layout)]

    def call(self, name: str, arrays, statics, **how) -> Outcome:
        """The result as it was saved, whatever the arguments."""
        del name, statics
        kind = number_type(how.get("dtype") or judged_type(arrays))
        return Outcome("ok", tuple(carried(y, y.dtype.name, kind) for y in self.outputs))

    def close(self) -> None:
        """Nothing to end."""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
