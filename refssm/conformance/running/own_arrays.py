"""Judge on the author's own arrays: `refssm verify … --inputs batch.npz`."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from refssm._declaration.layout import canonical, parse, parts
from refssm._declaration.operator import COMPILED_TYPES
from refssm.catalog import from_state
from refssm.conformance.calling.candidate import Broken
from refssm.conformance.calling.one_call import Declined
from refssm.conformance.calling.recorded import Recorded, in_order, stored
from refssm.conformance.cases.case import ordinary_case
from refssm.conformance.cases.cotangents import random_like
from refssm.conformance.checks import special_values
from refssm.conformance.checks.checks import (
    GRADIENT,
    PROFILES,
    VALUE,
    Check,
    checks_of,
    gradient_at,
    types_of,
)
from refssm.conformance.checks.law import Rule
from refssm.conformance.diagnosis.failure import CANONICAL
from refssm.conformance.diagnosis.script import STORY
from refssm.conformance.judging.certificate import certify
from refssm.conformance.judging.evidence import gathered
from refssm.conformance.judging.result import Result
from refssm.conformance.judging.verdict import Verdict, wrong
from refssm.conformance.number_types import judged_type, number_type
from refssm.conformance.running.first_calls import first_calls
from refssm.conformance.running.own_faults import fault, guarded
from refssm.conformance.running.session import Trial, trials_of
from refssm.conformance.running.settings import Session
from refssm.conformance.usage_error import UsageError

SIZE = "size/"  # prefix of the size of an axis in a file; only for merged axes


def judge_inputs(session: Session, path: Path) -> Iterator[Result]:
    """Judge value and gradient on the author's arrays, saved under the names of arguments.

    The gradient is judged if there is a VJP. Its cotangents are those of the file, called `d` and
    the name of the output, or random numbers of the run's seed.
    """
    given = stored(path)
    found = [trial for trial in trials_of(session) if not trial.offer.absent]
    fitting = [t for t in found if {*t.op.inputs, *t.op.static} <= set(given)]
    if found and not fitting:
        arguments(found[0].op, given, path, ())  # raises: an argument is missing
    asked = session.settings.only_checks or (VALUE.name, GRADIENT.name)
    for trial in fitting:
        session.begin_another()
        own = _OwnData(session, trial, path, given)
        missing = own.without_gradient() if GRADIENT.name in asked else ""
        differentiate = GRADIENT.name in asked and trial.offer.has_vjp and not missing
        cotangents = own.cotangents() if differentiate else None  # a misfit ends the run here
        if VALUE.name in asked:
            yield own.value()
        if missing:
            yield trial.wording.skipped(GRADIENT.name, own.dtype, missing)
        if cotangents:
            yield own.gradient(*cotangents)


class _OwnData:
    """The arrays of a file for one implementation."""

    def __init__(self, session: Session, trial: Trial, path: Path, given):
        op = trial.op
        self.session, self.trial, self.path, self.given = session, trial, path, given
        self.usual = _canonical(op, given, trial.offer.layout, path)
        arrays, self.statics, self.dtype = arguments(op, self.usual, path, session.settings.types)
        if trial.scope.only_complex and number_type(self.dtype).carrier.kind != "c":
            raise UsageError(f"{path}: its numbers are real, and {op} is declared for complex ones")
        if lacking := trial.offer.lacks.get(self.dtype):
            raise UsageError(f"{path}: {op}: {lacking}")
        # saved outputs have the batch axes that the inputs have in the file
        if not isinstance(session.worker, Recorded):
            arrays = [_with_all_axes(op, i, a, path) for i, a in enumerate(arrays)]
        self.arrays = arrays
        # find out whether calls are batched or slice by slice
        first_calls(trial.candidate, {self.dtype: ordinary_case(op, self.dtype)})
        self.candidate = trial.candidate.judged_in(self.dtype)

    @property
    def unused(self) -> list[str]:
        """Names in the file that are no argument and no cotangent; not those of a kept failure."""
        op = self.trial.op
        known = {*op.inputs, *op.static, *(f"d{y}" for y in op.outputs), CANONICAL, STORY}
        return [name for name in self.given if name not in known and "/" not in name]

    def value(self) -> Result:
        """The result of the check `value`."""
        unused = ", ".join(f"`{name}`" for name in self.unused)
        notes = (f"not used: {unused} of {self.path}",) if unused else ()
        return self._judged(VALUE, "the value", lambda: _given(self, notes))

    def without_gradient(self) -> str:
        """Why the gradient is not judged although it was asked for, or ""."""
        op, offer = self.trial.op, self.trial.offer
        of_file = [f"d{y}" for y in op.outputs if f"d{y}" in self.given]
        asked = of_file or GRADIENT.name in self.session.settings.only_checks
        if not op.differentiable:
            return f"{op} has no gradient" if asked else ""
        if not offer.has_vjp:
            what = f"{self.path} has {of_file[0]}: " if of_file else ""
            return f"{what}needs {op}_vjp" if asked else ""
        if not any(c.rule is GRADIENT for c in self._checks()):
            return f"gradients of {op} cannot be judged in {self.dtype}"
        if not all(np.isfinite(a).all() for a in self.arrays):
            return "not judged where an argument is not finite"
        return ""

    def _checks(self):
        return checks_of(self.trial.op, PROFILES["thorough"], [self.dtype], vjp=True)

    def gradient(self, cotangents: list[np.ndarray], whence: str) -> Result:
        """The result of the check `gradient`."""

        def judged() -> Verdict:
            arrays, statics = self.candidate.narrowed(self.arrays, self.statics)
            shapes = self.trial.op.output_shapes(*arrays, **statics)
            if [d.shape for d in cotangents] != [*shapes]:
                return Verdict("-", notes=("`only` changes the shape of the outputs",))
            return gradient_at(self.candidate, cotangents, arrays, statics)

        return self._judged(GRADIENT, f"the gradient for {whence}", judged)

    def cotangents(self) -> tuple[list[np.ndarray], str]:
        """The cotangents, and where they come from."""
        op, path = self.trial.op, self.path
        shapes = op.output_shapes(*self.arrays, **self.statics)
        types = op.output_types(*self.arrays)
        names = [f"d{y}" for y in op.outputs]
        absent = [name for name in names if name not in self.usual]
        kind, seed = number_type(self.dtype), self.session.settings.seed
        if len(absent) == len(names):
            rng = np.random.default_rng(seed)
            drawn = [random_like(s, t, rng) for s, t in zip(shapes, types, strict=True)]
            made = [kind.rounded(d, not np.iscomplexobj(d)) for d in drawn]
            return made, f"random cotangents, seed {seed}"
        if absent:
            raise UsageError(
                f"{path} has no cotangent {absent[0]!r}; {op} needs {', '.join(names)}"
            )
        made = []
        for name, shape, dtype in zip(names, shapes, types, strict=True):
            d = self.usual[name]
            if d.dtype.kind not in "iufc" or (d.dtype.kind == "c" and dtype.kind != "c"):
                raise UsageError(f"{path}: `{name}` has type {d.dtype}, wanted {dtype}")
            if d.ndim < len(shape):
                d = d.reshape((1,) * (len(shape) - d.ndim) + d.shape)
            if d.shape != shape:
                raise UsageError(
                    f"{path}: `{name}` has shape {self.given[name].shape}, wanted {shape}"
                )
            exact = d.astype(np.result_type(dtype, np.float64))
            made.append(kind.rounded(exact, dtype.kind != "c"))
            if not np.array_equal(made[-1], exact):
                raise UsageError(f"{path}: `{name}` has values that are not {self.dtype} numbers")
        return made, f"the cotangents {', '.join(names)} of the file"

    def _judged(self, rule: Rule, what: str, judge: Callable[[], Verdict]) -> Result:
        """The result of one check of one call."""
        trial, op = self.trial, self.trial.op
        check = Check(rule, op, self.dtype, 1, lambda *_: wrong(""))
        started, doubt = time.perf_counter(), certify(op)
        verdict = guarded(lambda: self._verdict(judge), fault)
        if doubt:
            verdict = Verdict("F", np.inf, 0.0, f"not judged: {doubt}", error=True)
        hint = f"inputs: {self.path}, {what}"
        result = trial.wording.judged(check, verdict, started, hint=hint)
        if rule is VALUE and not verdict.ok and self.session.settings.evidence:
            evidence = gathered(op, verdict, self.arrays, self.statics)
            result = replace(result, evidence=evidence)
        return result

    def _verdict(self, judge: Callable[[], Verdict]) -> Verdict:
        """The verdict on the call; UsageError where the reference cannot take the arrays."""
        try:
            return judge()
        except Declined:
            return Verdict("-", notes=("the implementation declined these inputs",))
        except Broken as broken:
            return broken.verdict
        except np.linalg.LinAlgError as error:  # the reference fails
            raise UsageError(f"{self.path}: {error}") from None


def _canonical(op, given, layout: str, path) -> dict[str, np.ndarray]:
    """The arrays in the catalog's layout, from the declared layout."""
    if not layout or CANONICAL in given:
        return given
    told, usual, back = parse(op, layout), canonical(op), dict(given)
    known = dict(zip(op.inputs, zip(told.inputs, usual.inputs, strict=True), strict=True))
    for name, *axes in zip(op.outputs, told.outputs, usual.outputs, strict=True):
        known |= {f"d{name}": tuple(axes)} if f"d{name}" in given else {}
    sizes = _sizes(op, given, {name: axes for name, (axes, _) in known.items()})
    for name, (axes, wanted) in known.items():
        what = f"{path}: `{name}`"
        for unknown in ([p for p in parts(axis) if p not in sizes] for axis in axes):
            if len(unknown) > 1:
                lacks = f"no array has {' or '.join(unknown)} as an axis of its own"
                advice = f"add the size to the file, as the number `{SIZE}{unknown[0]}`"
                raise UsageError(
                    f"{what} with the axes {' '.join(axes)} cannot be split: {lacks}; {advice}"
                )
        back[name] = in_order(given[name], axes, wanted, told.omitted, what, sizes)
    return back


def _sizes(op, given, axes_of) -> dict[str, int]:
    """The sizes of the axes in a file: of those that are not merged, and numbers as `size/h`."""
    sizes = {}
    for name, axes in axes_of.items():
        if given[name].ndim == len(axes):
            pairs = zip(axes, given[name].shape, strict=True)
            sizes |= {axis: int(n) for axis, n in pairs if parts(axis) == (axis,)}
    of_file = {n.removeprefix(SIZE): a for n, a in given.items() if n.startswith(SIZE)}
    of_file |= {name: given[name] for name in op.static if name in given}
    return sizes | {n: int(a) for n, a in of_file.items() if a.ndim == 0 and a.dtype.kind in "iu"}


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
            arrays = [a if n in op.discrete else a.astype(np.float32) for n, a in pairs]
            arrays = op.arrays(arrays, COMPILED_TYPES)
            numbers = [a for a in arrays if a.dtype.kind not in "bi"]
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


def _given(own: _OwnData, notes: tuple[str, ...]) -> Verdict:
    candidate, arrays, statics = own.candidate, own.arrays, own.statics
    op = candidate.op
    for a, domain in zip(arrays, op.inputs.values(), strict=True):
        first = a[..., :1, :] if domain.span else a[..., :1]
        if domain.decay and not from_state(op) and not np.isfinite(first).all():
            return Verdict(
                "-", notes=("not judged: a_0 is not finite, and right programs differ in 0·a_0",)
            )
    verdict = special_values.at(candidate, *candidate.narrowed(arrays, statics))
    return replace(verdict, notes=(*verdict.notes, *notes))
